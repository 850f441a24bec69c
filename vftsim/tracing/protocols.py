"""What packets of each kind of workload mean, in the words of their protocol."""

from __future__ import annotations

from vftsim.workloads.sip.messages import Message
from vftsim.workloads.tcp.records import COUNTS
from vftsim.workloads.web.records import KINDS, PIECES

SIP_NAMES = {
    Message.REGISTER: "REGISTER", Message.REGISTER_CREDENTIALS: "REGISTER", Message.INVITE: "INVITE",
    Message.RINGING: "180 Ringing", Message.OK_INVITE: "200 OK", Message.ACK: "ACK", Message.BYE: "BYE",
    Message.OK_BYE: "200 OK", Message.MESSAGE: "MESSAGE", Message.OK_MESSAGE: "200 OK",
    Message.UNAUTHORIZED: "401 Unauthorized", Message.OK_REGISTER: "200 OK", Message.TRYING: "100 Trying",
    Message.REQUEST_TIMEOUT: "408 Request Timeout",
}  # fmt: skip
"""The first words of messages, or their numbers and reasons (RFC 3261)."""

METHODS = {
    Message.REGISTER: "REGISTER", Message.REGISTER_CREDENTIALS: "REGISTER", Message.INVITE: "INVITE",
    Message.RINGING: "INVITE", Message.OK_INVITE: "INVITE", Message.ACK: "ACK", Message.BYE: "BYE",
    Message.OK_BYE: "BYE", Message.MESSAGE: "MESSAGE", Message.OK_MESSAGE: "MESSAGE", Message.UNAUTHORIZED: "REGISTER",
    Message.OK_REGISTER: "REGISTER", Message.TRYING: "INVITE", Message.REQUEST_TIMEOUT: "INVITE",
}  # fmt: skip
"""The method that a message belongs to: that of its CSeq."""

_HTTP = ("", "SYN", "SYN ACK", "request", "reply", "FIN", "RST", "reply, last piece")


def named_message(kind: str, message: int) -> str:
    """Return what a packet of a workload of this kind is; empty where the kind has one sort of packet only."""
    if kind == "ims_bench":
        name = SIP_NAMES[Message(message)]
        return f"{name} ({METHODS[Message(message)]})" if name[0].isdigit() else name
    if kind == "bulk_tcp":
        first, count = divmod(message, COUNTS)
        return f"segments {first} to {first + count - 1}" if count else f"ACK {first}"
    if kind == "httperf":
        piece = message // KINDS % PIECES
        word = _HTTP[message % KINDS]
        return f"{word} {piece}" if word == "reply" else word
    return ""
