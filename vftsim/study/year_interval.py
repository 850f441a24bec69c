"""How sure a year is: what the crashes leave open of its downtime and failures, and its nines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from vftsim.stats import Estimate, binomial_interval, stratified_interval
from vftsim.study.failover import FailoverStudy
from vftsim.study.results import CONFIDENCE


def year_columns(
    study: FailoverStudy, downtime_s: Callable[[float], float], failed: Callable[[float], float]
) -> dict[str, Any]:
    """Return the columns of a year's uncertainty.

    Parameters
    ----------
    downtime_s, failed : callable
        Seconds a year of a mean outage in s, and attempts a year of those that fail by a crash; rising.

    The downtime's interval is that of the mean outage, the time unprotected being taken at its mean (it enters in the
    second order of the rate of failures).  It exists where the guest came back after every crash: what somebody
    restarts by hand is an assumption, and how often that is needed a share of the crashes with its own interval.
    """
    away_s = [each.away_s for each in study.failovers if math.isfinite(each.away_s)]
    crashes, back = len(study.failovers), len(away_s)
    came_back = binomial_interval(back, crashes, CONFIDENCE)
    outage = stratified_interval(away_s, CONFIDENCE) if back == crashes else None
    lost = [float(sum(each.failed.values())) for each in study.recovered]
    attempts = stratified_interval(lost, CONFIDENCE) if back == crashes and any(lost) else None
    return {
        **_ends("downtime", outage, downtime_s),
        **_ends("failed", attempts, failed),
        "crashes": crashes,
        "came_back": back,
        "came_back_low": came_back.low,
        "came_back_high": came_back.high,
    }


def nines(unavailability: float) -> float:
    """Return -log10 of the unavailability: 3 for a service that is there in 99.9 % of the time."""
    return math.inf if unavailability <= 0.0 else -math.log10(unavailability)


def _ends(name: str, found: Estimate | None, of_year: Callable[[float], float]) -> dict[str, Any]:
    if found is None or found.low == found.high:
        return {f"{name}_low": math.nan, f"{name}_high": math.nan, f"{name}_interval": "none"}
    return {f"{name}_low": of_year(found.low), f"{name}_high": of_year(found.high), f"{name}_interval": found.kind}
