"""The knobs of the lab, which of their combinations are played, and in what order."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

KNOBS = {
    "buffer_kib": (64, 256, 1024),
    "t1_ms": (500, 1000),
    "freeze_ms": (0, 300),
    "workers": (4, 8),
    "core_percent": (50, 100),
}
TWO_LEVELS = ("t1_ms", "freeze_ms", "workers", "core_percent")
DESIGNS = ("half", "full")


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting of every knob."""

    buffer_kib: int
    t1_ms: int
    freeze_ms: int
    workers: int
    core_percent: int

    @property
    def name(self) -> str:
        """Short name, for files."""
        return f"b{self.buffer_kib}-t{self.t1_ms}-f{self.freeze_ms}-w{self.workers}-c{self.core_percent}"

    @property
    def sign(self) -> int:
        """Product of the levels (-1, 1) of the knobs that have two."""
        return math.prod(1 if getattr(self, knob) == KNOBS[knob][1] else -1 for knob in TWO_LEVELS)


def cells(design: str) -> list[Cell]:
    """Return the combinations of a design.

    ``full`` has all 48.  ``half`` has the 24 in which the product of the two-level knobs is -1, the base among them:
    every main effect is then clear of every other and of all pairs of two-level knobs, which stand for one another two
    by two.
    """
    every = [Cell(*levels) for levels in itertools.product(*KNOBS.values())]
    return every if design == "full" else [cell for cell in every if cell.sign == -1]


def schedule(design: str, blocks: int, seed: int) -> Iterator[tuple[str, Cell]]:
    """Yield name and cell of each ramp: block by block, every cell once in each, in an order drawn anew."""
    for block in range(1, blocks + 1):
        order = cells(design)
        random.Random(f"{seed}/{block}").shuffle(order)
        yield from ((f"r{block}-{cell.name}", cell) for cell in order)
