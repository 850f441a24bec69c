"""A prefork web server: a process for each connection, a parent that keeps some idle, a script that computes.

Rules:

* **Accept queue** (Linux, ``tcp_v4_conn_request``, ``sk_acceptq_is_full``): a SYN is dropped while more connections
  than the backlog wait for a process; the client repeats it.  A connection waits from its request on.
* **Processes** (Apache 2.2 ``prefork.c``, ``perform_idle_server_maintenance``): once a second the parent counts idle
  processes; above ``max_spare`` it ends one, below ``min_spare`` it starts 1, then 2, 4, ... 32 in successive counts.
* **Script**: computes, then puts the reply out piece by piece, computing on.  It runs to its first output although the
  client may have given up meanwhile; output to a closed connection ends it.
* **Scheduling**: a process keeps its turn on the CPU while it continues: output that fits into the socket's buffer does
  not make it sleep, and neither does the next connection where one waits (Linux, ``tcp_sendmsg``; Apache,
  ``child_main``: the process that is done accepts again itself; ``inet_csk_accept`` sleeps on an empty queue only).  It
  goes on where it runs, and wakes no other vCPU.  What its turn is worth depends on the guest's scheduler;
  ``round_robin`` knows no processes, each piece of work queues there anew.
* **Swapping** (assumption): where the processes do not fit into memory, each has the same share of its pages on
  disk, and reads them in when it begins a request; the disk serves one after the other.
* **Windows** (:mod:`vftsim.workloads.windows`): of what the script has put out so much leaves as the connection's
  window has room for; each acknowledgement lets more out.  A client that asks again stands for the server's time-out:
  it goes on behind what that client has, with the first window.

A connection that the server does not know (it was booted) is answered with a reset.

Left out: keep-alive, lingering close and a full buffer (a process is free with its last piece), the cost of a fork.
"""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from vftsim.kernel import BESIDE, Chain, EventKind, Fifo, Record, Sim, Table, at, entry, event, timer
from vftsim.outcome import Outcome, declare
from vftsim.platform.cpu.jobs import continue_or_submit_for
from vftsim.platform.cpu.processes import add_process
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io import packet as io
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, ByteRate, DurationNs, Percent, PeriodNs
from vftsim.workloads.common import (
    ProgramRow,
    pages_per_request,
    send_or_wait,
    unread_without,
    with_overhead_ns,
)
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program
from vftsim.workloads.web import records as http
from vftsim.workloads.windows import LARGEST_WINDOW_BYTES

prefork_web_server = io.application.kind("prefork_web_server")

PIECE_SEGMENTS = 65_536 // http.MSS
PIECE_BYTES = PIECE_SEGMENTS * http.MSS
"""The script puts out pieces of this size, and no packet is larger: what the stack hands down at once."""
LARGEST_WINDOW = LARGEST_WINDOW_BYTES // http.MSS
MOST_SPAWNED = 32


class PreforkServer(ProgramRow):
    """One server: ``total`` processes, ``busy`` ones of them have a connection of ``in_work``.

    A reply has so many ``segments``, the last of which is ``short_bytes`` short.
    ``idle`` are the rows of all processes, begun or not, but the busy ones.
    """

    boots: int
    start_servers: int
    min_spare: int
    max_spare: int
    max_clients: int
    maintenance_ns: int
    phase_ns: int
    accept_queue: int
    before_ns: int
    piece_ns: int
    segments: int
    short_bytes: int
    abort_when_closed: bool
    memory_bytes: int
    base_bytes: int
    process_bytes: int
    read_bytes_per_s: int
    disk_free_ns: int
    total: int
    busy: int
    spawn: int
    accept: Fifo
    in_work: Fifo
    idle: Fifo
    first_process: int
    planned: int
    scripts: int
    aborted: int
    accept_full: int


prefork_servers = Table("prefork_servers", PreforkServer, 256)


class WebProcess(Record):
    """A process of a server: ``process`` is the guest's."""

    link: int
    process: int


web_processes = Table("web_processes", WebProcess, 1 << 18, "lower max_clients")
process_list = Chain(web_processes, "link")


@prefork_web_server.implements(io.receive)
def take_packet(sim: Sim, program: io.Application, packet: int) -> None:
    """Act on a packet in the kernel, and free it."""
    if http.is_stale(sim, packet):
        io.packets.free(sim, packet)
        return
    server = prefork_servers(sim)[program.state_row]
    connection = http.http_connections(sim)[io.packets(sim)[packet].stream]
    if connection.state != http.UNKNOWN and connection.boot != server.boots:
        connection.state = http.UNKNOWN
    message = io.packets(sim)[packet].message
    if is_refused(server, connection, message % http.KINDS):
        io.drop(sim, packet, server.accept_full)
        return
    if message % http.KINDS == http.SYN:
        take_syn(sim, server, connection)
    elif message % http.KINDS == http.REQUEST:
        take_request(sim, server, connection, http.segments_of(message))
    elif io.packets(sim)[packet].acked_bytes > 0:
        segments = http.segments_in(io.packets(sim)[packet].acked_bytes)
        take_acknowledgement(sim, server, connection, http.segments_of(message) + segments)
    elif message % http.KINDS == http.FIN:
        connection.client_left = True
    io.packets.free(sim, packet)


def is_refused(server: PreforkServer, connection: http.HttpConnection, kind: int) -> bool:
    """Tell whether a full accept queue drops a packet: a new SYN, or what ends the handshake."""
    if server.accept.length <= server.accept_queue:
        return False
    is_new = kind == http.SYN and connection.state == http.UNKNOWN
    return is_new or (kind == http.REQUEST and connection.state == http.HALF_OPEN)


def take_syn(sim: Sim, server: PreforkServer, connection: http.HttpConnection) -> None:
    """Answer a client that connects; again, if it has not heard the answer."""
    if connection.state == http.UNKNOWN:
        connection.state = http.HALF_OPEN
        connection.server = server.row
        connection.boot = server.boots
    send_bare(sim, connection, http.SYN_ACK)


def take_request(sim: Sim, server: PreforkServer, connection: http.HttpConnection, received: int) -> None:
    """Queue a request for a process; one that comes again asks for the segments that its client misses."""
    if connection.state == http.UNKNOWN:
        send_bare(sim, connection, http.RESET)
    elif connection.state == http.HALF_OPEN:
        connection.state = http.QUEUED
        begin_window(sim, connection, 0)
        http.connection_list.push(sim, server.accept, connection.row)
        assign_processes(sim, server, False)
    elif received < connection.sent:
        # What its client waits for so long is lost: from there on, as after a time-out.
        begin_window(sim, connection, received)
        send_open(sim, server, connection)


def begin_window(sim: Sim, connection: http.HttpConnection, received: int) -> None:
    """Let the reply go on behind what its client has, with the first window."""
    first_bytes = io.ports(sim)[io.flows(sim)[connection.flow].port].first_window_bytes
    connection.sent = received
    connection.acked = received
    connection.window = http.segments_in(first_bytes)


def take_acknowledgement(sim: Sim, server: PreforkServer, connection: http.HttpConnection, acked: int) -> None:
    """Widen the window by what is acknowledged, and send what it has room for."""
    if acked <= connection.acked or connection.state == http.UNKNOWN:
        return
    connection.sent = max(connection.sent, acked)
    if 2 * (connection.sent - connection.acked) > connection.window:
        connection.window = min(connection.window + acked - connection.acked, LARGEST_WINDOW)
    connection.acked = acked
    if not connection.is_blocked:
        send_open(sim, server, connection)


def open_segments(connection: http.HttpConnection) -> int:
    """Return how many segments may leave in one packet; a window of 0 has no end."""
    count = min(connection.made - connection.sent, PIECE_SEGMENTS)
    if connection.window > 0:
        count = min(count, connection.acked + connection.window - connection.sent)
    return count


def send_open(sim: Sim, server: PreforkServer, connection: http.HttpConnection) -> bool:
    """Send what may leave of a reply; False if a packet of it waits for room."""
    while open_segments(connection) > 0:
        if not send_or_wait(sim, new_piece(sim, server, connection, open_segments(connection))):
            return False
    return True


def new_piece(sim: Sim, server: PreforkServer, connection: http.HttpConnection, segments: int) -> int:
    """Make the packet of the next segments of the reply; where there is a window, all but the last is acknowledged."""
    first = connection.sent
    connection.sent += segments
    size_bytes = segments * (http.MSS + http.HEADER_BYTES)
    if connection.sent == server.segments:
        return new_reply(sim, connection, http.LAST_PIECE, first, size_bytes - server.short_bytes)
    packet = new_reply(sim, connection, http.PIECE, first, size_bytes)
    if connection.window > 0:
        io.packets(sim)[packet].left_bytes = server.segments - connection.sent
    return packet


def send_bare(sim: Sim, connection: http.HttpConnection, kind: int) -> None:
    """Send a packet without data from the kernel."""
    send_or_wait(sim, new_reply(sim, connection, kind, 0, http.HEADER_BYTES))


def new_reply(sim: Sim, connection: http.HttpConnection, kind: int, segment: int, size_bytes: int) -> int:
    """Make a packet to a connection's client."""
    port = io.flows(sim)[connection.flow].port
    return http.new_http_packet(sim, connection.flow, port, connection, kind, segment, size_bytes)


def assign_processes(sim: Sim, server: PreforkServer, is_running: bool) -> None:
    """Let idle processes accept what waits; one that has just become idle is running."""
    while server.busy < server.total and server.accept.length > 0:
        row = http.connection_list.pop(sim, server.accept)
        http.connection_list.push(sim, server.in_work, row)
        http.http_connections(sim)[row].state = http.IN_WORK
        # The process that has been idle for the shortest time.
        http.http_connections(sim)[row].process = process_list.pop(sim, server.idle)
        server.busy += 1
        server.scripts += 1
        wait_ns = swap_in_ns(sim, server)
        if wait_ns > 0:
            at(sim, sim.now_ns + wait_ns, EventKind.DEVICE, row, on_swapped_in, row)
        else:
            compute(sim, server, row, is_running)


def swap_in_ns(sim: Sim, server: PreforkServer) -> int:
    """Return how long a process waits for its pages from the disk; 0 where there is memory for all."""
    excess_bytes = server.base_bytes + server.total * server.process_bytes - server.memory_bytes
    if server.memory_bytes == 0 or excess_bytes <= 0:
        return 0
    read_bytes = min(server.process_bytes, excess_bytes // server.total)
    # Below 2**33 bytes the product stays within 64 bits.
    read_ns = read_bytes * 1_000_000_000 // server.read_bytes_per_s
    server.disk_free_ns = max(server.disk_free_ns, sim.now_ns) + read_ns
    return server.disk_free_ns - sim.now_ns


@event
def on_swapped_in(sim: Sim, connection: http.HttpConnection, server: PreforkServer = BESIDE) -> None:
    """A process has its pages, unless the machine was booted meanwhile."""
    if connection.state == http.IN_WORK and connection.boot == server.boots:
        compute(sim, server, connection.row, False)


def compute(sim: Sim, server: PreforkServer, row: int, is_running: bool) -> None:
    """Run the script up to its first output."""
    demand_ns = with_overhead_ns(sim, server.program, server.before_ns, 0) + piece_cost_ns(sim, server, row)
    submit_piece(sim, server, row, is_running, demand_ns)


def submit_piece(sim: Sim, server: PreforkServer, row: int, is_running: bool, demand_ns: int) -> None:
    """Let the process of a connection compute up to its next output."""
    process = web_processes(sim)[http.http_connections(sim)[row].process].process
    domain = domains(sim)[server.domain]
    continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_piece, row, server.row)


def piece_cost_ns(sim: Sim, server: PreforkServer, row: int) -> int:
    port = io.flows(sim)[http.http_connections(sim)[row].flow].port
    return with_overhead_ns(sim, server.program, server.piece_ns, 1) + io.ports(sim)[port].transmit_ns


@work_done
def on_piece(sim: Sim, connection: http.HttpConnection, server: PreforkServer) -> None:
    """The work up to an output is done: send it, or learn that the client has gone."""
    if connection.client_left and server.abort_when_closed:
        server.aborted += 1
        finish(sim, server, connection, True)
        return
    connection.made = min(connection.made + PIECE_SEGMENTS, server.segments)
    connection.is_blocked = not send_open(sim, server, connection)
    if not connection.is_blocked:
        next_piece(sim, server, connection, True)


def next_piece(sim: Sim, server: PreforkServer, connection: http.HttpConnection, is_running: bool) -> None:
    """Continue the script, or end it with the last piece."""
    if connection.made == server.segments:
        finish(sim, server, connection, is_running)
    else:
        submit_piece(sim, server, connection.row, is_running, piece_cost_ns(sim, server, connection.row))


def finish(sim: Sim, server: PreforkServer, connection: http.HttpConnection, is_running: bool) -> None:
    """Let a process be done with its connection and accept the next."""
    http.connection_list.remove(sim, server.in_work, connection.row)
    process_list.push_front(sim, server.idle, connection.process)
    connection.state = http.DONE
    server.busy -= 1
    http.free_if_unused(sim, connection)
    assign_processes(sim, server, is_running)


@prefork_web_server.implements(io.go_on)
def resume_sending(sim: Sim, program: io.Application, packet: int, server: PreforkServer = BESIDE) -> None:
    """Send a packet that had no room, and resume the process that slept with it."""
    connection = http.http_connections(sim)[io.packets(sim)[packet].stream]
    # Read before it is sent: then it belongs to its path.
    kind = io.packets(sim)[packet].message % http.KINDS
    is_piece = (kind == http.PIECE or kind == http.LAST_PIECE) and not http.is_stale(sim, packet)
    if send_or_wait(sim, packet) and is_piece and send_open(sim, server, connection) and connection.is_blocked:
        connection.is_blocked = False
        next_piece(sim, server, connection, False)


@timer(prefork_servers, "planned")
def on_maintenance(sim: Sim, server: PreforkServer) -> None:
    """The parent counts idle processes."""
    plan_maintenance(sim, server, server.maintenance_ns)
    idle = server.total - server.busy
    if idle > server.max_spare:
        server.total -= 1
        server.spawn = 1
    elif idle < server.min_spare and server.total < server.max_clients:
        server.total = min(server.total + server.spawn, server.max_clients)
        server.spawn = min(2 * server.spawn, MOST_SPAWNED)
        assign_processes(sim, server, False)
    else:
        server.spawn = 1


@prefork_web_server.implements(io.lose_state)
def lose_memory(sim: Sim, program: io.Application, server: PreforkServer = BESIDE) -> None:
    """Start anew: no connection is known, the first processes are there."""
    while server.accept.length > 0:
        forget(sim, http.http_connections(sim)[http.connection_list.pop(sim, server.accept)])
    while server.in_work.length > 0:
        row = http.connection_list.pop(sim, server.in_work)
        process_list.push_front(sim, server.idle, http.http_connections(sim)[row].process)
        forget(sim, http.http_connections(sim)[row])
    start(sim, server)


def forget(sim: Sim, connection: http.HttpConnection) -> None:
    """Know nothing of a connection any more."""
    connection.state = http.UNKNOWN
    connection.made = 0
    connection.sent = 0
    connection.is_blocked = False
    http.free_if_unused(sim, connection)


def start(sim: Sim, server: PreforkServer) -> None:
    """Begin with the first processes, all idle."""
    server.boots += 1
    server.total = server.start_servers
    server.busy = 0
    server.spawn = 1
    server.disk_free_ns = 0
    plan_maintenance(sim, server, server.phase_ns)


def plan_maintenance(sim: Sim, server: PreforkServer, wait_ns: int) -> None:
    """Plan the parent's next count."""
    server.planned = at(sim, sim.now_ns + wait_ns, EventKind.TIMER, server.row, on_maintenance, server.row)


@entry
def start_web_server(sim: Sim, server: PreforkServer) -> None:
    """Start a server that was added."""
    for number in range(server.max_clients):
        process_list.push(sim, server.idle, server.first_process + number)
    start(sim, server)


def wire_bytes(payload_bytes: int) -> int:
    """Return what a piece takes on the wire, in segments of full size."""
    return payload_bytes + http.HEADER_BYTES * max(1, -(-payload_bytes // http.MSS))


class SwapSpec(Spec):
    """Memory of the guest and its swap disk; what does not fit of a process is read in when it begins a request."""

    memory: ByteCount = Field(0, description="Of the guest; 0: there is always enough, nothing is swapped.")
    base: ByteCount = Field(128 * 1024**2, description="Kernel and everything else. Assumption.")
    process: ByteCount = Field(12 * 1024**2, gt=0, description="A server process with the script. Assumption.")
    read_rate: ByteRate = Field(
        30 * 1000**2, gt=0, description="What the swap disk reads. Assumption: one disk, some seeks."
    )


class ScriptsRun(Outcome):
    """What the processes of a web server did, from the start: the load has a test of its own, and no warm-up."""

    scripts: int = declare.total(label="scripts begun, from the start")
    aborted: int = declare.total(
        label="scripts ended for clients that had gone, from the start", better="lower", headline=declare.IF_ANY
    )
    aborted_share = declare.ratio(
        aborted, scripts, unit="%", label="scripts ended for clients that had gone", short="aborted", better="lower"
    )


@APPLICATIONS.register
class PreforkWebServerSpec(ApplicationSpec):
    """A web server with a process for each connection, and a script that computes."""

    products = ("apache",)
    speaks = "http"
    entries = (start_web_server,)
    outcomes = (ScriptsRun,)

    kind: Literal["prefork_web_server"] = "prefork_web_server"
    pages_per_request: float = pages_per_request(3.0, "its buffer, and 8 KiB of memory pool")
    start_servers: int = Field(5, ge=1, le=20_000, description="Processes at start. Default: Apache 2.2 prefork.")
    min_spare: int = Field(5, ge=1, le=20_000, description="Least idle processes. Default: Apache 2.2 prefork.")
    max_spare: int = Field(10, ge=1, le=20_000, description="Most idle processes. Default: Apache 2.2 prefork.")
    max_clients: int = Field(150, ge=1, le=20_000, description="Most processes. Default: Apache 2.2, Ubuntu's file.")
    maintenance: PeriodNs = Field(
        1_000_000_000, description="Period of the parent's count of idle processes. Default: Apache, 1 s."
    )
    accept_queue: int = Field(128, ge=0, le=65_535, description="Backlog of the socket. Default: Linux, somaxconn.")
    script: DurationNs = Field(
        100_000_000, description="CPU time of a request. Assumption: to be fitted to the site's script."
    )
    output_share: Percent = Field(
        25.0, ge=0.0, le=100.0, description="Part of it spent while the reply is put out. Assumption."
    )
    reply_size: ByteCount = Field(
        10_000, ge=1, le=2**30, description="Header, content and footer of a reply, without the packets' headers."
    )
    abort_when_closed: bool = Field(
        True, description="Output to a client that has gone ends the script (PHP: ignore_user_abort off, its default)."
    )
    swap: SwapSpec = Field(default_factory=SwapSpec, description="Swapping, off by default. Assumption as a whole.")

    @property
    def has_disk_times(self) -> bool:
        """Pages that were swapped out."""
        return self.swap.memory > 0

    def without_effect(self) -> Mapping[str, str]:
        """Say that without a size of its memory nothing of it is swapped."""
        idle = unread_without(self.swap, {"memory": ("base", "process", "read_rate")})
        return {f"swap.{key}": why for key, why in idle.items()}

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        if self.max_spare <= self.min_spare:
            raise ValueError("max_spare must be above min_spare (Apache raises it to min_spare + 1)")
        if self.start_servers > self.max_clients:
            raise ValueError("start_servers must not be above max_clients")
        return self

    def install(self, context: InstallContext) -> Program:
        """Add it to a domain, with its processes."""
        engine, script_ns = context.engine, context.inflated(self.script)
        pieces = -(-self.reply_size // PIECE_BYTES)
        output_ns = round(script_ns * self.output_share / 100.0)
        phase = context.streams.uniforms("prefork.maintenance", context.serial(self), count=1)[0]
        server = context.add_program(
            prefork_servers,
            self,
            before_ns=script_ns - output_ns,
            piece_ns=output_ns // pieces,
            segments=-(-self.reply_size // http.MSS),
            short_bytes=-self.reply_size % http.MSS,
            memory_bytes=self.swap.memory,
            base_bytes=self.swap.base,
            process_bytes=self.swap.process,
            read_bytes_per_s=self.swap.read_rate,
            accept_full=context.drop_row(f"{context.name} accept queue", "full"),
            phase_ns=int(phase * self.maintenance),
        )
        guest = context.guest_scheduler
        rows = [
            engine.add(web_processes, process=add_process(engine, context.domain, guest))[0]
            for _ in range(self.max_clients)
        ]
        server.first_process = rows[0]
        return Program(context, server, start_web_server, lambda: ScriptsRun.of_row(server))
