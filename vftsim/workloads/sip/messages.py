"""SIP messages of the benchmark's scenarios, as far as a stateful proxy and registrar sees them, and their streams.

A *touch* is one message received or sent by the server; the CPU work of a received message is
proportional to the touches it causes.  Flows (RFC 3261; plain stateful proxy over UDP, digest
authentication of registrations):

==========================  =============================================  ========
scenario                    received by the server (touches)               touches
==========================  =============================================  ========
ims_reg, ims_rereg, dereg   REGISTER (2), REGISTER with credentials (2)    4
ims_uac                     INVITE (3, with the 100), 180, 200, ACK, BYE,  13
                            200 (2 each)
ims_msgc                    MESSAGE (2), 200 (2)                           4
==========================  =============================================  ========

Re-registrations are challenged too: the smallest measured re-registration takes as long as the two
smallest halves of an initial one together.
"""

from enum import IntEnum
from typing import Annotated

from vftsim.kernel import Engine, Record, Sim, Table
from vftsim.workloads.common import new_packet


class Message(IntEnum):
    """What a datagram is; the first ten are received by the server, in the order of a scenario's demands."""

    REGISTER = 0
    REGISTER_CREDENTIALS = 1
    INVITE = 2
    RINGING = 3
    OK_INVITE = 4
    ACK = 5
    BYE = 6
    OK_BYE = 7
    MESSAGE = 8
    OK_MESSAGE = 9
    UNAUTHORIZED = 10
    OK_REGISTER = 11
    TRYING = 12
    REQUEST_TIMEOUT = 13
    UNAUTHORIZED_AGAIN = 14
    """A 401 that answers credentials."""


RECEIVED = 10

TOUCHES = (2, 2, 3, 2, 2, 2, 2, 2, 2, 2)
"""Messages received and sent by the server on account of one received message, by :class:`Message`."""

DEMAND_SLOT = (0, 1, 0, 1, 2, 3, 4, 5, 0, 1)
"""Which of an attempt's drawn demands a message uses; a retransmission uses its original's."""

DEMANDS_PER_ATTEMPT = 6

SIZE_BYTES = (650, 900, 1100, 700, 1050, 600, 650, 550, 650, 500, 700, 650, 450, 500, 700)
"""Datagram sizes with headers, by :class:`Message`; typical for SIP with SDP, an assumption that only
matters for link and logging bandwidth (the SIP traffic of the lab is about 10 Mbit/s in all)."""


class Scenario(IntEnum):
    """Scenarios of the IMS benchmark in the order of the lab's tables."""

    IMS_REREG = 0
    IMS_REG = 1
    IMS_UAC = 2
    IMS_DEREG = 3
    IMS_MSGC = 4

    @property
    def label(self) -> str:
        """Name as printed by the benchmark."""
        return self.name.lower()

    @property
    def touches(self) -> int:
        """Messages that the server receives or sends for one attempt."""
        return 13 if self is Scenario.IMS_UAC else 4


class MessageFacts(Record):
    """What holds for every message of one kind; ``slot`` is that of the drawn demands."""

    size_bytes: int
    touches: int
    slot: int


message_facts = Table("message_facts", MessageFacts, len(SIZE_BYTES) + 1, is_fixed=True)
"""Row ``1 + message``."""


def install_messages(engine: Engine) -> None:
    """Write what holds for messages into an engine's table."""
    rows = engine.rows(message_facts)
    for message, size_bytes in enumerate(SIZE_BYTES):
        rows[1 + message].size_bytes = size_bytes
        if message < RECEIVED:
            rows[1 + message].touches = TOUCHES[message]
            rows[1 + message].slot = DEMAND_SLOT[message]


class Stream(Record):
    """Messages that belong together: one scenario attempt, as messages under way know it.

    It is kept as long as anything refers to it: one of its ends, a message under way, or a timer.

    ``number`` counts streams from 1 and orders what happens to them at one instant; ``demands`` are the relative CPU
    demands of the messages that the server will receive; ``uses`` counts what refers to the stream.
    """

    number: int
    uses: int
    demands: Annotated[list[float], DEMANDS_PER_ATTEMPT]


streams = Table("sip_streams", Stream, 1 << 19, "lower the load, or let user agents give up earlier")


def add_ref(sim: Sim, stream: int) -> None:
    """Refer to a stream."""
    streams(sim)[stream].uses += 1


def drop_ref(sim: Sim, stream: int) -> None:
    """Refer to a stream no longer; it is freed when nothing does."""
    stream_record = streams(sim)[stream]
    stream_record.uses -= 1
    if stream_record.uses == 0:
        streams.free(sim, stream)


def new_message(sim: Sim, flow: int, port: int, stream: int, message: int) -> int:
    """Make the packet of a message, which refers to its stream until it ends."""
    number, size_bytes = streams(sim)[stream].number, message_facts(sim)[1 + message].size_bytes
    add_ref(sim, stream)
    return new_packet(sim, flow, port, stream, number, message, size_bytes)
