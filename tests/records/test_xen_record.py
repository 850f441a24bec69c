"""What the fitted model must keep giving, in short runs, and what tells it from a wrong one."""

import json
import math

import pytest

from tests.composition.media_systems import MS, run
from tests.records.fits import fit
from vftsim.composition.views import media_of
from vftsim.records.forms.xen_media import (
    RIGHT,
    experiment,
    judge_all,
    known_mean,
    overrides,
    run_experiment,
    score,
    separating,
)
from vftsim.records.forms.xen_statements import Judged
from vftsim.records.runner import read
from vftsim.spec import shipped_dir

RECORD = read("xen-media")
FITS = fit.cases_of(RECORD)


def loss(key, *assignments, seed=11):
    system = experiment(key, assignments)
    media = media_of(system, run(system, seed, 0, 250 * MS, 150 * MS))
    return 100.0 * media.loss_ratio, media


def test_native_carries_800_streams():
    """Stated: no loss, less than 0.5 ms."""
    lost, media = loss("mixed.N")
    assert lost == 0.0
    assert media.delay_ms(99) < 0.5
    assert media.voice().mos > 4.3


def test_one_core_for_the_driver_domain_loses_about_half():
    """Stated 45 %; 41 us and 3 us a switch leave at most 1/41 us = 24,400 of 40,000 packets a second, 39 % lost."""
    lost, _ = loss("pinning.2.1")
    assert 39.0 < lost < 55.0


def test_two_cores_lose_a_fifth_and_direct_io_nothing():
    assert loss("turnkey2.D")[0] == pytest.approx(19.0, abs=4.0)
    lost, media = loss("bypass.1.1")
    assert lost == 0.0
    assert media.delay_ms(99) < 0.5


@pytest.mark.parametrize("key", ["caps.2.2", "caps.2.3"])
def test_capped_io_domain_loses_nearly_all(key):
    assert loss(key)[0] > 80.0


@pytest.mark.thorough
def test_four_cores_carry_720_streams_only_with_more_than_one_driver_vcpu():
    """One vCPU: 3 + 2*20 us at 36,000 packets a second is 1.55 CPUs, so it loses; several: 0."""
    assert loss("turnkey4.720")[0] == 0.0
    assert loss("turnkey4.720", "domains.dom0.driver.placement=one")[0] > 20.0


@pytest.mark.parametrize(
    ("lost", "objective", "holds"),
    [((47.5, 23.0, 0.0), 5.0, True), ((45.0, 23.1, 0.0), 4.2025, False), ((45.0, 19.0, 0.2), 1.0, False)],
)
def test_a_point_of_the_fit_is_judged_by_the_stated_figures(monkeypatch, lost, objective, holds):
    """45 % in weights of 2.5, within 5; 19 % in weights of 2, within 4; at most 0.1 %, in weights of that."""
    percent = dict(zip(("pinning.2.1", "turnkey2.D", "turnkey4.720"), lost, strict=True))
    figures = {name: {"dropped": [0.0, 2 * value], "known_of": [100.0, 100.0]} for name, value in percent.items()}
    monkeypatch.setattr("vftsim.records.runner.Record.play", lambda self, runs, case: figures[runs.name])
    found = FITS["any vCPU"].point((20.0, 18.0), FITS["any vCPU"].fit.finer)
    assert found.figures == pytest.approx(percent)
    assert found.objective == pytest.approx(objective)
    assert found.holds is holds


def test_a_point_that_is_far_off_is_not_played_further(monkeypatch):
    played = []

    def play(self, runs, case):
        played.append(runs.name)
        return {"dropped": [100.0], "known_of": [100.0]}

    monkeypatch.setattr("vftsim.records.runner.Record.play", play)
    assert not FITS["any vCPU"].point((20.0, 18.0), FITS["any vCPU"].fit.first).holds
    assert played == ["pinning.2.1"]


def test_finer_grids_follow_the_best_point_until_it_is_none_of_an_edge(monkeypatch):
    """The least is at 21 and 31 us: off the first grid (15, 26), on the edge of the second, inside the third."""

    def points(self, grid, budget, jobs):
        return [fit.Point(v, {"x": 0.0}, (v[0] - 21.0) ** 2 + (v[1] - 31.0) ** 2 / 4, True) for v in grid]

    monkeypatch.setattr(fit.Case, "points", points)
    found = FITS["any vCPU"].search(1)
    assert found[0].values in {(21.0, 30.0), (21.0, 32.0)}
    assert len(found) == len({point.values for point in found})


def test_costs_become_assignments():
    system = experiment("mixed.D", overrides(13.0, 7.0))
    for name in ("media", "signaling"):
        path = system.domains[name].interfaces["eth0"].path
        assert (path.backend_receive_cost, path.backend_transmit_cost) == (13_000, 13_000)
    assert system.domains["media"].applications["relay"].packet_cost == 7_000


def test_tables():
    def one(key, verdict, statement="worse_than:b"):
        return Judged(key, "loss", statement, "1 % against 2 %", verdict)

    right, wrong = [one("a", "holds"), one("b", "missed", "zero")], [one("a", "missed"), one("b", "missed", "zero")]
    assert score(right) == {"numbers and words": {"missed": 1}, "ordinal": {"holds": 1}}
    assert separating({RIGHT: right, "wrong": wrong}, RIGHT) == [
        ("a: loss worse_than:b", "holds (1 % against 2 %)", "missed (1 % against 2 %)")
    ]


def test_a_mean_leaves_out_replications_without_a_value():
    """Voice quality has none where so much is lost that the E-model says nothing."""
    assert known_mean([4.0, None, 2.0]) == 3.0
    assert known_mean([None, None]) is None


def test_every_structure_is_a_model():
    for case in RECORD.spec.axes["model"].values():
        experiment("mixed.D", case["structure"])


def test_an_experiment_in_which_nothing_comes_through_has_no_delay():
    """Capped driver domains lose all: the delays are nan, and the table says so."""
    found = run_experiment(
        experiment("caps.2.2", [*overrides(30.0, 5.0), "measure.duration=300 ms", "measure.warm_up=100 ms"]),
        {"seed": 1, "replications": 1},
    )
    assert found["mean"]["loss_percent"] == 100.0
    assert math.isnan(found["mean"]["delay_mean_ms"])
    assert math.isnan(found["outcome"]["delay_p99_ms"][0])


def test_the_shipped_verdicts_are_those_of_the_shipped_results():
    shipped = json.loads((shipped_dir("calibration") / "xen-media" / "record.json").read_text(encoding="utf-8"))
    assert list(shipped["models"]) == [shipped["right"], *RECORD.with_models(["all"]).models]
    for entry in shipped["models"].values():
        assert score(judge_all(entry["results"])) == entry["score"]


@pytest.mark.parametrize("model", RECORD.spec.axes["model"])
def test_every_experiment_is_a_model_under_every_structure(model):
    rivals = RECORD.with_models(["all"])
    for key in ("mixed.D", "mixed.N", "bypass.1.1", "turnkey4.720"):
        assert rivals.model(f"{key}, {model}").measure.duration == 2_000_000_000
