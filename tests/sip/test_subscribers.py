"""Pools of subscribers: everybody is in exactly one place, whatever happens."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pools import check_subscribers, members

from vftsim.errors import ConservationError
from vftsim.kernel import Linked, Sim, entry, link
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.workloads.ims_bench.attempt import attempts, benches
from vftsim.workloads.ims_bench.subscribers import BLOCK, fill_pools, put_back, take_subscriber
from vftsim.workloads.sip.messages import streams


@entry
def take(sim: Sim, registered: int, choice: int) -> int:
    """Take a subscriber; ``choice`` in units of 2**-60."""
    bench = benches(sim)[1]
    return take_subscriber(sim, bench.registered if registered != 0 else bench.unregistered, choice / (1 << 60))


@entry
def release(sim: Sim, registered: int, who: int) -> None:
    bench = benches(sim)[1]
    put_back(sim, bench.registered if registered != 0 else bench.unregistered, who)


@cache
def _linked() -> Linked:
    return link([take, release], {}, [], [attempts, streams])


class Subscribers:
    """The pools of a benchmark, and those who are busy as the check finds them: in attempts under way."""

    def __init__(self, count: int, registered: int) -> None:
        self.count = count
        self.engine = SimpyEngine(_linked())
        _, self.bench = self.engine.add(benches)
        fill_pools(self.engine, self.bench, count, registered)

    @property
    def registered(self) -> list[int]:
        return members(self.engine, self.bench.registered)

    @property
    def unregistered(self) -> list[int]:
        return members(self.engine, self.bench.unregistered)

    def take(self, registered: bool, choice: float) -> int:
        return self.engine.call(take, int(registered), int(choice * (1 << 60)))

    def release(self, who: int, registered: bool) -> None:
        self.engine.call(release, int(registered), who)

    def check(self, busy: list[int]) -> None:
        for row in range(1, self.engine.used(streams) + 1):
            self.engine.rows(attempts)[row].ended = True
        for who in busy:
            row, _ = self.engine.add(streams)
            self.engine.rows(attempts)[row].user, self.engine.rows(attempts)[row].destination = who, -1
        check_subscribers(self.engine, self.bench, self.count)


_MOVES = st.lists(
    st.tuples(st.sampled_from(["take", "release"]), st.booleans(), st.floats(0, 1, exclude_max=True)),
    max_size=120,
)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(st.integers(1, 30), st.floats(0, 1), _MOVES)
def test_nobody_is_lost_or_in_two_places(count: int, share: float, moves: list[tuple[str, bool, float]]) -> None:
    registered = int(count * share)
    pools = Subscribers(count, registered)
    assert (len(pools.registered), len(pools.unregistered)) == (registered, count - registered)
    busy: list[int] = []
    for move, flag, choice in moves:
        if move == "take":
            free = len(pools.registered if flag else pools.unregistered)
            taken = pools.take(flag, choice)
            assert (taken == -1) == (free == 0)
            if taken >= 0:
                assert taken not in busy
                busy.append(taken)
        elif busy:
            pools.release(busy.pop(int(choice * len(busy))), flag)
        pools.check(busy)


def test_the_check_finds_a_lost_and_a_doubled_subscriber() -> None:
    pools = Subscribers(5, 2)
    someone = pools.take(True, 0.0)
    with pytest.raises(ConservationError):
        pools.check([])
    pools.check([someone])
    pools.release(someone, True)
    with pytest.raises(ConservationError):
        pools.check([someone])


def test_every_free_subscriber_can_be_picked() -> None:
    picked = {Subscribers(10, 10).take(True, choice / 10) for choice in range(10)}
    assert picked == set(range(10))


def test_pools_larger_than_a_block_hold_everybody_in_order() -> None:
    pools = Subscribers(3 * BLOCK + 7, 2 * BLOCK + 1)
    assert pools.registered == list(range(2 * BLOCK + 1))
    assert pools.unregistered == list(range(3 * BLOCK + 6, 2 * BLOCK, -1))
    taken = [pools.take(True, 0.999) for _ in range(BLOCK + 2)]
    pools.check(taken)
