"""``vftsim capacity``: what one system carries."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from vftsim.cli import options
from vftsim.errors import UsageError


class Method(StrEnum):
    """How the capacity is measured."""

    ramp = "ramp"
    search = "search"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("capacity")(capacity)


def capacity(
    model: options.ModelName,
    method: Annotated[
        Method, typer.Option(help="ramp: the lab's procedure, step by step; search: the largest constant load carried.")
    ] = Method.ramp,
    after_stop: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Failover-safe capacity: the largest load that recovers from such a stop, e.g. 2s."
        ),
    ] = None,
    window: Annotated[str, typer.Option(metavar="TIME", help="Time to recover after the stop.")] = "60 s",
    ihs_limit: options.IhsLimit = None,
    probability: Annotated[float, typer.Option(help="Search: share of runs that must stay within the limit.")] = 0.9,
    resolution: Annotated[
        float | None, typer.Option(metavar="SAPS", help="Search: difference of loads that does not matter.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Search: most runs in all (default 800, with --quick 160).")
    ] = None,
    set_: options.Set = None,
    replications: options.Replications = options.DEFAULT_REPLICATIONS,
    seed: options.Seed = options.DEFAULT_SEED,
    jobs: options.Jobs = None,
    scale: options.Scale = 1.0,
    quick: options.Quick = False,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what load a system carries, with an interval, and what limits it."""
    from vftsim.spec import DURATION, PERCENT

    options.one_format(as_json, as_csv)
    limit = None if ihs_limit is None else options.parse_quantity("--ihs-limit", ihs_limit, PERCENT, "%")
    stop_ns = None if after_stop is None else int(options.parse_quantity("--after-stop", after_stop, DURATION))
    window_ns = int(options.parse_quantity("--window", window, DURATION))
    if stop_ns == 0:
        raise UsageError("--after-stop: a stop takes time, e.g. 2s")
    chosen = options.prepared(model, set_, scale, quick)
    from vftsim.report.tables import print_capacity
    from vftsim.study.capacity import ramp_study, search_study
    from vftsim.study.constant_load import Stop
    from vftsim.study.progress import make_progress
    from vftsim.study.search import QUICK_SEARCH, SearchSettings

    settings = QUICK_SEARCH if quick else SearchSettings()
    settings = replace(settings, probability=probability, resolution_saps=resolution, budget=budget or settings.budget)

    with make_progress(f"capacity of {chosen.name}", quiet) as progress:
        if method is Method.ramp and stop_ns is None:
            study = ramp_study(chosen, replications, seed, jobs, ihs_limit_percent=limit, progress=progress)
        else:
            study = search_study(
                chosen, seed, jobs, ihs_limit_percent=limit, progress=progress,
                settings=settings, stop=None if stop_ns is None else Stop(stop_ns, window_ns),
            )  # fmt: skip
    options.show(study, as_json, as_csv, print_capacity)
    if study.interrupted:
        from vftsim.cli.main import interrupted

        raise interrupted("the figures above rest on what had finished")
