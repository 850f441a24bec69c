"""How busy every resource of a media host is at a load, who waits, and where packets are lost.

The limiting resource is the one with the highest utilization among those a packet needs: all pCPUs; of each
domain it passes the vCPUs, the pCPUs it is pinned to and its ceiling (cap, limit, quota); and the link.  One
vCPU is named when it is busier than its like: driver-domain work that one vCPU does alone.  CPU-bound guests
are shown but limit nothing by themselves: what they take shows in the pCPUs.  Rings and buffers have no
utilization of their own: one overflows when who empties it comes too late, so what each loses stands beside.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vftsim.media.build import MediaHost
from vftsim.media.run import MediaResult, finish
from vftsim.platform.cpu.records import RUNNABLE, pcpus, vcpus
from vftsim.sampling import Streams
from vftsim.stats import mean_interval
from vftsim.study.sip_summary import estimate_columns
from vftsim.study.stream_load import StreamLoad, at_streams, ceiling_pcpus, handling_domains

UTILIZATION = "%"
LOST = "lost in "
STANDS_OUT_POINTS = 5.0
_VCPU = ": vCPU "
_ENTITY = 1


@dataclass(frozen=True, slots=True)
class StreamTask:
    """One replication at one load, watched."""

    load: StreamLoad
    streams: float
    replication: int


Uses = dict[tuple[str, str], float]
"""A figure by (resource, unit)."""


def to_rows(uses: Uses) -> list[list[Any]]:
    """Return figures as plain rows."""
    return [[resource, unit, value] for (resource, unit), value in uses.items()]


def from_rows(rows: Sequence[Sequence[Any]]) -> Uses:
    """Rebuild what :func:`to_rows` returned."""
    return {(resource, unit): value for resource, unit, value in rows}


def watch(task: StreamTask) -> Uses:
    """Return the use of every resource in the measured part of a run."""
    spec = at_streams(task.load.spec, task.streams)
    warm_up_ns, measured_ns = spec.workload.warm_up, spec.workload.duration
    media = MediaHost(spec, Streams(task.load.seed, task.replication), warm_up_ns, warm_up_ns + measured_ns)
    before: dict[Any, int] = {}
    media.pauses.add(warm_up_ns, _ENTITY, lambda: before.update(_totals(media)))
    result = finish(media)
    after = _totals(media)
    rates = {key: (total - before.get(key, 0)) / measured_ns for key, total in after.items()}
    return dict(_uses(media, result, rates))


def _totals(media: MediaHost) -> dict[Any, int]:
    media.settle()
    rows, now_ns = media.engine.rows, media.engine.now_ns
    totals: dict[Any, int] = {}
    for name, number, row in media.vcpu_rows():
        vcpu = rows(vcpus)[row]
        waits_ns = now_ns - int(vcpu.waiting_since_ns) if vcpu.state == RUNNABLE else 0
        totals["run", name, number] = int(vcpu.run_ns)
        totals["wait", name, number] = int(vcpu.wait_ns) + waits_ns
    for pcpu, row in enumerate(media.pcpu_rows()):
        totals["pcpu", pcpu] = int(rows(pcpus)[row].busy_ns) + int(rows(pcpus)[row].switching_ns)
    return totals | {("lost", *where): count for where, count in media.io.drop_counts().items()}


def _uses(media: MediaHost, result: MediaResult, rates: dict[Any, float]) -> Iterator[tuple[tuple[str, str], float]]:
    spec, pcpu_count = media.system, media.system.host.pcpus
    yield (_count(pcpu_count, "pCPU"), UTILIZATION), _busy_percent(rates, range(pcpu_count))
    for name in handling_domains(spec):
        own = {number: row for domain, number, row in media.vcpu_rows() if domain == name}
        used = result.domain_cpu[name]
        yield (f"{name}: {_count(len(own), 'vCPU')}", UTILIZATION), _percent(used / len(own))
        for number in own:
            yield (f"{name}{_VCPU}{number}", UTILIZATION), _percent(rates["run", name, number])
        pins = spec.domains[name].affinity
        if pins is not None and len(pins) < pcpu_count:
            where = ", ".join(str(n) for n in sorted(pins))
            yield (f"{name}: pinned to pCPU {where}", UTILIZATION), _busy_percent(rates, pins)
        ceiling = ceiling_pcpus(spec, name)
        if ceiling < math.inf:
            # From the start of the run: a domain may still be kept off the CPUs for what it overdrew in the warm-up.
            run_ns = sum(int(media.engine.rows(vcpus)[row].run_ns) for row in own.values())
            drawn = run_ns / (ceiling * media.engine.now_ns)
            yield (f"{name}: ceiling of {ceiling:g} pCPUs", UTILIZATION), _percent(min(1.0, drawn))
        waiting = sum(rates["wait", name, number] for number in own)
        yield (f"{name}: waiting for a pCPU", "vCPUs"), waiting
    rtp = spec.workload.rtp
    if rtp is not None:
        bits_per_s = rtp.streams * rtp.frame_bytes * 8e9 / rtp.interval_ns
        yield ("link, media each way", UTILIZATION), _percent(bits_per_s / rtp.link_bit_per_s)
    for name in spec.domains:
        if name not in handling_domains(spec):
            yield (f"{name}: CPU", "pCPUs"), result.domain_cpu[name]
    for place, cause in media.io.drop_counts():
        yield (f"{LOST}{place}, {cause}", "packets/s"), rates["lost", place, cause] * 1e9


def resource_table(uses: Sequence[Uses], confidence: float) -> pd.DataFrame:
    """Return the resources by falling utilization, then who waits, then losses; the first row is the limit."""
    names = list(dict.fromkeys(name for use in uses for name in use))
    means = {name: sum(use.get(name, 0.0) for use in uses) / len(uses) for name in names}
    kept = [name for name in names if not _is_like_the_others(name, means)]
    ranked = sorted(kept, key=lambda name: (_GROUPS.index(name[1]), -means[name]))
    # Nothing is lost where no replication ever dropped a packet after the warm-up.
    ranked = [name for name in ranked if name[1] != "packets/s" or means[name] > 0.0]
    return pd.DataFrame([
        {
            "resource": name[0], "unit": name[1],
            **estimate_columns(mean_interval([use.get(name, 0.0) for use in uses], confidence)),
        }
        for name in ranked
    ])  # fmt: skip


def limit_in_words(table: pd.DataFrame) -> str:
    """Return which resource limits and where packets are lost, for one line."""
    first = table.iloc[0]
    text = f"{first['resource']}, {first['estimate']:.3g} % busy"
    losses = table[table["unit"] == "packets/s"]
    if losses.empty:
        return text
    total = losses["estimate"].sum()
    shares = zip(losses["resource"], 100.0 * losses["estimate"] / total, strict=True)
    places = [f"{name.removeprefix(LOST)} ({share:.0f} %)" for name, share in shares]
    return f"{text}; packets are lost in {'; '.join(places)}"


_GROUPS = (UTILIZATION, "vCPUs", "pCPUs", "packets/s")


def _is_like_the_others(name: tuple[str, str], means: dict[tuple[str, str], float]) -> bool:
    """Tell whether a single vCPU is not clearly the busiest of its domain."""
    owner, vcpu, _ = name[0].partition(_VCPU)
    if not vcpu:
        return False
    peers = [mean for (other, _), mean in means.items() if other.startswith(f"{owner}{_VCPU}")]
    return means[name] < max(peers) or means[name] < sum(peers) / len(peers) + STANDS_OUT_POINTS


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def _busy_percent(rates: dict[Any, float], pcpus: Collection[int]) -> float:
    return _percent(sum(rates["pcpu", n] for n in pcpus) / len(pcpus))


def _percent(ratio: float) -> float:
    return 100.0 * ratio
