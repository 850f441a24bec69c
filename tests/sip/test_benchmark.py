"""The benchmark's manager: phases, arrivals, what is counted, and the rule to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from bench import MS, S
from pools import check_subscribers
from pydantic import ValidationError

from vftsim.composition.build import BuiltModel
from vftsim.composition.link import linked_for
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import with_ramp
from vftsim.kernel import EventKind, Sim, entry, event
from vftsim.kernel.agenda import Agenda
from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.sampling import Streams
from vftsim.workloads.ims_bench.agents import start_attempt
from vftsim.workloads.ims_bench.attempt import Bench, attempts, benches
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.parameters import Mix, PreRegistrationSpec, StepsSpec, StirSpec
from vftsim.workloads.ims_bench.verdict import end, inadequate
from vftsim.workloads.ims_bench.workload import BenchDriver, ImsBenchSpec
from vftsim.workloads.sip.messages import Scenario

_NO_PRE = PreRegistrationSpec(duration=0)
_NO_STIR = StirSpec(duration=0)


@dataclass(frozen=True)
class Begun:
    """An attempt as it began."""

    row: int
    phase: PhaseRecord
    scenario: Scenario
    start_ns: int
    counted: bool
    ring_ns: int
    hold_ns: int
    demands: tuple[float, ...]


@event
def on_end(sim: Sim, place: int) -> None:
    end(sim, benches(sim)[attempts(sim)[place].bench], attempts(sim)[place])


@entry
def note_inadequate(sim: Sim, row: int) -> None:
    inadequate(sim, attempts(sim)[row])


class Judged(ImsBenchSpec):
    """The benchmark with a kernel in which a test may end attempts and judge them."""

    entries: ClassVar[tuple[Any, ...]] = (*ImsBenchSpec.entries, note_inadequate)
    actions: ClassVar[tuple[Any, ...]] = (on_end,)


def model(spec: ImsBenchSpec) -> ModelSpec:
    """A server that is never started under a benchmark."""
    sut = {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}, "applications": {"proxy": {"kind": "sip_server"}}}
    calls = {"kind": "ims_bench", "to": "sut"}
    plain = ModelSpec.model_validate({"name": "manager alone", "domains": {"sut": sut}, "workloads": {"calls": calls}})
    return with_ramp(plain, Judged(**{name: getattr(spec, name) for name in ImsBenchSpec.model_fields} | calls))


class Play:
    """A manager whose attempts end at once, as ``judge(attempt, number)`` says (True: inadequate)."""

    def __init__(
        self,
        spec: ImsBenchSpec,
        judge: Callable[[Begun, int], bool] = lambda _attempt, _number: False,
        seed: int = 1,
        lasts_ns: int = 0,
    ) -> None:
        lab = model(spec)
        self.engine = SimpyEngine(linked_for(lab), self._on_input)
        self.judge = judge
        self.lasts_ns = lasts_ns
        self.begun: list[Begun] = []
        self.ended_phases: list[tuple[float, str]] = []
        agenda = Agenda(self.engine)
        built = BuiltModel(self.engine, lab, Streams(seed, 0), agenda, self._on_phase, lambda _: None)
        self.driver = built.drivers["calls"]
        assert isinstance(self.driver, BenchDriver)
        self.series, self.manager = self.driver.series, self.driver.manager
        self._serve = agenda.serve
        self.engine._namespace[part_of(start_attempt).name] = self._start
        self.manager.begin()
        while not self.manager.finished:
            self.engine.run(self.engine.now_ns + S)
        self.engine.run()
        self.manager.complete()

    @property
    def bench(self) -> Bench:
        return self.engine.rows(benches)[self.driver.bench]

    def registered(self) -> int:
        return int(self.bench.registered.count)

    def check_subscribers(self) -> None:
        check_subscribers(self.engine, self.bench, self.manager.spec.subscribers)

    def note_inadequate(self, begun: Begun) -> None:
        self.engine.call(note_inadequate, begun.row)

    def _on_input(self) -> None:
        self.driver.on_input()
        self._serve()

    def _start(self, sim: Any, bench: Any, row: int) -> None:
        attempt, stream = sim.attempts[row], sim.sip_streams[row]
        stream.uses = 1  # the row is not used again: failures may come later
        begun = Begun(
            row,
            self.series.records[attempt.phase],
            Scenario(attempt.scenario),
            attempt.start_ns,
            attempt.counted,
            attempt.ring_ns,
            attempt.hold_ns,
            tuple(stream.demands),
        )
        self.begun.append(begun)
        if self.judge(begun, len(self.begun)):
            self.note_inadequate(begun)
        due_ns = self.engine.now_ns + self.lasts_ns
        self.engine.at(due_ns, EventKind.TIMER, stream.number, self.engine.number(on_end), row)

    def _on_phase(self, record: PhaseRecord) -> None:
        if record.name != "stir":
            self.ended_phases.append((self.engine.now_ns / S, record.name))

    def in_phase(self, name: str) -> list[Begun]:
        return [a for a in self.begun if a.phase.name == name]


def _steps(**changes: Any) -> StepsSpec:
    return StepsSpec(**({"initial": 50.0, "increment": 10.0, "duration": 40 * S, "transient": 10 * S} | changes))


def _spec(**changes: Any) -> ImsBenchSpec:
    return ImsBenchSpec(
        to="server", **({"pre_registration": _NO_PRE, "stir": _NO_STIR, "steps": _steps(most=2)} | changes)
    )


@cache
def usual() -> Play:
    """Two steps of 40 s."""
    return Play(_spec())


@cache
def one_long_step() -> list[Begun]:
    """The attempts of 200 s at 100 a second."""
    return Play(_spec(steps=_steps(initial=100.0, duration=200 * S, most=1))).in_phase("step_1")


@pytest.mark.thorough
def test_phases_follow_one_another() -> None:
    spec = _spec(
        pre_registration=PreRegistrationSpec(rate=50.0, duration=20 * S, transient=10 * S),
        stir=StirSpec(duration=30 * S, steps=3),
        steps=_steps(most=3),
    )
    play = Play(spec)
    assert play.ended_phases == [(20, "pre_registration"), (90, "step_1"), (130, "step_2"), (170, "step_3")]
    records = play.manager.phases
    assert [r.requested_saps for r in records] == [50, 50, 60, 70]
    assert [(r.start_ns // S, r.measure_from_ns // S, r.end_ns // S) for r in records] == [
        (0, 10, 20),
        (50, 60, 90),
        (90, 100, 130),
        (130, 140, 170),
    ]


def test_pre_registration_starts_one_user_on_each_test_system_at_a_constant_rate() -> None:
    """50 a second over 10 test systems: ten at once every 200 ms, registrations only."""
    play = Play(_spec(pre_registration=PreRegistrationSpec(rate=50.0, duration=4 * S, transient=1 * S)))
    begun = play.in_phase("pre_registration")
    assert [a.start_ns for a in begun] == [200 * MS * (n // 10) for n in range(200)]
    assert {a.scenario for a in begun} == {Scenario.IMS_REG}
    record = play.manager.phases[0]
    assert record.attempts[Scenario.IMS_REG] == sum(record.attempts) == 150  # 0 to 0.8 s are transient
    assert record.effective == 50.0


def test_the_stir_rises_in_equal_parts_and_is_not_counted() -> None:
    play = Play(_spec(stir=StirSpec(duration=90 * S, steps=3), steps=_steps(initial=90.0, most=1)))
    stir = play.in_phase("stir")
    assert all(not attempt.counted for attempt in stir)
    per_part = [sum(1 for a in stir if a.start_ns // (30 * S) == part) for part in range(3)]
    for found, expected in zip(per_part, (900, 1_800, 2_700), strict=True):
        assert abs(found - expected) <= 3.5 * math.sqrt(expected)
    assert "stir" not in [record.name for record in play.manager.phases]


@pytest.mark.thorough
def test_arrivals_of_a_step_are_poisson() -> None:
    """Number, mean gap and its coefficient of variation of 200 s at 100 a second."""
    begun = one_long_step()
    assert abs(len(begun) - 20_000) <= 3.5 * math.sqrt(20_000)
    gaps = np.diff([a.start_ns for a in begun])
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=3.5 * math.sqrt(1 / len(gaps)))
    a_second = np.bincount([a.start_ns // S for a in begun], minlength=200)
    assert a_second.var(ddof=1) / a_second.mean() == pytest.approx(1.0, abs=3.5 * math.sqrt(2 / 199))
    assert all(later.start_ns >= earlier.start_ns for earlier, later in pairwise(begun))


@pytest.mark.parametrize("cv", [0.5, 2.0])
def test_gaps_that_vary_less_or_more_make_a_renewal_process_of_the_same_rate(cv: float) -> None:
    """Counts of a second vary by the square of the gaps' variation, as of any renewal process (Cox 1962, chapter 4)."""
    begun = Play(_spec(gap_cv=cv, steps=_steps(initial=100.0, duration=100 * S, most=1))).in_phase("step_1")
    assert abs(len(begun) - 10_000) <= 3.5 * cv * math.sqrt(10_000)
    gaps = np.diff([a.start_ns for a in begun])
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05)
    a_second = np.bincount([a.start_ns // S for a in begun], minlength=100)
    assert a_second.var(ddof=1) / a_second.mean() == pytest.approx(cv**2, rel=3.5 * math.sqrt(2 / 99))


def test_attempts_without_variation_come_evenly() -> None:
    begun = Play(_spec(gap_cv=0.0, steps=_steps(initial=100.0, most=1))).in_phase("step_1")
    assert [a.start_ns for a in begun] == [10 * MS * n for n in range(1, 4_000)]


def test_the_mix_and_the_times_of_calls_are_those_of_the_model() -> None:
    begun = one_long_step()
    for scenario, share in zip(Scenario, (0.15, 0.025, 0.5, 0.025, 0.3), strict=True):
        found = sum(1 for a in begun if a.scenario is scenario)
        assert abs(found - share * len(begun)) <= 3.5 * math.sqrt(len(begun) * share * (1 - share))
    for name, mean_ns in (("ring_ns", 5 * S), ("hold_ns", 30 * S)):
        times = np.array([getattr(a, name) for a in begun])
        assert abs(times.mean() - mean_ns) <= 3.5 * mean_ns / math.sqrt(len(begun))


def test_only_attempts_begun_after_the_transient_count() -> None:
    play = Play(_spec(steps=_steps(most=1)), judge=lambda _attempt, _number: True, lasts_ns=15 * S)
    begun = play.in_phase("step_1")
    assert [a.counted for a in begun] == [a.start_ns >= 10 * S for a in begun]
    (record,) = play.manager.phases
    assert sum(record.attempts) == sum(1 for a in begun if a.counted) == sum(record.inadequate)
    assert record.effective == sum(record.attempts) / 30


def _stopped_after(judge: Callable[[Begun, int], bool], **steps: Any) -> int:
    return len(Play(_spec(steps=_steps(most=4, **steps)), judge=judge).manager.phases)


_ONLY_MESSAGES = Mix(ims_rereg=0.0, ims_reg=0.0, ims_uac=0.0, ims_dereg=0.0, ims_msgc=100.0)


def _judged(spec: ImsBenchSpec, seed: int) -> list[int]:
    """Numbers of the attempts that step 1 is judged on: begun from 10 to 35 s, the last 5 s are open."""
    begun = Play(spec, seed=seed).in_phase("step_1")
    return [number for number, a in enumerate(begun, start=1) if 10 * S <= a.start_ns <= 35 * S]


def test_a_step_passes_at_the_limit_and_stops_the_run_one_attempt_above_it() -> None:
    """With an even number of judged attempts and a limit of 50 %: exactly half pass, one more stops."""
    spec = _spec(mix=_ONLY_MESSAGES, steps=_steps(most=2, stop_above_ihs=50.0))
    seed = next(seed for seed in range(1, 30) if len(_judged(spec, seed)) % 2 == 0)
    judged = _judged(spec, seed)
    half = len(judged) // 2
    for failing, phases in ((half, 2), (half + 1, 1)):
        chosen = set(judged[:failing])
        play = Play(spec, judge=lambda _attempt, number, chosen=chosen: number in chosen, seed=seed)  # type: ignore[misc]
        assert len(play.manager.phases) == phases
        assert sum(play.manager.phases[0].inadequate) == failing


def test_attempts_too_young_to_be_judged_do_not_stop_the_run_but_count() -> None:
    play = Play(_spec(mix=_ONLY_MESSAGES), judge=lambda attempt, _number: 35 * S < attempt.start_ns < 40 * S)
    assert len(play.manager.phases) == 2
    assert play.manager.phases[0].ihs_percent() == pytest.approx(100 * 5 / 30, abs=3)


@pytest.mark.thorough
def test_failures_that_come_to_light_in_the_next_step_change_nothing() -> None:
    """Every attempt of step 1 begun before 35 s fails at 45 s, five seconds into step 2."""
    play = Play(_spec(steps=_steps(most=1)))
    (record,) = play.manager.phases
    assert record.end_ns == 40 * S
    for attempt in play.in_phase("step_1"):
        play.note_inadequate(attempt)
    play.manager.complete()
    assert record.ihs_percent() == 100.0
    assert record.passes(0.0)


def test_one_scenario_above_the_limit_is_enough() -> None:
    """2.5 % of the attempts are de-registrations; all of them failing is 2.5 % of all, and stops."""
    assert _stopped_after(lambda attempt, _n: attempt.scenario is Scenario.IMS_DEREG) == 1
    assert _stopped_after(lambda attempt, _n: False) == 4


def test_the_run_stops_with_the_step_that_failed_and_doc_is_the_step_before() -> None:
    """From step 3 on (70 a second) every fifth attempt fails."""

    def judge(attempt: Begun, number: int) -> bool:
        return attempt.phase.requested_saps >= 70 and number % 5 == 0

    play = Play(_spec(steps=_steps(most=10)), judge=judge)
    assert [record.name for record in play.manager.phases] == ["step_1", "step_2", "step_3"]
    assert play.manager.phases[-1].ihs_percent() == pytest.approx(20, abs=2)
    assert play.manager.phases[-2].effective == pytest.approx(60, abs=3.5 * math.sqrt(60 / 30))
    assert all(a.start_ns < 120 * S for a in play.begun)  # arrivals stop with the run


def test_failures_of_the_transient_do_not_stop_the_run() -> None:
    assert _stopped_after(lambda attempt, _n: not attempt.counted) == 4


def test_attempts_without_a_free_subscriber_are_counted_and_not_begun() -> None:
    """Ten subscribers, two registered, each busy for 5 s: most attempts find nobody."""
    play = Play(_spec(subscribers=10, registered=20.0, steps=_steps(most=1)), lasts_ns=5 * S)
    (record,) = play.manager.phases
    assert record.not_started > len(play.begun) > 0
    play.check_subscribers()


def test_attempts_that_find_nobody_in_the_transient_are_not_counted_either() -> None:
    """Begun or not, so many come in the measured time of a Poisson process."""
    play = Play(_spec(subscribers=10, registered=20.0, steps=_steps(most=1)), lasts_ns=5 * S)
    (record,) = play.manager.phases
    mean = record.requested_saps * (record.end_ns - record.measure_from_ns) / S
    assert record.measure_from_ns > record.start_ns
    assert record.not_started + sum(record.attempts) == pytest.approx(mean, abs=4 * math.sqrt(mean))


def test_subscribers_move_between_the_pools_as_the_scenarios_say() -> None:
    play = Play(_spec(subscribers=2_000, registered=20.0))
    net = sum({Scenario.IMS_REG: 1, Scenario.IMS_DEREG: -1}.get(attempt.scenario, 0) for attempt in play.begun)
    assert play.registered() == 400 + net
    play.check_subscribers()


def test_failed_registrations_and_de_registrations_change_nothing() -> None:
    play = Play(_spec(subscribers=2_000, steps=_steps(most=1)), judge=lambda _attempt, _number: True)
    assert play.registered() == 400
    play.check_subscribers()


def _fates(play: Play, phase: str) -> list[tuple[Any, ...]]:
    return [(a.scenario, a.ring_ns, a.hold_ns, tuple(a.demands)) for a in play.in_phase(phase)]


@pytest.mark.thorough
def test_two_loads_see_the_same_attempts_only_faster() -> None:
    """Common random numbers: attempt i of a step is the same whatever the load."""
    slow, fast = usual(), Play(_spec(steps=_steps(most=2, initial=75.0)))
    for phase in ("step_1", "step_2"):
        few, many = _fates(slow, phase), _fates(fast, phase)
        assert len(few) < len(many)
        assert many[: len(few)] == few
    first_slow, first_fast = slow.begun[100].start_ns, fast.begun[100].start_ns
    assert first_slow == pytest.approx(1.5 * first_fast, abs=2)


def test_another_seed_sees_other_attempts() -> None:
    assert _fates(usual(), "step_1")[:50] != _fates(Play(_spec(), seed=2), "step_1")[:50]


def test_every_phase_has_attempts_of_its_own() -> None:
    play = Play(_spec(stir=StirSpec(duration=30 * S)))
    first, second, stir = (_fates(play, phase)[:20] for phase in ("step_1", "step_2", "stir"))
    assert not set(first) & set(second)
    assert not set(first) & set(stir)


def test_what_happens_in_one_step_does_not_shift_the_draws_of_the_next() -> None:
    short, long = usual(), Play(_spec(steps=_steps(most=2, duration=60 * S)))
    assert _fates(long, "step_2")[:1000] == _fates(short, "step_2")[:1000]


def test_a_mix_must_add_up_and_a_step_must_measure() -> None:
    with pytest.raises(ValidationError, match="add up to 100 %"):
        Mix(ims_uac=60.0)
    with pytest.raises(ValidationError, match="nothing is measured"):
        StepsSpec(duration=10 * S, transient=10 * S)
