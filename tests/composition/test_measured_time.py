"""Measured time and warm-up where no workload has phases of its own."""

import pytest

from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.errors import ModelFileError, UsageError
from vftsim.study.figures.protection_costs import of_runs
from vftsim.study.runs.model import first_look_ns, load_model

from .composed import checked, server, sip_model

FEW = "workloads.media.streams=20"


def times(model):
    return model.spec.measure.duration, model.spec.measure.warm_up


def test_the_model_says_how_long_it_is_measured():
    model = load_model("xen-media", [FEW, "measure.duration=200 ms", "measure.warm_up=60 ms"])
    record = run_model(model.spec, 1, 0)
    (window,) = record.phases
    assert (window.begin_ns, window.end_ns, window.seconds) == (60_000_000, 260_000_000, 0.2)
    assert record.whole.outcomes["workloads.media"].seconds == 0.2
    again = run_model(model.spec, 1, 0)
    assert record.to_dict() == again.to_dict()
    assert RunRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("duration", "99 ms", "at least 100 ms, five packets of a stream; got 99 ms"),
        ("duration", "0 s", "at least 100 ms"),
        ("duration", "32 d", "at most 31 d"),
        ("duration", "2", "has no unit"),
        ("warm_up", "-1 s", "must not be negative"),
        ("warm_up", "745 h", "at most 31 d"),
    ],
)
def test_impossible_times_are_refused(key, value, message):
    with pytest.raises(ModelFileError, match=message):
        load_model("xen-media", [f"measure.{key}={value}"])


def test_scale_and_quick_change_what_is_measured_and_keep_the_warm_up():
    model = load_model("xen-media")
    assert times(model) == (2_000_000_000, 500_000_000)
    assert times(model.scaled(0.25)) == (500_000_000, 500_000_000)
    assert times(model.scaled(3)) == (6_000_000_000, 500_000_000)
    assert times(model.quick()) == (500_000_000, 500_000_000)
    assert "500 ms instead of 2 s (warm-up of 500 ms kept)" in model.quick().notes[0]


def test_a_quick_run_is_as_long_as_a_client_waits():
    """1, 2 and 4 s for an answer: in half a second no request could fail, whatever is offered."""
    assert times(load_model("two-tier").quick()) == (7_500_000_000, 2_000_000_000)
    assert times(load_model("two-tier", ["workloads.pages.retries=0"]).quick()) == (1_500_000_000, 2_000_000_000)


UNDER_CHECKPOINTS = ["domains.media.protection={kind: checkpoint}", "measure.duration=10 s"]


def test_a_quick_run_holds_ten_cycles_of_a_mechanism():
    """200 ms, the request of 0.1, the pause of 0.5 and 2 us a page, 2000 pages of 4104 bytes and 64 KiB at 1 Gbit/s."""
    cycle_ns = 200_000_000 + 100_000 + 500_000 + 4_000_000 + (2000 * 4104 + 65536) * 8
    model = load_model("xen-media", UNDER_CHECKPOINTS)
    assert times(model.quick()) == (10 * cycle_ns, 500_000_000)
    apart = load_model("xen-media", [*UNDER_CHECKPOINTS, "domains.media.protection.channel.network=lan"])
    assert times(apart.quick()) == (10 * cycle_ns, 500_000_000)
    slower = load_model("xen-media", [*UNDER_CHECKPOINTS, "domains.media.protection.channel.rate=500 Mbit/s"])
    assert times(slower.quick())[0] == 10 * (cycle_ns + (2000 * 4104 + 65536) * 8)


def test_quick_models_side_by_side_measure_for_as_long_as_the_slowest_needs():
    """A difference between half a second of one and three seconds of the other is none of the two."""
    plain, guarded = load_model("xen-media", UNDER_CHECKPOINTS[1:]), load_model("xen-media", UNDER_CHECKPOINTS)
    assert times(plain.quick()) == (500_000_000, 500_000_000)
    least_ns = first_look_ns([plain, guarded])
    assert times(plain.quick(least_ns)) == times(guarded.quick(least_ns)) == times(guarded.quick())


@pytest.mark.parametrize(("duration", "is_said"), [("2 s", True), ("2708 ms", False), ("3 s", False)])
def test_a_run_of_few_cycles_says_so(duration, is_said):
    """What it shows depends on where in a cycle it begins: at 2.708 s and more it holds ten."""
    spec = load_model("xen-media", [UNDER_CHECKPOINTS[0], f"measure.duration={duration}"]).spec
    texts = [each for each in of_runs(spec, []) if "a cycle takes up to 270.8 ms" in each]
    assert bool(texts) == is_said
    assert all("'measure.duration=2.8 s' holds 10" in each for each in texts)


def test_shortening_has_an_end():
    model = load_model("xen-media")
    assert times(model.scaled(0.001))[0] == 100_000_000
    short = load_model("xen-media", ["measure.duration=300 ms"])
    assert times(short.quick()) == times(short)
    assert short.quick().notes == ("--quick shortens nothing: the model is as short as its workloads allow",)
    with pytest.raises(UsageError, match="a run is measured for at most 31 d"):
        load_model("xen-media", ["measure.duration=1 d"]).scaled(32)


def test_a_day_of_rising_and_falling_load_is_measured_after_a_day():
    """Of 1.2 requests an hour on average 0.2, 1.8 and 0.6 of it come in 8, 10 and 6 hours; each takes 10 minutes."""
    hours = {"8 h": "20 %", "10 h": "180 %", "6 h": "60 %"}
    profile = [{"duration": duration, "rate": rate} for duration, rate in hours.items()]
    load = {"kind": "open_requests", "to": "a", "rate": "0.02 /min", "gap_cv": 0, "timeout": "1 d"}
    service = {"kind": "service", "demand": "10 min"}
    domain = {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}, "applications": {"jobs": service}}
    spec = checked(
        {
            "domains": {"a": domain},
            "workloads": {"users": {**load, "load_profile": profile}},
            "measure": {"warm_up": "1 d", "duration": "30 d"},
        }
    )
    outcomes = run_model(spec, 1, 0).whole.outcomes
    per_day = 1.2 * (8 * 0.2 + 10 * 1.8 + 6 * 0.6)
    assert outcomes["workloads.users"].answers == pytest.approx(30 * per_day, abs=1)
    assert outcomes["domains.a"].columns()["cpu"] == pytest.approx(100 * per_day / (24 * 6), abs=0.1)


def test_figures_of_a_mechanism_are_of_the_measured_time():
    """States each 25 ms for a second of three; a loss of the channel in the warm-up holds outputs for 300 ms."""
    vm = {
        "interfaces": {"eth0": {"path": {"kind": "native"}}},
        "applications": {"srv": {"kind": "service"}},
        "protection": {"kind": "checkpoint", "interval": "25 ms", "suspend_request": "0 ms"},
    }
    spec = checked(
        {
            "domains": {"vm": vm},
            "measure": {"warm_up": "2 s", "duration": "1 s"},
            "workloads": {"asks": {"kind": "request_response", "to": "vm.srv", "turn_around": "3 ms"}},
            "faults": [{"kind": "channel_loss", "at": "500 ms", "duration": "300 ms"}],
        }
    )
    protection = run_model(spec, 1, 0).whole.outcomes["domains.vm.protection"]
    assert (protection.seconds, protection.states) == (1.0, 40)
    assert 0 < protection.output_held <= protection.longest_held_ns / 1e6 < 40
    assert protection.stopped_ns == pytest.approx(40 * protection.pause * 1e6, rel=0.03)


def counted(model, from_ms, to_ms):
    """Return counts and times in ns of a part of a run, by figure; the longest of something is of one part only."""
    measure = {"warm_up": from_ms * 1_000_000, "duration": (to_ms - from_ms) * 1_000_000}
    spec = model.spec.model_copy(update={"measure": model.spec.measure.model_copy(update=measure)})
    return {
        (owner, name): value
        for owner, outcome in run_model(spec, 1, 0).whole.outcomes.items()
        for name, value in outcome.columns().items()
        if "longest" not in name and (type(value) is int or name.endswith("_ns"))
    }


BUSY = (
    "hosts.host.scheduler.kind=esxi",
    "domains.vm.vcpus=1",
    "domains.vm.applications={w: {kind: batch, demand: 10 s}}",
)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("xen-media", [FEW]),
        ("three-tier", []),
        pytest.param("sip-farm-lockstep", [], marks=pytest.mark.slow),
        ("job-database", ["domains.vm.protection.kind=checkpoint"]),
    ],
)
def test_two_parts_of_a_run_add_up(name, settings):
    """What is counted from 0.5 to 1.2 s and from there to 1.9 s is what the whole has, to the nanosecond."""
    model = load_model(name, settings)
    first, then, whole = counted(model, 500, 1200), counted(model, 1200, 1900), counted(model, 500, 1900)
    assert whole
    assert {key: first[key] + then[key] for key in whole} == pytest.approx(whole, rel=1e-9)


def test_a_second_copy_works_as_long_as_the_guest():
    """Also a guest that never stops, whose host has had no reason to charge it since it began."""
    whole = counted(load_model("job-compile", ["domains.vm.protection.kind=coarse_lockstep", *BUSY]), 500, 1900)
    assert whole["domains.vm.protection", "backup_cpu_ns"] == whole["domains.vm", "cpu_ns"] == 1_400_000_000


def test_rates_of_clients_beside_a_ramp_are_over_the_time_that_the_run_has_lasted():
    """50 calls a second begin; the last call of the ramp is over long before the longest time that one may take."""
    farm = server(applications={"proxy": {"kind": "sip_server"}, "farm": {"kind": "farm_server"}})
    even = {"kind": "farm_calls", "to": "sut.farm", "rate": "50 /s", "gap_cv": 0, "established": False}
    data = sip_model(domains={"sut": farm})
    data["workloads"] = {**data["workloads"], "even": even}
    spec = checked(data)
    seen = run_model(spec, 1, 0).whole.outcomes["workloads.even"]
    assert seen.offered < 0.95 * 50 * (spec.longest_ns / 1e9 - 0.5)
    assert seen.offered_rate == pytest.approx(50, abs=0.5)


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_clients_that_have_not_begun_are_in_no_report(kind):
    """Six begin within 4 s, and a run ends after 2: each client that has begun has a rate, the others have none."""
    others = [f"workloads.{other}=null" for other in ("tcp", "udp", "web") if other != kind]
    late = [f"workloads.{kind}.{setting}" for setting in ("clients=6", "duration=4 s", "spread=4 s")]
    model = load_model("net-bare", [*others, *late, "measure.duration=2 s"])
    record = run_model(model.spec, 1, 0)
    seen = record.whole.outcomes[f"workloads.{kind}"]
    rates = seen.throughput if kind == "tcp" else seen.received
    begun = [name.removeprefix("client_") for name, rate in rates.items() if rate > 0]
    assert 0 < len(begun) < 6
    if kind == "tcp":
        named = {line.split("]")[0].strip("[ ") for line in seen.report.splitlines() if line.startswith("[")}
        assert named - {"ID", "SUM"} == set(begun)
    else:
        assert record.offers["udp"].limit == "a run ends before all clients have begun (workloads.udp.spread)"
