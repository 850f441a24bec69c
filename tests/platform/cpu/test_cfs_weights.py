"""Weights of nice levels on a host under CFS."""

import pytest

from tests.platform.cpu.host_lab import Lab
from vftsim.platform.cpu.records import BLOCKED, vcpus
from vftsim.platform.cpu.schedulers.cfs import Cfs, cfs_hosts, cfs_vcpus

# Linux, kernel/sched/core.c, sched_prio_to_weight: the ends and some between.
KERNEL = {-20: 88761, -16: 36291, -11: 11916, -5: 3121, -1: 1277, 0: 1024, 1: 820, 6: 272, 10: 110, 15: 36, 19: 15}


@pytest.mark.parametrize(("nice", "weight"), KERNEL.items())
def test_virtual_time_of_a_nice_level_passes_as_the_kernel_says(nice: int, weight: int):
    """In a second of CPU time 1024 / weight seconds of virtual time pass."""
    lab = Lab(Cfs())
    lab.domain("A", nice=nice)
    lab.hog("A")
    lab.run(1000)
    run_ns = lab.run_ns("A")
    virtual_ns = lab.engine.rows(cfs_vcpus)[lab.vcpu_rows("A")[0]].virtual_ns
    assert virtual_ns == run_ns * 1024 // weight


def test_shares_beside_another_nice_level_are_those_of_the_kernels_weights():
    """272 to 1024: 20.99 %; the power of 1.25 would give 20.75 %."""
    lab = Lab(Cfs())
    lab.domain("A", nice=6)
    lab.domain("B")
    lab.hog("A", "B")
    lab.run(20_000)
    assert lab.percent("A") == pytest.approx(100 * 272 / 1296, abs=0.05)


def test_a_host_knows_at_any_time_how_many_threads_run_or_wait_and_what_they_weigh():
    """Hogs, bursts that pre-empt, interrupts in between and a domain that is stopped for a while, on two pCPUs."""
    lab = Lab(Cfs(), pcpus=2)
    for name, nice in {"A": 0, "B": 5, "C": -3, "D": 10}.items():
        lab.domain(name, vcpus=2, nice=nice)
    lab.hog("A")
    for number in range(12):
        lab.burst("B", 1 + 3.1 * number, demand_ms=0.7)
        lab.burst("C", 2 + 2.3 * number, demand_ms=0.4)
        lab.work("D", 1.5 + 1.7 * number, 150_000, "interrupt", number % 2)
    lab.pause("B", 8, 21)
    seen = set()
    for instant in range(1, 160):
        lab.run(instant / 4)
        rows = [row for name in "ABCD" for row in lab.vcpu_rows(name) if lab.engine.rows(vcpus)[row].state != BLOCKED]
        cfs_host = lab.engine.rows(cfs_hosts)[lab.host]
        assert cfs_host.active == len(rows)
        assert cfs_host.weight == sum(lab.engine.rows(cfs_vcpus)[row].weight for row in rows)
        seen.add(cfs_host.active)
    assert len(seen) >= 4
