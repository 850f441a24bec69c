"""CPU time a domain may use in a period, drawn by its vCPUs in portions (credit2's cap, CFS bandwidth).

The pool is refilled to its budget once a period; what was not used is not saved.  A vCPU runs on what
it has drawn, draws again when that is gone, gives back what it does not need when it blocks, and is
held when the pool is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Spender(Protocol):
    """A vCPU's record: its domain's pool, if any, and what it has drawn from it."""

    pool: BudgetPool | None
    drawn_ns: int


@dataclass(slots=True, eq=False)
class BudgetPool:
    """One domain's time."""

    budget_ns: int
    portion_ns: int
    left_ns: int

    def refill(self) -> None:
        """Begin a period."""
        self.left_ns = self.budget_ns


def has_budget(record: Spender) -> bool:
    """Whether the vCPU may run."""
    return record.pool is None or record.drawn_ns > 0 or record.pool.left_ns > 0


def draw(record: Spender) -> None:
    """Take a portion if nothing is left of the last one."""
    pool = record.pool
    if pool is not None and record.drawn_ns <= 0:
        portion_ns = min(pool.portion_ns, pool.left_ns)
        pool.left_ns -= portion_ns
        record.drawn_ns += portion_ns


def give_back(record: Spender, keep_ns: int) -> None:
    """Return what was drawn, except ``keep_ns``."""
    pool = record.pool
    if pool is not None and record.drawn_ns > keep_ns:
        pool.left_ns = min(pool.left_ns + record.drawn_ns - keep_ns, pool.budget_ns)
        record.drawn_ns = keep_ns
