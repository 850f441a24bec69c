"""Retransmission over UDP.

RFC 3261 (17.1.1.2, 17.1.2.2): a request is sent again after T1 = 500 ms, then after twice the last
wait; the wait of a non-INVITE request is limited to T2 = 4 s, that of an INVITE is not.  SIPp follows
this with a limit on the number: 5 retransmissions of an INVITE, 9 of any other request; then the
attempt fails.  A server's transaction ends with its timer instead (RFC 3261: B and F, 64 T1 = 32 s; OpenSIPS: 30 s).

Who repeats a message has a :class:`Repetition` in his record and an event of his own, which asks
:func:`must_repeat` whether to send again or to give up.
"""

from vftsim.kernel import EventKind, Record, Sim, at

NO_LIMIT = 1 << 30
LONGEST_WAIT_NS = 1 << 60
"""Doubling ends here, 36 years, to stay within 64 bits."""


class Repetition(Record):
    """One unanswered message; ``timer`` is 0 when nothing is repeated.

    ``ceiling_ns`` limits the doubled wait, 0 for none; ``limit`` the number of repetitions; ``end_ns`` is when it ends
    whatever ``limit`` says, 0 for never.
    """

    timer: int
    count: int
    limit: int
    wait_ns: int
    ceiling_ns: int
    end_ns: int


def begin(repetition: Repetition, first_wait_ns: int, ceiling_ns: int, limit: int, end_ns: int) -> None:
    """Set up the repetition of a message that is being sent; :func:`wait` comes next."""
    repetition.count = 0
    repetition.limit = limit
    repetition.wait_ns = first_wait_ns
    repetition.ceiling_ns = ceiling_ns
    repetition.end_ns = end_ns


def wait(sim: Sim, repetition: Repetition, entity: int, action: int, row: int) -> None:
    """Plan the event ``action`` for the end of the present wait."""
    due_ns = sim.now_ns + repetition.wait_ns
    if repetition.end_ns != 0:
        due_ns = min(due_ns, repetition.end_ns)
    repetition.timer = at(sim, due_ns, EventKind.TIMER, entity, action, row)


def must_repeat(sim: Sim, repetition: Repetition, entity: int, action: int, row: int) -> bool:
    """At the end of a wait: plan the next one, or stop; tell whether the message is sent again."""
    # A process that is late with its timers may come here after the end.
    if repetition.count >= repetition.limit or (repetition.end_ns != 0 and sim.now_ns >= repetition.end_ns):
        repetition.timer = 0
        return False
    repetition.count += 1
    repetition.wait_ns = min(repetition.wait_ns * 2, LONGEST_WAIT_NS)
    if repetition.ceiling_ns != 0:
        repetition.wait_ns = min(repetition.wait_ns, repetition.ceiling_ns)
    wait(sim, repetition, entity, action, row)
    return True
