"""A root model as small as one can be that still has everything a model file can hold."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vftsim.errors import ModelFileError
from vftsim.spec import (
    BitRate,
    ByteCount,
    DurationNs,
    Items,
    OneOf,
    PartRegistry,
    Percent,
    PositiveDurationNs,
    RatePerSecond,
    Spec,
)
from vftsim.spec.units import Hertz


class SchedulerSpec(Spec):
    kind: str


SCHEDULERS: PartRegistry[SchedulerSpec] = PartRegistry("scheduler", SchedulerSpec)


@SCHEDULERS.register
class CreditSpec(SchedulerSpec):
    kind: Literal["credit"] = "credit"
    slice_ns: PositiveDurationNs = Field(30_000_000, description="Time slice.")
    cap: Percent | None = Field(None, description="Most a domain may use.")


@SCHEDULERS.register
class RtdsSpec(SchedulerSpec):
    kind: Literal["rtds"] = "rtds"
    period: PositiveDurationNs = Field(description="Period of the deferrable server.")
    budget: PositiveDurationNs = Field(4_000_000, le=1_000_000_000, description="CPU time in a period.")

    @model_validator(mode="after")
    def _budget_fits(self) -> "RtdsSpec":
        if self.budget > self.period:
            raise ValueError("budget is longer than period; a server has at most its whole period")
        return self


class DomainSpec(Spec):
    weight: int = Field(256, gt=0, le=65_535, description="Scheduler weight.")
    memory: ByteCount = Field(description="Memory of the guest.")
    pinned: Items[int] = Field((), description="pCPUs it may run on.")
    ratio: float = Field(1.0, ge=0, description="Inflation of guest CPU work.")
    is_driver: bool = Field(False, description="Whether it is a driver domain.")


class Model(Spec):
    name: str = Field(description="Name of the model.")
    clock: Hertz = Field(2_000_000_000, description="Clock of a pCPU.")
    link: BitRate = Field(1_000_000_000, description="Rate of the link.")
    arrivals: RatePerSecond = Field(description="Offered load.")
    latency: DurationNs = Field(0, description="Latency of the link.")
    mode: Literal["native", "paravirtual"] = Field("native", description="I/O path.")
    scheduler: Annotated[SchedulerSpec, OneOf(SCHEDULERS)] = Field(CreditSpec(), description="Scheduler.")
    other: Annotated[SchedulerSpec, OneOf(SCHEDULERS)] | None = Field(None, description="Another one.")
    domains: dict[str, DomainSpec] = Field({}, description="Domains by name.")
    phases: Items[PositiveDurationNs] = Field((), description="Lengths of the phases.")
    driver: str | None = Field(None, description="Name of the driver domain.")

    @model_validator(mode="after")
    def _driver_exists(self) -> "Model":
        if self.driver is not None and self.driver not in self.domains:
            raise ModelFileError(f"no domain '{self.driver}'; domains: {', '.join(self.domains)}", "", 0, "driver")
        return self


GOOD = {
    "name": "small",
    "clock": "3.16 GHz",
    "link": "100 Mbit/s",
    "arrivals": "50 /s",
    "latency": "0.1 us",
    "mode": "paravirtual",
    "scheduler": {"kind": "rtds", "period": "10 ms", "budget": "4 ms"},
    "other": {"kind": "credit", "slice_ns": "30 ms", "cap": "50 %"},
    "domains": {
        "dom0": {"weight": 512, "memory": "512 MiB", "pinned": [0], "is_driver": True},
        "sut": {"memory": "4 GiB", "pinned": [1, 2], "ratio": 1.25},
    },
    "phases": ["1 min", "90 s"],
    "driver": "dom0",
}
