"""Sweeps with all their points at once, and answers whose runs are kept, as tests want them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from vftsim.interface.plan import Plan
from vftsim.study.designs import run as runs
from vftsim.study.designs.experiment import Experiment
from vftsim.study.designs.run import RunResult
from vftsim.study.designs.study import StudyResult, run_experiment
from vftsim.study.designs.sweep import plan_sweep
from vftsim.study.execution import Execution
from vftsim.study.runs.model import Model


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
    found: StudyResult = kept(run_experiment, asked, folder, execution, force=force)
    return found


def kept(
    study: Callable[..., Any], request: Any, folder: Path | None, execution: Execution | None = None, **how: Any
) -> Any:
    """Return the answer to a request, its runs and files kept in a folder as the command keeps them."""
    given = execution or Execution(1, 1)
    more = {"directory": folder, "seed": given.seed, "jobs": given.jobs, **how}
    command = getattr(request, "command", study.__name__.partition("_")[0])
    plan: Plan[Any] = Plan(command, "", [], None, partial(study, request), **more)
    return plan.answer(given.progress)[0]


def run_study(
    model: Model,
    replications: int,
    execution: Execution,
    *,
    directory: Path | None = None,
    rule: Any = None,
    resume: bool = False,
    force: bool = False,
) -> RunResult:
    """Run a model, kept in a directory if one is named."""

    def run(each: Model, in_use: Execution) -> RunResult:
        return runs.run_study(each, replications, in_use, rule=rule)

    found: RunResult = kept(run, model, directory, execution, goes_on=resume, force=force)
    return found
