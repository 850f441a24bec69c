"""Rare stops in the SIP lab: fitted on largest delays, judged on where the ramps tip; ``protocol.md`` says how.

python experiments/sip-lab-stops/stops.py --output stops.json
python experiments/sip-lab-stops/stops.py --read experiments/sip-lab-stops/stops.json
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sip-lab-structures"))
from collapse import MODELS, record
from measured_loads import FIRST, LOADS, compact, maxima_rows, right_speed, settings

from vftsim.calibrate.figures import observe
from vftsim.composition.keys import with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.ramps import LIMITS_PERCENT
from vftsim.report.markdown import markdown_table
from vftsim.study.runs.model import load_model
from vftsim.workloads.ims_bench.metrics import DELAYS
from vftsim.workloads.sip.messages import Scenario

Results = dict[str, Any]
Keep = Callable[[], None]
FITTED_DELAYS = ("SES2", "REL1", "PMM1", "REG4")
FITTED_STEPS = range(1, 5)
MEANS_S = (225, 450, 900, 1800, 3600)
LENGTHS_MS = (150, 200, 250, 300, 350, 400)
FIT_RUNS, FIT_SEED = 12, 11
JUDGED = {"native": (10, 11, 12), "virtual": (5, 6, 7), "virtual_ft": (5, 6, 7)}
SHORT = {"native": "native", "virtual": "virtual", "virtual_ft": "FT"}
NOT_PLAYED = ("native", 12)
"""The lab's ramp had ended by then."""
RUNS, SEED = 20, 2011
PRICE = "domains.sut.applications.proxy.retransmission_cost"
PRICES = (0.05, 0.1, 0.25, 0.5, 1.0)
IHS_POINTS, LOG_SCALE = 5.0, 0.15
STOPS, MINUTE, QUEUEING = "stops", "stops each minute", "no stops"
CHEAP = "stops at price 0.05"
NAMES = {STOPS: STOPS, **{name: f"{name} (wrong on purpose)" for name in (CHEAP, MINUTE, QUEUEING)}}


def stopping(length_ms: float, repeat: str) -> tuple[str, ...]:
    """Return what makes a machine stand still again and again."""
    return (f"faults=[{{kind: pause, at: 0 s, domain: sut, duration: {length_ms} ms, repeat: {repeat}}}]",)


def drawn(mean_s: float, length_ms: float) -> tuple[str, ...]:
    """Return stops at the instants of a Poisson process."""
    return stopping(length_ms, f"{{mean: {mean_s} s}}")


# The fit


def largest(extra: Sequence[str], replication: int) -> dict[str, float]:
    """Play virtual steps 1 to 4, each alone; return the largest of each delay in ms."""
    found = {}
    for step in FITTED_STEPS:
        alone = settings([record("virtual")[f"step_{step}", "load"]])
        seen = observe(load_model(MODELS["virtual"], (*extra, *alone)).spec, FIT_SEED, replication)
        found |= {f"step_{step} {delay}/max": seen["step_1", f"{delay}/max"] for delay in DELAYS}
    return found


def play_grid(results: Results, keep: Keep) -> None:
    """Play every point of the grid, and no stops."""
    points = {QUEUEING: (), **{f"{m} s, {length} ms": drawn(m, length) for m in MEANS_S for length in LENGTHS_MS}}
    for name, extra in points.items():
        if name not in results:
            results[name] = compact([largest(extra, replication) for replication in range(FIT_RUNS)])
            keep()


def rows(delays: Sequence[str]) -> list[str]:
    """Return the names of the largest delays in question."""
    return [f"step_{step} {delay}/max" for step in FITTED_STEPS for delay in delays]


def ranked(runs: Sequence[Mapping[str, float]], lab: Mapping[str, float], delays: Sequence[str]) -> float:
    """Return the continuous ranked probability score of the logarithms of the largest delays, averaged over them."""
    scores = []
    for row in rows(delays):
        values, seen = np.log([run[row] for run in runs]), math.log(lab[row])
        spread = np.abs(values[:, None] - values[None, :]).mean()
        scores.append(float(np.abs(values - seen).mean() - spread / 2.0))
    return statistics.fmean(scores)


def best_point(grid: Results, lab: Mapping[str, float]) -> str:
    """Return the point of the grid that a lab's largest delays prefer; a run of the grid is not held against itself."""
    points = [name for name in grid if name != QUEUEING]
    return min(points, key=lambda name: ranked([run for run in grid[name] if run is not lab], lab, FITTED_DELAYS))


def lab() -> dict[str, float]:
    """Return the record's largest delays of the virtual machine."""
    return {
        f"{phase} {quantity}": value for (phase, quantity), value in record("virtual").items() if "/max" in quantity
    }


def numbers(point: str) -> tuple[float, float]:
    """Return mean and length of a point, in s and ms."""
    mean, length = point.split(", ")
    return float(mean.removesuffix(" s")), float(length.removesuffix(" ms"))


# What is judged


def loads(environment: str) -> dict[int, float]:
    """Return the measured loads of the judged steps."""
    return {step: LOADS[environment][step - FIRST[environment]] for step in JUDGED[environment]}


def model(environment: str, extra: Sequence[str]) -> ModelSpec:
    """Return the shipped model of an environment with further settings."""
    return load_model(MODELS[environment], extra).spec


def cells(environment: str, speed: float, extra: Sequence[str], steps: Mapping[int, float]) -> Results:
    """Play steps alone; return the runs of each."""
    found = {}
    for step, load in steps.items():
        spec = with_values(model(environment, (*extra, *settings([load]))), {"hosts.host.cpu_speed": speed})
        found[str(step)] = [kept(observe(spec, SEED, replication)) for replication in range(RUNS)]
    return found


def kept(seen: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return what a run of one step says of it; shares of failures that are 0 are left out."""
    names = {"load", "cpu", "retransmissions"}
    return {
        q: v
        for (phase, q), v in seen.items()
        if phase == "step_1" and (q in names or (q.startswith("ihs/") and v > 0.0))
    }


def play_cells(results: Results, fitted: tuple[float, float], keep: Keep) -> None:
    """Play all structures at all prices."""
    stop_settings = {STOPS: drawn(*fitted), MINUTE: stopping(fitted[1], "{every: 60 s}"), QUEUEING: ()}
    speeds = results.setdefault("speeds", {})
    for environment in MODELS:
        if environment not in speeds:
            error, speed = right_speed(lambda e, more: model(e, (*stop_settings[STOPS], *more)), environment)
            speeds[environment] = compact({"error": error, "speed": speed})
            keep()
    for name, extra in stop_settings.items():
        for price in PRICES:
            for environment in MODELS:
                key = f"{name}, {price}, {environment}"
                if key not in results:
                    settled = (*extra, f"{PRICE}={price}")
                    speed = speeds[environment]["speed"]
                    results[key] = compact(cells(environment, speed, settled, loads(environment)))
                    keep()


def misfit(runs: Sequence[Mapping[str, float]]) -> float:
    """Return squares at virtual step 7: shares of failures and retransmissions."""
    measured, squares = record("virtual"), 0.0
    for scenario in Scenario:
        name = f"ihs/{scenario.label}"
        squares += ((statistics.fmean(run.get(name, 0.0) for run in runs) - measured["step_7", name]) / IHS_POINTS) ** 2
    repeated = max(statistics.fmean(run["retransmissions"] for run in runs), 1e-3)
    return squares + (math.log(repeated / measured["step_7", "retransmissions"]) / LOG_SCALE) ** 2


def prices(results: Results) -> dict[str, float]:
    """Return the price of each structure."""
    chosen = {
        name: min(PRICES, key=lambda price: misfit(results[f"{name}, {price}, virtual"]["7"]))
        for name in (STOPS, MINUTE, QUEUEING)
    }
    return {STOPS: chosen[STOPS], CHEAP: PRICES[0], MINUTE: chosen[MINUTE], QUEUEING: chosen[QUEUEING]}


def runs_of(results: Results, name: str, price: float, environment: str, step: int) -> list[dict[str, float]]:
    """Return the runs of a cell."""
    return list(results[f"{STOPS if name == CHEAP else name}, {price}, {environment}"][str(step)])


def tips(run: Mapping[str, float], limit: float) -> bool:
    """Whether a step is beyond a limit."""
    return any(value > limit for name, value in run.items() if name.startswith("ihs/"))


def share(runs: Sequence[Mapping[str, float]], limit: float) -> float:
    """Return in which share of runs the step tips."""
    return statistics.fmean(tips(run, limit) for run in runs)


def measured_step(environment: str, step: int) -> dict[str, float]:
    """Return the record's figures of a step."""
    return {quantity: v for (phase, quantity), v in record(environment).items() if phase == f"step_{step}"}


def judged_cells() -> list[tuple[str, int]]:
    """Return the cells that the record has."""
    return [(e, step) for e, steps in JUDGED.items() for step in steps if (e, step) != NOT_PLAYED]


def shares(results: Results, name: str, price: float, limit: float) -> dict[tuple[str, int], float]:
    """Return the share of tipped runs in each judged cell."""
    return {(e, s): share(runs_of(results, name, price, e, s), limit) for e, s in judged_cells()}


def brier(found: Mapping[tuple[str, int], float], limit: float) -> float:
    """Return the mean square of shares less what the record has."""
    return statistics.fmean((value - tips(measured_step(*cell), limit)) ** 2 for cell, value in found.items())


def wrong_side(found: Mapping[tuple[str, int], float], limit: float) -> list[tuple[str, int]]:
    """Return the cells whose share is on the other side of one half, or on it."""
    return [cell for cell, value in found.items() if (value - 0.5) * (tips(measured_step(*cell), limit) - 0.5) <= 0]


# The rule without a model


def spares(environment: str) -> dict[int, tuple[float, bool]]:
    """Return, by step, the spare capacity in attempts a second, and whether the step tipped (beyond 1 %)."""
    found: dict[int, tuple[float, bool]] = {}
    clean: list[tuple[float, float]] = []
    for step in range(1, 30):
        seen = measured_step(environment, step)
        if not seen:
            break
        is_tipped = tips(seen, LIMITS_PERCENT[1])
        price = seen["cpu"] / seen["load"]
        if is_tipped:
            price = float(np.polyval(np.polyfit(*zip(*clean[-3:], strict=True), 1), seen["load"]))
        else:
            clean.append((seen["load"], price))
        found[step] = ((100.0 - price * seen["load"]) / price, is_tipped)
    return found


def by_rule() -> dict[tuple[str, int], float]:
    """Return what spare capacity says of each judged cell, learned from the other two environments."""
    found = {}
    for environment, step in judged_cells():
        others = [each for other in MODELS if other != environment for each in spares(other).values()]
        cpu_spare = spares(environment)[step][0]
        least_clean = min(spare for spare, tipped in others if not tipped)
        most_tipped = max(spare for spare, tipped in others if tipped)
        found[environment, step] = 0.0 if cpu_spare >= least_clean else 1.0 if cpu_spare <= most_tipped else 0.5
    return found


# Tables


def fit_rows(grid: Results) -> Iterator[list[str]]:
    """Yield the score of each mean and length."""
    for mean in MEANS_S:
        yield [f"{mean}", *(f"{ranked(grid[f'{mean} s, {n} ms'], lab(), FITTED_DELAYS):.3f}" for n in LENGTHS_MS)]


def fit_summary(grid: Results) -> Iterator[list[str]]:
    """Yield the fit, its interval, and its score on rows that were not fitted, beside no stops."""
    fitted = best_point(grid, lab())
    again = [numbers(best_point(grid, run)) for run in grid[fitted]]
    others = [delay for delay in DELAYS if delay not in FITTED_DELAYS]
    for number, (what, unit) in enumerate((("mean time from stop to stop", "s"), ("length of a stop", "ms"))):
        values = [each[number] for each in again]
        text = (
            f"{min(values):g} to {max(values):g}; the truth in {values.count(numbers(fitted)[number])} of {len(values)}"
        )
        yield [f"{what}, {unit}", f"{numbers(fitted)[number]:g}", f"fitted again: {text}"]
    for name, delays in (("16 fitted rows", FITTED_DELAYS), ("12 rows held out", others)):
        with_stops, without = (ranked(grid[point], lab(), delays) for point in (fitted, QUEUEING))
        yield [f"score of {name}", f"{with_stops:.3f}", f"no stops: {without:.3f}"]


def share_rows(results: Results) -> Iterator[list[str]]:
    """Yield shares of tipped runs at 1 and 10 %."""
    heads = [(e, step) for e, steps in JUDGED.items() for step in steps]
    measured = ["-" if cell == NOT_PLAYED else _both(lambda at, c=cell: tips(measured_step(*c), at)) for cell in heads]
    yield ["**record**", "", *measured]
    for name, price in prices(results).items():
        yield [
            NAMES[name],
            f"{price:g}",
            *(_both(lambda at, c=c, n=name, p=price: share(runs_of(results, n, p, *c), at)) for c in heads),
        ]


def _both(value: Callable[[float], float]) -> str:
    return " / ".join(f"{100 * value(limit):.0f}" for limit in (LIMITS_PERCENT[1], LIMITS_PERCENT[-1]))


def brier_rows(results: Results) -> Iterator[list[str]]:
    """Yield the score at each limit, and the cells on the wrong side at 1, 5 and 10 %."""
    for name, price in prices(results).items():
        by_limit = {limit: shares(results, name, price, limit) for limit in LIMITS_PERCENT}
        yield _scored(NAMES[name], by_limit)
    yield _scored("spare capacity of the other two, no model", dict.fromkeys(LIMITS_PERCENT, by_rule()))


def _scored(name: str, by_limit: Mapping[float, Mapping[tuple[str, int], float]]) -> list[str]:
    wrong = {f"{SHORT[e]} {s}": 0 for limit in LIMITS_PERCENT[1:] for e, s in wrong_side(by_limit[limit], limit)}
    return [name, *(f"{brier(found, limit):.3f}" for limit, found in by_limit.items()), ", ".join(wrong) or "none"]


def price_rows(results: Results) -> Iterator[list[str]]:
    """Yield, at every price, misfit of virtual step 7 and the score at 1 and 10 %."""
    for name in (STOPS, MINUTE, QUEUEING):
        for price in PRICES:
            runs = results[f"{name}, {price}, virtual"]["7"]
            found = [shares(results, name, price, limit) for limit in (LIMITS_PERCENT[1], LIMITS_PERCENT[-1])]
            edges = (("native", 11), ("virtual", 6), ("virtual_ft", 7))
            yield [
                NAMES[name],
                f"{price:g}",
                f"{misfit(runs):.1f}",
                *(f"{brier(each, limit):.3f}" for each, limit in zip(found, (1.0, 10.0), strict=True)),
                *(f"{100 * found[1][edge]:.0f}" for edge in edges),
            ]


def spare_rows() -> Iterator[list[str]]:
    """Yield spare capacity of the judged cells, and the border in each environment."""
    for environment in MODELS:
        spare_by_step = spares(environment)
        clean = min(spare for spare, tipped in spare_by_step.values() if not tipped)
        tipped = max(spare for spare, tipped in spare_by_step.values() if tipped)
        asked = ", ".join(f"{s}: {by_rule()[e, s]:g}" for e, s in judged_cells() if e == environment)
        yield [environment, f"{len(spare_by_step)}", f"{clean:.1f}", f"{tipped:.1f}", asked]


def page(results: Results) -> str:
    """Return all tables as Markdown."""
    grid, played = results["grid"], results["cells"]
    columns = [f"{SHORT[e]} {step}" for e, steps in JUDGED.items() for step in steps]
    limits = [f"at {limit:g} %" for limit in LIMITS_PERCENT]
    speeds = [[e, f"{played['speeds'][e]['error']:+.1f}", f"{played['speeds'][e]['speed']:.4f}"] for e in MODELS]
    fitted = best_point(grid, lab())
    delays = {name: {"maxima": grid[point]} for name, point in (("no stops", QUEUEING), (f"stops ({fitted})", fitted))}
    parts = [
        ("Fit", markdown_table(("", "value", ""), list(fit_summary(grid)))),
        ("Scores of the grid", markdown_table(("mean, s", *(f"{n} ms" for n in LENGTHS_MS)), list(fit_rows(grid)))),
        (
            "Largest delays",
            markdown_table(
                ("structure", *DELAYS, "below half of the record's", "above twice"), list(maxima_rows(delays))
            ),
        ),
        ("CPU", markdown_table(("environment", "error in the calm step, points", "speed that mends it"), speeds)),
        ("Shares", markdown_table(("% of runs beyond 1 / 10 %", "price", *columns), list(share_rows(played)))),
        ("Brier scores", markdown_table(("structure", *limits, "wrong side"), list(brier_rows(played)))),
        (
            "Prices",
            markdown_table(
                ("structure", "price", "misfit of virtual 7", "at 1 %", "at 10 %", "native 11", "virtual 6", "FT 7"),
                list(price_rows(played)),
            ),
        ),
        (
            "Spare capacity",
            markdown_table(
                ("environment", "steps", "least spare, clean", "most spare, tipped", "asked from the others"),
                list(spare_rows()),
            ),
        ),
    ]
    return "\n\n".join(f"## {head}\n\n{table}" for head, table in parts) + "\n"


def resumed(
    parser: argparse.ArgumentParser, separators: tuple[str, str] | None = None
) -> tuple[argparse.Namespace, Results, Callable[[], None]]:
    """Return the options, what the file that they name has, and what writes it anew."""
    parser.add_argument("--output", type=Path, help="JSON; what it has stays and is not played again")
    parser.add_argument("--read", type=Path, help="print the tables of a file that an earlier run wrote")
    arguments = parser.parse_args()
    given = arguments.read or arguments.output
    results: Results = json.loads(given.read_text(encoding="utf-8")) if given and given.exists() else {}

    def keep() -> None:
        if arguments.output:
            arguments.output.write_text(json.dumps(results, separators=separators) + "\n", encoding="utf-8")

    return arguments, results, keep


def main() -> None:
    """Play what is missing, and print the tables."""
    arguments, results, keep = resumed(argparse.ArgumentParser(description=__doc__), (",", ":"))
    if not arguments.read:
        play_grid(results.setdefault("grid", {}), keep)
        play_cells(results.setdefault("cells", {}), numbers(best_point(results["grid"], lab())), keep)
    print(page(results), end="")


if __name__ == "__main__":
    main()
