"""The pages under docs/sip say what the code does: tables from the specs, names of tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from parameter_tables import PAGES, rendered

_ROOT = Path(__file__).parents[2]
_PAGES = [*sorted(PAGES.glob("*.md")), PAGES.parent / "assumptions.md"]


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda p: p.name)
def test_parameter_tables_are_those_of_the_specs(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text, "run: python tests/layout/parameter_tables.py"


@pytest.mark.parametrize("page", _PAGES, ids=lambda p: p.name)
def test_tests_and_pages_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (_ROOT / name).is_file(), name
    for name in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / name).exists(), name
