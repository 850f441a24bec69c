"""``vftsim compare``: several systems side by side under the same traffic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.cli import options
from vftsim.cli.common import ModelStudy
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vftsim.study.decision_crossovers import Asked
    from vftsim.study.model import Model


def compare(
    models: list[str],
    protection: str | None = None,
    objective: list[str] | None = None,
    mtbf: str | None = None,
    restart: str | None = None,
    prices: bool = True,
    crossovers: list[str] | None = None,
    figure: list[str] | None = None,
    replications: int = options.DEFAULT_REPLICATIONS,
    scale: float = 1.0,
    *,
    common: ModelStudy,
) -> None:
    """Compare systems in any figures under common random numbers, with intervals of the differences.

    Of models with a SIP benchmark the capacities are compared if no figure is asked for. With --protection: one model
    under several mechanisms: its service, what they cost on both hosts, what a crash and a year show, who meets what
    is asked, and the cheapest.

    --set applies to every model.

    Parameters
    ----------
    models : MODEL...
        Two or more models, the first is the reference; a variant is MODEL+KEY=VALUE+KEY=VALUE.
    protection : --protection KIND,KIND
        Compare mechanisms on one model instead: a list, or 'all'.
    objective : --objective 'FIGURE <= NUMBER'
        What a mechanism has to achieve (repeat for several), e.g. 'web.response.p95 <= 100 ms' or 'outage <= 3 s'. With
        --protection.
    mtbf : --mtbf TIME
        Mean time between failures of a host (default 365 d). With --protection.
    restart : --restart TIME
        Time in which somebody brings back what does not come back by itself (default 77 s). With --protection.
    prices : --prices/--no-prices
        Play prices of mechanisms at both ends of their ranges, for bands. With --protection.
    crossovers : --crossovers SETTING[=VALUE,VALUE]
        Show where the order of mechanisms changes over a setting that they share (repeat for several):
        checkpoint_interval, dirty_rate, round_trip, load, or all; at values around their own, or at those given, e.g.
        'round_trip=100 us,1 ms,10 ms'. With --protection.
    figure : --figure NAME
        A figure to compare (repeat for several), e.g. web.response.p95, domains.sut.cpu, calls.at_50.ihs; those that
        lead if not given.
    """
    chosen = [_variant(name, common, scale) for name in models]
    from vftsim.study.compare import compare_study
    from vftsim.study.estimate import total

    common.check_force()
    if protection is not None:
        if figure:
            raise UsageError("--figure: with --protection every figure is shown; --objective says what is asked")
        asked = _asked(objective or (), mtbf, restart, prices, crossovers or ())
        _mechanisms(chosen, protection, replications, asked, common)
        return
    for option, given in (
        ("--objective", objective),
        ("--mtbf", mtbf),
        ("--restart", restart),
        ("--crossovers", crossovers),
    ):
        if given:
            raise UsageError(f"{option} judges mechanisms: name them with --protection")
    result = common.answer(
        "compare",
        "compare",
        lambda: total([each.spec for each in chosen], replications),
        lambda store, progress: compare_study(
            chosen, replications, common.seed, common.jobs, progress=progress, store=store, figures=figure or ()
        ),
    )
    common.show(result)
    if result.interrupted:
        from vftsim.cli.main import interrupted

        goes_on = f"; what had finished is in '{common.output}', the same command goes on" if common.output else ""
        raise interrupted(f"the figures above rest on the replications that all models had finished{goes_on}")


def _variant(named: str, common: ModelStudy, scale: float) -> Model:
    """Return a model as named: a file or shipped name, with changes of its own behind plus signs."""
    if "+" not in named or Path(named).exists():
        return common.model(named, scale)
    name, *changes = named.split("+")
    model = options.prepared(name, [*(common.set_ or ()), *changes], scale, common.quick)
    return replace(model, label=named)


def _asked(
    objectives: Sequence[str], mtbf: str | None, restart: str | None, bands: bool, crossovers: Sequence[str]
) -> Asked:
    """Return the question that the options put."""
    from vftsim.spec import DURATION
    from vftsim.study.decision_crossovers import Asked
    from vftsim.study.objective import read_objective

    times = {
        name: options.parse_quantity(option, text, DURATION) / 1e9
        for name, option, text in (("mtbf_s", "--mtbf", mtbf), ("restart_s", "--restart", restart))
        if text is not None
    }
    return Asked(tuple(read_objective(text) for text in objectives), **times, bands=bands, crossovers=tuple(crossovers))


def _mechanisms(models: list[Model], named: str, replications: int, asked: Asked, common: ModelStudy) -> None:
    """Compare protection mechanisms on one model."""
    from vftsim.study.decision import decide, decision_takes
    from vftsim.study.protections import fitting, kinds_named

    if len(models) != 1:
        raise UsageError("--protection compares mechanisms on one model; name one")
    kinds = kinds_named(named)
    each = fitting(models[0], kinds)[0]
    result = common.answer(
        "compare",
        "compare",
        lambda: decision_takes(each, replications, asked),
        lambda store, progress: decide(
            models[0], kinds, replications, common.seed, common.jobs, asked=asked, progress=progress, store=store
        ),
    )
    common.show(result)
    if result.interrupted:
        from vftsim.cli.main import interrupted

        raise interrupted("the figures above rest on the replications that all mechanisms had finished")
