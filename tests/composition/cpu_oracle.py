"""CPU time of domains from what was served, independent of schedulers, hosts and engines.

Each program's jobs that have begun cost their stated demands, less what is left of those in hand; where a crash may
have taken a job halfway, those that are done cost at least theirs.  A guest pays its path's price for each packet too,
and a disk's interrupt for each transfer.  Demands that are drawn are drawn again here.  The bounds differ by packets
whose fate the outside does not know, and by the price of events, of which one or many packets may share one.

Not priced: a SIP server that has calls, the recording of lockstep, and from above whatever a driver domain or a device
model does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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
from vftsim.platform.io.ring import rings
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


@dataclass
class Bounds:
    """CPU time in ns at the speed that work is stated for; ``jobs`` may each be rounded by a host of another speed."""

    least: float = 0.0
    most: float = 0.0
    jobs: int = 0
    packets: tuple[float, float] = (0, 0)
    """That the domain's path has brought to its programs."""

    def add(self, done: int, begun: float, demand_ns: float, left_ns: float = 0, *, has_lost: bool = True) -> None:
        """So many jobs are done, and at most so many had begun; all of these were not lost if nothing ``has_lost``."""
        self.least += done * demand_ns if has_lost else begun * demand_ns - left_ns
        self.most += begun * demand_ns - left_ns
        self.jobs += int(begun)

    def bring(self, least: float, most: float) -> None:
        """Count packets that came in."""
        self.packets = self.packets[0] + least, self.packets[1] + most


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
        if spec is None or spec.driver is not None:
            domain_bounds.most = UNPRICED
        if spec is None:
            return domain_bounds
        for key, program in spec.applications.items():
            getattr(self, f"_{program.kind}")(domain_bounds, spec, program, f"{name}.{key}")
            self.numbers[program.kind] += 1
        self._path(domain_bounds, name, spec)
        if spec.protection.kind == "lockstep":
            domain_bounds.most = UNPRICED
        return domain_bounds

    def _path(self, domain_bounds: Bounds, name: str, spec: Any) -> None:
        if not spec.interfaces or spec.driver is not None:
            return
        path = next(iter(spec.interfaces.values())).path
        if path.kind == "moderated":
            assert path.interrupt_cost == path.packet_cost == 0
            return
        price_ns = path.frontend_receive_cost if path.kind == "paravirtual" else path.driver_receive_cost
        price_ns += path.accesses_receive * path.exit_cost if path.kind in ("emulated", "stub_domain") else 0
        event_ns = path.event_cost + (path.interrupt_exit_cost if path.kind == "direct" else 0)
        drivers = [
            self._row(stages, each.row)
            for each in self.run.built.host_of(name).io.stages
            if each.owner == name and each.name in ("guest driver", "front-end")
        ]
        domain_bounds.least += domain_bounds.packets[0] * price_ns
        domain_bounds.most += (
            min(domain_bounds.packets[1], self._arrived(name)) * price_ns
            + sum(int(s.batches) for s in drivers) * event_ns
        )

    def _transmit_ns(self, spec: Any) -> int:
        path = next(iter(spec.interfaces.values())).path
        if path.kind == "moderated":
            return int(path.packet_cost)
        if path.kind == "paravirtual":
            return int(path.frontend_transmit_cost)
        exits = path.accesses_transmit * path.exit_cost if path.kind in ("emulated", "stub_domain") else 0
        return int(path.driver_transmit_cost + exits)

    def _arrived(self, name: str) -> int:
        """Packets that reached the host of a domain."""
        host = self.run.built.host_of(name)
        admitted = sum(int(self._row(nics, row).admitted) for row in host.io.nics.values())
        return max(admitted, sum(int(link.delivered) for link in self._links(host, "to")))

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
        spec = self.run.spec
        return [
            self.run.built.drivers[name]
            for name, workload in spec.workloads.items()
            if ".".join(spec.target_of(workload)[:2]) == program
        ]

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
        demand_ns = round(program.packet_cost * spec.cpu_inflation) + self._transmit_ns(spec)
        served = sum(driver.delivered() for driver in self._drivers(name))
        pool = self.run.built.programs[name].record
        left_ns = self._speed(name) * self._left_ns(pool_answer_ready, argument=int(pool.row))
        working = 0 if self._may_lose(name) else int(pool.active - pool.blocked)
        domain_bounds.add(0, working, demand_ns, left_ns, has_lost=False)
        begun = (
            served + int(pool.active) - working + self._unseen(name.rpartition(".")[0]) if self._drivers(name) else 0
        )
        domain_bounds.add(served, begun, demand_ns)
        domain_bounds.bring(served, UNPRICED if begun else 0)

    _signaling_server = _media_relay

    def _service(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        demand_ns = round(program.demand * spec.cpu_inflation)
        domain = name.rpartition(".")[0]
        # What answers others of its domain alone takes nothing in and sends nothing out.
        is_inside = any(domain in peer.split(".") for each in self._in(domain) for peer in each.peers)
        is_inside = is_inside and not self._drivers(name)
        demand_ns += 0 if is_inside else self._transmit_ns(spec)
        record = self._own(services, name)
        served = int(record.answered + record.blocked)
        lost = self._unseen(name.rpartition(".")[0]) if self._may_lose(name) else 0
        left_ns = self._speed(name) * self._left_ns(on_service_computed, argument=int(record.row))
        begun = served + int(record.in_hand.length) + lost
        domain_bounds.add(served, begun, demand_ns, left_ns, has_lost=self._may_lose(name))
        asked = any(each.peers for each in self._programs())
        domain_bounds.bring(0 if is_inside else served, UNPRICED if self._drivers(name) or asked else 0)
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
        domain_bounds.bring(served, UNPRICED if flows else 0)

    def _flows_of(self, table: Any, name: str) -> list[Any]:
        row = self.run.built.programs[name].row
        return [one for one in self.run.engine.rows(table)[1 : self.run.engine.used(table) + 1] if one.program == row]

    def _tcp_sink(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        """Every segment was read at least once, and at most as often as it was sent; acknowledgements are counted."""
        for one in self._flows_of(connections, name):
            size = int(self._row(bulks, int(one.bulk)).mss)
            taken = int(one.expected) + int(one.beyond_count) - (one.packet != 0)
            domain_bounds.add(taken, int(one.nxt + one.retransmitted) + 1, self._segment_ns(spec, program, size))
            ack_ns = round(program.ack_cost * spec.cpu_inflation) + self._transmit_ns(spec)
            domain_bounds.add(int(one.acknowledgements), int(one.acknowledgements) + 2, ack_ns)
            domain_bounds.bring(taken, UNPRICED)

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
            price_ns = self._segment_ns(spec, program, size) + self._transmit_ns(spec)
            # After a time-out what is not acknowledged counts as not sent, until it is sent again.
            domain_bounds.add(sent, sent + wasted + int(one.recover), price_ns)
            domain_bounds.add(0, int(one.acknowledgements), round(program.ack_cost * spec.cpu_inflation))
            domain_bounds.bring(0, UNPRICED)

    def _prefork_web_server(self, domain_bounds: Bounds, spec: Any, program: Any, name: str) -> None:
        record = self._own(prefork_servers, name)
        script_ns = round(program.script * spec.cpu_inflation)
        output_ns = round(script_ns * program.output_share / 100.0)
        pieces, segments = -(-int(record.segments) // PIECE_SEGMENTS), int(record.segments)
        price_ns = script_ns - output_ns + pieces * (output_ns // pieces)
        done = int(record.scripts - record.busy - record.aborted) if record.boots == 1 else 0
        domain_bounds.add(max(done, 0), int(record.scripts), price_ns)
        # A piece leaves in packets of as many segments as the window has room for, again if a client asks again.
        domain_bounds.add(max(done, 0) * pieces, 2 * int(record.scripts) * segments, self._transmit_ns(spec))
        domain_bounds.bring(2 * max(done, 0), UNPRICED if self._drivers(name) else 0)

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
