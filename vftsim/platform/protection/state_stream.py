"""States on their way to a backup: what a state is made of, when it is on the wire, received, acknowledged, applied.

Rule (Remus, NSDI 2008): a state is the pages that have changed since the last one, and the vCPUs' and devices' own
state.  It leaves over the channel, and the backup acknowledges it as a whole when its last byte has come; a state of
which a byte is missing is worth nothing.  Disk writes of the same stretch of execution go before it and stay in the
backup's memory until then; they are applied to the backup's disk afterwards, whole or not at all.  What programs write
goes by itself (:mod:`.disk_mirror`).

The bytes of a state are whole, its pages are the mean of a model (:mod:`.memory`) and need not be.

Assumption: writes of which only a rate is given queue on the primary and travel with the state that covers them.  The
real system sends them while the guest runs; on a link that is otherwise idle then, that takes their time off the
state's transmission.
"""

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.arithmetic import nearest, product_quotient
from vftsim.platform.io.disk import PAGE_BYTES
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection import audit, disk_mirror
from vftsim.platform.protection.account import count, word
from vftsim.platform.protection.channel import Channel, channels, note_idle, push, put_piece, transmission_ns
from vftsim.platform.protection.disk_mirror import DiskMirror, disk_mirrors
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.machine import run_ns
from vftsim.platform.protection.memory import clean, dirty_pages, run_since_ns
from vftsim.platform.protection.pair import NEVER_NS
from vftsim.platform.protection.rollback import next_cut
from vftsim.platform.protection.sender import charge

STATES = word("states_taken")


class StateStream(Record):
    """The states of one guard.

    Parameters: the part of a state that does not depend on the guest (``fixed_bytes``), a page's bytes on the wire and
    the time to compress it, disk writes in bytes a nanosecond of CPU time and the rate of the backup's disk.

    The last state taken has number ``point`` (1 and on, through all backups); ``is_open`` until it is acknowledged.
    It left, or leaves, from ``sent_from_ns`` to ``depart_ns``, and its last byte takes ``latency_ns`` to the
    backup; as long as it has not ``is_sent`` these are of the one before, which was complete at
    ``heard_before_ns``. ``applied_ns`` is when the backup's disk has applied it, ``applied_before_ns`` the one
    before. What is not through by ``lost_ns`` does not get through: the channel or the backup is gone.
    On a channel that other traffic shares, ``rest_bytes`` of the state have not been put on the wire, and the last
    piece, of ``piece_bytes``, leaves at ``piece_ns``; ``depart_ns`` is when the rest has left if nobody else sends.
    The largest state had ``most_bytes``.  All states together carried ``carried_taken_bytes`` of disk writes; the
    backup's disk has ``disk_bytes`` to apply with the last one.  With it travel ``carried_bytes``, and by themselves
    went ``written_bytes`` of programs.
    ``taken_ns`` and ``ran_ns`` are when a state was taken and how much CPU time the guest had used.
    """

    fixed_bytes: int
    page_bytes: float
    page_ns: float
    disk_bytes_per_ns: float
    disk_rate: int
    point: int
    is_open: bool
    is_sent: bool
    taken_ns: int
    taken_before_ns: int
    ran_ns: int
    ran_before_ns: int
    pages: float
    disk_bytes: int
    carried_bytes: int
    written_bytes: int
    sent_from_ns: int
    depart_ns: int
    latency_ns: int
    heard_before_ns: int
    applied_ns: int
    applied_before_ns: int
    lost_ns: int
    rest_bytes: int
    piece_bytes: int
    piece_ns: int
    pages_taken: float
    most_uncommitted_bytes: int
    most_bytes: int
    carried_taken_bytes: int


state_streams = Table("state_streams", StateStream, beside=guards)


def begin(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> None:
    """Begin with a backup that is in step: this state counts as received."""
    stream.point += 1
    stream.is_open = False
    stream.is_sent = True
    stream.sent_from_ns = sim.now_ns
    stream.depart_ns = sim.now_ns
    stream.latency_ns = channels(sim)[guard.row].latency_ns
    stream.applied_ns = sim.now_ns
    stream.applied_before_ns = sim.now_ns
    stream.heard_before_ns = sim.now_ns
    stream.lost_ns = NEVER_NS
    stream.rest_bytes = stream.piece_bytes = 0
    stream.piece_ns = sim.now_ns
    # What was still being sent to an earlier backup does not delay this one.
    channels(sim)[guard.row].free_ns = sim.now_ns
    disk_mirror.begin(sim, guard)
    audit.begin(sim, guard.audit)
    date(sim, guard, stream)
    clean(sim, guard)


def take_state(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> None:
    """Take the state of the guest, which stands still."""
    stream.point += 1
    # Open and not sent: a crash from here to send() rolls back to the state before.
    stream.is_open = True
    stream.is_sent = False
    stream.pages = dirty_pages(sim, guard)
    stream.pages_taken += stream.pages
    stream.carried_bytes = nearest(stream.disk_bytes_per_ns * run_since_ns(sim, guard))
    stream.carried_taken_bytes += stream.carried_bytes
    stream.written_bytes = disk_mirror.cover(sim, guard)
    stream.disk_bytes = stream.carried_bytes + disk_mirror.buffered(disk_mirrors(sim)[guard.row], stream.written_bytes)
    stream.most_bytes = max(stream.most_bytes, state_bytes(stream))
    audit.replace(sim, guard.audit)
    if stream.disk_rate > 0:
        audit.write(guard.audit, product_quotient(stream.disk_bytes, BITS_NS, 8 * stream.disk_rate))
    audit.owe(guard.audit, nearest(stream.pages * stream.page_bytes) + stream.carried_bytes)
    date(sim, guard, stream)
    # Last: what was dirty by now is in this state.
    clean(sim, guard)
    count(sim, guard, STATES, 1)


def date(sim: Sim, guard: Guard, stream: StateStream) -> None:
    """Write down when a state is taken."""
    stream.taken_before_ns = stream.taken_ns
    stream.taken_ns = sim.now_ns
    stream.ran_before_ns = stream.ran_ns
    stream.ran_ns = run_ns(sim, guard)


def state_bytes(stream: StateStream) -> int:
    """Return the size of the state taken last on the wire, with the disk writes that it carries."""
    return stream.fixed_bytes + nearest(stream.pages * stream.page_bytes) + stream.carried_bytes


def send(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> None:
    """Begin to transmit the state taken last."""
    # Read while the fields are still those of the state before.
    stream.heard_before_ns = arrival_ns(sim, guard)
    stream.latency_ns = channels(sim)[guard.row].latency_ns
    stream.sent_from_ns = sim.now_ns
    if channels(sim)[guard.row].shared != 0:
        note_idle(sim, channels(sim)[guard.row])
        stream.rest_bytes = state_bytes(stream)
        send_piece(sim, guard)
    else:
        depart_ns = push(sim, channels(sim)[guard.row], state_bytes(stream))
        audit.send(sim, guard.audit, state_bytes(stream), depart_ns, stream.latency_ns)
        stream.depart_ns = compressed_ns(stream, depart_ns)
    stream.is_sent = True
    charge(sim, guard, stream.pages, (stream.carried_bytes + stream.written_bytes) / PAGE_BYTES)
    # Kept for a state that does not get through (applied_by_ns()).
    stream.applied_before_ns = stream.applied_ns
    plan_apply(stream, arrival_ns(sim, guard))


def compressed_ns(stream: StateStream, depart_ns: int) -> int:
    """Return when a state leaves: pages are compressed as they are sent, and what takes longer counts for both."""
    return max(depart_ns, stream.sent_from_ns + nearest(stream.pages * stream.page_ns))


def send_piece(sim: Sim, guard: Guard, stream: StateStream = BESIDE, channel: Channel = BESIDE) -> None:
    """Put the next piece of a state on a shared wire; with the last one it is known when the state has left."""
    stream.piece_bytes = put_piece(sim, channel, stream.rest_bytes)
    stream.piece_ns = channel.free_ns
    stream.rest_bytes -= stream.piece_bytes
    stream.depart_ns = compressed_ns(stream, stream.piece_ns + transmission_ns(channel, stream.rest_bytes))
    # Until the last piece is on the wire its departure is an estimate: others may send between.
    if stream.rest_bytes == 0:
        audit.send(sim, guard.audit, state_bytes(stream), stream.piece_ns, stream.latency_ns)


def plan_apply(stream: StateStream, arrived_ns: int) -> None:
    """Work out when the backup's disk has applied a state that is complete at ``arrived_ns``."""
    apply_ns = 0
    if stream.disk_rate > 0:
        apply_ns = product_quotient(stream.disk_bytes, BITS_NS, 8 * stream.disk_rate)
    # The disk applies one state after the other.
    stream.applied_ns = max(stream.applied_before_ns, arrived_ns) + apply_ns


def arrival_ns(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> int:
    """Return when the last byte sent reaches the backup."""
    return stream.depart_ns + stream.latency_ns


def ack_arrival_ns(sim: Sim, guard: Guard) -> int:
    """Return when the acknowledgement of the state that is sent is back."""
    return arrival_ns(sim, guard) + channels(sim)[guard.row].ack_ns


def acknowledge(sim: Sim, guard: Guard, stream: StateStream = BESIDE, mirror: DiskMirror = BESIDE) -> None:
    """Take the acknowledgement of the state taken last."""
    stream.is_open = False
    uncommitted_bytes = stream.disk_bytes + nearest(stream.disk_bytes_per_ns * run_since_ns(sim, guard))
    uncommitted_bytes += disk_mirror.buffered(mirror, mirror.written_bytes)
    stream.most_uncommitted_bytes = max(stream.most_uncommitted_bytes, uncommitted_bytes)


def lose(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> None:
    """Let nothing through any more that has not arrived by now."""
    stream.lost_ns = sim.now_ns
    disk_mirror.lose(sim, guard, stream.depart_ns)


def lose_acknowledgements(sim: Sim, guard: Guard) -> None:
    """Let no acknowledgement through any more, whatever has arrived: the backup died beyond a lost channel."""
    # Before every instant: whatever is asked, it was lost by then.
    state_streams(sim)[guard.row].lost_ns = -1


def restore_channel(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> None:
    """Let the channel work again: what had not left by then leaves now, what was on the wire is sent once more."""
    # Read while it is known since when nothing gets through: what had left by then is not sent again.
    rest_ns = max(0, stream.depart_ns - max(stream.lost_ns, stream.sent_from_ns))
    # A piece that had not left by the loss is sent once more, as a whole.
    if stream.piece_ns > stream.lost_ns:
        stream.rest_bytes += stream.piece_bytes
    stream.lost_ns = NEVER_NS
    stream.sent_from_ns = sim.now_ns
    # What was written before the state, or while the channel was lost, goes first: the backup needs it for the state.
    disk_mirror.send_again(sim, guard)
    stream.depart_ns = disk_mirrors(sim)[guard.row].depart_ns + rest_ns
    stream.latency_ns = channels(sim)[guard.row].latency_ns
    if stream.rest_bytes > 0:
        send_piece(sim, guard)
    else:
        channels(sim)[guard.row].free_ns = stream.depart_ns
    plan_apply(stream, arrival_ns(sim, guard))


def send_rest(sim: Sim, guard: Guard, rate_before: int, stream: StateStream = BESIDE) -> None:
    """Let what is left of a state on the wire continue over a channel that has changed; ``rate_before`` in bit/s.

    A state whose compression takes longer than its transmission slows down like any other.
    """
    channel, written = channels(sim)[guard.row], disk_mirrors(sim)[guard.row]
    # On a channel that is down nothing has left since the loss.
    begin_ns = max(stream.sent_from_ns, min(sim.now_ns, stream.lost_ns))
    if stream.is_sent and stream.depart_ns > begin_ns:
        left_ns = stream.depart_ns - begin_ns
        behind_ns = written.depart_ns - stream.depart_ns
        stream.depart_ns = begin_ns + product_quotient(left_ns, rate_before, channel.rate_bits_per_s)
        stream.latency_ns = channel.latency_ns
        disk_mirror.follow(written, channel, behind_ns, stream.depart_ns, rate_before)
        plan_apply(stream, arrival_ns(sim, guard))
        audit.resend_rest(sim, guard.audit, begin_ns, stream.depart_ns, stream.latency_ns)
    elif written.depart_ns > sim.now_ns:
        disk_mirror.follow(written, channel, written.depart_ns - sim.now_ns, sim.now_ns, rate_before)


def has_received_last(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> bool:
    """Tell whether the state taken last is, or will be, complete at the backup if the primary fails now."""
    if not stream.is_open:
        return True
    # What has not left dies with the primary; what has left arrives, unless the channel was lost before it could.
    return stream.is_sent and stream.depart_ns <= sim.now_ns and arrival_ns(sim, guard) <= stream.lost_ns


def received_point(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> int:
    """Return the number of the last state that the backup has or will have if the primary fails now."""
    return stream.point if has_received_last(sim, guard) else stream.point - 1


def is_foreseen(sim: Sim, guard: Guard) -> bool:
    """Tell whether the backup has received the state with which the guest was stopped, for a crash that was foreseen.

    While a guest stands still others have more of a shared processor and channel, which can keep its state back: then
    it must end earlier.
    """
    return next_cut(sim, guard).finding.point <= received_point(sim, guard)


def received_taken_ns(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> int:
    """Return when that state was taken."""
    return stream.taken_ns if has_received_last(sim, guard) else stream.taken_before_ns


def execution_since_ns(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> int:
    """Return the CPU time that the guest has used since."""
    return run_ns(sim, guard) - (stream.ran_ns if has_received_last(sim, guard) else stream.ran_before_ns)


def applied_by_ns(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> int:
    """Return when the backup's disk has applied all that it has received."""
    return stream.applied_ns if has_received_last(sim, guard) or not stream.is_sent else stream.applied_before_ns


def last_byte_ns(sim: Sim, guard: Guard, stream: StateStream = BESIDE) -> int:
    """Return when the backup hears the last byte if the primary fails now."""
    # Nothing of this state got through: the last byte heard was of the one before.
    if stream.sent_from_ns >= stream.lost_ns:
        return stream.heard_before_ns
    return min(min(sim.now_ns, stream.depart_ns) + stream.latency_ns, stream.lost_ns)


def left_bytes(engine: Engine, guard: int) -> int:
    """Return what has left by now: a state counts as written when its transmission begins."""
    stream, channel = engine.rows(state_streams)[guard], engine.rows(channels)[guard]
    if channel.shared:
        return int(channel.sent_bytes)
    # Nothing has left since a loss, of a state that was taken later nothing at all.
    now_ns = min(engine.now_ns, max(int(stream.lost_ns), int(stream.sent_from_ns)))
    rate_bits_per_s, rest_ns = int(channel.rate_bits_per_s), max(0, int(stream.depart_ns) - now_ns)
    # At the channel's rate what a lost channel has kept back leaves; a share of the state, what compression stretches.
    rest_bytes = product_quotient(rest_ns, rate_bits_per_s, BITS_NS)
    if rest_ns > 0 and stream.page_ns > 0.0:
        of_state = product_quotient(state_bytes(stream), rest_ns, int(stream.depart_ns) - int(stream.sent_from_ns))
        rest_bytes = min(rest_bytes, of_state)
    behind_ns = max(0, int(engine.rows(disk_mirrors)[guard].depart_ns) - max(now_ns, int(stream.depart_ns)))
    return int(channel.sent_bytes) - int(rest_bytes) - product_quotient(behind_ns, rate_bits_per_s, BITS_NS)


def holds(engine: Engine, guard: int) -> dict[str, int | float]:
    """Return what the states of a guard were and cost the channel."""
    stream, mirror = engine.rows(state_streams)[guard], engine.rows(disk_mirrors)[guard]
    return {
        "channel_bytes": left_bytes(engine, guard),
        "dirty_pages": float(stream.pages_taken),
        "backup_disk_bytes": int(stream.carried_taken_bytes) + int(mirror.mirrored_bytes),
        "most_uncommitted_bytes": int(stream.most_uncommitted_bytes),
    }
