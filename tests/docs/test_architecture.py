"""The way of a packet as the page tells it: every function it names is in a file it links."""

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
ROW = re.compile(r"^\| (?P<step>[^|]+) \| (?P<names>`[^|]+`) \| (?P<files>\[[^|]+\)) \|$", re.MULTILINE)
ROWS = [(row["step"], row["names"], row["files"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("step", "names", "files"), ROWS, ids=[row[0] for row in ROWS])
def test_functions_are_where_the_page_says(step: str, names: str, files: str) -> None:
    known = set[str]().union(*(functions(PAGE.parent / link) for link in re.findall(r"\]\(([^)]+)\)", files)))
    assert set(re.findall(r"`(\w+)`", names)) <= known


def test_there_are_steps() -> None:
    assert len(ROWS) >= 20
