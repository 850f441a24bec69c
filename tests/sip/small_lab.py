"""A SIP lab that runs in a fraction of a second: 2 ms for a registration or message, short calls."""

from __future__ import annotations

import json
from typing import Any

from bench import MS, US, S

from vftsim.sip.lab import SipLab
from vftsim.sip.system import LabDomainSpec, SipLabSpec
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.parameters import ImsBenchSpec, PreRegistrationSpec, StepsSpec, StirSpec
from vftsim.workloads.sip.parameters import SipServerSpec

STEPS: dict[str, Any] = {"initial": 40.0, "increment": 20.0, "duration": 12 * S, "transient": 4 * S, "most": 2}
WORKLOAD: dict[str, Any] = {
    "subscribers": 5_000,
    "ring_time": 200 * MS,
    "hold_time": 500 * MS,
    "pre_registration": PreRegistrationSpec(rate=50.0, duration=2 * S, transient=1 * S),
    "stir": StirSpec(duration=3 * S, steps=3),
}
SERVER: dict[str, Any] = {"touch_cost": 500 * US, "register_touch_cost": 500 * US}


def small_lab(
    server: dict[str, Any] | None = None,
    steps: dict[str, Any] | None = None,
    workload: dict[str, Any] | None = None,
    **parts: Any,
) -> SipLabSpec:
    """The small lab with changes."""
    step_spec = StepsSpec(**(STEPS | (steps or {})))
    return SipLabSpec(
        name="small lab",
        domains={"sut": LabDomainSpec()},
        server=SipServerSpec(**(SERVER | (server or {}))),
        workload=ImsBenchSpec(**(WORKLOAD | {"steps": step_spec} | (workload or {}))),
        **parts,
    )


def fingerprint(phases: list[PhaseRecord]) -> str:
    """Everything measured, exactly."""
    return json.dumps(
        [
            [
                p.name, p.start_ns, p.measure_from_ns, p.end_ns, p.attempts, p.inadequate, p.not_started, p.dropped,
                {name: delays.to_dict() for name, delays in sorted(p.delays.items())}, p.series,
            ]
            for p in phases
        ],
        sort_keys=True,
    )  # fmt: skip


def run(spec: SipLabSpec, seed: int = 7, replication: int = 0) -> tuple[SipLab, list[PhaseRecord]]:
    """Play it; conservation is checked by the lab itself."""
    lab = SipLab(spec, seed, replication, engine="simpy")
    return lab, lab.run()
