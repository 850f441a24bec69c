"""The server's end of bulk TCP: a process for each connection, in the guest.

A process takes one packet after the other: data costs ``segment_cost`` and the copy, an acknowledgement made or
taken in ``ack_cost``; what is sent costs the path's and the protection's price of an output too.  The kernel's own
protocol work is thus part of the process's (on Linux much of it is done for the process by the soft interrupt): one
connection uses one processor at most, several use several.  A process sleeps while the path out has no room.

A machine that is booted again knows no connection: what comes for one from before is dropped (a real one would answer
with a reset, and the client would give up rather than back off).
"""

from typing import Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, EventKind, Fifo, Sim, Table, at, timer
from vftsim.platform.cpu.jobs import continue_or_submit_for, ensure_process
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io import packet as io
from vftsim.platform.io.marks import ENDED, PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.spec.units import DurationNs
from vftsim.workloads.common import (
    ProgramRow,
    drop_all,
    pages_per_request,
    send_or_wait,
    with_overhead_ns,
)
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program
from vftsim.workloads.tcp.connection import (
    COUNTS,
    Bulk,
    Connection,
    bulks,
    connections,
    is_timed_out,
    new_acknowledgement,
    new_segments,
    next_segments,
    note_sent,
    start_sender,
    take_acknowledgement,
    take_data,
)

tcp_sink = io.application.kind("tcp_sink")
tcp_source = io.application.kind("tcp_source")


class TcpProgram(ProgramRow):
    """A program with a process for each of ``connections``; costs in ns, copying for each KiB."""

    segment_cost_ns: int
    copy_cost_ns: int
    ack_cost_ns: int
    connections: Fifo
    lost_in_boot: int
    unknown: int


tcp_programs = Table("tcp_programs", TcpProgram, 256)
accepted = Chain(connections, "link")


@tcp_sink.implements(io.receive)
@tcp_source.implements(io.receive)
def take_packet(sim: Sim, program: io.Application, packet: int, tcp_program: TcpProgram = BESIDE) -> None:
    """Give a packet to the process of its connection."""
    connection = connections(sim)[io.packets(sim)[packet].stream]
    if connection.is_reset:
        io.drop(sim, packet, tcp_program.unknown)
        return
    bulk = bulks(sim)[connection.bulk]
    if connection.program == 0:
        connection.program = program.row
        accepted.push(sim, tcp_program.connections, connection.row)
        if not bulk.is_upload:
            start_sender(bulk, connection)
    io.packet_list.push(sim, connection.queue, packet)
    if not connection.is_busy:
        serve(sim, tcp_program, connection, False)


def serve(sim: Sim, tcp_program: TcpProgram, connection: Connection, is_running: bool, bulk: Bulk = BESIDE) -> None:
    """Let a process do what is next, or sleep: one that is running continues."""
    connection.is_busy = True
    domain = domains(sim)[tcp_program.domain]
    connection.process = ensure_process(sim, domain, connection.process, False)
    process, argument = connection.process, tcp_program.row
    if connection.queue.length > 0:
        connection.packet = io.packet_list.pop(sim, connection.queue)
        demand_ns = taking_ns(sim, tcp_program, bulk, connection)
        io.mark(sim, connection.packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
        continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_taken, connection.row, argument)
        return
    # What has come goes first: it may change what is owed and what may be sent.
    if connection.owes:
        demand_ns = sending_ns(sim, tcp_program, bulk, tcp_program.ack_cost_ns)
        continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_acknowledged, connection.row, argument)
        return
    segments = 0
    if not bulk.is_upload:
        segments = next_segments(sim, connection)
    # Only asked here: on_written() asks again, and takes it, when the work is done.
    if segments > 0:
        demand_ns = sending_ns(sim, tcp_program, bulk, data_ns(tcp_program, bulk, segments))
        continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_written, connection.row, argument)
    else:
        connection.is_busy = False


def taking_ns(sim: Sim, tcp_program: TcpProgram, bulk: Bulk, connection: Connection, packet: io.Packet = BESIDE) -> int:
    """Return what the packet in hand costs, the acknowledgement that it calls for included."""
    if packet.message % COUNTS == 0:
        return with_overhead_ns(sim, tcp_program.program, tcp_program.ack_cost_ns, 0)
    # Taken in when the work begins: whether it calls for an acknowledgement is part of its price.
    connection.owes = take_data(sim, connection, packet.message, packet.sent_ns) or connection.owes
    demand_ns = data_ns(tcp_program, bulk, packet.message)
    if connection.owes:
        return sending_ns(sim, tcp_program, bulk, demand_ns + tcp_program.ack_cost_ns)
    return with_overhead_ns(sim, tcp_program.program, demand_ns, 0)


def data_ns(tcp_program: TcpProgram, bulk: Bulk, segments: int) -> int:
    """Return the demand of a packet of data: the packet and its copy."""
    return tcp_program.segment_cost_ns + tcp_program.copy_cost_ns * (segments % COUNTS * bulk.mss) // 1024


def sending_ns(sim: Sim, tcp_program: TcpProgram, bulk: Bulk, demand_ns: int) -> int:
    """Return what work costs that sends a packet."""
    return with_overhead_ns(sim, tcp_program.program, demand_ns, 1) + io.ports(sim)[bulk.port].transmit_ns


@work_done
def on_taken(sim: Sim, connection: Connection, argument: int, bulk: Bulk = BESIDE) -> None:
    """The packet in hand has been taken in."""
    # Read before the packet is freed.
    message = io.packets(sim)[connection.packet].message
    echo_ns = io.packets(sim)[connection.packet].sent_ns
    io.mark(sim, connection.packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    io.mark(sim, connection.packet, ENDED, 0, sim.now_ns, 0)
    io.packets.free(sim, connection.packet)
    connection.packet = 0
    if message % COUNTS == 0:
        take_acknowledgement(sim, bulk, connection, message // COUNTS, echo_ns, on_server_due)
    elif connection.owes:
        send_and_serve(sim, tcp_programs(sim)[argument], bulk, connection, new_acknowledgement(sim, connection), True)
        return
    elif connection.pending > 0 and connection.delay_timer == 0:
        due_ns = sim.now_ns + bulk.delayed_ack_ns
        connection.delay_timer = at(sim, due_ns, EventKind.TIMER, connection.row, on_server_delay, connection.row)
    serve(sim, tcp_programs(sim)[argument], connection, True)


@work_done
def on_acknowledged(sim: Sim, connection: Connection, argument: int, bulk: Bulk = BESIDE) -> None:
    """The work for a delayed acknowledgement is done."""
    send_and_serve(sim, tcp_programs(sim)[argument], bulk, connection, new_acknowledgement(sim, connection), True)


@work_done
def on_written(sim: Sim, connection: Connection, argument: int, bulk: Bulk = BESIDE) -> None:
    """The work for data is done: send what may be sent by now, which a time-out may have changed."""
    segments = next_segments(sim, connection)
    if segments == 0:
        serve(sim, tcp_programs(sim)[argument], connection, True)
        return
    note_sent(sim, connection, segments, on_server_due)
    send_and_serve(sim, tcp_programs(sim)[argument], bulk, connection, new_segments(sim, connection, segments), True)


def send_and_serve(
    sim: Sim, tcp_program: TcpProgram, bulk: Bulk, connection: Connection, packet: int, is_running: bool
) -> None:
    """Send a packet and do what is next, or sleep until there is room."""
    # A process that sleeps stays busy, so that what comes meanwhile waits for it.
    connection.is_blocked = not send_or_wait(sim, packet)
    if not connection.is_blocked:
        serve(sim, tcp_program, connection, is_running)


@tcp_sink.implements(io.go_on)
@tcp_source.implements(io.go_on)
def resume_sending(sim: Sim, program: io.Application, packet: int) -> None:
    """Send the packet of a process that slept, and resume it; drop what is left from before the machine was booted."""
    connection = connections(sim)[io.packets(sim)[packet].stream]
    if not connection.is_blocked:
        io.drop(sim, packet, tcp_programs(sim)[program.state_row].lost_in_boot)
        return
    send_and_serve(sim, tcp_programs(sim)[program.state_row], bulks(sim)[connection.bulk], connection, packet, False)


@timer(connections, "timer")
def on_server_due(sim: Sim, connection: Connection) -> None:
    """The server's retransmission timer has gone off."""
    # A process that is at work finds by itself, at the end, what is to be sent again.
    if is_timed_out(sim, connection, on_server_due) and not connection.is_busy:
        serve(sim, program_of(sim, connection), connection, False)


@timer(connections, "delay_timer")
def on_server_delay(sim: Sim, connection: Connection) -> None:
    """The server has put off an acknowledgement for long enough."""
    connection.owes = True
    if not connection.is_busy:
        serve(sim, program_of(sim, connection), connection, False)


def program_of(sim: Sim, connection: Connection) -> TcpProgram:
    return tcp_programs(sim)[io.applications(sim)[connection.program].state_row]


@tcp_sink.implements(io.lose_state)
@tcp_source.implements(io.lose_state)
def lose_memory(sim: Sim, program: io.Application, tcp_program: TcpProgram = BESIDE) -> None:
    """Forget all connections, and lose what waits for their processes."""
    while tcp_program.connections.length > 0:
        connection = connections(sim)[accepted.pop(sim, tcp_program.connections)]
        connection.is_reset = True
        connection.is_busy = False
        connection.is_blocked = False
        # The server's timer finds another token: the one that sends again belongs to the client of an upload.
        if bulks(sim)[connection.bulk].is_upload:
            connection.delay_timer = 0
        else:
            connection.timer = 0
        if connection.packet != 0:
            # What its process has in hand is lost with what waits.
            io.packet_list.push(sim, connection.queue, connection.packet)
            connection.packet = 0
        drop_all(sim, connection.queue, tcp_program.lost_in_boot)


class _TcpEndSpec(ApplicationSpec):
    """A process for each connection, at the server's end."""

    speaks = "tcp"

    segment_cost: DurationNs = Field(
        2_000, description="CPU time of a packet of data, beside the path's: TCP and the system call. Assumption."
    )
    copy_cost: DurationNs = Field(250, description="CPU time to copy 1 KiB. Assumption: 4 GB/s.")
    ack_cost: DurationNs = Field(1_000, description="CPU time of an acknowledgement, made or taken in. Assumption.")

    def install(self, context: InstallContext) -> Program:
        """Add it to a domain."""
        lost_in_boot = context.drop_row("guest", "lost in crash")
        unknown = context.drop_row("guest", "of no connection")
        record = context.add_program(
            tcp_programs,
            self,
            segment_cost_ns=context.inflated(self.segment_cost),
            copy_cost_ns=context.inflated(self.copy_cost),
            ack_cost_ns=context.inflated(self.ack_cost),
            lost_in_boot=lost_in_boot,
            unknown=unknown,
        )
        return Program(context, record)


@APPLICATIONS.register
class TcpSinkSpec(_TcpEndSpec):
    """Takes in what the clients send: ``iperf -s``."""

    kind: Literal["tcp_sink"] = "tcp_sink"
    pages_per_request: float = pages_per_request(1.0, "a segment in its buffer")


@APPLICATIONS.register
class TcpSourceSpec(_TcpEndSpec):
    """Sends to every client that asks: ``iperf -s`` for ``iperf -c --reverse``."""

    kind: Literal["tcp_source"] = "tcp_source"
    pages_per_request: float = pages_per_request(1.0, "an acknowledgement in its buffer")
