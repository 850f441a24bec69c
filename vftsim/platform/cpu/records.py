"""The records of a host: physical CPUs, virtual CPUs, domains, work.

Row 0 of every table is nobody, so a field that holds a row and is 0 says "none".
"""

from typing import Annotated

from vftsim.kernel import Chain, Family, Fifo, Record, Row, Sim, Table

BLOCKED, RUNNABLE, RUNNING = 0, 1, 2
"""Where a vCPU stands with the hypervisor's scheduler."""

IDLE_FOREVER = -1
"""A slice without an end."""

BUSY = -1
"""``Pcpu.idle_since_ns`` of a pCPU that is not idle."""

WORD_BITS = 32
MOST_PCPUS = 1024


class Host(Row):
    """Physical CPUs under one scheduler; its pCPUs and vCPUs stand in consecutive rows.

    ``acts_at_once``: pCPUs that are asked now need not wait for timers of this instant.  ``finishing`` is the vCPU of
    the finished work whose callback runs, 0 for none.
    """

    scheduler: int
    first_pcpu: int
    pcpus: int
    first_vcpu: int
    vcpus: int
    switch_cost_ns: int
    cpu_speed: float
    context_switches: int
    begin_ns: int
    observed: bool
    acts_at_once: bool
    finishing: int


class Pcpu(Row):
    """A physical CPU.

    ``number`` counts from 0 on its host and orders simultaneous events; ``starting_vcpus`` vCPUs start there.
    ``completion``, ``slice_end`` and ``choice`` are the events planned for it (0: none): the end of the present run, of
    the slice, and its choice at this instant (below 0: at once).
    """

    host: int
    number: int
    starting_vcpus: int
    running: int
    last: int
    completion: int
    slice_end: int
    choice: int
    slice_ns: int
    busy_ns: int
    switching_ns: int
    idle_ns: int
    idle_since_ns: int
    switch_left_ns: int


class Vcpu(Row):
    """A virtual CPU: identity and the accounts every scheduler may read.

    ``pcpu`` is where it runs, ``last_pcpu`` where it ran last.  ``run_ns`` is complete up to the last time the host
    charged it, ``wait_ns`` up to its last dispatch.  ``dispatched_ns`` is when it was last charged; it lies in the
    future while the switch to it lasts.  ``interrupted`` is the job that interrupt work has displaced;
    ``last_task`` says whose job it did last.
    """

    host: int
    number: int
    domain: int
    state: int
    pcpu: int
    last_pcpu: int
    run_ns: int
    wait_ns: int
    waiting_since_ns: int
    wakeups: int
    context_switches: int
    migrations: int
    dispatched_ns: int
    current: int
    interrupted: int
    interrupts: Fifo
    last_task: int


def uncharged_ns(vcpu: Vcpu, now_ns: int) -> int:
    """Return how long a vCPU has run since it was last charged; during the switch to it (dispatched_ns ahead): 0."""
    return max(now_ns - vcpu.dispatched_ns, 0) if vcpu.pcpu != 0 else 0


class Affinity(Record):
    """pCPUs a vCPU may run on, a bit for each by number, and how many they are."""

    words: Annotated[list[int], MOST_PCPUS // WORD_BITS]


class Domain(Row):
    """A domain: its vCPUs stand in consecutive rows and share its jobs.

    ``switches`` counts how often a vCPU went on with another process than the one it did last.
    ``cpu_speed`` is that of its host's pCPUs, as a multiple of the one that work is stated for; ``cpu_inflation`` times
    as much CPU work its applications do for the same (0: 1).
    ``guest_scheduler`` is the kind of its process scheduler, 0 for the one by default.  While it ``buffers`` what its
    devices and timers interrupt it with, that waits ``buffered`` until it is delivered, and jobs of processes
    that are ``woken`` by it.  ``softirqs`` wait for any of its vCPUs, which does them before its jobs.
    """

    host: int
    guest_scheduler: int
    first_vcpu: int
    vcpus: int
    quantum_ns: int
    cpu_speed: float
    jobs: Fifo
    background: Fifo
    softirqs: Fifo
    cpu_inflation: float
    frozen: bool
    buffers: bool
    buffered: Fifo
    woken: Fifo
    has_unlimited: bool
    switches: int


class Work(Record):
    """A piece of CPU work; ``on_done`` is called with ``target`` and ``argument`` when it has been done.

    ``process`` is the one it belongs to; 0: it is interrupt work, or a process by itself.
    """

    link: int
    process: int
    remaining_ns: int
    quantum_left_ns: int
    on_done: int
    target: int
    argument: int


class PcpuQueue(Record):
    """pCPUs of a host that choose again at once: the first ``queued`` rows."""

    rows: Annotated[list[int], MOST_PCPUS]
    queued: int


hosts = Table("hosts", Host, 256)
pcpus = Table("pcpus", Pcpu, 4096)
vcpus = Table("vcpus", Vcpu, 8192)
affinities = Table("affinities", Affinity, beside=vcpus)
asked = Table("asked", PcpuQueue, beside=hosts)
domains = Table("domains", Domain, 4096)
works = Table("works", Work, 1 << 20, "shorten queues or lower the load")
work_list = Chain(works, "link")

work_done = Family("work_done", 2)
"""What happens when a piece of work has been done: ``(sim, target, argument)``."""


def run_ns(sim: Sim, domain: Domain) -> int:
    """Return the CPU time of a domain up to now."""
    total_ns = 0
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        total_ns += vcpu.run_ns + uncharged_ns(vcpu, sim.now_ns)
    return total_ns
