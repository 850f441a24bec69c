"""Structures of the SIP lab's protocol with costs fitted over bare metal and the virtual machine at once.

Scores them on input rows, and plays what no fit used: ramps from step 5 on, virtual step 6 many times, and the largest
delays of the virtual machine from pre-registration to step 5.  Fits (``vftsim calibrate sip-lab/growth`` and so on, see
``calibration/sip-lab/protocol.md``) are read from ``fitted/``; a structure without its fit cannot be played.

    python experiments/sip-lab-structures/joint.py score --output score.json
    python experiments/sip-lab-structures/joint.py ramps --structure growth --runs 10 --output predicted.json
    python experiments/sip-lab-structures/joint.py maxima --runs 10 --output predicted.json
    python experiments/sip-lab-structures/joint.py tables score.json predicted.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from collapse import LOADS, MODELS, STOPS, record
from edge_step import edge_row

from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.calibrate.figures import as_run, delay_percentiles, observe
from vftsim.calibrate.fit import at_measured_traffic, chosen, residual
from vftsim.calibrate.fitted import read_fit
from vftsim.calibrate.validation import measured_runs
from vftsim.composition.keys import with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import Observations
from vftsim.labs.named_files import dataset_path
from vftsim.report.markdown import markdown_table
from vftsim.study.runs.model import load_model
from vftsim.workloads.sip.messages import Scenario

SERVER = "domains.sut.applications.proxy."
BENCH = "workloads.calls."
GROWTH = (f"{SERVER}growth_per_transaction=0",)
LATE_FLUSH = (
    f"{SERVER}flush_in_timer_process=true",
    f"{SERVER}timers_wait_for_flush=true",
    f"{SERVER}nonces_good_once=true",
    f"{BENCH}fails_on_second_challenge=true",
)
O1 = ("domains.sut.guest_scheduler={kind: o1}",)
STALL = (f"{SERVER}stall_duration=400 ms",)
COUNTED = (
    "domains.sut.protection.cost={form: counted, execution: null, exits: null, exit: 35 us, timer: 20 us, entry: 0, "
    "output: 0, batch: 0}",
)


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure: what it sets, the files of its fits (:func:`divided`: one each), how many numbers they moved."""

    assignments: tuple[str, ...] = ()
    joint: str = ""
    protected: str = ""
    fitted: int = 12
    protection: tuple[str, ...] = ()
    divided: bool = False


STRUCTURES = {
    "shipped": Structure(),
    "growth": Structure(GROWTH, "growth", "ft-growth", 13),
    "shipped form, full": Structure(protected="ft-full", divided=True),
    "growth, full": Structure(GROWTH, "growth-full", "ft-growth-full", 13),
    "flush": Structure((*GROWTH, *LATE_FLUSH, *O1), "flush", "ft-flush", 13),
    "counted": Structure((*GROWTH, *LATE_FLUSH, *O1), "flush", "ft-counted", 13, COUNTED),
    "turns (wrong on purpose)": Structure((*GROWTH, *LATE_FLUSH), "flush", "ft-flush", 13),
    "stall (wrong on purpose)": Structure((*GROWTH, *STALL), "growth", "ft-growth", 13),
}
WITHIN_MACHINES = ("domains.sut.cpu_inflation", f"{SERVER}relay_cost")
"""Keys of the joint fits that bare metal does not have."""

SEED, SCORING_SEEDS = 2011, range(1000, 1004)
EDGE, LIMIT, FREE_PROTECTION = 6, 10.0, 2
FIRST = 5
"""Step at which the ramps of the predictions begin: the first that no fit used."""
INPUT_LOADS = {
    "native": (50.11, 59.75, 70.22, 80.10, 90.0),
    "virtual": (50.03, 60.09, 69.67, 80.12, 90.0),
    "virtual_ft": (9.91, 14.92, 19.59, 25.12, 30.0),
}
BEGINNING = (f"{BENCH}pre_registration.duration=430 s", f"{BENCH}stir.duration=20 s")
ALONE = (f"{BENCH}pre_registration.duration=0 s", f"{BENCH}steps.most=1")
LARGEST = ("REG1/max", "REG2/max")
IHS_POINTS = 5.0
"""IHS residual of virtual step 7 that counts as 1 in the score."""


@cache
def fitted(name: str) -> dict[str, float]:
    """Return the values of a fit, in base units."""
    return read_fit(f"sip-lab/{name}").values


def divided() -> dict[str, float]:
    """Return costs of the virtual machine from its own fit and that of bare metal, divided as the shipped models are.

    The factor is what a registration message costs more, the cost of a relayed message is what it costs beyond that.
    """
    machine, metal = fitted("virtual-full"), fitted("native-full")
    touch, register = f"{SERVER}touch_cost", f"{SERVER}register_touch_cost"
    factor = machine[register] / metal[register]
    costs = {key: value / factor for key, value in machine.items() if key.endswith("_cost")}
    costs |= {touch: metal[touch], "domains.sut.cpu_inflation": factor}
    return machine | costs | {f"{SERVER}relay_cost": machine[touch] - factor * metal[touch]}


def model(name: str, environment: str, settings: Sequence[str]) -> ModelSpec:
    """Return the model of an environment under a structure, with further settings."""
    structure = STRUCTURES[name]
    protection = structure.protection if environment == "virtual_ft" else ()
    spec = load_model(MODELS[environment], (*structure.assignments, *protection, *settings)).spec
    values = dict(fitted(structure.joint)) if structure.joint else divided() if structure.divided else {}
    if structure.divided and environment == "native":
        values[f"{SERVER}growth_per_transaction"] = fitted("native-full")[f"{SERVER}growth_per_transaction"]
    if environment == "native":
        values = {path: value for path, value in values.items() if path not in WITHIN_MACHINES}
    if environment == "virtual_ft" and structure.protected:
        values |= fitted(structure.protected)
    return with_values(spec, values)


# Input rows


def inputs(environment: str) -> list[str]:
    """Return the phases of an environment that are inputs."""
    return ["pre_registration", *(f"step_{n}" for n in range(1, 5)), *(["step_7"] if environment == "virtual" else [])]


def on_inputs(name: str, environment: str, seed: int) -> Observations:
    """Play the input rows of an environment once; phases are called ``environment/phase``."""
    loads = ", ".join(f"{load} /s" for load in INPUT_LOADS[environment])
    ramp = (f"{BENCH}steps.loads=[{loads}]", f"{BENCH}steps.most=5")
    seen = observe(model(name, environment, (*BEGINNING, *ramp)), seed, 0)
    found: Observations = {}
    for phase in inputs(environment)[:5]:
        found |= as_run(seen, f"{environment}/{phase}")
    if environment == "virtual":
        alone = model(name, environment, (*BEGINNING, *ALONE, f"{BENCH}steps.loads=[109 /s]"))
        found |= as_run(observe(alone, seed, 0), "virtual/step_7")
    return found


def score(name: str, environments: Sequence[str]) -> dict[str, Any]:
    """Return residuals and squares of a structure on input rows, means over the scoring seeds."""
    definition, tree = read_definition("sip-lab/growth", CalibrationSpec)
    runs = [(e, phase) for e in environments for phase in inputs(e)]
    definition = definition.model_copy(update={"in_sample": tuple("/".join(run) for run in runs)})
    data = measured_runs(dataset_path(tree.at("dataset")), runs)
    servers = {environment: model(name, environment, BEGINNING) for environment in environments}
    models = {"/".join(run): servers[run[0]] for run in runs}
    seeds = []
    for seed in SCORING_SEEDS:
        seen: Observations = {}
        for environment in environments:
            seen |= on_inputs(name, environment, seed)
        seeds.append(at_measured_traffic(seen, data, models))
    rows = {}
    for run, quantity in chosen(definition, data):
        mean = float(np.mean([seen[run, quantity] for seen in seeds]))
        measured = data[run, quantity]
        rows[f"{run} {quantity}"] = (measured, mean, residual(definition, quantity, mean, measured))
    if "virtual" in environments:
        for scenario in Scenario:
            quantity = f"ihs/{scenario.label}"
            mean = float(np.mean([seen["virtual/step_7", quantity] for seen in seeds]))
            measured = data["virtual/step_7", quantity]
            rows[f"virtual/step_7 {quantity}"] = (measured, mean, (mean - measured) / IHS_POINTS)
    fitted_here = STRUCTURES[name].fitted if "virtual" in environments else FREE_PROTECTION
    squares = sum(row[2] ** 2 for row in rows.values())
    return {"rows": rows, "squares": squares, "score": squares / (len(rows) - fitted_here)}


# Predictions


def ramp(name: str, environment: str, replication: int) -> dict[str, Any]:
    """Play a ramp from its first held-out step, at most two steps beyond the record's stop.

    Returns
    -------
    dict
        ``stop``: the step that ended it, one beyond the last where none did; ``seen``: figures by step.
    """
    initial, increment = LOADS[environment]
    loads = (
        f"{BENCH}steps.initial={initial + (FIRST - 1) * increment} /s",
        f"{BENCH}steps.increment={increment} /s",
        f"{BENCH}steps.most={STOPS[environment] + 3 - FIRST}",
        f"{BENCH}pre_registration.duration=0 s",
    )
    played = observe(model(name, environment, (*BEGINNING, *loads)), SEED, replication)
    seen = {
        (FIRST - 1 + int(phase.removeprefix("step_")), quantity): value
        for (phase, quantity), value in played.items()
        if phase.startswith("step_")
    }
    last = max(step for step, _ in seen)
    failed = any(value > LIMIT for (step, q), value in seen.items() if step == last and q.startswith("ihs/"))
    kept = {f"step_{step} {quantity}": value for (step, quantity), value in seen.items() if _kept(quantity)}
    return {"stop": last if failed else last + 1, "seen": kept}


def _kept(quantity: str) -> bool:
    return (
        quantity in delay_percentiles()
        or quantity in {"cpu", "retransmissions", *LARGEST}
        or (quantity.startswith("ihs/"))
    )


def edge(name: str, replication: int) -> dict[str, float]:
    """Play virtual step 6 alone; return its figures."""
    initial, increment = LOADS["virtual"]
    load = f"{BENCH}steps.initial={initial + (EDGE - 1) * increment} /s"
    seen = observe(model(name, "virtual", (*BEGINNING, *ALONE, load)), SEED, replication)
    return {quantity: value for (phase, quantity), value in seen.items() if phase == "step_1" and _kept(quantity)}


def maxima(name: str, replication: int) -> dict[str, float]:
    """Play the virtual machine from pre-registration to step 5; return the largest delays of each phase."""
    initial, increment = LOADS["virtual"]
    loads = (f"{BENCH}steps.initial={initial} /s", f"{BENCH}steps.increment={increment} /s", f"{BENCH}steps.most=5")
    seen = observe(model(name, "virtual", (*BEGINNING, *loads)), SEED, replication)
    return {f"{phase} {quantity}": value for (phase, quantity), value in seen.items() if quantity in LARGEST}


# What they say


def score_rows(scores: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield errors on input rows by kind, and the scores."""
    for name, found in scores.items():
        both, protected = found["joint"]["rows"], found.get("virtual_ft", {}).get("rows", {})

        def errors(rows: Mapping[str, Sequence[float]], start: str, quantity: str) -> list[float]:
            return [row[1] - row[0] for key, row in rows.items() if key.startswith(start) and key.endswith(quantity)]

        delays = [row for key, row in both.items() if "/p" in key.split(" ")[1] and "step_7" not in key]
        seventh = [row for key, row in both.items() if "/p" in key.split(" ")[1] and "step_7" in key]
        again = both["virtual/step_7 retransmissions"]
        yield [
            name,
            *(_signed(errors(both, f"{e}/", " cpu")[:5]) for e in ("native", "virtual")),
            f"{_percent(delays):.1f} %",
            f"{again[1]:.0f} of {again[0]:.0f}/s",
            " ".join(f"{row[1]:.0f}" for key, row in both.items() if "ihs/" in key),
            f"{_percent(seventh):.0f} %",
            f"{found['joint']['score']:.2f}",
            _signed(errors(protected, "virtual_ft/", " cpu")),
            f"{found['virtual_ft']['score']:.1f}" if protected else "",
        ]


def _signed(errors: Sequence[float]) -> str:
    return " ".join(f"{error:+.1f}" for error in errors)


def _percent(rows: Sequence[Sequence[float]]) -> float:
    return 100.0 * float(np.median([abs(row[1] / row[0] - 1.0) for row in rows]))


def stop_rows(found: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield where ramps stop, with the IHS by scenario of the record's stop step."""
    for name, predicted in found.items():
        cells = [name]
        for environment, runs in _ramps(predicted).items():
            stops, last = [run["stop"] for run in runs], STOPS[environment] + 2
            cells.append(
                ", ".join(
                    f"{step if step <= last else f'not by {last}'}: {stops.count(step)}/{len(stops)}"
                    for step in sorted(set(stops))
                )
            )
            if environment != "virtual":
                cells.append(_scenarios(environment, runs))
        yield cells


def _ramps(predicted: Mapping[str, Any]) -> dict[str, Any]:
    return {environment: predicted.get(f"ramps {environment}", []) for environment in STOPS}


def _scenarios(environment: str, runs: Sequence[Mapping[str, Any]]) -> str:
    names, step = sorted(f"ihs/{scenario.label}" for scenario in Scenario), f"step_{STOPS[environment]}"
    reached = [run["seen"] for run in runs if f"{step} ihs/global" in run["seen"]]
    if not reached:
        return "not reached"
    means = {q: float(np.mean([seen[f"{step} {q}"] for seen in reached])) for q in names}
    worst = max(abs(mean - record(environment)[step, q]) for q, mean in means.items())
    return " ".join(f"{mean:.0f}" for mean in means.values()) + f" ({worst:.0f})"


def held_out_rows(found: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield errors of CPU of held-out steps below 90 %, percentiles of virtual step 5, largest delays."""
    for name, predicted in found.items():
        cells = [name]
        for environment, runs in _ramps(predicted).items():
            steps = [f"step_{n}" for n in range(5, STOPS[environment] + 1)]
            below = [step for step in steps if record(environment)[step, "cpu"] < 90.0]
            cells.append(_signed([_mean(runs, f"{s} cpu") - record(environment)[s, "cpu"] for s in below]))
        virtual = _ramps(predicted)["virtual"]
        errors = {
            q: 100.0 * (_mean(virtual, f"step_5 {q}") / record("virtual")["step_5", q] - 1.0)
            for q in delay_percentiles()
        }
        apart = errors.pop("REL1/p99")
        worst = max(errors, key=lambda q: abs(errors[q]))
        median = float(np.median([abs(error) for error in (*errors.values(), apart)]))
        cells += [f"{median:.0f} %", f"{errors[worst]:+.0f} % ({worst})", f"{apart:+.0f} %"]
        cells += [f"{_median(virtual, f'step_5 {delay}'):.0f}" for delay in ("REG1/max", "REG2/max")]
        yield cells


def maxima_rows(found: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the largest delays of steps 1 to 5 and of pre-registration in ms, medians of replications."""
    phases = [f"step_{n}" for n in range(1, 6)]
    for name, runs in ((name, each["maxima"]) for name, each in found.items() if "maxima" in each):
        value = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        cells = [" ".join(f"{value[f'{phase} {delay}']:.0f}" for phase in phases) for delay in LARGEST]
        yield [name, *cells, ", ".join(f"{value[f'pre_registration {delay}']:.0f}" for delay in LARGEST)]


def _mean(runs: Sequence[Mapping[str, Any]], key: str) -> float:
    values = [run["seen"][key] for run in runs if key in run["seen"]]
    return float(np.mean(values)) if values else float("nan")


def _median(runs: Sequence[Mapping[str, Any]], key: str) -> float:
    values = [run["seen"][key] for run in runs if key in run["seen"]]
    return float(np.median(values)) if values else float("nan")


def tables(scores: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Yield all tables as Markdown, those without a row left out."""
    return (
        f"## {title}\n\n{markdown_table([cell.strip() for cell in head.split('|')], lines)}\n"
        for title, head, lines in (
            (
                "Input rows",
                "structure | native CPU | virtual CPU | percentiles | retransmissions | IHS, step 7 | "
                "p50, step 7 | score | FT CPU | FT score",
                list(score_rows(scores)),
            ),
            ("Stops", "structure | native (11) | its IHS | virtual (7) | FT (7) | its IHS", list(stop_rows(found))),
            (
                "Virtual step 6",
                "structure | CPU % | IHS % | retransmissions /s | percentiles inside | width | collapsed (95 %)",
                [edge_row(name, each["edge"]) for name, each in found.items() if "edge" in each],
            ),
            (
                "Largest delays",
                "structure | largest REG1, steps 1-5, ms | REG2 | pre-registration, both",
                list(maxima_rows(found)),
            ),
            (
                "Held out",
                "structure | native CPU 5-10 | virtual CPU 5 | FT CPU 5-6 | step 5, median | worst | "
                "REL1 p99 | largest REG1 of step 5 | REG2",
                list(held_out_rows(found)),
            ),
        )
        if lines
    )


def main() -> None:
    """Score, predict, or print tables; each part of a structure is kept as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["score", "ramps", "edge", "maxima", "tables"])
    parser.add_argument("files", nargs="*", type=Path, help="scores, and predictions if there are, for the tables")
    parser.add_argument("--structure", choices=STRUCTURES, action="append")
    parser.add_argument("--environment", choices=MODELS, action="append")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, help="JSON; what it has of a structure stays and is not played again")
    arguments = parser.parse_args()
    if arguments.what == "tables":
        scores, found = (*(json.loads(file.read_text()) for file in arguments.files), {})[:2]
        print("\n".join(tables(scores, found)))
        return
    done: dict[str, Any] = {}
    if arguments.output and arguments.output.exists():
        done = json.loads(arguments.output.read_text())
    for name in arguments.structure or STRUCTURES:
        parts_played = done.setdefault(name, {})
        for part in parts(arguments.what, arguments.environment or list(MODELS)):
            if part not in parts_played:
                parts_played[part] = played(name, part, arguments.runs)
                if arguments.output:
                    arguments.output.write_text(json.dumps(done) + "\n", encoding="utf-8")
                print(name, part, file=sys.stderr, flush=True)


def parts(what: str, environments: Sequence[str]) -> list[str]:
    """Return what is played: both scores, the edge step, largest delays, or the ramps of environments."""
    if what == "score":
        return ["joint", *(["virtual_ft"] if "virtual_ft" in environments else [])]
    return [what] if what in {"edge", "maxima"} else [f"ramps {environment}" for environment in environments]


def played(name: str, part: str, runs: int) -> Any:
    """Play one part of a structure."""
    if part == "edge":
        return [edge(name, r) for r in range(runs)]
    if part == "maxima":
        return [maxima(name, r) for r in range(runs)]
    if part.startswith("ramps "):
        return [ramp(name, part.partition(" ")[2], r) for r in range(runs)]
    return score(name, ["native", "virtual"] if part == "joint" else [part])


if __name__ == "__main__":
    main()
