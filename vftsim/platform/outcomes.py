"""What is measured of hosts, domains and links in a phase, whatever runs on them."""

from vftsim.outcome import Outcome, declare
from vftsim.platform.io.disk import DiskUse
from vftsim.platform.io.link import utilization


class DomainUse(Outcome):
    """CPU time of a domain, in percent of one pCPU."""

    cpu_ns: int = declare.total(label="CPU time", unit="ns")
    cpu = declare.rate(cpu_ns, factor=1e-7, unit="%", label="CPU", headline=True, observed_as="cpu.*")

    @classmethod
    def of_copies(cls) -> type[Outcome]:
        """Return what copies of a domain use: what is set once is answered once."""
        return CopiesUse


class CopiesUse(Outcome):
    """CPU time of the copies of a domain."""

    cpu_ns: int = declare.total(label="CPU time of all copies", unit="ns")
    copies: int = declare.number()
    cpu_total = declare.rate(cpu_ns, factor=1e-7, unit="%", label="CPU, all copies")
    cpu = declare.number(
        source=lambda use: use.cpu_total / use.copies, unit="%", label="CPU, mean of the copies", headline=True
    )


class HostUse(Outcome):
    """A host's pCPUs, its scheduler and its network cards.

    ``busy_ns`` is by number of the pCPU, switching not included; ``scheduler`` has what the scheduler counts by its
    names (boosts, steals, parks).  ``interrupts`` are of cards that the host's driver serves: a guest's card
    (``moderated``) has none where they cost nothing, and they are the guest's.
    """

    busy_ns: dict[str, int] = declare.total(by="name", label="CPU time", unit="ns")
    switching_ns: int = declare.total(unit="ns", label="time of switches")
    context_switches: int = declare.total()
    interrupts: int = declare.total(label="interrupts of the host's cards")
    scheduler: dict[str, int] = declare.total(by="name", joined="nothing", known_as=("",))
    busy = declare.rate(busy_ns, factor=1e-7, unit="%", label="busy, of one pCPU")
    switching = declare.rate(switching_ns, factor=1e-7, unit="%", label="switching, of one pCPU")
    context_switch_rate = declare.rate(context_switches, label="context switches")


class LinkUse(Outcome):
    """An end of a modelled link, with the rate of the line."""

    sent_bytes: int = declare.total(unit="B")
    rate_bits_per_s: int = declare.number(label="rate of the line", unit="bit/s")
    throughput = declare.rate(sent_bytes, factor=8e-6, unit="Mbit/s")
    busy = declare.number(
        source=lambda use: 100.0 * utilization(use.sent_bytes, use.rate_bits_per_s, round(use.seconds * 1e9)), unit="%"
    )


class Losses(Outcome):
    """Packets dropped, by place and cause."""

    packets: dict[str, int] = declare.total(by="name", label="packets dropped", better="lower")


RESOURCES = (DomainUse, CopiesUse, DiskUse, HostUse, LinkUse)
"""Outcomes that tell what was used of something; of a ramp they are known by step."""
