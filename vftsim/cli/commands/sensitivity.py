"""``vftsim sensitivity``: which numbers decide a figure."""

from __future__ import annotations

from pathlib import Path

from vftsim.cli import options
from vftsim.cli.common import ModelStudy


def sensitivity(
    model: str,
    figure: str,
    range_: list[str] | None = None,
    prices: bool = False,
    fit: str | None = None,
    trajectories: int = 10,
    samples: int = 64,
    most: int = 5,
    replications: int = 2,
    *,
    common: ModelStudy,
) -> None:
    """Say which settings, fitted parameters and assumed prices decide a figure: screening, then shares of its variance.

    Killed or interrupted, the same command goes on.

    Parameters
    ----------
    figure : --figure NAME
        The one figure that is asked about, e.g. web.response.p95.
    range_ : --range KEY=LOW..HIGH
        A setting and its range, ' log' behind it spreads by ratio; a key of the model or a short name of sweeps;
        repeatable.
    prices : --prices
        Prices of the model's protection, over the ranges declared for them.
    fit : --fit FIT
        Fitted parameters over their 95 % intervals, e.g. sip-lab/virtual.
    trajectories : --trajectories N
        Trajectories of the screening (Morris).
    samples : --samples N
        Samples of the shares (Sobol), a power of 2.
    most : --most N
        Most factors whose shares are found.
    replications : --replications, -n
        Replications of each point.
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
