"""What stands around the tables on the screen: what was simulated, and what its figures rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.composition.views import bench_key
from vftsim.report.screen import print_text
from vftsim.stats import binomial_interval
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.validity import below_table, not_covered_line

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
    for model in models:
        changes = [*(f"--set {text}" for text in model["set"]), *model["notes"]]
        print_text(
            f"{model['label']} ({', '.join(model['workloads'])}), seed {seed}{''.join(f'; {c}' for c in changes)}"
        )
        for setting in model["without_effect"]:
            key, _, why = setting.partition(": ")
            print_text(f"  {key} has no effect: {why}")
        for remark in model.get("remarks", ()):
            print_text(f"  {remark}")
        if line := not_covered_line(model.get("not_covered", ())):
            print_text(f"  {line}")
        for costs in model.get("costs", ()):
            print_text(f"Costs of {costs}")


def print_outside(*models: Model) -> None:
    """Print what the asterisks in a table mean, for the models that have one there; nothing for none."""
    if line := below_table([(model.label, model.spec) for model in models]):
        print_text(line)


def print_missing(found: Iterable[Missing]) -> None:
    """Say what was asked and did not happen: figures are of what did."""
    for each in found:
        print_text(str(each))


def warn_unfailed(ramp: RampCapacity) -> None:
    """Say that the capacity is a lower bound in some ramps, and what of their load was not offered."""
    if ramp.unfailed:
        print_text(
            f"{ramp.model.label}: {ramp.unfailed} of {len(ramp.runs)} ramps met no limit within the model's steps: "
            f"their DOC is a lower bound; raise {bench_key(ramp.model.spec)}.steps.most"
        )
    print_missing(ramp.missing)
