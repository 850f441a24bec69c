"""Segments of a bulk transfer on the wire (RFC 9293, 3.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from vftsim.workloads.tcp.records import COUNTS
from vftsim.workloads.wire import Address, Seen, Wire

_TCP = 6


@dataclass(frozen=True)
class TcpWire(Wire):
    """The sequence number counts bytes from 1, as after a SYN of 0."""

    mss: int
    port = 5001

    def name(self, message: int) -> str:
        """Return the numbers of the segments, or of the one that is expected."""
        first, count = divmod(message, COUNTS)
        return f"segments {first} to {first + count - 1}" if count else f"ACK {first}"

    def client(self, packet: Seen, flow: int, *, is_to_guest: bool) -> Address:
        """A port of each connection."""
        address = super().client(packet, flow, is_to_guest=is_to_guest)
        return Address(address.ip, 32768 + packet.stream % 28000)

    def in_ip(self, packet: Seen, source: Address, target: Address) -> tuple[int, bytes, int]:
        """Return the header; data are left out."""
        first, count = divmod(packet.message, COUNTS)
        number, expected = (1 + first * self.mss, 1) if count else (1, 1 + first * self.mss)
        # 52 bytes of headers are 20 of IP and 32 here: two of padding and the time stamp option (RFC 7323).
        option = struct.pack("!BBBBII", 1, 1, 8, 10, packet.begin_ns // 1_000_000 & 0xFFFFFFFF, 0)
        head = (
            struct.pack(
                "!HHIIBBHHH",
                source.port,
                target.port,
                number & 0xFFFFFFFF,
                expected & 0xFFFFFFFF,
                8 << 4,
                0x10,
                65535,
                0,
                0,
            )
            + option
        )
        return _TCP, head, len(head) + count * self.mss
