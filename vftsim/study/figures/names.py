"""Names of figures: addresses that mirror those of the settings, and the shorter ones that mean them.

What is set at ``domains.sut.vcpus`` is answered at ``domains.sut.cpu``; ``workloads.calls.at_50.ihs`` is the share of
inadequately handled attempts of the phase with the load 50.  A name may leave words out as long as it keeps their
order and the last one: ``calls.at_50.ihs``, ``web.response.p95``.  It may use another name of a figure
(``PX_TRT-SES1``) or of a phase (``step_3``).  A short name of a ramp's figure means a family, one figure a phase; the
name of a distribution alone means its leading statistics.

Every figure that a model will have is known before it is run: a wrong name is refused before the work.  Names that only
a run knows (clients' numbers, counters, loads of steps) stand as ``*``.

*Objectives* of a run are such a figure compared with a number: ``web.answered >= 90``.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, takewhile

from vftsim.composition.link import guarded
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import is_linked
from vftsim.errors import UsageError
from vftsim.outcome import Entry, Outcome, Phase
from vftsim.outcome.declare import ANY, percent_of
from vftsim.platform.outcomes import RESOURCES, DomainUse, HostUse, LinkUse, Losses
from vftsim.spec.suggest import listing
from vftsim.spec.units import converted

OF_MECHANISMS = ("outage", "price", "work", "cpu_left", "capacity", "downtime")
"""Words for what a comparison of mechanisms computes; no run has them."""
_MOST_NAMED = 6
_STATISTICS = {"median": "p50", "average": "mean", "avg": "mean", "stddev": "sd", "std": "sd", "maximum": "max"}
"""Words for statistics, and those that figures have."""


@dataclass(frozen=True)
class Address:
    """Address of a figure."""

    owner: str
    """The part that measured it: ``workloads.calls``, ``domains.sut``."""
    phase: str
    """Word of the phase in the address; empty for the whole run."""
    step: str
    """Another name of the phase: ``step_3``."""
    entry: Entry
    """The figure, and what of it."""
    is_of_copy: bool = False
    """Whether it is of one of several alike, of which another address tells all together."""

    @property
    def leads(self) -> bool:
        """Whether it stands in tables that show the most important figures."""
        return self.entry.leads and not self.is_of_copy

    @property
    def prefix(self) -> str:
        """Owner and phase."""
        return f"{self.owner}.{self.phase}" if self.phase else self.owner

    @cached_property
    def text(self) -> str:
        """The whole address."""
        return ".".join((self.prefix, *self.entry.path))

    @cached_property
    def spellings(self) -> list[list[str]]:
        """Every way to say it in full: with either name of the phase and every name of the figure."""
        phases = list(dict.fromkeys((self.phase, self.step or self.phase)))
        (name, *parts), known_as = self.entry.path, self.entry.figure.known_as
        names = [name, *(other for other in known_as if other and ANY not in other)]
        figures, owner = [*([each, *parts] for each in names), [self.entry.column]], self.owner.split(".")
        return [[*owner, *([phase] if phase else []), *figure] for phase in phases for figure in figures]

    def is_meant(self, words: Sequence[str]) -> bool:
        """Whether a name's words stand in a spelling in their order, the last one at its end."""
        return any(_ends_like(words, spelling) and _is_within(words, spelling) for spelling in self.spellings)

    def is_of(self, words: Sequence[str]) -> bool:
        """Whether a name means the figure of which this is a leading statistic."""
        size, last = len(self.entry.path) - 1, self.entry.path[-1]
        if not self.entry.leads or size < 1:
            return False
        whole = [spelling for spelling in self.spellings if spelling[-1] == last and len(spelling) > size]
        return any(words[-1] == spelling[-1 - size] and _is_within(words, spelling) for spelling in whole)


def find(name: str, addresses: Iterable[Address]) -> list[Address]:
    """Return the figures that a name may mean: the one with that address, else all whose words it has.

    One that ends with the name's last word goes before counters whose names only a run knows, and what several copies
    have done together before what each has.
    """
    every = list(addresses)
    exact = [address for address in every if address.text == name]
    words = name.split(".")
    meant = exact or [address for address in every if address.is_meant(words)]
    literal = [each for each in meant if any(spelling[-1] == words[-1] for spelling in each.spellings)]
    matching = literal or meant or [address for address in every if address.is_of(words)]
    return [address for address in matching if not address.is_of_copy] or matching


def at_any_count(address: str, has: Callable[[str], bool]) -> list[str]:
    """Return a figure's addresses in a model that may have another number of copies (``count``) of its owner.

    What stands alone has no number: the first of several, ``workloads.users-1``, is ``workloads.users`` where there is
    one.  What several have together has none either; without such figures ``workloads.users`` is each of them.  ``has``
    tells whether the model has an address; none is returned where it has none of these.
    """
    if has(address):
        return [address]
    sort, owner, *rest = address.split(".")
    if owner.endswith("-1") and has(alone := ".".join((sort, owner.removesuffix("-1"), *rest))):
        return [alone]
    return list(takewhile(has, (".".join((sort, f"{owner}-{number}", *rest)) for number in count(1))))


def only(name: str, meant: Sequence[Address], addresses: Sequence[Address], option: str = "--objective") -> Address:
    """Return the one figure that a name means of those known; refuse a name of none or of several."""
    if not meant:
        raise unknown(name, addresses, option)
    if len(meant) > 1:
        raise ambiguous(name, meant, option)
    return meant[0]


def ambiguous(name: str, addresses: Iterable[Address], option: str) -> UsageError:
    """Return what a name of several figures is answered with: the figures that it may mean."""
    return UsageError(f"{option}: '{name}' is ambiguous: {_listed([address.text for address in addresses])}")


def unknown(name: str, addresses: Sequence[Address], option: str) -> UsageError:
    """Return what a name of no figure is answered with: the nearest names there are."""
    words = name.split(".")
    every = ((address.text, spelling) for address in addresses for spelling in address.spellings)
    spellings = [(text, [word for word in spelling if word != ANY]) for text, spelling in every]
    inside = [text for text, spelling in spellings if _is_within(words, spelling)]
    if inside:
        return UsageError(f"{option}: '{name}' is no figure by itself; one of {_listed(inside)}")
    texts = [address.text for address in addresses]
    if usual := _in_its_words(name, addresses):
        return UsageError(f"{option}: there is no figure '{name}'; did you mean '{usual}'?")
    near = difflib.get_close_matches(name, texts, 3, 0.4)
    by_word = [text for text, spelling in spellings if difflib.get_close_matches(words[-1], spelling, 1, 0.75)]
    listed = f"nearest: {_listed(by_word + near)}" if by_word + near else f"there are {_listed(texts)}"
    for word in () if by_word else difflib.get_close_matches(words[0], OF_MECHANISMS, 1, 0.8):
        listed = f"'{word}' is one of mechanisms: vftsim compare MODEL --protection all --objective '{word} <= ...'"
    return UsageError(f"{option}: there is no figure '{name}'; {listed}")


def _in_its_words(name: str, addresses: Sequence[Address]) -> str:
    """Return a name with the word that figures here have for its statistic, where one is meant then; else nothing."""
    usual = re.sub(r"\bp([0-9]{1,2})[.,]([0-9]+)$", r"p\1_\2", name.strip(), flags=re.IGNORECASE)
    head, dot, last = usual.rpartition(".")
    usual = head + dot + _STATISTICS.get(last.casefold(), last)
    of_listed = re.sub(r"\.p[0-9]+(_[0-9]+)?$", ".p50", usual)
    return usual if usual != name and find(of_listed, addresses) else ""


def _ends_like(words: Sequence[str], spelling: Sequence[str]) -> bool:
    """Whether the last words are alike; where only a run knows the last one, so must be those before."""
    if spelling[-1] != ANY:
        return _is_like(words[-1], spelling[-1])
    return len(words) > 1 and words[-2] == spelling[-2]


def _is_within(words: Sequence[str], of: Sequence[str]) -> bool:
    rest = iter(of)
    return all(any(_is_like(word, other) for other in rest) for word in words)


def _is_like(word: str, other: str) -> bool:
    """Whether a word is meant by another, in which an asterisk stands for what only a run knows."""
    if ANY not in other:
        return word == other
    head, _, tail = other.partition(ANY)
    return len(word) > len(head) + len(tail) and word.startswith(head) and word.endswith(tail)


def _listed(texts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(texts))
    more = f" and {len(unique) - _MOST_NAMED} more" if len(unique) > _MOST_NAMED else ""
    return listing(unique[:_MOST_NAMED]) + more


def catalogue(spec: ModelSpec) -> list[Address]:
    """Return the addresses of all figures of a model, percentiles as they are listed."""
    owners = list(_owners(spec))
    owned, every = {owner for owner, *_ in owners}, spec.owners_of_copies()
    firsts = {copies[0]: owner for owner, copies in every.items() if owned.issuperset(copies)}
    together = [
        (firsts[owner], phase, step, kind)
        for owner, phase, step, outcome in owners
        if owner in firsts and (kind := outcome.of_copies()) is not None
    ]
    owners += together
    copies = {copy for owner, *_ in together for copy in every[owner]}
    return [
        Address(owner, phase, step, entry, owner in copies)
        for owner, phase, step, outcome in owners
        for entry in outcome.patterns()
    ]


def check_names(names: Iterable[str], specs: Sequence[ModelSpec], option: str = "--figure") -> None:
    """Refuse figures that none of the models will have, and name the nearest that there are."""
    addresses = [address for spec in specs for address in catalogue(spec)]
    for name in names:
        if not meant_by(name, addresses):
            raise unknown(name, addresses, option)


def meant_by(name: str, addresses: Sequence[Address]) -> list[Address]:
    """Return the figures that a name may mean; of a percentile that is not listed, those of one that is."""
    meant, (head, dot, last) = find(name, addresses), name.rpartition(".")
    # Every distribution has each percentile.
    return meant if meant or percent_of(last) is None else find(f"{head}{dot}p50", addresses)


def one_figure(name: str, spec: ModelSpec, option: str = "--objective") -> str:
    """Return the whole address of the figure that a name means, where a run need not tell; refuse none, or several.

    Of a ramp that is the figure of one of its steps, by either name of it.
    """
    addresses = catalogue(spec)
    meant = only(name, meant_by(name, addresses), addresses, option)
    address = meant.text
    if ANY in meant.phase:
        of_steps = _of_steps(meant, spec)
        only(name, meant_by(name, of_steps), of_steps, option)
    if ANY in address:
        return name
    return address if find(name, addresses) else f"{address.rpartition('.')[0]}.{name.rpartition('.')[2]}"


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
        yield from ((f"networks.{network}.{end}_{host}", LinkUse) for network in linked for end in ("to", "from"))
    yield "drops", Losses


_NUMBER = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_FORM = re.compile(
    rf"\s*(?P<figure>[^<>=]+?)\s*(?P<relation><=|>=|<|>)\s*(?P<value>{_NUMBER})\s*(?P<unit>[a-zA-Z%/][a-zA-Z%/]*)?\s*"
)
_RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True, slots=True)
class Objective:
    """A condition on one figure."""

    figure: str
    """Its name (:mod:`vftsim.study.figures.names`)."""
    relation: str
    """``<=``, ``>=``, ``<`` or ``>``."""
    value: float
    """In ``unit``."""
    unit: str = ""
    """As it was written; none: the figure's own."""

    def in_unit(self, unit: str) -> Objective:
        """Return it with its value in the figure's unit; refuse a unit of something else."""
        value = converted(self.value, self.unit or unit, unit)
        if value is None:
            unit_text = f"is in {unit}" if unit else "has no unit"
            raise UsageError(f"--objective: '{self}': {self.figure} {unit_text}, not in {self.unit}")
        return Objective(self.figure, self.relation, value, unit)

    @property
    def sign(self) -> float:
        """1 where less is better, -1 where more is."""
        return 1.0 if self.relation in ("<", "<=") else -1.0

    def holds(self, figure: float) -> bool:
        """Tell whether a run with this figure met it; one without a number in its place did not."""
        return bool(_RELATIONS[self.relation](figure, self.value))

    def worst(self, figures: Sequence[float]) -> float:
        """Return the figure that is hardest to hold; nan where there is none, or one without a number."""
        if not figures or any(map(math.isnan, figures)):
            return math.nan
        return max(figures, key=lambda figure: self.sign * figure)

    def __str__(self) -> str:
        return f"{self.figure} {self.relation} {self.value:g}{' ' if self.unit else ''}{self.unit}"


def read_objective(text: str) -> Objective:
    """Return the objective that a user wrote; refuse any form but ``figure <= number``."""
    match = _FORM.fullmatch(text)
    try:
        value = float(match["value"]) if match else math.nan
    except ValueError:
        value = math.nan
    if match is None or not math.isfinite(value):
        raise UsageError(
            f"--objective: '{text}' is not of the form 'figure <= number' (or >=, <, >), e.g. 'web.answered >= 90' or "
            "'web.response.p95 <= 100 ms'"
        )
    return Objective(match["figure"], match["relation"], value, match["unit"] or "")


def whole_objectives(texts: Iterable[str], specs: Sequence[ModelSpec]) -> tuple[Objective, ...]:
    """Return the objectives that a user wrote, on whole addresses of figures and in the units of these.

    A name is one of the first model that has such a figure: without protection no output is held.
    """
    whole = list[Objective]()
    for objective in map(read_objective, texts):
        having = [each for each in specs if meant_by(objective.figure, catalogue(each))][:1]
        (in_unit,) = in_units([objective], having or specs)
        whole.append(replace(in_unit, figure=one_figure(objective.figure, having[0])))
    return tuple(whole)


def in_units(
    objectives: Iterable[Objective], specs: Sequence[ModelSpec], own_units: Mapping[str, str] | None = None
) -> tuple[Objective, ...]:
    """Return objectives in the units of their figures, of models or of ``own_units``.

    Refuses a figure that is none of any model, or ambiguous.
    """
    own_unit, every = own_units or {}, [address for spec in specs for address in catalogue(spec)]
    named = [(each, each.figure) for each in objectives]
    return tuple(each.in_unit(own_unit[name] if name in own_unit else _unit_of(name, every)) for each, name in named)


def _unit_of(figure: str, every: Sequence[Address]) -> str:
    """Return the unit of the one figure that a name means; it may be one of several phases."""
    meant = meant_by(figure, every)
    if not meant:
        raise unknown(figure, every, "--objective")
    if len({(address.owner, address.entry.path) for address in meant}) > 1:
        raise ambiguous(figure, meant, "--objective")
    return meant[0].entry.unit
