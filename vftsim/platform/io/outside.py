"""Packets drawn beforehand that cross a modelled link to the host, each at the instant at which its client sends it.

Where nothing else is on the way they go straight to the network interface (:mod:`.nic`), without an event each.
"""

from vftsim.kernel import EventKind, Failure, Sim, Table, at, entry, event, fail
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.nic import COMING, LOW, Arrivals, new_packet

STARVED = Failure("more packets are sent at one instant than are held beforehand; lower the load")

comings = Table("comings", Arrivals, 64)


@event
def on_sent(sim: Sim, coming_row: int) -> None:
    """Send what is due, and see to the next."""
    coming = comings(sim)[coming_row]
    while coming.taken < coming.filled and coming.time_ns[coming.taken % COMING] <= sim.now_ns:
        slot = coming.taken % COMING
        coming.taken += 1
        send_to_host(sim, new_packet(sim, coming.flow[slot], coming.stream[slot], sim.now_ns))
    if coming.filled - coming.taken < LOW and not coming.is_complete:
        sim.wants_input = True
    plan(sim, coming_row)


def plan(sim: Sim, coming_row: int) -> None:
    """Plan the next packet's departure."""
    coming = comings(sim)[coming_row]
    if coming.taken < coming.filled:
        at(
            sim,
            max(coming.time_ns[coming.taken % COMING], sim.now_ns),
            EventKind.ARRIVAL,
            coming_row,
            on_sent,
            coming_row,
        )
    elif not coming.is_complete:
        fail(sim, STARVED)


start_sending = entry(plan)


ENTRIES = (start_sending,)
TABLES = (comings,)
