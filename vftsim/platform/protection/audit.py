"""The auditor of the promise: no output leaves before the backup can take over from the state that issued it.

It stands beside every mechanism and believes none: it dates every output when the guest issues it, and it dates every
message to the backup by the channel on which it is written.  What a mechanism says is one thing only, what a message
brings (:func:`mark`: all that the guest has done up to this instant).  It keeps of each message on its way when it
arrives, loses those that a fault keeps from arriving, and looks at every output that leaves: one issued after what has
arrived by then breaks the promise, and so does one that overtakes another.  A mechanism that says nothing brings
nothing, and breaks it with every output.

A message has to bring what it owes: the data of packets that entered, where the backup gets them from it, and the pages
of a state.  One that is too small for that brings nothing.  When a backup takes over, from what it says it has, three
more things break the promise: a state that has not arrived, or one before outputs that have left; an output that it
could derive, that has not left, and that it does not issue; one that it issues again though a message had told it that
it has left.  So does a backup that lives beside its primary though a lock is to prevent that, or twice.

Limits: see ``docs/protection/promise.md``.
"""

import os

from vftsim.kernel import Failure, Fifo, Record, Sim, Table, fail
from vftsim.platform.io.packet import Packet, packet_list, packets
from vftsim.platform.protection.pair import NEVER_NS

BROKEN = Failure("an output left before the backup could take over from there: the promise is broken")
FOR_GOOD = -1
VARIABLE = "VFTSIM_STRICT"


def is_strict() -> bool:
    """Whether a run ends with the first breach: what ``--strict`` sets, and worker processes inherit."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


class Message(Record):
    """What is on its way to a backup: what the guest did up to ``covers_ns``.

    ``link`` leads to the message sent next, from the newest one to a row that is free again: a ring.

    Its last bit leaves at ``depart_ns``.  A message that ``is_learned`` takes no channel: the backup finds it out.  The
    guest had ``issued`` so many outputs by then, and the backup hears that the first ``settled`` have left.  Its disk
    needs ``disk_ns`` for what comes along.
    """

    link: int
    covers_ns: int
    depart_ns: int
    arrival_ns: int
    is_learned: bool
    issued: int
    settled: int
    disk_ns: int


class Audit(Record):
    """What the auditor of one guard knows.

    The backup has what the guest did up to ``known_ns``; the next message brings what it did up to ``marked_ns``.  A
    backup that ``follows`` derives an output from what entered and was told before it: the last of that is of
    ``fed_ns``.  While it ``is_off`` no promise is in force.  ``ends_run``: the first breach does.

    Of a channel that ``is_down`` until ``up_ns``: it has kept back what the guest did up to ``kept_ns``, of which
    ``unsent_ns`` has not left.  ``is_dead``: the backup.

    Of the ``under_way`` messages, in a ring of so many ``slots``, the ``oldest`` arrives first and the ``newest``, at
    ``last_ns``, last.  If they are known to be no more than one, on a channel that works, it ``is_single``.  Before
    ``next_ns`` none arrives, and no channel works again.

    Messages owe the backup ``owed_bytes``; packets that enter are owed if it ``hears``.  The guest has ``issued`` so
    many outputs; ``left`` is the last that has left, or was lost after its release, and ``settled`` what the next
    message says of it; the last that has left was issued at ``left_ns``.  Those up to ``begun`` are from before the
    promise, and may still be leaving.
    Of what has arrived or is marked: ``known_issued``, ``known_settled``, ``marked_issued``; of what a channel that
    ``was_down`` keeps: ``kept_issued``, ``kept_settled``.
    The backup's disk is through at ``disk_ns``, and needs ``marked_disk_ns`` for what the next message brings.
    A backup of which ``issues_all`` is true issues what has not left and it can derive; a lock ``is_fenced`` lets one
    host live.

    ``judged`` outputs have left, ``breaches`` of them broke the promise: the first one, of ``first_flow``, was issued
    at ``first_issued_ns`` and left at ``first_left_ns``, when the backup had what was before ``first_known_ns``.
    """

    is_off: bool
    ends_run: bool
    follows: bool
    marked_ns: int
    known_ns: int
    fed_ns: int
    oldest: int
    newest: int
    under_way: int
    slots: int
    is_single: bool
    last_ns: int
    next_ns: int
    latency_ns: int
    is_down: bool
    is_dead: bool
    up_ns: int
    kept_ns: int
    unsent_ns: int
    was_down: bool
    hears: bool
    issues_all: bool
    is_fenced: bool
    disk_ns: int
    marked_disk_ns: int
    owed_bytes: int
    issued: int
    marked_issued: int
    known_issued: int
    left: int
    left_ns: int
    begun: int
    settled: int
    known_settled: int
    kept_issued: int
    kept_settled: int
    judged: int
    breaches: int
    first_flow: int
    first_issued_ns: int
    first_left_ns: int
    first_known_ns: int


messages = Table("messages", Message, 1 << 20, "make the channel faster, or lower the load")


# What the guest does


def take_in(sim: Sim, audit: Audit) -> None:
    """See an input that enters."""
    audit.fed_ns = sim.now_ns


def owe(audit: Audit, size_bytes: int) -> None:
    """See that the backup needs so many bytes to know what the guest has done by now."""
    audit.owed_bytes += size_bytes


def date_output(sim: Sim, audit: Audit, output: Packet) -> None:
    """Date an output that the guest issues: up to then the backup has to know the guest."""
    audit.issued += 1
    output.issue = audit.issued
    output.date_ns = max(audit.fed_ns, audit.marked_ns) if audit.follows else sim.now_ns


def is_breach(sim: Sim, audit: Audit, date_ns: int, issue: int) -> bool:
    """Tell whether an output must not leave now: it is early, or another one overtakes it."""
    if audit.is_off:
        return False
    if sim.now_ns >= audit.next_ns:
        receive_arrived(sim, audit)
    return date_ns > audit.known_ns or audit.begun < issue < audit.left


def judge_output(sim: Sim, audit: Audit, flow: int, date_ns: int, issue: int, wrong: bool) -> None:
    """See an output that has left, as it must not if it is ``wrong``."""
    if audit.is_off:
        return
    audit.judged += 1
    if wrong:
        count_breach(sim, audit, flow, date_ns)
    elif issue > audit.begun:
        # Dates do not fall from an output to the next, and this one is not overtaken.
        audit.left, audit.left_ns = issue, date_ns


def lose_output(audit: Audit, issue: int, wrong: bool) -> None:
    """See an output lost after its release, to a full queue on its way out: as one lost in the network, it is gone.

    The guest takes it for sent, so no backup owes it.  Nobody has seen it: a state before it may still be gone on from.
    """
    if not audit.is_off and not wrong:
        audit.left = max(audit.left, issue)


def count_breach(sim: Sim, audit: Audit, flow: int, date_ns: int) -> None:
    """Count a breach, and keep the first."""
    if audit.breaches == 0:
        audit.first_flow = flow
        audit.first_issued_ns = date_ns
        audit.first_left_ns = sim.now_ns
        audit.first_known_ns = audit.known_ns
    audit.breaches += 1
    if audit.ends_run:
        fail(sim, BROKEN)


# What the backup gets to know


def begin(sim: Sim, audit: Audit) -> None:
    """Begin with a backup that is in step: the promise is in force for what is issued from now on."""
    forget_messages(sim, audit)
    audit.is_off = False
    audit.is_down = False
    audit.is_dead = False
    audit.known_ns = sim.now_ns
    audit.owed_bytes = 0
    audit.disk_ns = audit.marked_disk_ns = 0
    audit.known_issued = audit.marked_issued = audit.left = audit.settled = audit.known_settled = audit.issued
    audit.begun = audit.issued
    audit.left_ns = 0
    audit.was_down = False


def end(sim: Sim, audit: Audit) -> None:
    """Continue without a backup: nothing is promised."""
    forget_messages(sim, audit)
    audit.is_off = True


def forget_messages(sim: Sim, audit: Audit) -> None:
    """Forget what is on its way."""
    for _ in range(audit.under_way):
        take_oldest(sim, audit)
    audit.last_ns = audit.next_ns = 0
    audit.is_single = False


def mark(sim: Sim, audit: Audit) -> None:
    """Note what the next message brings: all that the guest has done by now."""
    audit.marked_ns = sim.now_ns
    audit.marked_issued = audit.issued


def write(audit: Audit, disk_ns: int) -> None:
    """Note that with the next message come disk writes that take the backup's disk so long."""
    audit.marked_disk_ns = disk_ns


def mark_released(audit: Audit) -> None:
    """Note that who gets the next message knows of all outputs that have left by now that they have."""
    audit.settled = audit.left


def replace(sim: Sim, audit: Audit) -> None:
    """See a state taken: what the backup would have found out by itself it does not, for that state replaces it."""
    receive_arrived(sim, audit)
    if audit.under_way > 0:
        drop_learned(sim, audit)
    mark(sim, audit)
    mark_released(audit)


def drop_learned(sim: Sim, audit: Audit) -> None:
    """Drop what the backup would have found out by itself from what is under way."""
    audit.is_single = False
    for _ in range(audit.under_way):
        row = take_oldest(sim, audit)
        if not messages(sim)[row].is_learned:
            requeue(sim, audit, row)


def send(sim: Sim, audit: Audit, size_bytes: int, depart_ns: int, latency_ns: int) -> None:
    """See that message written: its last bit leaves at ``depart_ns`` and crosses in ``latency_ns``."""
    # Called in two places, which keeps the rare case out of this function's machine code: every log entry comes here.
    if not audit.is_single:
        send_behind(sim, audit, size_bytes, depart_ns, latency_ns)
        return
    if audit.last_ns > sim.now_ns:
        send_behind(sim, audit, size_bytes, depart_ns, latency_ns)
        return
    # What was sent before has arrived: the newest message's row is used again.
    if audit.owed_bytes > size_bytes:
        audit.owed_bytes -= size_bytes
        return
    audit.owed_bytes = 0
    newest = messages(sim)[audit.newest]
    if audit.under_way == 1:
        receive(audit, newest)
    audit.under_way = 1
    audit.latency_ns = latency_ns
    audit.next_ns = depart_ns + latency_ns
    fill(audit, newest, audit.marked_ns, depart_ns, depart_ns + latency_ns)


def send_behind(sim: Sim, audit: Audit, size_bytes: int, depart_ns: int, latency_ns: int) -> None:
    """See a message written while others are on their way, or the channel is lost, or nothing is promised."""
    if audit.is_off or audit.is_dead:
        return
    if audit.owed_bytes > size_bytes:
        audit.owed_bytes -= size_bytes
        return
    audit.owed_bytes = 0
    receive_arrived(sim, audit)
    audit.latency_ns = latency_ns
    if audit.is_down:
        audit.kept_issued, audit.kept_settled = audit.marked_issued, audit.settled
        audit.kept_ns = audit.marked_ns
        audit.unsent_ns = max(audit.unsent_ns, depart_ns - sim.now_ns)
    else:
        if audit.was_down:
            # What the channel has kept back goes first.
            depart_ns = max(depart_ns, audit.up_ns + audit.unsent_ns)
        enqueue(sim, audit, audit.marked_ns, depart_ns, depart_ns + latency_ns)


def resend_rest(sim: Sim, audit: Audit, begin_ns: int, depart_ns: int, latency_ns: int) -> None:
    """See that the rest of the message written last, as it stood at ``begin_ns``, now leaves by ``depart_ns``."""
    if audit.is_off or audit.is_dead:
        return
    receive_arrived(sim, audit)
    audit.latency_ns = latency_ns
    if audit.is_down:
        audit.unsent_ns = depart_ns - begin_ns
    elif audit.under_way > 0:
        forget_messages(sim, audit)
        enqueue(sim, audit, audit.marked_ns, depart_ns, depart_ns + latency_ns)


def learn(sim: Sim, audit: Audit, time_ns: int) -> None:
    """Note that the backup will have found out at ``time_ns`` what the guest has done by now, without a message."""
    if audit.is_off or audit.is_dead:
        return
    receive_arrived(sim, audit)
    enqueue(sim, audit, sim.now_ns, time_ns, time_ns)
    learned = messages(sim)[audit.newest]
    learned.is_learned = True
    learned.issued, learned.settled, learned.disk_ns = audit.issued, 0, 0


# What is on its way: a ring of rows, of which no more are taken than were ever under way at a time


def enqueue(sim: Sim, audit: Audit, covers_ns: int, depart_ns: int, arrival_ns: int) -> None:
    """Put a message on its way; one that brings less and comes later says nothing more."""
    if arrival_ns < audit.last_ns:
        for _ in range(audit.under_way):
            row = take_oldest(sim, audit)
            if messages(sim)[row].arrival_ns < arrival_ns:
                requeue(sim, audit, row)
    audit.next_ns = min(audit.next_ns, arrival_ns)
    fill(audit, messages(sim)[take_row(sim, audit)], covers_ns, depart_ns, arrival_ns)
    audit.is_single = audit.under_way == 1 and not audit.is_down


def fill(audit: Audit, newest: Message, covers_ns: int, depart_ns: int, arrival_ns: int) -> None:
    """Write a message of what is marked, which arrives last."""
    newest.covers_ns = covers_ns
    newest.depart_ns = depart_ns
    newest.arrival_ns = arrival_ns
    newest.is_learned = False
    newest.issued = audit.marked_issued
    newest.settled = audit.settled
    newest.disk_ns = audit.marked_disk_ns
    audit.last_ns = arrival_ns


def take_row(sim: Sim, audit: Audit) -> int:
    """Return the row behind the newest message's, a new one if all are under way; it becomes the newest.

    If none is under way, the newest is the oldest too, and its row is used again.
    """
    if audit.under_way == audit.slots:
        row = messages.new(sim)
        if audit.slots == 0:
            audit.oldest = audit.newest = row
        messages(sim)[row].link = audit.oldest
        messages(sim)[audit.newest].link = row
        audit.newest = row
        audit.slots += 1
    elif audit.under_way > 0:
        audit.newest = messages(sim)[audit.newest].link
    audit.under_way += 1
    return audit.newest


def take_oldest(sim: Sim, audit: Audit) -> int:
    """Take the oldest message from the line; its row keeps what it holds until it is used again."""
    row = audit.oldest
    audit.under_way -= 1
    if audit.under_way > 0:
        audit.oldest = messages(sim)[row].link
    return row


def requeue(sim: Sim, audit: Audit, row: int) -> None:
    """Put a message that was taken behind the newest one."""
    message = messages(sim)[row]
    newest = messages(sim)[take_row(sim, audit)]
    newest.covers_ns = message.covers_ns
    newest.depart_ns = message.depart_ns
    newest.arrival_ns = message.arrival_ns
    newest.is_learned = message.is_learned
    newest.issued = message.issued
    newest.settled = message.settled
    newest.disk_ns = message.disk_ns


def receive_arrived(sim: Sim, audit: Audit) -> None:
    """Take note of what has arrived by now; what a channel kept back that works again is sent once more."""
    if audit.is_single:
        receive_newest(sim, audit)
    else:
        receive_line(sim, audit)


def receive_newest(sim: Sim, audit: Audit) -> None:
    """Take note of the newest message if it has arrived by now."""
    if audit.under_way == 1 and audit.last_ns <= sim.now_ns:
        receive(audit, messages(sim)[audit.newest])
        audit.under_way = 0
        audit.next_ns = NEVER_NS


def receive_line(sim: Sim, audit: Audit) -> None:
    """Take note of what has arrived by now, and of a channel that works again."""
    if audit.is_down and sim.now_ns >= audit.up_ns and not audit.is_dead:
        audit.is_down = False
        if audit.kept_ns > audit.known_ns:
            depart_ns = audit.up_ns + audit.unsent_ns
            enqueue(sim, audit, audit.kept_ns, depart_ns, depart_ns + audit.latency_ns)
            newest = messages(sim)[audit.newest]
            newest.issued, newest.settled = audit.kept_issued, audit.kept_settled
    while audit.under_way > 0 and messages(sim)[audit.oldest].arrival_ns <= sim.now_ns:
        receive(audit, messages(sim)[take_oldest(sim, audit)])
    audit.next_ns = messages(sim)[audit.oldest].arrival_ns if audit.under_way > 0 else NEVER_NS
    if audit.is_down and not audit.is_dead:
        audit.next_ns = min(audit.next_ns, audit.up_ns)
    is_plain = not audit.is_off and not audit.is_dead and not audit.is_down
    audit.is_single = is_plain and audit.slots > 0 and audit.under_way <= 1


def receive(audit: Audit, message: Message) -> None:
    """Let the backup know what a message brings."""
    audit.known_ns = max(audit.known_ns, message.covers_ns)
    receive_outputs(audit, message)
    if message.disk_ns > 0:
        audit.disk_ns = max(audit.disk_ns, message.arrival_ns) + message.disk_ns


def receive_outputs(audit: Audit, message: Message) -> None:
    """Let the backup know what a message says of outputs."""
    audit.known_issued = max(audit.known_issued, message.issued)
    audit.known_settled = max(audit.known_settled, message.settled)


# What fails


def claim(sim: Sim, audit: Audit, covers_ns: int) -> None:
    """See a primary at its end, and note what its backup continues from: what the guest had done by ``covers_ns``.

    What has left the primary by now still arrives, unless the channel is lost.
    """
    if audit.is_off:
        return
    receive_departed(sim, audit)
    if covers_ns > audit.known_ns or covers_ns < audit.left_ns:
        count_breach(sim, audit, 0, covers_ns)


def receive_departed(sim: Sim, audit: Audit) -> None:
    """Let what has left the primary arrive, and lose the rest with it."""
    receive_arrived(sim, audit)
    for _ in range(audit.under_way):
        message = messages(sim)[take_oldest(sim, audit)]
        if message.depart_ns <= sim.now_ns:
            receive(audit, message)


def take_over(sim: Sim, audit: Audit, issued: Fifo) -> None:
    """See which outputs a backup issues that takes over from a primary that is at its end now."""
    if audit.is_off:
        return
    receive_departed(sim, audit)
    # What a lost channel has kept back and sent again may have come in part.
    missing = audit.known_issued - audit.left if audit.issues_all and not audit.was_down else 0
    for output in packets.listed(sim, packet_list, issued):
        if audit.left < output.issue <= audit.known_issued:
            missing -= 1
        if output.issue <= audit.known_settled:
            count_breach(sim, audit, output.flow, output.date_ns)
    for _ in range(missing):
        count_breach(sim, audit, 0, audit.known_ns)


def go_live(sim: Sim, audit: Audit) -> None:
    """See a backup go live in the place of its primary, with its disk as it has to be: nothing is promised any more."""
    if audit.is_off or sim.now_ns < audit.disk_ns:
        count_breach(sim, audit, 0, audit.known_ns)
    end(sim, audit)


def live_beside(sim: Sim, audit: Audit) -> None:
    """See a backup decide to live beside its primary."""
    if audit.is_fenced and not audit.is_off:
        count_breach(sim, audit, 0, audit.known_ns)


def lose_channel(sim: Sim, audit: Audit, duration_ns: int) -> None:
    """See the channel cut, for a time or :data:`FOR_GOOD`: what has not arrived does not."""
    receive_arrived(sim, audit)
    if audit.is_off or audit.is_down or audit.is_dead:
        return
    audit.is_down = audit.was_down = True
    audit.up_ns = NEVER_NS if duration_ns == FOR_GOOD else sim.now_ns + duration_ns
    audit.kept_ns = 0
    audit.unsent_ns = 0
    audit.next_ns = 0
    audit.is_single = False
    for _ in range(audit.under_way):
        row = take_oldest(sim, audit)
        message = messages(sim)[row]
        if message.is_learned:
            requeue(sim, audit, row)
        else:
            audit.kept_ns = message.covers_ns
            audit.kept_issued, audit.kept_settled = message.issued, message.settled
            audit.unsent_ns = max(0, message.depart_ns - sim.now_ns)


def limit_unsent(audit: Audit, most_ns: int) -> None:
    """Note that what is kept back leaves in so long at most: the rest of its time it was to wait for room."""
    audit.unsent_ns = min(audit.unsent_ns, most_ns)


def change_channel(sim: Sim, audit: Audit, latency_ns: int) -> None:
    """See that from now on a message crosses in ``latency_ns``, and that what is kept back may leave in no time."""
    receive_arrived(sim, audit)
    audit.latency_ns = latency_ns
    audit.unsent_ns = 0


def lose_backup(sim: Sim, audit: Audit) -> None:
    """See the backup die: nothing arrives any more."""
    receive_arrived(sim, audit)
    forget_messages(sim, audit)
    audit.is_dead = True
