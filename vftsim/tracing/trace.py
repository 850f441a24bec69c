"""The schedule itself: who ran where, at which priority, how full the rings were, and the way of every packet.

The notes of an observed host and the marks of packets are read; rings, outputs held and the lag of a second copy are
sampled in the window.  Listening changes nothing: a traced run gives the figures of an untraced one.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.composition.views import protection_of
from vftsim.errors import RunFailure, UsageError
from vftsim.kernel.columns import columns_of
from vftsim.platform.cpu.notes import DISPATCHED, STOPPED, WOKEN, note_count, notes
from vftsim.platform.cpu.records import BLOCKED
from vftsim.platform.io.marks import RETURNED, mark_logs
from vftsim.platform.io.stage import stages
from vftsim.platform.protection.account import timeline
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.mechanism import lag_now
from vftsim.platform.protection.passes import play
from vftsim.platform.protection.when import Instant
from vftsim.spec.units import S
from vftsim.tracing.packets import PacketReader, PacketTrace
from vftsim.tracing.schedule import Schedule, Slice, Wait
from vftsim.workloads.wire import Wire

SAMPLE_NS, MOST_SAMPLES = 50_000, 20_000
"""How often rings are looked at; more seldom in a window that would have more samples than that."""
LOOK_BACK_NS = 10_000_000_000
"""Packets are followed from so long before a window on, so that those under way at its begin are known."""
USUAL_LENGTH_NS, USUAL_FAILOVER_NS, BEFORE_FAULT_NS = 100_000_000, 10_000_000_000, 300_000_000
CYCLES_SHOWN = 3
"""Cycles of a mechanism, or gaps between requests: what comes in one leaves in the next."""
_LONGEST_NS = 10_000_000_000
_SAMPLE_ENTITY, _WATCH_ENTITY = 1, 2


@dataclass(frozen=True, slots=True)
class Moment:
    """Something happened to a protected domain."""

    domain: str
    time_ns: int
    event: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A protected domain stood still: for a checkpoint, a takeover, a pause."""

    domain: str
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class Trace:
    """What was recorded in a window."""

    start_ns: int
    end_ns: int
    pcpu_names: list[str]
    """Where there are several hosts with that of the host before it: its pCPUs are numbered from 0 on."""
    vcpu_names: list[str]
    slices: list[Slice] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    rings: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    lags: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    seen: list[PacketTrace] = field(default_factory=list)
    wires: dict[str, Wire] = field(default_factory=dict)
    """As :attr:`PacketReader.wires`."""
    domains: list[str] = field(default_factory=list)
    vcpu_of_stage: dict[tuple[str, str], int] = field(default_factory=dict)
    """By its owner and its name; of a stage on the way of several domains the owner is that of :attr:`host_of`."""
    host_of: dict[str, str] = field(default_factory=dict)
    """By domain."""
    _by_vcpu: dict[int, list[Slice]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        window = f"{self.start_ns / 1e6:g} to {self.end_ns / 1e6:g} ms"
        packets = f"{len(self.packets)} packets delivered, {len(self.dropped)} dropped"
        return f"{window}: {len(self.slices)} slices, {len(self.waits)} waits, {packets}"

    @property
    def pcpus(self) -> int:
        """How many pCPUs there are, on all hosts."""
        return len(self.pcpu_names)

    @property
    def packets(self) -> list[PacketTrace]:
        """Packets that began in the window and came to where they were to go in it, in that order."""
        packets = [
            packet
            for packet in self.seen
            if packet.is_whole and self.start_ns <= packet.begin_ns and packet.end_ns < self.end_ns
        ]
        return sorted(packets, key=lambda packet: packet.end_ns)

    @property
    def dropped(self) -> list[PacketTrace]:
        """Packets that were dropped in the window."""
        return [
            packet for packet in self.seen if packet.end == "dropped" and self.start_ns <= packet.end_ns < self.end_ns
        ]

    def running_ns(self, vcpu: int, start_ns: int, end_ns: int) -> int:
        """Return how long a vCPU had a pCPU between two instants of the window."""
        if not self._by_vcpu:
            for piece in self.slices:
                self._by_vcpu.setdefault(piece.vcpu, []).append(piece)
        slices = self._by_vcpu.get(vcpu, [])
        total_ns = 0
        # A vCPU's slices follow one another in time.
        for position in range(bisect_right(slices, start_ns, key=attrgetter("end_ns")), len(slices)):
            piece = slices[position]
            if piece.start_ns >= end_ns:
                break
            total_ns += min(piece.end_ns, end_ns) - max(piece.start_ns, start_ns)
        return total_ns


class _Notes:
    """Reads an observed host's notes into the schedule of a trace."""

    def __init__(self, run: Run, trace: Trace) -> None:
        self._run = run
        pcpu_rows = chain.from_iterable(map(run.built.pcpu_rows, run.built.hosts))
        self._pcpus = {row: number for number, row in enumerate(pcpu_rows)}
        self._vcpus = {row: number for number, (_, _, row) in enumerate(run.built.vcpu_rows())}
        self._schedulers = [run.built.host_of(name).spec.scheduler for name, _, _ in run.built.vcpu_rows()]
        self.schedule = Schedule(trace)

    def read(self) -> None:
        """Take over all notes since the last time."""
        count: Any = self._run.engine.rows(note_count)[1]
        if not count.written:  # as at most samples
            return
        fields = ("event", "pcpu", "vcpu", "time_ns", "value")
        for note in zip(*columns_of(self._run.engine, notes, fields, 1, int(count.written) + 1), strict=True):
            self._take(*note)
        count.written = 0

    def _take(self, event: int, pcpu_row: int, vcpu_row: int, now_ns: int, value: int) -> None:
        pcpu, vcpu = self._pcpus.get(pcpu_row, -1), self._vcpus[vcpu_row]
        if event == WOKEN:
            self.schedule.wake(vcpu, now_ns)
        elif event == DISPATCHED:
            self.schedule.dispatch(pcpu, vcpu, now_ns, self._name(vcpu, value))
        elif event == STOPPED:
            self.schedule.stop(pcpu, vcpu, now_ns, is_runnable=value != BLOCKED)
        else:
            self.schedule.change_priority(vcpu, now_ns, self._name(vcpu, value))

    def _name(self, vcpu: int, priority: int) -> str:
        return self._schedulers[vcpu].priority_name(priority)


def usual_window_ns(spec: ModelSpec, start_ns: int | None, length_ns: int | None) -> tuple[int, int]:
    """Return begin and length of a window in which something happens, as far as the caller has not chosen them.

    It is around the first fault, else one second into the first step of a ramp, else after the warm-up; so long that a
    mechanism which holds outputs for a cycle lets some go, and that some requests come.
    """
    faults_ns = [spec.time_of(fault.at) for fault in spec.faults]
    if length_ns is None:
        length_ns = USUAL_FAILOVER_NS if faults_ns and start_ns is None else _with_some_ns(spec)
        length_ns = min(length_ns, spec.longest_ns)
    if start_ns is None:
        start_ns = min(faults_ns) - min(BEFORE_FAULT_NS, length_ns // 10) if faults_ns else _busy_from_ns(spec)
        start_ns = max(0, min(start_ns, spec.longest_ns - length_ns))
    return start_ns, length_ns


def _with_some_ns(spec: ModelSpec) -> int:
    """Return a length in which outputs leave and requests come: of the slowest mechanism and the rarest requests."""
    cycles_ns = (protection_of(spec, domain).cycle_ns for domain in spec.domains.values())
    rates = (workload.attempts_per_s for workload in spec.workloads.values())
    gaps_ns = (round(S / rate) for rate in rates if rate > 0.0)  # not a number: where answers decide
    longest_ns = max(USUAL_LENGTH_NS, *(CYCLES_SHOWN * each for each in (*cycles_ns, *gaps_ns)))
    return min(longest_ns, _LONGEST_NS)


def _busy_from_ns(spec: ModelSpec) -> int:
    try:
        return spec.time_of(Instant("step 1", 1_000_000_000))
    except ValueError:
        return spec.measure.warm_up


def window_traced(
    spec: ModelSpec, seed: int, replication: int, start_ns: int | None = None, length_ns: int | None = None
) -> Trace:
    """Return what happens in a window of a run; without begin or length, in the window of :func:`usual_window_ns`.

    Refuses a window that is empty, above 10 s long, or not within the run.
    """
    if length_ns is not None and not 0 < length_ns <= _LONGEST_NS:
        raise UsageError("length of the window: above 0 and at most 10 s")
    start_ns, length_ns = usual_window_ns(spec, start_ns, length_ns)
    if start_ns < 0:
        raise UsageError(f"begin of the window: from 0 on, got {start_ns / 1e9:g} s")
    if start_ns + length_ns > spec.longest_ns:
        raise UsageError(
            f"a window of {length_ns / 1e9:g} s from {start_ns / 1e9:g} s on: the run ends after "
            f"{spec.longest_ns / 1e9:g} s; --set measure.duration=... makes it longer"
        )
    return run_traced(spec, seed, replication, start_ns, length_ns)[1]


def run_traced(
    spec: ModelSpec, seed: int, replication: int, start_ns: int, length_ns: int, engine: str = "auto"
) -> tuple[RunRecord | None, Trace]:
    """Run up to the end of a window and record it; of a steady state everything before the window is warm-up.

    Returns the record of a steady state, measured in the window (a ramp that is cut short has none), and the trace.
    """
    measure = spec.measure.model_copy(update={"warm_up": start_ns, "duration": length_ns})
    shortened = spec.model_copy(update={"measure": measure})
    played = play(
        lambda: _Traced(shortened, seed, replication, (start_ns, start_ns + length_ns), engine),
        lambda traced: traced.run.engine,
        _Traced.play,
    )
    return played.run.record, played.run.trace


class _Traced:
    """A run and what is recorded of it; played once."""

    def __init__(self, spec: ModelSpec, seed: int, replication: int, window_ns: tuple[int, int], engine: str) -> None:
        self._start_ns, self._end_ns = window_ns
        self.record: RunRecord | None = None
        self.run = run = Run(spec, seed, replication, engine=engine, observed=True)
        names = [f"{name}.{number}" for name, number, _ in run.built.vcpu_rows()]
        self.trace = Trace(*window_ns, _pcpu_names(spec), names)
        self.trace.vcpu_of_stage = _vcpus_of_stages(run)
        self.trace.host_of = {name: f"host {run.built.host_of(name).name}" for name in run.built.domains}
        self.trace.domains = list(run.built.domains)
        self.trace.rings = {name: [] for name, _ in run.built.occupancies()}
        self.trace.lags = {name: [] for name in run.built.guards}
        self._notes = _Notes(run, self.trace)
        self._packets = PacketReader(run, *window_ns)
        self.trace.wires = self._packets.wires
        self._stopped_ns: dict[str, int] = {}
        run.listeners += [self._notes, self._packets]
        if self._start_ns < LOOK_BACK_NS:
            self._watch()
        else:
            run.pauses.add(self._start_ns - LOOK_BACK_NS, _WATCH_ENTITY, self._watch)
        every_ns = max(SAMPLE_NS, (self._end_ns - self._start_ns) // MOST_SAMPLES)
        run.pauses.add(self._start_ns, _SAMPLE_ENTITY, self._sample, every_ns, self._end_ns)

    def play(self) -> None:
        """Run to the end of the window, and take down what was seen."""
        run = self.run
        run.start()
        try:
            run.engine.run(self._end_ns)
        except RunFailure as error:
            raise run.named(error) from None
        for listener in run.listeners:
            listener.read()
        if run.phased:
            run.check_conservation()
        else:
            self.record = run.finish()
        self._notes.schedule.close()
        self._packets.read()
        self._packets.close()
        for name, guard in run.built.guards.items():
            self._note_stops(name, guard)
            self._note_last_stop(name, guard)
        self.trace.seen = self._packets.finished
        for name, guard in run.built.guards.items():
            moments = [Moment(name, *moment) for moment in timeline(run.engine, guard)]
            self.trace.moments += moments + _first_packet(name, moments, self.trace.seen)
        self.trace.moments.sort(key=lambda moment: moment.time_ns)

    def _watch(self) -> None:
        self.run.engine.rows(mark_logs)[1].is_on = True

    def _sample(self) -> None:
        """Note how full each ring is and how far a second copy is behind, where that has changed."""
        run, now_ns = self.run, self.run.now_ns
        for name, occupied in run.built.occupancies():
            _note(self.trace.rings[name], now_ns, occupied)
        for name, guard in run.built.guards.items():
            _note(self.trace.lags[name], now_ns, int(run.engine.call(lag_now, guard, 0)))
            self._note_stops(name, guard)

    def _note_stops(self, name: str, guard: int) -> None:
        """Note how long a guard's machine stood still since the last time: once at most between two samples."""
        guard_record: Any = self.run.engine.rows(guards)[guard]
        stopped_ns, resumed_ns = int(guard_record.stopped_ns), int(guard_record.resumed_ns)
        more_ns = stopped_ns - self._stopped_ns.get(name, stopped_ns)
        self._stopped_ns[name] = stopped_ns
        if more_ns > 0:
            start_ns = max(resumed_ns - more_ns, self._start_ns)
            self.trace.stops.append(Stop(name, start_ns, min(resumed_ns, self._end_ns)))

    def _note_last_stop(self, name: str, guard: int) -> None:
        """Note since when a guard's machine stands still at the end of the window, if it does."""
        guard_record: Any = self.run.engine.rows(guards)[guard]
        if guard_record.stopped:
            start_ns = max(int(guard_record.stopped_since_ns), self._start_ns)
            self.trace.stops.append(Stop(name, start_ns, self._end_ns))


def _note(samples: list[tuple[int, int]], now_ns: int, value: int) -> None:
    if not samples or samples[-1][1] != value:
        samples.append((now_ns, value))


def _vcpus_of_stages(run: Run) -> dict[tuple[str, str], int]:
    numbers = {row: number for number, (_, _, row) in enumerate(run.built.vcpu_rows())}
    return {
        (stage.owner or f"host {host.name}", stage.name): numbers[int(vcpu)]
        for host in run.built.hosts.values()
        for stage in host.io.stages
        if (vcpu := run.engine.rows(stages)[stage.row].vcpu)
    }


def _first_packet(domain: str, moments: list[Moment], packets: list[PacketTrace]) -> list[Moment]:
    """Return when the first packet came back after a domain was reachable again, if that is in the window."""
    back_ns = max((moment.time_ns for moment in moments if moment.event in ("reachable", "booted")), default=None)
    if back_ns is None:
        return []
    came_ns = [ns for packet in packets if packet.domain == domain and (ns := packet.time_of(RETURNED)) is not None]
    later_ns = [ns for ns in came_ns if ns >= back_ns]
    return [Moment(domain, min(later_ns), "first packet")] if later_ns else []


def _pcpu_names(spec: ModelSpec) -> list[str]:
    """Return the names of all pCPUs, host by host."""
    several = len(spec.hosts) > 1
    return [f"{f'{name} ' * several}pCPU {n}" for name, host in spec.hosts.items() for n in range(host.pcpus)]
