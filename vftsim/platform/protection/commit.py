"""The output-commit rule, and the auditor that watches it on every output.

Rule (Scales, Nelson, Venkitachalam 2010): an output leaves the primary only after the backup has
acknowledged the log entry of that output operation, hence all entries before it.  The primary continues
executing; only the output waits.

After a crash the backup cannot know whether the outputs that were allowed to leave at the very end did
leave.  It issues again every output whose entry it holds and whose release it cannot be sure of: those
not released before the last entry that it received was sent.  Clients may see duplicates, never a gap
in what was logged and never an output that the backup cannot derive.

The auditor asks the secondary itself which entries it holds at the instant of a release, and does not
look at how that instant was computed.
"""

from vftsim.kernel import BESIDE, EventKind, Failure, Fifo, Sim, at, fail, timer
from vftsim.platform.io.packet import copy, discard, packet_list
from vftsim.platform.protection import replay
from vftsim.platform.protection.guard import guards, release
from vftsim.platform.protection.pair import NEVER_NS, Output, Pair, output_list, outputs, pairs

_ENTITY = 1

TOO_EARLY = Failure("an output leaves before the secondary holds its log entry: output commit is broken")
OUT_OF_ORDER = Failure("an output leaves after one that was issued later")
UNDERIVABLE = Failure("an output was seen whose log entry died with the primary: output commit is broken")


def start(sim: Sim, pair: Pair) -> None:
    """Begin with no outputs."""
    pair.outputs.first = 0
    pair.outputs.last = 0
    pair.outputs.length = 0
    pair.issued = 0
    pair.visible = 0
    pair.released = 0
    pair.waiting = 0
    pair.wait_ns = 0
    pair.longest_ns = 0
    pair.backup_is_gone = False
    pair.is_over = False


def hold(sim: Sim, pair: Pair, packet: int, depart_ns: int, arrival_ns: int, ack_ns: int) -> None:
    """Keep an output until its acknowledgement arrives at ``ack_ns``."""
    # Those whose release the secondary can be sure of once this entry has arrived are forgotten.
    while pair.outputs.length > 0 and is_certain(outputs(sim)[pair.outputs.first], depart_ns):
        forget_first(sim, pair)
    expect(sim, pair, hold_unsent(sim, pair, packet), depart_ns, arrival_ns, ack_ns)


def hold_unsent(sim: Sim, pair: Pair, packet: int) -> int:
    """Keep an output whose log entry cannot be sent at present; return its row."""
    pair.issued += 1
    pair.waiting += 1
    row = outputs.new(sim)
    output = outputs(sim)[row]
    output.pair = pair.row
    output.sequence = pair.issued
    output.packet = packet
    output.issued_ns = sim.now_ns
    output.depart_ns = NEVER_NS
    output.arrival_ns = NEVER_NS
    output.ack_ns = NEVER_NS
    output.released = False
    output.alarm = 0
    output_list.push(sim, pair.outputs, row)
    return row


def is_certain(output: Output, sent_ns: int) -> bool:
    """Tell whether who receives an entry sent at ``sent_ns`` can be sure that the output has left."""
    return output.released and output.ack_ns < sent_ns


def forget_first(sim: Sim, pair: Pair) -> None:
    """Forget the oldest output with its packet."""
    row = output_list.pop(sim, pair.outputs)
    # Stale also when the row is another output's by then.
    outputs(sim)[row].alarm = 0
    discard(sim, outputs(sim)[row].packet)
    outputs.free(sim, row)


def expect(sim: Sim, pair: Pair, row: int, depart_ns: int, arrival_ns: int, ack_ns: int) -> None:
    """Plan the release of an output."""
    output = outputs(sim)[row]
    output.depart_ns = depart_ns
    output.arrival_ns = arrival_ns
    output.ack_ns = ack_ns
    replay.receive(sim, pair.secondary, output.sequence, arrival_ns)
    output.alarm = at(sim, ack_ns, EventKind.CHANNEL, _ENTITY, on_acknowledged, row)


@timer(outputs, "alarm")
def on_acknowledged(sim: Sim, output: Output, pair: Pair = BESIDE) -> None:
    """An output's acknowledgement has arrived, if its host lives."""
    if not guards(sim)[pair.guard].dead:
        # The last output that waits of a pair that is over frees the pair.
        release_output(sim, pair, output)
        if pair.is_over and pair.waiting == 0:
            dispose(sim, pair)


def release_output(sim: Sim, pair: Pair, output: Output) -> None:
    """Release an output under the auditor's eyes, and keep a copy."""
    output.alarm = 0
    if not pair.backup_is_gone and output.sequence > replay.holds(sim, pair.secondary):
        fail(sim, TOO_EARLY)
    if output.sequence <= pair.visible:
        fail(sim, OUT_OF_ORDER)
    # Marked before it leaves: at its receiver it may cause what looks at this pair again.
    pair.visible = output.sequence
    pair.released += 1
    pair.waiting -= 1
    wait_ns = sim.now_ns - output.issued_ns
    pair.wait_ns += wait_ns
    pair.longest_ns = max(pair.longest_ns, wait_ns)
    output.released = True
    leaving = output.packet
    output.packet = copy(sim, leaving)
    release(sim, leaving)


def held(sim: Sim, pair: Pair) -> int:
    """Count the outputs that were issued and not released."""
    count = 0
    for output in outputs.listed(sim, output_list, pair.outputs):
        if not output.released:
            count += 1
    return count


def lose_channel(sim: Sim, pair: Pair, acks_survive: bool) -> None:
    """Stop outputs whose acknowledgement will not come; those on the wire do if ``acks_survive``."""
    # On exit who waits without an alarm waits for the channel (resend()), or for a primary that continues alone.
    for output in outputs.listed(sim, output_list, pair.outputs):
        arrived = output.arrival_ns <= sim.now_ns
        if not output.released and not (arrived and acks_survive):
            output.alarm = 0
            if not arrived:
                output.depart_ns = NEVER_NS
                output.arrival_ns = NEVER_NS
    replay.drop_in_flight(sim, pair.secondary)


def resend(sim: Sim, pair: Pair, depart_ns: int, arrival_ns: int, ack_ns: int) -> None:
    """Expect the acknowledgement of everything still held: the channel works again."""
    for row in output_list.rows(sim, pair.outputs):
        output = outputs(sim)[row]
        # Those with an alarm had been acknowledged before the loss: their acknowledgement is on its way.
        if not output.released and output.alarm == 0:
            expect(sim, pair, row, depart_ns, arrival_ns, ack_ns)


def release_all(sim: Sim, pair: Pair) -> int:
    """Release everything that is held: the primary continues alone; return how many."""
    # Before the first leaves: the auditor has no backup to ask any more.
    pair.backup_is_gone = True
    count = pair.waiting
    for output in outputs.listed(sim, output_list, pair.outputs):
        if not output.released:
            release_output(sim, pair, output)
    while pair.outputs.length > 0:
        forget_first(sim, pair)
    return count


def is_uncertain(output: Output, limit_ns: int, last_sent_ns: int) -> bool:
    """Tell whether a secondary issues an output when it goes live.

    It has entries that have left the primary by ``limit_ns``, the last of them sent at ``last_sent_ns``: the primary
    lived then.
    """
    return output.depart_ns <= limit_ns and not is_certain(output, last_sent_ns)


def copy_uncertain(sim: Sim, pair: Pair, limit_ns: int, last_sent_ns: int, copies: Fifo) -> None:
    """Put copies of what a secondary issues when it goes live into a list of packets."""
    for output in outputs.listed(sim, output_list, pair.outputs):
        if is_uncertain(output, limit_ns, last_sent_ns):
            packet_list.push(sim, copies, copy(sim, output.packet))


def take_over(sim: Sim, pair: Pair, limit_ns: int, last_sent_ns: int, issued: Fifo) -> int:
    """Stop all releases by the primary; put what the secondary issues into a list of packets.

    Return how many of these were released before.
    """
    again = 0
    while pair.outputs.length > 0:
        output = outputs(sim)[pair.outputs.first]
        if output.released and output.depart_ns > limit_ns:
            fail(sim, UNDERIVABLE)
        if is_uncertain(output, limit_ns, last_sent_ns):
            if output.released:
                again += 1
            packet_list.push(sim, issued, copy(sim, output.packet))
        # With its alarm cleared: an acknowledgement still under way releases nothing.
        forget_first(sim, pair)
    pair.waiting = 0
    return again


def dispose(sim: Sim, pair: Pair) -> None:
    """Give a pair back that is over and has nothing to wait for."""
    while pair.outputs.length > 0:
        forget_first(sim, pair)
    replay.clear(sim, pair.secondary)
    # Must be called when no output waits.  Events of those that were released find another token.
    pairs.free(sim, pair.row)
