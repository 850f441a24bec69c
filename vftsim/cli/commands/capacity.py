"""``vftsim capacity``: what one system carries."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.cli import options
from vftsim.cli.common import ModelStudy

if TYPE_CHECKING:
    from vftsim.study.search_levels import CapacityRequest


class Method(StrEnum):
    """How the capacity is measured."""

    ramp = "ramp"
    search = "search"


def capacity(
    model: str,
    method: Method | None = None,
    loss_limit: str | None = None,
    ihs_limit: str | None = None,
    after_stop: str | None = None,
    window: str | None = None,
    headroom: str | None = None,
    labs: Path | None = None,
    probability: float | None = None,
    resolution: float | None = None,
    budget: int | None = None,
    vary: str | None = None,
    objective: list[str] | None = None,
    prices: bool = True,
    replications: int | None = None,
    scale: float = 1.0,
    *,
    common: ModelStudy,
) -> None:
    """Say what load a system carries, with an interval, and what limits it.

    Parameters
    ----------
    method : --method
        ramp: the lab's procedure, step by step (default of a SIP lab); search: the largest constant load carried (the
        method of a media host).
    loss_limit : --loss-limit PERCENT
        Media host: allowed loss of packets (default 0.1 %).
    after_stop : --after-stop TIME
        Failover-safe capacity: the largest load that recovers from such a stop, e.g. 2s.
    window : --window TIME
        Time to recover after the stop (default 60 s).
    headroom : --headroom PERCENT
        Ramp: share of the load that fills the CPU to leave free (default: as much as the most fragile measured system
        needed).
    labs : --labs FILE
        Ramp: systems of your own whose ramps were measured, beside the shipped ones.
    probability : --probability
        Search: share of runs that must stay within the limit (default 0.9).
    resolution : --resolution LOAD
        Search: difference of loads (SAPS or streams) that does not matter.
    budget : --budget
        Search: most runs, of each with --after-stop (default 800, of a media host 300, with --quick 160).
    vary : --vary KEY
        Find the largest value of this key of the model, e.g. workloads.web.rate; by default the load that its workload
        declares.
    objective : --objective 'FIGURE <= NUMBER'
        What a run must achieve, e.g. 'web.answered >= 90' (repeatable: all of them).
    prices : --prices/--no-prices
        Play prices of the protection at both ends of their ranges, for a band.
    replications : --replications, -n
        Ramp: independent ramps (default 10).
    """
    request = _request(
        method,
        loss_limit,
        ihs_limit,
        after_stop,
        window,
        headroom,
        labs=labs,
        probability=probability,
        resolution=resolution,
        budget=budget,
        replications=replications,
        seed=common.seed,
        jobs=common.jobs,
        quick=common.quick,
        vary=vary,
        objectives=tuple(objective or ()),
        prices=prices,
    )
    common.check_force()
    from vftsim.study.find_capacity import capacity_takes, find_capacity

    chosen = common.model(model, scale)
    study = common.answer(
        "capacity",
        f"capacity of {chosen.name}",
        lambda: capacity_takes(chosen, request),
        lambda store, progress: find_capacity(chosen, replace(request, progress=progress, store=store)),
    )
    common.show(study)
    if study.interrupted:
        from vftsim.cli.main import interrupted

        goes_on = f"; it is in '{common.output}', the same command goes on" if common.output else ""
        raise interrupted(f"the figures above rest on what had finished{goes_on}")


def _request(
    method: Method | None,
    loss_limit: str | None,
    ihs_limit: str | None,
    after_stop: str | None,
    window: str | None,
    headroom: str | None,
    **plain: Any,
) -> CapacityRequest:
    """Return what was asked for, with quantities read."""
    from vftsim.spec import DURATION, PERCENT
    from vftsim.study.search_levels import CapacityRequest

    def read_percent(option: str, text: str | None) -> float | None:
        return None if text is None else options.parse_quantity(option, text, PERCENT, "%")

    def read_ns(option: str, text: str | None) -> int | None:
        return None if text is None else round(options.parse_quantity(option, text, DURATION))

    return CapacityRequest(
        method=None if method is None else method.value,
        loss_limit_percent=read_percent("--loss-limit", loss_limit),
        ihs_limit_percent=read_percent("--ihs-limit", ihs_limit),
        headroom_percent=read_percent("--headroom", headroom),
        after_stop_ns=read_ns("--after-stop", after_stop),
        window_ns=read_ns("--window", window),
        **plain,
    )
