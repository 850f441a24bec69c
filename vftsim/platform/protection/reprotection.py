"""Restoring redundancy: the survivor is cloned onto a third host while it serves.

Rule (Scales, Nelson, Venkitachalam 2010): a new secondary is made by a modified live migration that
leaves the source running; the running VM stands still for less than a second, the whole takes minutes.
Until it is over the machine is unprotected.  Copying takes CPU from the VM (in pulses, as interrupt
work) and, on a shared network card, transmission time from its outputs.
"""

from vftsim.kernel import Engine, Record, Sim, Table, event, part
from vftsim.platform.cpu.jobs import raise_interrupt
from vftsim.platform.cpu.records import domains, vcpus
from vftsim.platform.io.link import BITS_NS, links
from vftsim.platform.protection import machine
from vftsim.platform.protection._lockstep_parameters import ReprotectionSpec
from vftsim.platform.protection.account import note, word
from vftsim.platform.protection.channel import occupy_shared
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.mechanism import begin
from vftsim.platform.protection.migration import plan_copy
from vftsim.spec.units import MS

COPY_BEGINS = word("copy begins")


class Reprotection(Record):
    """How a new secondary of one guard is made.

    The copy begins ``delay_ns`` after a loss, runs beside the guest for ``live_ns`` and stops it for ``downtime_ns``.
    While it runs, every ``pulse_ns`` it takes ``pulse_work_ns`` of CPU time and sends ``pulse_bytes`` over the link
    ``shared``, if any.  ``next_step`` and ``next_pulse`` are the tokens of what is planned.
    """

    is_wanted: bool
    delay_ns: int
    live_ns: int
    downtime_ns: int
    pulse_ns: int
    takes_cpu: bool
    pulse_work_ns: int
    pulse_bytes: int
    shared: int
    until_ns: int
    next_step: int
    next_pulse: int


reprotections = Table("reprotections", Reprotection, beside=guards)


def install(engine: Engine, guard: int, spec: ReprotectionSpec | None, shared_link: int) -> None:
    """Set up what becomes of a guard that has lost its secondary; ``None``: redundancy is not restored."""
    if spec is None:
        return
    reprotection = engine.rows(reprotections)[guard]
    plan = plan_copy(spec)
    reprotection.is_wanted = True
    reprotection.delay_ns = spec.delay
    reprotection.live_ns = plan.live_ns
    reprotection.downtime_ns = plan.downtime_ns
    # A transmitter that takes whole bursts of pages would delay outputs more than TCP does.
    pulse_ns = MS if shared_link else 10 * MS
    reprotection.pulse_ns = pulse_ns
    reprotection.takes_cpu = spec.cpu_share > 0
    reprotection.pulse_work_ns = round(pulse_ns * spec.cpu_share / 100.0)
    reprotection.pulse_bytes = spec.rate * pulse_ns // BITS_NS
    reprotection.shared = shared_link


@part
def start(sim: Sim, guard: Guard) -> None:
    """Begin anew: an attempt that is under way, if any, is given up; before protection is turned on there is none."""
    reprotection = reprotections(sim)[guard.row]
    # Tokens of 0 match no event: steps of the attempt before come to nothing.
    reprotection.next_step = 0
    reprotection.next_pulse = 0
    # An attempt that is given up may have stopped the guest for its last round.
    machine.resume(sim, guard, machine.MIGRATION)
    if reprotection.is_wanted and guard.has_begun:
        reprotection.next_step = machine.call_after(sim, guard, reprotection.delay_ns, on_copy)


@part
def copy_now(sim: Sim, guard: Guard) -> None:
    """Begin a first copy without delay: the machine was never protected."""
    reprotections(sim)[guard.row].next_step = machine.call_after(sim, guard, 0, on_copy)


@event
def on_copy(sim: Sim, guard_row: int, token: int) -> None:
    guard = guards(sim)[guard_row]
    reprotection = reprotections(sim)[guard_row]
    if is_given_up(guard, reprotection.next_step, token):
        return
    note(sim, guard, COPY_BEGINS)
    reprotection.until_ns = sim.now_ns + reprotection.live_ns
    pulse(sim, guard, reprotection)
    reprotection.next_step = machine.call_after(sim, guard, reprotection.live_ns, on_copied)


@part
def is_given_up(guard: Guard, expected: int, token: int) -> bool:
    """Tell whether a step belongs to an attempt that was given up."""
    return token != expected or guard.dead


@event
def on_pulse(sim: Sim, guard_row: int, token: int) -> None:
    """The copy continues."""
    reprotection = reprotections(sim)[guard_row]
    if not is_given_up(guards(sim)[guard_row], reprotection.next_pulse, token):
        pulse(sim, guards(sim)[guard_row], reprotection)


@part
def pulse(sim: Sim, guard: Guard, reprotection: Reprotection) -> None:
    """Take from the guest what the copy costs it, until the guest stands still."""
    if sim.now_ns >= reprotection.until_ns:
        return
    domain = domains(sim)[guard.domain]
    vcpu = vcpus(sim)[domain.first_vcpu]
    # One pulse at a time: a guest that cannot keep up pays no more than it can run.
    if reprotection.takes_cpu and vcpu.interrupts.length == 0:
        raise_interrupt(sim, domain, vcpu, reprotection.pulse_work_ns, 0, 0, 0)
    if reprotection.shared != 0:
        occupy_shared(sim, links(sim)[reprotection.shared], reprotection.pulse_bytes)
    reprotection.next_pulse = machine.call_after(sim, guard, reprotection.pulse_ns, on_pulse)


@event
def on_copied(sim: Sim, guard_row: int, token: int) -> None:
    """The guest stands still for the last round."""
    guard = guards(sim)[guard_row]
    reprotection = reprotections(sim)[guard_row]
    if not is_given_up(guard, reprotection.next_step, token):
        machine.stop(sim, guard, machine.MIGRATION)
        reprotection.next_step = machine.call_after(sim, guard, reprotection.downtime_ns, on_ready)


@event
def on_ready(sim: Sim, guard_row: int, token: int) -> None:
    """The new secondary is in step."""
    guard = guards(sim)[guard_row]
    if not is_given_up(guard, reprotections(sim)[guard_row].next_step, token):
        # The guest runs in the same instant in which it is protected: nothing it does falls between the two.
        machine.resume(sim, guard, machine.MIGRATION)
        begin(sim, guard)
