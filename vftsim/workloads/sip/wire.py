"""SIP messages on the wire (RFC 3261)."""

from __future__ import annotations

from vftsim.workloads.sip.messages import Message
from vftsim.workloads.wire import ETHERNET_AND_IP_BYTES, Address, Seen, Wire

_NAMES = {
    Message.REGISTER: "REGISTER",
    Message.REGISTER_CREDENTIALS: "REGISTER",
    Message.INVITE: "INVITE",
    Message.RINGING: "180 Ringing",
    Message.OK_INVITE: "200 OK",
    Message.ACK: "ACK",
    Message.BYE: "BYE",
    Message.OK_BYE: "200 OK",
    Message.MESSAGE: "MESSAGE",
    Message.OK_MESSAGE: "200 OK",
    Message.UNAUTHORIZED: "401 Unauthorized",
    Message.OK_REGISTER: "200 OK",
    Message.TRYING: "100 Trying",
    Message.REQUEST_TIMEOUT: "408 Request Timeout",
}
"""The first words of messages, or their numbers and reasons."""

_METHODS = {
    Message.REGISTER: "REGISTER",
    Message.REGISTER_CREDENTIALS: "REGISTER",
    Message.INVITE: "INVITE",
    Message.RINGING: "INVITE",
    Message.OK_INVITE: "INVITE",
    Message.ACK: "ACK",
    Message.BYE: "BYE",
    Message.OK_BYE: "BYE",
    Message.MESSAGE: "MESSAGE",
    Message.OK_MESSAGE: "MESSAGE",
    Message.UNAUTHORIZED: "REGISTER",
    Message.OK_REGISTER: "REGISTER",
    Message.TRYING: "INVITE",
    Message.REQUEST_TIMEOUT: "INVITE",
}
"""The method that a message belongs to: that of its CSeq."""

_OF_CALLEE = (Message.RINGING, Message.OK_INVITE, Message.OK_BYE, Message.OK_MESSAGE)
_TO_CALLEE = (Message.INVITE, Message.ACK, Message.BYE, Message.MESSAGE)
_SECOND = (Message.REGISTER_CREDENTIALS, Message.OK_REGISTER, Message.BYE, Message.OK_BYE)
"""Messages of the second transaction of a registration or a call: their CSeq is 2."""
_UDP_BYTES = 8


class SipWire(Wire):
    """The Call-ID says which attempt a message belongs to."""

    port = 5060

    def name(self, message: int) -> str:
        """Return the first words, of an answer with its method."""
        name = _NAMES[Message(message)]
        return f"{name} ({_METHODS[Message(message)]})" if name[0].isdigit() else name

    def client(self, packet: Seen, flow: int, *, is_to_guest: bool) -> Address:
        """10.f.0.1 calls, and 10.f.0.2 is called."""
        is_callee = packet.message in (_OF_CALLEE if is_to_guest else _TO_CALLEE)
        return Address(bytes((10, flow, 0, 2 if is_callee else 1)), self.port)

    def contents(self, packet: Seen, source: Address) -> bytes:
        """Return the message, filled up to its size."""
        message, user = Message(packet.message), f"user{packet.entity}"
        method, words = _METHODS[message], _NAMES[message]
        first = f"SIP/2.0 {words}" if words[0].isdigit() else f"{words} sip:{user}@vftsim.invalid SIP/2.0"
        lines = [
            first,
            f"Via: SIP/2.0/UDP {'.'.join(map(str, source.ip))};branch=z9hG4bK{packet.entity}.{method}",
            f"From: <sip:caller{packet.entity}@vftsim.invalid>;tag={packet.entity}",
            f"To: <sip:{user}@vftsim.invalid>",
            f"Call-ID: {packet.entity}@vftsim.invalid",
            f"CSeq: {2 if message in _SECOND else 1} {method}",
            "Max-Forwards: 70",
            "Content-Length: 0",
        ]
        used = ETHERNET_AND_IP_BYTES + _UDP_BYTES + sum(len(line) + 2 for line in lines) + 2
        if (missing := packet.size_bytes - used) > len("Subject: \r\n"):
            lines.insert(-1, "Subject: " + "-" * (missing - len("Subject: \r\n")))
        return "\r\n".join([*lines, "", ""]).encode()
