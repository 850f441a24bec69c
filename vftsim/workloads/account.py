"""The account of a flow: packets sent, delivered and dropped, their delays, and the jitter of each of its streams.

Packets that reached the host before the end of the warm-up count for conservation only.  Jitter (RFC 3550, 6.4.1):
J += (|D| - J) / 16, where D is the difference of the transit times of two successive packets of a stream; a stream
that has received one packet has none.  A burst is an unbroken row of dropped or late packets within a stream, which the
burst ratio of the E-model is made of.
"""

from typing import Any

from vftsim.kernel import Engine, Record, Sim, Table, entry, part
from vftsim.platform.delays import add_delay, bucket_ends, delays, install_buckets
from vftsim.platform.io.packet import Flow, packets

LOSS_EVENT_GAP_NS = 20_000_000
"""Losses closer than one packet interval are one loss event."""


class FlowAccount(Record):
    """What became of the packets of one flow; its streams stand in consecutive rows from ``first_stream``.

    ``delays`` is the row of their distribution.
    """

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
    last_loss_ns: int
    loss_bursts: int
    together_ns: int
    delays: int


class StreamEnd(Record):
    """The receiver of one stream."""

    received: int
    last_transit_ns: int
    jitter_ns: float
    has_lost: bool
    last_lost_ns: int


accounts = Table("flow_accounts", FlowAccount, 256)
stream_ends = Table("stream_ends", StreamEnd, 1 << 18, "use fewer streams")


@part
def count_delivered(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a packet that is on its way back to the client, and free it."""
    account = accounts(sim)[flow.own]
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


@part
def note_transit(sim: Sim, row: int, transit_ns: int) -> None:
    """Take in that a packet of a stream has arrived after ``transit_ns``."""
    end = stream_ends(sim)[row]
    if end.received > 0:
        end.jitter_ns = end.jitter_ns + (abs(transit_ns - end.last_transit_ns) - end.jitter_ns) / 16.0
    end.received += 1
    end.last_transit_ns = transit_ns


@part
def count_lost(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a packet that is lost; whoever dropped it frees it."""
    account = accounts(sim)[flow.own]
    account.all_dropped += 1
    if packets(sim)[packet].sent_ns < account.warmup_ns:
        return
    account.dropped += 1
    note_loss(sim, account, packets(sim)[packet].stream, packets(sim)[packet].sent_ns)
    if sim.now_ns - account.last_loss_ns >= LOSS_EVENT_GAP_NS:
        account.loss_events += 1
    account.last_loss_ns = sim.now_ns


@part
def note_loss(sim: Sim, account: FlowAccount, stream: int, sent_ns: int) -> None:
    """Take in that the packet that a stream sent at ``sent_ns`` is lost or too late."""
    end = stream_ends(sim)[account.first_stream + stream]
    # Losses become known out of order: a dropped packet at once, a late one when it arrives.
    if not end.has_lost or abs(sent_ns - end.last_lost_ns) > account.together_ns:
        account.loss_bursts += 1
    end.has_lost = True
    end.last_lost_ns = sent_ns


@entry
def add_streams(sim: Sim, account: int, count: int) -> int:
    """Give an account its streams; return the first one's row."""
    own = accounts(sim)[account]
    for number in range(count):
        row = stream_ends.new(sim)
        if number == 0:
            own.first_stream = row
    own.streams = count
    return own.first_stream


ENTRIES = (add_streams,)
TABLES = (accounts, stream_ends, bucket_ends, delays)


def add_account(
    engine: Engine, streams: int, *, warmup_ns: int, wire_ns: int, late_ns: int, interval_ns: int = 0
) -> int:
    """Open the account of a flow whose streams send every ``interval_ns``; return its row."""
    install_buckets(engine)
    row, _ = engine.add(
        accounts, warmup_ns=warmup_ns, wire_ns=wire_ns, late_ns=late_ns, last_loss_ns=-LOSS_EVENT_GAP_NS,
        together_ns=interval_ns + interval_ns // 2, delays=engine.new(delays),
    )  # fmt: skip
    engine.call(add_streams, row, streams)
    return row


def ends_of(engine: Engine, account: int) -> list[Any]:
    """Return the receivers of an account's streams."""
    own: Any = engine.rows(accounts)[account]
    first = int(own.first_stream)
    return list(engine.rows(stream_ends)[first : first + int(own.streams)])


def stream_jitter_ns(engine: Engine, account: int) -> list[float | None]:
    """Return the jitter of each stream; None for one that has not received two packets."""
    own: Any = engine.rows(accounts)[account]
    first, count = int(own.first_stream), int(own.streams)
    jitters_ns = engine.column(stream_ends, "jitter_ns", first, count)
    received = engine.column(stream_ends, "received", first, count)
    return [jitter_ns if packets > 1 else None for jitter_ns, packets in zip(jitters_ns, received, strict=True)]


def mean_jitter_ns(engine: Engine, account: int) -> float:
    """Mean over the streams that have received two packets or more; 0 if there is none."""
    values = [jitter_ns for jitter_ns in stream_jitter_ns(engine, account) if jitter_ns is not None]
    return sum(values) / len(values) if values else 0.0
