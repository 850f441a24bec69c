"""What a domain is entitled to, in the words of every scheduler; each reads the fields that it knows.

A number that stands for "the scheduler's default" is 0, or -1 for a choice between yes and no.
"""

from vftsim.kernel import Record, Table
from vftsim.platform.cpu.records import domains


class Entitlement(Record):
    """The scheduling parameters of a domain; see :class:`~vftsim.platform.cpu.parameters.DomainScheduling`."""

    weight: int
    cap: float
    shares: int
    reservation: float
    limit: float
    period_ns: int
    slice_ns: int
    latency_ns: int
    budget_ns: int
    extratime: int
    quota_ns: int
    nice: int
    relative_share: int
    absolute_share: float


entitlements = Table("entitlements", Entitlement, beside=domains)
