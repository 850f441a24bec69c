"""The server's end of bulk TCP: a process for each connection, in the guest.

A process takes one packet after the other: data costs ``segment_cost`` and the copy, an acknowledgement made or
taken in ``ack_cost``; what is sent costs the path's and the protection's price of an output too.  The kernel's own
protocol work is thus part of the process's (on Linux much of it is done for the process by the soft interrupt): one
connection uses one processor at most, several use several.  A process sleeps while the way out has no room.

A machine that is booted again knows no connection: what comes for one from before is dropped (a real one would answer
with a reset, and the client would give up rather than back off).
"""

from vftsim.kernel import Chain, Engine, EventKind, Fifo, Record, Sim, Table, at, event, part
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.marks import ENDED, PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.platform.io.packet import (
    Application,
    applications,
    drop,
    drops,
    go_on,
    lose_state,
    mark,
    packet_list,
    packets,
    ports,
    receive,
    set_overhead,
)
from vftsim.platform.io.ring import wait_for_slot
from vftsim.platform.protection.guard import put_out
from vftsim.workloads.burden import add_program, apply_overhead, bear_overhead, burdened_ns
from vftsim.workloads.tcp.parameters import TcpSinkSpec, TcpSourceSpec, tcp_sink, tcp_source
from vftsim.workloads.tcp.receiver import take_data
from vftsim.workloads.tcp.records import (
    COUNTS,
    Bulk,
    Connection,
    bulks,
    connections,
    new_acknowledgement,
    new_segments,
)
from vftsim.workloads.tcp.sender import is_timed_out, next_segments, note_sent, start_sender, take_acknowledgement


class TcpProgram(Record):
    """A program with a process for each of ``connections``; costs in ns, copying for each KiB."""

    row: int
    program: int
    domain: int
    segment_ns: int
    copy_ns: int
    ack_ns: int
    connections: Fifo
    lost_in_boot: int
    unknown: int


tcp_programs = Table("tcp_programs", TcpProgram, 256)
accepted = Chain(connections, "link")


@tcp_sink.implements(receive)
@tcp_source.implements(receive)
def take_packet(sim: Sim, program: Application, packet: int) -> None:
    """Give a packet to the process of its connection."""
    tcp_program = tcp_programs(sim)[program.own]
    connection = connections(sim)[packets(sim)[packet].stream]
    if connection.is_reset:
        drop(sim, packet, tcp_program.unknown)
        return
    bulk = bulks(sim)[connection.bulk]
    if connection.program == 0:
        connection.program = program.row
        accepted.push(sim, tcp_program.connections, connection.row)
        if not bulk.is_upload:
            start_sender(bulk, connection)
    packet_list.push(sim, connection.queue, packet)
    if not connection.is_busy:
        serve(sim, tcp_program, bulk, connection)


@part
def serve(sim: Sim, tcp_program: TcpProgram, bulk: Bulk, connection: Connection) -> None:
    """Let a process that is not at work do what is next, or sleep."""
    connection.is_busy = True
    domain = domains(sim)[tcp_program.domain]
    if connection.queue.length > 0:
        connection.packet = packet_list.pop(sim, connection.queue)
        demand_ns = taking_ns(sim, tcp_program, bulk, connection)
        mark(sim, connection.packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
        submit(sim, domain, demand_ns, on_taken, connection.row, tcp_program.row)
        return
    if connection.owes:
        submit(
            sim,
            domain,
            sending_ns(sim, tcp_program, bulk, tcp_program.ack_ns),
            on_acknowledged,
            connection.row,
            tcp_program.row,
        )
        return
    what = 0
    if not bulk.is_upload:
        what = next_segments(sim, bulk, connection)
    if what > 0:
        demand_ns = data_ns(tcp_program, bulk, what)
        submit(sim, domain, sending_ns(sim, tcp_program, bulk, demand_ns), on_written, connection.row, tcp_program.row)
    else:
        connection.is_busy = False


@part
def taking_ns(sim: Sim, tcp_program: TcpProgram, bulk: Bulk, connection: Connection) -> int:
    """Return what the packet in hand costs, the acknowledgement that it calls for included."""
    packet = packets(sim)[connection.packet]
    if packet.what % COUNTS == 0:
        return burdened_ns(sim, tcp_program.program, tcp_program.ack_ns, 0)
    connection.owes = take_data(sim, bulk, connection, packet.what, packet.sent_ns) or connection.owes
    demand_ns = data_ns(tcp_program, bulk, packet.what)
    if connection.owes:
        return sending_ns(sim, tcp_program, bulk, demand_ns + tcp_program.ack_ns)
    return burdened_ns(sim, tcp_program.program, demand_ns, 0)


@part
def data_ns(tcp_program: TcpProgram, bulk: Bulk, what: int) -> int:
    """Return the demand of a packet of data: the packet and its copy."""
    return tcp_program.segment_ns + tcp_program.copy_ns * (what % COUNTS * bulk.segment_bytes) // 1024


@part
def sending_ns(sim: Sim, tcp_program: TcpProgram, bulk: Bulk, demand_ns: int) -> int:
    """Return what work costs that sends a packet."""
    return burdened_ns(sim, tcp_program.program, demand_ns, 1) + ports(sim)[bulk.port].transmit_ns


@work_done
def on_taken(sim: Sim, connection_row: int, argument: int) -> None:
    """The packet in hand has been taken in."""
    connection = connections(sim)[connection_row]
    bulk = bulks(sim)[connection.bulk]
    what = packets(sim)[connection.packet].what
    echo_ns = packets(sim)[connection.packet].sent_ns
    mark(sim, connection.packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    mark(sim, connection.packet, ENDED, 0, sim.now_ns, 0)
    packets.free(sim, connection.packet)
    connection.packet = 0
    if what % COUNTS == 0:
        take_acknowledgement(sim, bulk, connection, what // COUNTS, echo_ns, on_server_due)
    elif connection.owes:
        put(sim, tcp_programs(sim)[argument], bulk, connection, new_acknowledgement(sim, bulk, connection))
        return
    elif connection.pending > 0 and connection.delay_timer == 0:
        due_ns = sim.now_ns + bulk.delayed_ack_ns
        connection.delay_timer = at(sim, due_ns, EventKind.TIMER, connection_row, on_server_delay, connection_row)
    serve(sim, tcp_programs(sim)[argument], bulk, connection)


@work_done
def on_acknowledged(sim: Sim, connection_row: int, argument: int) -> None:
    """The work for a delayed acknowledgement is done."""
    connection = connections(sim)[connection_row]
    bulk = bulks(sim)[connection.bulk]
    put(sim, tcp_programs(sim)[argument], bulk, connection, new_acknowledgement(sim, bulk, connection))


@work_done
def on_written(sim: Sim, connection_row: int, argument: int) -> None:
    """The work for data is done: send what may be sent by now, which a time-out may have changed."""
    connection = connections(sim)[connection_row]
    bulk = bulks(sim)[connection.bulk]
    what = next_segments(sim, bulk, connection)
    if what == 0:
        serve(sim, tcp_programs(sim)[argument], bulk, connection)
        return
    note_sent(sim, connection, what, on_server_due)
    put(sim, tcp_programs(sim)[argument], bulk, connection, new_segments(sim, bulk, connection, what))


@part
def put(sim: Sim, tcp_program: TcpProgram, bulk: Bulk, connection: Connection, packet: int) -> None:
    """Send a packet and go on, or sleep until there is room."""
    if put_out(sim, ports(sim)[bulk.port], packet):
        serve(sim, tcp_program, bulk, connection)
    else:
        connection.is_blocked = True
        wait_for_slot(sim, ports(sim)[bulk.port], packet, packet)


@tcp_sink.implements(go_on)
@tcp_source.implements(go_on)
def put_again(sim: Sim, program: Application, packet: int) -> None:
    """Send the packet of a process that slept, and let it go on; it does not if the machine was booted meanwhile."""
    connection = connections(sim)[packets(sim)[packet].stream]
    if not connection.is_blocked:
        drop(sim, packet, tcp_programs(sim)[program.own].lost_in_boot)
        return
    connection.is_blocked = False
    put(sim, tcp_programs(sim)[program.own], bulks(sim)[connection.bulk], connection, packet)


@event
def on_server_due(sim: Sim, connection_row: int, token: int) -> None:
    """The server's retransmission timer has gone off."""
    connection = connections(sim)[connection_row]
    if token == connection.timer and is_timed_out(sim, connection, on_server_due) and not connection.is_busy:
        serve(sim, program_of(sim, connection), bulks(sim)[connection.bulk], connection)


@event
def on_server_delay(sim: Sim, connection_row: int, token: int) -> None:
    """The server has put off an acknowledgement for long enough."""
    connection = connections(sim)[connection_row]
    if token != connection.delay_timer:
        return
    connection.delay_timer = 0
    connection.owes = True
    if not connection.is_busy:
        serve(sim, program_of(sim, connection), bulks(sim)[connection.bulk], connection)


@part
def program_of(sim: Sim, connection: Connection) -> TcpProgram:
    """Return the program that has accepted a connection."""
    return tcp_programs(sim)[applications(sim)[connection.program].own]


tcp_sink.implements(set_overhead)(bear_overhead)
tcp_source.implements(set_overhead)(bear_overhead)


@tcp_sink.implements(lose_state)
@tcp_source.implements(lose_state)
def boot(sim: Sim, program: Application) -> None:
    """Forget all connections, and lose what waits for their processes."""
    tcp_program = tcp_programs(sim)[program.own]
    apply_overhead(sim, program, 0, 1.0)
    while tcp_program.connections.length > 0:
        connection = connections(sim)[accepted.pop(sim, tcp_program.connections)]
        connection.is_reset = True
        connection.is_busy = False
        connection.is_blocked = False
        connection.timer = 0
        connection.delay_timer = 0
        if connection.packet != 0:
            packet_list.push(sim, connection.queue, connection.packet)
            connection.packet = 0
        while connection.queue.length > 0:
            drop(sim, packet_list.pop(sim, connection.queue), tcp_program.lost_in_boot)


def add_tcp_program(engine: Engine, domain: int, spec: TcpSinkSpec | TcpSourceSpec) -> int:
    """Add a program to a domain; return its application row."""
    lost_in_boot, _ = engine.add(drops)
    unknown, _ = engine.add(drops)
    row, record = engine.add(
        tcp_programs,
        domain=domain,
        segment_ns=spec.segment_cost,
        copy_ns=spec.copy_cost,
        ack_ns=spec.ack_cost,
        lost_in_boot=lost_in_boot,
        unknown=unknown,
    )
    record.row = row
    record.program = add_program(engine, spec.part, row, domain)
    return int(record.program)
