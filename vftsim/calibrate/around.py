"""What is around a fit: its profile, parameter by parameter, and how often such a fit finds what it looks for.

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

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.special import fdtri

from vftsim.calibrate.fit import Problem, Search
from vftsim.calibrate.intervals import Coverage, Fit, Profile, fit_at, replications_of_chance
from vftsim.labs.dataset import Observations
from vftsim.study.runs.workers import Workers

Array = NDArray[np.float64]
POSITIONS = tuple(n / 8.0 for n in range(9))
"""Of a profile, in shares of the box."""
FIRST_SEED = 7000
_EDGE = 1e-9


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
    there, moved = units.copy(), residuals + matrix[:, i] * (position - units[i])
    there[i] = position
    others = [j for j in range(len(units)) if j != i]
    if others:
        there[others] += _step(units[others], moved, matrix[:, others])
    return np.clip(there, 0.0, 1.0)


def _step(units: Array, residuals: Array, matrix: Array) -> Array:
    """Return the step to the least squares of a linear model, within the box."""
    shift: Array = lsq_linear(matrix, -residuals, bounds=(-units - _EDGE, 1.0 - units + _EDGE)).x
    return shift


def coverage_of(search: Search, units: Array, matrix: Array, laboratories: int, jobs: int) -> list[Coverage]:
    """Return how often intervals of fits to simulated laboratories hold the values that made them."""
    problem = search.evaluate.problem
    definition, truth = problem.definition, search.low + units * search.span
    replications, workers = definition.replications, Workers(_played, jobs)
    of_chance = replications_of_chance(definition)
    at_fit = [(problem, truth, definition.seed, r) for r in range(of_chance)]
    made = [(problem, truth, FIRST_SEED + definition.seed + n, 0) for n in range(laboratories)]
    seen = workers.in_order([*at_fit, *made])
    labs = [replace(problem, data=data) for data in seen[of_chance:]]
    firsts = [_mean(lab, seen[:replications]) for lab in labs]
    at = [np.clip(units + _step(units, first, matrix), 0.0, 1.0) for first in firsts]
    tasks = [(problem, search.low + x * search.span, definition.seed, r) for x in at for r in range(replications)]
    there = workers.in_order(tasks)
    fits = []
    for n, (lab, x) in enumerate(zip(labs, at, strict=True)):
        mean = _mean(lab, there[n * replications : (n + 1) * replications])
        scatter = [lab.against(each) for each in seen[:of_chance]]
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


def _mean(problem: Problem, seen: Sequence[Observations]) -> Array:
    mean: Array = np.mean([problem.against(each) for each in seen], axis=0)
    return mean


def _played(task: tuple[Problem, Array, int, int]) -> Observations:
    problem, x, seed, replication = task
    return problem.observed(x, seed, replication)
