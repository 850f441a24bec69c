"""How Xen's credit scheduler hands out credits, once an accounting period.

Every pCPU brings one slice's worth of credits (300 at 30 ms) into a pool; a negative balance of all
credits from last time is made good.  Active domains take their share by weight in list order.  None
may take more than its active vCPUs could use in one period, or than its cap; what is left over goes to
the domains later in the list in proportion to their weights, and a domain that left something moves
to the head of the list when one before it could have used more, so that over several periods the
surplus reaches everybody.  All divisions round up, as in the original.

Source: Xen ``sched_credit.c``, accounting function, 3.2 to current.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vftsim.cpu.schedulers._credit_rules import CreditRules
from vftsim.cpu.vcpu import Vcpu


@dataclass(slots=True, eq=False)
class CreditRecord:
    """What the credit scheduler knows of a vCPU; ``home`` is the pCPU whose queue it belongs to."""

    vcpu: Vcpu
    account: Account
    home: int
    credit: int = 0
    priority: int = -1
    parked: bool = False
    queued: bool = False
    active: bool = False
    kicked_away: bool = False
    uncharged_ns: int = 0
    running_since_ns: int = 0
    stopped_ns: int = -(10**18)


@dataclass(slots=True, eq=False)
class Account:
    """A domain: its weight, its cap in credits a period (0: none) and its active vCPUs, newest first."""

    weight: int
    cap_credits: int
    active: list[CreditRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Allotment:
    """What each active vCPU of a domain receives, and below minus what credit a capped one is parked."""

    account: Account
    credits_per_vcpu: int
    park_below: int | None


def _up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


class Accounting:
    """The active domains, newest first, and the balance of all credits after the last distribution."""

    def __init__(self, rules: CreditRules, credits_per_slice: int) -> None:
        self.rules = rules
        self.credits_per_slice = credits_per_slice
        self.accounts: list[Account] = []
        self.balance = 0

    def activate(self, record: CreditRecord) -> None:
        """Let a vCPU earn from the next distribution on."""
        record.active = True
        if not record.account.active:
            self.accounts.insert(0, record.account)
        record.account.active.insert(0, record)

    def deactivate(self, record: CreditRecord) -> None:
        """Stop a vCPU that has saved enough from earning, and cut its credit."""
        divisor = self.rules.idle_credit_divisor
        record.credit = record.credit // divisor if divisor else 0
        record.active = False
        record.account.active.remove(record)
        if not record.account.active:
            self.accounts.remove(record.account)

    def allot(self, pcpus: int) -> list[Allotment]:
        """Distribute one period's credits over the active domains; their order may change."""
        per_slice = self.credits_per_slice
        debt = -min(self.balance, 0)
        pool = per_slice * pcpus + debt
        weights = [a.weight * (len(a.active) if self.rules.weight_per_vcpu else 1) for a in self.accounts]
        weight_total = weight_left = sum(weights)
        somebody_wants_more = False
        allotments = []
        for account, weight in zip(list(self.accounts), weights, strict=True):
            vcpus = len(account.active)
            weight_left -= weight
            peak = vcpus * per_slice + _up(debt * weight, weight_total)
            park_below = None
            if account.cap_credits:
                peak = min(peak, account.cap_credits)
                park_below = -_up(account.cap_credits, vcpus)
            fair = _up(pool * weight, weight_total)
            if fair < peak:
                somebody_wants_more = True
            else:
                if weight_left:
                    pool += _up((fair - peak) * weight_total, weight_left)
                if somebody_wants_more:
                    self.accounts.remove(account)
                    self.accounts.insert(0, account)
                fair = peak
            allotments.append(Allotment(account, _up(fair, vcpus), park_below))
        return allotments
