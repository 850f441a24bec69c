"""Schedules of Xen's credit2 worked out by hand from the rules of its code.

Times and credits in ms; everyone begins with 10 of credit.  A weight that is the highest burns 1 a ms.
"""

import pytest

from tests.platform.cpu.host_lab import MS, Lab
from vftsim.platform.cpu.schedulers.credit2 import Credit2


def test_two_weights_take_turns_of_up_to_10_ms():
    """1 pCPU, A of weight 512, B of 256, which burns 2 a ms.

    0: A until its credit is gone, at 10: nobody waited when its slice was worked out.  10: B has more: until its own
    is gone, 5 ms.  15: both have 0, which is not more: B goes on; credit for both, 10 each, no lead: 0.5 ms.
    15.5: B 9, A 10: A, 10 ms.  25.5: A 0, B 9: B, 4.5 ms.  30: both 0: B goes on with new credit, 0.5 ms.  30.5: A.
    """
    lab = Lab(Credit2())
    lab.domain("A", weight=512)
    lab.domain("B", weight=256)
    lab.hog("A", "B")
    lab.run(31.5)
    assert lab.decisions() == [(0, "A"), (10, "B"), (15.5, "A"), (25.5, "B"), (30.5, "A")]
    assert lab.counters == {"resets": 2, "rate_limited": 0}


def test_three_on_two_pcpus_are_not_even():
    """Equal hogs A, B, C from 0 with homes 0, 1, 0.

    10: A 0, C 10: C takes pCPU 0.  B 0, A 0: B goes on; 10 more for all, C keeps 10.5.  10.5: B 9.5; A has 10, just the
    0.5 more that it needs from elsewhere, and gets 0.05.  20: C 0.5, B 9.5: B, with 9.55, until 29.55.
    20.5: A 0.05; C has 0.5 but would need 0.55: A goes on for 0.5.  21: A -0.45: C, for the rate limit of 1.
    22: C -0.45, A the same: C goes on; 10 more for all, B keeps 10.5.  22.5: C 9.05, A 9.55: A until 32.05.
    29.55: B 2.95, C 9.05: C, with 9.1, until 38.65.  32.05: A 0, B 2.95: B, with 3.  35.05: B 0, A 0: B goes on; more
    for all, C keeps 10.5.  35.55: B 9.5, A 10: A.  38.65: C 6.9, B 9.5: B.
    """
    lab = Lab(Credit2(), pcpus=2)
    for name in "ABC":
        lab.domain(name)
    lab.hog(*"ABC")
    lab.run(40)
    assert lab.recorder.decisions == [
        (0, 0, "A"),
        (0, 1, "B"),
        (10, 0, "C"),
        (10.5, 1, "A"),
        (20, 0, "B"),
        (21, 1, "C"),
        (22.5, 1, "A"),
        (29.55, 0, "C"),
        (32.05, 1, "B"),
        (35.55, 1, "A"),
        (38.65, 0, "B"),
    ]


def test_a_cap_is_overdrawn_by_the_least_slice_and_pays_for_it():
    """Cap 10: a budget of 1 in each 10.  Jobs of 0.5, 0.4 and 3 at 1.48, 2.33 and 2.86 leave 0.1 for the third.

    It runs for the rate limit of 1 nevertheless, 0.9 too much; 10 and 20 add 1 each time, 0.1 is left of it.
    """
    lab = Lab(Credit2())
    lab.domain("A", cap=10)
    lab.burst("A", 1.48, demand_ms=0.5)
    lab.burst("A", 2.33, demand_ms=0.4)
    lab.burst("A", 2.86, demand_ms=3)
    lab.run(40)
    assert lab.decisions() == [
        (1.48, "A"),
        (1.98, "-"),
        (2.33, "A"),
        (2.73, "-"),
        (2.86, "A"),
        (3.86, "-"),
        (10, "A"),
        (11, "-"),
        (20, "A"),
        (21, "-"),
    ]


def test_two_vcpus_draw_on_one_cap():
    """Cap 25: a budget of 2.5 in each 10, portions of 1.25; A0 and A1 on 1 pCPU.

    0: A0, which draws again at 1.25, before A1 is looked at.  2.5: nothing left for A0, nor for A1: both parked.
    10: the latest parked first: A1 has more credit anyway.  12.5: parked, A1 before A0.
    20: A0 comes first; both have 7.5: no lead, 1.  21: A0 6.5: A1 draws the other 1.25; A0 gives 0.25 back.
    22.25: A1 draws those 0.25; A0, which has more credit, finds nothing: parked.  22.75: A1 has overdrawn 0.25.
    """
    lab = Lab(Credit2())
    lab.domain("A", vcpus=2, cap=25)
    lab.hog("A")
    lab.run(29)
    assert lab.decisions() == [
        (0, "A0"),
        (2.5, "-"),
        (10, "A1"),
        (12.5, "-"),
        (20, "A0"),
        (21, "A1"),
        (22.75, "-"),
    ]


def test_budget_that_is_given_back_lets_a_parked_vcpu_go_on():
    """Cap 20 on 2 pCPUs: a budget of 2, portions of 1.  A0 works for 0.4 at 0 and 9, A1 from 0 on.

    0: both draw 1.  0.4: A0 gives 0.6 back.  1: A1 draws them; 1.6: nothing left, parked.  10: A1 again, 2 ms.
    """
    lab = Lab(Credit2(), pcpus=2)
    lab.domain("A", vcpus=2, cap=20)
    lab.work("A", 0, round(0.4 * MS), "interrupt", vcpu=0)
    lab.work("A", 0, 10**12, "interrupt", vcpu=1)
    lab.run(15)
    assert lab.decisions(0) == [(0, "A0"), (0.4, "-")]
    assert lab.decisions(1) == [(0, "A1"), (1.6, "-"), (10, "A1"), (12, "-")]


def test_a_parked_vcpu_takes_up_what_its_brother_gives_back():
    """Cap 20 on 2 pCPUs, portions of 1: A0 works for 0.9 from 0.5, A1 from 0.

    0: A1 draws 1; 0.5: A0 draws 1.  1: nothing is left for A1: parked.  1.4: A0 ends and gives 0.1 back:
    A1 goes on at once, for the rate limit of 1, and is 0.9 over.  10: 1.1 left, drawn in 1 and 0.1 (0.5 at least).
    """
    lab = Lab(Credit2(), pcpus=2)
    lab.domain("A", vcpus=2, cap=20)
    lab.work("A", 0, 10**12, "interrupt", vcpu=1)
    lab.work("A", 0.5, round(0.9 * MS), "interrupt", vcpu=0)
    lab.run(15)
    assert lab.decisions(0) == [(0.5, "A0"), (1.4, "-")]
    assert lab.decisions(1) == [(0, "A1"), (1, "-"), (1.4, "A1"), (2.4, "-"), (10, "A1"), (11.5, "-")]


def test_who_has_never_run_belongs_to_its_home():
    """1 pCPU: C 0.05 at 0; hog A and B (1) at 0.1; C (1) at 0.64; D (1) at 1.2.

    1.2: D asks; A has been on for more than 0.95 and has 8.9.  B (10) came before D (10) and C (9.95).
    """
    lab = Lab(Credit2())
    for name in "ABCD":
        lab.domain(name)
    lab.burst("C", 0, demand_ms=0.05)
    lab.hog("A", at_ms=0.1)
    lab.burst("B", 0.1, demand_ms=1)
    lab.burst("C", 0.64, demand_ms=1)
    lab.burst("D", 1.2, demand_ms=1)
    lab.run(8)
    assert lab.decisions() == [
        (0, "C"),
        (0.05, "-"),
        (0.1, "A"),
        (1.2, "B"),
        (2.2, "D"),
        (3.2, "C"),
        (4.2, "A"),
    ]


def test_a_woken_vcpu_asks_its_own_pcpu_before_that_of_least_credit():
    """2 pCPUs: hogs A (home 0) from 2 and B (home 1) from 0; C (home 0) works for 1 at 5.

    5: C has 3 more than A, on its own pCPU: A goes, though B has less.  A has 1.5 more than B, beyond the resistance.
    """
    lab = Lab(Credit2(), pcpus=2)
    for name in "ABC":
        lab.domain(name)
    lab.hog("A", at_ms=2)
    lab.hog("B")
    lab.burst("C", 5, demand_ms=1)
    lab.run(9)
    assert lab.recorder.decisions == [(0, 1, "B"), (2, 0, "A"), (5, 0, "C"), (5, 1, "A"), (6, 0, "B")]


@pytest.mark.parametrize(("wakes_ms", "runs_ms"), [(0.95, 10), (0.96, 1.46), (1.0, 1.0)])
def test_the_tolerance_is_for_who_is_asked_and_not_for_the_choice(wakes_ms: float, runs_ms: float):
    """Hog A from 0; B wakes with more credit.  Up to 0.95 A is not asked and has its 10; then it is, but goes on.

    It is within its 1 until then, and gets a whole slice again: the least one, 0.5, as B has more.
    """
    lab = Lab(Credit2())
    lab.domain("A")
    lab.domain("B")
    lab.hog("A")
    lab.hog("B", at_ms=wakes_ms)
    lab.run(11)
    assert lab.decisions()[:2] == [(0, "A"), (runs_ms, "B")]
    assert lab.counters["rate_limited"] == (wakes_ms == 0.96)


def test_without_a_rate_limit_more_credit_preempts_at_once():
    """Hog A from 0, B wakes at 0.2 with 10 against 9.8: A has 0.2 less, B runs; its slice is the least, 0.5."""
    lab = Lab(Credit2(rate_limit=0))
    lab.domain("A")
    lab.domain("B")
    lab.hog("A")
    lab.burst("B", 0.2, demand_ms=3)
    lab.run(4)
    assert lab.decisions()[:2] == [(0, "A"), (0.2, "B")]
    assert lab.counters["rate_limited"] == 0


def test_an_idle_pcpu_is_sought_upwards_from_the_own_one():
    """4 pCPUs, hogs B on 1 and C on 2; F of home 1: the next idle one upwards is 3; G of home 2: round to 0."""
    lab = Lab(Credit2(), pcpus=4)
    for name in "ABCDEFG":
        lab.domain(name)
    lab.hog("B", "C", at_ms=0)
    lab.hog("F", at_ms=0.4)
    lab.hog("G", at_ms=0.5)
    lab.run(1)
    assert lab.recorder.decisions == [(0, 1, "B"), (0, 2, "C"), (0.4, 3, "F"), (0.5, 0, "G")]


def test_with_equal_credit_the_own_pcpu_is_not_asked():
    """B works for 2 from 0, hog A from 2; at 4 B wakes with 8, A has 8 too: A keeps its slice, until 12."""
    lab = Lab(Credit2())
    lab.domain("A")
    lab.domain("B")
    lab.burst("B", 0, demand_ms=2)
    lab.hog("A", at_ms=2)
    lab.burst("B", 4, demand_ms=1)
    lab.run(12.5)
    assert lab.decisions() == [(0, "B"), (2, "A"), (12, "B")]


def test_one_who_sank_to_the_floor_gets_twice_the_credit():
    """Weights 50, 50 and 1000, the last asleep: A and C burn 20 a ms, so that the rate limit of 1 sinks them to -10.

    2: both at -10: C goes on; 20 for everybody, so 10 each: 0.5.  2.5: C 0, A 10: A.
    3.5: A -10, C 0: C; 10 for everybody.
    """
    lab = Lab(Credit2())
    lab.domain("A", weight=50)
    lab.domain("B", weight=1000)
    lab.domain("C", weight=50)
    lab.hog("A", "C")
    lab.run(3)
    assert lab.counters["resets"] == 1
    lab.run(4)
    assert lab.counters["resets"] == 2
    assert lab.decisions() == [(0, "A"), (1, "C"), (2.5, "A"), (3.5, "C")]


def test_of_equal_leads_the_lower_pcpu_is_asked():
    """3 pCPUs, hogs A (on 0 from 4.5), B and C (from 0); D (home 0) wakes at 5: A is new there, B and C have 5 each."""
    lab = Lab(Credit2(), pcpus=3)
    for name in "ABCD":
        lab.domain(name)
    lab.hog("B", "C")
    lab.hog("A", at_ms=4.5)
    lab.burst("D", 5, demand_ms=1)
    lab.run(5.5)
    assert lab.running() == ["A", "D", "C"]
