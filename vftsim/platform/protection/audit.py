"""The auditor of the promise: no output leaves before the backup can take over from the state that issued it.

It stands beside every mechanism and believes none: it dates every output when the guest issues it, and it dates every
message to the backup by the channel on which it is written.  What a mechanism says is one thing only, what a message
brings (:func:`mark`: all that the guest has done up to this instant).  It keeps of each message on its way when it
arrives, loses those that a fault keeps from arriving, and looks at every output that leaves: one issued after what has
arrived by then breaks the promise.  A mechanism that says nothing brings nothing, and breaks it with every output.

Limits: see ``docs/protection/promise.md``.
"""

import os

from vftsim.kernel import Chain, Failure, Fifo, Record, Sim, Table, fail, part
from vftsim.platform.protection.pair import NEVER_NS

BROKEN = Failure("an output left before the backup could take over from there: the promise is broken")
FOR_GOOD = -1
VARIABLE = "VFTSIM_STRICT"


def is_strict() -> bool:
    """Whether a run ends with the first breach: what ``--strict`` sets, and worker processes inherit."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


class Message(Record):
    """What is on its way to a backup: what the guest did up to ``covers_ns``.

    Its last bit leaves at ``depart_ns``.  A message that ``is_learned`` takes no channel: the backup finds it out.
    """

    link: int
    covers_ns: int
    depart_ns: int
    arrival_ns: int
    is_learned: bool


class Audit(Record):
    """What the auditor of one guard knows.

    The backup has what the guest did up to ``known_ns``; the next message brings what it did up to ``marked_ns``.  A
    backup that ``follows`` derives an output from what entered and was told before it: the last of that is of
    ``fed_ns``.  While it ``is_off`` no promise is in force.  ``ends_run``: the first breach does.

    Of a channel that ``is_down`` until ``up_ns``: it has kept back what the guest did up to ``kept_ns``, of which
    ``rest_ns`` has not left.  ``is_dead``: the backup.

    ``judged`` outputs have left, ``breaches`` of them broke the promise: the first one, of ``first_flow``, was issued
    at ``first_issued_ns`` and left at ``first_left_ns``, when the backup had what was before ``first_known_ns``.
    """

    is_off: bool
    ends_run: bool
    follows: bool
    marked_ns: int
    known_ns: int
    fed_ns: int
    on_way: Fifo
    last_ns: int
    way_ns: int
    is_down: bool
    is_dead: bool
    up_ns: int
    kept_ns: int
    rest_ns: int
    judged: int
    breaches: int
    first_flow: int
    first_issued_ns: int
    first_left_ns: int
    first_known_ns: int


messages = Table("messages", Message, 1 << 20, "make the channel faster, or lower the load")
message_list = Chain(messages, "link")


# What the guest does


@part
def take_in(sim: Sim, own: Audit) -> None:
    """See an input that enters."""
    own.fed_ns = sim.now_ns


@part
def date_of(sim: Sim, own: Audit) -> int:
    """Return up to when the backup has to know the guest for an output that it issues now."""
    return own.fed_ns if own.follows else sim.now_ns


@part
def is_early(sim: Sim, own: Audit, date_ns: int) -> bool:
    """Tell whether an output of this date must not leave now."""
    if own.is_off:
        return False
    look(sim, own)
    return date_ns > own.known_ns


@part
def judge(sim: Sim, own: Audit, flow: int, date_ns: int, early: bool) -> None:
    """See an output that has left, ``early`` or not."""
    if own.is_off:
        return
    own.judged += 1
    if early:
        if own.breaches == 0:
            own.first_flow = flow
            own.first_issued_ns = date_ns
            own.first_left_ns = sim.now_ns
            own.first_known_ns = own.known_ns
        own.breaches += 1
        if own.ends_run:
            fail(sim, BROKEN)


# What the backup gets to know


@part
def begin(sim: Sim, own: Audit) -> None:
    """Begin with a backup that is in step: from now on the promise is in force."""
    forget_messages(sim, own)
    own.is_off = False
    own.is_down = False
    own.is_dead = False
    own.known_ns = sim.now_ns


@part
def end(sim: Sim, own: Audit) -> None:
    """Go on without a backup: nothing is promised."""
    forget_messages(sim, own)
    own.is_off = True


@part
def forget_messages(sim: Sim, own: Audit) -> None:
    """Forget what is on its way."""
    while own.on_way.length > 0:
        messages.free(sim, message_list.pop(sim, own.on_way))
    own.last_ns = 0


@part
def mark(sim: Sim, own: Audit) -> None:
    """Hear what the next message brings: all that the guest has done by now."""
    own.marked_ns = sim.now_ns
    own.fed_ns = sim.now_ns


@part
def send(sim: Sim, own: Audit, depart_ns: int, way_ns: int) -> None:
    """See that message written: its last bit leaves at ``depart_ns`` and takes ``way_ns`` on its way."""
    if own.is_off or own.is_dead:
        return
    look(sim, own)
    own.way_ns = way_ns
    if own.is_down:
        own.kept_ns = own.marked_ns
        own.rest_ns = max(own.rest_ns, depart_ns - sim.now_ns)
    else:
        expect(sim, own, own.marked_ns, depart_ns, depart_ns + way_ns, False)


@part
def send_on(sim: Sim, own: Audit, begin_ns: int, depart_ns: int, way_ns: int) -> None:
    """See that the rest of the message written last, as it stood at ``begin_ns``, now leaves by ``depart_ns``."""
    if own.is_off or own.is_dead:
        return
    look(sim, own)
    own.way_ns = way_ns
    if own.is_down:
        own.rest_ns = depart_ns - begin_ns
    elif own.on_way.length > 0:
        forget_messages(sim, own)
        expect(sim, own, own.marked_ns, depart_ns, depart_ns + way_ns, False)


@part
def learn(sim: Sim, own: Audit, time_ns: int) -> None:
    """Hear that the backup will have found out at ``time_ns`` what the guest has done by now, without a message."""
    if not own.is_off and not own.is_dead:
        look(sim, own)
        expect(sim, own, sim.now_ns, time_ns, time_ns, True)


@part
def expect(sim: Sim, own: Audit, covers_ns: int, depart_ns: int, arrival_ns: int, is_learned: bool) -> None:
    """Put a message on its way; one that brings less and comes later says nothing more."""
    if arrival_ns < own.last_ns:
        for _ in range(own.on_way.length):
            row = message_list.pop(sim, own.on_way)
            if messages(sim)[row].arrival_ns < arrival_ns:
                message_list.push(sim, own.on_way, row)
            else:
                messages.free(sim, row)
    row = messages.new(sim)
    made = messages(sim)[row]
    made.covers_ns = covers_ns
    made.depart_ns = depart_ns
    made.arrival_ns = arrival_ns
    made.is_learned = is_learned
    message_list.push(sim, own.on_way, row)
    own.last_ns = arrival_ns


@part
def look(sim: Sim, own: Audit) -> None:
    """Take note of what has arrived by now; what a channel kept back that works again is sent once more."""
    if own.is_down and sim.now_ns >= own.up_ns and not own.is_dead:
        own.is_down = False
        if own.kept_ns > own.known_ns:
            depart_ns = own.up_ns + own.rest_ns
            expect(sim, own, own.kept_ns, depart_ns, depart_ns + own.way_ns, False)
    while own.on_way.length > 0 and messages(sim)[own.on_way.first].arrival_ns <= sim.now_ns:
        row = message_list.pop(sim, own.on_way)
        own.known_ns = max(own.known_ns, messages(sim)[row].covers_ns)
        messages.free(sim, row)


# What fails


@part
def lose_channel(sim: Sim, own: Audit, duration_ns: int) -> None:
    """See the channel cut, for a time or :data:`FOR_GOOD`: what has not arrived does not."""
    look(sim, own)
    if own.is_off or own.is_down or own.is_dead:
        return
    own.is_down = True
    own.up_ns = NEVER_NS if duration_ns == FOR_GOOD else sim.now_ns + duration_ns
    own.kept_ns = 0
    own.rest_ns = 0
    for _ in range(own.on_way.length):
        row = message_list.pop(sim, own.on_way)
        if messages(sim)[row].is_learned:
            message_list.push(sim, own.on_way, row)
        else:
            own.kept_ns = messages(sim)[row].covers_ns
            own.rest_ns = max(0, messages(sim)[row].depart_ns - sim.now_ns)
            messages.free(sim, row)


@part
def change_channel(sim: Sim, own: Audit, way_ns: int) -> None:
    """See that from now on a message takes ``way_ns`` on its way."""
    look(sim, own)
    own.way_ns = way_ns


@part
def lose_backup(sim: Sim, own: Audit) -> None:
    """See the backup die: nothing arrives any more."""
    look(sim, own)
    forget_messages(sim, own)
    own.is_dead = True
