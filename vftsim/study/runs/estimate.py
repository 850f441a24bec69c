"""Estimate of the time and memory of a study before its first event, from rates, durations and periods alone.

Events of a replication are those of the packets (what a workload offers, times what a packet costs on its way), of
programs that compute by themselves, and of everything with a period.  Seconds follow from the speed of the engine,
memory from what is sampled and what is under way.  Nothing is simulated, so it takes milliseconds.

Rule of thumb, measured on the shipped models: events within a factor of two (``tests/study/test_estimate.py``), time
within one and a half of most (``docs/benchmarks.md`` sets told beside measured seconds); a machine of another speed is
as much off in all of them.  Assumption: a ramp ends at the first step that the server's CPU has no time for; on a host
without CPU time left packets wait and are handled in batches.  Left out: the time to begin a process and to compile a
kernel for the first time (seconds), further passes of a run that is rolled back.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import overload
from vftsim.kernel.choose import VARIABLE
from vftsim.platform.cpu.parameters import SchedulerSpec
from vftsim.platform.io.parameters import IoPathSpec
from vftsim.spec import Spec
from vftsim.spec.units import Quantity
from vftsim.study.runs.workers import available_cores, the_cluster
from vftsim.workloads.parts import ApplicationSpec, RunProfile, WorkloadSpec

EVENTS_PER_S: Mapping[str, float] = {"compiled": 1.6e7, "simpy": 100_000.0}
"""Speed of the engines beside draws, on the shipped models on one core of a cloud machine; found: 8 to 18 million, and
50 to 220 thousand."""

_EVENTS_OF_PROTECTION = 4.0
"""A packet to or from a protected domain: logged or held, acknowledged, released."""
_IN_BATCHES = 0.13
"""Events of a packet on a host whose CPUs do not keep up, as a share of those where they do; less the more is lost."""
_UNTIL_IN_BATCHES = 256.0
"""Packets that wait before a host that does not keep up handles them in batches: the slots of a ring."""
_SECONDS_TO_START = 0.003
_SECONDS_A_DOMAIN = 6e-4
"""Building it."""
_SECONDS_A_STATE = 1e-3
"""Putting a saved state of a run back, and saving one of three; 0.6 to 2 ms on the shipped models."""
_SECONDS_UNDER_WAY = 1e-6
"""Building what stands ready for a call or a subscriber."""
WORTH_WORKERS_S = 2.0
"""A study that takes less is over in this process before workers have begun: each imports for a second."""
_BYTES: Mapping[str, int] = {"compiled": 140_000_000, "simpy": 120_000_000}
"""Of a process that has run a small model."""
_BYTES_OF_TABLES = 40_000_000
"""Of what makes tables, in the process that the user began."""
_BYTES_BESIDE_WORKERS = 160_000_000
"""Of that process and the two that watch what workers share, where it simulates nothing itself."""
_BYTES_A_SAMPLE = 40
_BYTES_UNDER_WAY = 500


@dataclass(frozen=True)
class Needs:
    """Estimated time and memory."""

    events: float = 0.0
    seconds: float = 0.0
    """Of one CPU."""
    worker_bytes: float = 0.0
    """Memory of a process while it simulates."""
    record_bytes: float = 0.0
    """Memory of what is kept."""
    runs: float = 0.0
    """Replications, which are what workers share."""

    def times(self, count: float) -> Needs:
        return replace(
            self,
            events=self.events * count,
            seconds=self.seconds * count,
            record_bytes=self.record_bytes * count,
            runs=self.runs * count,
        )

    def __add__(self, other: Needs) -> Needs:
        return Needs(
            self.events + other.events,
            self.seconds + other.seconds,
            max(self.worker_bytes, other.worker_bytes),
            self.record_bytes + other.record_bytes,
            self.runs + other.runs,
        )

    def workers(self, jobs: int) -> int:
        """Return how many of so many workers have something to do."""
        return max(1, min(jobs, int(self.runs)))

    def wall_seconds(self, jobs: int) -> float:
        """Return how long it takes on so many workers."""
        return self.seconds / min(self.workers(jobs), available_cores())

    def memory_bytes(self, jobs: int) -> float:
        """Return the memory of all processes of this machine together."""
        if the_cluster() is not None:
            return _BYTES_BESIDE_WORKERS + self.record_bytes
        count = self.workers(jobs)
        of_this_process = _BYTES_OF_TABLES if count == 1 else _BYTES_BESIDE_WORKERS
        return self.worker_bytes * count + of_this_process + self.record_bytes


def engine_in_use() -> str:
    """Return the engine that a study of this process runs on."""
    named = os.environ.get(VARIABLE, "")
    if named in EVENTS_PER_S:
        return named
    return "compiled" if importlib.util.find_spec("llvmlite") else "simpy"


def needs_of(spec: ModelSpec) -> Needs:
    """Return what one replication of a model takes."""
    expected = Expected(spec)
    samples = sum(workload.samples(expected.profiles[name]) for name, workload in spec.workloads.items())
    under_way = sum(workload.in_flight(expected.profiles[name]) for name, workload in spec.workloads.items())
    build_s = sum(domain.count for domain in spec.domains.values()) * _SECONDS_A_DOMAIN + under_way * _SECONDS_UNDER_WAY
    return Needs(
        expected.events,
        _SECONDS_TO_START + build_s + expected.playing_s,
        _BYTES[engine_in_use()] + under_way * _BYTES_UNDER_WAY + samples * _BYTES_A_SAMPLE,
        samples * _BYTES_A_SAMPLE,
        1.0,
    )


def going_on_of(spec: ModelSpec) -> Needs:
    """Return what a run takes that goes on from a saved state: it is not built, kept, or a task of its own."""
    expected = Expected(spec)
    return Needs(expected.events, _SECONDS_A_STATE + expected.playing_s)


def events_of(spec: ModelSpec) -> float:
    return Expected(spec).events


def share_by(spec: ModelSpec) -> Callable[[int], float]:
    """Return what gives the share of a replication's events that is over by an instant in ns, about.

    Of a ramp the simulated time says little: its last steps have several times the events of its first.  Only packets
    count: of what has a period most is computed, or happens only where somebody competes.
    """
    expected = Expected(spec)
    whole_ns, of_packets = max(expected.length_ns, 1), expected.events_of_packets
    whole = sum(of_packets.values())

    def share(time_ns: int) -> float:
        if whole == 0.0:
            return min(time_ns / whole_ns, 1.0)
        sent = {name: spec.workloads[name].share_sent(time_ns, expected.profiles[name]) for name in of_packets}
        return min(sum(events * sent[name] for name, events in of_packets.items()) / whole, 1.0)

    return share


class Expected:
    """What a replication of a model is expected to be; each quantity is worked out once, whoever builds on it."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    @cached_property
    def _targets(self) -> dict[str, tuple[DomainSpec, ApplicationSpec]]:
        """The domain and the application that each workload is directed at."""
        targets = {name: self.spec.target_of(workload) for name, workload in self.spec.workloads.items()}
        return {name: (self.spec.domains[entry], application) for name, (entry, _, application) in targets.items()}

    @cached_property
    def _arrivals(self) -> dict[str, tuple[str, str, str]]:
        """Host and network by which each workload's packets arrive, and the key of their interface."""
        return {name: self.spec.arrival_of(workload) for name, workload in self.spec.workloads.items()}

    @cached_property
    def _most_per_s(self) -> dict[str, float]:
        """Requests a second that each workload's application takes."""
        most_per_s = dict[str, float]()
        for name, (domain, application) in self._targets.items():
            execution, exits = domain.protection.slowdown
            speed = self.spec.hosts[self.spec.host_of(domain)].cpu_speed
            most = application.most_per_s(domain.cpu_inflation * execution, exits)
            most_per_s[name] = domain.vcpus * speed * most
        return most_per_s

    @cached_property
    def _phases_ns(self) -> list[int]:
        """How long each workload's phases last."""
        return [workload.about_ns(self._most_per_s[name]) for name, workload in self.spec.workloads.items()]

    @cached_property
    def length_ns(self) -> int:
        """Simulated time, with what is under way after the phases of workloads."""
        workloads = self.spec.workloads.items()
        under_way_ns = [workload.under_way_ns(self._most_per_s[name]) for name, workload in workloads]
        lengths_ns = map(sum, zip(self._phases_ns, under_way_ns, strict=True))
        return max(lengths_ns, default=0) or self.spec.measure.warm_up + self.spec.measure.duration

    @property
    def _loaded_ns(self) -> int:
        """For how long somebody sends: after a benchmark's phases nobody does, if there is nothing else."""
        return max(self._phases_ns) if self._phases_ns and all(self._phases_ns) else self.length_ns

    @cached_property
    def profiles(self) -> dict[str, RunProfile]:
        """What each workload must know of the run."""
        profiles = dict[str, RunProfile]()
        for name in self.spec.workloads:
            network = self.spec.networks[self._arrivals[name][1]]
            application = self._targets[name][1]
            profiles[name] = RunProfile(
                self.length_ns, self._most_per_s[name], network.rate, network.latency, application, self.spec.program_of
            )
        return profiles

    @cached_property
    def packets(self) -> dict[str, float]:
        """Each workload's packets; those that together would overfill a line get their part of it."""
        workloads = self.spec.workloads.items()
        lines = {name: network for name, (_, network, _) in self._arrivals.items()}
        fills = {name: workload.fills(self.profiles[name])[0] for name, workload in workloads}
        filled = dict.fromkeys(lines.values(), 0.0)
        for name, share in fills.items():
            filled[lines[name]] += share
        packets = {name: workload.packets(self.profiles[name]) for name, workload in workloads}
        return {n: each / max(filled[lines[n]], 1.0) if fills[n] else each for n, each in packets.items()}

    @property
    def events(self) -> float:
        return self._steady + sum(self.events_of_packets.values())

    @property
    def playing_s(self) -> float:
        """Time that the engine and what is drawn take."""
        a_packet_ns = {name: each.drawing_ns(self.profiles[name]) for name, each in self.spec.workloads.items()}
        drawing_ns = sum(self.packets[name] * each_ns for name, each_ns in a_packet_ns.items())
        return self.events / EVENTS_PER_S[engine_in_use()] + drawing_ns * 1e-9

    @cached_property
    def _steady(self) -> float:
        """Events of what has a period while somebody sends, and of programs that compute by themselves."""
        recurring_per_s = sum(1.0 / period_s for period_s in _periods_s(self.spec))
        computed_per_s = sum(
            domain.count * program.events_per_s(domain.vcpus)
            for name, domain in self.spec.domains.items()
            if not _is_alone(self.spec, name)
            for program in domain.applications.values()
        )
        return (recurring_per_s * self._loaded_ns + computed_per_s * self.length_ns) / 1e9

    @cached_property
    def events_of_packets(self) -> dict[str, float]:
        """Events that each workload's packets cost."""
        busy, events = self._utilizations, dict[str, float]()
        for name, workload in self.spec.workloads.items():
            domain, application = self._targets[name]
            host, path = self.spec.host_of(domain), self._path_of(name)
            # The host's card hands over a workload's packets together; most of a farm never see the card.
            is_moderated = any(nic.coalescing_time > 0 for nic in self.spec.hosts[host].nics.values())
            in_batches = path.events_a_packet_moderated if is_moderated and application.forwards_to is None else None
            a_packet = path.events_a_packet if in_batches is None else in_batches
            if busy[host] >= 1.0 and in_batches is None and not workload.longest_ns() and not workload.needs_link:
                lost = max((busy[host] - 1.0) * self.packets[name], 1.0)
                singly = min(_UNTIL_IN_BATCHES * busy[host] / lost, 1.0)
                a_packet *= singly + (1.0 - singly) * _IN_BATCHES / busy[host]
            if any(tier.protection.protects for tier in self._tiers(domain, application)):
                a_packet += _EVENTS_OF_PROTECTION
            if overload(self.spec, *self._arrivals[name][:2]) > 1.0:
                a_packet += 1.0  # its way over the line, or its end where the line's queue is full
            events[name] = (
                self.packets[name] * domain.count * (a_packet + workload.events_a_packet(self.profiles[name]))
            )
        return events

    def _tiers(self, domain: DomainSpec, application: ApplicationSpec) -> Iterator[DomainSpec]:
        """Yield the domain of an application, and of every one that it asks."""
        yield domain
        for to, _ in application.mean_requests:
            yield from self._tiers(self.spec.domains[to.partition(".")[0]], self.spec.program_of(to))

    def _path_of(self, name: str) -> IoPathSpec:
        return self._targets[name][0].interfaces[self._arrivals[name][2]].path

    @cached_property
    def _utilizations(self) -> dict[str, float]:
        """CPU time that packets and programs ask for while they do, as a multiple of each host's."""
        spec = self.spec
        drivers = {host: spec.domains[name].driver for host in spec.hosts if (name := spec.driver_of(host))}
        busy_pcpus = dict.fromkeys(spec.hosts, 0.0)
        for domain in spec.domains.values():
            busy = sum(program.busy_percent for program in domain.applications.values())
            busy_pcpus[spec.host_of(domain)] += domain.count * busy / 100.0
        for name, (domain, application) in self._targets.items():
            host, path, profile = spec.host_of(domain), self._path_of(name), self.profiles[name]
            driver = drivers.get(host) if path.needs_driver_domain else None
            work_ns = sum(part.packet_work_ns for part in (path, application, driver) if part is not None)
            sending_ns = max(spec.workloads[name].fills(profile)[1], 1)
            busy_pcpus[host] += domain.count * self.packets[name] * work_ns / sending_ns
        return {name: busy_pcpus[name] / host.pcpus / host.cpu_speed for name, host in spec.hosts.items()}


def _is_alone(spec: ModelSpec, name: str) -> bool:
    """Whether a domain has one program and pCPUs of its own: what is periodic there is computed, not simulated.

    A scheduler that names no pCPU as a vCPU's own decides there, too.
    """
    domain = spec.domains[name]
    if type(spec.hosts[spec.host_of(domain)].scheduler).own_pcpu is SchedulerSpec.own_pcpu:
        return False
    if not domain.affinity or domain.interfaces or domain.count > 1 or len(domain.applications) > 1:
        return False
    others = [each for key, each in spec.domains.items() if key != name and spec.host_of(each) == spec.host_of(domain)]
    return all(each.affinity is not None and not set(each.affinity) & set(domain.affinity) for each in others)


def _periods_s(spec: ModelSpec) -> Iterator[float]:
    """Yield every period of the model in seconds, once for each place where it recurs.

    A scheduler's recur where several may compete for a pCPU.
    """
    for name, host in spec.hosts.items():
        vcpus = [each.count * each.vcpus for each in spec.domains.values() if spec.host_of(each) == name]
        for period_s in _recurring_s(host.scheduler) if len(vcpus) > 1 or sum(vcpus) > host.pcpus else ():
            yield period_s / host.pcpus
    for domain in spec.domains.values():
        for period_s in _recurring_s(domain):
            yield period_s / (domain.count * domain.vcpus)
    for part in (*spec.networks.values(), *spec.workloads.values()):
        yield from _recurring_s(part)


def _recurring_s(part: object) -> Iterator[float]:
    """Yield the periods of a part and of the parts in it."""
    if isinstance(part, Mapping):
        for each in part.values():
            yield from _recurring_s(each)
    elif isinstance(part, Spec):
        for name, field in type(part).model_fields.items():
            value = getattr(part, name)
            if isinstance(value, (Spec, Mapping)):
                yield from _recurring_s(value)
            elif isinstance(value, int) and value > 0 and _recurs(field):
                yield value / 1e9


def _recurs(field: Any) -> bool:
    """Whether the quantity of a field is a period; it may stand inside a union with None."""
    inside = [mark for each in get_args(field.annotation) for mark in getattr(each, "__metadata__", ())]
    return any(isinstance(mark, Quantity) and mark.recurs for mark in (*field.metadata, *inside))


def in_words(needs: Needs, jobs: int) -> str:
    """Return it in a few words: ``about 3.1e+09 events, 26 minutes on 2 workers, 0.4 GB of memory``."""
    count = needs.workers(jobs)
    workers = "1 worker" if count == 1 else f"{count} workers"
    return (
        f"about {needs.events:.2g} events, {duration_in_words(needs.wall_seconds(jobs))} on {workers}, "
        f"{needs.memory_bytes(jobs) / 1e9:.2g} GB of memory"
    )


def duration_in_words(seconds: float) -> str:
    units = (("years", 365 * 86_400.0), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
    name, unit = next(((name, unit) for name, unit in units if seconds >= 1.5 * unit), units[-1])
    count = seconds / unit
    number = f"{count:.0f}" if 1.0 <= count < 1e4 else f"{count:.2g}"
    return f"{number} {name.removesuffix('s') if number == '1' else name}"


def worthwhile_jobs(jobs: int, specs: Iterable[ModelSpec]) -> int:
    """Return how many of so many workers to begin for a run of each of these models: 1 is this process alone."""
    seconds, same = 0.0, dict[int, tuple[ModelSpec, float]]()
    for spec in specs:
        if id(spec) not in same:
            if any(type(each).packets is WorkloadSpec.packets for each in spec.workloads.values()):
                return jobs  # a workload from outside that does not say how much it sends: perhaps much
            same[id(spec)] = spec, needs_of(spec).seconds
        seconds += same[id(spec)][1]
        if seconds > WORTH_WORKERS_S:
            return jobs
    return 1


def total(specs: Sequence[ModelSpec], runs: float) -> Needs:
    """Return what so many replications of each of some models take."""
    return sum((needs_of(spec).times(runs) for spec in specs), Needs())
