"""Predicted against measured, for every row of a record, and whether the declared accuracy was met.

In-sample and held-out rows are kept apart, and beside each prediction stands a trivial baseline: the
straight line through the same in-sample steps (over load; of the logarithm for delays), and a parabola.  Where a
baseline is better, the table shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vftsim.calibrate.figures import known_parts
from vftsim.calibrate.validation import EnvironmentSpec, TargetsSpec
from vftsim.labs.dataset import Observations
from vftsim.stats import central_range

_MOST_LOGARITHM = 700.0


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
    baseline: float | None
    parabola: float | None = None

    @property
    def is_inside(self) -> bool:
        """Whether the central 90 % of the replications contain the measured number."""
        return self.low <= self.measured <= self.high

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


def is_relative(quantity: str) -> bool:
    """Whether errors of a quantity are told in percent of the measured value."""
    return is_percentile(quantity) or quantity.endswith("/max")


def is_percentile(quantity: str) -> bool:
    """Whether a quantity is a percentile of a delay."""
    return "/p" in quantity


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
                environment, phase, quantity, sample_of(spec, phase), data[phase, quantity],
                float(np.mean(values)), low, high, len(values),
                baseline(spec, data, phase, quantity), baseline(spec, data, phase, quantity, degree=2),
            )
        )  # fmt: skip
    return rows


def sample_of(spec: EnvironmentSpec, phase: str) -> str:
    """Whether a phase was fitted: ``in``, ``input`` (a saturated calibration input) or ``out``."""
    if phase in spec.inputs:
        return "input"
    step = _step(phase)
    fitted = spec.pre_registration_fitted if step == 0 else step <= spec.fitted_steps
    return "in" if fitted else "out"


def baseline(spec: EnvironmentSpec, data: Observations, phase: str, quantity: str, degree: int = 1) -> float | None:
    """The line (``degree`` 1) or parabola (2) through the fitted steps, over load.

    ``None`` for pre-registration, and where a load or a fitted step was not measured.
    """
    if _step(phase) == 0:
        return None
    steps = [f"step_{k}" for k in range(1, spec.fitted_steps + 1)]
    needed = [(phase, "load"), *((step, name) for step in steps for name in ("load", quantity))]
    if any(key not in data for key in needed):
        return None
    loads = [data[step, "load"] for step in steps]
    values = [data[step, quantity] for step in steps]
    logarithm = is_relative(quantity) and min(values) > 0
    if len(steps) <= degree:
        return None
    curve = np.polyfit(loads, np.log(values) if logarithm else values, degree)
    value = float(np.polyval(curve, data[phase, "load"]))
    return float(np.exp(min(value, _MOST_LOGARITHM))) if logarithm else value


def verdicts(spec: EnvironmentSpec, targets: TargetsSpec, rows: list[Row]) -> list[Verdict]:
    """Hold the rows of one environment against the declared accuracy."""
    found = [_cpu(spec, targets, rows)]
    delays = [row for row in rows if is_percentile(row.quantity)]
    if delays:
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
    return Verdict(f"median error of the delay percentiles, {what}, at most {limit:g} %", median <= limit,
                   f"{median:.1f} % over {len(rows)} percentiles")  # fmt: skip


def _worst(what: str, limit: float, rows: list[Row]) -> Verdict:
    if not rows:
        return Verdict(f"worst error of the delay percentiles, {what}", False, "no rows")
    worst = max(rows, key=lambda r: abs(r.error))
    error = 100.0 * worst.error
    return Verdict(f"worst error of the delay percentiles, {what}, at most {limit:g} %", abs(error) <= limit,
                   f"{error:+.0f} % ({worst.quantity})")  # fmt: skip


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
