"""What packets of a workload are called, and what they look like on the wire: for traces and captures."""

import struct
from dataclasses import dataclass
from typing import Protocol

from vftsim.platform.protection.guard import FRAMING_BYTES

ETHERNET_AND_IP_BYTES = 14 + 20
UDP_BYTES = 8
_UDP = 17
_MOST_IN_IP = 65535 - 20


@dataclass(frozen=True, slots=True)
class Address:
    """One end of a packet's way: IPv4 address and port."""

    ip: bytes
    port: int


class WirePacket(Protocol):
    """A packet that was seen."""

    message: int
    stream: int
    entity: int
    number: int
    size_bytes: int

    @property
    def begin_ns(self) -> int:
        """When it began."""
        ...


class Wire:
    """Packets of a workload: UDP with contents that nobody models."""

    port = 9
    framing_bytes = FRAMING_BYTES
    """Of the size of a packet, what no capture holds either."""

    def name(self, message: int) -> str:
        """Return what a packet is; empty where there is one sort only."""
        return ""

    def exchange(self, message: int) -> int:
        """Return which exchange of its stream a packet belongs to; 0: a stream is one."""
        return 0

    def is_last(self, message: int) -> bool:
        """Tell whether an exchange can be over with a packet that comes back to the client."""
        return True

    def client(self, packet: WirePacket, flow: int, *, is_to_guest: bool) -> Address:
        """Return the address of the client's end, in the network 10.flow."""
        return Address(bytes((10, flow, packet.stream >> 8 & 255, packet.stream & 255)), self.port)

    def contents(self, packet: WirePacket, source: Address) -> bytes:
        """Return what follows the UDP header, as far as it is kept."""
        return b""

    def in_ip(self, packet: WirePacket, source: Address, target: Address) -> tuple[int, bytes, int]:
        """Return what an IP packet carries: the protocol's number, the bytes that are kept, and how many there are."""
        contents = self.contents(packet, source)
        length = max(packet.size_bytes - self.framing_bytes - ETHERNET_AND_IP_BYTES, UDP_BYTES + len(contents))
        head = struct.pack("!HHHH", source.port, target.port, min(length, _MOST_IN_IP), 0)
        return _UDP, head + contents, length
