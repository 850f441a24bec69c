"""What a plant with services, losses that are over and long lives shows: bounds on what is sent and issued again."""

from collections import Counter
from typing import Any

import pytest

from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.coarse_lockstep import coarse_lockstep
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import OWN, Plant, play, watched

from .test_promise import SEEDS, bounds_of, strike

LATENCY = 300 * US
RATE = 2_000_000
CHANNEL = {"rate": RATE, "latency": LATENCY, "ack": 0}
STATES = {
    "channel": CHANNEL,
    "reprotection": None,
    "state": {"fixed": 500},
    "memory": {"working_set": 0, "touch_rate": 0.0},
    "failover": {"detection": {"timeout": 300 * MS}, "go_live": 20 * MS},
}


@pytest.mark.parametrize("what", ["primary", "backup"])
@pytest.mark.parametrize("pair", SEEDS)
def test_lockstep_keeps_its_promise_at_the_boundaries_of_an_outputs_way(pair: str, what: str) -> None:
    """Written, left, arrived, acknowledged, and 1 ns around each."""
    instants = sorted({time_ns + d for time_ns in bounds_of(SEEDS[pair]) for d in (-1, 0, 1)})
    assert {t: why for t in instants if (why := strike(SEEDS[pair], t, what))} == {}


def test_what_lockstep_could_not_send_it_sends_when_the_channel_works_again() -> None:
    """20 packets of 500 bytes come while it is away: 40 ms at 2 Mbit/s, and no output leaves before they have."""
    asks = [10 * MS + 100 * US * i for i in range(20)]
    mechanism = {
        "kind": "lockstep",
        "log": {"timer_rate": 0.0, "packet_entry": 0, "framing": 0, "transport_overhead": 1.0},
        "channel": {"rate": RATE, "latency": LATENCY},
        "reprotection": None,
    }
    loss = {"kind": "channel_loss", "at": "9 ms", "duration": "5 ms"}
    plant = Plant(mechanism, asks=asks, size_bytes=500, faults=[loss], until_ns=200 * MS).run()
    bytes_in = 20 * 500
    assert plant.engine.rows(channels)[plant.guard].sent_bytes >= bytes_in
    assert {number for _, number in plant.seen} == set(range(20))
    assert min(time_ns for time_ns, _ in plant.seen) >= 14 * MS + bytes_in * 8 * S // RATE + 2 * LATENCY


def test_what_epochs_could_not_send_they_send_when_the_channel_works_again() -> None:
    """20 packets are forwarded while it is away; nobody answers before they have left and are acknowledged."""
    asks = [10 * MS + 10 * US * i for i in range(20)]
    loss = {"kind": "channel_loss", "at": "9 ms", "duration": "20 ms"}
    plant = Plant(
        {"kind": "hypervisor_epoch", "entry": 64, **STATES},
        asks=asks,
        size_bytes=500,
        service_ns=5 * MS,
        faults=[loss],
        until_ns=300 * MS,
    ).run()
    assert {number for _, number in plant.seen} == set(range(20))
    assert min(time_ns for time_ns, _ in plant.seen) >= 29 * MS + 20 * 564 * 8 * S // RATE + 2 * LATENCY


def test_what_a_guest_sends_while_an_epoch_ends_waits_for_one_acknowledgement() -> None:
    """Delivered when an epoch begins, answered 4 periods later: just when one ends."""
    mechanism = {"kind": "hypervisor_epoch", "boundary": 250 * US, **STATES, "channel": {**CHANNEL, "rate": 10**9}}
    plant = Plant(mechanism, asks=[10 * MS], service_ns=5 * MS, until_ns=100 * MS).run()
    (hold_ns,) = plant.holds()
    assert 250 * US <= hold_ns <= 250 * US + 2 * LATENCY + 10 * US


@pytest.mark.parametrize("kind", ["event_sync", "hypervisor_epoch"])
def test_a_backup_issues_only_its_last_event_or_epoch_again(kind: str) -> None:
    """After a life of 600 ms in which tens of outputs have left, the last one just now."""
    mechanism = {"kind": kind, **STATES}
    asks = [9_100_003 * i for i in range(1, 90)]
    alive = Plant(mechanism, asks=asks, chunk_ns=13_700_001, chunk_is_output=True, until_ns=600 * MS).run()
    crash_ns = alive.seen[-1][0] + 100
    faults = [{"kind": "primary_crash", "at": f"{crash_ns} ns"}]
    plant = play(
        protection=mechanism, asks=asks, chunk_ns=13_700_001, chunk_is_output=True, faults=faults, until_ns=3 * S
    ).run
    before = [(time_ns, number) for time_ns, number in plant.seen if time_ns <= crash_ns]
    counted = Counter(number for _, number in plant.seen)
    again = [number for _, number in before if counted[number] > 1]
    assert len(before) >= 20
    assert "secondary live" in plant.moments
    assert 1 <= plant.summary["outputs_issued_again"] == len(again) <= 4
    assert before[-1][1] in again


@pytest.mark.parametrize("part", range(1, 8))
def test_a_state_whose_channel_was_lost_on_its_way_takes_the_rest_of_its_time(part: int) -> None:
    """A state of 40 ms on the wire, cut after some eighths: the rest leaves when the channel works again."""
    wire_ns = 40 * MS
    mechanism = {
        "kind": "checkpoint",
        "interval": 100 * MS,
        "suspend_request": 0,
        "pause": {"fixed": 0, "page": 0},
        **STATES,
        "state": {"fixed": RATE * wire_ns // S // 8},
    }
    cut_ns = 100 * MS + wire_ns * part // 8
    loss = {"kind": "channel_loss", "at": f"{cut_ns} ns", "duration": "70 ms"}
    plant = Plant(mechanism, asks=[90 * MS], faults=[loss], until_ns=400 * MS).run()
    rest_ns = wire_ns - wire_ns * part // 8
    assert plant.seen == [(cut_ns + 70 * MS + rest_ns + 2 * LATENCY, 0)]


def test_nothing_is_compared_while_a_checkpoint_makes_the_replicas_equal() -> None:
    mechanism: dict[str, Any] = {
        "kind": "coarse_lockstep",
        "divergence_rate": 30.0,
        "jitter": 2 * MS,
        "suspend": 8 * MS,
        **STATES,
    }
    plant = Plant(
        mechanism, chunk_ns=400_003, chunk_is_output=True, until_ns=2 * S, part=watched(coarse_lockstep)
    ).run()
    equal_ns = 8 * MS + 500 * 8 * S // RATE + 2 * LATENCY
    stops = [time_ns for time_ns, _ in plant.stops if time_ns + equal_ns < 2 * S]
    held = _held(plant)
    waiting = sum(any(issued_ns <= stop_ns < left_ns for issued_ns, left_ns in held) for stop_ns in stops)
    assert len(stops) > 20
    assert waiting > 10
    inside = [(t, n) for t, n in plant.seen if any(stop_ns < t < stop_ns + equal_ns for stop_ns in stops)]
    assert inside == []


def _held(plant: Plant) -> list[tuple[int, int]]:
    """When each output of the guest's own that was seen was issued, and when it left."""
    issued = {number: time_ns for time_ns, number in plant.issued}
    return [(issued[number], time_ns) for time_ns, number in plant.seen if number > OWN]
