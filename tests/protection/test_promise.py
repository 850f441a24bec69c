"""The promise judged from outside by an oracle that the mechanism tells nothing, and the violations it must catch."""

from functools import cache
from itertools import pairwise
from random import Random

import pytest

from vftsim.kernel import Sim
from vftsim.kernel.declare import Kind
from vftsim.platform.protection._lockstep_records import lockstep
from vftsim.platform.protection.channel import channels, push
from vftsim.platform.protection.faults import BackupCrash
from vftsim.platform.protection.guard import Guard, hold_output, note_input, release
from vftsim.platform.protection.pair import outputs
from vftsim.platform.protection.when import Instant
from vftsim.testing.plant import play

from .crashes import quarters
from .oracle import Oracle, Rules
from .pair import MS, QUIET, Pair, S

RUNS = 40
GO_LIVE_NS = 100 * MS


class Watched:
    """A pair driven at random, watched by an oracle."""

    def __init__(self, seed: int, part: Kind | None = None) -> None:
        pick = Random(seed)
        rate, latency_ns = pick.choice([1_000_000, 20_000_000]), pick.choice([0, 500_000, 2 * MS])
        entry_cost_ns = pick.choice([0, 5_000, 300 * MS])
        self.pair = Pair(
            part,
            log=QUIET,
            channel={"rate": rate, "latency": latency_ns},
            reprotection=None,
            secondary={"entry_cost": entry_cost_ns},
            cost={"entry": 0, "kibibyte": 0, "output": 0},
            failover={"go_live": GO_LIVE_NS},
        )
        self.pair.guard.audit.ends_run = False
        self.oracle = Oracle(Rules(rate, latency_ns, entry_cost_ns, GO_LIVE_NS))
        time_ns = 0
        for number in range(1, 40):
            time_ns += pick.randint(0, 2 * MS)
            self.pair.at(time_ns, self.input if pick.random() < 0.5 else self.output, number)
        self.crash_ns = pick.randint(1, time_ns + 5 * MS)

    def input(self, number: int) -> None:
        if not self.pair.guard.stopped:
            self.oracle.input(self.pair.now_ns, 50 * number)
            self.pair.input(50 * number)

    def output(self, number: int) -> None:
        if not self.pair.guard.stopped:
            self.oracle.output(self.pair.now_ns, number)
            self.pair.output(number)

    def primary_crash(self) -> list[str]:
        self.pair.crash_at(self.crash_ns)
        self.pair.run(self.crash_ns + 30 * S)
        return self.oracle.after_primary_crash(self.pair.seen, self.crash_ns)

    def backup_crash(self) -> list[str]:
        self.pair.strike(BackupCrash(at=Instant("run", self.crash_ns)))
        self.pair.run(self.crash_ns + 30 * S)
        alone_ns = {what: t for t, what in self.pair.timeline}["primary goes on alone"]
        return self.oracle.after_backup_crash(self.pair.seen, self.crash_ns, alone_ns)


@pytest.mark.thorough
def test_lockstep_keeps_its_promise_when_the_primary_crashes():
    assert [wrong for seed in range(RUNS) for wrong in Watched(seed).primary_crash()] == []


def test_lockstep_keeps_its_promise_when_the_backup_crashes():
    assert [wrong for seed in range(RUNS) for wrong in Watched(seed).backup_crash()] == []


# Stratified crashes

PER_PHASE = 50
SEEDS = {"idle": 11, "queued": 4}
"""Of a pair whose channel is idle, and of one where an entry waits for others before it."""


@cache
def alive(seed: int) -> Watched:
    """A pair of which neither host crashes, with what its oracle knows."""
    watched = Watched(seed)
    watched.pair.run(30 * S)
    return watched


def bounds_of(seed: int) -> list[int]:
    """When the entry of an output in the middle is written, leaves, arrives, and is acknowledged."""
    oracle = alive(seed).oracle
    entries = [entry for entry in oracle.entries if entry.output]
    entry = entries[len(entries) // 2]
    return [entry.time_ns, entry.departs_ns, entry.arrives_ns, oracle.acknowledged_ns(entry)]


@cache
def crash_instants(seed: int) -> tuple[int, ...]:
    """Boundaries of an output's way and 1 ns around them, and instants in each of its phases and after it."""
    bounds = bounds_of(seed)
    bounds.append(bounds[-1] + MS)
    inside = [a + (2 * i + 1) * (b - a) // (2 * PER_PHASE) for a, b in pairwise(bounds) for i in range(PER_PHASE)]
    return tuple(sorted({t + d for t in bounds for d in (-1, 0, 1)} | set(inside)))


def strike(seed: int, time_ns: int, what: str) -> list[str]:
    """Let a host crash at an instant; the oracle judges."""
    watched = Watched(seed)
    watched.crash_ns = time_ns
    return watched.primary_crash() if what == "primary" else watched.backup_crash()


def test_there_are_enough_crashes():
    assert all(len(crash_instants(seed)) >= 200 for seed in SEEDS.values())


@pytest.mark.thorough
@pytest.mark.parametrize("part", quarters(1))
@pytest.mark.parametrize("what", ["primary", "backup"])
@pytest.mark.parametrize("pair", SEEDS)
def test_lockstep_keeps_its_promise_at_stratified_crashes(pair, what, part):
    seed = SEEDS[pair]
    wrong = {t: strike(seed, t, what) for t in crash_instants(seed)[part::4]}
    assert {t: why for t, why in wrong.items() if why} == {}


# Violations


def variant(name: str) -> Kind:
    """A mechanism like lockstep, to be spoilt."""
    return Kind(name, lockstep.sort, lockstep)


at_once = variant("at_once")
unlogged = variant("unlogged")


@at_once.implements(hold_output)
def let_go_at_once(sim: Sim, guard: Guard, packet: int) -> None:
    """Log the output, and do not wait for anything."""
    push(sim, channels(sim)[guard.row], 32)
    release(sim, packet)


@unlogged.implements(note_input)
def do_not_log(sim: Sim, guard: Guard, size_bytes: int) -> int:
    """Let packets in without an entry."""
    return 0


def forget_releases(watched: Watched) -> None:
    """Let no release that is planned happen."""
    for row in watched.pair.engine.rows(outputs):
        row.alarm = 0


def faked_acknowledgements(watched: Watched) -> None:
    """The primary takes a departure for an arrival; the auditor is deceived too."""
    pair, channel = watched.pair, watched.pair.channel
    pair.at(0, lambda _: setattr(pair.pair, "backup_is_gone", True))
    channel.ack_ns = 0


def nothing_issued(watched: Watched) -> None:
    """The new primary forgets what the old one left undone."""

    def forget(_: object) -> None:
        pair = watched.pair.pair
        forget_releases(watched)
        pair.outputs.first = pair.outputs.last = pair.outputs.length = 0

    watched.pair.at(watched.crash_ns, forget)


def replay_ignored(watched: Watched) -> None:
    """The secondary goes live wherever its replay stands."""
    watched.pair.at(watched.crash_ns, lambda _: setattr(watched.pair.pair.secondary, "end_ns", 0))


def acknowledgements_lost(watched: Watched) -> None:
    """What the backup has acknowledged is lost with it."""

    watched.pair.at(watched.crash_ns, lambda _: forget_releases(watched))


@pytest.mark.thorough
@pytest.mark.parametrize("part", [at_once, unlogged], ids=["at_once", "unlogged"])
def test_a_spoilt_mechanism_is_caught(part):
    wrong = [why for seed in range(RUNS) for why in Watched(seed, part).primary_crash()]
    assert any("too early" in why for why in wrong)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (faked_acknowledgements, "too early"),
        (nothing_issued, "never issued"),
        (replay_ignored, "before replay ended"),
    ],
)
def test_a_spoilt_failover_is_caught(spoil, why):
    wrong = []
    for seed in range(RUNS):
        watched = Watched(seed)
        spoil(watched)
        wrong += watched.primary_crash()
    assert any(why in one for one in wrong)


def test_lost_acknowledgements_are_caught():
    wrong = []
    for seed in range(RUNS):
        watched = Watched(seed)
        acknowledgements_lost(watched)
        wrong += watched.backup_crash()
    assert any("on the way" in one for one in wrong)


@pytest.mark.parametrize(("asked_ns", "again"), [(10_800_000, 0), (10_900_000, 1), (10_950_000, 1)])
def test_the_last_timer_entry_tells_the_secondary_which_outputs_have_left(asked_ns, again):
    """A timer entry leaves at 11 ms; the primary crashes at 11.15 ms.

    An entry and its acknowledgement take 75 us each, and 12.4 us more on the wire: the output of 10.8 ms has left when
    the timer entry does, and the secondary, which has that entry, knows it.  Of those that leave after it nothing
    tells the secondary, and it issues them again.
    """
    protection = {
        "kind": "lockstep",
        "reprotection": None,
        "channel": {"rate": 1_000_000_000, "latency": 75_000, "ack": 0},
        "log": {"timer_rate": 1000.0},
        "failover": {"go_live": 20 * MS, "detection": {"heartbeat_interval": 7 * MS, "timeout": 90 * MS}},
    }
    crash = {"kind": "primary_crash", "at": "11150 us"}
    world = play(protection=protection, asks=[asked_ns], until_ns=300 * MS, faults=[crash]).run
    assert world.seen[0][0] == asked_ns + 162_443, "the primary's own"
    assert world.summary["outputs_issued_again"] == len(world.seen) - 1 == again
