"""Programs of one guest are processes to its scheduler: of equal weight they share its CPU, whatever their work is."""

import pytest

from tests.composition.composed import checked, interface, media_model, relay
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.without_effect import remarks

KINDS = ("o1", "cfs", "eevdf")
BUSY = {
    "service": (
        {"kind": "service", "demand": "20 us"},
        {"kind": "request_response", "clients": 20},
    ),
    "service that makes calls": (
        {"kind": "service", "demand": "20 us", "calls": [{"to": "back", "cost": "5 us", "timeout": "0 s"}]},
        {"kind": "request_response", "clients": 20},
    ),
    "signaling": (
        {"kind": "signaling_server", "threads": 1, "packet_cost": "50 us"},
        {"kind": "calls", "calls_per_s": 20_000, "hold": "1 ms"},
    ),
    "relay": ({"kind": "media_relay", "threads": 1, "packet_cost": "1 ms"}, {"kind": "rtp", "streams": 100}),
    "TCP": ({"kind": "tcp_sink", "segment_cost": "50 us"}, {"kind": "bulk_tcp", "reaction": "0 s"}),
    "UDP": ({"kind": "udp_sink", "read_cost": "100 us"}, {"kind": "bulk_udp", "rate": "500 Mbit/s"}),
    "farm": (
        {"kind": "farm_server", "threads": 1, "demand": "100 us"},
        {"kind": "farm_calls", "rate": "5000 /s", "hold": "10 ms", "retransmits": False},
    ),
    "jobs": ({"kind": "batch", "demand": "100 us"}, None),
    "bursts": ({"kind": "cpu_bound", "duty": "100 %", "cycle": "1 ms"}, None),
    "spin": ({"kind": "cpu_bound", "duty": "100 %", "cycle": "1 ms", "by_clock": True}, None),
}


def model(guest, programs, workloads):
    card = {"eth0": {"path": {"kind": "moderated", "moderation": "0 s"}}}
    back = {"kind": "service", "demand": "0 s", "threads": 64}
    spec = {
        "hosts": {"host": {"pcpus": 2}},
        "networks": {"lan": {"rate": "100 Gbit/s", "latency": "0 s", "queue": "64 MiB"}},
        "domains": {
            "a": {"interfaces": card, "guest_scheduler": {"kind": guest}, "applications": programs},
            "back": {"interfaces": card, "applications": {"back": back}},
        },
        "workloads": workloads,
        "measure": {"warm_up": "1 s", "duration": "2 s"},
    }
    return ModelSpec.model_validate(spec)


def outcomes(guest, programs, workloads):
    return run_model(model(guest, programs, workloads), 1, 0, engine="compiled").whole.outcomes


@pytest.mark.parametrize("guest", KINDS)
@pytest.mark.parametrize("name", BUSY)
def test_a_job_has_half_of_the_cpu_beside_one_process_that_is_never_done(guest, name):
    program, load = BUSY[name]
    programs = {"program": program, "job": {"kind": "batch", "demand": "10 ms"}}
    found = outcomes(guest, programs, {} if load is None else {"u": {"to": "a.program", **load}})
    assert found["domains.a"].columns()["cpu"] == pytest.approx(100, abs=0.1)
    assert found["domains.a.applications.job"].transactions / 200 == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("guest", KINDS)
def test_threads_have_a_share_each(guest):
    """Three busy threads and a job: four processes."""
    programs = {"p": {"kind": "service", "demand": "1 ms", "threads": 3}, "job": {"kind": "batch", "demand": "10 ms"}}
    found = outcomes(guest, programs, {"u": {"kind": "request_response", "to": "a.p", "clients": 20}})
    assert found["domains.a.applications.job"].transactions / 200 == pytest.approx(0.25, abs=0.03)


def test_turns_of_work_are_told_where_a_job_is_beside_other_programs():
    """A request of 1 ms waits for 10 ms of the job each time: by hand, 10 of 11 ms are the job's."""
    programs = {"p": {"kind": "service", "demand": "1 ms"}, "job": {"kind": "batch", "demand": "10 ms"}}
    users = {"u": {"kind": "request_response", "to": "a.p", "clients": 20}}
    job = outcomes("round_robin", programs, users)["domains.a.applications.job"]
    assert job.transactions / 200 == pytest.approx(10 / 11, abs=0.01)
    (text,) = remarks(model("round_robin", programs, users))
    assert text.startswith("domains.a: its guest_scheduler gives turns to pieces of work, whatever the process")
    assert remarks(model("cfs", programs, users)) == []
    assert remarks(model("round_robin", {"x": programs["job"], "y": programs["job"]}, {})) == []


def test_turns_of_work_are_told_of_clients_and_device_models_beside_a_job():
    job = {"applications": {"job": {"kind": "batch"}}}
    farm = {
        "domains": {
            "s": {"interfaces": interface("moderated"), "applications": {"p": {"kind": "farm_server"}}},
            "clients": {"interfaces": interface("moderated"), **job},
        },
        "workloads": {"u": {"kind": "farm_calls", "to": "s", "rate": "10 /s", "agents_in": "clients"}},
    }
    (text,) = remarks(checked(farm))
    assert text.startswith("domains.clients: its guest_scheduler gives turns")

    def behind(path: str) -> list[str]:
        domains = {"dom0": {"driver": {}, **job}, "media": relay(interfaces=interface(path))}
        return remarks(checked(media_model(domains=domains)))

    assert behind("paravirtual") == []
    (text,) = behind("emulated")
    assert text.startswith("domains.dom0: its guest_scheduler gives turns")
