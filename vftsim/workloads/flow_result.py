"""What the clients of a flow of packets saw."""

from __future__ import annotations

from vftsim.outcome import Outcome, declare, kept
from vftsim.stats.histogram import DelayHistogram
from vftsim.workloads.voice_quality import VoiceQuality, burst_ratio, e_model

_PACKETIZATION_MS = 20.0
_MS = 1e6


class FlowResult(Outcome):
    """What the clients of one flow saw, of packets sent after the warm-up.

    Attributes
    ----------
    delivered, dropped : int
        Packets; those in flight at the end count in neither.
    late : int
        Delivered, but after the play-out delay.
    loss_events : int
        Losses no more than one packet interval (20 ms) apart are one event.
    loss_bursts : int
        Unbroken rows of dropped or late packets, each within a stream.
    delay : DelayHistogram
        There and back.
    jitter_ns : float
        Of RFC 3550, mean over the packets of all streams.
    playout_ns : int
        Delay above which a packet is late.
    is_voice : bool
        Its packets carry speech, whose quality can be rated.
    """

    watched = "delay.mean"

    delivered: int = declare.total(label="packets delivered", better="higher")
    dropped: int = declare.total(label="packets dropped", better="lower")
    late: int = declare.total(label="packets late for play-out", better="lower")
    loss_events: int = declare.total(better="lower")
    loss_bursts: int = declare.total(better="lower")
    delay: DelayHistogram = declare.delays(
        label="there and back",
        short="delay",
        better="lower",
        headline=("p50", "p99"),
        percents=(5, 25, 50, 75, 90, 95, 99),
    )
    jitter_ns: float = kept()
    playout_ns: int = kept()
    is_voice: bool = kept()
    loss = declare.ratio(
        dropped,
        delivered,
        dropped,
        unit="%",
        label="packets lost",
        short="lost",
        better="lower",
        headline=True,
        known_as=("loss_percent",),
    )
    loss_event_rate = declare.rate(loss_events, label="loss events", better="lower", known_as=("loss_events_per_s",))
    jitter = declare.number(
        source=lambda outcome: outcome.jitter_ns / _MS,
        unit="ms",
        better="lower",
        headline=True,
        known_as=("jitter_ms",),
    )
    r_factor = declare.number(source=lambda outcome: outcome.rated("r_factor"), label="R factor", better="higher")
    mos = declare.number(source=lambda outcome: outcome.rated("mos"), label="mean opinion score", better="higher")

    @property
    def loss_ratio(self) -> float:
        """Dropped packets as a fraction of all whose fate is known."""
        known = self.delivered + self.dropped
        return self.dropped / known if known else 0.0

    def delay_ms(self, percent: float) -> float:
        """Percentile of the delay; nan without deliveries."""
        return self.delay.percentile(percent) / _MS if self.delivered else float("nan")

    @property
    def mean_delay_ms(self) -> float:
        """Mean delay; nan without deliveries."""
        return self.delay.mean / _MS if self.delivered else float("nan")

    def voice(self) -> VoiceQuality:
        """E-model for G.711 with concealment: 20 ms of packetization and the play-out delay, losses as they cluster."""
        known, lost = self.delivered + self.dropped, self.dropped + self.late
        delay_ms = _PACKETIZATION_MS + self.playout_ns / _MS
        share = 100.0 * lost / known if known else 0.0
        return e_model(delay_ms, share, burst_ratio=burst_ratio(lost, self.loss_bursts, known))

    def rated(self, what: str) -> float | None:
        """Return a figure of the E-model; None for what is no speech, or beyond what the model holds for."""
        if not self.is_voice:
            return None
        voice = self.voice()
        return float(getattr(voice, what)) if voice.is_valid else None
