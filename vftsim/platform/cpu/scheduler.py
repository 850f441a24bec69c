"""What a host asks of a CPU scheduler, and what it offers to one.

A scheduler is a file with its rule, its spec, its records and the functions that implement these slots.  It
plans its ticks and periods itself (:func:`~vftsim.kernel.at`); an event of its own calls
:func:`~vftsim.platform.cpu.host.settle` first and :func:`~vftsim.platform.cpu.host.carry_out` last.
"""

from vftsim.kernel import Sim, Sort, part
from vftsim.platform.cpu.records import (
    MOST_PCPUS,
    WORD_BITS,
    Host,
    Pcpu,
    PcpuQueue,
    Vcpu,
    affinities,
    asked,
    pcpus,
    tickled,
)

scheduler = Sort("scheduler", by="scheduler")


@scheduler.slot
def attach(sim: Sim, host: Host) -> None:
    """Take over the host: called once, when all vCPUs exist and none has run."""


@scheduler.slot
def wake(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Take in ``vcpu``, which became runnable; :func:`ask` the pCPUs that must choose again now."""


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
    """Return the class ``vcpu`` is in, by the scheduler's own numbers."""
    return 0


@part
def put(queue: PcpuQueue, pcpu: int) -> None:
    """Add a pCPU to a queue."""
    queue.rows[queue.queued % (4 * MOST_PCPUS)] = pcpu
    queue.queued += 1


@part
def take(queue: PcpuQueue) -> int:
    """Take the first pCPU of a queue; 0 if it is empty."""
    if queue.taken == queue.queued:
        return 0
    pcpu = queue.rows[queue.taken % (4 * MOST_PCPUS)]
    queue.taken += 1
    return pcpu


@part
def ask(sim: Sim, host: Host, pcpu: int) -> None:
    """Have ``pcpu`` choose again when the scheduler's present decision has been made."""
    put(asked(sim)[host.row], pcpu)


@part
def tickle(sim: Sim, host: Host, pcpu: int) -> None:
    """Have ``pcpu`` choose again at this instant; for use in ``choose`` and ``block``."""
    put(tickled(sim)[host.row], pcpu)


@part
def may_run(sim: Sim, vcpu: Vcpu, pcpu: Pcpu) -> bool:
    """Tell whether the vCPU's affinity allows the pCPU."""
    return (affinities(sim)[vcpu.row].words[pcpu.number // WORD_BITS] >> (pcpu.number % WORD_BITS)) & 1 == 1


@part
def row_of_pcpu(sim: Sim, host: Host, number: int) -> int:
    """Return the row of the host's pCPU of that number."""
    return host.first_pcpu + number


@part
def home_pcpu(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Give a vCPU the allowed pCPU with the fewest homes so far, lowest number first."""
    home = 0
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        pcpu = pcpus(sim)[row]
        if may_run(sim, vcpu, pcpu) and (home == 0 or pcpu.homes < pcpus(sim)[home].homes):
            home = row
    pcpus(sim)[home].homes += 1
    return home
