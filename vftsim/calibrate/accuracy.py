"""Predicted against measured, for every row of a record, and whether the declared accuracy was met.

In-sample and held-out rows are kept apart, and beside each prediction stand null models
(:mod:`vftsim.calibrate.nulls`).  Where one is better, or as good, the table shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vftsim.calibrate.figures import known_parts
from vftsim.calibrate.nulls import NAMES, Base, cannot_tell, is_percentile, is_relative, known
from vftsim.calibrate.validation import EnvironmentSpec, TargetsSpec
from vftsim.labs.dataset import Observations
from vftsim.stats import central_range


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the record and its prediction (mean and central 90 % of the replications)."""

    environment: str
    phase: str
    quantity: str
    sample: str
    measured: float
    predicted: float
    low: float
    high: float
    n: int
    nulls: Mapping[str, float]

    @classmethod
    def from_plain(cls, row: Mapping[str, Any]) -> Row:
        """Return a row as a file has it."""
        empty = {name: math.nan for name in ("measured", "predicted", "low", "high") if row[name] is None}
        return cls(**({name: row[name] for name in cls.__slots__} | empty))

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data, with its error."""
        return asdict(self) | {"error": self.error}

    @property
    def is_inside(self) -> bool:
        """Whether the central 90 % of the replications contain the measured number."""
        return self.low <= self.measured <= self.high

    @property
    def tells(self) -> bool:
        """Whether every null model, if there is one, gives another figure than this model may."""
        return not cannot_tell(self.low, self.high, self.nulls)

    def by(self, null: str) -> Row | None:
        """Return the row as a null model would have it; None where that says nothing."""
        value = self.nulls.get(null)
        return None if value is None else replace(self, predicted=value, low=value, high=value)

    @property
    def error(self) -> float:
        """Points for shares and CPU, relative (1 = 100 %) for delays and rates."""
        if is_relative(self.quantity):
            return self.predicted / self.measured - 1.0 if self.measured else float("nan")
        return self.predicted - self.measured


@dataclass(frozen=True, slots=True)
class Verdict:
    """One declared target and what came out."""

    text: str
    passed: bool
    found: str
    by_nulls: tuple[str, ...] = ()
    """Null models that meet it too: then it says nothing for the model."""

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Verdict:
        """Return a verdict as a file has it."""
        return cls(data["target"], data["passed"], data["found"], tuple(data["by_nulls"]))


def rows_of(
    environment: str,
    spec: EnvironmentSpec,
    data: Observations,
    runs: list[Observations],
    quantities: list[str] | None = None,
    without: tuple[str, ...] = ("load",),
) -> list[Row]:
    """Return the rows of one environment: every measured number that the runs have too.

    Parameters
    ----------
    environment : str
    spec : EnvironmentSpec
    data : Observations
        Measured.
    runs : list of Observations
        One for each replication; a replication that stopped early lacks the later phases.
    quantities : list of str, optional
        Only these.
    without : tuple of str
        Quantities left out: the load is an input.
    """
    rows = []
    for phase, quantity in sorted(data, key=lambda key: (_step(key[0]), key[1])):
        if quantity in without or (quantities is not None and quantity not in quantities):
            continue
        values = [run[phase, quantity] for run in runs if (phase, quantity) in run]
        if not values:
            continue
        low, high = central_range(values)
        rows.append(
            Row(
                environment,
                phase,
                quantity,
                sample_of(spec, phase),
                data[phase, quantity],
                float(np.mean(values)),
                low,
                high,
                len(values),
                nulls_of(spec, data, phase, quantity),
            )
        )
    return rows


def sample_of(spec: EnvironmentSpec, phase: str) -> str:
    """Whether a phase was fitted: ``in``, ``input`` (a saturated calibration input) or ``out``."""
    if phase in spec.inputs:
        return "input"
    step = _step(phase)
    fitted = spec.pre_registration_fitted if step == 0 else step <= spec.fitted_steps
    return "in" if fitted else "out"


def nulls_of(spec: EnvironmentSpec, data: Observations, phase: str, quantity: str) -> dict[str, float]:
    """Return what null models give that know the fitted steps; nothing for pre-registration."""
    if _step(phase) == 0 or (phase, "load") not in data:
        return {}
    base, load = Base.of(data, fitted_steps(spec), quantity), data[phase, "load"]
    return known(line=base.curve(load, 1), parabola=base.curve(load, 2), queue=base.queue(load))


def fitted_steps(spec: EnvironmentSpec) -> list[str]:
    """Return the names of the load steps that the model was fitted to."""
    return [f"step_{k}" for k in range(1, spec.fitted_steps + 1)]


def verdicts(spec: EnvironmentSpec, targets: TargetsSpec, rows: list[Row]) -> list[Verdict]:
    """Hold the rows of one environment against the declared accuracy, and what null models give of them."""
    has_delays = any(is_percentile(row.quantity) for row in rows)
    found = _judged(spec, targets, rows, has_delays)
    for null in NAMES:
        of_null = _judged(spec, targets, by_null(rows, null), has_delays)
        found = [beside(*pair, null) for pair in zip(found, of_null, strict=True)]
    return found


def by_null(rows: Iterable[Row], null: str) -> list[Row]:
    """Return the rows as a null model would have them, without those that it says nothing of."""
    return [other for row in rows if (other := row.by(null)) is not None]


def beside(verdict: Verdict, of_null: Verdict, null: str) -> Verdict:
    """Return a verdict with a null model's of the same target beside it."""
    return replace(verdict, by_nulls=(*verdict.by_nulls, null)) if of_null.passed else verdict


def _judged(spec: EnvironmentSpec, targets: TargetsSpec, rows: list[Row], has_delays: bool) -> list[Verdict]:
    found = [_cpu(spec, targets, rows)]
    delays = [row for row in rows if is_percentile(row.quantity)]
    if has_delays:
        beyond = f"step_{spec.fitted_steps + 1}"
        found += [
            _median(
                "in sample",
                targets.in_sample_median,
                [r for r in delays if r.sample == "in" and _step(r.phase)],
            ),
            _median(beyond, targets.next_step_median, [r for r in delays if r.phase == beyond]),
            _worst(beyond, targets.next_step_worst, [r for r in delays if r.phase == beyond]),
        ]
    stop = f"step_{spec.stop_step}"
    found.append(_stop(stop, targets, [r for r in rows if r.phase == stop and r.quantity.startswith("ihs/")]))
    return found


def edge_verdict(rows: list[Row]) -> Verdict:
    """The ensemble of an edge step must contain CPU, IHS and retransmissions."""
    wanted = [row for row in rows if row.quantity in ("cpu", "ihs/global", "retransmissions")]
    inside = [row.low <= row.measured <= row.high for row in wanted]
    found = ", ".join(f"{r.quantity} {r.low:.1f} to {r.high:.1f} (measured {r.measured:g})" for r in wanted)
    n = wanted[0].n if wanted else 0
    return Verdict(f"the central 90 % of {n} replications contain the measured edge step", all(inside), found)


def stop_verdict(spec: EnvironmentSpec, stops: list[int]) -> Verdict:
    """The run must stop after the right step."""
    share = stops.count(spec.stop_step) / len(stops)
    failed = [stop for stop in stops if stop]
    usual = max(set(stops), key=stops.count)
    return Verdict(
        f"the run stops after step {spec.stop_step}",
        usual == spec.stop_step,
        f"{100 * share:.0f} % of {len(stops)} replications do; "
        + (f"from step {min(failed)} to {max(failed)}" if failed else "none stops")
        + (f"; {len(stops) - len(failed)} of them met no limit" if 0 < len(failed) < len(stops) else ""),
    )


def _cpu(spec: EnvironmentSpec, targets: TargetsSpec, rows: list[Row]) -> Verdict:
    held = [
        r
        for r in rows
        if r.quantity == "cpu" and r.sample == "out" and r.measured <= targets.cpu_up_to and _step(r.phase)
    ]
    if not held:
        return Verdict("CPU of held-out steps", False, "no held-out step below the limit was reached")
    worst = max(held, key=lambda r: abs(r.error))
    return Verdict(
        f"CPU of held-out steps up to {targets.cpu_up_to:g} % within {spec.cpu_points:g} points",
        abs(worst.error) <= spec.cpu_points,
        f"worst {worst.error:+.2f} ({worst.phase}), {len(held)} steps",
    )


def _median(what: str, limit: float, rows: list[Row]) -> Verdict:
    median = 100.0 * float(np.median([abs(row.error) for row in rows])) if rows else float("nan")
    return Verdict(
        f"median error of the delay percentiles, {what}, at most {limit:g} %",
        median <= limit,
        f"{median:.1f} % over {len(rows)} percentiles",
    )


def _worst(what: str, limit: float, rows: list[Row]) -> Verdict:
    if not rows:
        return Verdict(f"worst error of the delay percentiles, {what}", False, "no rows")
    worst = max(rows, key=lambda r: abs(r.error))
    error = 100.0 * worst.error
    return Verdict(
        f"worst error of the delay percentiles, {what}, at most {limit:g} %",
        abs(error) <= limit,
        f"{error:+.0f} % ({worst.quantity})",
    )


def _stop(phase: str, targets: TargetsSpec, rows: list[Row]) -> Verdict:
    limit = targets.stop_ihs_points
    text = f"IHS by scenario in the stop step within {limit:g} points"
    shares = [row for row in rows if row.quantity != "ihs/global"]
    if len(shares) < len(known_parts("ihs")) - 1:
        return Verdict(text, False, f"no replication reached {phase}")
    found = ", ".join(f"{r.quantity[4:]} {r.predicted:.0f}/{r.measured:.0f}" for r in shares)
    passed = all(abs(row.error) <= limit for row in shares)
    note = " (calibration input)" if shares[0].sample == "input" else ""
    return Verdict(text + note, passed, f"predicted/measured: {found}")


def _step(phase: str) -> int:
    return int(phase.rpartition("_")[2]) if phase.startswith("step_") else 0
