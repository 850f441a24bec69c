"""How Xen's credit scheduler hands out credits, once an accounting period.

Every pCPU brings one slice's worth of credits (300 at 30 ms) into a pool; a negative balance of all
credits from last time is made good.  Active domains take their share by weight in list order.  None
may take more than its active vCPUs could use in one period, or than its cap; what is left over goes to
the domains later in the list in proportion to their weights, and a domain that left something moves
to the head of the list when one before it could have used more, so that over several periods the
surplus reaches everybody.  All divisions round up, as in the original.

Source: Xen ``sched_credit.c``, accounting function, 3.2 to current.
"""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import request_reschedule
from vftsim.platform.cpu.records import BLOCKED, Host, Vcpu, pcpus, vcpus
from vftsim.platform.cpu.schedulers._credit_queue import set_priority, wake_up
from vftsim.platform.cpu.schedulers._credit_records import (
    OVER,
    UNDER,
    CreditDomain,
    CreditHost,
    CreditVcpu,
    account_list,
    active_list,
    allotment_list,
    credit_domains,
    credit_hosts,
    credit_pcpus,
    credit_vcpus,
    queue_list,
)


def rounded_up(numerator: int, denominator: int) -> int:
    """Divide and round up."""
    return -(-numerator // denominator)


def open_account(sim: Sim, host: Host, domain: int) -> None:
    """Work out a domain's cap in credits a period."""
    per_slice = credit_hosts(sim)[host.row].credits_per_slice
    credit_domains(sim)[domain].cap_credits = -int(-entitlements(sim)[domain].cap * per_slice // 100)


def activate(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Let a vCPU earn from the next distribution on."""
    account = credit_domains(sim)[vcpu.domain]
    credit_vcpus(sim)[vcpu.row].active = True
    if account.active.length == 0:
        account_list.push_front(sim, credit_hosts(sim)[host.row].accounts, vcpu.domain)
    active_list.push_front(sim, account.active, vcpu.row)


def deactivate(sim: Sim, host: Host, vcpu: Vcpu, rules: CreditHost = BESIDE, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Stop a vCPU that has saved enough from earning, and cut its credit."""
    credit_vcpu.credit = credit_vcpu.credit // rules.idle_credit_divisor if rules.idle_credit_divisor else 0
    credit_vcpu.active = False
    account = credit_domains(sim)[vcpu.domain]
    active_list.remove(sim, account.active, vcpu.row)
    if account.active.length == 0:
        account_list.remove(sim, rules.accounts, vcpu.domain)


def weight_of(sim: Sim, rules: CreditHost, domain: int) -> int:
    """Return a domain's weight in the distribution."""
    weight = entitlements(sim)[domain].weight
    return weight * credit_domains(sim)[domain].active.length if rules.weight_per_vcpu else weight


def allot(sim: Sim, host: Host, rules: CreditHost = BESIDE) -> None:
    """Distribute one period's credits over the active domains; their order may change.

    Leaves the domains in the list ``allotments``, in the order in which they were served.
    """
    debt = -min(rules.balance, 0)
    pool = rules.credits_per_slice * host.pcpus + debt
    weight_total = 0
    for domain in account_list.rows(sim, rules.accounts):
        weight_total += weight_of(sim, rules, domain)
        allotment_list.push(sim, rules.allotments, domain)
    weight_left = weight_total
    somebody_wants_more = False
    # Over a list of its own: the order of the accounts changes on the way.
    for domain in allotment_list.rows(sim, rules.allotments):
        account = credit_domains(sim)[domain]
        weight = weight_of(sim, rules, domain)
        weight_left -= weight
        peak = peak_of(rules, account, rounded_up(debt * weight, weight_total))
        fair = rounded_up(pool * weight, weight_total)
        if fair < peak:
            somebody_wants_more = True
        else:
            if weight_left != 0:
                pool += rounded_up((fair - peak) * weight_total, weight_left)
            if somebody_wants_more:
                account_list.remove(sim, rules.accounts, domain)
                account_list.push_front(sim, rules.accounts, domain)
            fair = peak
        account.credits_per_vcpu = rounded_up(fair, account.active.length)


def peak_of(rules: CreditHost, account: CreditDomain, share_of_debt: int) -> int:
    """Return the most credits a domain may take, and note below which credit a capped vCPU is parked."""
    peak = account.active.length * rules.credits_per_slice + share_of_debt
    if account.cap_credits == 0:
        return peak
    account.park_below = -rounded_up(account.cap_credits, account.active.length)
    return min(peak, account.cap_credits)


def account_for(sim: Sim, host: Host, rules: CreditHost = BESIDE) -> None:
    """Hand out credits, set priorities, park and unpark; asks the pCPUs that must choose again."""
    allot(sim, host)
    rules.balance = 0
    while rules.allotments.length > 0:
        account = credit_domains(sim)[allotment_list.pop(sim, rules.allotments)]
        row = account.active.first
        while row != 0:
            # Earning may end here, which takes the vCPU out of the list.
            following = credit_vcpus(sim)[row].next_active
            earn(sim, host, account, vcpus(sim)[row])
            rules.balance += credit_vcpus(sim)[row].credit
            row = following
    # Each pCPU sorts its queue at its next tick, not here.
    for credit_pcpu in credit_pcpus.span(sim, host.first_pcpu, host.pcpus):
        credit_pcpu.needs_sort = True


def earn(sim: Sim, host: Host, account: CreditDomain, vcpu: Vcpu, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Give a vCPU its credits, and the class that follows from them."""
    per_slice = credit_hosts(sim)[host.row].credits_per_slice
    credit_vcpu.credit += account.credits_per_vcpu
    if credit_vcpu.credit < 0:
        set_priority(sim, host, vcpu, OVER)
        # Parked by what it owes, before the debt is cut to one slice's worth.
        if account.cap_credits != 0 and credit_vcpu.credit < account.park_below:
            park(sim, host, vcpu)
        credit_vcpu.credit = max(credit_vcpu.credit, -per_slice)
        return
    set_priority(sim, host, vcpu, UNDER)
    # UNDER by now: a wake boosts only such a vCPU.
    unpark(sim, host, vcpu)
    if credit_vcpu.credit > per_slice:
        deactivate(sim, host, vcpu)


def park(sim: Sim, host: Host, vcpu: Vcpu, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Keep a vCPU beyond its cap from running."""
    if credit_vcpu.parked:
        return
    credit_vcpu.parked = True
    credit_hosts(sim)[host.row].parks += 1
    processor = credit_pcpus(sim)[credit_vcpu.processor]
    if credit_vcpu.queued:
        queue_list.remove(sim, processor.queue, vcpu.row)
        credit_vcpu.queued = False
    # Its pCPU drops it when it chooses: leave() does not queue a parked vCPU.
    if processor.current == vcpu.row:
        request_reschedule(sim, pcpus(sim)[credit_vcpu.processor])


def unpark(sim: Sim, host: Host, vcpu: Vcpu, credit_vcpu: CreditVcpu = BESIDE, rules: CreditHost = BESIDE) -> None:
    """Let a vCPU run again whose credit has come back to 0."""
    if not credit_vcpu.parked:
        return
    credit_vcpu.parked = False
    rules.unparks += 1
    # One that its pCPU has not left since it was parked is still there, and needs no queue.
    if vcpu.state != BLOCKED and credit_pcpus(sim)[credit_vcpu.processor].current != vcpu.row:
        wake_up(sim, host, vcpu, rules.boosts_unparked, host.first_pcpu)
