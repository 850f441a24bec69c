"""Fit two costs on three stated figures, by the protocol in ``calibration/xen-media/protocol.md``.

``python -m vftsim.records.xen_fit`` writes ``fit.json``: every grid point with its losses, the best point,
the points inside the accuracy asked for, and the evaluation on fresh seeds.  All points see the same traffic
(common random numbers).  A point whose first experiment is far off is not run further.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.composition.views import media_of
from vftsim.records.forms.xen_media import experiment, overrides
from vftsim.records.runner import read
from vftsim.spec import shipped_dir

_S = 1_000_000_000
_MODELS: Mapping[str, Mapping[str, Any]] = read("xen-media").spec.axes["model"]
STRUCTURES: dict[str, tuple[str, ...]] = {name: tuple(case["structure"]) for name, case in _MODELS.items()}
"""What is compared, by name: the model, a rival placement, wrong models, and one setting nobody knows."""
_HOPELESS = 40.0
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Target:
    """A stated figure: expected loss in percent, its weight, and the accuracy asked for."""

    experiment: str
    stated: float
    sd: float
    tolerance: float
    is_ceiling: bool = False

    def deviation(self, loss: float) -> float:
        """Distance from the stated figure, in weights."""
        over = loss - self.stated
        return max(0.0, over) / self.sd if self.is_ceiling else over / self.sd

    def holds(self, loss: float) -> bool:
        """Inside the accuracy asked for."""
        return loss <= self.stated if self.is_ceiling else abs(loss - self.stated) <= self.tolerance


TARGETS = (
    Target("pinning.2.1", 45.0, 2.5, 5.0),
    Target("turnkey2.D", 19.0, 2.0, 4.0),
    Target("turnkey4.720", 0.1, 0.1, 0.0, is_ceiling=True),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """Seeds and lengths of the runs."""

    seed: int
    replications: int
    seconds: float
    warmup_seconds: float


COARSE = Budget(101, 1, 0.8, 0.2)
FINE = Budget(101, 2, 1.5, 0.3)
EVALUATION = Budget(202, 3, 2.0, 0.5)


@dataclass(frozen=True, slots=True)
class Point:
    """A pair of costs, the losses they give and how far off those are."""

    backend_us: float
    relay_us: float
    losses: dict[str, float]
    objective: float
    holds: bool


def loss_percent(key: str, assignments: Sequence[str], budget: Budget) -> float:
    """Loss of an experiment over all replications."""
    if key.startswith("turnkey"):
        assignments = [a for a in assignments if not a.startswith("domains.cpu")]
    system = experiment(key, assignments)
    dropped = known = 0
    for replication in range(budget.replications):
        media = media_of(system, run_for(system, budget, replication))
        dropped += media.dropped
        known += media.dropped + media.delivered
    return 100.0 * dropped / known


def run_for(spec: ModelSpec, budget: Budget, replication: int) -> RunRecord:
    """Run a replication for as long as a budget says."""
    times = {"duration": int(budget.seconds * _S), "warm_up": int(budget.warmup_seconds * _S)}
    spec = spec.model_copy(update={"measure": spec.measure.model_copy(update=times)})
    return run_model(spec, budget.seed, replication)


def evaluate(backend_us: float, relay_us: float, structure: tuple[str, ...], budget: Budget) -> Point:
    """Run the fitted experiments with a pair of costs."""
    losses: dict[str, float] = {}
    objective = 0.0
    holds = True
    for target in TARGETS:
        loss = losses[target.experiment] = loss_percent(
            target.experiment, overrides(backend_us, relay_us, structure), budget
        )
        objective += target.deviation(loss) ** 2
        holds = holds and target.holds(loss)
        if objective > _HOPELESS:
            holds = False
            break
    return Point(backend_us, relay_us, losses, objective, holds)


def fit(structure: tuple[str, ...], jobs: int, known: Sequence[Point] = ()) -> list[Point]:
    """Find the region on a coarse grid, then run fine grids until the best point is none of an edge.

    ``known`` are fine points of an earlier, unfinished fit.  Returns the fine points, the best first.
    """
    points = list(known)
    if not points:
        coarse = [(float(b), float(r)) for b in range(6, 25, 3) for r in range(2, 31, 4)]
        center = min(_evaluate_all(coarse, structure, jobs, COARSE), key=_rank)
    else:
        center = min(points, key=_rank)
    for _ in range(_ROUNDS):
        grid = {
            (center.backend_us + b, center.relay_us + r)
            for b in (-2.0, -1.0, 0.0, 1.0, 2.0)
            for r in (-4.0, -2.0, 0.0, 2.0, 4.0)
            if center.relay_us + r > 0.0
        }
        missing = sorted(grid - {(p.backend_us, p.relay_us) for p in points})
        points = sorted([*points, *_evaluate_all(missing, structure, jobs, FINE)], key=_rank)
        best = points[0]
        inside = abs(best.backend_us - center.backend_us) < 2.0 and abs(best.relay_us - center.relay_us) < 4.0
        if inside:
            break
        center = best
    return points


def _rank(point: Point) -> tuple[int, float]:
    """Points that were not given up first, then by objective."""
    return -len(point.losses), point.objective


def _evaluate_all(
    costs: Iterable[tuple[float, float]], structure: tuple[str, ...], jobs: int, budget: Budget
) -> list[Point]:
    costs = list(costs)
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(evaluate, b, r, structure, budget) for b, r in costs]
        return [future.result() for future in futures]


def summary(points: list[Point], structure: tuple[str, ...]) -> dict[str, Any]:
    """Return what a fit has found: best point, feasible ranges, fresh evaluation."""
    best = points[0]
    feasible = [p for p in points if p.holds]
    fresh = evaluate(best.backend_us, best.relay_us, structure, EVALUATION)
    return {
        "structure": list(structure),
        "best": asdict(best),
        "evaluation_on_fresh_seeds": asdict(fresh),
        "feasible_points": len(feasible),
        "feasible_backend_us": _range([p.backend_us for p in feasible]),
        "feasible_relay_us": _range([p.relay_us for p in feasible]),
        "feasible_twice_backend_plus_relay_us": _range([2 * p.backend_us + p.relay_us for p in feasible]),
        "points": [asdict(p) for p in points],
    }


def _range(values: list[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None


def main() -> None:
    """Fit the chosen structures and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=shipped_dir("calibration") / "xen-media" / "fit.json")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--structure", action="append", choices=sorted(STRUCTURES))
    arguments = parser.parse_args()
    results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for name in arguments.structure or STRUCTURES:
        structure = STRUCTURES[name]
        earlier = [Point(**point) for point in results.get(name, {}).get("points", ())]
        results[name] = summary(fit(structure, arguments.jobs, earlier), structure)
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
        found = results[name]
        print(name, found["best"], found["evaluation_on_fresh_seeds"]["losses"], found["feasible_points"])


if __name__ == "__main__":
    main()
