"""Schedules of the other schedulers worked out by hand from their rules."""

from itertools import pairwise

from tests.platform.cpu.host_lab import MS, Lab
from vftsim.platform.cpu.schedulers.cfs import Cfs, cfs_vcpus
from vftsim.platform.cpu.schedulers.esxi import Esxi
from vftsim.platform.cpu.schedulers.native import Native
from vftsim.platform.cpu.schedulers.round_robin import RoundRobin
from vftsim.platform.cpu.schedulers.zvm import Zvm


def test_round_robin():
    """1 pCPU, quantum 30 ms: hogs A and B; C wakes at 10 and 100 ms for 5 ms.

    10: C queues behind B.  30: B; A goes behind C.  60: C, B goes behind A.  65: A.  95: B.
    100: C queues behind A.  125: A; queue C B.  155: C.  160: B.  190: A.
    """
    lab = Lab(RoundRobin())
    for name in "ABC":
        lab.domain(name)
    lab.hog("A", "B")
    lab.burst("C", 10, 100, demand_ms=5)
    assert lab.run(191).decisions() == [
        (0, "A"),
        (30, "B"),
        (60, "C"),
        (65, "A"),
        (95, "B"),
        (125, "A"),
        (155, "C"),
        (160, "B"),
        (190, "A"),
    ]
    assert lab.run(251).decisions()[9:] == [(220, "B"), (250, "A")]


def test_native():
    """2 pCPUs: A runs on 0, B on 1, whenever they have work: busy periods by addition.

    A: 5 ms at 0; 4 ms at 10 and 2 ms at 11, busy 10-16; 1 ms at 30.  B: 3 ms at 2; 6 ms at 11; 1 ms at 20.
    """
    lab = Lab(Native(), pcpus=2)
    lab.domain("A")
    lab.domain("B")
    lab.burst("A", 0, demand_ms=5)
    lab.burst("A", 10, demand_ms=4)
    lab.burst("A", 11, demand_ms=2)
    lab.burst("A", 30, demand_ms=1)
    lab.burst("B", 2, demand_ms=3)
    lab.burst("B", 11, demand_ms=6)
    lab.burst("B", 20, demand_ms=1)
    lab.run(40)
    assert lab.decisions(0) == [(0, "A"), (5, "-"), (10, "A"), (16, "-"), (30, "A"), (31, "-")]
    assert lab.decisions(1) == [(2, "B"), (5, "-"), (11, "B"), (17, "-"), (20, "B"), (21, "-")]


def test_cfs_in_a_crowd():
    """2 pCPUs (scale 2) and 20 hogs: more than 8 for each, so turns of the least granularity, 0.75 ms times 2."""
    lab = Lab(Cfs(), pcpus=2)
    names = [f"hog{n:02}" for n in range(20)]
    for name in names:
        lab.domain(name)
    lab.hog(*names)
    lab.run(60)
    for pcpu in (0, 1):
        instants = [time_ms for time_ms, _ in lab.decisions(pcpu)]
        turns = [round(later - sooner, 6) for sooner, later in pairwise(instants[1:])]
        assert len(turns) > 30
        assert set(turns) == {1.5}


def test_cfs():
    """1 pCPU (scale 1), equal weights: hogs A and B; C wakes at 22 and 36 ms for 1 ms.

    0: A alone, slice 6 ms.  6: B (0 against 6), slice half the latency, 3 ms; 9: B (3), goes on.
    12: 6 and 6, A has waited longer.  15: B (6 against 9).  18: 9 and 9: A.  21: B (9 against 12).
    22: C is placed at least - latency/2 = min(10, 12) - 3 = 7, 3 ms behind B: pre-empts.  23: B (10), 3 ms.
    26: A (12 against 13).  29: B.  32: A (15 against 16).  35: B (16 against 18).
    36: C at 17 - 3 = 14: pre-empts.  37: B (17), 3 ms.  40: A (18 against 20).
    """
    lab = Lab(Cfs())
    for name in "ABC":
        lab.domain(name)
    lab.hog("A", "B")
    lab.burst("C", 22, 36, demand_ms=1)
    assert lab.run(41).decisions() == [
        (0, "A"),
        (6, "B"),
        (12, "A"),
        (15, "B"),
        (18, "A"),
        (21, "B"),
        (22, "C"),
        (23, "B"),
        (26, "A"),
        (29, "B"),
        (32, "A"),
        (35, "B"),
        (36, "C"),
        (37, "B"),
        (40, "A"),
    ]


def test_cfs_virtual_run_time_is_exact_over_any_number_of_short_runs():
    """Nice 5 weighs 335: what has passed and what is left of a nanosecond are the CPU time times 1024 / 335, exactly.

    The hog is looked at at 60 odd instants, each time somebody wakes.
    """
    lab = Lab(Cfs())
    lab.domain("A", nice=5)
    lab.domain("B")
    lab.hog("A")
    for number in range(60):
        lab.work("B", 1 + number * 0.700_003, 1_001 + 7 * number)
    lab.run(60)
    cfs_vcpu = lab.engine.rows(cfs_vcpus)[lab.vcpu_rows("A")[0]]
    assert cfs_vcpu.weight == 335
    assert 0 <= cfs_vcpu.residue < cfs_vcpu.weight
    assert cfs_vcpu.virtual_ns * cfs_vcpu.weight + cfs_vcpu.residue == lab.run_ns("A") * 1024


def test_a_pcpu_that_falls_idle_takes_nobody_whose_affinity_is_elsewhere():
    """2 pCPUs: A and B only on 0, in turns; C runs 5 ms on 1, which stays idle then although one of them waits."""
    lab = Lab(RoundRobin(quantum=2 * MS), pcpus=2)
    lab.domain("A", affinity=[0])
    lab.domain("B", affinity=[0])
    lab.domain("C")
    lab.hog("A", "B")
    lab.burst("C", 0, demand_ms=5)
    lab.run(20)
    assert lab.decisions(1) == [(0, "C"), (5, "-")]
    assert lab.idle_ns(1) == 15 * MS
    assert lab.run_ns("A") == lab.run_ns("B") == 10 * MS


def test_esxi():
    """1 pCPU, quantum 50 ms: hogs A (1000 shares) and B (2000); C (500, reservation 20 %) wakes thrice.

    Virtual time is ms x 1000 / shares: a quantum adds 50 to A and 25 to B.
    0: A.  50: B until it reaches 50 too, at 150; A has waited longer.  200: B, 300: A (100 and 100).
    320: C (5 ms) has a full reserve of 20 % of 50 ms = 10 ms: pre-empts.  325: B (100) before A (120).
    375: A (120 against 125).  425: B (125 against 170).  430: C (30 ms), reserve 10: pre-empts and runs
    its 30 ms: reserve 10 - 30 + 6 = -14, virtual time 125 + 60 = 185.  460: B (127.5).
    470: C (5 ms): reserve -12, and 185 is far ahead of B: waits.  510: reserve -4: B (152.5) goes on.
    560: reserve 6: C.  565: A (170 against 177.5).  615: B.
    """
    lab = Lab(Esxi())
    lab.domain("A", shares=1000)
    lab.domain("B", shares=2000)
    lab.domain("C", shares=500, reservation=20)
    lab.hog("A", "B")
    lab.burst("C", 320, 470, demand_ms=5)
    lab.burst("C", 430, demand_ms=30)
    assert lab.run(616).decisions() == [
        (0, "A"),
        (50, "B"),
        (150, "A"),
        (200, "B"),
        (300, "A"),
        (320, "C"),
        (325, "B"),
        (375, "A"),
        (425, "B"),
        (430, "C"),
        (460, "B"),
        (560, "C"),
        (565, "A"),
        (615, "B"),
    ]


def test_zvm():
    """1 pCPU, minor slice 5 ms: hogs A (relative 100) and B (300); C (absolute 50 %) wakes twice for 4 ms.

    0: A, alone on the list, has deadline 5.  B, entitled to 3/4, 6.67.  5: A is entitled to 1/4 now: 25; B
    for three slices (13.3, 20, 26.7).  20: A (25), then 45.  25: B to 46.7.  40: A, then 65.  45: B to 66.7.
    60: A.  62: C: deadline 62 + 5/0.5 = 72, later than A's 65: waits.  65: A is entitled to 1/8 now: 105;
    B (66.7), then 66.7 + 5/(3/8) = 80.  70: C (72).  74: B to 86.7, 93.3, 100, 106.7.
    94: A (105).  95: C: 95 + 10 = 105, not earlier than A's.  99: C (105) before B
    (106.7) and A (145).  103: B.
    """
    lab = Lab(Zvm())
    lab.domain("A", relative_share=100)
    lab.domain("B", relative_share=300)
    lab.domain("C", absolute_share=50)
    lab.hog("A", "B")
    lab.burst("C", 62, 95, demand_ms=4)
    assert lab.run(104).decisions() == [
        (0, "A"),
        (5, "B"),
        (20, "A"),
        (25, "B"),
        (40, "A"),
        (45, "B"),
        (60, "A"),
        (65, "B"),
        (70, "C"),
        (74, "B"),
        (94, "A"),
        (99, "C"),
        (103, "B"),
    ]
