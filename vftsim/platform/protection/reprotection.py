"""Restoring redundancy: the survivor is cloned onto a third host while it serves.

Rule (Scales, Nelson, Venkitachalam 2010): a new secondary is made by a modified live migration that
leaves the source running; the running VM stands still for less than a second, the whole takes minutes.
Until it is over the machine is unprotected.  The disk, if it is copied, goes first, as round 0; the memory goes in
rounds (:mod:`.migration`) and takes CPU from the VM, as interrupt work: its share of the time in which it goes at its
rate.

On a link that others use, its rounds are pieces among the frames there (:func:`.channel.queue_piece`), as TCP sends: no
more than its rate, and where several guests are copied, or states are sent, a piece each in turn.
"""

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table, timer
from vftsim.platform.arithmetic import nearest, product_quotient
from vftsim.platform.cpu.jobs import raise_interrupt
from vftsim.platform.cpu.records import Domain, vcpus, work_done
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection import machine, migration
from vftsim.platform.protection.account import note, word
from vftsim.platform.protection.channel import next_piece_ns, queue_piece
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.mechanism import begin
from vftsim.platform.rows import fill_row
from vftsim.spec.units import MS

COPY_BEGINS = word("copy begins")
PULSE_NS = 10 * MS
"""How often a copy with the wire to itself takes CPU time."""


class Reprotection(Record):
    """How a new secondary of one guard is made.

    The copy begins ``delay_ns`` after a loss; ``resume_ns`` after its last round the guest runs again.  It takes
    ``cpu_share`` of the guest's CPU while it sends, over the link ``shared``, if any.

    Round ``rounds`` (0: the disk's, at ``disk_rate_bits_per_s``) began at ``round_from_ns``; ``rest_bytes`` of it are
    to be sent, and with it ``sent_bytes`` of memory in all; ``is_paying`` while the guest does what that cost it last.
    ``next_step`` and ``next_pulse`` are the tokens of what is planned.
    """

    is_wanted: bool
    delay_ns: int
    disk_bytes: int
    disk_rate_bits_per_s: int
    memory_bytes: int
    rate_bits_per_s: int
    dirty_rate_bits_per_s: int
    most_dirtied_bytes: int
    stop_below_bytes: int
    most_rounds: int
    most_sent_bytes: int
    resume_ns: int
    cpu_share: float
    shared: int
    rounds: int
    round_from_ns: int
    rest_bytes: int
    sent_bytes: int
    is_last: bool
    is_paying: bool
    next_step: int
    next_pulse: int


reprotections = Table("reprotections", Reprotection, beside=guards)


def install(engine: Engine, guard: int, spec: migration.ReprotectionSpec | None, shared_link: int) -> None:
    """Set up what becomes of a guard that has lost its secondary; ``None``: redundancy is not restored."""
    if spec is None:
        return
    fill_row(
        engine,
        reprotections,
        guard,
        spec,
        is_wanted=True,
        disk_rate_bits_per_s=min(spec.disk_rate, spec.rate),
        most_dirtied_bytes=migration.dirtied_at_most(spec),
        most_sent_bytes=int(migration.MOST_VOLUME * spec.memory),
        cpu_share=spec.cpu_share / 100.0,
        shared=shared_link,
    )


def install_at_once(engine: Engine, guard: int) -> None:
    """Set up a guard that is protected again at once, as nothing has to be copied."""
    reprotection = engine.rows(reprotections)[guard]
    reprotection.is_wanted = True
    reprotection.rate_bits_per_s = 1
    reprotection.delay_ns = reprotection.memory_bytes = reprotection.resume_ns = 0


def start(sim: Sim, guard: Guard, reprotection: Reprotection = BESIDE) -> None:
    """Begin anew: an attempt that is under way, if any, is given up; before protection is turned on there is none."""
    # Tokens of 0 match no event: steps of the attempt before come to nothing.
    reprotection.next_step = 0
    reprotection.next_pulse = 0
    # What is not paid may be gone with the memory of the life before.
    reprotection.is_paying = False
    # An attempt that is given up may have stopped the guest for its last round.
    machine.resume(sim, guard, machine.MIGRATION)
    if reprotection.is_wanted and guard.has_begun:
        reprotection.next_step = machine.call_after(sim, guard, reprotection.delay_ns, on_copy)


def copy_now(sim: Sim, guard: Guard) -> None:
    """Begin a first copy without delay: the machine was never protected."""
    reprotections(sim)[guard.row].next_step = machine.call_after(sim, guard, 0, on_copy)


@timer(reprotections, "next_step")
def on_copy(sim: Sim, guard: Guard, reprotection: Reprotection = BESIDE) -> None:
    if guard.dead:
        return
    note(sim, guard, COPY_BEGINS)
    reprotection.rounds = 0
    reprotection.sent_bytes = 0
    reprotection.is_last = False
    if reprotection.disk_bytes > 0:
        reprotection.rest_bytes = reprotection.disk_bytes
        send(sim, guard, reprotection)
    else:
        copy_memory(sim, guard, reprotection)


def copy_memory(sim: Sim, guard: Guard, reprotection: Reprotection) -> None:
    begin_round(sim, guard, reprotection, reprotection.memory_bytes)
    if reprotection.shared == 0:
        pulse(sim, guard, reprotection)


def begin_round(sim: Sim, guard: Guard, reprotection: Reprotection, size_bytes: int) -> None:
    """Begin to send all memory, or what the round before has dirtied."""
    reprotection.rounds += 1
    reprotection.round_from_ns = sim.now_ns
    reprotection.rest_bytes = size_bytes
    reprotection.sent_bytes += size_bytes
    reprotection.is_last = migration.is_last(
        reprotection.rounds,
        size_bytes,
        reprotection.sent_bytes,
        reprotection.stop_below_bytes,
        reprotection.most_rounds,
        reprotection.most_sent_bytes,
    )
    if reprotection.is_last:
        machine.stop(sim, guard, machine.MIGRATION)
    send(sim, guard, reprotection)


def send(sim: Sim, guard: Guard, reprotection: Reprotection) -> None:
    """Send what is left of a round, on a shared link a piece of it."""
    now_ns = sim.now_ns
    size_bytes = reprotection.rest_bytes
    left_ns = now_ns
    if reprotection.shared != 0 and size_bytes > 0:
        size_bytes = queue_piece(sim, reprotection.shared, size_bytes)
        left_ns = next_piece_ns(sim, reprotection.shared, size_bytes)
    reprotection.rest_bytes -= size_bytes
    rate_bits_per_s = reprotection.disk_rate_bits_per_s if reprotection.rounds == 0 else reprotection.rate_bits_per_s
    sending_ns = product_quotient(size_bytes, BITS_NS, rate_bits_per_s)
    if reprotection.shared != 0 and reprotection.rounds > 0 and not reprotection.is_last:
        take_cpu(sim, guard, reprotection, sending_ns)
    reprotection.next_step = machine.call_after(sim, guard, max(sending_ns, left_ns - now_ns), on_sent)


@timer(reprotections, "next_step")
def on_sent(sim: Sim, guard: Guard, reprotection: Reprotection = BESIDE) -> None:
    """The copy continues, with the next round if this one is over."""
    if guard.dead:
        return
    if reprotection.rest_bytes > 0:
        send(sim, guard, reprotection)
    elif reprotection.rounds == 0:
        copy_memory(sim, guard, reprotection)
    elif reprotection.is_last:
        reprotection.next_step = machine.call_after(sim, guard, reprotection.resume_ns, on_ready)
    else:
        round_ns = sim.now_ns - reprotection.round_from_ns
        size_bytes = migration.dirtied_bytes(
            round_ns, reprotection.dirty_rate_bits_per_s, reprotection.most_dirtied_bytes
        )
        begin_round(sim, guard, reprotection, size_bytes)


@timer(reprotections, "next_pulse")
def on_pulse(sim: Sim, guard: Guard, reprotection: Reprotection = BESIDE) -> None:
    """The copy goes on taking CPU time."""
    if not guard.dead:
        pulse(sim, guard, reprotection)


def pulse(sim: Sim, guard: Guard, reprotection: Reprotection) -> None:
    """Take from the guest what the copy costs it, until the guest stands still."""
    if not reprotection.is_last:
        take_cpu(sim, guard, reprotection, PULSE_NS)
        reprotection.next_pulse = machine.call_after(sim, guard, PULSE_NS, on_pulse)


def take_cpu(sim: Sim, guard: Guard, reprotection: Reprotection, sending_ns: int, domain: Domain = BESIDE) -> None:
    """Take from the guest what it costs to send for so long."""
    # A share of the time, however much a pCPU does in it.
    work_ns = nearest(reprotection.cpu_share * sending_ns * domain.cpu_speed)
    # One at a time: a guest that cannot keep up pays no more than it can run.
    if work_ns > 0 and not reprotection.is_paying:
        reprotection.is_paying = True
        raise_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], work_ns, on_paid, guard.row, 0)


@work_done
def on_paid(sim: Sim, guard_row: int) -> None:
    """The guest has done what the copy cost it last."""
    reprotections(sim)[guard_row].is_paying = False


@timer(reprotections, "next_step")
def on_ready(sim: Sim, guard: Guard) -> None:
    """The new secondary is in step."""
    if not guard.dead:
        # The guest runs in the same instant in which it is protected: nothing it does falls between the two.
        machine.resume(sim, guard, machine.MIGRATION)
        begin(sim, guard)
