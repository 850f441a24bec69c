"""Every planted breach of the promise is counted by the auditor in a run of a model, and named; without it, none."""

from functools import cache
from typing import Any

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.errors import ConservationError
from vftsim.platform.protection import audit
from vftsim.platform.protection.audit import VARIABLE
from vftsim.study.runs.model import load_model

from .breaches import CRASH, PLANTED, Breach
from .spoilt import replaced

MODEL = """
format: 2
name: planted
networks: {lan: {rate: 1 Gbit/s, latency: 0 us}}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 100 us, answer_size: 1000 B, pages_per_request: 2}}
    protection: {kind: KIND, channel: {rate: 20 Mbit/s, latency: 300 us}, reprotection: null}
workloads: {load: {kind: request_response, to: vm, clients: 12, turn_around: 7 ms, turn_around_cv: 1.0, retry: 10 s}}
measure: {warm_up: 0 ms, duration: 700 ms}
"""
STATES = {"state": "{fixed: 2000 B}", "memory": "{working_set: 5}", "failover": "{detection: {timeout: 200 ms}}"}
SETTINGS = {
    "checkpoint": {"interval": "10 ms", **STATES},
    "micro_checkpoint": {"interval": "10 ms", "shipped": "true", **STATES},
    "event_sync": STATES,
    "hypervisor_epoch": STATES,
    "coarse_lockstep": {"divergence_rate": "30 /s", **STATES},
    "lockstep": {"failover": "{detection: {timeout: 1 s}}"},
}


QUICK = (
    "checkpoint out of order",
    "states without pages",
    "the rest of a state forgotten",
    "fencing ignored",
    "live before the disk",
    "epochs keep copies",
    "lockstep sends one byte again",
)


def model(path: Any, breach: Breach, at_ns: int = 0) -> ModelSpec:
    file = path / "planted.yaml"
    file.write_text(MODEL.replace("KIND", breach.kind), encoding="utf-8")
    settings = {**SETTINGS[breach.kind], **breach.settings}
    changes = [f"domains.vm.protection.{key}={value}" for key, value in settings.items()]
    faults = breach.faults.replace("AT", f"{at_ns} ns")
    return load_model(str(file), [*changes, *([f"faults=[{faults}]"] if faults else [])]).spec


def departure_ns(path: Any, breach: Breach) -> int:
    """When a message has left that brings an output, under a whole mechanism."""
    seen: list[int] = []
    outputs = [0]

    def spied(old: Any, namespace: dict[str, Any]) -> Any:
        def send(sim: Any, channel: Any, size_bytes: int, depart_ns: int, way_ns: int) -> None:
            if channel.marked_issued > outputs[0]:
                outputs[0] = channel.marked_issued
                seen.append(int(depart_ns))
            old(sim, channel, size_bytes, depart_ns, way_ns)

        return send

    spec = model(path, Breach(breach.kind, lambda engine: None, "", breach.settings))
    run_model(spec, 1, 0, "simpy", prepare=lambda run: replaced(audit.send, spied)(run.engine))
    return seen[breach.nth] + breach.late_ns


def breaches(spec: ModelSpec, prepare: Any = None) -> Any:
    return run_model(spec, 1, 0, "simpy", prepare=prepare).whole.outcomes["domains.vm.protection"]


@cache
def of_a_whole_mechanism(message: str) -> Any:
    """What a run counts of a mechanism that nobody spoils; several breaches are planted in the same one."""
    return breaches(ModelSpec.model_validate_json(message))


def cases() -> Any:
    """All that a model can show; the plant has those without a fault in its quick tests."""
    for what, breach in PLANTED.items():
        if not breach.needs_timers:
            yield what if what in QUICK else pytest.param(what, marks=pytest.mark.thorough)


@pytest.mark.parametrize("what", list(cases()))
def test_a_planted_breach_is_counted_in_a_model(what: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    breach = PLANTED[what]
    at_ns = departure_ns(tmp_path, breach) if breach.faults == CRASH else 0
    spec = model(tmp_path, breach, at_ns)
    whole = of_a_whole_mechanism(spec.model_dump_json())
    assert whole.judged >= 20
    assert whole.breaches == 0
    monkeypatch.setenv(VARIABLE, "0")
    if breach.ends:
        with pytest.raises(ConservationError, match=breach.ends):
            breaches(spec, lambda run: breach.spoil(run.engine))
        return
    found = breaches(spec, lambda run: breach.spoil(run.engine))
    assert found.breaches > 0
    assert found.first_breach is not None
