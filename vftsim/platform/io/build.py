"""Setting up the I/O part of a model: network interfaces, rings, stages, the driver domain, ports."""

from collections.abc import Iterable
from dataclasses import dataclass

from vftsim.kernel import Engine, Kind, Sim, entry
from vftsim.platform.cpu.records import domains
from vftsim.platform.io.driver_domain import DriverDomainSpec, back_ends, receiving, transmitting
from vftsim.platform.io.guest_driver import entrances, guest_driver
from vftsim.platform.io.guest_end import guest_ends
from vftsim.platform.io.marks import mark_logs
from vftsim.platform.io.nic import NicSpec, arrivals, catch_up, nics, plan_look
from vftsim.platform.io.packet import drops, flows, ports
from vftsim.platform.io.ring import ring_list, rings
from vftsim.platform.io.stage import NAPI_BUDGET, stages, start_stage

look_at_nic = entry(catch_up)


start_nic = entry(plan_look)


@entry
def serve_ring(sim: Sim, stage: int, ring: int) -> None:
    """Have a stage take packets from a ring too."""
    rings(sim)[ring].stage = stage
    ring_list.push(sim, stages(sim)[stage].rings, ring)


ENTRIES = (look_at_nic, start_nic, start_stage, serve_ring)
TABLES = (arrivals, back_ends, drops, entrances, flows, guest_ends, mark_logs)


@dataclass(frozen=True)
class Named:
    """A part by what it is called: ``owner`` is the domain it serves, empty for the driver domain."""

    owner: str
    name: str
    row: int


@dataclass(frozen=True)
class Site:
    """What a path may connect to: a domain, by its name and row, and rows of others, 0 where none is.

    ``nic`` is the domain's network interface; its ``ports`` share the path.  ``driver`` and ``stub`` are the driver
    domain and the device model's domain, ``transmit`` is the driver domain's transmit stage.
    """

    name: str
    domain: int
    nic: int
    ports: tuple[int, ...]
    driver: int = 0
    transmit: int = 0
    stub: int = 0


class Io:
    """The I/O of one host, with the names of its parts."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.nics: dict[str, int] = {}
        self.rings: list[Named] = []
        self.stages: list[Named] = []
        self.drop_rows: dict[tuple[str, str], int] = {}
        self.owners: dict[int, str] = {}
        engine.rows(entrances)[1].drop_row = self.drop_row("guest", "input lost with its log")

    def drop_row(self, where: str, cause: str) -> int:
        """Return the row where packets are counted that end there for that cause."""
        if (where, cause) not in self.drop_rows:
            self.drop_rows[where, cause], _ = self.engine.add(drops)
        return self.drop_rows[where, cause]

    def drop_counts(self) -> dict[tuple[str, str], int]:
        """Return dropped packets by place and cause, where there are any."""
        rows = self.engine.rows(drops)
        counts = {key: int(rows[row].count) for key, row in sorted(self.drop_rows.items())}
        return {key: count for key, count in counts.items() if count}

    def add_nic(self, name: str, spec: NicSpec) -> int:
        """Add a network interface; nothing comes to it before it is fed."""
        row, _ = self.engine.add(
            nics,
            number=len(self.nics),
            capacity=spec.receive_ring_packets,
            coalescing_time_ns=spec.coalescing_time,
            coalescing_packets=spec.coalescing_packets,
            drop_row=self.drop_row(name, "receive ring full"),
        )
        self.engine.rows(arrivals)[row].is_complete = True
        self.nics[name] = row
        return row

    def add_ring(self, owner: str, name: str, capacity: int, cause: str = "full") -> int:
        """Add a ring; packets that its producer drops are counted under its name and ``cause``."""
        row, _ = self.engine.add(rings, capacity=capacity, drop_row=self.drop_row(name, cause))
        self.rings.append(Named(owner, name, row))
        return row

    def add_stage(
        self,
        owner: str,
        name: str,
        task: Kind,
        domain: int,
        *,
        event_ns: int,
        packet_ns: int,
        ring: int = 0,
        nic: int = 0,
        vcpu: int = 0,
        interrupts: bool = False,
        budget: int = NAPI_BUDGET,
        parallel: int = 1,
    ) -> int:
        """Add a stage that takes from ``ring`` or from ``nic``; without a vCPU, or ``interrupts``, it runs as jobs."""
        row, _ = self.engine.add(
            stages,
            task=self.engine.number(task),
            domain=domain,
            vcpu=vcpu,
            interrupts=interrupts,
            nic=nic,
            event_ns=event_ns,
            packet_ns=packet_ns,
            budget=budget,
            parallel=parallel,
        )
        if ring:
            self.serve(row, ring)
        if nic:
            self.engine.rows(nics)[nic].stage = row
        self.stages.append(Named(owner, name, row))
        return row

    def serve(self, stage: int, ring: int) -> None:
        """Have a stage take packets from a ring too."""
        self.engine.call(serve_ring, stage, ring)

    def add_guest_driver(
        self, site: Site, name: str, *, event_ns: int, packet_ns: int, ring: int = 0, nic: int = 0
    ) -> int:
        """Add the stage by which packets enter a guest, on its first vCPU."""
        stage = self.add_stage(
            site.name,
            name,
            guest_driver,
            site.domain,
            event_ns=event_ns,
            packet_ns=packet_ns,
            ring=ring,
            nic=nic,
            vcpu=int(self.engine.rows(domains)[site.domain].first_vcpu),
        )
        down, lost = self.drop_row("guest", "disconnected"), self.drop_row("guest", "lost in crash")
        for row in site.ports:
            end = self.engine.rows(guest_ends)[row]
            end.driver, end.nic, end.receive_ring, end.down, end.lost = stage, nic, ring, down, lost
        if nic:
            self.engine.rows(nics)[nic].down = down
        return stage

    def add_driver_domain(self, spec: DriverDomainSpec, domain: int, owned: Iterable[int]) -> int:
        """Add receive stages for the interfaces ``owned`` and the transmit stage; return the latter's row."""
        held = self.engine.rows(domains)[domain]
        first, count = int(held.first_vcpu), int(held.vcpus)
        receive_vcpu, transmit_vcpu, parallel = first, first + (1 % count), 1
        if spec.placement == "one":
            transmit_vcpu = first
        if spec.placement == "any":
            receive_vcpu, transmit_vcpu, parallel = 0, 0, count
        for nic in owned:
            self.add_stage(
                "",
                "driver domain receive",
                receiving,
                domain,
                nic=nic,
                vcpu=receive_vcpu,
                interrupts=True,
                event_ns=spec.event_cost,
                packet_ns=spec.receive_cost,
                budget=spec.budget_packets,
                parallel=parallel,
            )
        return self.add_stage(
            "",
            "driver domain transmit",
            transmitting,
            domain,
            vcpu=transmit_vcpu,
            interrupts=True,
            event_ns=spec.event_cost,
            packet_ns=spec.transmit_cost,
            budget=spec.budget_packets,
            parallel=parallel,
        )

    def add_port(self, owner: str, domain: int, nic: int, application: int, part: Kind, *, saves_ring: bool) -> int:
        """Add a guest's end of a path for one application; its path is connected when all ports of the domain exist."""
        row, _ = self.engine.add(
            ports,
            domain=domain,
            nic=nic,
            application=application,
            path=self.engine.number(part),
            saves_ring=saves_ring,
        )
        self.owners[row] = owner
        return row

    def start(self) -> None:
        """Let every stage ask for its first event, in the order in which they were added."""
        for row in self.nics.values():
            self.engine.call(start_nic, row)
        for stage in self.stages:
            self.engine.call(start_stage, stage.row)

    def catch_up(self) -> None:
        """Admit what has come to every network interface by now."""
        for row in self.nics.values():
            self.engine.call(look_at_nic, row)

    def in_flight(self) -> int:
        """Packets in interfaces, rings and the hands of stages."""
        waiting = sum(int(self.engine.rows(nics)[row].packets.length) for row in self.nics.values())
        waiting += sum(int(self.engine.rows(rings)[ring.row].packets.length) for ring in self.rings)
        return waiting + sum(int(self.engine.rows(stages)[stage.row].held) for stage in self.stages)

    def occupancies(self) -> list[tuple[str, int]]:
        """Slots taken in every ring, by name; catch up first."""
        rows = self.engine.rows
        of_nics = [(f"{name} receive ring", int(rows(nics)[row].occupied)) for name, row in self.nics.items()]
        return of_nics + [(f"{ring.owner} {ring.name}", int(rows(rings)[ring.row].occupied)) for ring in self.rings]
