"""Round robin: every vCPU in turn, for one quantum.

No weights, no priorities, no pre-emption: a vCPU that wakes takes an idle pCPU or waits at the tail of
the one queue.  No hypervisor of note schedules like this; it is the baseline against which wake-up
boosts and weights show what they do.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.schedulers._shared_queue import Key, SharedQueuePolicy
from vftsim.cpu.vcpu import Vcpu
from vftsim.spec.units import PositiveDurationNs


@SCHEDULERS.register
class RoundRobin(SchedulerSpec):
    """Every vCPU in turn."""

    kind: Literal["round_robin"] = "round_robin"
    quantum: PositiveDurationNs = Field(
        30_000_000,
        description="Time a vCPU runs before the next one's turn. Default 30 ms: the slice of Xen's credit "
        "scheduler, so that the two compare.",
    )

    def build(self) -> "RoundRobinScheduler":
        """Make the policy."""
        return RoundRobinScheduler(self)


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    serial: int = 0
    since_ns: int = 0


class RoundRobinScheduler(SharedQueuePolicy[_Record]):
    """The policy."""

    def __init__(self, parameters: RoundRobin) -> None:
        super().__init__()
        self.quantum_ns = parameters.quantum

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Remember its turn only."""
        return _Record(vcpu)

    def key(self, record: _Record, now_ns: int) -> Key:
        """First in, first out."""
        return (record.serial,)

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """Return the quantum."""
        return self.quantum_ns
