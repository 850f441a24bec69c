"""The script that fills the pages with figures: what marks mean, what counts as the same, what is printed."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments" / "shown"))
import journal  # noqa: E402
import pages  # noqa: E402
import shown  # noqa: E402

RESULT = {
    "comparison": [{"model": "a", "figure": "saps", "estimate": 98.42}, {"model": "b", "figure": "saps"}],
    "rows": [
        {"quantity": "REL1/p50", "error": -0.5},
        {"quantity": "p90", "error": -0.1},
        {"quantity": "c", "error": 9},
    ],
    "verdicts": [{"found": "8.2 % over 28 percentiles"}],
}
REPORT = "# Title\n\n## First\n\n| x | y |\n| --- | --- |\n| a | held |\n| b | missed |\n\n## Second\n\ntext\n"


@pytest.fixture
def results(tmp_path):
    (tmp_path / "report.md").write_text(REPORT)
    return pages.Results(json.dumps(RESULT), tmp_path, {"safe": "comparison[model=a].estimate as .0f"})


def test_marks_lead_to_figures_texts_and_tables(results):
    assert results.what("comparison[model=a,figure=saps].estimate as .1f") == "98.4"
    assert results.what("safe") == "98"
    assert results.what("verdicts[0].found /(\\S+) % over/") == "8.2"
    assert results.what("comparison[model=b].estimate as .1f else none") == "none"
    assert results.what("@report.md ## Second") == "text"
    assert results.what("rows[*quantity~p\\d].error median as .0%") == "-30%"
    assert results.what("rows[*quantity~p\\d].error worst as +.1f") == "-0.5"
    assert results.what("rows[*].error sum as .1f") == "8.4"
    assert results.what("text: '@report.md ## First'\nlines: missed\n").splitlines()[2:] == ["| b | missed |"]
    table = results.what("head: m\nrows: {a: A, b: B}\ncolumns:\n  x: comparison[model={row}].estimate as .0f else\n")
    assert table == "| m | x |\n| --- | --- |\n| A | 98 |\n| B | |"


@pytest.mark.parametrize(
    "what", ["comparison[model=c].estimate", "@report.md ## Third", "@nothing.md", "verdicts[0].found /(x)/"]
)
def test_what_is_not_there_is_an_error(results, what):
    with pytest.raises(pages.ShownError, match="not in the results"):
        results.what(what)


@pytest.mark.parametrize(
    ("old", "new", "tolerance", "same"),
    [
        ("| 0.150 | 2,400 |", "|0.151|2,400|", 0.0, True),
        ("0.150", "0.152", 0.0, False),
        ("98", "99", 0.0, False),
        ("98", "99", 0.02, True),
        ("-1.5 points", "+1.5 points", 0.0, False),
        ("12.0 s", "12.0 ms", 0.0, False),
        ("5 and 6", "5", 0.0, False),
        ("| a |\n| --- |", "| a |\n|---|", 0.0, True),
        ("0 lost", "1 lost", 1.0, False),
        ("1 s", "2 s", 1.0, True),
    ],
)
def test_figures_agree_within_the_last_digit_or_the_tolerance(old, new, tolerance, same):
    assert pages.agree(old, new, tolerance) is same


@pytest.mark.parametrize(("events", "seconds", "same"), [("100", "0.9", True), ("101", "0.5", False)])
def test_what_a_run_counts_has_no_tolerance_beside_what_a_machine_takes(events, seconds, same):
    table = "| model | events | CPU s |\n| --- | --- | --- |\n| a | {} | {} |"
    assert pages.agree(table.format("100", "0.5"), table.format(events, seconds), 3.0, ("events",)) is same


def test_a_page_is_found_wrong_and_mended(tmp_path, monkeypatch, capsys):
    """A whole round: a stale figure fails the check, is written, and holds; a broken command is said, not written."""
    for name, value in (
        ("ROOT", tmp_path),
        ("PAGE", tmp_path / "docs" / "shown.md"),
        ("LIST", tmp_path / "docs" / "shown.yaml"),
    ):
        monkeypatch.setattr(shown, name, value)
    for module in (journal, shown):
        monkeypatch.setattr(module, "KEPT", tmp_path / ".shown")
    monkeypatch.setattr(journal, "ROOT", tmp_path)
    for room in ("docs", "calibration", "experiments"):
        (tmp_path / room).mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "experiments" / "say.py").write_text("print('it is 42.5')")
    (tmp_path / "experiments" / "fail.py").write_text("raise SystemExit('no')")
    (tmp_path / "docs" / "shown.yaml").write_text(
        "files: {}\ninputs: []\ncommands:\n  say: {run: python experiments/say.py, quick: true}\n"
        "  fail: {run: python experiments/fail.py}\n"
    )
    page = tmp_path / "README.md"
    page.write_text("About <!-- shown say: /is (\\S+)/ as .1f -->41.0<!-- /shown --> of them.\n")
    assert shown.main(["--check"]) == 1
    assert "shows '41.0', is '42.5'" in capsys.readouterr().out
    assert shown.main(["--write"]) == 0
    assert "-->42.5<!--" in page.read_text()
    assert shown.main(["--check", "--quick"]) == 0
    assert "| `python experiments/say.py` | `README.md` | 1 | yes |" in (tmp_path / "docs" / "shown.md").read_text()
    assert "0 of 1" in (tmp_path / "docs" / "shown.md").read_text(), "it did not hold before it was written"
    page.write_text("<!-- shown fail: /(.*)/ -->1<!-- /shown -->")
    assert shown.main(["--write"]) == 1
    assert "exit code 1" in capsys.readouterr().out
    assert "-->1<!--" in page.read_text()


def test_a_run_that_was_ended_begins_anew_and_one_that_ended_well_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(journal, "_sources", lambda: iter(()))
    count = tmp_path / "count"
    command = journal.Command("add", f"python -c \"open('{count}', 'a').write('x')\"")
    half = tmp_path / "kept" / "add-1" / "work"
    half.mkdir(parents=True)
    (half / "left").touch()
    kept = journal.run(command, "1")
    assert kept.ran["exit"] == 0
    assert not (half / "left").exists()
    journal.run(command, "1")
    assert count.read_text() == "x"
    journal.run(command, "2")
    assert count.read_text() == "xx"
    failing = journal.Command("add", f"python -c \"open('{count}', 'a').write('x'); exit(5)\"")
    for _ in range(2):
        assert journal.run(failing, "3").ran["exit"] == 5
    assert count.read_text() == "xxxx", "a failure is tried again"


def test_sources_that_were_written_since_are_copied_anew(tmp_path, monkeypatch):
    source = tmp_path / "part.py"
    monkeypatch.setattr(journal, "ROOT", tmp_path)
    monkeypatch.setattr(journal, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(journal, "_sources", lambda: iter([source]))
    (tmp_path / "kept").mkdir()
    source.write_text("1")
    first = journal._tree()
    assert journal._tree() == first
    source.write_text("22")
    second = journal._tree()
    assert (second / "part.py").read_text() == "22"
    assert [*(tmp_path / "kept").iterdir()] == [second]


def test_every_mark_of_the_pages_names_a_command_and_is_closed():
    assert {block.name for block in shown.read().blocks} <= shown.read().commands.keys()
    for page in shown.pages():
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- shown ") == text.count("<!-- /shown -->") == len(pages.MARK.findall(text)), page


def test_every_command_is_shown_somewhere():
    assert shown.read().commands.keys() == {block.name for block in shown.read().blocks}


@pytest.mark.skipif(os.name == "nt", reason="paths")
def test_a_command_is_run_from_a_copy_of_the_sources(tmp_path):
    words = journal.Command("x", "python experiments/a.py --b 'c d'", "--json").words(tmp_path)
    assert words[1:] == [str(tmp_path / "experiments/a.py"), "--b", "c d", "--json"]


HAND = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
FIGURE = re.compile(r"(?<![\w.`])[-+]?\d[\d,]*\.\d+(?![\w.])")


def by_hand(page):
    """Tables of a page with decimal figures in four cells or more that no mark holds: of runs, or of a source.

    Tables of parameters are those of the specs, which another test holds; what heads a column is a setting.
    """
    text = pages.MARK.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"<!-- parameters: .* -->\n(?:\|.*\n)+", "", text)
    text = re.sub(r"<!-- generated: .*?<!-- end of generated part -->", "", text, flags=re.DOTALL)
    return [table[0] for table in HAND.finditer(text) if len(FIGURE.findall(table[0].partition("\n")[2])) >= 4]


SOURCES = {
    "docs/assumptions.md",
    "docs/howto-predict.md",
    "docs/io-paths",
    "docs/media/quality.md",
    "docs/protection/closed-forms.md",
    "docs/sip/retransmission.md",
    "docs/workloads",
    "docs/schedulers",
}
"""Pages whose tables are constants, sources and closed forms, or what somebody measured."""


def test_no_page_has_a_table_of_figures_by_hand():
    """A new table of figures gets a mark, or its page is one of sources and closed forms."""
    known = {str(path.relative_to(ROOT)) for path in shown.read().files}
    docs = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {str(page.relative_to(ROOT)) for page in docs if page != shown.PAGE and by_hand(page)}
    assert {page for page in found - known if not page.startswith(tuple(SOURCES))} == set()
