"""Errors of held-out rows as ranges for others: order statistics by hand, coverage, and what refuses a file."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from tests.calibrate.test_prediction import FIT
from tests.study.tiny import tiny
from vftsim.calibrate.accuracy import Row, StructureError, each_left_out, read_held_out
from vftsim.cli.main import main
from vftsim.errors import UsageError


def row(measured, predicted, quantity="cpu", environment="a", phase="r1", half=0.0):
    return Row(environment, phase, quantity, "out", measured, predicted, predicted - half, predicted + half, 2, {})


def test_of_thirty_nine_errors_the_second_from_either_end_bounds_nine_of_ten():
    error = StructureError.learned(row(50.0 + e, 50.0) for e in range(-19, 20))
    assert error.around("cpu", 60.0, 60.0, 60.0) == (60.0 - 18.0, 60.0 + 18.0)
    few = StructureError.learned(row(50.0 + e, 50.0) for e in (-3, 1))
    assert few.around("cpu", 60.0, 60.0, 60.0) == (57.0, 61.0)
    assert few.around("cpu", 2.0, 1.5, 2.5) == (0.0, 3.0), "no CPU is busy for less than no time"


def test_delays_err_by_a_factor_and_a_range_is_never_narrower_than_that_of_the_runs():
    error = StructureError.learned(row(1.5 * p, p, "SES1/p90") for p in (1.0, 10.0, 100.0))
    low, high = error.around("REL1/p50", 20.0, 19.0, 22.0)
    assert (low, high) == (19.0, pytest.approx(30.0))
    assert error.around("REL1/p50", 20.0, 5.0, 90.0) == (5.0, 90.0)
    assert error.around("cpu", 20.0, 19.0, 22.0) == (19.0, 22.0)


def test_nine_of_ten_are_held_where_errors_come_alike():
    """n + 1 errors that could stand in any order: the last lies inside with a chance of at least 0.9."""
    draws = np.random.default_rng(5).standard_t(3, (4000, 60))
    inside = 0
    for errors in draws:
        learned = StructureError.learned(row(50.0 + e, 50.0) for e in errors[:-1])
        low, high = learned.around("cpu", 50.0, 50.0, 50.0)
        inside += low <= 50.0 + errors[-1] <= high
    assert 0.89 < inside / len(draws) < 0.96


def test_a_run_is_judged_by_others_and_not_by_itself():
    """Errors of 1 in one environment, of 5 in the other's two runs: those hold each other, nothing else holds them."""
    rows = [row(51.0, 50.0, phase=f"r{n}") for n in range(3)]
    rows += [row(55.0, 50.0, environment="b", phase=f"r{n}") for n in range(2)]
    first, second = each_left_out(rows)
    assert (first.rows, first.in_own_range, first.by_runs, first.by_environments) == (3, 0, 3, 3)
    assert (second.rows, second.in_own_range, second.by_runs, second.by_environments) == (2, 0, 2, 0)
    lonely = each_left_out([*rows[:3], rows[3]])[1]
    assert (lonely.rows, lonely.by_runs) == (1, 0)


def test_a_prediction_has_the_range_beside_its_own(tmp_path, capsys):
    (tmp_path / "tiny.yaml").write_text(
        tiny(steps="{initial: 10 /s, increment: 10 /s, duration: 4 s, transient: 1 s, most: 1}")
    )
    (tmp_path / "fit.json").write_text(json.dumps(FIT))
    lines = [asdict(row(50.0 + e, 50.0, half=1.0)) for e in (-4.0, 25.0)]
    (tmp_path / "rows.json").write_text(json.dumps({"rows": lines}))
    words = [
        "predict",
        str(tmp_path / "tiny.yaml"),
        "--fit",
        str(tmp_path / "fit.json"),
        "--draws",
        "2",
        "-q",
        "-j",
        "1",
    ]
    words += ["--held-out", str(tmp_path / "rows.json"), "--figure", "cpu"]
    assert main([*words, "--json"]) == 0
    figure = json.loads(capsys.readouterr().out)["figures"][0]
    assert figure["learned_high"] == pytest.approx(max(figure["high"], figure["mean"] + 25.0))
    assert figure["learned_low"] == pytest.approx(min(figure["low"], figure["mean"] - 4.0))
    assert figure["learned_from"] == 2
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "of the errors of 2 held-out figures" in out
    assert "of fewer than 19 it holds less" in out


def test_shipped_rows_are_read_and_mistakes_are_told(tmp_path):
    assert read_held_out("linux-lab").runs == 22
    assert math.isfinite(read_held_out("sip-lab").around("cpu", 50.0, 50.0, 50.0)[1])
    with pytest.raises(UsageError, match="no shipped lab's held-out rows of that name; did you mean 'linux-lab'"):
        read_held_out("linux")
    wrong = tmp_path / "rows.json"
    wrong.write_text('{"rows": [{"environment": "a"}]}')
    with pytest.raises(UsageError, match=r"not what 'vftsim validate' wrote: rows\.0\.phase: Field required"):
        read_held_out(str(wrong))
    wrong.write_text(json.dumps({"rows": [asdict(row(0.0, 5.0, "SES1/p90"))]}))
    with pytest.raises(UsageError, match="a delay of 0 or less has no ratio"):
        read_held_out(str(wrong))
