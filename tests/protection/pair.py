"""A protected machine without a workload, for tests that drive it by hand, in the engine for reading."""

from typing import Any

from vftsim.kernel import EventKind, Kind
from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.records import domains
from vftsim.platform.io.packet import packets, ports
from vftsim.platform.protection import account, mechanism
from vftsim.platform.protection._lockstep_records import locksteps
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.faults import ChannelLoss, PrimaryCrash, inject
from vftsim.platform.protection.guard import guards, put_out, take_note
from vftsim.platform.protection.machine import run_ns
from vftsim.platform.protection.pair import pairs
from vftsim.platform.protection.throttle import throttles
from vftsim.platform.protection.when import Instant

from .lab import Lab, linked, log_end, taps
from .scripts import script

MS = 1_000_000
S = 1_000_000_000

QUIET = {"timer_rate": 0.0, "packet_entry": 0, "framing": 0, "transport_overhead": 1.0}
"""A log of nothing but packets' data and outputs, byte for byte."""


class Pair:
    """Host, guest and a lockstep mechanism; outputs have numbers, and are seen as (time, number)."""

    def __init__(self, part: Kind | None = None, **fields: Any) -> None:
        self.engine = SimpyEngine(linked() if part is None else linked(part))
        self.lab = Lab(self.engine, script(protection={"kind": "lockstep", **fields}), part)
        self.guard = self.engine.rows(guards)[self.lab.guard]
        self.channel = self.engine.rows(channels)[self.lab.guard]
        self.throttle = self.engine.rows(throttles)[self.lab.guard]
        self.own = self.engine.rows(locksteps)[self.lab.guard]

    def call(self, part: Any, *arguments: Any) -> Any:
        """Call a part of the kernel at the present instant."""
        return self.engine._namespace[part_of(part).name](self.engine.sim, *arguments)

    @property
    def now_ns(self) -> int:
        return self.engine.now_ns

    @property
    def pair(self) -> Any:
        return self.engine.rows(pairs)[self.own.pair]

    @property
    def counters(self) -> dict[str, int]:
        return account.counters(self.engine, self.lab.guard)

    @property
    def timeline(self) -> list[tuple[int, str]]:
        return account.timeline(self.engine, self.lab.guard)

    @property
    def seen(self) -> list[tuple[int, int]]:
        return self.lab.listed(taps, 0)

    @property
    def finished(self) -> list[int]:
        """When the jobs of :meth:`submit` ended."""
        return [time_ns for time_ns, _ in self.lab.listed(log_end, 0)]

    def at(self, time_ns: int, action: Any, argument: Any = None) -> None:
        def wait_for_it() -> Any:
            yield self.engine.wait(time_ns - self.now_ns, EventKind.ARRIVAL, 0)
            action(argument)

        self.engine.process(wait_for_it())

    def run(self, until_ns: int) -> None:
        self.engine.run(until_ns)

    def input(self, size_bytes: int) -> int:
        cost_ns: int = self.call(take_note, self.engine.rows(ports)[1], size_bytes)
        return cost_ns

    def output(self, number: int) -> None:
        row, _ = self.engine.add(packets, flow=1, message=number, size_bytes=1000, link=0)
        self.call(put_out, self.engine.rows(ports)[1], row)

    def submit(self, demand_ns: int) -> None:
        done = self.engine.number(self.lab.on_end)
        self.call(jobs.submit, self.engine.rows(domains)[1], demand_ns, done, 0, 0)

    def lag_ns(self) -> int:
        return self.engine.call(mechanism.lag_now, self.lab.guard)

    def run_ns(self) -> int:
        total_ns: int = self.call(run_ns, self.guard)
        return total_ns

    def crash_at(self, time_ns: int) -> None:
        self.strike(PrimaryCrash(at=Instant("run", time_ns)))

    def lose_channel_at(self, time_ns: int) -> None:
        self.strike(ChannelLoss(at=Instant("run", time_ns)))

    def strike(self, fault: Any) -> None:
        inject(self.engine, self.lab.guard, {0: fault}, lambda instant: instant.offset_ns)


def free_log(factor: float) -> Pair:
    """Return a pair whose log costs nothing and is there at once: a secondary so many times as slow falls behind."""
    return Pair(
        log={**QUIET, "timer_rate": 1000.0, "timer_entry": 1},
        channel={"rate": 10**12, "latency": 0, "ack": 0},
        cost={"entry": 0, "kibibyte": 0, "output": 0, "timer": 0},
        secondary={"factor": factor, "entry_cost": 0},
        throttle={"lag_limit": 10 * S},
    )
