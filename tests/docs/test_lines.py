"""Pages are read in an editor too: lines of running text have 120 columns at most."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN_BY_COMMANDS = {"accuracy.md", "interval-coverage.md", "parts.md", "shown.md"}
PAGES = [
    path
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    if path.name not in WRITTEN_BY_COMMANDS and path.parent.name != "records"
]
WIDEST = 120


def too_long(text):
    """Lines of running text; tables, code, marks and what cannot be broken are left out."""
    is_code = False
    for line in re.sub(r"<!-- shown (?:(?!-->).)*-->\n.*?<!-- /shown -->", "", text, flags=re.DOTALL).splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_text = not is_code and not line.lstrip().startswith(("|", "<", "#")) and not line.startswith("    ")
        is_text = is_text and "](" not in line and "<!--" not in line
        if is_text and len(line) > WIDEST and not re.search(r"`[^`]{60,}`", line):
            yield line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_line_is_no_wider_than_an_editor(path):
    assert list(too_long(path.read_text(encoding="utf-8"))) == []
