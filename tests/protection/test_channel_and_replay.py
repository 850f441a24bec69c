"""The arithmetic of log entries against hand-worked and brute-force values."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.kernel import Linked, Sim, entry, link
from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.arithmetic import nearest
from vftsim.platform.io.link import add_link, links, occupy
from vftsim.platform.io.packet import drops
from vftsim.platform.protection import channel, replay
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.pair import pairs


@entry
def reach(sim: Sim, a: int, b: int) -> None:
    """Refer to everything that the tests call."""
    state_channel, secondary = channels(sim)[a], pairs(sim)[b].secondary
    channel.push(sim, state_channel, a)
    channel.push_train(sim, state_channel, a, a, a, a)
    channel.hold_until(state_channel, a)
    replay.start(sim, secondary)
    replay.execute(sim, secondary, a, a, a, a)
    replay.execute_train(sim, secondary, a, a, a, a, a, a)
    replay.admit(sim, secondary, a, a)
    replay.set_pace(sim, secondary, float(a), a, a)
    replay.halt(sim, secondary)
    replay.left_ns(sim, secondary)


@cache
def linked() -> Linked:
    return link([reach], {}, [], [drops])


class Arithmetic:
    """A channel and a secondary at an instant of one's choice."""

    def __init__(self, rate=1, latency_ns=0, queue_bytes=0, factor=1.0, cost_ns=0, buffer_bytes=10**9, start_ns=0):
        self.engine = SimpyEngine(linked())
        row, _ = self.engine.add(guards)
        self.link = add_link(self.engine, rate, latency_ns, queue_bytes) if queue_bytes else 0
        channel.install(self.engine, row, rate, latency_ns, 0, self.link)
        self.channel = self.engine.rows(channels)[row]
        _, pair = self.engine.add(pairs)
        self.secondary = pair.secondary
        self.secondary.factor, self.secondary.entry_cost_ns = factor, cost_ns
        self.secondary.buffer_bytes = buffer_bytes
        self.engine.sim.now_ns = start_ns
        self.call(replay.start, self.secondary)

    def call(self, part: Any, *arguments: Any) -> Any:
        return self.engine._namespace[part_of(part).name](self.engine.sim, *arguments)

    def push(self, now_ns, size_bytes):
        self.engine.sim.now_ns = now_ns
        return self.call(channel.push, self.channel, size_bytes)


def test_entries_leave_in_order_at_the_rate_of_the_link():
    one = Arithmetic(8_000_000, 500)  # 1 us a byte
    assert [one.push(0, 10), one.push(5_000, 10), one.push(50_000, 10)] == [10_000, 20_000, 60_000]


@given(
    free=st.integers(0, 10_000),
    first=st.integers(0, 5_000),
    period=st.integers(1, 500),
    count=st.integers(1, 40),
    size=st.integers(1, 400),
)
def test_a_train_ends_like_its_entries_one_by_one(free, first, period, count, size):
    one, train = (Arithmetic(8_000_000_000) for _ in range(2))
    one.channel.free_ns = train.channel.free_ns = free
    for i in range(count):
        last = one.push(first + i * period, size)
    at_once = train.call(channel.push_train, train.channel, first, first + (count - 1) * period, count, size)
    assert at_once == last
    assert one.channel.sent_bytes == train.channel.sent_bytes


def test_a_shared_transmitter_serves_log_and_outputs_in_turn():
    shared = Arithmetic(8_000_000, 0, queue_bytes=10_000)
    assert shared.push(0, 10) == 10_000
    wire = shared.engine.rows(links)[shared.link]
    assert shared.call(occupy, wire, 100) == 110_000  # an output behind the entry
    assert shared.push(0, 10) == 120_000  # an entry behind the output


def test_a_full_receiver_holds_the_next_entry_back():
    one = Arithmetic(8_000_000)
    assert one.push(0, 10) == 10_000
    for until_ns, leaves_ns in ((5_000, 20_000), (50_000, 60_000)):
        one.engine._namespace[part_of(channel.hold_until).name](one.channel, until_ns)
        assert one.push(0, 10) == leaves_ns


def test_a_train_on_a_shared_transmitter_is_one_entry_of_all_its_bytes():
    shared = Arithmetic(8_000_000, 0, queue_bytes=10_000)
    assert shared.call(channel.push_train, shared.channel, 0, 40, 5, 20) == 100_000
    assert shared.channel.sent_bytes == 100


@pytest.mark.parametrize("ahead_bytes", [95, 100])
def test_entries_that_find_a_shared_transmitter_full_take_their_turn_on_it_and_are_no_losses(ahead_bytes):
    """At 1 us a byte 100 bytes fill the queue; what waits is on the wire as soon as what is before it has left."""
    shared = Arithmetic(8_000_000, 0, queue_bytes=100)
    wire = shared.engine.rows(links)[shared.link]
    shared.call(occupy, wire, ahead_bytes)
    assert [shared.push(0, 10) for _ in range(3)] == [1000 * (ahead_bytes + more) for more in (10, 20, 30)]
    assert int(shared.engine.rows(drops)[wire.queue_full].count) == 0
    assert shared.call(occupy, wire, 1) == -1  # an output finds no room
    shared.engine.sim.now_ns = 1000 * (ahead_bytes + 30)
    assert shared.call(occupy, wire, 10) == 1000 * (ahead_bytes + 40)


def test_an_acknowledgement_takes_its_bits_and_the_way():
    one = Arithmetic(8_000_000)
    channel.install(one.engine, 1, 8_000_000, 75, 64)
    assert int(one.engine.rows(channels)[1].ack_ns) == 64_000 + 75


def test_replay_by_hand():
    """Factor 2, 10 ns an entry: r = max(r, a) + 2 w + 10."""
    one = Arithmetic(factor=2.0, cost_ns=10, buffer_bytes=1000)
    secondary = one.secondary
    one.call(replay.execute, secondary, 100, 150, 10, 100)
    assert (secondary.end_ns, secondary.lag_ns) == (360, 260)
    one.call(replay.execute, secondary, 200, 250, 10, 0)
    assert (secondary.end_ns, secondary.lag_ns) == (370, 170)
    one.call(replay.execute, secondary, 1000, 1050, 10, 5)
    assert (secondary.end_ns, secondary.lag_ns, secondary.need_ns) == (1070, 70, 240)


@given(
    start=st.integers(0, 3_000),
    first=st.integers(0, 2_000),
    period=st.integers(1, 300),
    count=st.integers(1, 30),
    work_each=st.integers(0, 400),
)
def test_replay_of_a_train_ends_like_its_entries_one_by_one(start, first, period, count, work_each):
    one, train = (Arithmetic(cost_ns=7, start_ns=start) for _ in range(2))
    for i in range(count):
        written = first + i * period
        one.call(replay.execute, one.secondary, written, written + 50, 1, work_each)
    last = first + (count - 1) * period
    work = work_each * count
    train.call(replay.execute_train, train.secondary, last, first + 50, last + 50, count, count, work)
    for field in ("end_ns", "lag_ns", "need_ns"):
        assert getattr(train.secondary, field) == getattr(one.secondary, field)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(0, 200)), max_size=60))
@settings(max_examples=100)
def test_full_secondary_buffer_admits_when_replay_has_made_room(entries):
    """Against a brute-force buffer looked through entry by entry; it holds what is not executed, and little more."""
    one = Arithmetic(cost_ns=5, buffer_bytes=100)
    secondary, held, now = one.secondary, [], 0
    for gap, size, work in entries:
        now += gap
        arrival = now if replay.has_room(secondary, size) else one.call(replay.admit, secondary, now, size)
        expected = now
        while sum(s for end, s in held if end > expected) + size > 100:
            expected = min(end for end, _ in held if end > expected)
        assert arrival == expected
        one.call(replay.execute, secondary, now, arrival, size, work)
        held.append((secondary.end_ns, size))
        now = max(now, arrival)
    unexecuted = sum(end > now for end, _ in held)
    assert secondary.buffer.length <= unexecuted + len(entries) // 2 + 1


GAP = st.integers(0, 400)


@given(st.lists(st.tuples(GAP, GAP, GAP, st.sampled_from([None, 0.5, 1.0, 2.0, 4.0])), max_size=40))
@settings(max_examples=200)
def test_cpu_time_of_a_secondary_is_the_time_in_which_it_has_something_to_replay(steps):
    """Against a single server that is looked at ns by ns where its speed changes; entries are known before they arrive.

    Up to two ns are cut off at each step, and as many more as the speed changes by: one ns at 0.5 is eight at 4.
    """
    one = Arithmetic(buffer_bytes=10**9)
    secondary, now, arrival, factor = one.secondary, 0, 0, 1.0
    waiting: list[list[float]] = []
    spent, shown, cut_off_ns = 0.0, 0, 1.0
    for gap, on_the_way, work, pace in steps:
        for time in range(now, now + gap):
            rest = 1 / factor
            while waiting and waiting[0][0] <= time and waiting[0][1] <= rest:
                rest -= waiting.pop(0)[1]
            if waiting and waiting[0][0] <= time:
                waiting[0][1] -= rest
                rest = 0.0
            spent += 1 - rest * factor
        now += gap
        one.engine.sim.now_ns = now
        replayed = secondary.need_ns - one.call(replay.left_ns, secondary)
        assert shown <= replayed <= now
        assert replayed == pytest.approx(spent, abs=cut_off_ns)
        shown = replayed
        cut_off_ns += 2.0
        if pace is not None:
            cut_off_ns += max(0.0, pace / factor - 1.0)
            factor = pace
            one.call(replay.set_pace, secondary, factor, 0, 0)
        arrival = max(arrival, now + on_the_way)
        one.call(replay.execute, secondary, now, arrival, 1, work)
        waiting.append([arrival, work])
    one.call(replay.halt, secondary)
    assert secondary.need_ns == shown
    assert one.call(replay.left_ns, secondary) == 0


@given(st.floats(0, 1e15) | st.integers(0, 10**6).map(lambda n: n + 0.5))
def test_rounding_is_that_of_python(value):
    assert nearest(value) == round(value)


@pytest.mark.parametrize("size_bytes", [1, 1_073_741_824, 10**12])
def test_entries_of_any_size_take_their_exact_time(size_bytes):
    assert Arithmetic(1_000_000_007).push(0, size_bytes) == size_bytes * 8_000_000_000 // 1_000_000_007
