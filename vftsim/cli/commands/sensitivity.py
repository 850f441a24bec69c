"""``vftsim sensitivity``: which numbers decide a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options
from vftsim.cli.common import ModelStudy
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.composition.model import ModelSpec
    from vftsim.study.design.points import Span


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
    from vftsim.study.design.sensitivity import Request
    from vftsim.study.design.sensitivity import sensitivity as study

    base = common.model(model)
    spans = _spans(base.spec, range_ or [], prices, fit)
    request = Request(
        model, tuple(common.set_ or ()), figure, spans, base, trajectories, samples, most, replications, common.seed,
        common.quick,
    )  # fmt: skip
    request.check()
    folder = common.output or Path(f"sensitivity-{Path(model).stem}")
    with common.taking(request.takes, f"sensitivity of {base.name}") as progress:
        found = study(request, folder, common.jobs, force=common.force, progress=progress)
    options.say_remarks(found.remarks)
    common.show(found)
    common.say_written(folder, "sensitivity.csv, answer.json, tornado.png, manifest.json, vftsim.sqlite")


def _spans(spec: ModelSpec, ranges: list[str], prices: bool, fit: str | None) -> dict[str, Span]:
    """Return the range of each factor, those that the user gives by name before all others."""
    from vftsim.study.design.ranges import price_ranges, read_range

    found: dict[str, Span] = {}
    for text in ranges:
        name, span = read_range(text)
        if name in found:
            raise UsageError(f"--range: '{name}' is given twice")
        found[name] = span
    if prices:
        found = {**price_ranges(spec), **found}
    if fit is not None:
        found = {**_fitted(spec, fit), **found}
    return found


def _fitted(spec: ModelSpec, fit: str) -> dict[str, Span]:
    """Return ranges of fitted parameters, as far from the model's values as the interval's ends from the fitted ones.

    What the data do not tell has the bounds of the search.
    """
    from vftsim.calibrate.drawn import read_fit
    from vftsim.composition.keys import read
    from vftsim.study.design.ranges import scaled_range

    drawable = read_fit(fit)
    found: dict[str, Span] = {}
    for key, value in drawable.values.items():
        own = float(read(spec, key))
        if key in drawable.limited and own in (0.0, 1.0):
            continue  # of another environment
        is_bounds = key in drawable.undetermined or value == 0.0
        low, high = drawable.bounds[key] if is_bounds else (drawable.low[key], drawable.high[key])
        about = own if is_bounds else value
        if about == 0.0:
            raise UsageError(f"--fit: the model has 0 at {key}, of which there are no multiples; --set it first")
        found[key] = scaled_range(spec, key, low / about, high / about)
    return found
