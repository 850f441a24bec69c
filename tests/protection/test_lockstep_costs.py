"""What recording costs in counted events: each price by hand, nothing free for a guest without packets."""

import pytest
from pydantic import ValidationError

from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.records import domains
from vftsim.platform.io.packet import ports
from vftsim.platform.protection._lockstep_costs import recordings
from vftsim.platform.protection._lockstep_parameters import PrimaryCostSpec

from .pair import MS, QUIET, Pair, S
from .test_cpu_bound import CRASH, Process

US = 1_000
FREE = {
    "entry": 0,
    "kibibyte": 0,
    "timer": 0,
    "output": 0,
    "clock_read": 0,
    "disk_operation": 0,
    "batch": 0,
    "context_switch": 0,
    "exit": 0,
}
UNTIMED = {**QUIET, "output_entry": 100, "event_entry": 10}


def priced(log=UNTIMED, **prices):
    return Pair(log=log, cost={**FREE, "form": "counted", **prices})


def recording(pair):
    return pair.engine.rows(recordings)[pair.lab.guard]


def submit(pair, demand_ns, place):
    done = pair.engine.number(pair.lab.on_end)
    pair.call(jobs.submit, pair.engine.rows(domains)[1], demand_ns, done, place, 0)


def test_an_idle_guest_pays_for_its_timer_interrupts():
    """1,000 a second at 20 us: 2 % of a CPU, less those of the last 10 ms."""
    pair = priced({**QUIET, "timer_rate": 1000.0}, timer=20 * US)
    pair.run(1 * S + MS)
    assert pair.run_ns() == 1000 * 20 * US


def test_a_computing_guest_pays_for_its_timer_interrupts():
    """Work of 98 ms and of n x 10 us for the n interrupts settled by then: at every 10 ms, ten of them."""
    pair = priced({**QUIET, "timer_rate": 1000.0}, timer=10 * US)
    pair.submit(98 * MS)
    pair.run(1 * S)
    assert pair.finished == [98 * MS + 9 * 10 * 10 * US]


def test_clock_reads_come_with_cpu_time():
    """50,000 for a second of CPU time; work of 0.2 s and the 3 us of each read, which are CPU time too."""
    pair = priced({**UNTIMED, "clock_read_rate": 50_000.0}, clock_read=3 * US)
    pair.submit(200 * MS)
    pair.run(1 * S)
    # 50,000 t reads in t seconds of CPU time, of which t = 0.2 + 0.15 t is the reads' own.
    seconds = 0.2 / (1 - 0.15)
    assert recording(pair).clock_reads == pytest.approx(50_000 * seconds, abs=1)
    assert pair.run_ns() == pytest.approx(seconds * S, rel=1e-3)
    assert pair.channel.sent_bytes == recording(pair).clock_reads * 10


def test_entries_written_while_the_channel_is_busy_join_a_batch():
    pair = priced(batch=7 * US)
    for number in range(3):
        pair.at(1 * MS, pair.output, number)
    pair.at(3 * MS, pair.output, 3)
    pair.run(50 * MS)
    assert recording(pair).outputs == 4
    assert recording(pair).batches == 2
    assert pair.run_ns() == 2 * 7 * US


def test_a_packet_pays_for_its_exits_and_for_what_is_due():
    """Two register accesses in and three out, 4 us each; the output's are paid with the next packet."""
    pair = priced(entry=10 * US, kibibyte=2 * US, exit=4 * US)
    port = pair.engine.rows(ports)[1]
    port.exits_in, port.exits_out = 2, 3
    assert pair.input(512) == 10 * US + 1 * US + 2 * 4 * US
    pair.output(1)
    assert pair.input(1024) == 10 * US + 2 * US + 5 * 4 * US
    assert (recording(pair).packets, recording(pair).exits) == (2, 7)


def test_switches_between_processes_are_counted():
    """Three jobs of two processes in turn, then one that goes on with the last: three switches."""
    pair = priced(context_switch=50 * US)
    for time_ns, place in ((1 * MS, 1), (2 * MS, 2), (3 * MS, 1), (4 * MS, 1)):
        pair.at(time_ns, lambda vcpu: submit(pair, 200 * US, vcpu), place)
    pair.run(30 * MS)
    assert recording(pair).switches == 3
    assert pair.run_ns() == 4 * 200 * US + 3 * 50 * US


def test_prices_of_nothing_cost_nothing():
    finished = []
    for cost in ({**FREE, "form": "counted"}, {**FREE, "execution": 1.0}):
        pair = Pair(cost=cost)
        pair.submit(50 * MS)
        for i in range(20):
            pair.at(i * 997_000, pair.input, 300)
            pair.at(i * 997_000 + 400_000, pair.output, i)
        pair.run(1 * S)
        finished.append((pair.finished, pair.seen, pair.run_ns()))
    assert finished[0] == finished[1]


def test_the_secondary_has_its_own_price_of_data():
    """No work: an entry of 2 KiB is replayed in its own 3 us and 2 x 5 us, after it has arrived."""
    pair = Pair(log=QUIET, cost=FREE, channel={"latency": 75_000}, secondary={"entry_cost": 3 * US, "kibibyte": 5 * US})
    pair.at(1 * MS, pair.input, 2048)
    pair.run(1 * MS + 1)
    assert pair.pair.secondary.lag_ns == 2048 * 8 + 75_000 + 13 * US


def test_the_secondary_does_not_pay_for_recording():
    """Timer interrupts at 50 us: the primary computes 0.95 s a second, and the secondary replays as much, not more."""
    for price_ns in (0, 50 * US):
        pair = priced({**QUIET, "timer_rate": 1000.0}, timer=price_ns)
        pair.submit(10 * S)
        pair.run(2 * S)
        pair.lag_ns()
        replayed_ns = int(pair.pair.secondary.need_ns) - 2000 * 5 * US
        assert replayed_ns == pytest.approx(2 * S * (1 - price_ns / MS), rel=0.01)
        assert pair.run_ns() == 2 * S


def test_a_price_stops_with_protection():
    pair = priced({**QUIET, "timer_rate": 1000.0}, timer=20 * US)
    pair.lose_channel_at(105 * MS)
    pair.run(20 * S)
    spent_ns = pair.run_ns()
    pair.run(21 * S)
    assert pair.run_ns() == spent_ns > 0


def test_the_form_follows_from_what_is_given():
    assert PrimaryCostSpec().is_counted
    assert PrimaryCostSpec().slowdown == (1.0, 2.0)
    assert PrimaryCostSpec(exit=8 * US, plain_exit=4 * US).slowdown == (1.0, 3.0)
    assert not PrimaryCostSpec(execution=1.2).is_counted
    assert PrimaryCostSpec(exits=9.0).slowdown == (1.0, 9.0)
    assert PrimaryCostSpec(form="factors").slowdown == (1.0, 1.0)
    with pytest.raises(ValidationError, match="belong to the form 'factors'"):
        PrimaryCostSpec(form="counted", execution=1.2)


COUNTED = {"kind": "lockstep", "log": {"clock_read_rate": 1000.0}, "cost": {"context_switch": 5 * US}}


def test_a_computing_process_is_slowed_by_default():
    """Bursts of 4 ms between pauses of 6: nothing but timer interrupts, at 1 us, a thousandth of the CPU."""
    plain, recorded = (Process(each).run(1000)[2] for each in ({"kind": "none"}, {"kind": "lockstep"}))
    assert recorded - plain == pytest.approx(1000 * US / MS, rel=0.03)


@pytest.mark.slow
def test_both_engines_count_alike():
    plain, compiled = (Process(COUNTED, (CRASH,), engine).run(400) for engine in ("simpy", "compiled"))
    assert plain == compiled
