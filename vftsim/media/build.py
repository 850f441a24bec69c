"""Put a media host together from its spec."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from vftsim.errors import ConservationError
from vftsim.kernel import Engine, Kind, Linked, Table, link
from vftsim.kernel.choose import make_engine
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.media.system import DomainSpec, MediaSystem
from vftsim.platform import pauses
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.records import domains, hosts, pcpus
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.io import build as io
from vftsim.platform.io.driver_domain import TASKS as DRIVER_TASKS
from vftsim.platform.io.marks import mark_logs
from vftsim.platform.io.nic import nics
from vftsim.platform.io.packet import application, applications, flows, path, workload
from vftsim.platform.io.parameters import Site
from vftsim.platform.io.stage import task
from vftsim.platform.protection.guard import protection
from vftsim.sampling import Streams
from vftsim.workloads import account, cpu_bound
from vftsim.workloads.account import accounts
from vftsim.workloads.arrivals import NicFeeder, Source
from vftsim.workloads.calls import MESSAGE_BYTES, CallSource, calls
from vftsim.workloads.cpu_bound import CpuBoundSpec
from vftsim.workloads.pool import add_pool, pools
from vftsim.workloads.rtp import RtpSource, rtp_streams

_SORTS = (scheduler, path, task, application, workload, protection)


@cache
def linked(kinds: frozenset[Kind]) -> Linked:
    """Return the kernel of models with these kinds of parts; made once in a process."""
    chosen = {sort: [kind for kind in kinds if kind.sort is sort] for sort in _SORTS}
    entries = [*cpu.ENTRIES, *io.ENTRIES, *account.ENTRIES]
    tables: list[Table[Any]] = [*cpu.TABLES, *io.TABLES, *account.TABLES, *pauses.TABLES, pools, feeds]
    if cpu_bound.cpu_bound in kinds:
        entries += cpu_bound.ENTRIES
        tables += cpu_bound.TABLES
    return link(entries, chosen, pauses.ACTIONS, tables)


def kinds_of(system: MediaSystem) -> frozenset[Kind]:
    """Return the kinds of parts that a model uses."""
    found: set[Kind] = {system.host.scheduler.part}
    for spec in system.domains.values():
        found |= {program.part for program in spec.applications.values()}
        if spec.io_path is not None:
            found |= {spec.io_path.part, *spec.io_path.tasks}
    if system.driver_domain is not None:
        found |= set(DRIVER_TASKS)
    if system.workload.rtp is not None:
        found.add(rtp_streams)
    if system.workload.signaling is not None:
        found.add(calls)
    return frozenset(found)


class MediaHost:
    """A media host ready to run.

    Parameters
    ----------
    system : MediaSystem
    streams : Streams
        Random streams of the replication.
    warmup_ns : int
        Packets that arrive earlier are not measured.
    end_ns : int
        What arrives later is not drawn.
    engine : str
        Name of the engine; see :mod:`vftsim.kernel.choose`.
    observed : bool
        The host writes notes of every scheduling event.
    tracing : bool
        Packets note the boundaries they pass.
    """

    def __init__(
        self,
        system: MediaSystem,
        streams: Streams,
        warmup_ns: int,
        end_ns: int,
        engine: str = "auto",
        *,
        observed: bool = False,
        tracing: bool = False,
    ) -> None:
        self.system = system
        self.streams = streams
        self.warmup_ns = warmup_ns
        self.end_ns = end_ns
        self.scheduler = system.host.scheduler
        self.engine: Engine = make_engine(linked(kinds_of(system)), engine, self.on_input)
        self.pauses = pauses.Pauses(self.engine)
        self.host = cpu.add_host(
            self.engine, system.host.pcpus, self.scheduler, system.host.switch_cost_ns, observed=observed
        )
        self.io = io.Io(self.engine)
        self.domains: dict[str, int] = {}
        self.pools: dict[str, int] = {}
        self.cpu_bound: dict[str, int] = {}
        self.flows: dict[str, int] = {}
        self.accounts: dict[str, int] = {}
        self.listeners: list[Any] = []
        self._feeder = Feeder(self.engine)
        self._nic_feeders: list[NicFeeder] = []
        self._ports: dict[str, int] = {}
        self._transmit = 0
        self.engine.rows(mark_logs)[1].is_on = tracing
        for name, nic in system.nics.items():
            self.io.add_nic(name, nic)
        for name, spec in system.domains.items():
            self._add_domain(name, spec)
        self._add_driver_domain()
        for name, spec in system.domains.items():
            self._connect(name, spec)
        self._add_flows()

    def _add_domain(self, name: str, spec: DomainSpec) -> None:
        row = self.domains[name] = cpu.add_domain(
            self.engine, self.host, spec, spec.vcpus, spec.affinity, spec.quantum_ns
        )
        for program, own in spec.applications.items():
            if isinstance(own, CpuBoundSpec):
                self.cpu_bound[f"{name}.{program}"] = cpu_bound.add_cpu_bound(
                    self.engine, self._feeder, row, own, self.streams, len(self.cpu_bound)
                )
            else:
                place = self.io.place("socket buffer", "full")
                self.pools[f"{name}.{program}"] = add_pool(self.engine, row, own.part, own, place)

    def _add_driver_domain(self) -> None:
        system = self.system
        if system.driver_domain is None:
            return
        owned = {d.nic for d in system.domains.values() if d.io_path is not None and d.io_path.needs_driver_domain}
        rows = [self.io.nics[name] for name in system.nics if name in owned]
        self._transmit = self.io.add_driver_domain(system.driver, self.domains[system.driver_domain], rows)

    def _connect(self, name: str, spec: DomainSpec) -> None:
        way = spec.io_path
        if way is None:
            return
        stub = 0
        if way.needs_stub_domain:
            self._add_domain(f"{name}-stub", DomainSpec(weight=spec.weight))
            stub = self.domains[f"{name}-stub"]
        domain, nic = self.domains[name], self.io.nics[spec.nic]
        own = [f"{name}.{program}" for program in spec.applications if f"{name}.{program}" in self.pools]
        for program in own:
            self._ports[program] = self.io.add_port(name, domain, nic, self.pools[program], way)
        driver = self.domains.get(self.system.driver_domain or "", 0)
        rows = tuple(self._ports[program] for program in own)
        way.connect(self.io, Site(name, domain, nic, rows, driver, self._transmit, stub))

    def _add_flows(self) -> None:
        load = self.system.workload
        sources: dict[str, list[Source]] = {name: [] for name in self.io.nics}
        if load.rtp is not None:
            rtp = load.rtp
            flow = self._add_flow("media", rtp_streams, rtp.to, "media_relay", rtp.frame_bytes)
            self._open_account("media", rtp.streams, rtp.playout_ns, rtp.interval_ns)
            sources[self.system.domains[rtp.to].nic].append(RtpSource(rtp, self.streams, flow, self.end_ns, rtp.link_bit_per_s))
        if load.signaling is not None:
            signaling = load.signaling
            flow = self._add_flow("signaling", calls, signaling.to, "signaling_server", MESSAGE_BYTES)
            self._open_account("signaling", 1, signaling.hold_ns)
            source = CallSource(signaling, self.streams, flow, self.end_ns)
            sources[self.system.domains[signaling.to].nic].append(source)
        self._nic_feeders = [NicFeeder(self.engine, self.io.nics[name], own) for name, own in sources.items() if own]

    def _add_flow(self, name: str, kind: Kind, to: str, program_kind: str, size_bytes: int) -> int:
        programs = self.system.domains[to].applications.items()
        program = next(program for program, own in programs if own.kind == program_kind)
        row, flow = self.engine.add(
            flows, workload=self.engine.number(kind), port=self._ports[f"{to}.{program}"], size_bytes=size_bytes
        )
        flow.row = row
        self.flows[name] = row
        return row

    def _open_account(self, name: str, streams: int, late_ns: int, interval_ns: int = 0) -> None:
        wire_ns = 2 * self.system.workload.link_latency_ns
        row = account.add_account(
            self.engine, streams, warmup_ns=self.warmup_ns, wire_ns=wire_ns, late_ns=late_ns, interval_ns=interval_ns
        )
        self.accounts[name] = row
        self.engine.rows(flows)[self.flows[name]].own = row

    def on_input(self) -> None:
        """Draw more where numbers run low, empty logs, look where somebody wants to."""
        self._feeder.fill()
        for feeder in self._nic_feeders:
            feeder.fill()
        for listener in self.listeners:
            listener.read()
        self.pauses.look()

    def vcpu_rows(self) -> Iterator[tuple[str, int, int]]:
        """Return domain, number within it and row of each vCPU, in the host's order."""
        for name, row in self.domains.items():
            domain = self.engine.rows(domains)[row]
            for number in range(int(domain.vcpus)):
                yield name, number, int(domain.first_vcpu) + number

    def pcpu_rows(self) -> range:
        """Return the rows of the host's pCPUs."""
        host = self.engine.rows(hosts)[self.host]
        return range(int(host.first_pcpu), int(host.first_pcpu + host.pcpus))

    def switching_ns(self) -> int:
        """Time lost to switching, on all pCPUs; a switch counts when it begins."""
        return sum(int(self.engine.rows(pcpus)[row].switching_ns) for row in self.pcpu_rows())

    def settle(self) -> None:
        """Charge every running vCPU up to now."""
        self.engine.call(cpu.bring_up_to_date, self.host)

    def start(self) -> None:
        """Start timers, programs and interrupts."""
        cpu.start(self.engine, self.host, self.scheduler)
        for row in self.cpu_bound.values():
            self.engine.call(cpu_bound.start_cpu_bound, row)
        self.io.start()

    def run(self) -> None:
        """Run to the end, and read what is left in logs."""
        self.engine.run(self.end_ns)
        for listener in self.listeners:
            listener.read()

    def occupancies(self) -> list[tuple[str, int]]:
        """Packets in every ring and buffer, by name."""
        self.io.catch_up()
        sockets = [(f"{name} socket buffer", int(self.pool(name).socket.occupied)) for name in self.pools]
        return self.io.occupancies() + sockets

    def pool(self, name: str) -> Any:
        """Return the record of a program ``domain.program``."""
        return self.engine.rows(pools)[self.engine.rows(applications)[self.pools[name]].own]

    def check_conservation(self) -> int:
        """Raise unless sent = delivered + dropped + in flight; return what is in flight."""
        self.io.catch_up()
        sent = sum(int(self.engine.rows(nics)[row].admitted) for row in self.io.nics.values())
        delivered = sum(int(self.engine.rows(accounts)[row].all_delivered) for row in self.accounts.values())
        dropped = sum(self.io.drop_counts().values())
        in_flight = self.io.in_flight()
        for name in self.pools:
            pool = self.pool(name)
            in_flight += int(pool.socket.packets.length) + int(pool.active)
        if sent != delivered + dropped + in_flight:
            raise ConservationError(
                f"{sent} packets sent, but {delivered} delivered + {dropped} dropped + {in_flight} in flight"
            )
        cpu.check_conservation(self.engine, self.host)
        return in_flight
