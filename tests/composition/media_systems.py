"""Small media hosts for the tests, run on the kernel of the package; golden cases hold the two engines together."""

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run

MS = 1_000_000
S = 1_000_000_000


def measured_for(spec, duration_ns, warm_up_ns=0):
    """The model with other times, of any length."""
    times = {"warm_up": warm_up_ns, "duration": duration_ns}
    return spec.model_copy(update={"measure": spec.measure.model_copy(update=times)})


def run(spec, seed, replication, duration_ns, warm_up_ns=0):
    """The record of a replication."""
    return Run(measured_for(spec, duration_ns, warm_up_ns), seed, replication, engine="compiled").run()


def host(path, *, streams=1, calls_per_s=0.0, scheduler=None, pcpus=4, media=None, **changes):
    """One guest behind ``path``; a pCPU for every vCPU unless a scheduler is given."""
    guest = {
        "vcpus": 1,
        "interfaces": {"eth0": {"path": path}},
        "applications": {
            "relay": {"kind": "media_relay", "packet_cost": 10_000, "threads": 1},
            "server": {"kind": "signaling_server", "packet_cost": 100_000, "threads": 1},
        },
        **(media or {}),
    }
    owns = path["kind"] in {"direct", "native"}
    driver = {"placement": "spread"} | changes.pop("driver", {})
    domains = {"guest": guest} if owns else {"dom0": {"vcpus": 2, "driver": driver}, "guest": guest}
    return ModelSpec.model_validate(
        {
            "hosts": {
                "host": {
                    "pcpus": pcpus,
                    "scheduler": scheduler or {"kind": "native"},
                    "switch_cost": changes.pop("switch_cost", 0),
                    "nics": changes.pop("nics", {"eth0": {}}),
                }
            },
            "networks": {"lan": {"latency": 10_000}},
            "domains": domains | changes.pop("domains", {}),
            "workloads": {
                "media": {"kind": "rtp", "to": "guest", "streams": streams, "clock_error_ppm": 0.0},
                "signaling": {"kind": "calls", "to": "guest", "calls_per_s": calls_per_s, "received_packets": 1},
            },
            **changes,
        }
    )
