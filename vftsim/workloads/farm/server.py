"""A server of a farm: threads that each take a message, compute, wait for the disk, ask other servers, and send on.

The CPU time of a message comes first and in one piece; then its disk operations and requests, one after the other,
while the thread waits; then it leaves: a request of another server is answered, a registration too, everything else is
forwarded to the other user agent (a proxy that stays in the route), or by a balancer to the call's server.  An INVITE
is told to be under way (100 Trying) as soon as its CPU time is done (RFC 3261, 16.2), and one that the server has
already (RFC 3261, 17.2.1) costs a part of that and goes no further.

Simplifications: other repeated messages are handled as new ones; numbers of disk operations and requests that are no
whole numbers are made up by whole ones in turn, not drawn; the answer to a request costs no CPU time of its own.

A machine that is booted again has lost what was in its socket and in its threads' hands, and which INVITEs it had.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from vftsim.errors import ConservationError
from vftsim.kernel import BESIDE, Sim
from vftsim.outcome import Outcome, declare
from vftsim.platform.arithmetic import add_time
from vftsim.platform.cpu.jobs import continue_or_submit_for
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io import packet as io
from vftsim.platform.io.disk import disks, forget, read, transfer_done
from vftsim.platform.io.loopback import INSIDE
from vftsim.platform.rows import add_row
from vftsim.spec.base import Items, Spec
from vftsim.spec.units import ByteCount, DurationNs, PositiveDurationNs
from vftsim.workloads.common import (
    add_routes,
    busy_ns,
    drop_all,
    duration_ns,
    new_packet,
    pages_per_request,
    routes,
    send_or_wait,
)
from vftsim.workloads.farm import records as farm
from vftsim.workloads.farm.forwarding import begin_forwarding, boot_key, end_forwarding
from vftsim.workloads.farm.requests import end_request, is_over, is_taken, make_request, on_repeat
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, PeerRoute, Program, Wiring
from vftsim.workloads.threads import release_thread, release_threads, serving_threads, take_thread

BLOCK_BYTES = 4096
"""A disk operation: a block of the shared file system (the record's mkfs.xfs, 4 kB)."""


@farm.farm_server.implements(io.receive)
def take_message(sim: Sim, program: io.Application, packet: int, server: farm.FarmServer = BESIDE) -> None:
    """Give a message to an idle thread, or keep it for one; an answer goes to the thread that waits for it."""
    message = farm.message_of(io.packets(sim)[packet].message)
    if message == farm.Message.ANSWER:
        handle_answer(sim, server, packet)
    elif message >= farm.Message.LOOKUP and (is_over(sim, packet) or is_taken(sim, packet)):
        io.discard(sim, packet)
    else:
        if message >= farm.Message.LOOKUP:
            farm.requests(sim)[io.packets(sim)[packet].stream].state = farm.TAKEN
        take_or_queue(sim, server, packet)


@farm.farm_server.implements(io.held)
def messages_held(sim: Sim, program: io.Application, server: farm.FarmServer = BESIDE) -> int:
    """Those in its socket and with its threads."""
    return server.waiting.length + server.active


@farm.farm_server.implements(io.refused)
def messages_refused(sim: Sim, program: io.Application) -> int:
    """Those that found no place in its socket."""
    return io.drops(sim)[farm.servers(sim)[program.state_row].socket_full].count


def take_or_queue(sim: Sim, server: farm.FarmServer, packet: int) -> None:
    """Let a thread begin, or wait for one; a full socket drops."""
    if server.active < server.threads:
        take_thread(sim, domains(sim)[server.domain], server.idle, packet)
        begin(sim, server, packet, False)
    elif server.waiting.length < server.backlog:
        io.packet_list.push(sim, server.waiting, packet)
    else:
        io.drop(sim, packet, server.socket_full)


def begin(sim: Sim, server: farm.FarmServer, packet: int, is_running: bool) -> None:
    """Let a thread compute for a message: one that is running continues."""
    server.active += 1
    server.begun += 1
    io.packet_list.push(sim, server.in_hand, packet)
    message = farm.message_of(io.packets(sim)[packet].message)
    operation = farm.operations(sim)[server.operations[message]]
    visit = farm.visits(sim)[packet]
    visit.begin_ns = sim.now_ns
    visit.server = server.row
    visit.serial = server.begun
    visit.operation = operation.row
    is_invite = message == farm.Message.INVITE and server.routes == 0
    visit.is_repeat = is_invite and was_taken_before(sim, server, packet)
    if message == farm.Message.RINGING or message == farm.Message.OK:
        note_answer(sim, server, packet)
    demand_ns = demand_of(sim, server, operation, visit.is_repeat)
    domain, process = domains(sim)[server.domain], serving_threads(sim)[packet].process
    continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_worked, packet, server.row)


def note_answer(sim: Sim, server: farm.FarmServer, packet: int) -> None:
    """Note that an INVITE is answered which the server has forwarded."""
    call = farm.calls(sim)[io.packets(sim)[packet].stream]
    if call.forwarded_by == server.row and farm.serial_of(io.packets(sim)[packet].message) == call.uses:
        end_forwarding(call)


def demand_of(sim: Sim, server: farm.FarmServer, operation: farm.Operation, is_repeat: bool) -> int:
    """Return the CPU time of an operation with what its packets and its protection cost; below 10**15 ns exact."""
    overhead = io.applications(sim)[server.program]
    demand_ns = duration_ns(sim, operation.demands, operation.demand_ns) * overhead.execution
    if is_repeat:
        demand_ns *= server.repeat_share
    return int(demand_ns + operation.send_ns + operation.outputs * overhead.output_ns)


def was_taken_before(sim: Sim, server: farm.FarmServer, packet: int) -> bool:
    """Tell whether the server has taken this call's INVITE since it was booted, and remember it."""
    invite = io.packets(sim)[packet]
    call = farm.calls(sim)[invite.stream]
    known, serial = boot_key(server), farm.serial_of(invite.message)
    # The row may be another call's by now: the INVITE of one that was given up says nothing of that of the next.
    if serial < call.known_serial:
        is_known = call.late == known and call.late_serial == serial
        call.late = known
        call.late_serial = serial
        return is_known
    if serial > call.known_serial:
        call.late = call.known
        call.late_serial = call.known_serial
    is_known = call.known == known and call.known_serial == serial
    call.known = known
    call.known_serial = serial
    return is_known


@work_done
def on_worked(sim: Sim, packet: int, server: farm.FarmServer) -> None:
    """A message's CPU time is done."""
    visit = farm.visits(sim)[packet]
    if farm.message_of(io.packets(sim)[packet].message) == farm.Message.INVITE and server.routes == 0:
        send_trying(sim, packet)
    operation = farm.operations(sim)[visit.operation]
    visit.disk_left = 0
    visit.ask = 0
    if not visit.is_repeat:
        operation.disk_due += operation.disk_operations
        visit.disk_left = int(operation.disk_due)
        operation.disk_due -= visit.disk_left
        visit.ask = operation.first_ask
    visit.ask_left = count_of(farm.asks(sim)[visit.ask])
    continue_message(sim, server, packet, True)


def send_trying(sim: Sim, packet: int) -> None:
    """Tell the caller that its INVITE is under way."""
    invite = io.packets(sim)[packet]
    trying = invite.message - farm.Message.INVITE + farm.Message.TRYING
    size_bytes = invite.size_bytes
    send_or_wait(sim, new_packet(sim, invite.flow, invite.port, invite.stream, invite.entity, trying, size_bytes))


def count_of(ask: farm.Ask) -> int:
    """Return how many requests an ask comes to this time."""
    ask.due += ask.times
    count = int(ask.due)
    ask.due -= count
    return count


def continue_message(sim: Sim, server: farm.FarmServer, packet: int, is_running: bool) -> None:
    """Do what is next for a message: a disk operation, a request, or the end."""
    visit = farm.visits(sim)[packet]
    if visit.disk_left > 0:
        visit.disk_left -= 1
        server.disk_operations += int(sim.now_ns >= server.warmup_ns)
        read(sim, disks(sim)[server.disk], server.program, packet, BLOCK_BYTES)
        return
    while visit.ask != 0 and visit.ask_left == 0:
        visit.ask = farm.asks(sim)[visit.ask].next_ask
        visit.ask_left = count_of(farm.asks(sim)[visit.ask])
    if visit.ask != 0:
        visit.ask_left -= 1
        server.asked += int(sim.now_ns >= server.warmup_ns)
        make_request(sim, server, packet, farm.asks(sim)[visit.ask])
    else:
        finish(sim, server, packet, is_running)


@farm.farm_server.implements(transfer_done)
def end_disk_operation(sim: Sim, program: io.Application, tag: int) -> None:
    """Continue the message for which the disk has worked."""
    continue_message(sim, farm.servers(sim)[program.state_row], tag, False)


def handle_answer(sim: Sim, server: farm.FarmServer, packet: int) -> None:
    """Continue the message for which another server was asked, if it is still in hand."""
    if is_over(sim, packet):
        io.packets.free(sim, packet)
        return
    request = farm.requests(sim)[io.packets(sim)[packet].stream]
    parent = request.parent
    visit = farm.visits(sim)[parent]
    is_awaited = visit.server == server.row and visit.serial == request.parent_serial
    end_request(sim, request)
    io.packets.free(sim, packet)
    if is_awaited:
        continue_message(sim, server, parent, False)


def finish(sim: Sim, server: farm.FarmServer, packet: int, is_running: bool) -> None:
    """Let a message leave, and its thread take the next."""
    io.packet_list.remove(sim, server.in_hand, packet)
    server.active -= 1
    count_handled(sim, farm.visits(sim)[packet])
    # Before it leaves: the packet belongs to its path then, and its visit to whoever takes it next.
    is_repeat, process = farm.visits(sim)[packet].is_repeat, serving_threads(sim)[packet].process
    farm.visits(sim)[packet].serial = 0
    if is_repeat:
        io.discard(sim, packet)
    else:
        send_result(sim, server, packet)
    following = io.packet_list.pop(sim, server.waiting) if server.active < server.threads else 0
    if following == 0:
        release_thread(sim, server.idle, process)
    else:
        serving_threads(sim)[following].process = process
        begin(sim, server, following, is_running)


def count_handled(sim: Sim, visit: farm.Visit, server: farm.FarmServer = BESIDE) -> None:
    """Count a message that leaves, and the time for which it has kept a thread."""
    if sim.now_ns >= server.warmup_ns:
        server.handled += 1
        server.busy_ns = add_time(sim, server.busy_ns, sim.now_ns - max(visit.begin_ns, server.warmup_ns))


def send_result(sim: Sim, server: farm.FarmServer, packet: int) -> None:
    """Answer, forward to the call's server, or relay."""
    answered = io.packets(sim)[packet]
    message = farm.message_of(answered.message)
    if message >= farm.Message.LOOKUP:
        farm.requests(sim)[answered.stream].state = farm.ANSWERED
        answered.message += farm.Message.ANSWER - message
    elif server.routes > 0:
        choose_server(sim, server, packet)
        answered.message = -answered.message
    elif message == farm.Message.REGISTER:
        answered.message += farm.Message.REGISTERED - farm.Message.REGISTER
    elif message == farm.Message.INVITE:
        begin_forwarding(sim, server, packet)
    send_or_wait(sim, packet)


def choose_server(sim: Sim, server: farm.FarmServer, packet: int) -> None:
    """Send a message on to its call's server; choose whose turn it is for a call that has none yet."""
    message, visit = io.packets(sim)[packet], farm.visits(sim)[packet]
    call, serial = farm.calls(sim)[message.stream], farm.serial_of(message.message)
    is_current = serial == call.uses
    if is_current and call.front != 0:
        visit.forward_to = call.front
        return
    if not is_current and call.former_serial == serial:
        visit.forward_to = call.former
        return
    turn = server.turn
    if is_current and call.is_answered:
        # It got its server before the run: it takes no turn of those that begin now.
        turn = (call.number - 1) % server.routes
    else:
        server.turn = (turn + 1) % server.routes
    visit.forward_to = routes(sim)[server.first_route + turn].to_port
    if is_current:
        call.front = visit.forward_to
    else:
        # The row is another call's by now; this one was given up before it had a server.
        call.former = visit.forward_to
        call.former_serial = serial


@farm.farm_server.implements(io.go_on)
def send_again(sim: Sim, program: io.Application, packet: int) -> None:
    """Send a packet for which there was no room."""
    send_or_wait(sim, packet)


@farm.farm_server.implements(io.lose_state)
def lose_memory(sim: Sim, program: io.Application, server: farm.FarmServer = BESIDE) -> None:
    """Lose all messages; the CPU work for them is gone already, and what the disk does is for nobody."""
    server.boots += 1
    server.active = 0
    drop_all(sim, server.waiting, server.lost_in_boot)
    release_threads(sim, server.idle, server.in_hand)
    while server.in_hand.length > 0:
        packet = io.packet_list.pop(sim, server.in_hand)
        farm.visits(sim)[packet].serial = 0
        io.drop(sim, packet, server.lost_in_boot)
    if server.disk != 0:
        forget(sim, disks(sim)[server.disk])


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


class FarmProgram(Program):
    """A server of a farm in a running model."""

    def __init__(self, context: InstallContext, spec: "FarmServerSpec", server: farm.FarmServer) -> None:
        super().__init__(context, server)
        self._context, self._spec, self._server = context, spec, server

    def connect_peers(self, wiring: Wiring) -> None:
        """Write down what each message makes it do, now that those it asks have their ports."""
        named: Mapping[str, OperationSpec] = self._spec.operations  # type: ignore[assignment]
        for message in farm.Message:
            operation = named.get(message.name.lower(), OperationSpec(demand=self._spec.demand))
            self._server.operations[message] = self._add_operation(wiring, message, operation)
        if self._spec.passes_to is not None:
            pairs = wiring.port_pairs(self._spec.passes_to, first=True)
            self._server.first_route, self._server.routes = add_routes(self.engine, pairs)

    def _add_operation(self, wiring: Wiring, message: farm.Message, spec: "OperationSpec") -> int:
        demand_ns = self._context.inflated(spec.demand)
        entity = 16 * int(self._server.row) + message
        demands = self._context.gamma_feed(
            "farm_server.demand", entity, demand_ns, self._spec.demand_cv, at_once=self._spec.threads
        )
        operation = add_row(self.engine, farm.operations, spec, demand_ns=demand_ns, demands=demands)
        is_front = message == farm.Message.INVITE and self._spec.passes_to is None
        operation.outputs = 2.0 if is_front else 1.0
        doors = [port for network, port in wiring.ports.items() if not network.startswith(INSIDE)]
        answers_by = doors[-1 if message >= farm.Message.LOOKUP else 0]
        operation.send_ns = operation.outputs * self._transmit_ns(answers_by)
        before = None
        for ask in spec.asks:
            pairs = wiring.port_pairs(ask.to, ask.via)
            operation.send_ns += ask.times * self._transmit_ns(pairs[0][0])
            if not self.engine.rows(io.ports)[pairs[0][0]].is_inside:
                operation.outputs += ask.times
            row, ask_record = self._add_ask(ask, pairs)
            if before is None:
                operation.first_ask = row
            else:
                before.next_ask = row
            before = ask_record
        return int(operation.row)

    def _add_ask(self, spec: "AskSpec", pairs: list[tuple[int, int]]) -> tuple[int, farm.Ask]:
        first, count = add_routes(self.engine, pairs)
        return self.engine.add(
            farm.asks,
            message=int(farm.Message[spec.message.upper()]),
            size_bytes=spec.size,
            times=spec.times,
            first_route=first,
            routes=count,
            turn=int(self._server.row) % count,
        )

    def _transmit_ns(self, port: int) -> int:
        return int(self.engine.rows(io.ports)[port].transmit_ns)

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

    def outcome(self) -> FarmWork:
        """Return what it did, and how many threads had a message; of what it never does nothing is known."""
        used, record = self._spec.operations.values(), self._server
        return FarmWork(
            messages=int(record.handled),
            busy_ns=busy_ns(self.engine, record, farm.visits),
            asked=int(record.asked) if any(each.asks for each in used) else None,
            disk_operations=int(record.disk_operations) if any(each.disk_operations for each in used) else None,
            seconds=self._context.measured_s(),
        )


InsideMessage = Literal["lookup", "update", "file"]
ServedMessage = Literal["register", "invite", "ringing", "ok", "ack", "bye", "bye_ok", "lookup", "update", "file"]


class AskSpec(Spec):
    """A request that a server makes of another one before it goes on."""

    to: str = Field(description="Who is asked: `domain` or `domain.application`; copies of a domain take turns.")
    message: InsideMessage = Field("lookup", description="What is asked.")
    times: float = Field(
        1.0,
        ge=0.0,
        le=1000.0,
        description="Mean number of such requests, one after the other; 0.25 asks every fourth time. What a cache of "
        "the asker's own answers is taken off here.",
    )
    via: str | None = Field(
        None, description="Network of the request; the last that both are on if not given, none in one domain."
    )
    size: ByteCount = Field(512, ge=64, le=1 << 20, description="Request and answer on the wire. Assumption.")


class OperationSpec(Spec):
    """What a message makes a server do: compute, wait for its disk, ask others, then answer or send on."""

    demand: DurationNs = Field(description="CPU time of it.")
    disk_operations: float = Field(
        0.0, ge=0.0, le=1000.0, description="Mean number of operations on the domain's first disk, one after the other."
    )
    asks: Items[AskSpec] = Field((), description="Requests of other servers, in this order.")


@APPLICATIONS.register
class FarmServerSpec(ApplicationSpec):
    """A server of a farm: balancer, front end, back end or storage server, by what it does with each message."""

    kinds = (farm.farm_request,)
    speaks = "farm"
    uses_disks = True
    actions = (on_repeat,)
    outcomes = (FarmWork,)

    kind: Literal["farm_server"] = "farm_server"
    pages_per_request: float = pages_per_request(3.0, "its buffer, and 8 KiB of transaction")
    threads: int = Field(
        256, ge=1, le=100_000, description="Messages in work at once; a thread waits for disk and others. Assumption."
    )
    backlog: int = Field(1024, ge=1, le=1_000_000, description="Messages that wait in the socket. Assumption.")
    demand: DurationNs = Field(0, description="CPU time of a message that `operations` does not name.")
    demand_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Coefficient of variation of the CPU times (gamma); 0: always the same."
    )
    operations: dict[ServedMessage, OperationSpec] = Field(
        default_factory=dict, description="What single messages make it do."
    )
    passes_to: str | None = Field(
        None,
        description="Balancer: a call's messages go on to one of these servers, which take turns by call; they answer "
        "past the balancer (Linux Virtual Server, direct routing, round robin).",
    )
    repeat_share: float = Field(
        0.5, ge=0.0, le=1.0, description="Part of its CPU time that an INVITE costs which it has already. Assumption."
    )
    retry: PositiveDurationNs = Field(
        200_000_000, description="A request of another server that is lost is repeated after this (TCP_RTO_MIN)."
    )

    @property
    def pool_size(self) -> int:
        """Its threads."""
        return self.threads

    @property
    def uses_a_disk(self) -> bool:
        """Whether an operation does."""
        return any(each.disk_operations for each in self.operations.values())

    @property
    def peers(self) -> tuple[str, ...]:
        """Servers that it speaks to."""
        named = [ask.to for operation in self.operations.values() for ask in operation.asks]
        return tuple(dict.fromkeys([*named, *([] if self.passes_to is None else [self.passes_to])]))

    @property
    def peer_routes(self) -> Sequence[PeerRoute]:
        """As its operations say; the balancer's by any."""
        asks = [
            PeerRoute(ask.to, ask.via, f"operations.{message}.asks.{n}", ask.size)
            for message, operation in self.operations.items()
            for n, ask in enumerate(operation.asks)
        ]
        return [*asks, *(PeerRoute(peer) for peer in (self.passes_to,) if peer is not None)]

    @property
    def forwards_to(self) -> str | None:
        """Servers behind a balancer."""
        return self.passes_to

    def install(self, context: InstallContext) -> FarmProgram:
        """Add it to a domain."""
        server = context.add_program(
            farm.servers,
            self,
            disk=context.disk(),
            socket_full=context.drop_row(f"{context.name} socket", "full"),
            lost_in_boot=context.drop_row("guest", "lost in crash"),
        )
        server.flow = context.add_flow(farm.farm_request, int(server.row))
        return FarmProgram(context, self, server)
