"""Rollback by two passes: a run that knows where a guest's life ends before its primary crashes.

A guest that is rolled back to its last received state has lived on after that state, and nobody outside has seen it.
Whether a state is received before a crash depends on what the guest does until then, so it cannot be known beforehand.
But a run is deterministic.  The first pass plays it up to the crash, which nobody announces, and finds the last state
that the backup has received (:func:`request_rollback`); the next pass stops the guest for good at that very point, lets
the crash come, and resumes the guest when the backup goes live.  A guest that does not run is its own saved state;
clients, whose state is not rolled back, continue.  See :mod:`.passes` for the driver's side.

Points are the states that a mechanism takes, numbered from 1 on through a run.  A mechanism whose backup follows the
guest's inputs takes none.  Only a loss of the channel leaves its backup behind: the point -n is the n-th such loss, and
the guest ends at the first message that this loss has kept from the backup.
"""

from vftsim.kernel import Chain, EventKind, Failure, Fifo, Record, Sim, Table, at, entry, event, fail
from vftsim.kernel.order import ENTITY_BITS
from vftsim.platform.protection.account import count, word
from vftsim.platform.protection.guard import Guard, guards, protection
from vftsim.platform.protection.machine import run_ns
from vftsim.platform.protection.pair import NEVER_NS

NEEDS_A_PASS = Failure(
    "a crash rolls this guest back to a state that the run had not foreseen; play it in passes "
    "(vftsim.platform.protection.passes)"
)
ROLLED_BACK = word("rollback_ns", unit="ns")
EXECUTION_LOST = word("execution_lost_ns", unit="ns")
OUTPUTS_LOST = word("outputs_lost_at_crash")
UNDERIVABLE = word("outputs_underivable")
PASSES_DIFFER = Failure("two passes of one run disagree on the state that a backup has received: a defect")
_LAST_ENTITY = (1 << ENTITY_BITS) - 1
"""What comes after everything else at an instant."""


class Finding(Record):
    """What a pass has found at the end of a primary's life.

    If anything ``is_found``, it ends at ``crash_ns``, by a crash or because the backup takes it for dead and halts it
    (``is_fenced``).  The backup has received the state ``point`` and heard of the primary last at ``heard_ns``.  That
    state is ``rollback_ns`` old, and the guest has used ``execution_ns`` of CPU time since.  ``outputs_lost`` die with
    the primary; ``outputs_underivable`` were seen though they came after that state.  Of a loss: messages that left
    after ``limit_ns`` have not reached the backup.
    """

    is_found: bool
    crash_ns: int
    is_fenced: bool
    point: int
    heard_ns: int
    rollback_ns: int
    execution_ns: int
    outputs_lost: int
    outputs_underivable: int
    limit_ns: int


class Cut(Record):
    """A point at which a guard's guest ends its life, because what is to come destroys what follows."""

    link: int
    guard: int
    finding: Finding


class Loss(Record):
    """The last loss of the channel to a backup that follows the guest's inputs; ``number`` counts them.

    Messages that left after ``limit_ns`` have not arrived, and none of these was written before ``written_ns``.  The
    guest had used ``run_ns`` of CPU time.
    """

    number: int
    limit_ns: int
    written_ns: int
    run_ns: int


class Foresight(Record):
    """The cuts of a guard that earlier passes have found, what this pass has found, and the last loss."""

    cuts: Fifo
    finding: Finding
    loss: Loss


cuts = Table("cuts", Cut, 1 << 14, "let fewer faults strike")
cut_list = Chain(cuts, "link")
foresights = Table("foresights", Foresight, beside=guards)


@protection.slot
def reach_point(sim: Sim, guard: Guard) -> None:
    """Stop the guest for good if the state that was taken last is the one to which a crash to come rolls it back."""


@entry
def foresee(sim: Sim, cut: int) -> None:
    """Take in a cut that an earlier pass has found; the first point may have been reached already."""
    guard = guards(sim)[cuts(sim)[cut].guard]
    cut_list.push(sim, foresights(sim)[guard.row].cuts, cut)
    reach_point(sim, guard)


def next_cut(sim: Sim, guard: Guard) -> Cut:
    """Return the next cut of a guard; row 0 if none is foreseen."""
    return cuts(sim)[foresights(sim)[guard.row].cuts.first]


def is_cut_at(sim: Sim, guard: Guard, point: int) -> bool:
    """Tell whether a guest's life ends at a point."""
    # Asked first: row 0 has the point 0, as a guard without any loss has (is_cut_at_loss()).
    return foresights(sim)[guard.row].cuts.first != 0 and next_cut(sim, guard).finding.point == point


def note_loss(sim: Sim, guard: Guard, limit_ns: int, written_ns: int) -> None:
    """Take note of a loss of the channel; fields as in :class:`Loss`."""
    loss = foresights(sim)[guard.row].loss
    # Passes are deterministic: the number names the same loss in the next one.
    loss.number += 1
    loss.limit_ns = limit_ns
    loss.written_ns = written_ns
    loss.run_ns = run_ns(sim, guard)


def is_cut_at_loss(sim: Sim, guard: Guard) -> bool:
    """Tell whether a guest's life ends with the last loss of the channel."""
    return is_cut_at(sim, guard, -foresights(sim)[guard.row].loss.number)


def use_loss(sim: Sim, guard: Guard) -> int:
    """Come to the end that a cut at the last loss was made for.  Return when the backup last heard."""
    return use_cut(sim, guard, -foresights(sim)[guard.row].loss.number)


def request_rollback_to_loss(sim: Sim, guard: Guard, is_fenced: bool, heard_ns: int) -> None:
    """End this pass: the guest must end with the last loss of the channel."""
    finding, loss = foresights(sim)[guard.row].finding, foresights(sim)[guard.row].loss
    finding.is_fenced = is_fenced
    finding.point = -loss.number
    finding.heard_ns = heard_ns
    finding.rollback_ns = sim.now_ns - loss.written_ns
    finding.execution_ns = run_ns(sim, guard) - loss.run_ns
    finding.limit_ns = loss.limit_ns
    request_rollback(sim, guard)


def foreseen_limit_ns(sim: Sim, guard: Guard) -> int:
    """Return the instant after which no message leaves that a loss to come lets through, of losses that are cuts."""
    least_ns = NEVER_NS
    for cut in cuts.listed(sim, cut_list, foresights(sim)[guard.row].cuts):
        # Points below 0 are losses of the channel, by their number.
        if cut.finding.point < 0:
            least_ns = min(least_ns, cut.finding.limit_ns)
    return least_ns


def fenced_ns(sim: Sim, guard: Guard) -> int:
    """Return when the primary of the next cut is fenced; 0 if it crashes."""
    finding = next_cut(sim, guard).finding
    return finding.crash_ns if finding.is_fenced else 0


def use_cut(sim: Sim, guard: Guard, point: int) -> int:
    """Come to the end that a cut was made for; ``point`` has been received.  Return when the backup last heard."""
    row = cut_list.pop(sim, foresights(sim)[guard.row].cuts)
    finding = cuts(sim)[row].finding
    # A pass that comes to anything else than the pass before is a defect, not another rollback.
    if finding.point != point or finding.crash_ns != sim.now_ns:
        fail(sim, PASSES_DIFFER)
    count(sim, guard, ROLLED_BACK, finding.rollback_ns)
    count(sim, guard, EXECUTION_LOST, finding.execution_ns)
    count(sim, guard, OUTPUTS_LOST, finding.outputs_lost)
    if finding.outputs_underivable > 0:
        count(sim, guard, UNDERIVABLE, finding.outputs_underivable)
    # Read before the row is free.
    heard_ns = finding.heard_ns
    cuts.free(sim, row)
    return heard_ns


def request_rollback(sim: Sim, guard: Guard) -> None:
    """End this pass: what has come was not foreseen, and rolls the guest back as its ``finding`` says.

    A host's guests all run until it fails, so what each has saved by then is found in one pass: at the end of the
    instant, when every guest has met its fault.
    """
    foresights(sim)[guard.row].finding.crash_ns = sim.now_ns
    foresights(sim)[guard.row].finding.is_found = True
    # What still happens at this instant to this guest counts for nothing: the pass is played again from before.
    at(sim, sim.now_ns, EventKind.CONTROL, _LAST_ENTITY, on_pass_over, guard.row)


@event
def on_pass_over(sim: Sim) -> None:
    fail(sim, NEEDS_A_PASS)
