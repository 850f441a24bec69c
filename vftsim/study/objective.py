"""What a run must achieve: a figure of its record, compared with a number, such as ``web.answered >= 90``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vftsim.errors import UsageError

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
        Its name (:mod:`vftsim.study.figures.names`).
    relation : str
        ``<=``, ``>=``, ``<`` or ``>``.
    value : float
        In the figure's unit.
    """

    figure: str
    relation: str
    value: float

    def holds(self, found: float) -> bool:
        """Tell whether a run with this figure met it; one without a number in its place did not."""
        return _RELATIONS[self.relation](found, self.value)

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
            f"--objective: '{text}' is not of the form 'figure <= number' (or >=, <, >), e.g. 'web.answered >= 90'"
        )
    return Objective(match["figure"], match["relation"], value)
