"""What stands in a guest's receive ring when its state is taken, on every path, after a failover to that state."""

from typing import Any

import pytest

from tests.platform.machine_park import MS, US, Case, Park
from vftsim.platform.io.packet import ports
from vftsim.platform.io.paths import moderated
from vftsim.platform.protection import passes
from vftsim.testing.plant import ENGINES, play

DRIVER = {
    "native": "driver_receive_cost",
    "direct": "driver_receive_cost",
    "paravirtual": "frontend_receive_cost",
    "emulated": "driver_receive_cost",
    "stub_domain": "driver_receive_cost",
}
SAVED_BY_PATH = ("emulated", "stub_domain")
INTERVAL_NS = 25 * MS


def checkpoints(ring: str, **more: Any) -> dict[str, Any]:
    state = {"receive_ring": ring}
    failover = {"detection": {"timeout": 2 * INTERVAL_NS}, "go_live": 10 * MS}
    return {
        "interval": INTERVAL_NS,
        "suspend_request": 0,
        "reprotection": None,
        "state": state,
        "failover": failover,
        "memory": {"working_set": 0},
        **more,
    }


@pytest.mark.parametrize(
    ("path", "ring"),
    [*((path, "by_path") for path in DRIVER), ("paravirtual", "saved"), ("direct", "saved"), ("emulated", "lost")],
)
def test_what_the_driver_had_in_its_hands_is_restored_and_the_ring_as_the_path_has_it(path: str, ring: str):
    """5 ms a packet: at the state of 50 ms the driver has the first of three, the ring the others; a crash at 60 ms.

    The fourth comes in the second life; one at 55 ms came after the state and is lost, in the ring or rolled back.
    """

    def build() -> Park:
        return Park(
            "simpy",
            Case(path=path, protection="checkpoint", scheduler="native"),
            path={DRIVER[path]: 5 * MS},
            visits=[45 * MS, 45 * MS + 500 * US, 46 * MS, 55 * MS, 300 * MS],
            protection=checkpoints(ring),
            blows=[{"kind": "primary_crash", "at": "60 ms"}],
        )

    park = passes.play(build, lambda made: made.engine, lambda made: made.run(400 * MS)).run
    is_saved = ring == "saved" or (ring == "by_path" and path in SAVED_BY_PATH)
    assert bool(park.engine.rows(ports)[park.port].saves_ring) == (path in SAVED_BY_PATH)
    assert [number for _, number in park.result()["seen"]] == ([1, 2, 3, 5] if is_saved else [1, 5])
    assert park.drop_counts() == {("guest", "disconnected"): 1 if is_saved else 3}
    assert park.packets_in_use() == 0


def moderate(engine: Any) -> None:
    """One interrupt each 125 us, and a card that an emulator has."""
    engine.rows(moderated.guest_nics)[1].moderation_ns = 125 * US
    engine.rows(ports)[1].saves_ring = moderated.Moderated.saves_ring


@pytest.mark.thorough
@pytest.mark.parametrize("engine_type", ENGINES)
@pytest.mark.parametrize(
    ("kind", "ring", "restored"),
    [
        ("checkpoint", "by_path", 3),
        ("checkpoint", "lost", 0),
        ("micro_checkpoint", "by_path", 3),
        ("coarse_lockstep", "by_path", 3),
        ("coarse_lockstep", "lost", 0),
    ],
)
def test_packets_that_wait_for_a_moderated_interrupt(engine_type: Any, kind: str, ring: str, restored: int):
    """The first packet raises its interrupt; three wait for the next when the state is taken, or the host crashes."""
    is_compared = kind == "coarse_lockstep"
    end_ns = 60_001_000 if is_compared else 175 * MS
    mechanism = checkpoints(ring, failover={"detection": {"timeout": 300 * MS}, "go_live": 10 * MS})
    if kind != "checkpoint":
        mechanism.pop("suspend_request")
    if is_compared:
        mechanism.pop("interval")
    mine = {"coarse_lockstep": {"divergence_rate": 0.001, "jitter": 0}, "micro_checkpoint": {"shipped": True}}
    crash_ns = end_ns if is_compared else 199 * MS
    played = play(
        protection={"kind": kind, **mechanism, **mine.get(kind, {})},
        asks=[end_ns - each * US for each in (110, 90, 80, 70)],
        faults=[{"kind": "primary_crash", "at": f"{crash_ns} ns"}],
        until_ns=700 * MS,
        spoil=moderate,
        engine_type=engine_type,
        guest_runs=False,
    ).run
    live_ns = played.moments["secondary live"]
    assert [number for time_ns, number in played.entered if time_ns >= live_ns] == [1, 2, 3][:restored]
    assert played.lost_at_the_card == 3 - restored
    assert sorted(number for _, number in played.seen) == list(range(restored + 1))
