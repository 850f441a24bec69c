"""The record of a run, the same for every model: what workloads measured, use of resources, drops, timelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Window:
    """Use of resources in a measured stretch of a run.

    Parameters
    ----------
    name : str
        ``measured``, or the phase of the workload that has phases.
    begin_ns, end_ns : int
    domain_cpu : dict
        CPU time of each domain, in units of one pCPU.
    pcpu_busy : dict
        Busy fraction of each pCPU by host, switching not included.
    switching : float
        Time lost to vCPU switches on all hosts, in units of one pCPU.
    context_switches : int
    links : dict
        Busy fraction of each end of a modelled link: ``lan to host``, ``lan from host``.
    """

    name: str
    begin_ns: int
    end_ns: int
    domain_cpu: dict[str, float]
    pcpu_busy: dict[str, list[float]]
    switching: float
    context_switches: int
    links: dict[str, float]

    @property
    def seconds(self) -> float:
        """Length."""
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one replication leaves behind.

    Parameters
    ----------
    workloads : dict
        What each workload measured, in its own terms.
    windows : sequence of Window
    drops : dict
        Packets by (place, cause), from the start of the run.
    counters : dict
        What schedulers counted, from the start (boosts, steals, parks, ...).
    interrupts : int
        Of all network interfaces of the hosts, from the start.
    in_flight : int
        Packets on their way at the end.
    events : int
        Events of the engine.
    timelines : dict
        By guarded domain: (instant in ns, what happened).
    protection : dict
        By guarded domain: what the mechanism did and cost from the start to ``observed_s``, the end of the run.
    """

    workloads: dict[str, Any]
    windows: Sequence[Window]
    drops: dict[tuple[str, str], int]
    counters: dict[str, int]
    interrupts: int
    in_flight: int
    events: int
    timelines: dict[str, list[tuple[int, str]]]
    protection: dict[str, dict[str, int | float]]
