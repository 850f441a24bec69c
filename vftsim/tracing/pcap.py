"""Packets of a window as a capture file that tshark, tcpdump and Wireshark read, with times in ns.

The format is libpcap's (``pcap-savefile(5)``): 24 bytes with the magic number of nanoseconds, and 16 before each
packet.  Packets are Ethernet frames with IPv4: RTP (RFC 3550) with the numbers that the streams gave them, SIP (RFC
3261) with Call-ID and CSeq, TCP (RFC 9293) with sequence numbers, and UDP for all else.  Payloads are zeros and are
left out; the lengths that stand in the headers are the model's.

Addresses: domains are 10.255.0.n, in the order of the model; clients are 10.f.a.b: f numbers the workload, a and b are
of the stream (of SIP 10.f.0.1 calls and 10.f.0.2 is called).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from vftsim.platform.io.marks import ARRIVED, AT_HOST, DELIVERED, ENTERED, PUT_OUT, RETURNED, SENT
from vftsim.tracing.packets import CLIENT, PacketTrace
from vftsim.tracing.protocols import METHODS, SIP_NAMES
from vftsim.tracing.trace import Trace
from vftsim.workloads.sip.messages import Message
from vftsim.workloads.tcp.records import COUNTS

_MAGIC_NS, _SNAPLEN, _ETHERNET = 0xA1B23C4D, 1 << 18, 1
_HEADERS = 14 + 20
_RTP_HZ, _PCMU = 8000, 0
RTP_PORT, SIP_PORT, BULK_PORT, OTHER_PORT = 5004, 5060, 5001, 9
_PORTS = {"rtp": RTP_PORT, "ims_bench": SIP_PORT, "bulk_tcp": BULK_PORT}
_MOST_IN_IP = 65535 - 20
_REQUESTS = (Message.REGISTER, Message.REGISTER_CREDENTIALS, Message.INVITE, Message.ACK, Message.BYE, Message.MESSAGE)
_OF_CALLEE = (Message.RINGING, Message.OK_INVITE, Message.OK_BYE, Message.OK_MESSAGE)
_TO_CALLEE = (Message.INVITE, Message.ACK, Message.BYE, Message.MESSAGE)
_SECOND = (Message.REGISTER_CREDENTIALS, Message.OK_REGISTER, Message.BYE, Message.OK_BYE)
"""Messages of the second transaction of a registration or a call: their CSeq is 2."""


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


@dataclass(frozen=True, slots=True)
class _Address:
    ip: bytes
    port: int


def captured(trace: Trace, point: Point) -> list[tuple[int, bytes, int]]:
    """Return what is captured at a point, in order: time in ns, the frame as far as it is kept, its whole length."""
    found: list[tuple[int, int, bytes, int]] = []
    for number, one in enumerate(trace.seen):
        for time_ns, is_in in _passes(one, point):
            if trace.start_ns <= time_ns < trace.end_ns:
                frame = _frame(trace, one, is_in)
                found.append((time_ns, number, frame, max(one.size_bytes, len(frame))))
    found.sort(key=lambda each: each[:2])
    return [(time_ns, frame, length) for time_ns, _, frame, length in found]


def _passes(one: PacketTrace, point: Point) -> Iterator[tuple[int, bool]]:
    """Yield when a packet passes a point, and whether it goes to the guest there."""
    # On a network that is not modelled a packet takes the same time each way.
    there_ns = one.wire_ns // 2 if one.begun == CLIENT else 0
    back_ns = one.wire_ns - there_ns
    at_client = point is Point.client
    if one.begun == CLIENT and (time_ns := one.time_of(*_IN[point])) is not None:
        yield time_ns - at_client * there_ns, True
    if (time_ns := one.time_of(*_OUT[point])) is not None:
        yield time_ns + at_client * back_ns, False


def _frame(trace: Trace, one: PacketTrace, is_in: bool) -> bytes:
    """Return Ethernet, IP and what it carries."""
    spec: Any = trace.workloads.get(one.flow)
    kind = spec.kind if spec is not None else ""
    client, server = _client(trace, one, kind, is_in), _server(trace, one, kind)
    ends = (client, server) if is_in else (server, client)
    if kind == "bulk_tcp":
        carried = _tcp(one, ends, spec.mss)
        return _ip(ends, 6, carried, len(carried) + one.message % COUNTS * spec.mss)
    carried = b""
    if kind == "rtp":
        carried = _rtp(one, spec.interval)
    elif kind == "ims_bench":
        carried = _sip(one, ends)
    length = max(one.size_bytes - _HEADERS, 8 + len(carried))
    head = struct.pack("!HHHH", ends[0].port, ends[1].port, min(length, _MOST_IN_IP), 0)
    return _ip(ends, 17, head + carried, length)


def _server(trace: Trace, one: PacketTrace, kind: str) -> _Address:
    number = trace.domains.index(one.domain) if one.domain in trace.domains else len(trace.domains)
    return _Address(bytes((10, 255, number >> 8 & 255, 1 + number & 255)), _PORTS.get(kind, OTHER_PORT))


def _client(trace: Trace, one: PacketTrace, kind: str, is_in: bool) -> _Address:
    flow = list(trace.workloads).index(one.flow) % 255 if one.flow in trace.workloads else 254
    ip = bytes((10, flow, one.stream >> 8 & 255, one.stream & 255))
    if kind == "ims_bench":
        is_callee = one.message in (_OF_CALLEE if is_in else _TO_CALLEE)
        return _Address(bytes((10, flow, 0, 2 if is_callee else 1)), SIP_PORT)
    if kind == "bulk_tcp":
        return _Address(ip, 32768 + one.stream % 28000)
    return _Address(ip, _PORTS.get(kind, OTHER_PORT))


def _ip(ends: tuple[_Address, _Address], protocol: int, carried: bytes, length: int) -> bytes:
    """Return a frame with an IPv4 header (RFC 791) that says ``length`` bytes follow it."""
    total = min(20 + max(length, len(carried)), 65535)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, 0, 0x4000, 64, protocol, 0, ends[0].ip, ends[1].ip)
    folded = sum(struct.unpack("!10H", header))
    while folded >> 16:
        folded = (folded & 0xFFFF) + (folded >> 16)
    header = header[:10] + struct.pack("!H", ~folded & 0xFFFF) + header[12:]
    return b"\2\0" + ends[1].ip + b"\2\0" + ends[0].ip + b"\x08\x00" + header + carried


def _rtp(one: PacketTrace, interval_ns: int) -> bytes:
    """Return an RTP header (RFC 3550, 5.1): G.711, so 8000 Hz; a stream's number is its source."""
    stamp = one.number * interval_ns * _RTP_HZ // 1_000_000_000
    return struct.pack("!BBHII", 0x80, _PCMU, one.number & 0xFFFF, stamp & 0xFFFFFFFF, 1 + one.stream)


def _sip(one: PacketTrace, ends: tuple[_Address, _Address]) -> bytes:
    """Return a SIP message (RFC 3261); the Call-ID says which attempt it belongs to."""
    message, user = Message(one.message), f"user{one.entity}"
    method, words = METHODS[message], SIP_NAMES[message]
    first = f"{words} sip:{user}@vftsim.invalid SIP/2.0" if message in _REQUESTS else f"SIP/2.0 {words}"
    source = ".".join(str(byte) for byte in ends[0].ip)
    lines = [
        first,
        f"Via: SIP/2.0/UDP {source};branch=z9hG4bK{one.entity}.{method}",
        f"From: <sip:caller{one.entity}@vftsim.invalid>;tag={one.entity}",
        f"To: <sip:{user}@vftsim.invalid>",
        f"Call-ID: {one.entity}@vftsim.invalid",
        f"CSeq: {2 if message in _SECOND else 1} {method}",
        "Max-Forwards: 70",
        "Content-Length: 0",
    ]
    missing = one.size_bytes - _HEADERS - 8 - sum(len(line) + 2 for line in lines) - 2
    if missing > len("Subject: \r\n"):
        lines.insert(-1, "Subject: " + "-" * (missing - len("Subject: \r\n")))
    return "\r\n".join([*lines, "", ""]).encode()


def _tcp(one: PacketTrace, ends: tuple[_Address, _Address], mss: int) -> bytes:
    """Return a TCP header (RFC 9293, 3.1): the sequence number counts bytes from 1, as after a SYN of 0."""
    first, count = divmod(one.message, COUNTS)
    number, expected = (1 + first * mss, 1) if count else (1, 1 + first * mss)
    # 52 bytes of headers are 20 of IP and 32 here: two of padding and the time stamp option (RFC 7323).
    option = struct.pack("!BBBBII", 1, 1, 8, 10, one.begin_ns // 1_000_000 & 0xFFFFFFFF, 0)
    head = struct.pack(
        "!HHIIBBHHH", ends[0].port, ends[1].port, number & 0xFFFFFFFF, expected & 0xFFFFFFFF, 8 << 4, 0x10, 65535, 0, 0
    )
    return head + option


def write_pcap(trace: Trace, point: Point, path: Path) -> None:
    """Write what is captured at a point."""
    packets = captured(trace, point)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, _SNAPLEN, _ETHERNET))
        for time_ns, frame, length in packets:
            kept = frame[:length]
            file.write(struct.pack("<IIII", *divmod(max(time_ns, 0), 1_000_000_000), len(kept), length) + kept)
