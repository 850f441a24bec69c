"""A guest is served alike whoever schedules its processes, also where its mechanism stops it in the middle of one."""

import pytest

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.platform.cpu.guest_parameters import guest_schedulers
from vftsim.platform.protection.mechanism import protections

STATES = {"memory": {"working_set": 50}, "state": {"fixed": 2000}}
SETTINGS = {
    "checkpoint": {"interval": "10 ms", **STATES},
    "micro_checkpoint": {"interval": "10 ms", **STATES},
    "event_sync": STATES,
    "coarse_lockstep": {"divergence_rate": 20.0, **STATES},
    "hypervisor_epoch": {"protocol": "original"},
    "lockstep": {"log": {"buffer": "300 B"}, "channel": {"rate": "2 Mbit/s"}},
}


def answers(kind: str, vcpus: int, guest_scheduler: str) -> int:
    """Return what three clients get of one process, which has three kinds of work around it."""
    guest = {
        "vcpus": vcpus,
        "guest_scheduler": {"kind": guest_scheduler},
        "interfaces": {"eth0": {"path": {"kind": "direct"}}},
        "applications": {
            "echo": {"kind": "service", "demand": "50 us"},
            "job": {"kind": "batch", "demand": "100 us", "think": "3 ms"},
            "timer": {"kind": "periodic_load", "busy": "100 us", "period": "7 ms"},
        },
        "protection": {"kind": kind, **SETTINGS.get(kind, {})},
    }
    data = {
        "hosts": {"host": {"pcpus": 4}},
        "networks": {"lan": {}},
        "domains": {"guest": guest},
        "workloads": {"clients": {"kind": "request_response", "to": "guest", "clients": 3, "turn_around": "10 ms"}},
        "measure": {"warm_up": "50 ms", "duration": "400 ms"},
    }
    return int(run_model(checked(data), 1, 0, engine="simpy").whole.outcomes["workloads.clients"].answers)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "vcpus"),
    [(kind, vcpus) for kind in protections() for vcpus in (1, 2) if vcpus == 1 or protections()[kind].most_vcpus > 1],
)
def test_nobody_waits_for_ever(kind: str, vcpus: int) -> None:
    found = {name: answers(kind, vcpus, name) for name in guest_schedulers()}
    assert min(found.values()) > 30
    assert max(found.values()) - min(found.values()) <= 0.15 * max(found.values()), found
