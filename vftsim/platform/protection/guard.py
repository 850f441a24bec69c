"""Protection at the port: a guard sees every input of its domain and holds its outputs.

The promise of every mechanism is the output-commit rule: nothing becomes visible outside before the backup can
reproduce the state that produced it.  A port without a guard (row 0) lets everything through.

Here is what a packet meets on its path; what faults and the start of protection ask of a mechanism: :mod:`.mechanism`.
"""

from vftsim.kernel import Chain, Fifo, Record, Row, Sim, Sort, Table, entry
from vftsim.platform.io.marks import PUT_OUT, RELEASED
from vftsim.platform.io.packet import Port, applications, discard, drop, mark, packet_list, packets, ports, send
from vftsim.platform.io.ring import rings, wait_for_slot
from vftsim.platform.protection import audit
from vftsim.platform.protection.audit import Audit

LOST = -1
"""Answer of :func:`take_note` for a packet that no surviving replica will know of."""


class Guard(Row):
    """A mechanism at work for one domain, and what it has done to that machine.

    ``mechanism`` is its kind; a kind keeps its fields in a table beside this one.  ``reasons`` are the causes, a
    bit for each, for which the machine stands still at present; ``stopped_ns`` is how long it has stood still in stops
    that are over, ``resumed_ns`` when the last one ended, ``pause_end_ns`` when the last pause is over that has
    begun.  A machine that is ``dead`` has lost its host.  ``requests`` to disks wait until the mechanism lets them
    go.  Protection ``has_begun`` when it has been turned on once.

    Outputs that find the path out full when they are released wait for room, ``most_waiting`` at most; the others count
    in the row ``no_room`` of ``drops``.  ``offered`` is the output about which a mechanism is being asked.  ``exits``
    counts those to the hypervisor that packets have caused at the ports, ``request_pages`` the pages they have dirtied.
    ``card_lost`` is the row of ``drops`` of packets that a dead network card has not carried.  ``foretold`` is what was
    noted before its instant.  ``audit`` is what the auditor of its promise knows.
    """

    mechanism: int
    domain: int
    ports: Fifo
    programs: Fifo
    disks: Fifo
    requests: Fifo
    dead: bool
    has_begun: bool
    stopped: bool
    reasons: int
    stopped_since_ns: int
    stopped_ns: int
    resumed_ns: int
    pause_end_ns: int
    most_waiting: int
    no_room: int
    card_lost: int
    offered: int
    exits: int
    request_pages: float
    foretold: Fifo
    tallies: Fifo
    audit: Audit


class Guarded(Record):
    """A link to the next port or application of one guard; of an application also ``guard``, that guard's row."""

    next_row: int
    guard: int


FRAMING_BYTES = 24
"""Of a packet on the wire: preamble, gap and check sequence, which enter no memory (IEEE 802.3)."""

guards = Table("guards", Guard, 256)
guarded_ports = Table("guarded_ports", Guarded, beside=ports)
guarded_programs = Table("guarded_programs", Guarded, beside=applications)
port_list = Chain(guarded_ports, "next_row")
program_list = Chain(guarded_programs, "next_row")
protection = Sort("protection mechanism", by="mechanism")


@protection.slot
def note_input(sim: Sim, guard: Guard, size_bytes: int) -> int:
    """Take note of a packet that enters the guest; return its CPU cost in ns, or :data:`LOST`."""
    return 0


@protection.slot
def hold_output(sim: Sim, guard: Guard, packet: int) -> None:
    """Hold a packet that the guest sends; :func:`release` it when it may leave.

    A mechanism that holds nothing at present releases it here; if the path out is full, the packet stays the sender's,
    who is asked again when there is room.
    """
    release(sim, packet)


@protection.slot
def must_wait(sim: Sim, guard: Guard) -> bool:
    """Tell whether a request of the guest to a disk has to wait, until the mechanism lets all go that wait."""
    return False


@protection.slot
def note_read(sim: Sim, guard: Guard, size_bytes: int) -> int:
    """Take note that the guest asks a disk to read; return when a replica has read the same by itself, 0: it does not.

    :func:`note_transfer` is told that at the end of the read.
    """
    return 0


@protection.slot
def note_transfer(sim: Sim, guard: Guard, size_bytes: int, is_read: bool, replica_ns: int) -> int:
    """Take note that a disk operation of the guest ends; return its CPU cost in ns.

    ``replica_ns`` is the answer of :func:`note_read`, 0 where nothing was read.
    """
    return 0


@protection.slot
def note_write(sim: Sim, guard: Guard, size_bytes: int) -> None:
    """Take note that a disk has written what the guest wanted written."""


@protection.slot
def before_stop(sim: Sim, guard: Guard) -> None:
    """Bring up to date what depends on the machine running: it is about to be stopped."""


def take_note(sim: Sim, port: Port, size_bytes: int) -> int:
    """Tell the port's guard, if any, of a packet that enters the guest; return its CPU cost in ns, or :data:`LOST`."""
    if port.guard == 0:
        return 0
    guard = guards(sim)[port.guard]
    guard.exits += port.exits_in
    # Owed before the mechanism is asked, whose entry pays it; taken back if it writes none.
    owed_bytes = max(0, size_bytes - FRAMING_BYTES) if guard.audit.hears else 0
    audit.owe(guard.audit, owed_bytes)
    cost_ns = note_input(sim, guard, size_bytes)
    if cost_ns != LOST:
        guard.request_pages += port.pages_in
        audit.take_in(sim, guard.audit)
    else:
        audit.owe(guard.audit, -owed_bytes)
    return cost_ns


def put_out(sim: Sim, port: Port, packet: int) -> bool:
    """Send a packet of the guest through the guard, if any; False if the path has no room and nothing holds it.

    Whoever is refused waits (:func:`~vftsim.platform.io.ring.wait_for_slot`) and comes here again.

    Timers of a dead machine's programs may still go off in the simulation; what they send reaches nobody.
    """
    mark(sim, packet, PUT_OUT, 0, sim.now_ns, 0)
    if port.guard == 0:
        return send(sim, port, packet)
    guard = guards(sim)[port.guard]
    packets(sim)[packet].port = port.row
    # Before the mechanism sees it, which may let it leave at once.
    audit.date_output(sim, guard.audit, packets(sim)[packet])
    if guard.dead:
        discard(sim, packet)
        return True
    guard.exits += port.exits_out
    # release() takes it back where the way is full and nothing may wait there: it stays the sender's then.
    guard.offered = packet
    hold_output(sim, guard, packet)
    is_taken = guard.offered == packet
    guard.offered = 0
    return is_taken


def is_dead(sim: Sim, port: Port) -> bool:
    """Tell whether the machine behind a port has lost its host: what its timers do in the simulation, nobody does."""
    return port.guard != 0 and guards(sim)[port.guard].dead


def release(sim: Sim, packet: int) -> None:
    """Let a packet go its way; one that was held and finds no room there waits for it, or is lost to a full queue."""
    port = ports(sim)[packets(sim)[packet].port]
    mark(sim, packet, RELEASED, 0, sim.now_ns, 0)
    guard = guards(sim)[port.guard]
    # Read before it leaves: afterwards the row may be another packet's.
    flow, date_ns, issue = packets(sim)[packet].flow, packets(sim)[packet].date_ns, packets(sim)[packet].issue
    wrong = audit.is_breach(sim, guard.audit, date_ns, issue)
    if send(sim, port, packet):
        audit.judge_output(sim, guard.audit, flow, date_ns, issue, wrong)
    elif guard.offered == packet:
        guard.offered = 0
    elif rings(sim)[port.send_ring].waiting.length < guard.most_waiting:
        audit.judge_output(sim, guard.audit, flow, date_ns, issue, wrong)
        # Sender 0: no program sleeps for it, and it leaves by itself when there is room.
        wait_for_slot(sim, port, packet, 0)
    else:
        audit.lose_output(guard.audit, issue, wrong)
        drop(sim, packet, guard.no_room)


def release_all(sim: Sim, waiting: Fifo) -> None:
    """Release a list of packets in their order."""
    while waiting.length > 0:
        release(sim, packet_list.pop(sim, waiting))


def discard_all(sim: Sim, unsent: Fifo) -> None:
    """Drop a list of packets that nobody will send."""
    discard_all_but(sim, unsent, 0)


def discard_all_but(sim: Sim, unsent: Fifo, most: int) -> None:
    """Drop packets that nobody will send from a list, all but so many that came last."""
    while unsent.length > most:
        discard(sim, packet_list.pop(sim, unsent))


@entry
def guard_port(sim: Sim, guard: int, port: int) -> None:
    """Put a port under a guard."""
    ports(sim)[port].guard = guard
    port_list.push(sim, guards(sim)[guard].ports, port)


@entry
def guard_program(sim: Sim, guard: int, program: int) -> None:
    """Tell a guard of an application of its domain."""
    guarded_programs(sim)[program].guard = guard
    # Both ways: the program finds its guard, and the guard reaches all its programs.
    program_list.push(sim, guards(sim)[guard].programs, program)
