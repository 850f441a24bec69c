"""The schedule itself: who ran where, at which priority, and how full the rings were.

The notes of an observed host and the marks of packets are read; rings are sampled in the window.  The result is
written in the Chrome trace event format (JSON object form; "Trace Event Format", Google), which Perfetto and
chrome://tracing open: a track for each pCPU with the vCPUs that ran there, a track for each vCPU with its states, and a
counter for each ring.  Listening changes nothing: a traced run gives the figures of an untraced one.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.platform.cpu.notes import DISPATCHED, STOPPED, WOKEN, note_count, notes
from vftsim.platform.cpu.records import BLOCKED
from vftsim.platform.io.marks import ARRIVED, DELIVERED, PROGRAM_DONE, PROGRAM_TAKEN, TAKEN, mark_logs
from vftsim.platform.io.packet import flows
from vftsim.platform.io.stage import stages
from vftsim.workloads.account import accounts

SAMPLE_NS = 50_000
_PCPUS, _VCPUS, _RINGS = 1, 2, 3
_SAMPLE_ENTITY = 1
_REASONS = ("preempted", "blocked")


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


class _Schedule:
    """Reads an observed host's notes and keeps what falls into a window."""

    def __init__(self, run: Run, trace: Trace) -> None:
        self._run = run
        self._trace = trace
        self._pcpus = {row: number for number, row in enumerate(_pcpu_rows(run))}
        self._vcpus = {row: number for number, (_, _, row) in enumerate(run.built.vcpu_rows())}
        self._running: dict[int, tuple[int, int, str]] = {}
        self._waiting: dict[int, int] = {}

    def read(self) -> None:
        """Take over all notes since the last time."""
        count: Any = self._run.engine.rows(note_count)[1]
        rows: Any = self._run.engine.rows(notes)
        for note in rows[1 : int(count.written) + 1]:
            self._take(int(note.what), int(note.pcpu), int(note.vcpu), int(note.time_ns), int(note.value))
        count.written = 0

    def _take(self, what: int, pcpu_row: int, vcpu_row: int, now_ns: int, value: int) -> None:
        pcpu, vcpu = self._pcpus.get(pcpu_row, -1), self._vcpus[vcpu_row]
        if what == WOKEN:
            self._waiting[vcpu] = now_ns
        elif what == DISPATCHED:
            self._end_wait(vcpu, now_ns)
            self._running[pcpu] = (vcpu, now_ns, self._name(value))
        elif what == STOPPED:
            self._end_slice(pcpu, self._running.pop(pcpu, None), now_ns, _REASONS[value == BLOCKED])
            if value != BLOCKED:
                self._waiting[vcpu] = now_ns
        else:
            self._cut(vcpu, now_ns, self._name(value))

    def _name(self, priority: int) -> str:
        return next(iter(self._run.spec.hosts.values())).scheduler.priority_name(priority)

    def _cut(self, vcpu: int, now_ns: int, priority: str) -> None:
        """Cut a slice where its priority changes."""
        for pcpu, begun in self._running.items():
            if begun[0] == vcpu and begun[2] != priority:
                self._end_slice(pcpu, begun, now_ns, "priority")
                self._running[pcpu] = (vcpu, now_ns, priority)
                return

    def close(self) -> None:
        """End the window: cut what is going on."""
        for pcpu, begun in self._running.items():
            self._end_slice(pcpu, begun, self._trace.end_ns, "window")
        for vcpu in list(self._waiting):
            self._end_wait(vcpu, self._trace.end_ns)

    def _end_slice(self, pcpu: int, begun: tuple[int, int, str] | None, now_ns: int, reason: str) -> None:
        if begun is None:
            return
        vcpu, since_ns, priority = begun
        start_ns, end_ns = max(since_ns, self._trace.start_ns), min(now_ns, self._trace.end_ns)
        if end_ns > start_ns:
            self._trace.slices.append(Slice(pcpu, vcpu, start_ns, end_ns, priority, reason))

    def _end_wait(self, vcpu: int, now_ns: int) -> None:
        since_ns = self._waiting.pop(vcpu, None)
        if since_ns is None:
            return
        start_ns, end_ns = max(since_ns, self._trace.start_ns), min(now_ns, self._trace.end_ns)
        if end_ns > start_ns:
            self._trace.waits.append(Wait(vcpu, start_ns, end_ns))


class _Packets:
    """Reads the log of passed boundaries and keeps the packets that arrive and leave in a window."""

    def __init__(self, run: Run, trace: Trace) -> None:
        self._run = run
        self._trace = trace
        self._stages = {stage.row: stage.name for host in run.built.hosts.values() for stage in host.io.stages}
        self._flows = {driver.flow: name for name, driver in run.built.drivers.items()}
        self._marks: dict[int, list[tuple[str, int, int]]] = {}
        self._origins: dict[int, tuple[int, int]] = {}

    def read(self) -> None:
        """Take over all marks since the last time."""
        log: Any = self._run.engine.rows(mark_logs)[1]
        count = int(log.written)
        columns = [list(column[:count]) for column in (log.packet, log.what, log.place, log.time_ns, log.spent_ns)]
        for entry in zip(*columns, strict=True):
            self._take(*(int(value) for value in entry))
        log.written = 0

    def _take(self, packet: int, what: int, place: int, now_ns: int, spent_ns: int) -> None:
        if what == ARRIVED:
            self._origins[packet] = (place, spent_ns)
            self._marks[packet] = [("arrived", now_ns, 0)]
        elif what == DELIVERED:
            self._keep(packet, now_ns)
        else:
            name = "application" if what in (PROGRAM_TAKEN, PROGRAM_DONE) else self._stages[place]
            step = "taken" if what in (TAKEN, PROGRAM_TAKEN) else "done"
            self._marks[packet].append((f"{name} {step}", now_ns, spent_ns))

    def _keep(self, packet: int, now_ns: int) -> None:
        marks = self._marks.pop(packet)
        if marks[0][1] < self._trace.start_ns:
            return
        flow, stream = self._origins[packet]
        rows = self._run.engine.rows
        port = int(rows(flows)[flow].port)
        domain = next(host.io.owners[port] for host in self._run.built.hosts.values() if port in host.io.owners)
        wire_ns = int(rows(accounts)[int(rows(flows)[flow].own)].wire_ns)
        self._trace.packets.append(PacketTrace(self._flows[flow], domain, stream, tuple(marks), now_ns, wire_ns))


def longest_ns(spec: ModelSpec) -> int:
    """Return how long a run of a model lasts at most."""
    of_phases = max((workload.longest_ns() for workload in spec.workloads.values()), default=0)
    return of_phases or spec.measure.warm_up + spec.measure.duration


def run_traced(
    spec: ModelSpec, seed: int, replication: int, start_ns: int, length_ns: int, engine: str = "auto"
) -> tuple[RunRecord, Trace]:
    """Run up to the end of a window and record it; of a steady state everything before the window is warm-up."""
    end_ns = start_ns + length_ns
    measure = spec.measure.model_copy(update={"warm_up": start_ns, "duration": length_ns})
    run = Run(spec.model_copy(update={"measure": measure}), seed, replication, engine=engine, observed=True)
    run.engine.rows(mark_logs)[1].is_on = True
    names = [f"{name}.{number}" for name, number, _ in run.built.vcpu_rows()]
    trace = Trace(start_ns, end_ns, len(list(_pcpu_rows(run))), names)
    numbers = {row: number for number, (_, _, row) in enumerate(run.built.vcpu_rows())}
    trace.vcpu_of_stage = {
        (stage.owner, stage.name): numbers[int(vcpu)]
        for host in run.built.hosts.values()
        for stage in host.io.stages
        if (vcpu := run.engine.rows(stages)[stage.row].vcpu)
    }
    schedule = _Schedule(run, trace)
    run.listeners += [schedule, _Packets(run, trace)]
    trace.rings = {name: [] for name, _ in run.built.occupancies()}
    run.pauses.add(start_ns, _SAMPLE_ENTITY, lambda: _sample(run, trace), SAMPLE_NS, end_ns)
    run.start()
    run.engine.run(end_ns)
    for listener in run.listeners:
        listener.read()
    record = run.finish()
    schedule.close()
    return record, trace


def _pcpu_rows(run: Run) -> Iterator[int]:
    """Return the rows of all pCPUs, host by host."""
    for host in run.built.hosts:
        yield from run.built.pcpu_rows(host)


def _sample(run: Run, trace: Trace) -> None:
    """Note how full each ring is, where that has changed."""
    for name, occupied in run.built.occupancies():
        samples = trace.rings[name]
        if not samples or samples[-1][1] != occupied:
            samples.append((run.now_ns, occupied))


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
