"""``vftsim run``: replications of a model, as the tables of a benchmark report."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.stats import StoppingRule
    from vftsim.study.model import Model
    from vftsim.study.results import RunResult


MOST_FOR_PRECISION = 200


class Tables(StrEnum):
    """How much is printed."""

    summary = "summary"
    all = "all"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    model: options.ModelName,
    set_: options.Set = None,
    replications: Annotated[
        int | None, typer.Option("--replications", "-n", help="Independent replications (default 10).")
    ] = None,
    seed: options.Seed = options.DEFAULT_SEED,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    shard: options.Shard = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Run until each --figure is known this well (95 % interval); --replications is then the most "
            "(default 200).",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --precision: a figure, e.g. web.response.p95 or calls.step_1.cpu; repeatable (default: one of "
            "the first workload's, of its first step).",
        ),
    ] = None,
    output: options.Output = None,
    force: options.Force = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted result, or add replications to one.")
    ] = False,
    scale: options.Scale = 1.0,
    quick: options.Quick = False,
    tables: Annotated[Tables, typer.Option(help="Print the step table, or all tables of the report.")] = Tables.summary,
    report: options.Report = None,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
    max_time: options.MaxTime = None,
    max_memory: options.MaxMemory = None,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Simulate a model and print its tables; with -o, keep tidy files, plots and a manifest."""
    options.use_engine(engine, cluster, strict=strict)
    limits = options.read_limits(yes, max_time, max_memory)
    options.one_format(as_json, as_csv)
    options.check_report(report, force)
    if ((force and report is None) or resume) and output is None:
        raise UsageError("--force and --resume are about a result directory: name it with -o DIR")
    from vftsim.study.shard import Shard

    share = Shard.parse(shard)
    if shard is not None and (output is None or precision is not None):
        raise UsageError("--shard: goes with -o DIR, and not with --precision, which looks at all replications")
    chosen = options.prepared(model, set_, scale, quick)
    rule = _rule(chosen, precision, figure or [], replications)
    if replications is None or rule is not None:
        replications = 1 if rule is not None else options.DEFAULT_REPLICATIONS
    from vftsim.study.estimate import total
    from vftsim.study.progress import make_progress
    from vftsim.study.run import run_study

    runs = replications if rule is None else rule.budget
    takes = options.limited(limits, lambda: total([chosen.spec], runs), jobs)
    with takes as words, make_progress(f"run {chosen.name}", quiet, words) as progress:
        result = run_study(
            chosen, replications, seed, jobs, directory=output, force=force, resume=resume, progress=progress,
            rule=rule, shard=share,
        )  # fmt: skip
    options.say_remarks(result.remarks)
    _show(result, tables, as_json, as_csv)
    if report is not None:
        options.write_report(report, result.report())
    if result.interrupted:
        from vftsim.cli.main import interrupted

        kept = f"{len(result.records)} of {result.manifest['replications_wanted']} replications"
        where = f" in '{output}'; --resume continues" if output else ", shown above"
        raise interrupted(f"{kept} are kept{where}")
    if output is not None and not (as_json or as_csv):
        from vftsim.report.screen import print_text

        print_text(f"Written: {output}/ (summary.csv, tables, plots/, model.yaml, manifest.json, vftsim.sqlite)")


def _rule(model: Model, precision: str | None, figures: list[str], most: int | None) -> StoppingRule | None:
    """Return when to stop, if a precision was asked for."""
    if precision is None:
        if figures:
            raise UsageError("--figure: goes with --precision")
        return None
    from vftsim.spec import PERCENT
    from vftsim.study.precision import precision_rule

    percent = options.parse_quantity("--precision", precision, PERCENT, "%")
    return precision_rule(model, percent, figures, MOST_FOR_PRECISION if most is None else most)


def _show(result: RunResult, tables: Tables, as_json: bool, as_csv: bool) -> None:
    from vftsim.report.screen import print_json

    if as_json:
        print_json(result.for_machines())
    elif as_csv:
        from vftsim.study.results import csv_text

        print(csv_text(result.summary), end="")
    else:
        from vftsim.report.screen import print_blocks

        print_blocks(result.blocks(everything=tables is Tables.all))
