"""The messages of :mod:`vftsim.workloads.sip.messages`, under the name that reports use."""

from vftsim.workloads.sip.messages import (
    DEMAND_SLOT,
    DEMANDS_PER_ATTEMPT,
    RECEIVED,
    SIZE_BYTES,
    TOUCHES,
    Message,
    Scenario,
)

__all__ = ["DEMANDS_PER_ATTEMPT", "DEMAND_SLOT", "RECEIVED", "SIZE_BYTES", "TOUCHES", "Message", "Scenario"]
