"""What stands around the tables on the screen: what was simulated, and what its figures rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.report.blocks import Note
from vftsim.report.screen import print_text
from vftsim.stats import binomial_interval
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.capacity import unfailed_notes
from vftsim.study.blocks.head import head, missing_notes, outside_notes

if TYPE_CHECKING:
    from vftsim.study.model import Model
    from vftsim.study.offered import Missing
    from vftsim.study.ramp import RampCapacity

INTERVALS = (
    "± or [..]: 95 % interval over replications, corrected for skewness, from ten replications on; (x to y): lowest "
    "and highest replication, no interval; neither: one replication or no spread. What happens in few runs may be "
    "missing from all: coverage is measured in docs/interval-coverage.md."
)


def unseen(n: int) -> str:
    """Return how often at most something happens that no replication has shown; nothing for few."""
    if n < FEWEST_RUNS:
        return ""
    return f" What none of these {n} has shown may befall up to {100 * binomial_interval(0, n).high:.2g} % of runs."


def print_head(models: Sequence[dict[str, Any]], seed: int) -> None:
    """Print what was simulated and changed, what was set in vain, and what the model's values and costs rest on."""
    _print(head(models, seed))


def print_outside(*models: Model) -> None:
    """Print what the asterisks in a table mean, for the models that have one there; nothing for none."""
    _print(outside_notes(*models))


def print_missing(found: Iterable[Missing]) -> None:
    """Say what was asked and did not happen: figures are of what did."""
    _print(missing_notes(found))


def warn_unfailed(ramp: RampCapacity) -> None:
    """Say that the capacity is a lower bound in some ramps, and what of their load was not offered."""
    _print(unfailed_notes(ramp))


def _print(notes: Iterable[Note]) -> None:
    for note in notes:
        print_text(note.text)
