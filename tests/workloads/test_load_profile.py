"""A load that rises and falls: what comes in each stretch; one that is the same at all times is a plain rate."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.composition.composed import checked
from vftsim.composition.run import Run, run_model
from vftsim.composition.without_effect import remarks
from vftsim.study.figures.validity import is_outside
from vftsim.study.runs.model import load_model
from vftsim.workloads.farm.records import loads
from vftsim.workloads.web.httperf import http_loads

DAY = [{"duration": "2 s", "rate": "50 %"}, {"duration": "1 s", "rate": "300 %"}, {"duration": "1 s", "rate": "0 %"}]
"""Of 100 a second: 100, 300 and none in four seconds."""


def model(profile: list[dict[str, str]], begin: str, duration: str, **load: Any) -> dict[str, Any]:
    eth0 = {"path": {"kind": "moderated"}}
    server = {"kind": "service", "threads": 10, "demand": "100 us"}
    return {
        "domains": {"guest": {"interfaces": {"eth0": eth0}, "applications": {"server": server}}},
        "workloads": {
            "load": {
                "kind": "open_requests",
                "to": "guest",
                "rate": "100 /s",
                "gap_cv": 0,
                "load_profile": profile,
                **load,
            }
        },
        "measure": {"warm_up": begin, "duration": duration},
    }


def offered(data: dict[str, Any], engine: str = "compiled", number: int = 0) -> int:
    return int(run_model(checked(data), 1, number, engine).whole.outcomes["workloads.load"].offered)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
@pytest.mark.parametrize(("begin", "count"), [("0 s", 50), ("1 s", 50), ("2 s", 300), ("3 s", 0), ("6 s", 300)])
def test_each_stretch_has_its_rate_and_the_profile_begins_anew(engine: str, begin: str, count: int):
    assert abs(offered(model(DAY, begin, "1 s"), engine) - count) <= 1


def test_even_requests_come_at_the_instants_of_the_rate():
    """A profile of a quarter second of 100 % and one of 40: gaps of 10 ms, then of 25, and the one that both share."""
    profile = [{"duration": "250 ms", "rate": "100 %"}, {"duration": "250 ms", "rate": "40 %"}]
    counts = [offered(model(profile, f"{begin} ms", "100 ms")) for begin in (0, 100, 205, 305)]
    # Due at 10, 20, ... 250, then at 275, 300, ...: of [205, 305) those at 210 to 250, 275 and 300.
    assert counts == [9, 10, 7, 4]


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
@pytest.mark.parametrize(("begin", "each"), [("9 s", 0), ("10 s", 10), ("11 s", 0)])
def test_loads_that_do_not_keep_step_stay_in_their_stretches(engine: str, begin: str, each: int):
    """Of three of 1 a second, all in a second of 1000 %, the first begins at once, the others within a gap: 100 ms."""
    peak = [{"duration": f"{length} s", "rate": f"{rate} %"} for length, rate in ((10, 0), (1, 1000), (9, 0))]
    data = model(peak, begin, "1 s", rate="1 /s")
    data["workloads"] |= {name: dict(data["workloads"]["load"]) for name in ("second", "third")}
    seen = run_model(checked(data), 1, 0, engine).whole.outcomes
    assert [seen[f"workloads.{name}"].offered for name in data["workloads"]] == [pytest.approx(each, abs=each / 10)] * 3


def test_a_poisson_process_has_the_mean_and_the_variance_of_its_stretch():
    """40 times 300: the mean within four standard errors, the variance of a Poisson process within its spread."""
    counts = [offered(model(DAY, "2 s", "1 s", gap_cv=1), number=number) for number in range(40)]
    mean = sum(counts) / 40
    assert mean == pytest.approx(300, abs=4 * (300 / 40) ** 0.5)
    assert 0.4 < sum((count - mean) ** 2 for count in counts) / 39 / 300 < 1.9


@pytest.mark.parametrize("gap_cv", [0, 1, 3])
def test_a_profile_that_is_the_same_at_all_times_changes_nothing(gap_cv: float):
    plain, even = (
        run_model(checked(model(profile, "1 s", "3 s", gap_cv=gap_cv)), 1, 0, "compiled").whole.outcomes[
            "workloads.load"
        ]
        for profile in ([], [{"duration": "70 ms", "rate": "100 %"}])
    )
    assert plain.to_dict() == even.to_dict()


def test_a_request_in_years_passes_profiles_of_a_microsecond_at_once():
    profile = [{"duration": "1 us", "rate": "0 %"}, {"duration": "1 us", "rate": "0.001 %"}]
    assert offered(model(profile, "0 s", "1 s", rate="1e-8 /s", gap_cv=1)) == 0


def test_a_profile_in_which_nothing_comes_is_refused():
    with pytest.raises(ValidationError, match="in none of its stretches anything comes"):
        checked(model([{"duration": "1 s", "rate": "0 %"}], "0 s", "1 s"))


def connections_begun(engine: str, connections: int, profile: str, end_ms: int, *, test_s: int) -> int:
    """Return how many connections of 20 a second begin; all of them have begun after ``test_s``."""
    test = ["workloads.web.rate=20 /s", f"workloads.web.connections={connections}"]
    alone = ["workloads.tcp=null", "workloads.udp=null", "domains.server.applications.web.script=100 us"]
    times = [f"workloads.web.load_profile={profile}", f"measure.duration={end_ms} ms"]
    spec = load_model("net-bare", [*alone, *test, *times]).spec
    assert spec.workloads["web"].least_test_ns() == test_s * 1_000_000_000
    run = Run(spec, 1, 0, engine)
    run.run()
    return int(run.engine.rows(http_loads)[1].begun)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_connections_of_httperf_come_by_the_profile_and_the_last_one_ends_the_test(engine: str):
    """20 in the first second after the first one, 60 in the next: what 4 s bring at the usual rate."""
    profile = "[{duration: 1 s, rate: 100 %}, {duration: 1 s, rate: 300 %}]"
    for end_ms, begun in ((990, 20), (1490, 50), (1990, 80), (2500, 81)):
        assert connections_begun(engine, 81, profile, end_ms, test_s=2) == pytest.approx(begun, abs=1)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_the_first_connection_of_httperf_comes_with_the_first_load(engine: str):
    """None in the first second, with a report of none, then 20 in each: at 1 s, and every 50 ms from there on."""
    profile = "[{duration: 1 s, rate: 0 %}, {duration: 9 s, rate: 100 %}]"
    for end_ms, begun in ((990, 0), (1010, 1), (1990, 20), (3010, 41)):
        assert connections_begun(engine, 41, profile, end_ms, test_s=3) == begun


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_calls_of_before_the_run_hang_up_at_the_rate_at_which_they_began(engine: str):
    """Twice the rate in the first half of each second; those that were begun 60.25 s ago end a quarter later."""
    profile = "workloads.calls.load_profile=[{duration: 500 ms, rate: 200 %}, {duration: 500 ms, rate: 0 %}]"
    calls = ["workloads.calls.rate=100 /s", "workloads.calls.gap_cv=0", "workloads.calls.hold=60.25 s"]
    for end_ms, begun, ended in ((200, 40, 0), (500, 100, 50), (900, 100, 100), (1200, 140, 100)):
        measured = ["measure.warm_up=0 s", f"measure.duration={end_ms} ms"]
        run = Run(load_model("sip-farm-r1", [*calls, profile, *measured]).spec, 1, 0, engine)
        run.run()
        load = run.engine.rows(loads)[1]
        assert (int(load.begun), int(load.earlier)) == (pytest.approx(begun, abs=1), pytest.approx(ended, abs=1))


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_attempts_of_the_benchmark_follow_the_profile_in_each_step_anew(engine: str):
    """Of 50 and of 60 a second: as many, as many, three times as many, none, and from the beginning."""
    profile = "[{duration: 2 s, rate: 100 %}, {duration: 1 s, rate: 300 %}, {duration: 1 s, rate: 0 %}]"
    times = {"duration": "6 s", "transient": "0 s", "most": "2", "load_profile": profile}
    calls = ["gap_cv=0", "pre_registration.duration=0 s", "stir.duration=0 s", "sample_period=1 s"]
    settings = [*calls, *(f"steps.{key}={value}" for key, value in times.items())]
    spec = load_model("lab-native", [f"workloads.calls.{setting}" for setting in settings]).spec
    for step, load in zip(run_model(spec, 1, 0, engine).steps(), (50, 60), strict=True):
        assert step.samples("load") == pytest.approx([load, load, 3 * load, 0, load, load], abs=1)
        assert (step.effective, step.carried) == (pytest.approx(load * 7 / 6, abs=1), pytest.approx(load, abs=1))


def test_a_load_whose_peak_is_above_what_was_fitted_is_outside():
    profile = "workloads.calls.steps.load_profile=[{duration: 9 s, rate: 50 %}, {duration: 1 s, rate: 200 %}]"
    within, peak = load_model("lab-virtual").spec, load_model("lab-virtual", [profile]).spec
    assert [is_outside(within, load) for load in (40, 50, 80)] == [True, False, False]
    assert [is_outside(peak, load) for load in (40, 50, 80)] == [True, True, True]
    assert (within.measured.capacity, peak.measured.capacity) == (100.0, None), "nobody measured it with a peak"


@pytest.mark.parametrize(
    ("begin", "duration", "is_seen"),
    [
        ("0 s", "2 s", False),  # to the instant that the peak begins
        ("0 s", "2001 ms", True),
        ("2999 ms", "1 s", True),
        ("3 s", "2 s", False),  # from the instant that it ends
        ("3 s", "3001 ms", True),  # that of the next profile
        ("4003 s", "1 s", False),  # nothing comes
        ("1 s", "4 s", True),
    ],
)
def test_a_peak_that_is_not_measured_is_told(begin, duration, is_seen):
    """Figures of requests show by themselves whether it was: of its 300 in a second at least one is offered."""
    told = remarks(checked(model(DAY, begin, duration)))
    assert [text.split(" %")[0] for text in told] == ([] if is_seen else ["workloads.load.load_profile: its 300"])


def test_a_peak_that_no_step_measures_is_told():
    """A step of which 30 s are not counted, and a peak in the first 20."""
    early = "workloads.calls.steps.load_profile=[{duration: 20 s, rate: 300 %}, {duration: 10 min, rate: 100 %}]"
    steps = [early, "workloads.calls.steps.duration=2 min"]
    assert remarks(load_model("lab-virtual", steps).spec) == [
        "workloads.calls.steps.load_profile: its 300 % come when nothing is measured, and figures are of 30 s to 120 s "
        "of its 620 s"
    ]
    assert remarks(load_model("lab-virtual", [*steps, "workloads.calls.steps.transient=19 s"]).spec) == []
