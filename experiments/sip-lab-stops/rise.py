"""What protection costs near the end: CPU of steps 1 to 4 fitted, 5 and 6 judged; ``protocol.md`` says how.

python experiments/sip-lab-stops/rise.py --stops experiments/sip-lab-stops/stops.json --output rise.json
python experiments/sip-lab-stops/rise.py --read experiments/sip-lab-stops/rise.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sip-lab-structures"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lockstep-costs"))
from collapse import record
from costs import FULL, HELD_OUT, MODEL, PHASES, STEPS_US, cpu_once, least_squares
from costs import settings as priced
from measured_loads import LOADS, settings
from stops import PRICE, RUNS, SEED, STOPS, best_point, drawn, kept, lab, numbers, prices, resumed, share

from vftsim.calibrate.figures import observe
from vftsim.labs.ramps import LIMITS_PERCENT
from vftsim.report.markdown import markdown_table
from vftsim.study.runs.model import load_model

Array = NDArray[np.float64]
Results = dict[str, Any]
ROWS = (*PHASES, *HELD_OUT)
FITTED = slice(1, 5)
JUDGED = slice(5, 7)
SEEDS = range(11, 15)
WAYS = {
    "no failover": (),
    "two failovers": ("faults=[{kind: primary_crash, at: step 2 + 775 s}, {kind: primary_crash, at: step 4 + 600 s}]",),
}
LAG = "domains.sut.protection.secondary.factor"
LAGS = (1.2, 1.4, 1.6, 1.8, 2.0)
CANDIDATES = {"exit": ("exit",), **{f"exit, {other}": ("exit", other) for other in STEPS_US if other != "exit"}}
HELD_POINTS, WELL_POINTS = 4.0, 1.5
LENGTHS = (*FULL, "workloads.calls.steps.most=6")


def mean_cpu(prices_us: dict[str, float], extra: Sequence[str]) -> list[float]:
    """Return the mean CPU of every phase, at the measured traffic."""
    runs = [cpu_once(prices_us, (*LENGTHS, *extra), seed) for seed in SEEDS]
    return [round(float(value), 4) for value in np.mean(runs, axis=0)]


def target() -> Array:
    """Return the measured CPU of every phase."""
    return np.array([record("virtual_ft")[row, "cpu"] for row in ROWS])


def squares(found: Array | Sequence[float]) -> float:
    """Return the squares of steps 1 to 4, in points."""
    return float(np.sum((np.array(found)[FITTED] - target()[FITTED]) ** 2))


def fitted_prices(results_here: Results, names: tuple[str, ...]) -> dict[str, float]:
    """Return the prices in us that meet steps 1 to 4 best, by sensitivities."""
    base = np.array(results_here["base"])
    matrix = np.array([(np.array(results_here[name]) - base) / STEPS_US[name] for name in names]).T
    found, _ = least_squares(matrix[FITTED], (target() - base)[FITTED], tuple(range(len(names))))
    return {name: round(float(us), 3) for name, us in zip(names, found, strict=True)}


def play_fits(results: Results, keep: Callable[[], None]) -> None:
    """Play sensitivities, and each candidate at its fitted prices."""
    for way, extra in WAYS.items():
        results_here = results.setdefault(way, {})
        for name, prices_us in ({"base": {}} | {name: {name: us} for name, us in STEPS_US.items()}).items():
            if name not in results_here:
                results_here[name] = mean_cpu(prices_us, extra)
                keep()
        fits = results.setdefault(f"fits, {way}", {})
        for name, names in CANDIDATES.items():
            if name not in fits:
                prices_us = fitted_prices(results_here, names)
                fits[name] = {"prices": prices_us, "cpu": mean_cpu(prices_us, extra)}
                keep()
        for factor in LAGS:
            if f"exit, lag {factor}" not in fits:
                prices_us = fits["exit"]["prices"]
                seen = mean_cpu(prices_us, (*extra, f"{LAG}={factor}"))
                fits[f"exit, lag {factor}"] = {"prices": prices_us, "factor": factor, "cpu": seen}
                keep()


def worst(fit: Results) -> float:
    """Return the largest error of steps 5 and 6 in points."""
    errors = np.abs(np.array(fit["cpu"])[JUDGED] - target()[JUDGED])
    return float(np.max(errors))


def is_refused(fits: Results, name: str) -> bool:
    """Whether steps 1 to 4 refuse a lag."""
    if "factor" not in fits[name]:
        return False
    limit = 1.0 + f_distribution.ppf(0.95, 1, 2) / 2
    least = min(squares(fit["cpu"]) for key, fit in fits.items() if "factor" in fit or key == "exit")
    return bool(squares(fits[name]["cpu"]) > least * limit)


def all_fits(results: Results) -> Iterator[tuple[str, str, Results]]:
    """Yield way, name and fit of everything that steps 1 to 4 do not refuse."""
    for way in WAYS:
        fits = results[f"fits, {way}"]
        yield from ((way, name, fit) for name, fit in fits.items() if not is_refused(fits, name))


def play_stop(results: Results, fitted: tuple[float, float], price: float, keep: Callable[[], None]) -> None:
    """Play step 7 of the nearest, and of all that are well held, with the stops and without a correction of CPU."""
    found = sorted(all_fits(results), key=lambda each: worst(each[2]))
    asked = [each for number, each in enumerate(found) if number == 0 or worst(each[2]) <= WELL_POINTS]
    results_here = results.setdefault("step 7", {})
    for way, name, fit in asked:
        if f"{name}, {way}" not in results_here:
            lag = (f"{LAG}={fit['factor']}",) if "factor" in fit else ()
            alone = settings([LOADS["virtual_ft"][2]])
            extra = (*priced(fit["prices"], ()), *lag, *drawn(*fitted), f"{PRICE}={price}", *alone)
            spec = load_model(str(MODEL), extra).spec
            results_here[f"{name}, {way}"] = [kept(observe(spec, SEED, replication)) for replication in range(RUNS)]
            keep()


def fit_rows(results: Results) -> Iterator[list[str]]:
    """Yield prices and errors of all fits."""
    for way in WAYS:
        fits = results[f"fits, {way}"]
        for name, fit in fits.items():
            errors = np.array(fit["cpu"]) - target()
            told = "refused by steps 1 to 4" if is_refused(fits, name) else _told(worst(fit))
            yield [
                way,
                name,
                ", ".join(f"{us:.1f}" for us in fit["prices"].values()),
                f"{squares(fit['cpu']):.2f}",
                *("ended" if np.isnan(error) else f"{error:+.1f}" for error in errors),
                told,
            ]


def _told(points: float) -> str:
    return "well held" if points <= WELL_POINTS else "held" if points <= HELD_POINTS else "not held"


def stop_rows(results: Results) -> Iterator[list[str]]:
    """Yield what step 7 does."""
    for name, runs in results["step 7"].items():
        offered = float(np.median([run["cpu"] for run in runs]))
        yield [name, f"{offered:.1f}", *(f"{100 * share(runs, limit):.0f}" for limit in LIMITS_PERCENT)]


def page(results: Results) -> str:
    """Return both tables as Markdown."""
    heads = ("way", "candidate", "prices, us", "squares, 1 to 4", *(row.replace("_", " ") for row in ROWS), "5 and 6")
    limits = [f"% of runs beyond {limit:g} %" for limit in LIMITS_PERCENT]
    return (
        f"## Fits\n\n{markdown_table(heads, list(fit_rows(results)))}\n\n"
        f"## Step 7\n\n{markdown_table(('candidate', 'CPU, median', *limits), list(stop_rows(results)))}\n"
    )


def main() -> None:
    """Play what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=Path, help="what stops.py wrote: the stops and the price of step 7")
    arguments, results, keep = resumed(parser)
    if not arguments.read:
        played = json.loads(arguments.stops.read_text(encoding="utf-8"))
        play_fits(results, keep)
        fitted = numbers(best_point(played["grid"], lab()))
        play_stop(results, fitted, prices(played["cells"])[STOPS], keep)
    print(page(results), end="")


if __name__ == "__main__":
    main()
