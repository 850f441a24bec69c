"""A prefork web server: a process for each connection, a parent that keeps some idle, a script that computes.

Rules:

* **Accept queue** (Linux, ``tcp_v4_conn_request``, ``sk_acceptq_is_full``): a SYN is dropped while more connections
than
  the backlog wait for a process; the client repeats it.  A connection waits from its request on.
* **Processes** (Apache 2.2 ``prefork.c``, ``perform_idle_server_maintenance``): once a second the parent counts idle
  processes; above ``max_spare`` it ends one, below ``min_spare`` it starts 1, then 2, 4, ... 32 in successive counts.
* **Script**: computes, then puts the reply out piece by piece, computing on.  It runs to its first output although the
  client may have given up meanwhile; output to a closed connection ends it.
* **Swapping** (assumption): where the processes do not fit into memory, each has the same share of its pages on
disk, and
  reads them in when it begins a request; the disk serves one after the other.

A connection that the server does not know (it was booted) is answered with a reset.

Left out: keep-alive, lingering close (a process is free with its last piece), the cost of a fork, the server's own
retransmission (a client that misses a piece asks again).
"""

from vftsim.kernel import Engine, EventKind, Sim, at, entry, event, part
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.cpu.guest_schedulers.round_robin import RoundRobinGuest
from vftsim.platform.cpu.jobs import submit_for
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import (
    Application,
    applications,
    drop,
    drops,
    flows,
    go_on,
    lose_state,
    packets,
    ports,
    receive,
    set_overhead,
)
from vftsim.platform.io.ring import wait_for_slot
from vftsim.platform.protection.guard import put_out
from vftsim.sampling import Streams
from vftsim.workloads.burden import add_program, apply_overhead, bear_overhead, burdened_ns
from vftsim.workloads.web.loads import flow_of
from vftsim.workloads.web.parameters import (
    HEADER_BYTES,
    PIECE_BYTES,
    PreforkWebServerSpec,
    prefork_web_server,
    wire_bytes,
)
from vftsim.workloads.web.processes import (
    PreforkServer,
    add_places,
    prefork_servers,
    rest,
    take_process,
    web_processes,
)
from vftsim.workloads.web.records import (
    DONE,
    FIN,
    HALF_OPEN,
    IN_WORK,
    KINDS,
    LAST_PIECE,
    PIECE,
    PIECES,
    QUEUED,
    REQUEST,
    RESET,
    SYN,
    SYN_ACK,
    UNKNOWN,
    HttpConnection,
    connection_list,
    fill_packet,
    give_back,
    http_connections,
    is_stale,
)

MOST_SPAWNED = 32


@prefork_web_server.implements(receive)
def take_packet(sim: Sim, program: Application, packet: int) -> None:
    """Act on a packet in the kernel, and free it."""
    if is_stale(sim, packet):
        packets.free(sim, packet)
        return
    prefork_server = prefork_servers(sim)[program.own]
    connection = http_connections(sim)[packets(sim)[packet].stream]
    if connection.state != UNKNOWN and connection.boot != prefork_server.boots:
        connection.state = UNKNOWN
    what = packets(sim)[packet].what
    if is_refused(prefork_server, connection, what % KINDS):
        drop(sim, packet, prefork_server.accept_full)
        return
    if what % KINDS == SYN:
        take_syn(sim, prefork_server, connection)
    elif what % KINDS == REQUEST:
        take_request(sim, prefork_server, connection, what // KINDS % PIECES)
    elif what % KINDS == FIN:
        connection.left = True
    packets.free(sim, packet)


@part
def is_refused(prefork_server: PreforkServer, connection: HttpConnection, kind: int) -> bool:
    """Tell whether a full accept queue drops a packet: a new SYN, or what ends the handshake."""
    if prefork_server.accept.length <= prefork_server.backlog:
        return False
    is_new = kind == SYN and connection.state == UNKNOWN
    return is_new or (kind == REQUEST and connection.state == HALF_OPEN)


@part
def take_syn(sim: Sim, prefork_server: PreforkServer, connection: HttpConnection) -> None:
    """Answer a client that connects; again, if it has not heard the answer."""
    if connection.state == UNKNOWN:
        connection.state = HALF_OPEN
        connection.server = prefork_server.row
        connection.boot = prefork_server.boots
    send(sim, connection, SYN_ACK)


@part
def take_request(sim: Sim, prefork_server: PreforkServer, connection: HttpConnection, received: int) -> None:
    """Queue a request for a process; one that comes again asks for the pieces that its client misses."""
    if connection.state == UNKNOWN:
        send(sim, connection, RESET)
    elif connection.state == HALF_OPEN:
        connection.state = QUEUED
        connection_list.push(sim, prefork_server.accept, connection.row)
        give_work(sim, prefork_server)
    else:
        for piece in range(received, connection.put_out):
            again = new_piece(sim, prefork_server, connection, piece)
            if not put_out(sim, ports(sim)[packets(sim)[again].port], again):
                wait_for_slot(sim, ports(sim)[packets(sim)[again].port], again, again)


@part
def new_piece(sim: Sim, prefork_server: PreforkServer, connection: HttpConnection, piece: int) -> int:
    """Make the packet of a piece of the reply."""
    if piece == prefork_server.pieces - 1:
        return new_packet(sim, connection, LAST_PIECE, piece, prefork_server.last_bytes)
    return new_packet(sim, connection, PIECE, piece, prefork_server.piece_bytes)


@part
def send(sim: Sim, connection: HttpConnection, kind: int) -> None:
    """Send a packet without data from the kernel; one that finds no room waits for it."""
    packet = new_packet(sim, connection, kind, 0, HEADER_BYTES)
    port = ports(sim)[packets(sim)[packet].port]
    if not put_out(sim, port, packet):
        wait_for_slot(sim, port, packet, packet)


@part
def new_packet(sim: Sim, connection: HttpConnection, kind: int, piece: int, size_bytes: int) -> int:
    """Make a packet to a connection's client."""
    packet = packets.new(sim)
    packets(sim)[packet].flow = flow_of(sim, connection.load)
    packets(sim)[packet].port = flows(sim)[packets(sim)[packet].flow].port
    fill_packet(sim, packet, connection, kind, piece, size_bytes)
    return packet


@part
def give_work(sim: Sim, prefork_server: PreforkServer) -> None:
    """Let idle processes accept what waits."""
    while prefork_server.busy < prefork_server.total and prefork_server.accept.length > 0:
        row = connection_list.pop(sim, prefork_server.accept)
        connection_list.push(sim, prefork_server.in_work, row)
        http_connections(sim)[row].state = IN_WORK
        http_connections(sim)[row].place = take_process(sim, prefork_server.resting)
        prefork_server.busy += 1
        prefork_server.scripts += 1
        wait_ns = swap_in_ns(sim, prefork_server)
        if wait_ns > 0:
            at(sim, sim.now_ns + wait_ns, EventKind.DEVICE, row, on_swapped_in, row)
        else:
            compute(sim, prefork_server, row)


@part
def swap_in_ns(sim: Sim, prefork_server: PreforkServer) -> int:
    """Return how long a process waits for its pages from the disk; 0 where there is memory for all."""
    excess_bytes = (
        prefork_server.base_bytes + prefork_server.total * prefork_server.process_bytes - prefork_server.memory_bytes
    )
    if prefork_server.memory_bytes == 0 or excess_bytes <= 0:
        return 0
    read_bytes = min(prefork_server.process_bytes, excess_bytes // prefork_server.total)
    # Below 2**33 bytes the product stays within 64 bits.
    prefork_server.disk_free_ns = (
        max(prefork_server.disk_free_ns, sim.now_ns) + read_bytes * 1_000_000_000 // prefork_server.read_bytes_per_s
    )
    prefork_server.swapped_ns += prefork_server.disk_free_ns - sim.now_ns
    return prefork_server.disk_free_ns - sim.now_ns


@event
def on_swapped_in(sim: Sim, http_connection_row: int, token: int) -> None:
    """A process has its pages, unless the machine was booted meanwhile."""
    connection = http_connections(sim)[http_connection_row]
    prefork_server = prefork_servers(sim)[connection.server]
    if connection.state == IN_WORK and connection.boot == prefork_server.boots:
        compute(sim, prefork_server, http_connection_row)


@part
def compute(sim: Sim, prefork_server: PreforkServer, row: int) -> None:
    """Run the script up to its first output."""
    demand_ns = burdened_ns(sim, prefork_server.program, prefork_server.before_ns, 0) + piece_cost_ns(
        sim, prefork_server, row
    )
    submit_for(
        sim, domains(sim)[prefork_server.domain], process_of(sim, row), demand_ns, on_piece, row, prefork_server.row
    )


@part
def process_of(sim: Sim, row: int) -> int:
    """Return the guest's process that serves a connection."""
    return web_processes(sim)[http_connections(sim)[row].place].process


@part
def piece_cost_ns(sim: Sim, prefork_server: PreforkServer, row: int) -> int:
    """Return what a piece of the reply costs."""
    port = flows(sim)[flow_of(sim, http_connections(sim)[row].load)].port
    return burdened_ns(sim, prefork_server.program, prefork_server.piece_ns, 1) + ports(sim)[port].transmit_ns


@work_done
def on_piece(sim: Sim, http_connection_row: int, argument: int) -> None:
    """The work up to an output is done: put it out, or learn that the client has gone."""
    prefork_server = prefork_servers(sim)[argument]
    connection = http_connections(sim)[http_connection_row]
    if connection.left and prefork_server.aborts:
        prefork_server.aborted += 1
        finish(sim, prefork_server, connection)
        return
    packet = new_piece(sim, prefork_server, connection, connection.put_out)
    connection.put_out += 1
    port = ports(sim)[packets(sim)[packet].port]
    if put_out(sim, port, packet):
        next_piece(sim, prefork_server, connection)
    else:
        connection.is_blocked = True
        wait_for_slot(sim, port, packet, packet)


@part
def next_piece(sim: Sim, prefork_server: PreforkServer, connection: HttpConnection) -> None:
    """Go on with the script, or end it with the last piece."""
    if connection.put_out >= prefork_server.pieces:
        finish(sim, prefork_server, connection)
    else:
        demand_ns = piece_cost_ns(sim, prefork_server, connection.row)
        process = process_of(sim, connection.row)
        submit_for(
            sim, domains(sim)[prefork_server.domain], process, demand_ns, on_piece, connection.row, prefork_server.row
        )


@part
def finish(sim: Sim, prefork_server: PreforkServer, connection: HttpConnection) -> None:
    """Let a process be done with its connection and accept the next."""
    connection_list.remove(sim, prefork_server.in_work, connection.row)
    rest(sim, prefork_server.resting, connection.place)
    connection.state = DONE
    prefork_server.busy -= 1
    give_back(sim, connection)
    give_work(sim, prefork_server)


@prefork_web_server.implements(go_on)
def put_again(sim: Sim, program: Application, packet: int) -> None:
    """Send a packet that had no room, and let the process go on that slept with it."""
    prefork_server = prefork_servers(sim)[program.own]
    connection = http_connections(sim)[packets(sim)[packet].stream]
    stale = is_stale(sim, packet)
    kind = packets(sim)[packet].what % KINDS
    if not put_out(sim, ports(sim)[packets(sim)[packet].port], packet):
        wait_for_slot(sim, ports(sim)[packets(sim)[packet].port], packet, packet)
    elif not stale and (kind == PIECE or kind == LAST_PIECE) and connection.is_blocked:
        connection.is_blocked = False
        next_piece(sim, prefork_server, connection)


@event
def on_maintenance(sim: Sim, prefork_server_row: int, token: int) -> None:
    """The parent counts idle processes."""
    prefork_server = prefork_servers(sim)[prefork_server_row]
    if token != prefork_server.maintenance:
        return
    prefork_server.maintenance = at(
        sim,
        sim.now_ns + prefork_server.maintenance_ns,
        EventKind.TIMER,
        prefork_server_row,
        on_maintenance,
        prefork_server_row,
    )
    idle = prefork_server.total - prefork_server.busy
    if idle > prefork_server.max_spare:
        prefork_server.total -= 1
        prefork_server.spawn = 1
    elif idle < prefork_server.min_spare and prefork_server.total < prefork_server.max_clients:
        prefork_server.total = min(prefork_server.total + prefork_server.spawn, prefork_server.max_clients)
        prefork_server.most_total = max(prefork_server.most_total, prefork_server.total)
        prefork_server.spawn = min(2 * prefork_server.spawn, MOST_SPAWNED)
        give_work(sim, prefork_server)
    else:
        prefork_server.spawn = 1


prefork_web_server.implements(set_overhead)(bear_overhead)


@prefork_web_server.implements(lose_state)
def boot(sim: Sim, program: Application) -> None:
    """Start anew: no connection is known, the first processes are there."""
    prefork_server = prefork_servers(sim)[program.own]
    apply_overhead(sim, program, 0, 1.0)
    while prefork_server.accept.length > 0:
        forget(sim, http_connections(sim)[connection_list.pop(sim, prefork_server.accept)])
    while prefork_server.in_work.length > 0:
        row = connection_list.pop(sim, prefork_server.in_work)
        rest(sim, prefork_server.resting, http_connections(sim)[row].place)
        forget(sim, http_connections(sim)[row])
    start(sim, prefork_server)


@part
def forget(sim: Sim, connection: HttpConnection) -> None:
    """Know nothing of a connection any more."""
    connection.state = UNKNOWN
    connection.put_out = 0
    connection.is_blocked = False
    give_back(sim, connection)


@part
def start(sim: Sim, prefork_server: PreforkServer) -> None:
    """Begin with the first processes, all idle."""
    prefork_server.boots += 1
    prefork_server.total = prefork_server.start_servers
    prefork_server.most_total = max(prefork_server.most_total, prefork_server.total)
    prefork_server.busy = 0
    prefork_server.spawn = 1
    prefork_server.disk_free_ns = 0
    prefork_server.maintenance = at(
        sim,
        sim.now_ns + prefork_server.phase_ns,
        EventKind.TIMER,
        prefork_server.row,
        on_maintenance,
        prefork_server.row,
    )


@entry
def start_web_server(sim: Sim, row: int, _: int) -> int:
    """Start a server that was added."""
    prefork_server = prefork_servers(sim)[applications(sim)[row].own]
    for number in range(prefork_server.max_clients):
        rest(sim, prefork_server.resting, prefork_server.first_place + prefork_server.max_clients - 1 - number)
    start(sim, prefork_server)
    return 0


def add_web_server(
    engine: Engine,
    domain: int,
    spec: PreforkWebServerSpec,
    streams: Streams,
    number: int,
    guest: GuestSchedulerSpec | None = None,
) -> int:
    """Add a server to a domain; ``number`` says whose draws are its own, ``guest`` how its processes are scheduled.

    Returns its application row.
    """
    pieces = -(-spec.reply_size // PIECE_BYTES)
    output_ns = round(spec.script * spec.output_share / 100.0)
    accept_full, _ = engine.add(drops)
    row, record = engine.add(
        prefork_servers,
        domain=domain,
        start_servers=spec.start_servers,
        min_spare=spec.min_spare,
        max_spare=spec.max_spare,
        max_clients=spec.max_clients,
        maintenance_ns=spec.maintenance,
        backlog=spec.accept_queue,
        before_ns=spec.script - output_ns,
        piece_ns=output_ns // pieces,
        pieces=pieces,
        piece_bytes=wire_bytes(PIECE_BYTES),
        last_bytes=wire_bytes(spec.reply_size - (pieces - 1) * PIECE_BYTES),
        aborts=spec.abort_when_closed,
        memory_bytes=spec.swap.memory,
        base_bytes=spec.swap.base,
        process_bytes=spec.swap.process,
        read_bytes_per_s=spec.swap.read_rate,
        accept_full=accept_full,
        phase_ns=int(streams.uniforms("prefork.maintenance", number, count=1)[0] * spec.maintenance),
    )
    record.row = row
    record.first_place = add_places(engine, domain, spec.max_clients, guest or RoundRobinGuest())[0]
    record.program = add_program(engine, prefork_web_server, row, domain)
    return int(record.program)
