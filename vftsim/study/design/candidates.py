"""Configurations to choose from: all combinations of the choices, each with its cost and what runs say of it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vftsim.errors import UsageError
from vftsim.stats import Estimate
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.design.points import Span, StudyPoint, change_for, points_at
from vftsim.study.design.prices import PriceTable, cost_of
from vftsim.study.design.ranges import read_range
from vftsim.study.design.spec import Factor
from vftsim.study.model import Model
from vftsim.study.objective import Objective
from vftsim.study.sweep_grid import split_values

MOST = 5000
_LEVELS = re.compile(r"(?P<range>.*\.\..*)/(?P<levels>[0-9]+)\s*")
MET, MISSED, OPEN, REFUSED = "meets", "misses", "open", "cannot be run"
STEPS = (10, 20, 40)
"""Replications of a configuration that is tested, until its intervals are on one side."""


def read_choice(text: str) -> tuple[str, tuple[str, ...]]:
    """Return what ``--choose`` says: a name, and its values.

    Raises
    ------
    UsageError
        It is not of the form ``name=value,value`` or ``name=low..high/levels``.
    """
    if (match := _LEVELS.fullmatch(text)) is not None:
        name, span = read_range(match["range"])
        return name, _levels(span, int(match["levels"]))
    name, equals, rest = text.partition("=")
    values = tuple(dict.fromkeys(split_values(rest)))
    if not equals or not name.strip() or not all(values):
        raise UsageError(f"--choose: '{text}' is not of the form name=value,value or name=low..high/levels")
    return name.strip(), values


def _levels(span: Span, count: int) -> tuple[str, ...]:
    if not 2 <= count <= MOST:
        raise UsageError(f"--choose: from 2 to {MOST} levels of a range, got {count}")
    return tuple(dict.fromkeys(span.at(n / (count - 1)) for n in range(count)))


@dataclass
class Candidate:
    """A configuration.

    Parameters
    ----------
    quantities : mapping
        What it pays for.
    n : int
        Replications that its figures rest on.
    figures : mapping
        Of each objective, by its address.
    verdict : str
        ``meets``, ``misses``, ``open`` or ``cannot be run``.
    failed_again : bool
        Whether it met the objectives, and not with fresh random numbers.
    varied : frozenset of str
        Choices with several values.
    """

    point: StudyPoint
    cost: float
    quantities: Mapping[str, float]
    n: int = 0
    figures: dict[str, Estimate] = field(default_factory=dict)
    verdict: str = OPEN
    failed_again: bool = False
    varied: frozenset[str] = frozenset()

    @property
    def number(self) -> int:
        """Its number."""
        return self.point.number

    @property
    def name(self) -> str:
        """Its choices in words, but for those that are none."""
        return ", ".join(f"{name}={value}" for name, value in self.point.values.items() if name in self.varied)

    @property
    def is_possible(self) -> bool:
        """Whether it may be the answer yet: not known to miss, nor open after all the runs that one gets."""
        return self.verdict in (MET, OPEN) and not self.failed_again and not self.is_left_open

    @property
    def is_left_open(self) -> bool:
        """Whether not even the most runs told on which side it is."""
        return self.verdict == OPEN and self.n >= STEPS[-1]


def candidates_of(
    model: str,
    settings: tuple[str, ...],
    base: Model,
    choices: Mapping[str, Sequence[str]],
    prices: PriceTable,
    quick: bool,
) -> tuple[list[Candidate], dict[str, str]]:
    """Return all configurations that the model can have, the cheapest first, and why the others cannot be.

    Raises
    ------
    UsageError
        There are too many, or none.
    """
    if (count := math.prod(map(len, choices.values()))) > MOST:
        raise UsageError(f"--choose: {count} configurations; at most {MOST}")
    refused: dict[str, str] = {}
    values = [dict(zip(choices, row, strict=True)) for row in itertools.product(*choices.values())]
    points = points_at(
        model, base.label, settings, values, dict.fromkeys(choices, Factor()), change_for(quick), refused=refused
    )
    if not points:
        raise UsageError(f"--choose: no configuration is possible: {next(iter(refused.values()))}")
    varied = frozenset(name for name, own in choices.items() if len(own) > 1)
    found = [Candidate(point, *cost_of(prices, point.model.spec), varied=varied) for point in points]
    return sorted(found, key=lambda each: (each.cost, each.number)), refused


def verdict_of(
    objectives: Sequence[Objective], figures: Mapping[str, Estimate], values: Mapping[str, Sequence[float]]
) -> str:
    """Return whether a configuration meets its objectives, by intervals of its figures.

    Where runs are too few or too alike for an interval, all of them must agree; that few can say that one misses, but
    not that it meets.
    """
    found = []
    for one in objectives:
        estimate = figures.get(one.figure)
        if estimate is None:
            return MISSED
        own = values[one.figure]
        if estimate.is_interval:
            ends = [one.holds(end) for end in (estimate.low, estimate.high)]
        else:
            ends = [one.holds(value) for value in own]
        if not any(ends):
            return MISSED
        found.append(all(ends) and len(own) >= FEWEST_RUNS)
    return MET if all(found) else OPEN
