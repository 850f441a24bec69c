"""The probability of a rare event as blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Counted, Note, Table
from vftsim.stats import Estimate
from vftsim.study.blocks.head import head

if TYPE_CHECKING:
    from vftsim.study.rare import RareStudy


def rare_blocks(found: RareStudy) -> list[Block]:
    """Return the probability, the shares that came from level to level, and what it rests on."""
    event, request = found.request.event, found.request
    table: list[list[Cell]] = [[event.shown(level), found.shares(n)] for n, level in enumerate(found.levels)]
    by = "brute force" if len(found.levels) == 1 else "multilevel splitting"
    return [
        *head(found.manifest["models"], found.manifest["seed"]),
        Answer(f"{' '.join(filter(None, _small(found.probability)))} of a run, by {by}", f"How probable is {event}?"),
        Cards([Card("probability", Counted(*_small(found.probability)))]),
        Table(["level", "share that came there"], table, "From level to level"),
        *(Note(text) for text in _notes(found)),
        Note(
            f"{request.repetitions} independent repetitions of {request.trials} trials at each level; shares are of "
            "those that came to the level before. ± or [..]: 95 % interval over repetitions, corrected for skewness, "
            "from ten on; (x to y): lowest and highest."
        ),
    ]


def _small(chance: Estimate) -> tuple[str, str]:
    """Return a probability, however small, and its interval or range."""
    low, high = f"{chance.low:.2g}", f"{chance.high:.2g}"
    if chance.low == chance.high or not math.isfinite(chance.half_width):
        return f"{chance.mean:.2g}", ""
    return f"{chance.mean:.2g}", f"[{low}, {high}]" if chance.is_interval else f"({low} to {high})"


def _notes(found: RareStudy) -> list[str]:
    notes = [f"{found.events:,} events were simulated."]
    brute = found.brute_force_events
    if brute is not None and len(found.levels) > 1:
        notes[0] += (
            f" Runs from time 0 take about {brute:.2g} for the same standard error, {brute / found.events:.2g} times "
            "as many."
        )
    if not found.probability.mean:
        notes.append("No repetition saw the event: more --trials, or levels nearer to each other (--levels).")
    elif len(found.levels) > 1:
        notes.append(
            "Trials that go on from one state share what it holds. With too few of them most repetitions come out too "
            f"low, and the interval with them: --trials {4 * found.request.trials} shows whether these were enough."
        )
    return notes
