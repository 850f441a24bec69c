"""CPU time of guests with several programs: what computing a periodic load instead of simulating it must not change."""

from typing import Any

import pytest

from tests.composition import generated
from tests.composition.composed import BENCH, checked, interface, server
from tests.composition.free_path import FREE
from vftsim.composition import run
from vftsim.composition.run import Run, run_model

LOAD = {"kind": "periodic_load", "busy": "2 ms", "period": "20 ms"}


@pytest.fixture
def one_kernel(monkeypatch):
    """In plain Python all models on the kernel of all parts, linked once."""
    monkeypatch.setattr(run, "linked_for", lambda spec: generated.everything())


def model(programs: dict[str, Any], scheduler: str = "native", **domain: Any) -> dict[str, Any]:
    clients = {
        name: {**generated.CLIENTS[name], "to": f"guest.{name}"} for name in programs if name in generated.CLIENTS
    }
    clients.pop("proxy", None)  # its benchmark lasts seconds
    disks = {"root": {"kind": "array"}} if "database" in programs else {}
    return {
        "hosts": {"host": {"scheduler": {"kind": scheduler}}},
        "networks": {"lan": {"latency": "10 us"}},
        "domains": {"guest": {"interfaces": interface("native"), "disks": disks, "applications": programs, **domain}},
        "workloads": clients,
        "measure": {"warm_up": "5 ms", "duration": "100 ms"},
    }


def guest_cpu(data: dict[str, Any], seed: int = 1) -> float:
    return run_model(checked(data), seed, 0, "compiled").pcpus()["guest"]


@pytest.mark.thorough
@pytest.mark.parametrize("first", sorted(generated.PROGRAMS))
def test_two_programs_take_the_same_cpu_under_native_and_credit(first: str):
    """On a pCPU of its own a guest runs whenever it has work, whoever decides."""
    for second in sorted(generated.PROGRAMS):
        if second <= first:
            continue
        programs = {name: generated.PROGRAMS[name] for name in (first, second)}
        native, credit = (guest_cpu(model(programs, scheduler)) for scheduler in ("native", "credit"))
        assert native == credit > 0.0, second


@pytest.mark.parametrize("scheduler", ["native", "esxi"])
@pytest.mark.parametrize(
    ("other", "percent"),
    [
        ({"kind": "periodic_load", "busy": "3 ms", "period": "7 ms"}, 43.0),
        ({"kind": "cpu_bound", "duty": "60 %", "cv": 0.0, "cycle": "10 ms"}, 60.0),
        ({"kind": "batch", "demand": "1 ms", "think": "3 ms"}, 25.0),
    ],
    ids=["load", "cpu_bound", "batch"],
)
def test_a_load_beside_another_program_adds_its_share(scheduler: str, other: dict[str, Any], percent: float):
    """2 ms of 20 ms are 10 %; where both want the CPU the other's cycle becomes longer, by less than that share."""
    found = 100.0 * guest_cpu(model({"load": LOAD, "other": other}, scheduler, affinity=[0]))
    assert 10.0 + 0.9 * percent - 1.0 <= found <= 10.0 + percent + 2.0


@pytest.mark.parametrize("number", [1, 3])
def test_applications_behind_one_interface_share_its_card(number: int):
    """An interrupt of 1 ms every 10 ms, as often as the card may and however many programs it is for: 10 % of a CPU."""
    eth0 = {"path": {"kind": "moderated", "moderation": "10 ms", "interrupt_cost": "1 ms"}}
    programs = [f"program-{n}" for n in range(number)]
    clients = {"kind": "open_requests", "rate": f"{3000 // number} /s"}
    data = model({name: {"kind": "service", "demand": "0 ms"} for name in programs}, interfaces={"eth0": eth0})
    data["workloads"] = {name: {**clients, "to": f"guest.{name}"} for name in programs}
    data["measure"] = {"warm_up": "50 ms", "duration": "1 s"}
    assert 100.0 * guest_cpu(data) == pytest.approx(10.0, abs=0.1)


def test_a_periodic_load_costs_what_protection_makes_the_work_of_its_guest_cost():
    """2 ms of 20 ms are 10 %; recorded at 1.5 times the work they are 15 %."""
    recorded = {"kind": "lockstep", "log": {"timer_rate": "0 /s"}, "cost": {"execution": 1.5}}
    alone, guarded = (guest_cpu(model({"load": LOAD}, protection=each)) for each in ({"kind": "none"}, recorded))
    assert (100.0 * alone, 100.0 * guarded) == (pytest.approx(10.0), pytest.approx(15.0))


@pytest.mark.parametrize("name", ["relay", "server", "sink", "source", "datagrams", "apache", "timer"])
def test_what_is_asked_for_at_a_rate_costs_what_its_hypervisor_makes_it_cost(name: str):
    """On a path that costs nothing, with CPU time to spare: twice the factor, twice the CPU time."""
    programs, eth0 = {name: generated.PROGRAMS[name]}, {"eth0": {"path": FREE}}
    plain, dear = (guest_cpu(model(programs, interfaces=eth0, cpu_inflation=factor)) for factor in (1.0, 2.0))
    assert 0.0 < plain < 0.6
    assert dear == pytest.approx(2.0 * plain, rel=0.1)


@pytest.mark.parametrize("is_observed", [False, True])
@pytest.mark.parametrize("periods_ms", [(100,) * 8, (25, 50, 100, 200, 200)])
def test_periodic_loads_do_not_keep_step(is_observed: bool, periods_ms: tuple[int, ...]):
    """Of 5 ms each, 40 % of one pCPU: they wait less than random ones, M/D/1; in step it is 17.5 and 4.7 ms."""
    load = {"kind": "periodic_load", "busy": "5 ms"}
    guests = [{"applications": {"load": {**load, "period": f"{period_ms} ms"}}} for period_ms in periods_ms]
    data = {
        "hosts": {"host": {"scheduler": {"kind": "round_robin"}}},
        "domains": {f"guest-{number}": guest for number, guest in enumerate(guests)},
        "measure": {"warm_up": "0 s", "duration": "10 s"},
    }
    made = Run(checked(data), 1, 0, observed=is_observed)
    made.run()
    rows = [made.engine.rows(run.vcpus)[row] for _, _, row in made.built.vcpu_rows()]
    assert sum(int(vcpu.run_ns) for vcpu in rows) == pytest.approx(0.4 * 10e9, rel=0.01)
    mean_ns = sum(int(vcpu.wait_ns) for vcpu in rows) / sum(int(vcpu.wakeups) for vcpu in rows)
    assert mean_ns < 5e6 * 0.4 / (2 * 0.6)


def test_users_of_one_program_do_not_keep_step():
    """Four of 20 ms and a pause of 80, with a CPU each: all at once they have all pCPUs for a fifth of the time.

    A request of 1 ms at such a time waits for 10 ms on average, 2 of all; of users at any time all four are busy for
    0.2 to the fourth of it, and it waits for 0.02 ms.
    """
    users = {"kind": "batch", "processes": 4, "demand": "20 ms", "think": "80 ms"}
    server = {"interfaces": interface("moderated"), "applications": {"asked": {"kind": "service", "demand": "1 ms"}}}
    data = {
        "hosts": {"host": {"pcpus": 4, "scheduler": {"kind": "round_robin"}}},
        "networks": {"lan": {"latency": "10 us"}},
        "domains": {"users": {"vcpus": 4, "applications": {"users": users}}, "server": server},
        "workloads": {"load": {"kind": "open_requests", "to": "server", "rate": "50 /s"}},
        "measure": {"warm_up": "1 s", "duration": "20 s"},
    }
    record = run_model(checked(data), 1, 0, "compiled")
    assert record.pcpus()["users"] == pytest.approx(0.8, rel=0.02)
    assert record.whole.outcomes["workloads.load"].latency.mean < 1.2e6


def test_loads_that_are_computed_begin_when_those_that_are_simulated_do():
    """Two of 3 of 7 ms, each on a pCPU of its own: the accounts at an instant within a period are the same."""
    load = {"kind": "periodic_load", "busy": "3 ms", "period": "7 ms"}
    data = {
        "hosts": {"host": {"pcpus": 2, "scheduler": {"kind": "native"}}},
        "domains": {"guest": {"count": 2, "applications": {"load": load}}},
        "measure": {"warm_up": "0 s", "duration": "101 ms"},
    }
    computed, simulated = both_ways(data)
    assert computed == simulated
    assert computed[0] != computed[1]


@pytest.mark.parametrize("speed", [1, 2])
def test_a_copy_takes_its_share_of_a_guest_that_handles_packets(speed: int):
    """4,000 packets a second of 0.1 ms are 40 % of a CPU, and a copy at a fifth 20 more, whatever else interrupts.

    A CPU of twice the speed handles a packet in half the time; a share of it is as large as of any.
    """
    eth0 = {"path": {"kind": "moderated", "moderation": "0 ns", "packet_cost": "100 us"}}
    copied = {"kind": "checkpoint", "initial_copy": True, "reprotection": {"cpu_share": "20 %"}}
    data = model({"asked": {"kind": "service", "demand": "0 ms"}}, interfaces={"eth0": eth0}, protection=copied)
    data["hosts"]["host"]["cpu_speed"] = speed
    data["workloads"] = {"load": {"kind": "open_requests", "to": "guest", "rate": "2000 /s"}}
    data["measure"] = {"warm_up": "50 ms", "duration": "2 s"}
    assert 100.0 * guest_cpu(data) == pytest.approx(40.0 / speed + 20.0, abs=1.5)


def test_a_guest_that_waits_for_a_cpu_loses_what_its_ring_has_no_room_for():
    """A hog's quantum of 30 ms brings 600 packets for 128 descriptors; what the guest takes while it runs is few."""
    eth0 = {"path": {"kind": "moderated", "packet_cost": "1 us", "ring": 128}}
    asked = {"asked": {"kind": "service", "demand": "1 us", "threads": 1000}}
    data = model(asked, "round_robin", interfaces={"eth0": eth0})
    data["domains"]["hog"] = {"applications": {"job": {"kind": "cpu_bound", "duty": "100 %"}}}
    data["workloads"] = {"load": {"kind": "open_requests", "to": "guest", "rate": "20000 /s", "gap_cv": 0}}
    data["measure"] = {"warm_up": "100 ms", "duration": "1 s"}
    found = run_model(checked(data), 1, 0, "compiled").whole.outcomes["workloads.load"]
    assert 128 / 600 <= found.rate / 20e3 <= 1.1 * 128 / 600


def both_ways(data: dict[str, Any]) -> list[list[tuple[int, ...]]]:
    """Return the accounts of the vCPUs, as they are and where hosts are observed, so that nothing is hidden."""
    found = []
    for observed in (False, True):
        made = Run(checked(data), 1, 0, observed=observed)
        made.run()
        rows = made.engine.rows(run.vcpus)
        found.append(
            [(rows[row].run_ns, rows[row].wakeups, rows[row].context_switches) for _, _, row in made.built.vcpu_rows()]
        )
    return found


@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize("who", ["nobody", "clients", "sender", "driver", "pause", "crash"])
def test_a_load_is_seen_where_its_domain_has_other_work_or_may_stand_still(who: str):
    """Its one program is the load; beside it run what sends for others, and what stops it."""
    data = model({"echo": generated.PROGRAMS["echo"]})
    data["hosts"]["host"] = {"pcpus": 2, "scheduler": {"kind": "native"}, "switch_cost": "3 us"}
    data["domains"]["tools"] = {"vcpus": 1, "applications": {"load": LOAD}}
    if who == "clients":
        data["domains"]["guest"] = server()
        data["workloads"] = {
            "calls": {
                **BENCH,
                "to": "guest.proxy",
                "agents_in": "tools",
                "message_cost": "100 us",
                "stir": {"duration": "0 s"},
                "steps": {"initial": "10 /s", "duration": "300 ms", "transient": "50 ms", "most": 1},
            }
        }
    elif who == "sender":
        sender = {"domain": "tools", "state": "1 ms"}
        data["domains"]["guest"]["protection"] = {"kind": "checkpoint", "interval": "20 ms", "sender": sender}
    elif who == "driver":
        data["domains"]["tools"]["driver"] = {}
        data["domains"]["guest"]["interfaces"] = interface("paravirtual")
    elif who != "nobody":
        kind = {"pause": {"kind": "pause", "duration": "15 ms"}, "crash": {"kind": "primary_crash"}}[who]
        data["faults"] = [{**kind, "at": "41 ms", "domain": "tools"}]
    computed, simulated = both_ways(data)
    assert computed == simulated
