"""Trace marks: when each packet passes which boundary.

Marks are entries of a log that the driver empties; writing them changes nothing in the run
(:func:`~vftsim.platform.io.packet.mark` writes them).
"""

from typing import Annotated

from vftsim.kernel import Failure, Record, Table

ARRIVED, TAKEN, DONE, PROGRAM_TAKEN, PROGRAM_DONE, DELIVERED = 1, 2, 3, 4, 5, 6
SENT, AT_HOST, ENTERED, PUT_OUT, RELEASED, RETURNED, DROPPED, DISCARDED, ENDED = 7, 8, 9, 10, 11, 12, 13, 14, 15
"""Sent by a client that the run simulates, at the host's card, in the guest, put out by the guest, let go by its
protection, back at the network's far end, dropped, ended unseen, done with by the program."""
PROGRAM_WAITED = 16
"""Its program has waited for the disk or for other programs since the mark before."""

MOST_MARKS = 1 << 16

FULL = Failure("more packets passed a boundary at one instant than a trace can hold; trace a smaller load")


class MarkLog(Record):
    """What has been marked since the driver was here last.

    ``place`` is the stage for ``TAKEN`` and ``DONE``, the row of ``drops`` for ``DROPPED``.  ``spent_ns`` is the CPU
    time of the batch that the packet was in; of a program, what it will use (``PROGRAM_TAKEN``) or has used
    (``PROGRAM_DONE``), whichever it knows.  The others are the packet's own.
    """

    is_on: bool
    written: int
    packet: Annotated[list[int], MOST_MARKS]
    boundary: Annotated[list[int], MOST_MARKS]
    place: Annotated[list[int], MOST_MARKS]
    time_ns: Annotated[list[int], MOST_MARKS]
    spent_ns: Annotated[list[int], MOST_MARKS]
    flow: Annotated[list[int], MOST_MARKS]
    port: Annotated[list[int], MOST_MARKS]
    stream: Annotated[list[int], MOST_MARKS]
    entity: Annotated[list[int], MOST_MARKS]
    message: Annotated[list[int], MOST_MARKS]
    size_bytes: Annotated[list[int], MOST_MARKS]
    left_bytes: Annotated[list[int], MOST_MARKS]


mark_logs = Table("mark_logs", MarkLog, 2, is_fixed=True, is_log=True)
