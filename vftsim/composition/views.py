"""A model seen from one of its parts: its ramp, media streams with their calls."""

from collections.abc import Sequence
from typing import Any

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.platform.io.parameters import IoPathSpec
from vftsim.platform.protection.faults import FaultSpec
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.workloads.parts import WorkloadSpec
from vftsim.workloads.ramp import RampSpec

STREAMS, CALLS = "streams", "calls_per_s"
"""What media streams and calls call their load."""


def loaded_by(spec: ModelSpec, key: str) -> str | None:
    """Return the name of the first workload that calls its load so; ``None`` if the model has none."""
    return next((name for name, workload in spec.workloads.items() if workload.load_key == key), None)


def ramp_of(spec: ModelSpec, label: str = "") -> RampSpec:
    """Return the workload of a model that plays a ramp; refuse a model without one: it has no steps to speak of."""
    if spec.ramp is None:
        name = label or spec.name
        called = f"'{name}'" if name else "the model"
        raise UsageError(f"{called} has no workload that plays steps of load, such as ims_bench")
    return spec.ramp


def ramp_key(spec: ModelSpec, key: str) -> str:
    """Return a parameter of a model's ramp as ``--set`` has it: ``workloads.calls.steps.initial``."""
    return f"workloads.{spec.phased}.{key}"


def with_ramp(spec: ModelSpec, ramp: RampSpec) -> ModelSpec:
    return with_workload(spec, spec.phased or "", ramp)


def with_workload(spec: ModelSpec, name: str, workload: WorkloadSpec) -> ModelSpec:
    return spec.model_copy(update={"workloads": {**spec.workloads, name: workload}})


def with_domain(spec: ModelSpec, name: str, **changes: Any) -> ModelSpec:
    return spec.model_copy(update={"domains": {**spec.domains, name: spec.domains[name].model_copy(update=changes)}})


def protection_of(spec: ModelSpec, domain: DomainSpec) -> ProtectionSpec:
    """Return the mechanism of a domain, with the rate and latency of the network that it names."""
    network = domain.protection.channel_network
    if network is None:
        return domain.protection
    wire = spec.networks[network]
    return domain.protection.on_network(wire.rate, wire.latency)


def talks_inside(spec: ModelSpec, name: str) -> bool:
    programs = spec.domains[name].applications.values()
    return any(peer.partition(".")[0] == name for program in programs for peer in program.peers)


def paths_to(spec: ModelSpec, host: str, network: str) -> list[IoPathSpec]:
    return [
        interface.path
        for domain in spec.domains.values()
        if spec.host_of(domain) == host
        for interface in domain.interfaces.values()
        if spec.network_of(domain, interface) == network
    ]


def is_linked(spec: ModelSpec, host: str, network: str) -> bool:
    """Tell whether packets between a host and a network cross a modelled link.

    They need not where all that comes is drawn beforehand, nothing else is on the way, and the line carries it whole.
    """
    paths = paths_to(spec, host, network)
    domains = [domain for domain in spec.domains.values() if spec.host_of(domain) == host]
    if any(each.protection.channel_network == network and spec.shares_channel(each) for each in domains):
        return True
    if spec.networks[network].background and (paths or len(spec.hosts) == 1):
        return True
    if spec.networks[network].loss and paths:
        return True
    if any(not path.has_host_ring for path in paths):
        return True
    if paths and any(program.peers for domain in spec.domains.values() for program in domain.applications.values()):
        return True
    arriving = [each for each in spec.workloads.values() if spec.arrival_of(each)[:2] == (host, network)]
    profiles = (load.load_profile for each in arriving for load in each.load_profiles().values())
    return overload(spec, host, network) > 1.0 or any(profiles) or any(each.needs_link for each in arriving)


def overload(spec: ModelSpec, host: str, network: str) -> float:
    """Return how many times the rate of a line to a host workloads ask for, where that is more than once; else 1."""
    arriving = {name: each for name, each in spec.workloads.items() if spec.arrival_of(each)[:2] == (host, network)}
    sent = sum(each.wire_bits_per_s * len(spec.drivers_of(name)) for name, each in arriving.items())
    return max(sent / spec.networks[network].rate, 1.0)


def guests_of(spec: ModelSpec, host: str) -> list[str]:
    """Return the domains of a host, but for its driver domain."""
    return [name for name, domain in spec.expanded().items() if spec.host_of(domain) == host and not domain.driver]


def struck_by(spec: ModelSpec, fault: FaultSpec) -> list[str]:
    """Return the domains that a fault strikes: of a host that fails all that are on it, or have their backup there."""
    meant = spec.fault_domain(fault)
    if not fault.strikes_host:
        return [meant]
    specs, struck = spec.expanded(), ending_with(spec, meant)
    return [name for name in struck if name == meant or not fault.needs_backup or specs[name].protection.has_backup]


def ending_with(spec: ModelSpec, domain: str) -> list[str]:
    """Return the guests that a crash of one domain's host ends, it among them.

    The host's driver domain, and what is on every host, stand for those of the host on which guests go on, too; clients
    that run in a domain see what becomes of the others.
    """
    specs = spec.expanded()
    clients = {copy for workload in spec.workloads.values() if workload.agents for copy in spec.copies(workload.agents)}
    guests = guests_of(spec, spec.host_of(specs[domain]))
    return [name for name in guests if name == domain or not (specs[name].on_every_host or name in clients)]


def others_on_host(spec: ModelSpec, domains: Sequence[str]) -> list[str]:
    """Return the guests beside some of one host that are on it too."""
    return [name for name in guests_of(spec, spec.host_of(spec.expanded()[domains[0]])) if name not in domains]


def work_of(spec: ModelSpec, domains: Sequence[str]) -> tuple[str, ...]:
    """Return the owners of figures that say what domains get done: workloads that they serve, and their programs."""
    served = [f"workloads.{name}" for name, serving in spec.serving().items() if not set(domains).isdisjoint(serving)]
    specs = spec.expanded()
    return (*served, *(f"domains.{name}.applications.{key}" for name in domains for key in specs[name].applications))


def streams_of(spec: ModelSpec) -> Any | None:
    return spec.workloads.get(loaded_by(spec, STREAMS) or "")


def calls_of(spec: ModelSpec) -> Any | None:
    return spec.workloads.get(loaded_by(spec, CALLS) or "")


def media_of(spec: ModelSpec, record: RunRecord) -> Any:
    """Return what the receivers of media streams measured; refuse a model without media streams."""
    name = loaded_by(spec, STREAMS)
    if name is None:
        raise UsageError("the model has no media streams: add a workload of kind rtp")
    return record.of(f"workloads.{name}")
