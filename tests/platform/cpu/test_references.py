"""Schedulers against the same rules written a second time, on random hosts: every switch, to the nanosecond."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.platform.cpu import reference_rules as rules
from tests.platform.cpu import reference_xen as xen
from tests.platform.cpu.host_lab import HOG_NS, Lab
from tests.platform.cpu.reference_host import MS, Host, Policy, Unit, switches
from vftsim.errors import UsageError
from vftsim.platform.cpu.parameters import SchedulerSpec, schedulers

KINDS = ("round_robin", "sedf", "esxi", "zvm", "cfs", "rtds", "credit", "credit2")
_EACH, _MORE = 4, 100


def _domain(random: Random, kind: str) -> dict[str, Any]:
    """Parameters of a domain, which divide without rest where the package rounds."""
    draw = {"sedf": _sedf, "esxi": _esxi, "zvm": _zvm, "cfs": _cfs, "rtds": _rtds, "credit": _xen, "credit2": _xen}
    return draw[kind](random) if kind in draw else {}


def _sedf(random: Random) -> dict[str, Any]:
    given: dict[str, Any] = {"weight": random.choice([128, 256, 512])}
    if random.random() < 0.6:
        period_ns = random.choice([10, 20, 50]) * MS + random.randrange(MS)
        given |= {"period": period_ns, "slice": period_ns // random.choice([5, 10, 20])}
        given |= {"extratime": random.random() < 0.5, "latency": random.choice([0, period_ns // 3])}
    return given


def _esxi(random: Random) -> dict[str, Any]:
    claims = [{}, {}, {"reservation": 15}, {"limit": 35}, {"reservation": 5, "limit": 20}]
    return {"shares": random.choice([512, 1024, 4096]), **random.choice(claims)}


def _zvm(random: Random) -> dict[str, Any]:
    if random.random() < 0.3:
        return {"absolute_share": random.choice([5, 20, 40])}
    return {"relative_share": random.choice([50, 100, 300])}


def _cfs(random: Random) -> dict[str, Any]:
    given = random.choice([{"nice": random.choice([0, 0, -5, 3])}, {"shares": random.choice([512, 2048])}])
    if random.random() < 0.3:
        period_ns = random.choice([50, 100]) * MS + random.randrange(MS)
        given |= {"quota": random.choice([10, 70]) * MS, "period": period_ns}
    return given


def _rtds(random: Random) -> dict[str, Any]:
    period_ns = random.choice([10 * MS, 5 * MS, 20 * MS, 10 * MS + random.randrange(10 * MS)])
    budget_ns = period_ns * random.choice([1, 3, 5, 10]) // 10
    return {"period": period_ns, "budget": budget_ns, "extratime": random.random() < 0.5}


def _xen(random: Random) -> dict[str, Any]:
    return {"weight": random.choice([64, 256, 1000]), "cap": random.choice([0, 0, 0, 10, 60, 150])}


def _pair(random: Random, kind: str) -> tuple[SchedulerSpec, Policy]:
    """A scheduler of the package and of the reference, with the same parameters."""
    if kind == "credit":
        given = {
            "slice": random.choice([30, 30, 10, 5, 2]) * MS,
            "rate_limit": random.choice([MS, MS, 0, 300_000]),
            "migration_delay": random.choice([0, 0, MS // 2]),
        }
        return schedulers()["credit"](version="4.13", **given), xen.Credit(**given)
    if kind == "credit2":
        given = {
            "rate_limit": random.choice([MS, MS, 0, 300_000, 3 * MS]),
            "migration_resistance": random.choice([MS // 2, 0, 2 * MS]),
            "cap_period": random.choice([10, 5, 20]) * MS,
        }
        return schedulers()["credit2"](**given), xen.Credit2(**given)
    policies: dict[str, type[Policy]] = {
        "round_robin": rules.RoundRobin, "sedf": rules.Sedf, "esxi": rules.Esxi, "zvm": rules.Zvm, "cfs": rules.Cfs,
        "rtds": xen.Rtds,
    }  # fmt: skip
    return schedulers()[kind](), policies[kind]()


def _work(random: Random, unit: int, until_ns: int) -> list[tuple[int, int, int]]:
    """Work without end from the start or from later on, or bursts."""
    shape = random.choice(["hog", "hog", "late", "bursts"])
    if shape != "bursts":
        first_ns = random.randrange(1, 5 * MS) if shape == "hog" else random.randrange(until_ns // 4, until_ns // 2)
        return [(first_ns, unit, HOG_NS)]
    gap_ns, found, time_ns = random.choice([2, 8, 25]) * MS, [], 0
    mean_ns = gap_ns * random.choice([0.05, 0.3, 0.8])
    while (time_ns := time_ns + int(random.expovariate(1 / gap_ns)) + 1) < until_ns:
        found.append((time_ns, unit, int(random.expovariate(1 / mean_ns)) + 10))
    return found


def _units(random: Random, kind: str, pcpus: int) -> list[Unit]:
    units: list[Unit] = []
    for domain in range(random.randint(2, 5)):
        given = _domain(random, kind)
        is_pinned = random.random() < 0.3
        affinity = sorted(random.sample(range(pcpus), random.randint(1, pcpus))) if is_pinned else [*range(pcpus)]
        for _ in range(random.choice([1, 1, 2])):
            units.append(Unit(len(units), domain, affinity, given))
    return units


def _of_package(spec: SchedulerSpec, host: Host) -> tuple[list[list[int]], list[int]]:
    """Return the package's switches and CPU times on a host of the reference."""
    lab, members, numbers = Lab(spec, host.count, host.switch_ns), {}, {}
    for unit in host.units:
        members.setdefault(unit.domain, []).append(unit)
    for domain, units in members.items():
        name = f"{domain}."
        lab.domain(name, len(units), units[0].affinity, **units[0].parameters)
        numbers |= {lab.recorder.names[row]: u.number for row, u in zip(lab.vcpu_rows(name), units, strict=True)}
    places = {unit.number: (f"{unit.domain}.", members[unit.domain].index(unit)) for unit in host.units}
    for time_ns, number, work_ns in host.arrivals:
        lab.work(places[number][0], time_ns / MS, work_ns, "interrupt", places[number][1])
    lab.run(host.until_ns / MS)
    log = {(round(time_ms * MS), pcpu): numbers.get(name, -1) for time_ms, pcpu, name in lab.recorder.decisions}
    return switches(log, host.count), [int(lab.vcpus(name)[n].run_ns) for name, n in places.values()]


def check(kind: str, number: int) -> bool:
    """Compare one host; False where the package refuses it."""
    random = Random(f"{kind}-{number}")
    pcpus, until_ns = random.choice([1, 1, 2, 3]), random.choice([200, 400]) * MS
    units = _units(random, kind, pcpus)
    arrivals = [each for unit in units for each in _work(random, unit.number, until_ns)]
    spec, policy = _pair(random, kind)
    host = Host(pcpus, units, arrivals, policy, until_ns, random.choice([0, 3_000, 40_123]))
    try:
        found, times_ns = _of_package(spec, host)
    except UsageError:
        return False
    expected = switches(host.run().log, pcpus)
    first = next((n for n, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), -1)
    assert found == expected, f"{kind} {number}, switch {first}: {expected[first]}, found {found[first]}"
    assert times_ns == [unit.ran_ns for unit in units]
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [range(_EACH), pytest.param(range(_EACH, _MORE), marks=pytest.mark.slow)])
def test_every_switch_is_that_of_the_rules_written_a_second_time(kind: str, numbers: range):
    assert sum(check(kind, number) for number in numbers) > len(numbers) / 2
