"""The schedule itself: who ran where, at which priority, and how full the rings were.

A recorder listens to the host during a window; rings are sampled.  The result is written in the Chrome
trace event format (JSON object form; "Trace Event Format", Google), which Perfetto and chrome://tracing
open: a track for each pCPU with the vCPUs that ran there, a track for each vCPU with its states, and a
counter for each ring.  Listening changes nothing: a traced run gives the figures of an untraced one.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vftsim.cpu import Vcpu
from vftsim.engine import EventKind
from vftsim.media.build import MediaHost
from vftsim.media.run import MediaResult, finish
from vftsim.media.system import MediaSystem
from vftsim.net.rings import Packet
from vftsim.sampling import Streams

SAMPLE_NS = 50_000
_PCPUS, _VCPUS, _RINGS = 1, 2, 3


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


@dataclass(frozen=True, slots=True)
class PacketTrace:
    """The boundaries one delivered packet passed, with their times."""

    flow: str
    domain: str
    stream: int
    marks: tuple[tuple[str, int, int], ...]
    delivered_ns: int
    wire_ns: int

    @property
    def delay_ns(self) -> int:
        """There and back, as the client measures it."""
        return self.delivered_ns - self.marks[0][1] + self.wire_ns


@dataclass(slots=True)
class Trace:
    """What was recorded in a window."""

    start_ns: int
    end_ns: int
    pcpus: int
    vcpu_names: list[str]
    slices: list[Slice] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    rings: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    packets: list[PacketTrace] = field(default_factory=list)
    vcpu_of_stage: dict[tuple[str, str], int] = field(default_factory=dict)
    _by_vcpu: dict[int, list[Slice]] = field(default_factory=dict, repr=False)

    def running_ns(self, vcpu: int, start_ns: int, end_ns: int) -> int:
        """Return how long a vCPU had a pCPU between two instants of the window."""
        if not self._by_vcpu:
            for one in self.slices:
                self._by_vcpu.setdefault(one.vcpu, []).append(one)
        slices = self._by_vcpu.get(vcpu, [])
        total_ns = 0
        # A vCPU's slices follow one another in time.
        for position in range(bisect_right(slices, start_ns, key=_end_ns), len(slices)):
            one = slices[position]
            if one.start_ns >= end_ns:
                break
            total_ns += min(one.end_ns, end_ns) - max(one.start_ns, start_ns)
        return total_ns


def _end_ns(one: Slice) -> int:
    return one.end_ns


class Recorder:
    """A :class:`~vftsim.cpu.scheduler.ScheduleObserver` that keeps what falls into a window."""

    def __init__(self, start_ns: int, end_ns: int) -> None:
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.slices: list[Slice] = []
        self.waits: list[Wait] = []
        self._running: dict[int, tuple[int, int, str]] = {}
        self._waiting: dict[int, int] = {}

    def on_dispatch(self, pcpu: int, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        """Begin a slice."""
        self._end_wait(vcpu.index, now_ns)
        self._running[pcpu] = (vcpu.index, now_ns, priority)

    def on_stop(self, pcpu: int, vcpu: Vcpu, now_ns: int, reason: str) -> None:
        """End a slice."""
        begun = self._running.pop(pcpu, None)
        if begun is not None:
            self._end_slice(pcpu, begun, now_ns, reason)
        if reason != "blocked":
            self._waiting[vcpu.index] = now_ns

    def on_wake(self, vcpu: Vcpu, now_ns: int) -> None:
        """Begin a wait."""
        self._waiting[vcpu.index] = now_ns

    def on_priority(self, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        """Cut a slice where its priority changes."""
        for pcpu, begun in self._running.items():
            if begun[0] == vcpu.index and begun[2] != priority:
                self._end_slice(pcpu, begun, now_ns, "priority")
                self._running[pcpu] = (vcpu.index, now_ns, priority)
                return

    def close(self) -> None:
        """End the window: cut what is going on."""
        for pcpu, begun in self._running.items():
            self._end_slice(pcpu, begun, self.end_ns, "window")
        for vcpu in list(self._waiting):
            self._end_wait(vcpu, self.end_ns)

    def _end_slice(self, pcpu: int, begun: tuple[int, int, str], now_ns: int, reason: str) -> None:
        vcpu, since_ns, priority = begun
        start_ns, end_ns = max(since_ns, self.start_ns), min(now_ns, self.end_ns)
        if end_ns > start_ns:
            self.slices.append(Slice(pcpu, vcpu, start_ns, end_ns, priority, reason))

    def _end_wait(self, vcpu: int, now_ns: int) -> None:
        since_ns = self._waiting.pop(vcpu, None)
        if since_ns is None:
            return
        start_ns, end_ns = max(since_ns, self.start_ns), min(now_ns, self.end_ns)
        if end_ns > start_ns:
            self.waits.append(Wait(vcpu, start_ns, end_ns))


def run_traced(
    system: MediaSystem, seed: int, replication: int, start_ns: int, length_ns: int
) -> tuple[MediaResult, Trace]:
    """Run up to the end of a window and record it; everything before the window is warm-up."""
    end_ns = start_ns + length_ns
    recorder = Recorder(start_ns, end_ns)
    media = MediaHost(system, Streams(seed, replication), start_ns, recorder, tracing=True)
    names = [f"{name}.{n}" for name, guest in media.guests.items() for n in range(len(guest.vcpus))]
    trace = Trace(start_ns, end_ns, system.host.pcpus, names)
    media.on_traced = lambda packet, now_ns: _keep(trace, media, packet, now_ns)
    trace.vcpu_of_stage = media.stage_vcpus()
    _Sampler(media, trace).start()
    result = finish(media, length_ns, start_ns)
    recorder.close()
    trace.slices, trace.waits = recorder.slices, recorder.waits
    return result, trace


def _keep(trace: Trace, media: MediaHost, packet: Packet, now_ns: int) -> None:
    if packet.sent_ns >= trace.start_ns and packet.marks is not None:
        flow = next(name for name, flow in media.flows.items() if flow is packet.flow)
        domain = next(name for name, port in media.ports.items() if port is packet.port)
        trace.packets.append(PacketTrace(flow, domain, packet.stream, tuple(packet.marks), now_ns, packet.flow.wire_ns))


class _Sampler:
    """Reads all rings every ``SAMPLE_NS`` of the window."""

    def __init__(self, media: MediaHost, trace: Trace) -> None:
        self._media = media
        self._trace = trace
        trace.rings = {name: [] for name, _ in media.occupancies()}

    def start(self) -> None:
        self._media.clock.at(self._trace.start_ns, EventKind.CONTROL, 1, self._sample)

    def _sample(self, _: Any) -> None:
        now_ns = self._media.clock.now_ns
        for name, occupied in self._media.occupancies():
            samples = self._trace.rings[name]
            if not samples or samples[-1][1] != occupied:
                samples.append((now_ns, occupied))
        if now_ns + SAMPLE_NS < self._trace.end_ns:
            self._media.clock.after(SAMPLE_NS, EventKind.CONTROL, 1, self._sample)


def chrome_events(trace: Trace) -> Iterator[dict[str, Any]]:
    """Return the trace as events of the Chrome trace format; times in us."""
    yield from _names(trace)
    for s in trace.slices:
        name, arguments = trace.vcpu_names[s.vcpu], {"priority": s.priority, "until": s.reason}
        yield _complete(_PCPUS, s.pcpu, name, s.start_ns, s.end_ns, arguments)
        yield _complete(_VCPUS, s.vcpu, "running", s.start_ns, s.end_ns, {"pcpu": s.pcpu, **arguments})
    for w in trace.waits:
        yield _complete(_VCPUS, w.vcpu, "waits for a pCPU", w.start_ns, w.end_ns, {})
    for name, samples in trace.rings.items():
        for now_ns, occupied in samples:
            yield {"ph": "C", "pid": _RINGS, "name": name, "ts": now_ns / 1000, "args": {"packets": occupied}}


def _names(trace: Trace) -> Iterator[dict[str, Any]]:
    for pid, name in ((_PCPUS, "pCPUs"), (_VCPUS, "vCPUs"), (_RINGS, "rings")):
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    tracks = [(_PCPUS, n, f"pCPU {n}") for n in range(trace.pcpus)]
    tracks += [(_VCPUS, n, name) for n, name in enumerate(trace.vcpu_names)]
    for pid, tid, name in tracks:
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def _complete(pid: int, tid: int, name: str, start_ns: int, end_ns: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": start_ns / 1000,
        "dur": (end_ns - start_ns) / 1000, "args": arguments,
    }  # fmt: skip


def write_chrome(trace: Trace, path: Path) -> None:
    """Write the trace for chrome://tracing or ui.perfetto.dev."""
    with path.open("w") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        file.write(",\n".join(json.dumps(event) for event in chrome_events(trace)))
        file.write("\n]}\n")
