"""Live migration by pre-copy: how long it takes, how much it sends, how long the guest stands still.

Rule: round 0 sends all memory while the guest runs; each later round sends what was dirtied during the
round before; when little enough is left, or the limits of rounds or volume are reached, the guest is
stopped and the rest is sent.  Xen up to 4.4 (``xc_domain_save.c``): at most 29 rounds and the final
one, at most three times the memory, stop below 50 pages.

With dirty rate D, link rate R, l = D / R and no limit reached: T_i = V/R l^i, n = ceil(log_l(V_stop/V)),
total = V/R (1 - l^(n+1)) / (1 - l), downtime = V/R l^n + resume.  A writable working set bounds what one
round can dirty.

Left out: compression, adaptive rates, the dependence of the dirty rate on load.
"""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection._lockstep_parameters import ReprotectionSpec


@dataclass(frozen=True, slots=True)
class PrecopyPlan:
    """Length and volume of a migration; the last round is sent while the guest is stopped."""

    rounds_ns: tuple[int, ...]
    sent_bytes: int
    downtime_ns: int

    @property
    def live_ns(self) -> int:
        """Time of the rounds in which the guest runs."""
        return sum(self.rounds_ns[:-1])


def plan_copy(spec: ReprotectionSpec, most_volume: float = 3.0) -> PrecopyPlan:
    """Return how a copy goes; ``most_volume``: data sent with the guest running, in multiples of the memory."""
    bound_bytes = spec.memory if spec.working_set is None else min(spec.memory, spec.working_set)
    rounds_ns: list[int] = []
    left_bytes, sent_bytes = spec.memory, 0
    while True:
        round_ns = left_bytes * BITS_NS // spec.rate
        rounds_ns.append(round_ns)
        sent_bytes += left_bytes
        last = len(rounds_ns) > 1 and (
            left_bytes <= spec.stop_below or len(rounds_ns) > spec.most_rounds or sent_bytes > most_volume * spec.memory
        )
        if last:
            return PrecopyPlan(tuple(rounds_ns), sent_bytes, round_ns + spec.resume)
        left_bytes = min(round_ns * spec.dirty_rate // BITS_NS, bound_bytes)
