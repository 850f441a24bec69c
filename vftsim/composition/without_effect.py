"""Settings of a model that can have no effect, each with its reason; and what its figures leave unsaid.

One domain definition serves every scheduler, and one host definition every workload, so a model may say things that
nothing reads.  Whoever changes such a key and finds the same figures must be told why: these are the settings that
differ from their default and that no part of this model looks at.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import Any

from vftsim.composition.hosts import DomainSpec, HostNicSpec, NetworkSpec
from vftsim.composition.link import guarded
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import ending_with, is_linked, paths_to
from vftsim.platform.io.disk import DiskSpec
from vftsim.platform.io.packet import MESSAGE
from vftsim.platform.io.parameters import IoPathSpec
from vftsim.spec import Spec, format_duration
from vftsim.spec.suggest import listing
from vftsim.spec.units import BYTE_COUNT, format_rate
from vftsim.workloads.parts import ApplicationSpec

_NO_WAY = "no path of its host's domains leads through it"
_MOST_OF_IT = 0.99
"""A test that lasts for that share of a run says the same as the whole."""


def without_effect(spec: ModelSpec) -> list[str]:
    """Return, for each setting without effect, ``key: reason``."""
    of_faults = guarded(spec)
    lines = [f"{key}: {why}" for name in spec.domains for key, why in _of_domain(spec, name, of_faults)]
    for name, host in spec.hosts.items():
        idle = host.scheduler.without_effect(_domains_on(spec, name))
        lines += [f"hosts.{name}.{key}: {why}" for key, why in _changed(host, idle)]
        for nic, card in host.nics.items():
            unread = _of_nic(card, [path for to, path in _paths_of(spec, name) if to == nic])
            lines += [f"hosts.{name}.nics.{nic}.{key}: {why}" for key, why in _changed(card, unread)]
    for name, network in spec.networks.items():
        lines += [f"networks.{name}.{key}: {why}" for key, why in _changed(network, _of_network(spec, name))]
    for name, workload in spec.workloads.items():
        lines += [f"workloads.{name}.{key}: {why}" for key, why in _changed(workload, workload.without_effect())]
    if spec.phased:
        others = any(not workload.longest_ns() for workload in spec.workloads.values())
        keys = ["duration"] if others else ["warm_up", "duration"]
        why = f"workloads.{spec.phased} has phases of its own, which say how long a run lasts"
        lines += [f"measure.{key}: {why}" for key, why in _changed(spec.measure, dict.fromkeys(keys, why))]
    return lines


def remarks(spec: ModelSpec) -> list[str]:
    """Return what a reader of a model's figures must know: what it asks that cannot be."""
    crashing = dict.fromkeys(
        spec.fault_domain(each) for each in spec.faults if each.strikes_host and not each.needs_backup
    )
    texts = [_idle_vcpus(spec, name) for name in spec.domains]
    texts += [_of_one_vcpu(name, domain) for name, domain in spec.domains.items()]
    texts += [_turns_of_work(spec, name) for name in spec.domains]
    texts += _second_interfaces(spec)
    texts += [_of_test(spec, name, workload.test_ns()) for name, workload in spec.workloads.items()]
    texts += [f"workloads.{name}.{text}" for name, each in spec.workloads.items() if (text := each.remark())]
    texts += [lost_beside(spec, domain) for domain in crashing]
    for of_model in (_of_faults, _idle_bounds, _overbooked, _beyond_line, _lost_bursts, _unseen, _all_too_late):
        texts += of_model(spec)
    return [*filter(None, texts)]


def _of_test(spec: ModelSpec, name: str, test_ns: int) -> str:
    """Return what the length of a workload's test makes of figures; ``test_ns`` 0: it lasts as long as the run."""
    if spec.phased or test_ns == 0:
        return ""
    test = f"workloads.{name}: its test lasts {format_duration(test_ns)}"
    if _MOST_OF_IT * test_ns > spec.longest_ns:
        return f"{test}, and a run {format_duration(spec.longest_ns)}: its figures are of a part"
    if test_ns <= spec.measure.warm_up:
        return f"{test}: it is over when measuring begins (measure.warm_up); CPU and links are of what comes after"
    measured_to_ns = spec.tests_ns or spec.longest_ns
    if test_ns < _MOST_OF_IT * measured_to_ns:
        return f"{test}; CPU and links are means up to {format_duration(measured_to_ns)}"
    return ""


def _unseen(spec: ModelSpec) -> Iterator[str]:
    """Yield the load profiles whose peak no figure has, as it does not come in the measured time."""
    for name, workload in spec.workloads.items():
        test_ns = min(workload.test_ns(), spec.longest_ns)
        measured_ns = (0, test_ns) if test_ns else (spec.measure.warm_up, spec.longest_ns)
        for key, load in workload.load_profiles().items():
            if peak := load.unseen_peak(*load.counted_ns(*measured_ns)):
                begin, end = map(format_duration, load.counted_ns(*measured_ns))
                yield (
                    f"workloads.{name}.{key}: its {peak.rate:g} % come when nothing is measured, and figures are "
                    f"of {begin} to {end} of its {format_duration(load.profile_ns)}"
                )


def _all_too_late(spec: ModelSpec) -> Iterator[str]:
    """Yield the streams of which the network alone makes each packet too late to be played."""
    for name, workload in spec.workloads.items():
        network = spec.arrival_of(workload)[1]
        there_and_back_ns = 2 * spec.networks[network].latency
        if 0 < workload.playout_ns <= there_and_back_ns:
            yield (
                f"workloads.{name}.playout: each packet comes after the {format_duration(workload.playout_ns)}, as "
                f"networks.{network}.latency is {format_duration(there_and_back_ns)} there and back, so that all count "
                "as lost for voice quality, which has no value then"
            )


def lost_beside(spec: ModelSpec, struck: str) -> str:
    """Return which domains a crash of one domain's host ends for good, as they come back nowhere else; empty: none."""
    specs = spec.expanded()
    ended = {name: specs[name].protection for name in ending_with(spec, struck) if name != struck}
    lost = [name for name, protection in ended.items() if not (protection.has_backup or protection.restart_ns)]
    if not lost:
        return ""
    return (
        f"a crash of the host of {struck} ends {listing(lost)}, too, which nothing protects from it "
        "(domains.*.on_every_host: the second host has it, too)"
    )


def _of_faults(spec: ModelSpec) -> Iterator[str]:
    """Yield the faults that meet nothing which they could stop, and those that end early by a default."""
    specs = spec.expanded()
    for number, fault in enumerate(spec.faults):
        name = spec.fault_domain(fault)
        struck = specs[name]
        if fault.strikes_disks and (going_on := _beside_disks(struck, name)):
            yield f"faults.{number}: {going_on}"
        if fault.strikes_card and not struck.interfaces:
            yield f"faults.{number}: {name} has no interface, so nothing is cut off"
        again = fault.repeat
        if again is None or "most" in again.model_fields_set:
            continue
        apart_ns = again.every or (again.mean or 0) + max(0, fault.lasts_ns)
        first_ns = spec.time_of(fault.at) + (0 if again.every else apart_ns)
        last_ns = first_ns + (again.most - 1) * apart_ns
        if last_ns + apart_ns < spec.longest_ns:
            yield (
                f"faults.{number}.repeat.most is {again.most}: the last comes at {'' if again.every else 'about '}"
                f"{format_duration(last_ns)}, and a run lasts {format_duration(spec.longest_ns)}"
            )


def _beside_disks(domain: DomainSpec, name: str) -> str:
    """Return which programs of a domain go on where its disks stand still; empty: those that use none at all."""
    timed = [key for key, program in domain.applications.items() if program.has_disk_times]
    of_times = f"disk operations of {listing(timed)} are waiting times, and go on" if timed else ""
    if any(program.uses_a_disk for program in domain.applications.values()):
        return of_times
    return f"no program of {name} uses a disk, so none stands still{'; ' if timed else ''}{of_times}"


def _beyond_line(spec: ModelSpec) -> Iterator[str]:
    """Yield what asks for more than its line by itself."""
    asked_of = [
        (f"workloads.{name}", spec.arrival_of(workload)[1], workload.wire_bits_per_s * len(spec.drivers_of(name)))
        for name, workload in spec.workloads.items()
    ]
    for network, wire in spec.networks.items():
        rate = sum(8e9 * traffic.burst / traffic.period for traffic in wire.background.values())
        asked_of.append((f"networks.{network}.background", network, rate))
    for who, network, rate in asked_of:
        if rate > (line := spec.networks[network].rate):
            yield f"{who} asks for {format_rate(rate)}, and networks.{network}.rate is {format_rate(line)}"


def _lost_bursts(spec: ModelSpec) -> Iterator[str]:
    for name, network in spec.networks.items():
        for kind, traffic in network.background.items():
            if traffic.burst > network.queue:
                yield (
                    f"networks.{name}.background.{kind}: a burst of {BYTE_COUNT.format(traffic.burst)} never fits into "
                    f"networks.{name}.queue, {BYTE_COUNT.format(network.queue)}, and is dropped as a whole"
                )


def running_vcpus(spec: ModelSpec, name: str) -> int:
    """Return how many vCPUs of a domain can run at a time."""
    domain = spec.domains[name]
    host = spec.hosts[spec.host_of(domain)]
    is_free = domain.affinity is None or "affinity" in host.scheduler.unread(domain)
    return min(domain.vcpus, host.pcpus if is_free else len(set(domain.affinity or ())))


def _idle_vcpus(spec: ModelSpec, name: str) -> str:
    domain = spec.domains[name]
    host = spec.host_of(domain)
    pcpus = spec.hosts[host].pcpus
    usable = running_vcpus(spec, name)
    if domain.vcpus == usable:
        return ""
    remedy = [] if domain.affinity is None else [f"--set domains.{name}.affinity=null"]
    remedy += [f"--set hosts.{host}.pcpus={domain.vcpus}"] if pcpus < domain.vcpus else []
    on = f"affinity {list(domain.affinity)}" if domain.affinity else f"hosts.{host}.pcpus {pcpus}"
    return (
        f"domains.{name}.vcpus: of {domain.vcpus} vCPUs no more than {usable} can run at a time, because of {on}; "
        f"{' '.join(remedy)} lets them"
    )


def _of_one_vcpu(name: str, domain: DomainSpec) -> str:
    if domain.driver is None or domain.driver.placement != "spread" or domain.vcpus > 1:
        return ""
    return f"domains.{name}.driver.placement: spread is one here, as the domain has one vCPU"


def _turns_of_work(spec: ModelSpec, name: str) -> str:
    """Return that a guest without processes gives programs with short work little beside jobs."""
    domain = spec.domains[name]
    programs = [*domain.applications.values()]
    jobs = [key for key, program in domain.applications.items() if not program.speaks]
    is_alike = all(program == programs[0] for program in programs) and not _works_for_others(spec, name)
    if not jobs or is_alike or domain.guest_scheduler.has_slices:
        return ""
    return (
        f"domains.{name}: its guest_scheduler gives turns to pieces of work, whatever the process, so that short ones "
        f"wait for those of {listing(jobs)} each time; {{kind: cfs}} or {{kind: eevdf}} shares the CPU among processes"
    )


def _second_interfaces(spec: ModelSpec) -> Iterator[str]:
    """Yield interfaces of a domain that lead to one network: traffic is not spread over them."""
    for name, domain in spec.domains.items():
        interfaces: dict[str, list[str]] = {}
        for key, interface in domain.interfaces.items():
            interfaces.setdefault(spec.network_of(domain, interface), []).append(key)
        for network, keys in interfaces.items():
            if len(keys) > 1:
                yield (
                    f"domains.{name}.interfaces: {listing(keys)} lead to {network}, over one link; workloads go by "
                    f"{keys[0]}, requests of other domains and to them by {keys[-1]}"
                )


def _idle_bounds(spec: ModelSpec) -> Iterator[str]:
    """Yield bounds on CPU time above all that a domain can use; its scheduler may still decide more often for them."""
    for name, domain in spec.domains.items():
        unread, usable = spec.hosts[spec.host_of(domain)].scheduler.unread(domain), 100 * running_vcpus(spec, name)
        for key in ("cap", "limit"):
            if key not in unread and getattr(domain, key) > usable:
                yield (
                    f"domains.{name}.{key}: {getattr(domain, key):g} % bounds nothing, as its vCPUs can use no more "
                    f"than {usable} %"
                )


def _overbooked(spec: ModelSpec) -> Iterator[str]:
    """Yield the hosts that cannot give what they guarantee."""
    for name, host in spec.hosts.items():
        if why := host.scheduler.overbooked(host.pcpus, spec.placed_on(name)):
            yield f"hosts.{name}: {why}"


def _of_domain(spec: ModelSpec, name: str, of_faults: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a domain without effect, each with why; ``of_faults``: domains that are guarded or struck."""
    domain, prefix = spec.domains[name], f"domains.{name}"
    scheduler = spec.hosts[spec.host_of(domain)].scheduler
    for key, why in _changed(domain, {**scheduler.unread(domain), **_of_guest(spec, name)}):
        yield f"{prefix}.{key}", why
    of_no_sender = domain.protection.without_sender(spec.driver_of(spec.host_of(domain)) is not None)
    for key, why in _changed(domain.protection, {**domain.protection.without_effect(), **of_no_sender}):
        yield f"{prefix}.protection.{key}", why
    for application, program in domain.applications.items():
        for key, why in _changed(program, _of_program(domain, program)):
            yield f"{prefix}.applications.{application}.{key}", why
    if domain.driver is not None and not _paths_through_driver(spec, spec.host_of(domain)):
        for key, why in _changed(domain.driver, dict.fromkeys(type(domain.driver).model_fields, _NO_WAY)):
            yield f"{prefix}.driver.{key}", why
    for disk, drive in domain.disks.items():
        for key, why in _changed(drive, _of_disk(domain, disk)):
            yield f"{prefix}.disks.{disk}.{key}", why
    is_guarded = any(copy in of_faults for copy in spec.copies(name))
    for interface, connected in domain.interfaces.items():
        for key, why in _changed(connected.path, connected.path.without_effect(is_guarded)):
            yield f"{prefix}.interfaces.{interface}.path.{key}", why


def _of_guest(spec: ModelSpec, name: str) -> dict[str, str]:
    domain = spec.domains[name]
    reasons = {"quantum": "its guest_scheduler has slices of its own"} if domain.guest_scheduler.has_slices else {}
    if domain.applications:
        return reasons
    reasons["cpu_inflation"] = why = "the domain has no applications"
    if domain.driver is not None:
        has_way = _paths_through_driver(spec, spec.host_of(domain))
        why = "its work is that of interrupts" if has_way else _NO_WAY
    if not _works_for_others(spec, name):
        reasons |= dict.fromkeys(("guest_scheduler", "quantum"), why)
    return reasons


def _works_for_others(spec: ModelSpec, name: str) -> bool:
    """Tell whether its processes do more than its programs: device models, clients, the sending of states."""
    hosted = {workload.agents for workload in spec.workloads.values()}
    hosted |= {other.protection.sent_by for other in spec.domains.values()}
    return _has_driver_processes(spec, spec.domains[name]) or not hosted.isdisjoint({name, *spec.copies(name)})


def _has_driver_processes(spec: ModelSpec, domain: DomainSpec) -> bool:
    """Tell whether it is a driver domain with work for processes: device models, the sending of states."""
    if domain.driver is None:
        return False
    host = spec.host_of(domain)
    has_models = any(path.has_driver_process for path in _paths_through_driver(spec, host))
    return has_models or any(guest.protection.protects for guest in _domains_on(spec, host))


def _domains_on(spec: ModelSpec, host: str) -> list[DomainSpec]:
    return [domain for domain in spec.domains.values() if spec.host_of(domain) == host]


def _paths_of(spec: ModelSpec, host: str) -> list[tuple[str, IoPathSpec]]:
    """Return the network interface of the host that each path of its domains leads to, and the path."""
    interfaces = ((domain, each) for domain in _domains_on(spec, host) for each in domain.interfaces.values())
    return [(spec.nic_of(domain, each), each.path) for domain, each in interfaces]


def _paths_through_driver(spec: ModelSpec, host: str) -> list[IoPathSpec]:
    return [path for _, path in _paths_of(spec, host) if path.needs_driver_domain]


def _of_network(spec: ModelSpec, name: str) -> dict[str, str]:
    unread = {} if spec.networks[name].loss else {"loss_burst": "loss is 0"}
    if not _has_messages(spec, name):
        unread["initial_window"] = "no requests and replies over TCP use it"
    if any(is_linked(spec, host, name) for host in spec.hosts):
        return unread
    channels = {domain.protection.channel_network for domain in spec.domains.values()}
    if name in channels or any(paths_to(spec, host, name) for host in spec.hosts):
        return {**unread, "queue": "its link is not simulated packet by packet"}
    return dict.fromkeys(NetworkSpec.model_fields, "nothing uses the network")


def _has_messages(spec: ModelSpec, network: str) -> bool:
    """Tell whether clients or services may send messages over TCP by a network."""
    if any(each.transport == MESSAGE and spec.arrival_of(each)[1] == network for each in spec.workloads.values()):
        return True
    return any(
        program.speaks == "request" and program.peers
        for domain in spec.domains.values()
        if network in (spec.network_of(domain, interface) for interface in domain.interfaces.values())
        for program in domain.applications.values()
    )


def _of_nic(card: HostNicSpec, paths: list[IoPathSpec]) -> Mapping[str, str]:
    if any(path.has_host_ring for path in paths):
        return card.without_effect()
    return {key: "no path takes packets from its ring" for key in type(card).model_fields if key != "network"}


def _of_disk(domain: DomainSpec, name: str) -> Mapping[str, str]:
    disk = domain.disks[name]
    if any(_disk_of(domain, program) is disk for program in domain.applications.values()):
        return disk.without_effect()
    return {key: "no program uses the disk" for key in type(disk).model_fields if key != "kind"}


def _disk_of(domain: DomainSpec, program: ApplicationSpec) -> DiskSpec | None:
    if not program.uses_a_disk:
        return None
    return domain.disks[getattr(program, "disk", None) or next(iter(domain.disks))]


def _of_program(domain: DomainSpec, program: ApplicationSpec) -> dict[str, str]:
    disk = _disk_of(domain, program)
    protection = domain.protection
    unread = {} if disk is None else disk.unread(protection.records_reads or protection.sends_pages)
    of_disk = {key: why for key, why in unread.items() if hasattr(program, key)}
    of_disk |= program.unread_of_transfers(protection.records_reads, protection.mirrors_writes)
    return {**of_disk, **program.without_effect(), **_of_no_states(domain, program)}


def _of_no_states(domain: DomainSpec, program: ApplicationSpec) -> dict[str, str]:
    protection = domain.protection
    if program.pages_a_packet is None:
        return {}
    if not protection.sends_pages:
        return {"pages_per_request": "no mechanism sends states of this domain"}
    if protection.pages_a_packet is not None:
        return {"pages_per_request": "protection.memory.per_request replaces it"}
    return {}


def _changed(part: Spec, reasons: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the reasons of keys that say something else than their default."""
    for dotted, why in reasons.items():
        *places, key = dotted.split(".")
        holder = reduce(_below, places, part)
        if getattr(holder, key) != type(holder).model_fields[key].get_default(call_default_factory=True):
            yield dotted, why


def _below(holder: Any, key: str) -> Any:
    return holder[int(key)] if key.isdigit() else getattr(holder, key)
