"""Pools of subscribers: everybody is in exactly one place, whatever happens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vftsim.sip.subscribers import Subscribers

from vftsim.errors import ConservationError

_MOVES = st.lists(
    st.tuples(st.sampled_from(["take", "release"]), st.booleans(), st.floats(0, 1, exclude_max=True)),
    max_size=120,
)


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
