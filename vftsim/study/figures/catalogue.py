"""Every figure that a model will have, known before it is run: a wrong name is refused before the work.

Names that only a run knows (clients' numbers, counters, loads of steps) stand as ``*``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from vftsim.composition.link import guarded
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import is_linked
from vftsim.outcome import Outcome, Phase
from vftsim.outcome.declare import ANY, percent_of
from vftsim.platform.outcomes import RESOURCES, DomainUse, HostUse, LinkUse, Losses
from vftsim.study.figures.names import Address, find, only, unknown


def catalogue(spec: ModelSpec) -> list[Address]:
    """Return the addresses of all figures of a model, percentiles as they are listed."""
    known = list(_owners(spec))
    owned, every = {owner for owner, *_ in known}, spec.owners_of_copies()
    firsts = {copies[0]: owner for owner, copies in every.items() if owned.issuperset(copies)}
    together = [
        (firsts[owner], phase, step, kind)
        for owner, phase, step, outcome in known
        if owner in firsts and (kind := outcome.of_copies()) is not None
    ]
    known += together
    copies = {copy for owner, *_ in together for copy in every[owner]}
    return [
        Address(owner, phase, step, entry, owner in copies)
        for owner, phase, step, outcome in known
        for entry in outcome.patterns()
    ]


def check_names(names: Iterable[str], specs: Sequence[ModelSpec], option: str = "--figure") -> None:
    """Refuse figures that none of the models will have, and name the nearest that there are."""
    known = [address for spec in specs for address in catalogue(spec)]
    for name in names:
        if not meant_by(name, known):
            raise unknown(name, known, option)


def meant_by(name: str, known: Sequence[Address]) -> list[Address]:
    """Return the figures that a name may mean; of a percentile that is not listed, those of one that is."""
    return find(_listed(name, known), known)


def one_figure(name: str, spec: ModelSpec, option: str = "--objective") -> str:
    """Return the whole address of the figure that a name means, where a run need not tell; refuse none, or several.

    Of a ramp that is the figure of one of its steps, by either name of it.
    """
    known = catalogue(spec)
    meant = only(name, meant_by(name, known), known, option)
    address = meant.text
    if ANY in meant.phase:
        of_steps = _of_steps(meant, spec)
        only(name, meant_by(name, of_steps), of_steps, option)
    if ANY in address:
        return name
    return address if find(name, known) else f"{address.rpartition('.')[0]}.{name.rpartition('.')[2]}"


def watched(spec: ModelSpec) -> str:
    """Return the figure by which a model's precision is judged where nobody names one: of its first step, if any."""
    for name, workload in spec.workloads.items():
        for step, outcomes in (("step_1.", workload.phase_outcomes), ("", workload.outcomes)):
            for outcome in outcomes:
                leading = next((".".join(entry.path) for entry in outcome.patterns() if entry.leads), "")
                if figure := outcome.watched or leading:
                    owner = name if outcome.of_copies() is not None else next(iter(spec.drivers_of(name)))
                    return f"workloads.{owner}.{step}{figure}"
    return f"domains.{next(iter(spec.domains))}.cpu"


def _listed(name: str, known: Sequence[Address]) -> str:
    """Return a name, of a percentile that is not listed the same of one that is: every distribution has it."""
    head, dot, last = name.rpartition(".")
    return name if find(name, known) or percent_of(last) is None else f"{head}{dot}p50"


def _owners(spec: ModelSpec) -> Iterator[tuple[str, str, str, type[Outcome]]]:
    has_phases = spec.phased is not None
    for name, workload in spec.workloads.items():
        for owner in spec.drivers_of(name):
            yield from ((f"workloads.{owner}", "", "", each) for each in workload.outcomes)
            for each in workload.phase_outcomes:
                yield from ((f"workloads.{owner}", phase, step, each) for phase, step in _PHASES)
    for owner, outcome in _platform(spec):
        if not has_phases:
            yield owner, "", "", outcome
            continue
        if not issubclass(outcome, RESOURCES):
            yield owner, "", "", outcome
        yield from ((owner, phase, step, outcome) for phase, step in _PHASES)


def _of_steps(address: Address, spec: ModelSpec) -> list[Address]:
    """Return the addresses of a figure in the steps that a model may play."""
    loads = spec.workloads[spec.phased].step_loads() if spec.phased else ()
    steps = [Phase(f"step_{number}", load, 0, 0, {}) for number, load in enumerate(loads, 1)]
    return [replace(address, phase=step.word, step=step.name) for step in steps]


_PHASES = ((f"at_{ANY}", f"step_{ANY}"), ("pre_registration", ""))


def _platform(spec: ModelSpec) -> Iterator[tuple[str, type[Outcome]]]:
    with_account = guarded(spec)
    for name, domain in spec.domains.items():
        copies = spec.copies(name)
        for each in copies:
            yield f"domains.{each}", DomainUse
            yield from ((f"domains.{each}.disks.{key}", disk.outcome) for key, disk in domain.disks.items())
            for key, application in domain.applications.items():
                yield from ((f"domains.{each}.applications.{key}", outcome) for outcome in application.outcomes)
            if each in with_account:
                yield f"domains.{each}.protection", domain.protection.outcome
    for host in spec.hosts:
        yield f"hosts.{host}", HostUse
        linked = [network for network in spec.networks if is_linked(spec, host, network)]
        yield from ((f"networks.{network}.{way}_{host}", LinkUse) for network in linked for way in ("to", "from"))
    yield "drops", Losses
