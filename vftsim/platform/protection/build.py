"""Setting up the protection of a model: a guard for a domain, its faults, and what can be read of it."""

from collections.abc import Callable, Iterable, Mapping

from vftsim.errors import ConservationError, UsageError
from vftsim.kernel import Engine, EventKind
from vftsim.kernel.inputs import Feeder
from vftsim.platform.cpu.records import domains
from vftsim.platform.io.disk import guard_disk
from vftsim.platform.io.packet import drops
from vftsim.platform.protection.account import moments, tallies
from vftsim.platform.protection.audit import is_strict
from vftsim.platform.protection.device_faults import takes_channel
from vftsim.platform.protection.faults import FaultSpec, announce_fault, faults, inject, on_fault
from vftsim.platform.protection.guard import guard_port, guard_program, guarded_programs, guards
from vftsim.platform.protection.mechanism import (
    ProtectionSpec,
    begin_now,
    bring_up_to_date,
    lag_now,
    missing_now,
    on_begin,
    unreplayed_now,
)
from vftsim.platform.protection.rollback import cuts, foresee, foresights
from vftsim.platform.protection.sender import senders
from vftsim.platform.protection.when import Instant
from vftsim.sampling import Streams

ENTRIES = (
    announce_fault,
    begin_now,
    bring_up_to_date,
    foresee,
    guard_disk,
    guard_port,
    guard_program,
    lag_now,
    missing_now,
    takes_channel,
    unreplayed_now,
)
ACTIONS = (on_begin, on_fault)
TABLES = (cuts, faults, foresights, guarded_programs, moments, senders, tallies)

_BEGINS_ENTITY = 3

MOST_WAITING = 1000
"""Outputs that wait for room on their way out: ``txqueuelen`` of an Ethernet interface (Linux 2.6)."""


def add_guard(
    engine: Engine,
    spec: ProtectionSpec,
    domain: int,
    ports: Iterable[int],
    programs: Iterable[int],
    vm_link: int = 0,
    feeder: Feeder | None = None,
    streams: Streams | None = None,
    most_waiting: int = MOST_WAITING,
    disks: Iterable[int] = (),
    sender: int = 0,
) -> int:
    """Put a domain under protection: its ports, applications and disks, by their rows; return the guard's row.

    ``vm_link`` is the row of the link of the domain's outputs, if the mechanism's traffic takes it too (0: it does
    not), ``sender`` that of the domain that pays for sending states (0: nobody does).  Feeder and streams are for
    mechanisms that draw random numbers.  So many outputs as ``most_waiting`` may wait for room when they are released;
    the others are dropped.  Refuses a domain that the mechanism cannot protect, and one that draws without feeder and
    streams.
    """
    vcpu_count = int(engine.rows(domains)[domain].vcpus)
    if vcpu_count > spec.most_vcpus:
        raise UsageError(f"this protection mechanism handles {spec.most_vcpus} vCPU at most, not {vcpu_count}")
    row, guard = engine.add(guards, mechanism=engine.number(spec.part), domain=domain, most_waiting=most_waiting)
    guard.audit.is_off = not spec.promises
    guard.audit.issues_all, guard.audit.is_fenced = spec.issues_all, spec.is_fenced
    guard.audit.ends_run = is_strict() and not spec.breaks_promise
    guard.no_room, _ = engine.add(drops)
    guard.card_lost, _ = engine.add(drops)
    for port in ports:
        engine.call(guard_port, row, port)
    for program in programs:
        engine.call(guard_program, row, program)
    for disk in disks:
        engine.call(guard_disk, row, disk)
    engine.rows(senders)[row].domain = sender
    spec.install(engine, row, vm_link)
    spec.draw(engine, row, feeder, streams)
    return row


def start(
    engine: Engine,
    guard: int,
    spec: ProtectionSpec,
    blows: Mapping[int, FaultSpec],
    resolve: Callable[[Instant], int],
    streams: Streams | None = None,
    networks: Mapping[str, int] | None = None,
) -> None:
    """Turn protection on, now or when the model says, and plan the faults, given by their numbers in the model.

    ``resolve`` gives an instant's time, ``streams`` what faults are drawn from, ``networks`` the numbers of those that
    they may name.
    """
    if spec.begins is None:
        engine.call(begin_now, guard)
    else:
        # Until on_begin() nothing is promised, so that nothing is judged.
        engine.rows(guards)[guard].audit.is_off = True
        engine.at(resolve(spec.begins), EventKind.CONTROL, _BEGINS_ENTITY, engine.number(on_begin), guard)
    inject(engine, guard, blows, resolve, streams, networks)


def check_conservation(engine: Engine, guard: int) -> None:
    """Raise :class:`ConservationError` unless every output was released or waits."""
    lost = engine.call(missing_now, guard)
    if lost:
        raise ConservationError(f"{lost} outputs were logged and are neither released nor waiting")
