"""A server of a farm: threads that each take a message, compute, wait for the disk, ask other servers, and send on.

The CPU time of a message comes first and in one piece; then its disk operations and requests, one after the other,
while the thread waits; then it leaves: a request of another server is answered, a registration too, everything else is
passed on to the other user agent (a proxy that stays in the route), or by a balancer to the call's server.  An INVITE
is told to be under way (100 Trying) as soon as its CPU time is done (RFC 3261, 16.2), and one that the server has
already (RFC 3261, 17.2.1) costs a part of that and goes no further.

Simplifications: other repeated messages are handled as new ones; numbers of disk operations and requests that are no
whole numbers are made up by whole ones in turn, not drawn; the answer to a request costs no CPU time of its own.

A machine that is booted again has lost what was in its socket and in its threads' hands, and which INVITEs it had.
"""

from vftsim.kernel import Engine, Sim, part
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.disk import disks, forget, read, transfer_done
from vftsim.platform.io.packet import (
    Application,
    applications,
    discard,
    drop,
    drops,
    go_on,
    held,
    lose_state,
    packet_list,
    packets,
    receive,
    refused,
    set_overhead,
)
from vftsim.workloads.burden import apply_overhead, bear_overhead, burdens
from vftsim.workloads.farm.messages import KINDS, Message, message_of
from vftsim.workloads.farm.records import (
    ANSWERED,
    TAKEN,
    Ask,
    FarmServer,
    Operation,
    Visit,
    asks,
    calls,
    farm_server,
    farm_servers,
    operations,
    requests,
    routes,
    visits,
)
from vftsim.workloads.farm.requests import end_request, is_over, is_taken, make_request, put
from vftsim.workloads.gamma_feed import duration_ns

BLOCK_BYTES = 4096
"""A disk operation: a block of the shared file system (the record's mkfs.xfs, 4 kB)."""
BOOTS = 1 << 20


@farm_server.implements(receive)
def take_message(sim: Sim, program: Application, packet: int) -> None:
    """Give a message to an idle thread, or keep it for one; an answer goes to the thread that waits for it."""
    server = farm_servers(sim)[program.own]
    message = message_of(packets(sim)[packet].what)
    if message == Message.ANSWER:
        take_answer(sim, server, packet)
    elif message >= Message.LOOKUP and (is_over(sim, packet) or is_taken(sim, packet)):
        discard(sim, packet)
    else:
        if message >= Message.LOOKUP:
            requests(sim)[packets(sim)[packet].stream].state = TAKEN
        queue(sim, server, packet)


@farm_server.implements(held)
def messages_held(sim: Sim, program: Application) -> int:
    """Those in its socket and with its threads."""
    server = farm_servers(sim)[program.own]
    return server.waiting.length + server.active


@farm_server.implements(refused)
def messages_refused(sim: Sim, program: Application) -> int:
    """Those that found no place in its socket."""
    return drops(sim)[farm_servers(sim)[program.own].socket_full].count


@part
def queue(sim: Sim, farm_server: FarmServer, packet: int) -> None:
    """Let a thread begin, or wait for one; a full socket drops."""
    if farm_server.active < farm_server.threads:
        begin(sim, farm_server, packet)
    elif farm_server.waiting.length < farm_server.most_waiting:
        packet_list.push(sim, farm_server.waiting, packet)
    else:
        drop(sim, packet, farm_server.socket_full)


@part
def begin(sim: Sim, farm_server: FarmServer, packet: int) -> None:
    """Let a thread compute for a message."""
    farm_server.active += 1
    farm_server.begun += 1
    packet_list.push(sim, farm_server.in_hand, packet)
    message = message_of(packets(sim)[packet].what)
    operation = operations(sim)[farm_server.operations[message]]
    visit = visits(sim)[packet]
    visit.begin_ns = sim.now_ns
    visit.server = farm_server.row
    visit.serial = farm_server.begun
    visit.operation = operation.row
    visit.is_repeat = message == Message.INVITE and farm_server.routes == 0 and has_already(sim, farm_server, packet)
    demand_ns = demand_of(sim, farm_server, operation, visit.is_repeat)
    submit(sim, domains(sim)[farm_server.domain], demand_ns, on_worked, packet, farm_server.row)


@part
def demand_of(sim: Sim, farm_server: FarmServer, operation: Operation, is_repeat: bool) -> int:
    """Return the CPU time of an operation with what its packets and its protection cost; below 10**15 ns exact."""
    burden = burdens(sim)[farm_server.program]
    demand_ns = duration_ns(sim, operation.demands, operation.demand_ns) * burden.execution
    if is_repeat:
        demand_ns *= farm_server.repeat_share
    return int(demand_ns + operation.send_ns + operation.outputs * burden.output_ns)


@part
def has_already(sim: Sim, farm_server: FarmServer, packet: int) -> bool:
    """Tell whether the server has taken this call's INVITE since it was booted, and remember it."""
    call = calls(sim)[packets(sim)[packet].stream]
    is_known = call.known == farm_server.row * BOOTS + farm_server.boots + 1
    call.known = farm_server.row * BOOTS + farm_server.boots + 1
    return is_known


@work_done
def on_worked(sim: Sim, place: int, argument: int) -> None:
    """A message's CPU time is done."""
    farm_server = farm_servers(sim)[argument]
    visit = visits(sim)[place]
    if message_of(packets(sim)[place].what) == Message.INVITE and farm_server.routes == 0:
        say_trying(sim, place)
    operation = operations(sim)[visit.operation]
    visit.disk_left = 0
    visit.ask = 0
    if not visit.is_repeat:
        operation.disk_due += operation.disk_operations
        visit.disk_left = int(operation.disk_due)
        operation.disk_due -= visit.disk_left
        visit.ask = operation.first_ask
    visit.ask_left = count_of(asks(sim)[visit.ask])
    go_further(sim, farm_server, place)


@part
def say_trying(sim: Sim, packet: int) -> None:
    """Tell the caller that its INVITE is under way."""
    row = packets.new(sim)
    made = packets(sim)[row]
    asked = packets(sim)[packet]
    made.flow = asked.flow
    made.port = asked.port
    made.ring = 0
    made.stream = asked.stream
    made.what = asked.what - Message.INVITE + Message.TRYING
    made.size_bytes = asked.size_bytes
    made.sent_ns = sim.now_ns
    made.entity = asked.entity
    put(sim, row)


@part
def count_of(ask: Ask) -> int:
    """Return how many requests an ask comes to this time."""
    ask.due += ask.times
    count = int(ask.due)
    ask.due -= count
    return count


@part
def go_further(sim: Sim, farm_server: FarmServer, packet: int) -> None:
    """Do what is next for a message: a disk operation, a request, or the end."""
    visit = visits(sim)[packet]
    if visit.disk_left > 0:
        visit.disk_left -= 1
        farm_server.disk_operations += int(sim.now_ns >= farm_server.warmup_ns)
        read(sim, disks(sim)[farm_server.disk], farm_server.program, packet, BLOCK_BYTES)
        return
    while visit.ask != 0 and visit.ask_left == 0:
        visit.ask = asks(sim)[visit.ask].next_ask
        visit.ask_left = count_of(asks(sim)[visit.ask])
    if visit.ask != 0:
        visit.ask_left -= 1
        farm_server.asked += int(sim.now_ns >= farm_server.warmup_ns)
        make_request(sim, farm_server, packet, asks(sim)[visit.ask])
    else:
        finish(sim, farm_server, packet)


@farm_server.implements(transfer_done)
def end_disk_operation(sim: Sim, program: Application, tag: int) -> None:
    """Go on with the message for which the disk has worked."""
    go_further(sim, farm_servers(sim)[program.own], tag)


@part
def take_answer(sim: Sim, farm_server: FarmServer, packet: int) -> None:
    """Go on with the message for which another server was asked, if it is still in hand."""
    if is_over(sim, packet):
        packets.free(sim, packet)
        return
    request = requests(sim)[packets(sim)[packet].stream]
    parent = request.parent
    is_awaited = visits(sim)[parent].server == farm_server.row and visits(sim)[parent].serial == request.parent_serial
    end_request(sim, request)
    packets.free(sim, packet)
    if is_awaited:
        go_further(sim, farm_server, parent)


@part
def finish(sim: Sim, farm_server: FarmServer, packet: int) -> None:
    """Let a message leave, and its thread take the next."""
    packet_list.remove(sim, farm_server.in_hand, packet)
    farm_server.active -= 1
    count(sim, farm_server, visits(sim)[packet])
    is_repeat = visits(sim)[packet].is_repeat
    visits(sim)[packet].serial = 0
    if is_repeat:
        discard(sim, packet)
    else:
        send_on(sim, farm_server, packet)
    if farm_server.waiting.length > 0 and farm_server.active < farm_server.threads:
        begin(sim, farm_server, packet_list.pop(sim, farm_server.waiting))


@part
def count(sim: Sim, farm_server: FarmServer, visit: Visit) -> None:
    """Count a message that leaves, and the time for which it has kept a thread."""
    if sim.now_ns >= farm_server.warmup_ns:
        farm_server.handled += 1
        farm_server.busy_ns += sim.now_ns - max(visit.begin_ns, farm_server.warmup_ns)


@part
def send_on(sim: Sim, farm_server: FarmServer, packet: int) -> None:
    """Answer, pass on to the call's server, or relay."""
    made = packets(sim)[packet]
    message = message_of(made.what)
    if message >= Message.LOOKUP:
        requests(sim)[made.stream].state = ANSWERED
        made.what += Message.ANSWER - message
    elif farm_server.routes > 0:
        choose_server(sim, farm_server, made.stream)
        made.what += KINDS
    elif message == Message.REGISTER:
        made.what += Message.REGISTERED - Message.REGISTER
    put(sim, packet)


@part
def choose_server(sim: Sim, farm_server: FarmServer, call: int) -> None:
    """Choose whose turn it is for a call that has no server yet."""
    if calls(sim)[call].front == 0:
        calls(sim)[call].front = routes(sim)[farm_server.first_route + farm_server.turn].to_port
        farm_server.turn = (farm_server.turn + 1) % farm_server.routes


@farm_server.implements(go_on)
def send_again(sim: Sim, program: Application, packet: int) -> None:
    """Send a packet for which there was no room."""
    put(sim, packet)


farm_server.implements(set_overhead)(bear_overhead)


@farm_server.implements(lose_state)
def boot(sim: Sim, program: Application) -> None:
    """Lose all messages; the CPU work for them is gone already, and what the disk does is for nobody."""
    server = farm_servers(sim)[program.own]
    server.boots += 1
    server.active = 0
    while server.waiting.length > 0:
        drop(sim, packet_list.pop(sim, server.waiting), server.lost_in_boot)
    while server.in_hand.length > 0:
        packet = packet_list.pop(sim, server.in_hand)
        visits(sim)[packet].serial = 0
        drop(sim, packet, server.lost_in_boot)
    if server.disk != 0:
        forget(sim, disks(sim)[server.disk])
    apply_overhead(sim, program, 0, 1.0)


def server_of(engine: Engine, program: int) -> FarmServer:
    """Return the record of an application row."""
    found: FarmServer = engine.rows(farm_servers)[engine.rows(applications)[program].own]
    return found
