"""Crossovers of a decision: settings that mechanisms share, who is the cheapest where, and that it is so when run."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from test_decision import JOB, WEB, decided

from vftsim.errors import UsageError
from vftsim.report.blocks import Chart
from vftsim.report.terminal import as_text
from vftsim.study.designs.axes import SharedKnob, shared_knobs
from vftsim.study.designs.decision_crossovers import order_of
from vftsim.study.designs.decision_figures import Protected
from vftsim.study.designs.failover import protected_domain
from vftsim.study.designs.protections import fitting
from vftsim.study.figures.names import Objective
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.model import load_model

LIMIT = "work >= 93 %"
KINDS = ("none", "checkpoint", "micro_checkpoint", "lockstep")


def under(tmp_path, text, kinds=KINDS):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    model = load_model(path)
    return fitting(model, kinds)[0], protected_domain(model)


# Settings


def test_a_setting_reaches_around_the_values_that_mechanisms_have(tmp_path):
    models, entry = under(tmp_path, WEB)
    knobs = {knob.name: knob for knob in shared_knobs(["all"], models, entry)}
    assert list(knobs) == ["checkpoint_interval", "dirty_rate", "round_trip", "load"]
    # Defaults: 50 ms (micro_checkpoint) and 200 ms.
    assert (knobs["checkpoint_interval"].values[0], knobs["checkpoint_interval"].values[-1]) == (12.5, 400.0)
    assert knobs["load"].values[-1] == 2.0
    for knob in knobs.values():
        assert list(knob.values) == sorted(knob.values)


def test_a_round_trip_is_twice_the_latency_of_every_mechanism_that_has_a_channel(tmp_path):
    models, entry = under(tmp_path, WEB)
    (knob,) = shared_knobs(["round_trip=100 us, 2 ms"], models, entry)
    assert knob.values == (100.0, 2000.0)
    at = {kind: knob.at(model, entry, 2000.0) for kind, model in models.items()}
    assert at["none"] is models["none"]
    for kind in ("checkpoint", "lockstep"):
        assert at[kind].spec.domains[entry].protection.channel.latency == 1_000_000


def test_an_interval_is_that_of_those_that_have_one(tmp_path):
    models, entry = under(tmp_path, WEB)
    (knob,) = shared_knobs(["checkpoint_interval"], models, entry)
    found = knob.at(models["checkpoint"], entry, 12.5).spec.domains[entry].protection
    assert found.interval == 12_500_000
    assert knob.at(models["lockstep"], entry, 12.5) is models["lockstep"]


def test_a_load_is_a_factor_on_what_the_workload_calls_its_load(tmp_path):
    models, entry = under(tmp_path, WEB)
    (knob,) = shared_knobs(["load=0.5,2"], models, entry)
    assert knob.at(models["none"], entry, 2.0).spec.workloads["load"].clients == 8


def test_a_job_has_no_load_to_turn(tmp_path):
    models, entry = under(tmp_path, JOB)
    assert "load" not in [knob.name for knob in shared_knobs(["all"], models, entry)]
    with pytest.raises(UsageError, match="neither the model nor one of these mechanisms has one"):
        shared_knobs(["load"], models, entry)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round_tip", "did you mean 'round_trip'"),
        ("round_trip=1 ms", "two different values above 0"),
        ("round_trip=1 ms,2 MB", "round_trip: 'MB' in '2 MB' is not a unit"),
        ("load=0,1", "two different values above 0"),
        ("load=1,2 /s", "load: '2 /s' is no number; write a factor, such as 0.5"),
        ("load=inf,1", "load: 'inf' is no number"),
        ("all=1,2", "all=1,2: each setting has values of its own"),
    ],
)
def test_settings_that_are_none_are_refused(tmp_path, text, message):
    models, entry = under(tmp_path, WEB)
    with pytest.raises(UsageError, match=message):
        shared_knobs([text], models, entry)


# What is found


def at_prices(**prices):
    """Return mechanisms of which only the price is known, in two replications."""
    none = Summary([])
    return {kind: Protected(None, "vm", none, {"price": {0: price, 1: price + 0.1}}) for kind, price in prices.items()}


def test_prices_cross_where_the_line_between_two_values_says():
    """The difference goes from -10 to 10 over a factor of four: it is 0 at a factor of two."""
    points = {1.0: at_prices(a=10.0, b=20.0, c=90.0), 4.0: at_prices(a=30.0, b=20.0, c=90.0)}
    found = order_of(SharedKnob("load", "", (1.0, 4.0)), points, ["a", "b", "c"], [])
    (change,) = found.changes
    assert (change.figure, change.before, change.after, change.low, change.high) == ("price", "a", "b", 1.0, 4.0)
    assert change.at.mean == pytest.approx(2.0)
    assert change.is_of_cheapest
    assert found.cheapest == {1.0: "a", 4.0: "b"}
    assert list(found.stretches()) == [("a", 1.0, 1.0, change), ("b", 4.0, 4.0, None)]


def test_each_stretch_ends_by_a_change_of_its_own():
    """Two of three cease to meet a limit, the cheaper one first."""
    works = {1.0: (95.0, 99.0, 99.0), 2.0: (80.0, 92.0, 99.0), 4.0: (70.0, 80.0, 99.0)}
    points = {place: at_prices(a=1.0, b=2.0, c=3.0) for place in works}
    for place, works_of_kinds in works.items():
        for kind, work in zip("abc", works_of_kinds, strict=True):
            each = points[place][kind]
            points[place][kind] = replace(each, computed={**each.computed, "work": {0: work, 1: work}})
    asked = Objective("work", ">=", 90.0)
    found = order_of(SharedKnob("load", "", (1.0, 2.0, 4.0)), points, ["a", "b", "c"], [asked])
    assert [(kind, why.before if why else None) for kind, _, _, why in found.stretches()] == [
        ("a", "a"),
        ("b", "b"),
        ("c", None),
    ]


def test_prices_of_those_that_do_not_meet_what_is_asked_change_no_order():
    points = {1.0: at_prices(a=10.0, b=20.0), 4.0: at_prices(a=30.0, b=20.0)}
    asked = Objective("price", "<=", 25.0)
    found = order_of(SharedKnob("load", "", (1.0, 4.0)), points, ["a", "b"], [asked])
    (change,) = found.changes
    assert (change.figure, change.before, change.after) == (str(asked), "a", "")


def test_what_no_mechanism_does_rules_none_out():
    """Nobody here holds outputs: whether they leave within a millisecond changes nothing."""
    points = {1.0: at_prices(a=10.0, b=20.0), 4.0: at_prices(a=30.0, b=20.0)}
    asked = [Objective("output_held", "<=", 1.0, "ms")]
    assert order_of(SharedKnob("load", "", (1.0, 4.0)), points, ["a", "b"], asked).cheapest == {1.0: "a", 4.0: "b"}


def with_waits(points, waits):
    """Return mechanisms whose wait is known too, the same in both replications."""
    return {
        place: {
            kind: replace(each, computed={**each.computed, "wait": dict.fromkeys((0, 1), waits[place])})
            for kind, each in by_kind.items()
        }
        for place, by_kind in points.items()
    }


def test_a_power_of_the_setting_crosses_a_limit_where_it_does():
    """A wait of 10 x^3 is 80 at 2, the middle of 1 and 4 in the logarithm; a line between 10 and 640 has 80 at 1.17."""
    points = {1.0: at_prices(a=1.0), 4.0: at_prices(a=1.0)}
    knob, asked = SharedKnob("load", "", (1.0, 4.0)), Objective("wait", "<=", 80.0)
    (change,) = order_of(knob, with_waits(points, {1.0: 10.0, 4.0: 640.0}), ["a"], [asked]).changes
    assert change.at.mean == pytest.approx(2.0)
    # Where it is 0 at a value, and against a limit of 0, no logarithm is taken: 80 is an eighth of 0 to 640.
    (change,) = order_of(knob, with_waits(points, {1.0: 0.0, 4.0: 640.0}), ["a"], [asked]).changes
    assert change.at.mean == pytest.approx(4.0 ** (1 / 8))
    none = Objective("wait", "<=", 0.0)
    (change,) = order_of(knob, with_waits(points, {1.0: -10.0, 4.0: 10.0}), ["a"], [none]).changes
    assert change.at.mean == pytest.approx(2.0)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Return a job under checkpoints, which cost the more work the shorter their interval, and epochs."""
    folder = tmp_path_factory.mktemp("crossovers")
    kinds = ("none", "checkpoint", "hypervisor_epoch")
    texts = ("checkpoint_interval=8 ms,32 ms,128 ms", "dirty_rate=2000 /s,8000 /s")
    return decided(folder, JOB, kinds, "outage <= 3 s", LIMIT, replications=4, crossovers=texts)


@pytest.mark.thorough
def test_the_place_of_a_crossover_is_one_when_it_is_run(job, tmp_path):
    (change,) = (each for each in job.crossovers[0].changes if each.is_of_cheapest)
    assert (change.figure, change.before, change.after) == (LIMIT, "", "checkpoint")
    assert change.low < change.at.mean < change.high
    above = []
    for place in (change.low, change.at.mean, change.high):
        protection = f"protection: {{kind: checkpoint, interval: {round(place * 1e6)} ns}}"
        found = decided(tmp_path, JOB.replace("applications:", f"{protection}\n    applications:"), KINDS[:2])
        above.append(found.estimate("checkpoint", "work").mean - 93.0)
    assert above[0] < 0.0 < above[2]
    assert abs(above[1]) < 0.3 * (above[2] - above[0])


@pytest.mark.thorough
def test_values_are_added_where_the_cheapest_changes(job):
    for order in job.crossovers:
        places = list(order.cheapest)
        changing = [b / a for a, b in pairwise(places) if order.cheapest[a] != order.cheapest[b]]
        # A factor of four between two values, halved twice.
        assert all(math.isclose(ratio, 4**0.25) for ratio in changing)
        assert [place for place in places if place in order.knob.values] == list(order.knob.values)


@pytest.mark.thorough
def test_a_mechanism_without_the_setting_is_the_same_everywhere(job):
    for order in job.crossovers[:1]:
        prices = {each["hypervisor_epoch"].estimate("price").mean for each in order.points.values()}
        assert len(prices) == 1
        assert {each["none"].estimate("price").mean for each in order.points.values()} == {0.0}


@pytest.mark.thorough
def test_who_is_the_cheapest_meets_what_is_asked_at_the_least_price(job):
    for order in job.crossovers:
        for place, found in order.points.items():
            able = [kind for kind in found if kind in order.meeting[place]]
            assert "none" not in able
            assert order.cheapest[place] == min(able, key=lambda k: found[k].estimate("price").mean, default="")


@pytest.mark.thorough
def test_it_is_told_in_words_in_a_chart_and_for_machines(job):
    text = as_text(job.blocks(), 100)
    assert max(map(len, text.splitlines())) <= 100
    assert "Who is the cheapest as checkpoint_interval (ms) grows?" in " ".join(text.split())
    charts = [block for block in job.blocks() if isinstance(block, Chart)]
    assert [chart.x_scale for chart in charts] == ["log", "log"]
    assert [x for x, _ in charts[0].at] == [each.at.mean for each in job.crossovers[0].changes if each.is_of_cheapest]
    data = json.loads(json.dumps(job.for_machines()["crossovers"], default=str))
    assert [each["setting"] for each in data] == ["checkpoint_interval", "dirty_rate"]
    assert data[0]["points"][0]["prices"]["checkpoint"]["meets"] is ("checkpoint" in job.crossovers[0].meeting[8.0])


def test_prices_need_the_run_without_protection(tmp_path):
    with pytest.raises(UsageError, match="add 'none' to --protection"):
        decided(tmp_path, JOB, ("checkpoint",), crossovers=("all",))
