"""A kernel that is ready: its machine code, the layout of its state, and the numbers by which records know its parts.

So a run on it links nothing.  What is kept is plain text (JSON) before the object code.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vftsim.kernel.declare import Action, Entry, Failure, Kind, Table
from vftsim.kernel.layout import Layout, Placement
from vftsim.kernel.link import Linked, LinkError
from vftsim.kernel.record import Record


@dataclass
class Prepared(Linked):
    """A linked kernel without its functions."""

    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    """Numbers of callbacks by family and name, of kinds by sort and name, and of entries by name."""

    def number(self, declared: Action | Entry | Kind) -> int:
        """Return the number by which a callback, an entry or a kind is known in records."""
        section = _place_of(declared)
        try:
            return self.numbers[section][declared.name]
        except KeyError:
            raise LinkError(f"the prepared kernel has no {section} {declared.name}") from None


def _place_of(declared: Action | Entry | Kind) -> str:
    if isinstance(declared, Kind):
        return f"kind of {declared.sort.name}"
    return "entry" if isinstance(declared, Entry) else f"callback of {declared.family.name}"


def dumped(linked: Linked, layout: Layout, code: bytes) -> bytes:
    """Return what is to be kept of a kernel."""
    numbers: dict[str, dict[str, int]] = {}
    kinds = [kind for chosen in linked.kinds.values() for kind in chosen]
    actions = [action for members in linked.families.values() for action in members]
    everything: list[Action | Entry | Kind] = [*kinds, *actions, *linked.entries]
    for declared in everything:
        numbers.setdefault(_place_of(declared), {})[declared.name] = linked.number(declared)
    description = {
        "numbers": numbers,
        "failures": [failure.message for failure in linked.failures],
        "tables": {
            name: [t.capacity, t.remedy, t.beside.name if t.beside else "", t.is_fixed, t.is_log]
            for name, t in linked.tables.items()
        },
        "head": layout.head.descr,
        "arrays": {name: [array.dtype.descr, array.count, array.offset] for name, array in layout.arrays.items()},
        "size": layout.size,
    }
    return json.dumps(description).encode() + b"\n" + code


def loaded(content: bytes) -> tuple[Prepared, Layout, bytes]:
    """Return a kernel that was kept, the layout of its state, and its code."""
    head, _, code = content.partition(b"\n")
    described = json.loads(head)
    tables: dict[str, Table[Any]] = {}
    for name, (most, remedy, owner, is_fixed, is_log) in sorted(
        described["tables"].items(), key=lambda item: item[1][2] != ""
    ):
        beside = tables[owner] if owner else None
        tables[name] = Table(name, Record, most, remedy, beside, is_fixed=is_fixed, is_log=is_log)
    arrays = {
        name: Placement(_dtype(kind), count, offset) for name, (kind, count, offset) in described["arrays"].items()
    }
    failures = [Failure(message) for message in described["failures"]]
    kernel = Prepared(tables=tables, failures=failures, numbers=described["numbers"])
    return kernel, Layout(_dtype(described["head"]), arrays, described["size"]), code


def _dtype(described: list[Any]) -> np.dtype[Any]:
    """Return the dtype of a description, in which JSON has made lists of tuples."""
    if described[0][0] == "":
        described = described[0][1]
    dtype: np.dtype[Any] = np.dtype(
        described if isinstance(described, str) else [_column(*column) for column in described]
    )
    return dtype


def _column(name: str, kind: str | list[Any], *shape: list[int]) -> Any:
    inside = kind if isinstance(kind, str) else _dtype(kind)
    return (name, inside, *map(tuple, shape))
