"""Intervals of fitted parameters: what scatter of the data, and the chance of runs, leave of them.

Gauss-Newton approximation at the optimum, two parts that are added:

* *Data.*  Residuals are resampled (bootstrap of observations) and widened for what the parameters took of them:
  residuals of n observations and p parameters are too small by sqrt((n - p) / n), and their size is itself known to
  n - p degrees of freedom.  Those of CPU, of other shares and of what is compared by its ratio are resampled apart,
  as CPU may scatter by many of its scales where delays scatter by a part of theirs: each kind has the degrees of
  freedom that the parameters leave it (its observations less the sum of their leverages, diagonal elements of J J+),
  and a parameter's variance, of all kinds, those of Welch (Biometrika 34, 1947) and Satterthwaite (Biometrics
  Bulletin 2(6), 1946).  A kind that they leave fewer than 1.5 is taken as one with the next.
* *Chance of runs.*  A fit compares measured runs with the mean of R replications, which are the same at every point.
  The chance of either moves many observations, and so the parameters, together, which residuals resampled one by one
  do not show.  The residuals r of a replication at the optimum say where it alone would have moved the parameters:
  -J+ (r - mean r), J+ the pseudoinverse of the matrix of derivatives.  The sample covariance S of these moves is that
  of one run; a fit of fewer than :data:`CHANCE_RUNS` replications plays so many where it ended to tell it.  The mean of
  the R of its search has S / R, and what was measured, one run of a system that scatters as the model does, has S:
  S (1 + 1 / R) in all, known to one degree of freedom less than there are moves.  It is drawn from a normal
  distribution whose central 95 % is that of Student's t: a t of few degrees has no variance, so no correlation.  Where
  chance moves observations one by one, or several measured runs were averaged, some of it is counted twice, and
  intervals err on the wide side.

Parameters that the data do not determine (below), by the matrix, by the width of what comes
out of both parts, or because another search ended elsewhere at like cost, keep their bounds as interval; they,
parameters at a bound, and pairs with a correlation beyond 0.95 are reported as not identified.

*Identifiability*: the sensitivity matrix against the information in the bounds alone.  Every parameter is taken over
its own box, 0 at the lower and 1 at the upper bound; residuals are in multiples of their scale.  Before the data, a
parameter is anywhere in its box: standard deviation ``1/sqrt(12)``.  With sensitivity matrix ``J`` and residual scale
``sigma`` the data leave the covariance ``(J'J / sigma^2 + 12 I)^-1`` (linear model, Gaussian prior of the box's
variance; Bates and Watts, Nonlinear Regression Analysis, 1988, section 2).  A parameter whose standard deviation the
data do not halve is *not identified*: its value is where the search began or wandered to.

The matrix knows neither the chance of runs nor other minima.  So a parameter is not identified either if its 95 %
interval, with all that went into it, is as wide as that of a normal distribution with half the spread of its box, or if
searches from other starts ended at like cost outside of the interval.  *Like*: within the joint 95 % region of n
observations and p parameters, squares up to the least times 1 + p / (n - p) F(0.95; p, n - p) (Bates and Watts, 1988,
section 6.1.2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.figures import is_cpu, is_ratio
from vftsim.sampling.streams import Streams
from vftsim.stats._special import student_t_quantile

Array = NDArray[np.float64]
_RESAMPLES = 2000
_NORMAL_975 = 1.959964
_LEAST_FREEDOM = 1.5
CHANCE_RUNS = 8
"""Replications that a fit plays at least where it ended: Student's t of seven degrees is 2.4 standard errors."""


_BOX_VARIANCE = 1.0 / 12.0
BOX_DEVIATION: float = _BOX_VARIANCE**0.5
"""Standard deviation of a parameter before the data, as a share of the way between its bounds."""
MOST_REMAINING = 0.5
"""Share of the standard deviation before the data that may remain of an identified parameter."""
MOST_OF_BOX = 2.0 * 1.959964 * MOST_REMAINING * BOX_DEVIATION
"""Share of the box that a 95 % interval of an identified parameter may have."""
_PART_OF_MOST = 0.3


@dataclass(frozen=True, slots=True)
class Identification:
    """Identifiability of the parameters by the data."""

    remaining: tuple[float, ...]
    """For each parameter, its standard deviation with the data over that without (1: the data say nothing)."""
    effect: tuple[float, ...]
    """For each parameter, the norm of the change of the scaled residuals when it moves through its box."""
    partners: tuple[tuple[int, ...], ...]
    """For each parameter that the data would tell alone, the others that it can be exchanged for."""
    rank: int
    """Directions in which the data halve the standard deviation."""
    condition: float
    """Largest over smallest singular value of the sensitivity matrix; infinite if that is 0."""
    correlations: Array
    """Of the covariance that the data leave."""

    def identified(self, parameter: int) -> bool:
        return self.remaining[parameter] <= MOST_REMAINING


def identification(jacobian: Array, sigma: float) -> Identification:
    """Return what a sensitivity matrix says about the parameters.

    The matrix has scaled residuals (rows) by parameters over their boxes (columns).  Sigma is the standard deviation of
    a scaled residual; below 1 it counts as 1, what the definition calls one scale.
    """
    _, count = jacobian.shape
    scaled = jacobian / max(sigma, 1.0)
    _, values, directions = np.linalg.svd(scaled, full_matrices=True)
    singular = np.zeros(count)
    singular[: len(values)] = values
    remaining_along = 1.0 / (1.0 + singular**2 * _BOX_VARIANCE)
    covariance = directions.T @ np.diag(remaining_along) @ directions
    remaining = np.sqrt(covariance.diagonal())
    partners = [_partners(parameter, scaled) for parameter in range(count)]
    return Identification(
        tuple(remaining.tolist()),
        tuple(np.linalg.norm(jacobian, axis=0).tolist()),
        tuple(partners),
        int(np.count_nonzero(remaining_along <= MOST_REMAINING**2)),
        float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf"),
        covariance / np.outer(remaining, remaining),
    )


def is_determined(low: float, high: float, bounds: tuple[float, float]) -> bool:
    """Return whether a 95 % interval says more of a parameter than its bounds do."""
    return high - low < MOST_OF_BOX * (bounds[1] - bounds[0])


def like_costs(costs: Sequence[float], observations: int, parameters: int) -> list[int]:
    """Return which ends of searches the data cannot tell from the best one."""
    freedom = observations - parameters
    if freedom < 1:  # no scatter to go by: residuals have the deviation that their scale says
        most = min(costs) + float(chdtri(parameters, 0.05)) / 2.0
    else:
        most = min(costs) * (1.0 + parameters / freedom * float(fdtri(parameters, freedom, 0.95)))
    return [i for i, cost in enumerate(costs) if cost <= most]


def elsewhere(
    ends: Sequence[tuple[float, Mapping[str, float]]],
    observations: int,
    low: Mapping[str, float],
    high: Mapping[str, float],
) -> dict[str, list[float]]:
    """Return parameters that searches, each with its cost and values, took out of their intervals at like cost."""
    if not ends:
        return {}
    like = like_costs([cost for cost, _ in ends], observations, len(low))
    values_of = {name: [ends[i][1][name] for i in like] for name in low}
    return {
        name: values for name, values in values_of.items() if not low[name] <= min(values) <= max(values) <= high[name]
    }


def _is_told_alone(squares: float) -> bool:
    """Whether a parameter of so much effect, squared, in deviations of a residual, would be told if it were alone."""
    return (1.0 + squares * _BOX_VARIANCE) * MOST_REMAINING**2 >= 1.0


def _partners(parameter: int, scaled: Array) -> tuple[int, ...]:
    """Return the others that take over most of what a parameter moves; none if it is not told even alone."""
    column, others = scaled[:, parameter], [i for i in range(scaled.shape[1]) if i != parameter]
    if not others or not _is_told_alone(float(column @ column)):
        return ()
    rest = scaled[:, others]
    taken = np.linalg.solve(rest.T @ rest + np.eye(len(others)) / _BOX_VARIANCE, rest.T @ column)
    parts = np.abs(taken) * np.linalg.norm(rest, axis=0)
    return tuple(i for i, part in zip(others, parts, strict=True) if part > _PART_OF_MOST * parts.max())


def undetermined(names: list[str], identified: Identification) -> list[str]:
    """Return a line for every parameter that the data do not determine."""
    lines = []
    for i, name in enumerate(names):
        if identified.identified(i):
            continue
        others = [names[j] for j in identified.partners[i]]
        why = f"only together with {', '.join(others)}" if others else "nothing in the data tells it"
        if not others and _is_told_alone(identified.effect[i] ** 2):
            why = "too little beside the scatter of the residuals"
        lines.append(
            f"{name} ({why}: the data leave {100 * identified.remaining[i]:.0f} % of the spread between its bounds; "
            f"moving it from bound to bound changes the residuals by {identified.effect[i]:.2g} scales)"
        )
    return lines


@dataclass(frozen=True, slots=True)
class End:
    """End of the search from one start, with the first replication alone."""

    values: dict[str, float]
    cost: float
    evaluations: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Values of a parameter over its box, and the least squares found there as multiples of the fit's."""

    path: str
    values: tuple[float, ...]
    squares: tuple[float, ...]
    limit: float
    """Multiple up to which the data do not refuse a value: 95 % by F with one and n - p degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of how many simulated laboratories the interval of a parameter held the true value, and how many left it open."""

    path: str
    truth: float
    laboratories: int
    inside: int
    left_open: int
    mean_value: float
    mean_half_width: float


@dataclass(slots=True)
class Fit:
    """Result of a fit.

    ``values`` are in base units (ns, shares); ``low`` and ``high`` bound the central 95 %.
    """

    values: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    residuals: dict[tuple[str, str], float]
    cost: float
    evaluations: int
    is_cut: bool = False
    """Whether the search was ended by its limit of evaluations, which may be before the least squares."""
    not_identified: list[str] = field(default_factory=list)
    correlations: dict[str, float] = field(default_factory=dict)
    undetermined: list[str] = field(default_factory=list)
    """Parameters whose value the data do not tell; their interval is the whole of their bounds."""
    sensitivity: Identification | None = None
    ends: list[End] = field(default_factory=list)
    """Of several starts, in their order; empty where there is one."""
    chance_share: dict[str, float] = field(default_factory=dict)
    """Share of each parameter's variance that the chance of runs has; empty with one replication played or none."""
    profiles: list[Profile] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)


def replications_of_chance(definition: CalibrationSpec) -> int:
    """Return how many replications where a fit ended tell the chance of runs."""
    return max(definition.replications, CHANCE_RUNS)


def fit_at(
    definition: CalibrationSpec,
    keys: list[tuple[str, str]],
    end: Any,
    low: Array,
    span: Array,
    apart: Sequence[Array] = (),
) -> Fit:
    """Return the fit at the point where a search has ended.

    Keys are phase and quantity of each residual.  The end is as SciPy says it: ``x`` (in shares of the box, which has
    lower bounds and widths), ``fun``, ``jac``, ``cost`` and ``nfev``.  ``apart`` are the residuals of each replication
    there, at least :data:`CHANCE_RUNS`; of one or none, the intervals leave the chance of runs out.
    """
    parameters = definition.parameters
    names = [p.path for p in parameters]
    values = low + end.x * span
    freedom = len(keys) - len(names)
    sensitivity = identification(end.jac, float(np.sqrt(2.0 * end.cost / max(freedom, 1))))
    of_data = _of_data(definition, keys, end) * span
    of_runs = _of_runs(definition, end, apart) * span
    shifts = of_data + of_runs
    bounds, data_spread = np.percentile(values + shifts, [2.5, 97.5], axis=0), of_data.std(axis=0)
    if freedom < 1:  # as many parameters as observations leave no residuals to resample
        data_spread = np.array(sensitivity.remaining) * BOX_DEVIATION * span
        half = _NORMAL_975 * np.hypot(data_spread, of_runs.std(axis=0))
        bounds = np.array([values - half, values + half])
    bounds = np.clip(bounds, low, low + span)
    result = Fit(
        values=dict(zip(names, values.tolist(), strict=True)),
        low=dict(zip(names, bounds[0].tolist(), strict=True)),
        high=dict(zip(names, bounds[1].tolist(), strict=True)),
        residuals=dict(zip(keys, end.fun.tolist(), strict=True)),
        cost=float(end.cost),
        evaluations=int(end.nfev),
        not_identified=undetermined(names, sensitivity),
        sensitivity=sensitivity,
    )
    for i, name in enumerate(names):
        box = float(low[i]), float(low[i] + span[i])
        if not sensitivity.identified(i):
            _leave_open(result, name, box)
        elif not is_determined(result.low[name], result.high[name], box):
            share = 100.0 * (result.high[name] - result.low[name]) / (box[1] - box[0])
            _leave_open(result, name, box, f"{name} (its interval has {share:.0f} % of its box)")
    if len(apart) > 1:
        result.chance_share = dict(zip(names, _share(of_runs.std(axis=0), data_spread), strict=True))
    _note_bounds_and_pairs(result, end.x, shifts, sensitivity)
    return result


def note_ends(definition: CalibrationSpec, result: Fit, ends: list[End]) -> None:
    """Note where the searches from several starts ended, and which parameters ended elsewhere at like cost."""
    result.ends = ends
    boxes = {parameter.path: parameter.bounds for parameter in definition.parameters}
    others = elsewhere([(end.cost, end.values) for end in ends], len(result.residuals), result.low, result.high)
    for path, values in others.items():
        listed = ", ".join(f"{value:.4g}" for value in values)
        _leave_open(result, path, boxes[path], f"{path} (searches that end at like cost give {listed})")


def _leave_open(result: Fit, path: str, box: tuple[float, float], why: str = "") -> None:
    """Let a parameter have all of its box."""
    result.undetermined.append(path)
    result.low[path], result.high[path] = box
    result.not_identified += [why] if why else []


def _of_data(definition: CalibrationSpec, keys: list[tuple[str, str]], end: Any) -> Array:
    """Return where the parameters, over their boxes, move to when the residuals of each kind are resampled."""
    rng = np.random.default_rng(np.random.SeedSequence(definition.seed))
    inverse = np.linalg.pinv(end.jac)
    moves, variances, freedoms = [], [], []
    for rows, freedom in _kinds(keys, end.jac @ inverse, len(end.x)):
        centred = end.fun[rows] - end.fun[rows].mean()
        draws = rng.integers(0, len(rows), size=(_RESAMPLES, len(rows)))
        moves.append(-(centred[draws] @ inverse[:, rows].T) * math.sqrt(len(rows) / freedom))
        variances.append(moves[-1].var(axis=0))
        freedoms.append(freedom)
    whole, parts = sum(variances), sum(each**2 / freedom for each, freedom in zip(variances, freedoms, strict=True))
    welch = np.divide(whole**2, parts, out=np.ones_like(parts), where=parts > 0.0)
    shifts: Array = sum(moves) * np.array([student_t_quantile(0.975, float(each)) / _NORMAL_975 for each in welch])
    return shifts


def _kinds(keys: list[tuple[str, str]], hat: Array, parameters: int) -> list[tuple[NDArray[np.intp], float]]:
    """Return the observations of each kind with the degrees of freedom of their scatter.

    The matrix takes observations to what is fitted of them.
    """
    kind_of = np.array([0 if is_ratio(quantity) else 1 + is_cpu(quantity) for _, quantity in keys])
    kinds = [np.flatnonzero(kind_of == kind) for kind in np.unique(kind_of)]
    freedoms = [len(rows) - float(hat.diagonal()[rows].sum()) for rows in kinds]
    while len(kinds) > 1 and min(freedoms) < _LEAST_FREEDOM:
        few = int(np.argmin(freedoms))
        rows, freedom = kinds.pop(few), freedoms.pop(few)
        next_few = int(np.argmin(freedoms))
        kinds[next_few] = np.union1d(kinds[next_few], rows)
        freedoms[next_few] += freedom
    if len(kinds) == 1:
        freedoms = [max(len(keys) - parameters, 1)]
    return list(zip(kinds, freedoms, strict=True))


def _of_runs(definition: CalibrationSpec, end: Any, apart: Sequence[Array]) -> Array:
    """Return where the parameters, over their boxes, move to with other replications and another measured run."""
    many, size = len(apart), (_RESAMPLES, len(end.x))
    if many < 2:
        return np.zeros(size)
    moves = -(np.array(apart) - np.mean(apart, axis=0)) @ np.linalg.pinv(end.jac).T
    normal = Streams(definition.seed, 0).generator("calibrate.chance_of_runs").standard_normal((_RESAMPLES, many))
    stretched = student_t_quantile(0.975, many - 1) / _NORMAL_975
    shifts: Array = normal @ moves * (stretched * math.sqrt((1.0 + 1.0 / definition.replications) / (many - 1)))
    return shifts


def _share(part: Array, rest: Array) -> list[float]:
    """Return the share of the variance that the first of two independent deviations has."""
    whole = part**2 + rest**2
    return [float(each) for each in np.divide(part**2, whole, out=np.zeros_like(part), where=whole > 0.0)]


def _note_bounds_and_pairs(result: Fit, units: Array, shifts: Array, sensitivity: Identification) -> None:
    """Note parameters at a bound, correlations, and pairs that only move together.

    What is resampled moves along directions that the data see, so pairs of which the matrix tells not both have the
    correlation of the covariance that the data leave.
    """
    names = list(result.values)
    varies = shifts.std(axis=0) > 0
    for i, name in enumerate(names):
        if not 0.005 < units[i] < 0.995:
            result.not_identified.append(f"{name} (at a bound)")
        for j in range(i):
            if not (varies[i] and varies[j]):
                continue
            correlation = float(sensitivity.correlations[j, i])
            if sensitivity.identified(i) and sensitivity.identified(j):
                correlation = float(np.corrcoef(shifts[:, j], shifts[:, i])[0, 1])
            result.correlations[f"{names[j]} ~ {name}"] = correlation
            if abs(correlation) > 0.95:
                result.not_identified.append(f"{names[j]} and {name} (correlation {correlation:+.2f})")
