"""What the clients of a flow of packets saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vftsim.stats.histogram import DelayHistogram
from vftsim.workloads.voice_quality import VoiceQuality, burst_ratio, e_model

_PACKETIZATION_MS = 20.0
_MS = 1e6


@dataclass(frozen=True, slots=True)
class FlowResult:
    """What the clients of one flow saw, of packets sent after the warm-up.

    Parameters
    ----------
    delivered, dropped : int
        Packets; those in flight at the end count in neither.
    late : int
        Delivered, but after the play-out delay.
    loss_events : int
        Losses no more than one packet interval (20 ms) apart are one event.
    loss_bursts : int
        Unbroken rows of dropped or late packets, each within a stream.
    delays : DelayHistogram
        There and back.
    jitter_ns : float
        RFC 3550, mean over the streams.
    seconds : float
        Measured time.
    playout_ns : int
        Delay above which a packet is late.
    is_voice : bool
        Its packets carry speech, whose quality can be rated.
    """

    delivered: int
    dropped: int
    late: int
    loss_events: int
    loss_bursts: int
    delays: DelayHistogram
    jitter_ns: float
    seconds: float
    playout_ns: int
    is_voice: bool = False

    @property
    def loss_ratio(self) -> float:
        """Dropped packets as a fraction of all whose fate is known."""
        known = self.delivered + self.dropped
        return self.dropped / known if known else 0.0

    def delay_ms(self, percent: float) -> float:
        """Percentile of the delay; nan without deliveries."""
        return self.delays.percentile(percent) / _MS if self.delivered else float("nan")

    @property
    def mean_delay_ms(self) -> float:
        """Mean delay; nan without deliveries."""
        return self.delays.mean / _MS if self.delivered else float("nan")

    def voice(self) -> VoiceQuality:
        """E-model for G.711 with concealment: 20 ms of packetization and the play-out delay, losses as they cluster."""
        known, lost = self.delivered + self.dropped, self.dropped + self.late
        delay_ms = _PACKETIZATION_MS + self.playout_ns / _MS
        share = 100.0 * lost / known if known else 0.0
        return e_model(delay_ms, share, burst_ratio=burst_ratio(lost, self.loss_bursts, known))

    def row(self) -> dict[str, Any]:
        """Return figures of a table row, by name with unit."""
        voice = self.voice()
        return {
            "loss_percent": 100.0 * self.loss_ratio,
            "loss_events_per_s": self.loss_events / self.seconds,
            "delay_mean_ms": self.mean_delay_ms,
            **{f"delay_p{p}_ms": self.delay_ms(p) for p in (5, 25, 50, 75, 95, 99)},
            "jitter_ms": self.jitter_ns / _MS,
            "r_factor": voice.r_factor if voice.is_valid else None,
            "mos": voice.mos if voice.is_valid else None,
        }
