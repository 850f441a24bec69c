"""The run queues of Xen's credit scheduler: who stands where, and who is told of a newcomer."""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import request_reschedule
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


def set_priority(sim: Sim, host: Host, vcpu: Vcpu, priority: int, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Move a vCPU to another class."""
    if credit_vcpu.priority != priority:
        credit_vcpu.priority = priority
        if host.observed:
            note(sim, PRIORITY, 0, vcpu.row, priority)


def debit(rules: CreditHost, credit_vcpu: CreditVcpu) -> None:
    """Turn time run into credits paid; what is less than a credit waits for the next time."""
    if not rules.exact_debit or credit_vcpu.uncharged_ns <= 0:
        return
    owed = credit_vcpu.uncharged_ns + NS_PER_CREDIT // 2
    if rules.carries_residue:
        owed = credit_vcpu.uncharged_ns + credit_vcpu.rest
    paid = owed // NS_PER_CREDIT
    if rules.carries_residue:
        credit_vcpu.rest = owed % NS_PER_CREDIT
    credit_vcpu.credit -= paid
    # The rest is still part of the time not paid for: it counts twice, as in the original.
    credit_vcpu.uncharged_ns -= paid * NS_PER_CREDIT


def insert(sim: Sim, vcpu: Vcpu, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Queue a vCPU at its processor: behind all entries that are at least as urgent, up to the first that is less."""
    queue = credit_pcpus(sim)[credit_vcpu.processor].queue
    before = 0
    current = queue.first
    while current != 0 and credit_vcpus(sim)[current].priority >= credit_vcpu.priority:
        before = current
        current = credit_vcpus(sim)[current].next_queued
    queue_list.insert_after(sim, queue, before, vcpu.row)
    credit_vcpu.queued = True


def wake_up(sim: Sim, host: Host, vcpu: Vcpu, may_boost: bool, waker: int, rules: CreditHost = BESIDE) -> None:
    """Queue a vCPU that was not runnable here before, and tell who should choose again; the pCPU ``waker`` acts."""
    credit_vcpu = credit_vcpus(sim)[vcpu.row]
    if may_boost and rules.boosts_wakes and not credit_vcpu.has_moved and credit_vcpu.priority == UNDER:
        set_priority(sim, host, vcpu, BOOST)
        rules.boosts += 1
    # It holds for one wake.
    credit_vcpu.has_moved = False
    insert(sim, vcpu)
    runq_tickle(sim, host, vcpu, waker)


def is_suitable(sim: Sim, vcpu: Vcpu, pcpu: int) -> bool:
    """Tell whether a pCPU is idle and the vCPU may run there."""
    return credit_pcpus(sim)[pcpu].is_idler and scheduler.may_run(sim, vcpu, pcpus(sim)[pcpu])


def next_suitable(sim: Sim, host: Host, vcpu: Vcpu, after: int) -> int:
    """Return the first idle pCPU behind ``after``, in turn, where the vCPU may run; 0 if there is none."""
    number = pcpus(sim)[after].number
    # The last step comes back to ``after`` itself.
    for step in range(1, host.pcpus + 1):
        row = host.first_pcpu + (number + step) % host.pcpus
        if is_suitable(sim, vcpu, row):
            return row
    return 0


def has_idlers(sim: Sim, host: Host) -> bool:
    """Tell whether any pCPU is idle."""
    row = host.first_pcpu
    while row < host.first_pcpu + host.pcpus and not credit_pcpus(sim)[row].is_idler:
        row += 1
    return row < host.first_pcpu + host.pcpus


def tickle(sim: Sim, host: Host, pcpu: int) -> None:
    """Have a pCPU choose again."""
    if credit_hosts(sim)[host.row].tickled_are_busy:
        credit_pcpus(sim)[pcpu].is_idler = False
    request_reschedule(sim, pcpus(sim)[pcpu])


def tickle_next_idler(sim: Sim, host: Host, vcpu: Vcpu, waker: int) -> bool:
    """Wake one idle pCPU where the vCPU may run, in turn; False if there is none."""
    credit_pcpu = credit_pcpus(sim)[waker]
    row = next_suitable(sim, host, vcpu, credit_pcpu.last_tickled)
    if row == 0:
        return False
    credit_pcpu.last_tickled = row
    tickle(sim, host, row)
    return True


def runq_tickle(sim: Sim, host: Host, vcpu: Vcpu, waker: int, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Have the pCPUs choose again that the release's rule names when ``vcpu`` is new in its queue."""
    running = credit_pcpus(sim)[credit_vcpu.processor].current
    rule = credit_hosts(sim)[host.row].tickle_rule
    # Its own pCPU takes it: nobody else needs to look.
    if running == 0:
        tickle(sim, host, credit_vcpu.processor)
        return
    preempts = credit_vcpu.priority > credit_vcpus(sim)[running].priority
    if rule == IDLER_FIRST:
        tickle_idler_first(sim, host, vcpu, preempts, waker)
        return
    if preempts:
        tickle(sim, host, credit_vcpu.processor)
    if rule == ONE_IDLER:
        tickle_next_idler(sim, host, vcpu, waker)
    else:
        tickle_all_idlers(sim, host, vcpu)


def tickle_idler_first(sim: Sim, host: Host, vcpu: Vcpu, preempts: bool, waker: int) -> None:
    """Wake an idle pCPU for ``vcpu``; without one it pre-empts at its processor, and who runs there may move."""
    if not has_idlers(sim, host):
        if preempts:
            tickle(sim, host, credit_vcpus(sim)[vcpu.row].processor)
        return
    if tickle_next_idler(sim, host, vcpu, waker) or not preempts:
        return
    processor = credit_vcpus(sim)[vcpu.row].processor
    displaced = credit_pcpus(sim)[processor].current
    if credit_hosts(sim)[host.row].kicks_preempted and next_suitable(sim, host, vcpus(sim)[displaced], processor) != 0:
        credit_vcpus(sim)[displaced].moves = True
        credit_hosts(sim)[host.row].kicks += 1
    # Requested only: when it chooses, the flag says that the displaced one moves on (move()).
    tickle(sim, host, processor)


def tickle_all_idlers(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Wake every idle pCPU where the vCPU may run."""
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        if is_suitable(sim, vcpu, row):
            tickle(sim, host, row)


def better_processor(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return where a vCPU should go: its processor if nobody waits there, else the next idle one it may use."""
    processor = credit_vcpus(sim)[vcpu.row].processor
    if credit_pcpus(sim)[processor].queue.length == 0 or credit_pcpus(sim)[processor].is_idler:
        return processor
    idle = next_suitable(sim, host, vcpu, processor)
    return processor if idle == 0 else idle


def move(sim: Sim, host: Host, vcpu: Vcpu, waker: int, rules: CreditHost = BESIDE) -> None:
    """Give a vCPU that has left its pCPU another processor, and wake it there if it has work."""
    credit_vcpu = credit_vcpus(sim)[vcpu.row]
    # Once for each request: a later tick may ask for another move.
    credit_vcpu.moves = False
    credit_vcpu.has_moved = not rules.boosts_migrated
    credit_vcpu.processor = better_processor(sim, host, vcpu)
    if vcpu.state == RUNNABLE and not credit_vcpu.parked:
        wake_up(sim, host, vcpu, True, waker)


def partition(sim: Sim, pcpu: int) -> None:
    """Bring a queue back into order after accounting: all that are OVER behind the others, stably."""
    credit_pcpu = credit_pcpus(sim)[pcpu]
    credit_pcpu.needs_sort = False
    # As many as there are now: those that stay join the end of this same queue.
    for _ in range(credit_pcpu.queue.length):
        row = queue_list.pop(sim, credit_pcpu.queue)
        if credit_vcpus(sim)[row].priority < UNDER:
            queue_list.push(sim, credit_pcpu.behind, row)
        else:
            queue_list.push(sim, credit_pcpu.queue, row)
    while credit_pcpu.behind.length > 0:
        queue_list.push(sim, credit_pcpu.queue, queue_list.pop(sim, credit_pcpu.behind))
