"""A script played by the object model, for comparison."""

from typing import Any

from pydantic import TypeAdapter
from vftsim.cpu import Guest, Host, Work
from vftsim.engine import Clock, EventKind
from vftsim.net.link import Link
from vftsim.protection.base import PROTECTIONS
from vftsim.protection.interposed_nic import InterposedNic
from vftsim.protection.lockstep_pair import ReplicatedPair
from vftsim.protection.machine import NO_OVERHEAD, Machine

from vftsim.platform.cpu.schedulers.native import Native
from vftsim.platform.protection.faults import FAULTS, inject
from vftsim.spec import discover

from .scripts import Script

discover("vftsim.protection")
QUANTUM_NS = 100_000_000


class OldLab:
    """Host, guest with a program that answers packets, mechanism."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.clock = Clock()
        self.host = Host(self.clock, 1, Native().build())
        self.guest = Guest(self.host, [self.host.add_vcpu(None)], QUANTUM_NS)
        self.seen: list[tuple[int, int]] = []
        self.delivered: list[tuple[int, int]] = []
        self.lags: list[int] = []
        self.overhead = NO_OVERHEAD
        nic = script["nic"]
        self.nic = InterposedNic(
            self.clock, self.guest, nic["ring"], nic["moderation_ns"], nic["interrupt_cost_ns"],
            nic["packet_cost_ns"], self.note_input, self.deliver,
        )  # fmt: skip
        self.machine = Machine(self.clock, self.guest, self.nic, self.set_overhead, lambda: None)
        link = script["link"]
        self.link = Link(self.clock, link["rate_bits_per_s"], link["latency_ns"], link["queue_bytes"])
        parameters = dict(script["protection"])
        self.spec = TypeAdapter(PROTECTIONS[parameters["kind"]]).validate_python(parameters)
        self.mechanism = self.spec.build(self.clock, self.machine, self.link)

    def note_input(self, size_bytes: int) -> int:
        return self.mechanism.on_input(size_bytes)

    def set_overhead(self, overhead: Any) -> None:
        self.overhead = overhead

    def deliver(self, number: int) -> None:
        self.delivered.append((self.clock.now_ns, number))
        _, _, demand_ns, outputs = self.script["packets"][number]
        need_ns = int(demand_ns * self.overhead.execution) + len(outputs) * self.overhead.output_ns
        self.guest.submit(Work(need_ns, self.answer, number))

    def answer(self, number: int) -> None:
        for index, size in enumerate(self.script["packets"][number][3]):
            if not self.machine.dead:
                self.mechanism.on_output(size, self.release, (number * 10 + index, size))

    def release(self, output: tuple[int, int]) -> None:
        self.seen.append((self.clock.now_ns, output[0]))
        self.link.send(output[1], 0, lambda _: None, None)

    def look(self, _: Any) -> None:
        self.lags.append(self.mechanism.lag_ns())

    def run(self) -> dict[str, Any]:
        script, clock = self.script, self.clock
        self.host.start()
        if self.spec.begins is None:
            self.mechanism.begin()
        else:
            clock.at(self.spec.begins.offset_ns, EventKind.CONTROL, 3, self.mechanism.begin)
        faults = tuple(TypeAdapter(FAULTS[f["kind"]]).validate_python(dict(f)) for f in script["faults"])
        inject(clock, faults, self.mechanism, lambda instant: instant.offset_ns)
        for number, (at_ns, size, _, _) in enumerate(script["packets"]):
            clock.at(at_ns, EventKind.DELIVERY, number, self.nic.receive, (size, number))
        for number, (at_ns, demand_ns) in enumerate(script["jobs"]):
            clock.at(at_ns, EventKind.TIMER, number, self.guest.submit, Work(demand_ns, lambda _: None))
        for at_ns in script["looks"]:
            clock.at(at_ns, EventKind.ARRIVAL, 0, self.look)
        clock.run(script["until_ns"])
        if isinstance(self.mechanism, ReplicatedPair):
            self.mechanism._sync()
        self.mechanism.check()
        return {**self.machine_values(), **self.pair_values()}

    def machine_values(self) -> dict[str, Any]:
        self.host.busy_ns()
        nic, link = self.nic, self.link
        return {
            "seen": self.seen, "delivered": self.delivered, "lags": self.lags, "timeline": self.mechanism.timeline,
            "counters": self.mechanism.counters, "summary": self.mechanism.summary(),
            "stopped_ns": self.machine.stopped_ns, "stopped": self.machine.stopped, "dead": self.machine.dead,
            "run_ns": sum(v.run_ns for v in self.guest.vcpus),
            "nic": (nic.received, nic.dropped, nic.lost_while_down, nic.interrupts, nic.waiting),
            "link": (link.sent, link.dropped, link.delivered, link.sent_bytes),
        }  # fmt: skip

    def pair_values(self) -> dict[str, Any]:
        pair = self.mechanism
        if not isinstance(pair, ReplicatedPair):
            return {}
        log, replay, commit, throttle = pair.log, pair.replay, pair.commit, pair.throttle
        never_begun = not any(what == "protected" for _, what in pair.timeline)
        return {
            "state": pair.state.name.lower(),
            "log": (log.entries, log.train_entries, log.unsent_bytes, log.last_depart_ns, log.last_arrival_ns),
            "replay": (pair._replayed_ns + replay.busy_ns, replay.end_ns, replay.lag_ns),
            "commit": (pair._sequence, commit.released, commit.waiting, commit.visible, commit.wait_ns),
            "throttle": (throttle.share_percent, throttle.lowest_share_percent),
            "free_ns": 0 if never_begun else pair.channel.free_ns,
        }  # fmt: skip
