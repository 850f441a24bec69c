"""The records of a replicated pair: the primary's log, its secondary, and the outputs that wait between them."""

from vftsim.kernel import Chain, Fifo, Record, Row, Table
from vftsim.platform.protection.replay import Replay

NEVER_NS = 1 << 62
"""An instant that will not come."""


class Train(Record):
    """Log entries at a constant rate; a period of 0: none."""

    period_ns: int
    size_bytes: int
    cost_ns: int


class Log(Record):
    """The log that one primary writes for one secondary.

    Timer interrupts (``timer``) let the secondary follow the execution between them, disk reads (``disk``) do not.
    ``cost_due_ns`` is the CPU time of trains not yet charged; ``unsent_bytes`` is what waits while the channel is
    ``broken``.  Up to ``written_ns`` everything is written, by when the guest had used ``run_ns`` of CPU time, of which
    ``work_ns`` came after the last entry that paces the secondary.  ``recording_ns`` of what the guest runs is known to
    be the price of recording, which the secondary does not pay.
    """

    timer: Train
    disk: Train
    entries: int
    train_entries: int
    cost_due_ns: int
    last_depart_ns: int
    last_arrival_ns: int
    unsent_bytes: int
    broken: bool
    written_ns: int
    run_ns: int
    work_ns: int
    recording_ns: int


class Pair(Row):
    """A primary and one secondary, from when they are in step to when either is given up.

    Outputs carry numbers from 1 on: ``issued`` the last one issued, ``visible`` the last one that left; ``released``
    and ``waiting`` count them.  ``wait_ns`` is how long released ones have waited, ``longest_ns`` the longest.  Once
    the ``backup_is_gone`` nothing waits for it any more; a pair that ``is_over`` ends with its last output.
    """

    guard: int
    log: Log
    secondary: Replay
    outputs: Fifo
    issued: int
    visible: int
    released: int
    waiting: int
    wait_ns: int
    longest_ns: int
    backup_is_gone: bool
    is_over: bool


class Output(Record):
    """An output of a pair: its packet, its log entry's instants, :data:`NEVER_NS` for those that will not come.

    Once released it keeps a copy of the packet, because a new primary may have to issue it again.  ``alarm`` is the
    token of the release that is planned, 0 for none.
    """

    link: int
    pair: int
    sequence: int
    packet: int
    issued_ns: int
    depart_ns: int
    arrival_ns: int
    ack_ns: int
    released: bool
    # Compared by the event, so that one whose output is gone, or whose row is another's, does nothing.
    alarm: int


pairs = Table("pairs", Pair, 1 << 14, "let fewer faults strike")
outputs = Table("outputs", Output, 1 << 18, "make the logging channel faster, or lower the load")
output_list = Chain(outputs, "link")
