"""States on their way to a backup: what a state is made of, when it is on the wire, received, acknowledged, applied.

Rule (Remus, NSDI 2008): a state is the pages that have changed since the last one, and the vCPUs' and devices' own
state.  It leaves over the channel, and the backup acknowledges it as a whole when its last byte has come; a state of
which a byte is missing is worth nothing.  Disk writes of the same stretch of execution go before it and stay in the
backup's memory until then; they are applied to the backup's disk afterwards, whole or not at all.

The bytes of a state are whole, its pages are the mean of a model (:mod:`.memory`) and need not be.

Assumption: disk writes queue on the primary and travel with the state that covers them.  The real system sends them
while the guest runs; on a link that is otherwise idle then, that takes their time off the state's transmission.
"""

from vftsim.kernel import Engine, Record, Sim, Table, part
from vftsim.platform.arithmetic import nearest, scaled
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection import audit
from vftsim.platform.protection.account import count, word
from vftsim.platform.protection.channel import channels, note_idle, push, put_piece, transmission_ns
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.machine import run_ns
from vftsim.platform.protection.memory import clean, dirty_pages, run_since_ns
from vftsim.platform.protection.pair import NEVER_NS
from vftsim.platform.protection.sender import charge

STATES = word("states_taken")


class StateStream(Record):
    """The states of one guard.

    Parameters: the part of a state that does not depend on the guest (``fixed_bytes``), a page's bytes on the wire and
    the time to compress it, disk writes in bytes a nanosecond of CPU time and the rate of the backup's disk.

    The last state taken has number ``point`` (1 and on, through all backups); ``is_open`` until it is acknowledged.
    It left, or leaves, from ``sent_from_ns`` to ``depart_ns``, and its last byte takes ``way_ns`` to the
    backup; as long as it has not ``is_sent`` these are of the one before, which was complete at
    ``heard_before_ns``. ``applied_ns`` is when the backup's disk has applied it, ``applied_before_ns`` the one
    before. What is not through by ``lost_ns`` does not get through: the channel or the backup is gone.
    On a channel that other traffic shares, ``rest_bytes`` of the state have not been put on the wire, and the last
    piece, of ``piece_bytes``, leaves at ``piece_ns``; ``depart_ns`` is when the rest has left if nobody else sends.
    The largest state had ``most_bytes``, and all states together ``disk_taken_bytes`` of disk writes.
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
    sent_from_ns: int
    depart_ns: int
    way_ns: int
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
    disk_taken_bytes: int


state_streams = Table("state_streams", StateStream, beside=guards)


@part
def begin(sim: Sim, guard: Guard) -> None:
    """Begin with a backup that is in step: this state counts as received."""
    own = state_streams(sim)[guard.row]
    own.point += 1
    own.is_open = False
    own.is_sent = True
    own.sent_from_ns = sim.now_ns
    own.depart_ns = sim.now_ns
    own.way_ns = channels(sim)[guard.row].latency_ns
    own.applied_ns = sim.now_ns
    own.applied_before_ns = sim.now_ns
    own.heard_before_ns = sim.now_ns
    own.lost_ns = NEVER_NS
    own.rest_bytes = own.piece_bytes = 0
    own.piece_ns = sim.now_ns
    channels(sim)[guard.row].free_ns = sim.now_ns
    audit.begin(sim, guard.audit)
    date(sim, guard, own)
    clean(sim, guard)


@part
def take_state(sim: Sim, guard: Guard) -> None:
    """Take the state of the guest, which stands still."""
    own = state_streams(sim)[guard.row]
    own.point += 1
    own.is_open = True
    own.is_sent = False
    own.pages = dirty_pages(sim, guard)
    own.pages_taken += own.pages
    own.disk_bytes = nearest(own.disk_bytes_per_ns * run_since_ns(sim, guard))
    own.disk_taken_bytes += own.disk_bytes
    own.most_bytes = max(own.most_bytes, state_bytes(own))
    audit.replace(sim, guard.audit)
    if own.disk_rate > 0:
        audit.write(guard.audit, scaled(own.disk_bytes, BITS_NS, 8 * own.disk_rate))
    audit.owe(guard.audit, nearest(own.pages * own.page_bytes) + own.disk_bytes)
    date(sim, guard, own)
    clean(sim, guard)
    count(sim, guard, STATES, 1)


@part
def date(sim: Sim, guard: Guard, own: StateStream) -> None:
    """Write down when a state is taken."""
    own.taken_before_ns = own.taken_ns
    own.taken_ns = sim.now_ns
    own.ran_before_ns = own.ran_ns
    own.ran_ns = run_ns(sim, guard)


@part
def state_bytes(own: StateStream) -> int:
    """Return the size of the state taken last on the wire, disk writes included."""
    return own.fixed_bytes + nearest(own.pages * own.page_bytes) + own.disk_bytes


@part
def send(sim: Sim, guard: Guard) -> None:
    """Begin to transmit the state taken last."""
    own = state_streams(sim)[guard.row]
    # Read while the fields are still those of the state before.
    own.heard_before_ns = arrival_ns(sim, guard)
    own.way_ns = channels(sim)[guard.row].latency_ns
    own.sent_from_ns = sim.now_ns
    if channels(sim)[guard.row].shared != 0:
        note_idle(sim, channels(sim)[guard.row])
        own.rest_bytes = state_bytes(own)
        send_piece(sim, guard)
    else:
        depart_ns = push(sim, channels(sim)[guard.row], state_bytes(own))
        audit.send(sim, guard.audit, state_bytes(own), depart_ns, own.way_ns)
        own.depart_ns = compressed_ns(own, depart_ns)
    own.is_sent = True
    charge(sim, guard, own.pages)
    own.applied_before_ns = own.applied_ns
    plan_apply(own, arrival_ns(sim, guard))


@part
def compressed_ns(own: StateStream, depart_ns: int) -> int:
    """Return when a state leaves: pages are compressed as they are sent, and what takes longer counts for both."""
    return max(depart_ns, own.sent_from_ns + nearest(own.pages * own.page_ns))


@part
def send_piece(sim: Sim, guard: Guard) -> None:
    """Put the next piece of a state on a shared wire; with the last one it is known when the state has left."""
    own = state_streams(sim)[guard.row]
    channel = channels(sim)[guard.row]
    own.piece_bytes = put_piece(sim, channel, own.rest_bytes)
    own.piece_ns = channel.free_ns
    own.rest_bytes -= own.piece_bytes
    own.depart_ns = compressed_ns(own, own.piece_ns + transmission_ns(channel, own.rest_bytes))
    if own.rest_bytes == 0:
        audit.send(sim, guard.audit, state_bytes(own), own.piece_ns, own.way_ns)


@part
def plan_apply(own: StateStream, arrived_ns: int) -> None:
    """Work out when the backup's disk has applied a state that is complete at ``arrived_ns``."""
    apply_ns = 0
    if own.disk_rate > 0:
        apply_ns = scaled(own.disk_bytes, BITS_NS, 8 * own.disk_rate)
    own.applied_ns = max(own.applied_before_ns, arrived_ns) + apply_ns


@part
def arrival_ns(sim: Sim, guard: Guard) -> int:
    """Return when the last byte sent reaches the backup."""
    own = state_streams(sim)[guard.row]
    return own.depart_ns + own.way_ns


@part
def ack_arrival_ns(sim: Sim, guard: Guard) -> int:
    """Return when the acknowledgement of the state that is sent is back."""
    return arrival_ns(sim, guard) + channels(sim)[guard.row].ack_ns


@part
def acknowledge(sim: Sim, guard: Guard) -> None:
    """Take the acknowledgement of the state taken last."""
    own = state_streams(sim)[guard.row]
    own.is_open = False
    uncommitted_bytes = own.disk_bytes + nearest(own.disk_bytes_per_ns * run_since_ns(sim, guard))
    own.most_uncommitted_bytes = max(own.most_uncommitted_bytes, uncommitted_bytes)


@part
def lose(sim: Sim, guard: Guard) -> None:
    """Let nothing through any more that has not arrived by now."""
    state_streams(sim)[guard.row].lost_ns = sim.now_ns


@part
def lose_acknowledgements(sim: Sim, guard: Guard) -> None:
    """Let no acknowledgement through any more, whatever has arrived: the backup died beyond a lost channel."""
    state_streams(sim)[guard.row].lost_ns = -1


@part
def repair(sim: Sim, guard: Guard) -> None:
    """Let the channel work again: what had not left by then leaves now, what was on the wire is sent once more."""
    own = state_streams(sim)[guard.row]
    # Read while it is known since when nothing gets through: what had left by then is not sent again.
    rest_ns = max(0, own.depart_ns - max(own.lost_ns, own.sent_from_ns))
    if own.piece_ns > own.lost_ns:
        own.rest_bytes += own.piece_bytes
    own.lost_ns = NEVER_NS
    own.sent_from_ns = sim.now_ns
    own.depart_ns = sim.now_ns + rest_ns
    own.way_ns = channels(sim)[guard.row].latency_ns
    if own.rest_bytes > 0:
        send_piece(sim, guard)
        plan_apply(own, arrival_ns(sim, guard))
        return
    channels(sim)[guard.row].free_ns = own.depart_ns
    plan_apply(own, arrival_ns(sim, guard))


@part
def send_on(sim: Sim, guard: Guard, rate_before: int) -> None:
    """Let what is left of a state on the wire go on over a channel that has changed; ``rate_before`` in bit/s.

    A state whose compression takes longer than its transmission slows down like any other.
    """
    own = state_streams(sim)[guard.row]
    channel = channels(sim)[guard.row]
    begin_ns = max(own.sent_from_ns, min(sim.now_ns, own.lost_ns))
    if own.is_sent and own.depart_ns > begin_ns:
        own.depart_ns = begin_ns + scaled(own.depart_ns - begin_ns, rate_before, channel.rate_bits_per_s)
        own.way_ns = channel.latency_ns
        channel.free_ns = own.depart_ns
        plan_apply(own, arrival_ns(sim, guard))
        audit.send_on(sim, guard.audit, begin_ns, own.depart_ns, own.way_ns)


@part
def has_received_last(sim: Sim, guard: Guard) -> bool:
    """Tell whether the state taken last is, or will be, complete at the backup if the primary fails now."""
    own = state_streams(sim)[guard.row]
    if not own.is_open:
        return True
    return own.is_sent and own.depart_ns <= sim.now_ns and arrival_ns(sim, guard) <= own.lost_ns


@part
def received_point(sim: Sim, guard: Guard) -> int:
    """Return the number of the last state that the backup has or will have if the primary fails now."""
    own = state_streams(sim)[guard.row]
    return own.point if has_received_last(sim, guard) else own.point - 1


@part
def received_taken_ns(sim: Sim, guard: Guard) -> int:
    """Return when that state was taken."""
    own = state_streams(sim)[guard.row]
    return own.taken_ns if has_received_last(sim, guard) else own.taken_before_ns


@part
def execution_since_ns(sim: Sim, guard: Guard) -> int:
    """Return the CPU time that the guest has used since."""
    own = state_streams(sim)[guard.row]
    return run_ns(sim, guard) - (own.ran_ns if has_received_last(sim, guard) else own.ran_before_ns)


@part
def applied_by_ns(sim: Sim, guard: Guard) -> int:
    """Return when the backup's disk has applied all that it has received."""
    own = state_streams(sim)[guard.row]
    return own.applied_ns if has_received_last(sim, guard) or not own.is_sent else own.applied_before_ns


@part
def last_byte_ns(sim: Sim, guard: Guard) -> int:
    """Return when the backup hears the last byte if the primary fails now."""
    own = state_streams(sim)[guard.row]
    if own.sent_from_ns >= own.lost_ns:
        return own.heard_before_ns
    return min(min(sim.now_ns, own.depart_ns) + own.way_ns, own.lost_ns)


def holds(engine: Engine, guard: int) -> dict[str, int | float]:
    """Return what the states of a guard were and cost the channel."""
    own = engine.rows(state_streams)[guard]
    return {
        "channel_bytes": int(engine.rows(channels)[guard].sent_bytes),
        "dirty_pages": float(own.pages_taken),
        "backup_disk_bytes": int(own.disk_taken_bytes),
        "most_uncommitted_bytes": int(own.most_uncommitted_bytes),
    }
