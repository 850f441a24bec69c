"""Loss of the network card, of the shared storage, a slow backup: timelines worked out by hand."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.composition.composed import checked, interface
from tests.platform.machine_park import PATHS, Case, Park
from vftsim.composition.run import run_model
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.protection.device_faults import SlowBackup
from vftsim.platform.protection.when import Instant
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, Plant, play

from .lab import Lab, linked
from .pair import QUIET, Pair, free_log
from .scripts import QUICK_FAILOVER, script
from .sets import A


def lab(
    protection: dict[str, Any], *faults: dict[str, Any], until_ns: int = 200 * MS, engine: Any = SimpyEngine
) -> Any:
    """What a script of a guest that answers a packet each millisecond comes to."""
    visits = [(each * MS, 200, 10_000, [300]) for each in range(1, until_ns // MS)]
    return Lab(
        engine(linked()), script(protection=protection, faults=list(faults), packets=visits, until_ns=until_ns)
    ).run()


# The network card


@pytest.mark.parametrize("path", PATHS)
def test_a_dead_card_carries_nothing_in_or_out(path: str):
    """A packet each millisecond, on its way for 0.1; the card is dead from 10 to 20 ms: ten do not get in."""
    loss = [{"kind": "nic_loss", "at": "10 ms", "duration": "10 ms"}]
    visits = [each * MS for each in range(1, 31)]
    park = Park("simpy", Case(path=path, scheduler="native"), visits=visits, blows=loss).run(60 * MS)
    assert [number for _, number in park.result()["seen"]] == [*range(1, 10), *range(20, 31)]
    assert park.drop_counts() == {("network card", "lost"): 10}
    assert [what for _, what in park.result()["timeline"]] == ["network card lost", "network card works again"]


@pytest.mark.parametrize("several", [("10 ms", "4 ms"), ("12 ms", "8 ms")], ids=["the first ends", "the last ends"])
def test_losses_of_a_card_that_overlap_end_with_the_last(several):
    """Ten packets do not get in, whether the loss that lasts from 10 to 20 ms begins first or is there already."""
    losses = [{"kind": "nic_loss", "at": at, "duration": lasts} for at, lasts in (several, ("10 ms", "10 ms"))]
    visits = [each * MS for each in range(1, 31)]
    for blows in (losses, [*losses, {"kind": "nic_loss", "at": "13 ms", "duration": "2 ms"}]):
        park = Park("simpy", Case(scheduler="native"), visits=visits, blows=blows).run(60 * MS)
        assert [number for _, number in park.result()["seen"]] == [*range(1, 10), *range(20, 31)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_channel_lost_with_its_card_and_by_itself_works_again_after_both(is_first: bool, engine: Any):
    """The channel is lost from 20 to 40 ms, in two faults that overlap, one of which takes the card with it."""
    protection = {
        "kind": "lockstep",
        "channel": {"shared": True, "latency": 74_500},
        "failover": {**QUICK_FAILOVER, "detection": {"heartbeat_interval": "5 ms", "timeout": "90 ms"}},
        "reprotection": None,
    }
    begin, later = ("20 ms", "10 ms"), ("26 ms", "14 ms")
    card, channel = (begin, later) if is_first else (later, begin)
    loss = {"kind": "nic_loss", "at": card[0], "duration": card[1]}
    faults = [loss, {"kind": "channel_loss", "at": channel[0], "duration": channel[1]}]
    timeline = lab(protection, *faults, engine=engine)["timeline"]
    assert [time_ns for time_ns, what in timeline if what == "channel works again"] == [40 * MS]


def test_outputs_of_a_guest_behind_a_dead_card_are_lost_too():
    """The program works 5 ms on a packet: the answer to that of 8 ms comes at 13, to that of 18 ms at 23."""
    loss = [{"kind": "nic_loss", "at": "10 ms", "duration": "7 ms"}]
    park = Park(
        "simpy", Case(scheduler="native"), visits=[8 * MS, 18 * MS], blows=loss, application={"packet_cost": 5 * MS}
    ).run(60 * MS)
    assert [number for _, number in park.result()["seen"]] == [2]
    assert park.drop_counts() == {("network card", "lost"): 1}


def test_a_failover_leaves_the_dead_card_behind_and_nothing_else_does():
    """No mechanism watches the card: until the host crashes nobody answers, for all that the pair is in step."""
    loss, crash = {"kind": "nic_loss", "at": "20 ms"}, {"kind": "primary_crash", "at": "100 ms"}
    protection = {"kind": "lockstep", "failover": QUICK_FAILOVER, "reprotection": None}
    park = Park(
        "simpy",
        Case(protection="lockstep", scheduler="native"),
        blows=[loss, crash],
        visits=[each * MS for each in range(1, 150)],
        protection=protection,
    ).run(300 * MS)
    times = [time_ns for time_ns, _ in park.result()["seen"]]
    live_ns = {what: time_ns for time_ns, what in park.result()["timeline"]}["secondary live"]
    assert not any(21 * MS < time_ns < live_ns for time_ns in times)
    assert sum(time_ns > live_ns for time_ns in times) > 20
    assert park.packets_in_use() == 0


def test_a_channel_on_the_same_card_is_lost_with_it():
    failover = {**QUICK_FAILOVER, "fencing": True}
    protection = {
        "kind": "lockstep",
        "channel": {"shared": True, "latency": 74_500},
        "failover": failover,
        "reprotection": None,
    }
    timeline = lab(protection, {"kind": "nic_loss", "at": "20 ms"})["timeline"]
    assert timeline[1:3] == [(20 * MS, "network card lost"), (20 * MS, "channel loss")]
    assert "secondary live" in [what for _, what in timeline] or "primary goes on alone" in [w for _, w in timeline]


def on_two_networks(*faults: dict[str, Any], kind: str = "lockstep", **protection: Any) -> Any:
    """What a guest that is asked 100 times a second on each of two networks comes to."""
    names = ("office", "plant")
    guest = {
        "interfaces": {name: {"network": name, "path": {"kind": "moderated", "moderation": 0}} for name in names},
        "applications": {"server": {"kind": "service", "demand": 0}},
        "protection": {"kind": kind, **protection},
    }
    ask = {"kind": "open_requests", "to": "guest", "rate": "100 /s", "gap_cv": 0, "retries": 0, "timeout": "50 ms"}
    data = {
        "networks": {name: {} for name in names},
        "domains": {"guest": guest},
        "faults": [{"kind": "nic_loss", **fault} for fault in faults],
        "workloads": {name: {**ask, "via": name} for name in names},
        "measure": {"warm_up": "100 ms", "duration": "1 s"},
    }
    return run_model(checked(data), 1, 0, "compiled")


def test_a_card_of_one_network_is_lost_alone():
    """Of 100 requests a second 20 fail on the one in 200 ms, and 10 on the other in a while of 100 ms that overlaps."""
    both = [("office", "300 ms", "200 ms"), ("plant", "450 ms", "100 ms")]
    losses = [{"network": name, "at": at, "duration": lasts} for name, at, lasts in both]
    for faults, failed in (
        (losses[:1], (20, 0)),
        (losses, (20, 10)),
        ([{"at": "300 ms", "duration": "50 ms"}], (5, 5)),
    ):
        record = on_two_networks(*faults)
        assert tuple(record.whole.outcomes[f"workloads.{name}"].failures for name in ("office", "plant")) == failed
        assert sum(record.drops.values()) == sum(failed)
        whats = [what for _, what in record.timelines["guest"]]
        assert whats.count("network card works again") == whats.count("network card lost") == len(faults)


@pytest.mark.parametrize(("network", "is_lost"), [("office", True), ("plant", False), (None, True)])
def test_a_channel_is_lost_with_the_card_that_carries_it_and_no_other(network: str | None, is_lost: bool):
    loss = {"network": network, "at": "300 ms", "duration": "10 ms"}
    record = on_two_networks(loss, kind="checkpoint", interval="25 ms", channel={"network": "office"})
    assert ("channel loss" in [what for _, what in record.timelines["guest"]]) is is_lost


def test_a_card_of_a_network_that_the_guest_is_not_on_is_no_fault_of_it():
    with pytest.raises(ValidationError, match="network 'lab' is none of the domain's: office, plant"):
        on_two_networks({"network": "lab", "at": "300 ms"})


# The storage


def fenced(*faults: dict[str, Any], engine: Any = SimpyEngine, **failover: Any) -> dict[str, int]:
    """The timeline of a fenced lockstep pair whose primary crashes at 20 ms: declared at 27, lock 0.5 ms, live 2 ms."""
    protection = {"kind": "lockstep", "reprotection": None, "failover": {**QUICK_FAILOVER, "fencing": True, **failover}}
    crash = {"kind": "primary_crash", "at": "20 ms"}
    return {what: time_ns for time_ns, what in lab(protection, crash, *faults, engine=engine)["timeline"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_lock_waits_for_the_storage(engine: Any):
    plain = fenced(engine=engine)
    declared_ns, live_ns = plain["failure declared"], plain["secondary live"]
    assert live_ns == declared_ns + 500 * US + 2 * MS
    # From before until after; from between asking and having it; over before; and two that overlap, out of order.
    outages = [
        ([("15 ms", "45 ms")], 60 * MS),
        ([(f"{declared_ns + 400 * US} ns", "10 ms")], declared_ns + 10_400 * US),
        ([("5 ms", "16 ms")], declared_ns),
        ([("40 ms", "20 ms"), ("21 ms", "25 ms")], 60 * MS),
    ]
    for given, asked_ns in outages:
        faults = [{"kind": "storage_loss", "at": at, "duration": duration} for at, duration in given]
        assert fenced(*faults, engine=engine)["secondary live"] == asked_ns + 500 * US + 2 * MS


def test_storage_that_never_comes_back_lets_nobody_go_live_unless_nothing_fences():
    loss = {"kind": "storage_loss", "at": "15 ms"}
    assert "secondary live" not in fenced(loss)
    assert fenced(loss, fencing=False)["secondary live"] == fenced(fencing=False)["secondary live"]


def test_a_restart_boots_when_its_disks_can_be_reached():
    mechanism = {
        "kind": "ha_restart",
        "failover": {
            "detection": {"heartbeat_interval": 2 * MS, "timeout": 5 * MS},
            "placement": 3 * MS,
            "boot_time": 9 * MS,
        },
    }
    faults = [{"kind": "primary_crash", "at": "20 ms"}, {"kind": "storage_loss", "at": "10 ms", "duration": "40 ms"}]
    assert (50 * MS + 9 * MS, "booted") in lab(mechanism, *faults)["timeline"]
    assert (20 * MS + 17 * MS, "booted") in lab(mechanism, faults[0])["timeline"]


def test_both_paths_lost_and_the_storage_too():
    """Under checkpoints the backup's patience ends at 255.3 ms; nobody is fenced before the storage is back."""
    failover = {"detection": {"timeout": 52 * MS, "backup_timeout": 90 * MS}, "fencing": True}
    faults = [{"kind": "channel_loss", "at": "203.3 ms"}, {"kind": "storage_loss", "at": "203.3 ms", "duration": "S"}]
    for duration_ms, fenced_ns in ((30, 203_300_000 + 52 * MS), (200, 403_300_000)):
        faults[1]["duration"] = f"{duration_ms} ms"
        run = play(
            protection=A.parameters(reprotection=None, failover=failover),
            chunk_ns=371_713,
            chunk_is_output=True,
            faults=faults,
            until_ns=600 * MS,
        ).run
        assert run.moments["primary fenced"] == fenced_ns
        assert run.moments["secondary live"] > fenced_ns


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("fault", "storage", "latency_ms", "alone_ms"),
    [
        ("backup_crash", None, 5, 303.916),
        ("backup_crash", ("300 ms", "20 ms"), 5, 325.0),
        ("channel_loss", None, 40, 338.916),
    ],
)
def test_a_primary_goes_on_alone_when_it_has_the_lock(fault, storage, latency_ms, alone_ms, engine):
    """The state of 200 ms leaves from 200.953 to 208.916 ms; 90 ms later the primary asks, 5 or 40 ms before it has it.

    The storage is lost between, or the backup's patience of 120 ms ends at 323 ms: who asked first has it first.
    """
    failover = {"detection": {"timeout": 120 * MS, "backup_timeout": 90 * MS}, "fencing": True}
    losses = [{"kind": "storage_loss", "at": storage[0], "duration": storage[1]}] if storage else []
    run = play(
        protection=A.parameters(reprotection=None, failover={**failover, "storage_latency": latency_ms * MS}),
        chunk_ns=371_713,
        chunk_is_output=True,
        faults=[{"kind": fault, "at": "203.3 ms"}, *losses],
        until_ns=600 * MS,
        engine_type=engine,
    ).run
    assert run.moments["primary goes on alone"] == pytest.approx(alone_ms * MS, abs=1000)
    assert "primary fenced" not in run.moments
    assert min(time_ns for time_ns, _ in run.seen if time_ns > 210 * MS) == run.moments["primary goes on alone"]


# The backup's processor


def test_a_secondary_at_half_its_speed_falls_behind_and_stays_behind():
    """Of a second of work it does half; at its old speed it keeps up with a busy primary, half a second late."""
    pair = free_log(1.0)
    pair.strike(SlowBackup(at=Instant("run", S), duration=S, speed=50.0))
    pair.submit(20 * S)
    behind = {}
    for until_s in (1, 2, 3, 5):
        pair.run(until_s * S - 1)
        behind[until_s] = pair.lag_ns() / S
    # At 2 s half a second of the primary's work is left: it would take a whole second at half the speed.
    assert behind == {
        1: pytest.approx(0, abs=0.01),
        2: pytest.approx(1, rel=0.01),
        3: pytest.approx(0.5, rel=0.01),
        5: pytest.approx(0.5, rel=0.01),
    }


def test_a_backlog_is_replayed_at_the_new_speed_and_the_takeover_waits_for_it():
    """Crash with a second of replay left at half the speed: two seconds, against detection of 3 s: no difference."""
    entry_ns = 4 * S
    lives = {}
    for speed in (100, 50):
        pair = Pair(
            log=QUIET,
            channel={"rate": 10**12, "latency": 0, "ack": 0},
            secondary={"entry_cost": entry_ns},
            cost={"entry": 0, "kibibyte": 0, "output": 0},
            reprotection=None,
            failover={
                "detection": {"heartbeat_interval": S, "timeout": 3 * S, "log_timeout": 10 * S},
                "go_live": 100 * MS,
            },
        )
        pair.at(6 * S, pair.input, 1)
        if speed < 100:
            pair.strike(SlowBackup(at=Instant("run", 7 * S), speed=50.0))
        pair.crash_at(8 * S)
        pair.run(30 * S)
        lives[speed] = {what: time_ns for time_ns, what in pair.timeline}["secondary live"]
    # Of 4 s of replay from 6 s on, 3 are left at 7 s: done at 10 s, or at 13 s; detection ends at 11 s.
    assert lives[100] == pytest.approx(11 * S + 105 * MS, abs=2 * MS)
    assert lives[50] == pytest.approx(13 * S + 100 * MS, abs=2 * MS)


@pytest.mark.parametrize("engine", ENGINES)
def test_under_comparison_outputs_wait_for_the_slow_replica(engine: Any):
    """A guest that computes: after w of work the other is w behind at half the speed, until they are made equal."""
    mechanism = {
        "kind": "coarse_lockstep",
        "divergence_rate": 0.001,
        "jitter": 0,
        "period": S,
        "reprotection": None,
        "memory": {"working_set": 0},
    }
    slow = {"kind": "slow_backup", "at": "100 ms", "speed": "50 %", "duration": "200 ms"}
    plant = Plant(
        mechanism, chunk_ns=10 * MS, chunk_is_output=True, faults=[slow], until_ns=900 * MS, engine_type=engine
    ).run()
    issued = {number: time_ns for time_ns, number in plant.issued}
    # 74.5 us to the other and back, and 200 B at 1 Gbit/s.
    round_trip_ms = 0.1506
    for time_ns, number in plant.seen:
        at_ms = issued[number] / MS
        # Back at its speed from 300 ms on, with half of 200 ms of work done: 100 ms of work stay between them.
        late_ms = round_trip_ms + max(0, at_ms - 100)
        # Those of a while after 300 ms wait for the ones before them, which keep the instants planned for them.
        if at_ms <= 300:
            assert (time_ns - issued[number]) / MS == pytest.approx(late_ms, abs=0.001)
        elif at_ms > 420:
            assert (time_ns - issued[number]) / MS == pytest.approx(round_trip_ms + 100, abs=0.001)
    assert len(plant.seen) > 60


def test_the_slow_replica_begins_with_a_request_when_the_primary_does():
    """4 ms of work every 10 ms take the other 8: each answer waits for 4, though the primary idles between.

    The request (512 B) and the answer (128 B) cross the channel besides, at 1 Gbit/s and 74.5 us.
    """
    protection = {"kind": "coarse_lockstep", "divergence_rate": "0.001 /s", "period": "100 s", "jitter": "0 s"}
    program = {"kind": "service", "demand": "4 ms"}
    data = {
        "hosts": {"host": {"scheduler": {"kind": "credit"}}},
        "domains": {
            "guest": {"interfaces": interface("moderated"), "applications": {"s": program}, "protection": protection}
        },
        "faults": [{"kind": "slow_backup", "at": "0 s", "speed": "50 %"}],
        "workloads": {"load": {"kind": "open_requests", "to": "guest", "rate": "100 /s", "gap_cv": 0}},
        "measure": {"warm_up": "100 ms", "duration": "1 s"},
    }
    held = run_model(checked(data), 1, 0, "compiled").whole.outcomes["domains.guest.protection"].output_held
    assert held == pytest.approx(4.0 + 2 * 0.0745 + 640 * 8e-6, abs=0.001)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValidationError, match="speed"):
        SlowBackup(at=Instant("run", S), speed=100.0)
