"""The boundaries that packets pass, written down for traces.

Marks are entries of a log that the driver empties; writing them changes nothing in the run.
"""

from typing import Annotated

from vftsim.kernel import Record, Sim, Table, part
from vftsim.kernel.declare import Failure, fail

ARRIVED, TAKEN, DONE, PROGRAM_TAKEN, PROGRAM_DONE, DELIVERED = 1, 2, 3, 4, 5, 6
MOST_MARKS = 1 << 16

FULL = Failure("more packets passed a boundary at one instant than a trace can hold; trace a smaller load")


class MarkLog(Record):
    """What has been marked since the driver was here last.

    ``place`` is the stage for ``TAKEN`` and ``DONE``, the flow for ``ARRIVED``.  ``spent_ns`` is the CPU time of the
    batch that the packet was in, for ``ARRIVED`` the number of its stream.
    """

    is_on: bool
    written: int
    packet: Annotated[list[int], MOST_MARKS]
    what: Annotated[list[int], MOST_MARKS]
    place: Annotated[list[int], MOST_MARKS]
    time_ns: Annotated[list[int], MOST_MARKS]
    spent_ns: Annotated[list[int], MOST_MARKS]


mark_logs = Table("mark_logs", MarkLog, 2, is_fixed=True)


@part
def mark(sim: Sim, packet: int, what: int, place: int, time_ns: int, spent_ns: int) -> None:
    """Write that a packet passes a boundary; ask first whether the log is on."""
    log = mark_logs(sim)[1]
    here = log.written
    if here == MOST_MARKS:
        fail(sim, FULL)
        return
    log.packet[here] = packet
    log.what[here] = what
    log.place[here] = place
    log.time_ns[here] = time_ns
    log.spent_ns[here] = spent_ns
    log.written = here + 1
    if log.written > MOST_MARKS // 2:
        sim.wants_input = True
