"""The guest's end of a path that has rings, while its machine is stopped, cut off the network, lost, booted again.

What others do goes on: the driver domain (or the NIC of a guest that owns one) goes on filling the guest's receive
ring while there is room and drops what finds none, and it goes on emptying the transmit ring of a guest that stands
still.  Only the guest itself does nothing: its driver takes no packet, so that nothing enters it, and its senders that
sleep for want of room are not woken.

A port that is cut off loses what stands in its receive ring, and what the network or the driver domain brings; one
that is unplugged only the latter.  What the guest has put into its transmit ring leaves, unless the machine has lost
its host: then it is lost with it.

Assumption: a host that takes a machine over has a driver domain (and device model) in the same state as the lost
host's, and what that one had in its hands leaves: both are not a matter of this guest alone.
"""

from vftsim.kernel import BESIDE, EventKind, Kind, Record, Sim, Table, at, event
from vftsim.platform.io import packet as io
from vftsim.platform.io.nic import MOST_NICS, Nic, catch_up, nics
from vftsim.platform.io.ring import Ring, rings, serve_waiting
from vftsim.platform.io.stage import Stage, batches, kick, push, stages
from vftsim.platform.protection.guard import is_dead


class GuestEnd(Record):
    """What a port has of its guest: the ``driver`` stage, which takes packets from ``nic`` or else ``receive_ring``.

    ``is_cut``: the port is off the network.  ``down`` and ``lost`` are rows of ``drops``: packets for a port that is
    cut off, and packets that the guest had in memory when its machine was lost.
    """

    driver: int
    nic: int
    receive_ring: int
    is_cut: bool
    down: int
    lost: int


guest_ends = Table("guest_ends", GuestEnd, beside=io.ports)


def stands_by_its_rings(kind: Kind) -> None:
    """Let a path of this kind be stopped and cut as this module says."""
    kind.implements(io.mask)(mask_driver)
    kind.implements(io.unmask)(unmask_driver)
    kind.implements(io.disconnect)(cut_off)
    kind.implements(io.unplug)(take_no_more)
    kind.implements(io.connect)(reconnect)
    kind.implements(io.forget)(forget_packets)


def send_by_ring(sim: Sim, port: io.Port, packet: int) -> bool:
    """Into the transmit ring; False if it is full."""
    return push(sim, rings(sim)[port.send_ring], packet)


def mask_driver(sim: Sim, port: io.Port) -> None:
    """Let the guest's driver take nothing from now on, and its senders sleep."""
    stages(sim)[guest_ends(sim)[port.row].driver].is_masked = True
    if port.send_ring != 0:
        rings(sim)[port.send_ring].is_masked = True


def unmask_driver(sim: Sim, port: io.Port) -> None:
    """Let the guest's driver take packets again, after this event, and wake senders for whom there is room."""
    stage = stages(sim)[guest_ends(sim)[port.row].driver]
    # Both by events: the machine is thawed after its ports are unmasked, and only then may its driver and senders act.
    stage.is_masked = False
    start_if_due(sim, stage)
    if port.send_ring != 0:
        rings(sim)[port.send_ring].is_masked = False
        at(sim, sim.now_ns, EventKind.DEVICE, 2 * MOST_NICS + stage.row, on_room, port.send_ring)


def start_if_due(sim: Sim, stage: Stage) -> None:
    """Plan the start of a driver whose event has come, unless it is masked."""
    if stage.is_due and not stage.is_masked:
        at(sim, sim.now_ns, EventKind.DEVICE, 2 * MOST_NICS + stage.row, on_unmasked, stage.row)


@event
def on_unmasked(sim: Sim, stage: Stage) -> None:
    """Start a driver whose event has come while it was masked; it may be masked again by now."""
    if stage.is_due and not stage.is_masked:
        stage.is_due = False
        kick(sim, stage)


on_room = event(serve_waiting)


def take_no_more(sim: Sim, port: io.Port, end: GuestEnd = BESIDE) -> None:
    """Lose what is to come."""
    end.is_cut = True
    if end.nic != 0:
        catch_up(sim, nics(sim)[end.nic])
        nics(sim)[end.nic].is_cut = True


def cut_off(sim: Sim, port: io.Port, end: GuestEnd = BESIDE) -> None:
    """Lose what stands in the receive ring too; what the guest's driver has in its hands has entered the guest."""
    take_no_more(sim, port)
    if end.nic != 0:
        lose_descriptors(sim, nics(sim)[end.nic], end.down)
    else:
        lose_slots(sim, rings(sim)[end.receive_ring], end.down)
    # What a living guest has put into its ring still leaves: the driver domain has it.
    if port.send_ring != 0 and is_dead(sim, port):
        lose_slots(sim, rings(sim)[port.send_ring], end.lost)


def reconnect(sim: Sim, port: io.Port, end: GuestEnd = BESIDE) -> None:
    """Take packets again, from now on."""
    if end.nic != 0:
        catch_up(sim, nics(sim)[end.nic])
        nics(sim)[end.nic].is_cut = False
    end.is_cut = False


def is_gone(sim: Sim, packet: int) -> bool:
    """Tell whether the port of a packet on its way in is cut off; it has then been dropped."""
    end = guest_ends(sim)[io.packets(sim)[packet].port]
    if end.is_cut:
        io.drop(sim, packet, end.down)
    return end.is_cut


def forget_packets(sim: Sim, port: io.Port, end: GuestEnd = BESIDE) -> None:
    """Lose what rings and driver hold, and what waits for room there: all of it was in the guest's memory."""
    forget_batch(sim, stages(sim)[end.driver], end.lost)
    if end.nic != 0:
        catch_up(sim, nics(sim)[end.nic])
        lose_descriptors(sim, nics(sim)[end.nic], end.lost)
    else:
        lose_slots(sim, rings(sim)[end.receive_ring], end.lost)
    if port.send_ring != 0:
        ring = rings(sim)[port.send_ring]
        lose_slots(sim, ring, end.lost)
        while ring.waiting.length > 0:
            io.drop(sim, io.packet_list.pop(sim, ring.waiting), end.lost)


def forget_batch(sim: Sim, stage: Stage, drop_row: int) -> None:
    """Lose the batch in a driver's hands, whose interrupt work is lost too; the driver begins anew when it may."""
    if stage.active == 0:
        return
    batch = batches(sim)[stage.in_hand]
    while batch.packets.length > 0:
        io.drop(sim, io.packet_list.pop(sim, batch.packets), drop_row)
    if stage.nic != 0:
        nics(sim)[stage.nic].occupied -= batch.taken
    else:
        rings(sim)[stage.rings.first].occupied -= batch.taken
    # The work itself is forgotten with the domain's jobs, so that nothing comes back to this batch when it is free.
    batches.free(sim, stage.in_hand)
    stage.active = 0
    stage.held = 0
    stage.is_due = True
    start_if_due(sim, stage)


def lose_descriptors(sim: Sim, nic: Nic, drop_row: int) -> None:
    """Drop what waits in a NIC's ring."""
    nic.occupied -= nic.packets.length
    while nic.packets.length > 0:
        io.drop(sim, io.packet_list.pop(sim, nic.packets), drop_row)


def lose_slots(sim: Sim, ring: Ring, drop_row: int) -> None:
    """Drop what waits in a ring; slots that are kept or in somebody's hands are given back by those who have them."""
    ring.occupied -= ring.packets.length
    stages(sim)[ring.stage].waiting -= ring.packets.length
    while ring.packets.length > 0:
        io.drop(sim, io.packet_list.pop(sim, ring.packets), drop_row)
