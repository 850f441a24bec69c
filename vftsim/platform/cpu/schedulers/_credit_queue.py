"""The run queues of Xen's credit scheduler: who stands where, and who is told of a newcomer."""

from vftsim.kernel import Sim, part
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import ask
from vftsim.platform.cpu.notes import PRIORITY, note
from vftsim.platform.cpu.records import RUNNABLE, Host, Vcpu, pcpus, vcpus
from vftsim.platform.cpu.schedulers._credit_records import (
    BOOST,
    IDLER_FIRST,
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
    owed = own.uncharged_ns + NS_PER_CREDIT // 2
    if rules.carries_residue:
        owed = own.uncharged_ns + own.rest
    paid = owed // NS_PER_CREDIT
    if rules.carries_residue:
        own.rest = owed % NS_PER_CREDIT
    own.credit -= paid
    # The rest is still part of the time not paid for: it counts twice, as in the original.
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
def wake_up(sim: Sim, host: Host, vcpu: Vcpu, may_boost: bool, waker: int) -> None:
    """Queue a vCPU that was not runnable here before, and tell who should choose again; the pCPU ``waker`` acts."""
    rules = credit_hosts(sim)[host.row]
    own = credit_vcpus(sim)[vcpu.row]
    if may_boost and rules.boosts_wakes and not own.has_moved and own.priority == UNDER:
        set_priority(sim, host, vcpu, BOOST)
        rules.boosts += 1
    own.has_moved = False
    insert(sim, vcpu)
    tell_of(sim, host, vcpu, waker)


@part
def is_suitable(sim: Sim, vcpu: Vcpu, pcpu: int) -> bool:
    """Tell whether a pCPU is idle and the vCPU may run there."""
    return credit_pcpus(sim)[pcpu].is_idler and scheduler.may_run(sim, vcpu, pcpus(sim)[pcpu])


@part
def next_suitable(sim: Sim, host: Host, vcpu: Vcpu, after: int) -> int:
    """Return the first idle pCPU behind ``after``, in turn, where the vCPU may run; 0 if there is none."""
    number = pcpus(sim)[after].number
    for step in range(1, host.pcpus + 1):
        row = host.first_pcpu + (number + step) % host.pcpus
        if is_suitable(sim, vcpu, row):
            return row
    return 0


@part
def has_idlers(sim: Sim, host: Host) -> bool:
    """Tell whether any pCPU is idle."""
    row = host.first_pcpu
    while row < host.first_pcpu + host.pcpus and not credit_pcpus(sim)[row].is_idler:
        row += 1
    return row < host.first_pcpu + host.pcpus


@part
def tickle(sim: Sim, host: Host, pcpu: int) -> None:
    """Have a pCPU choose again."""
    if credit_hosts(sim)[host.row].tickled_are_busy:
        credit_pcpus(sim)[pcpu].is_idler = False
    ask(sim, pcpus(sim)[pcpu])


@part
def tickle_next_idler(sim: Sim, host: Host, vcpu: Vcpu, waker: int) -> bool:
    """Wake one idle pCPU where the vCPU may run, in turn; False if there is none."""
    own = credit_pcpus(sim)[waker]
    row = next_suitable(sim, host, vcpu, own.last_tickled)
    if row == 0:
        return False
    own.last_tickled = row
    tickle(sim, host, row)
    return True


@part
def tell_of(sim: Sim, host: Host, vcpu: Vcpu, waker: int) -> None:
    """Have the pCPUs choose again that the release's rule names when ``vcpu`` is new in its queue."""
    own = credit_vcpus(sim)[vcpu.row]
    running = credit_pcpus(sim)[own.home].current
    rule = credit_hosts(sim)[host.row].tickle_rule
    if running == 0:
        tickle(sim, host, own.home)
        return
    preempts = own.priority > credit_vcpus(sim)[running].priority
    if rule == IDLER_FIRST:
        tell_idler_first(sim, host, vcpu, preempts, waker)
        return
    if preempts:
        tickle(sim, host, own.home)
    if rule == ONE_IDLER:
        tickle_next_idler(sim, host, vcpu, waker)
    else:
        tickle_all_idlers(sim, host, vcpu)


@part
def tell_idler_first(sim: Sim, host: Host, vcpu: Vcpu, preempts: bool, waker: int) -> None:
    """Wake an idle pCPU for ``vcpu``; without one it pre-empts at home, and who runs there may move to an idle one."""
    if not has_idlers(sim, host):
        if preempts:
            tickle(sim, host, credit_vcpus(sim)[vcpu.row].home)
        return
    if tickle_next_idler(sim, host, vcpu, waker) or not preempts:
        return
    home = credit_vcpus(sim)[vcpu.row].home
    displaced = credit_pcpus(sim)[home].current
    if credit_hosts(sim)[host.row].kicks_preempted and next_suitable(sim, host, vcpus(sim)[displaced], home) != 0:
        credit_vcpus(sim)[displaced].moves = True
        credit_hosts(sim)[host.row].kicks += 1
    tickle(sim, host, home)


@part
def tickle_all_idlers(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Wake every idle pCPU where the vCPU may run."""
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        if is_suitable(sim, vcpu, row):
            tickle(sim, host, row)


@part
def better_home(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return where a vCPU should go: its home if nobody waits there, else the next idle pCPU it may use, if any."""
    home = credit_vcpus(sim)[vcpu.row].home
    if credit_pcpus(sim)[home].queue.length == 0 or credit_pcpus(sim)[home].is_idler:
        return home
    idle = next_suitable(sim, host, vcpu, home)
    return home if idle == 0 else idle


@part
def move(sim: Sim, host: Host, vcpu: Vcpu, waker: int) -> None:
    """Give a vCPU that has left its pCPU another home, and wake it there if it has work."""
    rules = credit_hosts(sim)[host.row]
    own = credit_vcpus(sim)[vcpu.row]
    own.moves = False
    own.has_moved = not rules.boosts_migrated
    own.home = better_home(sim, host, vcpu)
    if vcpu.state == RUNNABLE and not own.parked:
        wake_up(sim, host, vcpu, True, waker)


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
