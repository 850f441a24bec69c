"""Records of a farm: messages, its servers, what they do for a message, requests between them, and calls.

SIP (RFC 3261) as far as a proxy sees it; provisional and final answers are messages of their own, because each costs
the proxy a pass.  Within the farm: a lookup (account and address of record), an update of a registration, an operation
on a file (NFS), and the answer to any of them.
"""

from enum import IntEnum
from typing import Annotated

from vftsim.kernel import Fifo, Record, Row, Table
from vftsim.platform.io.packet import application, packets, workload
from vftsim.workloads.common import ProgramRow, WorkloadRow
from vftsim.workloads.gaps import Gaps

farm_server = application.kind("farm_server")
farm_calls = workload.kind("farm_calls")
farm_request = workload.kind("farm_request")
"""Packets between servers: to their flow the path from server to server is what a workload's client is."""

REGISTERING, INVITING, PROCEEDING, ESTABLISHED, ENDING = 1, 2, 3, 4, 5
"""What a caller waits for: answer to REGISTER, anything to INVITE, the answer, time to hang up, answer to BYE."""
ASKED, TAKEN, ANSWERED = 1, 2, 3
"""How far a request between servers is."""
GIVE_UP = 64
"""Times T1: timers B, F and H."""


class Message(IntEnum):
    """A message; the first seven come from user agents, the next two go to them, the rest stays inside."""

    REGISTER = 1
    INVITE = 2
    RINGING = 3
    OK = 4
    ACK = 5
    BYE = 6
    BYE_OK = 7
    TRYING = 8
    REGISTERED = 9
    LOOKUP = 10
    UPDATE = 11
    FILE = 12
    ANSWER = 13


KINDS = 16
"""A packet carries a message that is tagged: serial x ``KINDS`` + message; below 0 on the path from a balancer to the
server that it has chosen, where no client sees it."""


def message_of(tagged: int) -> int:
    """Return the message without its tag."""
    return tagged % KINDS


def is_forwarded(tagged: int) -> bool:
    """Tell whether a packet is on its path from a balancer to the server that it has chosen."""
    return tagged < 0


def serial_of(tagged: int) -> int:
    """Return the serial number of the call or request that a packet belongs to."""
    return tagged // KINDS


class FarmServer(ProgramRow):
    """A server.

    ``active`` threads have a message, which is ``in_hand``.  ``operations`` is what it does by message, ``first_route``
    and ``routes`` where a balancer forwards calls to (``turn`` is whose turn it is).  ``begun`` numbers what it takes
    in hand, ``boots`` counts the times it lost its memory.  Counts are of what came after ``warmup_ns``; ``busy_ns`` is
    the time of threads that had a message, of messages that have left.
    """

    flow: int
    disk: int
    threads: int
    active: int
    backlog: int
    waiting: Fifo
    in_hand: Fifo
    idle: Fifo
    operations: Annotated[list[int], KINDS]
    first_route: int
    routes: int
    turn: int
    repeat_share: float
    retry_ns: int
    begun: int
    boots: int
    socket_full: int
    lost_in_boot: int
    warmup_ns: int
    handled: int
    busy_ns: int
    asked: int
    disk_operations: int


class Operation(Row):
    """What a message makes a server do; it sends ``outputs`` packets on average, which cost ``send_ns`` on its path.

    ``disk_due`` is what is left of a fraction of a disk operation.
    """

    demand_ns: int
    demands: int
    outputs: float
    send_ns: float
    disk_operations: float
    disk_due: float
    first_ask: int


class Ask(Record):
    """A request that an operation makes of other servers, ``times`` on average; ``next_ask`` follows it."""

    next_ask: int
    message: int
    size_bytes: int
    times: float
    due: float
    first_route: int
    routes: int
    turn: int


class Visit(Record):
    """A packet in a server's hand: how far it is.  ``serial`` 0: it is in nobody's hand.

    ``forward_to`` is the port of the server to which a balancer sends it on.
    """

    begin_ns: int
    server: int
    serial: int
    operation: int
    is_repeat: bool
    disk_left: int
    ask: int
    ask_left: int
    forward_to: int


class Request(Row):
    """A request of a server to another, until its answer has come back.

    ``uses`` is its serial number, ``parent`` the packet in the asker's hand for which it is made.
    """

    uses: int
    state: int
    asker: int
    parent: int
    parent_serial: int
    message: int
    size_bytes: int
    from_port: int
    to_port: int
    timer: int


class FarmLoad(WorkloadRow):
    """Calls of one workload; what began before ``warmup_ns`` is not counted beyond ``begun``, ``active`` and ``ended``.

    Their user agents run in ``agents`` domains from ``first_agent`` on (0: on machines of their own), where a message
    takes ``message_cost_ns``.  ``earlier_ns`` is until when calls end that were established before the run, so many
    calls after they began as begin in ``held`` gaps.
    ``answered`` are the answers that came after the warm-up, ``messages`` what user agents sent after it, ``repeated``
    those of them that they had sent before.
    """

    gaps: Gaps
    earlier_gaps: Gaps
    held: int
    registered: bool
    is_balanced: bool
    retransmits: bool
    hold_ns: int
    earlier_ns: int
    t1_ns: int
    t2_ns: int
    message_size_bytes: int
    first_agent: int
    agents: int
    message_cost_ns: int
    warmup_ns: int
    begun: int
    earlier: int
    active: int
    most_active: int
    ended: int
    offered: int
    answered: int
    failed: int
    messages: int
    repeated: int
    dropped: int
    responses: int
    registrations: int


class Call(Row):
    """A call, at both ends.

    ``uses`` is its serial number, ``stage`` what the caller waits for (0: nobody's row).  ``front`` is the port of the
    server that handles it (0: not chosen), ``former`` that of call ``former_serial``, which had the row before and
    whose messages may come now.  ``known`` tells that server and its boot that the INVITE of the call ``known_serial``
    has been taken, which may have had the row before; ``late`` and ``late_serial`` are the same of one that had it
    still earlier, whose INVITEs may come now.
    The caller asked first at ``asked_ns`` for what it waits for, repeats it after ``wait_ns``, and rechecks at
    ``due_ns``; an event is planned for ``timer_ns``.  ``number`` counts a workload's calls as they began, from 1 for
    the first of the run, 0 for the last before it: their turns among the user agents' domains, and of those from before
    the run among a balancer's servers.
    An INVITE that the server ``forwarded_by`` forwarded first at ``forwarded_ns`` is sent again by ``forward_timer``,
    ``forward_wait_ns`` after the last time (0: it is answered).
    """

    uses: int
    load: int
    stage: int
    front: int
    former: int
    former_serial: int
    number: int
    known: int
    known_serial: int
    late: int
    late_serial: int
    start_ns: int
    asked_ns: int
    wait_ns: int
    due_ns: int
    timer_ns: int
    timer: int
    is_answered: bool
    is_acknowledged: bool
    callee_wait_ns: int
    callee_asked_ns: int
    callee_timer: int
    forwarded_by: int
    forwarded_ns: int
    forward_wait_ns: int
    forward_timer: int


servers = Table("farm_servers", FarmServer, 4096)
operations = Table("farm_operations", Operation, 1 << 16)
asks = Table("farm_asks", Ask, 1 << 16)
visits = Table("farm_visits", Visit, beside=packets)
requests = Table("farm_requests", Request, 1 << 20, "lower the load or the number of threads")
loads = Table("farm_loads", FarmLoad, 1024)
calls = Table("farm_calls", Call, 1 << 21, "lower the rate of calls or the time for which they are held")
