"""A program that reads datagrams: ``iperf -s -u``, a thread and a socket for each flow.

A datagram takes its part of the socket's receive buffer as the kernel counts it, overhead included, until it has been
read; one that does not fit is dropped.  Reading costs CPU time.

``shared_buffer`` is the wrong model to compare with: one socket and one thread for all flows.

It counts as iperf 2's server does (``reporter_handle_packet``), when it reads:

* **jitter** (RFC 1889, 6.3.1): J += (|D| - J) / 16, D the difference of the transit times of successive datagrams;
* **loss**: numbers that were skipped, less datagrams that come late (out of order); **total**: the highest number.
"""

from typing import Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Fifo, Row, Sim, Table
from vftsim.platform.cpu.jobs import continue_or_submit_for, ensure_process
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io import packet as io
from vftsim.spec.units import ByteCount, DurationNs
from vftsim.workloads.common import ProgramRow, drop_all, pages_per_request, with_overhead_ns
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

udp_sink = io.application.kind("udp_sink")


class UdpFlow(Row):
    """A flow of numbered datagrams, as both its ends see it.

    Sender: ``due_ns`` is when the next datagram should go; it may be behind.  ``lost`` counts datagrams dropped
    anywhere.  Receiver: statistics of what was read; ``difference_ns`` is the sum of all |D|.  Socket at the server:
    datagrams in ``socket``, the one being read in ``packet``; ``link`` chains the flows of a program, ``dropped``
    counts for want of room in the socket.
    """

    bulk: int
    station: int
    link: int
    first_ns: int
    end_ns: int
    due_ns: int
    sent: int
    lost: int
    program: int
    process: int
    socket: Fifo
    packet: int
    dropped: int
    received: int
    highest: int
    skipped: int
    late: int
    transit_ns: int
    jitter_ns: float
    difference_ns: int
    last_read_ns: int


class UdpSink(ProgramRow):
    """A program; ``reader`` is the flow whose socket all share, if they share one."""

    read_cost_ns: int
    most_waiting: int
    shared_buffer: bool
    reader: int
    flows: Fifo
    socket_full: int
    lost_in_boot: int


udp_flows = Table("udp_flows", UdpFlow, 1 << 14, "use fewer clients")
flow_list = Chain(udp_flows, "link")
udp_sinks = Table("udp_sinks", UdpSink, 256)


@udp_sink.implements(io.receive)
def take_datagram(sim: Sim, program: io.Application, packet: int, sink: UdpSink = BESIDE) -> None:
    """Put a datagram into its socket, and wake the thread."""
    flow = udp_flows(sim)[io.packets(sim)[packet].stream]
    if flow.program == 0:
        flow.program = program.row
        flow_list.push(sim, sink.flows, flow.row)
        if sink.reader == 0 and sink.shared_buffer:
            sink.reader = flow.row
    at_socket = flow
    if sink.reader != 0:
        at_socket = udp_flows(sim)[sink.reader]
    waiting = at_socket.socket.length
    if at_socket.packet != 0:
        waiting += 1
    if waiting >= sink.most_waiting:
        flow.dropped += 1
        io.drop(sim, packet, sink.socket_full)
        return
    io.packet_list.push(sim, at_socket.socket, packet)
    if at_socket.packet == 0:
        read_next(sim, sink, at_socket, False)


def read_next(sim: Sim, udp_sink: UdpSink, flow: UdpFlow, is_running: bool) -> None:
    """Let a thread read the next datagram, or sleep: one that is running continues."""
    flow.packet = io.packet_list.pop(sim, flow.socket)
    if flow.packet != 0:
        demand_ns = with_overhead_ns(sim, udp_sink.program, udp_sink.read_cost_ns, 0)
        domain = domains(sim)[udp_sink.domain]
        flow.process = ensure_process(sim, domain, flow.process, False)
        continue_or_submit_for(sim, domain, flow.process, is_running, demand_ns, on_read, flow.row, udp_sink.row)


@work_done
def on_read(sim: Sim, reader: UdpFlow, argument: int, packet: io.Packet = BESIDE) -> None:
    """A datagram has been read."""
    note_read(sim, udp_flows(sim)[packet.stream], packet.message, packet.sent_ns)
    io.packets.free(sim, reader.packet)
    read_next(sim, udp_sinks(sim)[argument], reader, True)


def note_read(sim: Sim, flow: UdpFlow, number: int, sent_ns: int) -> None:
    """Take a datagram into the receiver's statistics."""
    transit_ns = sim.now_ns - sent_ns
    if flow.received > 0:
        difference_ns = abs(transit_ns - flow.transit_ns)
        flow.difference_ns += difference_ns
        flow.jitter_ns += (difference_ns - flow.jitter_ns) / 16.0
    flow.transit_ns = transit_ns
    flow.last_read_ns = sim.now_ns
    flow.received += 1
    if number > flow.highest:
        flow.skipped += number - flow.highest - 1
        flow.highest = number
    else:
        flow.late += 1


@udp_sink.implements(io.lose_state)
def lose_memory(sim: Sim, program: io.Application, sink: UdpSink = BESIDE) -> None:
    """Lose what is in the sockets and in the threads' hands; the clients do not notice."""
    sink.reader = 0
    while sink.flows.length > 0:
        flow = udp_flows(sim)[flow_list.pop(sim, sink.flows)]
        flow.program = 0
        if flow.packet != 0:
            io.drop(sim, flow.packet, sink.lost_in_boot)
            flow.packet = 0
        drop_all(sim, flow.socket, sink.lost_in_boot)


@APPLICATIONS.register
class UdpSinkSpec(ApplicationSpec):
    """Reads and counts datagrams."""

    speaks = "udp"

    kind: Literal["udp_sink"] = "udp_sink"
    pages_per_request: float = pages_per_request(1.0, "a segment in its buffer")
    read_cost: DurationNs = Field(
        2_000, description="CPU time to read a datagram, beside the path's: system call and copy. Assumption."
    )
    receive_buffer: ByteCount = Field(212_992, ge=2_304, description="Of each socket. Default: Linux, rmem_default.")
    packet_charge: ByteCount = Field(
        2_304, ge=256, description="What a datagram takes of it. Default: Linux, truesize of a full Ethernet frame."
    )
    shared_buffer: bool = Field(False, description="One socket and thread for all flows; iperf 2 has one for each.")

    def install(self, context: InstallContext) -> Program:
        """Add it to a domain."""
        sink = context.add_program(
            udp_sinks,
            self,
            read_cost_ns=context.inflated(self.read_cost),
            most_waiting=max(1, self.receive_buffer // self.packet_charge),
            socket_full=context.drop_row(f"{context.name} socket", "full"),
            lost_in_boot=context.drop_row("guest", "lost in crash"),
        )
        return Program(context, sink)
