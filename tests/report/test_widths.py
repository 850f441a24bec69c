"""No line of a result is longer than the terminal; what commands print is kept as text beside this file.

``VFTSIM_KEEP_TEXTS=1 pytest tests/report/test_widths.py`` writes the texts anew: look at what changed.
"""

import os
from pathlib import Path

import pytest

import vftsim
from tests.report.conftest import COMMANDS
from vftsim.report.blocks import Answer, Counted, Marked, Note, Table, Timeline, shown
from vftsim.report.terminal import as_text
from vftsim.stats import Estimate

# Beside the tests of pages: one worker makes the results, and makes them once.

KEPT = Path(__file__).parent / "shown"
WIDTHS = (60, 80, 100, 200)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", COMMANDS)
def test_no_line_is_longer_than_the_terminal(made, kind):
    blocks = vftsim.open(made(kind).folder).blocks()
    for width in WIDTHS:
        lines = as_text(blocks, width).splitlines()
        assert max(map(len, lines)) <= width
        assert all(line == line.rstrip() for line in lines)


def test_fits_and_validations_keep_to_the_width_too(calibrated, validated):
    for result in (calibrated, validated):
        for width in WIDTHS:
            assert max(map(len, as_text(result.blocks(), width).splitlines())) <= width


@pytest.mark.thorough
@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("kind", ["failover", "availability", "ramp", "levels", "predict"])
def test_what_a_command_prints_is_as_it_was(made, kind, width):
    text = as_text(vftsim.open(made(kind).folder).blocks(), width) + "\n"
    kept = KEPT / f"{kind}-{width}.txt"
    if os.environ.get("VFTSIM_KEEP_TEXTS"):
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")


def interval(value, half):
    return Estimate(value, half, value - half, value + half, 10, 0.95, "t")


def test_an_interval_stands_behind_its_figure_where_there_is_room_and_below_where_there_is_none():
    table = Table(("name", "a figure", "another"), [["first", interval(12.3456, 0.12), interval(1e6, 2e4)]])
    wide, narrow = (
        as_text([table], 80).splitlines(),
        as_text([Table(["n" * 30, *table.columns[1:]], [["n" * 30, *table.rows[0][1:]]])], 60).splitlines(),
    )
    assert wide[2].split() == ["first", "12.35", "±", "0.12", "1,000,000", "±", "20,000"]
    assert narrow[2].split()[1:] == ["12.35", "1,000,000"]
    assert narrow[3].split() == ["±", "0.12", "±", "20,000"]


def test_an_address_that_is_too_long_for_its_column_is_broken_at_a_dot_and_no_number_is():
    """Cut at the width, the first line ended in 'rate=74.'."""
    row = ["0: workloads.pages.rate=74.8818 /s, weight=1", Estimate(36.0, 20.5, 24.0, 65.0, 15, 0.95, "range")]
    lines = as_text([Table(["point", "workloads.other-pages.latency.p95"], [row])], 60).splitlines()
    assert [line[:25].rstrip() for line in lines[-3:]] == ["0: workloads.pages.", "  rate=74.8818 /s,", "  weight=1"]


def test_a_column_that_would_break_a_number_stands_apart():
    """In a column of 16 'cpu_inflation=1.0521' became 'cpu_', 'inflation=1.05', '21'."""
    row = ["cpu_inflation=1.0521", *[interval(123456.0, 1234.0)] * 4]
    lines = as_text([Table(["point", "a" * 10, "b" * 10, "c" * 10, "d" * 10], [row])], 64).splitlines()
    assert [line.split()[0] for line in lines if "=" in line] == ["cpu_inflation=1.0521"] * 2


def test_a_name_that_is_too_long_between_dots_is_broken_at_a_hyphen():
    """Each was cut at the width, within 'registrar', 'output' and 'checkpoints'; what is one word is cut."""
    names = {
        "domains.front.registrar_of_all_subscribers.calls": "domains.front.registrar_|of_all_subscribers.|calls",
        "interval-coverage-of-output-models": "interval-coverage-of-|output-models",
        "two_guests_with_checkpoints+rate=1000 /s": "two_guests_with_|checkpoints+rate=1000|/s",
        "n" * 30: "n" * 22 + "|" + "n" * 8,
    }
    for name, said in names.items():
        row = [name, *[interval(123456.0, 1234.0)] * 3]
        lines = as_text([Table(["of a name", "a" * 10, "b" * 10, "c" * 10], [row])], 60).splitlines()[2:]
        assert "|".join(line[:24].strip() for line in lines) == said


def test_what_fits_in_no_column_is_a_figure_a_line():
    table = Table(("name", "heading" * 8), [["first", interval(1.0, 0.1)]])
    lines = as_text([table], 60).splitlines()
    assert lines[0] == "first"
    assert lines[1].startswith(f"    {'heading' * 7}")
    assert lines[2].endswith(": 1.00 ± 0.10")


def test_digits_are_those_that_the_interval_carries():
    bound = Estimate(0.0, 0.0, 0.0, 0.17, 20, 0.95, "upper bound")
    same = interval(0.14981, 1e-8)
    cells = [interval(20.1234, 0.034), interval(123456.0, 789.0), bound, Marked(50.0, " *"), Counted("3", "(> 29 %)")]
    rows = [["", cell] for cell in (*cells, same, float("nan"), None)]
    lines = as_text([Table(("", "a"), rows)], 80).splitlines()[2:]
    assert [line.strip() for line in lines] == [
        "20.12 ± 0.03",
        "123,456 ± 789",
        "< 0.170",
        "50 *",
        "3 (> 29 %)",
        "0.1498",
        "-",
        "-",
    ]


@pytest.mark.parametrize(
    ("mean", "low", "high", "behind"), [(24.5, 0, 50, "[0, 50]"), (24.5, -0.5, 49.5, "± 25"), (25, 0, 50, "± 25")]
)
def test_what_cannot_be_negative_is_not_shown_as_if_it_could(mean, low, high, behind):
    """A capacity between 0 and 50 read 24 ± 25."""
    assert shown(Estimate(mean, (high - low) / 2.0, low, high, 10, 0.95, "order statistic"))[1] == behind


def test_notes_follow_each_other_and_other_blocks_stand_apart():
    blocks = [Note("one"), Note("two"), Answer("three", "How many?"), Timeline("When", [(0.5, "crash")])]
    assert as_text(blocks, 80) == "one\ntwo\nHow many? three\n\nWhen\n    0.500000 s  crash"
