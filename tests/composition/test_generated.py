"""Models drawn from everything that a model file can say: both engines, to the last bit, and CPU time as served."""

import pytest

from tests.composition import audited, generated
from tests.composition.composed import checked
from tests.composition.cpu_oracle import Oracle
from tests.composition.generated import model
from vftsim.composition import run, saves

SLOW = pytest.mark.slow
WHICH = [(True, 25), pytest.param(True, 500, marks=SLOW), pytest.param(False, 500, marks=SLOW)]


@pytest.fixture
def one_kernel(monkeypatch):
    """In plain Python the kernel of all parts costs a second."""
    monkeypatch.setattr(run, "linked_for", lambda spec: generated.everything())


@pytest.mark.thorough
@pytest.mark.parametrize(("is_lean", "count"), WHICH, ids=["lean", "lean, all", "all"])
def test_the_engines_agree_on_generated_models(monkeypatch, is_lean, count):
    monkeypatch.setattr(run, "linked_for", lambda spec: generated.everything(is_lean))
    # The compiled engine goes back to states of its run, the other plays every pass from time 0.
    monkeypatch.setattr(saves, "EVENTS_BETWEEN", 2000)
    ran, ended, found = generated.differences(range(count), is_lean)
    assert found == []
    assert ran >= count if is_lean else ran >= 0.9 * count
    assert ended >= 0.8 * ran


@pytest.mark.thorough
@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize(("count", "least"), [(30, 20), pytest.param(640, 500, marks=pytest.mark.slow)])
def test_domains_use_the_cpu_time_of_what_they_served(count: int, least: int):
    compared, breaches = generated.cpu_differences(range(count))
    assert compared >= least
    assert not breaches


@pytest.mark.thorough
@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize(("count", "least"), [(15, 100), pytest.param(300, 3000, marks=pytest.mark.slow)])
def test_the_auditor_is_silent_and_changes_nothing(count: int, least: int):
    judged, wrong = audited.audited(count)
    assert judged >= least
    assert wrong == []


@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize("more_ns", [-3, 3])
def test_what_is_served_says_cpu_time_to_the_nanosecond(more_ns: int):
    """Without packets nothing is open: bursts, jobs, transfers, periods, and what is left of those in hand."""
    programs = {name: generated.PROGRAMS[name] for name in ("hog", "jobs", "database", "timer")}
    made = run.Run(
        checked(
            {
                "hosts": {"host": {"cpu_speed": 1.0}},
                "domains": {
                    "guest": {"applications": programs, "disks": {"root": {"kind": "local"}}, "cpu_inflation": 1.3}
                },
                "measure": {"warm_up": "5 ms", "duration": "137 ms"},
            }
        ),
        1,
        0,
        engine="simpy",
    )
    made.run()
    assert list(Oracle(made).breaches()) == []
    made.engine.rows(run.vcpus)[1].run_ns += more_ns
    assert [breach.split()[0] for breach in Oracle(made).breaches()] == ["guest"]


@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize("kind", ["paravirtual", "emulated", "stub_domain"])
@pytest.mark.parametrize(
    ("dom0", "card"),
    [
        ({"cap": "20 %"}, {"receive_ring_packets": 16}),
        ({"vcpus": 3, "weight": 1, "affinity": [0]}, {"coalescing_time": "300 us", "coalescing_packets": 32}),
    ],
    ids=["capped", "pinned"],
)
def test_a_driver_domain_uses_what_its_packets_cost(kind: str, dom0: generated.Draw, card: generated.Draw):
    """Short of CPU, beside hogs: to the batches in its hands, where events cost nothing."""
    path = {"kind": kind, "event_cost": 0}
    relays = {
        name: {
            "interfaces": {"eth0": {"path": path}},
            "applications": {"relay": {**generated.PROGRAMS["relay"], "threads": 2}},
        }
        for name in (("one", "other") if kind == "paravirtual" else ("one",))
    }
    hogs = {name: {"applications": {"job": {"kind": "cpu_bound", "duty": "100 %"}}} for name in ("hog", "hog2")}
    made = run.Run(
        checked(
            {
                "hosts": {"host": {"pcpus": 2, "scheduler": {"kind": "credit"}, "nics": {"eth0": card}}},
                "domains": {"dom0": {"driver": {"event_cost": 0}, **dom0}, **relays, **hogs},
                "workloads": {f"to_{name}": {"kind": "rtp", "streams": 200, "to": f"{name}.relay"} for name in relays},
                "measure": {"warm_up": "20 ms", "duration": "250 ms"},
            }
        ),
        1,
        0,
        engine="simpy",
    )
    made.run()
    oracle = Oracle(made)
    assert list(oracle.breaches()) == []
    used_ns, least_ns, most_ns = next(account[1:] for account in oracle.accounts() if account[0] == "dom0")
    assert used_ns > 1_000_000
    assert most_ns - least_ns < 0.15 * used_ns


@pytest.mark.thorough
def test_what_is_drawn_covers_every_part():
    drawn = [spec for n in range(600) if (spec := model(n)) is not None]
    guests = [spec.domains["guest"] for spec in drawn]
    assert len({spec.hosts["host"].scheduler.kind for spec in drawn}) == 9
    assert len({guest.interfaces["eth0"].path.kind for guest in guests}) == 6
    assert sum(len(guest.interfaces) == 2 for guest in guests) > 100
    assert len({guest.protection.kind for guest in guests}) == 8
    assert len({guest.guest_scheduler.kind for guest in guests}) == 4
    assert sum(len(spec.hosts) == 2 for spec in drawn) > 100
    assert sum(spec.networks["lan"].loss > 0.0 for spec in drawn) > 60
    assert sum(len(spec.faults) == 2 and spec.faults[0].at == spec.faults[1].at for spec in drawn) > 5
    assert {str(fault.at) for spec in drawn for fault in spec.faults} >= {"0 ns", "1 ns", "10 ms"}
    assert {w.kind for spec in drawn for w in spec.workloads.values()} >= {
        "rtp",
        "calls",
        "ims_bench",
        "request_response",
        "bulk_tcp",
        "bulk_udp",
        "httperf",
    }
