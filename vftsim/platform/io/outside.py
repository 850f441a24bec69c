"""Packets drawn beforehand that cross a modelled link to the host, each at the instant at which its client sends it.

Where nothing else is on the way they go straight to the network interface (:mod:`.nic`), without an event each.
"""

from typing import Annotated

from vftsim.kernel import EventKind, Record, Sim, Table, at, entry, event, part
from vftsim.kernel.declare import Failure, fail
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.nic import COMING, LOW, new_packet

STARVED = Failure("more packets are sent at one instant than are held beforehand; lower the load")


class Coming(Record):
    """What is sent to a host, in order of time; ``is_complete``: no more will be drawn."""

    time_ns: Annotated[list[int], COMING]
    flow: Annotated[list[int], COMING]
    stream: Annotated[list[int], COMING]
    taken: int
    filled: int
    is_complete: bool


comings = Table("comings", Coming, 64)


@event
def on_sent(sim: Sim, place: int, token: int) -> None:
    """Send what is due, and see to the next."""
    own = comings(sim)[place]
    while own.taken < own.filled and own.time_ns[own.taken % COMING] <= sim.now_ns:
        here = own.taken % COMING
        own.taken += 1
        send_to_host(sim, new_packet(sim, own.flow[here], own.stream[here], sim.now_ns))
    if own.filled - own.taken < LOW and not own.is_complete:
        sim.wants_input = True
    plan(sim, place)


@part
def plan(sim: Sim, place: int) -> None:
    """Plan the next packet's departure."""
    own = comings(sim)[place]
    if own.taken < own.filled:
        at(sim, max(own.time_ns[own.taken % COMING], sim.now_ns), EventKind.ARRIVAL, place, on_sent, place)
    elif not own.is_complete:
        fail(sim, STARVED)


@entry
def start_sending(sim: Sim, place: int, _: int) -> int:
    """Let the first packet be sent at its time."""
    plan(sim, place)
    return 0


ENTRIES = (start_sending,)
TABLES = (comings,)
