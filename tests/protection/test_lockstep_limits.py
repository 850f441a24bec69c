"""What bounds a lockstep pair: the log's bandwidth, the buffer, the secondary's speed."""

import pytest

from vftsim.platform.protection.device_faults import SlowBackup
from vftsim.platform.protection.faults import BackupCrash, ChannelLoss
from vftsim.platform.protection.when import Instant

from .pair import MS, QUIET, Pair, S, free_log


def flood(pair, size, until_ns, gap_ns):
    """Log a packet each ``gap_ns`` unless the guest is stopped; returns the instants of those logged."""
    logged = []

    def packet(_):
        if not pair.guard.stopped:
            pair.input(size)
            logged.append(pair.now_ns)
        if pair.now_ns + gap_ns <= until_ns:
            pair.at(pair.now_ns + gap_ns, packet)

    pair.at(0, packet)
    pair.run(until_ns + 1)
    return logged


def test_throughput_is_log_bandwidth_over_log_bytes_of_an_event():
    """8 Mbit/s over 1000 B: 1000 events a second, plus what the buffer swallows at first."""
    pair = Pair(log={**QUIET, "buffer": 10_000}, channel={"rate": 8_000_000})
    logged = flood(pair, 1000, 5 * S, 100_000)
    late = [t for t in logged if t >= 1 * S]
    assert abs(len(late) - 4000) <= 2
    assert 10 <= len(logged) - 5000 <= 12
    assert pair.counters["log_buffer_full"] > 0


def test_below_the_bandwidth_nothing_is_stopped():
    pair = Pair(log={**QUIET, "buffer": 10_000}, channel={"rate": 8_000_000})
    assert len(flood(pair, 1000, 1 * S, 1_250_000)) == 801
    assert "log_buffer_full" not in pair.counters


def test_full_buffer_stops_the_guest_until_it_has_drained():
    """3 packets of 1000 B at once into a buffer of 2000 B at 1 us a byte: stopped for 1 ms."""
    pair = Pair(log={**QUIET, "buffer": 2000}, channel={"rate": 8_000_000}, cost={"entry": 0, "kibibyte": 0})
    pair.submit(10 * MS)
    for _ in range(3):
        pair.at(2 * MS, pair.input, 1000)
    pair.run(20 * MS)
    assert pair.finished == [11 * MS]
    assert pair.guard.stopped_ns == 1 * MS


def timers_alone(fault=None):
    """A guest that only computes: 100 kB a second of timer interrupts, of which the channel carries half."""
    pair = Pair(
        log={**QUIET, "timer_rate": 1000.0, "timer_entry": 100, "buffer": 10_000},
        channel={"rate": 400_000, "latency": 0, "ack": 0},
        cost={"entry": 0, "kibibyte": 0, "output": 0, "timer": 0},
        secondary={"entry_cost": 0},
    )
    pair.submit(10 * S)
    if fault:
        pair.strike(fault)
    pair.run(2 * S)
    return pair


def test_timer_interrupts_alone_fill_the_log_buffer():
    """10 kB are full after 0.2 s; from then on the guest runs half of the time, looked at each 10 ms."""
    pair = timers_alone()
    assert pair.run_ns() == pytest.approx(200 * MS + 900 * MS, abs=10 * MS)
    assert pair.guard.stopped_ns == pytest.approx(900 * MS, abs=10 * MS)


def test_a_computing_guest_stands_still_when_its_log_buffer_is_full_behind_a_lost_channel():
    """Lost after 100 ms, with 5 kB in the log: full 50 ms later.  From 950 ms on it runs half of the time."""
    pair = timers_alone(ChannelLoss(at=Instant("run", 100 * MS), duration=850 * MS))
    assert pair.run_ns() == pytest.approx(150 * MS + 525 * MS, abs=15 * MS)


def test_secondary_of_equal_speed_lags_by_the_channel_only():
    """No work and no entry cost: an entry is replayed when it arrives."""
    pair = Pair(log=QUIET, channel={"latency": 75_000}, secondary={"entry_cost": 0})
    flood(pair, 125, 10 * MS, 1 * MS)
    assert pair.pair.secondary.lag_ns == 1_000 + 75_000


def test_lag_of_a_busy_guest_is_the_work_since_the_last_entry():
    """1,000 timer entries a second pace the secondary: it is behind by at most a tick's work and the channel."""
    pair = Pair(log={**QUIET, "timer_rate": 1000.0, "timer_entry": 125}, secondary={"entry_cost": 0})
    pair.submit(3 * S)
    lags = []
    for i in range(1, 2000):
        pair.at(i * 1_300_000, lambda _: lags.append(pair.lag_ns()))
    pair.run(3 * S)
    assert max(lags) <= 1 * MS + 1_000 + 74_500
    assert min(lags) >= 74_500


def test_slow_secondary_slows_the_primary_to_its_own_speed():
    """Factor 1.5: the share settles near 2/3, the lag near its limit."""
    pair = Pair(
        log={**QUIET, "timer_rate": 1000.0},
        secondary={"factor": 1.5, "entry_cost": 0, "buffer": 64 * 1024**2},
        throttle={"step": 3.0},
    )
    pair.submit(400 * S)
    pair.run(100 * S)
    before = pair.run_ns()
    pair.run(200 * S)
    share = (pair.run_ns() - before) / (100 * S)
    assert share == pytest.approx(2 / 3, abs=0.06)
    assert pair.lag_ns() < 10 * S


def test_share_comes_back_when_the_secondary_has_caught_up():
    pair = Pair(
        log={**QUIET, "timer_rate": 1000.0},
        secondary={"factor": 1.5, "entry_cost": 0, "buffer": 64 * 1024**2},
    )
    pair.submit(10 * S)
    pair.run(10 * S)
    assert pair.throttle.share < 100.0
    pair.run(60 * S)
    assert pair.throttle.share == 100.0


def test_a_slow_secondary_has_no_more_cpu_time_than_has_passed():
    """It needs twice as long as its primary, which never pauses: busy all the time, until its host crashes at 3 s.

    From 1.5 s on it is half as fast again, which changes nothing of that.
    """
    pair = free_log(2.0)
    pair.strike(SlowBackup(at=Instant("run", 1500 * MS), duration=S, speed=50.0))
    pair.strike(BackupCrash(at=Instant("run", 3 * S)))
    pair.submit(20 * S)
    spent_ms = []
    for until_ms in (0, 1000, 2000, 3000, 4000):
        pair.run(until_ms * MS + 1)
        spent_ms.append(pair.lab.spec.holds(pair.engine, pair.lab.guard)["backup_cpu_ns"] / MS)
    assert spent_ms == pytest.approx([0, 1000, 2000, 3000, 3000], abs=2)


def test_full_secondary_buffer_delays_acknowledgements():
    """Replay of 10 ms an entry, room for two entries: the third is acknowledged when the first is done."""
    pair = Pair(
        log=QUIET,
        channel={"rate": 8_000_000_000, "latency": 0, "ack": 0},
        secondary={"entry_cost": 10 * MS, "buffer": 70},
    )
    for number in (1, 2, 3):
        pair.at(0, pair.output, number)
    pair.run(1 * S)
    assert pair.seen == [(32, 1), (64, 2), (32 + 10 * MS, 3)]


@pytest.mark.parametrize(("field", "values"), [("rate", (10**6, 10**7, 10**9)), ("latency", (5 * MS, 1 * MS, 0))])
def test_a_better_channel_never_delays_an_output(field, values):
    waits = []
    for value in values:
        pair = Pair(log=QUIET, channel={field: value})
        for i in range(200):
            pair.at(i * 997_000, pair.input, 300)
            pair.at(i * 997_000 + 400_000, pair.output, i)
        pair.run(10 * S)
        assert len(pair.seen) == 200
        waits.append(sum(time for time, _ in pair.seen))
    assert waits == sorted(waits, reverse=True)


def test_idle_guest_logs_its_timer_interrupts():
    """0.5 to 1.5 Mbit/s (Scales et al. 2010)."""
    pair = Pair()
    pair.run(10 * S)
    pair.lag_ns()
    assert 0.5e6 < pair.channel.sent_bytes * 8 / 10 < 1.5e6
