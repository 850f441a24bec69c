"""The tree: imports run one way, files stay short, and nothing draws its own random numbers."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

from syntax import statements, tree

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "vftsim"
_FILES = sorted(_PACKAGE.rglob("*.py"))

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("_callable", "_version", "errors", "files"),
    ("spec",),
    ("kernel",),
    ("sampling", "stats", "labs"),
    ("outcome",),
    ("platform",),
    ("testing", "workloads"),
    ("composition",),
    ("tracing",),
    ("report",),
    ("study",),
    ("calibrate", "records"),
    ("interface", "ui"),
    ("cli",),
)
"""A room may import any level above it here, and no neighbour of its own."""

_LEVEL = {room: level for level, rooms in enumerate(_LEVELS) for room in rooms}
_MODEL_ROOMS = {"kernel", "outcome", "platform", "workloads", "sampling", "composition", "tracing"}


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


def _room(path: Path) -> str:
    first = path.relative_to(_PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def _imported(path: Path) -> frozenset[str]:
    """Full dotted names of what a file imports, wherever in it."""
    found: set[str] = set()
    for node in statements(path):
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


def test_imports_run_one_way() -> None:
    wrong = [
        f"{_name(path)}: {_room(path)} must not import {other}"
        for path in _FILES
        if _room(path) not in {"__init__", "__main__"}  # the package's face shows what it likes
        for other in sorted({name.split(".")[1] for name in _imported(path) if name.startswith("vftsim.")})
        if not _may_import(_room(path), other)
    ]
    assert not wrong, "\n".join(wrong)


def _may_import(room: str, other: str) -> bool:
    return other == room or other not in _LEVEL or _LEVEL[other] < _LEVEL[room]


_OF_STUDY = ("figures", "runs", "store", "execution", "blocks", "designs")


def test_imports_run_one_way_within_study() -> None:
    """What a room of it is to be read for needs nothing that comes after."""
    inside = {path: path.relative_to(_PACKAGE / "study").parts[0] for path in _FILES if _room(path) == "study"}
    assert {name.removesuffix(".py") for name in inside.values()} == {*_OF_STUDY, "__init__"}
    others = (
        (path, name.split(".")[2]) for path in inside for name in _imported(path) if name.startswith("vftsim.study.")
    )
    wrong = [
        f"{_name(path)} must not import {other}"
        for path, other in others
        if _OF_STUDY.index(other) > _OF_STUDY.index(inside[path].removesuffix(".py"))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_imports_itself_by_a_detour() -> None:
    """Neither inside a function nor for the type checker alone."""
    modules = {_module(path): path for path in _FILES}
    graph = {name: _imported_modules(path, frozenset(modules)) - {name} for name, path in modules.items()}
    while ends := [name for name, others in graph.items() if not others & graph.keys()]:
        for name in ends:  # who imports nothing that is left is in no circle
            del graph[name]
    assert sorted(graph) == [], "imports run in circles here, or lead into one"


def _module(path: Path) -> str:
    return ".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported_modules(path: Path, modules: frozenset[str]) -> set[str]:
    """Return the modules that a file imports, wherever in it."""
    return {name if name in modules else name.rpartition(".")[0] for name in _imported(path)}


def test_only_the_engine_knows_simpy() -> None:
    knows = {_room(path) for path in _FILES if any(n.split(".")[0] == "simpy" for n in _imported(path))}
    assert knows <= {"kernel"}


def test_files_are_short_and_finished() -> None:
    texts = {_name(path): path.read_text(encoding="utf-8") for path in _FILES}
    assert [name for name, text in texts.items() if len(text.splitlines()) > 600] == []
    unfinished = ("TODO", "FIXME", "XXX")
    assert [f"{name}: {word}" for name, text in texts.items() for word in unfinished if word in text] == []


def test_nobody_draws_random_numbers_of_his_own() -> None:
    """The ``random`` module nowhere; of ``numpy.random`` only generators of one's own, never its global state."""
    roots = {path: {name.split(".")[0] for name in _imported(path)} for path in _FILES}
    assert [_name(path) for path, imported in roots.items() if imported & {"random", "secrets"}] == []
    allowed = {"Generator", "SeedSequence", "PCG64DXSM", "default_rng"}
    rooms = {"sampling", "stats", "calibrate"}
    wrong = [
        f"{_name(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in _FILES
        for node in _of_numpy_random(path)
        if node.attr not in allowed or _room(path) not in rooms
    ]
    assert not wrong, "\n".join(wrong)


def _of_numpy_random(path: Path) -> list[ast.Attribute]:
    if ".random" not in path.read_text(encoding="utf-8"):
        return []
    nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)]
    return [node for node in nodes if ast.unparse(node).startswith(("np.random.", "numpy.random."))]


def test_model_rooms_do_not_look_at_the_wall_clock() -> None:
    clocks = {"time", "datetime"}
    looks = {path: {name.split(".")[0] for name in _imported(path)} & clocks for path in _FILES}
    assert [_name(path) for path, reads in looks.items() if reads and _room(path) in _MODEL_ROOMS] == []


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
