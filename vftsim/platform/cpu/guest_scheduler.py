"""What a guest asks of its process scheduler: which job a virtual CPU does next, and for how long.

The defaults of the slots are the rule ``round_robin`` (:mod:`.guest_schedulers.round_robin`): it knows jobs
only.  Those that know processes, sleep and priorities have most of it in common (:mod:`.processes`).  A domain
says by its field ``guest_scheduler`` which one it has.

None of these functions makes a host act: a host calls them while it changes what a virtual CPU does.  What
follows from a new job, the end of somebody's run, is :func:`vftsim.platform.cpu.jobs.make_room`.
"""

from vftsim.kernel import Sim, Sort
from vftsim.platform.cpu.records import Domain, Vcpu, Work, work_list, works

guest_scheduler = Sort("guest_scheduler", by="guest_scheduler")

JOB, NEXT, BACKGROUND = 0, 1, 2
"""How a job joins: behind the others, before them as its process keeps the CPU, after all others."""


@guest_scheduler.slot
def new_process(sim: Sim, domain: Domain, sleeps_on_disk: bool) -> int:
    """Return a new process, which sleeps for now; 0 where the scheduler knows jobs only."""
    return 0


@guest_scheduler.slot
def enqueue(sim: Sim, domain: Domain, row: int, where: int) -> bool:
    """Take in a job; tell whether an idle vCPU is to be woken for it."""
    if where == BACKGROUND:
        work_list.push(sim, domain.background, row)
    elif where == NEXT:
        work_list.push_front(sim, domain.jobs, row)
    else:
        work_list.push(sim, domain.jobs, row)
    return True


@guest_scheduler.slot
def go_on(sim: Sim, domain: Domain, vcpu: Vcpu) -> int:
    """Set the job of a vCPU that has no interrupt work; return how long it runs at most in ns, -1 if there is none."""
    # A vCPU that comes back with a job, after it has lost its pCPU, continues it.
    if vcpu.current == 0:
        take_job(sim, domain, vcpu)
        if vcpu.current == 0:
            return -1
    return job_run(sim, domain, works(sim)[vcpu.current])


def take_job(sim: Sim, domain: Domain, vcpu: Vcpu) -> None:
    """Give an idle vCPU the job it was interrupted in, else the next one that waits, if any."""
    # This one first: it stands in no queue.
    if vcpu.interrupted != 0:
        vcpu.current = vcpu.interrupted
        vcpu.interrupted = 0
    elif domain.jobs.length > 0:
        vcpu.current = work_list.pop(sim, domain.jobs)
    else:
        vcpu.current = work_list.pop(sim, domain.background)
    if vcpu.current != 0:
        count_switch(domain, vcpu, task_of(works(sim)[vcpu.current]))


def task_of(work: Work) -> int:
    """Return whose job this is: a process, or below 0 what stands for one where jobs have none."""
    return work.process if work.process != 0 else -1 - work.on_done - (work.target << 12)


def count_switch(domain: Domain, vcpu: Vcpu, task: int) -> None:
    """Count a switch, if the vCPU goes on with another task than before; an idle CPU keeps the last one's memory."""
    if vcpu.last_task != task:
        vcpu.last_task = task
        domain.switches += 1


def job_run(sim: Sim, domain: Domain, work: Work) -> int:
    """Return how long a job runs on: to its end, or to the end of its quantum if others wait."""
    if work.remaining_ns <= work.quantum_left_ns:
        return work.remaining_ns
    if domain.jobs.length == 0:
        # It runs past its quantum: the next job that comes must limit it (jobs.end_unlimited_runs()).
        domain.has_unlimited = True
        return work.remaining_ns
    if work.quantum_left_ns <= 0:
        # Quanta that passed while it ran alone expired unnoticed: what counts is the rest of the present one.
        rest_ns = work.quantum_left_ns % domain.quantum_ns
        work.quantum_left_ns = rest_ns if rest_ns > 0 else domain.quantum_ns
    return min(work.remaining_ns, work.quantum_left_ns)


@guest_scheduler.slot
def charge_job(sim: Sim, domain: Domain, vcpu: Vcpu, ran_ns: int) -> None:
    """Take note that what a vCPU does has run so long since it was last charged."""


@guest_scheduler.slot
def run_over(sim: Sim, domain: Domain, vcpu: Vcpu) -> None:
    """The planned run is over and the work is not done."""
    current = vcpu.current
    work = works(sim)[current]
    # A run that ended before its quantum, because the domain was frozen during the switch, leaves the job as it is.
    if work.quantum_left_ns <= 0:
        work.quantum_left_ns = domain.quantum_ns
        if domain.jobs.length > 0:
            work_list.push(sim, domain.jobs, current)
            vcpu.current = 0


@guest_scheduler.slot
def job_done(sim: Sim, domain: Domain, vcpu: Vcpu) -> None:
    """The vCPU's job has been done; who wanted it hears of it next."""


@guest_scheduler.slot
def before_thaw(sim: Sim, domain: Domain) -> None:
    """Say what vCPUs are to do with which the domain was frozen between two jobs."""


@guest_scheduler.slot
def jobs_waiting(sim: Sim, domain: Domain) -> int:
    """Return how many vCPUs without work the waiting jobs can keep busy."""
    return domain.jobs.length + domain.background.length


@guest_scheduler.slot
def forget_jobs(sim: Sim, domain: Domain) -> None:
    """Lose all jobs that wait, and what the scheduler has on the vCPUs; interrupt work is not its business."""
    while domain.jobs.length > 0:
        works.free(sim, work_list.pop(sim, domain.jobs))
    while domain.background.length > 0:
        works.free(sim, work_list.pop(sim, domain.background))
