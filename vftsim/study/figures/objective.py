"""Objectives of a run: a figure of its record compared with a number, such as ``web.answered >= 90``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec.units import converted
from vftsim.study.figures.names import Address, ambiguous, catalogue, meant_by, one_figure, unknown

_NUMBER = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_FORM = re.compile(
    rf"\s*(?P<figure>[^<>=]+?)\s*(?P<relation><=|>=|<|>)\s*(?P<value>{_NUMBER})\s*(?P<unit>[a-zA-Z%/][a-zA-Z%/]*)?\s*"
)
_RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True, slots=True)
class Objective:
    """A condition on one figure."""

    figure: str
    """Its name (:mod:`vftsim.study.figures.names`)."""
    relation: str
    """``<=``, ``>=``, ``<`` or ``>``."""
    value: float
    """In ``unit``."""
    unit: str = ""
    """As it was written; none: the figure's own."""

    def in_unit(self, unit: str) -> Objective:
        """Return it with its value in the figure's unit; refuse a unit of something else."""
        value = converted(self.value, self.unit or unit, unit)
        if value is None:
            wanted = f"is in {unit}" if unit else "has no unit"
            raise UsageError(f"--objective: '{self}': {self.figure} {wanted}, not in {self.unit}")
        return Objective(self.figure, self.relation, value, unit)

    @property
    def sign(self) -> float:
        """1 where less is better, -1 where more is."""
        return 1.0 if self.relation in ("<", "<=") else -1.0

    def holds(self, figure: float) -> bool:
        """Tell whether a run with this figure met it; one without a number in its place did not."""
        return bool(_RELATIONS[self.relation](figure, self.value))

    def worst(self, figures: Sequence[float]) -> float:
        """Return the figure that is hardest to hold; nan where there is none, or one without a number."""
        if not figures or any(map(math.isnan, figures)):
            return math.nan
        return max(figures, key=lambda figure: self.sign * figure)

    def __str__(self) -> str:
        return f"{self.figure} {self.relation} {self.value:g}{' ' if self.unit else ''}{self.unit}"


def read_objective(text: str) -> Objective:
    """Return the objective that a user wrote; refuse any form but ``figure <= number``."""
    match = _FORM.fullmatch(text)
    try:
        value = float(match["value"]) if match else math.nan
    except ValueError:
        value = math.nan
    if match is None or not math.isfinite(value):
        raise UsageError(
            f"--objective: '{text}' is not of the form 'figure <= number' (or >=, <, >), e.g. 'web.answered >= 90' or "
            "'web.response.p95 <= 100 ms'"
        )
    return Objective(match["figure"], match["relation"], value, match["unit"] or "")


def whole_objectives(texts: Iterable[str], specs: Sequence[ModelSpec]) -> tuple[Objective, ...]:
    """Return the objectives that a user wrote, on whole addresses of figures and in the units of these.

    A name is one of the first model that has such a figure: without protection no output is held.
    """
    whole = list[Objective]()
    for objective in map(read_objective, texts):
        having = [each for each in specs if meant_by(objective.figure, catalogue(each))][:1]
        (in_unit,) = in_units([objective], having or specs)
        whole.append(replace(in_unit, figure=one_figure(objective.figure, having[0])))
    return tuple(whole)


def in_units(
    objectives: Iterable[Objective], specs: Sequence[ModelSpec], own_units: Mapping[str, str] | None = None
) -> tuple[Objective, ...]:
    """Return objectives in the units of their figures, of models or of ``own_units``.

    Refuses a figure that is none of any model, or ambiguous.
    """
    known, every = own_units or {}, [address for spec in specs for address in catalogue(spec)]
    named = [(each, each.figure) for each in objectives]
    return tuple(each.in_unit(known[name] if name in known else _unit_of(name, every)) for each, name in named)


def _unit_of(figure: str, every: Sequence[Address]) -> str:
    """Return the unit of the one figure that a name means; it may be one of several phases."""
    meant = meant_by(figure, every)
    if not meant:
        raise unknown(figure, every, "--objective")
    if len({(address.owner, address.entry.path) for address in meant}) > 1:
        raise ambiguous(figure, meant, "--objective")
    return meant[0].entry.unit
