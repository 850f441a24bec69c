"""The benchmark's manager: pre-registration, stir, steps with Poisson arrivals, and the rule to stop.

Rule (ETSI TS 186 008 as run by IMS Bench SIPp, and the lab's settings): attempts arrive as a Poisson
process of constant rate for the length of a step; the first part of a step (transient) is not counted;
an attempt counts in the step in which it began; after a step in which any scenario, or all together,
has more than the allowed share of inadequately handled attempts, the run stops.

A step is judged when it ends, on the attempts that began at least 5 s (a quarter of a short step) before:
those after have not had the time to fail.  One whose caller has waited for longer than a threshold counts
as failed there, although the lab's manager learns of it when the caller gives up, up to 32 s later: or a
step shorter than that would pass with nothing answered at all.  The final record counts all attempts: when
the run stops, arrivals stop and what is under way is played to its end.  Where a ramp ends:
:mod:`vftsim.workloads.ramp`.

The manager runs in the driver and acts between two events (:class:`~vftsim.kernel.agenda.Agenda`).
Left out: roaming; call forwarding; the clock offset between test systems.
"""

from collections.abc import Callable
from functools import partial

from vftsim.kernel import EventKind
from vftsim.platform.delays import delays, histogram
from vftsim.spec.units import S
from vftsim.workloads.ims_bench.arrivals import (
    CHUNK,
    MOST_DRAWS,
    PhaseDraws,
    begin_arrivals,
    begin_batches,
    judge_overdue,
    write_chunk,
)
from vftsim.workloads.ims_bench.attempt import benches, phases
from vftsim.workloads.ims_bench.metrics import HISTOGRAMS, PhaseRecord
from vftsim.workloads.ims_bench.parameters import BenchParameters
from vftsim.workloads.ims_bench.sampler import Series, begin_sampling
from vftsim.workloads.parts import Target
from vftsim.workloads.sip.messages import Scenario
from vftsim.workloads.sip.messages import streams as sip_streams

LONGEST_JUDGEMENT_LAG_NS = 5 * S


class Manager:
    """Plays the phases of one benchmark run, by the row of the benchmark.

    ``demand_cv`` is the coefficient of variation of the drawn demands.
    """

    def __init__(self, target: Target, bench: int, spec: BenchParameters, demand_cv: float, series: Series) -> None:
        self.engine, self.agenda = target.engine, target.agenda
        self.bench = bench
        self.spec = spec
        self.series = series
        self.phases: list[PhaseRecord] = []
        self.finished = False
        self._target = target
        self._demand_cv = demand_cv
        self._rows: dict[int, PhaseRecord] = {}
        self._draws: PhaseDraws | None = None
        self._next_chunk = 0
        self._item = self.agenda.add(self._advance)
        self._profile = spec.steps.add_profile(self.engine)
        self._next: Callable[[], None] = self._finish

    def begin(self) -> None:
        """Begin to play, at the present instant."""
        self.engine.rows(benches)[self.bench].batches_over = self._item
        if self.spec.pre_registration.duration:
            self._pre_register()
        else:
            self._stir()

    def write_draws(self) -> None:
        """Draw attempts ahead, where the run has used up a chunk; for an engine's ``on_input``."""
        bench = self.engine.rows(benches)[self.bench]
        while self._draws is not None and bench.draws_written - bench.next_draw <= MOST_DRAWS - CHUNK:
            write_chunk(self.engine, self._next_chunk, self._draws.chunk(self._next_chunk))
            self._next_chunk += 1
            bench.draws_written += CHUNK

    def complete(self) -> None:
        """Bring the records of all phases up to now."""
        for row, record in self._rows.items():
            self._read(row, record)
            first = int(self.engine.rows(phases)[row].first_delay)
            record.delays = {name: histogram(self.engine, first + n) for n, name in enumerate(HISTOGRAMS)}

    @property
    def under_way(self) -> int:
        """Attempts begun and not over."""
        bench = self.engine.rows(benches)[self.bench]
        return int(bench.begun) - int(bench.over)

    def _advance(self) -> None:
        self._next()

    def _finish(self) -> None:
        self._draws = None
        self.finished = True

    def _begun(self, name: str, index: int, saps: float, load_share: float = 1.0) -> PhaseRecord:
        limit_percent, period_ns = self.spec.steps.stop_above_ihs, self.spec.sample_period
        return PhaseRecord.begun(name, index, saps, limit_percent, period_ns, load_share)

    def _begin(self, record: PhaseRecord, number: int, shares: list[float], transient_ns: int) -> int:
        engine, spec = self.engine, self.spec
        record.start_ns = engine.now_ns
        record.measure_from_ns = record.start_ns + transient_ns
        row, phase = engine.add(phases, measure_from_ns=record.measure_from_ns)
        phase.first_delay, *_ = [engine.new(delays) for _ in HISTOGRAMS]
        self._rows[row] = self.series.records[row] = record
        self._draws = PhaseDraws(
            self._target.streams,
            number,
            shares,
            spec.ring_time,
            spec.hold_time,
            self._demand_cv,
            spec.time_cv,
            spec.gap_cv,
        )
        self._next_chunk = 0
        bench = engine.rows(benches)[self.bench]
        bench.phase = row
        bench.next_draw = bench.draws_written = 0
        self.write_draws()
        engine.call(begin_sampling, row, transient_ns)
        self._target.on_measure(record.measure_from_ns)
        return row

    def _end(self, row: int, record: PhaseRecord) -> None:
        record.end(self.engine.now_ns)
        self.engine.rows(phases)[row].end_ns = record.end_ns
        if record.index >= 0:  # the stir phase is not measured
            self._read(row, record)
            self.phases.append(record)
            self.series.end(row)
        self._target.on_phase(record)

    def _read(self, row: int, record: PhaseRecord) -> None:
        phase = self.engine.rows(phases)[row]
        record.attempts = [int(count) for count in phase.attempts]
        record.inadequate = [int(count) for count in phase.inadequate]
        record.judged_inadequate = [int(count) for count in phase.judged_inadequate]
        record.not_started = int(phase.not_started)

    def _wait(self, delay_ns: int) -> None:
        self.agenda.at(self.engine.now_ns + delay_ns, EventKind.CONTROL, 0, self._item)

    def _pre_register(self) -> None:
        """One user on each test system at the same time, at a constant rate."""
        spec = self.spec.pre_registration
        record = self._begun("pre_registration", 0, spec.rate)
        only_registrations = [100.0 if s is Scenario.IMS_REG else 0.0 for s in Scenario]
        row = self._begin(record, 0, only_registrations, spec.transient)
        bench = self.engine.rows(benches)[self.bench]
        bench.batch = self.spec.test_systems
        bench.batch_period_ns = round(self.spec.test_systems * S / spec.rate)
        batches = spec.duration // int(bench.batch_period_ns)
        self._next = partial(self._end_registrations, row, record)
        if batches:
            self.engine.call(begin_batches, self.bench, batches)
        else:
            self._advance()

    def _end_registrations(self, row: int, record: PhaseRecord) -> None:
        self._end(row, record)
        self._stir()

    def _stir(self) -> None:
        if not self.spec.stir.duration:
            self._step(0)
            return
        record = self._begun("stir", -1, self.spec.steps.load_of(0))
        self._stir_on(self._begin(record, 1, self.spec.mix.shares(), self.spec.stir.duration), record, 0)

    def _stir_on(self, row: int, record: PhaseRecord, step: int) -> None:
        spec = self.spec.stir
        if step < spec.steps:
            self._next = partial(self._stir_on, row, record, step + 1)
            self._arrive_at(record.requested_saps * (step + 1) / spec.steps, spec.duration // spec.steps)
            self._wait(spec.duration // spec.steps)
            return
        self._end(row, record)
        self._step(0)

    def _step(self, step: int) -> None:
        spec = self.spec.steps
        counted_ns = spec.load_ns(spec.duration) - spec.load_ns(spec.transient)
        load_share = counted_ns / (spec.duration - spec.transient)
        record = self._begun(f"step_{step + 1}", step + 1, spec.load_of(step), load_share)
        row = self._begin(record, 2 + step, self.spec.mix.shares(), spec.transient)
        spec.begin_profile(self.engine.rows(benches)[self.bench].gaps, self._profile)
        self._arrive_at(record.requested_saps, spec.duration)
        lag_ns = min(LONGEST_JUDGEMENT_LAG_NS, (spec.duration - spec.transient) // 4)
        record.judged_until_ns = record.start_ns + spec.duration - lag_ns
        self.engine.rows(phases)[row].judged_until_ns = record.judged_until_ns
        self._next = partial(self._count_judged, step, row, record, lag_ns)
        self._wait(spec.duration - lag_ns)

    def _count_judged(self, step: int, row: int, record: PhaseRecord, lag_ns: int) -> None:
        record.judged_attempts = [int(count) for count in self.engine.rows(phases)[row].attempts]
        self._next = partial(self._judge, step, row, record)
        self._wait(lag_ns)

    def _judge(self, step: int, row: int, record: PhaseRecord) -> None:
        self.engine.call(judge_overdue, row, self.engine.used(sip_streams))
        self._end(row, record)
        if step + 1 < self.spec.steps.count and record.passes(self.spec.steps.stop_above_ihs):
            self._step(step + 1)
        else:
            self._next = self._finish
            self._finish()

    def _arrive_at(self, saps: float, duration_ns: int) -> None:
        """Poisson arrivals of ``saps`` a second from now on, for ``duration_ns``."""
        bench = self.engine.rows(benches)[self.bench]
        bench.gap_ns = S / saps
        bench.until_ns = self.engine.now_ns + duration_ns
        self.engine.call(begin_arrivals, self.bench)
