"""Reservations, limits, absolute shares and budgets, over ten seconds."""

import itertools

import pytest

from tests.platform.cpu.host_lab import HOG_NS, MS, Lab
from vftsim.errors import UsageError
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.schedulers.cfs import Cfs
from vftsim.platform.cpu.schedulers.credit import Credit
from vftsim.platform.cpu.schedulers.credit2 import Credit2
from vftsim.platform.cpu.schedulers.esxi import Esxi
from vftsim.platform.cpu.schedulers.rtds import Rtds
from vftsim.platform.cpu.schedulers.sedf import Sedf
from vftsim.platform.cpu.schedulers.zvm import Zvm


def _percents(spec, pcpus=1, vcpus=1, **domains):
    lab = Lab(spec, pcpus)
    for name, parameters in domains.items():
        lab.domain(name, vcpus, **parameters)
    lab.hog(*domains)
    lab.run(10_000)
    return {name: lab.percent(name) for name in domains}


def test_reservation_is_kept_against_larger_shares():
    """500 of 3500 shares would be 14 %; reserved are 60 %.  The rest goes 2:1."""
    got = _percents(Esxi(), a={"shares": 500, "reservation": 60}, b={"shares": 2000}, c={"shares": 1000})
    assert got == pytest.approx({"a": 60, "b": 26.7, "c": 13.3}, abs=1)


@pytest.mark.parametrize(
    ("pcpus", "vcpus", "reserved", "shares"),
    [(1, (1,) * 6, (25, 45, 25, 5, 0, 0), (4000, 100) * 3), (2, (1, 1, 2), (25, 100, 40), (4000, 1000, 2000))],
)
def test_every_reservation_is_kept_also_where_others_run_for_longer_than_it_fills(pcpus, vcpus, reserved, shares):
    lab = Lab(Esxi(), pcpus)
    for number, count in enumerate(vcpus):
        lab.domain(str(number), count, reservation=reserved[number], shares=shares[number])
    lab.hog(*lab.domains)
    lab.run(1000)
    before_ns = {name: lab.run_ns(name) for name in lab.domains}
    lab.run(9000)
    for number, percent in enumerate(reserved):
        assert lab.run_ns(str(number)) - before_ns[str(number)] >= (percent - 1) * 80 * MS


def test_a_limit_stops_all_vcpus_of_a_machine_at_once():
    """120 % is 60 ms in each 50: A0 alone for 20 ms, then both for 20; from 50 on both for 30."""
    lab = Lab(Esxi(), 3)
    lab.domain("A", vcpus=2, limit=120)
    lab.work("A", 0, HOG_NS, "interrupt", vcpu=0)
    lab.work("A", 20, HOG_NS, "interrupt", vcpu=1)
    lab.run(99)
    assert lab.decisions(0) == [(0, "A0"), (40, "-"), (50, "A0"), (80, "-")]
    assert lab.decisions(1) == [(20, "A1"), (40, "-"), (50, "A1"), (80, "-")]


def test_a_machine_has_consumed_what_its_other_vcpus_are_running():
    """A0 runs from 1 ms on; at 50 A has had 98 ms for each 1000 shares and B 50: B goes on, and A1 waits until 51."""
    lab = Lab(Esxi(), 2)
    lab.domain("A", vcpus=2, shares=500)
    lab.domain("B", shares=1000)
    lab.hog("B")
    lab.work("A", 1, HOG_NS, "interrupt", vcpu=0)
    lab.work("A", 2, HOG_NS, "interrupt", vcpu=1)
    lab.run(60)
    assert lab.recorder.decisions == [(0, 0, "B"), (1, 1, "A0"), (51, 1, "A1")]


def test_a_reservation_below_the_share_changes_nothing():
    got = _percents(Esxi(), a={"reservation": 20}, b={})
    assert got == pytest.approx({"a": 50, "b": 50}, abs=1)


def test_an_unused_reservation_is_used_by_others():
    lab = Lab(Esxi())
    lab.domain("idle", reservation=80)
    lab.domain("hog")
    lab.hog("hog")
    lab.run(1000)
    assert lab.run_ns("hog") == 1000 * MS


def test_a_limit_beside_others_leaves_them_the_rest():
    got = _percents(Esxi(), pcpus=2, vcpus=2, a={"limit": 75, "shares": 8000}, b={})
    assert got == pytest.approx({"a": 75, "b": 125}, abs=1)


@pytest.mark.parametrize(("limit", "shares"), [(34, 1000), (40, 1000), (60, 1000), (21, 500), (30, 500)])
def test_a_limit_above_the_share_takes_nothing_of_it(limit, shares):
    """Of two others with 1000 shares each: a third, or a fifth, whatever the machine may use at most."""
    got = _percents(Esxi(), a={"limit": limit, "shares": shares}, b={}, c={})
    assert got["a"] == pytest.approx(100 * shares / (2000 + shares), abs=0.3)


def test_reservations_beyond_the_host_are_refused():
    with pytest.raises(UsageError, match="120 %"):
        _percents(Esxi(), a={"reservation": 60}, b={"reservation": 60})


@pytest.mark.parametrize(
    ("spec", "parameters", "is_refused"),
    [
        (Rtds(), {"budget": 10_000}, False),
        (Rtds(), {"budget": 9_999}, True),
        (Rtds(), {"budget": 7 * MS, "period": 7 * MS}, False),
        (Rtds(), {"budget": 7 * MS + 1, "period": 7 * MS}, True),
        (Rtds(), {"period": 3 * MS}, True),  # below the usual budget
        (Esxi(), {"reservation": 50}, False),
        (Esxi(), {"reservation": 50, "limit": 49}, True),
        (Sedf(), {"extratime": False}, True),
        (Sedf(), {"extratime": False, "slice": 1}, False),
    ],
)
def test_a_domain_whose_parameters_contradict_each_other_is_refused(spec, parameters, is_refused):
    assert bool(spec.contradiction(DomainScheduling(**parameters))) is is_refused


def test_a_limit_may_be_the_reservation():
    assert _percents(Esxi(), a={"reservation": 50, "limit": 50}) == pytest.approx({"a": 50}, abs=1)


def test_absolute_share_comes_first_and_the_rest_is_relative():
    got = _percents(Zvm(), a={"absolute_share": 40}, b={"relative_share": 200}, c={"relative_share": 100})
    assert got == pytest.approx({"a": 40, "b": 40, "c": 20}, abs=1)


def test_absolute_shares_beyond_99_percent_are_scaled():
    got = _percents(Zvm(), a={"absolute_share": 80}, b={"absolute_share": 40}, c={})
    assert got == pytest.approx({"a": 66, "b": 33, "c": 1}, abs=1)


def test_guarantees_of_sedf_and_rtds_are_exact_and_not_exceeded_without_extra_time():
    got = _percents(Sedf(), a={"slice": 20 * MS, "extratime": False}, b={"slice": 30 * MS, "extratime": False})
    assert got == pytest.approx({"a": 20, "b": 30}, abs=0.1)
    got = _percents(Rtds(), a={"budget": 2 * MS, "extratime": False}, b={"budget": 5 * MS, "extratime": False})
    assert got == pytest.approx({"a": 20, "b": 50}, abs=0.1)


def test_rtds_keeps_every_budget_in_every_period_also_of_a_vcpu_that_has_used_extra_time():
    """2 of 5 ms with extra time beside 5 of 10 ms: what it ran at lower levels does not count in the next period."""
    lab = Lab(Rtds())
    lab.domain("a", period=5 * MS, budget=2 * MS, extratime=True)
    lab.domain("b", period=10 * MS, budget=5 * MS, extratime=False)
    lab.hog("a", "b")
    ran_ms = []
    for until_ms in range(0, 1000, 5):
        lab.run(until_ms)
        ran_ms.append((lab.run_ns("a") / MS, lab.run_ns("b") / MS))
    a, b = zip(*ran_ms, strict=True)
    assert min(after - before for before, after in itertools.pairwise(a)) >= 2
    assert {after - before for before, after in itertools.pairwise(b[::2])} == {5}


def test_sedf_latency_hint_gives_a_waking_vcpu_a_short_first_period():
    """Hint 20 ms, slice 20 of 100 ms: awake at 250 it gets 4 ms by 270, 8 ms by 310, 16 ms by 390."""
    lab = Lab(Sedf())
    lab.domain("a", slice=20 * MS, latency=20 * MS, extratime=False)
    lab.hog("a", at_ms=250)
    seen = []
    for until_ms in (269, 309, 389, 489):
        lab.run(until_ms)
        seen.append(lab.run_ns("a") / MS)
    assert seen == [4, 12, 28, 48]


@pytest.mark.parametrize(
    ("scheduler", "percent"),
    [(Credit(version="4.0"), 50.0), (Credit(version="4.1"), 66.7), (Credit2(), 66.7), (Sedf(), 66.7)],
)
def test_a_weight_is_that_of_each_vcpu_and_of_the_domain_in_credit_before_4_1(scheduler, percent):
    lab = Lab(scheduler)
    lab.domain("two", vcpus=2)
    lab.domain("one")
    lab.hog("two", "one")
    lab.run(10_000)
    assert lab.percent("two") == pytest.approx(percent, abs=2)


def test_credit_shares_what_a_cap_leaves_by_weight():
    """A capped domain of the largest weight keeps 20 % of one pCPU; the other 80 go 3:1."""
    got = _percents(Credit(), a={"weight": 2048, "cap": 20}, b={"weight": 768}, c={"weight": 256})
    assert got == pytest.approx({"a": 20, "b": 60, "c": 20}, abs=2)


def test_credit_hands_what_a_cap_leaves_to_those_before_it_too():
    """They come into the list last first: C, the capped A, B.  What A leaves goes to B, who is behind it.

    A moves to the head for that, as C could have used more; from then on C and B have 40 % each, not 26 and 54.
    """
    lab = Lab(Credit())
    lab.domain("a", weight=2048, cap=20)
    lab.domain("b")
    lab.domain("c")
    lab.hog("b")
    lab.hog("a", at_ms=100)
    lab.hog("c", at_ms=200)
    lab.run(10_000)
    assert lab.percent("a") == pytest.approx(20, abs=2)
    assert lab.percent("b") == pytest.approx(lab.percent("c"), abs=4)


def test_slices_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="110 %"):
        _percents(Sedf(), a={"slice": 60 * MS}, b={"slice": 50 * MS})


def test_zvm_splits_a_users_share_over_its_virtual_processors():
    """Equal relative shares, two virtual processors against one, on one pCPU: half each."""
    lab = Lab(Zvm())
    lab.domain("two", vcpus=2)
    lab.domain("one")
    lab.hog("two", "one")
    lab.run(10_000)
    assert lab.percent("two") == pytest.approx(50, abs=1)


@pytest.mark.parametrize(
    ("pcpus", "affinity", "parameters", "late"),
    [
        (2, [0], {}, "B"),  # half of what each is entitled to
        (1, None, {"absolute_share": 10}, "B"),  # five times as much
        (2, None, {}, "BC"),  # the first alone: of two processors it can use one
    ],
)
def test_zvm_counts_from_when_virtual_processors_meet(pcpus, affinity, parameters, late):
    """A runs alone for 1 s and does not pay for it, nor is owed anything: from then on equal shares are even."""
    lab = Lab(Zvm(), pcpus)
    for name in "A" + late:
        lab.domain(name, affinity=affinity, **parameters)
    lab.hog("A")
    lab.hog(*late, at_ms=1000)
    lab.run(1000)
    assert lab.percent("A") == pytest.approx(100)
    lab.run(4000)
    share = (1 if affinity else pcpus) / (1 + len(late))
    assert lab.percent("A") * 4000 - 100 * 1000 == pytest.approx(100 * share * 3000, rel=0.01)
    for name in late:
        assert lab.percent(name) * 4000 == pytest.approx(100 * share * 3000, rel=0.01)


@pytest.mark.parametrize(
    ("pcpus", "affinity", "parameters", "late", "until_ms", "had_ms"),
    [
        # Entitled to both processors it had one: its deadline is at 500 ms, and a slice of 5 ms sets it 5 ms later.
        (2, [0], {}, "B", 1490, 490),
        # Its deadline is at 10 s, for 5 ms in 50 ms; B's is at 1.05 s, and gets there after 180 of its slices.
        (1, None, {"absolute_share": 10}, "B", 1880, 0),
        # At 500 ms, and 7.5 ms later each slice; B and C, from 1 s, are set 7.5 ms later every other slice: 667 ms.
        (2, None, {}, "BC", 1650, 650),
    ],
)
def test_zvm_pays_back_what_is_owed_by_deadlines_if_it_does_not_count_anew(
    pcpus, affinity, parameters, late, until_ms, had_ms
):
    lab = Lab(Zvm(counts_anew=False), pcpus)
    for name in "A" + late:
        lab.domain(name, affinity=affinity, **parameters)
    lab.hog("A")
    lab.hog(*late, at_ms=1000)
    lab.run(until_ms)
    assert lab.run_ns("A") == pytest.approx((1000 + had_ms) * MS, abs=5 * MS)


def test_zvm_counts_from_where_those_are_that_get_more_than_their_shares():
    """Two processors, shares 100, 100 and 800, of which the last can use one: D of 100 comes later, for a third."""
    lab = Lab(Zvm(), 2)
    for name, share in {"A": 100, "B": 100, "C": 800, "D": 100}.items():
        lab.domain(name, relative_share=share)
    lab.hog("A", "B", "C")
    lab.hog("D", at_ms=1000)
    lab.run(4000)
    assert lab.percent("D") * 4000 == pytest.approx(100 * 1000, rel=0.05)
    assert lab.percent("A") == pytest.approx(lab.percent("B"), rel=0.02)


@pytest.mark.parametrize("spec", [Esxi(quantum=10 * MS), Cfs(), Zvm()], ids=lambda spec: spec.kind)
@pytest.mark.parametrize(("elsewhere", "before"), [(1, 2), (4, 1)])
def test_who_comes_late_to_a_pcpu_counts_from_those_it_meets_there(spec, elsewhere, before):
    """Those on pCPU 0 have got more, or less, than those on pCPU 1, to which C comes: all there have equal parts."""
    lab = Lab(spec, pcpus=2)
    others = [f"X{number}" for number in range(elsewhere)]
    there = [f"A{number}" for number in range(before)]
    for name in others:
        lab.domain(name, affinity=[0])
    for name in (*there, "C"):
        lab.domain(name, affinity=[1])
    lab.hog(*others, *there)
    lab.hog("C", at_ms=2000)
    lab.run(2000)
    before_ns = lab.run_ns("A0")
    lab.run(4000)
    assert lab.run_ns("C") == pytest.approx(2000 * MS / (before + 1), rel=0.05)
    assert lab.run_ns("A0") - before_ns == pytest.approx(2000 * MS / (before + 1), rel=0.05)


def test_cfs_counts_from_those_who_compete_and_not_from_who_has_a_pcpu_for_itself():
    """A has more weight than one vCPU can use; B and C have half a pCPU each, and from when D comes a third."""
    lab = Lab(Cfs(), pcpus=2)
    for name, shares in {"A": 8192, "B": 1024, "C": 1024, "D": 1024}.items():
        lab.domain(name, shares=shares)
    lab.hog("A", "B", "C")
    lab.hog("D", at_ms=2000)
    lab.run(2000)
    before_ns = lab.run_ns("B")
    lab.run(4000)
    assert lab.run_ns("D") == pytest.approx(2000 * MS / 3, rel=0.05)
    assert lab.run_ns("B") - before_ns == pytest.approx(2000 * MS / 3, rel=0.05)


@pytest.mark.parametrize(("pcpus", "throttled"), [(1, False), (1, True), (2, False)])
def test_cfs_does_not_forget_what_has_run_when_nobody_is_left(pcpus, throttled):
    """A runs for 1 s and sleeps, C comes, and 5 ms later A again: half each from then on."""
    lab = Lab(Cfs(), pcpus)
    if throttled:  # By 1000 ms it has had its 10 ms, and waits for more.
        lab.domain("limited", quota=10 * MS, period=5000 * MS)
        lab.hog("limited")
    for name in "AC":
        lab.domain(name, affinity=[0])
    lab.work("A", 0, 1000 * MS)
    lab.hog("C", at_ms=1015)
    lab.hog("A", at_ms=1020)
    lab.run(2020)
    assert lab.run_ns("A") - 1000 * MS == pytest.approx(500 * MS, rel=0.03)
    assert lab.run_ns("C") == pytest.approx(505 * MS, rel=0.03)


def test_cfs_gives_a_sleeper_half_a_latency_of_lead():
    """1 pCPU, latency 6 ms.  The hog has run 100 ms when C wakes for 20 ms: C is placed at 97, runs until 100.

    Its slices are 3 ms: after the first both are at 100, the hog has waited longer.
    """
    lab = Lab(Cfs())
    lab.domain("hog")
    lab.domain("C")
    lab.hog("hog")
    lab.burst("C", 100, demand_ms=20)
    lab.run(107)
    assert lab.decisions() == [(0, "hog"), (100, "C"), (103, "hog"), (106, "C")]


def test_cfs_gives_who_was_throttled_the_lead_of_a_sleeper():
    """Two vCPUs of 50 ms a period beside a hog on two pCPUs, latency 12 ms: by hand, the hog waits 15 ms of 100.

    A period begins with the two 6 ms behind the hog's virtual run time v = 0, in portions of 5 ms: they are at 4 ms
    after 10 ms.  The hog has a pCPU for two of its slices of 8 ms (v = 16 at 26 ms) while the two take turns on the
    other; they are at 14 and 10 ms then, and one goes first for a last portion.  With all that they waited as lead
    they would go before it for 25 ms.
    """
    lab = Lab(Cfs(), pcpus=2)
    lab.domain("limited", vcpus=2, quota=50 * MS)
    lab.domain("hog")
    lab.hog("limited", "hog")
    lab.run(1000)
    before_ns = lab.run_ns("hog")
    lab.run(2000)
    assert lab.run_ns("hog") - before_ns == 850 * MS


def test_a_vcpu_pre_empted_by_a_pinned_one_moves_to_an_idle_pcpu():
    """B alone on pCPU 0 (may run anywhere); A, pinned there, has a reservation and wakes at 100 ms."""
    lab = Lab(Esxi(), pcpus=2)
    lab.domain("A", affinity=[0], reservation=50)
    lab.domain("B")
    lab.hog("B")
    lab.hog("A", at_ms=100)
    lab.run(200)
    assert lab.recorder.decisions == [(0, 0, "B"), (100, 0, "A"), (100, 1, "B")]
    assert lab.run_ns("B") == 200 * MS


@pytest.mark.parametrize(("phase_ms", "percent"), [(1, 25), (5, 25), (0, 20), (10, 20), (15, 20), (29, 20)])
def test_weights_lock_in_by_the_phase_of_accounting(phase_ms, percent):
    """What docs/schedulers/credit.md tells among the limits, but for the half second of the beginning."""
    got = _percents(Credit(accounting_phase=phase_ms * MS), light={"weight": 256}, heavy={"weight": 1024})
    assert got["light"] == pytest.approx(percent, abs=0.6)


def test_three_weights_on_four_pcpus_in_step_are_points_off():
    got = _percents(Credit(version="3.2"), 4, 4, a={"weight": 512}, b={"weight": 1024}, c={"weight": 256})
    assert got == pytest.approx({"a": 4 * 31, "b": 4 * 54, "c": 4 * 15}, abs=4)


@pytest.mark.parametrize(("works_ms", "of_ms", "percents"), [(3, 10, (45, 25)), (2.19, 7.3, (51.8, 18.2))])
def test_who_comes_and_goes_in_step_with_the_minor_slice_locks_shares_in(works_ms, of_ms, percents):
    lab = Lab(Zvm())
    lab.domain("u", absolute_share=60.0)
    lab.domain("a", relative_share=300)
    lab.domain("b", relative_share=100)
    lab.hog("a", "b")
    lab.burst("u", *[n * of_ms for n in range(int(14_600 / of_ms))], demand_ms=works_ms)
    lab.run(14_600)
    assert (lab.percent("a"), lab.percent("b")) == pytest.approx(percents, abs=0.1)
