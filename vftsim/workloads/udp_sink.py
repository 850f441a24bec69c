"""A program that reads datagrams: ``iperf -s -u``, a thread and a socket for each flow.

A datagram takes its part of the socket's receive buffer as the kernel counts it, overhead included, until it has been
read; one that does not fit is dropped.  Reading costs CPU time.

``shared_buffer`` is the wrong model to compare with: one socket and one thread for all flows.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, Fifo, Kind, Record, Sim, Table, part
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import (
    Application,
    application,
    drop,
    drops,
    lose_state,
    packet_list,
    packets,
    receive,
    set_overhead,
)
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, DurationNs
from vftsim.workloads.burden import add_program, apply_overhead, bear_overhead, burdened_ns
from vftsim.workloads.udp_flow import UdpFlow, flow_list, note_read, udp_flows

udp_sink = application.kind("udp_sink")


class UdpSinkSpec(Spec):
    """Reads and counts datagrams."""

    part: ClassVar[Kind] = udp_sink

    kind: Literal["udp_sink"] = "udp_sink"
    read_cost: DurationNs = Field(
        2_000, description="CPU time to read a datagram, beside the path's: system call and copy. Assumption."
    )
    receive_buffer: ByteCount = Field(212_992, ge=2_304, description="Of each socket. Default: Linux, rmem_default.")
    packet_charge: ByteCount = Field(
        2_304, ge=256, description="What a datagram takes of it. Default: Linux, truesize of a full Ethernet frame."
    )
    shared_buffer: bool = Field(False, description="One socket and thread for all flows; iperf 2 has one for each.")


class UdpSink(Record):
    """A program; ``reader`` is the flow whose socket all share, 0 if each has its own."""

    row: int
    program: int
    domain: int
    read_ns: int
    most_waiting: int
    is_shared: bool
    reader: int
    flows: Fifo
    socket_full: int
    lost_in_boot: int


udp_sinks = Table("udp_sinks", UdpSink, 256)
ENTRIES = ()
ACTIONS = ()
TABLES = (udp_sinks, udp_flows)


@udp_sink.implements(receive)
def take_datagram(sim: Sim, program: Application, packet: int) -> None:
    """Put a datagram into its socket, and wake the thread."""
    sink = udp_sinks(sim)[program.own]
    flow = udp_flows(sim)[packets(sim)[packet].stream]
    if flow.program == 0:
        flow.program = program.row
        flow_list.push(sim, sink.flows, flow.row)
        if sink.reader == 0 and sink.is_shared:
            sink.reader = flow.row
    at_socket = flow
    if sink.reader != 0:
        at_socket = udp_flows(sim)[sink.reader]
    waiting = at_socket.socket.length
    if at_socket.packet != 0:
        waiting += 1
    if waiting >= sink.most_waiting:
        flow.dropped += 1
        drop(sim, packet, sink.socket_full)
        return
    packet_list.push(sim, at_socket.socket, packet)
    if at_socket.packet == 0:
        read_next(sim, sink, at_socket)


@part
def read_next(sim: Sim, udp_sink: UdpSink, flow: UdpFlow) -> None:
    """Let a thread that is not at work read the next datagram, or sleep."""
    flow.packet = packet_list.pop(sim, flow.socket)
    if flow.packet != 0:
        demand_ns = burdened_ns(sim, udp_sink.program, udp_sink.read_ns, 0)
        submit(sim, domains(sim)[udp_sink.domain], demand_ns, on_read, flow.row, udp_sink.row)


@work_done
def on_read(sim: Sim, udp_flow_row: int, argument: int) -> None:
    """A datagram has been read."""
    reader = udp_flows(sim)[udp_flow_row]
    packet = packets(sim)[reader.packet]
    note_read(sim, udp_flows(sim)[packet.stream], packet.what, packet.sent_ns)
    packets.free(sim, reader.packet)
    read_next(sim, udp_sinks(sim)[argument], reader)


udp_sink.implements(set_overhead)(bear_overhead)


@udp_sink.implements(lose_state)
def boot(sim: Sim, program: Application) -> None:
    """Lose what is in the sockets and in the threads' hands; the clients do not notice."""
    sink = udp_sinks(sim)[program.own]
    apply_overhead(sim, program, 0, 1.0)
    sink.reader = 0
    while sink.flows.length > 0:
        flow = udp_flows(sim)[flow_list.pop(sim, sink.flows)]
        flow.program = 0
        if flow.packet != 0:
            drop(sim, flow.packet, sink.lost_in_boot)
            flow.packet = 0
        while flow.socket.length > 0:
            drop(sim, packet_list.pop(sim, flow.socket), sink.lost_in_boot)


def add_udp_sink(engine: Engine, domain: int, spec: UdpSinkSpec) -> int:
    """Add a program to a domain; return its application row."""
    socket_full, _ = engine.add(drops)
    lost_in_boot, _ = engine.add(drops)
    row, sink = engine.add(
        udp_sinks,
        domain=domain,
        read_ns=spec.read_cost,
        is_shared=spec.shared_buffer,
        socket_full=socket_full,
        most_waiting=max(1, spec.receive_buffer // spec.packet_charge),
        lost_in_boot=lost_in_boot,
    )
    sink.row = row
    sink.program = add_program(engine, udp_sink, row, domain)
    return int(sink.program)
