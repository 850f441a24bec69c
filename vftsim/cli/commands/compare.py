"""``vftsim compare``: several systems side by side under the same traffic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options

if TYPE_CHECKING:
    from vftsim.study.limits import Limits
    from vftsim.study.model import Model


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Two or more models, the first is the reference; a variant is MODEL+KEY=VALUE.",
        ),
    ],
    protection: Annotated[
        str | None,
        typer.Option(metavar="KIND,KIND", help="Compare mechanisms on one model instead: a list, or 'all'."),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            "--figure",
            metavar="NAME",
            help="A figure to compare (repeat for several), e.g. web.response.p95, domains.sut.cpu, calls.at_50.ihs; "
            "those that lead if not given.",
        ),
    ] = None,
    set_: options.Set = None,
    replications: options.Replications = options.DEFAULT_REPLICATIONS,
    seed: options.Seed = options.DEFAULT_SEED,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    output: options.KeepIn = None,
    force: options.StartOver = False,
    scale: options.Scale = 1.0,
    quick: options.Quick = False,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
    max_time: options.MaxTime = None,
    max_memory: options.MaxMemory = None,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Compare systems in any figures under common random numbers, with intervals of the differences.

    Of models with a SIP benchmark the capacities are compared if no figure is asked for.

    --set applies to every model.
    """
    options.use_engine(engine, cluster, strict=strict)
    limits = options.read_limits(yes, max_time, max_memory)
    options.one_format(as_json, as_csv)
    chosen = [_variant(name, set_, scale, quick) for name in models]
    from vftsim.study.compare import compare_study
    from vftsim.study.estimate import total
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.progress import make_progress

    options.check_force(force, output)
    if protection is not None:
        _mechanisms(chosen, protection, replications, seed, jobs, output, force, as_json, as_csv, quiet, limits)
        return
    takes = options.limited(limits, lambda: total([each.spec for each in chosen], replications), jobs)
    with (
        takes as words,
        kept_in(output, "compare", force) as store,
        make_progress("compare", quiet, words) as progress,
    ):
        result = compare_study(chosen, replications, seed, jobs, progress=progress, store=store, figures=figure or ())
        keep_answer(store, result)
    options.say_remarks(store.remarks if store else ())
    options.show(result, as_json, as_csv, lambda _: result.print_tables())
    if result.interrupted:
        from vftsim.cli.main import interrupted

        goes_on = f"; what had finished is in '{output}', the same command goes on" if output else ""
        raise interrupted(f"the figures above rest on the replications that all models had finished{goes_on}")


def _variant(named: str, set_: list[str] | None, scale: float, quick: bool) -> Model:
    """Return a model as named: a file or shipped name, with changes of its own behind plus signs."""
    if "+" not in named or Path(named).exists():
        return options.prepared(named, set_, scale, quick)
    name, *changes = named.split("+")
    model = options.prepared(name, [*(set_ or ()), *changes], scale, quick)
    return replace(model, label=named)


def _mechanisms(
    models: list[Model], named: str, replications: int, seed: int, jobs: int | None, output: Path | None, force: bool,
    as_json: bool, as_csv: bool, quiet: bool, limits: Limits,
) -> None:  # fmt: skip
    """Compare protection mechanisms on one model."""
    from vftsim.errors import UsageError
    from vftsim.report.protection_tables import print_protections
    from vftsim.study.estimate import total
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.progress import make_progress
    from vftsim.study.protections import compare_protections, kinds_named

    if len(models) != 1:
        raise UsageError("--protection compares mechanisms on one model; name one")
    kinds = kinds_named(named)
    takes = options.limited(limits, lambda: total([models[0].spec], len(kinds) * replications), jobs)
    with (
        takes as words,
        kept_in(output, "compare", force) as store,
        make_progress("compare", quiet, words) as progress,
    ):
        result = compare_protections(models[0], kinds, replications, seed, jobs, progress=progress, store=store)
        keep_answer(store, result)
    options.say_remarks(store.remarks if store else ())
    options.show(result, as_json, as_csv, print_protections)
    if result.interrupted:
        from vftsim.cli.main import interrupted

        raise interrupted("the figures above rest on the replications that all mechanisms had finished")
