"""Run a media host and measure it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vftsim.cpu.scheduler import ScheduleObserver
from vftsim.engine import EventKind
from vftsim.media.build import MediaHost
from vftsim.media.flows import FlowAccount
from vftsim.media.quality import VoiceQuality, burst_ratio, e_model
from vftsim.media.system import MediaSystem
from vftsim.sampling import Streams
from vftsim.stats.histogram import DelayHistogram

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


@dataclass(frozen=True, slots=True)
class MediaResult:
    """Measurements of one replication.

    Parameters
    ----------
    flows : dict
        ``media`` and ``signaling``, as far as they exist.
    drops : dict
        Packets by (place, cause), from the start of the run.
    domain_cpu : dict
        CPU time of each domain after the warm-up, in units of one pCPU.
    pcpu_busy : list
        Busy fraction of each pCPU after the warm-up, switching not included.
    switching : float
        Time lost to vCPU switches after the warm-up, in units of one pCPU.
    context_switches : int
        After the warm-up.
    counters : dict
        What the scheduler counted, from the start (boosts, steals, parks, ...).
    interrupts : int
        Of all NICs, from the start.
    in_flight : int
        Packets on their way at the end.
    events : int
        Events of the engine.
    """

    flows: dict[str, FlowResult]
    drops: dict[tuple[str, str], int]
    domain_cpu: dict[str, float]
    pcpu_busy: list[float]
    switching: float
    context_switches: int
    counters: dict[str, int]
    interrupts: int
    in_flight: int
    events: int
    seconds: float

    @property
    def media(self) -> FlowResult:
        """The media streams."""
        return self.flows["media"]

    def row(self) -> dict[str, Any]:
        """Figures of a table row, by name with unit."""
        media = self.flows.get("media")
        row: dict[str, Any] = {}
        if media is not None:
            voice = media.voice()
            row |= {
                "loss_percent": 100.0 * media.loss_ratio,
                "loss_events_per_s": media.loss_events / media.seconds,
                "delay_mean_ms": media.mean_delay_ms,
                **{f"delay_p{p}_ms": media.delay_ms(p) for p in (5, 25, 50, 75, 95, 99)},
                "jitter_ms": media.jitter_ns / _MS,
                "r_factor": voice.r_factor if voice.is_valid else None,
                "mos": voice.mos if voice.is_valid else None,
            }
        row |= {f"cpu_{name}": used for name, used in self.domain_cpu.items()}
        row |= {"switching": self.switching, "context_switches_per_s": self.context_switches / self.seconds}
        row |= self.counters
        return row


class _Baseline:
    """Accounts at the end of the warm-up."""

    def __init__(self, media: MediaHost) -> None:
        self.media = media
        self.vcpu_ns = [0] * len(media.host.vcpus)
        self.busy_ns = [0] * media.host.pcpus
        self.switching_ns = 0
        self.switches = 0

    def take(self, _: Any) -> None:
        host = self.media.host
        host.busy_ns()
        self.vcpu_ns = [vcpu.run_ns for vcpu in host.vcpus]
        self.busy_ns = list(host.pcpu_busy_ns)
        self.switching_ns = host.switching_ns
        self.switches = host.context_switches


def run_media(
    system: MediaSystem,
    seed: int,
    replication: int,
    duration_ns: int,
    warmup_ns: int = 0,
    observer: ScheduleObserver | None = None,
) -> MediaResult:
    """Run one replication.

    Parameters
    ----------
    system : MediaSystem
    seed, replication : int
        Key of every random draw.
    duration_ns : int
        Simulated time after the warm-up.
    warmup_ns : int
        Simulated time before it, not measured.
    observer : ScheduleObserver, optional
        Hears every scheduling event.
    """
    media = MediaHost(system, Streams(seed, replication), warmup_ns, observer)
    return finish(media, duration_ns, warmup_ns)


def finish(media: MediaHost, duration_ns: int, warmup_ns: int) -> MediaResult:
    """Run a host that has been put together, and measure it."""
    baseline = _Baseline(media)
    media.clock.at(warmup_ns, EventKind.CONTROL, 0, baseline.take)
    media.start()
    media.clock.run(warmup_ns + duration_ns)
    in_flight = media.check_conservation()
    return _collect(media, baseline, duration_ns, in_flight)


def _collect(media: MediaHost, before: _Baseline, duration_ns: int, in_flight: int) -> MediaResult:
    host = media.host
    domain_cpu = dict.fromkeys(media.domains, 0.0)
    for vcpu, earlier_ns in zip(host.vcpus, before.vcpu_ns, strict=True):
        domain_cpu[vcpu.domain.name] += (vcpu.run_ns - earlier_ns) / duration_ns
    return MediaResult(
        flows={name: _flow_result(flow, duration_ns) for name, flow in media.flows.items()},
        drops=dict(sorted(media.drops.counts.items())),
        domain_cpu=domain_cpu,
        pcpu_busy=[(b - a) / duration_ns for a, b in zip(before.busy_ns, host.pcpu_busy_ns, strict=True)],
        switching=(host.switching_ns - before.switching_ns) / duration_ns,
        context_switches=host.context_switches - before.switches,
        counters=dict(getattr(host.scheduler, "counters", {})),
        interrupts=sum(nic.interrupts for nic in media.nics.values()),
        in_flight=in_flight,
        events=media.clock.events,
        seconds=duration_ns / 1e9,
    )


def _flow_result(flow: FlowAccount, duration_ns: int) -> FlowResult:
    flow.flush()
    return FlowResult(
        flow.delivered_packets,
        flow.dropped_packets,
        flow.late_packets,
        flow.loss_events,
        flow.bursts.bursts,
        flow.delays,
        flow.jitter.mean_ns(),
        duration_ns / 1e9,
        flow.late_ns,
    )
