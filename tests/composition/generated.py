"""Models drawn from everything a model file can say, and one kernel that holds every part.

    python -m tests.composition.generated 10000 [first]
    python -m tests.composition.generated --lean 600
    python -m tests.composition.generated --cpu 500

runs so many models in the engine ``simpy``, on the one kernel of all parts and on its checking build, and names the
first difference.  ``--lean`` draws models without protection, TCP, web and SIP servers, disks and batch jobs.
``--cpu`` compares the CPU time of every domain with what it has served (:mod:`.cpu_oracle`), for which one engine is
enough.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from random import Random
from typing import Any

from pydantic import ValidationError

from tests.composition.cpu_oracle import Oracle
from vftsim.composition import link, run, saves
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run, run_model
from vftsim.errors import ConservationError, VftsimError
from vftsim.kernel import Kind, Linked
from vftsim.kernel.compiled_engine import BoundsCheckedEngine
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.io.disk import disk_kinds
from vftsim.platform.io.driver_domain import TASKS
from vftsim.platform.io.host_cards import on_reaching_host
from vftsim.platform.io.loopback import loopback
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.protection.faults import FAULTS
from vftsim.platform.protection.mechanism import protections
from vftsim.workloads.parts import APPLICATIONS, WORKLOADS

FARM = frozenset({"farm_server", "farm_calls"})
"""Drawn by nobody here: their own tests compare the engines."""
LEAN = frozenset(
    {
        "media_relay",
        "signaling_server",
        "service",
        "udp_sink",
        "cpu_bound",
        "periodic_load",
        "rtp",
        "calls",
        "request_response",
        "open_requests",
        "bulk_udp",
    }
)
"""Applications and workloads of the small kernel."""
BEHIND_DRIVER = frozenset({"paravirtual", "emulated", "stub_domain"})
_WITHOUT_BENCH = 0.75
_BOUND = 0.4
Draw = dict[str, Any]


@cache
def everything(is_lean: bool = False) -> Linked:
    """Return the kernel of all parts of the package but the farm's; or of those in :data:`LEAN`, unprotected."""
    kinds: set[Kind] = {spec.part for spec in schedulers().values()} | set(TASKS)
    parts = [
        spec
        for kind, spec in (*APPLICATIONS.items(), *WORKLOADS.items())
        if kind not in FARM and (kind in LEAN or not is_lean)
    ]
    kinds |= {spec.part for spec in parts}
    for registry in (io_paths(), *(() if is_lean else (disk_kinds(), protections()))):
        kinds |= {spec.part for spec in registry.values()}
    kinds |= {kind for spec in parts for kind in getattr(spec, "kinds", ())}
    kinds |= {task for spec in io_paths().values() for task in spec.tasks}
    kinds |= set() if is_lean else {spec.part for spec in FAULTS.values()}
    kinds |= {loopback, *cpu.guest_kinds(spec() for spec in GUEST_SCHEDULERS.values())}
    entries, actions, tables = (
        dict.fromkeys(each for part in parts for each in getattr(part, name))
        for name in ("entries", "actions", "tables")
    )
    return link._linked(frozenset(kinds), tuple(entries), (*actions, on_reaching_host), tuple(tables))


def model(number: int, is_lean: bool = False) -> ModelSpec | None:
    """Return the model of a number; ``None`` where what was drawn does not fit together."""
    random = Random(number)
    try:
        return ModelSpec.model_validate(_drawn(random, is_lean))
    except (ValidationError, VftsimError):
        return None


def checked(spec: ModelSpec) -> str:
    """Return what :func:`outcome` does, of the checking build: no index out of range or below 0, no division by zero.

    It is that of the kernel of all parts.
    """
    make, run.make_engine = run.make_engine, lambda *given: BoundsCheckedEngine(link.all_parts(), given[2])
    try:
        return outcome(spec, "compiled")
    finally:
        run.make_engine = make


def outcome(spec: ModelSpec, engine: str) -> str:
    """Return all that a run leaves behind, or why it was refused."""
    try:
        record = run_model(spec, seed=1, replication=0, engine=engine)
    except VftsimError as error:
        return f"{type(error).__name__}: {error}"
    return json.dumps(record.to_dict(), sort_keys=True, default=str)


def cpu_breaches(spec: ModelSpec) -> list[str] | None:
    """Return the domains whose CPU time is not what they served; ``None`` where a run was refused, or plays calls."""
    made: list[Run] = []
    if any(workload.kind == "ims_bench" for workload in spec.workloads.values()):
        return None
    try:
        run_model(spec, seed=1, replication=0, engine="simpy", prepare=made.append)
    except ConservationError as error:
        return [str(error)]
    except VftsimError:
        return None
    return list(Oracle(made[-1]).breaches())


def _drawn(random: Random, is_lean: bool) -> Draw:
    kind = random.choice(["direct", "emulated", "moderated", "native", "paravirtual", "stub_domain"])
    guest = _guest(random, kind, is_lean)
    domains = {"guest": guest, **_neighbours(random)}
    if kind in BEHIND_DRIVER:
        domains["dom0"] = {"vcpus": random.choice([1, 2]), "driver": {}}
    workloads, hosts = _workloads(random, "guest", guest), {"host": _host(random)}
    if random.random() < _BOUND:
        _bind(random, hosts["host"], domains)
    if random.random() < 0.3:
        hosts["far"], other = _host(random), _guest(random, random.choice(["direct", "moderated", "native"]), is_lean)
        domains = {name: {**domain, "host": "host"} for name, domain in domains.items()}
        domains["other"] = {
            **other,
            "applications": {**other["applications"]},
            "protection": {"kind": "none"},
            "host": "far",
        }
        workloads |= _workloads(random, "other", other)
    data: Draw = {
        "format": 2,
        "hosts": hosts,
        "networks": {
            "lan": {
                "rate": random.choice(["1 Gbit/s", "20 Mbit/s"]),
                "latency": f"{random.choice([0, 10, 500])} us",
                "queue": random.choice(["16 KiB", "256 KiB"]),
            }
        },
        "domains": domains,
        "workloads": workloads,
        "measure": {"warm_up": f"{random.choice([10, 40])} ms", "duration": "100 ms"},
    }
    if guest["protection"]["kind"] != "none" and random.random() < 0.5:
        data["faults"] = _faults(random, data["measure"]["warm_up"])
    if "other" in domains and "echo" in guest["applications"]:
        domains["other"]["applications"].setdefault("echo", PROGRAMS["echo"])
        guest["applications"]["echo"] = {**PROGRAMS["echo"], "threads": 3, "calls": [_call(random), _call(random)]}
        workloads["open"] = {
            "kind": "open_requests",
            "to": "guest.echo",
            "rate": random.choice(["200 /s", "2000 /s"]),
            "timeout": "2 ms",
        }
        if random.random() < 0.5:
            workloads["open"]["load_profile"] = [
                {"duration": "30 ms", "rate": "50 %"},
                {"duration": "20 ms", "rate": "200 %"},
            ]
    if random.random() < 0.2 and "network" not in guest["protection"].get("channel", {}):
        data["networks"]["lan"]["loss"] = "10 %"
    if "echo" in guest["applications"] and random.random() < 0.2:
        echo = guest["applications"]["echo"]
        calls = [{**_call(random), "to": "guest.back"}, *echo.get("calls", [])]
        guest["applications"] |= {"echo": {**echo, "calls": calls}, "back": {"kind": "service", "backlog": 2}}
    _widen(random, data)
    return data


def _widen(random: Random, data: Draw) -> None:
    """Change what carries packets: a second path, cards with prices, a driver domain short of CPU, moderation."""
    guest, host = data["domains"]["guest"], data["hosts"]["host"]
    if random.random() < 0.25:
        path = random.choice(["direct", "emulated", "moderated", "paravirtual", "stub_domain"])
        data["networks"]["dmz"] = {"rate": "100 Mbit/s", "latency": "50 us"}
        guest["interfaces"] = {"eth0": guest["interfaces"]["eth0"], "eth1": {"network": "dmz", "path": {"kind": path}}}
        if path in BEHIND_DRIVER and "dom0" not in data["domains"]:
            data["domains"]["dom0"] = {"driver": {}} | ({"host": "host"} if len(data["hosts"]) > 1 else {})
        for workload in data["workloads"].values():
            workload.update({"via": random.choice(["lan", "dmz"])} if workload["to"].startswith("guest.") else {})
    for interface in guest["interfaces"].values():
        if interface["path"]["kind"] == "moderated" and random.random() < 0.5:
            interface["path"] |= {"packet_cost": "3 us", "interrupt_cost": "2 us", "moderation": "200 us"}
    if "dom0" in data["domains"] and random.random() < 0.5:
        data["domains"]["dom0"] |= {"weight": random.choice([1, 256]), "cap": random.choice(["0 %", "15 %"])}
        data["domains"]["dom0"]["driver"] = {
            "placement": random.choice(["any", "one", "spread"]),
            "budget_packets": random.choice([1, 5, 64]),
        }
    if random.random() < 0.3:
        host["nics"]["eth0"] = {**host["nics"]["eth0"], "coalescing_time": "300 us", "coalescing_packets": 8}


def _call(random: Random) -> Draw:
    return {
        "to": "other.echo",
        "when": random.choice(["sequential", "parallel"]),
        "count": random.choice([1, 2]),
        "probability": random.choice(["100 %", "40 %"]),
        "timeout": random.choice(["0 s", "3 ms"]),
        "retries": 1,
        "cache_hit": random.choice(["0 %", "60 %"]),
        "cache_entries": random.choice([0, 20]),
        "cost": random.choice(["0 s", "20 us"]),
    }


def _bind(random: Random, host: Draw, domains: dict[str, Draw]) -> None:
    """Give every vCPU a pCPU of its own, so that a scheduler may have nothing to decide; a stub domain has one more."""
    for number, domain in enumerate(domains.values()):
        domain |= {"vcpus": 1, "affinity": [number]}
    host |= {"pcpus": len(domains) + 1, "scheduler": {"kind": random.choice(["native", "native", "esxi", "credit"])}}


def _host(random: Random) -> Draw:
    return {
        "pcpus": random.choice([1, 2, 4]),
        "scheduler": {"kind": random.choice(sorted(schedulers()))},
        "switch_cost": f"{random.choice([0, 2])} us",
        "cpu_speed": random.choice([1.0, 1.0, 0.5, 2.0]),
        "nics": {"eth0": random.choice([{}, {"receive_ring_packets": 8}])},
    }


def _guest(random: Random, path: str, is_lean: bool) -> Draw:
    programs = sorted(name for name, one in PROGRAMS.items() if one["kind"] in LEAN or not is_lean)
    guest = _guest_of(random, path, programs, is_lean)
    return guest if "database" in guest["applications"] else {**guest, "disks": {}}


def _guest_of(random: Random, path: str, programs: list[str], is_lean: bool) -> Draw:
    return {
        "vcpus": random.choice([1, 1, 2]),
        "weight": random.choice([256, 512]),
        "cap": random.choice(["0 %", "40 %"]),
        "guest_scheduler": {"kind": random.choice(["round_robin", "o1", "cfs", "eevdf"])},
        "cpu_inflation": random.choice([1.0, 1.3]),
        "interfaces": {"eth0": {"path": {"kind": path}}},
        "disks": {} if is_lean else {"root": {"kind": "local"}},
        "applications": {name: PROGRAMS[name] for name in random.sample(programs, random.choice([2, 3, 5]))},
        "protection": {"kind": "none"} if is_lean else random.choice([{"kind": "none"}] * 4 + _PROTECTIONS),
    }


PROGRAMS: Draw = {
    "relay": {"kind": "media_relay", "packet_cost": "50 us"},
    "server": {"kind": "signaling_server", "packet_cost": "200 us"},
    "echo": {"kind": "service", "demand": "300 us"},
    "sink": {"kind": "tcp_sink"},
    "source": {"kind": "tcp_source"},
    "datagrams": {"kind": "udp_sink"},
    "apache": {"kind": "prefork_web_server", "script": "5 ms"},
    "jobs": {"kind": "batch", "demand": "1 ms", "think": "5 ms"},
    "database": {"kind": "disk_bound"},
    "hog": {"kind": "cpu_bound", "duty": "60 %", "cv": 0.5},
    "timer": {"kind": "periodic_load", "busy": "100 us", "period": "3 ms"},
    "proxy": {"kind": "sip_server"},
}
CLIENTS: Draw = {
    "relay": {"kind": "rtp", "streams": 12},
    "server": {"kind": "calls", "calls_per_s": 60},
    "echo": {"kind": "request_response", "clients": 4, "turn_around": "2 ms"},
    "sink": {"kind": "bulk_tcp", "duration": "30 ms", "interval": "10 ms"},
    "source": {"kind": "bulk_tcp", "duration": "30 ms", "interval": "10 ms", "direction": "download"},
    "datagrams": {"kind": "bulk_udp", "duration": "20 ms", "clients": 2, "rate": "10 Mbit/s"},
    "apache": {"kind": "httperf", "rate": "60 /s", "connections": 6},
    "proxy": {
        "kind": "ims_bench",
        "subscribers": 60,
        "pre_registration": {"duration": "0 s"},
        "stir": {"duration": "0 s"},
        "steps": {"initial": "30 /s", "most": 1, "transient": "50 ms", "duration": "300 ms"},
    },
}
_PROTECTIONS: list[Draw] = [
    {"kind": "lockstep"},
    {"kind": "ha_restart"},
    {"kind": "checkpoint", "interval": "20 ms"},
    {"kind": "micro_checkpoint"},
    {"kind": "event_sync"},
    {"kind": "hypervisor_epoch"},
    {"kind": "coarse_lockstep"},
]


def _neighbours(random: Random) -> dict[str, Draw]:
    count = random.choice([0, 0, 1, 3])
    duty = f"{random.choice([30, 100])} %"
    found: dict[str, Draw] = {
        f"hog{n}": {"vcpus": 1, "weight": 256 * (n + 1), "applications": {"job": {"kind": "cpu_bound", "duty": duty}}}
        for n in range(count)
    }
    if random.random() < 0.3:
        found["manager"] = {"vcpus": 1, "applications": {"timer": PROGRAMS["timer"]}}
    return found


def _workloads(random: Random, domain: str, guest: Draw) -> Draw:
    able = [name for name in guest["applications"] if name in CLIENTS]
    chosen = random.sample(able, random.randint(1, len(able))) if able else []
    if "proxy" in chosen and (domain != "guest" or random.random() < _WITHOUT_BENCH):
        chosen.remove("proxy")  # it plays its calls to their end, for seconds
    begin = "" if domain == "guest" else f"{domain}_"
    return {f"{begin}{name}": {**CLIENTS[name], "to": f"{domain}.{name}"} for name in chosen}


def _faults(random: Random, warm_up: str) -> list[Draw]:
    """One or two, at any instant, at those where a run begins, a phase ends or another strikes, and beside these."""
    instants = [
        "0 s",
        "1 ns",
        "20 ms",
        "53 ms",
        "80 ms",
        warm_up,
        f"{int(warm_up.removesuffix(' ms')) * 1_000_000 - 1} ns",
    ]
    found = [_fault(random, random.choice(instants))]
    if random.random() < 0.4:
        found.append(_fault(random, random.choice([found[0]["at"], "54 ms", random.choice(instants)])))
    return found


def _fault(random: Random, at: str) -> Draw:
    kind = random.choice(["primary_crash", "primary_crash", "backup_crash", "channel_loss", "pause"])
    fault: Draw = {"kind": kind, "at": at, "domain": "guest"}
    return {**fault, "duration": "15 ms"} if kind in {"pause", "channel_loss"} else fault


def differences(numbers: range, is_lean: bool = False) -> tuple[int, int, list[int]]:
    """Return how many models were run, how many of them to an end, and the numbers whose engines differ."""
    ran, ended, found = 0, 0, []
    for number in numbers:
        spec = model(number, is_lean)
        if spec is None:
            continue
        plain = outcome(spec, "simpy")
        ran += 1
        ended += plain.startswith("{")
        if {plain} != {outcome(spec, "compiled"), checked(spec)}:
            found.append(number)
    return ran, ended, found


def cpu_differences(numbers: range) -> tuple[int, list[str]]:
    """Return how many models were compared with what they served, and the breaches."""
    compared, found = 0, []
    for number in numbers:
        spec = model(number)
        breaches = None if spec is None else cpu_breaches(spec)
        if breaches is not None:
            compared += 1
            found += [f"model {number}: {breach}" for breach in breaches]
    return compared, found


def main() -> None:
    """Run so many models, and say which differ."""
    words = [word for word in sys.argv[1:] if word not in {"--lean", "--cpu"}]
    is_lean, of_cpu = "--lean" in sys.argv, "--cpu" in sys.argv
    count, first = int(words[0]), int(words[1]) if len(words) > 1 else 0
    run.linked_for = lambda spec: everything(is_lean)  # type: ignore[assignment]
    # The compiled engine goes back to states of its run, the other plays every pass from time 0.
    saves.EVENTS_BETWEEN = 2000
    total = [0, 0]
    for begin in range(first, first + count, 100):
        numbers = range(begin, min(begin + 100, first + count))
        if of_cpu:
            compared, breaches = cpu_differences(numbers)
            total[0] += compared
            print(f"{numbers.stop - first} drawn, {total[0]} compared with what they served", flush=True)
            if breaches:
                raise SystemExit("\n".join(breaches))
            continue
        ran, ended, found = differences(numbers, is_lean)
        total = [total[0] + ran, total[1] + ended]
        print(f"{numbers.stop - first} drawn, {total[0]} run, {total[1]} to an end", flush=True)
        if found:
            raise SystemExit(f"the engines differ on models {found}")


if __name__ == "__main__":
    main()
