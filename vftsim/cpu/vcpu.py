"""Virtual CPUs and the work that a guest gives them.

A guest runs interrupt work first, then its runnable jobs in order of arrival; a job that has used up
the guest's quantum while others wait goes to the back of the queue (round robin).  With jobs shorter
than the quantum this is first come, first served, which is what a pool of server processes that each
take one datagram gives under the Linux 2.6 O(1) scheduler (100 ms default time slice).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any


class VcpuState(IntEnum):
    """Where a vCPU stands with the hypervisor's scheduler."""

    BLOCKED = 0
    RUNNABLE = 1
    RUNNING = 2


class Work:
    """A piece of CPU work of ``remaining_ns``; ``on_done(argument)`` is called when it has been done."""

    __slots__ = ("argument", "on_done", "quantum_left_ns", "remaining_ns")

    def __init__(self, demand_ns: int, on_done: Callable[[Any], None], argument: Any = None) -> None:
        self.remaining_ns = demand_ns
        self.on_done = on_done
        self.argument = argument
        self.quantum_left_ns = 0


class Vcpu:
    """One virtual CPU: identity, placement rules, and the accounts every scheduler may read.

    Attributes
    ----------
    index : int
        Number on the host, in order of creation; breaks ties.
    domain : object
        The domain it belongs to (weight, cap and other scheduling parameters).
    affinity : frozenset of int
        pCPUs it may run on.
    run_ns : int
        CPU time consumed so far, complete up to the last time the host charged it.
    """

    __slots__ = (
        "affinity", "current", "dispatched_ns", "domain", "guest", "index", "interrupts",
        "pcpu", "run_ns", "sched", "state",
    )  # fmt: skip

    def __init__(self, index: int, domain: Any, affinity: frozenset[int]) -> None:
        self.index = index
        self.domain = domain
        self.affinity = affinity
        self.state = VcpuState.BLOCKED
        self.pcpu = -1
        self.run_ns = 0
        self.dispatched_ns = 0
        self.current: Work | None = None
        self.interrupts: deque[Work] = deque()
        self.guest: Any = None
        self.sched: Any = None  # the scheduler's own record of this vCPU
