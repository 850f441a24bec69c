"""Jitter, bursts of losses, and the record of a delay distribution, by hand and against the histogram of stats."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.kernel import Sim, entry, link
from vftsim.kernel.choose import make_engine
from vftsim.platform.delays import add_delay, bucket_ends, delays, histogram, install_buckets
from vftsim.stats import DelayHistogram
from vftsim.workloads.account import (
    accounts,
    add_account,
    add_streams,
    mean_jitter_ns,
    note_loss,
    note_transit,
    stream_ends,
)
from vftsim.workloads.voice_quality import burst_ratio


@entry
def add_value(sim: Sim, row: int, value_ns: int) -> None:
    add_delay(sim, row, value_ns)


@entry
def add_transit(sim: Sim, row: int, transit_ns: int) -> None:
    note_transit(sim, row, transit_ns)


@entry
def add_loss(sim: Sim, stream: int, sent_ns: int) -> int:
    account = accounts(sim)[stream // 1000]
    note_loss(sim, account, stream % 1000, sent_ns)
    return account.loss_bursts


LINKED = link([add_value, add_transit, add_streams, add_loss], {}, [], [delays, bucket_ends, accounts])


@pytest.fixture(scope="module", params=["simpy", "compiled"])
def engine(request):
    made = make_engine(LINKED, request.param)
    install_buckets(made)
    return made


def test_jitter_by_hand(engine):
    """Transit 10, 14, 14, 8 ms: differences of 4, 0, 6 ms; the receiver's J: 4/16, 15/16 of that, + (6 - that)/16."""
    account = add_account(engine, 2, warmup_ns=0, wire_ns=0, late_ns=0)
    first = int(account.first_stream)
    for transit_ns, mean_ms, last_ms in (
        (10, 0.0, 0.0),
        (14, 4.0, 0.25),
        (14, 2.0, 0.234375),
        (8, 10 / 3, 0.5947265625),
    ):
        engine.call(add_transit, first, transit_ns * 1_000_000)
        assert mean_jitter_ns(engine, account) / 1e6 == pytest.approx(mean_ms)
        assert engine.rows(stream_ends)[first].jitter_ns / 1e6 == pytest.approx(last_ms)


def test_a_stream_with_one_packet_has_no_jitter(engine):
    """It counted as one of 0 and halved the mean."""
    account = add_account(engine, 2, warmup_ns=0, wire_ns=0, late_ns=0)
    first = int(account.first_stream)
    assert mean_jitter_ns(engine, account) == 0.0
    for stream, transit_ns in ((0, 10), (0, 26), (1, 10)):
        engine.call(add_transit, first + stream, transit_ns)
    assert mean_jitter_ns(engine, account) == 16.0


@pytest.mark.parametrize(("epoch_ms", "expected_ms"), [(100, 32.0), (400, 38.0), (900, 39 + 1 / 9)])
def test_jitter_of_a_stream_that_leaves_in_bursts_does_not_depend_on_where_the_run_ends(engine, epoch_ms, expected_ms):
    """A packet each 20 ms, held until the next multiple of P: 2 tau (1 - tau / P); J at the end was 3 to 40 % less."""
    account = add_account(engine, 1, warmup_ns=0, wire_ns=0, late_ns=0)
    first = int(account.first_stream)
    # The run ends where J does worst: after a whole burst without a difference that is large.
    for number in range(200 * epoch_ms // 20):
        sent_ms = 20 * number
        engine.call(add_transit, first, ((sent_ms // epoch_ms + 1) * epoch_ms - sent_ms) * 1_000_000)
    assert mean_jitter_ns(engine, account) / 1e6 == pytest.approx(expected_ms, rel=0.005)


def test_bursts_are_rows_within_a_stream(engine):
    """Streams 0 and 1 lose packets in turn: each has a row of two, and stream 0 another loss later."""
    account = add_account(engine, 2, warmup_ns=0, wire_ns=0, late_ns=0, interval_ns=20)
    lost = ((0, 0), (1, 3), (0, 20), (1, 23), (0, 60))
    first = 1000 * int(account.row)
    assert [engine.call(add_loss, first + stream, sent_ns) for stream, sent_ns in lost] == [1, 2, 2, 2, 3]


def test_losses_that_become_known_late_are_put_in_their_place(engine):
    """0 and 40 are two bursts, and one with 20; 2000 is another; what lies 61 packets before it counts by itself."""
    account = add_account(engine, 1, warmup_ns=0, wire_ns=0, late_ns=0, interval_ns=20)
    first = 1000 * int(account.row)
    lost = (0, 40, 20, 2000, 1980, 800, 780)
    assert [engine.call(add_loss, first, sent_ns) for sent_ns in lost] == [1, 2, 1, 2, 2, 3, 4]


@pytest.mark.parametrize(("to_loss", "from_loss"), [(0.05, 0.95), (0.02, 0.25)])
def test_burst_ratio_of_a_two_state_loss_process(to_loss, from_loss):
    """G.107, 7.5: BurstR = 1 / (p + q), 1 for random loss; within 3.5 / sqrt(bursts)."""
    engine = make_engine(LINKED, "simpy")
    account = add_account(engine, 1, warmup_ns=0, wire_ns=0, late_ns=0, interval_ns=20)
    random, is_lost, packets, lost, bursts = np.random.default_rng(1), False, 50_000, 0, 0
    for number, u in enumerate(random.random(packets).tolist()):
        is_lost = u >= from_loss if is_lost else u < to_loss
        if is_lost:
            lost += 1
            bursts = engine.call(add_loss, 1000 * int(account.row), 20 * number)
    assert burst_ratio(lost, bursts, packets) == pytest.approx(1.0 / (to_loss + from_loss), rel=3.5 / math.sqrt(bursts))


def recorded(engine, values):
    row = engine.new(delays)
    for value_ns in [*values, 5]:
        engine.call(add_value, row, value_ns)
    return histogram(engine, row)


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(0, 2**57 - 1) | st.integers(0, 200) | st.integers(2**31 - 3, 2**31 + 3), max_size=40)
)
def test_a_recorded_distribution_is_that_of_the_histogram(engine, values):
    expected = DelayHistogram()
    for value in [*values, 5]:
        expected.add(value)
    assert recorded(engine, values) == expected
