"""What a model file says about a service and its calls of others."""

from typing import Literal

from pydantic import Field

from vftsim.spec.base import Items, Spec
from vftsim.spec.units import ByteCount, DurationNs, Percent

MOST_CALLS = 100
"""Of one entry at a time: they are drawn at one instant."""
MOST_ENTRIES = 256
"""Of a service: whose draws are whose."""


class CallSpec(Spec):
    """Calls of another service, for each request."""

    to: str = Field(description="Who is asked: `domain` or `domain.application`; copies of a domain take turns.")
    via: str | None = Field(None, description="Network of the calls; the last that both are on if not given.")
    probability: Percent = Field(100.0, description="Of requests that make these calls.")
    count: int = Field(1, ge=1, le=MOST_CALLS, description="Calls of a request that makes them: fan-out.")
    when: Literal["sequential", "parallel"] = Field(
        "sequential", description="One after the other, or at once, together with parallel ones next to it in the list."
    )
    cost: DurationNs = Field(0, description="CPU time of the asker for each call, beside its path's.")
    size: ByteCount = Field(512, ge=64, le=1 << 20, description="Request on the wire. Assumption.")
    timeout: DurationNs = Field(
        1_000_000_000, description="Wait before a call is repeated, doubled each time; 0: for ever. Assumption."
    )
    retries: int = Field(2, ge=0, le=20, description="Repetitions before a call is given up. Assumption.")
    cache_hit: Percent = Field(0.0, description="Of calls that a full cache of the asker's own makes unnecessary.")
    cache_entries: int = Field(
        0, ge=0, le=1_000_000_000, description="Answers in the cache, asked for equally often; 0: it is full at once."
    )


class ServiceSpec(Spec):
    """A service that computes, uses its disk, calls others, and answers."""

    kind: Literal["service"] = "service"
    threads: int = Field(1, ge=1, le=100_000, description="Requests in work at once. Default: netserver, one.")
    demand: DurationNs = Field(
        10_000, description="CPU time of a request, without the I/O path's. Assumption: a system call in and out."
    )
    demand_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Coefficient of variation of the demand (gamma); 0: always the same."
    )
    answer_size: ByteCount = Field(
        128,
        ge=64,
        le=1 << 20,
        description="Answer on the wire. Default: 1 byte (netperf TCP_RR), 52 TCP/IP with time stamp, 38 Ethernet "
        "with preamble and gap, rounded up.",
    )
    backlog: int = Field(
        1024, ge=1, le=1_000_000, description="Requests that wait for a thread; others are dropped. Assumption."
    )
    reads: float = Field(0.0, ge=0.0, le=1000.0, description="Mean number of disk reads of a request.")
    writes: float = Field(0.0, ge=0.0, le=1000.0, description="Mean number of disk writes of a request, after them.")
    transfer_size: ByteCount = Field(8192, description="Of a read or a write. Default: a page of PostgreSQL.")
    disk: str | None = Field(None, description="Disk of its domain; the first if not given.")
    calls: Items[CallSpec] = Field(
        (), max_length=MOST_ENTRIES, description="What it asks of other services, in this order."
    )

    @property
    def uses_a_disk(self) -> bool:
        """Whether a request reads or writes."""
        return self.reads > 0.0 or self.writes > 0.0
