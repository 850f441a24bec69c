"""``vftsim sensitivity``: which numbers decide a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vftsim.cli import options
from vftsim.cli.common import ModelStudy


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sensitivity")(sensitivity)


def sensitivity(
    model: options.ModelName,
    figure: Annotated[
        str, typer.Option("--figure", metavar="NAME", help="The one figure that is asked about, e.g. web.response.p95.")
    ],
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="KEY=LOW..HIGH",
            help="A setting and its range, ' log' behind it spreads by ratio; a key of the model or a short name of "
            "sweeps; repeatable.",
        ),
    ] = None,
    prices: Annotated[
        bool, typer.Option("--prices", help="Prices of the model's protection, over the ranges declared for them.")
    ] = False,
    fit: Annotated[
        str | None,
        typer.Option(metavar="FIT", help="Fitted parameters over their 95 % intervals, e.g. sip-lab/virtual."),
    ] = None,
    trajectories: Annotated[int, typer.Option(metavar="N", help="Trajectories of the screening (Morris).")] = 10,
    samples: Annotated[int, typer.Option(metavar="N", help="Samples of the shares (Sobol), a power of 2.")] = 64,
    most: Annotated[int, typer.Option(metavar="N", help="Most factors whose shares are found.")] = 5,
    replications: Annotated[int, typer.Option("--replications", "-n", help="Replications of each point.")] = 2,
    *,
    common: ModelStudy,
) -> None:
    """Say which settings, fitted parameters and assumed prices decide a figure: screening, then shares of its variance.

    Killed or interrupted, the same command goes on.
    """
    from vftsim.calibrate.spans import spans_named
    from vftsim.study.design.sensitivity import Request
    from vftsim.study.design.sensitivity import sensitivity as study

    base = common.model(model)
    spans = spans_named(base.spec, range_ or [], prices=prices, fit=fit)
    request = Request(
        model,
        tuple(common.set_ or ()),
        figure,
        spans,
        base,
        trajectories,
        samples,
        most,
        replications,
        common.seed,
        common.quick,
    )
    request.check()
    folder = common.output or Path(f"sensitivity-{Path(model).stem}")
    with common.taking(request.takes, f"sensitivity of {base.name}") as progress:
        found = study(request, folder, common.jobs, force=common.force, progress=progress)
    options.say_remarks(found.remarks)
    common.show(found)
    common.say_written(folder, "sensitivity.csv, answer.json, charts.png, manifest.json, vftsim.sqlite")
