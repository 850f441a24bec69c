"""``vftsim study``: a design of experiments from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli.common import Study
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.errors import UsageError
from vftsim.interface import designs

if TYPE_CHECKING:
    from vftsim.study.designs.experiment import Experiment
    from vftsim.study.designs.study_spec import StudySpec

_MOST_LISTED = 40


@made_from(designs.study, Study, before={"dry_run": "points", "gen_config": "points"}, file=None)
def study(
    call: StudyCall, dry_run: bool = False, gen_config: str | None = None, shard: str | None = None, *, common: Study
) -> None:
    """Run a study file: models at the points of a design, each under the same replications.

    Killed or interrupted, the same command goes on; with more points or replications it goes on from what is there.

    Parameters
    ----------
    dry_run : --dry-run
        List points and runs, estimate the time, and run nothing.
    gen_config : --gen-config MODEL
        Print a study file for a model to begin with.
    """
    if gen_config is not None:
        _print_template(gen_config, call.arguments.get("file"))
        return
    if "file" not in call.arguments:
        raise UsageError("name a study file, or a shipped study; --gen-config MODEL prints one to begin with")
    share = common.share(shard)
    plan = call.plan()
    if dry_run:
        spec, experiment = plan.about
        _print_plan(spec, experiment, plan.folder, common.jobs)
        return
    common.show_all(plan, common.conduct(plan, shard=share))


def _print_template(model: str, file: str | None) -> None:
    from vftsim.study.designs.experiment import template

    if file is not None:
        raise UsageError("--gen-config prints a file for a model and runs none: give one of the two")
    print(template(model), end="")


def _print_plan(spec: StudySpec, experiment: Experiment, target: Path | None, jobs: int | None) -> None:
    """List what would be run, and how long that takes."""
    from vftsim.report.screen import print_table, print_text
    from vftsim.spec.suggest import counted
    from vftsim.study.runs.estimate import in_words
    from vftsim.study.runs.progress import Lines
    from vftsim.study.runs.workers import checked_jobs

    experiment.check(Lines("study"))
    points, names = experiment.points, list(experiment.factors)
    shown = [(str(p.number), p.label, *(p.values[name] for name in names)) for p in points[:_MOST_LISTED]]
    more = f"The first {_MOST_LISTED} of {len(points)} points." if len(points) > _MOST_LISTED else ""
    print_table(f"Points of {spec.name}", ("point", "model", *names), shown, more, texts=2 + len(names))
    if spec.precision is None:
        each = counted(spec.replications, "replication")
        runs = f"{counted(len(points), 'point')} with {each}: {counted(len(points) * spec.replications, 'run')}"
    else:
        runs = f"{len(points)} points with 15 to {spec.precision.most} replications, until {spec.precision.percent:g} %"
    print_text(f"{runs}; {in_words(experiment.takes(), checked_jobs(jobs))}, if nothing is in '{target}' yet.")
