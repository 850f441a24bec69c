"""Random small hosts as plain data: a scheduler, domains, and jobs with times and demands.

A script needs no workload and no I/O, so that a host with one scheduler can be checked alone.  All times
are integer nanoseconds::

    scheduler   {"kind": ..., parameters of the scheduler}
    pcpus, switch_cost_ns, until_ns
    domains     [{"vcpus", "affinity": list or null, "quantum_ns", "scheduling": {parameters of the domain}}]
    jobs        [[at_ns, domain, kind, vcpu, demand_ns, then]]
    pauses      [[from_ns, to_ns, domain]]

Virtual CPUs are numbered through the domains in order.  A job at ``at_ns`` is planned as an event of kind
ARRIVAL with its own number as entity; ``at_ns`` -1: it starts in the completion of the job that names it as
``then`` (-1: none).  Kinds: ``job`` (at the end of the domain's queue), ``background`` (when no other job
waits), ``interrupt`` (for the domain's vCPU number ``vcpu``; -1 in the other kinds), ``next`` (as ``then``
only, in the same domain: goes on before any other job).  A pause freezes and thaws the domain by events of
kind CONTROL with entity 2i and 2i + 1.  The run ends before the events of ``until_ns``.

What the object model that came before the kernel did with them is stored beside the scripts in ``hosts.json.gz``::

    vcpus        [{"run_ns", "wait_ns", "wakeups", "context_switches", "migrations"}] by number;
                 ``wait_ns``: time runnable without a pCPU, up to its last dispatch
    pcpus        [{"busy_ns", "switching_ns", "idle_ns"}]: time that has passed in each; they add up to the run
    context_switches   dispatches of another vCPU than the one this pCPU ran last
    counters     of the scheduler, by its own names
    finished     {"count", "sum_ns": sum of the times, "sha256": of lines "time job" in ascending order}
    switches     {"count", "sha256": of lines "time pcpu vcpu", "first": the first 50 as lists}: who is on each
                 pCPU (-1: nobody) whenever it is another at the end of an instant than at its beginning, in
                 ascending order; what comes and goes within one instant is not in it

After the run every running vCPU is charged up to the end.
"""

from pathlib import Path
from random import Random
from typing import Any

Script = dict[str, Any]
Job = list[Any]

HOSTS = Path(__file__).with_name("hosts.json.gz")
MS = 1_000_000
HOSTS_EACH = 25
CREDIT_VERSIONS = ("3.2", "4.0", "4.1", "4.2", "4.3", "4.7", "4.8", "4.13", "4.18")
HOSTS_PER_VERSION = 10
OTHERS = ("native", "round_robin", "credit2", "sedf", "rtds", "cfs", "esxi", "zvm")
_HOG_NS = 10**13


def all_scripts() -> dict[str, Script]:
    """Every script by name: kind, Xen's release for credit, and a number."""
    scripts = {f"{kind}-{n:02}": _script(Random(f"{kind}-{n}"), kind) for kind in OTHERS for n in range(HOSTS_EACH)}
    for version in CREDIT_VERSIONS:
        for number in range(HOSTS_PER_VERSION):
            random = Random(f"credit-{version}-{number}")
            scripts[f"credit-{version}-{number:02}"] = _script(random, "credit", version)
    return scripts


def _script(random: Random, kind: str, version: str | None = None) -> Script:
    pcpus = random.choice((1, 1, 2, 2, 3, 4))
    until_ns = random.randint(500, 1500) * MS + random.choice((0, random.randrange(MS)))
    domains = _domains(random, kind, pcpus)
    return {
        "scheduler": _scheduler(random, kind, version),
        "pcpus": pcpus,
        "switch_cost_ns": random.choice((0, 1_000, 5_000, 37_123)),
        "until_ns": until_ns,
        "domains": domains,
        "jobs": _jobs(random, domains, pcpus, until_ns),
        "pauses": _pauses(random, domains, until_ns),
    }


def _scheduler(random: Random, kind: str, version: str | None) -> dict[str, Any]:
    chosen: dict[str, Any] = {"kind": kind}
    if version is not None:
        chosen["version"] = version
    for name, values in _parameters(version).get(kind, {}).items():
        if random.random() < 0.4:
            chosen[name] = random.choice(values)
    return chosen


def _parameters(version: str | None) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Values other than the defaults, all valid together in every combination."""
    credit: dict[str, tuple[Any, ...]] = {"boost": (False,), "migration_delay": (500_000, 3 * MS)}
    credit["balance_limit"] = (0, 500_000, 2 * MS)
    if version not in {None, "3.2"}:
        credit["accounting_phase"] = (MS, 3_333_333, 5 * MS)
    if version not in {None, "3.2", "4.0", "4.1"}:
        credit["slice"] = (5 * MS, 10 * MS, 7_500_000, 50 * MS)
        credit["rate_limit"] = (0, 100_000, 2 * MS)
    return {
        "credit": credit,
        "round_robin": {"quantum": (MS, 5 * MS, 10 * MS)},
        "credit2": {
            "rate_limit": (0, 300_000, 3 * MS),
            "migration_resistance": (0, 2 * MS),
            "cap_period": (5 * MS, 20 * MS),
        },
        "sedf": {"extra_quantum": (100_000, 2 * MS)},
        "cfs": {
            "latency": (3 * MS, 20 * MS),
            "minimum_granularity": (100_000, 2 * MS),
            "wakeup_granularity": (100_000, 3 * MS),
            "scaling": (False,),
            "bandwidth_slice": (MS, 10 * MS),
        },
        "esxi": {"quantum": (2 * MS, 10 * MS, 20 * MS), "limit_period": (10 * MS, 100 * MS)},
        "zvm": {"minor_slice": (MS, 2 * MS, 10 * MS)},
    }


def _domains(random: Random, kind: str, pcpus: int) -> list[dict[str, Any]]:
    if kind == "native":
        return _native_domains(random, pcpus)
    count = random.randint(2, 6)
    domains = []
    for _ in range(count):
        affinity = sorted(random.sample(range(pcpus), random.randint(1, pcpus))) if random.random() < 0.35 else None
        domains.append(
            {
                "vcpus": random.choice((1, 1, 1, 2, 2, 3, 4)),
                "affinity": affinity,
                "quantum_ns": random.choice((MS, 5 * MS, 100 * MS)),
                "scheduling": _entitlement(random, kind, count, pcpus),
            }
        )
    return domains


def _native_domains(random: Random, pcpus: int) -> list[dict[str, Any]]:
    domains = []
    left = pcpus
    while left:
        vcpus = random.randint(1, left)
        left -= vcpus
        quantum_ns = random.choice((MS, 5 * MS, 100 * MS))
        domains.append({"vcpus": vcpus, "affinity": None, "quantum_ns": quantum_ns, "scheduling": {}})
    return domains


def _entitlement(random: Random, kind: str, domains: int, pcpus: int) -> dict[str, Any]:
    """Weights, caps, guarantees of the keys that the scheduler reads; what is promised fits on the host."""
    chosen: dict[str, Any] = {}

    def maybe(name: str, *values: Any, chance: float = 0.5) -> None:
        if random.random() < chance:
            chosen[name] = random.choice(values)

    if kind in {"credit", "credit2", "sedf"}:
        maybe("weight", 64, 128, 512, 1000, 333)
    if kind in {"credit", "credit2"}:
        maybe("cap", 10.0, 25.0, 40.0, 75.0, 150.0, 33.3, chance=0.3)
    if kind == "sedf":
        maybe("extratime", False, chance=0.3)
        if random.random() < 0.6:
            chosen["period"] = random.choice((10 * MS, 20 * MS, 50 * MS, 33_333_333))
            # At most four vCPUs each: all of them together claim less than one pCPU.
            chosen["slice"] = chosen["period"] // (5 * domains)
            maybe("latency", MS, 5 * MS, chance=0.4)
    if kind == "rtds":
        maybe("period", 5 * MS, 20 * MS, 50 * MS)
        maybe("budget", MS, 2 * MS, 3_333_333)
        maybe("extratime", False, chance=0.4)
    if kind == "cfs":
        maybe("nice", -5, -2, 3, 10)
        maybe("shares", 512, 2048, 4000)
        maybe("quota", 5 * MS, 20 * MS, 45 * MS, 110 * MS, chance=0.35)
        maybe("period", 20 * MS, 50 * MS, chance=0.4)
    if kind == "esxi":
        maybe("shares", 500, 2000, 4000, 1)
        maybe("reservation", 5.0, 10.0, 100.0 * pcpus / 6)
        maybe("limit", 10.0, 30.0, 80.0, 150.0, 33.3, chance=0.35)
        if chosen.get("shares") == 1:
            chosen["shares"] = 2
    if kind == "zvm":
        maybe("relative_share", 50, 200, 1000)
        maybe("absolute_share", 5.0, 20.0, 40.0, 12.5, chance=0.35)
    return chosen


def _jobs(random: Random, domains: list[dict[str, Any]], pcpus: int, until_ns: int) -> list[Job]:
    """Random jobs that ask for 0.4 to 1.5 times the host, some in chains through other domains, and hogs."""
    jobs: list[Job] = []
    hogs = random.random() < 0.6
    load = random.uniform(0.3, 0.7) if hogs else random.uniform(0.4, 1.5)
    mean_ns = random.choice((300_000, MS, 3 * MS))
    # Not more than about 150: the file is committed.
    mean_ns = max(mean_ns, round(load * pcpus * until_ns / 110))
    budget_ns = load * pcpus * until_ns
    while budget_ns > 0:
        at_ns = random.randrange(until_ns)
        if random.random() < 0.3:
            at_ns -= at_ns % MS
        budget_ns -= _chain(random, jobs, domains, at_ns, mean_ns)
    if hogs:
        jobs += [
            [random.randrange(20) * MS, random.randrange(len(domains)), "job", -1, _HOG_NS, -1]
            for _ in range(random.randint(1, 2 * pcpus))
        ]
    return jobs


def _chain(random: Random, jobs: list[Job], domains: list[dict[str, Any]], at_ns: int, mean_ns: int) -> int:
    domain = random.randrange(len(domains))
    total_ns = 0
    while True:
        demand_ns = max(round(random.expovariate(1 / mean_ns)), 1)
        if random.random() < 0.2:
            demand_ns = max(demand_ns // 100_000, 1) * 100_000
        kind = random.choices(("job", "interrupt", "background"), (7, 2, 1))[0]
        if kind == "interrupt":
            demand_ns = demand_ns // 10 + 1
        if at_ns < 0 and jobs[-1][1] == domain and random.random() < 0.3:
            kind = "next"
        vcpu = random.randrange(domains[domain]["vcpus"]) if kind == "interrupt" else -1
        jobs.append([at_ns, domain, kind, vcpu, demand_ns, -1])
        total_ns += demand_ns
        if random.random() > 0.25:
            return total_ns
        jobs[-1][5] = len(jobs)
        at_ns = -1
        if random.random() < 0.7:
            domain = random.randrange(len(domains))


def _pauses(random: Random, domains: list[dict[str, Any]], until_ns: int) -> list[list[int]]:
    pauses = []
    for domain in range(len(domains)):
        if random.random() < 0.1:
            from_ns = random.randrange(until_ns // 2)
            pauses.append([from_ns, from_ns + random.randint(1, 200) * MS, domain])
    return pauses
