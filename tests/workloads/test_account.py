"""Jitter, loss events and the record of a delay distribution, by hand and against the histogram of vftsim.stats."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.kernel import Sim, Table, entry, link
from vftsim.kernel.choose import make_engine
from vftsim.stats import DelayHistogram
from vftsim.workloads.account import accounts, add_account, add_streams, mean_jitter_ns, note_transit, stream_jitter_ns
from vftsim.workloads.delays import Delays, add_delay, bucket_ends, histogram, write_bucket_ends

distributions = Table("distributions", Delays, 64)


@entry
def add_value(sim: Sim, row: int, value_ns: int) -> int:
    add_delay(sim, distributions(sim)[row], value_ns)
    return 0


@entry
def add_transit(sim: Sim, row: int, transit_ns: int) -> int:
    note_transit(sim, row, transit_ns)
    return 0


LINKED = link([add_value, add_transit, add_streams], {}, [], [distributions, bucket_ends, accounts])


@pytest.fixture(scope="module", params=["simpy", "compiled"])
def engine(request):
    made = make_engine(LINKED, request.param)
    write_bucket_ends(made)
    return made


def test_jitter_by_hand(engine):
    """Transit 10, 14, 14, 8 ms: J = 4/16 = 0.25; 0.25 - 0.25/16 = 0.234375; then + (6 - 0.234375)/16."""
    row = add_account(engine, 2, warmup_ns=0, wire_ns=0, late_ns=0)
    first = engine.rows(accounts)[row].first_stream
    for transit_ns, expected_ms in ((10, 0.0), (14, 0.25), (14, 0.234375), (8, 0.5947265625)):
        engine.call(add_transit, first, transit_ns * 1_000_000)
        jitter_ns, other = stream_jitter_ns(engine, row)
        assert jitter_ns / 1e6 == pytest.approx(expected_ms)
        assert other is None
    assert mean_jitter_ns(engine, row) == jitter_ns


def recorded(engine, values):
    row = engine.new(distributions)
    own = engine.rows(distributions)[row]
    for field in ("number", "sum_low", "sum_high", "squares_low", "squares_high", "min_ns", "max_ns"):
        setattr(own, field, 0)
    own.buckets[:] = [0] * len(own.buckets)
    for value in values:
        engine.call(add_value, row, value)
    engine.call(add_value, row, 5)
    found = histogram(engine.rows(distributions)[row])
    free_again(engine, row)
    return found


def free_again(engine, row):
    """Reuse the row in the next example."""
    engine.sim.distributions_after[row] = engine.sim.distributions_unused
    engine.sim.distributions_unused = row


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(0, 2**62 - 1) | st.integers(0, 200) | st.integers(2**31 - 3, 2**31 + 3), max_size=40)
)
def test_a_recorded_distribution_is_that_of_the_histogram(engine, values):
    expected = DelayHistogram()
    expected.add_many([*values, 5])
    assert recorded(engine, values) == expected
