"""The arithmetic of log entries against hand-worked and brute-force values."""

from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.engine import Clock
from vftsim.net.link import Link
from vftsim.protection.channel import LoggingChannel
from vftsim.protection.replay import Replay


def test_entries_leave_in_order_at_the_rate_of_the_link():
    channel = LoggingChannel(8_000_000, 500, 0)  # 1 us a byte
    assert [channel.push(0, 10), channel.push(5_000, 10), channel.push(50_000, 10)] == [10_000, 20_000, 60_000]
    assert channel.backlog_bytes(55_000) == 5


@given(
    free=st.integers(0, 10_000),
    first=st.integers(0, 5_000),
    period=st.integers(1, 500),
    count=st.integers(1, 40),
    size=st.integers(1, 400),
)
def test_a_train_ends_like_its_entries_one_by_one(free, first, period, count, size):
    one, train = (LoggingChannel(8_000_000_000, 0, 0) for _ in range(2))
    one.free_ns = train.free_ns = free
    for i in range(count):
        last = one.push(first + i * period, size)
    assert train.push_train(first, first + (count - 1) * period, count, size, first + count * period) == last
    assert one.sent_bytes == train.sent_bytes


def test_a_shared_transmitter_serves_log_and_outputs_in_turn():
    link = Link(Clock(), 8_000_000, 0, 10_000)
    channel = LoggingChannel(1, 0, 0, link)
    assert channel.push(0, 10) == 10_000
    assert link.occupy(100) == 110_000  # an output behind the entry
    assert channel.push(0, 10) == 120_000  # an entry behind the output


def test_replay_by_hand():
    """Factor 2, 10 ns an entry: r = max(r, a) + 2 w + 10."""
    replay = Replay(2.0, 10, 1000, 0)
    replay.execute(100, 150, 10, 100)
    assert (replay.end_ns, replay.lag_ns) == (360, 260)
    replay.execute(200, 250, 10, 0)
    assert (replay.end_ns, replay.lag_ns) == (370, 170)
    replay.execute(1000, 1050, 10, 5)
    assert (replay.end_ns, replay.lag_ns, replay.busy_ns) == (1070, 70, 240)


@given(
    start=st.integers(0, 3_000),
    first=st.integers(0, 2_000),
    period=st.integers(1, 300),
    count=st.integers(1, 30),
    work_each=st.integers(0, 400),
)
def test_replay_of_a_train_ends_like_its_entries_one_by_one(start, first, period, count, work_each):
    one, train = (Replay(1.0, 7, 10**9, start) for _ in range(2))
    for i in range(count):
        one.execute(first + i * period, first + i * period + 50, 1, work_each)
    last = first + (count - 1) * period
    train.execute_train(last, (first + 50, last + 50), count, count, work_each * count)
    assert (train.end_ns, train.lag_ns, train.busy_ns) == (one.end_ns, one.lag_ns, one.busy_ns)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 60), st.integers(0, 200)), max_size=40))
@settings(max_examples=60)
def test_full_secondary_buffer_admits_when_replay_has_made_room(entries):
    """Against a brute-force buffer that is looked through entry by entry."""
    replay, held, now = Replay(1.0, 5, 100, 0), [], 0
    for gap, size, work in entries:
        now += gap
        arrival = now if replay.has_room(size) else replay.admit(now, size)
        expected = now
        while sum(s for end, s in held if end > expected) + size > 100:
            expected = min(end for end, _ in held if end > expected)
        assert arrival == expected
        replay.execute(now, arrival, size, work)
        held.append((replay.end_ns, size))
        now = max(now, arrival)
