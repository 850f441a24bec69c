"""Schedules of the Xen schedulers worked out by hand from their rules; those of credit2 have a file of their own."""

import pytest

from tests.platform.cpu.host_lab import Lab
from vftsim.platform.cpu.schedulers.credit import Credit
from vftsim.platform.cpu.schedulers.rtds import Rtds
from vftsim.platform.cpu.schedulers.sedf import Sedf
from vftsim.spec.units import DURATION


def _credit(version):
    lab = Lab(Credit(version=version))
    for name in "ABC":
        lab.domain(name)
    lab.hog("A", "B")
    lab.burst("C", 4, 65, 92, 93, demand_ms=0.5)
    return lab


def test_credit_with_exact_debit_and_rate_limit():
    """Xen 4.13, 1 pCPU: hogs A and B, C wakes at 4, 65, 92, 93 ms for 0.5 ms; accounting at 15, 45, ... ms.

    0: A and B wake UNDER (credit 0), so both BOOST; A came first.  4: C BOOST, cannot pre-empt BOOST:
    queue B C.  10: tick: A loses the boost, pays 100, is active.  15: A alone earns 300: 200.
    30: A's slice ends (credit 0, UNDER): queue B C A; B.  Tick: B UNDER, active.
    45: 150 each: B -100+150 = 50, A 150.  60: B's slice ends (-150, still UNDER, behind A); C, BOOST, runs;
    the tick finds it running: UNDER, active.  60.5: C blocks (-5); A.
    65: C BOOST pre-empts A, which has run 4.5 ms; 65.5: B is before A in the queue.
    75: 100 each: C 90, B -195+100: OVER, A 205.  B runs on: priorities are looked at when it stops.
    92: C BOOST pre-empts B; 92.5: A (UNDER) before B (OVER).
    93: C wakes, A has run for 0.5 ms only: rate limit, A goes on to 93.5.  94: C blocks; A before B.
    """
    lab = _credit("4.13").run(120)
    assert lab.decisions() == [
        (0, "A"),
        (30, "B"),
        (60, "C"),
        (60.5, "A"),
        (65, "C"),
        (65.5, "B"),
        (92, "C"),
        (92.5, "A"),
        (93.5, "C"),
        (94, "A"),
    ]
    assert lab.counters["rate_limited"] == 1
    assert (75, "B", "OVER") in lab.recorder.priorities


def test_credit_with_debit_at_the_tick():
    """The same under Xen 3.2: whoever runs at a tick pays 100; accounting in the ticks at 30, 60, 90 ms.

    A tick comes before a slice that ends with it.  30: A has paid 300 and, alone, earns 300: 0, UNDER; queue B C A.
    60: B has paid 300 at 40, 50 and 60; 150 each make it -150, OVER, and A 150; queue C A B.  60.5: A.
    65: C BOOST pre-empts A; A is UNDER and B OVER, so A again at 65.5.  90: A has paid 300 more, and 150 each make
    both 0: UNDER.  92: C pre-empts A, which goes behind B; B.  93: no rate limit: C pre-empts B at once; then A.
    """
    lab = _credit("3.2").run(95)
    assert lab.decisions() == [
        (0, "A"),
        (30, "B"),
        (60, "C"),
        (60.5, "A"),
        (65, "C"),
        (65.5, "A"),
        (92, "C"),
        (92.5, "B"),
        (93, "C"),
        (93.5, "A"),
    ]


def test_sedf():
    """1 pCPU; A 5 of every 20 ms, B 20 of every 50 ms, both without extra time; C lives on extra time.

    0: A (deadline 20) before B (50).  5: A has had its slice; B.  20: A again (40 < 50).  25: B's last 5.
    30: slices are used up: C.  40: A (60) pre-empts C.  45: C.  50: B (100) pre-empts C.
    60: A (80 < 100).  65: B until its 20 are gone.  75: C.  80: A (100).  85: C.  100: A (120), B (150).
    """
    lab = Lab(Sedf())
    ms = DURATION.parse
    lab.domain("A", period=ms("20 ms"), slice=ms("5 ms"), extratime=False)
    lab.domain("B", period=ms("50 ms"), slice=ms("20 ms"), extratime=False)
    lab.domain("C")
    lab.hog("A", "B", "C")
    lab.run(106)
    assert lab.decisions() == [
        (0, "A"),
        (5, "B"),
        (20, "A"),
        (25, "B"),
        (30, "C"),
        (40, "A"),
        (45, "C"),
        (50, "B"),
        (60, "A"),
        (65, "B"),
        (75, "C"),
        (80, "A"),
        (85, "C"),
        (100, "A"),
        (105, "B"),
    ]


def test_rtds():
    """1 pCPU; A 3 of 10 ms, C 5 of 50 ms, B 6 of 20 ms with extra time.

    0: A (deadline 10) 3 ms.  3: B (20) 6 ms, then sinks to level 1.  9: C (50) before it.  10: A (20).
    13: C's last 4 ms.  17: B on level 1.  20: A (30); B refilled, level 0 (40).  23: B, from 29 on level 1,
    alone.  30: A (40).  33: B.  40: A (50).  43: B, refilled (60), level 1 from 49.
    50: A (60); C refilled (100).  53: C before B's level 1.  58: B.
    """
    lab = Lab(Rtds())
    ms = DURATION.parse
    lab.domain("A", period=ms("10 ms"), budget=ms("3 ms"), extratime=False)
    lab.domain("B", period=ms("20 ms"), budget=ms("6 ms"), extratime=True)
    lab.domain("C", period=ms("50 ms"), budget=ms("5 ms"), extratime=False)
    lab.hog("A", "B", "C")
    lab.run(59)
    assert lab.decisions() == [
        (0, "A"),
        (3, "B"),
        (9, "C"),
        (10, "A"),
        (13, "C"),
        (17, "B"),
        (20, "A"),
        (23, "B"),
        (30, "A"),
        (33, "B"),
        (40, "A"),
        (43, "B"),
        (50, "A"),
        (53, "C"),
        (58, "B"),
    ]


def test_rtds_lets_one_that_runs_go_on_at_the_end_of_a_period():
    """1 pCPU, two with 4 of 10 ms and extra time: A and B in turn, and an end of all periods pre-empts nobody.

    0: A.  4: B.  8: A on level 1.  10: both are refilled, and A goes on, as B is no more urgent; its slice of 4 ms
    ends at 12 (Xen, ``repl_timer_handler`` and ``rt_schedule``).  12: B, as urgent, goes first.  16: A's last 2 ms.
    18: B on level 1.  20: B goes on.  22: A.  26: B's last 2 ms.  28: A on level 1, and so on.
    """
    lab = Lab(Rtds())
    for name in "AB":
        lab.domain(name)
    lab.hog("A", "B")
    lab.run(49)
    instants = (0, 4, 8, 12, 16, 18, 22, 26, 28, 32, 36, 38, 42, 46, 48)
    assert lab.decisions() == [(instant, "AB"[n % 2]) for n, instant in enumerate(instants)]


def test_rtds_one_that_is_out_of_budget_makes_a_pcpu_choose_anew():
    """1 pCPU: A 2 of 10 ms, B and C 5 of 20 ms, without extra time.

    2: A is out of budget and B comes first.  A looks for a pCPU all the same (``rt_context_saved``), as its deadline is
    before B's: that chooses anew, and C, as urgent as B, goes first.  7: B; C's deadline is no earlier than B's.
    10: A is refilled (20), which is not before B's.  12: A.
    """
    lab = Lab(Rtds())
    ms = DURATION.parse
    lab.domain("A", budget=ms("2 ms"), extratime=False)
    for name in "BC":
        lab.domain(name, period=ms("20 ms"), budget=ms("5 ms"), extratime=False)
    lab.hog("A", "B", "C")
    lab.run(20)
    assert lab.decisions() == [(0, "A"), (2, "B"), (2, "C"), (7, "B"), (12, "A"), (14, "-")]


def test_rtds_those_refilled_together_begin_in_turn():
    """1 pCPU: A 7 and B 4 of 20 ms, B from 1 ms on: A is refilled first, then B, and B is the first to look for a pCPU.

    ``repl_timer_handler`` queues them in the order of its list, and plans the next refills from the last to the first.
    """
    lab = Lab(Rtds())
    ms = DURATION.parse
    lab.domain("A", period=ms("20 ms"), budget=ms("7 ms"), extratime=False)
    lab.domain("B", period=ms("20 ms"), budget=ms("4 ms"), extratime=False)
    lab.hog("A")
    lab.hog("B", at_ms=1)
    lab.run(70)
    first, second, third = [(0, "A"), (7, "B"), (11, "-")], [(20, "A"), (27, "B"), (31, "-")], [(40, "B"), (44, "A")]
    assert lab.decisions() == [*first, *second, *third, (51, "-"), (60, "A"), (67, "B")]


def test_rtds_one_that_waits_preempts_when_the_one_that_runs_has_a_later_deadline():
    """1 pCPU: B 10 of 10 ms, A 5 of 25 from 1 ms on.  20: B's next deadline is 30, A's is 25.  25: 30 is before 50."""
    lab = Lab(Rtds())
    ms = DURATION.parse
    lab.domain("A", period=ms("25 ms"), budget=ms("5 ms"), extratime=False)
    lab.domain("B", budget=ms("10 ms"), extratime=False)
    lab.hog("B")
    lab.hog("A", at_ms=1)
    lab.run(30)
    assert lab.decisions() == [(0, "B"), (20, "A"), (25, "B")]


def test_rtds_shares_of_equal_vcpus():
    """Three on 2 pCPUs: a period has 8 ms for one and 6 for the others, by turns.

    That the same one had it each time gave it 80 % of a pCPU, and the others 60; a model of the code's lists and timers
    has 65, 70 and 65 in a second.
    """
    lab = Lab(Rtds(), pcpus=2)
    names = "ABC"
    for name in names:
        lab.domain(name)
    lab.hog(*names)
    lab.run(1000)
    assert [lab.percent(name) for name in names] == pytest.approx([65, 70, 65], abs=0.5)
