"""What a host asks of a CPU scheduler, and what it offers to one.

A policy is a plain object without knowledge of the engine: the host tells it when a vCPU wakes,
blocks or has run, and asks what a pCPU should run next.  Times are integer nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import Alarm, EventKind


class Decision(NamedTuple):
    """What a pCPU runs next: a vCPU (``None``: idle) and for how long at most (``None``: until it blocks)."""

    vcpu: Vcpu | None
    slice_ns: int | None


IDLE = Decision(None, None)


class PeriodicTimer(NamedTuple):
    """A timer of the scheduler; ``action(now_ns)`` returns the pCPUs that must choose again."""

    period_ns: int
    phase_ns: int
    kind: EventKind
    entity: int
    action: Callable[[int], Iterable[int]]


class ScheduleObserver(Protocol):
    """Hears every scheduling event, for traces and Gantt charts; it must not change anything."""

    def on_dispatch(self, pcpu: int, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        """Hear that ``vcpu`` gets ``pcpu`` (any switching cost starts now)."""

    def on_stop(self, pcpu: int, vcpu: Vcpu, now_ns: int, reason: str) -> None:
        """Hear that ``vcpu`` leaves ``pcpu``: ``"blocked"`` or ``"preempted"``."""

    def on_wake(self, vcpu: Vcpu, now_ns: int) -> None:
        """Hear that ``vcpu``, which was blocked, has work."""

    def on_priority(self, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        """Hear that ``vcpu`` moves to another class, in the scheduler's own words."""


class HostView(Protocol):
    """What a scheduler may see of its host and ask of it."""

    @property
    def pcpus(self) -> int:
        """Number of physical CPUs."""

    @property
    def vcpus(self) -> Sequence[Vcpu]:
        """All virtual CPUs, by index."""

    @property
    def running(self) -> Sequence[Vcpu | None]:
        """What each pCPU runs; ``None`` for the one that is choosing."""

    @property
    def observer(self) -> ScheduleObserver | None:
        """Who wants to hear of changes of priority."""

    def sync(self, vcpu: Vcpu) -> None:
        """Charge a running vCPU up to now."""

    def tickle(self, pcpu: int) -> None:
        """Make ``pcpu`` choose again at this instant; for use in ``choose`` and ``block``."""

    def call_at(self, time_ns: int, kind: EventKind, entity: int, action: Callable[[int], Iterable[int]]) -> Alarm:
        """Plan a one-shot timer; ``action(now_ns)`` returns the pCPUs that must choose again."""


class Scheduler(Protocol):
    """The interface behind which every policy stands."""

    def attach(self, host: HostView) -> None:
        """Take over the host: called once, when all vCPUs exist and none has run."""

    def timers(self) -> Sequence[PeriodicTimer]:
        """List the ticks and accounting periods that the host must drive; may be empty."""

    def wake(self, vcpu: Vcpu, now_ns: int) -> Iterable[int]:
        """Take in ``vcpu``, which became runnable; return the pCPUs that must choose again now."""

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Let go ``vcpu``, which has nothing left to do; it was charged before this call."""

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Take note that ``vcpu`` has run ``ran_ns`` since it was last charged."""

    def choose(self, pcpu: int, now_ns: int) -> Decision:
        """Say what ``pcpu`` runs next; the vCPU that ran there, if still runnable, has been charged."""

    def priority(self, vcpu: Vcpu) -> str:
        """Name the class ``vcpu`` is in, in the scheduler's own words; empty if it has none."""


class Policy:
    """Base of the policies: no timers, no charging, no priority classes.

    Attributes
    ----------
    counters : dict of str to int
        What the policy did, by name (``boosts``, ``steals``, ``parks``, ...).
    """

    host: HostView

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}

    def attach(self, host: HostView) -> None:
        """Remember the host."""
        self.host = host

    def timers(self) -> Sequence[PeriodicTimer]:
        """None."""
        return ()

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Nothing to do."""

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Nothing to do."""

    def priority(self, vcpu: Vcpu) -> str:
        """No classes."""
        return ""

    def count(self, name: str) -> None:
        """Add one to a counter."""
        self.counters[name] = self.counters.get(name, 0) + 1


def home_pcpus(vcpus: Sequence[Vcpu], pcpus: int) -> list[int]:
    """Spread vCPUs over pCPUs: each to the allowed pCPU with the fewest so far, lowest number first."""
    load = [0] * pcpus
    homes = []
    for vcpu in vcpus:
        home = min(sorted(vcpu.affinity), key=lambda pcpu: load[pcpu])
        load[home] += 1
        homes.append(home)
    return homes
