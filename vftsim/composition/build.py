"""A model put together in an engine, host by host: domains, ways to the network, programs, guards, workloads."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from vftsim.composition.hosts import DomainSpec, HostSpec, InterfaceSpec, NetworkSpec
from vftsim.composition.link import guarded
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import is_linked, protection_of, struck_by, talks_inside
from vftsim.errors import UsageError
from vftsim.kernel import Engine
from vftsim.kernel.agenda import Agenda
from vftsim.kernel.inputs import Feeder
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.elided import elide
from vftsim.platform.cpu.records import domains, hosts
from vftsim.platform.io import build as io
from vftsim.platform.io.build import Site
from vftsim.platform.io.disk import add_disk
from vftsim.platform.io.host_cards import add_card, cards, start_background
from vftsim.platform.io.link import frames_to_loss, links, set_loss, set_loss_bursts
from vftsim.platform.io.loopback import INSIDE, loopback
from vftsim.platform.io.outside import comings, start_sending
from vftsim.platform.io.packet import ports
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.sampling import Draws, Streams, exponential_ns
from vftsim.workloads.arrivals import NicFeeder, Source
from vftsim.workloads.parts import Driver, InstallContext, Program, Target, Wiring, WorkloadSpec

OVERLOAD = ("full", "no slot", "receive ring full", "queue full")
"""Causes of drops that come of load, not of faults."""


@dataclass
class BuiltHost:
    """A host in an engine."""

    name: str
    row: int
    spec: HostSpec
    io: io.Io
    cards: dict[str, int] = field(default_factory=dict)
    """Rows of the cards by network, where the link to it is modelled."""
    domains: list[str] = field(default_factory=list)
    """Names of its domains, in the order in which they were added."""


class BuiltModel:
    """A model in an engine, ready to start.

    ``on_phase`` is called with each finished phase of a workload that has phases, ``on_measure`` when such a phase
    begins, with the instant from which it is measured.  Where it is ``observed``, hosts write notes of every scheduling
    event.
    """

    def __init__(
        self,
        engine: Engine,
        spec: ModelSpec,
        streams: Streams,
        agenda: Agenda,
        on_phase: Callable[[Any], None],
        on_measure: Callable[[int], None],
        *,
        observed: bool = False,
    ) -> None:
        self.engine, self.spec, self.streams, self.agenda = engine, spec, streams, agenda
        self.feeder = Feeder(engine)
        self.hosts: dict[str, BuiltHost] = {}
        self.domains: dict[str, int] = {}
        """Rows of the domains, by host in the order in which they were added."""
        self.programs: dict[str, Program] = {}
        """Applications as ``domain.application``."""
        self.ports: dict[tuple[str, str], int] = {}
        """Rows of the ports by application and interface."""
        self.inside: dict[str, int] = {}
        """Rows of the ports for what programs of one domain send each other, by application."""
        self.guards: dict[str, int] = {}
        """Rows of the guards by domain."""
        self.disks: dict[str, tuple[int, ...]] = {}
        self.drivers: dict[str, Driver] = {}
        """Workloads; one of a domain that stands for several has its number appended."""
        self.nic_feeders: list[NicFeeder] = []
        self._kinds: Counter[str] = Counter()
        self._senders: list[int] = []
        self._on_phase, self._on_measure = on_phase, on_measure
        self.specs, self._guarded = spec.expanded(), guarded(spec)
        self.networks = {name: number for number, name in enumerate(spec.networks, 1)}
        for name, host in spec.hosts.items():
            self._add_host(name, host, observed=observed)
        # Mechanisms first, which draw by their number: a fault of another domain changes nothing of theirs.
        for name in sorted(self.specs, key=lambda each: not self.specs[each].protection.protects):
            if name in self._guarded:
                self._add_guard(name)
        for name, workload in spec.workloads.items():
            self._add_workload(name, workload)
        self._feed_nics()

    @property
    def window_ns(self) -> tuple[int, int]:
        """When measuring begins and ends, where no workload has phases of its own."""
        return self.spec.measure.warm_up, self.spec.longest_ns

    def host_of(self, domain: str) -> BuiltHost:
        return next(host for host in self.hosts.values() if domain in host.domains)

    def link_ends(self) -> Iterator[tuple[str, str, int]]:
        """Yield address, network and row of each end of a modelled link."""
        for host in self.hosts.values():
            for network, card in host.cards.items():
                record = self.engine.rows(cards)[card]
                yield f"networks.{network}.to_{host.name}", network, int(record.to_host)
                yield f"networks.{network}.from_{host.name}", network, int(record.from_host)

    def _add_host(self, name: str, spec: HostSpec, *, observed: bool) -> None:
        engine = self.engine
        row = cpu.add_host(
            engine, spec.pcpus, spec.scheduler, spec.switch_cost, observed=observed, cpu_speed=spec.cpu_speed
        )
        host = self.hosts[name] = BuiltHost(name, row, spec, io.Io(engine))
        for nic, nic_spec in self.spec.nics_of(name).items():
            host.io.add_nic(nic, nic_spec)
        for network, wire in self.spec.networks.items():
            if is_linked(self.spec, name, network):
                host.cards[network] = card = add_card(engine, wire.rate, wire.latency, wire.queue)
                record = engine.rows(cards)[card]
                for link, direction in ((int(record.to_host), "to"), (int(record.from_host), "from")):
                    label = f"link of {network} {direction} {name}"
                    host.io.drop_rows[label, "queue full"] = int(engine.rows(links)[link].queue_full)
                    if wire.loss:
                        self._add_loss(link, f"network.{network}.{direction}", wire)
                        host.io.drop_rows[label, "on the way"] = int(engine.rows(links)[link].lost)
        own_domains = {each: d for each, d in self.specs.items() if self.spec.host_of(d) == name}
        for number, (each, domain) in enumerate(own_domains.items()):
            self._add_domain(host, each, domain, number)
        transmit = self._add_driver_domain(host)
        for each, domain in own_domains.items():
            for key, interface in domain.interfaces.items():
                self._connect(host, each, key, domain, interface, transmit)
            if talks_inside(self.spec, self.spec.entry_of(each)):
                self._connect_inside(host, each, domain)

    def _add_loss(self, link: int, name: str, wire: NetworkSpec) -> None:
        """Let a share of what a link carries be lost, drawn by network, direction and the number of the host."""
        share, draws = wire.loss / 100.0, partial(Draws, self.streams, entity=len(self.hosts))
        if not wire.loss_burst:
            law = partial(frames_to_loss, share=share)
            set_loss(self.engine, self.feeder, link, draws(name=f"{name}.loss", transform=law))
            return
        gap_ns = wire.loss_burst * (1.0 - share) / share
        gaps_ns = draws(name=f"{name}.loss.gap", transform=partial(exponential_ns, mean_ns=gap_ns))
        lengths_ns = draws(name=f"{name}.loss.burst", transform=partial(exponential_ns, mean_ns=wire.loss_burst))
        set_loss_bursts(self.engine, self.feeder, link, gaps_ns, lengths_ns)

    def _add_domain(self, host: BuiltHost, name: str, spec: DomainSpec, number: int) -> None:
        row = cpu.add_domain(self.engine, host.row, spec, spec.vcpus, spec.affinity, spec.quantum, spec.guest_scheduler)
        self.engine.rows(domains)[row].cpu_inflation = spec.cpu_inflation
        self.domains[name] = row
        host.domains.append(name)
        own_disks = {
            key: add_disk(self.engine, row, disk, self.feeder, self.streams) for key, disk in spec.disks.items()
        }
        self.disks[name] = tuple(own_disks.values())
        for key, application in spec.applications.items():
            context = InstallContext(
                self.engine,
                row,
                f"{name}.{key}",
                number,
                spec.cpu_inflation,
                spec.guest_scheduler,
                self.streams,
                self.feeder,
                host.io.drop_row,
                lambda load: self._has_one_program(name, spec) and elide(self.engine, load, host.spec.scheduler),
                own_disks,
                self._kinds,
                self.window_ns,
            )
            self.programs[f"{name}.{key}"] = application.install(context)
            self._kinds[application.kind] += 1

    def _has_one_program(self, name: str, spec: DomainSpec) -> bool:
        """Whether one application is all that a domain has to do, and nothing can stop it."""
        if len(spec.applications) != 1 or spec.driver is not None or name in self._guarded:
            return False
        clients = [workload.agents for workload in self.spec.workloads.values() if workload.agents]
        senders = [each.protection.sent_by for each in self.specs.values() if each.protection.sent_by]
        return not any(name in self.spec.copies(entry) for entry in (*clients, *senders))

    def _add_driver_domain(self, host: BuiltHost) -> int:
        name = self.spec.driver_of(host.name)
        if name is None:
            return 0
        spec = self.specs[name]
        owned = {
            self.spec.nic_of(domain, interface)
            for domain in self.specs.values()
            if self.spec.host_of(domain) == host.name
            for interface in domain.interfaces.values()
            if interface.path.needs_driver_domain
        }
        rows = [row for nic, row in host.io.nics.items() if nic in owned]
        assert spec.driver is not None
        return host.io.add_driver_domain(spec.driver, self.domains[name], rows)

    def _connect(
        self, host: BuiltHost, name: str, label: str, spec: DomainSpec, interface: InterfaceSpec, transmit: int
    ) -> None:
        path, network = interface.path, self.spec.network_of(spec, interface)
        stub = 0
        if path.needs_stub_domain:
            # One for all interfaces: a guest has one device model.
            if (stub_name := spec.stub_of(name)) not in self.domains:
                self._add_domain(host, stub_name, spec.stub, len(host.domains))
            stub = self.domains[stub_name]
        nic = host.io.nics[self.spec.nic_of(spec, interface)] if path.has_host_ring else 0
        programs = [f"{name}.{key}" for key, application in spec.applications.items() if application.speaks]
        for program in programs:
            row = host.io.add_port(
                name, self.domains[name], nic, self.programs[program].row, path.part, saves_ring=path.saves_ring
            )
            port, application = self.engine.rows(ports)[row], spec.applications[program.rpartition(".")[2]]
            port.card, port.pages_in = host.cards.get(network, 0), application.pages_a_packet or 0.0
            port.network = self.networks[network]
            port.first_window_bytes = self.spec.networks[network].first_window_bytes if port.card else 0
            self.ports[program, label] = row
        driver = self.domains.get(self.spec.driver_of(host.name) or "", 0)
        rows = tuple(self.ports[program, label] for program in programs)
        path.connect(host.io, Site(name, self.domains[name], nic, rows, driver, transmit, stub))
        for program in programs:
            self.programs[program].connected(self.ports[program, label])

    def _connect_inside(self, host: BuiltHost, name: str, spec: DomainSpec) -> None:
        """Give each program of a domain a port for what it is sent by others there."""
        for key, application in spec.applications.items():
            program, domain = f"{name}.{key}", self.domains[name]
            if application.speaks:
                row = host.io.add_port(name, domain, 0, self.programs[program].row, loopback, saves_ring=False)
                port = self.engine.rows(ports)[row]
                port.is_inside, port.pages_in = True, application.pages_a_packet or 0.0
                self.inside[program] = row

    def protection_of(self, name: str) -> ProtectionSpec:
        """Return the mechanism of a domain, with the rate and latency of the network that it names."""
        return protection_of(self.spec, self.specs[name])

    def _add_guard(self, name: str) -> None:
        host, domain = self.host_of(name), self.specs[name]
        port_rows = [row for (program, _), row in self.ports.items() if program.rpartition(".")[0] == name]
        programs = [p.row for key, p in self.programs.items() if key.rpartition(".")[0] == name and p.row]
        card = host.cards.get(domain.protection.channel_network or "", 0)
        link = int(self.engine.rows(cards)[card].from_host) if card else 0
        mechanism = self.protection_of(name)
        guard = protect.add_guard(
            self.engine,
            mechanism,
            self.domains[name],
            port_rows,
            programs,
            link,
            self.feeder,
            self.streams,
            disks=self.disks[name],
            sender=self.domains.get(mechanism.sent_by or self.spec.driver_of(host.name) or "", 0),
        )
        host.io.drop_rows[f"outputs of {name}", "no room when released"] = int(self.engine.rows(guards)[guard].no_room)
        host.io.drop_rows[f"network card of {name}", "lost"] = int(self.engine.rows(guards)[guard].card_lost)
        self.guards[name] = guard

    def _add_workload(self, name: str, workload: WorkloadSpec) -> None:
        _, application, spec = self.spec.target_of(workload)
        host_name, network, key = self.spec.arrival_of(workload)
        host, wire = self.hosts[host_name], self.spec.networks[network]
        for driver, domain in self.spec.drivers_of(name).items():
            program = f"{domain}.{application}"
            target = Target(
                self.engine,
                self.feeder,
                name,
                self._kinds[workload.kind],
                self.ports[program, key],
                self.programs[program],
                spec,
                self.domains[domain],
                self.guards.get(domain, 0),
                wire.rate,
                wire.latency,
                tuple(self.domains[each] for each in self.spec.copies(workload.agents)) if workload.agents else (),
                self.specs[domain].memory_available,
                self.window_ns,
                self.window_ns[1],
                network in host.cards,
                self.streams,
                self.agenda,
                {f"{where} {why}": row for (where, why), row in host.io.drop_rows.items() if why in OVERLOAD},
                self._on_phase,
                self._on_measure,
            )
            self._kinds[workload.kind] += 1
            self.drivers[driver] = workload.install(target)

    def _feed_nics(self) -> None:
        """Give each interface what is drawn beforehand for it, in the order of the workloads.

        Where the link to the host is modelled, each packet crosses it.
        """
        sources: dict[int, list[Source]] = {}
        for name, driver in self.drivers.items():
            workload = self.spec.workload_of(name)
            if not driver.sources:
                continue
            host_name, network, key = self.spec.arrival_of(workload)
            if network in self.hosts[host_name].cards:
                row, _ = self.engine.add(comings)
                self.nic_feeders.append(NicFeeder(self.engine, row, driver.sources, comings))
                self._senders.append(row)
                continue
            domain = self.spec.domains[self.spec.target_of(workload)[0]]
            nic = self.hosts[host_name].io.nics[self.spec.nic_of(domain, domain.interfaces[key])]
            sources.setdefault(nic, []).extend(driver.sources)
        order = [row for host in self.hosts.values() for row in host.io.nics.values()]
        self.nic_feeders += [NicFeeder(self.engine, row, sources[row]) for row in order if row in sources]

    def start(self) -> None:
        """Start everything, workloads last; refuse a host whose scheduler cannot have its domains."""
        for problem in self.spec.host_problems():
            raise UsageError(problem)
        engine = self.engine
        for host in self.hosts.values():
            cpu.start(engine, host.row, host.spec.scheduler)
        for name, program in self.programs.items():
            program.connect_peers(Wiring(self._doors(name), self._doors_of))
        for program in self.programs.values():
            program.start()
        for host in self.hosts.values():
            host.io.start()
            self._start_background(host)
        struck = [struck_by(self.spec, each) for each in self.spec.faults]
        for name, guard in self.guards.items():
            blows = {n: each for n, each in enumerate(self.spec.faults) if name in struck[n]}
            mechanism = self.protection_of(name)
            protect.start(engine, guard, mechanism, blows, self.spec.time_of, self.streams, self.networks)
        for driver in self.drivers.values():
            driver.begin()
        for row in self._senders:
            engine.call(start_sending, row)

    def _doors_of(self, name: str) -> list[dict[str, int]]:
        """Return the ports by network of each application that a name of the model file stands for."""
        return [self._doors(program) for program in self.spec.programs_of(name)]

    def _doors(self, program: str) -> dict[str, int]:
        """Return the ports of an application by network."""
        name = program.rpartition(".")[0]
        domain = self.specs[name]
        inside = {f"{INSIDE}{name}": self.inside[program]} if program in self.inside else {}
        return {
            self.spec.network_of(domain, interface): self.ports[program, key]
            for key, interface in domain.interfaces.items()
            if (program, key) in self.ports
        } | inside

    def _start_background(self, host: BuiltHost) -> None:
        traffics = [
            (name, network, traffic)
            for network in host.cards
            for name, traffic in self.spec.networks[network].background.items()
        ]
        lost, begun = host.io.drop_row("background traffic", "queue full"), set[str]()
        for number, (name, network, traffic) in enumerate(sorted(traffics, key=itemgetter(0, 1))):
            first_ns = traffic.period
            if network in begun:
                first_ns = self.streams.phase_ns(f"{network}.{name}.background", host.row, traffic.period)
            begun.add(network)
            start_background(self.engine, host.cards[network], number, traffic, lost, first_ns)

    def settle(self) -> None:
        """Bring all accounts of all hosts up to now."""
        for program in self.programs.values():
            program.update_accounts()
        for host in self.hosts.values():
            self.engine.call(cpu.bring_up_to_date, host.row)

    def vcpu_rows(self) -> Iterator[tuple[str, int, int]]:
        """Return domain, number within it and row of each vCPU, host by host."""
        for name, row in self.domains.items():
            domain = self.engine.rows(domains)[row]
            for number in range(int(domain.vcpus)):
                yield name, number, int(domain.first_vcpu) + number

    def pcpu_rows(self, host: str) -> range:
        record = self.engine.rows(hosts)[self.hosts[host].row]
        return range(int(record.first_pcpu), int(record.first_pcpu + record.pcpus))

    def occupancies(self) -> list[tuple[str, int]]:
        occupied: list[tuple[str, int]] = []
        for host in self.hosts.values():
            host.io.catch_up()
            occupied += host.io.occupancies()
        held = [program.occupancy() for program in self.programs.values()]
        return occupied + [each for each in held if each is not None]

    def drop_counts(self) -> dict[tuple[str, str], int]:
        counts: Counter[tuple[str, str]] = Counter()
        for host in self.hosts.values():
            counts.update(host.io.drop_counts())
        return dict(counts)
