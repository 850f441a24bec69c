"""All CPU work on a host takes its stated time divided by the speed of the host's pCPUs."""

import pytest

from tests.golden.compact import differences, read
from tests.golden.host_scripts import HOSTS
from tests.platform.scripted_host import linked, result
from tests.platform.test_scripted_hosts import CHANGED
from vftsim.errors import UsageError
from vftsim.kernel import link
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu import build
from vftsim.platform.cpu.background import CyclicLoadSpec, add_load, begin_load
from vftsim.platform.cpu.elided import account_for_elided, elide
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native

STORED = read(HOSTS)
_DEMAND = 4


@pytest.mark.parametrize("name", ["native-06", "credit-4.2-03", "cfs-12", "esxi-12", "credit-3.2-04"])
@pytest.mark.parametrize("speed", [2, 3, 0.5])
def test_work_as_much_more_on_a_host_as_much_faster_takes_as_long(name: str, speed: float):
    """To the last digit: jobs, slices, interrupts, background work, pauses."""
    script = STORED[name]["script"]
    jobs = [list(job) for job in script["jobs"]]
    odd = sum(job[_DEMAND] % 2 for job in jobs)
    if speed < 1:
        # Half of an odd demand has no whole number of ns: the host that is compared does even demands.
        jobs = [[*job[:_DEMAND], 2 * job[_DEMAND], *job[_DEMAND + 1 :]] for job in jobs]
        expected = result(make_engine(linked(name.partition("-")[0]), "simpy"), {**script, "jobs": jobs})
        assert odd > 0
    else:
        expected = CHANGED.get(name, STORED[name]["result"])
    faster = [[*job[:_DEMAND], int(job[_DEMAND] * speed), *job[_DEMAND + 1 :]] for job in jobs]
    kernel = linked(name.partition("-")[0])
    found = result(make_engine(kernel, "simpy"), {**script, "jobs": faster, "cpu_speed": float(speed)})
    assert not list(differences(expected, found))


def test_a_speed_that_no_cpu_has_is_refused():
    engine = make_engine(linked("native"), "simpy")
    with pytest.raises(UsageError, match=r"cpu_speed 0\.0 must be between 0.001 and 1000"):
        build.add_host(engine, 1, Native(), cpu_speed=0.0)


def test_work_that_is_not_simulated_has_the_stated_speed():
    kernel = link([*build.ENTRIES, begin_load, account_for_elided], {scheduler: [native]}, [], build.TABLES)
    for speed, is_elided in ((1.0, True), (2.0, False)):
        engine = make_engine(kernel, "simpy")
        host = build.add_host(engine, 1, Native(), cpu_speed=speed)
        domain = build.add_domain(engine, host, DomainScheduling(), 1)
        build.start(engine, host, Native())
        row = add_load(engine, domain, CyclicLoadSpec(busy=1_000_000, period=10_000_000), 1)
        assert elide(engine, row, Native()) is is_elided
