"""What the earliest-deadline-first schedulers have in common: periods that end in a refill.

A vCPU has CPU time for a period, whose end is its deadline.  While it is awake an event begins its next
period at the deadline; a running vCPU then makes its pCPU choose again, because its deadline is later and
its time another, and a waiting one looks for a place.  A vCPU that blocks is refilled no more: its next wake
sees to it.
"""

from vftsim.kernel import BESIDE, EventKind, Kind, Record, Sim, Table, at, timer
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu import shared_queue as shared
from vftsim.platform.cpu.host import request_reschedule, sync_running
from vftsim.platform.cpu.records import RUNNING, Host, Vcpu, pcpus, vcpus


class Deadline(Record):
    """A vCPU's period: its end, what is left of its time, and the event planned for its end (0: none)."""

    deadline_ns: int
    left_ns: int
    alarm: int


deadlines = Table("deadlines", Deadline, beside=vcpus)


@scheduler.scheduler.slot
def refill(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Begin a period: set ``deadline_ns`` and ``left_ns``."""


@scheduler.scheduler.slot
def on_deadline(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Prepare a vCPU whose period ends while it is awake."""


def begin_period(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Begin a period and plan its end."""
    refill(sim, host, vcpu)
    plan(sim, vcpu)


def plan(sim: Sim, vcpu: Vcpu, deadline: Deadline = BESIDE) -> None:
    """Plan the end of the period in progress."""
    # An alarm that was planned before is stale from here on.
    deadline.alarm = at(sim, deadline.deadline_ns, EventKind.ACCOUNTING, vcpu.number, on_period_end, vcpu.row)


def block(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Free its pCPU and stop refilling."""
    shared.block(sim, host, vcpu)
    deadlines(sim)[vcpu.row].alarm = 0


@timer(deadlines, "alarm")
def on_period_end(sim: Sim, vcpu: Vcpu, host: Host = BESIDE) -> None:
    """Begin the next period of a vCPU that is awake."""
    end_period(sim, host, vcpu)


@scheduler.scheduler.slot
def end_period(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Begin the next period of a vCPU; its pCPU chooses again, or one is looked for."""
    begin_next_period(sim, host, vcpu)


def begin_next_period(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Refill a vCPU, and have its pCPU, or one that is found for it, choose again."""
    # Charged first: what has run is of the old period.
    sync_running(sim, host)
    # Refilled first: without time no pCPU would be looked for.
    on_deadline(sim, host, vcpu)
    begin_period(sim, host, vcpu)
    pcpu = vcpu.pcpu if vcpu.state == RUNNING else shared.find_pcpu(sim, host, vcpu)
    if pcpu != 0:
        request_reschedule(sim, pcpus(sim)[pcpu])


def share_one_deadline_queue(kind: Kind) -> Kind:
    """Give a kind of scheduler one run queue of vCPUs with periods; :func:`refill` says what a period gives."""
    shared.share_one_queue(kind)
    kind.implements(scheduler.block)(block)
    return kind
