"""``vftsim study``: a design of experiments from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.cli.common import Study
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.study.design.points import StudyPoint
    from vftsim.study.design.spec import StudySpec

_MOST_LISTED = 40


def study(
    file: str | None = None,
    dry_run: bool = False,
    gen_config: str | None = None,
    points: int | None = None,
    replications: int | None = None,
    seed: int | None = None,
    quick: bool = False,
    shard: str | None = None,
    *,
    common: Study,
) -> None:
    """Run a study file: models at the points of a design, each under the same replications.

    Killed or interrupted, the same command goes on; with more points or replications it goes on from what is there.

    Parameters
    ----------
    file : [FILE]
        A study file, or the name of a shipped study.
    dry_run : --dry-run
        List points and runs, estimate the time, and run nothing.
    gen_config : --gen-config MODEL
        Print a study file for a model to begin with.
    points : --points N
        Points drawn, instead of the file's (latin_hypercube, sobol).
    replications : --replications, -n N
        Instead of the file's.
    seed : --seed N
        Instead of the file's.
    """
    if gen_config is not None:
        _print_template(gen_config, file)
        return
    if file is None:
        raise UsageError("name a study file, or a shipped study; --gen-config MODEL prints one to begin with")
    from vftsim.study.design.points import change_for, points_of
    from vftsim.study.design.spec import changed, read_study
    from vftsim.study.design.study import check_responses, run_study_file, takes
    from vftsim.study.shard import Shard

    share = Shard.parse(shard)
    if shard is not None and common.output is None:
        raise UsageError("--shard: goes with -o DIR, a directory for each share")
    spec, folder = read_study(file)
    spec = changed(spec, points, replications, seed)
    made = points_of(spec, folder, change_for(quick))
    target = common.output or Path(f"study-{spec.name}")
    if dry_run:
        check_responses(spec, made)
        _print_plan(spec, made, target, common.jobs)
        return
    with common.taking(lambda: takes(spec, made), f"study {spec.name}") as progress:
        result = run_study_file(spec, made, target, common.jobs, force=common.force, progress=progress, shard=share)
    options.say_remarks(result.remarks)
    common.show(result)
    common.say_written(target, "results.csv, replications.csv, points.json, manifest.json, vftsim.sqlite")
    if result.interrupted:
        from vftsim.cli.main import interrupted

        raise interrupted(f"{result.finished} runs are kept in '{target}'; the same command continues")


def _print_template(model: str, file: str | None) -> None:
    from vftsim.study.design.study import template

    if file is not None:
        raise UsageError("--gen-config prints a file for a model and runs none: give one of the two")
    print(template(model), end="")


def _print_plan(spec: StudySpec, points: list[StudyPoint], target: Path, jobs: int | None) -> None:
    """List what would be run, and how long that takes."""
    from vftsim.report.screen import print_table, print_text
    from vftsim.study.design.study import takes
    from vftsim.study.estimate import in_words
    from vftsim.study.workers import checked_jobs

    names = list(points[0].values)
    shown = [(str(p.number), p.label, *(p.values[name] for name in names)) for p in points[:_MOST_LISTED]]
    more = f"The first {_MOST_LISTED} of {len(points)} points." if len(points) > _MOST_LISTED else ""
    print_table(f"Points of {spec.name}", ("point", "model", *names), shown, more, texts=2 + len(names))
    if spec.precision is None:
        runs = f"{len(points)} points with {spec.replications} replications: {len(points) * spec.replications} runs"
    else:
        runs = f"{len(points)} points with 15 to {spec.precision.most} replications, until {spec.precision.percent:g} %"
    print_text(f"{runs}; {in_words(takes(spec, points), checked_jobs(jobs))}, if nothing is in '{target}' yet.")
