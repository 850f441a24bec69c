"""Batch jobs by hand, by operational bounds and by mean value analysis; pages counted; reboot; named mixes."""

import pytest

from tests.workloads import lab
from vftsim.workloads.batch import MIXES, BatchSpec, batch_of_mix

US, MS, S = 1000, 1_000_000, 1_000_000_000
PARTS = (BatchSpec,)


class Jobs(lab.Lab):
    def __init__(self, spec, until_ns, warmup_ns=0, **host):
        super().__init__(lab.linked(*PARTS), **host)
        spec = spec if isinstance(spec, BatchSpec) else BatchSpec(**spec)
        self.run_program(spec, warmup_ns)
        self.start()
        self.installed.start()
        self.run(until_ns)

    @property
    def result(self):
        return self.installed.outcome()


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_transaction_is_the_sum_of_its_parts_to_the_nanosecond(engine):
    """3 ms of CPU time in three shares, two disk operations of 8 ms, 1 ms of pause: 20 ms a round."""
    jobs = Jobs({"demand": 3 * MS, "disk_operations": 2, "think": MS, "pages": 7}, 200 * MS + 1, engine=engine)
    found = jobs.result
    assert (found.duration.min, found.duration.max) == (19 * MS, 19 * MS)
    assert found.ended == 10
    assert found.disk_operations == 20
    assert found.pages_written == 70
    assert jobs.busy_ns() == 30 * MS


@pytest.mark.parametrize(("processes", "pcpus"), [(1, 1), (3, 2), (8, 1), (8, 4), (20, 4)])
def test_operational_bounds(processes, pcpus):
    """X <= min(N / (D + Z), m / D), met by constant times: D 4 ms, Z 8 ms."""
    jobs = Jobs({"processes": processes, "demand": 4 * MS, "disk_operations": 1}, 10 * S, warmup_ns=S, pcpus=pcpus)
    bound = min(processes / 0.012, pcpus / 0.004)
    assert jobs.result.rate <= bound * 1.001
    if processes <= pcpus or processes / 0.012 > 1.5 * pcpus / 0.004:
        assert jobs.result.rate == pytest.approx(bound, rel=0.01)


def mean_value_analysis(processes, demand_s, delay_s):
    """Throughput of a closed network of one queue and one delay."""
    queue, rate = 0.0, 0.0
    for n in range(1, processes + 1):
        response = demand_s * (1.0 + queue)
        rate = n / (response + delay_s)
        queue = rate * response
    return rate


@pytest.mark.thorough
@pytest.mark.parametrize("processes", [2, 6])
def test_exponential_jobs_are_those_of_mean_value_analysis(processes):
    """D 3 ms in three visits, Z 2 x 4 ms + 3 ms; 100 s are 15,000 to 30,000 transactions."""
    spec = {
        "processes": processes,
        "demand": 3 * MS,
        "demand_cv": 1.0,
        "disk_operations": 2,
        "disk_wait": 4 * MS,
        "disk_cv": 1.0,
        "think": 3 * MS,
        "think_cv": 1.0,
    }
    found = Jobs(spec, 100 * S).result
    assert found.rate == pytest.approx(mean_value_analysis(processes, 0.003, 0.011), rel=0.02)


def test_pages_of_shares_add_up():
    """Ten pages over three shares: 3 + 3 + 4."""
    jobs = Jobs({"demand": 3 * MS, "disk_operations": 2, "pages": 10}, MS + 1)
    assert jobs.result.pages_written == 3
    assert jobs.run(10 * MS + 1).result.pages_written == 6
    assert jobs.run(19 * MS + 1).result.pages_written == 10


def test_a_reboot_begins_anew():
    jobs = Jobs({"demand": 4 * MS, "disk_operations": 1, "processes": 2}, 6 * MS)
    jobs.engine.call(lab.boot_program, jobs.program)
    # The first process waited for the disk, the second computed; its job is the machine's to forget.
    assert jobs.result.begun == 2
    jobs.run(7 * MS)
    assert jobs.result.begun == 4
    assert jobs.result.ended == 0


def test_what_protection_makes_work_cost():
    jobs = Jobs({"demand": 4 * MS}, 0)
    jobs.engine.call(lab.add_overhead, jobs.program, 0)
    assert jobs.run(800 * MS + 1).result.rate == pytest.approx(125, rel=0.01)


@pytest.mark.parametrize("name", MIXES)
def test_named_mixes_run(name):
    found = Jobs(batch_of_mix(name), 60 * S if name in {"kernel_compile", "exchange_users"} else 2 * S, pcpus=2).result
    assert found.ended > 0
    assert batch_of_mix(name, processes=1).processes == 1
