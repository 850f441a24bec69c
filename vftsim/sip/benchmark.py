"""The benchmark's manager: pre-registration, stir, steps with Poisson arrivals, and the rule to stop.

Rule (ETSI TS 186 008 as run by IMS Bench SIPp, and the lab's own settings): attempts arrive as a Poisson
process of constant rate for the length of a step; the first part of a step (transient) is not counted;
an attempt counts in the step in which it began; after a step in which any scenario, or all together,
has more than the allowed share of inadequately handled attempts, the run stops.

A step is judged when it ends, on the attempts that began at least 5 s (a quarter of a short step) before:
those after have not had the time to fail.  One whose caller has waited for longer than a threshold counts
as failed there, although the lab's manager learns of it when the caller gives up, up to 32 s later: or a
step shorter than that would pass with nothing answered at all.  The final record counts all attempts: when
the run stops, arrivals stop and what is under way is played to its end.  Where a ramp ends:
:mod:`vftsim.sip.ramp_end`.

Left out: roaming; call forwarding; the clock offset between test systems.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from vftsim.engine import Clock, EventKind
from vftsim.sampling import Streams
from vftsim.sip.agents import TestSystems
from vftsim.sip.attempt import Attempt
from vftsim.sip.draws import AttemptDraw, draw_attempts
from vftsim.sip.messages import Scenario
from vftsim.sip.metrics import PhaseRecord
from vftsim.sip.parameters import ImsBenchSpec
from vftsim.sip.subscribers import Subscribers

_S = 1_000_000_000
_NEEDS_UNREGISTERED = Scenario.IMS_REG
_PAIRS = (Scenario.IMS_UAC, Scenario.IMS_MSGC)
LONGEST_JUDGEMENT_LAG_NS = 5 * _S


class Manager:
    """Plays the phases of one benchmark run.

    Parameters
    ----------
    clock : Clock
    spec : ImsBenchSpec
    streams : Streams
    demand_cv : float
        Coefficient of variation of the drawn demands.
    agents : TestSystems
    on_phase : callable
        Called with each :class:`PhaseRecord` when its measured part ends.
    on_begin : callable, optional
        Called with the :class:`PhaseRecord` of every phase, stir included, when it begins.
    """

    def __init__(
        self,
        clock: Clock,
        spec: ImsBenchSpec,
        streams: Streams,
        demand_cv: float,
        agents: TestSystems,
        on_phase: Callable[[PhaseRecord], None],
        on_begin: Callable[[PhaseRecord], None] | None = None,
    ) -> None:
        self.clock = clock
        self.spec = spec
        self.agents = agents
        self.on_phase = on_phase
        self.on_begin = on_begin
        self.phases: list[PhaseRecord] = []
        self.phase: PhaseRecord | None = None
        self.finished = False
        self._live: dict[int, Attempt] = {}
        self._streams = streams
        self._demand_cv = demand_cv
        registered = int(spec.subscribers * spec.registered / 100.0)
        self.subscribers = Subscribers(spec.subscribers, registered)
        self.attempts_begun = 0
        self._draws: Iterator[AttemptDraw] = iter(())
        self._next: AttemptDraw | None = None
        self._gap_ns = 0.0
        self._due_ns = 0.0
        self._until_ns = 0

    def play(self) -> Generator[Any, Any, None]:
        """The run as a SimPy process."""
        spec = self.spec
        if spec.pre_registration.duration:
            yield from self._pre_register()
        if spec.stir.duration:
            yield from self._stir()
        for step in range(spec.steps.count):
            record = yield from self._step(step)
            if not record.passes(spec.steps.stop_above_ihs):
                break
        self.phase = None
        self.finished = True

    @property
    def under_way(self) -> int:
        """Attempts begun and not over."""
        return len(self._live)

    def attempt_ended(self, attempt: Attempt) -> None:
        """Give the attempt's subscribers back."""
        del self._live[attempt.index]
        if attempt.uas is not None:
            attempt.uas.stop()
        scenario = attempt.scenario
        registered = scenario is not Scenario.IMS_DEREG
        if attempt.failed and scenario is Scenario.IMS_REG:
            registered = False
        elif attempt.failed and scenario is Scenario.IMS_DEREG:
            registered = True
        self.subscribers.release(attempt.user, registered)
        if attempt.destination >= 0:
            self.subscribers.release(attempt.destination, True)

    def _begin(self, record: PhaseRecord, number: int, shares: list[float], transient_ns: int) -> None:
        record.start_ns = self.clock.now_ns
        record.measure_from_ns = record.start_ns + transient_ns
        self.phase = record
        if self.on_begin is not None:
            self.on_begin(record)
        self._draws = draw_attempts(
            self._streams, number, shares, self.spec.ring_time, self.spec.hold_time, self._demand_cv
        )

    def _end(self, record: PhaseRecord) -> None:
        record.end_ns = self.clock.now_ns
        self.phases.append(record)
        self.on_phase(record)

    def _pre_register(self) -> Generator[Any, Any, None]:
        """One user on each test system at the same time, at a constant rate."""
        spec = self.spec.pre_registration
        record = PhaseRecord("pre_registration", 0, spec.rate)
        only_registrations = [100.0 if s is Scenario.IMS_REG else 0.0 for s in Scenario]
        self._begin(record, 0, only_registrations, spec.transient)
        batch = self.spec.test_systems
        period_ns = round(batch * _S / spec.rate)
        for _ in range(spec.duration // period_ns):
            for _ in range(batch):
                self._start(next(self._draws))
            yield self.clock.wait(period_ns, EventKind.ARRIVAL, 1)
        self._end(record)

    def _stir(self) -> Generator[Any, Any, None]:
        spec = self.spec.stir
        record = PhaseRecord("stir", -1, self.spec.steps.load_of(0))
        self._begin(record, 1, self.spec.mix.shares(), spec.duration)
        for step in range(spec.steps):
            self._arrive_at(self.spec.steps.load_of(0) * (step + 1) / spec.steps, spec.duration // spec.steps)
            yield self.clock.wait(spec.duration // spec.steps, EventKind.CONTROL, 0)
        record.end_ns = self.clock.now_ns

    def _step(self, step: int) -> Generator[Any, Any, PhaseRecord]:
        spec = self.spec.steps
        record = PhaseRecord(f"step_{step + 1}", step + 1, spec.load_of(step))
        self._begin(record, 2 + step, self.spec.mix.shares(), spec.transient)
        self._arrive_at(record.requested_saps, spec.duration)
        lag_ns = min(LONGEST_JUDGEMENT_LAG_NS, (spec.duration - spec.transient) // 4)
        record.judged_until_ns = record.start_ns + spec.duration - lag_ns
        yield self.clock.wait(spec.duration - lag_ns, EventKind.CONTROL, 0)
        record.judged_attempts = list(record.attempts)
        yield self.clock.wait(lag_ns, EventKind.CONTROL, 0)
        for attempt in self._live.values():
            if attempt.phase is record and attempt.counted and not attempt.failed and self.agents.overdue(attempt):
                record.note_overdue(attempt.scenario, attempt.start_ns)
        self._end(record)
        return record

    def _arrive_at(self, saps: float, duration_ns: int) -> None:
        """Poisson arrivals of ``saps`` a second from now on, for ``duration_ns``."""
        self._gap_ns = _S / saps
        self._due_ns = float(self.clock.now_ns)
        self._until_ns = self.clock.now_ns + duration_ns
        self._plan_next()

    def _plan_next(self) -> None:
        draw = next(self._draws)
        self._due_ns += draw.gap * self._gap_ns
        if self._due_ns < self._until_ns:
            self.clock.at(int(self._due_ns), EventKind.ARRIVAL, 1, self._arrive, draw)

    def _arrive(self, draw: AttemptDraw) -> None:
        self._start(draw)
        self._plan_next()

    def _start(self, draw: AttemptDraw) -> None:
        record = self.phase
        assert record is not None
        scenario = Scenario(draw.scenario)
        user = self.subscribers.take(scenario is not _NEEDS_UNREGISTERED, draw.user)
        destination = -1
        if user >= 0 and scenario in _PAIRS:
            destination = self.subscribers.take(True, draw.destination)
        if user < 0 or (destination < 0 and scenario in _PAIRS):
            if user >= 0:
                self.subscribers.release(user, True)
            record.not_started += 1
            return
        now_ns = self.clock.now_ns
        self.attempts_begun += 1
        attempt = Attempt(self.attempts_begun, scenario, draw.demands, draw.ring_ns, draw.hold_ns, now_ns)
        attempt.user = user
        attempt.destination = destination
        attempt.phase = record
        attempt.counted = now_ns >= record.measure_from_ns
        if attempt.counted:
            record.attempts[scenario] += 1
        self._live[attempt.index] = attempt
        self.agents.start(attempt)
