"""Weights of nice levels on a host under CFS."""

import pytest

from tests.platform.cpu.host_lab import Lab
from vftsim.platform.cpu.schedulers.cfs import Cfs, cfs_vcpus

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
