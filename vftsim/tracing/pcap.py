"""Packets of a window as a capture file that tshark, tcpdump and Wireshark read, with times in ns.

The format is libpcap's (``pcap-savefile(5)``): 24 bytes with the magic number of nanoseconds, and 16 before each
packet.  Packets are Ethernet frames with IPv4: RTP (RFC 3550) with the numbers that the streams gave them, SIP (RFC
3261) with Call-ID and CSeq, TCP (RFC 9293) with sequence numbers, and UDP for all else.  Payloads are zeros and are
left out; the lengths that stand in the headers are the model's.

Addresses: domains are 10.255.0.n, in the order of the model; clients are 10.f.a.b: f numbers the workload, a and b are
of the stream (of SIP 10.f.0.1 calls and 10.f.0.2 is called).  The other end of a call between two domains is
10.254.a.b, at either of them, and no client sees it.
"""

import struct
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from vftsim.platform.io.marks import ARRIVED, AT_HOST, DELIVERED, ENTERED, PUT_OUT, RETURNED, SENT
from vftsim.tracing.packets import CLIENT, PacketTrace
from vftsim.tracing.trace import Trace
from vftsim.workloads.wire import ETHERNET_AND_IP_BYTES, Address, Wire

_MAGIC_NS, _SNAPLEN, _ETHERNET = 0xA1B23C4D, 1 << 18, 1


class Point(StrEnum):
    """Where packets are captured."""

    client = "client"
    """At the clients' end of the network."""
    host = "host"
    """At the host's network card."""
    guest = "guest"
    """In the guest, between its driver and its programs."""


_IN = {Point.client: (SENT, ARRIVED), Point.host: (AT_HOST, ARRIVED), Point.guest: (ENTERED,)}
_OUT = {Point.client: (RETURNED,), Point.host: (DELIVERED,), Point.guest: (PUT_OUT,)}


def captured(trace: Trace, point: Point) -> list[tuple[int, bytes, int]]:
    """Return what is captured at a point, in order: time in ns, the frame as far as it is kept, its whole length."""
    frames: list[tuple[int, int, bytes, int]] = []
    for number, packet in enumerate(trace.seen):
        if point is Point.client and packet.flow not in trace.wires:
            continue
        for time_ns, is_in in _passes(packet, point):
            if trace.start_ns <= time_ns < trace.end_ns:
                frames.append((time_ns, number, *_frame(trace, packet, is_in)))
    frames.sort(key=lambda each: each[:2])
    return [(time_ns, frame, length) for time_ns, _, frame, length in frames]


def _passes(packet: PacketTrace, point: Point) -> Iterator[tuple[int, bool]]:
    """Yield when a packet passes a point, and whether it goes to the guest there."""
    # On a network that is not modelled a packet takes the same time each way.
    there_ns = packet.wire_ns // 2 if packet.begun == CLIENT else 0
    back_ns = packet.wire_ns - there_ns
    at_client = point is Point.client
    if packet.begun == CLIENT and (time_ns := packet.time_of(*_IN[point])) is not None:
        yield time_ns - at_client * there_ns, True
    if (time_ns := packet.time_of(*_OUT[point])) is not None:
        yield time_ns + at_client * back_ns, False


def _frame(trace: Trace, packet: PacketTrace, is_in: bool) -> tuple[bytes, int]:
    """Return Ethernet, IP and what it carries, as far as it is kept, and the length of all of it."""
    wire = trace.wires.get(packet.flow, Wire())
    flow = list(trace.wires).index(packet.flow) % 255 if packet.flow in trace.wires else 254
    number = trace.domains.index(packet.domain) if packet.domain in trace.domains else len(trace.domains)
    server = Address(bytes((10, 255, number >> 8 & 255, 1 + number & 255)), wire.port)
    client = wire.client(packet, flow, is_to_guest=is_in)
    source, target = (client, server) if is_in else (server, client)
    protocol, carried, length = wire.in_ip(packet, source, target)
    frame = _ip((source, target), protocol, carried, length)
    return frame, max(ETHERNET_AND_IP_BYTES + length, len(frame))


def _ip(ends: tuple[Address, Address], protocol: int, carried: bytes, length: int) -> bytes:
    """Return a frame with an IPv4 header (RFC 791) that says ``length`` bytes follow it."""
    total = min(20 + max(length, len(carried)), 65535)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, 0, 0x4000, 64, protocol, 0, ends[0].ip, ends[1].ip)
    folded = sum(struct.unpack("!10H", header))
    while folded >> 16:
        folded = (folded & 0xFFFF) + (folded >> 16)
    header = header[:10] + struct.pack("!H", ~folded & 0xFFFF) + header[12:]
    return b"\2\0" + ends[1].ip + b"\2\0" + ends[0].ip + b"\x08\x00" + header + carried


def write_pcap(trace: Trace, point: Point, path: Path) -> None:
    packets = captured(trace, point)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, _SNAPLEN, _ETHERNET))
        for time_ns, frame, length in packets:
            shortened = frame[:length]
            file.write(struct.pack("<IIII", *divmod(time_ns, 1_000_000_000), len(shortened), length) + shortened)
