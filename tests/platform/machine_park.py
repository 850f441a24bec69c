"""A guest with any application behind any path, under any protection and scheduler, with links to its clients.

The host has two pCPUs, or as many as vCPUs without a hypervisor; beside the guest there are a driver domain and a
neighbour that computes for itself.  Clients of pools send packets at instants drawn from a number, those of a SIP
server begin attempts; both reach the host over a link of its card and hear over another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import Any

from pydantic import TypeAdapter

from tests.installing import Installing
from tests.kernel.rows_in_use import rows_in_use
from vftsim.kernel import EventKind, Table
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.background import CyclicLoadSpec, add_load, begin_load
from vftsim.platform.cpu.parameters import DomainScheduling, schedulers
from vftsim.platform.cpu.records import vcpus
from vftsim.platform.delays import delays, install_buckets
from vftsim.platform.io import build as io
from vftsim.platform.io.build import Site
from vftsim.platform.io.driver_domain import DriverDomainSpec
from vftsim.platform.io.host_cards import add_card, cards
from vftsim.platform.io.link import links
from vftsim.platform.io.nic import NicSpec, nics
from vftsim.platform.io.packet import drops, flows, packets, ports
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.io.paths import moderated
from vftsim.platform.io.ring import rings
from vftsim.platform.io.stage import stages
from vftsim.platform.protection import account
from vftsim.platform.protection import build as protect
from vftsim.platform.protection._lockstep_records import locksteps, plans
from vftsim.platform.protection._replication_records import replications
from vftsim.platform.protection.faults import FAULTS
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.mechanism import protections
from vftsim.platform.protection.output_buffer import output_buffers
from vftsim.platform.protection.pair import pairs
from vftsim.platform.rows import fill_row
from vftsim.workloads.ims_bench.agents import ims_bench
from vftsim.workloads.ims_bench.attempt import attempts, benches, phases
from vftsim.workloads.ims_bench.metrics import HISTOGRAMS
from vftsim.workloads.ims_bench.subscribers import fill_pools
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.pool import pools
from vftsim.workloads.sip.application import SipServerSpec, add_server
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Scenario, install_messages, streams
from vftsim.workloads.sip.records import sip_rules, sip_servers, workers
from vftsim.workloads.sip.server import start_server

from .park_kernel import (
    APPLICATIONS,
    PATHS,
    POOLS,
    PROTECTIONS,
    SCHEDULERS,
    linked,
    on_attempt,
    on_visit,
    seen,
    tally,
    visitors,
)

US, MS, S = 1_000, 1_000_000, 1_000_000_000
BLOWS = ("primary_crash", "pause")

_PROTECTION: dict[str, dict[str, Any]] = {
    "none": {},
    "ha_restart": {
        "failover": {
            "detection": {"heartbeat_interval": 2 * MS, "timeout": 5 * MS},
            "placement": 0,
            "boot_time": 9 * MS,
        },
    },
    "lockstep": {
        "cost": {"execution": 1.3, "output": 10 * US},
        "failover": {
            "detection": {
                "heartbeat_interval": 3 * MS,
                "timeout": 9 * MS,
                "log_timeout": 8 * MS,
                "secondary_delay": 1 * MS,
            },
            "go_live": 2 * MS,
            "announcement": 1 * MS,
            "storage_latency": 500 * US,
        },
        "reprotection": None,
    },
}


@dataclass(frozen=True)
class Case:
    """What stands together in a park, and what happens to it."""

    application: str = "media_relay"
    path: str = "paravirtual"
    protection: str = "none"
    scheduler: str = "credit"
    blow: str = "pause"

    @property
    def parts(self) -> tuple[str, ...]:
        return self.application, self.path, self.protection, self.scheduler, self.blow

    def __str__(self) -> str:
        return "-".join(self.parts)


def every_case() -> list[Case]:
    """All combinations of parts."""
    return [Case(*parts) for parts in product(APPLICATIONS, PATHS, PROTECTIONS, SCHEDULERS, BLOWS)]


def every_pair() -> list[Case]:
    """Cases in which every two parts of different sorts stand together at least once."""
    every = [one.parts for one in every_case()]
    missing = {pair for one in every for pair in _pairs(one)}
    chosen = []
    while missing:
        best = max(every, key=lambda one: len(missing & _pairs(one)))
        missing -= _pairs(best)
        chosen.append(Case(*best))
    return chosen


def _pairs(one: tuple[str, ...]) -> set[Any]:
    return set(combinations(enumerate(one), 2))


class Park:
    """A case in an engine; ``load`` packets or attempts in the first 60 ms, unless ``visits`` says when."""

    def __init__(
        self,
        engine: str,
        case: Case,
        *,
        seed: int = 1,
        load: int = 300,
        ring: int = 8,
        visits: Iterable[int] = (),
        blows: list[dict[str, Any]] | None = None,
        protection: dict[str, Any] | None = None,
        most_waiting: int = 1000,
        application: dict[str, Any] | None = None,
        path: dict[str, Any] | None = None,
        scenarios: Iterable[str] = ("IMS_UAC", "IMS_MSGC", "IMS_REREG"),
    ) -> None:
        self.case = case
        self.engine = make_engine(linked(), engine, lambda: None)
        self._pick = Random(seed)
        self._ring = ring
        self._path = path or {}
        self._application = application or {}
        self._scenarios = [Scenario[name] for name in scenarios]
        install_messages(self.engine)
        install_buckets(self.engine)
        self.scheduling: Any = TypeAdapter(schedulers()[case.scheduler]).validate_python({"kind": case.scheduler})
        pcpus = 5 if case.scheduler == "native" else 2
        self.host = cpu.add_host(self.engine, pcpus, self.scheduling, 2 * US)
        self.driver, self.guest, self.neighbour, self.stub = (
            cpu.add_domain(self.engine, self.host, DomainScheduling(), count, None, 10 * MS) for count in (2, 1, 1, 1)
        )
        self.io = io.Io(self.engine)
        self.card = add_card(self.engine, 1_000_000_000, 100_000, 256 * 1024)
        self.program = self._add_application()
        self.port = self._add_port()
        self._add_clients()
        self.spec: Any = protections()[case.protection].model_validate(
            {"kind": case.protection, **_PROTECTION.get(case.protection, {}), **(protection or {})}
        )
        self.guard = protect.add_guard(
            self.engine,
            self.spec,
            self.guest,
            [self.port],
            [self.program],
            most_waiting=most_waiting,
            sender=self.driver,
        )
        cpu.start(self.engine, self.host, self.scheduling)
        self.io.start()
        load_spec = CyclicLoadSpec(busy=3 * MS, period=10 * MS)
        self.engine.call(begin_load, add_load(self.engine, self.neighbour, load_spec, 1))
        if case.application == "sip_server":
            self.engine.call(start_server, self.server)
        self._plan(load, list(visits))
        if blows is None:
            blows = [{"kind": case.blow, "at": f"{20 * MS + 137} ns"}]
            if case.blow == "pause":
                blows[0]["duration"] = 10 * MS
        faults = [TypeAdapter(FAULTS[f["kind"]]).validate_python(dict(f)) for f in blows]
        protect.start(self.engine, self.guard, self.spec, dict(enumerate(faults)), lambda instant: instant.offset_ns)

    def _add_application(self) -> int:
        engine, kind = self.engine, self.case.application
        if kind in POOLS:
            spec: Any = POOLS[kind](**{"receive_buffer_bytes": 496 * 20, **self._application})
            parts: Any = None  # a pool draws nothing
            site = Installing(engine, parts, parts, lambda _, cause: self.io.drop_row("socket buffer", cause))
            program = spec.install(site.context(self.guest))
            self.pool = program.record
            return int(program.row)
        spec = SipServerSpec(
            touch_cost=40 * US, register_touch_cost=40 * US, demand_cv=0.0, t1=8 * MS, **self._application
        )
        server = add_server(engine, self.guest, spec)
        self.server = int(server.row)
        return int(server.program)

    def _add_port(self) -> int:
        engine, kind = self.engine, self.case.path
        if kind == "moderated":
            row, port = engine.add(
                ports,
                domain=self.guest,
                path=engine.number(moderated.moderated),
                application=self.program,
                saves_ring=moderated.Moderated.saves_ring,
            )
            port.row = row
            moderated.install(engine, row, moderated.GuestNicSpec(ring=32, moderation=100 * US), 3 * US, 2 * US)
        else:
            sizes = {"ring_packets": self._ring} if kind in ("paravirtual", "emulated", "stub_domain") else {}
            spec: Any = io_paths()[kind].model_validate({"kind": kind, **sizes, **self._path})
            nic = self.io.add_nic("eth0", NicSpec(receive_ring_packets=32))
            owned = [nic] if spec.needs_driver_domain else []
            transmit = self.io.add_driver_domain(DriverDomainSpec(placement="spread"), self.driver, owned)
            row = self.io.add_port("guest", self.guest, nic, self.program, spec.part, saves_ring=spec.saves_ring)
            spec.connect(self.io, Site("guest", self.guest, nic, (row,), self.driver, transmit, self.stub))
        engine.rows(ports)[row].card = self.card
        return row

    def _add_clients(self) -> None:
        engine = self.engine
        row, flow = engine.add(flows, workload=engine.number(visitors), port=self.port, size_bytes=238)
        flow.row = row
        if self.case.application != "sip_server":
            return
        flow.workload = engine.number(ims_bench)
        flow.state_row, self.bench = engine.add(benches, port=self.port)
        self.bench.row, self.bench.flow = flow.state_row, row
        spec = ImsBenchSpec(to="server")
        fill_row(self.engine, benches, self.bench.row, spec)
        fill_row(self.engine, benches, self.bench.row, spec.thresholds)
        self.bench.t1_ns = 9 * MS
        fill_pools(engine, self.bench, 1 << 12, 0)
        self.bench.unregistered.count = 0
        self.bench.phase, phase = engine.add(phases)
        rows = [engine.new(delays) for _ in HISTOGRAMS]
        phase.first_delay = rows[0]

    def _plan(self, load: int, visits: list[int]) -> None:
        instants = visits or sorted(self._pick.randrange(1, 60 * MS) for _ in range(load))
        for number, time_ns in enumerate(instants, 1):
            if self.case.application == "sip_server":
                place = self._attempt(number, time_ns)
                self.engine.at(time_ns, EventKind.ARRIVAL, number, self.engine.number(on_attempt), place)
            else:
                self.engine.at(time_ns, EventKind.ARRIVAL, number, self.engine.number(on_visit), number)

    def _attempt(self, number: int, time_ns: int) -> int:
        row, stream = self.engine.add(streams, number=number, uses=1)
        stream.demands[:] = [1.0] * DEMANDS_PER_ATTEMPT
        attempt = self.engine.rows(attempts)[row]
        scenario = self._pick.choice(self._scenarios)
        attempt.bench, attempt.phase, attempt.scenario, attempt.counted = (
            self.bench.row,
            self.bench.phase,
            int(scenario),
            True,
        )
        attempt.start_ns, attempt.ring_ns, attempt.hold_ns, attempt.destination = time_ns, 2 * MS, 3 * MS, -1
        return row

    def run(self, until_ns: int = 200 * MS) -> "Park":
        """Run to an instant, looking now and then whether everything adds up."""
        while self.engine.now_ns < until_ns:
            self.engine.run(min(until_ns, self.engine.now_ns + 7 * MS + 1))
            self.check()
        return self

    def rows(self, table: Table[Any]) -> list[Any]:
        return [self.engine.rows(table)[row] for row in range(1, self.engine.used(table) + 1)]

    def dropped(self, row: int) -> int:
        return int(self.engine.rows(drops)[row].count)

    def drop_counts(self) -> dict[tuple[str, str], int]:
        """Drops by place and cause, those of links, guard and moderated card too."""
        nic = self.engine.rows(moderated.guest_nics)[self.port]
        drops = {
            ("guard", "no room"): int(self.engine.rows(guards)[self.guard].no_room),
            ("network card", "lost"): int(self.engine.rows(guards)[self.guard].card_lost),
            ("card", "ring full"): int(nic.ring_full),
            ("card", "down"): int(nic.down),
        }
        if self.case.application == "sip_server":
            drops["socket buffer", "full"] = int(self.engine.rows(sip_servers)[self.server].buffer_full)
        drops |= {("link", str(number)): int(row.queue_full) for number, row in enumerate(self.rows(links))}
        counts = {key: self.dropped(row) for key, row in drops.items() if row}
        return {key: count for key, count in (self.io.drop_counts() | counts).items() if count}

    def packets_in_use(self) -> int:
        """Rows of packets taken and not given back."""
        return rows_in_use(self.engine, packets)

    def packets_found(self) -> int:
        """Packets on links, in interfaces, rings, stages, sockets, processes, and held by a mechanism."""
        found = sum(int(one.sent - one.delivered) - self.dropped(int(one.queue_full)) for one in self.rows(links))
        found += sum(int(one.packets.length + one.unnoted.length) for one in self.rows(nics))
        found += sum(int(one.packets.length + one.waiting.length) for one in self.rows(rings))
        found += sum(int(one.held) for one in self.rows(stages))
        card = self.engine.rows(moderated.guest_nics)[self.port]
        found += int(card.ring.length + card.announced.length + card.batch.length + card.taken.length)
        found += sum(int(one.socket.packets.length + one.in_hand.length) for one in self.rows(pools))
        found += sum(int(one.buffer.length) for one in self.rows(sip_servers))
        found += sum(1 for one in self.rows(workers) if one.packet)
        found += sum(int(one.outputs.length) for one in self.rows(pairs))
        found += sum(int(one.packets.length) for one in self.rows(plans))
        held = self.engine.rows(output_buffers)[self.guard]
        found += int(held.fresh.length + held.sealed.length + held.leaving.length)
        found += int(self.engine.rows(replications)[self.guard].pending.length)
        return found + int(self.engine.rows(locksteps)[self.guard].pending.length)

    def check(self) -> None:
        """Everything that was sent was delivered, dropped, or is on its way."""
        self.io.catch_up()
        in_use = self.packets_in_use()
        assert in_use == self.packets_found()
        if self.case.application == "sip_server":
            self._check_server()
        else:
            counts = self.engine.rows(tally)[1]
            assert counts.lost == sum(self.drop_counts().values())
            assert counts.sent + counts.copied == counts.delivered + counts.lost + counts.discarded + in_use
        self._check_slots(in_use)
        cpu.check_conservation(self.engine, self.host)
        protect.check_conservation(self.engine, self.guard)

    def _check_slots(self, in_use: int) -> None:
        """A ring has as many slots taken as it holds packets, or more for those in somebody's hands."""
        held = [*self.rows(nics), *self.rows(rings), *(one.socket for one in self.rows(pools))]
        assert all(one.packets.length <= one.occupied <= one.capacity for one in held)
        if in_use == 0:
            assert not any(one.occupied for one in held)
            assert not any(one.active or one.held for one in self.rows(stages))

    def _check_server(self) -> None:
        server = self.engine.rows(sip_servers)[self.server]
        busy = self.engine.rows(sip_rules)[self.server].processes - server.idle.length
        in_progress = int(server.buffer.length + busy)
        done = server.taken + self.dropped(int(server.buffer_full)) + server.lost_in_crash
        assert server.received == done + in_progress
        card = self.engine.rows(cards)[self.card]
        assert sum(self.bench.to_server) == self.engine.rows(links)[card.to_host].sent

    def result(self) -> dict[str, Any]:
        """What came of it, to compare engines."""
        counts = self.engine.rows(tally)[1]
        made: dict[str, Any] = {
            "drops": self.drop_counts(),
            "in_use": self.packets_in_use(),
            "events": self.engine.events,
            "timeline": account.timeline(self.engine, self.guard),
            "counters": account.counters(self.engine, self.guard),
            "run_ns": [int(one.run_ns) for one in self.rows(vcpus)],
            "stopped_ns": int(self.engine.rows(guards)[self.guard].stopped_ns),
            "links": [(int(one.sent), int(one.delivered), int(one.free_ns)) for one in self.rows(links)],
            "seen": [(int(one.time_ns), int(one.number)) for one in self.rows(seen)],
            "tally": (
                int(counts.sent),
                int(counts.delivered),
                int(counts.lost),
                int(counts.copied),
                int(counts.discarded),
            ),
        }
        if self.case.application == "sip_server":
            server = self.engine.rows(sip_servers)[self.server]
            made["server"] = (int(server.received), int(server.taken), int(server.lost_in_crash))
            made["from_server"] = [int(count) for count in self.bench.from_server]
            made["ends_ns"] = [int(at_ns) for at_ns in self.bench.ends_ns]
        return made


__all__ = ["APPLICATIONS", "BLOWS", "MS", "PATHS", "PROTECTIONS", "SCHEDULERS", "US", "Case", "Park", "every_pair"]
