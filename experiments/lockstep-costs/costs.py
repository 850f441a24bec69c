"""What recording costs a guest in counted events, fitted to the SIP lab; the protocol stands in ``protocol.md``.

    python experiments/lockstep-costs/costs.py [--without-pre-registration] [--jobs 2]
    python experiments/lockstep-costs/costs.py --at exit=34,batch=144

Prints, as Markdown, sensitivities, their singular values, the fits with profile intervals, and the errors of the chosen
one simulated at full length; with ``--at``, which is not part of the protocol, the errors of the prices given, in us.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
from loky import get_reusable_executor
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import f as f_distribution

from vftsim.calibrate.figures import measured, observations_of
from vftsim.calibrate.fit import at_measured_traffic
from vftsim.composition.run import run_model
from vftsim.report.markdown import markdown_table
from vftsim.spec.shipped import shipped_dir
from vftsim.study.runs.model import load_model

Array = NDArray[np.float64]
MODEL = Path(__file__).with_name("lab-virtual-ft-counted.yaml")
BENCH, COST = "workloads.calls", "domains.sut.protection.cost"
STEPS_US = {"exit": 30.0, "packet": 100.0, "context_switch": 50.0, "timer": 20.0, "batch": 100.0}
KEYS = {"packet": ("entry", "output")}
SCALE_POINTS = 0.25
PHASES = ("pre_registration", "step_1", "step_2", "step_3", "step_4")
HELD_OUT = ("step_5", "step_6")


def settings(prices_us: dict[str, float], lengths: tuple[str, ...]) -> list[str]:
    """Return what to set for these prices, all others but that of a KiB being 0."""
    chosen = dict.fromkeys(STEPS_US, 0.0) | prices_us
    keys = {key: us for name, us in chosen.items() for key in KEYS.get(name, (name,))}
    return [*(f"{COST}.{key}={us:.6f} us" for key, us in keys.items()), f"{COST}.kibibyte=1 us", *lengths]


SHORT = (
    f"{BENCH}.steps.duration=380 s",
    f"{BENCH}.steps.transient=20 s",
    f"{BENCH}.steps.most=5",
    f"{BENCH}.stir.duration=20 s",
    f"{BENCH}.pre_registration.duration=430 s",
)
FULL = (
    f"{BENCH}.steps.duration=900 s",
    f"{BENCH}.steps.transient=30 s",
    f"{BENCH}.steps.most=7",
    f"{BENCH}.stir.duration=20 s",
    f"{BENCH}.pre_registration.duration=430 s",
)


def cpu_once(prices_us: dict[str, float], lengths: tuple[str, ...], seed: int) -> Array:
    """Return the CPU of every phase in percent, at the measured traffic, of one replication."""
    data = measured(shipped_dir("calibration") / "sip-lab" / "data", "virtual_ft")
    spec = load_model(str(MODEL), settings(prices_us, lengths)).spec
    seen = at_measured_traffic(observations_of(run_model(spec, seed, 0)), data, {"": spec})
    return np.array([seen.get((phase, "cpu"), np.nan) for phase in (*PHASES, *HELD_OUT)])


def cpu(pool: Executor, points: list[dict[str, float]], lengths: tuple[str, ...], seeds: range) -> Array:
    """Return the mean CPU of every phase at each point, and its standard error behind it."""
    asked = [(point, lengths, seed) for point in points for seed in seeds]
    table = np.array(list(pool.map(cpu_once, *zip(*asked, strict=True)))).reshape(len(points), len(seeds), -1)
    return np.stack([table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(len(seeds))])


def least_squares(matrix: Array, wanted: Array, columns: tuple[int, ...]) -> tuple[Array, float]:
    """Return prices that are not negative, and the sum of squares in units of the scale."""
    found, norm = nnls(matrix[:, columns], wanted) if columns else (np.zeros(0), float(np.linalg.norm(wanted)))
    return found, float(norm / SCALE_POINTS) ** 2


def profile(matrix: Array, wanted: Array, columns: tuple[int, ...], place: int, box: float) -> tuple[float, float]:
    """Return the 95 % profile interval of one price in us, inside its box."""
    _, least = least_squares(matrix, wanted, columns)
    freedom = max(len(wanted) - len(columns), 1)
    limit = least * (1.0 + f_distribution.ppf(0.95, 1, freedom) / freedom)
    others = tuple(c for i, c in enumerate(columns) if i != place)
    grid = np.linspace(0.0, box, 8001)
    inside = [us for us in grid if least_squares(matrix, wanted - us * matrix[:, columns[place]], others)[1] <= limit]
    return (inside[0], inside[-1]) if inside else (np.nan, np.nan)


def identifiability(matrix: Array, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every direction, its singular value over the boxes in scales first: what the rows tell apart."""
    boxes = np.array([10.0 * STEPS_US[name] for name in names])
    _, singular, directions = np.linalg.svd(matrix * boxes / SCALE_POINTS, full_matrices=False)
    for value, direction in zip(singular, directions, strict=True):
        yield (f"{value:.3g}", *(f"{x:+.2f}" for x in direction))


def choose(matrix: Array, wanted: Array, rows: tuple[str, ...]) -> tuple[int, ...]:
    """Fit without step 4, score there, and return the prices chosen."""
    kept, last = [i for i, row in enumerate(rows) if row != "step_4"], rows.index("step_4")
    every = range(len(STEPS_US))
    sets = [(i,) for i in every] + list(itertools.combinations(every, 2)) + [tuple(every)]
    scores = []
    for columns in sets:
        found, squares = least_squares(matrix[kept], wanted[kept], columns)
        error = float(matrix[last, columns] @ found - wanted[last])
        scores.append((columns, error, squares))
    least = min(abs(error) for _, error, _ in scores)
    near = [each for each in scores if abs(each[1]) <= least + SCALE_POINTS]
    fewest = min(len(columns) for columns, _, _ in near)
    return min((each for each in near if len(each[0]) == fewest), key=lambda each: each[2])[0]


def fits(matrix: Array, wanted: Array, names: tuple[str, ...], chosen: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    """Yield prices and sum of squares of the chosen fit and of all five with profile intervals, then of each pair."""
    every = tuple(range(len(names)))
    for label, columns in (("chosen by the protocol", chosen), ("all five", every)):
        found, squares = least_squares(matrix, wanted, columns)
        boxes = [10.0 * STEPS_US[names[column]] for column in columns]
        limits = [profile(matrix, wanted, columns, place, box) for place, box in enumerate(boxes)]
        prices = zip(columns, found, limits, strict=True)
        yield (
            label,
            ", ".join(f"{names[c]} {us:.1f} ({a:.1f} to {b:.1f})" for c, us, (a, b) in prices),
            f"{squares:.1f}",
        )
    for columns in itertools.combinations(every, 2):
        found, squares = least_squares(matrix, wanted, columns)
        yield "pair", ", ".join(f"{names[c]} {us:.1f}" for c, us in zip(columns, found, strict=True)), f"{squares:.1f}"


def report(pool: Executor, prices: dict[str, float], target: Array, rows: tuple[str, ...]) -> None:
    """Print what these prices give at full length beside the record."""
    mean, error = (each[0] for each in cpu(pool, [prices], FULL, range(1000, 1010)))
    lines = [
        (
            phase,
            "in sample" if phase in rows else "held out",
            f"{seen:.2f}",
            f"{value:.2f}",
            f"{spread:.2f}",
            f"{value - seen:+.2f}",
        )
        for phase, value, spread, seen in zip((*PHASES, *HELD_OUT), mean, error, target, strict=True)
    ]
    print("\n## At full length\n")
    print(markdown_table(("CPU, %", "", "measured", "found", "standard error", "error, points"), lines))


def main() -> None:
    """Run the protocol."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-pre-registration", action="store_true")
    parser.add_argument("--at", help="Prices to simulate instead: exit=30,timer=20 in us.")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    rows = PHASES[1:] if arguments.without_pre_registration else PHASES
    first = len(PHASES) - len(rows)
    data = measured(shipped_dir("calibration") / "sip-lab" / "data", "virtual_ft")
    target = np.array([data[phase, "cpu"] for phase in (*PHASES, *HELD_OUT)])
    names = tuple(STEPS_US)
    with get_reusable_executor(arguments.jobs) as pool:
        if arguments.at:
            given = {name: float(us) for name, _, us in (text.partition("=") for text in arguments.at.split(","))}
            report(pool, given, target, rows)
            return
        points: list[dict[str, float]] = [{}, *({name: us} for name, us in STEPS_US.items())]
        table = cpu(pool, points, SHORT, range(11, 15))[0][:, : len(PHASES)]
        slopes = np.array([(table[i + 1] - table[0]) / us for i, us in enumerate(STEPS_US.values())]).T[first:]
        wanted = (target[: len(PHASES)] - table[0])[first:]
        chosen = choose(slopes, wanted, rows)
        print("## Points of CPU for a microsecond\n")
        lines = [(name, *(f"{value:.4f}" for value in column)) for name, column in zip(names, slopes.T, strict=True)]
        print(markdown_table(("price of", *rows), [*lines, ("**missing, points**", *(f"{w:.2f}" for w in wanted))]))
        print("\n## What the rows tell apart\n")
        print(markdown_table(("singular value", *names), list(identifiability(slopes, names))))
        print("\n## Fits\n")
        print(
            markdown_table(("fit", "prices, us (95 % profile)", "squares"), list(fits(slopes, wanted, names, chosen)))
        )
        found, _ = least_squares(slopes, wanted, chosen)
        prices = {names[c]: float(us) for c, us in zip(chosen, found, strict=True)}
        report(pool, prices, target, rows)


if __name__ == "__main__":
    main()
