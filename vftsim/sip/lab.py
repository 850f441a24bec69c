"""The SIP lab put together: test systems, network, server, host, protection, and the benchmark's manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vftsim.cpu import Guest, Host, Work
from vftsim.cpu.background import CyclicLoad
from vftsim.engine import Clock, EventKind
from vftsim.errors import ConservationError
from vftsim.net.guest_nic import GuestNic
from vftsim.net.nics import Nics
from vftsim.protection.base import Mechanism
from vftsim.protection.faults import inject
from vftsim.protection.interposed_nic import InterposedNic
from vftsim.protection.machine import Machine, Overhead
from vftsim.protection.none import NoProtectionSpec
from vftsim.protection.when import Instant
from vftsim.sampling import Streams
from vftsim.sip.agents import TestSystems
from vftsim.sip.attempt import Attempt
from vftsim.sip.benchmark import Manager
from vftsim.sip.messages import SIZE_BYTES
from vftsim.sip.metrics import PhaseRecord
from vftsim.sip.sampler import Gauges, Sampler
from vftsim.sip.server import SipServer
from vftsim.sip.system import SipLabSpec

_S = 1_000_000_000
LONGEST_DRAIN_NS = 120 * _S


class SipLab:
    """One run of the benchmark against one system.

    Parameters
    ----------
    spec : SipLabSpec
    seed, replication : int
        Root seed and number of the replication.
    on_phase : callable, optional
        Called with each :class:`PhaseRecord` when its measured part ends.
    """

    def __init__(
        self,
        spec: SipLabSpec,
        seed: int,
        replication: int,
        on_phase: Callable[[PhaseRecord], None] | None = None,
    ) -> None:
        self.spec = spec
        self.clock = Clock()
        self.host = Host(self.clock, spec.host.pcpus, spec.host.scheduler.build(), spec.host.switch_cost)
        self.guest = self._add_guest("sut")
        self.neighbours = {name: self._add_guest(name) for name in sorted(spec.domains) if name != "sut"}
        virtual = spec.virtualization
        self.nics = Nics(self.clock, spec.nics)
        self.to_server = self.nics.to_host("vm")
        self.to_agents = self.nics.from_host("vm")
        self.server = SipServer(self.clock, self.guest, spec.server, self._server_sends, virtual)
        self.lost_in_crash = 0
        self._lost_servers: list[SipServer] = []
        self._live: dict[int, Attempt] = {}
        self.mechanism: Mechanism | None = None
        self._machine: Machine | None = None
        if spec.faults or not isinstance(spec.protection, NoProtectionSpec):
            self.nic: GuestNic = self._protect()
        else:
            self.nic = GuestNic(
                self.clock, self.guest, spec.nic.ring, spec.nic.moderation, virtual.interrupt_cost,
                virtual.packet_cost, None, self.server.receive,
            )  # fmt: skip
        self.agents = TestSystems(self.clock, spec.workload, self._agent_sends, self._attempt_ended)
        lag_ns = None if self.mechanism is None else self.mechanism.lag_ns
        gauges = Gauges(self.server_busy_ns, self._dropped, self._memory_mb, lag_ns)
        self._sampler = Sampler(self.clock, spec.workload.sample_period, self.agents.counters, gauges)
        self._on_phase = on_phase
        self.manager = Manager(
            self.clock, spec.workload, Streams(seed, replication), spec.server.demand_cv, self.agents,
            self._phase_ended, self._sampler.begin,
        )  # fmt: skip

    def run(self) -> list[PhaseRecord]:
        """Play the whole benchmark; returns the measured phases.

        Raises
        ------
        ConservationError
            An invariant of the simulation failed.
        """
        self.host.start()
        self.server.start()
        self.nics.start()
        self._start_neighbours()
        self._start_protection()
        self.clock.process(self.manager.play())
        while not self.manager.finished:
            self.clock.run(self.clock.now_ns + 60 * _S)
        end_ns = self.clock.now_ns + LONGEST_DRAIN_NS
        while self.manager.under_way and self.clock.now_ns < end_ns:
            self.clock.run(self.clock.now_ns + _S)
        self.check_conservation()
        return self.manager.phases

    def check_conservation(self) -> None:
        """Datagrams sent = delivered + dropped + in flight, on every hop; CPU time fits into elapsed time.

        A server that crashed keeps its counts: what it had taken in and not finished is lost in the crash.
        """
        nic, server, link = self.nic, self.server, self.to_server
        if nic.received != link.delivered:
            raise ConservationError("the link and the network card disagree on what arrived")
        handed = nic.received - nic.dropped - nic.lost_while_down - nic.waiting
        reached = sum(each.received for each in self._servers())
        if handed != reached:
            raise ConservationError(f"{handed} datagrams left the card, {reached} reached the socket")
        if self.mechanism is not None:
            self.mechanism.check()
        if server.received != server.taken + server.dropped + server.in_progress or server.table.held < 0:
            raise ConservationError(
                f"of {server.received} datagrams at the socket {server.taken} are done, {server.dropped} were dropped "
                f"and {server.in_progress} are in progress"
            )
        if self.host.busy_ns() + self.host.switching_ns > self.clock.now_ns * self.host.pcpus:
            raise ConservationError("more CPU time used than has passed")

    def _add_guest(self, name: str) -> Guest:
        domain = self.spec.domains[name]
        vcpus = [self.host.add_vcpu(domain, domain.affinity) for _ in range(domain.vcpus)]
        return Guest(self.host, vcpus, self.spec.server.quantum)

    def _start_neighbours(self) -> None:
        for number, (name, guest) in enumerate(self.neighbours.items()):
            load = self.spec.domains[name].background
            if load is not None:
                CyclicLoad(self.clock, guest, load, 1 + number).start()

    def server_busy_ns(self) -> int:
        """CPU time that the server's guest has used up to now."""
        self.host.busy_ns()
        return sum(vcpu.run_ns for vcpu in self.guest.vcpus)

    def socket_dropped(self) -> int:
        """Datagrams that met a full socket buffer up to now, of servers lost in a crash too."""
        return sum(each.dropped for each in self._servers())

    def _at_user_agents(self, action: Callable[[Any], None], argument: Any) -> None:
        """Do what the user agents do, at the price of CPU time if they run on this host."""
        uac = self.neighbours.get("uac")
        cost_ns = self.spec.domains["uac"].message_cost if uac is not None else 0
        if uac is not None and cost_ns:
            uac.submit(Work(cost_ns, action, argument))
        else:
            action(argument)

    def _agent_sends(self, message: int, attempt: Attempt) -> None:
        self._at_user_agents(self._to_wire, (message, attempt))

    def _to_wire(self, datagram: tuple[int, Attempt]) -> None:
        size = SIZE_BYTES[datagram[0]]
        self.to_server.send(size, datagram[1].index, self.nic.receive, (size, datagram))

    def _from_wire(self, datagram: tuple[int, Attempt]) -> None:
        self._at_user_agents(self.agents.receive, datagram)

    def _server_sends(self, message: int, attempt: Attempt) -> None:
        if self.mechanism is None or self._machine is None:
            self._release((message, attempt))
        elif not self._machine.dead:  # its timers go on in the simulation, and reach nobody
            self.mechanism.on_output(SIZE_BYTES[message], self._release, (message, attempt))

    def _release(self, datagram: tuple[int, Attempt]) -> None:
        message, attempt = datagram
        self.to_agents.send(SIZE_BYTES[message], attempt.index, self._from_wire, datagram)

    def _attempt_ended(self, attempt: Attempt) -> None:
        self._live.pop(attempt.index, None)
        self.manager.attempt_ended(attempt)

    def _protect(self) -> InterposedNic:
        """Put the guest under a protection mechanism; returns its network card."""
        spec, virtual = self.spec, self.spec.virtualization
        nic = InterposedNic(
            self.clock, self.guest, spec.nic.ring, spec.nic.moderation, virtual.interrupt_cost,
            virtual.packet_cost, _costs_nothing, self._reaches_server,
        )  # fmt: skip
        machine = Machine(self.clock, self.guest, nic, self._set_overhead, self._boot_server)
        self._machine = machine
        self.mechanism = spec.protection.build(self.clock, machine, self.to_agents)
        nic.on_input = self.mechanism.on_input
        return nic

    def _start_protection(self) -> None:
        mechanism, begins = self.mechanism, self.spec.protection.begins
        if mechanism is None:
            return
        if begins is None:
            mechanism.begin()
        else:
            self.clock.at(self.time_of(begins), EventKind.CONTROL, 3, mechanism.begin)
        inject(self.clock, self.spec.faults, mechanism, self.time_of)

    def time_of(self, instant: Instant) -> int:
        """Time of the run in ns: every phase has a fixed length."""
        workload = self.spec.workload
        before = workload.pre_registration
        batch_ns = round(workload.test_systems * _S / before.rate)
        stir_ns = before.duration // batch_ns * batch_ns
        steps_ns = stir_ns + workload.stir.duration // workload.stir.steps * workload.stir.steps
        if instant.phase == "stir":
            return stir_ns + instant.offset_ns
        if instant.phase.startswith("step "):
            return steps_ns + (int(instant.phase[5:]) - 1) * workload.steps.duration + instant.offset_ns
        return instant.offset_ns

    def _reaches_server(self, datagram: tuple[int, Attempt]) -> None:
        attempt = datagram[1]
        if not attempt.ended:
            self._live[attempt.index] = attempt
        self.server.receive(datagram)

    def _set_overhead(self, overhead: Overhead) -> None:
        self.server.set_overhead(overhead)

    def _boot_server(self) -> None:
        """Start a server with empty memory: transactions, timers and queued datagrams are gone."""
        old = self.server
        old.guest, old.send = _Grave(self.host, [], 1), _lose
        for attempt in self._live.values():
            transaction, attempt.request = attempt.request, None
            if transaction is not None and transaction.forward is not None:
                transaction.forward.stop()
        self.lost_in_crash += old.in_progress
        self._lost_servers.append(old)
        self.server = SipServer(self.clock, self.guest, self.spec.server, self._server_sends, self.spec.virtualization)
        self.server.start()

    def _servers(self) -> list[SipServer]:
        return [*self._lost_servers, self.server]

    def _phase_ended(self, record: PhaseRecord) -> None:
        self._sampler.end(record)
        if self._on_phase is not None:
            self._on_phase(record)

    def _dropped(self) -> int:
        return self.socket_dropped() + self.nic.dropped + self.to_server.dropped + self.to_agents.dropped

    def _memory_mb(self) -> float:
        server = self.spec.server
        used = self.manager.attempts_begun * server.memory_per_attempt
        used += self.server.table.held * server.memory_per_transaction
        return (self.spec.memory_available - used) / 1e6


class _Grave(Guest):
    """Where the timers of a lost server process send their work."""

    def submit(self, work: Work) -> None:
        """Do nothing."""


def _costs_nothing(_: int) -> int:
    """No protection, no cost."""
    return 0


def _lose(_message: int, _attempt: Attempt) -> None:
    """Where the answers of a lost server process go."""
