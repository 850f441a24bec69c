"""Comparison of outputs: slowdown by divergences, delay by the slower replica, and the promise from outside."""

import math
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from vftsim.errors import UsageError
from vftsim.kernel.declare import part_of
from vftsim.platform.protection import build as protect
from vftsim.platform.protection import coarse_lockstep as mechanism
from vftsim.platform.protection.mechanism import protections
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, OWN, Plant

from .crashes import quarters
from .spoilt import replaced

CHUNK_NS = 1_700_001
TIMEOUT_NS, HEARTBEAT_NS, ACTIVATION_NS, GO_LIVE_NS, WAY_NS = 30 * MS, 7 * MS, 5 * MS, 20 * MS, 75 * US


def parameters(**more: Any) -> dict[str, Any]:
    return {
        "kind": "coarse_lockstep",
        "jitter": 300 * US,
        "divergence_rate": 20.0,
        "memory": {"working_set": 100, "touch_rate": 10_000.0},
        "state": {"fixed": 65536},
        "channel": {"rate": 1_000_000_000, "latency": WAY_NS, "ack": 0},
        "reprotection": None,
        "failover": {
            "detection": {"heartbeat_interval": HEARTBEAT_NS, "timeout": TIMEOUT_NS, "backup_timeout": 50 * MS},
            "go_live": GO_LIVE_NS,
        },
        **more,
    }


# A checkpoint of 50 ms and nothing else.
HALF_TENTH = {
    "suspend": 50 * MS,
    "state": {"fixed": 0},
    "memory": {"working_set": 0, "touch_rate": 0.0},
    "jitter": 0,
    "channel": {"rate": 1_000_000_000, "latency": 0, "ack": 0},
}


@pytest.mark.parametrize(("rate", "expected"), [(0.01, 1.00276), (1.0, 1.0500), (10.0, 1.500)])
def test_slowdown_by_divergences_with_a_period(rate, expected):
    """Runs of (1 - exp(-v T)) / v in the mean, each followed by a checkpoint; band of 4 standard errors."""
    runs = 8000
    mean_s = -math.expm1(-rate * 20) / rate
    plant = Plant(
        parameters(divergence_rate=rate, **HALF_TENTH), chunk_ns=1000 * S, until_ns=int(runs * (mean_s + 0.05) * S)
    ).run()
    assert plant.engine.now_ns / plant.run_ns - 1 == pytest.approx(expected - 1, rel=4 / math.sqrt(runs))
    assert plant.summary["states_taken"] == pytest.approx(runs, rel=4 / math.sqrt(runs))
    periodic = plant.summary.get("periodic_checkpoints", 0) / plant.summary["states_taken"]
    assert periodic == pytest.approx(math.exp(-rate * 20), abs=4 / math.sqrt(runs))


@pytest.mark.parametrize("way_ns", [0, 75 * US, 10 * MS])
def test_equal_outputs_wait_for_the_slower_replica(way_ns):
    """The primary's is late by X, the secondary's by a round trip a and Y, exponentials of mean j.

    E max(X, a + Y) = a + j + j exp(-a / j) / 2, and 1.5 j where a is 0; the standard deviation is at most 1.12 j.
    """
    plant = Plant(
        parameters(divergence_rate=1e-6, period=3600 * S, jitter=100 * US, channel={"latency": way_ns}),
        chunk_ns=20 * MS,
        chunk_is_output=True,
        until_ns=400 * S,
    ).run()
    holds = plant.holds()
    mean_ns = sum(holds) / len(holds)
    # 200 B at 1 Gbit/s come back.
    round_trip_ns = 2 * way_ns + 1600
    expected_ns = round_trip_ns + 100 * US + 50 * US * math.exp(-round_trip_ns / (100 * US))
    assert len(holds) > 19_000
    assert abs(mean_ns - expected_ns) <= 4 * 112 * US / math.sqrt(len(holds))


def test_an_input_crosses_the_channel_and_its_answer_comes_back():
    """200 B there and back at 1 Gbit/s, 75 us each way, and nothing else on the channel."""
    plant = Plant(
        parameters(divergence_rate=1e-6, period=3600 * S, jitter=0), asks=[100 * MS, 300 * MS], until_ns=S
    ).run()
    assert plant.holds() == [2 * (1600 + WAY_NS)] * 2
    assert plant.summary["log_bytes"] == 2 * 200


def test_a_missing_packet_waits_for_its_timeout_and_forces_a_checkpoint():
    settings = parameters(divergence_rate=1e-6, missing=100.0, packet_timeout=200 * MS, jitter=0)
    plant = Plant(settings, asks=[100 * MS], until_ns=S).run()
    (hold_ns,) = plant.holds()
    pages = 100 * -math.expm1(-10_000 * 0.3 / 100)
    wire_ns = (65536 + round(pages * 4104)) * 8
    assert hold_ns == 200 * MS + 500 * US + wire_ns + 2 * WAY_NS
    assert plant.summary["packets_missing"] == 1


def test_no_packet_waits_longer_than_the_timeout_and_a_checkpoint():
    """Also where the distance of the replicas is of the order of the timeout, and packets wait behind others."""
    settings = parameters(
        divergence_rate=1e-6,
        period=3600 * S,
        jitter=20 * MS,
        packet_timeout=50 * MS,
        state={"fixed": 0},
        memory={"working_set": 0, "touch_rate": 0.0},
        suspend=500 * US,
    )
    plant = Plant(settings, chunk_ns=10 * MS, chunk_is_output=True, until_ns=100 * S).run()
    longest_ns = 50 * MS + 500 * US + 2 * WAY_NS
    assert 50 * MS < max(plant.holds()) <= longest_ns
    assert plant.summary["packets_missing"] > 100


@pytest.mark.parametrize("engine_type", ENGINES)
def test_a_secondary_goes_on_from_where_it_is(engine_type):
    """No execution is lost: chunks go on with what the guest had left at the crash."""
    world = run(123_456_789, engine_type=engine_type)
    assert world.summary["failovers"] == 1
    numbers = [number for _, number in world.seen if number > OWN]
    assert numbers == list(range(OWN + 1, OWN + 1 + len(numbers)))


def test_it_is_refused_where_nothing_is_drawn():
    plant = Plant(parameters(), until_ns=1)
    with pytest.raises(UsageError, match="random numbers"):
        protect.add_guard(
            plant.engine, protections()["coarse_lockstep"].model_validate(parameters()), plant.domain, [], []
        )


# The promise


ASKS = [2_100_003 * i for i in range(1, 200)]
PER_PHASE = 15


def run(crash_ns: int = 0, spoil: Any = None, **more: Any) -> Plant:
    faults = [{"kind": "primary_crash", "at": f"{crash_ns} ns"}] if crash_ns else []
    until_ns = crash_ns + 80 * MS if crash_ns else 400 * MS
    return Plant(
        parameters(),
        asks=ASKS,
        chunk_ns=CHUNK_NS,
        chunk_is_output=True,
        faults=faults,
        until_ns=until_ns,
        spoil=spoil,
        **more,
    ).run()


@cache
def alive() -> Plant:
    return run()


def judge(crash_ns: int, world: Plant) -> list[str]:
    """Nothing leaves before its own comparison could end; everything issued before the crash leaves once, in order."""
    live_ns = crash_ns // HEARTBEAT_NS * HEARTBEAT_NS + WAY_NS + TIMEOUT_NS + ACTIVATION_NS + GO_LIVE_NS
    lives = [t for t, what in world.timeline if what == "secondary live"]
    wrong = [] if lives == [live_ns] else [f"went live at {lives}, not once at {live_ns}"]
    # What a primary that lives on has let go by then, no other may have let go.
    before = [m for m in world.seen if m[0] <= crash_ns]
    reference = [m for m in alive().seen if m[0] <= crash_ns]
    wrong += [f"{n} left too early" for t, n in before if (t, n) not in reference]
    issued = [n for t, n in alive().issued if t <= crash_ns]
    numbers = [n for _, n in world.seen]
    wrong += [f"{n} is known to the secondary and never issued" for n in issued if n not in numbers]
    wrong += ["an output left twice"] if len(set(numbers)) < len(numbers) else []
    wrong += ["something left between two lives" for t, _ in world.seen if crash_ns < t < live_ns]
    return wrong


@cache
def crash_instants() -> tuple[int, ...]:
    """Around outputs, their release and one checkpoint, and inside each of these stretches."""
    seen = [m for m in alive().seen if m[0] > 30 * MS][:7]
    issued = {n: t for t, n in alive().issued}
    bounds = sorted({t for m in seen for t in (issued[m[1]], m[0])})
    inside = [a + (2 * i + 1) * (b - a) // (2 * PER_PHASE) for a, b in pairwise(bounds) for i in range(PER_PHASE)]
    return tuple(sorted({t + d for t in bounds for d in (-1, 0, 1)} | set(inside)))


@pytest.mark.thorough
@pytest.mark.parametrize("part", quarters(4))
def test_comparison_keeps_its_promise_at_stratified_crashes(part):
    assert len(crash_instants()) >= 200
    wrong = {t: judge(t, run(t)) for t in crash_instants()[part::4]}
    assert {t: why for t, why in wrong.items() if why} == {}


def at_once(old: Any, namespace: dict[str, Any]) -> Any:
    def plan(sim: Any, guard: Any, *arguments: Any) -> None:
        old(sim, guard, *arguments)
        namespace[part_of(mechanism.output_buffer.release_everything).name](sim, guard)

    return plan


def waiting_lost(old: Any, namespace: dict[str, Any]) -> Any:
    def fail_over(sim: Any, guard: Any) -> None:
        namespace[part_of(mechanism.output_buffer.lose).name](sim, guard)

    return fail_over


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "make", "why"),
    [(mechanism.plan_comparison, at_once, "too early"), (mechanism.hand_over, waiting_lost, "never issued")],
)
def test_a_planted_violation_is_caught(old, make, why):
    wrong = [one for t in crash_instants()[::10] for one in judge(t, run(t, replaced(old, make)))]
    assert any(why in one for one in wrong), wrong[:5]


@pytest.mark.parametrize("engine_type", ENGINES)
def test_a_guest_answers_hundreds_at_the_instant_at_which_a_pause_is_over(engine_type):
    """Each draws two delays, of which less than 1,400 may be there, which ended the run."""
    pause = {"kind": "pause", "at": "100 ms", "duration": "50 ms"}
    asks = [100 * MS + 70 * US * number for number in range(1, 701)]
    plant = Plant(parameters(), asks=asks, faults=[pause], until_ns=500 * MS, engine_type=engine_type).run()
    assert sum(time_ns == 150 * MS for time_ns, _ in plant.issued) == 700
    assert len({number for _, number in plant.seen}) == 700


QUIET = {"jitter": 0, "divergence_rate": 1e-6, "period": 3600 * S, "packet_timeout": 3 * S}
PATIENT = {"detection": {"timeout": 10 * S, "backup_timeout": 10 * S, "heartbeat_interval": HEARTBEAT_NS}}


def flap(engine_type, rate, way_ns, loss_ns, **plant):
    """Play a channel that is lost from, for so long."""
    at_ns, lasts_ns = loss_ns
    channel = {"rate": rate, "latency": way_ns, "ack": 0}
    fault = {"kind": "channel_loss", "at": f"{at_ns} ns", "duration": f"{lasts_ns} ns"}
    protection = parameters(**{**QUIET, **plant.pop("protection", {})}, channel=channel, failover=PATIENT)
    return Plant(protection, faults=[fault], engine_type=engine_type, **plant).run()


@pytest.mark.parametrize("engine_type", ENGINES)
def test_a_request_that_comes_while_the_channel_is_lost_crosses_it_afterwards(engine_type):
    """1,000 B take 8 us there and back, and 75 us each way, from when the channel works: no other output follows."""
    common = {"size_bytes": 1000, "guest_runs": False, "until_ns": 20 * S}
    plant = flap(engine_type, 1_000_000_000, WAY_NS, (15 * MS, 20 * MS), asks=[20 * MS], **common)
    assert plant.seen == [(35 * MS + 2 * (8 * US + WAY_NS), 0)]


@pytest.mark.parametrize("engine_type", ENGINES)
def test_what_of_a_copy_has_not_left_when_the_channel_fails_takes_its_time_again(engine_type):
    """100 kB take 80 ms: 20 of them before the loss of 40 ms, 60 after it, and 80 back."""
    common = {"size_bytes": 100_000, "guest_runs": False, "until_ns": S}
    plant = flap(engine_type, 10_000_000, 0, (30 * MS, 40 * MS), asks=[10 * MS], **common)
    assert plant.seen == [(210 * MS, 0)]
    assert plant.summary["state_bytes"] == 100_000


@pytest.mark.parametrize("engine_type", ENGINES)
@pytest.mark.parametrize("asks", [[], [12 * MS]])
def test_the_secondary_does_after_a_loss_what_the_primary_has_done_since(engine_type, asks):
    """A guest that always computes sends each 7 ms; from 10 to 30 ms the channel is lost.

    A request that enters in the loss keeps the secondary where it was then: it is 20 ms and the way behind for good.
    Without one it has done everything by itself, and what waits leaves as soon as its outputs come.
    """
    common = {"size_bytes": 200, "chunk_ns": 7 * MS, "chunk_is_output": True, "until_ns": 60 * MS}
    plant = flap(engine_type, 1_000_000_000, WAY_NS, (10 * MS, 20 * MS), asks=asks, **common)
    back_ns = 1600 + WAY_NS
    if asks:
        held = [30 * MS + back_ns + (t - 10 * MS) + back_ns for t in (14 * MS, 21 * MS, 28 * MS, 35 * MS)]
    else:
        held = [30 * MS + back_ns] * 3 + [35 * MS + WAY_NS + back_ns]
    assert [t for t, n in plant.seen if n > OWN][:5] == [7 * MS + WAY_NS + back_ns, *held]


@pytest.mark.parametrize("asks", [[], [12 * MS]])
def test_a_slow_secondary_is_as_late_after_a_loss_as_it_has_work_left(asks):
    """At half its speed it is t behind after t of work; a request in the loss finds it through what came before it."""
    common = {"size_bytes": 200, "chunk_ns": 7 * MS, "chunk_is_output": True, "until_ns": 200 * MS}
    slow = {"kind": "slow_backup", "at": "0 ns", "speed": "50 %"}
    protection = parameters(**QUIET, channel={"rate": 10**9, "latency": WAY_NS, "ack": 0}, failover=PATIENT)
    lost = {"kind": "channel_loss", "at": "10 ms", "duration": "20 ms"}
    plant = Plant(protection, asks=asks, faults=[slow, lost], **common).run()
    seen = {n - OWN: t for t, n in plant.seen}
    back_ns = 1600 + WAY_NS
    if asks:
        # Through the work of 10 ms at 20, and with that of 28 ms 36 ms after it has the request.
        assert seen[4] == 30 * MS + back_ns + 36 * MS + back_ns
        assert seen[5] == 35 * MS + back_ns + (35 * MS - 30 * MS) + 40 * MS + back_ns
    else:
        assert seen[5] == 70 * MS + WAY_NS + back_ns


@pytest.mark.parametrize("engine_type", ENGINES)
def test_a_missing_packet_of_a_lost_channel_forces_its_checkpoint_at_its_timeout_or_when_the_channel_works(engine_type):
    """Issued at 20 ms, given up 15 ms later, or at once when the channel works after that."""
    for back_ns, given_up_ns in ((30 * MS, 35 * MS), (40 * MS, 40 * MS)):
        protection = {"missing": 100.0, "packet_timeout": 15 * MS}
        common = {"asks": [20 * MS], "guest_runs": False, "until_ns": S, "protection": protection}
        plant = flap(engine_type, 1_000_000_000, WAY_NS, (16 * MS, back_ns - 16 * MS), **common)
        # Suspension, fixed state, round trip.
        assert plant.seen == [(given_up_ns + 500 * US + 65536 * 8 + 2 * WAY_NS, 0)]


@pytest.mark.parametrize("engine_type", ENGINES)
def test_what_is_sent_in_a_checkpoint_is_compared_after_it(engine_type):
    """A timer goes off while the guest stands still: the state that is under way does not know of its output."""
    protection = parameters(**{**QUIET, "period": 20 * MS}, channel={"rate": 10**9, "latency": WAY_NS, "ack": 0})
    common = {"size_bytes": 1000, "guest_runs": False, "until_ns": 100 * MS, "engine_type": engine_type}
    plant = Plant(protection, asks=[15_100 * US], service_ns=5 * MS, **common).run()
    over_ns = 20 * MS + 500 * US + 65536 * 8 + 2 * WAY_NS
    assert plant.seen == [(over_ns + WAY_NS + 8 * US + WAY_NS, 0)]
    assert plant.audit.breaches == 0
