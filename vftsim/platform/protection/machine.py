"""The protected virtual machine as its hypervisor sees it: it can stop it, cut its network, lose it.

Several causes can stop a guest at once (a full log buffer, a pause, a migration's last round): it runs
again when the last of them is over.  While it is stopped its virtual network card takes packets into
its ring and raises no interrupt.
"""

from vftsim.kernel import Engine, EventKind, Sim, at
from vftsim.platform.cpu import jobs, records
from vftsim.platform.cpu.records import domains, uncharged_ns, vcpus
from vftsim.platform.io import packet
from vftsim.platform.io.packet import applications, ports
from vftsim.platform.protection.guard import Guard, before_stop, guarded_ports, guards, port_list, program_list

DEAD, PAUSE, LOG_BUFFER, FAILOVER, MIGRATION, THROTTLE, STATE = 1, 2, 4, 8, 16, 32, 64
"""Reasons to stand still, a bit each; parts outside this package take bits from 2**16 on."""

RINGS_BY_PATH, LOST_RINGS, SAVED_RINGS = 0, 1, 2
"""What becomes of packets in a guest's receive rings when its state is restored."""

ENTITY = 2
"""Orders what a hypervisor does by itself among simultaneous events of the kind ``CONTROL``."""


def run_ns(sim: Sim, guard: Guard) -> int:
    """Return the CPU time that the guest has used up to now."""
    return records.run_ns(sim, domains(sim)[guard.domain])


def used_ns(engine: Engine, guard: int) -> int:
    """Return the same from outside a run."""
    domain = engine.rows(domains)[engine.rows(guards)[guard].domain]
    first = int(domain.first_vcpu)
    of_guest = (engine.rows(vcpus)[row] for row in range(first, first + int(domain.vcpus)))
    return sum(int(vcpu.run_ns) + int(uncharged_ns(vcpu, engine.now_ns)) for vcpu in of_guest)


def cpu_speed(engine: Engine, guard: int) -> float:
    """Return the speed of the guest's pCPUs, of which those of the second host are taken to be, too."""
    return float(engine.rows(domains)[engine.rows(guards)[guard].domain].cpu_speed)


def work_speed(engine: Engine, guard: int) -> float:
    """Return how much of its programs' work the guest does in a time of its CPU, relative to bare metal of speed 1."""
    return cpu_speed(engine, guard) / (engine.rows(domains)[engine.rows(guards)[guard].domain].cpu_inflation or 1.0)


def on_host_ns(engine: Engine, guard: int, stated_ns: float) -> int:
    """Return what CPU work of the hypervisor takes on the guest's host, of which the time at speed 1 is stated."""
    return round(stated_ns / cpu_speed(engine, guard))


def stop(sim: Sim, guard: Guard, reason: int) -> None:
    """Stop the guest at once."""
    # The first cause stops the guest; a further one only keeps it so.
    if guard.reasons == 0:
        # While it still runs: what the mechanism reads of its CPU time ends at this instant.
        before_stop(sim, guard)
        guard.stopped_since_ns = sim.now_ns
        guard.stopped = True
        mask_ports(sim, guard)
        jobs.freeze(sim, domains(sim)[guard.domain])
    guard.reasons |= reason


def resume(sim: Sim, guard: Guard, reason: int) -> None:
    """Take one cause away; the guest continues when none is left."""
    if guard.reasons & reason != 0:
        guard.reasons -= reason
        if guard.reasons == 0:
            unfreeze(sim, guard)


def unfreeze(sim: Sim, guard: Guard) -> None:
    """Let a stopped guest run."""
    # The records first: packets that are announced below, and work that is thawed, find a guest that runs.
    guard.stopped = False
    guard.resumed_ns = sim.now_ns
    guard.stopped_ns += sim.now_ns - guard.stopped_since_ns
    unmask_ports(sim, guard)
    jobs.thaw(sim, domains(sim)[guard.domain])


def unstopped_ns(sim: Sim, guard: Guard) -> int:
    """Return how much of the time up to now the guest did not stand still."""
    now_ns = guard.stopped_since_ns if guard.stopped else sim.now_ns
    return now_ns - guard.stopped_ns


def stood_still_ns(engine: Engine, guard: int) -> int:
    """Return how long the guest has stood still up to now."""
    record = engine.rows(guards)[guard]
    return int(record.stopped_ns) + (engine.now_ns - int(record.stopped_since_ns) if record.stopped else 0)


def kill(sim: Sim, guard: Guard) -> None:
    """Lose the machine for good, unless :func:`reboot` brings it back."""
    # Stopped while it still counts as alive: the mechanism brings its records up to this instant.
    stop(sim, guard, DEAD)
    guard.dead = True
    disconnect(sim, guard)


def reboot(sim: Sim, guard: Guard) -> None:
    """Start with empty memory on a working host."""
    jobs.forget(sim, domains(sim)[guard.domain])
    for port in ports.listed(sim, port_list, guard.ports):
        packet.forget(sim, port)
    # Before the programs begin anew: nobody protects the machine yet.
    set_overhead(sim, guard, 0, 1.0, 1.0)
    for application in applications.listed(sim, program_list, guard.programs):
        packet.lose_state(sim, application)
    # Packets and programs have forgotten everything by now: nothing of the incarnation before is thawed.
    guard.dead = False
    # Causes of the incarnation before are void, and their ends find nothing to resume.
    guard.reasons = 0
    move(sim, guard)
    unfreeze(sim, guard)
    # Last: a packet that enters finds a guest that runs.
    connect(sim, guard)


def disconnect(sim: Sim, guard: Guard) -> None:
    """Cut the network: packets in the rings and packets to come are lost."""
    unplug(sim, guard, LOST_RINGS)


def unplug(sim: Sim, guard: Guard, rings: int) -> None:
    """Cut the network of a guest whose state continues elsewhere: packets to come are lost, those in its rings as said.

    ``rings`` is :data:`LOST_RINGS`, :data:`SAVED_RINGS`, or :data:`RINGS_BY_PATH`: whatever its path does with them.
    """
    for port in ports.listed(sim, port_list, guard.ports):
        if rings == SAVED_RINGS or (rings == RINGS_BY_PATH and port.saves_ring):
            packet.unplug(sim, port)
        else:
            packet.disconnect(sim, port)


def connect(sim: Sim, guard: Guard) -> None:
    """Connect the network again, unless the machine is dead."""
    row = guard.ports.first
    # A late announcement of a machine that has died since connects nothing.
    while row != 0 and not guard.dead:
        packet.connect(sim, ports(sim)[row])
        row = guarded_ports(sim)[row].next_row


def move(sim: Sim, guard: Guard) -> None:
    """Put the machine on another host, whose network card works; what paused it on the one before pauses it no more."""
    for port in ports.listed(sim, port_list, guard.ports):
        port.dead_card = 0
    guard.pause_end_ns = 0
    resume(sim, guard, PAUSE)


def mask_ports(sim: Sim, guard: Guard) -> None:
    """Announce no packet to the guest."""
    for port in ports.listed(sim, port_list, guard.ports):
        packet.mask(sim, port)


def unmask_ports(sim: Sim, guard: Guard) -> None:
    """Announce packets to the guest again."""
    for port in ports.listed(sim, port_list, guard.ports):
        packet.unmask(sim, port)


def set_overhead(sim: Sim, guard: Guard, output_ns: int, execution: float, exits: float) -> None:
    """Let the guest's work cost from now on what protection makes it cost."""
    for application in applications.listed(sim, program_list, guard.programs):
        packet.set_overhead(sim, application, output_ns, execution, exits)


def call_after(sim: Sim, guard: Guard, delay_ns: int, action: int) -> int:
    """Plan an ``event`` of the hypervisor with the row of the guard; return its token."""
    return at(sim, sim.now_ns + delay_ns, EventKind.CONTROL, ENTITY, action, guard.row)
