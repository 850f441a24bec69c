"""The record of the lab: one row a step of every ramp, and the load at which a ramp collapsed.

    python experiments/collapse-lab/record.py OUT experiments/collapse-lab/measured
    python experiments/collapse-lab/record.py OUT experiments/collapse-lab/low-rates --prices

writes what ``collapse.py`` left in OUT as tables: ``steps.csv``, and ``runs.csv`` with what is known of each ramp.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from design import Cell

from vftsim.labs.ramps import LoadStep, full_load

_PRICE = "price"
_DELAYS = tuple(f"{name}_{what}_ms" for name in ("setup", "release") for what in ("p50", "p90", "p99", "max"))
_COUNTS = "rate load attempts completed inadequate undecided ihs_percent repeats repeated_answers"
_USED = "cpu_percent load_percent other_percent stolen_percent dropped load_dropped"
STEP_COLUMNS = ("environment", "phase", "repeat", *_COUNTS.split(), *_USED.split(), *_DELAYS)
_ABOUT = "name begun_utc disturbed kernel_buffer_bytes freezes longest_freeze_ms capture_lost proxy_errors"
RUN_COLUMNS = tuple(_ABOUT.split())


@dataclass(frozen=True, slots=True)
class Ramp:
    """One ramp: load and inadequate percent of each step, and the load that its CPU would have carried."""

    cell: Cell
    steps: tuple[LoadStep, ...]

    @property
    def full(self) -> float | None:
        """Load that fills the cell's share of the core, by the price of a call in the steps before trouble."""
        return full_load(self.steps)

    def onset(self, limit_percent: float) -> float:
        """Return the load at which the share inadequately handled passes a limit, on the line between two steps.

        A ramp that is beyond it in its first step has that step's load, one that never is the last step's.
        """
        loads = [step.load for step in self.steps]
        shares = [step.inadequate_percent for step in self.steps]
        over = next((number for number, share in enumerate(shares) if share > limit_percent), None)
        if over is None:
            return loads[-1]
        if over == 0:
            return loads[0]
        part = (limit_percent - shares[over - 1]) / (shares[over] - shares[over - 1])
        return loads[over - 1] + part * (loads[over] - loads[over - 1])


def load_step(cell: Cell, load: float, inadequate_percent: float, cpu_percent: float) -> LoadStep:
    """Return a step; its CPU in percent of what the cell has."""
    return LoadStep(load, inadequate_percent, cpu_percent * 100.0 / cell.core_percent)


def read_ramps(folder: Path) -> list[Ramp]:
    """Return the ramps of a record; of one that was played again the second."""
    runs: dict[tuple[str, str], list[LoadStep]] = {}
    with (folder / "steps.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            step = (float(row[key]) for key in ("load", "ihs_percent", "cpu_percent"))
            run = (row["environment"], row["repeat"])
            runs.setdefault(run, []).append(load_step(cell_of(row["environment"]), *step))
    return [Ramp(cell_of(name), tuple(steps)) for (name, _), steps in runs.items()]


def cell_of(name: str) -> Cell:
    """Return the cell of a short name."""
    return Cell(*(int(part[1:]) for part in name.split("-")))


# Written


def write_record(source: Path, folder: Path, of_prices: bool = False) -> None:
    """Write the ramps that were played as tables, or the runs at low rates."""
    paths = [path for path in sorted(source.glob("*.json")) if path.name.startswith(_PRICE) == of_prices]
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    found.sort(key=lambda run: str(run["begun_utc"]))
    folder.mkdir(parents=True, exist_ok=True)
    again = {run["name"].removesuffix("-again") for run in found if run["name"].endswith("-again")}
    counted = [run for run in found if run["name"] not in again]
    (folder / "steps.csv").write_text(_table(STEP_COLUMNS, _step_rows(counted)), encoding="utf-8")
    (folder / "runs.csv").write_text(_table(RUN_COLUMNS, map(_run_row, found)), encoding="utf-8")


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _step_rows(runs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for run in runs:
        kind, _, rest = run["name"].partition("-")
        is_price = kind.startswith(_PRICE)
        for row in run["steps"]:
            decided = row["attempts"] - row["undecided"]
            yield {
                **row,
                "environment": f"{_PRICE}-{rest}" if is_price else rest.removesuffix("-again"),
                "phase": f"r{row['rate']}" if is_price else f"step_{row['step']}",
                "repeat": kind.removeprefix(_PRICE).removeprefix("r"),
                "load": round(row["attempts"] / run["step_s"], 3),
                "ihs_percent": round(100.0 * row["inadequate"] / max(1, decided), 3),
            }


def _run_row(run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **run,
        "disturbed": "; ".join(run["disturbed"]),
        "freezes": len(run["freezes_ms"]),
        "longest_freeze_ms": max(run["freezes_ms"], default=0.0),
    }


if __name__ == "__main__":
    write_record(Path(sys.argv[1]), Path(sys.argv[2]), "--prices" in sys.argv[3:])
