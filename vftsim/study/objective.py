"""What a run must achieve: a figure of its record, compared with a number, such as ``web.answered_percent >= 90``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vftsim.errors import UsageError
from vftsim.spec.suggest import did_you_mean, listing

_NUMBER = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_FORM = re.compile(rf"\s*(?P<figure>[^<>=]+?)\s*(?P<relation><=|>=|<|>)\s*(?P<value>{_NUMBER})\s*")
_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Objective:
    """A condition on one figure.

    Parameters
    ----------
    figure : str
        Name with unit: ``workload.figure``.
    relation : str
        ``<=``, ``>=``, ``<`` or ``>``.
    value : float
        In the figure's unit.
    """

    figure: str
    relation: str
    value: float

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Tell whether a run met it; one that has no such figure, or no number in its place, did not."""
        return _RELATIONS[self.relation](figures.get(self.figure, math.nan), self.value)

    def __str__(self) -> str:
        return f"{self.figure} {self.relation} {self.value:g}"


def read_objective(text: str) -> Objective:
    """Return the objective that a user wrote.

    Raises
    ------
    UsageError
        It is not of the form ``figure <= number``.
    """
    match = _FORM.fullmatch(text)
    try:
        value = float(match["value"]) if match else math.nan
    except ValueError:
        value = math.nan
    if match is None or not math.isfinite(value):
        raise UsageError(
            f"--objective: '{text}' is not of the form 'figure <= number' (or >=, <, >), "
            "e.g. 'web.answered_percent >= 90'"
        )
    return Objective(match["figure"], match["relation"], value)


def among(objectives: Sequence[Objective], known: Sequence[str]) -> tuple[Objective, ...]:
    """Return the objectives with the figures' whole names; one workload's figure may be called without its workload.

    Raises
    ------
    UsageError
        A run has no such figure, or several.
    """
    return tuple(Objective(_whole_name(one.figure, known), one.relation, one.value) for one in objectives)


def _whole_name(name: str, known: Sequence[str]) -> str:
    if name in known:
        return name
    matches = [other for other in known if other.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"--objective: several figures are called '{name}': {listing(matches)}")
    hint = did_you_mean(name, known) or ";"
    raise UsageError(f"--objective: a run has no figure '{name}'{hint} it has: {listing(known)}")
