"""What stands around the tables on the screen: what was simulated, and what its figures rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import bench_key
from vftsim.report.screen import print_text
from vftsim.study.validity import below_table, not_covered_line

if TYPE_CHECKING:
    from vftsim.study.model import Model
    from vftsim.study.ramp import NotStarted, RampCapacity

INTERVALS = (
    "± or [..]: 95 % interval over replications, corrected for skewness, from ten replications on; (x to y): lowest "
    "and highest replication, no interval; neither: one replication or no spread. What happens in few runs may be "
    "missing from all: coverage is measured in docs/interval-coverage.md."
)


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
        if line := not_covered_line(model.get("not_covered", ())):
            print_text(f"  {line}")
        for costs in model.get("costs", ()):
            print_text(f"Costs of {costs}")


def print_outside(*models: Model) -> None:
    """Print what the asterisks in a table mean, for the models that have one there; nothing for none."""
    if line := below_table([(model.label, model.spec) for model in models]):
        print_text(line)


def warn_not_started(spec: ModelSpec, missing: NotStarted) -> None:
    """Say that the load asked for was not the load offered."""
    if missing.attempts:
        key, share = bench_key(spec), 100 * missing.attempts / max(missing.asked, 1)
        print_text(
            f"Not started: {missing.attempts} of about {missing.asked} attempts ({share:.2g} %) found no free "
            f"subscriber, so less was offered than asked; raise {key}.subscribers or {key}.registered"
        )


def warn_unfailed(ramp: RampCapacity) -> None:
    """Say that the capacity is a lower bound in some ramps."""
    if ramp.unfailed:
        print_text(
            f"{ramp.model.label}: {ramp.unfailed} of {len(ramp.runs)} ramps met no limit within the model's steps: "
            f"their DOC is a lower bound; raise {bench_key(ramp.model.spec)}.steps.most"
        )
