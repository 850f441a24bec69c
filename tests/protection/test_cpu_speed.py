"""A CPU of another speed does the same: the guest writes, reads its clock and executes as much for the same work."""

import math
import re
from typing import Any

import pytest

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.platform.io.driver_domain import DriverDomainSpec
from vftsim.platform.io.paths.paravirtual import Paravirtual
from vftsim.platform.protection import mechanism
from vftsim.spec import Spec


def protected(protection: dict[str, Any], speed: float, **guest: Any) -> Any:
    data = {
        "hosts": {"host": {"cpu_speed": speed}},
        "domains": {"guest": {"protection": protection, **guest}},
        "measure": {"warm_up": "1 s", "duration": "5 s"},
    }
    if "interfaces" in guest:
        data["workloads"] = {"load": {"kind": "open_requests", "to": "guest", "rate": "100 /s"}}
    return run_model(checked(data), 1, 0, "compiled").whole.outcomes["domains.guest.protection"]


ASKED = {
    "interfaces": {"eth0": {"path": {"kind": "moderated", "moderation": "0 ns"}}},
    "applications": {"server": {"kind": "service", "demand": "1 ms"}},
}
"""100 requests a second that take no more than a tenth of a CPU of half the speed."""


@pytest.mark.parametrize(("speed", "inflation"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, 2.0), (2.0, 1.25)])
def test_a_guest_that_computes_dirties_as_many_pages_as_it_does_work(speed: float, inflation: float):
    """W (1 - exp(-r s T / W)) of a guest that never stops: W = 2000 pages, r = 10,000 a second, T = 50 ms.

    s is the speed, over what a hypervisor makes all work longer.
    """
    free = {"suspend_request": "0 ns", "pause": {"fixed": "0 ns", "page": "0 ns"}, "channel": {"rate": "10 Gbit/s"}}
    found = protected(
        {"kind": "checkpoint", "interval": "50 ms", **free},
        speed,
        applications={"job": {"kind": "cpu_bound", "duty": "100 %"}},
        cpu_inflation=inflation,
    )
    pages = 2000 * (1 - math.exp(-10_000 * 0.05 * speed / inflation / 2000))
    assert found.dirty_pages / found.states == pytest.approx(pages, rel=1e-4)


def test_requests_dirty_as_many_pages_whatever_the_speed_and_a_fast_backup_takes_them_in_sooner():
    slow, fast = (protected({"kind": "checkpoint", "interval": "50 ms"}, speed, **ASKED) for speed in (1.0, 2.0))
    assert fast.dirty_pages == pytest.approx(slow.dirty_pages, rel=0.01)
    assert fast.backup_cpu_ns == pytest.approx(slow.backup_cpu_ns / 2, rel=0.01)


def test_a_fast_guest_reads_its_clock_as_often_and_is_replayed_in_half_the_time():
    """100 requests of 1 ms, each read of the clock a millisecond, and an entry of 5 us for whatever is logged."""
    recorded = {"kind": "lockstep", "log": {"clock_read_rate": "1000 /s"}}
    slow, fast = (protected(recorded, speed, **ASKED) for speed in (1.0, 2.0))
    assert slow.counted["logged_clock_reads"] == pytest.approx(500, rel=0.15)
    assert fast.counted["logged_clock_reads"] == pytest.approx(slow.counted["logged_clock_reads"], abs=2)
    assert fast.backup_cpu_ns == pytest.approx(slow.backup_cpu_ns / 2, rel=0.05)


def test_an_epoch_of_a_fast_processor_is_as_many_instructions():
    """50,000 instructions at 50 million a second and a boundary of 0.25 ms, and 0.01 to simulate one of them.

    The hypervisor's work is as much as well.  What it makes the guest's work longer are no more instructions of that.
    """
    job = {"job": {"kind": "cpu_bound", "duty": "100 %"}}
    epochs = {"kind": "hypervisor_epoch", "simulated_rate": "1000 /s", "simulated_cost": "10 us"}
    slow, fast = (protected(epochs, speed, applications=job).counted["epochs"] for speed in (1.0, 2.0))
    assert (slow, fast) == (pytest.approx(5 / 1.26e-3, abs=1), pytest.approx(10 / 1.26e-3, abs=1))
    stretched = protected(epochs, 1.0, applications=job, cpu_inflation=1.5).counted["epochs"]
    assert stretched == pytest.approx(5 / 1.76e-3, abs=1)


PAUSE = {"interval": "10 ms", "pause": {"fixed": "3 ms", "page": "2 us"}}
SUSPEND = {"suspend": "3 ms"}


@pytest.mark.parametrize(
    ("protection", "page_ms"),
    [
        ({"kind": "checkpoint", **PAUSE}, 0.002),
        ({"kind": "micro_checkpoint", **PAUSE}, 0.002),
        ({"kind": "event_sync", **SUSPEND}, 0.0),
        ({"kind": "coarse_lockstep", "period": "100 ms", "divergence_rate": 1e-6, **SUSPEND}, 0.0),
    ],
)
def test_a_pause_is_work_of_the_host(protection: dict[str, Any], page_ms: float):
    """At four times the speed a quarter of it; a packet dirties 1000 pages, and the channel takes as long for them."""
    protection |= {"channel": {"rate": "100 Gbit/s"}, "memory": {"working_set": 0, "per_request": 1000.0}}
    guest = {**ASKED, "applications": {"server": {"kind": "service", "demand": "0 ms"}}}
    slow, fast = (protected(protection, speed, **guest) for speed in (1.0, 4.0))
    stopped_ms = [found.stopped_ns / 1e6 / found.counted["states_taken"] for found in (slow, fast)]
    pages = slow.dirty_pages / slow.counted["states_taken"]
    assert stopped_ms[0] - stopped_ms[1] == pytest.approx(0.75 * (3.0 + page_ms * pages), rel=0.03)


COSTS = re.compile(r"(pause|sender|cost)\..*(?<!settling)|state\.receive_cost|suspend|boundary|(\w+\.)?\w+_cost")
RATES = re.compile(r"memory\.touch_rate|instruction_rate|simulated_rate")


def stated(spec: Spec, factor: int, before: str = "") -> dict[str, Any]:
    """What a part says of CPU work, times a factor, and of what comes in so much of it, by the factor."""
    found: dict[str, Any] = {}
    for name in type(spec).model_fields:
        value, key = getattr(spec, name), f"{before}{name}"
        if isinstance(value, Spec):
            found |= {name: inner} if (inner := stated(value, factor, f"{key}.")) else {}
        elif isinstance(value, int | float) and COSTS.fullmatch(key):
            found[name] = value * factor
        elif isinstance(value, float) and RATES.fullmatch(key):
            found[name] = value / factor
    return found


@pytest.mark.parametrize("kind", ["lockstep", "checkpoint", "event_sync", "coarse_lockstep", "hypervisor_epoch"])
def test_twice_the_work_at_twice_the_speed_is_the_same(kind: str):
    """All costs are of CPU work at speed 1: stated twice, a processor of twice the speed takes as long for them."""
    found = []
    for factor in (1, 2):
        guest = {
            "interfaces": {"eth0": {"path": {"kind": "paravirtual", **stated(Paravirtual(), factor)}}},
            "applications": {"server": {"kind": "service", "demand": 100_000 * factor, "threads": 8}},
            "protection": {"kind": kind, **stated(mechanism.PROTECTIONS[kind](), factor)},
        }
        data = {
            "hosts": {"host": {"pcpus": 2, "cpu_speed": factor, "scheduler": {"kind": "credit2"}, "switch_cost": 0}},
            "domains": {"dom0": {"driver": stated(DriverDomainSpec(), factor)}, "guest": guest},
            "workloads": {"load": {"kind": "open_requests", "to": "guest", "rate": "300 /s"}},
            "measure": {"warm_up": "500 ms", "duration": "1 s"},
        }
        outcomes: dict[str, Any] = dict(run_model(checked(data), 1, 0, "compiled").whole.outcomes)
        of_guest = outcomes["domains.guest.protection"]
        cpu_ns = outcomes["domains.dom0"].cpu_ns, outcomes["domains.guest"].cpu_ns
        found.append((*cpu_ns, of_guest.stopped_ns, of_guest.backup_cpu_ns, of_guest.sender_cpu_ns))
    assert found[1] == pytest.approx(found[0], rel=1e-3)
