"""Resources of a model at a load: utilization, waiting, lost packets.

The limiting resource is the one with the highest utilization among those a packet needs: all pCPUs; of each
domain it passes the vCPUs, the pCPUs it is pinned to, its ceiling (cap, limit, quota) and its disks; links and the
channels of protection.  One vCPU is named when it is busier than its like: driver-domain work that one vCPU does
alone.  Domains that no packet passes are shown but limit nothing by themselves: what they take shows in the pCPUs.
Rings and buffers have no utilization of their own: one overflows when who empties it comes too late, so what each loses
stands beside.

Threads of a pool are all busy wherever a system is overloaded, on account of what they wait for.  So a full pool limits
only where nothing else is full; of several, the one that the others wait for.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.platform.cpu.records import RUNNABLE, pcpus, uncharged_ns, vcpus
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import carried_bytes, links, utilization
from vftsim.spec.suggest import counted
from vftsim.stats import Estimate, mean_interval
from vftsim.study.designs.capacity_search import JudgedLoad
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame

UTILIZATION = "%"
POOL = "% of threads"
FULL_PERCENT = 90.0
"""Busier than this, a pool of threads is full; less busy than that, nothing else is."""
HARDLY_USED_PERCENT = 10.0
"""Less busy than this, a pool is not shown: a farm has one in each of its servers, which would hide the others."""
_ALL_PERCENT = 100.0
LOST = "lost in "
STANDS_OUT_POINTS = 5.0
_VCPU = ": vCPU "
_ENTITY = 1


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """One replication at one load, watched between two instants; the end of measuring comes before ``end_ns``."""

    load: JudgedLoad
    level: float
    replication: int
    begin_ns: int
    end_ns: int


Uses = list[tuple[str, str, float]]
"""Figures: resource, unit, value."""


def watch(task: WatchedRun) -> Uses:
    """Return the use of every resource in the measured part of a run."""
    before: dict[Any, float] = {}
    after: dict[Any, float] = {}
    passes: list[Run] = []

    def prepare(run: Run) -> None:
        passes.append(run)
        run.pauses.add(task.begin_ns, _ENTITY, lambda: before.update(_totals(run)))
        run.on_measured = lambda: after.update(_totals(run))
        if run.phased:
            run.pauses.add(task.end_ns, _ENTITY, run.on_measured)

    record = task.load.play(task.level, task.replication, prepare)
    run = passes[-1]
    end_ns = task.end_ns if run.phased else record.whole.end_ns
    length_ns = end_ns - task.begin_ns
    rates = {key: (total - before.get(key, 0)) / length_ns for key, total in after.items()}
    return [*_uses(run, rates), *(() if run.phased else _pools(run.spec, record))]


def _pools(spec: ModelSpec, record: RunRecord) -> Iterator[tuple[str, str, float]]:
    """Use of pools of threads in the measured time, in the order in which requests come to them."""
    for name in dict.fromkeys(name for domains in spec.serving().values() for name in domains):
        for key, program in spec.expanded()[name].applications.items():
            outcome = record.whole.outcomes.get(f"domains.{name}.applications.{key}")
            if program.pool_size and outcome is not None:
                busy = outcome.columns().get("busy_threads", 0.0)
                yield f"{name}.{key}: {counted(program.pool_size, 'thread')}", POOL, 100.0 * busy / program.pool_size


def handling_domains(spec: ModelSpec) -> list[str]:
    """Return the domains that a request needs: driver domains, those that answer and those that clients run in."""
    needed = {name for domains in spec.serving().values() for name in domains}
    agents = {workload.agents for workload in spec.workloads.values() if workload.agents is not None}
    needed |= {copy for name in agents for copy in spec.copies(name)}
    return [name for name, domain in spec.expanded().items() if domain.driver is not None or name in needed]


def ceiling_pcpus(spec: ModelSpec, name: str) -> float:
    """Return the pCPUs that a domain's cap, limit, quota or budget leaves it, as far as its scheduler reads them."""
    domain = spec.expanded()[name]
    return spec.hosts[spec.host_of(domain)].scheduler.most_pcpus(domain, domain.vcpus)


def _totals(run: Run) -> dict[Any, float]:
    built, rows = run.built, run.engine.rows
    totals: dict[Any, float] = {}
    running_ns: dict[int, int] = {}
    for program in built.programs.values():
        program.update_accounts()
    for name, number, row in built.vcpu_rows():
        vcpu = rows(vcpus)[row]
        waits_ns = run.now_ns - int(vcpu.waiting_since_ns) if vcpu.state == RUNNABLE else 0
        # Nobody is charged for being looked at.
        running_ns[int(vcpu.pcpu)] = int(uncharged_ns(vcpu, run.now_ns))
        totals["run", name, number] = int(vcpu.run_ns) + running_ns[int(vcpu.pcpu)]
        totals["wait", name, number] = int(vcpu.wait_ns) + waits_ns
    for host in built.hosts.values():
        for pcpu, row in enumerate(built.pcpu_rows(host.name)):
            used_ns = int(rows(pcpus)[row].busy_ns) + int(rows(pcpus)[row].switching_ns)
            totals["pcpu", host.name, pcpu] = used_ns + running_ns.get(row, 0)
    for name, (sent_bytes, _) in _transmitters(run).items():
        totals["sent", name] = sent_bytes
    for name, domain in run.spec.expanded().items():
        for (key, disk), row in zip(domain.disks.items(), built.disks[name], strict=True):
            use = disk.measured(run.engine, row)
            totals["disk", name, key] = use.busy_ns / use.disks
    return totals | {("lost", *where): count for where, count in built.drop_counts().items()}


def _transmitters(run: Run) -> dict[str, tuple[float, int]]:
    """Return bytes sent and rate of every modelled link's end, and of the channels of protection."""
    built, rows = run.built, run.engine.rows
    transmitters: dict[str, tuple[float, int]] = {}
    for host in built.hosts.values():
        for network, card in host.cards.items():
            record = rows(cards)[card]
            for link, direction in ((record.to_host, "to"), (record.from_host, "from")):
                end = rows(links)[link]
                carried = float(carried_bytes(end, run.now_ns))
                transmitters[f"link of {network} {direction} {host.name}"] = carried, int(end.rate_bits_per_s)
    for name, guard in built.guards.items():
        for channel, (sent_bytes, rate) in built.protection_of(name).transmitters(run.engine, guard).items():
            transmitters[f"{name}: {channel}"] = sent_bytes, rate
    return transmitters


def _uses(run: Run, rates: dict[Any, float]) -> Iterator[tuple[str, str, float]]:
    spec = run.spec
    for name, host in spec.hosts.items():
        where = "" if len(spec.hosts) == 1 else f"{name}: "
        yield f"{where}{counted(host.pcpus, 'pCPU')}", UTILIZATION, _busy_percent(rates, name, range(host.pcpus))
    handling = handling_domains(spec)
    for name in handling:
        yield from _uses_of_domain(run, rates, name)
    for name, (_, rate) in _transmitters(run).items():
        yield name, UTILIZATION, 100.0 * utilization(rates["sent", name], rate, 1)
    yield from _drawn_links(run)
    for name in run.built.domains:
        if name not in handling:
            used = sum(rates["run", name, n] for domain, n, _ in run.built.vcpu_rows() if domain == name)
            yield f"{name}: CPU", "pCPUs", used
    for where_lost, cause in run.built.drop_counts():
        yield f"{LOST}{where_lost}, {cause}", "packets/s", rates.get(("lost", where_lost, cause), 0.0) * 1e9


def _uses_of_domain(run: Run, rates: dict[Any, float], name: str) -> Iterator[tuple[str, str, float]]:
    spec, domain = run.spec, run.spec.expanded()[name]
    host = spec.host_of(domain)
    pcpu_count = spec.hosts[host].pcpus
    rows = {number: row for other, number, row in run.built.vcpu_rows() if other == name}
    used = math.fsum(rates["run", name, number] for number in rows)
    yield f"{name}: {counted(len(rows), 'vCPU')}", UTILIZATION, 100.0 * used / len(rows)
    for number in rows:
        yield f"{name}{_VCPU}{number}", UTILIZATION, 100.0 * rates["run", name, number]
    pins = domain.affinity
    if pins is not None and len(pins) < pcpu_count:
        where = ", ".join(str(n) for n in sorted(pins))
        yield f"{name}: pinned to pCPU {where}", UTILIZATION, _busy_percent(rates, host, pins)
    ceiling = ceiling_pcpus(spec, name)
    if ceiling < math.inf:
        # From the start of the run: a domain may still be kept off the CPUs for what it overdrew in the warm-up.
        run_ns = sum(int(run.engine.rows(vcpus)[row].run_ns) for row in rows.values())
        yield f"{name}: ceiling of {ceiling:g} pCPUs", UTILIZATION, 100.0 * min(1.0, run_ns / (ceiling * run.now_ns))
    yield f"{name}: waiting for a pCPU", "vCPUs", math.fsum(rates["wait", name, number] for number in rows)
    for key in domain.disks:
        yield f"{name}: disk {key}", UTILIZATION, 100.0 * rates["disk", name, key]


def _drawn_links(run: Run) -> Iterator[tuple[str, str, float]]:
    """Yield the load of each link that is not modelled because all that comes over it is drawn."""
    spec, drawn = run.spec, Counter[tuple[str, str]]()
    for name, workload in spec.workloads.items():
        host, network, _ = spec.arrival_of(workload)
        if network not in run.built.hosts[host].cards:
            drawn[host, network] += round(workload.wire_bits_per_s * len(spec.drivers_of(name)))
    for (host, network), bits_per_s in drawn.items():
        yield f"link of {network} to {host}", UTILIZATION, 100.0 * bits_per_s / spec.networks[network].rate


def resource_table(uses: Sequence[Uses]) -> DataFrame:
    """Return the resources by falling utilization, then who waits, then losses; the first row is the limit."""
    runs = [{(resource, unit): value for resource, unit, value in each} for each in uses]
    names = list(dict.fromkeys(name for use in runs for name in use))
    means = {name: fmean(use.get(name, 0.0) for use in runs) for name in names}
    unneeded = {name for name in names if name[1] == POOL and means[name] < HARDLY_USED_PERCENT}
    shown = [name for name in names if name not in unneeded and not _is_like_the_others(name, means)]
    # Pools keep the order in which requests come to them.
    ranked = sorted(shown, key=lambda name: (_GROUPS.index(name[1]), 0.0 if name[1] == POOL else -means[name]))
    # Nothing is lost where no replication ever dropped a packet after the warm-up.
    ranked = [name for name in ranked if name[1] != "packets/s" or means[name] > 0.0]
    table = []
    for resource, unit in ranked:
        mean = _mean([use.get((resource, unit), 0.0) for use in runs], unit)
        table.append({"resource": resource, "unit": unit, **estimate_columns(mean)})
    return frame(table)


def _mean(uses: Sequence[float], unit: str) -> Estimate:
    """Return a mean with its interval, which ends at all of a resource where no run used more."""
    is_part = unit in (UTILIZATION, POOL) and max(uses) <= _ALL_PERCENT
    return mean_interval(uses).times(1.0, _ALL_PERCENT if is_part else math.inf)


def limit_in_words(table: DataFrame) -> str:
    """Return which resource limits and where packets are lost, for one line."""
    first = table.iloc[0]
    text = f"{first['resource']}, {first['estimate']:.3g} % busy"
    losses = table[table["unit"] == "packets/s"]
    full = table[(table["unit"] == POOL) & (table["estimate"] >= FULL_PERCENT)]
    if first["estimate"] < FULL_PERCENT:
        if not full.empty:
            text = f"{full.iloc[-1]['resource']}, {full.iloc[-1]['estimate']:.3g} % of them busy"
        elif losses.empty:
            text = f"none is full; the busiest is {text}"
    if losses.empty:
        return text
    total = losses["estimate"].sum()
    shares = zip(losses["resource"], 100.0 * losses["estimate"] / total, strict=True)
    parts = [f"{name.removeprefix(LOST)} ({share:.0f} %)" for name, share in shares]
    return f"{text}; packets are lost in {'; '.join(parts)}"


_GROUPS = (UTILIZATION, POOL, "vCPUs", "pCPUs", "packets/s")


def _is_like_the_others(name: tuple[str, str], means: dict[tuple[str, str], float]) -> bool:
    """Tell whether a single vCPU is not clearly the busiest of its domain."""
    owner, vcpu, _ = name[0].partition(_VCPU)
    if not vcpu:
        return False
    peers = [mean for (other, _), mean in means.items() if other.startswith(f"{owner}{_VCPU}")]
    return means[name] < max(peers) or means[name] < fmean(peers) + STANDS_OUT_POINTS


def _busy_percent(rates: dict[Any, float], host: str, numbers: Collection[int]) -> float:
    return 100.0 * fmean(rates["pcpu", host, n] for n in numbers)
