"""Intervals hold the chance of runs, on linear problems whose answer is known and on a fit of its own."""

import json
import math
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from tests.calibrate.test_fit import PROXY, definition, lab
from tests.calibrate.two_guests import CPU, DATASET, FIT, SPIN
from vftsim.calibrate import fit as fit_module
from vftsim.calibrate.fit import search_for
from vftsim.calibrate.intervals import fit_at
from vftsim.cli.main import main
from vftsim.composition.keys import read

TRUTH, OBSERVATIONS, PARAMETERS = 0.5, 24, 3
KEYS = [(f"step_{k}", "cpu") for k in range(OBSERVATIONS)]
COST = f"{PROXY}.touch_cost"
WEIGHT = "domains.small.weight"


def linear(rng, matrix, data, runs, replications):
    """Fit a linear problem with scatter of each number and of whole runs, the measured one and each replication.

    Yields the fit with the residuals of the replications, and that without.
    """
    names = [SimpleNamespace(path=f"p{k}") for k in range(PARAMETERS)]
    asked = SimpleNamespace(parameters=names, seed=1, replications=replications)
    measured, *moves = rng.normal(0.0, runs, (1 + replications, PARAMETERS)) @ matrix.T
    noise = rng.normal(0.0, data, OBSERVATIONS) + measured
    x = TRUTH + np.linalg.pinv(matrix) @ (noise - np.mean(moves, axis=0))
    apart = [matrix @ (x - TRUTH) + move - noise for move in moves]
    residual = np.mean(apart, axis=0)
    found = SimpleNamespace(x=x, fun=residual, jac=matrix, cost=0.5 * float(residual @ residual), nfev=1)
    keys, low, span = KEYS, np.zeros(PARAMETERS), np.ones(PARAMETERS)
    yield fit_at(asked, keys, found, low, span, apart)
    yield fit_at(asked, keys, found, low, span)


def coverage(studies, without_it, **scatter):
    """Return the shares of intervals with and, of so many studies, without the chance of runs that hold the truth."""
    rng, inside = np.random.default_rng(5), np.zeros(2)
    matrix = 200.0 * rng.normal(size=(OBSERVATIONS, PARAMETERS))
    for study in range(studies):
        both = islice(linear(rng, matrix, **scatter), 2 if study < without_it else 1)
        for which, found in enumerate(both):
            inside[which] += sum(found.low[path] <= TRUTH <= found.high[path] for path in found.values)
    return inside / (np.array([studies, without_it]) * PARAMETERS)


@pytest.mark.parametrize("replications", [2, 10])
def test_nineteen_of_twenty_intervals_hold_the_truth_where_only_runs_scatter(replications):
    """The measured one and replications alike: Student's t, R - 1 degrees; parameters of a study are independent."""
    with_it, without = coverage(300, 60, data=1e-4, runs=0.01, replications=replications)
    assert with_it == pytest.approx(0.95, abs=3.5 * math.sqrt(0.95 * 0.05 / 900))
    assert without < 0.05


def test_both_kinds_of_scatter_together():
    """Numbers move a parameter by 1/200 / sqrt(24) or so, five runs by as much; a sum of the two is no t: 94-98 %.

    Without the chance of runs: P(|normal with variance 2| < 2.1) = 86 % or so.
    """
    with_it, without = coverage(400, 400, data=1.0, runs=1.0 / (200.0 * math.sqrt(24 * 1.25)), replications=4)
    assert 0.93 < with_it < 0.99
    assert without < 0.90
    assert with_it - without > 0.06


def test_the_share_of_runs_is_that_of_the_variance():
    """Equal parts of 2,000 replications (whose t is a normal) and of the data: one half; the data alone: none."""
    rng = np.random.default_rng(6)
    matrix = np.linalg.qr(rng.normal(size=(OBSERVATIONS, PARAMETERS)))[0]
    found, without = linear(rng, matrix, data=0.01, runs=0.01, replications=2000)
    residual = np.array(list(found.residuals.values()))
    of_data = residual.var() * OBSERVATIONS / (OBSERVATIONS - PARAMETERS) * (2.080 / 1.960) ** 2
    for share in found.chance_share.values():
        assert share == pytest.approx(1e-4 / (1e-4 + of_data), abs=0.06)
    assert without.chance_share == {}


def test_correlations_hold_the_chance_of_runs():
    """Replications that move two parameters alike make them correlated, whatever the data say."""
    rng = np.random.default_rng(7)
    matrix = 200.0 * np.linalg.qr(rng.normal(size=(OBSERVATIONS, 2)))[0]
    asked = SimpleNamespace(parameters=[SimpleNamespace(path="a"), SimpleNamespace(path="b")], seed=1, replications=4)
    noise = 1e-3 * rng.normal(size=OBSERVATIONS)
    noise -= matrix @ np.linalg.pinv(matrix) @ noise
    apart = [noise + matrix @ np.array([way, way]) for way in (0.01, -0.02, 0.03, -0.02)]
    found = SimpleNamespace(x=np.array([0.5, 0.5]), fun=noise, jac=matrix, cost=0.5 * float(noise @ noise), nfev=1)
    result = fit_at(asked, KEYS, found, np.zeros(2), np.ones(2), apart)
    assert result.correlations["a ~ b"] > 0.999
    assert fit_at(asked, KEYS, found, np.zeros(2), np.ones(2)).correlations["a ~ b"] < 0.1
    # Sample deviation 0.0245, of one run and the mean of four, times the 97.5 % point of t with three degrees.
    assert result.high["a"] - 0.5 == pytest.approx(3.182 * 0.02449 * math.sqrt(1.25), rel=0.06)


@pytest.mark.parametrize(("count", "within"), [(8, 0.06), (3, 0.2)])
@pytest.mark.parametrize("other", ["SES1/p50", "ihs/global"])
def test_cpu_that_scatters_far_and_what_hardly_does_have_each_their_own_intervals(count, within, other):
    """A few CPU rows tell one parameter, forty others another: each has the textbook's t interval of its own rows.

    Scatter of 4 and 0.1 scales taken as one of 1.8 would give 0.4 and 17 times the half widths.
    """
    rng = np.random.default_rng(8)
    keys = [*KEYS[:count], *((f"step_{k}", other) for k in range(40))]
    matrix, noise, half_widths = np.zeros((count + 40, 2)), np.zeros(count + 40), []
    for column, rows, scatter in ((0, slice(0, count), 4.0), (1, slice(count, count + 40), 0.1)):
        x = 100.0 * rng.uniform(0.3, 1.0, rows.stop - rows.start)
        e = rng.normal(0.0, scatter, len(x))
        e -= e.mean() + (x - x.mean()) * (x @ (e - e.mean())) / (x @ (x - x.mean()))
        matrix[rows, column], noise[rows] = x, e
        deviation = math.sqrt(e @ e / (len(x) - 1) / (x @ x))
        half_widths.append({8: 2.3646, 3: 4.3027, 40: 2.0227}[len(x)] * deviation)  # 97.5 % points of t, 7, 2, 39
    asked = SimpleNamespace(parameters=[SimpleNamespace(path="a"), SimpleNamespace(path="b")], seed=1, replications=1)
    found = SimpleNamespace(x=np.array([0.5, 0.5]), fun=noise, jac=matrix, cost=0.5 * float(noise @ noise), nfev=1)
    result = fit_at(asked, keys, found, np.zeros(2), np.ones(2))
    for name, half_width in zip("ab", half_widths, strict=True):
        assert (result.high[name] - result.low[name]) / 2.0 == pytest.approx(half_width, rel=within)


def test_one_observation_for_each_parameter_has_it_too():
    """Nothing to resample: the interval of one scale, and the replications' beside it."""
    asked = SimpleNamespace(parameters=[SimpleNamespace(path="a")], seed=1, replications=3)
    found = SimpleNamespace(x=np.array([0.5]), fun=np.zeros(1), jac=np.array([[40.0]]), cost=0.0, nfev=1)
    apart = [np.array([way]) for way in (-2.0, 1.0, 1.0)]
    with_it, without = (fit_at(asked, [("s", "cpu")], found, np.zeros(1), np.ones(1), each) for each in (apart, ()))
    half = [(each.high["a"] - each.low["a"]) / 2.0 for each in (with_it, without)]
    half_width = (
        4.303 * math.sqrt(3.0 + 3.0 / 3.0) / 40.0
    )  # sample variance 3, of one and the mean of three; two degrees
    assert half[0] == pytest.approx(math.hypot(half[1], half_width), rel=0.05)
    assert with_it.chance_share["a"] == pytest.approx(half_width**2 / (half_width**2 + half[1] ** 2), rel=0.05)


def test_a_fit_hands_over_what_each_replication_says(monkeypatch):
    """CPU is 40 points over the bounds; four replications add -1, 0, 0 and 1 point: 2.5 % of the bounds a point.

    A fit of fewer than eight plays eight, twice these: of one, its own chance is as large as that of the measured run.
    """
    monkeypatch.setattr(
        fit_module,
        "observe",
        lambda spec, seed, replication: {
            (f"step_{n}", "cpu"): 40.0 * (read(spec, COST) - 300_000.0) / 1_200_000.0
            + (-1.0, 0.0, 0.0, 1.0)[replication % 4]
            for n in (1, 2)
        },
    )
    data = {("step_1", "cpu"): 20.0, ("step_2", "cpu"): 20.002}
    asked = definition(), definition(replications=4)
    one, four = (search_for(each, lab(), data).fit for each in asked)
    assert list(one.chance_share) == list(four.chance_share) == [COST]
    for found, half_width in ((four, 2.365 * math.sqrt(4.0 / 7.0 * 1.25)), (one, 2.365 * math.sqrt(4.0 / 7.0 * 2.0))):
        half = (found.high[COST] - found.low[COST]) / 2.0
        assert half == pytest.approx(half_width * 0.025 * 1_200_000.0, rel=0.06)


def test_the_table_and_the_record_say_whether_intervals_hold_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        fit_module,
        "observe",
        lambda spec, seed, replication: {("measured", "cpu.small"): spec.domains["small"].weight / 2.0 + replication},
    )
    for name, text in (("two-guests.yaml", SPIN), ("dataset.yaml", DATASET), ("cpu.csv", CPU)):
        (tmp_path / name).write_text(text)
    words = ["calibrate", str(tmp_path / "fit.yaml"), "-j", "1", "-q"]
    (tmp_path / "fit.yaml").write_text(FIT)
    assert main([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["chance_of_runs"]
    assert (printed["replications"], printed["in_intervals"], list(printed["share_of_variance"])) == (1, True, [WEIGHT])
    (tmp_path / "fit.yaml").write_text(f"{FIT}replications: 3\n")
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "of chance" in out
    assert "8 replications" in " ".join(out.split())
    assert main([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["chance_of_runs"]
    assert printed["in_intervals"]
    assert 0.0 < printed["share_of_variance"][WEIGHT] < 1.0
