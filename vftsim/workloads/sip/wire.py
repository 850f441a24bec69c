"""SIP messages on the wire (RFC 3261)."""

from vftsim.workloads.sip.messages import Message
from vftsim.workloads.wire import ETHERNET_AND_IP_BYTES, UDP_BYTES, Address, Wire, WirePacket

_ANSWERS = {
    Message.RINGING: ("180 Ringing", Message.INVITE),
    Message.OK_INVITE: ("200 OK", Message.INVITE),
    Message.OK_BYE: ("200 OK", Message.BYE),
    Message.OK_MESSAGE: ("200 OK", Message.MESSAGE),
    Message.UNAUTHORIZED: ("401 Unauthorized", Message.REGISTER),
    Message.UNAUTHORIZED_AGAIN: ("401 Unauthorized", Message.REGISTER),
    Message.OK_REGISTER: ("200 OK", Message.REGISTER),
    Message.TRYING: ("100 Trying", Message.INVITE),
    Message.REQUEST_TIMEOUT: ("408 Request Timeout", Message.INVITE),
}
"""Number and reason of an answer, and the request whose method stands in its CSeq."""

_OF_CALLEE = (Message.RINGING, Message.OK_INVITE, Message.OK_BYE, Message.OK_MESSAGE)
_TO_CALLEE = (Message.INVITE, Message.ACK, Message.BYE, Message.MESSAGE)
_SECOND = {Message.REGISTER_CREDENTIALS, Message.UNAUTHORIZED_AGAIN, Message.BYE, Message.OK_BYE}
"""Messages of the second transaction of a registration or a call: their CSeq is 2."""


class SipWire(Wire):
    """The Call-ID says which attempt a message belongs to.

    ``is_challenging``: a registration is accepted in its second transaction, with credentials; else in its first.
    """

    port = 5060
    framing_bytes = 0

    def __init__(self, *, is_challenging: bool) -> None:
        self._second = _SECOND | {Message.OK_REGISTER} if is_challenging else _SECOND

    def name(self, message: int) -> str:
        """Return the method, of an answer behind its number and reason."""
        answer, method = _answer_and_method(message)
        return f"{answer} ({method})" if answer else method

    def client(self, packet: WirePacket, flow: int, *, is_to_guest: bool) -> Address:
        """10.f.0.1 calls, and 10.f.0.2 is called."""
        is_callee = packet.message in (_OF_CALLEE if is_to_guest else _TO_CALLEE)
        return Address(bytes((10, flow, 0, 2 if is_callee else 1)), self.port)

    def contents(self, packet: WirePacket, source: Address) -> bytes:
        """Return the message, filled up to its size."""
        (answer, method), user = _answer_and_method(packet.message), f"user{packet.entity}"
        lines = [
            f"SIP/2.0 {answer}" if answer else f"{method} sip:{user}@vftsim.invalid SIP/2.0",
            f"Via: SIP/2.0/UDP {'.'.join(map(str, source.ip))};branch=z9hG4bK{packet.entity}.{method}",
            f"From: <sip:caller{packet.entity}@vftsim.invalid>;tag={packet.entity}",
            f"To: <sip:{user}@vftsim.invalid>",
            f"Call-ID: {packet.entity}@vftsim.invalid",
            f"CSeq: {2 if packet.message in self._second else 1} {method}",
            "Max-Forwards: 70",
            "Content-Length: 0",
        ]
        used = ETHERNET_AND_IP_BYTES + UDP_BYTES + sum(len(line) + 2 for line in lines) + 2
        if (missing := packet.size_bytes - used) > len("Subject: \r\n"):
            lines.insert(-1, "Subject: " + "-" * (missing - len("Subject: \r\n")))
        return "\r\n".join([*lines, "", ""]).encode()


def _answer_and_method(message: int) -> tuple[str, str]:
    """Return number and reason, empty for a request, and the method."""
    answer, request = _ANSWERS.get(Message(message), ("", Message(message)))
    return answer, "REGISTER" if request is Message.REGISTER_CREDENTIALS else request.name
