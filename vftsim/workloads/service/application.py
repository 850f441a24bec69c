"""The service as an application of a domain: what a model file says of it and its calls, and what it measures."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from vftsim.errors import ConservationError
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import histogram
from vftsim.platform.io.packet import MESSAGE
from vftsim.platform.rows import add_row
from vftsim.spec.base import Items, Spec
from vftsim.spec.units import ByteCount, DurationNs, Percent
from vftsim.stats import DelayHistogram
from vftsim.workloads.common import add_routes, busy_ns, of_packets, pages_per_request, unread_without
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, PeerRoute, Program, Wiring
from vftsim.workloads.service import server
from vftsim.workloads.service.records import Service, plans, service_call, services, visits

MOST_CALLS = 100
"""Of one entry at a time: they are drawn at one instant."""
MOST_ENTRIES = 256
"""Of a service: whose draws are whose."""


class ServiceWork(Outcome):
    """What a service did after the warm-up; times of requests that came after it.

    Calls by the service that was asked, where it asks any; transfers where it has a disk to use.
    """

    requests: int = declare.total(label="requests answered")
    failed: int = declare.total(label="requests failed", better="lower", headline=declare.IF_ANY)
    busy_ns: int = declare.total(label="time of threads with a request", unit="ns")
    response: DelayHistogram = declare.delays(
        label="request to answer, at the service", better="lower", headline=("mean", "p95")
    )
    wait: DelayHistogram = declare.delays(label="wait for a thread", better="lower")
    calls: dict[str, int] | None = declare.total(label="calls", by="name")
    hits: dict[str, int] | None = declare.total(label="calls that the cache made unnecessary", by="name")
    repeated: dict[str, int] | None = declare.total(label="calls repeated", by="name", better="lower")
    calls_failed: dict[str, int] | None = declare.total(label="calls failed", by="name", better="lower")
    transfers: int | None = declare.total(label="disk transfers")
    # Not said to be better when higher: what is counted so is what clients miss, and they count these already.
    throughput = declare.rate(requests, label="requests answered", headline=True)
    busy_threads = declare.rate(busy_ns, factor=1e-9, unit="", label="threads with a request, mean")
    call_rate = declare.rate(calls, label="calls")


class CallSpec(Spec):
    """Calls of another service, for each request."""

    to: str = Field(description="Who is asked: `domain` or `domain.application`; copies of a domain take turns.")
    via: str | None = Field(
        None, description="Network of the calls; the last that both are on if not given, none in one domain."
    )
    probability: Percent = Field(100.0, description="Of requests that make these calls.")
    count: int = Field(1, ge=1, le=MOST_CALLS, description="Calls of a request that makes them: fan-out.")
    when: Literal["sequential", "parallel"] = Field(
        "sequential", description="One after the other, or at once, together with parallel ones next to it in the list."
    )
    cost: DurationNs = Field(0, description="CPU time of the asker for each call, beside its path's.")
    size: ByteCount = Field(512, ge=64, le=1 << 20, description="Request on the wire. Assumption.")
    timeout: DurationNs = Field(
        1_000_000_000, description="Wait before a call is repeated, doubled each time; 0: for ever. Assumption."
    )
    retries: int = Field(2, ge=0, le=20, description="Repetitions before a call is given up. Assumption.")
    max_fails: int = Field(
        1,
        ge=0,
        le=1000,
        description="Calls timed out after which a copy is passed over. Default: nginx; 0: it never is.",
    )
    fail_timeout: DurationNs = Field(
        10_000_000_000, description="For how long, before a call tries the copy anew. Default: nginx."
    )
    cache_hit: Percent = Field(0.0, description="Of calls that a full cache of the asker's own makes unnecessary.")
    cache_entries: int = Field(
        0, ge=0, le=1_000_000_000, description="Answers in the cache, asked for equally often; 0: it is full at once."
    )


class ServiceProgram(Program):
    """A service in a running model."""

    def __init__(self, context: InstallContext, spec: "ServiceSpec", record: Service) -> None:
        super().__init__(context, record)
        self._context, self._spec, self._service = context, spec, record
        self._serial = context.serial(spec)
        self._plans: list[tuple[str, int]] = []

    def connect_peers(self, wiring: Wiring) -> None:
        """Write down what it asks of others, now that those have their ports."""
        for number, call in reversed(list(enumerate(self._spec.calls))):
            row = self._service.first_plan = self._add_plan(wiring, call, MOST_ENTRIES * self._serial + number)
            self._plans.insert(0, (call.to, row))

    def _add_plan(self, wiring: Wiring, call: CallSpec, entity: int) -> int:
        engine, context = self.engine, self._context
        first_route, count = add_routes(engine, wiring.port_pairs(call.to, call.via))
        threads, is_drawn = self._spec.threads, call.cache_entries > 0
        chance, choices = context.choice_feed("service.chance", entity, call.probability, at_once=threads)
        hit, lookups = context.choice_feed(
            "service.cache", entity, call.cache_hit, is_drawn=is_drawn, at_once=threads * call.count
        )
        plan = add_row(
            engine,
            plans,
            call,
            service=int(self._service.row),
            next_plan=int(self._service.first_plan),
            is_parallel=call.when == "parallel",
            chance=chance,
            choices=choices,
            hit=hit,
            lookups=lookups,
            filled=call.cache_entries,
            cost_ns=context.inflated(call.cost),
            first_route=first_route,
            routes=count,
            turn=self._serial % count,
        )
        return int(plan.row)

    def in_flight(self) -> int:
        """Requests in its socket and its threads' hands."""
        return int(self._service.waiting.length + self._service.in_hand.length)

    def occupancy(self) -> tuple[str, int]:
        """Requests in its socket."""
        return f"{self.name} socket", int(self._service.waiting.length)

    def check(self) -> None:
        """Every request that came is somewhere, every thread that is at work has one, and every call is for one."""
        record = self._service
        over = record.answered + record.refused + record.lost
        if (
            record.came != over + record.waiting.length + record.active
            or record.active != record.in_hand.length + record.blocked
        ):
            raise ConservationError(
                f"{self.name}: {record.came} requests came, but {record.answered} answered + {record.refused} refused "
                f"+ {record.lost} lost + {record.waiting.length} waiting + {record.active} with a thread "
                f"({record.in_hand.length} in hand, {record.blocked} being sent)"
            )
        rows = [self.engine.rows(plans)[row] for _, row in self._plans]
        waiting, under_way = self._waiting_calls(), sum(int(plan.opened - plan.closed) for plan in rows)
        if waiting != under_way:
            raise ConservationError(f"{self.name}: {under_way} calls are under way, but requests wait for {waiting}")

    def _waiting_calls(self) -> int:
        """Return the calls of the requests in its threads' hands."""
        in_hand = of_packets(self.engine, self._service.in_hand, visits)
        return sum(int(visit.planned.length + visit.asked.length) for visit in in_hand)

    def outcome(self) -> ServiceWork:
        """Return what it did up to now."""
        record = self._service
        return ServiceWork.of_row(
            record,
            busy_ns=busy_ns(self.engine, record, visits),
            response=histogram(self.engine, int(record.response)),
            wait=histogram(self.engine, int(record.wait)),
            calls=self._of_plans("made"),
            hits=self._of_plans("hits"),
            repeated=self._of_plans("repeated"),
            calls_failed=self._of_plans("failed"),
            transfers=int(record.transfers) if self._spec.uses_a_disk else None,
            seconds=self._context.measured_s(),
        )

    def _of_plans(self, count: str) -> dict[str, int] | None:
        counts = dict.fromkeys((to for to, _ in self._plans), 0)
        for to, row in self._plans:
            counts[to] += int(getattr(self.engine.rows(plans)[row], count))
        return counts or None


@APPLICATIONS.register
class ServiceSpec(ApplicationSpec):
    """A service that computes, uses its disk, calls others, and answers."""

    kinds = (service_call,)
    products = ("responder", "microservice", "database", "memcached")
    speaks = "request"
    uses_disks = True
    actions = (server.on_timer,)
    outcomes = (ServiceWork,)

    kind: Literal["service"] = "service"
    pages_per_request: float = pages_per_request(2.0, "the packet's buffer, and a page of what is kept of it")
    threads: int = Field(1, ge=1, le=100_000, description="Requests in work at once. Default: netserver, one.")
    demand: DurationNs = Field(
        10_000, description="CPU time of a request, without the I/O path's. Assumption: a system call in and out."
    )
    demand_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Coefficient of variation of the demand (gamma); 0: always the same."
    )
    answer_size: ByteCount = Field(
        128,
        ge=64,
        le=1 << 20,
        description="Answer on the wire. Default: 1 byte (netperf TCP_RR), 52 TCP/IP with time stamp, 38 Ethernet "
        "with preamble and gap, rounded up.",
    )
    backlog: int = Field(
        1024,
        ge=0,
        le=1_000_000,
        description="Requests that wait for a thread; others are dropped. 0: none waits. Assumption.",
    )
    reads: float = Field(
        0.0, ge=0.0, le=1000.0, description="Mean number of disk reads of a request; a part of one by chance."
    )
    writes: float = Field(
        0.0, ge=0.0, le=1000.0, description="Mean number of disk writes of a request, after them, likewise."
    )
    transfer_size: ByteCount = Field(8192, description="Of a read or a write. Default: a page of PostgreSQL.")
    disk: str | None = Field(None, description="Disk of its domain; the first if not given.")
    calls: Items[CallSpec] = Field(
        (), max_length=MOST_ENTRIES, description="What it asks of other services, in this order."
    )

    @property
    def pool_size(self) -> int:
        """Its threads."""
        return self.threads

    @property
    def uses_a_disk(self) -> bool:
        """Whether a request reads or writes."""
        return self.reads > 0.0 or self.writes > 0.0

    @property
    def peers(self) -> tuple[str, ...]:
        """Services that it calls."""
        return tuple(dict.fromkeys(call.to for call in self.calls))

    @property
    def peer_routes(self) -> Sequence[PeerRoute]:
        """As its calls say."""
        return [PeerRoute(call.to, call.via) for call in self.calls]

    @property
    def waits_for(self) -> tuple[str, ...]:
        """All of them."""
        return self.peers

    @property
    def mean_requests(self) -> Sequence[tuple[str, float]]:
        """By probability, number and cache."""
        return [
            (call.to, call.count * call.probability / 100.0 * (1.0 - call.cache_hit / 100.0)) for call in self.calls
        ]

    @property
    def packet_work_ns(self) -> int:
        """CPU time of a request."""
        return self.demand

    def without_effect(self) -> Mapping[str, str]:
        """Name what no call and no transfer reads."""
        reasons = unread_without(self, {"demand": ("demand_cv",)})
        for number, call in enumerate(self.calls):
            if call.timeout == 0:
                for key in ("retries", "max_fails", "fail_timeout"):
                    reasons[f"calls.{number}.{key}"] = "with timeout 0 no call is repeated"
            elif call.max_fails == 0:
                reasons[f"calls.{number}.fail_timeout"] = "with max_fails 0 no copy is passed over"
            if call.cache_hit == 0.0:
                reasons[f"calls.{number}.cache_entries"] = "with cache_hit 0 there is no cache"
        if not self.uses_a_disk:
            reasons |= dict.fromkeys(("transfer_size", "disk"), "without reads and writes it uses no disk")
        return reasons

    def install(self, context: InstallContext) -> ServiceProgram:
        """Add it to a domain."""
        reads, writes = int(self.reads), int(self.writes)
        read_chance, read_choices = self._by_chance(context, "service.reads", self.reads - reads)
        write_chance, write_choices = self._by_chance(context, "service.writes", self.writes - writes)
        record = context.add_program(
            services,
            self,
            reads=reads,
            read_chance=read_chance,
            read_choices=read_choices,
            writes=writes,
            write_chance=write_chance,
            write_choices=write_choices,
            demand_ns=context.inflated(self.demand),
            demands=context.gamma_feed(
                "service.demand",
                context.serial(self),
                context.inflated(self.demand),
                self.demand_cv,
                at_once=self.threads,
            ),
            disk=context.disk(self.disk),
            socket_full=context.drop_row(f"{context.name} socket", "full"),
            lost_in_boot=context.drop_row("guest", "lost in crash"),
            response=context.add_delays(),
            wait=context.add_delays(),
        )
        if self.calls:
            record.flow = context.add_flow(service_call, int(record.row), transport=MESSAGE)
        return ServiceProgram(context, self, record)

    def _by_chance(self, context: InstallContext, name: str, share: float) -> tuple[int, int]:
        """Have a share of the requests make another transfer."""
        return context.choice_feed(name, context.serial(self), 100.0 * share, at_once=self.threads)
