"""A model file: hosts, networks, domains with what runs in them, workloads, faults, and what is measured.

Every part is looked up by its ``kind`` in the registry of its sort, and anything may stand with anything that it fits;
what does not fit is refused with the reason.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from vftsim.composition.hosts import DomainSpec, HostNicSpec, HostSpec, InterfaceSpec, NetworkSpec
from vftsim.platform.cpu.parameters import PlacedDomain
from vftsim.platform.io.link import never_fits
from vftsim.platform.protection.faults import FAULTS, FaultSpec
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.when import Instant
from vftsim.spec import DURATION, Items, OneOf, RatePerSecond, Spec, format_duration
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.spec.units import MS, S
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, WorkloadSpec
from vftsim.workloads.ramp import RampSpec

SHORTEST_NS = 100 * MS
LONGEST_NS = 31 * 86_400 * S
FEWEST_CYCLES = 10
"""Where the measured time cuts the first and the last of so many, a mean is off by a tenth at most."""
MeasuredNs = Annotated[int, replace(DURATION, upper=LONGEST_NS, example="2 s")]
WarmUpNs = Annotated[int, replace(DURATION, upper=LONGEST_NS, example="500 ms")]
MOST_DOMAINS = 10_000
WITH_HOSTS = {"hosts": "checked"}
"""Context of a validation that refuses what a scheduler cannot have, too; else a run does: of a study's points some may
be left out."""


class MeasureSpec(Spec):
    """What of a run is measured, where workloads have no phases of their own."""

    warm_up: WarmUpNs = Field(
        500 * MS,
        description="Simulated before, not measured. Default: 17 accounting periods of the credit scheduler (30 ms), "
        "25 packets of a stream.",
    )
    duration: MeasuredNs = Field(
        2 * S,
        description="Measured time of a replication, after the warm-up. From 100 ms (five packets of a stream). It "
        "ends before, with the last of them, where all workloads are tests of a length of their own (iperf, httperf).",
    )

    @field_validator("duration")
    @classmethod
    def _long_enough(cls, duration_ns: int) -> int:
        if duration_ns < SHORTEST_NS:
            raise ValueError(
                f"must be at least {format_duration(SHORTEST_NS)}, five packets of a stream; "
                f"got {format_duration(duration_ns)}"
            )
        return duration_ns


class MeasuredSpec(Spec):
    """What was measured of the real system; shown beside predictions, used for none."""

    capacity: RatePerSecond | None = Field(None, gt=0, description="Design objective capacity, attempts a second.")
    system: str | None = Field(
        None, description="Name of the system in `calibration/ramps.yaml`, whose record has its capacity at each limit."
    )


class CalibratedSpec(Spec):
    """What the model's values were fitted to; figures outside of it are marked, and nothing is computed from it."""

    by: str = Field(min_length=1, max_length=200, description="The calibration, and which of its phases were fitted.")
    loads: Annotated[Items[RatePerSecond], Field(min_length=2, max_length=2)] = Field(
        description="Lowest and highest load of a step that was fitted, attempts a second."
    )
    not_covered: Items[str] = Field(
        (),
        description="Keys of hosts, networks and domains that were something else then. What an extending file, "
        "`--set` and `--grid` change is added to it.",
    )

    @field_validator("loads")
    @classmethod
    def _in_order(cls, loads: tuple[float, ...]) -> tuple[float, ...]:
        low, high = loads
        if low > high:
            raise ValueError(f"the lowest load comes first: [{high:g} /s, {low:g} /s]")
        return loads


class ModelSpec(Spec):
    """A composed system under its workloads."""

    format: Literal[2] = Field(2, description="Version of the form of model files.")
    name: str = Field("", max_length=100, description="Name of the system; the file's if not given.")
    description: str = Field("", max_length=4000, description="What the system is, and where its values come from.")
    hosts: dict[str, HostSpec] = Field(
        default_factory=lambda: {"host": HostSpec()}, min_length=1, description="Machines by name."
    )
    networks: dict[str, NetworkSpec] = Field(
        default_factory=lambda: {"lan": NetworkSpec()}, min_length=1, description="Networks by name."
    )
    domains: dict[str, DomainSpec] = Field(min_length=1, description="Domains by name, in order of creation.")
    workloads: dict[str, Annotated[WorkloadSpec, OneOf(WORKLOADS)]] = Field(
        default_factory=dict, description="Traffic and clients by name."
    )
    faults: Items[Annotated[FaultSpec, OneOf(FAULTS)]] = Field((), description="What fails and when.")
    measure: MeasureSpec = Field(default_factory=MeasureSpec, description="What is measured.")
    measured: MeasuredSpec = Field(default_factory=MeasuredSpec, description="What the real system did.")
    calibrated: CalibratedSpec | None = Field(None, description="What its values were fitted to.")

    def host_of(self, domain: DomainSpec) -> str:
        return domain.host or next(iter(self.hosts))

    def network_of(self, domain: DomainSpec, interface: InterfaceSpec) -> str:
        if interface.network is not None:
            return interface.network
        return self.network_of_nic(self.host_of(domain), interface.nic)

    def network_of_nic(self, host: str, name: str | None) -> str:
        """Return the network that an interface of a host is plugged into; the model's first if it does not say."""
        nic = self.hosts[host].nics.get(name) if name is not None else None
        return next(iter(self.networks)) if nic is None or nic.network is None else nic.network

    def nics_of(self, host: str) -> dict[str, HostNicSpec]:
        """Return the network interfaces of a host: its own, and one for each further network that domains use."""
        nics = dict(self.hosts[host].nics)
        plugged = {nic.network or next(iter(self.networks)) for nic in nics.values()}
        for domain in self.domains.values():
            for interface in domain.interfaces.values() if self.host_of(domain) == host else ():
                network = self.network_of(domain, interface)
                if network not in plugged and interface.path.has_host_ring:
                    nics[network] = HostNicSpec(network=network)
                    plugged.add(network)
        return nics

    def arrival_of(self, workload: WorkloadSpec) -> tuple[str, str, str]:
        """Return the host and the network by which a workload's packets arrive, and the key of their interface."""
        domain = self.domains[self.target_of(workload)[0]]
        key = next(
            key
            for key, interface in domain.interfaces.items()
            if workload.via in (None, self.network_of(domain, interface))
        )
        return self.host_of(domain), self.network_of(domain, domain.interfaces[key]), key

    def nic_of(self, domain: DomainSpec, interface: InterfaceSpec) -> str:
        """Return the network interface of the host that a domain's interface uses."""
        if interface.nic is not None:
            return interface.nic
        host, network = self.host_of(domain), self.network_of(domain, interface)
        # One that is there only for a further network has its name (nics_of()).
        return next((name for name in self.hosts[host].nics if self.network_of_nic(host, name) == network), network)

    def driver_of(self, host: str) -> str | None:
        drivers = (name for name, d in self.domains.items() if d.driver is not None and self.host_of(d) == host)
        return next(drivers, None)

    def expanded(self) -> dict[str, DomainSpec]:
        """Return every domain with those that stand for several written out."""
        return {copy: domain for name, domain in self.domains.items() for copy in self.copies(name)}

    def copies(self, name: str) -> list[str]:
        """Return the names of the domains that one entry stands for."""
        count = self.domains[name].count
        return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]

    def entry_of(self, domain: str) -> str:
        """Return the entry that stands for a domain; a KeyError where there is none."""
        for name in self.domains:
            if domain in self.copies(name):
                return name
        raise KeyError(domain)

    def target_of(self, workload: WorkloadSpec) -> tuple[str, str, ApplicationSpec]:
        """Return the entry of the domain, the name and the spec of the application that a workload is directed at.

        Refuses a workload that is directed at none, or several.
        """
        domain_name, _, application = workload.to.partition(".")
        domain = self.domains.get(domain_name)
        if domain is None:
            raise ValueError(f"to: '{workload.to}' names no domain{self._domains_like(domain_name)}")
        fitting = {
            name: program
            for name, program in domain.applications.items()
            if program.speaks == workload.speaks and application in ("", name)
        }
        if len(fitting) != 1:
            has = listing([f"{n} ({p.kind})" for n, p in domain.applications.items()]) or "none"
            raise ValueError(
                f"to: '{workload.to}' must be one application that takes {workload.speaks} traffic; "
                f"{domain_name} has {has}"
            )
        if not domain.interfaces:
            raise ValueError(f"to: domain '{domain_name}' has no interface by which the traffic could reach it")
        name, program = next(iter(fitting.items()))
        return domain_name, name, program

    def _domains_like(self, name: str) -> str:
        """Return the end of a message about a domain that there is not."""
        return did_you_mean(name, self.domains) or f"; domains are {listing(self.domains)}"

    def programs_of(self, name: str) -> list[str]:
        """Return the applications with traffic that ``domain`` or ``domain.application`` stands for, every copy.

        Refuses what stands for none, or for several in a domain.
        """
        entry, _, application = name.partition(".")
        if entry not in self.domains:
            raise ValueError(f"'{name}' names no domain{self._domains_like(entry)}")
        programs = self.domains[entry].applications
        fitting = [key for key, program in programs.items() if program.speaks and application in ("", key)]
        if len(fitting) != 1:
            raise ValueError(f"'{name}' must be one application that takes traffic; {entry} has {listing(fitting)}")
        return [f"{copy}.{fitting[0]}" for copy in self.copies(entry)]

    def program_of(self, name: str) -> ApplicationSpec:
        """Return the application that ``domain`` or ``domain.application`` stands for; see :meth:`programs_of`."""
        application = self.programs_of(name)[0].rpartition(".")[2]
        return self.domains[name.partition(".")[0]].applications[application]

    def time_of(self, instant: Instant) -> int:
        """Return the time of a run in ns; raises ValueError for a phase that no workload has."""
        if instant.phase == "run":
            return instant.offset_ns
        for workload in self.workloads.values():
            time_ns = workload.time_of(instant.phase, instant.offset_ns)
            if time_ns is not None:
                return time_ns
        raise ValueError(f"'{instant}': no workload of the model has such a phase; say the time of the run: '20 s'")

    @property
    def longest_ns(self) -> int:
        """Time that no run passes; without workloads that have phases of their own, the end of every run."""
        of_workloads = max((workload.longest_ns() for workload in self.workloads.values()), default=0)
        return of_workloads or self.measure.warm_up + self.measure.duration

    @property
    def tests_ns(self) -> int:
        """When its workloads' tests are due to be over, where nothing else is measured; else 0.

        What resources do after a test is no part of it: there the measured time ends with the last test.
        """
        tests_ns = [workload.test_ns() for workload in self.workloads.values()]
        programs = (program for domain in self.domains.values() for program in domain.applications.values())
        is_more_measured = any(program.outcomes and not program.speaks for program in programs)
        return 0 if self.faults or is_more_measured or not all(tests_ns) else max(tests_ns, default=0)

    @property
    def phased(self) -> str | None:
        """Name of the workload that has phases of its own, and so decides how long a run lasts; None: there is none."""
        return next((name for name, workload in self.workloads.items() if workload.longest_ns()), None)

    @property
    def ramp(self) -> RampSpec | None:
        """The workload that plays a ramp; None: there is none."""
        return next((workload for workload in self.workloads.values() if isinstance(workload, RampSpec)), None)

    def fault_domain(self, fault: FaultSpec) -> str:
        """Return the domain that a fault is meant for; raises ValueError if that is open."""
        if fault.domain is not None:
            if fault.domain not in self.expanded():
                raise ValueError(f"domain '{fault.domain}' of a fault is none of {listing(self.expanded())}")
            return fault.domain
        guarded = [name for name, d in self.expanded().items() if d.protection.protects]
        reached = [name for name, d in self.expanded().items() if d.interfaces]
        for names in (guarded, reached):
            if len(names) == 1:
                return names[0]
        raise ValueError("a fault must say its `domain`: the model has several that it could strike")

    @model_validator(mode="after")
    def _parts_fit(self, info: ValidationInfo) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        for problem in self.host_problems() if info.context == WITH_HOSTS else ():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        """Yield what is wrong with how the parts stand together."""
        if sum(domain.count for domain in self.domains.values()) > MOST_DOMAINS:
            yield f"more than {MOST_DOMAINS} domains"
        yield from _name_problems(self)
        for name, host in self.hosts.items():
            for nic, card in host.nics.items():
                if card.network is not None and card.network not in self.networks:
                    yield f"hosts.{name}.nics.{nic}.network '{card.network}' is none of {listing(self.networks)}"
                elif nic in self.networks and (plug := self.network_of_nic(name, nic)) != nic:
                    yield (
                        f"hosts.{name}.nics.{nic} is plugged into '{plug}' and has another network's name; rename it, "
                        f"or plug it in there (network: {nic})"
                    )
        for name, domain in self.domains.items():
            for copy in self.copies(name):
                if copy != name and copy in self.domains:
                    yield f"domains.{name}.count: '{copy}' is one of it, and another domain has that name; rename it"
                if domain.has_stub and (stub := domain.stub_of(copy)) in self.expanded():
                    yield f"domains.{name}: '{stub}' is its stub domain, and another domain has that name; rename it"
            yield from self._domain_problems(name, domain)
        yield from self._nic_problems()
        yield from self._circle_problems()
        for name, workload in self.workloads.items():
            yield from self._workload_problems(name, workload)
        if self.calibrated is not None and self.phased is None:
            yield "calibrated: its loads are those of steps, and no workload has any; leave it out, or calibrated: null"
        yield from self._fault_problems()

    def _domain_problems(self, name: str, domain: DomainSpec) -> Iterator[str]:
        if domain.host is None and len(self.hosts) > 1:
            yield f"domains.{name} must say its host: {listing(self.hosts)}"
        if domain.host is not None and domain.host not in self.hosts:
            yield f"domains.{name}.host '{domain.host}' is none of {listing(self.hosts)}"
            return
        host = self.hosts[self.host_of(domain)]
        if why := host.scheduler.contradiction(domain):
            yield f"domains.{name}: {why}"
        pcpus = host.pcpus
        if domain.affinity == () or any(not 0 <= p < pcpus for p in domain.affinity or ()):
            yield f"domains.{name}.affinity must name pCPUs 0 to {pcpus - 1} of its host"
        if domain.vcpus > domain.protection.most_vcpus:
            yield (
                f"domains.{name}.protection: this protection mechanism handles {domain.protection.most_vcpus} vCPU "
                f"at most, not {domain.vcpus}"
            )
        if domain.driver is not None and domain.protection.protects:
            yield f"domains.{name}.protection: a driver domain stays with its host's cards; protect its guests"
        yield from self._channel_problems(f"domains.{name}.protection", domain.protection)
        if (sender := domain.protection.sent_by) is not None and sender not in self.expanded():
            yield f"domains.{name}.protection.sender.domain '{sender}' is none of {listing(self.expanded())}"
        if domain.disks and not any(program.uses_disks for program in domain.applications.values()):
            yield f"domains.{name}.disks: no program of the domain uses disks; leave them out"
        for key, program in domain.applications.items():
            if why := program.contradiction(domain.cpu_inflation):
                yield f"domains.{name}.applications.{key}: {why}"
            yield from _disk_problems(f"domains.{name}.applications.{key}", domain, program)
            yield from self._peer_problems(f"domains.{name}.applications.{key}", domain, program)
        for key, interface in domain.interfaces.items():
            yield from self._interface_problems(f"domains.{name}.interfaces.{key}", domain, interface)

    def _channel_problems(self, where: str, protection: ProtectionSpec) -> Iterator[str]:
        network = protection.channel_network
        if network is not None and network not in self.networks:
            yield f"{where}: its network '{network}' is none of {listing(self.networks)}"
        elif network is not None and (why := self.networks[network].channel_problem(network, protection)):
            yield f"{where}.{why}"

    def placed_on(self, host: str) -> list[PlacedDomain]:
        """Return the domains of a host, stub domains last, as they are built."""
        domains = [each for each in self.expanded().values() if self.host_of(each) == host]
        stubs = [PlacedDomain(each.stub) for each in domains if each.has_stub]
        return [PlacedDomain(each, each.vcpus, each.affinity) for each in domains] + stubs

    def host_problems(self) -> Iterator[str]:
        """Yield hosts whose scheduler cannot have their domains."""
        for name, host in self.hosts.items():
            if why := host.scheduler.refusal(host.pcpus, self.placed_on(name)):
                yield f"hosts.{name}: {why}"

    def shares_channel(self, domain: DomainSpec) -> bool:
        """Tell whether a mechanism's traffic and other traffic of its host take the host's link to one network."""
        network = domain.protection.channel_network
        if network is None or network not in self.networks:
            return False
        domains = [each for each in self.expanded().values() if self.host_of(each) == self.host_of(domain)]
        used = {self.network_of(each, interface) for each in domains for interface in each.interfaces.values()}
        alike = sum(each.protection.channel_network == network for each in domains)
        return network in used or alike > 1 or bool(self.networks[network].background)

    def _peer_problems(self, where: str, domain: DomainSpec, program: ApplicationSpec) -> Iterator[str]:
        for peer, via, key, size_bytes in program.peer_routes:
            try:
                self.programs_of(peer)
            except ValueError as error:
                yield f"{where}: {error}"
                continue
            if self.program_of(peer).speaks != program.speaks:
                yield f"{where}: '{peer}' does not take {program.speaks} traffic"
                continue
            shared = self._shared_networks(domain, peer)
            if via is None and self.copies(peer.partition(".")[0]) == [where.split(".")[1]]:
                continue  # inside the domain
            if not shared:
                networks = sorted({self.network_of(domain, interface) for interface in domain.interfaces.values()})
                yield f"{where}: '{peer}' is on none of its networks: {listing(networks) or 'it has none'}"
            elif via is not None and via not in shared:
                yield f"{where}: via '{via}' is no network of both it and '{peer}': {listing(sorted({*shared}))}"
            elif key and (why := never_fits("size", size_bytes, self.networks[via or shared[-1]].queue)):
                yield f"{where}.{key}.{why}"

    def _shared_networks(self, domain: DomainSpec, peer: str) -> list[str]:
        """Return the networks that a domain is on and an application of another, too, in the order of its own."""
        other = self.domains[peer.partition(".")[0]]
        of_other = {self.network_of(other, interface) for interface in other.interfaces.values()}
        networks = [self.network_of(domain, interface) for interface in domain.interfaces.values()]
        return [network for network in networks if network in of_other]

    def _networks_behind(self, domain: DomainSpec, program: ApplicationSpec) -> list[str]:
        """Return the network on which those that a program forwards to are reached, and speak past it."""
        to = program.forwards_to
        if to is None or to.partition(".")[0] not in self.domains:
            return []
        return self._shared_networks(domain, to)[:1]

    def _circle_problems(self) -> Iterator[str]:
        """Yield applications that wait for one that waits for them, and balancers of balancers: nobody would answer."""
        for name, key in ((name, key) for name, domain in self.domains.items() for key in domain.applications):
            program = f"{name}.{key}"
            routes = {after: f"{program} -> {after}" for after in self._peers_of(program, is_awaited=True)}
            for current in (queue := list(routes)):
                further = [after for after in self._peers_of(current, is_awaited=True) if after not in routes]
                routes |= {after: f"{routes[current]} -> {after}" for after in further}
                queue += further
            if program in routes:
                circle = f"{routes[program]} is a circle"
                yield f"domains.{name}.applications.{key}: {circle}; one of them must answer by itself"
            behind = self.domains[name].applications[key].forwards_to
            if behind is not None and program not in routes and (to := self.program_of(behind).forwards_to) is not None:
                why = f"'{behind}' passes on to '{to}' itself; name the servers that answer"
                yield f"domains.{name}.applications.{key}: {why}"

    def _peers_of(self, program: str, *, is_awaited: bool = False) -> list[str]:
        """Return the applications that one speaks to (without which it cannot answer), as ``domain.application``."""
        name, key = program.split(".")
        spec = self.domains[name].applications[key]
        peers = spec.waits_for if is_awaited else spec.peers
        return [f"{to.partition('.')[0]}.{self.programs_of(to)[0].rpartition('.')[2]}" for to in peers]

    def drivers_of(self, name: str) -> dict[str, str]:
        """Return the domain of each driver of a workload by the driver's name: one for each copy it is directed at."""
        copies = self.copies(self.target_of(self.workloads[name])[0])
        return {name if len(copies) == 1 else f"{name}-{n}": copy for n, copy in enumerate(copies, 1)}

    def workload_of(self, driver: str) -> WorkloadSpec:
        return self.workloads.get(driver) or self.workloads[driver.rpartition("-")[0]]

    def owners_of_copies(self) -> dict[str, list[str]]:
        """Return whose figures those of several copies of a domain, and of the traffic to them, are together."""
        owners = {
            f"workloads.{name}": [f"workloads.{each}" for each in self.drivers_of(name)] for name in self.workloads
        }
        for name, domain in self.domains.items():
            for part in ("", *(f".applications.{key}" for key in domain.applications), ".protection"):
                owners[f"domains.{name}{part}"] = [f"domains.{copy}{part}" for copy in self.copies(name)]
        return {owner: copies for owner, copies in owners.items() if len(copies) > 1}

    def serving(self) -> dict[str, list[str]]:
        """Return the domains that serve each driver of a workload: its own, and those that the program there asks."""
        groups = dict[str, list[str]]()
        for name, workload in self.workloads.items():
            entry, key, _ = self.target_of(workload)
            programs = [f"{entry}.{key}"]
            for program in programs:
                programs += [other for other in self._peers_of(program) if other not in programs]
            tiers = dict.fromkeys(program.partition(".")[0] for program in programs[1:])
            behind = [copy for each in tiers for copy in self.copies(each)]
            groups |= {driver: [domain, *behind] for driver, domain in self.drivers_of(name).items()}
        return groups

    def _interface_problems(self, where: str, domain: DomainSpec, interface: InterfaceSpec) -> Iterator[str]:
        host = self.host_of(domain)
        if interface.network is not None and interface.network not in self.networks:
            yield f"{where}.network '{interface.network}' is none of {listing(self.networks)}"
        elif interface.nic is not None and interface.nic not in self.hosts[host].nics:
            nics = listing(self.hosts[host].nics) or "it has none"
            yield f"{where}.nic '{interface.nic}' is none of the host's: {nics}"
        elif interface.nic is not None and (plug := self.network_of_nic(host, interface.nic)) != (
            interface.network or plug
        ):
            yield f"{where}.nic '{interface.nic}' is plugged into '{plug}', not into '{interface.network}'"
        elif interface.path.needs_driver_domain and self.driver_of(host) is None:
            yield (
                f"{where}.path needs a driver domain on host '{host}': give one of its domains a `driver` "
                "(Xen's domain 0; under KVM one that stands for the host, as in net-kvm)"
            )

    def _nic_problems(self) -> Iterator[str]:
        owners: dict[tuple[str, str], str] = {}
        for host in self.hosts:
            drivers = [n for n, d in self.expanded().items() if d.driver is not None and self.host_of(d) == host]
            if len(drivers) > 1:
                yield f"host '{host}' has several driver domains: {listing(drivers)}; one at most"
        for name, domain in self.expanded().items():
            host = self.host_of(domain)
            for interface in domain.interfaces.values():
                if not interface.path.has_host_ring:
                    continue
                user = (self.driver_of(host) or "") if interface.path.needs_driver_domain else name
                nic = self.nic_of(domain, interface)
                if owners.setdefault((host, nic), user) != user:
                    yield (
                        f"NIC '{nic}' belongs to both '{owners[host, nic]}' and '{user}', and each needs one for "
                        f"itself: plug another into the network (hosts.{host}.nics), or take a path that guests share "
                        "(moderated)"
                    )

    def _workload_problems(self, name: str, workload: WorkloadSpec) -> Iterator[str]:
        try:
            target, _, application = self.target_of(workload)
        except ValueError as error:
            yield f"workloads.{name}.{error}"
            return
        domain = self.domains[target]
        if taken := [driver for driver in self.drivers_of(name) if driver != name and driver in self.workloads]:
            yield f"workloads.{name}: '{taken[0]}' is its part for a copy of '{target}', and another one; rename that"
        reached = list(dict.fromkeys(self.network_of(domain, each) for each in domain.interfaces.values()))
        if workload.via is not None and workload.via not in reached:
            yield (
                f"workloads.{name}.via '{workload.via}' is none of those that '{target}' has interfaces to: "
                f"{listing(reached)}"
            )
        else:
            first = workload.via or reached[0]
            for each in dict.fromkeys([first, *self._networks_behind(domain, application)]):
                network, behind = self.networks[each], "" if each == first else f" (network '{each}')"
                if problem := workload.incompatibility(application, network.rate, network.queue):
                    yield f"workloads.{name}.{problem}{behind}"
                    break
        if workload.longest_ns() and domain.count > 1:
            yield (
                f"workloads.{name}.to: '{workload.to}' is in {domain.count} domains; a workload with phases of its own "
                "is directed at one: count: 1"
            )
        agents = workload.agents
        if agents is not None and agents not in self.domains:
            yield f"workloads.{name}: no domain '{agents}'{did_you_mean(agents, self.domains)}"
        elif agents is not None and self.domains[agents].count > 1 and not workload.agents_may_be_many:
            count = self.domains[agents].count
            yield f"workloads.{name}: '{agents}' stands for {count} domains; the agents run in one: count: 1"
        same = [n for n, w in self.workloads.items() if w.longest_ns()]
        if len(same) > 1 and same[0] == name:
            yield f"workloads {listing(same)}: one with phases of its own at most"

    def _fault_problems(self) -> Iterator[str]:
        for n, fault in enumerate(self.faults):
            if why := self._fault_incompatibility(fault):
                yield f"faults.{n}: {why}"
        instants = {f"faults.{n}.at": fault.at for n, fault in enumerate(self.faults)}
        begins = {f"domains.{name}.protection": domain.protection.begins for name, domain in self.domains.items()}
        instants |= {where: instant for where, instant in begins.items() if instant is not None}
        for where, instant in instants.items():
            try:
                time_ns = self.time_of(instant)
            except ValueError as error:
                yield f"{where}: {error}"
                continue
            if time_ns > self.longest_ns:
                length = format_duration(self.longest_ns)
                yield f"{where}: '{instant}' is after the end of every run, which lasts {length} at most"

    def _fault_incompatibility(self, fault: FaultSpec) -> str:
        """Return why a fault cannot strike; empty: it can."""
        try:
            struck = self.expanded()[self.fault_domain(fault)]
        except ValueError as error:
            return str(error)
        if fault.needs_backup and not struck.protection.has_backup:
            return "a fault of the backup or its channel needs a mechanism that has them"
        if fault.needs_execution and not struck.protection.backup_executes:
            return "a slow backup needs a mechanism whose backup executes: lockstep or coarse_lockstep"
        used = [self.network_of(struck, interface) for interface in struck.interfaces.values()]
        if (network := fault.of_network) is not None and network not in used:
            return f"network '{network}' is none of the domain's: {listing(used) or 'it has none'}"
        if fault.needs_own_channel and self.shares_channel(struck):
            return "a channel that shares a network with other traffic cannot be degraded alone; give it its own"
        return ""


_OF_FORMULAS = ("=", "+", "-", "@")
"""A cell that begins with one of these is a formula to a spreadsheet, and the tables of results have the names."""


def _name_problems(model: ModelSpec) -> Iterator[str]:
    """Yield names that would be taken for a path of keys, as of a domain and its application, or for a formula."""
    named = [("hosts", name) for name in model.hosts] + [("networks", name) for name in model.networks]
    named += [("workloads", name) for name in model.workloads]
    for domain_name, domain in model.domains.items():
        where = f"domains.{domain_name}"
        named += [(where, name) for name in (domain_name, *domain.applications, *domain.disks)]
    for key, name in named:
        if "." in name:
            suggestion = name.replace(".", "-")
            yield f"{key}: '{name}' has a dot, as in 'domain.application'; name it '{suggestion}'"
        if name.startswith(_OF_FORMULAS) or not name.isprintable():
            why = "begins as a formula of a spreadsheet does" if name.isprintable() else "has control characters"
            yield f"{key}: {shown(name)} {why}; give it another name"


def _disk_problems(where: str, domain: DomainSpec, program: ApplicationSpec) -> Iterator[str]:
    """Yield that a program lacks the disk that it uses."""
    named = getattr(program, "disk", None)
    if not program.uses_a_disk or (domain.disks if named is None else named in domain.disks):
        return
    if domain.disks:
        yield f"{where}.disk '{named}' is none of {listing(domain.disks)}"
    else:
        yield f"{where}: it uses a disk, and its domain has none; give it one under `disks`"
