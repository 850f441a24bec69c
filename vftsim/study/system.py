"""What a study needs to know of a kind of system, and where it finds it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vftsim.kernel import Linked
    from vftsim.study.capacity_request import CapacityAnswer, CapacityRequest
    from vftsim.study.model import Model

_PACKAGE = "vftsim.study.systems"

Record = Any
"""What one replication leaves behind; only its own system looks into it."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A spec with less simulated time, and what was changed, in words for the user (empty: nothing)."""

    spec: Any
    note: str


class System(Protocol):
    """One kind of system: its root spec, its simulation, its tables."""

    kind: str
    root: type[BaseModel]

    def kernel(self, spec: Any) -> Linked:
        """Return the kernel that a model runs on."""
        ...

    def simulate(self, spec: Any, seed: int, replication: int) -> Record:
        """Run one replication; called in worker processes, so the record must be picklable."""
        ...

    def to_dict(self, record: Record) -> dict[str, Any]:
        """Return a record as plain data for JSON."""
        ...

    def from_dict(self, data: Mapping[str, Any]) -> Record:
        """Rebuild what :meth:`to_dict` returned."""
        ...

    def tables(self, name: str, spec: Any, records: Sequence[tuple[int, Record]]) -> dict[str, pd.DataFrame]:
        """Return tidy tables, one row a replication and observation."""
        ...

    def summary(self, tables: Mapping[str, pd.DataFrame], confidence: float) -> pd.DataFrame:
        """Return the tables' figures across replications, with intervals, in long form."""
        ...

    def figures(self, spec: Any, records: Sequence[tuple[int, Record]]) -> dict[str, Figure]:
        """Return the plots of a run by file name without suffix."""
        ...

    def shorten(self, spec: Any, factor: float) -> Shortened:
        """Return the spec with its measured time scaled by a factor."""
        ...

    def quick(self, spec: Any) -> Shortened:
        """Return the spec shortened for a first look."""
        ...

    def capacity(self, model: Model, request: CapacityRequest) -> CapacityAnswer:
        """Return what load a model of this kind carries; wishes that mean nothing to it are refused."""
        ...


def system_kinds() -> tuple[str, ...]:
    """Return the kinds of systems there are, sorted, without importing them."""
    package = importlib.import_module(_PACKAGE)
    return tuple(sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")))


def system_of(kind: str) -> System:
    """Return the system of a kind listed by :func:`system_kinds`."""
    system: System = importlib.import_module(f"{_PACKAGE}.{kind}").SYSTEM
    return system
