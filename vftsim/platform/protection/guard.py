"""Protection at the port: a guard sees every input of its domain and holds its outputs.

The promise of every mechanism is the output-commit rule: nothing becomes visible outside before the backup can
reproduce the state that produced it.  A port without a guard (row 0) lets everything through.
"""

from vftsim.kernel import Record, Sim, Sort, Table, part
from vftsim.platform.io.packet import Port, send

LOST = -1
"""Answer of :func:`take_note` for a packet that no surviving replica will know of."""


class Guard(Record):
    """A mechanism at work for one domain: ``mechanism`` is its kind, ``own`` its row in the kind's own table."""

    row: int
    mechanism: int
    own: int
    domain: int


guards = Table("guards", Guard, 256)
protection = Sort("protection mechanism", by="mechanism")


@protection.slot
def note_input(sim: Sim, guard: Guard, size_bytes: int) -> int:
    """Take note of a packet that enters the guest; return its CPU cost in ns, or :data:`LOST`."""
    return 0


@protection.slot
def hold_output(sim: Sim, guard: Guard, port: Port, packet: int) -> None:
    """Hold a packet that the guest sends; :func:`~vftsim.platform.io.packet.send` it when it may leave."""
    send(sim, port, packet)


@part
def take_note(sim: Sim, port: Port, size_bytes: int) -> int:
    """Tell the port's guard, if any, of a packet that enters the guest; return its CPU cost in ns, or :data:`LOST`."""
    if port.guard == 0:
        return 0
    return note_input(sim, guards(sim)[port.guard], size_bytes)


@part
def put_out(sim: Sim, port: Port, packet: int) -> bool:
    """Send a packet of the guest through the guard, if any; False if the path has no room and nothing holds it."""
    if port.guard == 0:
        return send(sim, port, packet)
    hold_output(sim, guards(sim)[port.guard], port, packet)
    return True
