"""A channel with less rate, more delay or loss for a while: closed forms with the other rate, and the promise."""

from random import Random

import pytest
from pydantic import ValidationError

from vftsim.platform.protection.checkpoint import checkpoints
from vftsim.platform.protection.faults import ChannelDegradation, ChannelLoss, RepeatSpec
from vftsim.platform.protection.guard import LOST
from vftsim.platform.protection.state_stream import state_streams
from vftsim.platform.protection.when import Instant
from vftsim.spec.units import US
from vftsim.testing.plant import ENGINES, Plant, play

from .pair import MS, QUIET, Pair, S
from .sets import A
from .test_checkpoint import mean, near, settled
from .test_event_sync import SUSPEND_NS
from .test_event_sync import parameters as events
from .test_faults import lab
from .test_hypervisor_epoch import MESSAGE
from .test_hypervisor_epoch import parameters as epochs


def degraded(at_ns, **fields):
    return ChannelDegradation(at=Instant("run", at_ns), **fields)


def said(at, **fields):
    return {"kind": "channel_degradation", "at": at, **fields}


# Lockstep


def test_an_output_waits_for_the_round_trip_of_the_moment():
    """32 B there and 64 B back at 100 Mbit/s and 1 ms, and at 10 Mbit/s and 6 ms."""
    pair = Pair(log=QUIET, channel={"rate": 100_000_000, "latency": 1 * MS})
    pair.strike(degraded(10 * MS, duration=20 * MS, rate=10.0, delay=5 * MS))
    for number, at_ns in enumerate((5 * MS, 15 * MS, 50 * MS), 1):
        pair.at(at_ns, pair.output, number)
    pair.run(100 * MS)
    usual_ns, slow_ns = 7_680 + 2 * MS, 76_800 + 12 * MS
    assert pair.seen == [(5 * MS + usual_ns, 1), (15 * MS + slow_ns, 2), (50 * MS + usual_ns, 3)]
    assert [what for _, what in pair.timeline[-2:]] == ["channel degraded", "channel as before"]


def test_nothing_overtakes_what_was_sent_before_the_channel_recovered():
    pair = Pair(log=QUIET, channel={"rate": 100_000_000, "latency": 1 * MS})
    pair.strike(degraded(10 * MS, duration=20 * MS, delay=5 * MS))
    for number, at_ns in enumerate((30 * MS - 100, 30 * MS + 100, 31 * MS), 1):
        pair.at(at_ns, pair.output, number)
    pair.run(100 * MS)
    first_ns = 30 * MS - 100 + 7_680 + 12 * MS
    assert pair.seen[0] == (first_ns, 1)
    assert [number for _, number in pair.seen] == [1, 2, 3]
    assert all(first_ns <= time_ns <= first_ns + 10 * US for time_ns, _ in pair.seen[1:])


@pytest.mark.parametrize(("loss", "bits"), [(1.0, 143_051), (4.0, 71_525)])
def test_loss_leaves_the_rate_that_tcp_has(loss, bits):
    """1.22 segments of 1460 B over the root of the loss, once a round trip."""
    pair = Pair(log=QUIET, channel={"rate": 1_000_000_000, "latency": 1 * MS, "ack": 0})
    pair.strike(degraded(10 * MS, loss=loss))
    pair.run(20 * MS)
    assert pair.channel.rate_bits_per_s == pytest.approx(bits * 1e9 / (2 * MS), rel=1e-4)


def test_little_loss_over_a_short_way_costs_what_is_sent_twice():
    pair = Pair(log=QUIET, channel={"rate": 100_000_000, "latency": 10 * US, "ack": 0})
    pair.strike(degraded(10 * MS, loss=0.5))
    pair.run(20 * MS)
    assert pair.channel.rate_bits_per_s == 99_500_000


class Watched:
    """A pair whose channel is degraded for good on the way, and what its secondary holds by its wires alone."""

    def __init__(self, seed):
        pick = Random(seed)
        self.rate, self.latency_ns = 20_000_000, pick.choice([0, 500 * US, 2 * MS])
        self.pair = Pair(
            log=QUIET,
            channel={"rate": self.rate, "latency": self.latency_ns},
            reprotection=None,
            failover={"detection": {"secondary_delay": 0, "heartbeat_interval": 7 * MS}},
        )
        time_ns, self.written, self.taken = 0, [], []
        for number in range(1, 40):
            time_ns += pick.randint(1, 2 * MS)
            self.pair.at(time_ns, self.play, (pick.random() < 0.5, pick.randint(1, 3000), number))
        self.changed_ns, self.end_ns = pick.randint(1, time_ns), pick.randint(1, time_ns + 5 * MS)
        self.slow_rate, self.delay_ns = self.rate // 4, pick.choice([0, 3 * MS])
        self.pair.strike(degraded(self.changed_ns, rate=25.0, delay=self.delay_ns))

    def play(self, operation):
        is_input, size, number = operation
        if self.pair.guard.stopped:
            return
        if is_input:
            self.taken.append(self.pair.input(size) != LOST)
        else:
            self.taken.append(True)
            self.pair.output(number)
        self.written.append((self.pair.now_ns, size if is_input else 32, number if not is_input else 0))

    def entries(self):
        """When each entry leaves and arrives; what was written before the change goes by the old wire."""
        free, found = 0, []
        for time_ns, size, _ in self.written:
            is_old = time_ns < self.changed_ns
            free = max(free, time_ns) + size * 8 * S // (self.rate if is_old else self.slow_rate)
            found.append((free, free + self.latency_ns + (0 if is_old else self.delay_ns)))
        return found

    def judge(self, held):
        names = [number for _, number in self.pair.seen]
        derivable = True
        for is_held, taken, (_, _, number) in zip(held, self.taken, self.written, strict=True):
            if not number:
                assert taken == is_held
                derivable = derivable and is_held
            else:
                assert derivable or number not in names
                assert not is_held or number in names


@pytest.mark.parametrize("seed", range(12))
def test_a_crash_over_a_degraded_channel_shows_nothing_underivable(seed):
    watched = Watched(seed)
    watched.pair.crash_at(watched.end_ns)
    watched.pair.run(watched.end_ns + 30 * S)
    watched.judge([leaves_ns <= watched.end_ns for leaves_ns, _ in watched.entries()])


@pytest.mark.parametrize("seed", range(12))
def test_a_channel_lost_while_degraded_shows_nothing_underivable(seed):
    """The secondary wins the lock: it has what had arrived, by the old way or the new."""
    watched = Watched(seed)
    watched.pair.strike(ChannelLoss(at=Instant("run", watched.end_ns)))
    watched.pair.run(watched.end_ns + 30 * S)
    names = [number for _, number in watched.pair.seen]
    if watched.pair.counters.get("failovers"):
        watched.judge([arrives_ns <= watched.end_ns for _, arrives_ns in watched.entries()])
    else:
        assert names == [number for _, _, number in watched.written if number]


# Mechanisms that send states


@pytest.mark.parametrize("engine_type", [ENGINES[0], pytest.param(ENGINES[1], marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("fields", "like"),
    [
        ({"rate": "50 %"}, A.but(rate=500_000_000)),
        ({"delay": "4 ms"}, A.but(round_trip=A.round_trip + 8 * MS)),
        ({"rate": "20 %"}, A.but(rate=200_000_000)),
    ],
)
def test_epochs_settle_at_the_closed_form_of_the_degraded_channel(fields, like, engine_type):
    expected = like.steady()
    plant = settled(A, until_ns=100 * expected.period, faults=[said("103.3 ms", **fields)], engine_type=engine_type)
    stream = plant.engine.rows(state_streams)[plant.guard]
    assert abs(int(stream.taken_ns) - int(stream.taken_before_ns) - expected.period) <= 1
    assert abs(int(stream.ran_ns) - int(stream.ran_before_ns) - expected.run) <= 1
    assert abs(int(plant.engine.rows(checkpoints)[plant.guard].pause_ns) - expected.pause) <= 1


def test_what_is_left_of_a_state_on_the_wire_goes_on_at_the_new_rate():
    """The state of 200 ms is on the wire from 200.953 ms to 208.916 ms; half of the rate from 204 ms on."""
    mechanism = A.steady()
    sent_ns = 200 * MS + mechanism.pause
    departs_ns = 204 * MS + 2 * (sent_ns + mechanism.wire - 204 * MS)
    plant = settled(A, until_ns=220 * MS, chunk_ns=371_713, chunk_is_output=True, faults=[said("204 ms", rate="50 %")])
    last = max(number for time_ns, number in plant.issued if time_ns <= 200 * MS)
    left_ns = {number: time_ns for time_ns, number in plant.seen}[last]
    assert abs(left_ns - (departs_ns + A.round_trip)) <= 2


def test_rollback_over_a_degraded_channel_is_that_of_its_closed_form():
    like = A.but(rate=500_000_000)
    mechanism = like.steady()
    times = [40 * mechanism.period + (2 * i + 1) * mechanism.period // 2000 for i in range(1000)]
    faults = [said("103.3 ms", rate="50 %")]
    cuts = Plant(A.parameters(), until_ns=43 * mechanism.period, faults=faults).probe(times)
    assert near(mean([cut.rollback_ns for cut in cuts]), mechanism.period / 2 + mechanism.hidden - A.round_trip // 2)


def test_a_channel_that_flaps_delays_and_loses_nothing():
    """A tenth of the rate for 20 ms in each 60 ms."""
    faults = [said("203 ms", duration="20 ms", rate="10 %", repeat={"every": "60 ms", "most": 5})]
    plant = settled(A, until_ns=S, chunk_ns=371_713, chunk_is_output=True, faults=faults)
    whats = [what for _, what in plant.timeline]
    assert whats.count("channel degraded") == whats.count("channel as before") == 5
    assert set(whats) == {"protected", "channel degraded", "channel as before"}
    numbers = [number for _, number in plant.seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    usual = settled(A, until_ns=S, chunk_ns=371_713, chunk_is_output=True)
    # In 20 ms at a tenth of the rate the channel is 18 ms behind.
    assert 15 * MS < max(plant.holds()) - max(usual.holds()) <= 18 * MS
    assert plant.holds()[-50:] == pytest.approx(usual.holds()[-50:], abs=25 * MS)


@pytest.mark.parametrize("fencing", [False, True])
def test_a_delay_beyond_the_timeout_makes_the_backup_suspect_a_live_primary(fencing):
    """Nothing arrives for 200 ms: without a lock both hosts live, and what they do apart is counted."""
    mechanism = A.parameters(
        failover={"detection": {"timeout": 60 * MS, "backup_timeout": 60 * MS}, "fencing": fencing}, reprotection=None
    )
    fault = said("203.3 ms", delay="200 ms")
    asks = [3_333_333 * i for i in range(1, 290)]
    plant = play(
        protection=mechanism, chunk_ns=371_713, chunk_is_output=True, asks=asks, faults=[fault], until_ns=S
    ).run
    if fencing:
        assert plant.summary["failovers"] == 1
        assert plant.moments["primary fenced"] < plant.moments["secondary live"]
        assert "outputs_while_split" not in plant.summary
        assert "inputs_while_split" not in plant.summary
        return
    assert "failovers" not in plant.summary
    begins_ns = plant.moments["primary goes on alone"]
    assert plant.moments["secondary live too"] > 0
    assert plant.summary["inputs_while_split"] == sum(time_ns >= begins_ns for time_ns, _ in plant.entered)
    assert plant.summary["outputs_while_split"] == sum(time_ns > begins_ns for time_ns, _ in plant.issued)


def test_synchronization_takes_the_time_of_the_degraded_channel():
    """To 1 ns, after the degradation has begun."""
    chunk_ns = 4_700_001
    fault = said("101 ms", rate="50 %", delay="1 ms")
    plant = Plant(events(), chunk_ns=chunk_ns, chunk_is_output=True, until_ns=S, faults=[fault]).run()
    like = A.but(rate=500_000_000)
    pause_ns = SUSPEND_NS + like.wire(chunk_ns) + A.round_trip + 2 * MS
    assert set(plant.holds()[-50:]) == {pause_ns}


def test_epochs_of_the_original_protocol_wait_for_the_degraded_channel():
    mechanism = epochs("original", boundary=10 * US)
    fault = said("100 ms", rate="10 %", delay="2 ms")
    early, late = (Plant(mechanism, until_ns=t, faults=[fault]).run().summary for t in (S, 2 * S))
    ended = late["epochs"] - early["epochs"]
    stop_ns = (late["stopped_s"] - early["stopped_s"]) * S / ended
    # A second begins and ends anywhere in an epoch.
    assert stop_ns == pytest.approx(MESSAGE * 8 * 10 + 150 * US + 4 * MS, rel=2 / ended)


# Mistakes


def test_degradations_that_cannot_be_are_refused():
    with pytest.raises(ValidationError, match="nothing is degraded"):
        degraded(0)
    with pytest.raises(ValidationError, match=r"repeat\.every must be longer"):
        degraded(0, rate=50.0, duration=S, repeat=RepeatSpec(every=S))
    with pytest.raises(ValidationError, match="backup or its channel"):
        lab({"kind": "none"}, {"kind": "channel_degradation", "at": "1 s", "rate": "10 %"})
