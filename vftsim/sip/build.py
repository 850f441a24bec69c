"""The SIP lab put together on the kernel: test systems, network, server, host, protection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from vftsim.kernel import Engine, Kind, Linked, Sort, link
from vftsim.kernel.agenda import Agenda, agenda_due
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.background import add_load, begin_load
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.unseen import account_for_unseen, hide
from vftsim.platform.delays import install_buckets
from vftsim.platform.io.host_cards import HostCards, cards, on_burst
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import application, applications, flows, path, ports, workload
from vftsim.platform.io.paths.moderated import guest_nics, install, moderated
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.none import NoProtectionSpec
from vftsim.platform.protection.when import Instant
from vftsim.sip.system import SipLabSpec
from vftsim.workloads.ims_bench.agents import ims_bench
from vftsim.workloads.ims_bench.arrivals import begin_arrivals, begin_batches, judge_overdue
from vftsim.workloads.ims_bench.attempt import Bench, benches
from vftsim.workloads.ims_bench.parameters import ImsBenchSpec
from vftsim.workloads.ims_bench.sampler import add_sampler, begin_sampling, busy_now, end_sampling
from vftsim.workloads.ims_bench.subscribers import fill_pools
from vftsim.workloads.sip.messages import install_messages
from vftsim.workloads.sip.records import sip_servers
from vftsim.workloads.sip.server import add_server, sip_server, start_server

ENTRIES = (
    *cpu.ENTRIES, account_for_unseen, begin_load, start_server, begin_arrivals, begin_batches, judge_overdue,
    begin_sampling, end_sampling, busy_now,
)  # fmt: skip
TABLES = (*cpu.TABLES, agenda_due)
_S = 1_000_000_000


@cache
def linked(scheduling: Kind, mechanism: Kind | None = None, guests: tuple[Kind, ...] = ()) -> Linked:
    """Return the kernel of SIP labs under a scheduler and, if the server has a guard, under a mechanism.

    ``guests`` are the process schedulers of :func:`vftsim.platform.cpu.build.guest_kinds`.
    """
    kinds: dict[Sort, Sequence[Kind]] = {
        scheduler: [scheduling],
        path: [moderated],
        application: [sip_server],
        workload: [ims_bench],
    }
    if guests:
        kinds[guest_scheduler] = guests
    actions: list[Any] = [*Agenda.ACTIONS, on_burst]
    if mechanism is None:
        return link(ENTRIES, kinds, actions, TABLES)
    kinds[protection] = [mechanism]
    kinds[fault] = [spec.part for spec in FAULTS.values()]
    return link([*ENTRIES, *protect.ENTRIES], kinds, [*actions, *protect.ACTIONS], [*TABLES, *protect.TABLES])


def linked_for(spec: SipLabSpec) -> Linked:
    """Return the kernel of a lab."""
    guarded_by = protection_of(spec)
    guests = cpu.guest_kinds(domain.guest_scheduler for domain in spec.domains.values())
    return linked(spec.host.scheduler.part, None if guarded_by is None else guarded_by.part, tuple(guests))


def protection_of(spec: SipLabSpec) -> ProtectionSpec | None:
    """Return the mechanism of a lab; ``None``: nothing protects, nothing fails."""
    return None if not spec.faults and isinstance(spec.protection, NoProtectionSpec) else spec.protection


def time_of(spec: ImsBenchSpec, instant: Instant) -> int:
    """Return the time of a run in ns: every phase has a fixed length."""
    before = spec.pre_registration
    batch_ns = round(spec.test_systems * _S / before.rate)
    stir_ns = before.duration // batch_ns * batch_ns
    steps_ns = stir_ns + spec.stir.duration // spec.stir.steps * spec.stir.steps
    if instant.phase == "stir":
        return stir_ns + instant.offset_ns
    if instant.phase.startswith("step "):
        return steps_ns + (int(instant.phase[5:]) - 1) * spec.steps.duration + instant.offset_ns
    return instant.offset_ns


class BuiltLab:
    """A lab in an engine, ready to start.

    Attributes
    ----------
    host, bench, server, port, guard : int
        Rows; no guard: 0.
    domains : dict of str to int
        Rows of the domains, the server's ``sut`` first.
    """

    def __init__(self, engine: Engine, spec: SipLabSpec, *, observed: bool = False) -> None:
        self.engine = engine
        self.spec = spec
        self.scheduler = spec.host.scheduler
        self._unseen: list[int] = []
        install_messages(engine)
        install_buckets(engine)
        self.host = cpu.add_host(engine, spec.host.pcpus, self.scheduler, spec.host.switch_cost, observed=observed)
        names = ["sut", *(name for name in sorted(spec.domains) if name != "sut")]
        self.domains = {name: self._add_domain(name) for name in names}
        self.cards = HostCards(engine, spec.nics)
        card = engine.rows(cards)[self.cards.carrying("vm")]
        self.to_server, self.to_agents = int(card.to_host), int(card.from_host)
        program, _ = engine.add(applications)
        engine.rows(applications)[program].row = program
        self.server = add_server(
            engine, self.domains["sut"], program, spec.server, spec.virtualization, spec.domains["sut"].guest_scheduler
        )
        self.port = self._add_port(program)
        self.protection = protection_of(spec)
        self.guard = 0
        if self.protection is not None:
            sut = self.domains["sut"]
            self.guard = protect.add_guard(engine, self.protection, sut, [self.port], [program], self.to_agents)
        self.bench = self._add_bench()
        self.places = {
            "socket buffer": int(engine.rows(sip_servers)[self.server].buffer_full),
            "NIC ring": int(engine.rows(guest_nics)[self.port].ring_full),
            "link to the server": int(engine.rows(links)[self.to_server].queue_full),
            "link from the server": int(engine.rows(links)[self.to_agents].queue_full),
        }
        add_sampler(
            engine, self.bench, self.server, self.domains["sut"], self.guard, spec.workload.sample_period,
            [*self.places.values()],
        )  # fmt: skip

    def start(self) -> None:
        """Start everything but the benchmark."""
        engine = self.engine
        cpu.start(engine, self.host, self.scheduler)
        engine.call(start_server, self.server)
        self.cards.start()
        for number, (name, row) in enumerate(list(self.domains.items())[1:]):
            load = self.spec.domains[name].background
            if load is not None:
                self._begin_load(add_load(engine, row, load, 1 + number))
        if self.protection is not None:
            protect.start(engine, self.guard, self.protection, self.spec.faults, self._time_of)

    def _begin_load(self, row: int) -> None:
        if hide(self.engine, row, self.scheduler):
            self._unseen.append(row)
        else:
            self.engine.call(begin_load, row)

    def settle(self) -> None:
        """Bring all accounts of the host up to now."""
        for row in self._unseen:
            self.engine.call(account_for_unseen, row)
        self.engine.call(cpu.bring_up_to_date, self.host)

    def _time_of(self, instant: Instant) -> int:
        return time_of(self.spec.workload, instant)

    def _add_domain(self, name: str) -> int:
        domain = self.spec.domains[name]
        shares = {key: getattr(domain, key) for key in DomainScheduling.model_fields}
        return cpu.add_domain(
            self.engine, self.host, DomainScheduling(**shares), domain.vcpus, domain.affinity,
            self.spec.server.quantum, domain.guest_scheduler,
        )  # fmt: skip

    def _add_port(self, program: int) -> int:
        engine, virtual = self.engine, self.spec.virtualization
        row, port = engine.add(
            ports, domain=self.domains["sut"], path=engine.number(moderated), nic=self.cards.carrying("vm"),
            application=program,
        )  # fmt: skip
        port.row = row
        install(engine, row, self.spec.nic, virtual.interrupt_cost, virtual.packet_cost)
        return row

    def _add_bench(self) -> int:
        engine, workload_spec = self.engine, self.spec.workload
        row, bench = engine.add(benches, port=self.port)
        bench.row = row
        flow_row, flow = engine.add(flows, workload=engine.number(ims_bench), own=row, port=self.port)
        flow.row = bench.flow = flow_row
        write_rules(bench, workload_spec)
        if "uac" in self.domains:
            bench.domain = self.domains["uac"]
            bench.message_cost_ns = self.spec.domains["uac"].message_cost
        registered = int(workload_spec.subscribers * workload_spec.registered / 100.0)
        fill_pools(engine, bench, workload_spec.subscribers, registered)
        return row


def write_rules(bench: Bench, spec: ImsBenchSpec) -> None:
    """Write the limits and timers of user agents into a benchmark's record."""
    limits: Any = spec.thresholds
    bench.t1_ns, bench.t2_ns = spec.t1, spec.t2
    bench.invite_retransmissions = spec.invite_retransmissions
    bench.request_retransmissions = spec.request_retransmissions
    bench.fails_on_second_challenge = spec.fails_on_second_challenge
    bench.session_setup_ns, bench.release_ns = limits.session_setup, limits.release
    bench.message_ns = limits.message
    bench.registration_ns, bench.reregistration_ns = limits.registration, limits.reregistration
