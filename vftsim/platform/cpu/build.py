"""Setting up the CPU part of a model: hosts, domains and their vCPUs, schedulers."""

from collections.abc import Iterable

from vftsim.errors import ConservationError, UsageError
from vftsim.kernel import Engine, Kind, entry
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.cpu.guest_schedulers.round_robin import RoundRobinGuest, round_robin
from vftsim.platform.cpu.host import sync_running
from vftsim.platform.cpu.notes import note_count
from vftsim.platform.cpu.parameters import DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.processes import processes
from vftsim.platform.cpu.records import BUSY, WORD_BITS, affinities, asked, domains, hosts, pcpus, vcpus
from vftsim.platform.rows import fill_row

FOREVER_QUANTUM_NS = 1 << 61


attach = entry(scheduler.attach)


bring_up_to_date = entry(sync_running)


ENTRIES = (attach, bring_up_to_date)
TABLES = (asked, affinities, entitlements, note_count, processes)


def guest_kinds(specs: Iterable[GuestSchedulerSpec]) -> list[Kind]:
    """Return the kinds of guest scheduler that a kernel needs for domains with these; none if all take turns."""
    kinds = {spec.part for spec in specs}
    return [] if kinds <= {round_robin} else sorted(kinds | {round_robin}, key=lambda kind: kind.name)


def add_host(
    engine: Engine,
    pcpu_count: int,
    spec: SchedulerSpec,
    switch_cost_ns: int = 0,
    *,
    observed: bool = False,
    cpu_speed: float = 1.0,
) -> int:
    """Add a host; its domains must be added before the next host's.  Returns its row.

    All CPU work on it takes its stated time divided by ``cpu_speed``; what the hypervisor does between pieces of work
    (``switch_cost_ns``, slices) does not.  Refuses a speed that is not between 0.001 and 1000.
    """
    if not 0.001 <= cpu_speed <= 1000.0:
        raise UsageError(
            f"cpu_speed {cpu_speed} must be between 0.001 and 1000; 1 is the speed that work is stated for"
        )
    row, host = engine.add(
        hosts,
        pcpus=pcpu_count,
        switch_cost_ns=switch_cost_ns,
        observed=observed,
        cpu_speed=cpu_speed,
        scheduler=engine.number(spec.part),
        begin_ns=engine.now_ns,
    )
    for number in range(pcpu_count):
        pcpu_row, pcpu = engine.add(pcpus, host=row, number=number, idle_since_ns=engine.now_ns)
        pcpu.row = pcpu_row
        if number == 0:
            host.first_pcpu = pcpu_row
    return row


def add_domain(
    engine: Engine,
    host_row: int,
    scheduling: DomainScheduling,
    vcpu_count: int,
    affinity: Iterable[int] | None = None,
    quantum_ns: int = FOREVER_QUANTUM_NS,
    guest_scheduler: GuestSchedulerSpec | None = None,
) -> int:
    """Add a domain with its vCPUs; ``affinity`` defaults to every pCPU.  Returns its row.

    ``guest_scheduler`` must be among the kinds of the kernel, with ``round_robin``, unless it is that one.
    """
    host = engine.rows(hosts)[host_row]
    allowed = sorted(set(range(host.pcpus) if affinity is None else affinity))
    if not allowed or allowed[0] < 0 or allowed[-1] >= host.pcpus:
        raise UsageError(f"affinity {allowed} must name at least one of the pCPUs 0 to {host.pcpus - 1}")
    row, domain = engine.add(
        domains, host=host_row, vcpus=vcpu_count, quantum_ns=quantum_ns, cpu_speed=float(host.cpu_speed)
    )
    extratime = -1 if scheduling.extratime is None else int(scheduling.extratime)
    fill_row(engine, entitlements, row, scheduling, extratime=extratime)
    if guest_scheduler is not None and not isinstance(guest_scheduler, RoundRobinGuest):
        domain.guest_scheduler = engine.number(guest_scheduler.part)
        guest_scheduler.install(engine, row)
    for number in range(vcpu_count):
        vcpu_row = _add_vcpu(engine, host_row, row, allowed)
        if number == 0:
            domain.first_vcpu = vcpu_row
    return row


def _add_vcpu(engine: Engine, host_row: int, domain_row: int, allowed: list[int]) -> int:
    host = engine.rows(hosts)[host_row]
    row, _ = engine.add(vcpus, host=host_row, domain=domain_row, number=int(host.vcpus))
    if host.vcpus == 0:
        host.first_vcpu = row
    elif row != host.first_vcpu + host.vcpus:
        raise AssertionError("all domains of a host are added before the next host's")
    host.vcpus += 1
    words = engine.rows(affinities)[row].words
    for number in allowed:
        words[number // WORD_BITS] |= 1 << (number % WORD_BITS)
    return row


def domains_of(engine: Engine, host_row: int) -> list[int]:
    """Return the rows of a host's domains, in the order in which they were added."""
    host = engine.rows(hosts)[host_row]
    rows = range(host.first_vcpu, host.first_vcpu + host.vcpus)
    return sorted({int(engine.rows(vcpus)[row].domain) for row in rows})


def only_pcpu(engine: Engine, vcpu: int) -> int:
    """Return the only pCPU that a vCPU's affinity allows; 0 if it allows several."""
    numbers = allowed_numbers(engine, vcpu)
    if len(numbers) != 1:
        return 0
    return int(engine.rows(hosts)[engine.rows(vcpus)[vcpu].host].first_pcpu) + numbers[0]


def allowed_numbers(engine: Engine, vcpu: int) -> list[int]:
    """Return the numbers of the pCPUs that a vCPU's affinity allows, lowest first."""
    words = [int(word) for word in engine.rows(affinities)[vcpu].words]
    return [n * WORD_BITS + bit for n, word in enumerate(words) for bit in range(WORD_BITS) if word >> bit & 1]


def has_own_pcpus(engine: Engine, host_row: int) -> bool:
    """Tell whether every vCPU of a host is bound to a pCPU that no other may use."""
    host = engine.rows(hosts)[host_row]
    bound = [only_pcpu(engine, row) for row in range(host.first_vcpu, host.first_vcpu + host.vcpus)]
    return 0 not in bound and len(set(bound)) == len(bound)


def start(engine: Engine, host_row: int, spec: SchedulerSpec) -> None:
    """Hand a host whose domains all exist to its scheduler."""
    spec.install(engine, host_row)
    engine.call(attach, host_row)


def check_conservation(engine: Engine, host_row: int) -> None:
    """Raise :class:`ConservationError` unless the time of every pCPU and vCPU of a host adds up."""
    engine.call(bring_up_to_date, host_row)
    host = engine.rows(hosts)[host_row]
    now_ns = engine.now_ns
    elapsed_ns = now_ns - int(host.begin_ns)
    busy_ns = 0
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        pcpu = engine.rows(pcpus)[row]
        busy_ns += int(pcpu.busy_ns)
        # A switch is booked in advance: this much of it has not passed yet.
        ahead_ns = max(0, int(engine.rows(vcpus)[pcpu.running].dispatched_ns) - now_ns) if pcpu.running else 0
        idle_ns = int(pcpu.idle_ns) + (0 if pcpu.idle_since_ns == BUSY else now_ns - int(pcpu.idle_since_ns))
        parts = (int(pcpu.busy_ns), int(pcpu.switching_ns) - ahead_ns, idle_ns)
        if min(parts) < 0 or sum(parts) != elapsed_ns:
            raise ConservationError(
                f"pCPU {pcpu.number}: busy + switching + idle = {parts} ns does not make {elapsed_ns} ns"
            )
    _check_vcpus(engine, host_row, busy_ns, elapsed_ns)


def _check_vcpus(engine: Engine, host_row: int, busy_ns: int, elapsed_ns: int) -> None:
    host = engine.rows(hosts)[host_row]
    vcpu_rows = [engine.rows(vcpus)[row] for row in range(host.first_vcpu, host.first_vcpu + host.vcpus)]
    if busy_ns != sum(int(vcpu.run_ns) for vcpu in vcpu_rows):
        raise ConservationError(f"vCPUs ran {sum(int(v.run_ns) for v in vcpu_rows)} ns, pCPUs {busy_ns} ns")
    for vcpu in vcpu_rows:
        if vcpu.run_ns < 0 or vcpu.wait_ns < 0 or vcpu.run_ns + vcpu.wait_ns > elapsed_ns:
            raise ConservationError(
                f"vCPU {vcpu.number}: {vcpu.run_ns} ns run + {vcpu.wait_ns} ns waiting in {elapsed_ns} ns"
            )
