"""Least-squares fit of a model's parameters under common random numbers.

Every evaluation runs the same seeds, so the objective is a deterministic function of the parameters.
A search by Gauss-Newton steps finds the minimum that is near: with several starts, each is searched with the first
replication, and where the best one ends the search goes on with all of them.  Starts after the declared one are a
Latin hypercube (McKay, Beckman and Conover, Technometrics 21(2), 1979) over the middle 80 % of the bounds.

*Profile.*  A parameter is held at positions over its box while the others move to where the residuals are least by the
derivatives at the fit, kept within their boxes; there the model is played.  Twice the half sum of squares so found, as
a multiple of the least, says how much worse the data like the position (profile likelihood: Bates and Watts, Nonlinear
Regression Analysis, 1988, section 6.1.2).  The others take one linear step, so the profile may be too high far from the
fit, never too low.

*Coverage.*  The model with the fitted values plays laboratories, each a data set of the same observations on a seed of
its own.  Each is fitted anew from the fit by two Gauss-Newton steps with the derivatives at the fit, the first of which
is played, and gets intervals as the fit has them; the chance of runs is the fit's, as the derivatives are.  How many
hold the values that made the data is their coverage; that the model is wrong it does not show.  All laboratories are
fitted with the fit's replications, whose chance they share: of a parameter that it moves far, few or all are held.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, lsq_linear
from scipy.special import fdtri

from vftsim.calibrate.definition import CalibrationSpec, FreeParameter, matches
from vftsim.calibrate.figures import as_run, check_present, delay_percentiles, is_ratio, observe
from vftsim.calibrate.intervals import Coverage, End, Fit, Profile, fit_at, note_ends, replications_of_chance
from vftsim.composition.keys import read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.composition.without_effect import running_vcpus
from vftsim.errors import UsageError
from vftsim.labs.dataset import Observations
from vftsim.sampling.streams import Streams
from vftsim.study.runs.workers import Workers
from vftsim.study.store.store import RunCache

Array = NDArray[np.float64]
_STEP = 0.08
_DIGITS = 13  # of the hash: 52 bits, which every reader of JSON holds exactly
_ANOTHER_LOAD = 1.5
"""Ratio of a played load to the measured one that no chance of arrivals explains."""
_EDGE = 0.1
"""Share of the way between a parameter's bounds that spread starts keep from either."""


def parameter_values(
    spec: ModelSpec, parameters: tuple[FreeParameter, ...], x: Array, run: str = ""
) -> dict[str, float]:
    """Return the model keys that a point of the search sets, in a run ``environment/phase`` if there are several."""
    values: dict[str, float] = {}
    for parameter, value in zip(parameters, x, strict=True):
        if parameter.environments and run.partition("/")[0] not in parameter.environments:
            continue
        values[parameter.path] = float(value)
        for path in parameter.scales:
            values[path] = float(read(spec, path)) * float(value) / float(read(spec, parameter.path))
    return values


def chosen(definition: CalibrationSpec, data: Observations) -> list[tuple[str, str]]:
    """Return the observations that the fit uses, in a fixed order."""
    patterns = set(definition.quantities)
    expanded = patterns | (delay_percentiles() if "delays" in patterns else frozenset())

    def is_used(phase: str, quantity: str) -> bool:
        return quantity in expanded or any(matches(f"{phase}/{quantity}", pattern) for pattern in patterns)

    return sorted(key for key in data if key[0] in definition.in_sample and is_used(*key))


def residual(definition: CalibrationSpec, quantity: str, predicted: float, measured: float) -> float:
    if is_ratio(quantity):
        return float(np.log(max(predicted, 1e-3) / max(measured, 1e-3)) / definition.log_scale)
    return (predicted - measured) / definition.cpu_scale_points


def search_for(
    definition: CalibrationSpec,
    spec: ModelSpec | Mapping[str, ModelSpec],
    data: Observations,
    jobs: int = 1,
    progress: Callable[[int, float], None] | None = None,
    cache: RunCache | None = None,
    at: Mapping[str, float] | None = None,
) -> Fitted:
    """Fit the free parameters, or stay where an earlier fit ended.

    The model has the definition's overrides already, or is one for each run, by its name.  ``progress`` is called with
    the number of simulations so far and the best cost; evaluations that the cache has are not made again.  ``at`` are
    values of an earlier fit, in base units: nothing is searched.
    """
    keys = chosen(definition, data)
    if not keys:
        raise UsageError("the dataset has no observations for the phases and quantities in sample")
    specs = spec if isinstance(spec, Mapping) else {"": spec}
    parameters = definition.parameters
    low = np.array([p.bounds[0] for p in parameters])
    high = np.array([p.bounds[1] for p in parameters])
    problem = Problem(definition, specs, keys, data)
    search = Search(Evaluations(problem, jobs, cache or RunCache()), low, high - low, progress)
    if at is None:
        best, ends = search.best(starts_of(definition), definition.replications)
    else:
        best, ends = search.stay(np.array([at[p.path] for p in parameters]), definition.replications), []
    apart = search.apart(best, replications_of_chance(definition))
    result = fit_at(definition, keys, best, low, high - low, apart)
    result.evaluations, result.is_cut = search.steps, best.status == 0
    note_ends(definition, result, ends)
    return Fitted(result, search, best.x, best.jac)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit, and the search that found it: where it ended (in shares of the box), and the derivatives there."""

    fit: Fit
    search: Search
    units: Array
    matrix: Array


def starts_of(definition: CalibrationSpec) -> list[Array]:
    """Return where searches begin, in shares of the box: the declared start, then points spread over it."""
    parameters, more = definition.parameters, definition.starts - 1
    units = [(p.first - p.bounds[0]) / (p.bounds[1] - p.bounds[0]) for p in parameters]
    shape = (2, len(parameters), more)
    draws = Streams(definition.seed, 0).uniforms("calibrate.starts", count=math.prod(shape)).reshape(shape)
    shares = (draws[0].argsort(axis=1) + draws[1]) / max(more, 1)
    return [np.clip(units, 0.01, 0.99), *(_EDGE + (1.0 - 2.0 * _EDGE) * shares.T)]


@dataclass(slots=True)
class Search:
    """Searches one after the other over the same box."""

    evaluate: Evaluations
    low: Array
    span: Array
    progress: Callable[[int, float], None] | None
    steps: int = 0

    def run(self, start: Array, replications: int) -> Any:
        """Search from a point, in shares of the box; return what SciPy says of its end."""

        def objective(units: Array) -> Array:
            self.steps += 1
            (value,) = self.residuals([units], replications, check=self.steps == 1)
            if self.progress is not None:
                self.progress(self.steps, float(0.5 * value @ value))
            return value

        return least_squares(
            objective,
            start,
            jac=partial(self._jacobian, replications=replications),
            bounds=(0.0, 1.0),
            max_nfev=self.evaluate.problem.definition.most_evaluations,
            xtol=2e-3,
            ftol=2e-3,
        )

    def residuals(self, points: Sequence[Array], replications: int, check: bool = False) -> list[Array]:
        """Return mean residuals at points, in shares of the box."""
        return self.evaluate([self.low + units * self.span for units in points], replications, check)

    def stay(self, values: Array, replications: int) -> Any:
        """Return, at values, what a search that ends there says."""
        units = np.clip((values - self.low) / self.span, 0.0, 1.0)
        (value,) = self.residuals([units], replications, check=True)
        matrix = self._jacobian(units, replications)
        return SimpleNamespace(x=units, fun=value, jac=matrix, cost=0.5 * float(value @ value), nfev=1, status=1)

    def best(self, starts: Sequence[Array], replications: int) -> tuple[Any, list[End]]:
        """Search from every start; return the end of the whole search, and where each start ended if there are more."""
        if len(starts) == 1:
            return self.run(starts[0], replications), []
        ends = [self.run(start, 1) for start in starts]
        best_end = min(ends, key=lambda end: float(end.cost))
        if replications > 1:
            best_end = self.run(best_end.x, replications)
        return best_end, [self._end(each) for each in ends]

    def apart(self, end: Any, replications: int) -> list[Array]:
        """Return the residuals of each replication where a search ended."""
        values = self.low + end.x * self.span
        self.evaluate([values], replications)
        return self.evaluate.apart(values, replications)

    def _jacobian(self, units: Array, replications: int) -> Array:
        steps = np.where(units + _STEP <= 1.0, _STEP, -_STEP)
        base, *moved = self.residuals([units, *(units + np.diag(steps))], replications)
        return np.array([(residuals - base) / step for residuals, step in zip(moved, steps, strict=True)]).T

    def _end(self, end: Any) -> End:
        names = [p.path for p in self.evaluate.problem.definition.parameters]
        values = dict(zip(names, (self.low + end.x * self.span).tolist(), strict=True))
        return End(values, float(end.cost), int(end.nfev))


def at_measured_traffic(
    observations: Observations, data: Observations, models: Mapping[str, ModelSpec], up_to: float = math.inf
) -> Observations:
    """Return the run's numbers with the server's CPU brought to the measured load and mix of each phase.

    Arrivals are random: load and mix of a short step are off by their standard errors, and CPU with them in proportion
    to the messages a second; to the attempts a second where the mix was not measured.  ``models`` are by phase, or one
    for all by the empty name.  A CPU that is full does not follow the load: none is brought beyond what the model's
    server can use, and a phase whose measured CPU in percent is beyond ``up_to`` is left as it is.
    """
    servers = {name: _server(spec) for name, spec in models.items()}
    brought = dict(observations)
    for (phase, quantity), value in observations.items():
        server, most = servers.get(phase) or servers.get("") or ("", math.inf)
        if (
            quantity in ("cpu", f"cpu.{server}")
            and (phase, "load") in data
            and (phase, "load") in observations
            and _traffic(observations, phase, data) > 0
            and data.get((phase, quantity), 0.0) <= up_to
        ):
            scaled = value * _traffic(data, phase, data) / _traffic(observations, phase, data)
            brought[phase, quantity] = min(scaled, max(value, most))
    return brought


def _server(spec: ModelSpec) -> tuple[str, float] | None:
    """Return the domain that a benchmark of SIP is directed at, and the CPU in percent that its vCPUs can use at most.

    ``None`` for a model without one.
    """
    if spec.ramp is None:
        return None
    server, _, _ = spec.target_of(spec.workloads[spec.phased or ""])
    return server, 100.0 * running_vcpus(spec, server)


def at_other_loads(runs: Sequence[Observations], data: Observations) -> list[str]:
    """Return a line for every phase that is played far from its measured load, as by a slip in its settings.

    CPU grows with the load in proportion near a load, not far from it.
    """
    lines = []
    for phase, measured in ((phase, value) for (phase, quantity), value in data.items() if quantity == "load"):
        loads = [run[phase, "load"] for run in runs if (phase, "load") in run]
        played = math.fsum(loads) / len(loads) if loads else 0.0
        if min(played, measured) > 0.0 and max(played / measured, measured / played) > _ANOTHER_LOAD:
            lines.append(f"'{phase}' was measured at {measured:.4g} attempts/s and is played at {played:.4g}")
    return lines


def _traffic(of: Observations, phase: str, data: Observations) -> float:
    """Messages a second, or attempts a second where ``data`` do not have the mix."""
    return of[phase, "load"] * (of.get((phase, "touches"), 0.0) if (phase, "touches") in data else 1.0)


def observed(specs: Mapping[str, ModelSpec], seed: int, replication: int) -> Observations:
    """Play models, those that are equal once; return all that they give, each's under its name if it has one."""
    observations: Observations = {}
    played: list[tuple[ModelSpec, Observations]] = []
    for name, spec in specs.items():
        from_run = next((from_run for model, from_run in played if model == spec), None)
        if from_run is None:
            from_run = observe(spec, seed, replication)
            played.append((spec, from_run))
        observations |= as_run(from_run, name) if name else from_run
    return observations


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem of a fit: models as functions of parameters, and the fitted observations."""

    definition: CalibrationSpec
    specs: Mapping[str, ModelSpec]
    keys: list[tuple[str, str]]
    data: Observations

    def against(self, observations: Observations) -> Array:
        """Return the residuals of what was seen against the data."""
        of, data = at_measured_traffic(observations, self.data, self.specs), self.data
        return np.array([residual(self.definition, q, of.get((p, q), 0.0), data[p, q]) for p, q in self.keys])

    def observed(self, x: Array, seed: int, replication: int) -> Observations:
        """Return what the models give at a point."""
        parameters = self.definition.parameters
        at_x = {
            name: with_values(each, parameter_values(each, parameters, x, name)) for name, each in self.specs.items()
        }
        return observed(at_x, seed, replication)


def number_of(point: Sequence[float], replication: int) -> int:
    """Return an evaluation's number in a store, which only the same point, to the last bit, and replication have.

    The optimiser does the same from the same numbers, so it asks for the same points again.
    """
    text = ",".join([*(float(value).hex() for value in point), str(replication)])
    return int(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS], 16)


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The residuals at points of the parameters; every replication of a point is a task of its own, done once."""

    problem: Problem
    jobs: int
    cache: RunCache
    known: dict[int, list[float]] = field(default_factory=dict)

    def __call__(self, points: Sequence[Array], replications: int, check: bool = False) -> list[Array]:
        """Return mean residuals at points; with ``check``, refuse observations that the models do not have."""
        numbers = {number_of(x.tolist(), r): (x, r) for x in points for r in range(replications)}
        tasks = {n: (self.problem, *at, check) for n, at in numbers.items() if n not in self.known}
        self.known.update(zip(tasks, self.cache.in_order(Workers(_residuals, self.jobs), tasks), strict=True))
        nothing = np.zeros(len(self.problem.keys))
        return [sum(self.apart(x, replications), nothing) / replications for x in points]

    def apart(self, x: Array, replications: int) -> list[Array]:
        """Return residuals at a point that was evaluated, replication by replication."""
        return [np.array(self.known[number_of(x.tolist(), r)]) for r in range(replications)]


def _residuals(task: tuple[Problem, Array, int, bool]) -> list[float]:
    """Play the models once at a point; with ``check``, refuse observations that they do not have."""
    problem, x, replication, check = task
    observations = problem.observed(x, problem.definition.seed, replication)
    if check:
        _check(observations, problem.data, problem.keys)
    return [float(each) for each in problem.against(observations)]


def _check(observations: Observations, data: Observations, keys: list[tuple[str, str]]) -> None:
    """Refuse phases in sample that the model, where the search begins, plays not at all, or at another load."""
    played = list(dict.fromkeys(phase for phase, _ in observations))
    for phase in dict.fromkeys(phase for phase, _ in keys):
        if phase not in played:
            raise UsageError(
                f"the model does not reach the phase '{phase}' that is in sample; it plays {', '.join(played)}. The "
                "dataset must use these names; a ramp that stops early needs other starts"
            )
    check_present(observations, dict.fromkeys(keys))
    loads = {(phase, "load"): data[phase, "load"] for phase, _ in keys if (phase, "load") in data}
    if others := at_other_loads([observations], loads):
        raise UsageError(f"{others[0]}; give the phase its load, or the dataset its rate of attempts")


POSITIONS = tuple(n / 8.0 for n in range(9))
"""Of a profile, in shares of the box."""
FIRST_SEED = 7000
_ROOM = 1e-9


def profiles_of(search: Search, units: Array, matrix: Array, replications: int) -> list[Profile]:
    """Return the profile of every parameter at a fit.

    The fit is at ``units``, shares of the box; the matrix has the derivatives of the residuals there.
    """
    problem = search.evaluate.problem
    (at_fit,) = search.residuals([units], replications)
    least = max(float(at_fit @ at_fit), 1e-12)
    points = [_held(units, at_fit, matrix, i, position) for i in range(len(units)) for position in POSITIONS]
    ratios = [float(r @ r) / least for r in search.residuals(points, replications)]
    freedom = max(len(problem.keys) - len(units), 1)
    limit = 1.0 + float(fdtri(1, freedom, 0.95)) / freedom
    profiles, count = [], len(POSITIONS)
    for i, parameter in enumerate(problem.definition.parameters):
        pairs = [(float(units[i]), 1.0), *zip(POSITIONS, ratios[i * count : (i + 1) * count], strict=True)]
        values, squares = zip(*sorted(pairs), strict=True)
        in_units = (float(search.low[i] + value * search.span[i]) for value in values)
        profiles.append(Profile(parameter.path, tuple(in_units), tuple(squares), limit))
    return profiles


def _held(units: Array, residuals: Array, matrix: Array, i: int, position: float) -> Array:
    """Return where the others go when one parameter is held at a position."""
    stepped, moved = units.copy(), residuals + matrix[:, i] * (position - units[i])
    stepped[i] = position
    others = [j for j in range(len(units)) if j != i]
    if others:
        stepped[others] += _step(units[others], moved, matrix[:, others])
    return np.clip(stepped, 0.0, 1.0)


def _step(units: Array, residuals: Array, matrix: Array) -> Array:
    """Return the step to the least squares of a linear model, within the box."""
    shift: Array = lsq_linear(matrix, -residuals, bounds=(-units - _ROOM, 1.0 - units + _ROOM)).x
    return shift


def coverage_of(search: Search, units: Array, matrix: Array, laboratories: int, jobs: int) -> list[Coverage]:
    """Return how often intervals of fits to simulated laboratories hold the values that made them."""
    problem = search.evaluate.problem
    definition, truth = problem.definition, search.low + units * search.span
    replications, workers = definition.replications, Workers(_played, jobs)
    of_chance = replications_of_chance(definition)
    at_fit = [(problem, truth, definition.seed, r) for r in range(of_chance)]
    lab_tasks = [(problem, truth, FIRST_SEED + definition.seed + n, 0) for n in range(laboratories)]
    played = workers.in_order([*at_fit, *lab_tasks])
    labs = [replace(problem, data=data) for data in played[of_chance:]]
    firsts = [_mean(lab, played[:replications]) for lab in labs]
    at = [np.clip(units + _step(units, first, matrix), 0.0, 1.0) for first in firsts]
    tasks = [(problem, search.low + x * search.span, definition.seed, r) for x in at for r in range(replications)]
    refitted = workers.in_order(tasks)
    fits = []
    for n, (lab, x) in enumerate(zip(labs, at, strict=True)):
        mean = _mean(lab, refitted[n * replications : (n + 1) * replications])
        scatter = [lab.against(each) for each in played[:of_chance]]
        step = _step(x, mean, matrix)
        fun = mean + matrix @ step
        end = SimpleNamespace(x=np.clip(x + step, 0.0, 1.0), fun=fun, jac=matrix, cost=0.5 * float(fun @ fun), nfev=2)
        fits.append(fit_at(definition, problem.keys, end, search.low, search.span, scatter))
    return [_covered(parameter.path, float(truth[i]), fits) for i, parameter in enumerate(definition.parameters)]


def _covered(path: str, truth: float, fits: Sequence[Fit]) -> Coverage:
    """Return how often the intervals of one parameter hold the value that made the data."""
    inside = sum(fit.low[path] <= truth <= fit.high[path] for fit in fits)
    left_open = sum(path in fit.undetermined for fit in fits)
    value = float(np.mean([fit.values[path] for fit in fits]))
    half_width = float(np.mean([(fit.high[path] - fit.low[path]) / 2.0 for fit in fits]))
    return Coverage(path, truth, len(fits), inside, left_open, value, half_width)


def _mean(problem: Problem, observations: Sequence[Observations]) -> Array:
    mean: Array = np.mean([problem.against(each) for each in observations], axis=0)
    return mean


def _played(task: tuple[Problem, Array, int, int]) -> Observations:
    problem, x, seed, replication = task
    return problem.observed(x, seed, replication)
