"""The operating system of a domain, as far as it decides which work its vCPUs do next.

Rules: interrupt work belongs to one vCPU, goes before any job and in order of arrival; the job it
displaces stays on that vCPU, as a task under an interrupt does in Linux.  Jobs wait in one queue for
all vCPUs.  A job gives way at the end of its quantum only if another waits by then: one that has run
alone for longer gives way at the next multiple of the quantum, because an expired time slice that
nobody else wants is simply refilled.  A vCPU that loses its pCPU keeps what it was doing.  Background
jobs run when no other job waits, as a process that Linux has found to compute without sleeping runs after those
that sleep much (O(1) scheduler of 2.6: dynamic priority); one that has begun is not displaced, so make them short.

Left out: other priorities among jobs, load balancing between run queues, the cost of a process switch
(part of the measured demand).

Here are the functions that only look at queues; those that make a host act are in :mod:`.jobs`.
"""

from vftsim.kernel import Sim, part
from vftsim.platform.cpu.records import Domain, Vcpu, Work, domains, work_list, works


@part
def next_run(sim: Sim, vcpu: Vcpu) -> int:
    """Choose what ``vcpu`` does now; return how long at most in ns, -1 if it has nothing to do."""
    domain = domains(sim)[vcpu.domain]
    if domain.frozen:
        return -1
    if vcpu.interrupts.length > 0:
        first = vcpu.interrupts.first
        if vcpu.current != first:
            if vcpu.current != 0:
                vcpu.interrupted = vcpu.current
            vcpu.current = first
        return works(sim)[first].remaining_ns
    if vcpu.current == 0:
        take_job(sim, domain, vcpu)
        if vcpu.current == 0:
            return -1
    return job_run(sim, domain, works(sim)[vcpu.current])


@part
def take_job(sim: Sim, domain: Domain, vcpu: Vcpu) -> None:
    """Give an idle vCPU the job it was interrupted in, else the next one that waits, if any."""
    if vcpu.interrupted != 0:
        vcpu.current = vcpu.interrupted
        vcpu.interrupted = 0
    elif domain.jobs.length > 0:
        vcpu.current = work_list.pop(sim, domain.jobs)
    else:
        vcpu.current = work_list.pop(sim, domain.background)


@part
def job_run(sim: Sim, domain: Domain, work: Work) -> int:
    """Return how long a job runs on: to its end, or to the end of its quantum if others wait."""
    if work.remaining_ns <= work.quantum_left_ns:
        return work.remaining_ns
    if domain.jobs.length == 0:
        domain.has_unlimited = True
        return work.remaining_ns
    if work.quantum_left_ns <= 0:
        # Quanta that passed while it ran alone expired unnoticed: what counts is the rest of the present one.
        rest_ns = work.quantum_left_ns % domain.quantum_ns
        work.quantum_left_ns = rest_ns if rest_ns > 0 else domain.quantum_ns
    return min(work.remaining_ns, work.quantum_left_ns)


@part
def finish(sim: Sim, vcpu: Vcpu) -> int:
    """Take note that the planned run is over; return the piece of work if that was all of it, else 0."""
    current = vcpu.current
    if current == 0:
        return 0
    work = works(sim)[current]
    is_interrupt = vcpu.interrupts.length > 0 and vcpu.interrupts.first == current
    if work.remaining_ns > 0:
        # Interrupt work, which has no quantum, comes here too: frozen during the switch to its vCPU.
        if work.quantum_left_ns <= 0 and not is_interrupt:
            domain = domains(sim)[vcpu.domain]
            work.quantum_left_ns = domain.quantum_ns
            if domain.jobs.length > 0:
                work_list.push(sim, domain.jobs, current)
                vcpu.current = 0
        return 0
    if is_interrupt:
        work_list.pop(sim, vcpu.interrupts)
    vcpu.current = 0
    return current
