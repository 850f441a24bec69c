"""Small models put together in Python, as a file would say them."""

from __future__ import annotations

from typing import Any

from vftsim.composition.model import ModelSpec

MEASURE = {"warm_up": "20 ms", "duration": "100 ms"}
BENCH = {
    "kind": "ims_bench",
    "to": "sut.proxy",
    "subscribers": 500,
    "ring_time": "200 ms",
    "hold_time": "500 ms",
    "pre_registration": {"duration": "0 s"},
    "stir": {"duration": "1 s", "steps": 1},
    "steps": {"initial": "10 /s", "duration": "4 s", "transient": "1 s", "most": 1},
}


def interface(kind: str, **keys: Any) -> dict[str, Any]:
    """The interfaces of a domain with one."""
    return {"eth0": {"path": {"kind": kind}, **keys}}


def relay(**domain: Any) -> dict[str, Any]:
    """A domain with a media relay that has a NIC of its own."""
    return {"interfaces": interface("direct"), "applications": {"relay": {"kind": "media_relay"}}, **domain}


def server(**domain: Any) -> dict[str, Any]:
    """A domain with a SIP server."""
    return {"interfaces": interface("moderated"), "applications": {"proxy": {"kind": "sip_server"}}, **domain}


def streams(to: str, number: int = 5) -> dict[str, Any]:
    """Media streams at a domain."""
    return {"kind": "rtp", "to": to, "streams": number}


def media_model(**changes: Any) -> dict[str, Any]:
    """One relay on a host under the credit scheduler, and streams at it."""
    return {
        "hosts": {"host": {"pcpus": 2, "scheduler": {"kind": "credit"}, "nics": {"nic0": {}}}},
        "domains": {"media": relay()},
        "workloads": {"media": streams("media")},
        "measure": MEASURE,
        **changes,
    }


def sip_model(**changes: Any) -> dict[str, Any]:
    """A SIP server on bare metal under a short benchmark."""
    return {"domains": {"sut": server()}, "workloads": {"calls": BENCH}, **changes}


def checked(data: dict[str, Any]) -> ModelSpec:
    return ModelSpec.model_validate(data)
