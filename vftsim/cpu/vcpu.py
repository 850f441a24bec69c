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
    pcpu, last_pcpu : int
        Where it runs now (-1: nowhere) and where it ran last (-1: it never ran).
    run_ns : int
        CPU time consumed so far, complete up to the last time the host charged it.
    wait_ns : int
        Time spent runnable without a pCPU, complete up to its last dispatch.
    wakeups, context_switches, migrations : int
        Times it left the blocked state; times a pCPU switched to it from another vCPU; times it
        was dispatched on another pCPU than before.
    dispatched_ns : int
        When it was last charged; in the future while the switch to it lasts.
    interrupted : Work or None
        The job that interrupt work has displaced; it goes on, on this vCPU, after the last interrupt.
    """

    __slots__ = (
        "affinity", "context_switches", "current", "dispatched_ns", "domain", "guest", "index",
        "interrupted", "interrupts", "last_pcpu", "migrations", "pcpu", "run_ns", "sched", "state",
        "wait_ns", "waiting_since_ns", "wakeups",
    )  # fmt: skip

    def __init__(self, index: int, domain: Any, affinity: frozenset[int]) -> None:
        self.index = index
        self.domain = domain
        self.affinity = affinity
        self.state = VcpuState.BLOCKED
        self.pcpu = -1
        self.last_pcpu = -1
        self.run_ns = 0
        self.wait_ns = 0
        self.waiting_since_ns = 0
        self.wakeups = 0
        self.context_switches = 0
        self.migrations = 0
        self.dispatched_ns = 0
        self.current: Work | None = None
        self.interrupted: Work | None = None
        self.interrupts: deque[Work] = deque()
        self.guest: Any = None
        self.sched: Any = None  # the scheduler's own record of this vCPU
