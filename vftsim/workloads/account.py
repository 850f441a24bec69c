"""The account of a flow: packets sent, delivered and dropped, their delays, and the jitter of each of its streams.

Packets that reached the host before the end of the warm-up count for conservation only.  Jitter (RFC 3550, 6.4.1) is
made of |D|, the difference of the transit times of two successive packets of a stream; a stream that has received one
packet has none.  The receiver's J += (|D| - J) / 16 is a moving mean over the last packets.  What is reported is the
mean of |D| over all packets, which is the mean of J: J at the end of a run tells where in a burst the run ended.

A burst of losses is an unbroken row of dropped or late packets within a stream, which the
burst ratio of the E-model is made of.
"""

from vftsim.kernel import BESIDE, Engine, Record, Row, Sim, Table, entry
from vftsim.kernel.columns import columns_of
from vftsim.platform.delays import add_delay, delays, install_buckets
from vftsim.platform.io.packet import Flow, packets
from vftsim.platform.rows import add_row

REMEMBERED = 62
"""Packets of a stream up to the last that is known to be lost, in which a loss is put in its place."""

USUAL_INTERVAL_NS = 20_000_000
"""Of packets that have none: losses closer than one packet interval are one loss event."""


class FlowAccount(Row):
    """What became of the packets of one flow; its streams stand in consecutive rows from ``first_stream``.

    ``delays`` is the row of their distribution.  Losses ``apart_ns`` from one another are of different loss events.
    """

    flow: int
    warmup_ns: int
    wire_ns: int
    late_ns: int
    first_stream: int
    streams: int
    all_delivered: int
    all_dropped: int
    delivered: int
    dropped: int
    late: int
    loss_events: int
    apart_ns: int
    last_loss_ns: int
    loss_bursts: int
    interval_ns: int
    delays: int


class StreamEnd(Record):
    """The receiver of one stream: ``jitter_ns`` is its J at present, ``differences_ns`` the sum of its |D|.

    ``lost`` has a bit for each of its last packets that is lost: bit 0 for the one that was sent at ``last_lost_ns``,
    bit 1 for the one before it.
    """

    received: int
    last_transit_ns: int
    jitter_ns: float
    differences_ns: int
    lost: int
    last_lost_ns: int


accounts = Table("flow_accounts", FlowAccount, 256)
stream_ends = Table("stream_ends", StreamEnd, 1 << 18, "use fewer streams")


def count_delivered(sim: Sim, flow: Flow, packet: int, account: FlowAccount = BESIDE) -> None:
    """Count a packet that is on its path back to the client, and free it."""
    account.all_delivered += 1
    sent_ns = packets(sim)[packet].sent_ns
    if sent_ns >= account.warmup_ns:
        delay_ns = sim.now_ns - sent_ns + account.wire_ns
        account.delivered += 1
        if delay_ns > account.late_ns:
            account.late += 1
            note_loss(sim, account, packets(sim)[packet].stream, sent_ns)
        note_transit(sim, account.first_stream + packets(sim)[packet].stream, delay_ns)
        add_delay(sim, account.delays, delay_ns)
    packets.free(sim, packet)


def note_transit(sim: Sim, row: int, transit_ns: int) -> None:
    """Count the jitter of a packet of a stream that has arrived after ``transit_ns``."""
    end = stream_ends(sim)[row]
    if end.received > 0:
        difference_ns = abs(transit_ns - end.last_transit_ns)
        end.jitter_ns = end.jitter_ns + (difference_ns - end.jitter_ns) / 16.0
        end.differences_ns += difference_ns
    end.received += 1
    end.last_transit_ns = transit_ns


def count_lost(sim: Sim, flow: Flow, packet: int, account: FlowAccount = BESIDE) -> None:
    """Count a packet that is lost; whoever dropped it frees it."""
    account.all_dropped += 1
    if packets(sim)[packet].sent_ns < account.warmup_ns:
        return
    account.dropped += 1
    note_loss(sim, account, packets(sim)[packet].stream, packets(sim)[packet].sent_ns)
    if sim.now_ns - account.last_loss_ns >= account.apart_ns:
        account.loss_events += 1
    account.last_loss_ns = sim.now_ns


def note_loss(sim: Sim, account: FlowAccount, stream: int, sent_ns: int) -> None:
    """Count the burst of losses that the packet which a stream sent at ``sent_ns`` is part of, or joins to another."""
    end = stream_ends(sim)[account.first_stream + stream]
    account.loss_bursts += 1
    if account.interval_ns == 0 or end.lost == 0:
        end.lost = 1
        end.last_lost_ns = sent_ns
        return
    # The nearest whole number: clocks err by some ppm.
    ahead = (2 * (sent_ns - end.last_lost_ns) + account.interval_ns) // (2 * account.interval_ns)
    if ahead > 0:
        remembered = end.lost & ((1 << max(REMEMBERED - ahead, 0)) - 1)
        end.lost = 1 + (remembered << min(ahead, REMEMBERED))
        end.last_lost_ns = sent_ns
        account.loss_bursts -= end.lost >> 1 & 1
    elif -ahead < REMEMBERED - 1:
        # Losses become known out of order: a dropped packet at once, a late one when it arrives.
        around = (end.lost << 1) >> -ahead
        account.loss_bursts -= (around & 1) + (around >> 2 & 1)
        end.lost |= 1 << -ahead


@entry
def add_streams(sim: Sim, account: FlowAccount, count: int) -> int:
    """Give an account its streams; return the first one's row."""
    for number in range(count):
        row = stream_ends.new(sim)
        if number == 0:
            account.first_stream = row
    account.streams = count
    return account.first_stream


def add_account(
    engine: Engine, streams: int, *, warmup_ns: int, wire_ns: int, late_ns: int, interval_ns: int = 0
) -> FlowAccount:
    """Open the account of a flow whose streams send every ``interval_ns``."""
    install_buckets(engine)
    apart_ns = interval_ns or USUAL_INTERVAL_NS
    account = add_row(
        engine,
        accounts,
        warmup_ns=warmup_ns,
        wire_ns=wire_ns,
        late_ns=late_ns,
        last_loss_ns=-apart_ns,
        apart_ns=apart_ns,
        interval_ns=interval_ns,
        delays=engine.new(delays),
    )
    engine.call(add_streams, int(account.row), streams)
    return account


def mean_jitter_ns(engine: Engine, account: FlowAccount) -> float:
    """Mean of |D| over the packets of all streams; 0 if no stream has received two packets."""
    first, count = int(account.first_stream), int(account.streams)
    received, differences_ns = columns_of(engine, stream_ends, ("received", "differences_ns"), first, first + count)
    pairs = sum(packets - 1 for packets in received if packets > 1)
    return sum(differences_ns) / pairs if pairs else 0.0
