"""The auditor of the promise: silent on every mechanism while everything fails around it, loud when one is spoilt."""

from typing import Any

import pytest

from vftsim.cli.main import main
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.errors import RunFailure
from vftsim.platform.protection.audit import VARIABLE
from vftsim.spec.units import MS, US, S
from vftsim.study.runs.model import load_model
from vftsim.testing.plant import ENGINES, Plant, play
from vftsim.tracing import trace

from .breaches import PLANTED

CHANNEL = {"rate": 20_000_000, "latency": 300 * US}
STATES = {"channel": CHANNEL, "reprotection": None, "state": {"fixed": 2000}, "memory": {"working_set": 5}}
KINDS: dict[str, dict[str, Any]] = {
    "lockstep": {"kind": "lockstep", "channel": CHANNEL, "reprotection": None},
    "checkpoint": {"kind": "checkpoint", "interval": 10 * MS, **STATES},
    "micro_checkpoint": {"kind": "micro_checkpoint", "interval": 10 * MS, "shipped": True, **STATES},
    "event_sync": {"kind": "event_sync", **STATES},
    "original epochs": {"kind": "hypervisor_epoch", "protocol": "original", **STATES},
    "revised epochs": {"kind": "hypervisor_epoch", **STATES},
    "coarse_lockstep": {
        "kind": "coarse_lockstep",
        "divergence_rate": 20.0,
        "missing": 1.0,
        "packet_timeout": 9 * MS,
        **STATES,
    },
}
CALLED = {"hypervisor_epoch": "revised epochs"}
ASKS = [1_100_003 * i for i in range(1, 250)]
FLAPS = [
    {"kind": "channel_loss", "at": "31000011 ns", "duration": "7 ms", "repeat": {"every": "40 ms", "most": 4}},
    {
        "kind": "channel_degradation",
        "at": "44 ms",
        "duration": "9 ms",
        "rate": "30 %",
        "delay": "2 ms",
        "repeat": {"every": "23 ms", "most": 8},
    },
    {"kind": "pause", "at": "60 ms", "duration": "5 ms", "repeat": {"every": "50 ms", "most": 3}},
]


def fields(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "protection": KINDS[kind],
        "asks": ASKS,
        "chunk_ns": 1_700_001,
        "chunk_is_output": True,
        "until_ns": 300 * MS,
        **more,
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "lockstep"])
def test_what_still_leaves_when_protection_begins_anew_is_no_breach(kind: str):
    """A primary that goes on alone lets all go, 3 ms apart: at the copy's end some are from before, and leave in turn.

    A backup that takes over then owes none of them.
    """
    copy = {"delay": 5 * MS, "memory": 1000, "rate": 1_000_000_000, "resume": 1 * MS}
    patience = {"timeout": 200 * MS, "backup_timeout": 100 * MS}
    parts = {"outputs": {"spacing": 3 * MS}, "reprotection": copy, "failover": {"detection": patience}}
    faults = [{"kind": "backup_crash", "at": "50 ms"}, {"kind": "primary_crash", "at": "230 ms"}]
    for crashes in (faults[:1], faults):
        run = play(**fields(kind, faults=crashes, protection={**KINDS[kind], **parts})).run
        issued, seen = {number: at for at, number in reversed(run.issued)}, run.seen
        begun_ns = [at for at, what in run.timeline if what == "protected"][1]
        assert sum(issued[number] < begun_ns < at < 230 * MS for at, number in seen) > 3
        assert run.audit.breaches == 0


@pytest.mark.parametrize("engine_type", ENGINES)
@pytest.mark.parametrize("service_ns", [0, 900 * US])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_silent_while_the_channel_flaps(kind: str, service_ns: int, engine_type: Any) -> None:
    found = play(**fields(kind, faults=FLAPS, service_ns=service_ns, engine_type=engine_type)).run
    assert found.audit.judged >= 200
    assert found.audit.breaches == 0


@pytest.mark.parametrize("last", ["primary_crash", "backup_crash"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_silent_when_a_host_fails_and_then_nothing_is_promised(kind: str, last: str) -> None:
    found = play(**fields(kind, faults=[{"kind": last, "at": "50 ms"}], until_ns=4 * S)).run
    assert 20 <= found.audit.judged < len(found.seen)
    assert found.audit.breaches == 0


@pytest.mark.parametrize("crash_ms", [91, 97, 103])
@pytest.mark.parametrize("kind", ["event_sync", "original epochs", "revised epochs", "coarse_lockstep"])
def test_it_is_silent_where_outputs_wait_for_a_slow_line(kind: str, crash_ms: int) -> None:
    """None overtakes those that wait, and a backup does not lose what it has to issue; answers of 8 ms each."""
    guest = {
        "interfaces": {"eth0": {"path": {"kind": "moderated", "moderation": "0 us"}}},
        "applications": {"pages": {"kind": "service", "demand": "300 us", "answer_size": "20 kB"}},
        "protection": {**KINDS[kind], "channel": {"rate": "1 Gbit/s"}},
    }
    data = {
        "networks": {"lan": {"rate": "20 Mbit/s", "queue": "64 KiB"}},
        "domains": {"guest": guest},
        "workloads": {"clients": {"kind": "open_requests", "to": "guest", "rate": "150 /s"}},
        "faults": [{"kind": "primary_crash", "at": f"{crash_ms} ms"}],
        "measure": {"warm_up": "0 s", "duration": "1200 ms"},
    }
    found = run_model(ModelSpec.model_validate(data), 1, 0, engine="simpy").whole.outcomes["domains.guest.protection"]
    assert found.judged > 5
    assert found.breaches == 0


@pytest.mark.parametrize("what", [what for what, breach in PLANTED.items() if not breach.faults])
def test_a_spoilt_mechanism_is_counted(what: str) -> None:
    kind, spoil = PLANTED[what].kind, PLANTED[what].spoil
    found = Plant(**fields(CALLED.get(kind, kind), service_ns=900 * US, spoil=spoil)).run()
    assert found.audit.breaches > 0
    first = found.audit
    # The backup had what these let out; it should have waited for others.
    if what not in ("checkpoint out of order", "COLO compares during a checkpoint"):
        assert first.first_known_ns < first.first_issued_ns
    assert first.first_issued_ns <= first.first_left_ns
    assert first.first_left_ns in {time_ns for time_ns, _ in found.seen}


EXCHANGE = """
format: 2
name: exchange
networks: {lan: {rate: 1 Gbit/s, latency: 0 us}}
hosts: {host: {pcpus: 1}}
domains:
  vm:
    interfaces: {eth0: {path: {kind: native}}}
    applications: {srv: {kind: service, demand: 10 us, pages_per_request: 0}}
    protection: {kind: checkpoint, interval: 25 ms}
workloads: {load: {kind: request_response, to: vm, clients: 4, turn_around: 20 ms, retry: 200 ms}}
measure: {warm_up: 100 ms, duration: 1 s}
"""
BY_DESIGN = {
    "past the queue": "{kind: checkpoint, interval: 25 ms, real_time_below: 65536 B}",
    "on the host": "{kind: micro_checkpoint}",
    "restarted": "{kind: ha_restart}",
}


def exchange(tmp_path: Any, *overrides: str) -> Any:
    file = tmp_path / "exchange.yaml"
    file.write_text(EXCHANGE, encoding="utf-8")
    return load_model(str(file), overrides)


@pytest.mark.parametrize("protection", BY_DESIGN.values(), ids=BY_DESIGN)
def test_mechanisms_that_break_it_by_design_say_how_much_and_go_on(protection: str, tmp_path: Any) -> None:
    record = run_model(exchange(tmp_path, f"domains.vm.protection={protection}").spec, 1, 0)
    found = record.whole.outcomes["domains.vm.protection"]
    assert found.judged == found.breaches >= 60
    assert any(entry.path == ("breaches",) and entry.leads for entry in found.entries())


def test_one_that_keeps_it_is_judged_and_does_not_lead(tmp_path: Any) -> None:
    found = run_model(exchange(tmp_path).spec, 1, 0).whole.outcomes["domains.vm.protection"]
    assert found.judged >= 100
    assert found.breaches == 0
    assert not any(entry.path == ("breaches",) and entry.leads for entry in found.entries())


def test_without_protection_nothing_is_promised(tmp_path: Any) -> None:
    record = run_model(exchange(tmp_path, "domains.vm.protection={kind: none}").spec, 1, 0)
    assert not any("protection" in owner for owner in record.whole.outcomes)


def spoil(run: Any) -> None:
    PLANTED["checkpoint at sending"].spoil(run.engine)


def test_strict_ends_a_run_and_names_the_first_output(tmp_path: Any) -> None:
    with pytest.raises(RunFailure, match=r"domain 'vm': .* promise is broken; the first, of flow 1, left at 0\.\d+ s"):
        run_model(exchange(tmp_path).spec, 1, 0, "simpy", prepare=spoil)


def test_strict_names_it_also_where_a_window_of_a_run_is_looked_at(
    tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    """As ``trace`` and ``explain`` do."""

    class Spoilt(trace.Run):
        def start(self) -> None:
            spoil(self)
            super().start()

    monkeypatch.setattr(trace, "Run", Spoilt)
    exchange(tmp_path)
    assert main(["explain", str(tmp_path / "exchange.yaml"), "--of", "output", "--engine", "simpy", "--strict"]) == 2
    assert "domain 'vm': an output left before" in capsys.readouterr().err


def test_otherwise_a_run_goes_on_and_counts(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    record = run_model(exchange(tmp_path).spec, 1, 0, "simpy", prepare=spoil)
    assert record.whole.outcomes["domains.vm.protection"].breaches > 10
