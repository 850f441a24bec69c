"""Schedules of the guests' process schedulers, worked out by hand from their rules."""

import random

import pytest

from tests.platform.cpu.guest_lab import MS, GuestLab, on_begin, on_forget, on_freeze, on_thaw
from vftsim.platform.cpu.guest_parameters import guest_schedulers
from vftsim.platform.cpu.guest_schedulers.cfs import CfsGuest
from vftsim.platform.cpu.guest_schedulers.eevdf import EevdfGuest
from vftsim.platform.cpu.guest_schedulers.o1 import O1Guest, o1_processes, slice_of
from vftsim.platform.cpu.guest_schedulers.round_robin import RoundRobinGuest
from vftsim.platform.cpu.processes import processes

KINDS = sorted(guest_schedulers())
RESTED = {"table": o1_processes, "sleep_ns": 1000 * MS}


def lab(spec, **nice):
    made = GuestLab(spec)
    for name, level in nice.items():
        made.process(name, level)
    return made


# O(1)


def test_o1_the_longer_wait_goes_first_in_the_next_round():
    # A: 0-100, then expired at 125.  B has waited 100 ms, which an interrupt's wake-up lets count: 124, so
    # after its own slice (100-200) it stands before A when the arrays swap, and ends first.
    made = lab(O1Guest(), A=0, B=0)
    made.job("A", 150, 0)
    made.job("B", 150, 0)
    assert made.run(1000) == [(250, "B"), (300, "A")]


def test_o1_slices_by_nice():
    made = lab(O1Guest(), A=0, B=19)
    made.job("A", 150, 0)
    made.job("B", 8, 0)
    # A 0-100, B 100-105, A 105-155, B 155-158.
    assert made.run(1000) == [(155, "A"), (158, "B")]


@pytest.mark.parametrize(("nice", "slice_ms"), [(-20, 800), (-1, 420), (0, 100), (10, 50), (19, 5)])
def test_o1_length_of_a_slice(nice, slice_ms):
    assert slice_of(100 * MS, nice) == slice_ms * MS


def test_o1_short_sleep_does_not_preempt_and_a_long_one_does():
    made = lab(O1Guest(), hog=0, short=0, long=0)
    made.job("hog", 2000, 0)
    made.job("short", 10, 50)
    made.job("long", 10, 1050)
    # At 50 both are at 125: short waits for the end of the hog's slice at 100.  At 1050 the sleep of more than 799 ms
    # makes 118, which pre-empts.
    assert made.run(3000) == [(110, "short"), (1060, "long"), (2020, "hog")]


def test_o1_interactive_equals_take_turns_within_their_slices():
    made = lab(O1Guest(), P=0, Q=0)
    made.job("P", 200, 900)
    made.job("Q", 200, 900)
    # Both 118 with bonus 7: turns of 40 ms, then the 60 ms that are left of each slice, and again.
    assert made.run(2000) == [(1240, "P"), (1300, "Q")]


def test_o1_a_pair_that_sleeps_on_each_other_overtakes_a_busy_worker():
    made = GuestLab(O1Guest())
    for name in ("worker", "timer", "database"):
        made.process(name, **RESTED)
    made.job("worker", 1000, 10)
    then = 0
    for name in ("database", "timer") * 8:
        then = made.job(name, 1, then=then)
    made.at(20, on_begin, then)
    ends = [time for time, name in made.run(300) if name != "worker"]
    # All at 115: turns of 10 ms with the worker, until its slice ends at 118 ms and it gets 116; then they run alone.
    assert ends == [31, 42, 53, 64, 75, 86, 97, 108, 119, 120, 121, 122, 123, 124, 125, 126]


def test_o1_a_pair_whose_sleeps_are_disk_waits_stays_behind():
    made = GuestLab(O1Guest())
    made.process("worker", **RESTED)
    for name in ("timer", "database"):
        made.engine.rows(processes)[made.process(name, **RESTED)].sleeps_on_disk = True
        made.engine.rows(o1_processes)[made.processes[name]].sleep_ns = 799 * MS
    made.job("worker", 1000, 10)
    made.at(20, on_begin, made.job("timer", 1, then=made.job("database", 1)))
    # 118 against the worker's 115 to 118: the wait does not count as sleep either.
    assert made.run(300) == []


@pytest.mark.parametrize("nice", [0, 11, 12, 19])
def test_o1_no_sleep_counts_for_more_than_a_second(nice):
    """From nice 12 on a long sleep lifts to more than MAX_SLEEP_AVG, at which recalc_task_prio cuts it: bonus 10."""
    made = lab(O1Guest(), A=nice)
    made.job("A", 10, 1300)
    made.run(1301)
    ceiling = 5 + (nice + 20) // 4 - 3 + 1
    assert made.engine.rows(o1_processes)[made.processes["A"]].sleep_ns == min(100 * ceiling - 1, 1000) * MS


def test_o1_wait_after_a_wake_up_by_a_process_counts_three_tenths():
    made = lab(O1Guest(), hog=0, waker=0, other=0, low=5)
    made.job("hog", 1000, 0)
    made.job("waker", 1, 10, then=made.job("low", 200))
    made.job("other", 1000, 11)
    made.run(205)
    slept = {name: made.engine.rows(o1_processes)[row].sleep_ns / MS for name, row in made.processes.items()}
    # The hog runs to 100, the waker to 101 (it has slept 10 and waited 90), the other to 201 (slept 11, waited 90, ran
    # 100 at bonus 1).  Low, of worse nice, slept 101 ms, waited 100 ms and runs: 38 / 128 of the wait count.
    assert slept == {"hog": 0, "waker": 99, "other": 1, "low": 101 + 100 * 38 / 128}


def test_o1_expired_array_that_starves_is_served():
    made = lab(O1Guest(), hog=0)
    made.process("worker", **RESTED)
    made.job("hog", 50, 0)
    made.job("worker", 5000, 10)
    # The worker's slices end at 110, 210 ...; it is interactive until about 2.4 s.  At 2210 more than 1 s for each of
    # two runnable processes has passed since the first slice end: it expires, and the hog does its other 40 ms.
    assert made.run(3000) == [(2250, "hog")]


# CFS


def test_cfs_equals_halve_the_latency():
    made = lab(CfsGuest(), A=0, B=0)
    made.job("A", 6, 0)
    made.job("B", 6, 0)
    assert made.run(100) == [(9, "A"), (12, "B")]


def test_cfs_sleeper_preempts_with_half_a_latency_of_credit():
    made = lab(CfsGuest(), A=0, S=0)
    made.job("A", 30, 0)
    made.job("S", 2, 20)
    made.job("S", 5, 24)
    # At 20: S is placed at 20 - 3 = 17, 3 behind: 20-22.  At 24 (A at 22) it has 19, again 3 behind: 24-27; both at 22,
    # A has queued first: 27-30; S 30-32; A does its last 5.
    assert made.run(100) == [(22, "S"), (32, "S"), (37, "A")]


def test_cfs_lead_within_the_wakeup_granularity_does_not_preempt():
    made = lab(CfsGuest(wakeup_granularity=4 * MS), A=0, S=0)
    made.job("A", 30, 0)
    made.job("S", 2, 20)
    made.job("S", 2, 23)
    # At 20 S is 3 behind, which is not 4, but A has had its 3 ms long ago and gives way: 20-22.  At 23 (A at 21) S has
    # 19 and A's turn of 3 ms goes on until it is 3 ahead of S: to 24 at virtual 22.
    assert made.run(100)[:2] == [(22, "S"), (26, "S")]


def test_cfs_shares_follow_the_weights():
    made = lab(CfsGuest(), A=0, B=5)
    made.job("A", 100, 0)
    made.job("B", 1000, 0)
    (end, _), *_ = made.run(200)
    assert end == pytest.approx(100 * (1024 + 335) / 1024, abs=6)


# EEVDF


def test_eevdf_equals_alternate_by_slices():
    made = lab(EevdfGuest(), A=0, B=0)
    made.job("A", 3, 0)
    made.job("B", 3, 0)
    assert made.run(100) == [(5.25, "A"), (6, "B")]


def test_eevdf_newcomer_without_lag_waits_for_the_earlier_deadline():
    made = lab(EevdfGuest(), A=0, S=0)
    made.job("A", 100, 0)
    made.job("S", 0.5, 10)
    # At 10 the slices of A are at 10.5, S gets 10.75: A runs to 10.5.
    assert made.run(50) == [(11, "S")]


@pytest.mark.parametrize(("parity", "end"), [(True, 1.25), (False, 0.6)])
def test_eevdf_slice_once_begun_is_run_to_its_end(parity, end):
    made = lab(EevdfGuest(run_to_parity=parity), A=0, S=-5)
    made.job("A", 100, 0)
    made.job("S", 0.5, 0.1)
    # S is heavy: its deadline is 0.1 + 0.246, before A's 0.75.
    assert made.run(50) == [(end, "S")]


def test_eevdf_shares_follow_the_weights():
    made = lab(EevdfGuest(), A=0, B=5)
    made.job("A", 100, 0)
    made.job("B", 1000, 0)
    (end, _), *_ = made.run(200)
    assert end == pytest.approx(100 * (1024 + 335) / 1024, abs=3)


# All of them


def test_round_robin_knows_no_processes():
    ends = []
    for names in ({"A": 0, "B": 0}, {}):
        made = lab(RoundRobinGuest(), **names)
        made.job("A", 150, 0)
        made.job("A", 50, 1)
        made.job("B", 120, 2)
        ends.append(made.run(1000))
    assert ends[0] == ends[1] == [(150, "A"), (300, "A"), (320, "B")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "round_robin"])
def test_a_process_does_one_job_after_the_other(kind):
    made = GuestLab(guest_schedulers()[kind](), vcpu_count=2)
    made.process("A")
    made.job("A", 4, 0)
    made.job("A", 4, 1)
    made.job("other", 3, 1)
    assert sorted(made.run(100)) == [(4, "A"), (4, "other"), (8, "A")]


@pytest.mark.parametrize("kind", KINDS)
def test_interrupts_go_before_and_take_nothing_from_the_job(kind):
    made = lab(guest_schedulers()[kind](), A=0)
    made.job("A", 4, 0)
    made.job("irq", 1, 2)
    assert made.run(100) == [(3, "irq"), (5, "A")]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_frozen_goes_on_and_what_was_forgotten_does_not(kind):
    made = lab(guest_schedulers()[kind](), A=0, B=0)
    made.job("A", 4, 0)
    made.at(1, on_freeze, made.domain)
    made.at(11, on_thaw, made.domain)
    made.job("A", 1, 2)
    made.job("B", 5, 20)
    made.job("A", 5, 20)
    made.at(21, on_forget, made.domain)
    made.job("A", 2, 30)
    made.job("none", 2, 40)
    assert made.run(100) == [(14, "A"), (15, "A"), (32, "A"), (42, "none")]


def scripted(kind, vcpu_count, seed, engine):
    draw = random.Random(seed)
    made = GuestLab(guest_schedulers()[kind](), vcpu_count, engine)
    names = [f"p{number}" for number in range(6)]
    for name in names:
        made.process(name, draw.choice((0, 0, 0, 5, -3)))
    demand_ms, jobs = 0.0, 0
    for _ in range(150):
        then = 0
        for name in draw.choices([*names, "irq", "none"], k=draw.randint(1, 4)):
            length = draw.expovariate(1 / 8)
            demand_ms += length
            jobs += 1
            then = made.job(name, length, then=then)
        made.at(draw.uniform(0, 2500), on_begin, then)
    made.at(500, on_freeze, made.domain)
    made.at(700, on_thaw, made.domain)
    return made.run(20_000), jobs, demand_ms


@pytest.mark.parametrize("vcpu_count", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_all_jobs_end_and_the_cpu_does_not_idle_beside_them(kind, vcpu_count):
    ends, jobs, demand_ms = scripted(kind, vcpu_count, 7, "simpy")
    assert len(ends) == jobs
    if vcpu_count == 1:
        # There is more work than time up to the last arrival: after the first, only the freeze leaves the CPU idle.
        assert ends[-1][0] == pytest.approx(demand_ms + 200, abs=60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_give_the_same_schedule(kind):
    for vcpu_count in (1, 3):
        assert scripted(kind, vcpu_count, 11, "simpy") == scripted(kind, vcpu_count, 11, "compiled")
