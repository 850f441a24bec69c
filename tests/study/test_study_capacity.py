"""Capacity of the tiny lab, whose CPU is full at 29 attempts a second (see tiny.py)."""

import math
from dataclasses import replace

import pytest

from tests.study.searches import search_study
from tests.study.tiny import TINY
from vftsim.composition.run import Run
from vftsim.composition.without_effect import without_effect
from vftsim.errors import UsageError
from vftsim.platform.cpu.records import vcpus
from vftsim.report.terminal import as_text
from vftsim.study.designs.capacity import ramp_study, saturating_saps
from vftsim.study.designs.capacity_answer import CapacityStudy
from vftsim.study.designs.capacity_by_ramp import RampCapacity
from vftsim.study.designs.capacity_search import (
    QUICK_SEARCH,
    CapacityRequest,
    JudgedRun,
    LevelStudy,
    LoadNames,
    SearchMapper,
    SearchSettings,
    search_levels,
)
from vftsim.study.designs.compare import Comparison, compare_study
from vftsim.study.designs.constant_load import Stop, constant_load
from vftsim.study.designs.resources import WatchedRun, watch
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.workloads.ramp import RampEnd

S = 1_000_000_000
LOADS = ["workloads.calls.steps.loads=[10 /s, 14 /s, 18 /s, 60 /s]"]


@pytest.fixture(scope="module")
def ramps(tiny):
    return ramp_study(tiny, CapacityRequest(replications=6), Execution(3, 1))


def test_the_ramp_stops_where_the_cpu_is_full(ramps):
    """Twenty a second is 69 % of the CPU, forty 138 %: the DOC is the load of step 2 or 3."""
    assert all(12 <= doc <= 36 for doc in ramps.ramp.docs)
    assert ramps.ramp.unfailed == 0


def test_the_answer_is_a_step_that_passes_and_one_that_fails(ramps):
    """Half of the ramps or more pass the one and fewer the next; the DOC is the middle one, here of six."""
    ramp = ramps.ramp
    passed = {step.number: step.passed for step in ramp.steps}
    assert ramp.fails.number == ramp.passes.number + 1
    assert ramp.fails.saps == ramp.passes.saps + 10
    assert passed[ramp.passes.number] >= 3 > passed[ramp.fails.number]
    assert passed == {k: sum(end.stop_step > k for _, end in ramp.runs) for k in passed}
    assert ramp.estimate.mean == pytest.approx(sum(sorted(ramp.docs)[2:4]) / 2)
    assert (ramp.estimate.n, ramp.estimate.kind) == (6, "order statistic")
    assert ramps.to_pandas()["unit"].tolist() == ["/s"]


def ramp_of(tiny, *ends):
    return RampCapacity(tiny, tuple(enumerate(RampEnd(*end) for end in ends)), 10.0)


def test_a_ramp_that_never_failed_is_a_bound(tiny, capsys):
    """Steps of 10 from 10 to 50: three of four ramps pass them all."""
    ramp = ramp_of(tiny, (0, 50.0, 49.6), (0, 50.0, 51.2), (0, 50.0, 50.1), (3, 30.0, 20.4))
    assert ramp.fails is None
    assert (ramp.passes.saps, ramp.passes.passed, ramp.unfailed) == (50.0, 3, 3)
    assert ramp.estimate.high == math.inf
    print(as_text(CapacityStudy({"models": [], "seed": 1}, ramp=ramp).blocks(), 1000))
    out = capsys.readouterr().out
    assert "at least 50 SAPS: 3 of 4 ramps pass the last step of the model" in out
    assert "raise workloads.calls.steps.most" in out


def test_steps_whose_loads_are_given_have_these(tmp_path):
    """A full CPU is 29 attempts a second: 10, 14 and 18 pass, 60 does not, whatever an increment would have made."""
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY)
    model = load_model(file, LOADS)
    ramp = ramp_study(model, CapacityRequest(replications=2), Execution(3, 1)).ramp
    assert ramp.loads == [10.0, 14.0, 18.0, 60.0]
    assert ramp.fails.saps == 60.0
    assert ramp.passes.saps == 18.0 == pytest.approx(ramp.estimate.mean, rel=0.25)
    assert "workloads.calls.steps.initial: steps.loads gives the load of each step" in without_effect(model.spec)
    # What would lower the first step, and does.
    key = model.spec.ramp.first_load_key
    given = load_model(file, [*LOADS, f"workloads.calls.{key}=5 /s"])
    assert given.spec.ramp.step_loads() == [5.0, 14.0, 18.0, 60.0]


def test_a_first_step_that_fails_is_said(tiny, capsys):
    ramp = ramp_of(tiny, (1, 10.0, 0.0), (1, 10.0, 0.0), (2, 20.0, 10.3))
    assert ramp.passes is None
    print(as_text(CapacityStudy({"models": [], "seed": 1}, ramp=ramp).blocks(), 1000))
    assert "fails 10 (2 of 3 ramps), the first step: lower workloads.calls.steps.initial" in capsys.readouterr().out


def test_a_bound_gives_no_ratio(tiny):
    """Against a ramp without end there is neither ratio nor difference."""
    failed, endless = ramp_of(tiny, (3, 30.0, 20.4)), ramp_of(tiny, (0, 50.0, 49.6))
    for pair in ((failed, endless), (endless, failed)):
        comparison = compared(pair)
        assert comparison.ratio(1) is None
        assert comparison.difference(1) is None
    assert compared((failed, failed)).ratio(1).mean == 1.0


def compared(ramps):
    return Comparison(tuple(each.model for each in ramps), (), (), ramps, {})


def test_the_stop_steps_add_up(ramps):
    table = ramps.ramp.stop_steps()
    assert table["runs"].sum() == 6
    assert table["estimate"].sum() == pytest.approx(1.0)


def test_one_ramp_gives_the_capacity_at_every_limit(ramps, tiny):
    """A stricter limit never gives more, and a stop rule of 5 % leaves nothing to say of 10 %."""
    found = {each.limit_percent: each.estimate.mean for each in ramps.ramp.by_limit}
    assert list(found) == [0.1, 1.0, 5.0, 10.0]
    assert sorted(found.values()) == list(found.values())
    by_hand = sorted(
        max((int(s.load) for n, s in enumerate(run) if all(t.inadequate_percent <= 5 for t in run[: n + 1])), default=0)
        for run in ramps.ramp.seen
    )
    assert found[5.0] == sum(by_hand[2:4]) / 2
    stricter = tiny.spec.model_copy(update={"workloads": dict(tiny.spec.workloads)})
    bench = stricter.workloads["calls"]
    steps = bench.steps.model_copy(update={"stop_above_ihs": 5.0})
    stricter.workloads["calls"] = bench.model_copy(update={"steps": steps})
    less = replace(ramps.ramp, model=replace(tiny, spec=stricter))
    assert [each.limit_percent for each in less.by_limit] == [0.1, 1.0, 5.0]


def test_the_full_load_is_where_the_arithmetic_puts_it(ramps):
    """At 29.4 a second; steps 1 and 2 have 6 x 4 s of 10 and 20 a second: 720 attempts with a deviation of 1.3 each."""
    assert ramps.ramp.full_saps == pytest.approx(29.4, rel=3.5 * 1.3 / 480**0.5)


def test_what_was_measured_is_of_the_limit_that_is_asked():
    """The lab's virtual machine carried 100 with at most 10 % inadequately handled, and 89 with at most 1 %."""
    lab, alone = load_model("lab-virtual"), load_model("lab-virtual", ["measured={capacity: 100 /s}"])
    assert RampCapacity(lab, (), 10.0).measured == 100.0
    assert RampCapacity(lab, (), 1.0).measured == 89.0
    assert RampCapacity(lab, (), 0.1).measured == 80.0
    assert RampCapacity(alone, (), 1.0).measured is None, "no record says so"


def test_a_limit_above_the_stop_rule_is_refused(tiny):
    with pytest.raises(UsageError, match="cannot be judged"):
        ramp_study(tiny, CapacityRequest(replications=1, ihs_limit_percent=50.0), Execution())


def test_saturation_is_where_the_arithmetic_puts_it(tiny):
    """1 / (8.5 touches x 4 ms) = 29.4 attempts a second, within 3.5 standard errors of a pilot of 60 s at 10 a second.

    An attempt's work is 34 ms with a standard deviation of about 27 ms (calls 52, others 16 ms, gamma
    demands) and the number of attempts is Poisson, so CPU use has a relative error of 1.3 / sqrt(600).
    """
    saturated = saturating_saps(constant_load(tiny.spec, 1, 10.0))
    assert saturated == pytest.approx(29.4, rel=3.5 * 1.3 / 600**0.5)


def test_a_search_begins_where_the_user_agents_are_full_if_the_server_is_not(tmp_path):
    """8.5 messages an attempt (calls 13, others 4), 8 ms each in their domain: 14.7 attempts a second, of 29.4."""
    path = tmp_path / "agents.yaml"
    path.write_text(
        TINY.replace(
            "domains:\n", "hosts: {a: {}, b: {}}\ndomains:\n  gen: {host: b, interfaces: {eth0: {path: PATH}}}\n"
        )
        .replace("  sut:\n", "  sut:\n    host: a\n")
        .replace("PATH", "{kind: moderated, packet_cost: 0, interrupt_cost: 0}")
        .replace("    to: sut.proxy\n", "    to: sut.proxy\n    agents_in: gen\n    message_cost: 8 ms\n")
    )
    saturated = saturating_saps(constant_load(load_model(path).spec, 1, 10.0))
    assert saturated == pytest.approx(1000 / (8.5 * 8), rel=3.5 * 1.13 / 600**0.5)


@pytest.mark.thorough
def test_search_brackets_and_names_the_cpu(tiny):
    settings = SearchSettings(resolution=8.0, low=8.0, high=56.0, runs_per_level=12, budget=30)
    study = search_study(tiny, 1, 1, settings=settings)
    found = study.searches["steady"]
    assert 0.0 <= found.result.estimate.low < found.result.estimate.high <= 48.0
    assert found.resources["resource"].iloc[0] == "1 pCPU"
    assert 50.0 < found.resources["estimate"].iloc[0] <= 100.0
    curve = found.curve()
    assert curve["load_saps"].is_monotonic_increasing
    assert curve["estimate"].iloc[-1] > curve["estimate"].iloc[0]
    assert set(study.for_machines()["steady"]) >= {"ihs_limit_percent", "beyond_limit_by_load", "resources"}


@pytest.mark.thorough
def test_a_search_whose_budget_ended_says_what_it_knows(tiny, capsys):
    """Three runs at 8 of 29 attempts a second fail nothing and are too few to pass; no figure stands there."""
    settings = SearchSettings(resolution=4.0, low=4.0, high=8.0, budget=3)
    study = search_study(tiny, 1, 1, settings=settings)
    print(as_text(study.blocks(), 1000))
    out = capsys.readouterr().out
    assert "not found: no load passed or failed, up to 8 SAPS were tried" in out
    assert "the budget of 3 runs ended the search; a load passes after 51 runs without a failure" in out
    (row,) = study.for_machines()["capacity"]
    assert (row["answer"], row["estimate"], row["budget_ended"]) == ("unknown", None, True)


def test_a_load_may_take_what_it_takes_to_pass():
    """90 runs of a load that everybody carries up to 88: a third of them, 30, could not pass any load."""
    settings = replace(QUICK_SEARCH, budget=90)

    class Load:
        allows = staticmethod(lambda _: True)

        def __call__(self, level, _):
            return JudgedRun({}, level <= 88.0)

    study = LevelStudy(Load(), LoadNames("load", "SAPS", "", ""), 122.0, None)
    found, missing = search_levels(study, settings, SearchMapper(Execution(1, 1), "SAPS"))
    assert missing is None
    assert found.answer == "between"
    assert found.estimate.low <= 88.0 <= found.estimate.high


@pytest.mark.thorough
def test_search_does_not_depend_on_the_number_of_workers(tiny):
    settings = SearchSettings(resolution=8.0, low=8.0, high=40.0, runs_per_level=5, budget=12)
    one, two = (search_study(tiny, 1, jobs, settings=settings).searches["steady"] for jobs in (1, 2))
    assert one.result == two.result
    assert one.resources.equals(two.resources)


def stopped(spec, saps, length_s):
    return constant_load(spec, 1, 10.0, Stop(length_s * S, window_ns=10 * S, observed_ns=4 * S))


def test_a_server_with_headroom_survives_a_stop_and_a_full_one_does_not(tiny):
    """Five attempts a second are 17 % of the CPU; 28 are 95 %, and the backlog of 3 s meets retransmissions."""
    assert all(stopped(tiny.spec, 5.0, 3)(5.0, n) for n in range(3))
    assert not any(stopped(tiny.spec, 28.0, 3)(28.0, n) for n in range(3))


def test_the_stop_happens_when_the_transient_is_over(tiny):
    """The server takes nothing from 2 s (stir) + 2 s (transient) on, for 3 s."""
    load = stopped(tiny.spec, 5.0, 3)
    run = Run(load.at(5.0), load.seed, 0)
    run.start()
    taken = []
    for second in range(4, 9):
        run.engine.run(second * S + 2)
        run.built.settle()
        rows = [row for name, _, row in run.built.vcpu_rows() if name == "sut"]
        taken.append(sum(run.engine.rows(vcpus)[row].run_ns for row in rows))
    assert taken[0] == taken[2]
    assert taken[4] > taken[3]


@pytest.mark.thorough
def test_failover_safe_capacity_is_below_the_steady_one(tiny):
    settings = SearchSettings(resolution=8.0, low=4.0, high=36.0, runs_per_level=8, budget=8)
    study = search_study(tiny, 1, 1, settings=settings, stop=Stop(3 * S, 5 * S, 3 * S))
    assert set(study.searches) == {"after_stop", "recovery"}
    assert study.searches["after_stop"].result.estimate.high < 36.0
    assert study.searches["recovery"].names.details["stop_ns"] == 32 * S


@pytest.mark.thorough
def test_compare_pairs_the_same_traffic(tiny, tiny_path):
    """A server with half of the cost against the plain one: paired by replication, the first is 1."""
    fast = load_model(
        tiny_path,
        [
            "domains.sut.applications.proxy.touch_cost=2 ms",
            "domains.sut.applications.proxy.register_touch_cost=2 ms",
            "workloads.calls.steps.most=12",
        ],
    )
    result = compare_study([fast, tiny], 3, Execution(3, 1))
    assert result.ratio(1).kind == "range"
    assert 0.2 < result.ratio(1).mean < 0.9
    docs = [capacity.docs for capacity in result.capacities]
    assert result.difference(1).mean == sorted(b - a for a, b in zip(*docs, strict=True))[1]
    same = compare_study([tiny, tiny], 2, Execution(3, 1))
    assert same.difference(1).mean == 0.0


def test_one_model_is_nothing_to_compare(tiny):
    with pytest.raises(UsageError, match="at least two"):
        compare_study([tiny], 1, Execution())


def test_packets_that_are_lost_only_after_the_watched_time_are_no_loss_in_it(tiny):
    """At twice what the CPU carries the socket buffer is full some seconds later."""
    task = WatchedRun(constant_load(tiny.spec, 1, 10.0), 60.0, 0, 2_000_000_000, 2_020_000_000)
    found = watch(task)
    lost = [rate for name, unit, rate in found if unit == "packets/s"]
    assert lost
    assert set(lost) == {0.0}
