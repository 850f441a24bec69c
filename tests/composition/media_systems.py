"""Small media hosts for the tests, run in the engine that needs no compilation; golden cases hold the two together."""

from functools import partial

from vftsim.media.run import run_media
from vftsim.media.system import MediaSystem

MS = 1_000_000
S = 1_000_000_000

run = partial(run_media, engine="simpy")

QUIET = {"event_ns": 0, "frontend_receive_ns": 0, "frontend_transmit_ns": 0}


def host(path, *, streams=1, calls_per_s=0.0, scheduler=None, pcpus=4, media=None, **changes):
    """One guest behind ``path``; a pCPU for every vCPU unless a scheduler is given."""
    guest = {
        "vcpus": 1,
        "io_path": path,
        "applications": {
            "relay": {"kind": "media_relay", "packet_ns": 10_000, "threads": 1},
            "server": {"kind": "signaling_server", "packet_ns": 100_000, "threads": 1},
        },
        **(media or {}),
    }
    owns = path["kind"] in {"direct", "native"}
    domains = {"guest": guest} if owns else {"dom0": {"vcpus": 2}, "guest": guest}
    return MediaSystem.model_validate(
        {
            "host": {
                "pcpus": pcpus,
                "scheduler": scheduler or {"kind": "native"},
                "switch_cost_ns": changes.pop("switch_cost_ns", 0),
            },
            "driver_domain": None if owns else "dom0",
            "driver": {"placement": "spread"},
            "domains": domains | changes.pop("domains", {}),
            "workload": {
                "rtp": {"to": "guest", "streams": streams, "clock_error_ppm": 0.0},
                "signaling": {"to": "guest", "calls_per_s": calls_per_s, "received_packets": 1},
                "link_latency_ns": 10_000,
            },
            **changes,
        }
    )
