"""Processes of a guest: what the schedulers that know sleep and priorities have in common.

A process does its jobs one after the other, in order.  It sleeps while it has none; a job wakes it.  The
process whose job has just been done stays on its vCPU until what hears of it returns, so a process that goes on
at once does not sleep.  A job without a process is one by itself, which ends with the job.

A scheduler of this kind (:func:`share_processes`) says what happens when a process wakes, falls asleep, leaves
its vCPU or has run for as long as it may; which of those that wait is next; and whether a newcomer pre-empts.

Left out: run queues of their own for each vCPU and the balancing between them (the processes of a domain wait
for all its vCPUs together); the time of interrupts, which real kernels charge to the process they hit.
"""

from typing import Any

from vftsim.kernel import BESIDE, Chain, Engine, Fifo, Kind, Record, Row, Sim, Table
from vftsim.platform.cpu import guest_scheduler as slots
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.host import interrupt, sync
from vftsim.platform.cpu.jobs import make_room
from vftsim.platform.cpu.records import RUNNING, Domain, Vcpu, domains, vcpus, work_list, works

ASLEEP, READY, ON_CPU = 0, 1, 2
NO_LIMIT_NS = 1 << 61
NICE_0 = 1024

# Linux kernel/sched: weights of the nice levels -20 to 19, about 1.25 times a step.
WEIGHTS = (
    88761,
    71755,
    56483,
    46273,
    36291,
    29154,
    23254,
    18705,
    14949,
    11916,
    9548,
    7620,
    6100,
    4904,
    3906,
    3121,
    2501,
    1991,
    1586,
    1277,
    1024,
    820,
    655,
    526,
    423,
    335,
    272,
    215,
    172,
    137,
    110,
    87,
    70,
    56,
    45,
    36,
    29,
    23,
    18,
    15,
)


class Process(Row):
    """A process; ``jobs`` it has to do, the first being done.  ``idle`` links those of a program that wait for any.

    ``is_single``: it ends with its job.  ``sleeps_on_disk``: its sleeps are waits for a disk, which no signal
    ends.
    """

    domain: int
    member: int
    state: int
    nice: int
    weight: int
    is_single: bool
    sleeps_on_disk: bool
    jobs: Fifo
    idle: int


class ProcessDomain(Record):
    """The processes of a domain; ``ready`` of them wait for a vCPU.  ``newcomer`` woke last."""

    members: Fifo
    ready: int
    newcomer: int


class ProcessVcpu(Record):
    """The process on a vCPU, 0 for none.

    ``must_choose``: it is to be weighed against the others.  ``has_finished``: its job has just been done.
    """

    process: int
    must_choose: bool
    has_finished: bool


processes = Table("processes", Process, 1 << 17, "give the servers fewer processes")
process_domains = Table("process_domains", ProcessDomain, beside=domains)
process_vcpus = Table("process_vcpus", ProcessVcpu, beside=vcpus)
member_list = Chain(processes, "member")


def add_process(engine: Engine, domain: int, spec: GuestSchedulerSpec, nice: int = 0) -> int:
    """Add a process to a domain; return its row.  Under ``round_robin`` it makes no difference."""
    row, _ = engine.add(processes, domain=domain, nice=nice, weight=WEIGHTS[nice + 20])
    spec.add(engine, row)
    return row


# What a scheduler of processes says


@guest_scheduler.slot
def begin_process(sim: Sim, domain: Domain, process: Process) -> None:
    """Set what a process begins with that comes while a run goes on."""


@guest_scheduler.slot
def awake(sim: Sim, domain: Domain, process: Process, by_interrupt: bool) -> None:
    """Take in a process that has something to do; ``by_interrupt``: no process has woken it."""


@guest_scheduler.slot
def asleep(sim: Sim, domain: Domain, process: Process) -> None:
    """Let go a process that has nothing to do: it was on a vCPU, or has been forgotten while it waited."""


@guest_scheduler.slot
def off_cpu(sim: Sim, domain: Domain, process: Process) -> None:
    """Take note that a process which still has something to do is weighed against the others."""


@guest_scheduler.slot
def ran(sim: Sim, domain: Domain, process: Process, ran_ns: int) -> None:
    """Take note that a process has run."""


@guest_scheduler.slot
def longest_ns(sim: Sim, domain: Domain, process: Process) -> int:
    """Return how long the process on a vCPU may run on; 0 or below: no longer."""
    return NO_LIMIT_NS


@guest_scheduler.slot
def used_up(sim: Sim, domain: Domain, process: Process) -> None:
    """Take note that a process has run for as long as it may; it is weighed against the others next."""


@guest_scheduler.slot
def pick(sim: Sim, domain: Domain) -> int:
    """Return the process, of those that are ready, that gets a vCPU; 0 if none is."""
    return 0


@guest_scheduler.slot
def preempts(sim: Sim, domain: Domain, newcomer: Process, process: Process) -> bool:
    """Tell whether a process that has woken takes the place of the one on a vCPU."""
    return False


# What they have in common


def process_of(sim: Sim, domain: Domain, row: int) -> int:
    """Return the process of a job; made for it if it names none."""
    if works(sim)[row].process == 0:
        process = new_process(sim, domain, False)
        processes(sim)[process].is_single = True
        works(sim)[row].process = process
    return works(sim)[row].process


def new_process(sim: Sim, domain: Domain, sleeps_on_disk: bool) -> int:
    """Return a new process, which sleeps for now."""
    row = processes.new(
        sim, domain=domain.row, state=ASLEEP, nice=0, weight=NICE_0, is_single=False, sleeps_on_disk=sleeps_on_disk
    )
    process = processes(sim)[row]
    begin_process(sim, domain, process)
    return row


def enqueue(sim: Sim, domain: Domain, row: int, where: int, process_domain: ProcessDomain = BESIDE) -> bool:
    """Give a process a job, and wake it if it sleeps."""
    process = processes(sim)[process_of(sim, domain, row)]
    work_list.push(sim, process.jobs, row)
    if process.state != ASLEEP:
        return False
    settle_domain(sim, domain)
    member_list.push(sim, process_domain.members, process.row)
    process.state = READY
    process_domain.ready += 1
    process_domain.newcomer = process.row
    awake(sim, domain, process, not is_woken_by_process(sim, domain))
    return True


def settle_domain(sim: Sim, domain: Domain) -> None:
    """Charge what runs up to now: where a newcomer is placed depends on it."""
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        sync(sim, vcpu)


def is_woken_by_process(sim: Sim, domain: Domain) -> bool:
    """Tell whether what happens now follows from a process's work that has just been done."""
    for process_vcpu in process_vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if process_vcpu.has_finished:
            return True
    return False


def go_on(sim: Sim, domain: Domain, vcpu: Vcpu, process_vcpu: ProcessVcpu = BESIDE) -> int:
    """Keep the process of a vCPU, or weigh it against the others; return how long it may run."""
    process_vcpu.has_finished = False
    # Nothing to take back: a displaced job is still the first of its process's jobs.
    vcpu.interrupted = 0
    if process_vcpu.process != 0:
        look_at_current(sim, domain, process_vcpu)
    if process_vcpu.process == 0 or process_vcpu.must_choose:
        choose(sim, domain, process_vcpu)
    vcpu.current = 0
    if process_vcpu.process == 0:
        return -1
    slots.count_switch(domain, vcpu, process_vcpu.process)
    process = processes(sim)[process_vcpu.process]
    vcpu.current = process.jobs.first
    # A process that has just been chosen may run for a moment at least.
    return min(works(sim)[vcpu.current].remaining_ns, max(longest_ns(sim, domain, process), 1))


def look_at_current(sim: Sim, domain: Domain, process_vcpu: ProcessVcpu, process: Process = BESIDE) -> None:
    """Let the process of a vCPU sleep if it has nothing to do, and give way if it has run for long enough."""
    if process.jobs.length == 0:
        process_vcpu.process = 0
        fall_asleep(sim, domain, process)
    elif longest_ns(sim, domain, process) <= 0:
        used_up(sim, domain, process)
        process_vcpu.must_choose = True


def fall_asleep(sim: Sim, domain: Domain, process: Process) -> None:
    """Let a process sleep."""
    process.state = ASLEEP
    member_list.remove(sim, process_domains(sim)[domain.row].members, process.row)
    # Before the row is free: the scheduler takes it out of its lists by it.
    asleep(sim, domain, process)
    if process.is_single:
        processes.free(sim, process.row)


def choose(sim: Sim, domain: Domain, process_vcpu: ProcessVcpu, process_domain: ProcessDomain = BESIDE) -> None:
    """Put the next process on a vCPU; the one there waits with the others."""
    process_vcpu.must_choose = False
    if process_vcpu.process != 0:
        process = processes(sim)[process_vcpu.process]
        process.state = READY
        process_domain.ready += 1
        off_cpu(sim, domain, process)
    process_vcpu.process = 0
    # The one that was here counts among the ready, so that it may be picked again.
    if process_domain.ready > 0:
        process_vcpu.process = pick(sim, domain)
        processes(sim)[process_vcpu.process].state = ON_CPU
        process_domain.ready -= 1


def on_job_of_process(sim: Sim, vcpu: Vcpu) -> bool:
    """Tell whether a vCPU does a job of its process, not interrupt work or nothing."""
    row = process_vcpus(sim)[vcpu.row].process
    return row != 0 and vcpu.current != 0 and vcpu.current == processes(sim)[row].jobs.first


def charge_job(sim: Sim, domain: Domain, vcpu: Vcpu, ran_ns: int) -> None:
    """Charge the process on a vCPU for what it has run."""
    if on_job_of_process(sim, vcpu):
        ran(sim, domain, processes(sim)[process_vcpus(sim)[vcpu.row].process], ran_ns)


def run_over(sim: Sim, domain: Domain, vcpu: Vcpu) -> None:
    """A run was limited; :func:`go_on` looks at what follows."""


def job_done(sim: Sim, domain: Domain, vcpu: Vcpu, process_vcpu: ProcessVcpu = BESIDE) -> None:
    """Take a job from its process, which stays on the vCPU for now."""
    work_list.pop(sim, processes(sim)[process_vcpu.process].jobs)
    process_vcpu.has_finished = True


def give_way(sim: Sim, domain: Domain, process_domain: ProcessDomain = BESIDE) -> None:
    """Let a newcomer pre-empt, and limit the runs that were planned without it."""
    for row in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
        process_vcpu = process_vcpus(sim)[row]
        if process_vcpu.process == 0 or process_domain.ready == 0:
            continue
        # It may be gone by now: a vCPU that was idle has taken it.
        newcomer = processes(sim)[process_domain.newcomer]
        if newcomer.state == READY and preempts(sim, domain, newcomer, processes(sim)[process_vcpu.process]):
            process_vcpu.must_choose = True
        vcpu = vcpus(sim)[row]
        # Not while the end of a job is being heard of (the vCPU does nothing then): its process may go on yet.
        if vcpu.state == RUNNING and vcpu.interrupts.length == 0 and vcpu.current != 0:
            interrupt(sim, vcpu)


def before_thaw(sim: Sim, domain: Domain) -> None:
    """Let processes go on whose last job froze the domain, on their vCPUs, or sleep if they have nothing to do."""
    for row in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
        vcpu, process_vcpu = vcpus(sim)[row], process_vcpus(sim)[row]
        if process_vcpu.process == 0 or vcpu.current != 0 or vcpu.interrupted != 0:
            continue
        process_vcpu.has_finished = False
        look_at_current(sim, domain, process_vcpu)
        if process_vcpu.process != 0:
            vcpu.current = processes(sim)[process_vcpu.process].jobs.first


def jobs_waiting(sim: Sim, domain: Domain) -> int:
    """Count processes that wait."""
    return process_domains(sim)[domain.row].ready


def forget_jobs(sim: Sim, domain: Domain, process_domain: ProcessDomain = BESIDE) -> None:
    """Lose all jobs; every process sleeps."""
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        # Cleared, so that :func:`.jobs.forget` does not free a second time what is freed with its process below.
        if on_job_of_process(sim, vcpu):
            vcpu.current = 0
        vcpu.interrupted = 0
        process_vcpu = process_vcpus(sim)[vcpu.row]
        process_vcpu.process = 0
        process_vcpu.must_choose = False
        process_vcpu.has_finished = False
    while process_domain.members.length > 0:
        process = processes(sim)[process_domain.members.first]
        while process.jobs.length > 0:
            works.free(sim, work_list.pop(sim, process.jobs))
        fall_asleep(sim, domain, process)
    process_domain.ready = 0


def share_processes(kind: Kind) -> Kind:
    """Give a kind of guest scheduler what schedulers of processes have in common; return it."""
    shared: tuple[tuple[Any, Any], ...] = (
        (slots.new_process, new_process),
        (slots.enqueue, enqueue),
        (slots.go_on, go_on),
        (slots.charge_job, charge_job),
        (slots.run_over, run_over),
        (slots.job_done, job_done),
        (slots.before_thaw, before_thaw),
        (slots.jobs_waiting, jobs_waiting),
        (slots.forget_jobs, forget_jobs),
        (make_room, give_way),
    )
    for slot, function in shared:
        kind.implements(slot)(function)
    return kind
