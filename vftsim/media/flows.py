"""What comes from outside: media streams and call signalling, and the accounts of each.

Media: a 172-byte UDP payload every 20 ms on each stream (12 bytes RTP header, 160 bytes G.711), at a
random phase.  The clocks of the client machines err by some ppm, so that packets slide slowly past the
10 ms ticks of the host; with perfect clocks the same packets would meet every tick, and a scheduler
that samples at ticks would charge the same vCPU for ever.  Sender and receiver of a
stream sit on one machine, so the measured delay is that of the way there and back (Patnaik 2009, 4).
With ``sending_grid`` the clients' timers fire on a common grid only, as those of a kernel with a tick
do; packets of one instant then follow each other on the wire.

Signalling: calls arrive as a Poisson process; of about ten packets a call half are received and answered,
three fifths of them at set-up and the rest at tear-down one hold time later.  A tenth of the calls go
through the media server, which is how stream count and call rate hang together.

Left out: network loss and queues (the lab's clients shared a fast LAN with the server).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from vftsim.engine import Clock
from vftsim.media.quality import BurstMeter, JitterMeter
from vftsim.media.system import RtpStreamsSpec, SignalingSpec
from vftsim.net.rings import Packet
from vftsim.sampling import ChunkedDraws, Streams, poisson_gaps_ns
from vftsim.stats.histogram import DelayHistogram

LOSS_EVENT_GAP_NS = 20_000_000
"""Losses closer than one packet interval are one loss event."""

_FLUSH = 4096


class FlowAccount:
    """Sent, delivered and dropped packets of one flow, and their delays.

    Packets that reached the host before ``warmup_ns`` count for conservation only.
    """

    def __init__(
        self, clock: Clock, streams: int, warmup_ns: int, wire_ns: int, late_ns: int, interval_ns: int = 0
    ) -> None:
        self._clock = clock
        self.warmup_ns = warmup_ns
        self.wire_ns = wire_ns
        self.late_ns = late_ns
        self.all_delivered = 0
        self.all_dropped = 0
        self.delivered_packets = 0
        self.dropped_packets = 0
        self.late_packets = 0
        self.loss_events = 0
        self.delays = DelayHistogram()
        self.jitter = JitterMeter(streams)
        self.bursts = BurstMeter(streams, interval_ns)
        self._last_loss_ns = -LOSS_EVENT_GAP_NS
        self._pending_ns: list[int] = []

    def delivered(self, packet: Packet, now_ns: int) -> None:
        """Count a packet that is on its way back to the client."""
        self.all_delivered += 1
        if packet.sent_ns < self.warmup_ns:
            return
        delay_ns = now_ns - packet.sent_ns + self.wire_ns
        self.delivered_packets += 1
        if delay_ns > self.late_ns:
            self.late_packets += 1
            self.bursts.add(packet.stream, packet.sent_ns)
        self.jitter.add(packet.stream, delay_ns)
        pending = self._pending_ns
        pending.append(delay_ns)
        if len(pending) >= _FLUSH:
            self.flush()

    def dropped(self, packet: Packet, now_ns: int) -> None:
        """Count a packet that is lost."""
        self.all_dropped += 1
        if packet.sent_ns < self.warmup_ns:
            return
        self.dropped_packets += 1
        self.bursts.add(packet.stream, packet.sent_ns)
        if now_ns - self._last_loss_ns >= LOSS_EVENT_GAP_NS:
            self.loss_events += 1
        self._last_loss_ns = now_ns

    def flush(self) -> None:
        """Bring the delay histogram up to date."""
        self.delays.add_many(self._pending_ns)
        self._pending_ns.clear()


class RtpStreams(FlowAccount):
    """Media streams to one guest."""

    def __init__(
        self,
        clock: Clock,
        spec: RtpStreamsSpec,
        target: tuple[Any, Any],
        streams: Streams,
        *,
        warmup_ns: int,
        wire_ns: int,
    ) -> None:
        super().__init__(clock, spec.streams, warmup_ns, wire_ns, spec.playout_ns, spec.interval_ns)
        self.spec = spec
        self.port, self.pool = target
        self._senders = _senders(spec, streams)

    def packets(self) -> Iterator[Packet]:
        """All packets in order of arrival, without end."""
        if not self._senders:
            return
        spec = self.spec
        frame_ns = spec.frame_bytes * 8_000_000_000 // spec.link_bit_per_s
        port, pool = self.port, self.pool
        free_ns = 0
        for cycle in count():
            base_ns = cycle * spec.interval_ns
            drifted = [(phase + round(base_ns * drift), stream) for phase, drift, stream in self._senders]
            # Within a cycle in order of time; a drift of ppm moves nobody past a cycle's end by more than us.
            drifted.sort()
            for phase_ns, stream in drifted:
                at_ns = base_ns + phase_ns
                at_ns = max(at_ns, free_ns)
                free_ns = at_ns + frame_ns
                yield Packet(self, port, pool, stream, at_ns)


def _senders(spec: RtpStreamsSpec, streams: Streams) -> list[tuple[int, float, int]]:
    """Phase, clock error and number of each stream."""
    interval_ns = spec.interval_ns
    phases = (streams.uniforms("media.phase", 0, count=spec.streams) * interval_ns).astype(np.int64)
    if spec.sending_grid_ns:
        phases -= phases % spec.sending_grid_ns
    machines = -(-spec.streams // spec.streams_per_client)
    errors = (2.0 * streams.uniforms("media.clock", 0, count=machines) - 1.0) * spec.clock_error_ppm * 1e-6
    return [
        (phase_ns, float(errors[stream // spec.streams_per_client]), stream)
        for stream, phase_ns in enumerate(phases.tolist())
    ]


class Signaling(FlowAccount):
    """Call set-up and tear-down packets to one guest."""

    def __init__(
        self,
        clock: Clock,
        spec: SignalingSpec,
        target: tuple[Any, Any],
        streams: Streams,
        *,
        warmup_ns: int,
        wire_ns: int,
    ) -> None:
        super().__init__(clock, 1, warmup_ns, wire_ns, spec.hold_ns)
        self.spec = spec
        self.port, self.pool = target
        self._streams = streams

    def packets(self) -> Iterator[Packet]:
        """All packets in order of arrival; calls that are up at the start come to their end as others do."""
        setup = self._requests(0, max(1, round(self.spec.received_packets * 0.6)))
        teardown = self._requests(1, self.spec.received_packets - max(1, round(self.spec.received_packets * 0.6)))
        for at_ns in heapq.merge(setup, teardown):
            yield Packet(self, self.port, self.pool, 0, at_ns)

    def _requests(self, phase: int, packets: int) -> Iterator[int]:
        """Set-ups (0) or tear-downs (1) are Poisson at the call rate; each is a few packets in a row."""
        if self.spec.calls_per_s <= 0.0 or packets <= 0:
            return
        gaps = ChunkedDraws[int](
            self._streams, "signaling.gap", lambda u: poisson_gaps_ns(u, self.spec.calls_per_s), entity=phase
        )
        at_ns = 0
        waiting: list[int] = []
        for gap_ns in gaps:
            at_ns += gap_ns
            while waiting and waiting[0] <= at_ns:
                yield heapq.heappop(waiting)
            for number in range(packets):
                heapq.heappush(waiting, at_ns + number * self.spec.packet_gap_ns)
