"""What the output-commit rule counts, and what happens at its bounds."""

import pytest

from vftsim.kernel.declare import part_of
from vftsim.platform.protection import replay, throttle
from vftsim.platform.protection.pair import NEVER_NS, outputs

from .pair import MS, QUIET, Pair, S
from .test_channel_and_replay import Arithmetic

SLOW = {"rate": 8_000_000, "latency": 50 * MS, "ack": 0}


@pytest.mark.parametrize("held", [1, 3])
def test_outputs_held_when_the_primary_goes_on_alone_are_counted_once_each(held):
    pair = Pair(log=QUIET, channel=SLOW, failover={"detection": {"secondary_delay": 10 * S}}, reprotection=None)
    for number in range(held):
        pair.at(number * MS, pair.output, number)
    pair.lose_channel_at(10 * MS)
    pair.run(30 * S)
    assert [name for _, name in pair.seen] == list(range(held))
    assert pair.counters["outputs_held_for_detection"] == held


def test_outputs_wait_and_are_released_one_by_one():
    pair = Pair(log=QUIET, channel=SLOW, reprotection=None)
    for number in range(3):
        pair.at(number * MS, pair.output, number)
    seen = []
    for time_ms in (1.5, 2.5, 50, 101, 102, 103, 200):
        pair.at(int(time_ms * MS), lambda _: seen.append((int(pair.pair.waiting), int(pair.pair.released))))
    pair.run(1 * S)
    # 32 us on the wire, 50 ms there, 50 ms back.
    assert seen == [(2, 0), (3, 0), (3, 0), (2, 1), (1, 2), (0, 3), (0, 3)]


def test_an_entry_that_has_arrived_at_the_very_instant_of_the_loss_is_the_secondarys():
    """One that would arrive a nanosecond later has never left, as far as the secondary can tell."""
    for late_ns, departed_ns in ((0, 32_000), (1, NEVER_NS)):
        pair = Pair(log=QUIET, channel=SLOW, reprotection=None)
        pair.at(late_ns, pair.output, 7)
        pair.lose_channel_at(32_000 + 50 * MS)
        pair.run(60 * MS)
        assert pair.engine.rows(outputs)[pair.pair.outputs.first].depart_ns == departed_ns


def test_a_pair_that_is_over_is_given_back_with_its_outputs():
    pair = Pair(log=QUIET, channel=SLOW, reprotection={"memory": 4 << 20})
    pair.at(0, pair.output, 1)
    pair.lose_channel_at(10 * MS)
    pair.run(100 * S)
    assert pair.own.begun >= 2, "protected again"
    assert sum(int(row.row) != 0 and not row.is_over for row in [pair.pair]) == 1
    assert pair.own.pair == 1, "the first pair's row is free again and is the new one's"


def test_a_secondary_that_has_received_nothing_holds_nothing():
    one = Arithmetic()
    one.secondary.holds = 5
    one.call(replay.start, one.secondary)
    assert one.secondary.holds == 0


def test_an_entry_larger_than_the_buffer_is_let_into_an_empty_one():
    one = Arithmetic(buffer_bytes=100)
    assert one.call(replay.admit, one.secondary, 500, 200) == 500
    one.call(replay.execute, one.secondary, 400, 500, 200, 50)
    assert one.call(replay.admit, one.secondary, 520, 200) == 550, "when the one before is done"


def test_lag_at_a_bound_of_the_throttle_changes_nothing():
    pair = Pair(log=QUIET)
    throttled, adjust = pair.throttle, pair.engine._namespace[part_of(throttle.adjust).name]
    throttled.lag_limit_ns, throttled.caught_up_ns, throttled.share, throttled.step, throttled.least_share = (
        1000,
        500,
        80.0,
        5.0,
        10.0,
    )
    for lag_ns, share in ((1000, 80.0), (500, 80.0), (501, 80.0), (499, 85.0), (1001, 80.0)):
        adjust(throttled, lag_ns)
        assert throttled.share == share
