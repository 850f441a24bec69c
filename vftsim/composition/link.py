"""Which kernel a model runs on: the kinds of its parts, and what their drivers call."""

from __future__ import annotations

from functools import cache
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.kernel import Kind, Linked, Sort, Table, link
from vftsim.kernel.agenda import Agenda, agenda_due
from vftsim.kernel.inputs import feeds
from vftsim.platform import pauses
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.io import build as io
from vftsim.platform.io import outside
from vftsim.platform.io.disk import disk
from vftsim.platform.io.driver_domain import TASKS as DRIVER_TASKS
from vftsim.platform.io.host_cards import cards, on_burst, on_reaching_host
from vftsim.platform.io.packet import application, path, workload
from vftsim.platform.io.stage import task
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.workloads.parts import ApplicationSpec, WorkloadSpec

_SORTS: tuple[Sort, ...] = (scheduler, guest_scheduler, disk, path, task, application, workload, protection, fault)


def guarded(spec: ModelSpec) -> set[str]:
    """Return the domains that a mechanism guards or a fault strikes."""
    struck = {spec.struck_by(each) for each in spec.faults}
    own = {name for name, domain in spec.expanded().items() if domain.protection.kind != "none"}  # type: ignore[attr-defined]
    return struck | own


def parts_of(spec: ModelSpec) -> list[ApplicationSpec | WorkloadSpec]:
    """Return the applications and workloads of a model."""
    programs = [program for domain in spec.domains.values() for program in domain.applications.values()]
    return [*programs, *spec.workloads.values()]


def kinds_of(spec: ModelSpec) -> frozenset[Kind]:
    """Return the kinds of parts that a model uses."""
    found: set[Kind] = {host.scheduler.part for host in spec.hosts.values()}
    found |= {part.part for part in parts_of(spec)}
    found |= {kind for part in parts_of(spec) if isinstance(part, ApplicationSpec) for kind in part.kinds}
    found |= set(cpu.guest_kinds(domain.guest_scheduler for domain in spec.domains.values()))
    for domain in spec.domains.values():
        for interface in domain.interfaces.values():
            found |= {interface.path.part, *interface.path.tasks}
        if domain.driver is not None:
            found |= set(DRIVER_TASKS)
        found |= {own.part for own in domain.disks.values()}
    for name in guarded(spec):
        found.add(spec.expanded()[name].protection.part)
    if guarded(spec):
        found |= {each.part for each in FAULTS.values()}
    return frozenset(found)


def has_idle_cards(spec: ModelSpec) -> bool:
    """Whether guests have network cards that no workload sends to: the kernel has what is behind them all the same."""
    paths = (interface.path for domain in spec.domains.values() for interface in domain.interfaces.values())
    return any(not path.has_host_ring for path in paths) and not any(w.needs_link for w in spec.workloads.values())


def linked_for(spec: ModelSpec) -> Linked:
    """Return the kernel of a model; made once in a process for models of the same structure."""
    used = {type(part): part for part in parts_of(spec)}.values()
    entries = dict.fromkeys(entry for part in used for entry in part.entries)
    actions = dict.fromkeys(action for part in used for action in part.actions)
    tables = dict.fromkeys(table for part in used for table in part.tables)
    if has_idle_cards(spec):
        actions[on_reaching_host] = None
    return _linked(kinds_of(spec), tuple(entries), tuple(actions), tuple(tables))


@cache
def _linked(
    kinds: frozenset[Kind], entries: tuple[Any, ...], actions: tuple[Any, ...], tables: tuple[Table[Any], ...]
) -> Linked:
    chosen = {sort: [kind for kind in kinds if kind.sort is sort] for sort in _SORTS}
    more = [*Agenda.ACTIONS, *pauses.ACTIONS, on_burst, *actions]
    rows: list[Table[Any]] = [
        *cpu.TABLES,
        *io.TABLES,
        *pauses.TABLES,
        agenda_due,
        cards,
        feeds,
        *outside.TABLES,
        *tables,
    ]
    calls = [*cpu.ENTRIES, *io.ENTRIES, *outside.ENTRIES, *entries]
    if any(kind.sort is protection for kind in kinds):
        more += protect.ACTIONS
        rows += protect.TABLES
        calls += protect.ENTRIES
    return link(calls, chosen, more, list(dict.fromkeys(rows)))
