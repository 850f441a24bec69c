"""Profiles and coverage of fits, on models in place of simulations whose answers are known."""

import json

import numpy as np
import pytest

from tests.calibrate.test_fit import PROXY, definition, lab
from tests.calibrate.two_guests import CPU, DATASET, FIT, SPIN
from vftsim.calibrate import fit as fit_module
from vftsim.calibrate.fit import coverage_of, profiles_of, search_for
from vftsim.cli.main import main
from vftsim.composition.keys import read

COST, AFTER = f"{PROXY}.touch_cost", f"{PROXY}.work_after_send"
LOW, SPAN = 300_000.0, 1_200_000.0
STEPS = [f"step_{n:02}" for n in range(1, 13)]
SLOPES = np.array([[30.0, 10.0 * (-1) ** n] for n in range(12)]) + np.linspace(0.0, 8.0, 12)[:, None]
NOISE = 1.0
TRUTH = {COST: LOW + 0.5 * SPAN, AFTER: 0.4}


def cpu(spec):
    """A straight line over both parameters, in shares of their boxes."""
    units = np.array([(read(spec, COST) - LOW) / SPAN, read(spec, AFTER) / 0.8])
    return 50.0 + SLOPES @ (units - 0.5)


@pytest.fixture
def noisy(monkeypatch):
    def observe(spec, seed, replication):
        noise = np.random.default_rng((seed, replication)).normal(0.0, NOISE, 12)
        return {(step, "cpu"): float(value) for step, value in zip(STEPS, cpu(spec) + noise, strict=True)}

    monkeypatch.setattr(fit_module, "observe", observe)


def asked(replications=4):
    cost = {"path": COST, "low": "0.3 ms", "high": "1.5 ms", "start": "0.8 ms", "meaning": "cost"}
    after = {"path": AFTER, "low": 0.0, "high": 0.8, "start": 0.5, "meaning": "share"}
    return definition(parameters=[cost, after], in_sample=STEPS, replications=replications, cpu_scale_points=1.0)


def found(replications=4):
    data = {(step, "cpu"): 50.0 + 0.3 * (-1) ** (n // 2) for n, step in enumerate(STEPS)}
    return search_for(asked(replications), lab(), data, at=TRUTH)


def test_a_profile_is_the_least_squares_with_the_parameter_held(noisy):
    """Linear, so by hand: squares at the place, less what the other column takes of them."""
    fitted = found()
    search, at = fitted.search, fitted.units
    (residuals,) = search.residuals([at], 4)
    first, second = profiles_of(search, at, fitted.matrix, 4)
    assert (first.path, len(first.values)) == (COST, 10)
    for value, squares in zip(first.values, first.squares, strict=True):
        moved = residuals + SLOPES[:, 0] * ((value - LOW) / SPAN - 0.5)
        other = SLOPES[:, 1]
        share = np.clip(-(moved @ other) / (other @ other), -0.5, 0.5)
        if value != TRUTH[COST]:
            best = moved + other * share
            assert squares == pytest.approx(best @ best / (residuals @ residuals), rel=1e-6)
    assert first.limit == pytest.approx(1.0 + 4.965 / 10.0, abs=1e-3)  # F(0.95; 1, 10)
    assert min(second.squares) <= 1.0


def test_intervals_hold_the_truth_of_nineteen_in_twenty_laboratories(noisy):
    fitted = found()
    cost, _ = coverage_of(fitted.search, fitted.units, fitted.matrix, 200, 1)
    assert (cost.path, cost.laboratories, cost.left_open) == (COST, 200, 0)
    assert cost.truth == pytest.approx(TRUTH[COST])
    assert cost.mean_value == pytest.approx(cost.truth, rel=0.02)
    assert cost.inside >= 180


def test_both_are_printed_and_recorded_at_an_earlier_fit(monkeypatch, tmp_path, capsys):
    """Nothing is searched: the fit has the values it was given."""
    monkeypatch.setattr(
        fit_module,
        "observe",
        lambda spec, seed, _: {("measured", "cpu.small"): spec.domains["small"].weight / 2.0 + seed % 3},
    )
    for name, text in (("two-guests.yaml", SPIN), ("dataset.yaml", DATASET), ("cpu.csv", CPU), ("fit.yaml", FIT)):
        (tmp_path / name).write_text(text)
    words = ["calibrate", str(tmp_path / "fit.yaml"), "-j", "1", "-q"]
    assert main([*words, "-o", str(tmp_path / "first.json")]) == 0
    first = json.loads((tmp_path / "first.json").read_text())["parameters"]
    capsys.readouterr()
    words += ["--at", str(tmp_path / "first.json"), "--profile", "--coverage", "4"]
    assert main([*words, "--json", "--report", str(tmp_path / "page.html")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {k: p["value"] for k, p in record["parameters"].items()} == {k: p["value"] for k, p in first.items()}
    assert record["evaluations"] == 0
    assert [each["path"] for each in record["profiles"]] == list(first)
    assert record["coverage"][0]["laboratories"] == 4
    assert "Profile of domains.small.weight" in (tmp_path / "page.html").read_text()
    assert main([*words[:-1], "1"]) == 2
    assert "--coverage: from 2 to 1000 laboratories, got 1" in capsys.readouterr().err
    (tmp_path / "fit.yaml").write_text(FIT.replace("low: 60, high: 900, start: 100", "low: 6, high: 9, start: 7"))
    assert main(words[:7]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert f"is {first['domains.small.weight']['value']:.6g} in" in printed
    assert "outside of 6 to 9, the bounds of this calibration" in printed
    assert main(["calibrate", str(tmp_path / "fit.yaml"), "--at", "sip-lab/ft", "-q"]) == 2
    assert "has no value for domains.small.weight" in " ".join(capsys.readouterr().err.split())
