"""Above workloads and platform nobody knows a kind of either: what a part is, it says of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from syntax import statements, tree

from vftsim.composition import hosts  # every part of the package is registered by then
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS
from vftsim.platform.io.disk import DISKS
from vftsim.platform.io.parameters import IO_PATHS
from vftsim.platform.protection.faults import FAULTS
from vftsim.platform.protection.mechanism import PROTECTIONS
from vftsim.stats import estimate
from vftsim.workloads.parts import APPLICATIONS, WORKLOADS

_PACKAGE = Path(__file__).parents[2] / "vftsim"
_ABOVE = ("composition", "tracing", "study", "report", "calibrate", "records", "interface", "ui", "cli")
_KINDS = (
    "vftsim.workloads.",
    "vftsim.platform.cpu.schedulers.",
    "vftsim.platform.cpu.guest_schedulers.",
    "vftsim.platform.io.paths.",
    "vftsim.platform.io.disks.",
)
"""Rooms in which a file is a kind; of mechanisms the files stand among what all of them share."""
_ROOMS = {*(each.rstrip(".") for each in _KINDS), "vftsim.platform.protection"}
_MECHANISMS = {
    "adaptive_interval",
    "checkpoint",
    "coarse_lockstep",
    "event_sync",
    "hypervisor_epoch",
    "lockstep",
    "micro_checkpoint",
    "replication",
}
_SHARED = {f"vftsim.workloads.{name}" for name in ("arrivals", "offer", "parts", "ramp", "wire")}
_INTERVALS = get_args(estimate.Kind)
_REGISTERED = {
    *hosts.schedulers(),
    *GUEST_SCHEDULERS,
    *DISKS,
    *IO_PATHS,
    *FAULTS,
    *PROTECTIONS,
    *APPLICATIONS,
    *WORKLOADS,
} - {"none"}
"""Names of kinds; "none" is a word of intervals too."""

MOST = 0
"""Uses of a kind today; it only goes down."""


def _knows(module: str, name: str) -> bool:
    head, _, last = module.rpartition(".")
    if head == "vftsim.platform.protection":
        return last.removeprefix("_").removesuffix("_parameters").removesuffix("_records") in _MECHANISMS
    return module.startswith(_KINDS) and module not in _SHARED


def _is_kind(room: str, name: str) -> bool:
    """Whether a name imported from a room is the module of a kind."""
    return room in _ROOMS and _knows(f"{room}.{name}", "")


def uses_of_kinds(path: Path) -> list[int]:
    """Lines on which a file uses a name that it has of a kind, annotations left out, or asks for ``.kind``."""
    names = {
        alias.asname or alias.name
        for node in statements(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if _knows(node.module or "", alias.name) or _is_kind(node.module or "", alias.name)
    }
    return [node.lineno for node in _run(tree(path)) if _is_use(node, names)]


def _is_use(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    if sides and isinstance(node.ops[0], ast.Is | ast.IsNot):  # identity of outcomes' classes
        return False
    words = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
    if any(isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides):
        return not words or any(isinstance(word, str) and word not in _INTERVALS for word in words)
    return any(isinstance(side, ast.Name) and side.id == "kind" for side in sides) and bool(words & _REGISTERED)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is run of a tree: not its annotations."""
    yield node
    for field, value in ast.iter_fields(node):
        if field not in {"annotation", "returns"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _run(child)


def test_nobody_above_them_asks_what_kind_a_workload_or_a_mechanism_is() -> None:
    found = {
        f"{path.relative_to(_PACKAGE)}:{line}"
        for room in _ABOVE
        for path in sorted((_PACKAGE / room).rglob("*.py"))
        for line in uses_of_kinds(path)
    }
    assert len(found) <= MOST, f"{len(found)} uses of a kind, at most {MOST}: {sorted(found)}"


def test_a_use_of_a_kind_is_seen(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from vftsim.workloads.rtp import RtpSpec\n"
        "from vftsim.platform.protection import lockstep\n"
        "def f(x: RtpSpec): return isinstance(x, RtpSpec)\n"
        "def g(x): return x.kind == 'cpu_bound' or lockstep.most(x)\n"
        "def h(e): return e.kind != other.kind\n"
        "def i(kind): return kind in {'credit', 'credit2'} or kind == 'validation'\n"
    )
    assert uses_of_kinds(tmp_path / "own.py") == [3, 4, 4, 5, 6]
