"""``vftsim record xen-media``: the experiments under the model and its rivals, and the curves, on several cores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import streams_of
from vftsim.records import xen_curves as curves
from vftsim.records import xen_media as record
from vftsim.records.study import in_order
from vftsim.records.xen_fit import STRUCTURES, Budget, overrides
from vftsim.spec import load, shipped_dir
from vftsim.study.progress import Progress

QUICK = Budget(record.RECORD.seed, 1, 0.5, 0.3)
Costs = tuple[float, float]
"""Back-end and relay, in us."""


def costs_of(name: str) -> Costs:
    """Return the costs of a model: the shipped file's for the right one, the fit's for a rival."""
    if name == record.RIGHT:
        return _shipped_costs()
    best = json.loads((shipped_dir("calibration") / "xen-media" / "fit.json").read_text())[name]["best"]
    return best["backend_us"], best["relay_us"]


def _shipped_costs() -> Costs:
    spec = load("xen-media", ModelSpec)
    rtp = streams_of(spec)
    assert rtp is not None
    media = spec.domains[spec.target_of(rtp)[0]]
    relay: Any = next(program for program in media.applications.values() if program.kind == "media_relay")
    path: Any = next(iter(media.interfaces.values())).path
    return path.backend_receive_cost / 1000, relay.packet_cost / 1000


def run_record(names: Sequence[str], jobs: int, budget: Budget, progress: Progress) -> dict[str, dict[str, Any]]:
    """Run all experiments under each of the models; return costs and results by model, experiments in order."""
    keys = [row["experiment_key"] for row in record.measured_rows()]
    costs = {name: costs_of(name) for name in names}
    wanted = [(name, key) for name in names for key in keys]
    tasks = [(key, costs[name], STRUCTURES[name], budget) for name, key in wanted]
    found = in_order(_experiment, tasks, [f"{key}, {name}" for name, key in wanted], jobs, progress)
    done: dict[str, dict[str, Any]] = {name: {"costs_us": list(costs[name]), "results": {}} for name in names}
    for (name, key), result in zip(wanted, found, strict=True):
        done[name]["results"][key] = result
    return done


def run_curve(name: str, jobs: int, budget: Budget, progress: Progress) -> list[dict[str, Any]]:
    """Run a curve with the shipped model's costs; return its points, a value for each replication."""
    curve = curves.CURVES[name]
    costs = overrides(*_shipped_costs(), STRUCTURES[record.RIGHT])
    tasks = [(curve.experiment, [*costs, *assignments], budget) for _, assignments in curve.points]
    labels = [", ".join(f"{k} {v}" for k, v in point.items()) for point, _ in curve.points]
    found = in_order(_figures, tasks, labels, jobs, progress)
    return [{**point, **figures} for (point, _), figures in zip(curve.points, found, strict=True)]


def _experiment(task: tuple[Any, ...]) -> dict[str, Any]:
    return record.run_experiment(*task)


def _figures(task: tuple[Any, ...]) -> dict[str, Any]:
    return curves.figures(*task)
