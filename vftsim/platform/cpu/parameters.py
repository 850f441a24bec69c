"""What a model file says about scheduling: which scheduler a host has, and what each domain is entitled to.

One set of keys serves every scheduler, as one domain definition does in practice: a scheduler reads
the keys it knows (:attr:`SchedulerSpec.reads`) and the others have no effect under it, which results say.
``None`` means the scheduler's default.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from vftsim.kernel import Engine, Kind
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover
from vftsim.spec.units import PERCENT, DurationNs, PeriodNs, PositiveDurationNs

PcpuPercent = Annotated[float, replace(PERCENT, upper=102_400, example="150 %")]
"""Percent of one physical CPU; 150 % is one and a half pCPUs."""


@dataclass(frozen=True)
class PlacedDomain:
    """A domain as it stands on a host: its parameters, its vCPUs, and the pCPUs they may use (``None``: all)."""

    scheduling: "DomainScheduling"
    vcpus: int = 1
    affinity: Sequence[int] | None = None


class SchedulerSpec(Spec):
    """Base of the scheduler choices; one subclass a file in :mod:`vftsim.platform.cpu.schedulers`."""

    part: ClassVar[Kind]
    reads: ClassVar[frozenset[str] | None] = None
    """Keys of a domain's :class:`DomainScheduling` that it looks at; ``None``: it does not say."""

    def install(self, engine: Engine, host: int) -> None:
        """Write these parameters into the scheduler's records of a host whose domains exist."""
        raise TypeError(f"{type(self).__name__} must say how to install itself")

    def refusal(self, pcpus: int, domains: Sequence[PlacedDomain]) -> str:
        """Return why a host with so many pCPUs cannot have these domains, in their order; empty if it can."""
        return ""

    def overbooked(self, pcpus: int, domains: Sequence[PlacedDomain]) -> str:
        """Return what these domains are guaranteed that a host with so many pCPUs cannot give; empty if it can."""
        return ""

    def contradiction(self, domain: "DomainScheduling") -> str:
        """Return why a domain cannot be as its parameters say; empty if it can."""
        return ""

    def unread(self, domain: "DomainScheduling") -> dict[str, str]:
        """Return the keys of a domain that it does not look at, as the domain stands, each with the reason."""
        if self.reads is None:
            return {}
        why = f"the scheduler {self.kind} does not read it"  # type: ignore[attr-defined]
        return dict.fromkeys((key for key in DomainScheduling.model_fields if key not in self.reads), why)

    def without_effect(self, domains: Sequence["DomainScheduling"]) -> Mapping[str, str]:
        """Return the keys of a host with these domains that nothing reads, each with the reason."""
        return {}

    def own_pcpu(self, engine: Engine, vcpu: int) -> int:
        """Return the pCPU that a vCPU has for itself whenever it has work, so that nothing is decided; 0 for none.

        Asked after :meth:`install`.
        """
        return 0

    def most_pcpus(self, domain: "DomainScheduling", vcpus: int) -> float:
        """Return how many pCPUs a domain with so many vCPUs is left by its cap, limit, quota or reservation."""
        return math.inf

    def counters(self, engine: Engine, host: int) -> dict[str, int]:
        """Return what the scheduler did, by name (``boosts``, ``steals``, ``parks``, ...)."""
        return {}

    def priority_name(self, priority: int) -> str:
        """Return the scheduler's word for a class of priority; empty if it has none."""
        return ""


SCHEDULERS: PartRegistry[SchedulerSpec] = PartRegistry("scheduler", SchedulerSpec, scheduler.kinds)


def schedulers() -> PartRegistry[SchedulerSpec]:
    """Return the registry with every scheduler of :mod:`vftsim.platform.cpu.schedulers` in it."""
    discover("vftsim.platform.cpu.schedulers")
    return SCHEDULERS


def of_bare_metal() -> SchedulerSpec:
    """Return what a host has that names no scheduler: none."""
    return SCHEDULERS["native"]()


class DomainScheduling(Spec):
    """The scheduling parameters of one domain."""

    weight: int = Field(
        256,
        ge=1,
        le=65_535,
        description="Share of CPU time relative to others: of each vCPU (credit from Xen 4.1, credit2, sedf), of the "
        "domain (credit before). Default 256: Xen's, sched_credit.c.",
    )
    cap: PcpuPercent = Field(
        0.0,
        description="Hard ceiling in percent of one pCPU for the whole domain (credit, credit2); 0: none. "
        "Default 0: Xen's.",
    )
    shares: int | None = Field(
        None,
        ge=2,
        le=1_000_000,
        description="Proportional shares of the whole domain (esxi, cfs). Default under esxi 1000 for each "
        "vCPU (Normal; High 2000, Low 500: VMware Resource Management Guide); under cfs none, the nice "
        "level decides.",
    )
    reservation: PcpuPercent = Field(
        0.0,
        description="Guaranteed CPU in percent of one pCPU for the whole domain (esxi; the product says it "
        "in MHz). Default 0: none.",
    )
    limit: PcpuPercent = Field(
        0.0,
        description="Hard ceiling in percent of one pCPU for the whole domain, even on an idle host (esxi); "
        "0: none, the default.",
    )
    period: PeriodNs | None = Field(
        None,
        description="Period of each vCPU (sedf, rtds) or of the domain's quota (cfs). Defaults: sedf 100 ms "
        "(sched_sedf.c), rtds 10 ms (rt.c), cfs 100 ms (cpu.cfs_period_us).",
    )
    slice: DurationNs = Field(
        0,
        description="CPU time guaranteed to each vCPU in its period (sedf). Default 0: best effort, as "
        "sched_sedf.c gives a new guest.",
    )
    latency: DurationNs = Field(
        0,
        description="Latency hint (sedf): after a block the period restarts with this length and doubles "
        "back to the full one; 0: no hint, the default.",
    )
    budget: PositiveDurationNs | None = Field(
        None,
        description="CPU time of each vCPU in its period (rtds). Default 4 ms: rt.c.",
    )
    extratime: bool | None = Field(
        None,
        description="Whether time nobody has reserved may be used (sedf, rtds). Default on in both: "
        "sched_sedf.c gives best-effort guests extra time, rt.c sets it for a new vCPU since Xen 4.11.",
    )
    quota: DurationNs = Field(
        0,
        description="CPU time of the whole domain in its period (cfs bandwidth control, cpu.cfs_quota_us); "
        "0: none, the default.",
    )
    nice: int = Field(
        0,
        ge=-20,
        le=19,
        description="Nice level of the vCPU threads (cfs); weight about 1.25 times per step. Default 0: "
        "KVM starts its threads so.",
    )
    relative_share: int = Field(
        100,
        ge=1,
        le=10_000,
        description="Relative share (zvm), split over the domain's vCPUs. Default 100: z/VM CP, SHARE RELATIVE 100.",
    )
    absolute_share: PcpuPercent = Field(
        0.0,
        le=100,
        description="Absolute share (zvm) in percent of all pCPUs together, split over the domain's vCPUs; "
        "0: none, the relative share decides. Default 0.",
    )
