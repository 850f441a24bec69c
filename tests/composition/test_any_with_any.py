"""Parts that were written apart stand in one model: drawn traffic on a modelled link, every workload at once."""

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.study.figures.summary import is_service, short_owner

US = 1_000

ONE_STREAM = {
    "networks": {"lan": {"rate": "1 Gbit/s", "latency": "10 us"}},
    "domains": {
        "media": {
            "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
            "applications": {"relay": {"kind": "media_relay", "packet_cost": "18 us"}},
        }
    },
    "workloads": {"media": {"kind": "rtp", "to": "media", "streams": 1}},
    "measure": {"warm_up": "100 ms", "duration": "1 s"},
}

EVERYTHING = {
    "hosts": {"server": {"pcpus": 4, "scheduler": {"kind": "credit"}}},
    "networks": {"lan": {"latency": "5 us"}},
    "domains": {
        "dom0": {"vcpus": 2, "driver": {}},
        "guest": {
            "vcpus": 2,
            "interfaces": {"eth0": {"path": {"kind": "paravirtual"}}},
            "disks": {"root": {"kind": "local"}},
            "applications": {
                "sink": {"kind": "tcp_sink"},
                "datagrams": {"kind": "udp_sink"},
                "apache": {"kind": "prefork_web_server", "script": "5 ms"},
                "echo": {"kind": "service"},
                "jobs": {"kind": "batch", "demand": "1 ms", "think": "20 ms"},
                "database": {"kind": "disk_bound"},
                "relay": {"kind": "media_relay"},
            },
        },
    },
    "workloads": {
        "tcp": {"kind": "bulk_tcp", "to": "guest", "duration": "200 ms", "interval": "100 ms"},
        "udp": {"kind": "bulk_udp", "to": "guest", "duration": "200 ms"},
        "web": {"kind": "httperf", "to": "guest", "rate": "40 /s", "connections": 8},
        "loop": {"kind": "request_response", "to": "guest"},
        "media": {"kind": "rtp", "to": "guest", "streams": 20},
    },
    "measure": {"warm_up": "50 ms", "duration": "300 ms"},
}


def test_a_lone_packet_crosses_the_link_twice() -> None:
    """238 bytes at 1 Gbit/s take 1.904 us, each way 10 us more; 18 us of the relay."""
    media = run_model(ModelSpec.model_validate(ONE_STREAM), 1, 0).of("workloads.media")
    assert media.delay.min == media.delay.max == 2 * (1_904 + 10 * US) + 18 * US
    assert media.delivered == 50


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_every_workload_at_once_behind_a_driver_domain(engine: str) -> None:
    record = run_model(ModelSpec.model_validate(EVERYTHING), 1, 0, engine)
    figures = {short_owner(owner): each.columns() for owner, each in record.whole.outcomes.items() if is_service(owner)}
    assert figures["tcp"]["mbit_per_s"] > 10
    assert figures["udp"]["received_mbit_per_s"] == pytest.approx(1.0, rel=0.1)
    assert figures["web"]["replies"] == 8
    assert figures["loop"]["rate_per_s"] > 100
    assert figures["guest.jobs"]["transactions_per_s"] > 10
    assert figures["guest.database"]["transfers_per_s"] > 10
    assert record.of("workloads.media").delivered == pytest.approx(20 * 15, rel=0.1)
