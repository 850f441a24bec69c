"""Validation of ramps: a model plays all phases of an environment, and targets are of its steps.

CPU is brought to the measured load and mix of its step.  A step at the edge of collapse is judged by the ensemble of
replications that play it alone, at full length.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from vftsim.calibrate.accuracy import (
    LINE,
    PARABOLA,
    QUEUE,
    Base,
    Row,
    Verdict,
    beside_nulls,
    is_percentile,
    labelled,
    present_nulls,
    rows_of,
    step_number,
)
from vftsim.calibrate.capacities import capacity_rows, left_out, null_capacities, ratio_rows, system_of
from vftsim.calibrate.definition import check_environments
from vftsim.calibrate.figures import check_cpu, known_parts, measured
from vftsim.calibrate.fit import at_measured_traffic, at_other_loads
from vftsim.calibrate.fitted import data_sha256, warnings
from vftsim.calibrate.run import sip_model
from vftsim.calibrate.validated import Validated
from vftsim.calibrate.validation import STOP_STEP, EnvironmentSpec, Play, Plays, TargetsSpec, ValidationSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.views import ramp_of, with_ramp
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.ramps import BEFORE_THE_STEPS, shipped_ramps
from vftsim.spec.suggest import listing
from vftsim.spec.yaml_source import Node

_EDGE_QUANTITIES = ("cpu", "retransmissions", "ihs/global")
_COLLAPSED_PERCENT = 10.0


def planned(
    spec: ValidationSpec, tree: Node, environments: Sequence[str], dataset: Path, settings: Sequence[str]
) -> Plays:
    """Return what is played: the ramp of each environment, and its edge step."""
    measurements = read_dataset(dataset)
    check_environments(tree, environments, measurements.spec.environments)
    plays = Plays(dataset, Path(tree.file).parent)
    for name in environments:
        node = tree.at("environments", name, "model")
        model, plays.models[name] = sip_model(node, f"environments.{name}.model", tuple(settings))
        plays.shown.append(model)
        plays.data[name] = measured(dataset, name)
        check_cpu(measurements, {name: plays.models[name]})
        ramp = ramp_of(plays.models[name])
        of_ramp = ramp.with_times(spec.transient, spec.step_duration - spec.transient)
        plays.plays[name] = Play(with_ramp(plays.models[name], of_ramp), spec.replications)
        if step := spec.environments[name].edge_step:
            loads = ramp.step_loads()
            if step > len(loads):
                message = f"the model has {len(loads)} steps, and no step {step}"
                raise tree.at("environments", name).error(message, f"environments.{name}.edge_step")
            edge = ramp.at_load(loads[step - 1])
            edge = edge.with_times(spec.transient, spec.edge_duration - spec.transient)
            plays.plays[f"{name}/step_{step}"] = Play(with_ramp(plays.models[name], edge), spec.edge_replications)
    return plays


def judge(result: Validated, spec: ValidationSpec, plays: Plays, runs_of: Mapping[str, list[Observations]]) -> None:
    for name, model in plays.models.items():
        environment, data, runs = spec.environments[name], plays.data[name], runs_of[name]
        result.data_sha256[name] = data_sha256(data, data)
        result.warnings += [*warnings(plays.folder, name, data), *_not_played(name, data)]
        result.warnings += [f"{name}: {line}" for line in at_other_loads(runs, data)]
        _judge_ramp(result, spec, name, model, data, runs)
        if ramp := system_of(shipped_ramps(), plays.dataset, name):
            result.left_out += left_out(shipped_ramps(), ramp, runs)
        if environment.edge_step is not None:
            edge = runs_of[f"{name}/step_{environment.edge_step}"]
            rows = compared(name, environment, data, edge, _EDGE_QUANTITIES)
            result.edge_rows += rows
            result.add(name, [edge_verdict(rows)])
            shares = [value for run in edge for (_, quantity), value in run.items() if quantity == "ihs/global"]
            result.collapse[name] = sum(share > _COLLAPSED_PERCENT for share in shares), len(edge)
    result.ratios = ratio_rows(result.capacities)


def _judge_ramp(
    result: Validated, spec: ValidationSpec, name: str, model: ModelSpec, data: Observations, runs: list[Observations]
) -> None:
    environment, ramp = spec.environments[name], ramp_of(model)
    # Memory falls with every attempt served: shortened steps serve fewer.
    shortened = spec.step_duration < ramp.transient_ns + ramp.step_ns()
    brought = [labelled(name, at_measured_traffic(run, data, {"": model}, spec.targets.cpu_up_to)) for run in runs]
    rows = compared(name, environment, data, brought, without=("load", "memory") if shortened else ("load",))
    result.rows += rows
    result.add(name, verdicts(environment, spec.targets, rows))
    result.add(name, [stop_verdict(environment, [int(run[STOP_STEP]) for run in runs])])
    nulls = null_capacities(Base.of(data, fitted_steps(environment), "cpu"), ramp.step_loads())
    capacities = capacity_rows(name, data, runs, nulls)
    result.add(name, [row.verdict(ramp.step_loads()) for row in capacities])
    result.capacities += capacities


def _not_played(name: str, data: Observations) -> list[str]:
    """Return a line where phases were measured that no ramp has."""
    others = [phase for phase, _ in data if not step_number(phase) and phase != BEFORE_THE_STEPS]
    if not others:
        return []
    phases = listing(dict.fromkeys(others))
    return [f"nothing is compared of {phases} of '{name}': a ramp plays {BEFORE_THE_STEPS}, step_1, step_2 and so on"]


def compared(
    name: str,
    spec: EnvironmentSpec,
    data: Observations,
    runs: Sequence[Observations],
    quantities: Sequence[str] = (),
    without: Sequence[str] = ("load",),
) -> list[Row]:
    """Return the rows of an environment, step by step, of some quantities or all; the load is an input.

    In ``runs`` phases are called ``environment/phase``.
    """
    in_order = dict(sorted(data.items(), key=lambda item: (step_number(item[0][0]), item[0][1])))
    return rows_of(
        labelled(name, in_order),
        runs,
        lambda quantity: quantity not in without and (not quantities or quantity in quantities),
        lambda run: sample_of(spec, run.partition("/")[2]),
        lambda run, quantity: nulls_of(spec, data, run.partition("/")[2], quantity),
    )


def sample_of(spec: EnvironmentSpec, phase: str) -> str:
    """Return what a phase was used for: ``in``, ``input`` or ``out``."""
    if phase in spec.inputs:
        return "input"
    step = step_number(phase)
    fitted = spec.pre_registration_fitted if step == 0 else step <= spec.fitted_steps
    return "in" if fitted else "out"


def nulls_of(spec: EnvironmentSpec, data: Observations, phase: str, quantity: str) -> dict[str, float]:
    """Return what null models give that know the fitted steps; nothing for pre-registration."""
    if step_number(phase) == 0:
        return {}
    base, load = Base.of(data, fitted_steps(spec), quantity), data[phase, "load"]
    return present_nulls({LINE: base.curve(load, 1), PARABOLA: base.curve(load, 2), QUEUE: base.queue(load)})


def fitted_steps(spec: EnvironmentSpec) -> list[str]:
    return [f"step_{k}" for k in range(1, spec.fitted_steps + 1)]


def verdicts(spec: EnvironmentSpec, targets: TargetsSpec, rows: list[Row]) -> list[Verdict]:
    """Hold the rows of one environment against the declared accuracy, and what null models give of them."""
    has_delays = any(is_percentile(row.quantity) for row in rows)
    return beside_nulls(partial(_judged, spec, targets, has_delays), rows)


def _judged(spec: EnvironmentSpec, targets: TargetsSpec, has_delays: bool, rows: list[Row]) -> list[Verdict]:
    verdicts = [_cpu(spec, targets, rows)]
    if has_delays:
        delays = [row for row in rows if is_percentile(row.quantity)]
        fitted = [r for r in delays if r.sample == "in" and step_number(r.phase)]
        next_step = f"step_{spec.fitted_steps + 1}"
        of_next = [r for r in delays if r.phase == next_step]
        verdicts += [
            _median("in sample", targets.in_sample_median, fitted),
            _median(next_step, targets.next_step_median, of_next),
            _worst(next_step, targets.next_step_worst, of_next),
        ]
    stop = f"step_{spec.stop_step}"
    return [*verdicts, _stop(stop, targets, [r for r in rows if r.phase == stop])]


def edge_verdict(rows: list[Row]) -> Verdict:
    """The ensemble of an edge step must contain CPU, IHS and retransmissions."""
    figures = ", ".join(f"{r.quantity} {r.low:.1f} to {r.high:.1f} (measured {r.measured:g})" for r in rows)
    text = f"the central 90 % of {rows[0].n if rows else 0} replications contain the measured edge step"
    return Verdict(text, bool(rows) and all(row.is_inside for row in rows), figures or "no such row")


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
    of_cpu = [r for r in rows if r.quantity == "cpu" and r.sample == "out" and step_number(r.phase)]
    held = [r for r in of_cpu if r.measured <= targets.cpu_up_to]
    if not held:
        return Verdict("CPU of held-out steps", False, "no held-out step below the limit was reached")
    worst = max(held, key=lambda r: abs(r.error))
    text = f"CPU of held-out steps up to {targets.cpu_up_to:g} % within {spec.cpu_points:g} points"
    worst_text = f"worst {worst.error:+.2f} ({worst.phase}), {len(held)} steps"
    return Verdict(text, abs(worst.error) <= spec.cpu_points, worst_text)


def _median(steps: str, limit: float, rows: list[Row]) -> Verdict:
    median = 100.0 * float(np.median([abs(row.error) for row in rows])) if rows else float("nan")
    text = f"median error of the delay percentiles, {steps}, at most {limit:g} %"
    return Verdict(text, median <= limit, f"{median:.1f} % over {len(rows)} percentiles")


def _worst(steps: str, limit: float, rows: list[Row]) -> Verdict:
    if not rows:
        return Verdict(f"worst error of the delay percentiles, {steps}", False, "no rows")
    worst = max(rows, key=lambda r: abs(r.error))
    error = 100.0 * worst.error
    text = f"worst error of the delay percentiles, {steps}, at most {limit:g} %"
    return Verdict(text, abs(error) <= limit, f"{error:+.0f} % ({worst.quantity})")


def _stop(phase: str, targets: TargetsSpec, rows: list[Row]) -> Verdict:
    limit = targets.stop_ihs_points
    text = f"IHS by scenario in the stop step within {limit:g} points"
    shares = [row for row in rows if row.quantity.startswith("ihs/") and row.quantity != "ihs/global"]
    if len(shares) < len(known_parts("ihs")) - 1:
        why = f"the record has no share of every scenario in {phase}" if rows else f"no replication reached {phase}"
        return Verdict(text, False, why)
    figures = ", ".join(f"{r.quantity[4:]} {r.predicted:.0f}/{r.measured:.0f}" for r in shares)
    passed = all(abs(row.error) <= limit for row in shares)
    note = " (calibration input)" if shares[0].sample == "input" else ""
    return Verdict(text + note, passed, f"predicted/measured: {figures}")
