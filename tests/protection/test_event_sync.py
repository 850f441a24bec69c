"""Synchronization at events: closed forms, and the promise judged from outside at stratified crashes."""

import math
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.kernel.declare import part_of
from vftsim.platform.protection import event_sync as mechanism
from vftsim.platform.protection import output_buffer, state_stream
from vftsim.platform.protection.event_sync import event_sync
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, OWN, Plant, play, watched

from .crashes import quarters
from .sets import A, Setting
from .spoilt import replaced

SUSPEND_NS = 500 * US
CHUNK_NS = 4_700_001
TIMEOUT_NS, HEARTBEAT_NS, ACTIVATION_NS, GO_LIVE_NS = 30 * MS, 7 * MS, 5 * MS, 20 * MS
PER_PHASE = 38


def parameters(setting: Setting = A, **more: Any) -> dict[str, Any]:
    fields = {
        "suspend": setting.fixed_pause,
        "failover": {
            "detection": {"heartbeat_interval": HEARTBEAT_NS, "timeout": TIMEOUT_NS, "backup_timeout": 50 * MS},
            "go_live": GO_LIVE_NS,
        },
    }
    plain = setting.parameters("event_sync", **{**fields, **more})
    return {k: v for k, v in plain.items() if k not in ("rule", "suspend_request", "interval", "pause")}


# Closed forms


@pytest.mark.parametrize(
    ("rate", "pause_ms", "slowdown"),
    [(1, 55.89, 1.0559), (10, 23.06, 1.2306), (100, 4.301, 1.4301), (1000, 1.501, 2.5010)],
)
def test_slowdown_under_poisson_events(rate, pause_ms, slowdown):
    """E[d] = r W / (r + v W); the guest stands still for s + h + a + d b / R at each event."""
    gaps = [round(-math.log1p(-(i + 0.5) / 1000) * S / rate) for i in range(1000)]
    Random(1).shuffle(gaps)
    until_ns = int(1000 * S / rate * slowdown)
    plant = Plant(parameters(), lengths=gaps, chunk_ns=gaps[0], chunk_is_output=True, until_ns=until_ns).run()
    pages = plant.summary["dirty_pages"] / plant.summary["states_taken"]
    assert pages == pytest.approx(10_000 * 2000 / (10_000 + rate * 2000), rel=0.005)
    stopped = plant.summary["stopped_s"] / plant.summary["states_taken"] * 1e3
    assert stopped == pytest.approx(pause_ms, rel=0.005)
    assert until_ns / plant.run_ns == pytest.approx(slowdown, rel=0.005)


@pytest.mark.parametrize("engine_type", ENGINES)
def test_an_event_takes_suspension_transmission_and_round_trip(engine_type):
    """To 1 ns; the guest stands still for just that long, and the output leaves at its end."""
    plant = Plant(parameters(), chunk_ns=CHUNK_NS, chunk_is_output=True, until_ns=S, engine_type=engine_type).run()
    pause_ns = SUSPEND_NS + A.wire(CHUNK_NS) + A.round_trip
    expected = [((k + 1) * (CHUNK_NS + pause_ns), OWN + k + 1) for k in range(len(plant.seen))]
    assert plant.seen == expected
    assert set(plant.holds()) == {pause_ns}


def test_disk_reads_are_events_too():
    plant = Plant(parameters(read_rate=1000.0), until_ns=S).run()
    pause_ns = SUSPEND_NS + A.wire(MS) + A.round_trip
    assert plant.summary["states_taken"] == pytest.approx(S / (MS + pause_ns), abs=1)


@pytest.mark.parametrize("guest_scheduler", ["round_robin", "o1", "cfs", "eevdf"])
def test_a_single_process_goes_on_after_its_event(guest_scheduler):
    """It sleeps once its output has stopped the guest, and its next request wakes it: a cycle adds up to 1 ns."""
    memory = {"working_set": 0, "per_request": 0}
    guest = {
        "guest_scheduler": {"kind": guest_scheduler},
        "interfaces": {"eth0": {"path": {"kind": "moderated", "moderation": "0 us"}}},
        "applications": {"echo": {"kind": "service", "demand": "1 ms"}},
        "protection": {"kind": "event_sync", "suspend": "500 us", "memory": memory, "channel": {"latency": "75 us"}},
    }
    clients = {"kind": "request_response", "to": "guest", "turn_around": "2 ms"}
    found = run_model(
        ModelSpec.model_validate(
            {
                "networks": {"lan": {"latency": "100 us"}},
                "domains": {"guest": guest},
                "workloads": {"clients": clients},
                "measure": {"warm_up": "100 ms", "duration": "1 s"},
            }
        ),
        1,
        0,
    ).whole.outcomes["workloads.clients"]
    wire_ns, state_ns, acknowledgement_ns = 128 * 8, 65536 * 8, 64 * 8
    pause_ns = 500 * US + state_ns + 2 * 75 * US + acknowledgement_ns
    latency_ns = 2 * (100 * US + wire_ns) + MS + pause_ns
    assert (found.latency.min, found.latency.max) == (latency_ns, latency_ns)
    assert found.answers == pytest.approx(S / (latency_ns + 2 * MS), abs=1)


@pytest.mark.parametrize("guest_scheduler", ["round_robin", "o1", "cfs", "eevdf"])
def test_a_process_goes_on_with_what_waits_on_the_vcpu_that_it_holds(guest_scheduler):
    """Three clients of one process on the second of two vCPUs: each asks again 20 ms after its answer."""
    guest = {
        "vcpus": 2,
        "guest_scheduler": {"kind": guest_scheduler},
        "interfaces": {"eth0": {"path": {"kind": "direct"}}},
        "applications": {"echo": {"kind": "service", "demand": "50 us"}},
        "protection": {"kind": "event_sync"},
    }
    clients = {"kind": "request_response", "to": "guest", "clients": 3, "turn_around": "20 ms"}
    data = {
        "hosts": {"host": {"pcpus": 4}},
        "networks": {"lan": {}},
        "domains": {"guest": guest},
        "workloads": {"clients": clients},
        "measure": {"warm_up": "100 ms", "duration": "500 ms"},
    }
    found = run_model(ModelSpec.model_validate(data), 1, 0).whole.outcomes["workloads.clients"]
    assert found.answers == pytest.approx(3 * 500 / 21.5, abs=3)


@pytest.mark.parametrize("engine_type", ENGINES)
def test_no_disk_is_read_during_a_pause(engine_type):
    """Reads are spaced in running time: what a pause of 300 ms takes from it holds no read."""
    faults = [{"kind": "pause", "at": "20 ms", "duration": "300 ms"}]
    plant = Plant(parameters(read_rate=1000.0), until_ns=S, faults=faults, engine_type=engine_type).run()
    cycle_ns = MS + SUSPEND_NS + A.wire(MS) + A.round_trip
    assert plant.summary["states_taken"] == pytest.approx((S - 300 * MS) / cycle_ns, abs=1.5)


def test_events_of_one_instant_are_one_notification():
    """Three requests come together: one synchronization for their answers."""
    plant = Plant(parameters(), asks=[20 * MS] * 3, until_ns=100 * MS).run()
    assert plant.summary["states_taken"] == 1
    assert len({time_ns for time_ns, _ in plant.seen}) == 1


# The promise


class Oracle:
    """Works out from the instants of synchronizations what was at the backup; asks the mechanism nothing."""

    def __init__(self, alive: Plant) -> None:
        self.issued = alive.issued
        self.taken, self.departs, self.acks, self.runs = [0], [0], [0], [0]
        resumed_ns = 0
        for time_ns, _ in alive.stops:
            run_ns = time_ns - resumed_ns
            self.taken.append(time_ns)
            self.departs.append(time_ns + SUSPEND_NS + A.wire(run_ns))
            self.acks.append(self.departs[-1] + A.round_trip)
            self.runs.append(self.runs[-1] + run_ns)
            resumed_ns = self.acks[-1]

    def received(self, crash_ns: int) -> int:
        return max(k for k, time_ns in enumerate(self.departs) if time_ns <= crash_ns)

    def judge(self, crash_ns: int, world: Plant) -> list[str]:
        acks = dict(zip(self.taken, self.acks, strict=True))
        due = {number: acks[time_ns] for time_ns, number in self.issued if time_ns in acks}
        before = [(t, n) for t, n in world.seen if t <= crash_ns]
        wrong = [f"{n} left too early" for t, n in before if t < due.get(n, crash_ns + 1)]
        wrong += [f"{n} was held too long" for n, t in due.items() if t <= crash_ns and (t, n) not in before]
        live_ns = crash_ns // HEARTBEAT_NS * HEARTBEAT_NS + A.round_trip // 2 + TIMEOUT_NS + ACTIVATION_NS + GO_LIVE_NS
        last = self.received(crash_ns)
        again = [n for t, n in self.issued if last and t == self.taken[last]]
        at_live = [n for t, n in world.seen if t == live_ns]
        wrong += [f"{n} is known to the backup and never issued" for n in again if n not in at_live]
        wrong += ["something left between two lives" for t, _ in world.seen if crash_ns < t < live_ns]
        done = self.runs[last] // CHUNK_NS
        next_ns = live_ns + (done + 1) * CHUNK_NS - self.runs[last]
        if (next_ns, OWN + done + 1) not in world.seen:
            wrong.append("the second life does not go on from the last synchronization")
        return wrong


ASKS = [6_100_003 * i for i in range(1, 30)]
watched_sync = watched(event_sync)


def run(**fields: Any) -> dict[str, Any]:
    return {
        "protection": parameters(),
        "asks": ASKS,
        "chunk_ns": CHUNK_NS,
        "chunk_is_output": True,
        "part": watched_sync,
        **fields,
    }


@cache
def alive() -> Oracle:
    return Oracle(Plant(**run(until_ns=150 * MS)).run())


@cache
def crash_instants() -> tuple[int, ...]:
    alone = alive()
    one = next(k for k in range(4, 99) if alone.taken[k + 1] > alone.acks[k] + MS)  # the guest runs after it
    bounds = [
        alone.taken[one],
        alone.taken[one] + SUSPEND_NS,
        alone.departs[one],
        alone.departs[one] + A.round_trip // 2,
        alone.acks[one],
        alone.taken[one + 1],
    ]
    inside = [a + (2 * i + 1) * (b - a) // (2 * PER_PHASE) for a, b in pairwise(bounds) for i in range(PER_PHASE)]
    return tuple(sorted({t + d for t in bounds for d in (-1, 0, 1)} | set(inside)))


def crash(time_ns: int, spoil: Any = None) -> list[str]:
    faults = [{"kind": "primary_crash", "at": f"{time_ns} ns"}]
    played = play(**run(faults=faults, until_ns=time_ns + 100 * MS, spoil=spoil))
    return alive().judge(time_ns, played.run)


def test_there_are_enough_crashes():
    assert len(crash_instants()) >= 200


@pytest.mark.thorough
@pytest.mark.parametrize("part", quarters(4))
def test_events_are_issued_at_least_once_at_stratified_crashes(part):
    wrong = {t: crash(t) for t in crash_instants()[part::4]}
    assert {t: why for t, why in wrong.items() if why} == {}


def when_sent(old: Any, namespace: dict[str, Any]) -> Any:
    return namespace[part_of(state_stream.arrival_ns).name]


def nothing(old: Any, namespace: dict[str, Any]) -> Any:
    return lambda *arguments: None


def unreceived(old: Any, namespace: dict[str, Any]) -> Any:
    return lambda sim, guard: True


def at_once(old: Any, namespace: dict[str, Any]) -> Any:
    def hold(sim: Any, guard: Any, packet: int) -> None:
        old(sim, guard, packet)
        namespace[part_of(output_buffer.seal).name](sim, guard)
        namespace[part_of(output_buffer.release_sealed).name](sim, guard)

    return hold


@pytest.mark.parametrize(
    ("old", "make", "why"),
    [
        (state_stream.ack_arrival_ns, when_sent, "too early"),
        (output_buffer.hold, at_once, "too early"),
        (mechanism.issue_held, nothing, "never issued"),
        (state_stream.has_received_last, unreceived, "second life"),
    ],
)
def test_a_planted_violation_is_caught(old, make, why):
    wrong = [one for t in crash_instants()[::30] for one in crash(t, replaced(old, make))]
    assert any(why in one for one in wrong), wrong[:5]


def test_the_primary_goes_on_alone_when_its_backup_is_gone():
    fault = {"kind": "backup_crash", "at": "50 ms"}
    played = play(protection=parameters(), chunk_ns=CHUNK_NS, chunk_is_output=True, until_ns=300 * MS, faults=[fault])
    numbers = [number for _, number in played.run.seen]
    assert "primary goes on alone" in played.run.moments
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def process_at_a_disk(application: dict[str, Any], engine: str = "compiled", **more: Any) -> Any:
    """Return what a guest that dirties no pages does in 10 s, with a disk that takes 4 ms and 0.1024 for 8 kB."""
    disks = {"d": {"kind": "local", "interrupt": "5 us"}} if application["kind"] == "disk_bound" else {}
    protection = {"kind": "event_sync", "memory": {"touch_rate": "0 /s"}}
    vm = {"disks": disks, "applications": {"p": application}, "protection": protection}
    spec = {"hosts": {"host": {"pcpus": 1}}, "domains": {"vm": vm}, "measure": {"warm_up": "1 s", "duration": "10 s"}}
    return run_model(ModelSpec.model_validate({**spec, **more}), 1, 0, engine=engine).whole.outcomes


WRITER = {"kind": "disk_bound", "processes": 1, "compute": "100 us", "cv": 0.0, "reads": 0}


def test_a_request_to_a_disk_is_an_event():
    """It begins 1.174 ms later: 0.5 to suspend, 64 KiB of state at 1 Gbit/s, a round trip of 0.15 ms."""
    pause_ms = 0.5 + 65_536 * 8e-6 + 0.15
    found = process_at_a_disk(WRITER)
    cycle_ms = 0.1 + pause_ms + 4.1024 + 0.005
    assert found["domains.vm.applications.p"].transfers == pytest.approx(10_000 / cycle_ms, abs=1)
    assert found["domains.vm.protection"].stopped == pytest.approx(100 * pause_ms / cycle_ms, rel=0.001)
    # A waiting time that stands for one.
    waiter = {"kind": "batch", "demand": "1 ms", "disk_operations": 4, "disk_wait": "4 ms"}
    done = process_at_a_disk(waiter)["domains.vm.applications.p"].transactions
    assert done == pytest.approx(10_000 / (1 + 4 * (4 + pause_ms)), abs=1)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(("flush_every", "pauses"), [(0, 2), (250, 4)])
def test_what_a_page_cache_writes_back_is_one_event(engine, flush_every, pauses):
    """At 100 /s of 8 kB the cache of 64 MiB has room for 82 s; it writes back after 5 s, or when a process waits."""
    buffered = {"d": {"kind": "local", "writes": "buffered", "service": "10 us", "rate": "80 Gbit/s"}}
    vm = {
        "disks": buffered,
        "applications": {"p": {**WRITER, "compute": "10 ms", "flush_every": flush_every}},
        "protection": {"kind": "event_sync", "memory": {"touch_rate": "0 /s"}},
    }
    found = process_at_a_disk(WRITER, engine, domains={"vm": vm})
    pause_ms = 0.5 + (65_536 + 64) * 8e-6 + 0.149
    assert found["domains.vm.applications.p"].transfers == pytest.approx(1000, abs=6)
    assert found["domains.vm.protection"].stopped == pytest.approx(100 * pauses * pause_ms / 10_000, rel=1e-6)


@pytest.mark.parametrize("fault", ["primary_crash", "backup_crash", "channel_loss"])
def test_requests_go_on_after_a_failure(fault):
    """Three processes, in both engines: a backup issues what its last state has asked, and nothing waits any more."""
    faults = [{"kind": fault, "at": "5001500 us"}]
    runs = [process_at_a_disk({**WRITER, "processes": 3}, engine, faults=faults) for engine in ("compiled", "simpy")]
    transfers, same = (found["domains.vm.applications.p"].transfers for found in runs)
    assert transfers == same
    assert transfers > 2000
