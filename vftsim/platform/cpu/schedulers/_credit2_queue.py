"""The run queue of Xen's credit2 scheduler: who joins where, which pCPU is asked for it, and the budgets of the caps.

Names in brackets are those of the functions of ``xen/common/sched/credit2.c`` that have the rule.
"""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import request_reschedule, sync
from vftsim.platform.cpu.records import RUNNABLE, Host, Vcpu, pcpus, vcpus
from vftsim.platform.cpu.schedulers._credit2_records import (
    TOLERANCE_NS,
    Credit2Host,
    Credit2Vcpu,
    credit2_domains,
    credit2_hosts,
    credit2_pcpus,
    credit2_vcpus,
    parked_list,
    waiting_list,
)


def join(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Queue a vCPU behind its equals in credit, and ask a pCPU to choose for it."""
    queue = credit2_hosts(sim)[host.row].waiting
    credit = credit2_vcpus(sim)[vcpu.row].credit
    before = 0
    here = queue.first
    while here != 0 and credit2_vcpus(sim)[here].credit >= credit:
        before = here
        here = credit2_vcpus(sim)[here].next_waiting
    waiting_list.insert_after(sim, queue, before, vcpu.row)
    runq_tickle(sim, host, vcpu)


def runq_tickle(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Ask an idle pCPU for a vCPU that has joined the queue, else one whose vCPU it may pre-empt (runq_tickle)."""
    row = idle_place(sim, host, vcpu)
    if row == 0:
        row = place_of_another(sim, host, vcpu)
    if row != 0:
        tickle(sim, row)
        # Other pCPUs leave it to this one until that has chosen (is_offered()).
        credit2_vcpus(sim)[vcpu.row].tickled_pcpu = row


def tickle(sim: Sim, row: int) -> None:
    """Have a pCPU choose; until it has, it is asked for nobody else."""
    credit2_pcpus(sim)[row].tickled = True
    request_reschedule(sim, pcpus(sim)[row])


def is_open(sim: Sim, vcpu: Vcpu, row: int) -> bool:
    """Tell whether a vCPU may run on a pCPU that has not been asked for another."""
    return not credit2_pcpus(sim)[row].tickled and scheduler.may_run(sim, vcpu, pcpus(sim)[row])


def idle_place(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the first idle pCPU for a vCPU, from its own upwards and round; 0 if there is none."""
    pcpu_record = pcpus(sim)[credit2_vcpus(sim)[vcpu.row].processor].number
    for step in range(host.pcpus):
        row = host.first_pcpu + (pcpu_record + step) % host.pcpus
        if credit2_pcpus(sim)[row].current == 0 and is_open(sim, vcpu, row):
            return row
    return 0


def place_of_another(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the pCPU whose vCPU this one may pre-empt: its own, else where its lead is greatest; 0 for none.

    No pCPU that is open to it idles.
    """
    processor = credit2_vcpus(sim)[vcpu.row].processor
    if is_open(sim, vcpu, processor) and lead_over(sim, host, vcpu, processor) > 0:
        return processor
    best = 0
    most = 0
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        if row != processor and is_open(sim, vcpu, row):
            lead = lead_over(sim, host, vcpu, row)
            if lead > most:
                best, most = row, lead
    return best


def lead_over(sim: Sim, host: Host, vcpu: Vcpu, row: int, rules: Credit2Host = BESIDE) -> int:
    """Return by how much credit a vCPU may take a pCPU from the one there; -1 if that is within its rate limit.

    From elsewhere it must be ahead by the resistance to migration (tickle_score, is_preemptable).
    """
    running = credit2_pcpus(sim)[row].current
    there = credit2_vcpus(sim)[running]
    if rules.rate_limit_ns > TOLERANCE_NS and sim.now_ns - there.since_ns <= rules.rate_limit_ns - TOLERANCE_NS:
        return -1
    # What runs burns credit up to now before the two are compared.
    sync(sim, vcpus(sim)[running])
    credit2_vcpu = credit2_vcpus(sim)[vcpu.row]
    return credit2_vcpu.credit - there.credit - (0 if credit2_vcpu.processor == row else rules.resistance)


def is_current(sim: Sim, credit2_vcpu: Credit2Vcpu, row: int) -> bool:
    return credit2_pcpus(sim)[credit2_vcpu.processor].current == row


def grab_budget(sim: Sim, host: Host, vcpu: Vcpu, credit2_vcpu: Credit2Vcpu = BESIDE) -> bool:
    """Let a vCPU draw a portion if it holds nothing, after what it has overdrawn; park it if nothing is left.

    (unit_grab_budget, park_unit)
    """
    pool = credit2_domains(sim)[vcpu.domain]
    if pool.budget_ns == 0 or credit2_vcpu.held_ns > 0:
        return True
    # Below 0 after an overdraft, which the pool bears.
    pool.left_ns += credit2_vcpu.held_ns
    credit2_vcpu.held_ns = max(min(pool.portion_ns, pool.left_ns), 0)
    if credit2_vcpu.held_ns > 0:
        pool.left_ns -= credit2_vcpu.held_ns
        return True
    credit2_vcpu.parked = True
    # One that has its pCPU is in no queue: choose() drops it.
    if not is_current(sim, credit2_vcpu, vcpu.row):
        waiting_list.remove(sim, credit2_hosts(sim)[host.row].waiting, vcpu.row)
    parked_list.push_front(sim, pool.parked, vcpu.row)
    return False


def unpark(sim: Sim, host: Host, domain: int) -> None:
    """Let the parked vCPUs of a domain compete again, the latest first (unpark_parked_units)."""
    pool = credit2_domains(sim)[domain]
    while pool.parked.length > 0:
        row = parked_list.pop(sim, pool.parked)
        # Cleared for a blocked vCPU too: its next wake queues it.
        credit2_vcpus(sim)[row].parked = False
        if vcpus(sim)[row].state == RUNNABLE:
            join(sim, host, vcpus(sim)[row])


def refill(sim: Sim, host: Host, domain: int) -> None:
    """Begin a period of a domain's cap: what was overdrawn is missing, what was left is not saved."""
    pool = credit2_domains(sim)[domain]
    pool.left_ns = min(pool.left_ns + pool.budget_ns, pool.budget_ns)
    if pool.left_ns > 0:
        unpark(sim, host, domain)
