"""Checkpoints in the steady state against closed forms: instants to 1 ns, means within 0.5 %."""

import itertools
import math
from typing import Any

import pytest

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.errors import RunFailure
from vftsim.platform.protection import passes
from vftsim.platform.protection.checkpoint import checkpoints
from vftsim.platform.protection.output_buffer import output_buffers
from vftsim.platform.protection.state_stream import state_streams
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, Plant

from .sets import A, B, D, E, Setting

SETTINGS = {"A": A, "B": B, "D": D, "E": E, "A resume": A.but(rule="resume"), "A after_ack": A.but(rule="after_ack")}

# Set: E, D, p, x, P in ms and pages; slowdown, hold of an output, added round trip, requests a second at 0.2 ms.
WORKED = {
    "A": (24.0469, 226.57, 0.9531, 7.9632, 25.0, 1.03964, 21.0898, 21.5663, 40.000),
    "B": (31.0500, 925.19, 2.3504, 30.9000, 33.4004, 1.07570, 48.9254, 50.1006, 14.970),
    "D": (196.9938, 1253.10, 3.0062, 41.6660, 200.0, 1.01526, 143.3191, 144.8222, 5.000),
    "E": (23.0239, 738.04, 1.9761, 2.4756, 25.0, 1.08583, 16.0536, 17.0416, 40.000),
    "A resume": (25.0, 235.01, 0.9700, 8.2400, 25.9700, 1.03880, 21.8600, 22.3450, 38.506),
    "A after_ack": (35.0998, 321.92, 1.1438, 11.0937, 36.2437, 1.03259, 29.9375, 30.5094, 27.591),
}
# Set: rollback in wall time and in execution, execution whose outputs are lost, mean age of the silence; ms.
CRASHES = {
    "A": (21.4913, 20.2136, 20.2857, 5.8051),
    "B": (50.0256, 45.4128, 45.4826, 0.0936),
    "D": (144.7472, 141.0910, 141.1649, 62.6741),
    "E": (16.9966, 14.7432, 14.7847, 10.1470),
}


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def near(value: float, expected: float) -> bool:
    return abs(value - expected) <= 0.005 * expected


def spread(start_ns: int, period_ns: int, count: int) -> list[int]:
    """Instants that meet every phase of a period alike: the golden section of it apart."""
    return [start_ns + int(i * period_ns * (math.sqrt(5) - 1) / 2) for i in range(count)]


def settled(setting: Setting, until_ns: int = 0, **fields: object) -> Plant:
    return Plant(setting.parameters(), until_ns=until_ns or 80 * setting.interval, **fields).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SETTINGS)
def test_the_worked_numbers_are_those_of_the_formulas(name):
    mechanism = SETTINGS[name].steady()
    values = (mechanism.run / MS, mechanism.pages, mechanism.pause / MS, mechanism.wire / MS, mechanism.period / MS)
    assert values == pytest.approx(WORKED[name][:5], rel=1e-4)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("engine_type", ENGINES)
def test_an_epoch_is_that_of_the_closed_form_to_a_nanosecond(name, engine_type):
    expected = SETTINGS[name].steady()
    plant = settled(SETTINGS[name], engine_type=engine_type)
    stream = plant.engine.rows(state_streams)[plant.guard]
    assert abs(int(stream.taken_ns) - int(stream.taken_before_ns) - expected.period) <= 1
    assert abs(int(stream.ran_ns) - int(stream.ran_before_ns) - expected.run) <= 1
    assert abs(int(plant.engine.rows(checkpoints)[plant.guard].pause_ns) - expected.pause) <= 1
    assert stream.pages == pytest.approx(expected.pages, abs=1e-6)
    if stream.is_sent:
        assert abs(int(stream.depart_ns) - int(stream.sent_from_ns) - expected.wire) <= 1


@pytest.mark.parametrize("name", SETTINGS)
def test_slowdown_of_cpu_bound_work(name):
    setting = SETTINGS[name]
    period = setting.steady().period
    ran = [settled(setting, until_ns=n * period).run_ns for n in (60, 100)]
    assert 40 * period / (ran[1] - ran[0]) == pytest.approx(WORKED[name][5], rel=2e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_hold_of_outputs_uniform_in_run_time(name):
    setting = SETTINGS[name]
    mechanism = setting.steady()
    chunk_ns = mechanism.period // 40 + 1_371
    plant = settled(setting, until_ns=250 * mechanism.period, chunk_ns=chunk_ns, chunk_is_output=True)
    holds = plant.holds()[4000:]
    assert near(mean(holds), WORKED[name][6] * MS)
    assert near(mean(holds), mechanism.run / 2 + mechanism.hidden)
    assert mechanism.hidden <= min(holds)
    assert max(holds) <= mechanism.run + mechanism.hidden


@pytest.mark.parametrize("name", SETTINGS)
def test_added_round_trip_of_requests(name):
    """They differ from the hold of outputs by half the pause: requests that meet the pause wait for its end."""
    setting = SETTINGS[name]
    mechanism = setting.steady()
    asks = spread(20 * mechanism.period, mechanism.period, 1500)
    plant = settled(setting, until_ns=asks[-1] + 4 * mechanism.period, asks=asks)
    assert near(mean(plant.answer_times()), WORKED[name][7] * MS)
    assert near(mean(plant.answer_times()), mechanism.period / 2 + mechanism.hidden)


def rate_of_requests(setting: Setting, think_ns: int) -> float:
    """Requests a second of a client that asks again when it has its answer."""
    mechanism = setting.steady()
    start_ns, end_ns = 30 * mechanism.period + 1, 230 * mechanism.period
    plant = settled(setting, until_ns=end_ns, asks=[start_ns], think_ns=think_ns, turns=-1)
    first, last = plant.seen[0][0], plant.seen[-1][0]
    return (len(plant.seen) - 1) * S / (last - first)


@pytest.mark.parametrize("name", SETTINGS)
def test_throughput_of_a_closed_loop(name):
    """One answer every m periods; a window of 64 KiB for each gives the Mbit/s of TCP."""
    mechanism = SETTINGS[name].steady()
    turns = math.ceil((mechanism.hidden + 200 * US) / mechanism.period)
    rate = rate_of_requests(SETTINGS[name], 200 * US)
    assert rate == pytest.approx(S / (turns * mechanism.period), rel=1e-6)
    assert near(rate, WORKED[name][8])


@pytest.mark.parametrize(
    ("interval", "think_ns", "expected"),
    [(34 * MS, 200 * US, 14.71), (35 * MS, 200 * US, 28.57), (35 * MS, MS, 14.29), (40 * MS, 200 * US, 25.0)],
)
def test_throughput_is_not_monotone_in_the_interval(interval, think_ns, expected):
    """Resonance: the answer leaves just after, or just before, the epoch that could have taken the next request."""
    assert near(rate_of_requests(B.but(interval=interval), think_ns), expected)


@pytest.mark.parametrize(("setting", "expected"), [(A, (21.57, 46.57, 71.57)), (D, (144.8, 344.8, 544.8))])
def test_passes_through_the_protected_server(setting, expected):
    mechanism = setting.steady()
    for turns, delay in enumerate(expected, 1):
        asks = spread(5 * mechanism.period, mechanism.period, 700)
        plant = settled(setting, until_ns=asks[-1] + 8 * mechanism.period, asks=asks, turns=turns)
        assert near(mean(plant.answer_times()), delay * MS)


@pytest.mark.parametrize(("interval", "share"), [(400, 0.0), (500, 0.130), (600, 0.279), (1000, 0.570)])
def test_share_of_requests_answered_after_timer_t1(interval, share):
    setting = A.but(interval=interval * MS)
    mechanism = setting.steady()
    asks = [10 * mechanism.period + (2 * i + 1) * mechanism.period // 1000 for i in range(500)]
    times = settled(setting, until_ns=asks[-1] + 4 * mechanism.period, asks=asks).answer_times()
    late = sum(time > 500 * MS for time in times) / len(times)
    assert late == pytest.approx(
        max(0.0, min(1.0, (mechanism.period + mechanism.hidden - 500 * MS) / mechanism.period)), abs=0.003
    )
    assert late == pytest.approx(share, abs=0.003)


def forget_peaks(plant: Plant) -> None:
    """The first epoch is longer than the others."""
    plant.engine.rows(output_buffers)[plant.guard].peak = 0
    plant.engine.rows(state_streams)[plant.guard].most_uncommitted_bytes = 0


@pytest.mark.thorough
def test_output_buffer_peak_mean_and_bound():
    mechanism = A.steady()
    chunk_ns = 20_011
    plant = settled(A, until_ns=10 * mechanism.period, chunk_ns=chunk_ns, chunk_is_output=True)
    forget_peaks(plant)
    plant.engine.run(40 * mechanism.period)
    assert near(plant.summary["most_outputs_held"] * chunk_ns, mechanism.run + mechanism.wire + mechanism.round_trip)
    bounded = Plant(
        A.parameters(outputs={"most": 500}), until_ns=60 * mechanism.period, chunk_ns=chunk_ns, chunk_is_output=True
    ).run()
    assert bounded.summary["most_outputs_held"] == 500
    assert bounded.summary["outputs_dropped"] > 0
    buffer = bounded.engine.rows(output_buffers)[bounded.guard]
    waiting = int(buffer.fresh.length + buffer.sealed.length)
    assert len(bounded.issued) == len(bounded.seen) + bounded.summary["outputs_dropped"] + waiting


@pytest.mark.thorough
def test_the_longest_wait_is_that_of_the_first_output_of_an_epoch():
    """It sees the whole epoch, the pause, the transfer and the way of the acknowledgement."""
    mechanism = A.steady()
    chunk_ns = 20_011
    plant = settled(A, until_ns=10 * mechanism.period, chunk_ns=chunk_ns, chunk_is_output=True)
    plant.engine.rows(output_buffers)[plant.guard].longest_ns = 0
    plant.engine.run(40 * mechanism.period)
    longest_ns = plant.summary["longest_output_wait_ms"] * MS
    assert abs(longest_ns - (mechanism.run + mechanism.pause + mechanism.wire + mechanism.round_trip)) <= 2 * chunk_ns


@pytest.mark.parametrize(("interval", "jitter_ms"), [(25, 8.0), (100, 32.0), (200, 36.0), (400, 38.0)])
def test_jitter_of_a_stream_through_epochs(interval, jitter_ms):
    """A stream of 20 ms leaves in bursts: mean change of the transit time 2 tau (1 - tau / P)."""
    setting = A.but(interval=interval * MS)
    asks = [5 * setting.interval + MS + i * 20 * MS for i in range(1001)]
    plant = settled(setting, until_ns=asks[-1] + 5 * setting.interval, asks=asks)
    transit = [time_ns - asks[number] for time_ns, number in plant.seen]
    jitter = mean([abs(b - a) for a, b in itertools.pairwise(transit)])
    assert near(jitter, jitter_ms * MS)


def test_disk_writes_on_the_same_link():
    """x is 8wE/R longer; up to w(E + x + a) bytes are not committed; the backup's disk needs wE / rate."""
    setting = A.but(disk_rate=20_000_000)
    mechanism = setting.steady()
    plant = settled(setting, until_ns=10 * mechanism.period)
    forget_peaks(plant)
    plant.engine.run(40 * mechanism.period)
    extra_ns = 8 * 20e6 * mechanism.run / S / 1e9 * S
    assert mechanism.wire - A.wire(mechanism.run) == pytest.approx(extra_ns, abs=10)
    assert plant.summary["most_uncommitted_disk_bytes"] == pytest.approx(
        20e6 * (mechanism.run + mechanism.wire + mechanism.round_trip) / S, rel=2e-3
    )
    stream = plant.engine.rows(state_streams)[plant.guard]
    apply_ns = int(stream.applied_before_ns) - int(stream.heard_before_ns)
    assert apply_ns == pytest.approx(20e6 * mechanism.run / 60e6, rel=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_use_of_the_replication_link(name):
    mechanism, setting = SETTINGS[name].steady(), SETTINGS[name]
    sent = [settled(setting, until_ns=n * mechanism.period).summary["state_bytes"] for n in (60, 100)]
    assert (sent[1] - sent[0]) * 8 / (40 * mechanism.period / S) / setting.rate == pytest.approx(
        mechanism.wire / mechanism.period, rel=1e-4
    )


@pytest.mark.parametrize(
    ("interval", "saturating", "linear"),
    [
        (5, 13.31, 13.33),
        (10, 7.32, 7.37),
        (25, 3.96, 4.08),
        (50, 2.80, 3.03),
        (100, 2.09, 2.51),
        (200, 1.53, 2.26),
        (400, 1.00, 2.13),
    ],
)
def test_overhead_against_the_interval(interval, saturating, linear):
    """Affine in the frequency with the intercept c r where dirtying is linear, concave where it saturates."""
    for setting, expected in ((A, saturating), (A.but(working_set=1 << 40), linear)):
        # A fast link keeps the period at the interval, as the worked numbers have it.
        mechanism = setting.but(interval=interval * MS, rate=100_000_000_000, round_trip=0)
        early, late = (settled(mechanism, until_ns=n * mechanism.interval + mechanism.interval // 2) for n in (20, 60))
        stopped_s = late.summary["stopped_s"] - early.summary["stopped_s"]
        assert near(stopped_s * S / (late.run_ns - early.run_ns) * 100, expected)


def test_stretching_with_linear_dirtying_begins_at_a_rate_and_has_no_end_beyond_another():
    linear = A.but(working_set=1 << 40)
    assert linear.but(touch_rate=29_500.0).steady().period == 25 * MS
    stretched = linear.but(touch_rate=30_000.0)
    assert stretched.steady().run == pytest.approx(44.83 * MS, rel=1e-3)
    plant = settled(stretched, until_ns=30 * S)
    stream = plant.engine.rows(state_streams)[plant.guard]
    assert int(stream.ran_ns) - int(stream.ran_before_ns) == pytest.approx(44.83 * MS, rel=1e-3)
    assert plant.summary["epochs_stretched"] > 100
    runaway = settled(linear.but(touch_rate=31_000.0), until_ns=30 * S)
    stream = runaway.engine.rows(state_streams)[runaway.guard]
    assert int(stream.ran_ns) - int(stream.ran_before_ns) > 60 * MS


# Crashes


def crashes(setting: Setting, first: int, count: int, **fields: object) -> list[Any]:
    """What crashes at instants of one period find, that of number ``first``."""
    period = setting.steady().period
    times = [first * period + (2 * i + 1) * period // (2 * count) for i in range(count)]
    plant = Plant(setting.parameters(), until_ns=(first + 2) * period, **fields)  # type: ignore[arg-type]
    return plant.probe(times)


def test_a_crash_finds_what_a_probe_finds_and_ends_its_pass():
    faults = [{"kind": "primary_crash", "at": "203.3 ms"}]
    plant = Plant(A.parameters(), faults=faults, until_ns=300 * MS)
    with pytest.raises(RunFailure, match="passes"):
        plant.run()
    (cut,) = passes.cuts_found(plant.engine)
    probe = Plant(A.parameters(), until_ns=300 * MS).probe([203_300_000])[0]
    assert (cut.point, cut.heard_ns, cut.rollback_ns) == (probe.point, probe.heard_ns, probe.rollback_ns)
    # Suspended at 25 ms, 50 ms, ...; that of 200 ms is still on the wire.
    assert (cut.crash_ns, cut.rollback_ns, cut.heard_ns) == (203_300_000, 28_300_000, 203_375_000)


@pytest.mark.parametrize("name", CRASHES)
def test_rollback_and_silence_at_a_uniform_crash(name):
    setting, (wall, execution, _, age) = SETTINGS[name], CRASHES[name]
    mechanism = setting.steady()
    cuts = crashes(setting, 30, 1000)
    way = setting.round_trip // 2
    assert near(mean([cut.rollback_ns for cut in cuts]), wall * MS)
    assert near(mean([cut.rollback_ns for cut in cuts]), mechanism.period / 2 + mechanism.hidden - way)
    assert near(mean([cut.execution_ns for cut in cuts]), execution * MS)
    silence = mean([cut.crash_ns - cut.heard_ns for cut in cuts]) + way
    assert silence == pytest.approx(age * MS, rel=0.005, abs=1_000)


@pytest.mark.parametrize("name", ["A", "E"])
def test_outputs_lost_with_the_primary(name):
    setting = SETTINGS[name]
    chunk_ns = 50_021
    lost = [cut.outputs_lost for cut in crashes(setting, 8, 500, chunk_ns=chunk_ns, chunk_is_output=True)]
    assert near(mean(lost) * chunk_ns, CRASHES[name][2] * MS)


# Limits


def test_checkpoints_that_cost_nothing_hold_only_until_the_next_one():
    free = A.but(interval=10 * US, fixed_pause=0, page_pause=0, fixed_bytes=0, round_trip=0, working_set=0)
    plant = settled(free, until_ns=20 * MS, chunk_ns=3_001, chunk_is_output=True)
    assert plant.run_ns == 20 * MS
    assert max(plant.holds()) <= 10 * US


def test_an_endless_interval_costs_nothing_and_holds_everything():
    plant = Plant(
        A.but(interval=3600 * S).parameters(failover={"detection": {"timeout": "3700 s"}}),
        until_ns=S,
        chunk_ns=MS,
        chunk_is_output=True,
    ).run()
    assert plant.run_ns == S
    assert plant.seen == []


def test_a_guest_that_runs_on_until_it_stops_lengthens_the_period_by_that():
    """The request takes 100 us, in which the guest runs; it is no pause."""
    plant = Plant(A.parameters(suspend_request="100 us"), until_ns=S).run()
    stream = plant.engine.rows(state_streams)[plant.guard]
    assert int(stream.taken_ns) - int(stream.taken_before_ns) == 25_100 * US


@pytest.mark.parametrize(
    ("field", "values", "better"),
    [
        ("rate", (10**9, 2 * 10**9, 10**10), True),
        ("touch_rate", (5e3, 1e4, 2e4, 1e5), False),
        ("round_trip", (0, 150 * US, 5 * MS, 40 * MS), False),
        ("fixed_pause", (0, 500 * US, 5 * MS), False),
        ("page_bytes", (1000, 4104, 40_000), False),
    ],
)
def test_a_better_parameter_never_holds_outputs_longer_or_slows_the_guest(field, values, better):
    """With the same chunks: common random numbers."""
    holds, runs = [], []
    for value in values:
        plant = settled(A.but(**{field: value}), until_ns=2 * S, chunk_ns=MS, chunk_is_output=True)
        holds.append(mean(plant.holds()))
        runs.append(plant.run_ns)
    assert holds == sorted(holds, reverse=better)
    if field in ("touch_rate", "fixed_pause"):
        assert runs == sorted(runs, reverse=True)


def test_the_summary_says_what_it_cost():
    plant = settled(A, until_ns=S)
    assert plant.summary["pause_ms"] == pytest.approx(A.steady().pause / MS, rel=2e-3)
    assert plant.summary["stopped_s"] * 1e3 == pytest.approx(
        plant.summary["pause_ms"] * plant.summary["states_taken"], rel=0.03
    )


def test_compression_shrinks_pages_alone():
    half = Plant(A.parameters(state={"fixed": 65536, "page": 4104, "compression": 2.0}), until_ns=S).run()
    stream = half.engine.rows(state_streams)[half.guard]
    sent = int(stream.depart_ns) - int(stream.sent_from_ns)
    assert sent == pytest.approx((65536 + stream.pages * 2052) * 8, abs=8)


def test_pages_of_requests_are_counted_once_each():
    asks = [100 * MS + i * MS for i in range(900)]
    parameters = A.parameters(memory={"working_set": 0, "touch_rate": 0.0, "per_request": 4.0})
    plant = Plant(parameters, asks=asks, until_ns=1100 * MS).run()
    assert plant.summary["dirty_pages"] == 4 * len([n for _, n in plant.entered])
    assert len(plant.entered) == 900


@pytest.mark.parametrize(("path", "outputs", "room"), [("moderated", 40, 10), ("paravirtual", 200, 80)])
def test_a_burst_leaves_as_its_line_has_room(path: str, outputs: int, room: int):
    """So many answers of a full frame an epoch: none is lost where the line's queue has room for a few of them.

    On a card of the guest's own they leave one behind the other, as with room for all.
    """
    driver = {"driver": {}} if path == "paravirtual" else {}
    held = {"kind": "checkpoint", "interval": "25 ms", "suspend_request": 0, "reprotection": None}
    program = {"kind": "service", "threads": 64, "answer_size": 1538, "pages_per_request": 0}
    load = {"kind": "open_requests", "to": "guest", "rate": f"{40 * outputs} /s", "gap_cv": 0, "retries": 0}
    found = []
    for queue_frames in (room, 1000):
        guest = {
            "interfaces": {"eth0": {"path": {"kind": path}}},
            "applications": {"server": program},
            "protection": held | {"memory": {"touch_rate": 0}},
        }
        data = {
            "hosts": {"host": {"pcpus": 2, "scheduler": {"kind": "credit2"}}},
            "networks": {"lan": {"queue": queue_frames * 1538}},
            "domains": {"host": driver, "guest": guest},
            "workloads": {"load": load},
            "measure": {"warm_up": "1 s", "duration": "1 s"},
        }
        record = run_model(checked(data), 1, 0, "compiled")
        asked: Any = record.whole.outcomes["workloads.load"]
        assert sum(record.drops.values()) == asked.failures == 0
        found.append((asked.latency.mean, asked.latency.min, asked.latency.max))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-2)
    # The oldest of an epoch leaves first, the youngest behind all others.
    if path == "moderated":
        assert found[0] == pytest.approx(found[1], rel=1e-4)
        assert found[0][2] - found[0][1] == pytest.approx((outputs - 1) * (25 * MS / outputs - 12_304), rel=2e-3)


def test_what_leaves_by_one_line_waits_for_no_other():
    """Answers of a byte by a fast line, beside answers of 16 ms on a slow one: hardly more than an epoch of 25 ms."""
    interfaces = {name: {"network": name, "path": {"kind": "moderated", "moderation": 0}} for name in ("slow", "fast")}
    program = {"kind": "service", "threads": 64, "demand": 0}
    guest = {
        "interfaces": interfaces,
        "applications": {"long": {**program, "answer_size": 20_000}, "short": program},
        "protection": {"kind": "checkpoint", "interval": "25 ms", "memory": {"touch_rate": 0}},
    }
    loads = {
        "long": {"kind": "open_requests", "to": "guest.long", "via": "slow", "rate": "40 /s"},
        "short": {"kind": "open_requests", "to": "guest.short", "via": "fast", "rate": "50 /s"},
    }
    data = {
        "networks": {"slow": {"rate": "10 Mbit/s"}, "fast": {}},
        "domains": {"guest": guest},
        "workloads": loads,
        "measure": {"warm_up": "100 ms", "duration": "1500 ms"},
    }
    found = run_model(checked(data), 1, 0).whole.outcomes["workloads.short"]
    assert found.latency.max < 28 * MS
