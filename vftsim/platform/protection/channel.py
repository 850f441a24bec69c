"""The logging channel: log entries leave the primary in order, at the link's rate, and arrive in order.

Only instants are computed, no event is needed for an entry: with transmission time S, an entry
written at t leaves at d = max(t, d of the one before) + S and arrives one latency later.  A train of n
equal entries at t_1, t_1 + p, ..., t_n ends at max(d + n S, t_1 + n S, t_n + S): the maximum over the
entry from which the transmitter is never idle lies at an end of the train, because the entries are
evenly spaced.

Shared with other traffic, entries occupy the same transmitter as the outputs, in order of arrival.  An entry that
finds that transmitter's queue full waits for room (TCP), and the primary's log buffer grows; outputs that come
meanwhile find the queue full, too.
What is larger than an entry, a state, goes in pieces (:func:`put_piece`): the next one queues when the one before has
left, behind whatever has come meanwhile, so that it takes what the others leave.

Rate and latency can change while it is in use (:func:`change`).  What was written before keeps its instants; what is
written afterwards arrives, and is acknowledged, after it.

Loss appears as the rate that TCP has left (:func:`lossy_rate`); left out: the retransmission of the one segment that an
entry waits for, and TCP's window, which does not limit on a LAN whose bandwidth-delay product (1 Gbit/s x 150 us =
19 kB) is below the buffers.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from vftsim.kernel import Engine, Record, Sim, Table
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.io.link import BITS_NS, Link, backlog_ns, links, occupy, reserve
from vftsim.platform.io.link import transmission_ns as link_transmission_ns
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.migration import ReprotectionSpec
from vftsim.spec.base import Spec
from vftsim.spec.units import BitRate, ByteCount, DurationNs

PIECE_BYTES = 65_536
"""What TCP hands to a network card at once (Linux: 64 KiB with segmentation offload)."""
FRAME_BYTES = 1500
"""The least that it hands over, where the card's queue has no room for more."""


class ChannelSpec(Spec):
    """The channel on which states or log entries travel."""

    network: str | None = Field(
        None,
        description="Network of the model that carries it; where the host has other traffic there they share its link. "
        "Not given: a card of its own.",
    )
    rate: Annotated[BitRate, Field(gt=0)] | None = Field(
        None,
        description="Rate of a card of its own; 1 Gbit/s if not given, with `hypervisor_epoch` 10 Mbit/s. "
        "Not beside `network`.",
    )
    latency: DurationNs | None = Field(
        None,
        description="One way. Not given: the network's, once, as the link of the other host is left out; of a card of "
        "its own 74.5 us, which with the acknowledgement makes a round trip of 150 us at 1 Gbit/s (S2); with "
        "`hypervisor_epoch` 200 us.",
    )
    ack: ByteCount = Field(64, description="Bytes of an acknowledgement.")

    @model_validator(mode="after")
    def _one_rate(self) -> "ChannelSpec":
        if self.network is not None and self.rate is not None:
            raise ValueError("rate: the network has one; change it there, or give the channel no network")
        return self


class ChannelFields(ProtectionSpec):
    """Parameters of every mechanism that has a channel to a backup."""

    channel_name: ClassVar[str] = "channel to the backup"
    card_rate_bits_per_s: ClassVar[int] = 1_000_000_000
    """Rate of a channel with a card of its own, if the model gives none."""
    card_latency_ns: ClassVar[int] = 74_500
    """Its latency one way; with the acknowledgement a round trip of 150 us (Scales et al. 2010)."""

    channel: ChannelSpec = Field(default_factory=ChannelSpec, description="Channel between the hosts.")
    reprotection: ReprotectionSpec | None = Field(
        default_factory=ReprotectionSpec, description="Restoring redundancy; none if null."
    )

    @property
    def memory_bytes(self) -> int:
        """Memory of the VM."""
        return (self.reprotection or ReprotectionSpec()).memory

    def without_effect(self) -> Mapping[str, str]:
        copies_no_disk = self.reprotection is not None and self.reprotection.disk == 0
        return {"reprotection.disk_rate": "no disk is copied (reprotection.disk)"} if copies_no_disk else {}

    @property
    def channel_network(self) -> str | None:
        """Network that carries it."""
        return self.channel.network

    @property
    def channel_rate_bits_per_s(self) -> int:
        """Rate of its card, where no network carries it."""
        return self.card_rate_bits_per_s if self.channel.rate is None else self.channel.rate

    def transmitters(self, engine: Engine, guard: int) -> dict[str, tuple[float, int]]:
        """Return bytes sent and rate of the channel, if there is one with a card of its own."""
        channel = engine.rows(channels)[guard]
        if channel.shared or not self.has_backup:
            return {}
        return {self.channel_name: (float(self.holds(engine, guard)["channel_bytes"]), int(channel.rate_bits_per_s))}

    @property
    def channel_latency_ns(self) -> int:
        """Its latency one way, as far as the mechanism says it: that of a network is 0 here."""
        if self.channel.latency is not None:
            return self.channel.latency
        return 0 if self.channel.network else self.card_latency_ns

    @property
    def copy_again(self) -> ReprotectionSpec | None:
        """How redundancy is restored: no quicker than a channel whose rate, or network, is given."""
        again, rate = self.reprotection, self.channel.rate
        if again is None or rate is None:
            return again
        return again.model_copy(update={"rate": min(again.rate, rate)})

    def on_network(self, rate_bits_per_s: int, latency_ns: int) -> Self:
        """Return these parameters on a network, whose rate and, if none is given, latency are the channel's."""
        own_ns = self.channel.latency
        update = {"rate": rate_bits_per_s, "latency": latency_ns if own_ns is None else own_ns}
        return self.model_copy(update={"channel": self.channel.model_copy(update=update)})

    def install_channel(self, engine: Engine, guard: int, shared_link: int) -> None:
        """Write the channel into the records of a guard; ``shared_link`` carries it, 0: a card of its own."""
        latency_ns = self.card_latency_ns if self.channel.latency is None else self.channel.latency
        install(engine, guard, self.channel_rate_bits_per_s, latency_ns, self.channel.ack, shared_link)


class Channel(Record):
    """One direction of the channel between a primary and its secondary.

    ``shared`` is the row of the transmitter that it shares, 0 for one of its own; ``ack_ns`` is how long an
    acknowledgement takes on the way back; ``free_ns`` is when everything written so far has left.

    Rate and delays are the present ones; undisturbed they are ``own_rate_bits_per_s``, ``own_latency_ns`` and
    ``own_ack_ns``.  What left by ``changed_ns``, the last change, took ``before_ns`` to arrive.  ``ends`` is the token
    of the end of a degradation.

    At ``idle_ns`` an entry found everything before it gone, and at ``idle_before_ns``, at least a latency earlier.
    """

    rate_bits_per_s: int
    latency_ns: int
    ack_ns: int
    own_rate_bits_per_s: int
    own_latency_ns: int
    own_ack_ns: int
    before_ns: int
    changed_ns: int
    ends: int
    shared: int
    free_ns: int
    sent_bytes: int
    idle_ns: int
    idle_before_ns: int


channels = Table("channels", Channel, beside=guards)


class SharedLink(Record):
    """A link that channels share: the last of those that wait for room in its queue looks for it at ``claimed_ns``."""

    claimed_ns: int


shared_links = Table("shared_links", SharedLink, beside=links)


def install(
    engine: Engine, guard: int, rate_bits_per_s: int, latency_ns: int, ack_bytes: int, shared_link: int = 0
) -> None:
    """Set up the channel of a guard; the rate of a link that it shares replaces its own."""
    channel = engine.rows(channels)[guard]
    channel.shared = shared_link
    rate = int(engine.rows(links)[shared_link].rate_bits_per_s) if shared_link else rate_bits_per_s
    channel.rate_bits_per_s = channel.own_rate_bits_per_s = rate
    channel.latency_ns = channel.own_latency_ns = channel.before_ns = latency_ns
    channel.ack_ns = channel.own_ack_ns = latency_ns + ack_bytes * BITS_NS // rate


def change(channel: Channel, rate_bits_per_s: int, latency_ns: int) -> None:
    """Give the channel another rate and latency; nothing overtakes what was written before, or its acknowledgement."""
    # Only the transmission of an acknowledgement scales with the rate.
    own_ns = channel.own_ack_ns - channel.own_latency_ns
    ack_ns = latency_ns + product_quotient(own_ns, channel.own_rate_bits_per_s, rate_bits_per_s)
    ahead_ns = channel.latency_ns + channel.ack_ns - latency_ns - ack_ns
    channel.before_ns = channel.latency_ns
    # Before free_ns is moved below: what is written by now leaves by then, at the delays of before.
    channel.changed_ns = channel.free_ns
    channel.rate_bits_per_s = rate_bits_per_s
    channel.latency_ns = latency_ns
    channel.ack_ns = ack_ns
    # A shorter round trip must not let the next entry, or its acknowledgement, overtake the last one of before.
    channel.free_ns += max(0, ahead_ns)


def lossy_rate(channel: Channel, share: float, delay_ns: int, lossless_share: float, window_bits: float) -> int:
    """Return the rate of a disturbed channel in bit/s, at least 1.

    ``share`` of the rate is left, ``lossless_share`` of that carries data once, and TCP sends no more than
    ``window_bits`` a round trip (0: no limit).
    """
    rate = channel.own_rate_bits_per_s * share * lossless_share
    if window_bits > 0.0:
        round_trip_ns = channel.own_latency_ns + channel.own_ack_ns + 2 * delay_ns
        rate = min(rate, window_bits * 1e9 / max(1, round_trip_ns))
    return max(1, int(rate))


def left_by_ns(channel: Channel, arrival_ns: int) -> int:
    """Return the last instant from which what leaves then has arrived by ``arrival_ns``."""
    left_ns = arrival_ns - channel.latency_ns
    if left_ns > channel.changed_ns:
        return left_ns
    # By then nothing has arrived but what left before the change, with the old latency.
    return min(channel.changed_ns, arrival_ns - channel.before_ns)


def lost_from_ns(channel: Channel, limit_ns: int) -> int:
    """Return an instant before which nothing was written that left after ``limit_ns``."""
    if channel.idle_ns <= limit_ns:
        return channel.idle_ns
    # 0 where neither mark is early enough: an instant before everything.
    return channel.idle_before_ns if channel.idle_before_ns <= limit_ns else 0


def transmission_ns(channel: Channel, size_bytes: int) -> int:
    """Return the time that entries need on the wire, whatever their size."""
    return product_quotient(size_bytes, BITS_NS, channel.rate_bits_per_s)


def note_idle(sim: Sim, channel: Channel) -> None:
    """Note that everything before what is written now is gone, if it is."""
    if channel.free_ns <= sim.now_ns and sim.now_ns - channel.idle_ns >= channel.latency_ns:
        channel.idle_before_ns = channel.idle_ns
        channel.idle_ns = sim.now_ns


def push(sim: Sim, channel: Channel, size_bytes: int) -> int:
    """Write an entry; return when its last bit leaves the primary."""
    channel.sent_bytes += size_bytes
    # Before this entry moves free_ns, by which idleness is known.
    note_idle(sim, channel)
    if channel.shared != 0:
        channel.free_ns = push_shared(sim, channel, links(sim)[channel.shared], size_bytes)
    else:
        channel.free_ns = max(channel.free_ns, sim.now_ns) + transmission_ns(channel, size_bytes)
    return channel.free_ns


def push_shared(sim: Sim, channel: Channel, link: Link, size_bytes: int) -> int:
    """Write an entry onto a shared transmitter; return when its last bit leaves."""
    arrival_ns = occupy(sim, link, size_bytes)
    if arrival_ns < 0:
        # It waits in the log for room: its turn on the wire stays, so that the line carries no more than it can.
        reserve(sim, link, size_bytes, link_transmission_ns(link, size_bytes))
        arrival_ns = link.free_ns + link.latency_ns
    return max(channel.free_ns, arrival_ns - link.latency_ns)


def put_piece(sim: Sim, channel: Channel, rest_bytes: int) -> int:
    """Queue the next piece of what a shared transmitter has to carry; return its size, 0 if there is no room now.

    ``free_ns`` is then when that piece has left, or when there is room for a frame again.
    """
    size_bytes = queue_piece(sim, channel.shared, rest_bytes)
    channel.sent_bytes += size_bytes
    channel.free_ns = next_piece_ns(sim, channel.shared, size_bytes)
    return size_bytes


def queue_piece(sim: Sim, link_row: int, rest_bytes: int) -> int:
    """Queue a piece on a link that others use; return its size, 0 if there is no room now."""
    link = links(sim)[link_row]
    room_ns = link.queue_ns - backlog_ns(sim, link)
    room_bytes = product_quotient(max(0, room_ns), link.rate_bits_per_s, BITS_NS)
    frame_bytes = min(rest_bytes, FRAME_BYTES)
    frame_ns = link_transmission_ns(link, frame_bytes)
    # In time, as claim_room() counts: a byte may take no whole number of ns, and there must be room when it says so.
    if backlog_ns(sim, link) > 0 and room_ns < frame_ns:
        claim_room(sim, link_row, frame_ns)
        return 0
    # A queue that is shorter than a frame takes one when it is empty.
    piece_bytes = min(rest_bytes, PIECE_BYTES)
    size_bytes = min(piece_bytes, max(frame_bytes, room_bytes))
    reserve(sim, link, size_bytes, link_transmission_ns(link, size_bytes))
    return size_bytes


def next_piece_ns(sim: Sim, link_row: int, size_bytes: int) -> int:
    """Return when a piece that was just queued has left; of 0 bytes: when there is room for a frame again."""
    return links(sim)[link_row].free_ns if size_bytes > 0 else shared_links(sim)[link_row].claimed_ns


def claim_room(sim: Sim, link_row: int, frame_ns: int) -> None:
    """Work out when to look for room for a frame: when there is some, one behind the other where several wait.

    If all looked as soon as a frame has left, all but one would find no room, at each frame.
    """
    link = links(sim)[link_row]
    shared_link = shared_links(sim)[link_row]
    time_ns = link.free_ns - max(0, link.queue_ns - frame_ns)
    if shared_link.claimed_ns > sim.now_ns:
        time_ns = max(time_ns, shared_link.claimed_ns + frame_ns)
    shared_link.claimed_ns = time_ns


def push_train(sim: Sim, channel: Channel, first_ns: int, last_ns: int, count: int, size_bytes: int) -> int:
    """Write ``count`` evenly spaced entries of the past; return when the last one leaves."""
    # Frames of others have left meanwhile: entries of the past cannot be put among them, and go now, as one.
    if channel.shared != 0:
        return push(sim, channel, count * size_bytes)
    channel.sent_bytes += count * size_bytes
    one_ns = transmission_ns(channel, size_bytes)
    free_ns = last_ns + one_ns
    if channel.free_ns > first_ns or count > 1:
        free_ns = max(max(channel.free_ns, first_ns) + count * one_ns, free_ns)
    channel.free_ns = free_ns
    return free_ns


def hold_until(channel: Channel, time_ns: int) -> None:
    """Take nothing more before ``time_ns``: the receiver's buffer is full."""
    channel.free_ns = max(channel.free_ns, time_ns)


def take_back(channel: Channel, from_ns: int, most_bytes: int) -> int:
    """Return the bytes that leave after an instant, so many at most; a wire of the channel's own they leave now.

    On a shared wire they have those of others among them, and go on: what they carry does not arrive.
    """
    # Until free_ns it may also stand still (hold_until()).
    left_ns = max(0, channel.free_ns - from_ns)
    kept_bytes = min(most_bytes, product_quotient(left_ns, channel.rate_bits_per_s, BITS_NS))
    if channel.shared == 0:
        # They are counted again when they are sent.
        channel.sent_bytes -= kept_bytes
        channel.free_ns = min(channel.free_ns, from_ns)
    return kept_bytes
