"""The experiment that measures coverage: it can fail, it measures what commands print, its page is its own."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from vftsim import stats

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments" / "interval-coverage"
RULES = {name for name in stats.__all__ if name.endswith(("_interval", "_range"))} | {
    "ratio_of_sums",
    "capacity_search",
}
NO_INTERVALS = {"runs_range", "quantile_interval"}
"""Shown as the runs' range, and the order statistics behind median_interval."""


@pytest.fixture(scope="module")
def experiment():
    sys.path.insert(0, str(FOLDER))
    try:
        import interval_coverage

        yield interval_coverage
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("interval_coverage", None)
        sys.modules.pop("output_models", None)


def imported(path):
    """Names that a file takes from vftsim.stats."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vftsim.stats"):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("room", ["study", "report", "calibrate", "cli"])
def test_commands_print_no_interval_that_is_not_measured(experiment, room):
    """An unmeasured rule, Student's t among them, needs a row in the experiment before a command may print it."""
    used = {name: path for path in (ROOT / "vftsim" / room).rglob("*.py") for name in imported(path)}
    unmeasured = {name: str(path) for name, path in used.items() if name in RULES}
    assert not {n: p for n, p in unmeasured.items() if n not in {*experiment.MEASURED, *NO_INTERVALS}}


def test_every_measured_rule_is_printed_by_some_command(experiment):
    used = {
        n
        for room in ("outcome", "study", "report", "calibrate")
        for p in (ROOT / "vftsim" / room).rglob("*.py")
        for n in imported(p)
    }
    assert set(experiment.MEASURED) <= used


def test_a_rule_that_covers_too_rarely_or_too_often_fails(experiment):
    def verdict(right, *, printed=1000, is_bound=False):
        return experiment.Cell("rule", "output", "10", 1000, printed, right, 0.0, is_bound).verdict

    assert verdict(950) == "holds"
    assert verdict(900) == verdict(1000) == "FAILS"
    assert verdict(1000, is_bound=True) == "at least"
    assert verdict(900, is_bound=True) == "FAILS"
    assert verdict(0, printed=0) == "not printed"
    assert verdict(60, printed=100) == "rarely printed", "40 wrong intervals in 1,000 studies"
    assert verdict(20, printed=100) == "FAILS"


@pytest.mark.thorough
def test_students_t_on_bimodal_output_would_be_found_out(experiment, monkeypatch):
    """The experiment with the rule that it replaced: collapses in 30 % of runs, n = 3."""
    monkeypatch.setattr(experiment, "mean_interval", stats.t_interval)
    rng = np.random.default_rng(1)
    collapses = [output for output in experiment.outputs(rng) if output.name.startswith("collapse")]
    assert any(c.verdict == "FAILS" and c.n == "3" for c in experiment._means(rng, collapses, 200))


@pytest.mark.slow
def test_a_short_run_of_the_experiment_holds(experiment):
    """300 studies a row; limits widen with the standard error."""
    cells = experiment.measure(300, seed=2)
    assert [c for c in cells if c.verdict == "FAILS"] == []
    assert {c.n for c in cells} >= {"3", "5", "10", "30"}
    rows = [line for line in table_of_the_page(experiment).splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(cells), "the page is of another version of the experiment"


def table_of_the_page(experiment):
    text = experiment.PAGE.read_text(encoding="utf-8")
    return text[text.index(experiment.BEGIN) : text.index(experiment.END)]


def test_the_page_holds_a_table_without_failures(experiment):
    table = table_of_the_page(experiment)
    assert table.count("| holds |") > 50
    assert "FAILS" not in table
