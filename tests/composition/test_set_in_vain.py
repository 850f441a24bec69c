"""Settings of programs, disks and driver domains that another one makes idle: named where they change nothing, only."""

import pytest

from tests.composition.test_settings import check_named_where_idle, outcome, with_settings
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.without_effect import remarks, without_effect

P, Q = "domains.a.applications.p", "domains.a.applications.q"
DISK = "domains.a.disks.data"
BATCH = {"kind": "batch", "demand": "1 ms", "think": "1 ms", "disk_operations": 1}
OWN, LOCKSTEP = "domains.a.protection", {"kind": "lockstep"}
REMUS = {"kind": "checkpoint", "interval": "20 ms", "memory": {}, "disk": {}}
NESTED = {"memory": {}, "disk": {}, "state": {}}
EPOCHS = {"kind": "hypervisor_epoch", **NESTED}
LOCAL = {"kind": "micro_checkpoint", "interval": "20 ms", **NESTED}
QUICK = {"timeout": "30 ms", "backup_timeout": "30 ms", "heartbeat_interval": "10 ms"}
CRASH = [{"kind": "primary_crash", "at": "50 ms"}]


def kemari(fencing: bool, disk: str):
    again = {"delay": "0 s", "memory": "1 MiB", "disk": disk}
    failover = {"detection": QUICK, "fencing": fencing, "go_live": "1 ms"}
    return {"kind": "event_sync", "failover": failover, "reprotection": again}


UNREAD = {**LOCKSTEP, "log": {"disk_reads": False}}
WRITES = {"kind": "disk_bound", "reads": "0 %", "processes": 2, "compute": "100 us"}
READS = {**WRITES, "reads": "50 %"}
ARRAY = {"kind": "array", "disks": 1, "service": "1 ms"}
SERVICE = {"kind": "service", "demand": "100 us", "reads": 1}
WEB = {"kind": "prefork_web_server", "script": "1 ms"}
USERS = {"u": {"kind": "request_response", "to": "a.p", "turn_around": "1 ms"}}
OPEN = {"u": {"kind": "httperf", "to": "a.p", "rate": "100 /s", "connections": 10}}
CASES = {
    f"{P}.disk_wait=3 ms": ({P: {**BATCH, "disk_operations": 0}}, {P: BATCH}),
    f"{P}.disk_cv=1.0": ({P: {**BATCH, "disk_operations": 0}}, {P: BATCH}),
    f"{P}.disk_size=1 MiB": ({P: BATCH, OWN: UNREAD}, {P: BATCH, OWN: LOCKSTEP}),
    f"{P}.disk_size=64 KiB": ({P: {**BATCH, "disk_reads": "0 %"}, OWN: LOCKSTEP}, {P: BATCH, OWN: LOCKSTEP}),
    f"{P}.disk_size=8 MiB": ({P: {**BATCH, "disk_reads": "100 %"}, OWN: REMUS}, {P: BATCH, OWN: REMUS}),
    f"{P}.disk_reads=100 %": ({P: BATCH, OWN: {"kind": "event_sync"}}, {P: BATCH, OWN: REMUS}),
    f"{P}.disk_reads=0 %": ({P: BATCH}, {P: BATCH, OWN: LOCKSTEP}),
    f"{P}.think_cv=1.0": ({P: {**BATCH, "think": "0 s"}}, {P: BATCH}),
    f"{P}.flush_every=2": (
        {P: WRITES, DISK: ARRAY},
        {P: WRITES, DISK: {"kind": "local", "writes": "buffered", "service": "1 ms"}},
    ),
    f"{P}.size=1 MiB": ({P: WRITES, DISK: ARRAY}, {P: WRITES, DISK: {"kind": "local", "service": "1 ms"}}),
    f"{P}.size=2 MiB": (
        {P: READS, DISK: ARRAY, OWN: {"kind": "ha_restart"}},
        {P: READS, DISK: ARRAY, OWN: LOCKSTEP},
    ),
    f"{P}.transfer_size=1 MiB": (
        {P: SERVICE, DISK: ARRAY, "workloads": USERS},
        {P: SERVICE, DISK: {"kind": "local"}, "workloads": USERS},
    ),
    f"{P}.demand_cv=1.0": (
        {P: {**SERVICE, "demand": "0 s"}, DISK: ARRAY, "workloads": USERS},
        {P: SERVICE, DISK: ARRAY, "workloads": USERS},
    ),
    "workloads.u.turn_around_cv=1.0": (
        {P: SERVICE, DISK: ARRAY, "workloads": {"u": {**USERS["u"], "turn_around": "0 s"}}},
        {P: SERVICE, DISK: ARRAY, "workloads": USERS},
    ),
    f"{DISK}.dirty_limit=0 B": (
        {P: WRITES, DISK: {"kind": "local"}},
        {P: WRITES, DISK: {"kind": "local", "writes": "buffered"}},
    ),
    f"{DISK}.flush_period=50 ms": (
        {P: WRITES, DISK: {"kind": "local"}},
        {P: WRITES, DISK: {"kind": "local", "writes": "buffered", "dirty_limit": "32 KiB"}},
    ),
    f"{DISK}.hit_time=2 ms": ({P: WRITES, DISK: ARRAY}, {P: WRITES, DISK: {**ARRAY, "hits": "50 %"}}),
    "domains.a.disks.spare.service=2 ms": (
        {P: WRITES, DISK: ARRAY, "domains.a.disks.spare": {**ARRAY}},
        {P: {**WRITES, "disk": "spare"}, DISK: ARRAY, Q: WRITES, "domains.a.disks.spare": {**ARRAY}},
    ),
    f"{OWN}.memory.touch_rate=90000 /s": ({P: BATCH, OWN: EPOCHS}, {P: BATCH, OWN: REMUS}),
    f"{OWN}.disk.write_rate=9 MB/s": ({P: BATCH, OWN: EPOCHS}, {P: BATCH, OWN: REMUS}),
    f"{OWN}.simulated_cost=30 us": ({P: BATCH, OWN: EPOCHS}, {P: BATCH, OWN: {**EPOCHS, "simulated_rate": "1000 /s"}}),
    f"{OWN}.channel={{rate: 20 Mbit/s}}": ({P: BATCH, OWN: LOCAL}, {P: BATCH, OWN: {**LOCAL, "shipped": True}}),
    f"{OWN}.state.receive_cost=9 us": ({P: BATCH, OWN: LOCAL}, {P: BATCH, OWN: {**LOCAL, "shipped": True}}),
    f"{OWN}.failover.storage_latency=3 ms": (
        {P: BATCH, OWN: kemari(False, "0 B"), "faults": CRASH},
        {P: BATCH, OWN: kemari(True, "0 B"), "faults": CRASH},
    ),
    f"{OWN}.reprotection.disk_rate=500 Mbit/s": (
        {P: BATCH, OWN: kemari(False, "0 B"), "faults": CRASH},
        {P: BATCH, OWN: kemari(False, "1 MB"), "faults": CRASH},
    ),
    f"{P}.swap.process=300 MiB": (
        {P: {**WEB, "swap": {}}, "workloads": OPEN},
        {P: {**WEB, "swap": {"memory": "192 MiB"}}, "workloads": OPEN},
    ),
}


def model(settings) -> ModelSpec:
    data = {
        "domains": {"a": {"applications": {}, "disks": {}, "interfaces": {"eth0": {"path": {"kind": "moderated"}}}}},
        "measure": {"warm_up": "0 s", "duration": "200 ms"},
    }
    return with_settings(data, settings)


@pytest.mark.parametrize("assignment", CASES)
def test_a_key_that_another_one_makes_idle_is_named_and_no_other(assignment):
    check_named_where_idle(assignment, CASES[assignment], model)


def behind(path, driver, **settings) -> ModelSpec:
    """A service behind a driver domain, busy enough that packets of both directions wait for it."""
    return ModelSpec.model_validate(
        {
            "hosts": {"host": {"pcpus": 3, "scheduler": {"kind": "credit"}}},
            "domains": {
                "dom0": {"driver": driver, **settings},
                "a": {
                    "interfaces": {"eth0": {"path": {"kind": path}}},
                    "applications": {"p": {"kind": "service", "threads": 8, "demand": "1 us"}},
                },
            },
            "workloads": {"u": {"kind": "open_requests", "to": "a.p", "rate": "15000 /s"}},
            "measure": {"warm_up": "0 s", "duration": "100 ms"},
        }
    )


@pytest.mark.parametrize(
    ("path", "placement", "is_idle"),
    [("paravirtual", "one", True), ("paravirtual", "any", True), ("emulated", "one", False)],
)
def test_a_driver_domain_without_processes_has_no_use_for_their_scheduler(path, placement, is_idle):
    """Interrupts take no turns, whichever vCPU does them; device models do."""
    spec, plain = behind(path, {"placement": placement}, quantum="10 us"), behind(path, {"placement": placement})
    assert (outcome(spec) == outcome(plain)) == is_idle
    why = "domains.dom0.quantum: its work is that of interrupts"
    assert without_effect(spec) == ([why] if is_idle else [])


@pytest.mark.parametrize(("path", "is_idle"), [("moderated", True), ("native", False), ("paravirtual", False)])
def test_a_card_whose_ring_no_path_uses_is_named(path, is_idle):
    """A guest with a card of its own has its ring there; the host's makes packets of the others wait."""
    plain = behind(path, {})
    data = plain.model_dump(mode="json")
    data["hosts"]["host"]["nics"] = {"eth0": {"coalescing_time": "1 ms", "coalescing_packets": 64}}
    spec = ModelSpec.model_validate(data)
    assert (outcome(spec) == outcome(plain)) == is_idle
    keys = ("coalescing_time", "coalescing_packets") if is_idle else ()
    texts = [f"hosts.host.nics.eth0.{key}: no path takes packets from its ring" for key in keys]
    assert [line for line in without_effect(spec) if ".nics." in line] == texts


@pytest.mark.parametrize(("path", "is_idle"), [("moderated", True), ("direct", True), ("paravirtual", False)])
def test_a_driver_domain_that_nothing_leads_through_is_named(path, is_idle):
    why = "no path of its host's domains leads through it"
    spec = behind(path, {"receive_cost": "9 us"}, quantum="10 us")
    assert (outcome(spec) == outcome(behind(path, {}))) == is_idle
    of_quantum = why if is_idle else "its work is that of interrupts"
    texts = [f"domains.dom0.quantum: {of_quantum}", *([f"domains.dom0.driver.receive_cost: {why}"] if is_idle else [])]
    assert without_effect(spec) == texts


def test_interrupts_cannot_be_spread_over_one_vcpu():
    text = "domains.dom0.driver.placement: spread is one here, as the domain has one vCPU"
    spread, one = (behind("paravirtual", {"placement": placement}) for placement in ("spread", "one"))
    assert outcome(spread) == outcome(one)
    assert (remarks(spread), remarks(one)) == ([text], [])
    assert remarks(behind("paravirtual", {"placement": "spread"}, vcpus=2)) == []


def test_a_second_interface_to_a_network_is_told():
    """Nothing is spread over two: clients are answered as with the first one."""
    served = {P: SERVICE, DISK: ARRAY, "workloads": USERS}
    second = {**served, "domains.a.interfaces.eth1": {"path": {"kind": "moderated"}}}
    alone, both = model(served), model(second)
    answered = [run_model(spec, 1, 0).whole.outcomes["workloads.u"].answered for spec in (alone, both)]
    assert answered[0] == answered[1] > 0
    ways = "eth0, eth1 lead to lan, over one link; workloads go by eth0, requests of other domains and to them by eth1"
    assert (remarks(alone), remarks(both)) == ([], [f"domains.a.interfaces: {ways}"])


def test_a_fault_that_stops_nothing_is_told():
    """A batch waits for a time of its own: it does as much with its storage lost."""
    loss = {"kind": "storage_loss", "at": "50 ms", "duration": "100 ms", "domain": "a"}
    waits, reads = {P: BATCH}, {P: READS, DISK: ARRAY}
    told = [remarks(model({**program, "faults": [loss]})) for program in (waits, reads)]
    of_times = "disk operations of p are waiting times, and go on"
    assert told == [[f"faults.0: no program of a uses a disk, so none stands still; {of_times}"], []]
    both = model({**waits, Q: READS, DISK: ARRAY, "faults": [loss]})
    assert remarks(both)[1:] == [f"faults.0: {of_times}"]
    assert run_model(both, 1, 0, engine="simpy").whole.outcomes[P].ended == 19
    did = [run_model(model({**waits, "faults": faults}), 1, 0).whole.outcomes[P].ended for faults in ([], [loss])]
    assert did[0] == did[1] == 19  # 10 ms each
    alone = {P: {"kind": "cpu_bound"}, "domains.a.interfaces": {}, "faults": [{**loss, "kind": "nic_loss"}]}
    assert remarks(model(alone)) == ["faults.0: a has no interface, so nothing is cut off"]
    assert remarks(model({**alone, "faults": [loss]})) == [
        "faults.0: no program of a uses a disk, so none stands still"
    ]


@pytest.mark.parametrize(
    ("again", "length", "last"),
    [
        ({"every": "2 ms"}, 100, "298 ms"),
        ({"every": "2 ms", "most": 99}, 99, ""),
        ({"every": "2 ms", "most": 100}, 100, ""),
        ({"every": "6 ms"}, 84, ""),
        ({"mean": "1 ms"}, 100, "about 300 ms"),
    ],
)
def test_repeated_faults_that_end_before_the_run_by_a_default_are_told(again, length, last):
    """From 100 ms on, 1 ms each, in a run of 600 ms."""
    fault = {"kind": "pause", "at": "100 ms", "duration": "1 ms", "domain": "a", "repeat": again}
    spec = model({P: BATCH, "faults": [fault], "measure": {"warm_up": "0 s", "duration": "600 ms"}})
    text = f"faults.0.repeat.most is 100: the last comes at {last}, and a run lasts 600 ms"
    assert remarks(spec) == ([text] if last else [])
    assert run_model(spec, 1, 0).whole.outcomes["domains.a.protection"].stopped_ns == length * 1_000_000
