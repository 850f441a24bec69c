"""Restoring redundancy: the survivor is cloned onto a third host while it serves.

Rule (Scales, Nelson, Venkitachalam 2010): a new secondary is made by a modified live migration that
leaves the source running; the running VM stands still for less than a second, the whole takes minutes.
Until it is over the machine is unprotected.  Copying takes CPU from the VM (in pulses, as interrupt
work) and, on a shared network card, transmission time from its outputs.
"""

from __future__ import annotations

from typing import Any

from vftsim.cpu import Work
from vftsim.net.link import Link
from vftsim.protection.base import Mechanism
from vftsim.protection.lockstep_parameters import ReprotectionSpec
from vftsim.protection.machine import Machine
from vftsim.protection.migration import PrecopyPlan, plan_precopy

_MS = 1_000_000
_BITS_NS = 8_000_000_000


class Reprotection:
    """Makes a new secondary after each loss of one.

    Parameters
    ----------
    machine : Machine
    spec : ReprotectionSpec, optional
        ``None``: redundancy is not restored.
    shared_link : Link, optional
        The VM's transmitter, if copying goes through it.
    """

    def __init__(self, machine: Machine, spec: ReprotectionSpec | None, shared_link: Link | None) -> None:
        self.machine = machine
        self.spec = spec
        self.shared_link = shared_link
        # A transmitter that takes whole bursts of pages would delay outputs more than TCP does.
        self._pulse_ns = _MS if shared_link is not None else 10 * _MS
        self._attempt = 0

    def plan(self) -> PrecopyPlan | None:
        """Return how a copy goes."""
        spec = self.spec
        if spec is None:
            return None
        return plan_precopy(
            spec.memory,
            spec.rate,
            dirty_bits_per_s=spec.dirty_rate,
            stop_bytes=spec.stop_below,
            resume_ns=spec.resume,
            working_set_bytes=spec.working_set,
            most_rounds=spec.most_rounds,
        )

    def start(self, mechanism: Mechanism) -> None:
        """Begin anew: earlier attempts, if any, are given up."""
        self._attempt += 1
        self.machine.resume("migration")
        if self.spec is not None:
            self.machine.call_after(self.spec.delay, self._copy, (self._attempt, mechanism))

    def _copy(self, job: tuple[int, Mechanism]) -> None:
        plan = self.plan()
        if self._over(job[0]) or plan is None:
            return
        job[1].note("copy begins")
        now_ns = self.machine.clock.now_ns
        self._pulse((job[0], now_ns + plan.live_ns))
        self.machine.call_after(plan.live_ns, self._stand_still, (*job, plan.downtime_ns))

    def _pulse(self, job: tuple[int, int]) -> None:
        attempt, until_ns = job
        machine = self.machine
        spec = self.spec
        if self._over(attempt) or spec is None or machine.clock.now_ns >= until_ns:
            return
        vcpu = machine.guest.vcpus[0]
        if spec.cpu_share and not vcpu.interrupts:
            work_ns = round(self._pulse_ns * spec.cpu_share / 100.0)
            machine.guest.raise_interrupt(vcpu, Work(work_ns, _nothing))
        if self.shared_link is not None:
            self.shared_link.occupy(spec.rate * self._pulse_ns // _BITS_NS)
        machine.call_after(self._pulse_ns, self._pulse, job)

    def _stand_still(self, job: tuple[int, Mechanism, int]) -> None:
        if not self._over(job[0]):
            self.machine.stop("migration")
            self.machine.call_after(job[2], self._finish, job)

    def _finish(self, job: tuple[int, Mechanism, int]) -> None:
        if not self._over(job[0]):
            self.machine.resume("migration")
            job[1].begin()

    def _over(self, attempt: int) -> bool:
        return attempt != self._attempt or self.machine.dead


def _nothing(_: Any) -> None:
    """Work without an effect outside."""
