"""Which kernel a model runs on: the kinds of its parts, and what their drivers call."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import struck_by, talks_inside
from vftsim.kernel import Kind, Linked, Sort, Table, link
from vftsim.kernel.agenda import Agenda, agenda_due
from vftsim.kernel.inputs import feeds
from vftsim.platform import levels, pauses
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.guest_parameters import guest_schedulers
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.io import build as io
from vftsim.platform.io import outside
from vftsim.platform.io.disk import disk, disk_kinds
from vftsim.platform.io.driver_domain import TASKS as DRIVER_TASKS
from vftsim.platform.io.host_cards import cards, on_burst, on_reaching_host
from vftsim.platform.io.link import on_change
from vftsim.platform.io.loopback import loopback
from vftsim.platform.io.packet import application, path, workload
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.io.stage import task
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import protections
from vftsim.spec.registry import PartRegistry
from vftsim.workloads.parts import APPLICATIONS, WORKLOADS, ApplicationSpec, WorkloadSpec, discover_parts

_SORTS: tuple[Sort, ...] = (scheduler, guest_scheduler, disk, path, task, application, workload, protection, fault)


def guarded(spec: ModelSpec) -> set[str]:
    """Return the domains that a mechanism guards or a fault strikes."""
    struck = {name for each in spec.faults for name in struck_by(spec, each)}
    protected = {name for name, domain in spec.expanded().items() if domain.protection.protects}
    return struck | protected


def parts_of(spec: ModelSpec) -> list[ApplicationSpec | WorkloadSpec]:
    programs = [program for domain in spec.domains.values() for program in domain.applications.values()]
    return [*programs, *spec.workloads.values()]


def parts_in(spec: ModelSpec) -> Iterator[Any]:
    """Yield everything in a model that was chosen by its kind."""
    yield from (host.scheduler for host in spec.hosts.values())
    yield from parts_of(spec)
    yield from spec.faults
    for domain in spec.domains.values():
        yield from (domain.guest_scheduler, domain.protection, *domain.disks.values())
        yield from (interface.path for interface in domain.interfaces.values())


def kinds_of(spec: ModelSpec) -> frozenset[Kind]:
    kinds: set[Kind] = {host.scheduler.part for host in spec.hosts.values()}
    kinds |= {part.part for part in parts_of(spec)}
    kinds |= {kind for part in parts_of(spec) if isinstance(part, ApplicationSpec) for kind in part.kinds}
    kinds |= set(cpu.guest_kinds(domain.guest_scheduler for domain in spec.domains.values()))
    for domain in spec.domains.values():
        for interface in domain.interfaces.values():
            kinds |= {interface.path.part, *interface.path.tasks}
        if domain.driver is not None:
            kinds |= set(DRIVER_TASKS)
        kinds |= {disk_spec.part for disk_spec in domain.disks.values()}
    kinds |= {loopback for name in spec.domains if talks_inside(spec, name)}
    for name in guarded(spec):
        kinds.add(spec.expanded()[name].protection.part)
    if guarded(spec):
        kinds |= {each.part for each in FAULTS.values()}
    return frozenset(kinds)


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


def all_parts() -> Linked:
    """Return the kernel of every part of the package; not of what other distributions bring."""
    discover_parts()
    registries: list[PartRegistry[Any]] = [
        schedulers(),
        guest_schedulers(),
        io_paths(),
        disk_kinds(),
        APPLICATIONS,
        WORKLOADS,
        protections(),
        FAULTS,
    ]
    parts: list[Any] = [spec for registry in registries for spec in registry.values() if is_ours(spec)]
    collected: dict[str, dict[Any, None]] = {}
    for name in ("tasks", "kinds", "entries", "actions", "tables"):
        collected[name] = dict.fromkeys(each for part in parts for each in getattr(part, name, ()))
    kinds = {loopback, *DRIVER_TASKS, *collected["tasks"], *collected["kinds"], *(part.part for part in parts)}
    actions = (*collected["actions"], on_reaching_host)
    return _linked(frozenset(kinds), tuple(collected["entries"]), actions, tuple(collected["tables"]))


def is_ours(part: type) -> bool:
    return part.__module__.partition(".")[0] == __name__.partition(".")[0]


@cache
def _linked(
    kinds: frozenset[Kind], entries: tuple[Any, ...], actions: tuple[Any, ...], tables: tuple[Table[Any], ...]
) -> Linked:
    chosen = {sort: [kind for kind in kinds if kind.sort is sort] for sort in _SORTS}
    more = [*Agenda.ACTIONS, *pauses.ACTIONS, *levels.ACTIONS, on_burst, on_change, *actions]
    rows: list[Table[Any]] = [
        *cpu.TABLES,
        *io.TABLES,
        *pauses.TABLES,
        *levels.TABLES,
        agenda_due,
        cards,
        feeds,
        *outside.TABLES,
        *tables,
    ]
    calls = [*cpu.ENTRIES, *io.ENTRIES, *outside.ENTRIES, *levels.ENTRIES, *entries]
    if any(kind.sort is protection for kind in kinds):
        more += protect.ACTIONS
        rows += protect.TABLES
        calls += protect.ENTRIES
    return link(calls, chosen, more, list(dict.fromkeys(rows)))
