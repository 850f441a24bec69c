"""A second fault while the first is being dealt with, at stratified instants; arithmetic of 64 bits."""

from itertools import pairwise

import pytest

from vftsim.kernel.checked_engine import CheckedEngine
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.spec.units import MS
from vftsim.testing.plant import play

from .sets import A
from .test_coarse_lockstep import parameters as coarse
from .test_event_sync import parameters as events
from .test_hypervisor_epoch import parameters as epochs

COPY = {"delay": 20 * MS, "memory": 1_000_000, "resume": 1 * MS}
FAILOVER = {
    "detection": {"timeout": 50 * MS, "backup_timeout": 50 * MS},
    "activation_record": 4 * MS,
    "go_live": 30 * MS,
    "announcement": 7 * MS,
}
BEATING = {**FAILOVER, "detection": {"timeout": 50 * MS, "backup_timeout": 50 * MS, "heartbeat_interval": 7 * MS}}
CRASH_NS = 103_300_000
ASKS = [3_333_333 * i for i in range(1, 100)]
LOCKSTEP = {
    "kind": "lockstep",
    "reprotection": COPY,
    "failover": {
        "detection": {"heartbeat_interval": 10 * MS, "timeout": 50 * MS},
        "go_live": 30 * MS,
        "announcement": 7 * MS,
    },
}
MECHANISMS = {
    "lockstep": LOCKSTEP,
    "checkpoint": A.parameters(reprotection=COPY, failover=FAILOVER),
    "event_sync": events(reprotection=COPY, failover=BEATING),
    "hypervisor_epoch": epochs("revised", reprotection=COPY, failover=BEATING),
    "coarse_lockstep": coarse(reprotection=COPY, failover=BEATING),
}


def run(kind, *faults, **more):
    blows = [{"kind": what, "at": f"{time_ns} ns"} for what, time_ns in faults]
    return play(
        protection=kind if isinstance(kind, dict) else MECHANISMS[kind],
        chunk_ns=900_001,
        chunk_is_output=True,
        until_ns=400 * MS,
        faults=blows,
        **more,
    ).run


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MECHANISMS)
def test_two_copies_never_live_and_nothing_leaves_a_dead_host(kind):
    """Crash, detected, restored, live, reachable, copying, protected again: a fault of either host in each stretch."""
    timeline = run(kind, ("primary_crash", CRASH_NS)).timeline[1:]
    moments = {what: time_ns for time_ns, what in timeline}
    assert [what for what in moments if what != "state restored"] == [
        "primary crash",
        "failure declared",
        "secondary live",
        "reachable",
        "copy begins",
        "protected",
    ]
    live_ns, protected_ns = moments["secondary live"], moments["protected"]
    for start_ns, end_ns in pairwise(time_ns for time_ns, _ in timeline):
        for time_ns in (start_ns + 1, (start_ns + end_ns) // 2, end_ns - 1):
            for what in ("primary_crash", "backup_crash"):
                world = run(kind, ("primary_crash", CRASH_NS), (what, time_ns))
                last_ns = max(t for t, _ in world.seen)
                lives = sum(name == "secondary live" for _, name in world.timeline)
                assert lives <= 1
                if what == "primary_crash" and live_ns <= time_ns < protected_ns:
                    assert last_ns <= time_ns, "an unprotected machine died"
                elif what == "backup_crash" and time_ns < live_ns:
                    assert (lives, last_ns <= CRASH_NS) == (0, True), "nobody was left to take over"
                else:
                    assert (lives, last_ns > 300 * MS) == (1, True), "the service goes on"


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("what", ["primary_crash", "backup_crash", "channel_loss"])
@pytest.mark.parametrize("engine_type", [CompiledEngine])
def test_both_engines_agree(kind, what, engine_type):
    """What is seen, what happened, what it cost."""
    worlds = [run(kind, (what, CRASH_NS), asks=ASKS, engine_type=engine) for engine in (engine_type, SimpyEngine)]
    assert worlds[0].seen == worlds[1].seen
    assert worlds[0].entered == worlds[1].entered
    assert worlds[0].timeline == worlds[1].timeline
    assert worlds[0].summary == worlds[1].summary


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MECHANISMS)
def test_arithmetic_fits_64_bits(kind):
    """With both ways in which a run can end: a failover, a primary alone."""
    for what in ("primary_crash", "backup_crash", "channel_loss"):
        checked = run(kind, (what, CRASH_NS), engine_type=CheckedEngine)
        plain = run(kind, (what, CRASH_NS))
        assert checked.seen == plain.seen
        assert checked.timeline == plain.timeline


def test_faults_at_time_0_and_1_ns_and_at_the_instant_of_another():
    """The backup is in step from the start; of two faults at an instant the one that the model names first is first."""
    for kind in MECHANISMS:
        for time_ns in (0, 1):
            world = run(kind, ("primary_crash", time_ns))
            assert "secondary live" in world.moments, (kind, time_ns)
            assert max(t for t, _ in world.seen) > 300 * MS, (kind, time_ns)
            assert "copy begins" in run(kind, ("backup_crash", time_ns)).moments, (kind, time_ns)
        for first, second in (("primary_crash", "backup_crash"), ("backup_crash", "primary_crash")):
            world = run(kind, (first, CRASH_NS), (second, CRASH_NS))
            assert "secondary live" not in world.moments, (kind, first)
            assert max(t for t, _ in world.seen) <= CRASH_NS, (kind, first)
        assert "secondary live" in run(kind, ("primary_crash", CRASH_NS), ("primary_crash", CRASH_NS)).moments, kind


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_backup_that_has_crashed_declares_nothing(kind):
    """The primary has crashed, and so does the backup while it still waits: nobody is left to notice."""
    world = run(kind, ("primary_crash", CRASH_NS), ("backup_crash", CRASH_NS + 2 * MS))
    assert world.timeline == [
        (0, "protected"),
        (CRASH_NS, "primary crash"),
        (CRASH_NS + 2 * MS, "backup crash"),
    ]


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_backup_that_crashes_before_it_lives_never_lives_beside_its_primary(kind):
    """The primary gives up 20 ms after the loss (lockstep: 50), the backup declares after 50 ms, and is live 30 later.

    One that crashes by then waits for nothing any more, and nothing that leaves from then on is of two copies.
    """
    detection = {} if kind == "lockstep" else {"backup_timeout": 20 * MS}
    mechanism = MECHANISMS[kind]
    failover = {
        **mechanism["failover"],
        "fencing": False,
        "detection": {**mechanism["failover"]["detection"], **detection},
    }
    for after_ns in (25 * MS, 60 * MS):
        world = run(
            {**mechanism, "failover": failover}, ("channel_loss", CRASH_NS), ("backup_crash", CRASH_NS + after_ns)
        )
        assert not {"failure declared", "secondary live too"} & {
            what for time_ns, what in world.timeline if time_ns > CRASH_NS + after_ns
        }
        # A new backup is made: the survivor is one copy.
        assert world.moments["protected"] > world.moments["copy begins"] > CRASH_NS + after_ns
        split_ns = max(world.moments.get("failure declared", 0), world.moments["primary goes on alone"])
        outputs = sum(split_ns < time_ns <= CRASH_NS + after_ns for time_ns, _ in world.issued)
        assert world.summary.get("outputs_while_split", 0) == outputs * (after_ns == 60 * MS)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_pause_ends_with_the_host_on_which_it_was_made(kind):
    """The guest stands still from 90 ms on, its host crashes at 103.3; another pause holds where it is by then."""
    first = {"kind": "pause", "at": "90 ms", "duration": "250 ms"}
    later = {"kind": "pause", "at": "250 ms", "duration": "20 ms"}
    crash = {"kind": "primary_crash", "at": f"{CRASH_NS} ns"}
    run = play(
        protection={**MECHANISMS[kind], "reprotection": None},
        chunk_ns=900_001,
        chunk_is_output=True,
        until_ns=400 * MS,
        faults=[first, crash, later],
    ).run
    live_ns = run.moments["secondary live"]
    assert live_ns < 250 * MS
    assert run.moments["pause over"] == 270 * MS
    times = [time_ns for time_ns, _ in run.seen]
    assert any(live_ns < time_ns < live_ns + 2 * MS for time_ns in times)
    assert any(270 * MS < time_ns < 272 * MS for time_ns in times)
    assert not any(250 * MS < time_ns < 270 * MS for time_ns in times)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_timeline_ends_with_its_run(kind):
    """The failure is declared some 50 ms after the crash: not in a run that ends after one."""
    world = run(kind, ("primary_crash", 399 * MS))
    assert world.timeline == [(0, "protected"), (399 * MS, "primary crash")]
