"""``vftsim capacity`` of a SIP lab: what it carries, by the lab's ramp or by a direct search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.composition.views import ramp_of
from vftsim.errors import UsageError
from vftsim.report.blocks import Block
from vftsim.stats import Estimate
from vftsim.study.blocks.capacity import capacity_blocks
from vftsim.study.capacity_bands import ramp_band
from vftsim.study.capacity_request import OF_A_RAMP, CapacityRequest
from vftsim.study.constant_load import Stop
from vftsim.study.frames import estimate_columns, frame
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.offered import Missing, rows_of
from vftsim.study.opened import model_of, read_answer, read_manifest, records_of
from vftsim.study.price_bands import Band
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress
from vftsim.study.ramp import RampCapacity, ramp_capacity_of
from vftsim.study.replicate import DEFAULT_REPLICATIONS, DEFAULT_SEED, check_study, replicate
from vftsim.study.results import CONFIDENCE, rows
from vftsim.study.search import COLLAPSED, SearchCapacity, search_capacity
from vftsim.study.search_levels import SearchSettings, answer_columns, search_from_plain, search_to_plain
from vftsim.study.store import Store
from vftsim.study.tipping import Experience, experience_of
from vftsim.study.validity import outside
from vftsim.study.workers import Interrupted, checked_jobs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CapacityStudy(Printed):
    """One or more capacities of one system.

    Parameters
    ----------
    ramp : RampCapacity or None
    steady, after_stop, recovery : SearchCapacity or None
        Capacity at constant load; after a stop; load from which a collapsed server recovers by itself.
    manifest : dict
    band : Band or None
        What the ranges of a mechanism's prices make of the ramp's capacity.
    """

    manifest: dict[str, Any]
    ramp: RampCapacity | None = None
    steady: SearchCapacity | None = None
    after_stop: SearchCapacity | None = None
    recovery: SearchCapacity | None = None
    band: Band | None = None

    @property
    def with_prices(self) -> Estimate | None:
        """The ramp's capacity with an interval for replications and prices; None where no price moves it."""
        return None if self.band is None or self.ramp is None else self.band.around(self.ramp.estimate, 0.0)

    @property
    def interrupted(self) -> bool:
        """Whether the study was ended early."""
        return bool(self.manifest["state"] == "interrupted")

    @property
    def searches(self) -> dict[str, SearchCapacity]:
        """The searches made, by name."""
        named = {"steady": self.steady, "after_stop": self.after_stop, "recovery": self.recovery}
        return {name: search for name, search in named.items() if search is not None}

    @property
    def outside(self) -> list[float] | None:
        """Loads tried that are outside of what the model was fitted to; None if it does not say to what."""
        studies = [study for study in (self.ramp, *self.searches.values()) if study is not None]
        return outside(studies[0].model.spec, (load for study in studies for load in study.loads))

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a capacity, with its interval."""
        table = []
        if self.ramp is not None:
            prices = self.with_prices
            table.append(
                {
                    "capacity": "ramp",
                    **estimate_columns(self.ramp.estimate),
                    **self.ramp.columns(),
                    "with_prices_low": prices.low if prices else math.nan,
                    "with_prices_high": prices.high if prices else math.nan,
                    "deciding_price": self.band.decides if self.band else "",
                }
            )
        for name, search in self.searches.items():
            table.append({"capacity": name, **answer_columns(search.result)})
        return frame(table)

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        data: dict[str, Any] = {
            "manifest": self.manifest,
            "capacity": rows(self.to_pandas()),
            "outside_calibration": self.outside,
        }
        if self.ramp is not None:
            data["ramp"] = {
                "ihs_limit_percent": self.ramp.limit_percent,
                "unfailed": self.ramp.unfailed,
                "by_limit": rows(self.ramp.limits_table()),
                "tipping": self.ramp.tipping.for_machines() if self.ramp.tipping else None,
                "prices": asdict(self.band) if self.band else None,
                "stop_steps": rows(self.ramp.stop_steps()),
                "replications": rows(self.ramp.to_pandas()),
            }
            data["not_offered"] = rows_of(self.ramp.missing)
        for name, search in self.searches.items():
            data[name] = {
                "not_offered": rows_of([search.missing] if search.missing else []),
                "ihs_limit_percent": search.limit_percent,
                "probability": search.settings.probability,
                "stop_ns": search.stop.length_ns if search.stop else None,
                "window_ns": search.stop.window_ns if search.stop else None,
                "beyond_limit_by_load": rows(search.to_pandas()),
                "resources": rows(search.resources),
                "search": search_to_plain(search.result, search.settings),
            }
        return data

    @classmethod
    def opened(cls, folder: Path) -> CapacityStudy:
        """Return what the directory of a result holds."""
        said, data = read_manifest(folder), read_answer(folder)
        model = model_of(said)
        ramp = band = None
        if "ramp" in data:
            ramp = ramp_capacity_of(model, records_of(folder, said), data["ramp"]["ihs_limit_percent"], CONFIDENCE)
            prices = data["ramp"].get("prices")
            band = Band.from_plain(prices) if prices else None
        searches = {
            name: _search_of(model, data[name]) for name in ("steady", "after_stop", "recovery") if name in data
        }
        return cls(said, ramp, **searches, band=band)

    def blocks(self) -> list[Block]:
        """Return the capacities as blocks."""
        return capacity_blocks(self)


def _search_of(model: Model, data: Mapping[str, Any]) -> SearchCapacity:
    """Return a search as the answer of a study has it."""
    result, settings = search_from_plain(data["search"])
    stop = None if data["stop_ns"] is None else Stop(data["stop_ns"], data["window_ns"])
    missing = next((Missing(**each) for each in data["not_offered"]), None)
    resources = frame(data["resources"])
    return SearchCapacity(model, result, data["ihs_limit_percent"], settings, stop, resources, missing=missing)


def sip_capacity(model: Model, request: CapacityRequest) -> CapacityStudy:
    """Run the study that was asked for; the lab's ramp if nothing was said.

    Raises
    ------
    UsageError
        Something was asked for that a SIP lab, or the chosen method, has not.
    Interrupted
        Ctrl-C before anything was judged.
    """
    request.refuse({"loss_limit_percent": "--loss-limit"}, f"'{model.label}' has a benchmark; its limit is --ihs-limit")
    if request.after_stop_ns is None:
        request.refuse({"window_ns": "--window"}, "goes with --after-stop")
    if request.method == "search" or request.after_stop_ns is not None:
        request.refuse(OF_A_RAMP, "tells of a ramp's steps; a search has none")
        request.refuse({"replications": "--replications"}, "a search runs as many as it needs; --budget bounds them")
        return search_study(
            model,
            request.seed,
            request.jobs,
            settings=request.settings(SearchSettings()),
            stop=_stop(request),
            ihs_limit_percent=request.ihs_limit_percent,
            progress=request.progress,
            store=request.store,
        )
    of_a_search = {"probability": "--probability", "resolution": "--resolution", "budget": "--budget"}
    request.refuse(of_a_search, "goes with --method search")
    replications = DEFAULT_REPLICATIONS if request.replications is None else request.replications
    return ramp_study(
        model,
        replications,
        request.seed,
        request.jobs,
        ihs_limit_percent=request.ihs_limit_percent,
        known=experience_of(request.labs, request.headroom_percent),
        prices=request.prices,
        progress=request.progress,
        store=request.store,
    )


def _stop(request: CapacityRequest) -> Stop | None:
    if request.after_stop_ns is None:
        return None
    if request.after_stop_ns == 0:
        raise UsageError("--after-stop: a stop takes time, e.g. 2s")
    return Stop(request.after_stop_ns) if request.window_ns is None else Stop(request.after_stop_ns, request.window_ns)


def ramp_study(
    model: Model,
    replications: int = DEFAULT_REPLICATIONS,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    ihs_limit_percent: float | None = None,
    known: Experience | None = None,
    prices: bool = False,
    progress: Progress | None = None,
    store: Store | None = None,
) -> CapacityStudy:
    """Run the lab's ramp with many seeds; with ``prices``, once more at each end of each price of a mechanism.

    Raises
    ------
    Interrupted
        Ctrl-C before one ramp was done.
    """
    ramp_of(model.spec)
    started, workers = utc_now(), checked_jobs(jobs)
    ramp_capacity_of(model, [], ihs_limit_percent, known=known)  # refuses before the work what cannot be judged
    (done,) = replicate([model], replications, seed, workers, progress=progress, store=store)
    if not done.records:
        raise Interrupted("no replication had finished")
    ramp = ramp_capacity_of(model, done.ordered(), ihs_limit_percent, CONFIDENCE, known)
    state = "interrupted" if done.interrupted else "finished"
    said = manifest(
        [model],
        command="capacity",
        seed=seed,
        replications=sorted(done.records),
        wanted=replications,
        jobs=workers,
        started=started,
        state=state,
    )
    band = None
    if prices and not done.interrupted:
        band = ramp_band(model, seed, workers, ihs_limit_percent, progress=progress, store=store)
    return CapacityStudy(said, ramp=ramp, band=band)


def search_study(
    model: Model,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    settings: SearchSettings | None = None,
    ihs_limit_percent: float | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
    store: Store | None = None,
) -> CapacityStudy:
    """Search for the capacity at constant load; with a stop, for the failover-safe capacity instead.

    Raises
    ------
    Interrupted
        Ctrl-C before a single run was judged.
    """
    started, workers = utc_now(), checked_jobs(jobs)
    check_study(1, seed, workers)
    chosen = settings or SearchSettings()

    def search(after: Stop | None) -> SearchCapacity:
        return search_capacity(
            model, seed, workers, chosen, limit_percent=ihs_limit_percent, stop=after, progress=progress, store=store
        )

    searches: dict[str, SearchCapacity] = {}
    if stop is None:
        searches["steady"] = search(None)
    else:
        searches["after_stop"] = search(stop)
        if not searches["after_stop"].interrupted:
            long_stop = Stop(COLLAPSED.length_ns, stop.window_ns, stop.observed_ns)
            searches["recovery"] = search(long_stop)
    interrupted = any(each.interrupted for each in searches.values())
    most = max(probe.runs for each in searches.values() for probe in each.result.probes)
    said = manifest(
        [model],
        command="capacity",
        seed=seed,
        replications=range(most),
        wanted=chosen.runs_per_level,
        jobs=workers,
        started=started,
        state="interrupted" if interrupted else "finished",
    )
    return CapacityStudy(
        said,
        steady=searches.get("steady"),
        after_stop=searches.get("after_stop"),
        recovery=searches.get("recovery"),
    )
