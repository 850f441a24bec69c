"""Checkpoints judged from outside at stratified crashes, and the violations that the oracle must catch."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from vftsim.errors import ConservationError
from vftsim.kernel import Sim
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.kernel.declare import Kind, part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.protection import account, output_buffer, passes, replication, state_stream
from vftsim.platform.protection.checkpoint import checkpoint
from vftsim.platform.protection.guard import Guard, hold_output, release
from vftsim.spec.units import MS, US
from vftsim.testing.plant import Plant, watched

from .crashes import quarters
from .sets import A
from .spoilt import replaced
from .state_oracle import Oracle, Rules

CHUNK_NS = 700_001
SETTING = A.but(disk_rate=20_000_000)
RULES = Rules(SETTING, CHUNK_NS, 60 * MS, 5 * MS, 20 * MS, 30 * US)
FAILOVER = {"detection": {"timeout": RULES.timeout_ns}, "go_live": RULES.go_live_ns}
ASKS = [3_333_333 * i for i in range(1, 90)]
EPOCH = 2
PER_PHASE = 22

seen_checkpoint = watched(checkpoint)


def plant(part: Kind = seen_checkpoint, spoil: Any = None, until_ns: int = 320 * MS, **fields: Any) -> Plant:
    parameters = SETTING.parameters(failover=FAILOVER, outputs={"spacing": RULES.spacing_ns})
    is_whole = part is seen_checkpoint and spoil is None
    fields = {"engine_type": CompiledEngine if is_whole else SimpyEngine, **fields}
    return Plant(
        parameters,
        asks=ASKS,
        chunk_ns=CHUNK_NS,
        chunk_is_output=True,
        until_ns=until_ns,
        part=part,
        spoil=spoil,
        **fields,
    )


@cache
def alive() -> Oracle:
    """A primary that does not crash."""
    return Oracle(RULES, plant(until_ns=200 * MS).run())


@cache
def crash_instants() -> tuple[int, ...]:
    """Boundaries of an epoch and 1 ns around them, and instants in each of its phases."""
    state = alive().states[EPOCH]
    batch = sum(alive().states[EPOCH - 1].taken_ns < i <= state.taken_ns for i in alive().issued.values())
    bounds = [
        alive().states[EPOCH - 1].acknowledged_ns + 2 * MS,
        state.taken_ns,
        state.sent_ns,
        state.departs_ns,
        state.departs_ns + RULES.way_ns,
        state.acknowledged_ns,
        state.acknowledged_ns + batch * RULES.spacing_ns,
        state.applied_ns,
        alive().states[EPOCH + 1].taken_ns,
    ]
    bounds.sort()
    inside = [
        low + (2 * i + 1) * (high - low) // (2 * PER_PHASE) for low, high in pairwise(bounds) for i in range(PER_PHASE)
    ]
    return tuple(sorted({t + d for t in bounds for d in (-1, 0, 1)} | set(inside)))


def crash(time_ns: int, part: Kind = seen_checkpoint, spoil: Any = None) -> list[str]:
    """Play both passes, and let the oracle judge."""
    faults = [{"kind": "primary_crash", "at": f"{time_ns} ns"}]
    played = passes.play(
        lambda: plant(part, spoil, faults=faults, until_ns=time_ns + 115 * MS), lambda p: p.engine, Plant.run
    )
    oracle = alive() if part is seen_checkpoint and spoil is None else Oracle(RULES, plant(part, spoil, 200 * MS).run())
    assert len(played.cuts) == 1
    return oracle.judge(time_ns, played.run)


def test_there_are_enough_crashes():
    assert len(crash_instants()) >= 200


@pytest.mark.thorough
@pytest.mark.parametrize("part", quarters(4))
def test_checkpoints_keep_their_promise_at_stratified_crashes(part):
    wrong = {t: crash(t) for t in crash_instants()[part::4]}
    assert {t: why for t, why in wrong.items() if why} == {}


@pytest.mark.parametrize("after_ns", [0, 1 * MS, 24 * MS, 25 * MS + 5, 40 * MS])
def test_checkpoints_keep_their_promise_when_protection_is_young(after_ns):
    assert crash(max(1, after_ns)) == []


def test_both_passes_agree_up_to_the_cut():
    """What entered, what was issued, what was seen, at each instant."""
    time_ns = crash_instants()[77]
    faults = [{"kind": "primary_crash", "at": f"{time_ns} ns"}]
    first = plant(faults=faults)
    with pytest.raises(RuntimeError, match="passes"):
        first.run()
    found = passes.cuts_found(first.engine)
    assert len(found) == 1
    second = plant(faults=faults)
    passes.foresee(second.engine, found)
    second.run()
    end_ns = alive().states[alive().received(time_ns)].taken_ns
    for name in ("entered", "issued"):
        of_first, of_second = ([m for m in getattr(p, name) if m[0] <= end_ns] for p in (first, second))
        assert of_first == of_second
    assert first.seen == [m for m in second.seen if m[0] <= time_ns]
    assert [t for t, _ in first.issued if t > end_ns], "the first pass has lived on"


def test_passes_that_do_not_agree_end_with_an_error():
    """A guest that does not stop where the pass before has found it must."""
    faults = [{"kind": "primary_crash", "at": "90 ms"}]
    spoil = replaced(replication.end_incarnation, lambda old, namespace: lambda *arguments: None)
    with pytest.raises(ConservationError, match="foreseen"):
        passes.play(lambda: plant(spoil=spoil, faults=faults), lambda p: p.engine, Plant.run)


# Violations


def variant(name: str) -> Kind:
    return Kind(name, seen_checkpoint.sort, seen_checkpoint)


at_once = variant("at_once")


@at_once.implements(hold_output)
def let_go_at_once(sim: Sim, guard: Guard, packet: int) -> None:
    """Wait for nothing."""
    release(sim, packet)


def call(namespace: dict[str, Any], part: Any, *arguments: Any) -> Any:
    return namespace[part_of(part).name](*arguments)


def when_sent(old: Any, namespace: dict[str, Any]) -> Any:
    """The acknowledgement counts when it is sent."""
    return lambda sim, guard: call(namespace, state_stream.arrival_ns, sim, guard)


def before_arrival(old: Any, namespace: dict[str, Any]) -> Any:
    """The acknowledgement is faked as soon as the last byte has left."""
    return lambda sim, guard: state_of(namespace, sim, guard).depart_ns


def state_of(namespace: dict[str, Any], sim: Any, guard: Any) -> Any:
    return sim.state_streams[guard.row]


def without_disk(old: Any, namespace: dict[str, Any]) -> Any:
    """The network is released although the disk writes have not been sent."""
    return lambda repl: old(repl) - repl.disk_bytes


def cleared_early(old: Any, namespace: dict[str, Any]) -> Any:
    """Dirty bits are cleared before the copy: what was written in the last millisecond is not copied."""
    return lambda sim, guard: max(0.0, old(sim, guard) - 10.0)


def late_barrier(old: Any, namespace: dict[str, Any]) -> Any:
    """The barrier stands where the acknowledgement finds it."""

    def let_go(sim: Any, guard: Any) -> None:
        call(namespace, output_buffer.seal, sim, guard)
        old(sim, guard)

    return let_go


def twice(old: Any, namespace: dict[str, Any]) -> Any:
    """The backup goes live twice."""

    def fail_over(sim: Any, guard: Any, repl: Any, declared_ns: int) -> None:
        old(sim, guard, repl, declared_ns)
        call(namespace, replication.note, sim, guard, account.LIVE)

    return fail_over


def unreceived(old: Any, namespace: dict[str, Any]) -> Any:
    """The backup goes on from a state of which a byte is missing."""
    return lambda sim, guard: True


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "make", "why"),
    [
        (state_stream.ack_arrival_ns, when_sent, "too early"),
        (state_stream.ack_arrival_ns, before_arrival, "too early"),
        (state_stream.state_bytes, without_disk, "incomplete"),
        (state_stream.state_bytes, without_disk, "too early"),
        (state_stream.dirty_pages, cleared_early, "incomplete"),
        (output_buffer.release_sealed, late_barrier, "too early"),
        (replication.fail_over, twice, "not once"),
        (state_stream.has_received_last, unreceived, "second life"),
    ],
)
def test_a_planted_violation_is_caught(old, make, why):
    spoil = replaced(old, make)
    wrong = [one for t in crash_instants()[::40] for one in crash(t, spoil=spoil)]
    assert any(why in one for one in wrong), wrong[:5]


def test_outputs_that_wait_for_nothing_are_caught():
    assert any("too early" in why for why in crash(crash_instants()[50], at_once))
