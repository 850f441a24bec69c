"""Giving a domain work: jobs for any of its vCPUs, background jobs, interrupt work for one vCPU; freezing it."""

from vftsim.kernel import Fifo, Sim
from vftsim.platform.arithmetic import nearest
from vftsim.platform.cpu import guest_scheduler
from vftsim.platform.cpu.host import interrupt, wake
from vftsim.platform.cpu.records import BLOCKED, RUNNING, Domain, Vcpu, vcpus, work_list, works


def on_pcpu_ns(domain: Domain, demand_ns: int) -> int:
    """Return what work takes: a pCPU of twice the speed does it in half the time, to the nearest ns."""
    return demand_ns if domain.cpu_speed == 1.0 else nearest(demand_ns / domain.cpu_speed)


def new_work(
    sim: Sim, domain: Domain, demand_ns: int, quantum_ns: int, on_done: int, target: int, argument: int
) -> int:
    """Take a row for a piece of work."""
    row = works.new(sim)
    work = works(sim)[row]
    work.process = 0
    work.remaining_ns = on_pcpu_ns(domain, demand_ns)
    work.quantum_left_ns = quantum_ns
    work.on_done = on_done
    work.target = target
    work.argument = argument
    return row


def new_job(sim: Sim, domain: Domain, process: int, demand_ns: int, on_done: int, target: int, argument: int) -> int:
    """Take a row for a job of a process (0: one of its own), which is not runnable yet."""
    row = new_work(sim, domain, demand_ns, domain.quantum_ns, on_done, target, argument)
    works(sim)[row].process = process
    return row


def submit(sim: Sim, domain: Domain, demand_ns: int, on_done: int, target: int, argument: int) -> None:
    """Make a job of ``demand_ns`` runnable; ``on_done`` (a ``work_done``) hears of its end."""
    submit_for(sim, domain, 0, demand_ns, on_done, target, argument)


def submit_for(
    sim: Sim, domain: Domain, process: int, demand_ns: int, on_done: int, target: int, argument: int
) -> None:
    """Make a job of a process runnable; a process (0: one of its own) does its jobs one after the other."""
    add_job(sim, domain, new_job(sim, domain, process, demand_ns, on_done, target, argument))


def submit_from_outside(
    sim: Sim, domain: Domain, process: int, demand_ns: int, on_done: int, target: int, argument: int
) -> None:
    """Do as :func:`submit_for` for a job that a timer or a device wakes: when what is buffered is delivered."""
    row = new_job(sim, domain, process, demand_ns, on_done, target, argument)
    if domain.buffers:
        work_list.push(sim, domain.woken, row)
    else:
        add_job(sim, domain, row)


def add_job(sim: Sim, domain: Domain, row: int) -> None:
    """Make a job runnable."""
    is_new = guest_scheduler.enqueue(sim, domain, row, guest_scheduler.JOB)
    # A frozen domain only queues it: thaw() wakes as many vCPUs as there is work for.
    if is_new and not domain.frozen:
        # First: an idle vCPU may take the job at once, and then nobody has to give way.
        wake_idle_vcpu(sim, domain)
        make_room(sim, domain)


def ensure_process(sim: Sim, domain: Domain, process: int, sleeps_on_disk: bool) -> int:
    """Return a program's process as its guest's scheduler knows it, a new one for 0; 0 where that knows jobs only."""
    return process if process != 0 else guest_scheduler.new_process(sim, domain, sleeps_on_disk)


def submit_background(sim: Sim, domain: Domain, demand_ns: int, on_done: int, target: int, argument: int) -> None:
    """Make a job runnable that waits until no other job does, where the domain's scheduler knows of no priorities."""
    row = new_job(sim, domain, 0, demand_ns, on_done, target, argument)
    is_new = guest_scheduler.enqueue(sim, domain, row, guest_scheduler.BACKGROUND)
    if is_new and not domain.frozen:
        # No make_room(): nobody gives way to it.
        wake_idle_vcpu(sim, domain)


def submit_next(
    sim: Sim, domain: Domain, process: int, demand_ns: int, on_done: int, target: int, argument: int
) -> None:
    """Go on with a job of a process before any other; for the ``work_done`` of that process."""
    row = new_job(sim, domain, process, demand_ns, on_done, target, argument)
    # Nothing is woken: the callback of this process's work calls this, and then its vCPU, if it still runs, looks on.
    guest_scheduler.enqueue(sim, domain, row, guest_scheduler.NEXT)


def continue_with(sim: Sim, domain: Domain, demand_ns: int, on_done: int, target: int, argument: int) -> None:
    """Let a process go on with its next piece where it is: no wake-up, no other vCPU is asked."""
    continue_or_submit_for(sim, domain, 0, True, demand_ns, on_done, target, argument)


def continue_or_submit_for(
    sim: Sim, domain: Domain, process: int, is_running: bool, demand_ns: int, on_done: int, target: int, argument: int
) -> None:
    """Give a process (0: one of its own) its next job: a running one goes on where it is, one that slept is woken."""
    if is_running:
        row = new_job(sim, domain, process, demand_ns, on_done, target, argument)
        guest_scheduler.enqueue(sim, domain, row, guest_scheduler.JOB)
    else:
        submit_for(sim, domain, process, demand_ns, on_done, target, argument)


def raise_interrupt(
    sim: Sim, domain: Domain, vcpu: Vcpu, demand_ns: int, on_done: int, target: int, argument: int
) -> None:
    """Give ``vcpu`` interrupt work: before any job, in order of arrival."""
    add_interrupt(sim, domain, vcpu, new_work(sim, domain, demand_ns, 0, on_done, target, argument))


def raise_softirq(
    sim: Sim, domain: Domain, is_continued: bool, demand_ns: int, on_done: int, target: int, argument: int
) -> None:
    """Give a domain work for any vCPU, before any job; one that continues with it looks for it itself."""
    work_list.push(sim, domain.softirqs, new_work(sim, domain, demand_ns, 0, on_done, target, argument))
    if not is_continued and not domain.frozen and not wake_idle_vcpu(sim, domain):
        displace_job(sim, domain)


def displace_job(sim: Sim, domain: Domain) -> None:
    """Let the first vCPU that does a job do a softirq; none where one is about to look for work."""
    displaced = 0
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if vcpu.state == RUNNING and vcpu.interrupts.length == 0:
            if vcpu.current == 0:
                return
            if displaced == 0:
                displaced = vcpu.row
    if displaced != 0:
        interrupt(sim, vcpus(sim)[displaced])


def add_interrupt(sim: Sim, domain: Domain, vcpu: Vcpu, row: int) -> None:
    """Give a vCPU a piece of interrupt work."""
    work_list.push(sim, vcpu.interrupts, row)
    # It waits: thaw() wakes a vCPU with interrupt work.
    if domain.frozen:
        return
    if vcpu.state == BLOCKED:
        wake(sim, vcpu)
    elif vcpu.state == RUNNING and vcpu.interrupts.first == row:
        # Behind other interrupt work it waits for that to end: the run that is planned is the right one.
        interrupt(sim, vcpu)


def interrupt_from_outside(sim: Sim, domain: Domain, demand_ns: int, on_done: int, target: int, argument: int) -> None:
    """Let a device or a timer interrupt the first vCPU: at once, or when what is buffered is delivered."""
    row = new_work(sim, domain, demand_ns, 0, on_done, target, argument)
    if domain.buffers:
        work_list.push(sim, domain.buffered, row)
    else:
        add_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], row)


def deliver_buffered(sim: Sim, domain: Domain) -> None:
    """Deliver the interrupts that are buffered, and wake the processes that they wake."""
    while domain.buffered.length > 0:
        add_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], work_list.pop(sim, domain.buffered))
    while domain.woken.length > 0:
        add_job(sim, domain, work_list.pop(sim, domain.woken))


def wake_idle_vcpu(sim: Sim, domain: Domain) -> bool:
    """Wake the first vCPU that has nothing to do; false where there is none."""
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if vcpu.state == BLOCKED:
            wake(sim, vcpu)
            return True
    return False


@guest_scheduler.guest_scheduler.slot
def make_room(sim: Sim, domain: Domain) -> None:
    """After a job has come: end, or limit, the runs of others that must now give way."""
    if domain.has_unlimited and domain.jobs.length > 0:
        end_unlimited_runs(sim, domain)


def end_unlimited_runs(sim: Sim, domain: Domain) -> None:
    """Let runs that were planned while no job waited end with their quantum."""
    # First: a run that interrupt() plans below may be unlimited again.
    domain.has_unlimited = False
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if vcpu.current != 0 and vcpu.state == RUNNING and vcpu.interrupts.length == 0:
            work = works(sim)[vcpu.current]
            if work.remaining_ns > work.quantum_left_ns:
                interrupt(sim, vcpu)


def forget(sim: Sim, domain: Domain) -> None:
    """Lose all jobs: the memory they were in is gone."""
    # First: a process scheduler frees the jobs of its processes itself, and clears them on the vCPUs.
    guest_scheduler.forget_jobs(sim, domain)
    free_all(sim, domain.buffered)
    free_all(sim, domain.woken)
    free_all(sim, domain.softirqs)
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        # Interrupt work that is being done is the first of its list.
        if vcpu.current != vcpu.interrupts.first or vcpu.interrupts.length == 0:
            works.free(sim, vcpu.current)
        works.free(sim, vcpu.interrupted)
        vcpu.current = 0
        vcpu.interrupted = 0
        free_all(sim, vcpu.interrupts)


def free_all(sim: Sim, waiting: Fifo) -> None:
    """Lose all work of a list."""
    while waiting.length > 0:
        works.free(sim, work_list.pop(sim, waiting))


def freeze(sim: Sim, domain: Domain) -> None:
    """Stop executing at once (a pause, a crash); work in progress keeps what it has left."""
    # First: a vCPU of a frozen domain that looks for work finds none and blocks.
    domain.frozen = True
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if vcpu.state == RUNNING:
            interrupt(sim, vcpu)


def thaw(sim: Sim, domain: Domain) -> None:
    """Go on where :func:`freeze` stopped."""
    domain.frozen = False
    # First: it says which vCPUs have work of their own.
    guest_scheduler.before_thaw(sim, domain)
    # Counted before any is woken, which takes its job at once where a pCPU is free.
    waiting = guest_scheduler.jobs_waiting(sim, domain) + domain.softirqs.length
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if vcpu.state != BLOCKED:
            continue
        # One with work of its own wakes in any case, and takes none of those that wait.
        if vcpu.interrupts.length == 0 and vcpu.current == 0 and vcpu.interrupted == 0:
            if waiting <= 0:
                continue
            waiting -= 1
        wake(sim, vcpu)
