"""The O(1) scheduler of Linux 2.6 before 2.6.23, as 2.6.18 has it (``kernel/sched.c``).

Rules, for ordinary processes on one CPU:

* **Priority**: 120 + nice, less a bonus of -5 to +5 by how much of late the process has slept: ``sleep_avg``,
  at most 1 s, cut to tenths.  100 to 139; the smaller number first, and in order of arrival among equals.
* **Sleep** counts when the process wakes.  A sleep of more than 799 ms (nice 0) lifts ``sleep_avg`` to 799 ms
  at once and earns nothing further; waits for a disk lift it no higher than that.  Waiting in the run queue
  after a wake-up counts as well until the process is first picked: wholly if an interrupt woke it, three tenths
  otherwise.
* **Running** takes run time / bonus from it, when the process leaves the CPU or is weighed against others.
* **Time slices** by nice: 100 ms at 0, 5 ms at 19, 800 ms at -20.  At the end of one the priority is worked out
  anew; an interactive process (bonus 2 + nice / 4 above the middle) joins the end of its list in the active
  array again, any other the expired array, and so does every one while the expired array starves: its first has
  waited for longer than 1 s for each runnable process, or one of better nice waits there.  The arrays swap when
  the active one is empty.
* **Granularity**: an interactive process goes behind its equals every 10 ms x 2^(9 - bonus) of its slice.
* **Wake-up**: pre-empts a process of worse priority, not an equal.  A process that is pre-empted keeps its
  place.

As modelled: a list in order of priority for the array of 140 lists; slices count CPU time exactly where the
kernel counts ticks; several vCPUs share the arrays, which swap when none in the active one waits.  Assumption:
a process that is a job by itself begins with the middle bonus.  Left out: real-time classes, ``SCHED_BATCH``,
the sharing of slices between parent and child.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Engine, Fifo, Record, Sim, Table
from vftsim.platform.cpu import processes as shared
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS, GuestSchedulerSpec
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.processes import READY, Process, processes
from vftsim.platform.cpu.records import Domain, domains
from vftsim.platform.rows import fill_row
from vftsim.spec.units import MS, PeriodNs, PositiveDurationNs

MOST_BONUS = 10
BEST, WORST, MIDDLE = 100, 139, 120
SHORTEST_SLICE_NS = 5 * MS
NORMAL, DISK, INTERACTIVE, INTERRUPTED = 0, 1, 2, 3
"""What the last sleep was: counted, one that earns nothing in the queue, ended by a process, by an interrupt."""

o1 = shared.share_processes(guest_scheduler.kind("o1"))


class O1Domain(Record):
    """A domain's arrays and constants.

    ``expired_ns`` is when the first process joined the expired array (0: none has), ``best_expired`` the best
    nice level there as a priority; ``running`` counts runnable processes.
    """

    active: int
    expired: int
    expired_ns: int
    best_expired: int
    running: int
    slice_ns: int
    tick_ns: int
    granularity_ns: int
    most_sleep_ns: int


class O1Array(Record):
    """An array of priorities: its processes by priority, in order of arrival among equals."""

    listed: Fifo


class O1Process(Record):
    """A process: priority, what it has slept, what is left of its slice and until it goes behind its equals."""

    link: int
    array: int
    priority: int
    sleep_ns: int
    sleep_kind: int
    stamp_ns: int
    slice_left_ns: int
    turn_left_ns: int


o1_domains = Table("o1_domains", O1Domain, beside=domains)
o1_arrays = Table("o1_arrays", O1Array, 2 * 4096)
o1_processes = Table("o1_processes", O1Process, beside=processes)
o1_list = Chain(o1_processes, "link")


@GUEST_SCHEDULERS.register
class O1Guest(GuestSchedulerSpec):
    """Linux 2.6.18."""

    kind: Literal["o1"] = "o1"
    has_slices: ClassVar[bool] = True
    time_slice: PeriodNs = Field(
        100 * MS, description="Time slice at nice 0. Default 100 ms: DEF_TIMESLICE of Linux 2.6.18."
    )
    most_sleep: PositiveDurationNs = Field(
        1000 * MS,
        description="Most sleep that counts, and how long for each runnable process the expired array may wait. "
        "Default 1 s: MAX_SLEEP_AVG, STARVATION_LIMIT.",
    )
    granularity: PeriodNs = Field(
        10 * MS, description="Turn among equals of the best priority. Default 10 ms: GRANULARITY."
    )
    tick: PeriodNs = Field(
        MS, description="Timer tick, to which sleep is cut. Default 1 ms: HZ 1000, as in kernels of the RHEL 5 class."
    )

    def install(self, engine: Engine, domain: int) -> None:
        """Write the constants, and make the two arrays."""
        o1_domain = fill_row(engine, o1_domains, domain, self, slice_ns=self.time_slice)
        o1_domain.active, o1_domain.expired = engine.new(o1_arrays), engine.new(o1_arrays)
        o1_domain.best_expired = WORST + 1

    def add(self, engine: Engine, process: int) -> None:
        """Begin with a whole slice and no sleep."""
        o1_process = engine.rows(o1_processes)[process]
        nice = int(engine.rows(processes)[process].nice)
        o1_process.priority = MIDDLE + nice + MOST_BONUS // 2
        o1_process.slice_left_ns = slice_of(self.time_slice, nice)


def slice_of(base_ns: int, nice: int) -> int:
    """Return the time slice of a nice level: in proportion to 140 less the priority, times four below 0."""
    longest_ns = 4 * base_ns if nice < 0 else base_ns
    return max(longest_ns * (WORST + 1 - MIDDLE - nice) // 20, SHORTEST_SLICE_NS)


@o1.implements(shared.begin_process)
def begin_process(sim: Sim, domain: Domain, process: Process, queue: O1Domain = BESIDE) -> None:
    """Begin in the middle."""
    o1_process = o1_processes(sim)[process.row]
    o1_process.sleep_ns = queue.most_sleep_ns // 2
    o1_process.sleep_kind = DISK
    o1_process.stamp_ns = sim.now_ns
    o1_process.slice_left_ns = slice_of(queue.slice_ns, process.nice)


def bonus(queue: O1Domain, o1_process: O1Process) -> int:
    """Return the bonus for sleep, 0 to 10; the greatest at the most sleep only."""
    return o1_process.sleep_ns // queue.tick_ns * MOST_BONUS // (queue.most_sleep_ns // queue.tick_ns)


def dynamic_priority(queue: O1Domain, process: Process, o1_process: O1Process) -> int:
    """Return the priority with the bonus."""
    priority = MIDDLE + process.nice - (bonus(queue, o1_process) - MOST_BONUS // 2)
    return min(max(priority, BEST), WORST)


def interactive_bonus(process: Process) -> int:
    """Return how far above the middle the bonus of an interactive process is at least."""
    return (process.nice + 20) * MOST_BONUS // 40 - 5 + 2


def count_sleep(queue: O1Domain, process: Process, o1_process: O1Process, until_ns: int) -> None:
    """Add the time since the stamp to what a process has slept, and work out its priority."""
    slept_ns = until_ns - o1_process.stamp_ns
    tenths = MOST_BONUS // 2 + interactive_bonus(process) + 1
    ceiling_ns = queue.most_sleep_ns * tenths // MOST_BONUS - queue.tick_ns
    if slept_ns > ceiling_ns and o1_process.sleep_ns < ceiling_ns:
        o1_process.sleep_ns = ceiling_ns
        o1_process.sleep_kind = DISK
    else:
        if o1_process.sleep_kind == DISK and o1_process.sleep_ns >= ceiling_ns:
            slept_ns = 0
        elif o1_process.sleep_kind == DISK and o1_process.sleep_ns + slept_ns >= ceiling_ns:
            o1_process.sleep_ns = ceiling_ns
            slept_ns = 0
        o1_process.sleep_ns += slept_ns
    # From nice 12 on the ceiling is above the most that counts.
    o1_process.sleep_ns = min(o1_process.sleep_ns, queue.most_sleep_ns)
    o1_process.priority = dynamic_priority(queue, process, o1_process)


@o1.implements(shared.awake)
def awake(sim: Sim, domain: Domain, process: Process, by_interrupt: bool, queue: O1Domain = BESIDE) -> None:
    """Count the sleep, and join the active array."""
    o1_process = o1_processes(sim)[process.row]
    if process.sleeps_on_disk:
        o1_process.sleep_kind = DISK
    count_sleep(queue, process, o1_process, sim.now_ns)
    if o1_process.sleep_kind == NORMAL:
        o1_process.sleep_kind = INTERRUPTED if by_interrupt else INTERACTIVE
    o1_process.stamp_ns = sim.now_ns
    queue.running += 1
    join(sim, process.row, o1_process, queue.active)


def join(sim: Sim, row: int, o1_process: O1Process, array: int) -> None:
    """Put a process behind those of its priority in an array."""
    listed = o1_arrays(sim)[array].listed
    before = 0
    current = listed.first
    while current != 0 and o1_processes(sim)[current].priority <= o1_process.priority:
        before = current
        current = o1_processes(sim)[current].link
    o1_list.insert_after(sim, listed, before, row)
    o1_process.array = array


def leave(sim: Sim, row: int, o1_process: O1Process) -> None:
    """Take a process out of its array."""
    o1_list.remove(sim, o1_arrays(sim)[o1_process.array].listed, row)


@o1.implements(shared.asleep)
def asleep(
    sim: Sim, domain: Domain, process: Process, queue: O1Domain = BESIDE, o1_process: O1Process = BESIDE
) -> None:
    """Charge what has run, and leave the array."""
    charge_sleep(sim, queue, o1_process)
    queue.running -= 1
    leave(sim, process.row, o1_process)


@o1.implements(shared.off_cpu)
def off_cpu(sim: Sim, domain: Domain, process: Process) -> None:
    """Charge what has run; the place in the array stays."""
    charge_sleep(sim, o1_domains(sim)[domain.row], o1_processes(sim)[process.row])


def charge_sleep(sim: Sim, queue: O1Domain, o1_process: O1Process) -> None:
    """Take the time on the CPU from what a process has slept, the less the more it has; the clock is the wall's."""
    ran_ns = min(sim.now_ns - o1_process.stamp_ns, queue.most_sleep_ns)
    o1_process.sleep_ns = max(o1_process.sleep_ns - ran_ns // max(bonus(queue, o1_process), 1), 0)
    o1_process.stamp_ns = sim.now_ns


@o1.implements(shared.pick)
def pick(sim: Sim, domain: Domain, queue: O1Domain = BESIDE) -> int:
    """Take the first of the active array that waits; if there is none, swap the arrays."""
    row = first_ready(sim, queue.active)
    if row == 0:
        before = queue.active
        queue.active = queue.expired
        queue.expired = before
        queue.expired_ns = 0
        queue.best_expired = WORST + 1
        row = first_ready(sim, queue.active)
    o1_process = o1_processes(sim)[row]
    # The wait counts once, at the first pick after a wake-up.
    if o1_process.sleep_kind == INTERACTIVE or o1_process.sleep_kind == INTERRUPTED:
        count_wait(sim, queue, processes(sim)[row], o1_process)
    o1_process.sleep_kind = NORMAL
    o1_process.stamp_ns = sim.now_ns
    set_turn(queue, processes(sim)[row], o1_process)
    return row


def first_ready(sim: Sim, array: int) -> int:
    """Return the first process of an array that is on no vCPU."""
    row = o1_arrays(sim)[array].listed.first
    while row != 0 and processes(sim)[row].state != READY:
        row = o1_processes(sim)[row].link
    return row


def count_wait(sim: Sim, queue: O1Domain, process: Process, o1_process: O1Process) -> None:
    """Count the wait in the run queue after a wake-up as sleep; a new priority moves the process in its array."""
    waited_ns = sim.now_ns - o1_process.stamp_ns
    if o1_process.sleep_kind == INTERACTIVE:
        # ON_RUNQUEUE_WEIGHT of 30 %, in 128ths.
        waited_ns = waited_ns * 38 // 128
    before = o1_process.priority
    count_sleep(queue, process, o1_process, o1_process.stamp_ns + waited_ns)
    if o1_process.priority != before:
        leave(sim, process.row, o1_process)
        join(sim, process.row, o1_process, o1_process.array)


def set_turn(queue: O1Domain, process: Process, o1_process: O1Process) -> None:
    """Work out how long a process runs before it goes behind its equals: to the next multiple of its turn."""
    o1_process.turn_left_ns = o1_process.slice_left_ns
    if o1_process.priority > MIDDLE + process.nice - interactive_bonus(process):
        return
    turn_ns = queue.granularity_ns << (max(MOST_BONUS - bonus(queue, o1_process), 1) - 1)
    left_ns = turn_ns - (slice_of(queue.slice_ns, process.nice) - o1_process.slice_left_ns) % turn_ns
    if o1_process.slice_left_ns - left_ns >= turn_ns:
        o1_process.turn_left_ns = left_ns


@o1.implements(shared.ran)
def ran(sim: Sim, domain: Domain, process: Process, ran_ns: int, o1_process: O1Process = BESIDE) -> None:
    """Take it from the slice."""
    o1_process.slice_left_ns -= ran_ns
    o1_process.turn_left_ns -= ran_ns


@o1.implements(shared.longest_ns)
def longest_ns(sim: Sim, domain: Domain, process: Process, o1_process: O1Process = BESIDE) -> int:
    """Run to the end of the turn, or of the slice."""
    return min(o1_process.slice_left_ns, o1_process.turn_left_ns)


@o1.implements(shared.used_up)
def used_up(sim: Sim, domain: Domain, process: Process, queue: O1Domain = BESIDE) -> None:
    """Go behind the equals; at the end of a slice, into the expired array unless the process is interactive."""
    o1_process = o1_processes(sim)[process.row]
    leave(sim, process.row, o1_process)
    array = o1_process.array
    if o1_process.slice_left_ns <= 0:
        o1_process.priority = dynamic_priority(queue, process, o1_process)
        o1_process.slice_left_ns = slice_of(queue.slice_ns, process.nice)
        array = array_after_slice(sim, queue, process, o1_process)
    join(sim, process.row, o1_process, array)
    set_turn(queue, process, o1_process)


def array_after_slice(sim: Sim, queue: O1Domain, process: Process, o1_process: O1Process) -> int:
    """Return the array that a process joins at the end of a slice."""
    if queue.expired_ns == 0:
        queue.expired_ns = sim.now_ns
    is_interactive = o1_process.priority <= MIDDLE + process.nice - interactive_bonus(process)
    if is_interactive and not starves(sim, queue, process):
        return queue.active
    queue.best_expired = min(queue.best_expired, MIDDLE + process.nice)
    return queue.expired


def starves(sim: Sim, queue: O1Domain, process: Process) -> bool:
    """Tell whether the expired array has waited for too long."""
    if MIDDLE + process.nice > queue.best_expired:
        return True
    return sim.now_ns - queue.expired_ns > queue.most_sleep_ns * queue.running


@o1.implements(shared.preempts)
def preempts(sim: Sim, domain: Domain, newcomer: Process, process: Process) -> bool:
    """Only a better priority does."""
    return o1_processes(sim)[newcomer.row].priority < o1_processes(sim)[process.row].priority
