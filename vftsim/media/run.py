"""Run a media host and measure it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vftsim.media.build import MediaHost
from vftsim.media.system import MediaSystem
from vftsim.platform.cpu.records import hosts, pcpus, vcpus
from vftsim.platform.io.nic import nics
from vftsim.sampling import Streams
from vftsim.workloads.account import accounts, mean_jitter_ns
from vftsim.workloads.delays import histogram
from vftsim.workloads.flow_result import FlowResult

BASELINE_ENTITY = 0
_MS = 1e6


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
        self.vcpu_ns = [0] * sum(1 for _ in media.vcpu_rows())
        self.busy_ns = [0] * media.system.host.pcpus
        self.switching_ns = 0
        self.switches = 0

    def take(self) -> None:
        media, rows = self.media, self.media.engine.rows
        media.settle()
        self.vcpu_ns = [int(rows(vcpus)[row].run_ns) for _, _, row in media.vcpu_rows()]
        self.busy_ns = [int(rows(pcpus)[row].busy_ns) for row in media.pcpu_rows()]
        self.switching_ns = media.switching_ns()
        self.switches = int(rows(hosts)[media.host].context_switches)


def run_media(
    system: MediaSystem, seed: int, replication: int, duration_ns: int, warmup_ns: int = 0, engine: str = "auto"
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
    engine : str
        ``compiled``, ``simpy``, or ``auto`` for the former where it works; results are the same.
    """
    return finish(MediaHost(system, Streams(seed, replication), warmup_ns, warmup_ns + duration_ns, engine))


def finish(media: MediaHost) -> MediaResult:
    """Run a host that has been put together, and measure it."""
    baseline = _Baseline(media)
    media.pauses.add(media.warmup_ns, BASELINE_ENTITY, baseline.take)
    media.start()
    media.run()
    in_flight = media.check_conservation()
    return _collect(media, baseline, in_flight)


def _collect(media: MediaHost, before: _Baseline, in_flight: int) -> MediaResult:
    rows, duration_ns = media.engine.rows, media.end_ns - media.warmup_ns
    domain_cpu = dict.fromkeys(media.domains, 0.0)
    for (name, _, row), earlier_ns in zip(media.vcpu_rows(), before.vcpu_ns, strict=True):
        domain_cpu[name] += (int(rows(vcpus)[row].run_ns) - earlier_ns) / duration_ns
    busy_ns = [int(rows(pcpus)[row].busy_ns) for row in media.pcpu_rows()]
    return MediaResult(
        flows={name: _flow_result(media, name, duration_ns) for name in media.flows},
        drops=media.io.drop_counts(),
        domain_cpu=domain_cpu,
        pcpu_busy=[(after - earlier) / duration_ns for earlier, after in zip(before.busy_ns, busy_ns, strict=True)],
        switching=(media.switching_ns() - before.switching_ns) / duration_ns,
        context_switches=int(rows(hosts)[media.host].context_switches) - before.switches,
        counters={name: n for name, n in media.scheduler.counters(media.engine, media.host).items() if n},
        interrupts=sum(int(rows(nics)[row].interrupts) for row in media.io.nics.values()),
        in_flight=in_flight,
        events=media.engine.events,
        seconds=duration_ns / 1e9,
    )


def _flow_result(media: MediaHost, name: str, duration_ns: int) -> FlowResult:
    own: Any = media.engine.rows(accounts)[media.accounts[name]]
    return FlowResult(
        int(own.delivered),
        int(own.dropped),
        int(own.late),
        int(own.loss_events),
        int(own.loss_bursts),
        histogram(own.delays),
        mean_jitter_ns(media.engine, media.accounts[name]),
        duration_ns / 1e9,
        int(own.late_ns),
    )
