"""Traffic drawn beforehand, as a workload of a model: its flow, its account, its packets.

Its packets reach the host's network interface at their instants, or, where they share a modelled link with others,
queue for that link first.
"""

from collections.abc import Sequence
from dataclasses import astuple
from math import fsum
from typing import Any, Self

from vftsim.outcome import Outcome, attribute, declare
from vftsim.platform.delays import histogram
from vftsim.platform.io.packet import flows
from vftsim.stats import DelayHistogram
from vftsim.workloads.account import add_account, mean_jitter_ns
from vftsim.workloads.arrivals import Source
from vftsim.workloads.parts import Driver, Target, WorkloadSpec
from vftsim.workloads.voice_quality import Codec, VoiceQuality, burst_ratio, e_model

_MS = 1e6


class FlowResult(Outcome):
    """What the clients of one flow saw, of packets sent after the warm-up."""

    watched = "delay.mean"

    delivered: int = declare.total(label="packets delivered", better="higher")
    dropped: int = declare.total(label="packets dropped", better="lower")
    """Packets; those in flight at the end count in neither."""
    late: int = declare.total(label="packets late for play-out", better="lower")
    """Delivered, but after the play-out delay."""
    loss_events: int = declare.total(better="lower")
    """Losses no more than one packet interval (20 ms) apart are one event."""
    loss_bursts: int = declare.total(better="lower")
    """Unbroken rows of dropped or late packets, each within a stream."""
    delay: DelayHistogram = declare.delays(
        label="there and back",
        short="delay",
        better="lower",
        headline=("p50", "p99"),
        percents=(5, 25, 50, 75, 90, 95, 99),
    )
    """There and back."""
    jitter_ns: float = attribute()
    """Of RFC 3550, mean over the packets of all streams."""
    playout_ns: int = attribute()
    """Delay above which a packet is late."""
    interval_ns: int = attribute()
    """Between packets of a stream: the time of speech that each carries."""
    codec: list[float] = attribute()
    """Impairment, robustness and look-ahead of the codec whose speech its packets carry; empty: no speech."""
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
        source=lambda outcome: outcome.jitter_ns / _MS if outcome.delivered else None,
        unit="ms",
        better="lower",
        headline=True,
        known_as=("jitter_ms",),
    )
    r_factor = declare.number(source=lambda outcome: outcome.rated("r_factor"), label="R factor", better="higher")
    mos = declare.number(source=lambda outcome: outcome.rated("mos"), label="mean opinion score", better="higher")

    @classmethod
    def of_copies(cls) -> type[Outcome]:
        """Return its own kind: jitter is a mean over packets, which those of several streams have too."""
        return cls

    @classmethod
    def together(cls, outcomes: Sequence[Any]) -> Self:
        """Return what several flows measured, as one."""
        delivered = sum(flow.delivered for flow in outcomes)
        heard = (flow.delivered * flow.jitter_ns for flow in outcomes if flow.delivered)
        return cls(
            **cls.sums(outcomes),
            jitter_ns=fsum(heard) / delivered if delivered else 0.0,
            playout_ns=outcomes[0].playout_ns,
            interval_ns=outcomes[0].interval_ns,
            codec=outcomes[0].codec,
            seconds=outcomes[0].seconds,
        )

    @property
    def loss_ratio(self) -> float:
        """Dropped packets as a fraction of all whose fate is known."""
        settled = self.delivered + self.dropped
        return self.dropped / settled if settled else 0.0

    def delay_ms(self, percent: float) -> float:
        """Percentile of the delay; nan without deliveries."""
        return self.delay.percentile(percent) / _MS if self.delivered else float("nan")

    def voice(self) -> VoiceQuality:
        """E-model: packetization and the play-out delay, losses as they cluster."""
        settled, lost = self.delivered + self.dropped, self.dropped + self.late
        delay_ms = (self.interval_ns + self.playout_ns) / _MS
        share = 100.0 * lost / settled if settled else 0.0
        ratio = burst_ratio(lost, self.loss_bursts, settled)
        return e_model(delay_ms, share, codec=Codec(*self.codec), burst_ratio=ratio)

    def rated(self, figure: str) -> float | None:
        """Return a figure of the E-model; None for no speech, no packets, or beyond what it holds for."""
        if not (self.codec and self.delivered + self.dropped):
            return None
        voice = self.voice()
        return float(getattr(voice, figure)) if voice.is_valid else None


class FlowDriver(Driver):
    """A flow with an account, and its streams of packets of ``size_bytes`` on the wire.

    They are ``interval_ns`` apart (0: they have no interval); one counts as late above a delay of ``late_ns``.  The
    codec is that of the speech that packets carry; None: no speech.
    """

    def __init__(
        self,
        target: Target,
        spec: WorkloadSpec,
        *,
        size_bytes: int,
        streams: int,
        late_ns: int,
        interval_ns: int = 0,
        codec: Codec | None = None,
    ) -> None:
        account = add_account(
            target.engine,
            streams,
            warmup_ns=target.window_ns[0],
            wire_ns=0 if target.is_linked else 2 * target.latency_ns,
            late_ns=late_ns,
            interval_ns=interval_ns,
        )
        account.flow = target.add_flow(spec.part, int(account.row), target.port)
        target.engine.rows(flows)[account.flow].size_bytes = size_bytes
        super().__init__(target, account)
        self._codec = [] if codec is None else list(astuple(codec))
        self._interval_ns = interval_ns
        self._measured_s = target.measured_s

    def sends(self, source: Source) -> None:
        """Set what it sends."""
        self.sources = (source,)

    def wire_ns(self) -> int:
        """Return what its packets spend on a network that is not modelled."""
        return int(self.record.wire_ns)

    def delivered(self) -> int:
        """Packets that came back, from the start."""
        return int(self.record.all_delivered)

    def outcome(self) -> FlowResult:
        """Return what its clients saw."""
        account = self.record
        return FlowResult.of_row(
            account,
            delay=histogram(self.engine, int(account.delays)),
            jitter_ns=mean_jitter_ns(self.engine, account),
            playout_ns=int(account.late_ns),
            interval_ns=self._interval_ns,
            codec=self._codec,
            seconds=self._measured_s(),
        )
