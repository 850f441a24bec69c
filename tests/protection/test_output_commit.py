"""The promise: nothing is seen outside that the secondary cannot derive, whenever the primary dies."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.errors import RunFailure
from vftsim.platform.protection.guard import LOST

from .pair import MS, QUIET, Pair, S

OPERATIONS = st.lists(
    st.tuples(st.integers(0, 2 * MS), st.sampled_from("io"), st.integers(1, 3000)), min_size=1, max_size=40
)


class Recorder:
    """Plays operations on a pair and works out by itself what the secondary holds."""

    def __init__(self, pair, rate, operations):
        self.pair = pair
        self.rate = rate
        self.written = []  # (time, bytes, kind, name)
        self.taken = []  # whether the guest got it, for inputs
        time_ns = 0
        for name, (gap_ns, kind, size) in enumerate(operations):
            time_ns += gap_ns
            pair.at(time_ns, self._play, (kind, size, name))
        self.end_ns = time_ns

    def _play(self, operation):
        kind, size, name = operation
        if self.pair.guard.stopped:
            return
        taken = True
        if kind == "i":
            taken = self.pair.input(size) != LOST
        else:
            size = 32
            self.pair.output(name)
        self.written.append((self.pair.now_ns, size, kind, name))
        self.taken.append(taken)

    def check_inputs(self, held):
        """What survives has got exactly the inputs whose entries the secondary holds."""
        for taken, entry_held, (_, _, kind, _) in zip(self.taken, held, self.written, strict=True):
            assert kind == "o" or taken == entry_held

    def departures(self):
        """First in, first out at the channel's rate."""
        free, result = 0, []
        for time_ns, size, _, _ in self.written:
            free = max(free, time_ns) + size * 8 * S // self.rate
            result.append(free)
        return result


CHANNELS = st.fixed_dictionaries(
    {"rate": st.sampled_from([1_000_000, 20_000_000, 1_000_000_000]), "latency": st.integers(0, 2 * MS)}
)


CRASHES = given(
    operations=OPERATIONS,
    crash_share=st.floats(0, 1.1),
    channel=CHANNELS,
    buffer=st.sampled_from([500, 512 * 1024]),
    factor=st.sampled_from([0.5, 1.0, 30.0]),
)


@pytest.mark.thorough
@CRASHES
@settings(max_examples=60, deadline=None)
def test_no_output_seen_is_underivable(**drawn):
    check_crash(**drawn)


@pytest.mark.slow
@CRASHES
@settings(max_examples=600, deadline=None)
def test_no_output_seen_is_underivable_at_many_crashes(**drawn):
    check_crash(**drawn)


def check_crash(operations, crash_share, channel, buffer, factor):
    pair = Pair(log={**QUIET, "buffer": buffer}, channel=channel, secondary={"factor": factor}, reprotection=None)
    rate = channel["rate"]
    recorder = Recorder(pair, rate, operations)
    crash_ns = max(1, int(recorder.end_ns * crash_share))
    pair.crash_at(crash_ns)
    pair.run(crash_ns + 4 * S)

    departures = recorder.departures()
    recorder.check_inputs([departure <= crash_ns for departure in departures])
    names = [name for _, name in pair.seen]
    all_inputs_held = True
    for departure, (_, _, kind, name) in zip(departures, recorder.written, strict=True):
        held = departure <= crash_ns
        if kind == "i":
            all_inputs_held = all_inputs_held and held
        else:
            assert all_inputs_held or name not in names, "seen, but an input before it is lost"
            assert not held or name in names, "logged at the secondary, never issued"
    by_primary = [name for time_ns, name in pair.seen if time_ns <= crash_ns]
    assert by_primary == sorted(by_primary)
    assert pair.counters["failovers"] == 1


@pytest.mark.thorough
@given(operations=OPERATIONS, loss_share=st.floats(0, 1), hesitation=st.sampled_from([0, 10 * MS]))
@settings(max_examples=80, deadline=None)
def test_channel_loss_shows_nothing_underivable_whoever_wins(operations, loss_share, hesitation):
    rate = 20_000_000
    pair = Pair(
        log=QUIET,
        channel={"rate": rate},
        failover={"detection": {"secondary_delay": hesitation, "heartbeat_interval": 7 * MS}},
        reprotection=None,
    )
    recorder = Recorder(pair, rate, operations)
    loss_ns = max(1, int(recorder.end_ns * loss_share))
    pair.lose_channel_at(loss_ns)
    pair.run(loss_ns + 4 * S)
    names = [name for _, name in pair.seen]
    outputs = [name for _, _, kind, name in recorder.written if kind == "o"]
    if "failovers" not in pair.counters:
        assert names == outputs  # the primary went on alone: everything leaves, once, in order
        return
    held_ones = [d + pair.channel.latency_ns <= loss_ns for d in recorder.departures()]
    recorder.check_inputs(held_ones)
    all_inputs_held = True
    for held, (_, _, kind, name) in zip(held_ones, recorder.written, strict=True):
        if kind == "i":
            all_inputs_held = all_inputs_held and held
        else:
            assert all_inputs_held or name not in names
            assert not held or name in names


def test_output_of_an_idle_guest_waits_for_one_round_trip():
    """32 B at 100 Mbit/s 2,560 ns, 1 ms there, 64 B back 5,120 ns, 1 ms back."""
    pair = Pair(log=QUIET, channel={"rate": 100_000_000, "latency": 1 * MS})
    pair.at(5 * MS, pair.output, 1)
    pair.run(20 * MS)
    assert pair.seen == [(5 * MS + 2_560 + 1 * MS + 5_120 + 1 * MS, 1)]


def test_round_trip_of_the_defaults_is_that_of_the_source():
    """150 us at 1 Gbit/s (Scales et al. 2010)."""
    pair = Pair(log=QUIET)
    pair.at(0, pair.output, 1)
    pair.run(1 * MS)
    assert abs(pair.seen[0][0] - 150_000) < 1_000


def test_output_waits_for_the_entries_before_it():
    """1,000 B of input at 8 Mbit/s keep the channel busy for 1 ms."""
    pair = Pair(log=QUIET, channel={"rate": 8_000_000, "latency": 0, "ack": 0})
    pair.at(0, pair.input, 1000)
    pair.at(0, pair.output, 1)
    pair.run(5 * MS)
    assert pair.seen == [(1 * MS + 32_000, 1)]


@pytest.mark.parametrize("early_ns", [1, 100_000])
def test_auditor_stops_a_release_before_the_entry_has_arrived(early_ns):
    pair = Pair(log=QUIET, channel={"latency": 1 * MS})
    pair.channel.ack_ns = -early_ns
    pair.at(0, pair.output, 1)
    with pytest.raises(RunFailure, match="output commit"):
        pair.run(10 * MS)


def test_last_outputs_before_a_crash_may_be_seen_twice():
    """Released 200 us after its entry; the secondary cannot know, nothing later reached it."""
    pair = Pair(log=QUIET, channel={"latency": 100_000, "ack": 0}, reprotection=None)
    pair.at(1 * MS, pair.output, 1)
    pair.crash_at(2 * MS)
    pair.run(4 * S)
    assert [name for _, name in pair.seen] == [1, 1]
    assert pair.counters["outputs_issued_again"] == 1


def test_later_entries_prove_that_an_output_left():
    pair = Pair(log=QUIET, channel={"latency": 100_000, "ack": 0}, reprotection=None)
    pair.at(1 * MS, pair.output, 1)
    pair.at(1_500_000, pair.input, 100)
    pair.crash_at(2 * MS)
    pair.run(4 * S)
    assert [name for _, name in pair.seen] == [1]


def test_output_with_its_entry_on_the_wire_is_issued_by_the_secondary():
    """The entry left at 1.000256 ms, the crash is at 1.05 ms, before any acknowledgement."""
    pair = Pair(log=QUIET, channel={"latency": 100_000}, reprotection=None)
    pair.at(1 * MS, pair.output, 1)
    pair.crash_at(1_050_000)
    pair.run(4 * S)
    assert [name for _, name in pair.seen] == [1]
    assert pair.seen[0][0] > 2 * S
