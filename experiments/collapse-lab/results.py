"""What the collapse lab measured beside what was predicted; ``protocol.md`` says how it is judged.

python experiments/collapse-lab/results.py
python experiments/collapse-lab/results.py --figure docs/sip/collapse-lab.png
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from collapse import BASE
from design import KNOBS, Cell, cells
from predict import full_of
from record import Ramp, cell_of, read_ramps
from scipy import stats

from vftsim.calibrate.capacities import LeftOut, section, system_of
from vftsim.labs.ramps import LIMITS_PERCENT, capacity_at, shares_seen, shipped_ramps
from vftsim.report.markdown import markdown_table

HERE = Path(__file__).parent
NEAR_PERCENT, NEAR_POINTS = 10.0, 3.0
"""A cell is held within the first, an effect within the second (or within its measured interval)."""
JUDGED = 10.0
DRAWN = (1.0, 10.0)
PRICES_OF_THE_WINDOW, PRICES_BEFORE = "model", "model, prices of the busy machine"
KNOWING = "after: the model with the load that fills the CPU as measured (a fit)"
FILLED, SAME = "null: the load that fills the CPU", "null: the base cell's in every cell"
KNOB_NAMES = {
    "buffer 64": "buffer of 64 KiB for 256",
    "buffer 1024": "buffer of 1 MiB for 256 KiB",
    "t1_ms": "T1 of 1 s for 0.5 s",
    "freeze_ms": "a freeze of 0.3 s in each step",
    "workers": "eight workers for four",
    "core_percent": "the whole core for half, per core",
}
Onsets = Mapping[Cell, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a knob does to the onset, in percent, with its 95 % interval."""

    percent: float
    low: float
    high: float

    @property
    def is_seen(self) -> bool:
        """Whether the interval has no 0."""
        return self.low > 0.0 or self.high < 0.0


def levels(cell: Cell) -> list[float]:
    """Return what a cell has of each knob's other level; of the buffer 256 KiB lies between two."""
    others = [float(getattr(cell, knob) == KNOBS[knob][1]) for knob in KNOBS if knob != "buffer_kib"]
    return [float(cell.buffer_kib == 64), float(cell.buffer_kib == 1024), *others]


def effects(onsets: Onsets) -> list[Effect]:
    """Return main effects on the logarithm of the onset per core, by least squares over all ramps."""
    pairs = [(cell, value * 100.0 / cell.core_percent) for cell, values in onsets.items() for value in values]
    matrix = np.array([[1.0, *levels(cell)] for cell, _ in pairs])
    logs = np.log([value for _, value in pairs])
    found, *_ = np.linalg.lstsq(matrix, logs, rcond=None)
    degrees = len(pairs) - matrix.shape[1]
    variance = float(((logs - matrix @ found) ** 2).sum()) / degrees
    errors = np.sqrt(variance * np.diag(np.linalg.inv(matrix.T @ matrix))) * stats.t.ppf(0.975, degrees)
    ends = ((value, value - error, value + error) for value, error in zip(found[1:], errors[1:], strict=True))
    return [Effect(*(100.0 * math.expm1(end) for end in each)) for each in ends]


def measured_onsets(ramps: Iterable[Ramp], limit: float) -> dict[Cell, list[float]]:
    """Return the onsets of each cell's ramps."""
    found: dict[Cell, list[float]] = {cell: [] for cell in cells("half")}
    for ramp in ramps:
        found[ramp.cell].append(ramp.onset(limit))
    return {cell: values for cell, values in found.items() if values}


def predicted_onsets(predicted: Mapping[str, Any], limit: float) -> dict[Cell, list[float]]:
    """Return the onsets of each cell's runs of the model."""
    return {cell_of(name): each["onset"][f"{limit:g}"] for name, each in predicted["cells"].items()}


def predictions(window: Mapping[str, Any], before: Mapping[str, Any], limit: float) -> dict[str, dict[Cell, float]]:
    """Return the mean onset of each cell by the model, with either prices, and by the null models."""
    by_model = {
        name: {cell: statistics.fmean(values) for cell, values in predicted_onsets(each, limit).items()}
        for name, each in ((PRICES_OF_THE_WINDOW, window), (PRICES_BEFORE, before))
    }
    base = statistics.fmean(window["cells"][BASE.name]["onset"][f"{limit:g}"])
    shares = {cell: cell.core_percent / 100.0 for cell in by_model[PRICES_OF_THE_WINDOW]}
    return {
        **by_model,
        FILLED: {cell: share * full_of(window["prices"]) for cell, share in shares.items()},
        SAME: {cell: share * base for cell, share in shares.items()},
    }


def full_loads(ramps: Iterable[Ramp]) -> dict[int, float]:
    """Return the load that fills each share of the core: the median of its ramps, by their steps before trouble."""
    found: dict[int, list[float]] = {}
    for ramp in ramps:
        if ramp.full:
            found.setdefault(ramp.cell.core_percent, []).append(ramp.full)
    return {percent: statistics.median(values) for percent, values in found.items()}


def speed_factors(ramps: Iterable[Ramp], window: Mapping[str, Any]) -> dict[int, float]:
    """Return, by share of the core, the load that fills it as measured over the model's."""
    found = {}
    for percent, full in full_loads(ramps).items():
        fulls = [each["full"] for name, each in window["cells"].items() if cell_of(name).core_percent == percent]
        found[percent] = full / statistics.median(value for value in fulls if value)
    return found


# Tables


def effect_rows(ramps: Sequence[Ramp], window: Mapping[str, Any], limit: float) -> Iterator[list[str]]:
    """Yield each knob's effect, measured and predicted, and whether that held."""
    measured, by_model = effects(measured_onsets(ramps, limit)), effects(predicted_onsets(window, limit))
    for name, seen, told in zip(KNOB_NAMES.values(), measured, by_model, strict=True):
        yield [
            name,
            f"{seen.percent:+.1f} % ({seen.low:+.1f} to {seen.high:+.1f})",
            f"{told.percent:+.1f} %",
            "held" if is_held(seen, told) else "**missed**",
            "yes" if seen.is_seen else "no",
        ]


def is_held(seen: Effect, told: Effect) -> bool:
    """Whether an effect that was predicted is the measured one, by the protocol."""
    return seen.low <= told.percent <= seen.high or abs(seen.percent - told.percent) <= NEAR_POINTS


def cell_rows(ramps: Sequence[Ramp], window: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield each cell's onset, measured and predicted."""
    told = predicted_onsets(window, JUDGED)
    for cell, values in measured_onsets(ramps, JUDGED).items():
        mean = statistics.fmean(told[cell])
        error = 100.0 * (mean / statistics.fmean(values) - 1.0)
        yield [
            *(str(getattr(cell, knob)) for knob in KNOBS),
            f"{statistics.fmean(values):.0f} ({min(values):.0f} to {max(values):.0f})",
            f"{mean:.0f} ({min(told[cell]):.0f} to {max(told[cell]):.0f})",
            f"{error:+.1f} %{'' if abs(error) <= NEAR_PERCENT else ' **missed**'}",
        ]


def score_rows(ramps: Sequence[Ramp], window: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield, for the model and the null models, median and largest error of the cells at each limit."""
    factors = speed_factors(ramps, window)
    for name in (*predictions(window, before, JUDGED), KNOWING):
        found = []
        for limit in LIMITS_PERCENT:
            told = predictions(window, before, limit)[PRICES_OF_THE_WINDOW if name == KNOWING else name]
            if name == KNOWING:
                told = {cell: value * factors[cell.core_percent] for cell, value in told.items()}
            errors = sorted(
                100.0 * abs(told[cell] / statistics.fmean(values) - 1.0)
                for cell, values in measured_onsets(ramps, limit).items()
            )
            near = sum(error <= NEAR_PERCENT for error in errors)
            found.append(f"{statistics.median(errors):.1f} %, {errors[-1]:.0f} %, {near} of {len(errors)}")
        yield [name, *found]


def share_rows(ramps: Sequence[Ramp]) -> Iterator[list[str]]:
    """Yield onsets as shares of the load that fills the CPU: all cells, and by freeze and share of the core."""
    full = full_loads(ramps)
    groups = {"all ramps": list(ramps)}
    for percent in KNOBS["core_percent"]:
        for freeze in KNOBS["freeze_ms"]:
            chosen = [ramp for ramp in ramps if (ramp.cell.core_percent, ramp.cell.freeze_ms) == (percent, freeze)]
            groups[f"{percent} % of the core, {'a freeze' if freeze else 'no freeze'}"] = chosen
    for name, chosen in groups.items():
        if chosen:
            cells_of = [
                [ramp.onset(limit) / full[ramp.cell.core_percent] for ramp in chosen] for limit in LIMITS_PERCENT
            ]
            yield [name, str(len(chosen)), *(_spread(values) for values in cells_of)]


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def run_rows(folder: Path) -> Iterator[list[str]]:
    """Yield what is to be known of the ramps."""
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    with (folder / "steps.csv").open(encoding="utf-8", newline="") as file:
        steps = list(csv.DictReader(file))
    full = full_loads(read_ramps(folder))
    yield ["ramps played", str(len(runs))]
    named, again = ([row["name"] for row in runs if told(row)] for told in (_is_disturbed, _is_again))
    halves = sum("-c50" in name for name in named)
    yield ["named as disturbed, of them with half the core, played again", f"{len(named)}, {halves}, {len(again)}"]
    yield ["calls begun", f"{sum(int(row['attempts']) for row in steps):,}"]
    yield ["load's core at its busiest in any step", f"{max(float(row['load_percent']) for row in steps):.0f} %"]
    yield ["datagrams dropped at callers and callee", *_sums(steps, "load_dropped")]
    yield [
        "datagrams that the capture lost, errors that the proxy told",
        ", ".join(_sums(runs, "capture_lost", "proxy_errors")),
    ]
    yield ["longest freeze", f"{max(float(row['longest_freeze_ms']) for row in runs):.1f} ms"]
    yield ["calls a second that fill the core, and half of it", ", ".join(f"{full[p]:.0f}" for p in sorted(full)[::-1])]


def _is_disturbed(row: Mapping[str, str]) -> bool:
    return bool(row["disturbed"])


def _is_again(row: Mapping[str, str]) -> bool:
    return row["name"].endswith("-again")


def _sums(rows: Sequence[Mapping[str, str]], *columns: str) -> list[str]:
    return [str(sum(int(row[column]) for row in rows)) for column in columns]


def seen_to_tip(folder: Path, window: Mapping[str, Any]) -> str:
    """Return the range in which other systems tipped against what the base cell carried, at each limit."""
    measured_system = system_of(shipped_ramps(), folder, BASE.name)
    if measured_system is None:
        return ""
    others = [ramp for ramp in shipped_ramps().values() if ramp is not measured_system]
    low, high = shares_seen(others)
    measured = tuple(capacity_at(measured_system.steps, limit) for limit in LIMITS_PERCENT)
    full = {"the model": float(window["cells"][BASE.name]["full"]), "its own record": measured_system.full}
    return section(
        [
            LeftOut(measured_system.system, "other laboratories", whose, load, low * load, high * load, measured)
            for whose, load in full.items()
        ]
    )


def page(ramps: Sequence[Ramp], folder: Path, window: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    limits = [f"{limit:g} %" for limit in LIMITS_PERCENT]
    heads = ("knob", "measured (95 % interval)", "predicted", "", "told from none")
    knobs = ("buffer, KiB", "T1, ms", "freeze, ms", "workers", "core, %")
    parts = {
        "Runs": markdown_table(("", ""), run_rows(folder)),
        **{
            f"Effects at {limit:g} %": markdown_table(heads, effect_rows(ramps, window, limit)) for limit in (1.0, 10.0)
        },
        "Scores": markdown_table(
            ("median and largest error, cells within 10 %, at", *limits), score_rows(ramps, window, before)
        ),
        "Shares": markdown_table(
            ("onset as share of the load that fills the CPU", "ramps", *limits), share_rows(ramps)
        ),
        "Cells": markdown_table((*knobs, "measured", "predicted", "error"), cell_rows(ramps, window)),
    }
    told = [f"## {head}\n\n{table}" for head, table in parts.items()]
    return "\n\n".join([*told, seen_to_tip(folder, window)]).rstrip() + "\n"


def draw(ramps: Sequence[Ramp], window: Mapping[str, Any], path: Path) -> None:
    """Draw what each knob does to the onset, measured with its interval, and predicted."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    places = np.arange(len(KNOB_NAMES))[::-1]
    for axes, limit in zip(figure.subplots(1, 2, sharex=True, sharey=True), DRAWN, strict=True):
        measured, told = effects(measured_onsets(ramps, limit)), effects(predicted_onsets(window, limit))
        ends = [[each.percent - each.low for each in measured], [each.high - each.percent for each in measured]]
        seen = [each.percent for each in measured]
        axes.axvline(0.0, color="#c9d0d6")
        axes.errorbar(seen, places + 0.12, xerr=ends, fmt="o", color="#1b6ca8", capsize=3, label="measured, 95 %")
        axes.plot([each.percent for each in told], places - 0.12, "D", color="#c04a30", label="predicted")
        axes.set_title(f"load at which {limit:g} % is inadequate", fontsize="medium")
        axes.set_xlabel("change, %")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_yticks(places, list(KNOB_NAMES.values()))
    axes.legend(frameon=False, loc="best")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Print the tables, or draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, default=HERE / "measured")
    parser.add_argument("--predicted", type=Path, default=HERE / "predicted.json")
    parser.add_argument("--before", type=Path, default=HERE / "predicted-before.json")
    parser.add_argument("--figure", type=Path, help="draw the effects into this file")
    asked = parser.parse_args()
    ramps = read_ramps(asked.measured)
    window, before = (json.loads(path.read_text(encoding="utf-8")) for path in (asked.predicted, asked.before))
    if asked.figure:
        draw(ramps, window, asked.figure)
    else:
        print(page(ramps, asked.measured, window, before), end="")


if __name__ == "__main__":
    main()
