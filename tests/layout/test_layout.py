"""The tree: imports run one way, files stay short, and nothing draws its own random numbers."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "vftsim"
_FILES = sorted(_PACKAGE.rglob("*.py"))

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("_callable", "_version", "errors", "spec"),
    ("kernel",),
    ("sampling", "stats", "labs"),
    ("outcome",),
    ("platform",),
    ("testing", "workloads"),
    ("composition",),
    ("tracing",),
    ("calibrate", "records", "report", "study"),
    ("interface", "ui"),
    ("cli",),
)
"""A room may import its own level's neighbours only where ``_NEIGHBOURS`` says so, and any level above it here."""

_NEIGHBOURS = {
    "spec": {"errors"},
    "report": {"study"},
    "study": {"report"},
    "calibrate": {"report", "study"},
    "records": {"report", "study"},
}
_LEVEL = {room: level for level, rooms in enumerate(_LEVELS) for room in rooms}
_MODEL_ROOMS = {"kernel", "outcome", "platform", "workloads", "sampling", "composition", "tracing"}


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


def _room(path: Path) -> str:
    first = path.relative_to(_PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), _name(path))


@cache
def _imported(path: Path) -> frozenset[str]:
    """Full dotted names of what a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{_name(path)}:{node.lineno}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def test_there_is_something_to_look_at() -> None:
    assert len(_FILES) > 50


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {_room(path) for path in _FILES} - {"__init__", "__main__"}
    assert rooms <= set(_LEVEL)


@pytest.mark.parametrize("path", _FILES, ids=_name)
def test_imports_run_one_way(path: Path) -> None:
    room = _room(path)
    if room in {"__init__", "__main__"}:
        return  # the package's face shows what it likes
    for name in _imported(path):
        parts = name.split(".")
        if parts[0] != "vftsim" or len(parts) < 2 or parts[1] == room:
            continue
        other = parts[1]
        if other not in _LEVEL:
            continue
        allowed = _LEVEL[other] < _LEVEL[room] or other in _NEIGHBOURS.get(room, set())
        assert allowed, f"{_name(path)}: {room} must not import {other}"


def test_only_the_engine_knows_simpy() -> None:
    knows = {_room(path) for path in _FILES if any(n.split(".")[0] == "simpy" for n in _imported(path))}
    assert knows <= {"kernel"}


@pytest.mark.parametrize("path", _FILES, ids=_name)
def test_files_are_short_and_finished(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 600
    for word in ("TODO", "FIXME", "XXX"):
        assert word not in text


@pytest.mark.parametrize("path", _FILES, ids=_name)
def test_nobody_draws_random_numbers_of_his_own(path: Path) -> None:
    """The ``random`` module nowhere; of ``numpy.random`` only generators of one's own, never its global state."""
    assert not any(name.split(".")[0] in {"random", "secrets"} for name in _imported(path))
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("np.random.", "numpy.random.")):
            allowed = node.attr in {"Generator", "SeedSequence", "PCG64DXSM", "default_rng"}
            assert allowed, f"{_name(path)}:{node.lineno}: {ast.unparse(node)}"
            assert _room(path) in {"sampling", "stats", "calibrate"}, f"{_name(path)}:{node.lineno}"


@pytest.mark.parametrize("path", [p for p in _FILES if _room(p) in _MODEL_ROOMS], ids=_name)
def test_model_rooms_do_not_look_at_the_wall_clock(path: Path) -> None:
    assert not any(name.split(".")[0] in {"time", "datetime"} for name in _imported(path))


def test_no_model_class_has_its_annotations_read_from_text() -> None:
    """Pydantic reads each by itself, and those of all bases again: 0.08 s of the start of every command."""
    code = "; ".join(
        [
            "import vftsim.composition.model",
            "from vftsim.spec import Spec",
            "all = lambda one: [one, *(sub for each in one.__subclasses__() for sub in all(each))]",
            "texts = {one.__module__ for one in all(Spec) "
            "if any(type(said) is str for said in one.__annotations__.values())}",
            "print(*sorted(name for name in texts if name.startswith('vftsim.')))",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "leave out: from __future__ import annotations"
