"""What is recorded of a case, as one flat dict of exact values: integers, texts, lists of integers.

A float is written as ``float.hex()``.  Keys say what a value means in the domain; ``<..>`` stands for a name or
number.  Whoever builds the simulation anew makes the same dict from his own structures.

Families common to both worlds (:func:`machine_values`, read at the end of the run, when every running vCPU has
been charged up to that instant)::

    end_ns                                 simulated time at the end
    host.context_switches                  dispatches of another vCPU than the one the pCPU ran last
    scheduler.<counter>                    what the scheduler counted (boosts, steals, parks, resets, ...)
    vcpu.<domain>.<n>.run_ns               CPU time
    vcpu.<domain>.<n>.wait_ns              time runnable without a pCPU, up to its last dispatch
    vcpu.<domain>.<n>.wakeups              times it left the blocked state
    vcpu.<domain>.<n>.context_switches     dispatches counted above, of this vCPU
    vcpu.<domain>.<n>.migrations           dispatches on another pCPU than the time before
    pcpu.<n>.busy_ns, .switching_ns, .idle_ns     they add up to end_ns; a switch that is cut short costs what
                                           has passed of it
    pcpu.<n>.switches.count, .sha256       who is on the pCPU at the end of an instant when it is another than
                                           before: lines "time domain.n" ("time -" for nobody).  A rebuilt
                                           simulation that leaves out work which nobody can see (a background load
                                           alone on its pCPU) may lack these for that pCPU
    drop.<place>.<cause>                   packets lost, 0 included only where a place is always there

A distribution ``<name>`` of delays (:func:`histogram_values`)::

    <name>.count, .sum_ns, .sum_squares_ns2, .min_ns, .max_ns
    <name>.hist                            [bucket, count, bucket, count, ...] by the bucket rule of
                                           vftsim.stats.histogram

A list of floats or integers ``<name>`` (:func:`list_values`): ``<name>.count``; ``<name>.sum`` (exact sum, rounded
once); ``<name>.sha256`` of one line a value (``float.hex()`` or decimal).

Those of the SIP lab: :mod:`.observe_sip`; of the media host: :mod:`.observe_media`.

``events`` stands beside the dict, for information: a rebuilt simulation leaves out events that nobody can see.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from vftsim.cpu import Host, Vcpu

from vftsim.stats import DelayHistogram

from .compact import digest

Values = dict[str, Any]
_NOBODY = "-"


class Watch:
    """A ScheduleObserver: who is on each pCPU at the end of each instant."""

    def __init__(self, names: dict[int, str], pcpus: int) -> None:
        self.names = names
        self.now: list[str] = [_NOBODY] * pcpus
        self.before: list[str] = [_NOBODY] * pcpus
        self.since_ns = [0] * pcpus
        self.lines: list[list[str]] = [[] for _ in range(pcpus)]

    def on_dispatch(self, pcpu: int, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        self._note(pcpu, now_ns, self.names[vcpu.index])

    def on_stop(self, pcpu: int, vcpu: Vcpu, now_ns: int, reason: str) -> None:
        self._note(pcpu, now_ns, _NOBODY)

    def on_wake(self, vcpu: Vcpu, now_ns: int) -> None:
        pass

    def on_priority(self, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        pass

    def values(self) -> Values:
        found: Values = {}
        for pcpu, lines in enumerate(self.lines):
            self._close(pcpu)
            found[f"pcpu.{pcpu}.switches.count"] = len(lines)
            found[f"pcpu.{pcpu}.switches.sha256"] = digest(lines)
        return found

    def _note(self, pcpu: int, now_ns: int, who: str) -> None:
        if now_ns != self.since_ns[pcpu]:
            self._close(pcpu)
            self.since_ns[pcpu] = now_ns
        self.now[pcpu] = who

    def _close(self, pcpu: int) -> None:
        if self.now[pcpu] != self.before[pcpu]:
            self.before[pcpu] = self.now[pcpu]
            self.lines[pcpu].append(f"{self.since_ns[pcpu]} {self.now[pcpu]}")


def watch(host: Host, domains: dict[str, Sequence[Vcpu]]) -> Watch:
    """Watch a host that has not started; ``domains``: the vCPUs of each domain, in their order."""
    names = {vcpu.index: f"{name}.{n}" for name, vcpus in domains.items() for n, vcpu in enumerate(vcpus)}
    host.observer = watching = Watch(names, host.pcpus)
    return watching


def machine_values(host: Host, watching: Watch) -> Values:
    """CPU time and switches, of every vCPU and pCPU."""
    host.busy_ns()
    found: Values = {"end_ns": host.clock.now_ns, "host.context_switches": host.context_switches}
    for vcpu in host.vcpus:
        for field in ("run_ns", "wait_ns", "wakeups", "context_switches", "migrations"):
            found[f"vcpu.{watching.names[vcpu.index]}.{field}"] = getattr(vcpu, field)
    for pcpu, running in enumerate(host.running):
        ahead_ns = 0 if running is None else max(running.dispatched_ns - host.clock.now_ns, 0)
        found[f"pcpu.{pcpu}.busy_ns"] = host.pcpu_busy_ns[pcpu]
        found[f"pcpu.{pcpu}.switching_ns"] = host.pcpu_switching_ns[pcpu] - ahead_ns
        found[f"pcpu.{pcpu}.idle_ns"] = host.idle_ns(pcpu)
    for name, count in getattr(host.scheduler, "counters", {}).items():
        found[f"scheduler.{name}"] = count
    return found | watching.values()


def histogram_values(name: str, histogram: DelayHistogram) -> Values:
    """Everything a histogram holds."""
    plain = histogram.to_dict()
    buckets = [number for pair in plain.pop("buckets") for number in pair]
    return {f"{name}.{field}": value for field, value in plain.items()} | {f"{name}.hist": buckets}


def list_values(name: str, values: Iterable[float]) -> Values:
    """Length, sum and digest of numbers in order."""
    listed = list(values)
    lines = (value.hex() if isinstance(value, float) else str(value) for value in listed)
    return {
        f"{name}.count": len(listed),
        f"{name}.sum": math.fsum(listed).hex(),
        f"{name}.sha256": digest(lines),
    }
