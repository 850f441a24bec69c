"""Xen's credit scheduler: theft, boost, parking, stealing, parameters."""

import pytest
from pydantic import ValidationError

from tests.platform.cpu.host_lab import MS, Lab
from vftsim.kernel import Sim, entry, link
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu import build, scheduler
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import hosts, vcpus
from vftsim.platform.cpu.schedulers import _credit_accounting
from vftsim.platform.cpu.schedulers._credit_records import credit_domains, credit_hosts, credit_vcpus
from vftsim.platform.cpu.schedulers.credit import Credit


def _own(lab, name):
    """The scheduler's record of a domain's first vCPU."""
    return lab.engine.rows(credit_vcpus)[lab.vcpu_rows(name)[0]]


def _thief(version, caught_once):
    """A thief that runs 9 ms after every tick and blocks before the next one, beside a hog on one pCPU."""
    lab = Lab(Credit(version=version))
    lab.domain("thief")
    lab.domain("victim")
    lab.hog("victim")
    if caught_once:
        lab.burst("thief", 69.5, demand_ms=1)
    lab.burst("thief", *[100.2 + 10 * i for i in range(400)], demand_ms=9)
    return lab.run(4100)


def test_a_vcpu_that_blocks_before_the_tick_pays_nothing_under_sampling():
    """Xen 3.2: 9 of every 10 ms for nothing: never debited, never active, always boosted."""
    lab = _thief("3.2", caught_once=False)
    assert (_own(lab, "thief").credit, _own(lab, "thief").active) == (0, False)
    assert lab.run_ns("thief") == 3600 * MS


@pytest.mark.parametrize("version", ["4.0", "4.13", "4.18"])
def test_the_same_vcpu_is_charged_under_exact_debit(version):
    """From 4.0 it pays 10 credits a ms: 36,000 in 3.6 s.

    It still keeps its boost, because no tick ever finds it running and so accounting passes it over.
    """
    lab = _thief(version, caught_once=False)
    assert _own(lab, "thief").credit == -36_000


@pytest.mark.parametrize("version", ["4.0", "4.1", "4.13", "4.18"])
def test_one_tick_that_finds_it_ends_the_theft_under_exact_debit_only(version):
    """Caught at 70 ms it is active for good: OVER, no boost, its half of the pCPU; under 3.2 it steals on."""
    lab = _thief(version, caught_once=True)
    assert lab.run_ns("thief") < 0.55 * 4000 * MS
    assert ("thief", "OVER") in {(name, priority) for _, name, priority in lab.recorder.priorities}
    assert _thief("3.2", caught_once=True).run_ns("thief") > 0.85 * 4000 * MS


@pytest.mark.parametrize("version", ["4.0", "4.13", "4.18"])
@pytest.mark.parametrize(("caught_once", "percent"), [(False, 30), (True, 20)])
def test_a_cap_holds_for_who_has_been_found_by_a_tick(version, caught_once, percent):
    """3 ms in each 10 ms, all between ticks, cap 20 %: accounting parks active vCPUs only, and a tick makes them so."""
    lab = Lab(Credit(version=version))
    lab.domain("A", cap=20.0)
    if caught_once:
        lab.burst("A", 69.5, demand_ms=1)
    lab.burst("A", *[100.2 + 10 * i for i in range(400)], demand_ms=3)
    before_ns = lab.run(1100).run_ns("A")
    assert lab.run(4100).run_ns("A") - before_ns == pytest.approx(30 * percent * MS, rel=0.02)


def test_boost_is_kept_by_short_bursts_and_lost_at_a_tick():
    """Bursts of 0.1 ms between ticks keep the boost: no wait.  One that spans the tick at 100 ms loses it."""
    lab = Lab(Credit(version="4.13"))
    lab.domain("io")
    lab.domain("hog")
    lab.hog("hog")
    lab.burst("io", 42, 52, 62, 72, 82, demand_ms=0.1)
    lab.burst("io", 99.9, demand_ms=0.4)
    lab.run(120)
    done = [time_ms for time_ms, name in lab.finished]
    assert done == pytest.approx([42.1, 52.1, 62.1, 72.1, 82.1, 100.3])
    changes = [(time_ms, priority) for time_ms, name, priority in lab.recorder.priorities if name == "io"]
    assert changes == [(42, "BOOST"), (100, "UNDER")]


@pytest.mark.parametrize(("slice_ms", "tick_ms"), [(2, 2), (3, 1), (10, 3.333), (30, 10), (50, 16.666)])
def test_ticks_are_a_third_of_a_slice_in_whole_microseconds(slice_ms: int, tick_ms: float):
    """The first takes the boost of the vCPU that has woken (``tick_period_us``; slices below 3 ms have one tick)."""
    lab = Lab(Credit(slice=slice_ms * MS))
    lab.domain("A")
    lab.hog("A")
    lab.run(slice_ms + 1)
    assert next(each for each in lab.recorder.priorities if each[2] == "UNDER") == (tick_ms, "A", "UNDER")


def test_without_boost_a_waking_vcpu_waits_for_the_slice():
    """The deliberately wrong model: UNDER behind an UNDER hog, whose slice ends at 60 ms."""
    lab = Lab(Credit(version="4.13", boost=False))
    lab.domain("io")
    lab.domain("hog")
    lab.hog("hog")
    lab.burst("io", 42, demand_ms=0.1)
    lab.run(100)
    assert lab.finished == [(60.1, "io")]
    assert lab.counters["boosts"] == 0


@pytest.mark.parametrize("version", ["3.2", "4.0", "4.13"])
@pytest.mark.parametrize("cap", [20.0, 40.0, 75.0])
def test_a_capped_vcpu_pauses_for_multiples_of_the_accounting_period(version, cap):
    """Cap on an otherwise idle host: every pause but the first is a whole number of 30 ms."""
    lab = Lab(Credit(version=version), pcpus=2)
    lab.domain("A", cap=cap)
    lab.hog("A")
    lab.run(5000)
    decisions = [(t, name) for t, _, name in lab.recorder.decisions]
    stops = [t for t, name in decisions if name == "-"]
    starts = [t for t, name in decisions if name == "A"][1:]
    pauses = [start - stop for stop, start in zip(stops, starts, strict=False)]
    assert len(pauses) >= 15
    assert {pause % 30 for pause in pauses} == {0}
    counters = lab.counters
    assert counters["parks"] - counters["unparks"] in {0, 1}


def test_a_parked_vcpu_that_wakes_stays_parked():
    """Cap 5 % = 15 credits a period.  It runs 0-11 and is active from the tick at 10: credit -110.

    Accounting at 15: -110 + 15 = -95 is below -15: parked while it sleeps.  It has work at 20, but stays
    parked until -95 + 7 x 15 = 10 at 15 + 210 = 225 ms.
    """
    lab = Lab(Credit(version="4.13"))
    lab.domain("A", cap=5.0)
    lab.burst("A", 0, demand_ms=11)
    lab.burst("A", 20, demand_ms=1)
    lab.run(300)
    assert lab.finished == [(11, "A"), (226, "A")]


def test_a_vcpu_pre_empted_by_a_pinned_one_is_kicked_to_an_idle_pcpu():
    """From 4.3 to 4.12.  B runs on pCPU 0, may run anywhere; A, pinned there, wakes BOOST at 50 ms: B moves to pCPU 1.

    Before, B waits: the idle pCPU is not in A's affinity and is not told.  From 4.13 a test of A's affinity where
    B's is meant prevents the move.
    """
    first = {}
    for version in ("4.1", "4.3", "4.9", "4.13"):
        lab = Lab(Credit(version=version), pcpus=2)
        lab.domain("B")
        lab.domain("A", affinity=[0])
        lab.hog("B")
        lab.hog("A", at_ms=50)
        lab.run(55)
        first[version] = lab.recorder.decisions
    assert first["4.3"] == first["4.9"] == [(0, 0, "B"), (50, 0, "A"), (50, 1, "B")]
    assert first["4.1"] == first["4.13"] == [(0, 0, "B"), (50, 0, "A")]


def test_a_tick_moves_a_vcpu_behind_which_others_wait():
    """From 4.3.  Without boosts C, pinned to pCPU 0, waits behind B from 5 ms.

    The tick at 10 ms makes B active; the one at 20 ms finds somebody waiting behind it and pCPU 1 idle.
    """
    lab = Lab(Credit(version="4.13", boost=False), pcpus=2)
    lab.domain("B")
    lab.domain("C", affinity=[0])
    lab.hog("B")
    lab.burst("C", 5, demand_ms=1)
    lab.run(30)
    assert lab.recorder.decisions == [(0, 0, "B"), (20, 0, "C"), (20, 1, "B"), (21, 0, "-")]


def test_an_idle_pcpu_steals_work_that_waits():
    """A and C have their home on pCPU 0; pCPU 1 is idle when C wakes behind A, and takes it at once."""
    lab = Lab(Credit(version="4.13"), pcpus=2)
    for name in ("A", "B", "C"):
        lab.domain(name)
    lab.hog("A", "C")
    lab.run(1)
    assert _own(lab, "C").processor == lab.pcpu(1).row
    assert lab.counters["steals"] == 1
    assert lab.running() == ["A", "C"]
    assert lab.vcpus("C")[0].migrations == 0


def test_stealing_respects_affinity():
    lab = Lab(Credit(version="4.13"), pcpus=2)
    lab.domain("A", affinity=[0])
    lab.domain("B", affinity=[0])
    lab.hog("A", "B")
    lab.run(1000)
    assert lab.idle_ns(1) == 1000 * MS
    assert lab.percent("A") + lab.percent("B") == pytest.approx(100)


def test_balance_limit_delays_the_second_steal():
    """Home of A, C and E is pCPU 0.  pCPU 1 steals C at 0.2 ms and would steal E at 0.4.

    From 4.18 it searches once a millisecond: E, BOOST like A, waits until the second tick, at 20 ms, moves A.
    """
    waits = {}
    for version in ("4.13", "4.18"):
        lab = Lab(Credit(version=version), pcpus=2)
        for name in "ABCDE":
            lab.domain(name)
        lab.hog("A")
        lab.burst("C", 0.2, demand_ms=0.1)
        lab.burst("E", 0.4, demand_ms=0.1)
        lab.run(100)
        waits[version] = [round(t, 6) for t, _ in lab.finished]
    assert waits == {"4.13": [0.3, 0.5], "4.18": [0.3, 20.1]}


@entry
def activate(sim: Sim, vcpu: int) -> None:
    _credit_accounting.activate(sim, hosts(sim)[vcpus(sim)[vcpu].host], vcpus(sim)[vcpu])


@entry
def allot(sim: Sim, host: int) -> None:
    _credit_accounting.allot(sim, hosts(sim)[host])


def _allotted(version, pcpus, **domains):
    """Activate all vCPUs in this order and distribute once: the domains' names and accounts as they were served."""
    spec = Credit(version=version)
    kernel = link([*build.ENTRIES, activate, allot], {scheduler.scheduler: [spec.part]}, tables=build.TABLES)
    engine = SimpyEngine(kernel)
    host = build.add_host(engine, pcpus, spec)
    names = {}
    for name, parameters in domains.items():
        count = parameters.pop("vcpus", 1)
        names[build.add_domain(engine, host, DomainScheduling(**parameters), count)] = name
    build.start(engine, host, spec)
    for row in range(1, engine.used(vcpus) + 1):
        engine.call(activate, row)
    engine.call(allot, host)
    served = []
    row = engine.rows(credit_hosts)[host].allotments.first
    while row:
        served.append((names[row], engine.rows(credit_domains)[row]))
        row = engine.rows(credit_domains)[row].next_allotment
    return served


def test_allotment_by_hand():
    """Pool 300, weights 256 (cap 20 % = 60 credits) and 512, one vCPU each; the capped one comes first.

    Capped: fair = ceil(300/3) = 100, peak = 60: gets 60, leaves 40 x 768/512 = 60 more for the pool of 360.
    Other: fair = ceil(360 x 512/768) = 240 < peak 300.
    """
    (first, capped), (second, other) = _allotted("4.13", 1, other={"weight": 512}, capped={"weight": 256, "cap": 20})
    assert (first, capped.credits_per_vcpu, capped.cap_credits, capped.park_below) == ("capped", 60, 60, -60)
    assert (second, other.credits_per_vcpu, other.cap_credits) == ("other", 240, 0)


def test_weight_counts_per_vcpu_from_4_1():
    """Two vCPUs against one, equal weights, 2 pCPUs: half each before 4.1, then two thirds and one."""
    got = {}
    for version in ("4.0", "4.1"):
        accounts = dict(_allotted(version, 2, one={}, two={"vcpus": 2}))
        got[version] = (accounts["one"].credits_per_vcpu, 2 * accounts["two"].credits_per_vcpu)
    assert got == {"4.0": (300, 300), "4.1": (200, 400)}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"version": "3.2", "slice": 10 * MS}, "fixed slice"),
        ({"version": "4.0", "rate_limit": MS}, "no rate limit"),
        ({"rate_limit": 50_000}, "100 us to 30 ms"),
        ({"rate_limit": 31 * MS}, "100 us to 30 ms"),
        ({"version": "3.2", "accounting_phase": MS}, "accounts in its tick"),
        ({"accounting_phase": 40 * MS}, "at most 30 ms"),
        ({"slice": 2_000 * MS}, "less than or equal"),
        ({"version": "4.4"}, "Input should be"),
    ],
)
def test_parameters_that_the_version_does_not_have_are_refused(parameters, message):
    with pytest.raises(ValidationError, match=message):
        Credit(**parameters)


def test_only_ratios_of_weights_count():
    """Three domains of weight 1 are scheduled, and change their priorities, like three of 256."""
    usual, least = _weighed(256), _weighed(1)
    assert least.decisions() == usual.decisions()
    assert least.recorder.priorities == usual.recorder.priorities


def _weighed(weight):
    lab = Lab(Credit(version="4.13"))
    for name in "ABC":
        lab.domain(name, weight=weight)
    lab.hog("A", "B")
    lab.burst("C", 4, 65, 92, 93, demand_ms=0.5)
    return lab.run(120)


def test_the_balance_is_that_of_all_accounts_after_each_accounting():
    """Accounting at 15, 45, 75 ms: what is carried on is the sum of the credits handed out and left, no credit more."""
    lab = Lab(Credit(version="4.13"))
    for name in "AB":
        lab.domain(name)
    lab.hog("A", "B")
    for time_ms in (45.000001, 75.000001, 105.000001):
        lab.run(time_ms)
        assert lab.engine.rows(credit_hosts)[lab.host].balance == _own(lab, "A").credit + _own(lab, "B").credit
