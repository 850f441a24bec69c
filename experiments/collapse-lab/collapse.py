"""Ramp a SIP proxy to its collapse, again and again, while its knobs change by a balanced design.

    python experiments/collapse-lab/collapse.py OUT --minutes 50

as root, on a machine with two processors that does nothing else.  Kamailio runs on the last core, SIPp and the capture
on the first, on loopback of a network that only they have.  Runs at three low rates come first and tell which
load fills the core; ramps go from 0.72 to 1.28 of that.  The design is played block by block, every combination
once in each, so it is balanced whenever it ends; half the design takes 15 minutes a block, the full one 30
(``--design full``, three blocks: 90 minutes).  A ramp is written when it is over: the command can be ended at any time
and goes on where it was.  A ramp that other programs disturbed is named and played again at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from design import DESIGNS, Cell, schedule
from lab import ROUNDS, Rates, check_machine, enter_network, play, sweep

BASE = Cell(256, 500, 0, 4, 100)
PRICE_RUNS = {"base": (BASE, ROUNDS), "no-work": (BASE, 0), "half-core": (Cell(256, 500, 0, 4, 50), ROUNDS)}
"""Played at low rates: the price of a call, what of it is not the work of the script, the price under a quota."""
PRICE_RATE, PRICE_REPEATS = 60, 3
FIRST_SHARE, RISE_SHARE, STEPS, STEP_S = 0.72, 0.08, 8, 4.0
MOST_OTHER, MOST_STOLEN = 5.0, 3.0
"""Percent of a core that others may use on average in a ramp, and that the host may keep, before it is disturbed."""
_OVERHEAD_S = 2.0


@dataclass(frozen=True, slots=True)
class Run:
    """A ramp to be played."""

    name: str
    cell: Cell
    rates: Rates
    rounds: int = ROUNDS

    @property
    def needed_s(self) -> float:
        """How long it takes."""
        return self.rates.length_s + _OVERHEAD_S


def main() -> None:
    """Play what is left of the design until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--design", choices=DESIGNS, default="half")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=120.0, help="end within this time")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--full", type=float, help="calls a second that fill the core, where low rates mislead")
    parser.add_argument("--only-prices", action="store_true", help="the low rates alone")
    asked = parser.parse_args()
    missing = check_machine()
    if missing:
        sys.exit("the collapse lab cannot be run here: " + "; ".join(missing))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("ended; the same command goes on from here"))
    sweep()
    until = time.monotonic() + 60.0 * asked.minutes
    print(f"other programs use {busy_percent():.0f} % of a core at this moment; more than {MOST_OTHER:g} % disturbs")
    enter_network()
    is_done = play_all(asked.out, list(price_runs()), until)
    if asked.only_prices or not is_done:
        return
    full = asked.full or full_load(asked.out)
    print(f"{full:.0f} calls a second are taken to fill the core")
    cells = schedule(asked.design, asked.blocks, asked.seed)
    planned = [Run(name, cell, ramp_rates(full, cell)) for name, cell in cells]
    if play_all(asked.out, planned, until):
        again = [replace(run, name=f"{run.name}-again") for run in planned if read(asked.out, run.name)["disturbed"]]
        play_all(asked.out, again, until)


def price_runs() -> Iterator[Run]:
    """Yield the runs at low rates."""
    for repeat in range(1, PRICE_REPEATS + 1):
        for name, (cell, rounds) in PRICE_RUNS.items():
            rate = PRICE_RATE * cell.core_percent // 100
            yield Run(f"price{repeat}-{name}", cell, Rates(rate, rate, 3, STEP_S), rounds)


def ramp_rates(full: float, cell: Cell) -> Rates:
    """Return the rates of a cell's ramp: shares of the load that fills its share of the core."""
    cell_full = full * cell.core_percent / 100.0
    return Rates(round(FIRST_SHARE * cell_full), round(RISE_SHARE * cell_full), STEPS, STEP_S)


def full_load(out: Path) -> float:
    """Return the calls a second that fill the core: by the price of a call at the highest rate of the price runs."""
    last = [read(out, f"price{repeat}-base")["steps"][-1] for repeat in range(1, PRICE_REPEATS + 1)]
    prices = [float(row["cpu_percent"]) / (row["attempts"] / STEP_S) for row in last]
    return 100.0 / statistics.median(prices)


def play_all(out: Path, planned: Sequence[Run], until: float) -> bool:
    """Play what is not there yet, and tell whether all is there; a ramp begins only if it ends in time."""
    left = [run for run in planned if not _file(out, run.name).exists()]
    needed = sum(run.needed_s for run in left)
    for number, run in enumerate(left, 1):
        if time.monotonic() + run.needed_s > until:
            print(f"the time is over with {len(left) - number + 1} ramps left", flush=True)
            return False
        needed -= run.needed_s
        try:
            found = play_one(run)
        except RuntimeError as error:
            print(f"{run.name} failed: {error}", flush=True)
            continue
        write(_file(out, run.name), found)
        print(f"{number}/{len(left)}, {needed / 60:.1f} min left: {run.name} {summary(found)}", flush=True)
    return all(_file(out, run.name).exists() for run in planned)


def play_one(run: Run) -> dict[str, Any]:
    """Play a ramp and say where and when, and whether it was disturbed."""
    begun = datetime.now(UTC)
    found = play(run.cell, run.rates, run.rounds)
    return {
        "name": run.name,
        "cell": {field: getattr(run.cell, field) for field in Cell.__slots__},
        "begun_utc": begun.isoformat(timespec="seconds"),
        "machine": {"kernel": platform.release().split("-")[0], "processors": os.cpu_count()},
        "rounds": run.rounds,
        "step_s": run.rates.step_s,
        "disturbed": list(disturbances(found["steps"])),
        **found,
    }


def disturbances(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what disturbed a ramp."""
    for key, most, what in (("other_percent", MOST_OTHER, "others"), ("stolen_percent", MOST_STOLEN, "the host")):
        used = statistics.fmean(row[key] for row in steps)
        if used > most:
            yield f"{what}: {used:.1f} % of a core"


def summary(found: dict[str, Any]) -> str:
    """Return a ramp in a line: per cent inadequately handled in each step, and the load's core at its busiest."""
    shares = (100.0 * row["inadequate"] / max(1, row["attempts"]) for row in found["steps"])
    busiest = max(row["load_percent"] for row in found["steps"])
    told = f"{' '.join(f'{share:.0f}' for share in shares)} % inadequate; load's core {busiest:.0f} %"
    return "; ".join([told, *(f"DISTURBED by {reason}" for reason in found["disturbed"])])


def busy_percent(length_s: float = 2.0) -> float:
    """Return what all programs together use at this moment, in percent of a core."""

    def busy() -> float:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return (sum(map(int, words[1:8])) - int(words[4]) - int(words[5])) / os.sysconf("SC_CLK_TCK")

    before = busy()
    time.sleep(length_s)
    return 100.0 * (busy() - before) / length_s


def _file(out: Path, name: str) -> Path:
    return out / f"{name}.json"


def read(out: Path, name: str) -> dict[str, Any]:
    """Return a ramp that was played."""
    found: dict[str, Any] = json.loads(_file(out, name).read_text(encoding="utf-8"))
    return found


def write(path: Path, found: dict[str, Any]) -> None:
    """Write a ramp, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    main()
