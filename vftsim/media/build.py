"""Put a media host together from its spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vftsim.cpu import Guest, Host
from vftsim.cpu.scheduler import ScheduleObserver
from vftsim.engine import Clock
from vftsim.errors import ConservationError
from vftsim.media.applications import CpuBound, WorkerPool
from vftsim.media.flows import FlowAccount, RtpStreams, Signaling
from vftsim.media.system import CpuBoundSpec, DomainSpec, MediaSystem
from vftsim.net.driver_domain import DriverDomain
from vftsim.net.iopath import Port, Stage, Wiring
from vftsim.net.nic import Nic
from vftsim.net.rings import DropLog, Packet
from vftsim.sampling import Streams


class Domain:
    """A domain as schedulers see it: an identity with scheduling parameters.

    Two domains with equal parameters are two domains, so the spec itself, which compares by content,
    will not do.
    """

    def __init__(self, name: str, spec: DomainSpec) -> None:
        self.name = name
        self.spec = spec
        self.cap_percent = spec.cap

    def __getattr__(self, parameter: str) -> Any:
        return getattr(self.spec, parameter)


class MediaHost:
    """A media host ready to run.

    Parameters
    ----------
    system : MediaSystem
    streams : Streams
        Random streams of the replication.
    warmup_ns : int
        Packets that arrive earlier are not measured.
    observer : ScheduleObserver, optional
        Hears every scheduling event.
    tracing : bool
        Packets note the boundaries they pass.
    """

    def __init__(
        self,
        system: MediaSystem,
        streams: Streams,
        warmup_ns: int,
        observer: ScheduleObserver | None = None,
        *,
        tracing: bool = False,
    ) -> None:
        self.system = system
        self.clock = Clock()
        self.host = Host(
            self.clock, system.host.pcpus, system.host.scheduler.build(), system.host.switch_cost_ns, observer
        )
        self.drops = DropLog(self.clock)
        self.nics = {
            name: Nic(self.clock, name, spec, number, self.drops)
            for number, (name, spec) in enumerate(system.nics.items())
        }
        self.domains: dict[str, Domain] = {}
        self.guests: dict[str, Guest] = {}
        self.pools: dict[str, WorkerPool] = {}
        self.ports: dict[str, Port] = {}
        self.flows: dict[str, FlowAccount] = {}
        self.driver: DriverDomain | None = None
        self.cpu_bound: list[CpuBound] = []
        self.on_traced: Callable[[Packet, int], None] | None = None
        for name, spec in system.domains.items():
            self._add_domain(name, spec, streams)
        self._connect()
        self._attach_flows(streams, warmup_ns)
        for nic in self.nics.values():
            nic.tracing = tracing

    def _add_domain(self, name: str, spec: DomainSpec, streams: Streams) -> None:
        domain = self.domains[name] = Domain(name, spec)
        vcpus = [self.host.add_vcpu(domain, spec.affinity) for _ in range(spec.vcpus)]
        guest = self.guests[name] = Guest(self.host, vcpus, spec.quantum_ns)
        for program, application in spec.applications.items():
            if isinstance(application, CpuBoundSpec):
                self.cpu_bound.append(CpuBound(guest, application, streams, len(self.cpu_bound)))
            else:
                self.pools[f"{name}.{program}"] = WorkerPool(program, guest, application, self.drops)

    def _connect(self) -> None:
        system = self.system
        if system.driver_domain is not None:
            owned = [
                self.nics[nic]
                for nic in system.nics
                if any(
                    d.io_path is not None and d.io_path.needs_driver_domain and d.nic == nic
                    for d in system.domains.values()
                )
            ]
            self.driver = DriverDomain(system.driver, self.guests[system.driver_domain], owned, self._out)
        for name, spec in system.domains.items():
            if spec.io_path is None:
                continue
            stub = None
            if spec.io_path.needs_stub_domain:
                stub_spec = DomainSpec(weight=spec.weight)
                self._add_domain(f"{name}-stub", stub_spec, Streams(0, 0))
                stub = self.guests[f"{name}-stub"]
            wiring = Wiring(
                self.clock, self.guests[name], self.nics[spec.nic], drops=self.drops, up=_to_application,
                out=self._out, driver=self.driver, stub=stub,
            )  # fmt: skip
            self.ports[name] = spec.io_path.connect(wiring)

    def _attach_flows(self, streams: Streams, warmup_ns: int) -> None:
        workload = self.system.workload
        wire_ns = 2 * workload.link_latency_ns
        sources: dict[str, list[Iterator[Packet]]] = {name: [] for name in self.nics}
        flow: RtpStreams | Signaling
        if workload.rtp is not None:
            rtp = workload.rtp
            flow = RtpStreams(
                self.clock,
                rtp,
                self._target(rtp.to, "media_relay"),
                streams,
                warmup_ns=warmup_ns,
                wire_ns=wire_ns,
            )
            self.flows["media"] = flow
            sources[self.system.domains[rtp.to].nic].append(flow.packets())
        if workload.signaling is not None:
            calls = workload.signaling
            target = self._target(calls.to, "signaling_server")
            flow = Signaling(self.clock, calls, target, streams, warmup_ns=warmup_ns, wire_ns=wire_ns)
            self.flows["signaling"] = flow
            sources[self.system.domains[calls.to].nic].append(flow.packets())
        for name, nic in self.nics.items():
            nic.attach(sources[name])

    def _target(self, domain: str, kind: str) -> tuple[Port, WorkerPool]:
        for program, application in self.system.domains[domain].applications.items():
            if application.kind == kind:
                return self.ports[domain], self.pools[f"{domain}.{program}"]
        raise AssertionError(f"{domain} has no {kind}")  # the spec has checked it

    def stage_vcpus(self) -> dict[tuple[str, str], int]:
        """Return the vCPU of each stage that is interrupt work, by domain served ("": all) and stage."""
        found = {}
        for domain, stages in self._stages().items():
            for stage in stages:
                if stage.vcpu is not None:
                    found[domain, stage.name] = stage.vcpu.index
        return found

    def _stages(self) -> dict[str, list[Stage]]:
        stages = {name: port.stages() for name, port in self.ports.items()}
        stages[""] = [] if self.driver is None else [*self.driver.receive, self.driver.transmit]
        return stages

    def occupancies(self) -> list[tuple[str, int]]:
        """Packets in every ring and buffer, by name."""
        found = []
        for nic in self.nics.values():
            nic.catch_up()
            found.append((f"{nic.name} receive ring", nic.occupied))
        for name, port in self.ports.items():
            found += [(f"{name} {ring.name}", ring.occupied) for ring in port.rings()]
        found += [(f"{name} socket buffer", pool.socket.occupied) for name, pool in self.pools.items()]
        return found

    def _out(self, packet: Packet) -> None:
        if packet.marks is not None and self.on_traced is not None:
            self.on_traced(packet, self.clock.now_ns)
        packet.flow.delivered(packet, self.clock.now_ns)

    def start(self) -> None:
        """Start timers, interrupts and programs."""
        self.host.start()
        for process in self.cpu_bound:
            process.start()
        if self.driver is not None:
            self.driver.start()
        for port in self.ports.values():
            port.start()

    def check_conservation(self) -> int:
        """Raise unless sent = delivered + dropped + in flight; return what is in flight."""
        for nic in self.nics.values():
            nic.catch_up()
        sent = sum(nic.admitted for nic in self.nics.values())
        delivered = sum(flow.all_delivered for flow in self.flows.values())
        in_flight = sum(len(nic) for nic in self.nics.values())
        in_flight += sum(port.in_flight() for port in self.ports.values())
        in_flight += sum(pool.in_flight() for pool in self.pools.values())
        if self.driver is not None:
            in_flight += self.driver.in_flight()
        if sent != delivered + self.drops.total + in_flight:
            raise ConservationError(
                f"{sent} packets sent, but {delivered} delivered + {self.drops.total} dropped + {in_flight} in flight"
            )
        self.host.check_conservation()
        return in_flight


def _to_application(packet: Packet) -> None:
    packet.pool.receive(packet)
