"""Least-squares fit of a model's parameters under common random numbers.

Every evaluation runs the same seeds, so the objective is a deterministic function of the parameters.
Intervals: the Gauss-Newton approximation at the optimum, with the residuals resampled (bootstrap of
observations) and widened for what the parameters took of them: residuals of n observations and p parameters
are too small by sqrt((n - p) / n), and their size is itself known to n - p degrees of freedom.  Parameters
at a bound, and pairs with a correlation beyond 0.95, are reported as not identified by the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import least_squares

from vftsim.calibrate.definition import CalibrationSpec, FreeParameter
from vftsim.calibrate.observations import Observations, simulated
from vftsim.errors import UsageError
from vftsim.sip.lab import SipLab
from vftsim.sip.system import SipLabSpec
from vftsim.spec import Spec
from vftsim.stats._special import student_t_quantile

Array = NDArray[np.float64]
_STEP = 0.08
_RESAMPLES = 2000
_NORMAL_975 = 1.959964


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
    not_identified: list[str] = field(default_factory=list)
    correlations: dict[str, float] = field(default_factory=dict)


def with_values(spec: SipLabSpec, values: Mapping[str, Any]) -> SipLabSpec:
    """Return the model with numbers at dotted keys replaced."""
    for path, value in values.items():
        spec = _replaced(spec, path.split("."), value, path)
    return spec


def _replaced(node: Any, keys: list[str], value: float, path: str) -> Any:
    key = keys[0]
    if not isinstance(node, Spec) or key not in type(node).model_fields:
        raise UsageError(f"the model has no key '{path}'")
    old = getattr(node, key)
    whole = round(value) if isinstance(old, int) else value
    new = _replaced(old, keys[1:], value, path) if len(keys) > 1 else whole
    return node.model_copy(update={key: new})


def parameter_values(spec: SipLabSpec, parameters: tuple[FreeParameter, ...], x: Array) -> dict[str, float]:
    """Return the model keys that a point of the search sets."""
    values: dict[str, float] = {}
    for parameter, value in zip(parameters, x, strict=True):
        values[parameter.path] = float(value)
        for path in parameter.scales:
            values[path] = read(spec, path) * float(value) / read(spec, parameter.path)
    return values


def read(spec: SipLabSpec, path: str) -> float:
    """Return the number at a dotted key."""
    node: Any = spec
    for key in path.split("."):
        node = getattr(node, key)
    return float(node)


def observe(spec: SipLabSpec, seed: int, replication: int) -> Observations:
    """Run the lab once and return what was observed."""
    return simulated(SipLab(spec, seed, replication).run())


def chosen(definition: CalibrationSpec, data: Observations) -> list[tuple[str, str]]:
    """Return the observations that the fit uses, in a fixed order."""
    wanted = set(definition.quantities)
    return sorted(
        (phase, quantity)
        for phase, quantity in data
        if phase in definition.in_sample
        and (quantity in wanted or f"{phase}/{quantity}" in wanted or ("delays" in wanted and "/p" in quantity))
    )


def residual(definition: CalibrationSpec, quantity: str, predicted: float, measured: float) -> float:
    """Return one residual on its scale."""
    if "/p" in quantity or quantity == "retransmissions":
        return float(np.log(max(predicted, 1e-3) / max(measured, 1e-3)) / definition.log_scale)
    return (predicted - measured) / definition.cpu_scale_points


def fit(
    definition: CalibrationSpec,
    spec: SipLabSpec,
    data: Observations,
    jobs: int = 1,
    progress: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fit the free parameters.

    Parameters
    ----------
    definition : CalibrationSpec
    spec : SipLabSpec
        The model, with the definition's overrides already applied.
    data : Observations
        Measured numbers.
    jobs : int
        Worker processes; the result does not depend on it.
    progress : callable, optional
        Called with the number of simulations so far and the best cost.
    """
    keys = chosen(definition, data)
    if not keys:
        raise UsageError("the dataset has no observations for the phases and quantities in sample")
    parameters = definition.parameters
    low = np.array([p.bounds[0] for p in parameters])
    high = np.array([p.bounds[1] for p in parameters])
    span = high - low
    count = 0

    def residuals(units: Array) -> Array:
        values = parameter_values(spec, parameters, low + units * span)
        return _residuals(definition, with_values(spec, values), keys, data)

    def jacobian(units: Array) -> Array:
        steps = np.where(units + _STEP <= 1.0, _STEP, -_STEP)
        points = [units] + [units + np.eye(len(units))[i] * steps[i] for i in range(len(units))]
        columns = pool(delayed(residuals)(point) for point in points)
        return np.array([(columns[i + 1] - columns[0]) / steps[i] for i in range(len(units))]).T

    def objective(units: Array) -> Array:
        nonlocal count
        count += 1
        value = residuals(units)
        if progress is not None:
            progress(count, float(0.5 * value @ value))
        return value

    start = (np.array([p.first for p in parameters]) - low) / span
    with Parallel(n_jobs=jobs) as pool:
        found = least_squares(
            objective, np.clip(start, 0.01, 0.99), jac=jacobian, bounds=(0.0, 1.0),
            max_nfev=definition.most_evaluations, xtol=2e-3, ftol=2e-3,
        )  # fmt: skip
    return _result(definition, keys, found, low, span)


def at_measured_traffic(seen: Observations, data: Observations) -> Observations:
    """Return the run's numbers with CPU brought to the measured load and mix of each phase.

    Arrivals are random: load and mix of a short step are off by their standard errors, and CPU with them in
    proportion to the messages a second.
    """
    return {
        (phase, quantity): value * _messages_a_second(data, phase) / _messages_a_second(seen, phase)
        if quantity == "cpu" and (phase, "load") in data and _messages_a_second(seen, phase) > 0
        else value
        for (phase, quantity), value in seen.items()
    }


def _messages_a_second(of: Observations, phase: str) -> float:
    return of[phase, "load"] * of[phase, "touches"]


def _residuals(definition: CalibrationSpec, spec: SipLabSpec, keys: list[tuple[str, str]], data: Observations) -> Array:
    total = np.zeros(len(keys))
    for replication in range(definition.replications):
        seen = observe(spec, definition.seed, replication)
        comparable = at_measured_traffic(seen, data)
        total += [residual(definition, q, comparable.get((p, q), 0.0), data[p, q]) for p, q in keys]
    return total / definition.replications


def _widening(observations: int, parameters: int) -> float:
    freedom = max(observations - parameters, 1)
    return math.sqrt(observations / freedom) * student_t_quantile(0.975, freedom) / _NORMAL_975


def _result(definition: CalibrationSpec, keys: list[tuple[str, str]], found: Any, low: Array, span: Array) -> Fit:
    parameters = definition.parameters
    names = [p.path for p in parameters]
    values = low + found.x * span
    pseudo_inverse = np.linalg.pinv(found.jac)
    rng = np.random.default_rng(np.random.SeedSequence(definition.seed))
    centred = found.fun - found.fun.mean()
    draws = rng.integers(0, len(centred), size=(_RESAMPLES, len(centred)))
    shifts = -(centred[draws] @ pseudo_inverse.T) * span * _widening(len(centred), len(names))
    bounds = np.percentile(values + shifts, [2.5, 97.5], axis=0)
    result = Fit(
        values=dict(zip(names, values.tolist(), strict=True)),
        low=dict(zip(names, np.maximum(bounds[0], low).tolist(), strict=True)),
        high=dict(zip(names, np.minimum(bounds[1], low + span).tolist(), strict=True)),
        residuals=dict(zip(keys, found.fun.tolist(), strict=True)),
        cost=float(found.cost),
        evaluations=int(found.nfev),
    )
    spread = np.corrcoef(shifts.T) if len(names) > 1 else np.ones((1, 1))
    for i, name in enumerate(names):
        if not 0.005 < found.x[i] < 0.995:
            result.not_identified.append(f"{name} (at a bound)")
        for j in range(i):
            result.correlations[f"{names[j]} ~ {name}"] = float(spread[i, j])
            if abs(spread[i, j]) > 0.95:
                result.not_identified.append(f"{names[j]} and {name} (correlation {spread[i, j]:+.2f})")
    return result
