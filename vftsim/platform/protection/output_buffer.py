"""Outputs that wait for a state: those issued since the last state was taken, those of a state that is under way.

Rule (Remus, NSDI 2008; Linux ``sch_plug``): outputs go into a bounded queue; taking a state puts a barrier into it;
when the backup has acknowledged that state everything before the barrier leaves, in order, as a burst.  What finds the
queue full is dropped.

``spacing`` is the time that the queue needs from one packet of a burst to the next: 0, the burst leaves as its line has
room for it, at once as far as half of its transmit queue goes, then at its rate; more, a crash can come between two.
Linux' plug is the queue of a device, which takes from it what it can send; behind a bridge a queue of 1000 packets
follows (``txqueuelen``), each up to 64 KiB with segmentation offload.  Simplification: that one is never full, and a
packet that waits for its line keeps those behind it from theirs.
"""

from vftsim.kernel import BESIDE, Chain, Engine, EventKind, Fifo, Record, Sim, Table, at, timer
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import links, transmission_ns
from vftsim.platform.io.packet import copy, discard, drop, drops, packet_list, packets, ports
from vftsim.platform.protection.guard import Guard, guarded_ports, guards, port_list, release

_ENTITY = 5


class HeldOutput(Record):
    """An output that waits since ``issued_ns``."""

    link: int
    packet: int
    issued_ns: int


class OutputBuffer(Record):
    """The outputs of one guard: ``fresh`` since the last barrier, ``sealed`` before it, ``leaving`` acknowledged.

    ``full`` is the row of ``drops`` of those beyond ``most``.  ``hold_ns`` sums the waits of the ``released`` ones;
    ``lost`` died with the primary; ``peak`` is the most there were at a time.
    """

    most: int
    full: int
    spacing_ns: int
    fresh: Fifo
    sealed: Fifo
    leaving: Fifo
    next_leaves: int
    issued: int
    released: int
    lost: int
    hold_ns: int
    longest_ns: int
    peak: int


class BurstLine(Record):
    """The line of a card, kept at the guest's first port there: what has left is on it until ``free_ns``.

    Unless somebody else sends.
    """

    free_ns: int


held_outputs = Table("held_outputs", HeldOutput, 1 << 18, "make the output queue or the epochs shorter")
output_buffers = Table("output_buffers", OutputBuffer, beside=guards)
burst_lines = Table("burst_lines", BurstLine, beside=ports)
held_list = Chain(held_outputs, "link")


def install(engine: Engine, guard: int, most: int, spacing_ns: int) -> None:
    """Set up the buffer of a guard for ``most`` packets."""
    buffer = engine.rows(output_buffers)[guard]
    buffer.most = most
    buffer.spacing_ns = spacing_ns
    buffer.full, _ = engine.add(drops)


def holds(engine: Engine, guard: int) -> dict[str, int]:
    """Return what became of the outputs of a guard."""
    buffer = engine.rows(output_buffers)[guard]
    return {
        "held_ns": int(buffer.hold_ns),
        "released": int(buffer.released),
        "longest_held_ns": int(buffer.longest_ns),
        "most_outputs_held": int(buffer.peak),
        "outputs_dropped": int(engine.rows(drops)[int(buffer.full)].count),
    }


def forget_extremes(engine: Engine, guard: int) -> None:
    """Have the longest wait and the most outputs begin with those that wait now."""
    buffer = engine.rows(output_buffers)[guard]
    buffer.longest_ns = 0
    buffer.peak = int(buffer.fresh.length) + int(buffer.sealed.length) + int(buffer.leaving.length)


def held(buffer: OutputBuffer) -> int:
    """Count the outputs that wait."""
    return buffer.fresh.length + buffer.sealed.length + buffer.leaving.length


def hold(sim: Sim, guard: Guard, packet: int, buffer: OutputBuffer = BESIDE) -> None:
    """Take in an output."""
    if held(buffer) >= buffer.most:
        drop(sim, packet, buffer.full)
        # Nobody will issue it: which of those that can be derived are missing is not known any more.
        guard.audit.issues_all = False
        return
    buffer.issued += 1
    row = held_outputs.new(sim, packet=packet, issued_ns=sim.now_ns)
    held_list.push(sim, buffer.fresh, row)
    buffer.peak = max(buffer.peak, held(buffer))


def count_unheld(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> None:
    """Count an output that need not wait."""
    buffer.issued += 1
    buffer.released += 1


def seal(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> None:
    """Put a barrier behind what has been issued so far."""
    while buffer.fresh.length > 0:
        held_list.push(sim, buffer.sealed, held_list.pop(sim, buffer.fresh))


def release_sealed(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> None:
    """Let everything before the barrier leave, behind what is leaving already."""
    while buffer.sealed.length > 0:
        held_list.push(sim, buffer.leaving, held_list.pop(sim, buffer.sealed))
    # A burst that is under way sends them in its turn.
    if buffer.next_leaves == 0:
        send_next(sim, guard, buffer)


def release_everything(sim: Sim, guard: Guard) -> None:
    """Let everything leave that waits: there is no backup to wait for."""
    # Through the barrier, so that fresh ones leave behind those that are sealed or leaving already.
    seal(sim, guard)
    release_sealed(sim, guard)


def copy_outputs(sim: Sim, held: Fifo, copies: Fifo) -> None:
    """Put copies of outputs that wait into a list of packets."""
    for held_output in held_outputs.listed(sim, held_list, held):
        packet_list.push(sim, copies, copy(sim, held_output.packet))


def send_next(sim: Sim, guard: Guard, buffer: OutputBuffer) -> None:
    """Send the first of those that leave, and where nothing spaces them all for which their line has room."""
    wait_ns = 0
    while wait_ns == 0 and buffer.leaving.length > 0:
        wait_ns = wait_for_line_ns(sim, guard, buffer, held_outputs(sim)[buffer.leaving.first].packet)
        if wait_ns == 0:
            release_first(sim, buffer)
            # Planned behind the last one too: what is acknowledged meanwhile keeps its distance from it.
            wait_ns = buffer.spacing_ns
    if wait_ns > 0:
        buffer.next_leaves = at(sim, sim.now_ns + wait_ns, EventKind.CHANNEL, _ENTITY, on_next, guard.row)


def wait_for_line_ns(sim: Sim, guard: Guard, buffer: OutputBuffer, packet: int) -> int:
    """Return how long until a packet's line has room for it behind those before; 0: it has, and the packet takes it."""
    port = ports(sim)[packets(sim)[packet].port]
    if port.card == 0 or buffer.spacing_ns > 0:
        return 0
    link = links(sim)[cards(sim)[port.card].from_host]
    sending_ns = transmission_ns(link, packets(sim)[packet].size_bytes)
    line = burst_lines(sim)[first_port(sim, guard, port.card)]
    # As if nobody else sent, who could keep it waiting for ever: what others send may make the queue drop it.
    end_ns = max(sim.now_ns, line.free_ns) + sending_ns
    # Half of the queue: a driver domain brings in batches what has left.
    wait_ns = max(0, end_ns - sim.now_ns - max(link.queue_ns // 2, sending_ns))
    if wait_ns == 0:
        line.free_ns = end_ns
    return wait_ns


def first_port(sim: Sim, guard: Guard, card: int) -> int:
    """Return the first port of a guest on a card."""
    row = guard.ports.first
    while ports(sim)[row].card != card:
        row = guarded_ports(sim)[row].next_row
    return row


@timer(output_buffers, "next_leaves")
def on_next(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> None:
    """The next packet of a burst leaves."""
    send_next(sim, guard, buffer)


def release_first(sim: Sim, buffer: OutputBuffer) -> None:
    """Release the first of those that leave."""
    row = held_list.pop(sim, buffer.leaving)
    wait_ns = sim.now_ns - held_outputs(sim)[row].issued_ns
    buffer.released += 1
    buffer.hold_ns += wait_ns
    buffer.longest_ns = max(buffer.longest_ns, wait_ns)
    packet = held_outputs(sim)[row].packet
    # Last, when the buffer is whole again: whatever the packet causes may issue outputs of this guest.
    held_outputs.free(sim, row)
    release(sim, packet)


def lose(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> None:
    """Lose everything with the host that it is in, a burst that is leaving included."""
    # A token of 0 matches no event: the next packet of a burst does not leave.
    buffer.next_leaves = 0
    for row in port_list.rows(sim, guard.ports):
        burst_lines(sim)[row].free_ns = 0
    lose_list(sim, buffer, buffer.leaving)
    lose_unacknowledged(sim, guard)


def lose_unacknowledged(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> None:
    """Lose what waits for a state."""
    lose_list(sim, buffer, buffer.sealed)
    lose_list(sim, buffer, buffer.fresh)


def lose_list(sim: Sim, buffer: OutputBuffer, outputs: Fifo) -> None:
    while outputs.length > 0:
        row = held_list.pop(sim, outputs)
        buffer.lost += 1
        discard(sim, held_outputs(sim)[row].packet)
        held_outputs.free(sim, row)


def outputs_held(sim: Sim, guard: Guard) -> int:
    """Count the outputs of a guard that wait."""
    return held(output_buffers(sim)[guard.row])


def unaccounted(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> int:
    """Return how many outputs were neither released nor lost nor wait: 0."""
    return buffer.issued - buffer.released - buffer.lost - held(buffer)
