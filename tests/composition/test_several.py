"""Several domains of one entry, and several hosts: each has its own, and nothing is lost between them."""

import json

import pytest

from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.files import to_json
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.cpu.records import hosts, vcpus
from vftsim.platform.io.nic import nics
from vftsim.workloads.flow import FlowResult

from .composed import BENCH, checked, interface, media_model, relay, server, sip_model, streams


def run(data, engine="auto"):
    made = Run(checked(data), 3, 0, engine=engine)
    return made, made.run()


THREE = media_model(
    domains={
        "dom0": {"vcpus": 1, "driver": {}},
        "media": {
            "count": 3,
            "interfaces": interface("paravirtual"),
            "applications": {"relay": {"kind": "media_relay"}},
        },
    },
    workloads={"media": streams("media", 10)},
)


def test_a_count_makes_domains_with_a_workload_each():
    """Ten streams of a packet every 20 ms to each of three: 50 packets in 100 ms, but for those at either end."""
    made, record = run(THREE)
    assert list(made.built.domains) == ["dom0", "media-1", "media-2", "media-3"]
    flows = {owner.partition(".")[2]: each for _, owner, each in record.of_kind(FlowResult)}
    together = flows.pop("media")
    assert list(flows) == ["media-1", "media-2", "media-3"]
    assert together.delivered == sum(flow.delivered for flow in flows.values())
    assert all(45 <= flow.delivered <= 55 for flow in flows.values())
    assert len({to_json(flow.to_dict()) for flow in flows.values()}) == 3, "draws of their own"
    used = record.pcpus()
    assert min(used[name] for name in flows) > 0.0


@pytest.mark.parametrize(
    ("program", "clients", "times"),
    [
        ({"kind": "service", "demand": "10 ms"}, {"kind": "open_requests"}, "latency"),
        (
            {"kind": "prefork_web_server", "script": "10 ms", "output_share": "0 %"},
            {"kind": "httperf", "connections": 100},
            "response",
        ),
    ],
)
def test_clients_of_copies_that_keep_time_do_not_keep_step(program, clients, times):
    """Four guests that each work 10 of 100 ms: less wait than of random arrivals, M/D/1; in step it is 25 ms."""
    guest = {"count": 4, "interfaces": interface("moderated"), "applications": {"program": program}}
    data = {
        "hosts": {"host": {"scheduler": {"kind": "round_robin"}}},
        "networks": {"lan": {"latency": "0 s"}},
        "domains": {"guest": guest},
        "workloads": {"load": {**clients, "to": "guest", "rate": "10 /s", "gap_cv": 0}},
        "measure": {"warm_up": "200 ms", "duration": "10 s"},
    }
    _, record = run(data)
    mean_ms = getattr(record.whole.outcomes["workloads.load"], times).mean / 1e6
    assert 10.0 < mean_ms < 10.0 * (1.0 + 0.4 / (2.0 * 0.6))


@pytest.mark.parametrize(
    ("program", "clients"),
    [
        ({"kind": "batch", "demand": "10 ms", "think": "990 ms"}, None),
        ({"kind": "cpu_bound", "duty": "1 %", "cycle": "1 s", "cv": 0}, None),
        ({"kind": "service", "demand": "10 ms"}, {"kind": "request_response", "to": "guest", "turn_around": "990 ms"}),
    ],
)
def test_closed_loops_of_copies_that_keep_time_do_not_keep_step(program, clients):
    """Eight guests that each work 10 of 1,000 ms under equal shares wait about 7 x 0.02 x 5 ms; in step it is 70 ms."""
    guest = {"count": 8, "interfaces": interface("moderated"), "applications": {"program": program}}
    data = {
        "hosts": {"host": {"scheduler": {"kind": "cfs"}}},
        "domains": {"guest": guest},
        "workloads": {} if clients is None else {"load": clients},
        "measure": {"warm_up": "0 s", "duration": "10 s"},
    }
    made, _ = run(data)
    rows = [made.engine.rows(vcpus)[row] for _, _, row in made.built.vcpu_rows()]
    assert sum(int(vcpu.wait_ns) for vcpu in rows) / sum(int(vcpu.wakeups) for vcpu in rows) < 5e6


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "batch", "demand": "1000 s"},
        {"kind": "batch", "demand": "1000 s", "think": "16 ms"},
        {"kind": "cpu_bound", "duty": "99.9 %", "cycle": "100 s", "cv": 0},
    ],
)
def test_long_work_of_copies_begins_with_the_run(program):
    """What begins at an instant of its own does so within the time that it waits in a cycle, not that it computes."""
    guest = {"count": 4, "interfaces": {}, "applications": {"program": program}}
    measure = {"warm_up": "0 s", "duration": "1 s"}
    made, _ = run({"hosts": {"host": {"pcpus": 4}}, "domains": {"guest": guest}, "workloads": {}, "measure": measure})
    rows = [made.engine.rows(vcpus)[row] for _, _, row in made.built.vcpu_rows()]
    assert all(int(vcpu.run_ns) > 0.75e9 for vcpu in rows)


def test_packets_of_all_domains_add_up():
    made, record = run(THREE)
    sent = sum(int(made.engine.rows(nics)[row].admitted) for row in made.built.hosts["host"].io.nics.values())
    delivered = sum(driver.delivered() for driver in made.built.drivers.values())
    # 120 ms from the start: three times ten streams, six periods.
    assert 3 * 10 * 5 <= sent <= 3 * 10 * 7
    assert sent == delivered + sum(record.drops.values()) + record.in_flight


TWO_HOSTS = {
    "hosts": {
        "xen": {"pcpus": 2, "scheduler": {"kind": "credit"}, "switch_cost": "3 us"},
        "metal": {"pcpus": 1, "scheduler": {"kind": "native"}},
    },
    "networks": {"lan": {}, "san": {}},
    "domains": {
        "media": relay(host="xen", interfaces=interface("direct", network="lan")),
        "burner": {"host": "xen", "count": 2, "applications": {"job": {"kind": "cpu_bound", "duty": "100 %"}}},
        "linux": relay(host="metal", interfaces=interface("native", network="san")),
    },
    "workloads": {"here": streams("media", 20), "there": streams("linux", 10)},
    "measure": {"warm_up": "100 ms", "duration": "400 ms"},
}


def test_two_hosts_have_each_its_scheduler_and_conserve():
    """Twenty and ten streams of 50 packets a second for 0.4 s; burners leave no pCPU of their host idle.

    Beside burners a packet may wait for a time slice of 30 ms, so that 30 of them come after the end.
    """
    made, record = run(TWO_HOSTS)
    in_flight = made.check_conservation()
    assert in_flight == record.in_flight
    flows = {owner.partition(".")[2]: each for _, owner, each in record.of_kind(FlowResult)}
    assert 370 <= flows["here"].delivered <= 430
    assert flows["here"].dropped == 0
    assert 195 <= flows["there"].delivered <= 205
    both = {name: record.whole.outcomes[f"hosts.{name}"] for name in ("xen", "metal")}
    assert both["xen"].busy + both["xen"].switching == pytest.approx(200.0, abs=1.0)
    assert both["metal"].busy == pytest.approx(record.whole.outcomes["domains.linux"].cpu)
    assert 0.0 < both["metal"].busy < 20.0
    xen = made.engine.rows(hosts)[made.built.hosts["xen"].row]
    assert xen.switch_cost_ns == 3_000


@pytest.mark.parametrize("kind", sorted(schedulers()))
def test_a_host_may_stand_empty(kind):
    """Whatever schedules it has nothing to do, on several pCPUs too."""
    job = {"host": "used", "applications": {"job": {"kind": "batch", "demand": "1 ms"}}}
    spare = {"pcpus": 2, "scheduler": {"kind": kind}}
    measure = {"warm_up": "0 s", "duration": "100 ms"}
    _, record = run({"hosts": {"used": {}, "spare": spare}, "domains": {"vm": job}, "measure": measure}, "simpy")
    assert sum(record.whole.outcomes["hosts.spare"].busy_ns.values()) == 0


def test_a_host_runs_as_if_the_other_were_not_there():
    """The same streams under the same names, without the other host: the same delays to the nanosecond."""
    _, both = run(TWO_HOSTS)
    one = {name: part for name, part in TWO_HOSTS["domains"].items() if name != "linux"}
    _, alone = run(
        {
            **TWO_HOSTS,
            "hosts": {"xen": TWO_HOSTS["hosts"]["xen"]},
            "domains": one,
            "workloads": {"here": TWO_HOSTS["workloads"]["here"]},
        }
    )
    assert both.of("workloads.here").delay.to_dict() == alone.of("workloads.here").delay.to_dict()
    assert both.whole.outcomes["hosts.xen"].busy_ns == alone.whole.outcomes["hosts.xen"].busy_ns


@pytest.mark.parametrize(
    "data",
    [
        THREE,
        TWO_HOSTS,
        sip_model(
            domains={"sut": server(protection={"kind": "ha_restart"})},
            faults=[{"kind": "primary_crash", "at": "step 1 + 2 s"}],
        ),
        media_model(workloads={}),
        sip_model(workloads={}, networks={"lan": {"background": {"storage": {"burst": "64 KiB", "period": "10 ms"}}}}),
        sip_model(workloads={"calls": {**BENCH, "steps": {**BENCH["steps"], "most": 2}}}),
    ],
    ids=["count", "two hosts", "crash", "no workload", "no workload, background", "two steps"],
)
def test_a_record_is_rebuilt_from_its_data_exactly(data):
    _, record = run(data)
    plain = record.to_dict()
    read = json.loads(to_json(plain, indent=None))
    again = RunRecord.from_dict(read)
    assert to_json(again.to_dict()) == to_json(plain)
    assert (again.drops, again.timelines) == (record.drops, record.timelines)
    for ours, theirs in zip(record.phases, again.phases, strict=True):
        assert ours.outcomes.keys() == theirs.outcomes.keys()
        for owner, outcome in ours.outcomes.items():
            assert theirs.outcomes[owner].columns() == outcome.columns()


def many(count):
    """A host for each of so many guests, with a client of its own that turns around in 3 ms."""
    names = [f"{n}" for n in range(count)]
    return {
        "hosts": {f"h{n}": {"pcpus": 1, "scheduler": {"kind": "credit"}} for n in names},
        "domains": {
            f"v{n}": {
                "host": f"h{n}",
                "interfaces": interface("direct"),
                "applications": {"s": {"kind": "service", "demand": "1 ms", "demand_cv": 0.0}},
            }
            for n in names
        },
        "workloads": {
            f"w{n}": {"kind": "request_response", "to": f"v{n}", "clients": 1, "turn_around": "3 ms"} for n in names
        },
        "measure": {"warm_up": "10 ms", "duration": "100 ms"},
    }


def test_a_hundred_hosts_are_a_model():
    """A round is little more than 1 ms of CPU and the 3 ms of its client."""
    record = run(many(100))[1]
    rates = [record.whole.outcomes[f"workloads.w{n}"].columns()["rate_per_s"] for n in range(100)]
    assert len(rates) == 100
    assert all(0.9 * 250 < rate < 1.01 * 250 for rate in rates), (min(rates), max(rates))
