"""The completely fair scheduler, as Linux ran processes from 2.6.23 to 6.5 (``kernel/sched/fair.c``).

Rules, for ordinary processes on one CPU:

* Virtual run time advances by CPU time x 1024 / weight (1024 at nice 0, about 1.25 times a step); the least
  runs next.
* A process may run for its part by weight of a period: ``latency``, or ``granularity`` for each runnable
  process when there are more than latency / granularity of them; also, after ``granularity``, until it is ahead
  of the least waiting one by that part.
* A process that wakes is placed no further back than half the latency (``GENTLE_FAIR_SLEEPERS``) before the
  least virtual run time, which never goes back.  It pre-empts if it is behind the one that runs by more than
  ``wakeup_granularity``.

As modelled: runs end exactly where the kernel looks at ticks; several vCPUs share one queue and divide its
weight.  Assumption: who does a job by itself has slept until it came.  Left out: groups and their bandwidth,
``LAST_BUDDY``, the half slice by which a new process starts behind.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Engine, Fifo, Record, Sim, Table
from vftsim.platform.cpu import processes as shared
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS, GuestSchedulerSpec
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.processes import NICE_0, NO_LIMIT_NS, READY, Process, process_domains, processes
from vftsim.platform.cpu.records import Domain, domains
from vftsim.platform.rows import fill_row
from vftsim.spec.units import US, DurationNs, PositiveDurationNs

cfs_guest = shared.share_processes(guest_scheduler.kind("cfs"))


class CfsGuestDomain(Record):
    """A domain's constants and runnable processes; ``least_ns`` is the least virtual run time so far."""

    runnable: Fifo
    weight: int
    least_ns: int
    latency_ns: int
    granularity_ns: int
    wakeup_ns: int


class CfsGuestProcess(Record):
    """A process: virtual run time, what passed of its next nanosecond in parts of the weight, and its present run."""

    link: int
    virtual_ns: int
    residue: int
    ran_ns: int


cfs_guest_domains = Table("cfs_guest_domains", CfsGuestDomain, beside=domains)
cfs_guest_processes = Table("cfs_guest_processes", CfsGuestProcess, beside=processes)
cfs_guest_list = Chain(cfs_guest_processes, "link")


@GUEST_SCHEDULERS.register
class CfsGuest(GuestSchedulerSpec):
    """Linux 2.6.23 to 6.5, one CPU."""

    kind: Literal["cfs"] = "cfs"
    has_slices: ClassVar[bool] = True
    latency: PositiveDurationNs = Field(
        6000 * US, description="Period in which each runs once. Default 6 ms: sched_latency_ns of one CPU."
    )
    granularity: PositiveDurationNs = Field(
        750 * US, description="Least turn in it. Default 0.75 ms: sched_min_granularity_ns of one CPU."
    )
    wakeup_granularity: DurationNs = Field(
        1000 * US, description="Lead from which a waking process pre-empts. Default 1 ms: sched_wakeup_granularity_ns."
    )

    def install(self, engine: Engine, domain: int) -> None:
        fill_row(engine, cfs_guest_domains, domain, self, wakeup_ns=self.wakeup_granularity)


@cfs_guest.implements(shared.begin_process)
def begin_process(sim: Sim, domain: Domain, process: Process, cfs_guest_process: CfsGuestProcess = BESIDE) -> None:
    """Begin at the least virtual run time."""
    cfs_guest_process.virtual_ns = cfs_guest_domains(sim)[domain.row].least_ns
    cfs_guest_process.residue = 0


@cfs_guest.implements(shared.awake)
def awake(sim: Sim, domain: Domain, process: Process, by_interrupt: bool, queue: CfsGuestDomain = BESIDE) -> None:
    """Place it before the least by half a latency at most, and queue it."""
    cfs_guest_process = cfs_guest_processes(sim)[process.row]
    placed_ns = queue.least_ns - queue.latency_ns // 2
    # A job by itself is one of a process that has slept until it came.
    cfs_guest_process.virtual_ns = placed_ns if process.is_single else max(cfs_guest_process.virtual_ns, placed_ns)
    queue.weight += process.weight
    cfs_guest_list.push(sim, queue.runnable, process.row)


@cfs_guest.implements(shared.asleep)
def asleep(sim: Sim, domain: Domain, process: Process, queue: CfsGuestDomain = BESIDE) -> None:
    """Leave the queue."""
    queue.weight -= process.weight
    cfs_guest_list.remove(sim, queue.runnable, process.row)
    # After it has left: the least of those that stay.
    advance(sim, queue)


def advance(sim: Sim, queue: CfsGuestDomain) -> None:
    """Move the least virtual run time forward."""
    row = queue.runnable.first
    if row == 0:
        return
    least_ns = cfs_guest_processes(sim)[row].virtual_ns
    while row != 0:
        least_ns = min(least_ns, cfs_guest_processes(sim)[row].virtual_ns)
        row = cfs_guest_processes(sim)[row].link
    queue.least_ns = max(queue.least_ns, least_ns)


@cfs_guest.implements(shared.ran)
def ran(sim: Sim, domain: Domain, process: Process, ran_ns: int, cfs_guest_process: CfsGuestProcess = BESIDE) -> None:
    """Advance virtual run time."""
    parts = cfs_guest_process.residue + ran_ns * NICE_0
    cfs_guest_process.virtual_ns += parts // process.weight
    cfs_guest_process.residue = parts % process.weight
    cfs_guest_process.ran_ns += ran_ns
    advance(sim, cfs_guest_domains(sim)[domain.row])


def first_ready(sim: Sim, queue: CfsGuestDomain) -> int:
    """Return the waiting process of least virtual run time, of equals the first to queue."""
    best = 0
    for row in cfs_guest_list.rows(sim, queue.runnable):
        cfs_guest_process = cfs_guest_processes(sim)[row]
        if processes(sim)[row].state == READY and (
            best == 0 or cfs_guest_process.virtual_ns < cfs_guest_processes(sim)[best].virtual_ns
        ):
            best = row
    return best


@cfs_guest.implements(shared.pick)
def pick(sim: Sim, domain: Domain) -> int:
    """Take the one of least virtual run time."""
    row = first_ready(sim, cfs_guest_domains(sim)[domain.row])
    cfs_guest_processes(sim)[row].ran_ns = 0
    return row


def slice_ns(queue: CfsGuestDomain, process: Process, vcpus: int) -> int:
    """Return a process's part of a period; the vCPUs divide the weight."""
    count = (queue.runnable.length + vcpus - 1) // vcpus
    period_ns = queue.latency_ns
    if count > queue.latency_ns // queue.granularity_ns:
        period_ns = count * queue.granularity_ns
    return min(period_ns * process.weight * vcpus // queue.weight, period_ns)


@cfs_guest.implements(shared.longest_ns)
def longest_ns(sim: Sim, domain: Domain, process: Process, queue: CfsGuestDomain = BESIDE) -> int:
    """Run alone without a limit; else for the slice, or until too far ahead of the least that waits."""
    if process_domains(sim)[domain.row].ready == 0:
        return NO_LIMIT_NS
    cfs_guest_process = cfs_guest_processes(sim)[process.row]
    turn_ns = slice_ns(queue, process, domain.vcpus)
    lead_ns = cfs_guest_process.virtual_ns - cfs_guest_processes(sim)[first_ready(sim, queue)].virtual_ns
    until_ahead_ns = (turn_ns - lead_ns) * process.weight // NICE_0
    return min(turn_ns - cfs_guest_process.ran_ns, max(queue.granularity_ns - cfs_guest_process.ran_ns, until_ahead_ns))


@cfs_guest.implements(shared.preempts)
def preempts(sim: Sim, domain: Domain, newcomer: Process, process: Process) -> bool:
    """It does if its virtual run time is less by more than the granularity, by its own weight."""
    lead_ns = cfs_guest_processes(sim)[process.row].virtual_ns - cfs_guest_processes(sim)[newcomer.row].virtual_ns
    return lead_ns * newcomer.weight > cfs_guest_domains(sim)[domain.row].wakeup_ns * NICE_0
