"""Schedules of Xen's sEDF worked out by hand: earliest deadline, slices and periods, extra time."""

import pytest

from tests.platform.cpu.host_lab import MS, Lab
from vftsim.errors import UsageError
from vftsim.platform.cpu.schedulers.sedf import Sedf


def test_a_later_deadline_waits_and_an_earlier_one_preempts():
    """B 10 of 30 ms from 0; A 5 of 50 from 2: its deadline 52 is later than 30.  C 2 of 10 from 4: 14, pre-empts."""
    lab = Lab(Sedf())
    lab.domain("A", period=50 * MS, slice=5 * MS, extratime=False)
    lab.domain("B", period=30 * MS, slice=10 * MS, extratime=False)
    lab.domain("C", period=10 * MS, slice=2 * MS, extratime=False)
    lab.hog("B")
    lab.hog("A", at_ms=2)
    lab.burst("C", 4, demand_ms=2)
    lab.run(29)
    assert lab.decisions() == [(0, "B"), (4, "C"), (6, "B"), (12, "A"), (17, "-")]


def test_a_wake_inside_a_period_goes_on_with_the_rest_of_the_slice():
    """5 of 20 ms: 3 ms at 0; 4 ms at 7: 2 are left of the slice, the other 2 come with the next period, at 20."""
    lab = Lab(Sedf())
    lab.domain("A", period=20 * MS, slice=5 * MS, extratime=False)
    lab.burst("A", 0, demand_ms=3)
    lab.burst("A", 7, demand_ms=4)
    lab.run(60)
    assert lab.decisions() == [(0, "A"), (3, "-"), (7, "A"), (9, "-"), (20, "A"), (22, "-")]


@pytest.mark.parametrize("wakes_ms", [20, 33])
def test_a_wake_after_the_period_begins_a_new_one(wakes_ms: int):
    """5 of 20 ms: 5 ms at 0; 8 ms at 20 or later: 5 at once, 3 when 20 ms more have passed."""
    lab = Lab(Sedf())
    lab.domain("A", period=20 * MS, slice=5 * MS, extratime=False)
    lab.burst("A", 0, demand_ms=5)
    lab.burst("A", wakes_ms, demand_ms=8)
    lab.run(80)
    again = wakes_ms + 20
    assert lab.decisions() == [
        (0, "A"),
        (5, "-"),
        (wakes_ms, "A"),
        (wakes_ms + 5, "-"),
        (again, "A"),
        (again + 3, "-"),
    ]


def test_a_slice_that_is_not_used_is_not_saved():
    """5 of 20 ms: 1 ms at 0, a hog from 19: 4 until 20... are cut short by the new period, which gives 5, not 8."""
    lab = Lab(Sedf())
    lab.domain("A", period=20 * MS, slice=5 * MS, extratime=False)
    lab.burst("A", 0, demand_ms=1)
    lab.hog("A", at_ms=19)
    lab.run(46)
    assert lab.decisions() == [(0, "A"), (1, "-"), (19, "A"), (25, "-"), (40, "A"), (45, "-")]


def test_extra_time_goes_in_pieces_by_weight():
    """A of weight 512, B of 256, best effort: who has had least by weight, in pieces of 0.5 ms.

    0: A.  0.5: B.  1: A (0.5 of 512 against 0.5 of 256).  1.5: even, B has waited longer.  2: A twice.  3: even: B.
    """
    lab = Lab(Sedf())
    lab.domain("A", weight=512)
    lab.domain("B", weight=256)
    lab.hog("A", "B")
    lab.run(6.2)
    assert lab.decisions() == [
        (0, "A"),
        (0.5, "B"),
        (1, "A"),
        (1.5, "B"),
        (2, "A"),
        (3, "B"),
        (3.5, "A"),
        (4.5, "B"),
        (5, "A"),
        (6, "B"),
    ]


def test_extra_time_that_was_slept_through_is_not_made_up_for():
    """Hogs A and B; C works for 5 ms at 100.2: no pre-emption for extra time, and a third of it from then on.

    100: both have had 50 ms; A.  100.5: B and C are even, B has waited longer; then C, then A, and so on: C's ten
    pieces begin at 101, 102.5, ..., 114.5.
    """
    lab = Lab(Sedf())
    for name in "ABC":
        lab.domain(name)
    lab.hog("A", "B")
    lab.burst("C", 100.2, demand_ms=5)
    lab.run(130)
    names = [name for time_ms, name in lab.decisions() if 100.5 <= time_ms < 105]
    assert names == ["B", "C", "A"] * 3
    assert lab.finished == [(115, "C")]


def test_a_guarantee_comes_before_extra_time_and_may_have_some_too():
    """A 2 of 10 ms and extra time, B best effort, pieces of 3 ms: A's 2 ms, then B 3, A 3, B.

    10: A's slice again, at once.  12: A has had 3 of extra time, B 5: A.  15: A 6: B.
    """
    lab = Lab(Sedf(extra_quantum=3 * MS))
    lab.domain("A", period=10 * MS, slice=2 * MS)
    lab.domain("B")
    lab.hog("A", "B")
    lab.run(16)
    assert lab.recorder.classes == [
        (0, "A", "slice"),
        (2, "B", "extra"),
        (5, "A", "extra"),
        (8, "B", "extra"),
        (10, "A", "slice"),
        (15, "B", "extra"),
    ]


def test_a_vcpu_stays_on_its_pcpu():
    """2 pCPUs, homes 0, 1, 0: A and C share pCPU 0 in turn although B leaves 1 idle from 4 ms."""
    lab = Lab(Sedf(extra_quantum=MS), pcpus=2)
    for name in "ABC":
        lab.domain(name)
    lab.hog("A", "C")
    lab.burst("B", 0, demand_ms=4)
    lab.run(20)
    assert lab.decisions(1) == [(0, "B"), (4, "-")]
    assert lab.run_ns("A") == lab.run_ns("C") == 10 * MS


def test_a_home_is_one_that_the_affinity_allows():
    """2 pCPUs: A only on 1; B, which may run anywhere, then has 0; C, too, has 0, of as many the lowest."""
    lab = Lab(Sedf(), pcpus=2)
    lab.domain("A", affinity=[1])
    lab.domain("B")
    lab.domain("C")
    lab.burst("A", 0, demand_ms=1)
    lab.burst("B", 2, demand_ms=1)
    lab.burst("C", 4, demand_ms=1)
    lab.run(6)
    assert lab.recorder.decisions == [(0, 1, "A"), (1, 1, "-"), (2, 0, "B"), (3, 0, "-"), (4, 0, "C"), (5, 0, "-")]


def test_slices_may_fill_a_pcpu_and_no_more():
    lab = Lab(Sedf())
    lab.domain("A", period=20 * MS, slice=12 * MS, extratime=False)
    lab.domain("B", period=50 * MS, slice=20 * MS, extratime=False)
    lab.hog("A", "B")
    lab.run(1000)
    assert (lab.run_ns("A"), lab.run_ns("B"), lab.idle_ns(0)) == (600 * MS, 400 * MS, 0)
    over = Lab(Sedf())
    over.domain("A", period=20 * MS, slice=12 * MS)
    over.domain("B", period=50 * MS, slice=20 * MS + 1000)
    with pytest.raises(UsageError, match="do not fit on pCPU 0"):
        over.start()


def test_a_latency_hint_grows_back_to_the_whole_period_and_no_further():
    """Hint 20 ms, slice 25 of 100: from 250, 5 of 20, 10 of 40, 20 of 80, then 25 of 100."""
    lab = Lab(Sedf())
    lab.domain("A", slice=25 * MS, latency=20 * MS, extratime=False)
    lab.hog("A", at_ms=250)
    lab.run(595)
    assert lab.decisions() == [
        (250, "A"),
        (255, "-"),
        (270, "A"),
        (280, "-"),
        (310, "A"),
        (330, "-"),
        (390, "A"),
        (415, "-"),
        (490, "A"),
        (515, "-"),
        (590, "A"),
    ]
