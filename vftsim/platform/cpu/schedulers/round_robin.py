"""Round robin: every vCPU in turn, for one quantum.

No weights, no priorities, no pre-emption: a vCPU that wakes takes an idle pCPU or waits at the tail of
the one queue.  No hypervisor of note schedules like this; it is the baseline against which wake-up
boosts and weights show what they do.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, Record, Sim, Table
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.platform.cpu.records import Host, Vcpu, hosts
from vftsim.platform.cpu.shared_queue import longest_ns, share_one_queue
from vftsim.spec.units import PeriodNs

round_robin = share_one_queue(scheduler.scheduler.kind("round_robin"))


class RoundRobinHost(Record):
    """A host's parameter."""

    quantum_ns: int


round_robin_hosts = Table("round_robin_hosts", RoundRobinHost, beside=hosts)


@SCHEDULERS.register
class RoundRobin(SchedulerSpec):
    """Every vCPU in turn."""

    kind: Literal["round_robin"] = "round_robin"
    reads: ClassVar[frozenset[str] | None] = frozenset()
    quantum: PeriodNs = Field(
        30_000_000,
        description="Time a vCPU runs before the next one's turn. Default 30 ms: the slice of Xen's credit "
        "scheduler, so that the two compare.",
    )

    def install(self, engine: Engine, host: int) -> None:
        engine.rows(round_robin_hosts)[host].quantum_ns = self.quantum


@round_robin.implements(longest_ns)
def quantum_of(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the quantum; who comes first is the queue's order."""
    return round_robin_hosts(sim)[host.row].quantum_ns
