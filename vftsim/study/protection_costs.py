"""What must be said of the costs of protection wherever a result is shown: which of them nobody has calibrated."""

from __future__ import annotations

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import ModelSpec
from vftsim.platform.protection._replication_parameters import ReplicationFields
from vftsim.platform.protection.lockstep import LockstepSpec
from vftsim.platform.protection.mechanism import protections
from vftsim.spec.suggest import listing

UNCALIBRATED = {
    "checkpoint": "pages dirtied, pause, disk writes, the driver domain's CPU time for sending: assumptions",
    "micro_checkpoint": "pages dirtied, a fault with its copy, write protection: assumptions",
    "event_sync": "pages dirtied, the time to find them, disk reads, the driver domain's CPU time: assumptions",
    "hypervisor_epoch": "instruction rate, epoch and its boundary, privileged instructions: assumptions (1996)",
    "coarse_lockstep": "divergences, distance of replicas, pages dirtied: assumptions; the second replica's CPU time "
    "is not charged",
    "ha_restart": "placement and boot: assumptions; nothing is charged before a failure",
}
"""Which of a mechanism's defaults are not calibrated for the model at hand; lockstep says it of each price."""


def cost_notes(spec: ModelSpec) -> list[str]:
    """Return a line for each entry of a model that is protected: what its costs rest on."""
    found = []
    for name, domain in spec.domains.items():
        if text := cost_note(domain):
            found.append(f"{domain.protection.kind} ({name}): {text}")  # type: ignore[attr-defined]
    return found


def cost_note(domain: DomainSpec) -> str:
    """Return what the costs of a domain's protection rest on; nothing without protection."""
    own = domain.protection
    kind: str = own.kind  # type: ignore[attr-defined]
    if kind == "none":
        return ""
    if isinstance(own, LockstepSpec):
        text = own.cost.remark()
        return f"{text}; {uncounted_exits(domain)}" if own.cost.is_counted else text
    text = UNCALIBRATED.get(kind, "its defaults are not calibrated for this model")
    if own != protections()[kind]():
        text += "; but for what the model gives"
    if isinstance(own, ReplicationFields) and own.sends_pages:
        text += f"; {pages_of_requests(domain, own.memory.per_request)}"
    return text


def pages_of_requests(domain: DomainSpec, every: float | None) -> str:
    """Say how many pages a packet of each application is taken to dirty, ``every`` one alike unless that is None.

    Names are as in the model file.
    """
    if every is not None:
        return f"each packet received dirties {every:g} pages"
    said = {key: each.pages_a_packet for key, each in domain.applications.items()}
    known = [f"{pages:g} ({key})" for key, pages in said.items() if pages is not None]
    counted = f"each packet received dirties {listing(known)} pages" if known else "no application takes packets"
    free = [key for key, pages in said.items() if pages is None]
    return f"{counted}; {listing(free)}: what computing touches and transactions write" if free else counted


def uncounted_exits(domain: DomainSpec) -> str:
    """Say whose exits to the hypervisor nobody counts; names are as in the model file."""
    free = [key for key, each in domain.applications.items() if not hasattr(each, "relay_cost")]
    free += [key for key, each in domain.interfaces.items() if not hasattr(each.path, "accesses_receive")]
    return f"exits of {listing(free)} are not counted, so free" if free else "exits are counted everywhere"
