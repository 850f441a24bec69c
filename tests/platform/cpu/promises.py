"""What every scheduler must do, and what each of them promises beyond that.

A new scheduler joins by a :class:`Case`; ``test_scheduler_conformance.py`` runs the suite over all of them and
fails if a registered scheduler has none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.platform.cpu.host_lab import MS, Lab
from vftsim.platform.cpu.parameters import SchedulerSpec, schedulers

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A scheduler and its promises.

    weights: domain parameters that entitle to a share in proportion to a number, if it has shares.
    weights_pcpus: hosts on which shares are promised within 1 % of the machine.
    cap: domain parameters for a ceiling in percent of one pCPU, if it has one.
    cap_grain_points: how far a vCPU's second may be off, beyond 1 point (an accounting period that falls
        into the next second).
    work_conserving: no pCPU idles while a vCPU that may run there waits.
    latency_ms: a waking vCPU with a fair claim, against one hog on each pCPU, waits no longer than this.
    """

    name: str
    spec: SchedulerSpec
    weights: Callable[[int], Parameters] | None = None
    weights_pcpus: tuple[int, ...] = (1, 2)
    cap: Callable[[float], Parameters] | None = None
    cap_grain_points: float = 0.0
    work_conserving: bool = True
    shares_pcpus: bool = True
    latency_ms: float = 0.0


def _weight(weight: int) -> Parameters:
    return {"weight": weight}


def _cap(percent: float) -> Parameters:
    return {"cap": percent}


def cases() -> list[Case]:
    """All schedulers; Xen's credit scheduler in the versions that differ most."""
    made = {kind: part() for kind, part in schedulers().items() if kind != "credit"}
    credit = schedulers()["credit"]

    def shares(weight: int) -> Parameters:
        return {"shares": weight}

    return [
        # The tick samples who runs, so that several pCPUs in step give up to 4 points more or less.
        Case("credit-3.2", credit(version="3.2"), _weight, (1,), _cap, 3.0, latency_ms=0.0),
        Case("credit-4.0", credit(version="4.0"), _weight, (1, 2), _cap, 3.0, latency_ms=0.0),
        Case("credit-4.13", credit(version="4.13"), _weight, (1, 2), _cap, 3.0, latency_ms=1.0),
        # An idle pCPU may look for work to steal only once a millisecond.
        Case("credit-4.18", credit(version="4.18"), _weight, (1, 2), _cap, 3.0, False, latency_ms=1.0),
        Case("credit2", made["credit2"], _weight, (1, 2), _cap, latency_ms=10.0),
        # One pCPU for each vCPU, for ever; extra time in turn, 0.5 ms each.
        Case("sedf", made["sedf"], _weight, (1,), None, work_conserving=False, latency_ms=1.0),
        # The two hogs' budgets of 4 ms may come before, as the three ask for 120 %.
        Case("rtds", made["rtds"], None, latency_ms=8.0),
        Case(
            "cfs",
            made["cfs"],
            shares,
            (1, 2),
            lambda percent: {"quota": round(percent * MS)},
            latency_ms=6.0,
        ),
        Case("esxi", made["esxi"], shares, (1, 2), lambda percent: {"limit": percent}, latency_ms=0.0),
        Case("zvm", made["zvm"], lambda weight: {"relative_share": weight}, latency_ms=5.0),
        Case("round_robin", made["round_robin"], latency_ms=30.0),
        Case("native", made["native"], shares_pcpus=False),
    ]


def mixed_lab(case: Case, seed: int, pcpus: int = 2, switch_cost_ns: int = 0, pinned: bool = True) -> Lab:
    """Domains with random bursts of 0.01 to 20 ms, some pinned, beside a hog; load about 1.2 of the host."""
    rng = np.random.default_rng(seed)
    lab = Lab(case.spec, pcpus, switch_cost_ns)
    names = ["A", "B"] if not case.shares_pcpus else ["A", "B", "C", "D", "E"]
    affinity = {"B": [0], "C": [1]} if pinned and case.shares_pcpus else {}
    for name in names:
        vcpus = 2 if name == "D" else 1
        lab.domain(name, vcpus, affinity.get(name), quantum_ns=5 * MS)
        time_ms = 0.0
        for _ in range(150):
            time_ms += rng.exponential(8.0)
            lab.burst(name, round(time_ms, 3), demand_ms=round(float(rng.exponential(3.0)), 3) + 0.01)
    lab.hog("A", at_ms=100)
    return lab
