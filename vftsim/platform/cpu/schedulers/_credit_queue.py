"""The run queues of Xen's credit scheduler: who stands where, and who is told of a newcomer."""

from vftsim.kernel import Sim, part
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import ask
from vftsim.platform.cpu.notes import PRIORITY, note
from vftsim.platform.cpu.records import Host, Vcpu, pcpus, vcpus
from vftsim.platform.cpu.schedulers._credit_records import (
    ALL_IDLERS,
    BOOST,
    NS_PER_CREDIT,
    ONE_IDLER,
    UNDER,
    CreditHost,
    CreditVcpu,
    credit_hosts,
    credit_pcpus,
    credit_vcpus,
    queue_list,
)


@part
def set_priority(sim: Sim, host: Host, vcpu: Vcpu, priority: int) -> None:
    """Move a vCPU to another class."""
    own = credit_vcpus(sim)[vcpu.row]
    if own.priority != priority:
        own.priority = priority
        if host.observed:
            note(sim, PRIORITY, 0, vcpu.row, priority)


@part
def debit(rules: CreditHost, own: CreditVcpu) -> None:
    """Turn time run into credits paid; what is less than a credit waits for the next time."""
    if not rules.exact_debit or own.uncharged_ns <= 0:
        return
    half = 0 if rules.carries_residue else NS_PER_CREDIT // 2
    paid = (own.uncharged_ns + half) // NS_PER_CREDIT
    own.credit -= paid
    own.uncharged_ns -= paid * NS_PER_CREDIT


@part
def insert(sim: Sim, vcpu: Vcpu) -> None:
    """Queue a vCPU at home: behind all entries that are at least as urgent, up to the first that is less."""
    own = credit_vcpus(sim)[vcpu.row]
    queue = credit_pcpus(sim)[own.home].queue
    before = 0
    here = queue.first
    while here != 0 and credit_vcpus(sim)[here].priority >= own.priority:
        before = here
        here = credit_vcpus(sim)[here].next_queued
    queue_list.insert_after(sim, queue, before, vcpu.row)
    own.queued = True


@part
def enqueue_new(sim: Sim, host: Host, vcpu: Vcpu, may_boost: bool) -> None:
    """Queue a vCPU that was not runnable here before, and tell who should choose again."""
    rules = credit_hosts(sim)[host.row]
    if may_boost and rules.boosts_wakes and credit_vcpus(sim)[vcpu.row].priority == UNDER:
        set_priority(sim, host, vcpu, BOOST)
        rules.boosts += 1
    insert(sim, vcpu)
    tell_of(sim, host, vcpu)


@part
def is_idle(sim: Sim, pcpu: int) -> bool:
    """Tell whether a pCPU has nothing to run and nothing queued."""
    own = credit_pcpus(sim)[pcpu]
    return own.current == 0 and own.queue.length == 0


@part
def is_suitable(sim: Sim, vcpu: Vcpu, pcpu: int) -> bool:
    """Tell whether a pCPU is idle and the vCPU may run there."""
    return is_idle(sim, pcpu) and scheduler.may_run(sim, vcpu, pcpus(sim)[pcpu])


@part
def first_suitable(sim: Sim, host: Host, vcpu: Vcpu, after: int, but: int) -> int:
    """Return the first idle pCPU above the row ``after`` where the vCPU may run, other than ``but``; 0 if none."""
    for row in range(max(after + 1, host.first_pcpu), host.first_pcpu + host.pcpus):
        if row != but and is_suitable(sim, vcpu, row):
            return row
    return 0


@part
def tell_next_idler(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    """Wake one idle pCPU where the vCPU may run, in turn; False if there is none."""
    rules = credit_hosts(sim)[host.row]
    row = first_suitable(sim, host, vcpu, rules.last_tickled, 0)
    if row == 0:
        row = first_suitable(sim, host, vcpu, 0, 0)
    if row == 0:
        return False
    rules.last_tickled = row
    ask(sim, pcpus(sim)[row])
    return True


@part
def tell_of(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Have the pCPUs choose again that the release's rule names when ``vcpu`` is new in its queue."""
    own = credit_vcpus(sim)[vcpu.row]
    running = credit_pcpus(sim)[own.home].current
    if running == 0:
        ask(sim, pcpus(sim)[own.home])
        return
    rule = credit_hosts(sim)[host.row].tickle_rule
    preempts = own.priority > credit_vcpus(sim)[running].priority
    if rule == ALL_IDLERS or rule == ONE_IDLER:
        if preempts:
            ask(sim, pcpus(sim)[own.home])
        if rule == ONE_IDLER:
            tell_next_idler(sim, host, vcpu)
        else:
            tell_all_idlers(sim, host, vcpu)
    elif not tell_next_idler(sim, host, vcpu) and preempts:
        displaced = vcpus(sim)[running]
        credit_vcpus(sim)[running].kicked_away = first_suitable(sim, host, displaced, 0, 0) != 0
        ask(sim, pcpus(sim)[own.home])


@part
def tell_all_idlers(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Wake every idle pCPU where the vCPU may run."""
    row = first_suitable(sim, host, vcpu, 0, 0)
    while row != 0:
        ask(sim, pcpus(sim)[row])
        row = first_suitable(sim, host, vcpu, row, 0)


@part
def partition(sim: Sim, pcpu: int) -> None:
    """Bring a queue back into order after accounting: all that are OVER behind the others, stably."""
    own = credit_pcpus(sim)[pcpu]
    own.needs_sort = False
    for _ in range(own.queue.length):
        row = queue_list.pop(sim, own.queue)
        if credit_vcpus(sim)[row].priority < UNDER:
            queue_list.push(sim, own.behind, row)
        else:
            queue_list.push(sim, own.queue, row)
    while own.behind.length > 0:
        queue_list.push(sim, own.queue, queue_list.pop(sim, own.behind))
