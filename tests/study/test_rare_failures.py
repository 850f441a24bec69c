"""What goes wrong in few runs or crashes is counted, with the interval of its share; its mean is not given one."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from tests.study.tiny import TINY
from vftsim.composition.record import RunRecord
from vftsim.outcome import Outcome, Phase, attribute, declare
from vftsim.report.terminal import as_text
from vftsim.stats import stratified_interval
from vftsim.study.designs.availability import YEAR_S, AvailabilityStudy, HostFailures, shares_of_pair, year_of
from vftsim.study.designs.crash import BackupFailure, Failover
from vftsim.study.designs.experiment import chosen, name_of
from vftsim.study.designs.failover import FailoverStudy
from vftsim.study.designs.protections import under
from vftsim.study.designs.run import RunResult
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.model import load_model

MODEL = {"label": "tiny", "name": "tiny", "workloads": ["ims_bench"], "set": [], "notes": [], "without_effect": []}
MANIFEST = {"models": [{**MODEL, "resolved": {}, "costs": []}], "seed": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.yaml"
    path.write_text(TINY)
    return load_model(path)


def crash(number, failed=0, outage_s=None):
    """An outage of 2.5 s and a little more each time, of which ``failed`` attempts die."""
    found_s = 2.5 + 0.01 * (number * 7 % 10) if outage_s is None else outage_s
    parts = (0.0, 2.0, 0.1, 0.01, 0.3) if math.isfinite(found_s) else (math.nan,) * 5
    backup = BackupFailure(1.0 + 0.02 * (number * 3 % 10), 80.0, {"ims_uac": 0})
    crashed = [(0.0, "primary crash")]
    return Failover(0.1 * number, *parts, found_s, 80.0, {"ims_uac": failed}, {}, 0, {}, crashed, of_backup=backup)


def study_of(model, crashes):
    found = under(model, "lockstep")
    return FailoverStudy(found, "lockstep", "10 attempts a second", tuple(crashes), MANIFEST, struck="sut")


def test_columns_have_one_order_also_where_no_guest_comes_back(model):
    """What stands before the estimate names a figure; shares of crashes stood there, as axes of a dataset."""
    away = [replace(crash(k, 9, math.inf), unprotected_s=math.inf, of_backup=None) for k in range(3)]
    back, never = (study_of(model, each).to_pandas() for each in ([crash(k, 9) for k in range(3)], away))
    assert [*back] == [*never]
    assert [*never][3] == "estimate"


def test_a_loss_in_one_crash_of_twenty_is_counted(model, capsys):
    """One in 20: 0.127 to 24.9 % by Clopper and Pearson; none: below 1 - 0.025^(1/20) = 16.8 %."""
    lossy = study_of(model, [crash(k, 40 if k == 7 else 0) for k in range(20)])
    row = lossy.to_pandas().set_index("figure").loc["failed_ims_uac"]
    assert (row["crashes_with_any"], row["interval"], row["estimate"]) == (1, "range", 2.0)
    assert (row["share_low"], row["share_high"]) == pytest.approx((0.00127, 0.2487), abs=1e-4)
    assert pd.isna(lossy.to_pandas().set_index("figure").loc["outage_s", "share_low"])
    print(as_text(lossy.blocks(), 1000))
    assert "1 (0.13 to 25 %)" in capsys.readouterr().out
    print(as_text(study_of(model, [crash(k) for k in range(20)]).blocks(), 1000))
    assert "0 (< 17 %)" in capsys.readouterr().out


def test_fewer_failures_than_without_the_crash_have_two_reasons(model):
    """A restart of an overloaded guest ends no protection: what had waited is gone, and the next are served in time."""
    fewer = as_text(study_of(model, [crash(k, -3) for k in range(3)]).blocks(), 1000)
    assert "goes on without protection after a takeover" in fewer
    assert "has emptied its queues" in fewer
    assert "below 0" not in as_text(study_of(model, [crash(k) for k in range(3)]).blocks(), 1000)


def test_a_service_that_did_not_come_back_once_is_counted(model, capsys):
    """19 of 20: 75.1 to 99.87 %."""
    print(as_text(study_of(model, [crash(k, outage_s=math.inf if k == 3 else None) for k in range(20)]).blocks(), 1000))
    assert "came back after 19 of 20 (75 to 99.9 % of crashes)" in capsys.readouterr().out


def test_a_years_downtime_has_the_interval_of_its_outages(model):
    """Nearly the mean outages of both hosts and the stops of two copies a year, at one failure a year of each host."""
    crashes = [crash(k) for k in range(10)]
    row = year_of(study_of(model, crashes), "lockstep", HostFailures(YEAR_S), 10.0)
    outage = stratified_interval([each.outage_s + each.of_backup.outage_s for each in crashes], 0.95)
    assert outage.is_interval
    assert row["downtime_low"] < row["downtime_s_per_year"] < row["downtime_high"]
    stops_s = 2 * row["copy_stop_s"]
    assert stops_s > 0.2
    assert row["downtime_s_per_year"] == pytest.approx(outage.mean + stops_s, rel=1e-3)
    ends = [
        shares_of_pair(YEAR_S, end + stops_s, row["reprotection_s"], 77.0).down * YEAR_S
        for end in (outage.low, outage.high)
    ]
    assert [row["downtime_low"], row["downtime_high"]] == pytest.approx(ends)
    assert row["nines"] == pytest.approx(-math.log10(row["unavailability"]))
    assert (row["came_back"], row["crashes"]) == (10, 10)
    assert row["came_back_low"] == pytest.approx(0.025**0.1)


def test_an_outage_has_room_for_crashes_that_meet_a_state_on_its_way(model):
    """With it the outputs of a cycle are lost: 0.2 s, 4.6 ms of pause, 66.2 ms for 2000 pages of 4104 B and 64 KiB.

    None of ten met one: there may be 30.8 % of them, 1 - 0.025^(1/10).
    """
    kind, crashes = "checkpoint", tuple(map(crash, range(10)))
    found = FailoverStudy(under(model, kind), kind, "", crashes, MANIFEST, struck="sut")
    room_s = (1.0 - 0.025**0.1) * (0.2046 + (65536 + 2000 * 4104) * 8e-9)
    outage = found.mean("outage_s")
    assert outage.high - outage.mean == pytest.approx(room_s, rel=2e-3)
    assert found.mean("unprotected_s").high == 80.0, "what no burst ends has none"
    year = year_of(found, kind, HostFailures(YEAR_S), 10.0)
    assert year["downtime_high"] - year["downtime_s_per_year"] == pytest.approx(room_s, rel=2e-3)


def test_whose_clients_make_no_attempts_has_no_number_of_them_that_fail(model):
    """A media stream has packets, and no request that a crash could fail: their number is not 0 but none."""
    crashes = [replace(crash(k), failed={}) for k in range(10)]
    row = year_of(study_of(model, crashes), "lockstep", HostFailures(YEAR_S), math.nan)
    assert math.isnan(row["failed_per_year"])
    assert row["downtime_s_per_year"] > 0.0


def test_a_year_in_which_somebody_restarts_has_no_interval(model, capsys):
    """One crash of ten did not come back, or none did: how long a restart by hand takes is assumed."""
    once = year_of(
        study_of(model, [crash(k, outage_s=math.inf if k == 3 else None) for k in range(10)]),
        "lockstep",
        HostFailures(YEAR_S),
        10.0,
    )
    dead = [replace(crash(k, outage_s=math.inf), of_backup=None) for k in range(10)]
    unprotected = FailoverStudy(model, "none", "10 attempts a second", tuple(dead), MANIFEST, struck="sut")
    never = year_of(unprotected, "none", HostFailures(YEAR_S), 10.0)
    assert once["downtime_interval"] == never["downtime_interval"] == "none"
    assert never["came_back_high"] == pytest.approx(1.0 - 0.025**0.1)
    print(as_text(AvailabilityStudy(model, HostFailures(YEAR_S), (once, never), {}, MANIFEST).blocks(), 1000))
    shown = capsys.readouterr().out
    assert "77 (assumed)" in shown
    assert "9 of 10 (55 to 99.7 %)" in shown


class Step(Outcome):
    """A step of a ramp, of which some runs go beyond the limit and have a CPU of 100 %."""

    cpu: float = declare.number(unit="%", headline=True)
    passed: bool = attribute()
    beyond = declare.verdict(source=lambda step: not step.passed)


def runs(beyond):
    """Twelve runs with one step."""

    def record(k):
        step = Step(cpu=100.0 if k in beyond else 70.0 + 0.3 * (k * 5 % 12), passed=k not in beyond)
        phases = Phase("step_1", 50.0, 0, 10, {"workloads.calls": step}), Phase("", None, 0, 10, {})
        return RunRecord(phases, {}, 0, 0, {}, {})

    return [(k, record(k)) for k in range(12)]


def steps(beyond):
    return Summary(runs(beyond))


def test_the_share_of_runs_beyond_the_limit_is_less_than_all_of_them(model):
    """11 of 12: 61.5 to 99.79 %."""
    text = as_text(RunResult(model, runs(range(11)), MANIFEST).blocks(), 1000)
    assert "step_1: 11 of 12 runs beyond the limit, 62 to 99.8 % of all" in text


def test_a_point_of_a_sweep_at_which_some_runs_collapsed_has_no_interval_of_its_means():
    """Two of twelve: 2.1 to 48.4 %."""
    mixed, well = (dict(found_at(beyond)) for beyond in ((3, 7), ()))
    assert (mixed["workloads.calls.step_1.cpu"].kind, well["workloads.calls.step_1.cpu"].kind) == (
        "range",
        "skew-corrected t",
    )
    share = mixed["workloads.calls.step_1.beyond"]
    assert (share.low, share.high) == pytest.approx((2.086, 48.41), abs=0.01)
    assert "workloads.calls.step_1.beyond" not in well


def found_at(beyond):
    for _, address in chosen(summary := steps(beyond), ()):
        yield name_of(address), summary.estimate(address.text)


@pytest.mark.parametrize(("beyond", "interval"), [((), "skew-corrected t"), ((4,), "range"), (range(6), "range")])
def test_a_step_in_which_some_runs_collapsed_has_no_interval_of_its_means(beyond, interval):
    found = steps(beyond)
    assert found.estimate("workloads.calls.at_50.cpu").kind == interval
    share = found.estimate("workloads.calls.at_50.beyond")
    assert share.mean == pytest.approx(100.0 * len(beyond) / 12)
    if len(beyond) == 1:
        assert (share.low, share.high) == pytest.approx((0.211, 38.48), abs=0.01)


def test_the_difference_to_runs_that_collapsed_at_times_has_no_interval():
    less = steps((4,)).difference(steps(()), "workloads.calls.at_50.cpu")
    assert less.kind == "range"
