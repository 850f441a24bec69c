"""A farm of servers, and calls through it."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from vftsim.errors import ConservationError, UsageError
from vftsim.kernel import Kind
from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import bucket_ends, histogram
from vftsim.platform.io.packet import drops, flows, ports
from vftsim.stats import DelayHistogram
from vftsim.workloads import burden
from vftsim.workloads.composed.rows import RowDriver, RowProgram
from vftsim.workloads.dirty_pages import DirtyPagesFields, pages_per_request
from vftsim.workloads.farm import calls, records, requests, server
from vftsim.workloads.farm.messages import Message
from vftsim.workloads.farm.parameters import AskSpec, FarmCallsSpec, FarmServerSpec, OperationSpec
from vftsim.workloads.farm.records import (
    asks,
    farm_calls,
    farm_loads,
    farm_request,
    farm_server,
    farm_servers,
    operations,
    routes,
)
from vftsim.workloads.gamma_feed import gamma_feed
from vftsim.workloads.parts import (
    APPLICATIONS,
    WORKLOADS,
    ApplicationSpec,
    InstallContext,
    RunProfile,
    Target,
    Wiring,
    WorkloadSpec,
)

_MESSAGE_WEIGHT, _REQUEST_WEIGHT, _DISK_WEIGHT = 0.6, 1.0, 0.4
"""Events of each, in those of a packet on its path."""
_DEEPEST = 16
_S = 1e9


class FarmWork(Outcome):
    """What a server of a farm did after the warm-up; ``asked`` and ``disk_operations``: where it does such."""

    messages: int = declare.total(label="messages handled")
    busy_ns: int = declare.total(label="time of threads with a message", unit="ns")
    asked: int | None = declare.total(label="requests to other servers")
    disk_operations: int | None = declare.total()
    message_rate = declare.rate(messages, label="messages handled", headline=True, known_as=("messages_per_s",))
    busy_threads = declare.rate(busy_ns, factor=1e-9, unit="", label="threads with a message, mean")
    ask_rate = declare.rate(asked, label="requests to other servers", known_as=("asked_per_s",))
    disk_rate = declare.rate(disk_operations, label="disk operations", known_as=("disk_operations_per_s",))


class CallsSeen(Outcome):
    """What the user agents of a farm saw; counts from the end of the warm-up."""

    offered: int = declare.total(label="calls offered")
    answered: int = declare.total(label="calls answered")
    failed: int = declare.total(label="calls failed", better="lower", headline=True)
    messages: int = declare.total(label="messages sent")
    repeated: int = declare.total(label="messages repeated", better="lower")
    dropped: int = declare.total(label="messages dropped", better="lower")
    active_calls: int = declare.number(label="calls at the end")
    most_active_calls: int = declare.number(label="calls at a time, most")
    response: DelayHistogram = declare.delays(
        label="INVITE to 200, less ringing", better="lower", headline=("p50", "p95")
    )
    registration: DelayHistogram = declare.delays(label="REGISTER to 200", better="lower")
    offered_rate = declare.rate(offered, label="calls offered", known_as=("offered_per_s",))
    rate = declare.rate(answered, label="calls answered", better="higher", headline=True, known_as=("calls_per_s",))
    retransmissions = declare.ratio(
        repeated, messages, unit="%", label="messages repeated", better="lower", known_as=("retransmissions_percent",)
    )


class FarmProgram(RowProgram):
    """A server of a farm in a running model.

    Parameters
    ----------
    row : int
        Row of the application.
    """

    def __init__(self, context: InstallContext, spec: FarmServerSpec, row: int) -> None:
        super().__init__(context, row, measured=self._measured_here)
        self.spec = spec
        self._context = context
        self._server = server.server_of(context.engine, row)

    def meet(self, around: Wiring) -> None:
        """Write down what each message makes it do, now that those it asks have their ports."""
        number = int(self._server.row)
        for message in Message:
            name = message.name.lower()
            named: Mapping[str, OperationSpec] = self.spec.operations  # type: ignore[assignment]
            operation = named.get(name, OperationSpec(demand=self.spec.demand))
            self._server.operations[message] = self._add_operation(around, message, operation, number)
        if self.spec.passes_to is not None:
            ways = around.ways(self.spec.passes_to, first=True)
            self._server.first_route, self._server.routes = self._add_routes(ways)

    def _add_operation(self, around: Wiring, message: Message, spec: OperationSpec, number: int) -> int:
        engine, context = self.engine, self._context
        demand_ns = round(spec.demand * context.cpu_inflation)
        row, operation = engine.add(
            operations,
            demand_ns=demand_ns,
            disk_operations=spec.disk_operations,
            demands=gamma_feed(
                context.feeder,
                context.streams,
                "farm_server.demand",
                16 * number + message,
                demand_ns,
                self.spec.demand_cv,
            ),
        )
        operation.row = row
        is_front = message == Message.INVITE and self.spec.passes_to is None
        operation.outputs = (2.0 if is_front else 1.0) + sum(ask.times for ask in spec.asks)
        answers_by = around.ports[list(around.ports)[-1 if message >= Message.LOOKUP else 0]]
        operation.send_ns = (operation.outputs - sum(ask.times for ask in spec.asks)) * self._send_ns(answers_by)
        before = None
        for ask in spec.asks:
            ways = around.ways(ask.to, ask.via)
            operation.send_ns += ask.times * self._send_ns(ways[0][0])
            made = self._add_ask(ask, ways)
            if before is None:
                operation.first_ask = made
            else:
                before.next_ask = made
            before = engine.rows(asks)[made]
        return row

    def _add_ask(self, spec: AskSpec, ways: list[tuple[int, int]]) -> int:
        first, count = self._add_routes(ways)
        row, _ = self.engine.add(
            asks,
            message=int(Message[spec.message.upper()]),
            size_bytes=spec.size,
            times=spec.times,
            first_route=first,
            routes=count,
            turn=int(self._server.row) % count,
        )
        return row

    def _add_routes(self, ways: Iterable[tuple[int, int]]) -> tuple[int, int]:
        rows = [self.engine.add(routes, from_port=from_port, to_port=other)[0] for from_port, other in ways]
        return rows[0], len(rows)

    def _send_ns(self, port: int) -> int:
        return int(self.engine.rows(ports)[port].transmit_ns)

    def in_flight(self) -> int:
        """Messages in its socket and its threads' hands."""
        return int(self._server.waiting.length + self._server.in_hand.length)

    def check(self) -> None:
        """Every thread that is at work has a message, and none has two."""
        if self._server.active != self._server.in_hand.length:
            raise ConservationError(
                f"{self.name}: {self._server.active} threads at work, "
                f"but {self._server.in_hand.length} messages in hand"
            )

    def occupancy(self) -> tuple[str, int]:
        """Messages in its socket."""
        return f"{self.name} socket", int(self._server.waiting.length)

    def _measured_here(self) -> FarmWork:
        """Return what it did, and how many threads had a message; of what it never does nothing is known."""
        used, record = self.spec.operations.values(), self._server
        return FarmWork(
            messages=int(record.handled),
            busy_ns=int(record.busy_ns),
            asked=int(record.asked) if any(each.asks for each in used) else None,
            disk_operations=int(record.disk_operations) if any(each.disk_operations for each in used) else None,
            seconds=max(1.0, float(self.engine.now_ns - record.warmup_ns)) / _S,
        )


@APPLICATIONS.register
class FarmServer(FarmServerSpec, DirtyPagesFields, ApplicationSpec):
    """A server of a farm."""

    part: ClassVar[Kind] = farm_server
    kinds: ClassVar[tuple[Kind, ...]] = (farm_request,)
    speaks: ClassVar[str] = "farm"
    uses_disks: ClassVar[bool] = True
    actions: ClassVar[tuple[Any, ...]] = (requests.on_repeat,)
    tables: ClassVar[tuple[Table[Any], ...]] = (*records.TABLES, *burden.TABLES, feeds)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (FarmWork,)

    pages_per_request: float = pages_per_request(3.0, "its buffer, and 8 KiB of transaction")

    @property
    def hands_on_to(self) -> str | None:
        """Servers behind a balancer."""
        return self.passes_to

    def install(self, context: InstallContext) -> FarmProgram:
        """Add it to a domain."""
        engine = context.engine
        row, record = engine.add(
            farm_servers,
            domain=context.domain,
            threads=self.threads,
            most_waiting=self.backlog,
            retry_ns=self.retry,
            repeat_share=self.repeat_share,
            warmup_ns=context.window_ns[0],
            disk=next(iter(context.disks.values()), 0),
            socket_full=context.place(f"{context.name} socket", "full"),
            lost_in_boot=context.place("guest", "lost in crash"),
        )
        record.row = row
        record.program = burden.add_program(engine, farm_server, row, context.domain)
        record.flow, flow = engine.add(flows, workload=engine.number(farm_request), own=row)
        flow.row = record.flow
        if not context.disks and any(each.disk_operations for each in self.operations.values()):
            raise UsageError(f"{context.name}: disk operations need a disk of its domain: give it `disks`")
        return FarmProgram(context, self, int(record.program))


def _weight_of(server: ApplicationSpec | None, message: str, profile: RunProfile, depth: int = 0) -> float:
    """Return the weight of a message with all that it causes."""
    if depth > _DEEPEST:
        raise UsageError("requests between servers go in a circle: leave one of their `asks` out")
    weight = _REQUEST_WEIGHT if depth else _MESSAGE_WEIGHT
    used: Mapping[str, OperationSpec] = server.operations if isinstance(server, FarmServer) else {}  # type: ignore[assignment]
    if message in used and profile.peer is not None:
        weight += _DISK_WEIGHT * used[message].disk_operations
        weight += sum(
            ask.times * _weight_of(profile.peer(ask.to), ask.message, profile, depth + 1) for ask in used[message].asks
        )
    return weight


@WORKLOADS.register
class FarmCalls(FarmCallsSpec, WorkloadSpec):
    """Calls through a farm."""

    part: ClassVar[Kind] = farm_calls
    speaks: ClassVar[str] = "farm"
    needs_link: ClassVar[bool] = True
    agents_may_be_many: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = calls.ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*records.TABLES, feeds, bucket_ends, drops)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (CallsSeen,)

    @property
    def agents(self) -> str | None:
        """Domain in which its user agents run."""
        return self.agents_in

    @property
    def events_a_packet(self) -> float:
        """More where the user agents' CPU work is modelled."""
        return 0.0 if self.message_cost == 0 else 4.0

    def packets(self, profile: RunProfile) -> float:
        """Every message of every call, through balancer and front end, and what it makes them ask and read."""
        return self.rate * profile.seconds * self._weight(profile)

    def _weight(self, profile: RunProfile) -> float:
        """Return a call's messages, requests and disk operations, each by its events; measured."""
        caller = (*(("register",) if self.registered else ()), "invite", "ack", "bye")
        handler, weight = profile.application, 0.0
        if isinstance(handler, FarmServer) and handler.passes_to is not None and profile.peer is not None:
            handler, weight = profile.peer(handler.passes_to), _MESSAGE_WEIGHT * len(caller)
        return weight + sum(_weight_of(handler, each, profile) for each in (*caller, "ringing", "ok", "bye_ok"))

    def in_flight(self, profile: RunProfile) -> float:
        """Return the calls that are held."""
        return self.rate * min(profile.seconds, self.hold / _S)

    def install(self, target: Target) -> RowDriver:
        """Add the user agents."""
        engine, seconds = target.engine, (target.window_ns[1] - target.window_ns[0]) / _S
        row = calls.add_calls(
            engine, target.feeder, target.port, self, target.streams, target.number, target.window_ns[0]
        )
        load = engine.rows(farm_loads)[row]
        load.is_balanced = getattr(target.application, "passes_to", None) is not None
        load.first_agent, load.agents = next(iter(target.agents_domains), 0), len(target.agents_domains)

        def measured() -> CallsSeen:
            return CallsSeen.of_row(
                load,
                active_calls=int(load.active),
                most_active_calls=int(load.most_active),
                response=histogram(engine, int(load.responses)),
                registration=histogram(engine, int(load.registrations)) if self.registered else DelayHistogram(),
                seconds=seconds,
            )

        return RowDriver(target, int(load.flow), lambda: engine.call(calls.start_calls, row), measured)
