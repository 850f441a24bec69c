"""The service as an application of a domain, and what it measures."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vftsim.errors import ConservationError, UsageError
from vftsim.kernel import Engine, Kind
from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import bucket_ends, delays, histogram, install_buckets
from vftsim.platform.io.packet import applications, drops, flows, packets
from vftsim.sampling import Streams
from vftsim.stats import DelayHistogram
from vftsim.workloads import burden
from vftsim.workloads.choice_feed import choice_feed
from vftsim.workloads.composed.rows import RowProgram
from vftsim.workloads.dirty_pages import DirtyPagesFields
from vftsim.workloads.gamma_feed import gamma_feed
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Wiring
from vftsim.workloads.service import records, server
from vftsim.workloads.service.parameters import MOST_ENTRIES, CallSpec, ServiceSpec
from vftsim.workloads.service.records import Service, plans, routes, service, service_call, services, visits

ENTRIES = ()
ACTIONS = (server.on_timer,)
TABLES = (*records.TABLES, *burden.TABLES, feeds, bucket_ends)
_S = 1e9


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
    busy_threads = declare.rate(busy_ns, factor=1 / _S, unit="", label="threads with a request, mean")
    call_rate = declare.rate(calls, label="calls")


class ServiceProgram(RowProgram):
    """A service in a running model.

    Parameters
    ----------
    row : int
        Row of the application.
    """

    def __init__(self, context: InstallContext, spec: ServiceSpec, row: int) -> None:
        super().__init__(context, row, measured=self._measured_here)
        self._context, self._spec, self._service = context, spec, service_of(context.engine, row)
        self._number = context.others.get(spec.kind, 0)
        self._plans: list[tuple[str, int]] = []

    def meet(self, around: Wiring) -> None:
        """Write down what it asks of others, now that those have their ports."""
        for number, call in reversed(list(enumerate(self._spec.calls))):
            self._service.first_plan = self._add_plan(around, call, number)
            self._plans.insert(0, (call.to, int(self._service.first_plan)))

    def _add_plan(self, around: Wiring, call: CallSpec, number: int) -> int:
        engine, context, entity = self.engine, self._context, MOST_ENTRIES * self._number + number
        ways = [
            engine.add(routes, from_port=from_port, to_port=to)[0] for from_port, to in around.ways(call.to, call.via)
        ]
        chance, choices = choice_feed(context.feeder, context.streams, "service.chance", entity, call.probability)
        hit, lookups = choice_feed(
            context.feeder, context.streams, "service.cache", entity, call.cache_hit, is_drawn=call.cache_entries > 0
        )
        row, plan = engine.add(
            plans,
            service=int(self._service.row),
            next_plan=int(self._service.first_plan),
            is_parallel=call.when == "parallel",
            count=call.count,
            chance=chance,
            choices=choices,
            hit=hit,
            lookups=lookups,
            entries=call.cache_entries,
            filled=call.cache_entries,
            cost_ns=round(call.cost * context.cpu_inflation),
            size_bytes=call.size,
            timeout_ns=call.timeout,
            retries=call.retries,
            first_route=ways[0],
            routes=len(ways),
            turn=self._number % len(ways),
        )
        plan.row = row
        return row

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
        asked, under_way = self._asked(), sum(int(plan.opened - plan.closed) for plan in rows)
        if asked != under_way:
            raise ConservationError(f"{self.name}: {under_way} calls are under way, but requests wait for {asked}")

    def _asked(self) -> int:
        """Return the calls of the requests in its threads' hands."""
        asked, row = 0, int(self._service.in_hand.first)
        while row:
            visit = self.engine.rows(visits)[row]
            asked += int(visit.planned.length + visit.asked.length)
            row = int(self.engine.rows(packets)[row].link)
        return asked

    def _measured_here(self) -> ServiceWork:
        record, now_ns = self._service, self.engine.now_ns
        return ServiceWork.of_row(
            record,
            response=histogram(self.engine, int(record.response)),
            wait=histogram(self.engine, int(record.wait)),
            calls=self._of_plans("made"),
            hits=self._of_plans("hits"),
            repeated=self._of_plans("repeated"),
            calls_failed=self._of_plans("failed"),
            transfers=int(record.transfers) if self._spec.uses_a_disk else None,
            seconds=max(1.0, float(now_ns - record.warmup_ns)) / _S,
        )

    def _of_plans(self, count: str) -> dict[str, int] | None:
        counts = dict.fromkeys((to for to, _ in self._plans), 0)
        for to, row in self._plans:
            counts[to] += int(getattr(self.engine.rows(plans)[row], count))
        return counts or None


@APPLICATIONS.register
class ServiceApplication(ServiceSpec, DirtyPagesFields, ApplicationSpec):
    """A service that computes, uses its disk, calls others, and answers."""

    part: ClassVar[Kind] = service
    kinds: ClassVar[tuple[Kind, ...]] = (service_call,)
    products: ClassVar[tuple[str, ...]] = ("responder", "microservice", "database", "memcached")
    speaks: ClassVar[str] = "request"
    uses_disks: ClassVar[bool] = True
    actions: ClassVar[tuple[Any, ...]] = ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = TABLES
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (ServiceWork,)

    @property
    def peers(self) -> tuple[str, ...]:
        """Services that it calls."""
        return tuple(dict.fromkeys(call.to for call in self.calls))

    @property
    def waits_for(self) -> tuple[str, ...]:
        """All of them."""
        return self.peers

    @property
    def asks_on_average(self) -> Sequence[tuple[str, float]]:
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
        reasons = {}
        for number, call in enumerate(self.calls):
            if call.timeout == 0:
                reasons[f"calls.{number}.retries"] = "with timeout 0 no call is repeated"
            if call.cache_hit == 0.0:
                reasons[f"calls.{number}.cache_entries"] = "with cache_hit 0 there is no cache"
        if not self.uses_a_disk:
            reasons |= dict.fromkeys(("transfer_size", "disk"), "without reads and writes it uses no disk")
        return reasons

    def install(self, context: InstallContext) -> ServiceProgram:
        """Add it to a domain.

        Raises
        ------
        UsageError
            It uses a disk that its domain has not.
        """
        disk = context.disks.get(self.disk, 0) if self.disk is not None else next(iter(context.disks.values()), 0)
        if not disk and self.uses_a_disk:
            raise UsageError(f"{context.name}: its domain has no disk {self.disk or ''}; give it one under `disks`")
        slower = self.model_copy(update={"demand": round(self.demand * context.cpu_inflation)})
        row = add_service(
            context.engine,
            context.feeder,
            context.domain,
            slower,
            context.streams,
            context.others.get(self.kind, 0),
            disk,
            context.window_ns[0],
        )
        record = service_of(context.engine, row)
        record.socket_full = context.place(f"{context.name} socket", "full")
        record.lost_in_boot = context.place("guest", "lost in crash")
        return ServiceProgram(context, self, row)


def add_service(
    engine: Engine,
    feeder: Feeder,
    domain: int,
    spec: ServiceSpec,
    streams: Streams,
    number: int,
    disk: int = 0,
    warmup_ns: int = 0,
) -> int:
    """Add a service that calls nobody yet to a domain; ``number`` says whose draws are its own.

    Returns its application row.
    """
    install_buckets(engine)
    row, record = engine.add(
        services,
        domain=domain,
        threads=spec.threads,
        demand_ns=spec.demand,
        answer_bytes=spec.answer_size,
        demands=gamma_feed(feeder, streams, "service.demand", number, spec.demand, spec.demand_cv),
        most_waiting=spec.backlog,
        reads=spec.reads,
        writes=spec.writes,
        transfer_bytes=spec.transfer_size,
        disk=disk,
        socket_full=engine.add(drops)[0],
        lost_in_boot=engine.add(drops)[0],
        warmup_ns=warmup_ns,
        response=engine.new(delays),
        wait=engine.new(delays),
    )
    record.row = row
    record.program = burden.add_program(engine, service, row, domain)
    if spec.calls:
        record.flow, flow = engine.add(flows, workload=engine.number(service_call), own=row)
        flow.row = record.flow
    return int(record.program)


def service_of(engine: Engine, program: int) -> Service:
    """Return the record of an application row."""
    record: Service = engine.rows(services)[engine.rows(applications)[program].own]
    return record
