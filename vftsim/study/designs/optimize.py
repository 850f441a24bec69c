"""``vftsim optimize``: the cheapest configuration that meets objectives with a stated confidence.

What a configuration costs is known before any run; whether it meets its objectives takes runs.  So:

1. **Look**: optuna proposes configurations (its tree-structured Parzen estimator, for cost and all objectives at once),
   each run a few times.  This finds cheap ones that may do, and the front of cost against each objective.
2. **Close**: the cheapest that may do is run until its intervals say so; then everything cheaper is looked at, in
   halves.  A cheaper one that meets the objectives takes its place.  When everything cheaper is known to miss them,
   more runs cannot change the choice, and the search is over.
3. **Prove**: the winner and the next cheapest are run again with random numbers that the search has not seen.  A
   winner that fails there is out, and the search goes on.

The order of looks, and so the answer, does not depend on the number of workers.

A configuration costs what a table of prices says: hosts, cores, vCPUs, memory, network, any key of the model.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import Spec, json_schema, load, shipped_dir
from vftsim.spec.registry import TAG
from vftsim.spec.shape import Shape
from vftsim.spec.shipped import is_file
from vftsim.spec.suggest import instead, shown
from vftsim.spec.units import converted, numbers_of
from vftsim.stats import Estimate, bonferroni
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.designs.axes import number_of, split_values, value_at
from vftsim.study.designs.points import Point, Points, read_range, source_of
from vftsim.study.designs.runner import Evaluator, found_of
from vftsim.study.designs.study_spec import ROOM, Factor
from vftsim.study.figures.names import Objective, catalogue, meant_by, whole_objectives
from vftsim.study.figures.protection_costs import own_rate_bits_per_s
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.extras import extra
from vftsim.study.runs.model import Model, first_look_ns

COMMAND, EXTRA = "optimize", "optimize"
FEW = 3
"""Replications of a look."""
BATCH = 4
_MOST_ASKED = 20
"""Proposals for each that is new."""
FRESH = 1_000_003
"""Added to a seed: random numbers that a search has not seen."""
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Request:
    """The request: choices, objectives, prices."""

    model: str
    settings: tuple[str, ...]
    """As with ``--set``."""
    base: Model
    choices: Mapping[str, Sequence[str]]
    """Values by name."""
    objectives: tuple[Objective, ...]
    """On whole addresses of figures."""
    prices: PriceTable
    confidence: float = 0.95
    """With which the objectives are met together."""
    looks: int = 40
    """Configurations that are looked at for the front."""
    budget: int = 2000
    """Most runs of the search."""
    quick: bool = False
    """Whether all configurations are shortened for a first look."""

    @classmethod
    def read(
        cls,
        model: str,
        settings: Sequence[str],
        base: Model,
        choose: Sequence[str],
        objectives: Sequence[str],
        prices: str | None,
        **limits: Any,
    ) -> Request:
        """Return what words ask for: ``NAME=V,V`` of choices, ``FIGURE <= X`` of objectives, a file of prices."""
        chosen = [read_choice(text) for text in choose]
        if len({name for name, _ in chosen}) < len(chosen):
            raise UsageError("--choose: a name is given twice; put all its values into one")
        if not chosen:
            raise UsageError("optimize: nothing to choose; --choose NAME=V,V")
        request = cls(model, tuple(settings), base, dict(chosen), (), read_prices(prices), **limits)
        models = [point.model for point in request.points[0]]
        whole = whole_objectives(objectives, [base.spec, *(each.spec for each in models)])
        shown = base.quick(first_look_ns(models)) if request.quick else base
        request = replace(request, base=shown, objectives=whole)
        request.check()
        return request

    def check(self) -> None:
        if not self.objectives:
            raise UsageError("optimize: nothing to meet; --objective 'figure <= number'")
        if not 0.5 < self.confidence < 1.0:
            raise UsageError(f"--confidence: above 50 and below 100 %, got {100 * self.confidence:g} %")
        if self.looks < 1 or self.budget < STEPS[-1]:
            raise UsageError(f"--looks: at least 1; --budget: at least {STEPS[-1]} runs")

    @cached_property
    def points(self) -> tuple[list[Point], dict[str, str]]:
        """The configurations that the model can have, and why the others cannot be."""
        choices = self.choices
        if (count := math.prod(map(len, choices.values()))) > MOST:
            raise UsageError(f"--choose: {count} configurations; at most {MOST}")
        values = [dict(zip(choices, row, strict=True)) for row in itertools.product(*choices.values())]
        factors = dict.fromkeys(choices, Factor())
        source = source_of(self.model, self.base.label, self.settings, values, factors, "--choose")
        design = Points((source,), values)
        points, refused = design.possible()
        if not points:
            raise UsageError(f"no configuration is possible: {next(iter(refused.values()))}")
        if self.quick:
            points, _ = replace(design, least_ns=first_look_ns(point.model for point in points)).possible()
        return points, refused

    @property
    def figures(self) -> tuple[str, ...]:
        """Addresses of the objectives' figures."""
        return tuple(dict.fromkeys(objective.figure for objective in self.objectives))

    @property
    def interval(self) -> float:
        """Level of the two-sided intervals whose one end each objective is judged by, for all of them together."""
        return 2.0 * bonferroni(self.confidence, len(self.objectives)) - 1.0

    def takes(self) -> Needs:
        """Return what it takes, about: the looks, and a tenth of the budget."""
        return needs_of(self.base.spec).times(min(self.looks * FEW + self.budget / 10, self.budget))


@dataclass
class Search:
    """A search under way, and what it knows."""

    request: Request
    evaluate: Evaluator
    fresh: Evaluator
    candidates: list[Candidate] = field(init=False)
    """The cheapest first."""
    impossible: dict[str, str] = field(init=False)
    """Configurations that the model cannot have, and why."""
    proven: dict[int, Candidate] = field(default_factory=dict)
    """Winner and runner-up with fresh random numbers, by number of the configuration."""

    def __post_init__(self) -> None:
        self.candidates, self.impossible = candidates_of(self.request)

    def run(self) -> Candidate | None:
        """Return the choice; None where nothing meets the objectives."""
        self._explore()
        while (winner := self._close()) is not None:
            if self._holds_again(winner):
                if (second := self.runner_up(winner)) is not None:
                    self._holds_again(second)
                return winner
            winner.failed_again = True
        return None

    @property
    def refused(self) -> dict[str, str]:
        """Configurations that the model cannot have or that cannot be run, and why."""
        return self.impossible | {each.name: each.reason for each in self.candidates if each.verdict == REFUSED}

    @property
    def runs(self) -> int:
        """Runs of the search so far, those of the proof left out."""
        return sum(each.n for each in self.candidates)

    def unknown_below(self, winner: Candidate | None) -> list[Candidate]:
        """Return the configurations that would be chosen instead of the winner if they met the objectives."""
        others = [each for each in self.candidates if each.is_possible and each is not winner]
        if winner is None:
            return others
        return [each for each in others if (each.cost, each.number) < (winner.cost, winner.number)]

    def runner_up(self, winner: Candidate) -> Candidate | None:
        """Return the next cheapest that is known to meet the objectives."""
        others = [each for each in self.candidates if each.verdict == MET and not each.failed_again]
        return next((each for each in others if each is not winner), None)

    # Look

    def _explore(self) -> None:
        """Run configurations a few times each, as far as the budget leaves runs to close with."""
        if len(self.candidates) <= self.request.looks:
            self._evaluate(self.candidates[: (self.request.budget - STEPS[-1]) // FEW])
            return
        optuna = extra("optuna", EXTRA, COMMAND)
        by_values = {tuple(each.point.values.values()): each for each in self.candidates}
        with _quiet(optuna):
            sampler = optuna.samplers.TPESampler(seed=self.evaluate.execution.seed % _LARGEST_SEED)
            directions = ["minimize"] * (1 + len(self.request.objectives))
            study = optuna.create_study(directions=directions, sampler=sampler)
            spaces = {n: optuna.distributions.CategoricalDistribution(v) for n, v in self.request.choices.items()}
            looks = 0
            while looks < self.request.looks and self._has_room(BATCH * FEW + STEPS[-1]):
                proposals, new = list[tuple[Any, Candidate | None]](), list[Candidate]()
                for _ in range(BATCH * _MOST_ASKED):
                    trial = study.ask(spaces)
                    candidate = by_values.get(tuple(trial.params[name] for name in self.request.choices))
                    proposals.append((trial, candidate))
                    if candidate is not None and candidate.is_new and candidate not in new:
                        new.append(candidate)
                    if len(new) == BATCH:
                        break
                self._evaluate(new)
                for trial, candidate in proposals:
                    self._report(optuna, study, trial, candidate)
                if not new:
                    break
                looks += len(new)

    def _report(self, optuna: Any, study: Any, trial: Any, candidate: Candidate | None) -> None:
        if candidate is None or any(objective.figure not in candidate.figures for objective in self.request.objectives):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        losses = [objective.sign * candidate.figures[objective.figure].mean for objective in self.request.objectives]
        study.tell(trial, [candidate.cost, *losses])

    # Close

    def _close(self) -> Candidate | None:
        """Return the cheapest that meets the objectives, when nothing cheaper is open or there are no runs left."""
        best: Candidate | None = None
        while rest := self.unknown_below(best):
            looked = [each for each in rest if each.n]
            candidate = looked[0] if best is None and looked else rest[len(rest) // 2]
            if not self._has_room(STEPS[-1]):
                break
            if not candidate.n:
                self._evaluate([candidate])
            for n in STEPS:
                if candidate.verdict == OPEN:
                    self._measure([candidate], n)
            if candidate.verdict == MET:
                best = candidate
        return best

    def _evaluate(self, some: Sequence[Candidate]) -> None:
        self._measure(some, FEW)

    def _measure(self, some: Sequence[Candidate], n: int) -> None:
        if some:
            for candidate, result in zip(some, measured(self.evaluate, self.request, some, n), strict=True):
                candidate.n, candidate.figures = result.n, result.figures
                candidate.verdict, candidate.reason = result.verdict, result.reason

    def _has_room(self, runs: int) -> bool:
        return self.runs + runs <= self.request.budget

    # Prove

    def _holds_again(self, candidate: Candidate) -> bool:
        for n in STEPS[1:]:
            (self.proven[candidate.number],) = measured(self.fresh, self.request, [candidate], n)
            if self.proven[candidate.number].verdict != OPEN:
                break
        return self.proven[candidate.number].verdict == MET


def measured(evaluate: Evaluator, request: Request, some: Sequence[Candidate], n: int) -> list[Candidate]:
    """Return configurations with what so many replications say of them."""
    points = [replace(e.point, number=position) for position, e in enumerate(some)]
    runs, results = evaluate(points, n), []
    for position, candidate in enumerate(some):
        if (reason := runs.refused.get(position)) is not None:
            results.append(replace(candidate, n=0, verdict=REFUSED, reason=reason))
            continue
        summary = evaluate.summary(runs, position)
        estimates = {name: found_of(summary, name) for name in request.figures}
        figures = {name: estimate for name, (_, estimate) in estimates.items() if estimate is not None}
        values = {name: list(summary.values(estimates[name][0]).values()) for name in figures}
        verdict = verdict_of(request.objectives, figures, values)
        addresses = catalogue(candidate.point.model.spec) if verdict == LACKING else ()
        if addresses and all(meant_by(name, addresses) for name in request.figures):
            verdict = OPEN  # these few runs gave none, as where no request came
        results.append(replace(candidate, n=n, figures=figures, verdict=verdict))
    return results


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Let optuna neither print each trial nor warn that parts of it are young."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


MOST = 5000
_LEVELS = re.compile(r"(?P<range>.*\.\..*)/(?P<levels>[0-9]+)\s*")
_RANGE = re.compile(r"[0-9][^{\[]*\.\.\s*[0-9][^{\[]*")
MET, MISSED, OPEN, REFUSED, LACKING = "meets", "misses", "open", "cannot be run", "has no such figure"
STEPS = (10, 20, 40)
"""Replications of a configuration that is tested, until its intervals are on one side."""


def read_choice(text: str) -> tuple[str, tuple[str, ...]]:
    """Return what ``--choose`` says, a name and its values: ``name=value,value`` or ``name=low..high/levels``."""
    if (match := _LEVELS.fullmatch(text)) is not None:
        name, span = read_range(match["range"], "--choose")
        if not 2 <= (count := int(match["levels"])) <= MOST:
            raise UsageError(f"--choose: from 2 to {MOST} levels of a range, got {count}")
        return name, tuple(dict.fromkeys(span.at(n / (count - 1)) for n in range(count)))
    name, equals, rest = text.partition("=")
    values = tuple(dict.fromkeys(split_values(rest)))
    if not equals or not name.strip() or not all(values):
        raise UsageError(f"--choose: '{text}' is not of the form name=value,value or name=low..high/levels")
    if range_without_levels := next((each for each in values if _RANGE.fullmatch(each)), ""):
        raise UsageError(f"--choose: '{text}': how many levels of that range? Such as {range_without_levels}/5")
    return name.strip(), values


@dataclass
class Candidate:
    """A configuration."""

    point: Point
    cost: float
    quantities: Mapping[str, float]
    """Priced quantities."""
    n: int = 0
    """Replications that its figures rest on."""
    figures: dict[str, Estimate] = field(default_factory=dict)
    """Of each objective, by its address."""
    verdict: str = OPEN
    """``meets``, ``misses``, ``open``, ``cannot be run`` or ``has no such figure``."""
    reason: str = ""
    """Why it cannot be run."""
    failed_again: bool = False
    """Whether it met the objectives, and not with fresh random numbers."""
    varied: frozenset[str] = frozenset()
    """Choices with several values."""

    @property
    def number(self) -> int:
        return self.point.number

    @property
    def name(self) -> str:
        """Its choices in words, but for those that are none."""
        return ", ".join(f"{name}={value}" for name, value in self.point.values.items() if name in self.varied)

    @property
    def is_new(self) -> bool:
        """Whether nobody has tried to run it."""
        return not self.n and self.verdict == OPEN

    @property
    def is_possible(self) -> bool:
        """Whether it may be the answer yet: not known to miss, nor open after all the runs that one gets."""
        return self.verdict in (MET, OPEN) and not self.failed_again and not self.is_left_open

    @property
    def is_left_open(self) -> bool:
        """Whether not even the most runs told on which side it is."""
        return self.verdict == OPEN and self.n >= STEPS[-1]


def candidates_of(request: Request) -> tuple[list[Candidate], dict[str, str]]:
    """Return the configurations that the model can have, the cheapest first, and why the others cannot be."""
    points, refused = request.points
    varied = frozenset(name for name, of_choice in request.choices.items() if len(of_choice) > 1)
    units = price_units(request, points)
    candidates = [
        Candidate(point, *cost_of(request.prices, point.model.spec, units), varied=varied) for point in points
    ]
    return sorted(candidates, key=lambda each: (each.cost, each.number)), refused


def price_units(request: Request, points: Sequence[Point]) -> dict[str, str]:
    """Return of which unit each key's price is: that of the model, or where it has none of the first configuration."""
    ordered = sorted(points, key=lambda point: point.number)
    return units_of(request.prices, [request.base.spec, *(point.model.spec for point in ordered)])


def verdict_of(
    objectives: Sequence[Objective], figures: Mapping[str, Estimate], values: Mapping[str, Sequence[float]]
) -> str:
    """Return whether a configuration meets its objectives, by intervals of its figures.

    One without a figure, as without protection no output is held, neither meets nor misses an objective on it.
    Where runs are too few or too alike for an interval, all of them must agree; that few can say that one misses, but
    not that it meets.
    """
    are_met = []
    for objective in objectives:
        estimate = figures.get(objective.figure)
        if estimate is None:
            return LACKING
        values_of_runs = values[objective.figure]
        if estimate.is_interval:
            ends = [objective.holds(end) for end in (estimate.low, estimate.high)]
        else:
            ends = [objective.holds(value) for value in values_of_runs]
        if not any(ends):
            return MISSED
        are_met.append(all(ends) and len(values_of_runs) >= FEWEST_RUNS)
    return MET if all(are_met) else OPEN


_KEYS = "prices: keys:"
_GIB, _GBIT = 2.0**30, 1e9
FOLDER, DEFAULT = "prices", "example"
Price = Annotated[float, Field(ge=0.0, le=1e12)]


class PriceTable(Spec):
    """Prices; what is left out costs nothing."""

    name: str = Field(min_length=1, max_length=100, description="What the table is, and of when.")
    source: str = Field("", max_length=4000, description="Where the prices come from.")
    unit: str = Field("", max_length=40, description="Such as EUR a month.")
    host: Price = Field(0.0, description="Each host; the second host of a protected domain is one more.")
    core: Price = Field(0.0, description="Each physical CPU of these hosts.")
    vcpu: Price = Field(0.0, description="Each virtual CPU of every domain, and of the copy that protects it.")
    memory: Price = Field(0.0, description="Each GiB of every domain's memory, and of the copy that protects it.")
    network: Price = Field(0.0, description="Each Gbit/s of networks, and of a channel of protection of its own.")
    keys: dict[str, Price] = Field(
        default_factory=dict,
        description="Of each unit of the number at a key, in the unit in which the model states it (10 ms: each ms).",
    )
    parts: dict[str, Price] = Field(
        default_factory=dict, description="Once for a value of a key: domains.sut.protection.kind=lockstep."
    )


def prices_schema() -> dict[str, Any]:
    """Return the JSON Schema of price tables."""
    return json_schema(PriceTable, "vftsim prices")


def read_prices(path: str | None) -> PriceTable:
    """Return a table of prices, the shipped example without a path; refuse a file that is missing or wrong."""
    file = shipped_dir(ROOM) / FOLDER / f"{DEFAULT}.yaml" if path is None else Path(path)
    if not is_file(file):
        raise UsageError(f"--prices: no file {shown(path)}; 'vftsim schema prices' says what one has")
    return load(file, PriceTable, search=lambda _: file)


def quantities_of(spec: ModelSpec) -> dict[str, float]:
    """Return how much of what is priced a model has, second hosts and copies of protected domains included."""
    paired = {name: domain for name, domain in spec.domains.items() if domain.protection.has_backup}
    seconds = {spec.host_of(domain) for domain in paired.values()}
    hosts = [*spec.hosts.values(), *(spec.hosts[name] for name in seconds)]
    domains = [*spec.domains.values(), *paired.values()]
    channels = [own_rate_bits_per_s(domain) * domain.count for domain in paired.values()]
    return {
        "host": float(len(hosts)),
        "core": float(sum(host.pcpus for host in hosts)),
        "vcpu": float(sum(domain.vcpus * domain.count for domain in domains)),
        "memory": sum(domain.memory_available * domain.count for domain in domains) / _GIB,
        "network": (sum(network.rate for network in spec.networks.values()) + sum(channels)) / _GBIT,
    }


def units_of(table: PriceTable, specs: Sequence[ModelSpec]) -> dict[str, str]:
    """Return of which unit each key's price is: that in which the first of the models with a number there states it."""
    numbers_of_key = {key: (_number_at(spec, key) for spec in specs) for key in table.keys}
    return {key: next((unit for number, unit in numbers if number), "") for key, numbers in numbers_of_key.items()}


def _number_at(spec: ModelSpec, key: str) -> tuple[float, str]:
    try:
        return number_of(value_at(spec, key, _KEYS)) or (0.0, "")
    except UsageError:
        return 0.0, ""


def _amount(spec: ModelSpec, key: str, unit: str) -> float:
    """Return the number at a key in a unit; refuse a key without a number."""
    value = value_at(spec, key, _KEYS)
    number, written_unit = number_of(value) or (0.0, "")
    if written_unit == "" and not isinstance(value, int | float):
        raise UsageError(f"{_KEYS} {key}: {shown(value)} is no number")
    in_its_unit = converted(number, written_unit, unit)
    return number if in_its_unit is None else in_its_unit


def cost_of(table: PriceTable, spec: ModelSpec, units: Mapping[str, str]) -> tuple[float, dict[str, float]]:
    """Return what a model costs in all, and the quantities that it pays for; numbers at keys in their ``units``.

    Refuses a price of a key that the model lacks, or of a kind of part that there is not.
    """
    quantities = quantities_of(spec)
    cost = math.fsum(getattr(table, name) * amount for name, amount in quantities.items())
    for key, price in table.keys.items():
        quantities[key] = _amount(spec, key, units[key])
        cost += price * quantities[key]
    data = spec.model_dump(mode="json") if table.parts else {}
    for text, price in table.parts.items():
        quantities[text] = float(_has(data, text))
        cost += price * quantities[text]
    priced = {*table.keys, *table.parts, *(name for name in quantities if getattr(table, name, 0.0))}
    return cost, {name: amount for name, amount in quantities.items() if name in priced}


def _has(data: Mapping[str, Any], text: str) -> bool:
    """Tell whether a value stands at a key; not where only another kind of the part has that key."""
    path, _, value = (word.strip() for word in text.partition("="))
    node: Any = data
    shape: Shape | None = Shape(ModelSpec)
    for key in path.split("."):
        kinds = shape.registry if shape is not None else None
        if key == TAG and kinds is not None and value not in kinds:
            raise UsageError(
                f"prices: parts: '{text}': there is no kind {shown(value)}{instead(value, kinds, 'one of')}"
            )
        if not isinstance(node, Mapping) or key not in node:
            if kinds is not None and any(key in part.model_fields for part in kinds.values()):
                return False
            names = node if isinstance(node, Mapping) else ()
            raise UsageError(f"prices: parts: '{text}': there is no '{key}'{instead(key, names, 'it has')}")
        node, shape = node[key], shape.child(key, node) if shape is not None else None
    if (numbers := numbers_of([str(node), value])) is None:
        return str(node).replace(" ", "") == value.replace(" ", "")
    return numbers[0][0] == numbers[0][1]  # 25ms and 25000 us are 25 ms
