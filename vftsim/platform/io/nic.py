"""A network interface: bounded receive ring, interrupt coalescing, arrivals from outside.

Receive: each packet takes a descriptor of the receive ring; with none free it is lost in the NIC.
Interrupt coalescing: the interrupt is raised ``time`` after the first packet or at the ``packets``-th
packet, whichever comes first; (0, 1) raises it for every packet.  While the driver polls (NAPI,
Linux 2.6) the interrupt is masked; it is unmasked when a poll has found the ring empty.

Arrivals that do not depend on what the host does are drawn beforehand and admitted to the ring when
somebody looks (a poll or the release of descriptors), each at its instant and in order: the ring's
state at any look is the same as if each arrival had been an event.  Only interrupts are events, and now and then a
look for its own sake.  A loss is noted when the driver looks.  Packets that a network delivers
(:func:`~vftsim.platform.io.stage.take_in`)
go the same way, at their events.

Sizes: 256 receive descriptors are the default of e1000; tg3 has 200, bnx2 255 (Linux 2.6.18 drivers).
Left out: the transmit ring (a gigabit link carries 40,000 small packets a second at 8 % load).
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from vftsim.kernel import EventKind, Failure, Fifo, Record, Row, Sim, Table, at, event, fail
from vftsim.platform.io.marks import ARRIVED
from vftsim.platform.io.packet import drop, flows, mark, packet_list, packets, ports
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs

COMING = 1 << 15
"""Arrivals drawn beforehand that an interface holds."""

LOW = COMING // 2
LOOK_AFTER = COMING // 4
"""Arrivals after which a NIC that nobody looked at admits them by itself, so that more can be drawn."""

MOST_UNNOTED = 1 << 18
MOST_NICS = 256

STARVED = Failure("more packets arrived at one instant than a network interface holds beforehand; lower the load")


class NicSpec(Spec):
    """A network interface of the host."""

    receive_ring_packets: int = Field(
        256, ge=1, le=65536, description="Receive descriptors. Default: e1000 driver of Linux 2.6.18."
    )
    coalescing_time: DurationNs = Field(0, description="Longest wait for an interrupt after the first packet; 0: none.")
    coalescing_packets: int = Field(
        1,
        ge=1,
        le=1024,
        description="Packets after which the interrupt comes at once. Default: Patnaik 2009, 6.3.5.",
    )

    def without_effect(self) -> Mapping[str, str]:
        """Return why parameters have no effect with the others' values, by key."""
        if self.coalescing_packets == 1:
            return {"coalescing_time": "with coalescing_packets 1 the interrupt comes at once"}
        if self.coalescing_time == 0:
            return {"coalescing_packets": "with coalescing_time 0 no interrupt waits for more packets"}
        return {}


class Nic(Row):
    """The receive side of a network interface.

    ``interrupt`` is the token of the planned interrupt; ``is_unmasked`` while the driver waits for one.
    ``first_ns`` is when the oldest packet in the ring arrived.  ``unnoted`` packets are lost and not yet
    counted.  One that ``is_cut`` off loses what arrives, which counts in the row ``down`` of ``drops``.
    """

    number: int
    stage: int
    capacity: int
    occupied: int
    packets: Fifo
    unnoted: Fifo
    first_ns: int
    admitted: int
    interrupts: int
    interrupt: int
    interrupt_ns: int
    is_unmasked: bool
    coalescing_time_ns: int
    coalescing_packets: int
    drop_row: int
    is_cut: bool
    down: int


class Arrivals(Record):
    """What comes to an interface, or is sent to a host, in order of time; ``is_complete``: no more will be drawn."""

    time_ns: Annotated[list[int], COMING]
    flow: Annotated[list[int], COMING]
    stream: Annotated[list[int], COMING]
    taken: int
    filled: int
    is_complete: bool


nics = Table("nics", Nic, MOST_NICS)
arrivals = Table("arrivals", Arrivals, beside=nics)


def catch_up(sim: Sim, nic: Nic) -> None:
    """Admit or drop what has arrived by now, as the driver sees it."""
    admit_arrivals(sim, nic)
    note_losses(sim, nic)


def note_losses(sim: Sim, nic: Nic) -> None:
    """Count the packets that found no descriptor."""
    while nic.unnoted.length > 0:
        drop(sim, packet_list.pop(sim, nic.unnoted), nic.drop_row)


def admit_arrivals(sim: Sim, nic: Nic) -> None:
    """Admit what has arrived by now; losses are noted later, unless they are very many."""
    coming = arrivals(sim)[nic.row]
    while coming.taken < coming.filled:
        slot = coming.taken % COMING
        if coming.time_ns[slot] > sim.now_ns:
            break
        coming.taken += 1
        time_ns = coming.time_ns[slot]
        admit(sim, nic, new_packet(sim, coming.flow[slot], coming.stream[slot], time_ns), time_ns)
    if coming.is_complete:
        return
    if coming.taken == coming.filled:
        # Time has passed what was drawn: there may have been arrivals that nobody knows of.
        fail(sim, STARVED)
    if coming.filled - coming.taken < LOW:
        sim.wants_input = True
    if nic.unnoted.length > MOST_UNNOTED:
        note_losses(sim, nic)


def new_packet(sim: Sim, flow: int, stream: int, sent_ns: int) -> int:
    row = packets.new(sim)
    packet = packets(sim)[row]
    packet.flow = flow
    packet.port = flows(sim)[flow].port
    packet.ring = 0
    packet.stream = stream
    packet.entity = stream
    packet.message = 0
    packet.size_bytes = flows(sim)[flow].size_bytes
    packet.sent_ns = sent_ns
    packet.left_bytes = 0
    mark(sim, row, ARRIVED, 0, sent_ns, 0)
    return row


def admit(sim: Sim, nic: Nic, packet: int, time_ns: int) -> None:
    """Give a packet that arrives at ``time_ns`` a descriptor; without one it is lost."""
    nic.admitted += 1
    if nic.is_cut:
        drop(sim, packet, nic.down)
        return
    if ports(sim)[packets(sim)[packet].port].dead_card != 0:
        drop(sim, packet, ports(sim)[packets(sim)[packet].port].dead_card)
        return
    # Counted only when the driver looks (note_losses()).
    if nic.occupied >= nic.capacity:
        packet_list.push(sim, nic.unnoted, packet)
        return
    nic.occupied += 1
    if nic.packets.length == 0:
        nic.first_ns = time_ns
    packet_list.push(sim, nic.packets, packet)


def next_interrupt_ns(sim: Sim, nic: Nic) -> int:
    """Return when the interrupt comes for what waits and what is known to come, -1 if nothing does."""
    coming = arrivals(sim)[nic.row]
    coming_packets = coming.filled - coming.taken
    first_ns = nic.first_ns
    if nic.packets.length == 0:
        if coming_packets == 0:
            return -1
        first_ns = coming.time_ns[coming.taken % COMING]
    if nic.coalescing_time_ns == 0 or nic.coalescing_packets == 1:
        return max(first_ns, sim.now_ns)
    at_ns = first_ns + nic.coalescing_time_ns
    # As many as make the interrupt come at once; those that are known to come tell when.
    missing = nic.coalescing_packets - nic.packets.length
    if missing <= 0:
        return sim.now_ns
    if coming_packets >= missing:
        at_ns = min(at_ns, coming.time_ns[(coming.taken + missing - 1) % COMING])
    return max(at_ns, sim.now_ns)


def plan_look(sim: Sim, nic: Nic) -> None:
    """Plan to admit arrivals by itself, before those drawn beforehand run out."""
    coming = arrivals(sim)[nic.row]
    last = min(coming.taken + LOOK_AFTER, coming.filled) - 1
    if last >= coming.taken:
        at_ns = max(coming.time_ns[last % COMING], sim.now_ns)
        at(sim, at_ns, EventKind.DEVICE, MOST_NICS + nic.number, on_look, nic.row)


@event
def on_look(sim: Sim, nic: Nic) -> None:
    """Admit what has arrived, whoever else looks."""
    admit_arrivals(sim, nic)
    plan_look(sim, nic)
