"""Several systems side by side under the same traffic.

Every replication gives each model the same arrivals, scenarios, durations and demands (common random
numbers), so differences between models are differences of the systems and their intervals are those of
paired samples.  Ratios and differences are taken to the first model, in each replication; the middle one is
given, since DOCs come in steps.  A ramp that never failed has no DOC but a bound, and gives neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vftsim.composition.views import bench_of
from vftsim.errors import UsageError
from vftsim.stats import Estimate, median_interval
from vftsim.study.frames import frame
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress
from vftsim.study.ramp import RampCapacity, ramp_capacity_of
from vftsim.study.replicate import DEFAULT_REPLICATIONS, DEFAULT_SEED, replicate
from vftsim.study.results import CONFIDENCE, rows
from vftsim.study.sip_summary import estimate_columns
from vftsim.study.store import Store
from vftsim.study.validity import outside
from vftsim.study.workers import Interrupted, checked_jobs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison(Printed):
    """Ramp capacities of several models over the same replications.

    Parameters
    ----------
    capacities : tuple of RampCapacity
        In the order the models were named; the first is the reference.
    manifest : dict
    """

    capacities: tuple[RampCapacity, ...]
    manifest: dict[str, Any]

    @property
    def interrupted(self) -> bool:
        """Whether the comparison was ended before all its replications were done."""
        return bool(self.manifest["state"] == "interrupted")

    def print_tables(self) -> None:
        """Print everything for people."""
        from vftsim.report.tables import print_comparison  # noqa: PLC0415 - study and report know each other

        print_comparison(self)

    def ratio(self, number: int) -> Estimate | None:
        """Return a model's capacity relative to the first one's; None when that is nothing, or one only a bound."""
        pairs = self._pairs(number)
        if not pairs or not all(reference for _, reference in pairs):
            return None
        return median_interval([doc / reference for doc, reference in pairs], self.capacities[0].confidence)

    def difference(self, number: int) -> Estimate | None:
        """Return a model's capacity less the first one's; None when one is only a bound."""
        pairs = self._pairs(number)
        if not pairs:
            return None
        return median_interval([doc - reference for doc, reference in pairs], self.capacities[0].confidence)

    def _pairs(self, number: int) -> list[tuple[float, float]]:
        mine, first = self.capacities[number], self.capacities[0]
        if mine.unfailed or first.unfailed:
            return []
        return list(zip(mine.docs, first.docs, strict=True))

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a model and figure: capacity, ratio, difference."""
        table = []
        for number, capacity in enumerate(self.capacities):
            label = capacity.model.label
            answer = {**estimate_columns(capacity.estimate), **capacity.columns()}
            table.append({"model": label, "figure": "capacity_saps", **answer})
            figures = {"ratio_to_first": self.ratio(number), "difference_to_first_saps": self.difference(number)}
            for name, estimate in figures.items() if number else ():
                if estimate is not None:
                    table.append({"model": label, "figure": name, **estimate_columns(estimate)})
        return frame(table)

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest,
            "outside_calibration": {c.model.label: outside(c.model.spec, c.loads) for c in self.capacities},
            "comparison": rows(self.to_pandas()),
            "replications": [row for c in self.capacities for row in rows(c.to_pandas())],
        }


def compare_study(
    models: Sequence[Model],
    replications: int = DEFAULT_REPLICATIONS,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    progress: Progress | None = None,
    store: Store | None = None,
) -> Comparison:
    """Run the ramp of every model over the same replications.

    Raises
    ------
    Interrupted
        Ctrl-C before one replication of every model was done.
    """
    if len(models) < 2:
        raise UsageError("comparing takes at least two models; for one there is 'vftsim capacity'")
    for model in models:
        bench_of(model.spec)
    started, workers = utc_now(), checked_jobs(jobs)
    done = replicate(models, replications, seed, workers, progress=progress, store=store)
    common = sorted(set.intersection(*(set(each.records) for each in done)))
    if not common:
        raise Interrupted("no replication of all models had finished")
    capacities = tuple(
        ramp_capacity_of(each.model, [(n, each.records[n]) for n in common], confidence=CONFIDENCE) for each in done
    )
    said = manifest(
        models, command="compare", seed=seed, replications=common, wanted=replications, jobs=workers,
        started=started, state="interrupted" if done[0].interrupted else "finished",
    )  # fmt: skip
    return Comparison(capacities, said)
