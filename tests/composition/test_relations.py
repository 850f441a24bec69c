"""Relations between two runs of models drawn from everything a model file can say, which need no oracle.

Two engines of one source agree on the same mistake.  That what is idle, neutral or only written in another way changes
nothing, to the nanosecond, is true of the real system whatever its rules are.
"""

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest

from tests.composition import generated
from tests.composition.composed import checked, interface, relay
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.errors import VftsimError
from vftsim.spec.units import S

Draw = dict[str, Any]
NUMBERS, FEWEST = range(30), 4
NAMED = ("hosts", "networks", "domains", "workloads", "applications", "interfaces", "disks", "nics")
OTHER = "unused"
IDLE, HOG = {"kind": "service"}, {"kind": "cpu_bound"}
FULL = {"kind": "farm_server", "threads": 1, "backlog": 1}


@cache
def drawn(number: int) -> str:
    """Return a model, all values written out; without losses, which are drawn by the network's name."""
    spec = generated.model(number)
    data = {} if spec is None else spec.model_dump(mode="json")
    for network in data.get("networks", {}).values():
        network["loss"] = "0 %"
    return json.dumps(data)


@cache
def measured(text: str) -> list[tuple[str, Draw]] | None:
    """Return what everybody measured in each phase, in order; None where the model or its run is refused."""
    try:
        record = run_model(ModelSpec.model_validate(json.loads(text)), seed=1, replication=0)
    except (ValueError, VftsimError):
        return None
    return [each for phase in record.to_dict()["phases"] for each in phase["outcomes"].items()]


def renamed(value: Any, key: str = "", names: dict[str, str] | None = None) -> Any:
    """Return a model all of whose parts have other names, in the opposite order of the alphabet."""
    if names is None:
        found = sorted(_names(value))
        names = {name: f"part{len(found) - rank:03}" for rank, name in enumerate(found)}
    if isinstance(value, dict):
        is_named = key in NAMED
        return {names[k] if is_named else k: renamed(each, "" if is_named else k, names) for k, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, "", names) for each in value]
    if isinstance(value, str) and key in ("to", "via", "host", "network", "nic", "disk", "domain", "agents_in"):
        return ".".join(names.get(part, part) for part in value.split("."))
    return value


def _names(value: Any, key: str = "") -> set[str]:
    if not isinstance(value, dict):
        return set()
    inner = set().union(*(_names(each, "" if key in NAMED else k) for k, each in value.items()))
    return inner | set(value) if key in NAMED else inner


def shuffled(value: Any, key: str = "") -> Any:
    """Return settings in another order, but for parts by name, whose order says which is first."""
    if isinstance(value, list):
        return [shuffled(each) for each in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    if key not in NAMED:
        Random(len(keys)).shuffle(keys)
    return {k: shuffled(value[k], "" if key in NAMED else k) for k in keys}


def with_idle_parts(data: Draw) -> Draw:
    """Add a host, a network, and in the driver domain a program that nobody speaks to."""
    host, network = next(iter(data["hosts"])), next(iter(data["networks"]))
    data["hosts"][OTHER] = {"pcpus": 2, "scheduler": {"kind": "credit"}}
    data["networks"][OTHER] = {}
    for domain in data["domains"].values():
        domain["host"] = domain["host"] or host
        for each in domain["interfaces"].values():
            each["network"] = each["network"] or network
        if domain["driver"] is not None:
            domain["applications"][OTHER] = IDLE
    return data


def with_an_even_profile(data: Draw) -> Draw:
    """Let loads rise and fall by nothing; media streams and their signalling are drawn beforehand without a profile."""
    for workload in data["workloads"].values():
        if workload["kind"] in ("open_requests", "httperf") and not workload["load_profile"]:
            workload["load_profile"] = [{"duration": "13 ms", "rate": "100 %"}]
    return data


def with_shares_alike(data: Draw) -> Draw:
    """Give all domains twice the weight, and let them use all pCPUs in so many words."""
    for domain in data["domains"].values():
        domain["weight"] *= 2
        host = domain["host"] or next(iter(data["hosts"]))
        domain["affinity"] = domain["affinity"] or [*range(data["hosts"][host]["pcpus"])]
    return data


def with_a_fault_at_the_end(data: Draw) -> Draw | None:
    """Let the guest fail when the run is over; its card has a price, without which faults have it moderate packets."""
    spec = ModelSpec.model_validate(data)
    if spec.faults or spec.tests_ns:
        return None
    fault = {"kind": "guest_error", "at": f"{spec.longest_ns} ns", "domain": "guest"}
    return {**priced(data), "faults": [fault]}


def priced(data: Draw) -> Draw:
    for each in data["domains"]["guest"]["interfaces"].values():
        if each["path"]["kind"] == "moderated":
            each["path"]["packet_cost"] = "3 us"
    return data


def unprotected(data: Draw) -> Draw | None:
    """Leave out a mechanism of the guest, if it has one that may begin later."""
    has_begin = "active_from" in data["domains"]["guest"]["protection"]
    if data["faults"] or not has_begin:
        return None
    return priced(
        {**data, "domains": data["domains"] | {"guest": data["domains"]["guest"] | {"protection": {"kind": "none"}}}}
    )


def protected_at_the_end(data: Draw) -> Draw | None:
    protection = data["domains"]["guest"]["protection"]
    if unprotected(data) is None:
        return None
    protection["active_from"] = f"{ModelSpec.model_validate(data).longest_ns} ns"
    return priced(data)


Change = Callable[[Draw], Draw | None]
RELATIONS: dict[str, tuple[Change, Change]] = {
    "other names": (lambda data: data, renamed),
    "another order of settings": (lambda data: data, shuffled),
    "idle parts": (lambda data: data, with_idle_parts),
    "a load profile without rise and fall": (lambda data: data, with_an_even_profile),
    "twice the weight of all": (lambda data: data, with_shares_alike),
    "a fault at the end": (priced, with_a_fault_at_the_end),
    "protection from the end on": (unprotected, protected_at_the_end),
}


def figures(text: str, *, by_name: bool) -> list[Any] | None:
    """Return what was measured but of idle parts, of protection, and of drops, whose places have names."""
    found = measured(text)
    if found is None:
        return None
    kept = [(k, v) for k, v in found if OTHER not in k and not k.endswith((".protection", "drops"))]
    return [json.dumps([owner, outcome] if by_name else nameless(outcome)) for owner, outcome in kept]


def nameless(value: Any) -> Any:
    return [nameless(each) for each in value.values()] if isinstance(value, dict) else value


@pytest.mark.parametrize("name", RELATIONS)
def test_what_changes_nothing_changes_nothing(name: str):
    one, other = RELATIONS[name]
    ran = 0
    for number in NUMBERS:
        if drawn(number) == "{}":
            continue
        pair = [change(json.loads(drawn(number))) for change in (one, other)]
        if None in pair:
            continue
        plain, changed = (figures(json.dumps(data), by_name=name != "other names") for data in pair)
        if plain is not None:
            assert changed == plain, f"model {number}"
            ran += 1
    assert ran >= FEWEST


def test_when_measuring_begins_changes_nothing():
    """A process scheduler that is charged at an instant of its own rounds differently from there on."""
    jobs = {"kind": "batch", "processes": 3, "demand": "1.700001 ms", "demand_cv": 0.5, "think": "3 ms", "think_cv": 1}
    guest = {"vcpus": 2, "guest_scheduler": {"kind": "eevdf"}, "applications": {"jobs": jobs, "hog": HOG}}
    ended = []
    for warm_up_ns in (0, 57_123_457):
        measure = {"warm_up": f"{warm_up_ns} ns", "duration": f"{2 * S - warm_up_ns} ns"}
        data = {"hosts": {"host": {"pcpus": 4}}, "domains": {"a": guest, "b": guest}, "measure": measure}
        record = run_model(checked(data), seed=1, replication=0)
        ended.append([record.of(f"domains.{name}.applications.jobs").ended for name in "ab"])
    assert ended[0] == ended[1]


def test_a_fault_of_one_guest_leaves_what_is_drawn_for_the_mechanism_of_another():
    service = {"interfaces": interface("moderated", network="lan"), "applications": {"echo": IDLE}}
    compared = {**service, "protection": {"kind": "coarse_lockstep", "divergence_rate": "2 /s"}}
    model = {
        "hosts": {"host": {"pcpus": 2}},
        "domains": {"plain": service, "compared": compared},
        "workloads": {"users": {"kind": "open_requests", "to": "compared", "rate": "500 /s"}},
        "measure": {"warm_up": "0 s", "duration": "1 s"},
    }
    fault = {"kind": "guest_error", "domain": "plain", "at": "1 s"}
    without, struck = (run_model(checked({**model, "faults": faults}), 1, 0) for faults in ([], [fault]))
    assert without.of("workloads.users").to_dict() == struck.of("workloads.users").to_dict()


def test_windows_that_make_up_a_run_have_all_that_a_farm_dropped_in_it():
    """One thread, and one that waits: most messages find no place."""
    server = {"interfaces": interface("moderated"), "applications": {"sip": {**FULL, "demand": "20 ms"}}}
    calls = {"kind": "farm_calls", "to": "server", "rate": "100 /s", "established": False}
    seen = []
    for begin, end in ((0, 1), (1, 2), (0, 2)):
        measure = {"warm_up": f"{begin} s", "duration": f"{end - begin} s"}
        record = run_model(
            checked({"domains": {"server": server}, "workloads": {"calls": calls}, "measure": measure}), 1, 0
        )
        seen.append([getattr(record.of("workloads.calls"), name) for name in ("offered", "messages", "dropped")])
    first, second, both = seen
    assert [one + other for one, other in zip(first, second, strict=True)] == both
    assert first[-1] > 100


def test_losses_are_one_event_whatever_the_interval_of_packets():
    """Five streams on a line that is cut twice, and three times as slow: the same two events."""
    events = []
    for factor in (1, 3):
        streams = {"kind": "rtp", "to": "media", "streams": 5, "interval": f"{20 * factor} ms", "clock_error_ppm": 0}
        cuts = [
            {"kind": "nic_loss", "domain": "media", "at": f"{at * factor} ms", "duration": f"{90 * factor} ms"}
            for at in (150, 450)
        ]
        measure = {"warm_up": "0 s", "duration": f"{600 * factor} ms"}
        model = {"domains": {"media": relay()}, "workloads": {"voice": streams}, "faults": cuts, "measure": measure}
        events.append(run_model(checked(model), 1, 0).of("workloads.voice").loss_events)
    assert events == [2, 2]
