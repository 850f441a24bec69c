"""The operating system of a domain, as far as it decides which work its vCPUs do next.

Rules: interrupt work belongs to one vCPU, goes before any job and in order of arrival; the job it
displaces stays on that vCPU, as a task under an interrupt does in Linux.  Softirqs that any vCPU may do are interrupt
work of the first that looks for work.  Which job comes next, and for how long, is
the domain's process scheduler's to say (:mod:`.guest_scheduler`).  A vCPU that loses its pCPU keeps what it was doing.

Left out: load balancing between run queues (the jobs of a domain wait for all its vCPUs together), the cost of a
process switch (part of the measured demand).

Here are the functions that only look at queues; those that make a host act are in :mod:`.jobs`.
"""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.cpu import guest_scheduler
from vftsim.platform.cpu.records import Domain, Vcpu, domains, work_list, works


def next_run(sim: Sim, vcpu: Vcpu, domain: Domain = BESIDE) -> int:
    """Choose what ``vcpu`` does now; return how long at most in ns, -1 if it has nothing to do."""
    # Work in progress stays on its vCPU, to be continued when the domain is thawed.
    if domain.frozen:
        return -1
    if vcpu.interrupts.length == 0 and domain.softirqs.length > 0:
        work_list.push(sim, vcpu.interrupts, work_list.pop(sim, domain.softirqs))
    if vcpu.interrupts.length > 0:
        first = vcpu.interrupts.first
        if vcpu.current != first:
            if vcpu.current != 0:
                # Only a job can be here: interrupt work stays the first of its list until it is done.
                vcpu.interrupted = vcpu.current
            vcpu.current = first
        return works(sim)[first].remaining_ns
    return guest_scheduler.go_on(sim, domain, vcpu)


def finish(sim: Sim, vcpu: Vcpu) -> int:
    """Take note that the planned run is over; return the piece of work if that was all of it, else 0."""
    current = vcpu.current
    if current == 0:
        return 0
    domain = domains(sim)[vcpu.domain]
    is_interrupt = vcpu.interrupts.length > 0 and vcpu.interrupts.first == current
    if works(sim)[current].remaining_ns > 0:
        # Interrupt work, which has no quantum, comes here too: frozen during the switch to its vCPU.
        if not is_interrupt:
            guest_scheduler.run_over(sim, domain, vcpu)
        return 0
    if is_interrupt:
        work_list.pop(sim, vcpu.interrupts)
    else:
        guest_scheduler.job_done(sim, domain, vcpu)
    vcpu.current = 0
    return current
