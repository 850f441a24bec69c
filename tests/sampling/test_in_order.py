"""Draws in order: the same whatever number of them is asked for at a time."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from vftsim.sampling import Draws, Streams, exponential_ns

STREAMS = Streams(4, 1)
LENGTH = 200
REFERENCE = exponential_ns(STREAMS.uniforms("gap", 3, count=LENGTH), 1e6).tolist()


@given(st.lists(st.integers(1, 40), max_size=5), st.integers(0, 3))
def test_draws_do_not_depend_on_how_many_come_at_a_time(portions, first):
    draws = Draws(STREAMS, "gap", 3, partial(exponential_ns, mean_ns=1e6), first=first)
    drawn = [value for count in portions for value in draws(count).tolist()]
    assert drawn == REFERENCE[first : first + sum(portions)]
