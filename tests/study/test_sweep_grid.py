"""Axes, points and figures of a sweep, without running one."""

import pytest

from tests.study.grids import make_grid
from vftsim.composition.record import RunRecord
from vftsim.errors import ModelFileError, UsageError
from vftsim.outcome import Phase
from vftsim.stats import DelayHistogram
from vftsim.study.designs.experiment import Reader
from vftsim.study.designs.sweep import DEFAULT_TIMES, plan_sweep
from vftsim.workloads.flow import FlowResult


def test_the_default_study_varies_weight_cap_and_streams():
    grid = make_grid(None, "credit")
    assert list(grid.factors) == ["scheduler", "weight", "cap", "streams"]
    assert len(grid.points) == 27
    spec = next(p.model.spec for p in grid.points if list(p.values.values()) == ["credit", "512", "30", "600"])
    assert (spec.domains["dom0"].weight, spec.domains["media"].weight, spec.domains["cpu1"].weight) == (512, 512, 256)
    assert {name: domain.cap for name, domain in spec.domains.items() if domain.cap} == {"cpu1": 30.0, "cpu2": 30.0}
    assert spec.workloads["media"].streams == 600
    assert spec.hosts["host"].scheduler.version == "3.2", "the model's scheduler keeps its parameters"


def test_all_schedulers_get_the_same_points():
    grid = make_grid(None, "all", ["streams=10,20"])
    assert {"credit", "credit2", "cfs", "native", "zvm"} <= set(grid.factors["scheduler"])
    assert len(grid.points) == 2 * len(grid.factors["scheduler"])
    assert all(point.model.spec.hosts["host"].scheduler.kind == point.values["scheduler"] for point in grid.points)
    assert grid.points.bases[0].assignments == DEFAULT_TIMES, "the model with its own scheduler stands for all"


def test_an_override_that_a_scheduler_does_not_know_is_its_refusal():
    grid = make_grid(None, "all", ["streams=10"], ["hosts.host.scheduler.version='4.2'"])
    assert "credit" in grid.factors["scheduler"]
    assert "zvm" in grid.refused
    with pytest.raises(ModelFileError):
        make_grid(None, "zvm", ["streams=10"], ["hosts.host.scheduler.version='4.2'"])


def test_dotted_keys_and_lists():
    grid = make_grid("xen-media", None, ["domains.media.affinity=[0,1],[2,3]", "calls=10"])
    assert [p.model.spec.domains["media"].affinity for p in grid.points] == [(0, 1), (2, 3)]
    assert grid.points[0].model.spec.workloads["signaling"].calls_per_s == 10


@pytest.mark.parametrize(
    ("grid", "scheduler", "protection", "why"),
    [
        (
            ["streams=10,20", "workloads.media.streams=30"],
            None,
            None,
            "'streams' and 'workloads.media.streams' both set",
        ),
        (["domains.dom0.weight=1,2", "weight=3"], None, None, "'domains.dom0.weight' and 'weight' both set"),
        (["domains.dom0.weight=1,2", "domains.dom0={}"], None, None, "all of .* and undoes 'domains.dom0.weight'"),
        (["hosts.host.scheduler.kind=cfs"], "credit", None, "'scheduler' and 'hosts.host.scheduler.kind'"),
        (["domains.media.protection={kind: none}"], None, "none", "'protection' and 'domains.media"),
    ],
)
def test_an_axis_that_undoes_another_is_refused(grid, scheduler, protection, why):
    with pytest.raises(UsageError, match=why):
        plan_sweep("xen-media", scheduler, grid, (), protection)


@pytest.mark.parametrize(
    ("model", "overrides", "scheduler", "protection", "why"),
    [
        ("xen-media", "domains.media.protection={kind: lockstep}", None, "none,checkpoint", "'domains.media"),
        ("two-tier", "domains.database.protection.kind=checkpoint", None, "none,checkpoint", "'domains.database"),
        ("xen-media", "hosts.host.scheduler={kind: cfs}", "credit,sedf", None, "'hosts.host.scheduler'"),
    ],
)
def test_a_setting_that_undoes_what_every_point_is_called_is_refused(model, overrides, scheduler, protection, why):
    """Points called none and checkpoint were all under lockstep; or the domain that it protects was left as it is."""
    option = "--scheduler" if scheduler else "--protection"
    with pytest.raises(UsageError, match=f"--set: '{option}' and {why}"):
        plan_sweep(model, scheduler, ["measure.duration=1 s,2 s"], (overrides,), protection)


@pytest.mark.parametrize(
    ("grid", "example"),
    [
        ("workloads.pages.rate=50 /s..80 /s", "(workloads.pages.rate=50 /s,65 /s,80 /s)"),
        ("domains.server.vcpus=1..4", "(domains.server.vcpus=1,2,4)"),
        ("workloads.pages.rate=50..80 /s", "one by one, or low and high"),
    ],
)
def test_a_range_is_told_as_one(grid, example):
    """It was told about units: "'/s..80 /s' is not a unit of a rate"."""
    with pytest.raises(ModelFileError, match="is a range; name values one by one") as told:
        list(plan_sweep("two-tier", None, [grid]).points)
    assert example in str(told.value)


def test_a_part_may_be_an_axis_before_its_parameters():
    grid = plan_sweep("xen-media", None, ["hosts.host.scheduler={kind: credit}", "hosts.host.scheduler.version='4.2'"])
    assert grid.points[0].model.spec.hosts["host"].scheduler.version == "4.2"


def test_a_benchmark_can_be_put_under_another_scheduler():
    grid = make_grid("lab-virtual", "credit,esxi", ["domains.sut.cap=0 %,50 %"])
    assert [tuple(p.values.values()) for p in grid.points] == [
        ("credit", "0 %"),
        ("credit", "50 %"),
        ("esxi", "0 %"),
        ("esxi", "50 %"),
    ]
    assert all(point.model.spec.hosts["host"].scheduler.kind == point.values["scheduler"] for point in grid.points)


def test_a_model_without_cpu_bound_guests_has_no_cap_axis():
    assert list(make_grid("xen-media-turnkey", None).factors) == ["weight", "streams"]
    with pytest.raises(UsageError, match="means nothing in 'xen-media-turnkey'"):
        make_grid("xen-media-turnkey", None, ["cap=0,50"])


@pytest.mark.parametrize(
    ("name", "grid", "overrides", "times_ms"),
    [
        (None, [], [], (1000, 300)),
        ("xen-media", [], [], (2000, 500)),
        (None, [], ["measure.duration=150 ms"], (150, 300)),
        (None, [], ["measure.warm_up=40 ms"], (1000, 40)),
        (None, [], ["measure={}"], (2000, 500)),
        (None, ["measure.duration=3 s"], [], (3000, 300)),
    ],
)
def test_times_are_values_like_any_other(name, grid, overrides, times_ms):
    points = make_grid(name, None, [*grid, "streams=10"], overrides).points
    measure = points[0].model.spec.measure
    assert (measure.duration / 1e6, measure.warm_up / 1e6) == times_ms


def test_times_can_be_axes():
    points = make_grid(None, None, ["measure.warm_up=100 ms,1 s", "measure.duration=2 s,5 s"]).points
    times = [(p.model.spec.measure.warm_up // 10**6, p.model.spec.measure.duration // 10**6) for p in points]
    assert times == [(100, 2000), (100, 5000), (1000, 2000), (1000, 5000)]
    assert points[0].model.assignments == ("measure.warm_up=100 ms", "measure.duration=2 s")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, "credits"), "credit"),
        ((None, "credit", ["wieght=1,2"]), "weight"),
        ((None, "credit", ["weight=1,,2"]), "not of the form"),
        ((None, "credit", ["weight"]), "not of the form"),
        ((None, "credit", ["weight=1,1"]), "twice"),
        ((None, None, ["measure.duration=2 s,2000 ms"]), "names a value twice"),
        ((None, None, ["measure.duration=2.3 s,2300 ms"]), "names a value twice"),
        ((None, None, ["measure.duration=800 ms,-1 s"]), "must not be negative, got '-1 s'"),
        ((None, None, ["measure.duration=800 ms,1e400 s"]), "must be at most"),
        ((None, "credit", ["weight=1", "weight=2"]), "given twice"),
        (("lab-virtual", "credit"), "needs axes"),
        (("lab-virtual", None), "needs axes"),
        ((None, None, ["seedless.key=1"]), "seedless"),
        (
            (None, None, [f"streams={','.join(map(str, range(400)))}", f"calls={','.join(map(str, range(400)))}"]),
            "most",
        ),
    ],
)
def test_mistakes_are_explained(arguments, message):
    with pytest.raises((UsageError, ModelFileError), match=message):
        make_grid(*arguments)


def media(delivered, dropped):
    delay = DelayHistogram()
    for _ in range(delivered):
        delay.add(1_000_000)
    flow = FlowResult(
        delivered=delivered,
        dropped=dropped,
        late=0,
        loss_events=int(dropped > 0),
        loss_bursts=int(dropped > 0),
        delay=delay,
        jitter_ns=0.0,
        playout_ns=60_000_000,
        interval_ns=20_000_000,
        codec=[0.0, 25.1, 0.0],
        seconds=1.0,
    )
    return RunRecord((Phase("", 20.0, 0, 10**9, {"workloads.media": flow}),), {}, 0, 0, {}, {})


def test_loss_is_a_ratio_of_sums_and_never_zero_plus_minus_zero():
    names = ["media.loss", "media.loss_event_rate"]
    found = Reader(names, 0.95).read([(0, media(90, 10)), (1, media(300, 0))]).estimates
    assert found["workloads.media.loss"][1].mean == pytest.approx(100 * 10 / 400), "not the mean of 10 % and 0 %"
    assert found["workloads.media.loss_event_rate"][1].mean == pytest.approx(0.5)
    none = Reader([], 0.95).read([(0, media(300, 0)), (1, media(300, 0))]).estimates["workloads.media.loss"][1]
    assert (none.mean, none.kind) == (0.0, "range")
    assert not none.is_interval, "a burst that was not seen may be of any size"
