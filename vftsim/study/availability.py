"""``vftsim availability``: a year with a mechanism, from simulated failovers and a Markov model.

Hosts fail independently, lambda = 1 / MTBF each.  A pair is protected; it fails over (for the simulated outage F) when
the primary's host fails, and is unprotected until redundancy is back (the simulated time Rp) after that or after a
failure of the backup's host; a failure while unprotected is an outage of length B (a restart).  Unavailability of that
chain: U = (lambda F + 2 lambda Rp lambda B) / (1 + 2 lambda Rp + lambda F + 2 lambda Rp lambda B); of a machine that is
restarted: lambda B / (1 + lambda B).  Exponential times enter by their means alone (a semi-Markov process in balance).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vftsim.composition.views import bench_of, has_bench
from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.study.failover import FailoverStudy, failover_study
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.progress import Progress
from vftsim.study.protections import protected_domain, under
from vftsim.study.results import rows
from vftsim.study.store import Store
from vftsim.study.workers import checked_jobs

YEAR_S = 365.25 * 86_400.0
DEFAULT_RESTART_S = 77.0
"""Heartbeats silent for 15 s, placement and boot: the defaults of ``ha_restart``."""


@dataclass(frozen=True)
class AvailabilityStudy:
    """A year with each mechanism; ``rows`` has a mapping for each."""

    model: Model
    mtbf_s: float
    restart_s: float
    rows: tuple[dict[str, Any], ...]
    manifest: dict[str, Any]

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a mechanism."""
        return pd.DataFrame(list(self.rows))

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest, "mtbf_s": self.mtbf_s, "restart_s": self.restart_s,
            "availability": rows(self.to_pandas()),
        }  # fmt: skip


def pair_unavailability(mtbf_s: float, failover_s: float, reprotection_s: float, restart_s: float) -> float:
    """Return the share of time in which neither of a pair serves."""
    rate = 1.0 / mtbf_s
    down = rate * failover_s + 2.0 * rate * reprotection_s * rate * restart_s
    return down / (1.0 + 2.0 * rate * reprotection_s + down)


def pair_unprotected(mtbf_s: float, failover_s: float, reprotection_s: float, restart_s: float) -> float:
    """Return the share of time in which a pair serves without a backup."""
    rate = 1.0 / mtbf_s
    down = rate * failover_s + 2.0 * rate * reprotection_s * rate * restart_s
    return 2.0 * rate * reprotection_s / (1.0 + 2.0 * rate * reprotection_s + down)


def restart_unavailability(mtbf_s: float, restart_s: float) -> float:
    """Return the share of time in which a machine that is restarted does not serve."""
    return restart_s / (mtbf_s + restart_s)


def availability_study(
    model: Model,
    kinds: Sequence[str],
    mtbf_s: float,
    crashes: int = 10,
    seed: int = 1,
    jobs: int | None = None,
    *,
    restart_s: float = DEFAULT_RESTART_S,
    progress: Progress | None = None,
    store: Store | None = None,
) -> AvailabilityStudy:
    """Simulate failovers of every mechanism, and put a year together from them.

    Raises
    ------
    UsageError
        A time makes no sense.
    """
    if not mtbf_s > 0 or not restart_s >= 0:
        raise UsageError("--mtbf: above 0, and --restart: 0 or above")
    started, workers = utc_now(), checked_jobs(jobs)
    name = protected_domain(model)
    table = []
    for kind in kinds:
        chosen = under(model, kind)
        study = failover_study(chosen, crashes, seed, workers, domain=name, progress=progress, store=store)
        table.append(_year(study, kind, mtbf_s, restart_s, _rate_of(model)))
    said = manifest(
        [model], command="availability", seed=seed, replications=range(crashes), wanted=crashes, jobs=workers,
        started=started, state="finished",
    )  # fmt: skip
    return AvailabilityStudy(model, mtbf_s, restart_s, tuple(table), said)


def _rate_of(model: Model) -> float:
    """Return attempts a second of the failover runs; nan without a benchmark."""
    return bench_of(model.spec).steps.initial if has_bench(model.spec) else math.nan


def _year(study: FailoverStudy, kind: str, mtbf_s: float, restart_s: float, attempts_per_s: float) -> dict[str, Any]:
    outage, unprotected = study.mean("outage_s"), study.mean("unprotected_s")
    outage_s = math.inf if outage is None else outage.mean
    has_backup = protections()[kind]().has_backup
    failed = sum(value for name in study.figures() if name.startswith("failed_") for value in study.figures()[name])
    per_failover = failed / len(study.failovers)
    reprotection_s = unprotected.mean if unprotected is not None else math.nan
    if not math.isfinite(outage_s):
        share, unprotected_share = restart_unavailability(mtbf_s, restart_s), 1.0
        outages_per_year, per_outage = YEAR_S / mtbf_s, attempts_per_s * restart_s
    elif has_backup:
        known_s = 0.0 if math.isnan(reprotection_s) else reprotection_s
        share = pair_unavailability(mtbf_s, outage_s, known_s, restart_s)
        unprotected_share = pair_unprotected(mtbf_s, outage_s, known_s, restart_s)
        outages_per_year, per_outage = YEAR_S / mtbf_s, per_failover
    else:
        share, unprotected_share = restart_unavailability(mtbf_s, outage_s), 1.0
        outages_per_year, per_outage = YEAR_S / mtbf_s, per_failover
    return {
        "mechanism": kind, "outage_s": outage_s if math.isfinite(outage_s) else restart_s,
        "reprotection_s": reprotection_s, "unavailability": share, "downtime_s_per_year": share * YEAR_S,
        "unprotected_h_per_year": unprotected_share * YEAR_S / 3600.0,
        "failed_per_year": outages_per_year * per_outage,
    }  # fmt: skip
