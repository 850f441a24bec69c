"""The answer of ``vftsim capacity``: the load that a system carries, by the lab's ramp or by search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vftsim.report.blocks import Block
from vftsim.stats import Estimate
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.capacity_bands import with_band
from vftsim.study.designs.level_search import SAPS, LevelSearch, LevelStudy, level_blocks, of_prices, search_level
from vftsim.study.designs.ramp import RampCapacity, ramp_blocks, ramp_capacity_of
from vftsim.study.designs.search_levels import SearchSettings, answer_columns
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame
from vftsim.study.figures.offered import rows_of
from vftsim.study.figures.price_bands import Band
from vftsim.study.figures.validity import outside, varied
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.model import Model
from vftsim.study.runs.results import rows
from vftsim.study.store.files import codec
from vftsim.study.store.opened import model_of, read_answer, read_manifest, records_of

_OF_ATTEMPTS = "/s"


@dataclass(frozen=True)
class CapacityStudy(Printed):
    """One or more capacities of one system."""

    manifest: dict[str, Any]
    ramp: RampCapacity | None = None
    """By the lab's procedure."""
    searches: Mapping[str, LevelSearch] = field(default_factory=dict)
    """By name: the load that is raised (``streams``); of a benchmark ``steady``, the capacity at constant load,
    ``after_stop``, after a stop, and ``recovery``, the load from which a collapsed server recovers by itself."""
    band: Band | None = None
    """The band of the ramp's capacity over the ranges of a mechanism's prices."""

    @property
    def with_prices(self) -> Estimate | None:
        """The ramp's capacity with an interval for replications and prices; None where no price moves it."""
        return None if self.band is None or self.ramp is None else self.band.around(self.ramp.estimate, 0.0)

    @property
    def outside(self) -> list[float] | None:
        """Loads tried that are outside of what the model was fitted to; None if it does not say to what."""
        if self.ramp is not None:
            return outside(self.ramp.model.spec, self.ramp.loads)
        searches = list(self.searches.values())
        return outside(searches[0].model.spec, [load for each in searches if each.of_load for load in each.loads])

    def to_pandas(self) -> DataFrame:
        """Return one row a capacity, with its interval."""
        table = []
        if self.ramp is not None:
            columns = {**estimate_columns(self.ramp.estimate), **self.ramp.columns()}
            prices = _of_prices(self.with_prices, self.band)
            table.append({"capacity": "ramp", "unit": _OF_ATTEMPTS, **columns, **prices})
        for name, search in self.searches.items():
            columns, prices = answer_columns(search.result), _of_prices(search.with_prices, search.band)
            unit = _OF_ATTEMPTS if search.names.key == SAPS else search.names.details.get("unit", "")
            table.append({"capacity": name, "unit": unit, **columns, **prices})
        return frame(table)

    def for_machines(self) -> dict[str, Any]:
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
        data.update({name: search.for_machines() for name, search in self.searches.items()})
        return data

    @classmethod
    def opened(cls, folder: Path) -> CapacityStudy:
        """Return what the directory of a result holds."""
        manifest, answer = read_manifest(folder), read_answer(folder)
        model = model_of(manifest)
        ramp = band = None
        if "ramp" in answer:
            ramp = ramp_capacity_of(model, records_of(folder, manifest), answer["ramp"]["ihs_limit_percent"])
            prices = answer["ramp"].get("prices")
            band = codec(Band)[1](prices) if prices else None
        searches = {
            row["capacity"]: LevelSearch.from_machines(
                model, answer[row["capacity"]], interrupted=manifest["state"] == "interrupted"
            )
            for row in answer["capacity"]
            if row["capacity"] != "ramp"
        }
        return cls(manifest, ramp, searches, band)

    def blocks(self) -> list[Block]:
        models = self.manifest["models"]
        for search in self.searches.values():
            models = [varied(model, search.model.spec, search.names.key) for model in models]
        blocks: list[Block] = [*head(models, self.manifest["seed"])]
        if self.ramp is not None:
            blocks += ramp_blocks(self.ramp)
            blocks += of_prices(self.with_prices, self.band, "SAPS")
        for search in self.searches.values():
            blocks += level_blocks(search)
        return blocks


def _of_prices(with_prices: Estimate | None, band: Band | None) -> dict[str, Any]:
    """Return what prices make of a capacity as columns."""
    low, high = (with_prices.low, with_prices.high) if with_prices else (math.nan, math.nan)
    return {"with_prices_low": low, "with_prices_high": high, "deciding_price": band.decides if band else ""}


def searched(
    model: Model, execution: Execution, settings: SearchSettings, studies: Mapping[str, LevelStudy], *, prices: bool
) -> CapacityStudy:
    """Return what searches find, one after the other, with bands of ``prices``; after an interruption none is begun."""
    execution.check()
    searches: dict[str, LevelSearch] = {}
    for name, study in studies.items():
        searches[name] = search_level(model, execution, settings, study)
        if prices:
            searches[name] = with_band(searches[name], execution, study)
        if searches[name].interrupted:
            break
    most = max(probe.runs for search in searches.values() for probe in search.result.probes)
    is_partial = any(search.interrupted for search in searches.values())
    wanted = settings.runs_per_level
    manifest = execution.manifest([model], "capacity", most, wanted=wanted, interrupted=is_partial)
    return CapacityStudy(manifest, searches=searches)
