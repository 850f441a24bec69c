"""Who ran where and who waited, as a trace shows it: slices and waits that fall into its window.

A model's run (:mod:`.trace`) and a recording of a real system (:mod:`.recordings`) both tell it what happened, in the
order of time.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Slice:
    """A vCPU had a pCPU; switching costs included."""

    pcpu: int
    vcpu: int
    start_ns: int
    end_ns: int
    priority: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A vCPU was runnable and had no pCPU."""

    vcpu: int
    start_ns: int
    end_ns: int


class Window(Protocol):
    """What a schedule fills: a trace."""

    start_ns: int
    end_ns: int
    slices: list[Slice]
    waits: list[Wait]


class Schedule:
    """What runs on each pCPU, and since when each vCPU waits.

    The window gets what ends; what lies outside it is cut off.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._running: dict[int, tuple[int, int, str]] = {}
        self._waiting: dict[int, int] = {}

    def wake(self, vcpu: int, now_ns: int) -> None:
        """Let a vCPU wait, unless it runs or waits."""
        if all(vcpu != running for running, _, _ in self._running.values()):
            self._waiting.setdefault(vcpu, now_ns)

    def waits_since_ns(self, vcpu: int, otherwise_ns: int) -> int:
        """Return when a vCPU began to wait, or something else if it does not."""
        return self._waiting.get(vcpu, otherwise_ns)

    def dispatch(self, pcpu: int, vcpu: int, now_ns: int, priority: str = "") -> None:
        self._end_wait(vcpu, now_ns)
        self._running[pcpu] = (vcpu, now_ns, priority)

    def stop(self, pcpu: int, vcpu: int, now_ns: int, *, is_runnable: bool) -> None:
        """Let a vCPU run no longer; it waits if it could go on."""
        if pcpu in self._running:
            self._end_slice(pcpu, now_ns, "preempted" if is_runnable else "blocked")
        if is_runnable:
            self._waiting[vcpu] = now_ns
        else:
            self._waiting.pop(vcpu, None)  # a recording that lost events

    def change_priority(self, vcpu: int, now_ns: int, priority: str) -> None:
        """Cut a slice where its priority changes."""
        for pcpu, (running, _, before) in self._running.items():
            if running == vcpu and before != priority:
                self._end_slice(pcpu, now_ns, "priority")
                self._running[pcpu] = (vcpu, now_ns, priority)
                return

    def close(self) -> None:
        """End the window: cut what is going on."""
        for pcpu in list(self._running):
            self._end_slice(pcpu, self._window.end_ns, "window")
        for vcpu in list(self._waiting):
            self._end_wait(vcpu, self._window.end_ns)

    def _end_slice(self, pcpu: int, now_ns: int, reason: str) -> None:
        vcpu, since_ns, priority = self._running.pop(pcpu)
        start_ns, end_ns = max(since_ns, self._window.start_ns), min(now_ns, self._window.end_ns)
        if end_ns > start_ns:
            self._window.slices.append(Slice(pcpu, vcpu, start_ns, end_ns, priority, reason))

    def _end_wait(self, vcpu: int, now_ns: int) -> None:
        since_ns = self._waiting.pop(vcpu, now_ns)
        start_ns, end_ns = max(since_ns, self._window.start_ns), min(now_ns, self._window.end_ns)
        if end_ns > start_ns:
            self._window.waits.append(Wait(vcpu, start_ns, end_ns))
