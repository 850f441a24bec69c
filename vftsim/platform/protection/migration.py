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

_BITS_NS = 8_000_000_000


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

    @property
    def total_ns(self) -> int:
        """From the first page to the last, without resuming."""
        return sum(self.rounds_ns)


def plan_precopy(
    memory_bytes: int,
    rate_bits_per_s: int,
    *,
    dirty_bits_per_s: int,
    stop_bytes: int,
    resume_ns: int,
    working_set_bytes: int | None = None,
    most_rounds: int = 29,
    most_volume: float = 3.0,
) -> PrecopyPlan:
    """Return the rounds of a pre-copy migration.

    Parameters
    ----------
    stop_bytes : int
        A remainder of at most this much is sent with the guest stopped.
    working_set_bytes : int, optional
        Most that can be dirty at the end of a round; all memory if not given.
    most_rounds : int
        Rounds with the guest running.
    most_volume : float
        Most data sent with the guest running, in multiples of the memory.
    """
    bound_bytes = memory_bytes if working_set_bytes is None else min(memory_bytes, working_set_bytes)
    rounds_ns: list[int] = []
    left_bytes, sent_bytes = memory_bytes, 0
    while True:
        round_ns = left_bytes * _BITS_NS // rate_bits_per_s
        rounds_ns.append(round_ns)
        sent_bytes += left_bytes
        last = len(rounds_ns) > 1 and (
            left_bytes <= stop_bytes or len(rounds_ns) > most_rounds or sent_bytes > most_volume * memory_bytes
        )
        if last:
            return PrecopyPlan(tuple(rounds_ns), sent_bytes, round_ns + resume_ns)
        left_bytes = min(round_ns * dirty_bits_per_s // _BITS_NS, bound_bytes)
