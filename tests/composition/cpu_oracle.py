"""CPU time of domains from what was served, independent of schedulers, hosts and engines.

Each program's jobs that have begun cost their stated demands, less what is left of those in hand; where a crash may
have taken a job halfway, those that are done cost at least theirs.  A guest pays its path's price for each packet too,
and a disk's interrupt for each transfer.  Demands that are drawn are drawn again here.  The bounds differ by packets
whose fate the outside does not know, by the price of events, of which one or many packets may share one, and by which
of its domain's paths a packet has taken.  A driver domain pays for what its cards took in, for what found room on the
way to the guest, and for what left; a device model for what passed it.

Not priced: a SIP server that has calls, the recording of lockstep, and from above a driver domain that sends states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.kernel.rows_in_use import free_rows
from vftsim.composition.run import Run
from vftsim.kernel.inputs import feeds
from vftsim.platform.cpu.background import cyclic_loads
from vftsim.platform.cpu.background import on_done as on_period_done
from vftsim.platform.cpu.records import domains, vcpus, works
from vftsim.platform.io.disk import disks, on_disk_interrupt
from vftsim.platform.io.link import links
from vftsim.platform.io.nic import nics
from vftsim.platform.io.packet import applications
from vftsim.platform.io.paths.moderated import guest_nics
from vftsim.platform.io.ring import rings
from vftsim.platform.io.stage import batches as batches_of_stages
from vftsim.platform.io.stage import stages
from vftsim.sampling import Streams, gamma_ns
from vftsim.workloads.batch import batches
from vftsim.workloads.batch import on_computed as on_share_computed
from vftsim.workloads.cpu_bound import on_burst_done
from vftsim.workloads.disk_bound import disk_bounds
from vftsim.workloads.disk_bound import on_computed as on_disk_computed
from vftsim.workloads.pool import on_answer_ready as pool_answer_ready
from vftsim.workloads.service.records import services
from vftsim.workloads.service.server import on_computed as on_service_computed
from vftsim.workloads.tcp.connection import bulks, connections
from vftsim.workloads.udp_sink import on_read, udp_flows, udp_sinks
from vftsim.workloads.web.prefork import PIECE_SEGMENTS, prefork_servers

UNPRICED = math.inf
Price = tuple[float, float]
"""The lowest and the highest that it may be, in ns."""


def plus(demand_ns: float, price: Price) -> Price:
    return demand_ns + price[0], demand_ns + price[1]


@dataclass
class Bounds:
    """CPU time in ns at the speed that work is stated for; ``jobs`` may each be rounded by a host of another speed."""

    least: float = 0.0
    most: float = 0.0
    jobs: int = 0
    packets: list[tuple[float, float, str]] = field(default_factory=list)
    """That the domain's paths have brought to its programs, each with its program."""

    def add(
        self, done: int, begun: float, demand_ns: float | Price, left_ns: float = 0, *, has_lost: bool = True
    ) -> None:
        """So many jobs are done, and at most so many had begun; all of these were not lost if nothing ``has_lost``."""
        lowest, highest = demand_ns if isinstance(demand_ns, tuple) else (demand_ns, demand_ns)
        self.least += done * lowest if has_lost else begun * lowest - left_ns
        self.most += begun * highest - left_ns
        self.jobs += int(begun)

    def bring(self, least: float, most: float, program: str) -> None:
        """Count packets that came in."""
        self.packets.append((least, most, program))


@dataclass
class Oracle:
    """What every domain of a finished run should have used."""

    run: Run
    seed: int = 1
    replication: int = 0
    numbers: Counter[str] = field(default_factory=Counter)

    def breaches(self) -> Iterator[str]:
        """Yield the domains whose CPU time lies outside their bounds."""
        for name, used_ns, least_ns, most_ns in self.accounts():
            if not least_ns <= used_ns <= most_ns:
                yield f"{name} used {used_ns} ns of CPU, what it served costs {least_ns:.0f} to {most_ns:.0f} ns"

    def accounts(self) -> list[tuple[str, int, float, float]]:
        """Return each domain's CPU time and its bounds."""
        built, found = self.run.built, []
        self.numbers.clear()
        bounds = {name: self._of_domain(name) for name in built.domains}
        for name, row in built.domains.items():
            host = built.host_of(name).spec
            first = int(self._row(domains, row).first_vcpu)
            used_ns = sum(int(self._row(vcpus, first + n).run_ns) for n in range(int(self._row(domains, row).vcpus)))
            domain_bounds, speed = bounds[name], host.cpu_speed
            slack = 0 if speed == 1.0 else domain_bounds.jobs + 1
            found.append((name, used_ns, domain_bounds.least / speed - slack, domain_bounds.most / speed + slack))
        return found

    def _row(self, table: Any, row: int) -> Any:
        return self.run.engine.rows(table)[row]

    def _of_domain(self, name: str) -> Bounds:
        domain_bounds, spec = Bounds(), self.run.built.specs.get(name)
        self._stages(domain_bounds, name)
        if spec is None:
            return domain_bounds
        for key, program in spec.applications.items():
            getattr(self, f"_{program.kind}")(domain_bounds, spec, program, f"{name}.{key}")
            self.numbers[program.kind] += 1
        self._paths(domain_bounds, name, spec)
        if spec.protection.kind == "lockstep" or name in self._senders():
            domain_bounds.most = UNPRICED
        return domain_bounds

    def _senders(self) -> set[str]:
        """Domains that send the states of others."""
        built = self.run.built
        return {
            str(spec.protection.sent_by or self.run.spec.driver_of(built.host_of(name).name))
            for name, spec in built.specs.items()
            if spec.protection.sends_pages
        }

    def _paths(self, domain_bounds: Bounds, name: str, spec: Any) -> None:
        """Price what a guest's drivers bring in: at least what its programs served, at most what reached its host."""
        for least, _, program in domain_bounds.packets:
            domain_bounds.least += least * min(self._packet_ns(path, "receive") for path in self._ways(spec, program))
        brought = [(most, program) for _, most, program in domain_bounds.packets if most > 0]
        if brought:
            ways = (path for _, program in brought for path in self._ways(spec, program))
            highest_ns = max(self._packet_ns(path, "receive") for path in ways)
            domain_bounds.most += min(sum(most for most, _ in brought), self._arrived(name)) * highest_ns
        cards = {int(self._row(guest_nics, row).card) for row in self._ports(name)} - {0}
        domain_bounds.most += sum(
            int(self._row(guest_nics, card).interrupts * self._row(guest_nics, card).interrupt_cost_ns)
            for card in cards
        )

    def _ports(self, name: str) -> Iterator[int]:
        return (row for (program, _), row in self.run.built.ports.items() if program.rpartition(".")[0] == name)

    def _ways(self, spec: Any, program: str) -> list[Any]:
        """Return the paths by which a program may be reached: those of its clients, any if programs speak to others."""
        keys = {self.run.spec.arrival_of(workload)[2] for workload in self._workloads(program)}
        is_any = not keys or any(each.peers for each in self._programs())
        return [interface.path for key, interface in spec.interfaces.items() if is_any or key in keys]

    @staticmethod
    def _packet_ns(path: Any, way: Literal["receive", "transmit"]) -> int:
        """What a packet that comes in, or that a program sends, costs its guest beside the event."""
        if path.kind == "moderated":
            return int(path.packet_cost)
        if path.kind == "paravirtual":
            return int(getattr(path, f"frontend_{way}_cost"))
        exits = getattr(path, f"accesses_{way}") * path.exit_cost if path.kind in ("emulated", "stub_domain") else 0
        return int(getattr(path, f"driver_{way}_cost") + exits)

    def _send_ns(self, spec: Any, program: str) -> Price:
        """What a packet that a program sends costs its guest."""
        prices = [self._packet_ns(path, "transmit") for path in self._ways(spec, program)]
        return min(prices), max(prices)

    def _stages(self, domain_bounds: Bounds, name: str) -> None:
        """Price what the stages of a domain did for others, and the events of all: one for each batch at most."""
        built = self.run.built
        host = built.host_of(name)
        for named in host.io.stages:
            stage = self._row(stages, named.row)
            if int(stage.domain) != built.domains[name]:
                continue
            domain_bounds.most += int(stage.batches) * int(stage.event_ns)
            if "guest driver" not in named.name and "front-end" not in named.name:
                self._of_stage(domain_bounds, host, named, stage)

    def _of_stage(self, domain_bounds: Bounds, host: Any, named: Any, stage: Any) -> None:
        """Price the packets of a stage of a driver domain or device model, with what a path adds in the first."""
        way = "receive" if "receive" in named.name else "transmit"
        is_driver = named.name.startswith("driver domain")
        taken = {
            (True, "receive"): self._from_card,
            (True, "transmit"): self._left,
            (False, "receive"): self._through_tap,
            (False, "transmit"): self._fetched,
        }[is_driver, way](host, stage)
        least, most = max(taken[0] - self._in_hand(stage), 0), taken[1]
        domain_bounds.least += least * int(stage.packet_ns)
        domain_bounds.most += most * int(stage.packet_ns)
        if is_driver:
            paths = [path for _, path in self._behind_driver(host)]
            added = [int(getattr(p, f"backend_{way}_cost", getattr(p, "backend_cost", 0))) for p in paths]
            refused = self._refused(host) if way == "receive" else (0, 0)
            domain_bounds.least += max(least - refused[1], 0) * min(added, default=0)
            domain_bounds.most += (most - refused[0]) * max(added, default=0)

    def _in_hand(self, stage: Any) -> int:
        """Packets of the batches that a stage works on, with those that it has refused already."""
        engine, unused = self.run.engine, free_rows(self.run.engine, batches_of_stages)
        return sum(
            int(batch.taken)
            for row, batch in enumerate(engine.rows(batches_of_stages)[: engine.used(batches_of_stages) + 1])
            if row and row not in unused and int(batch.stage) == int(stage.row)
        )

    def _behind_driver(self, host: Any) -> list[tuple[str, Any]]:
        """Return network and path of each interface whose packets a host's driver domain carries."""
        return [
            (self.run.spec.network_of(spec, interface), interface.path)
            for name, spec in self.run.built.specs.items()
            if name in host.domains
            for interface in spec.interfaces.values()
            if interface.path.needs_driver_domain
        ]

    @staticmethod
    def _dropped(host: Any, *where: tuple[str, str]) -> int:
        counts = host.io.drop_counts()
        return sum(counts.get(each, 0) for each in where)

    def _refused(self, host: Any) -> Price:
        """Packets that found no room on the way to their guest, and with those whose guest was off the network."""
        certain = self._dropped(host, ("receive ring", "no slot"), ("tap queue", "full"))
        return certain, certain + self._dropped(host, ("guest", "disconnected"))

    def _lost_cards(self, host: Any) -> int:
        return sum(count for (place, _), count in host.io.drop_counts().items() if place.startswith("network card of"))

    def _from_card(self, host: Any, stage: Any) -> Price:
        """Packets that a card's receive stage has taken."""
        nic = self._row(nics, int(stage.nic))
        name = next(name for name, row in host.io.nics.items() if row == int(stage.nic))
        waiting = int(nic.packets.length + nic.unnoted.length)
        most = int(nic.admitted) - waiting - self._dropped(host, (name, "receive ring full"))
        return most - self._lost_cards(host), most

    def _left(self, host: Any, stage: Any) -> Price:
        """Packets that the transmit stage has taken: those that have left, and those in its hands."""
        spec, least, most = self.run.spec, 0, 0
        for network in {network for network, _ in self._behind_driver(host)}:
            row = self.run._links.get(f"networks.{network}.from_{host.name}", (0, 0))[0]
            arriving = [w for w, each in spec.workloads.items() if spec.arrival_of(each)[:2] == (host.name, network)]
            came_back = sum(self.run.built.drivers[w].delivered() for w in arriving)
            left = int(self._row(links, row).sent) if row else came_back
            shared = any(
                spec.network_of(domain, interface) == network and not interface.path.needs_driver_domain
                for name, domain in self.run.built.specs.items()
                if name in host.domains
                for interface in domain.interfaces.values()
            )
            least, most = least + (0 if shared else left), most + left
        return least + int(stage.held), most + self._lost_cards(host) + int(stage.held)

    def _waiting(self, host: Any, name: str) -> int:
        return sum(int(self._row(rings, ring.row).packets.length) for ring in host.io.rings if ring.name == name)

    def _driver_stages(self, host: Any, way: str) -> list[Any]:
        return [self._row(stages, each.row) for each in host.io.stages if each.name == f"driver domain {way}"]

    def _through_tap(self, host: Any, stage: Any) -> Price:
        """Packets that a device model took from its tap device; which of several guests' they are is not known."""
        received = self._driver_stages(host, "receive")
        taken = [self._from_card(host, each) for each in received]
        least_refused, most_refused = self._refused(host)
        waiting = self._waiting(host, "tap queue")
        most = sum(high for _, high in taken) - least_refused - waiting
        least = sum(low for low, _ in taken) - most_refused - waiting - sum(int(each.held) for each in received)
        return least if len(self._behind_driver(host)) == 1 else 0, most

    def _fetched(self, host: Any, stage: Any) -> Price:
        """Packets that a device model took from its guest: those that left, and those that did not go so far."""
        (transmit,) = self._driver_stages(host, "transmit")
        least, most = self._left(host, transmit)
        further = self._waiting(host, "tap transmit queue") + int(stage.held)
        further += self._dropped(host, ("tap transmit queue", "full"))
        return least + further if len(self._behind_driver(host)) == 1 else 0, most + further

    def _arrived(self, name: str) -> int:
        """Packets that reached the host of a domain: its cards, or the networks of a guest's own."""
        built, host = self.run.built, self.run.built.host_of(name)
        by_links = {
            self.run.spec.network_of(spec, interface)
            for each, spec in built.specs.items()
            if each in host.domains
            for interface in spec.interfaces.values()
            if not interface.path.has_host_ring
        }
        rows = [self.run._links.get(f"networks.{network}.to_{host.name}", (0, 0))[0] for network in by_links]
        admitted = sum(int(self._row(nics, row).admitted) for row in host.io.nics.values())
        return admitted + sum(int(self._row(links, row).delivered) for row in rows if row)

    def _links(self, host: Any, way: str) -> list[Any]:
        return [
            self._row(links, row) for name, (row, _) in self.run._links.items() if name.endswith(f"{way}_{host.name}")
        ]

    def _unseen(self, name: str) -> float:
        """Packets that a domain's programs may have served and no client has seen: lost later, or on their way."""
        built = self.run.built
        if name in built.guards:
            return self._arrived(name)
        host = built.host_of(name)
        lost = sum(
            count
            for (place, cause), count in built.drop_counts().items()
            if "from" in place or "transmit" in place or cause == "lost in crash"
        )
        under_way = sum(int(row.packets.length) for row in self._rings(host))
        under_way += sum(int(self._row(stages, s.row).held) for s in host.io.stages if "transmit" in s.name)
        under_way += sum(int(link.sent - link.delivered) for link in self._links(host, "from"))
        return lost + under_way

    def _rings(self, host: Any) -> list[Any]:
        return [self._row(rings, ring.row) for ring in host.io.rings if "transmit" in ring.name]

    def _drivers(self, program: str) -> list[Any]:
        workloads = self.run.spec.workloads
        return [self.run.built.drivers[name] for name in workloads if workloads[name] in self._workloads(program)]

    def _workloads(self, program: str) -> list[Any]:
        spec = self.run.spec
        return [each for each in spec.workloads.values() if ".".join(spec.target_of(each)[:2]) == program]

    def _may_lose(self, name: str) -> bool:
        """Whether a program's domain may have lost work halfway."""
        return bool(self.run.spec.faults) and name.rpartition(".")[0] in self.run.built.guards

    def _left_ns(self, *actions: Any, argument: int = 0, places: range | None = None) -> float:
        """Return what is left of the jobs in hand that end so, at the speed that work is stated for."""
        engine = self.run.engine
        numbers, unused = {engine.number(action) for action in actions}, free_rows(engine, works)
        return sum(
            int(work.remaining_ns)
            for row, work in enumerate(engine.rows(works)[: engine.used(works) + 1])
            if row
            and row not in unused
            and int(work.on_done) in numbers
            and (places is None or int(work.target) in places)
            and argument in (0, int(work.argument))
        )

    def _media_relay(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        demand_ns = plus(round(program.packet_cost * spec.cpu_inflation), self._send_ns(spec, name))
        served = sum(driver.delivered() for driver in self._drivers(name))
        pool = self.run.built.programs[name].record
        left_ns = self._speed(name) * self._left_ns(pool_answer_ready, argument=int(pool.row))
        working = 0 if self._may_lose(name) else int(pool.active - pool.blocked)
        domain_bounds.add(0, working, demand_ns, left_ns, has_lost=False)
        begun = (
            served + int(pool.active) - working + self._unseen(name.rpartition(".")[0]) if self._drivers(name) else 0
        )
        domain_bounds.add(served, begun, demand_ns)
        domain_bounds.bring(served, UNPRICED if begun else 0, name)

    _signaling_server = _media_relay

    def _service(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        demand_ns: Price = plus(round(program.demand * spec.cpu_inflation), (0, 0))
        domain = name.rpartition(".")[0]
        # What answers others of its domain alone takes nothing in and sends nothing out.
        is_inside = any(domain in peer.split(".") for each in self._in(domain) for peer in each.peers)
        is_inside = is_inside and not self._drivers(name)
        if not is_inside:
            demand_ns = plus(demand_ns[0], self._send_ns(spec, name))
        record = self._own(services, name)
        served = int(record.answered + record.blocked)
        lost = self._unseen(name.rpartition(".")[0]) if self._may_lose(name) else 0
        left_ns = self._speed(name) * self._left_ns(on_service_computed, argument=int(record.row))
        begun = served + int(record.in_hand.length) + lost
        domain_bounds.add(served, begun, demand_ns, left_ns, has_lost=self._may_lose(name))
        asked = any(each.peers for each in self._programs())
        domain_bounds.bring(0 if is_inside else served, UNPRICED if self._drivers(name) or asked else 0, name)
        if program.calls:
            domain_bounds.most = UNPRICED

    def _in(self, domain: str) -> Iterator[Any]:
        return iter(self.run.built.specs[domain].applications.values())

    def _programs(self) -> Iterator[Any]:
        return (each for spec in self.run.built.specs.values() for each in spec.applications.values())

    def _own(self, table: Any, name: str) -> Any:
        return self._row(table, int(self._row(applications, self.run.built.programs[name].row).state_row))

    def _udp_sink(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        flows = self._flows_of(udp_flows, name)
        served = sum(int(flow.received) for flow in flows)
        lost = self._unseen(name.rpartition(".")[0]) if self._may_lose(name) else 0
        left_ns = self._speed(name) * self._left_ns(on_read, argument=int(self._own(udp_sinks, name).row))
        begun = served + sum(flow.packet != 0 for flow in flows) + lost
        read_ns = round(program.read_cost * spec.cpu_inflation)
        domain_bounds.add(served, begun, read_ns, left_ns, has_lost=self._may_lose(name))
        domain_bounds.bring(served, UNPRICED if flows else 0, name)

    def _flows_of(self, table: Any, name: str) -> list[Any]:
        row = self.run.built.programs[name].row
        return [one for one in self.run.engine.rows(table)[1 : self.run.engine.used(table) + 1] if one.program == row]

    def _tcp_sink(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        """Every segment was read at least once, and at most as often as it was sent; acknowledgements are counted."""
        for one in self._flows_of(connections, name):
            size = int(self._row(bulks, int(one.bulk)).mss)
            taken = int(one.expected) + int(one.beyond_count) - (one.packet != 0)
            domain_bounds.add(taken, int(one.nxt + one.retransmitted) + 1, self._segment_ns(spec, program, size))
            ack_ns = plus(round(program.ack_cost * spec.cpu_inflation), self._send_ns(spec, name))
            domain_bounds.add(int(one.acknowledgements), int(one.acknowledgements) + 2, ack_ns)
            domain_bounds.bring(taken, UNPRICED, name)

    @staticmethod
    def _segment_ns(spec: Any, program: Any, size: int) -> int:
        copy_ns = round(program.copy_cost * spec.cpu_inflation) * size // 1024
        return round(program.segment_cost * spec.cpu_inflation) + copy_ns

    def _tcp_source(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        """What was sent cost its price; what the client acknowledged was read, unless it was lost on the way."""
        for one in self._flows_of(connections, name):
            size = int(self._row(bulks, int(one.bulk)).mss)
            sent = int(one.nxt + one.retransmitted)
            wasted = 2 + int(one.timeouts + one.recoveries)
            price_ns = plus(self._segment_ns(spec, program, size), self._send_ns(spec, name))
            # After a time-out what is not acknowledged counts as not sent, until it is sent again.
            domain_bounds.add(sent, sent + wasted + int(one.recover), price_ns)
            domain_bounds.add(0, int(one.acknowledgements), round(program.ack_cost * spec.cpu_inflation))
            domain_bounds.bring(0, UNPRICED, name)

    def _prefork_web_server(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        record = self._own(prefork_servers, name)
        script_ns = round(program.script * spec.cpu_inflation)
        output_ns = round(script_ns * program.output_share / 100.0)
        pieces, segments = -(-int(record.segments) // PIECE_SEGMENTS), int(record.segments)
        price_ns = script_ns - output_ns + pieces * (output_ns // pieces)
        done = int(record.scripts - record.busy - record.aborted) if record.boots == 1 else 0
        domain_bounds.add(max(done, 0), int(record.scripts), price_ns)
        # A piece leaves in packets of as many segments as the window has room for, again if a client asks again.
        domain_bounds.add(max(done, 0) * pieces, 2 * int(record.scripts) * segments, self._send_ns(spec, name))
        domain_bounds.bring(2 * max(done, 0), UNPRICED if self._drivers(name) else 0, name)

    def _batch(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        record, demand_ns = self._own(batches, name), round(program.demand * spec.cpu_inflation)
        assert program.demand_cv == 0.0
        assert program.disk_operations == 0
        left_ns = self._speed(name) * self._left_ns(on_share_computed, argument=int(record.row))
        domain_bounds.add(int(record.ended), int(record.begun), demand_ns, left_ns, has_lost=self._may_lose(name))

    def _drawn(self, kind: str, what: str, first: int, count: int, mean_ns: float, cv: float) -> list[int]:
        streams = Streams(self.seed, self.replication)
        uniforms = streams.uniforms(f"{kind}.{what}", self.numbers[kind], start=first, count=count)
        return sorted(max(1, value) for value in gamma_ns(uniforms, mean_ns, cv).tolist())

    def _cpu_bound(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        record = self.run.built.programs[name].record
        busy_ns = program.cycle * program.duty / 100.0 * spec.cpu_inflation
        row = int(record.row)
        left_ns = self._speed(name) * self._left_ns(on_burst_done, places=range(row, row + 1))
        drawn = self._drawn("cpu_bound", "busy", 1, int(record.begun), busy_ns, program.cv)
        self._sum(domain_bounds, drawn, int(record.done), left_ns, has_lost=self._may_lose(name))

    def _disk_bound(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        record = self._own(disk_bounds, name)
        begun, done = (int(self._row(feeds, int(feed)).taken) for feed in (record.computes, record.choices))
        mean_ns = round(program.compute * spec.cpu_inflation)
        first = int(record.first_process)
        left_ns = self._speed(name) * self._left_ns(on_disk_computed, places=range(first, first + program.processes))
        drawn = self._drawn("disk_bound", "compute", 0, begun, mean_ns, program.cv)
        self._sum(domain_bounds, drawn, done, left_ns, has_lost=self._may_lose(name))
        disk = next(iter(spec.disks.values()))
        served = int(self._row(disks, int(record.disk)).awaited)
        row = self.run.built.programs[name].row
        left_ns = self._speed(name) * self._left_ns(on_disk_interrupt, places=range(row, row + 1))
        done = max(0, served - int(program.processes))
        domain_bounds.add(done, served, disk.interrupt, left_ns, has_lost=self._may_lose(name))

    @staticmethod
    def _sum(domain_bounds: Bounds, drawn: list[int], done: int, left_ns: float, *, has_lost: bool) -> None:
        """Which of the jobs are not done is not known where some were lost: at most the longest."""
        domain_bounds.least += sum(drawn[:done]) if has_lost else sum(drawn) - left_ns
        domain_bounds.most += sum(drawn) - left_ns
        domain_bounds.jobs += len(drawn)

    def _speed(self, name: str) -> float:
        return float(self.run.built.host_of(name.rpartition(".")[0]).spec.cpu_speed)

    def _periodic_load(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        built = self.run.built.programs[name]
        record = self._row(cyclic_loads, built._load)
        begun = max(int(record.phase_ns == 0), -(-(self.run.now_ns - int(record.phase_ns)) // program.period))
        left_ns = self._speed(name) * self._left_ns(on_period_done, places=range(built._load, built._load + 1))
        may_lose = self._may_lose(name) or built._is_elided  # of an elided one no job is in hand
        domain_bounds.add(int(record.done), begun, round(program.busy * spec.cpu_inflation), left_ns, has_lost=may_lose)

    def _sip_server(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        if self._drivers(name):
            domain_bounds.most = UNPRICED
