"""What a host asks of a CPU scheduler, and what it offers to one.

A scheduler is a file with its rule, its spec, its records and the functions that implement these slots.  It
plans its ticks and periods itself (:func:`~vftsim.kernel.at`); an event of its own calls
:func:`~vftsim.platform.cpu.host.sync_running` first.  Whenever a pCPU should choose again, now or in an event, it calls
:func:`~vftsim.platform.cpu.host.request_reschedule`.
"""

from vftsim.kernel import Sim, Sort
from vftsim.platform.cpu.records import BUSY, RUNNING, WORD_BITS, Host, Pcpu, Vcpu, affinities, pcpus

scheduler = Sort("scheduler", by="scheduler")


@scheduler.slot
def attach(sim: Sim, host: Host) -> None:
    """Take over the host: called once, when all vCPUs exist and none has run."""


@scheduler.slot
def wake(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Take in ``vcpu``, which became runnable; ask the pCPUs that must choose again now."""


@scheduler.slot
def block(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Let go ``vcpu``, which has nothing left to do; it was charged before this call."""


@scheduler.slot
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int) -> None:
    """Take note that ``vcpu`` has run ``ran_ns`` since it was last charged."""


@scheduler.slot
def choose(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Return the vCPU that ``pcpu`` runs next, 0 for none, and set ``pcpu.slice_ns``.

    The vCPU that ran there, if still runnable, has been charged.
    """
    return 0


@scheduler.slot
def priority(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the class ``vcpu`` is in, by the scheduler's numbers."""
    return 0


def may_run(sim: Sim, vcpu: Vcpu, pcpu: Pcpu) -> bool:
    """Tell whether the vCPU's affinity allows the pCPU."""
    return (affinities(sim)[vcpu.row].words[pcpu.number // WORD_BITS] >> (pcpu.number % WORD_BITS)) & 1 == 1


def must_wait_for_pcpu(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    """Tell whether a vCPU with something to do would not run at once: no allowed pCPU is idle, nor its own."""
    if vcpu.state == RUNNING:
        return False
    row = host.first_pcpu
    while row < host.first_pcpu + host.pcpus:
        if pcpus(sim)[row].idle_since_ns != BUSY and may_run(sim, vcpu, pcpus(sim)[row]):
            return False
        row += 1
    return True


def starting_pcpu(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Give a vCPU the allowed pCPU where the fewest start so far, lowest number first."""
    processor = 0
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        if may_run(sim, vcpu, pcpu) and (processor == 0 or pcpu.starting_vcpus < pcpus(sim)[processor].starting_vcpus):
            processor = pcpu.row
    pcpus(sim)[processor].starting_vcpus += 1
    return processor
