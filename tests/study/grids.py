"""Sweeps with all their points at once, as tests want them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vftsim.study.designs.experiment import Experiment
from vftsim.study.designs.study import StudyResult, run_experiment
from vftsim.study.designs.sweep import plan_sweep
from vftsim.study.runs.execution import Execution


def make_grid(*arguments: Any) -> Experiment:
    """Return a sweep with its points made; see :func:`.plan_sweep`."""
    grid = plan_sweep(*arguments)
    assert grid.points[:1]
    return grid


def run_sweep(
    grid: Experiment,
    folder: Path,
    replications: int,
    execution: Execution,
    *,
    force: bool = False,
    figures: Sequence[str] = (),
) -> StudyResult:
    """Run a sweep with so many replications, asking for these figures."""
    asked = replace(grid, replications=replications, figures=tuple(figures))
    return run_experiment(asked, folder, execution, force=force)
