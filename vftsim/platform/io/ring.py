"""Bounded queues between the parts that handle a packet.

A ring has a fixed number of slots.  A slot is taken when the producer puts a packet in and is free
again when the consumer has finished the batch that holds it: the consumer of a Xen ring answers a
request (transmit) or posts a fresh buffer (receive) only then.  A packet that finds no free slot is
dropped by the producer, or the producer waits, as its mechanism has it.

Sizes (Xen, ``netif.h``): one 4 KiB page a direction, rounded down to a power of two, gives 256 slots
each way.  Left out: packets of several slots (media packets are far below one page).
"""

from vftsim.kernel import Chain, Fifo, Row, Sim, Table
from vftsim.platform.io.packet import Port, applications, go_on, packet_list, packets, ports, send


class Ring(Row):
    """A bounded ring of one consumer.

    ``occupied`` slots are taken: by ``packets``, by packets still to be filled in, by packets that the consumer
    has in its hands.  ``waiting`` are packets that wait for a slot; those of a guest that stands still
    (``is_masked``) do not get one, because their senders do not run.  ``stage`` is the
    consumer, ``next_ring`` the next ring of the same consumer.
    """

    capacity: int
    occupied: int
    packets: Fifo
    waiting: Fifo
    stage: int
    next_ring: int
    drop_row: int
    is_masked: bool


rings = Table("rings", Ring, 16_384)
ring_list = Chain(rings, "next_ring")


def keep_slot(ring: Ring) -> bool:
    """Take a slot for a packet that comes later; False if none is free."""
    if ring.occupied >= ring.capacity:
        return False
    ring.occupied += 1
    return True


def wait_for_slot(sim: Sim, port: Port, packet: int, sender: int) -> None:
    """Keep a packet that was refused until its port's ring has a free slot: its application is then told to go on.

    ``sender`` is whatever the application knows the sleeper by; 0: nobody sleeps, and the packet is sent by itself.
    """
    packets(sim)[packet].sender = sender
    packet_list.push(sim, rings(sim)[port.send_ring].waiting, packet)


def give_back(sim: Sim, ring: Ring, slots: int) -> None:
    """Free the slots of finished packets and let as many that wait go on, in order."""
    # All of them before anybody is resumed, who finds the room there is.
    ring.occupied -= slots
    serve_waiting(sim, ring)


def serve_waiting(sim: Sim, ring: Ring) -> None:
    """Let those go on for whom there is a slot."""
    # Counted anew each time: whoever goes on may take several slots, or fall asleep here again.
    while ring.waiting.length > 0 and ring.occupied < ring.capacity:
        # In order: those behind a sender that does not run wait with it.
        if ring.is_masked and packets(sim)[ring.waiting.first].sender != 0:
            return
        packet = packet_list.pop(sim, ring.waiting)
        port = ports(sim)[packets(sim)[packet].port]
        if packets(sim)[packet].sender == 0:
            send(sim, port, packet)
        else:
            go_on(sim, applications(sim)[port.application], packet)
