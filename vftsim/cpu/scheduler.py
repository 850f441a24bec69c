"""What a host asks of a CPU scheduler.

A policy is a plain object without knowledge of the engine: the host tells it when a vCPU wakes,
blocks or has run, and asks what a pCPU should run next.  Times are integer nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import EventKind


class Decision(NamedTuple):
    """What a pCPU runs next: a vCPU (``None``: idle) and for how long at most (``None``: until it blocks)."""

    vcpu: Vcpu | None
    slice_ns: int | None


class PeriodicTimer(NamedTuple):
    """A timer of the scheduler; ``action(now_ns)`` returns the pCPUs that must choose again."""

    period_ns: int
    phase_ns: int
    kind: EventKind
    entity: int
    action: Callable[[int], Iterable[int]]


class HostView(Protocol):
    """What a scheduler may see of its host."""

    pcpus: int
    vcpus: Sequence[Vcpu]
    running: Sequence[Vcpu | None]


class Scheduler(Protocol):
    """The interface behind which every policy stands."""

    def attach(self, host: HostView) -> None:
        """Called once, when all vCPUs exist and none has run."""

    def timers(self) -> Sequence[PeriodicTimer]:
        """Ticks and accounting periods that the host must drive; may be empty."""

    def wake(self, vcpu: Vcpu, now_ns: int) -> Iterable[int]:
        """``vcpu`` became runnable; returns the pCPUs that must choose again now."""

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """``vcpu`` has nothing left to do; it was charged before this call."""

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """``vcpu`` has run ``ran_ns`` since it was last charged."""

    def choose(self, pcpu: int, now_ns: int) -> Decision:
        """What ``pcpu`` runs next; the vCPU that ran there, if still runnable, has been charged."""
