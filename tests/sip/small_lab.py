"""A SIP lab that runs in a fraction of a second: 2 ms for a registration or message, short calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bench import MS, US, S

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.parameters import PreRegistrationSpec, StepsSpec, StirSpec

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
    path: dict[str, Any] | None = None,
    **domain: Any,
) -> ModelSpec:
    """The small lab with changes to server, steps, benchmark, I/O path and the server's domain."""
    sut = {
        "interfaces": {"eth0": {"path": {"kind": "moderated", **(path or {})}}},
        "applications": {"proxy": {"kind": "sip_server", **SERVER, **(server or {})}},
        **domain,
    }
    step_spec = StepsSpec(**(STEPS | (steps or {})))
    calls = {"kind": "ims_bench", "to": "sut.proxy", **WORKLOAD, "steps": step_spec, **(workload or {})}
    return ModelSpec.model_validate({"name": "small lab", "domains": {"sut": sut}, "workloads": {"calls": calls}})


def fingerprint(phases: Sequence[PhaseRecord]) -> str:
    """Everything measured, exactly."""
    return json.dumps(
        [
            [
                p.name,
                p.start_ns,
                p.measure_from_ns,
                p.end_ns,
                p.attempts,
                p.inadequate,
                p.not_started,
                p.dropped,
                {name: delays.to_dict() for name, delays in sorted(p.delays.items())},
                p.series,
            ]
            for p in phases
        ],
        sort_keys=True,
    )


def run(
    spec: ModelSpec, seed: int = 7, replication: int = 0, engine: str = "compiled"
) -> tuple[Run, Sequence[PhaseRecord]]:
    """Play it; conservation is checked by the run itself."""
    lab = Run(spec, seed, replication, engine=engine)
    return lab, lab.run().played()
