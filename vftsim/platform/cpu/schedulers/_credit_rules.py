"""What changed between the releases of Xen's credit scheduler, as a table.

Source: ``xen/common/sched_credit.c`` and ``xen/common/sched/credit.c`` in the Xen git history, tags
3.2 to 4.18; the commits are named beside the fields.
"""

from dataclasses import dataclass, replace
from typing import Literal

Version = Literal["3.2", "4.0", "4.1", "4.2", "4.3", "4.7", "4.8", "4.9", "4.13", "4.18"]
"""First release of each rule set; a release in between follows the one before it (4.5 is 4.3)."""


@dataclass(frozen=True, slots=True)
class CreditRules:
    """The rules of one release."""

    exact_debit: bool
    """Whether a vCPU pays for what it ran; else whoever runs at a tick pays all of it (78c9b2a64b)."""
    accounting_in_tick: bool
    """Whether accounting is every third tick of pCPU 0; else it has a timer of its own."""
    weight_per_vcpu: bool
    """Whether a domain's weight counts once for each active vCPU (3a37d430ce)."""
    idle_credit_divisor: int
    """What is kept of the credit of a vCPU leaving the active list: none (0) or half (2) (c92d5f4e0f)."""
    tickle: Literal["all_idlers", "one_idler", "idler_first"]
    """Who is woken for a new vCPU: preempt and wake every idle pCPU; preempt and wake one; preempt only
    if no idle pCPU suits (ebce2d836c)."""
    carries_residue: bool
    """Whether a debit is rounded down and the rest kept (twice: as a rest, and as time not yet paid for), else rounded
    to nearest (cf0c29d1a9)."""
    rate_limit_ns: int
    """Default of the rate limit; 0: the release has none (64908a0466)."""
    rate_limit_remainder: bool
    """Whether a rate-limited vCPU goes on for the rest of the limit (for 100 ns if it has run for less than that), else
    for another whole one."""
    variable_slice: bool
    """Whether the slice is a boot parameter."""
    boosts_migrated: bool
    """Whether the wake that ends a move boosts (repaired by 66c7449a4d)."""
    idle_has_slice: bool
    """Whether an idle pCPU looks for work again at the end of a slice."""
    tick_moves_running: bool
    """Whether a tick moves a running vCPU behind which others wait to an idle pCPU (750ec2271d, ebb064aa22)."""
    kicks_preempted: bool
    """Whether a pre-empted vCPU moves to an idle pCPU at once; later a test of the wrong vCPU's affinity prevents it
    (8a04eaa8ea)."""
    steals_in_turn: bool
    """Whether a search for work starts behind the pCPU robbed last, else at the neighbour (89216c7999)."""
    tickled_are_busy: bool
    """Whether an idle pCPU that has been woken no longer counts as idle."""
    boosts_unparked: bool
    """Whether unparking boosts (be65075094, repaired by 5c8c0ae7c4)."""
    balance_limit_ns: int
    """Default least time between two steal scans of one pCPU (58feb9e0ac)."""


RULES: dict[Version, CreditRules] = {}
RULES["3.2"] = CreditRules(
    exact_debit=False,
    accounting_in_tick=True,
    weight_per_vcpu=False,
    idle_credit_divisor=0,
    tickle="all_idlers",
    carries_residue=False,
    rate_limit_ns=0,
    rate_limit_remainder=False,
    variable_slice=False,
    boosts_migrated=True,
    idle_has_slice=True,
    tick_moves_running=False,
    kicks_preempted=False,
    steals_in_turn=False,
    tickled_are_busy=False,
    boosts_unparked=False,
    balance_limit_ns=0,
)
RULES["4.0"] = replace(RULES["3.2"], exact_debit=True, accounting_in_tick=False, idle_has_slice=False)
RULES["4.1"] = replace(RULES["4.0"], weight_per_vcpu=True, idle_credit_divisor=2, tickle="one_idler")
RULES["4.2"] = replace(RULES["4.1"], rate_limit_ns=1_000_000, variable_slice=True)
RULES["4.3"] = replace(
    RULES["4.2"],
    tickle="idler_first",
    carries_residue=True,
    boosts_unparked=True,
    tick_moves_running=True,
    kicks_preempted=True,
)
RULES["4.7"] = replace(RULES["4.3"], boosts_migrated=False)
RULES["4.8"] = replace(RULES["4.7"], rate_limit_remainder=True)
RULES["4.9"] = replace(RULES["4.8"], steals_in_turn=True, tickled_are_busy=True)
RULES["4.13"] = replace(RULES["4.9"], boosts_unparked=False, kicks_preempted=False)
RULES["4.18"] = replace(RULES["4.13"], balance_limit_ns=1_000_000)
