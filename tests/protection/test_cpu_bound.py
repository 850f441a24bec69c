"""A process that computes and pauses, under a guard."""

from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.installing import Installing
from vftsim.kernel import Linked, link
from vftsim.kernel.choose import make_engine
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import vcpus
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.io.packet import application, path, workload
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import protections
from vftsim.sampling import Streams
from vftsim.workloads.cpu_bound import CpuBoundSpec

MS = 1_000_000


@cache
def linked() -> Linked:
    kinds = {
        scheduler: [native],
        path: [],
        workload: [],
        application: [CpuBoundSpec.part],
        protection: [spec.part for spec in protections().values()],
        fault: [spec.part for spec in FAULTS.values()],
    }
    return link(
        [*cpu.ENTRIES, *protect.ENTRIES, *CpuBoundSpec.entries],
        kinds,
        protect.ACTIONS,
        [*cpu.TABLES, *protect.TABLES, feeds],
    )


class Process:
    """Bursts of 4 ms with 6 ms between them, on a pCPU of its own."""

    def __init__(
        self,
        parameters: dict[str, Any],
        faults: tuple[dict[str, Any], ...] = (),
        engine: str = "simpy",
        by_clock: bool = False,
    ):
        self.engine = make_engine(linked(), engine, self.fill)
        self.host = cpu.add_host(self.engine, 1, Native())
        domain = cpu.add_domain(self.engine, self.host, DomainScheduling(), 1)
        self.feeder = Feeder(self.engine)
        site = Installing(self.engine, self.feeder, Streams(1, 0))
        program = CpuBoundSpec(duty=40, cycle=10 * MS, cv=0, by_clock=by_clock).install(site.context(domain))
        self.own = program.record
        protected: Any = protections()[parameters["kind"]].model_validate(parameters)
        self.guard = protect.add_guard(self.engine, protected, domain, [], [program.row])
        cpu.start(self.engine, self.host, Native())
        program.start()
        blows = [TypeAdapter(FAULTS[f["kind"]]).validate_python(dict(f)) for f in faults]
        protect.start(self.engine, self.guard, protected, dict(enumerate(blows)), lambda instant: instant.offset_ns)

    def fill(self) -> None:
        self.feeder.fill()

    def run(self, until_ms: int) -> tuple[int, int, float]:
        """Bursts begun, bursts done, CPU time in ms."""
        self.engine.run(until_ms * MS)
        cpu.check_conservation(self.engine, self.host)
        return int(self.own.begun), int(self.own.done), int(self.engine.rows(vcpus)[1].run_ns) / MS


CRASH = {"kind": "primary_crash", "at": "33 ms"}
HA = {
    "kind": "ha_restart",
    "failover": {
        "detection": {"heartbeat_interval": 5 * MS, "timeout": 10 * MS},
        "placement": 0,
        "boot_time": 12 * MS,
    },
}


def test_bursts_cost_what_protection_makes_them_cost():
    """6 ms of pause and 1.5 times 4 ms of computation: a burst every 12 ms instead of every 10."""
    lockstep = {"kind": "lockstep", "log": {"timer_rate": 0}, "cost": {"execution": 1.5}}
    assert Process({"kind": "none"}).run(120) == (12, 11, pytest.approx(48.0))
    assert Process(lockstep).run(120) == (10, 9, pytest.approx(60.0))


def test_a_process_that_stands_still_goes_on_with_its_burst():
    """Bursts at 6, 16, 26 ms; a pause from 28 to 48 ms: two of the four ms are left, then 6 ms until the next."""
    pause = {"kind": "pause", "at": "28 ms", "duration": "20 ms"}
    process = Process({"kind": "none"}, (pause,))
    assert process.run(49) == (3, 2, pytest.approx(11.0))
    assert process.run(57) == (4, 3, pytest.approx(13.0))


def test_bursts_by_the_clock_end_when_their_time_has_come():
    """Protection makes them no longer; of the burst from 26 to 30 ms a pause from 28 ms takes the second half."""
    lockstep = {"kind": "lockstep", "log": {"timer_rate": 0}, "cost": {"execution": 1.5}}
    pause = {"kind": "pause", "at": "28 ms", "duration": "20 ms"}
    assert Process(lockstep, by_clock=True).run(120) == (12, 11, pytest.approx(48.0))
    process = Process({"kind": "none"}, (pause,), by_clock=True)
    assert process.run(49) == (3, 3, pytest.approx(10.0, abs=0.11))
    assert process.run(59) == (4, 4, pytest.approx(14.0, abs=0.11))


@pytest.mark.parametrize("crash_ms", [28, 33])
def test_a_process_that_has_lost_its_memory_begins_with_a_pause(crash_ms: int):
    """Bursts at 6, 16, 26 ms; booted 22 ms after the last heartbeat; the next burst comes 6 ms later."""
    process = Process(HA, ({"kind": "primary_crash", "at": f"{crash_ms} ms"},))
    booted_ms = crash_ms // 5 * 5 + 22
    done, used_ms = {28: (2, 10.0), 33: (3, 12.0)}[crash_ms]
    assert process.run(booted_ms + 6)[1:] == (done, pytest.approx(used_ms))
    assert process.run(booted_ms + 11)[1:] == (done + 1, pytest.approx(used_ms + 4.0))


@pytest.mark.slow
def test_both_engines_agree():
    for parameters in ({"kind": "lockstep", "cost": {"execution": 1.5}}, HA):
        for by_clock in (False, True):
            both = (Process(parameters, (CRASH,), engine, by_clock) for engine in ("simpy", "compiled"))
            plain, compiled = (process.run(400) for process in both)
            assert plain == compiled
