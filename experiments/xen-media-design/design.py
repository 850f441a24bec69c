"""Which experiment would tell a wake-up boost from none, and how busy the CPU-bound guests are: effects and power.

The published experiments load the host so much that nearly every vCPU that wakes is boosted; they cannot show the
boost.  Here few streams run on one or two cores beside two CPU-bound guests.  For every setting the model gives the
delay of each run; power is that of Welch's t test at 5 % on the logarithm of a percentile, with the spread of the
model's own runs and, beside it, an assumed spread of the laboratory from run to run.

    python experiments/xen-media-design/design.py --output design.json
    python experiments/xen-media-design/design.py --read design.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from vftsim.composition.run import run_model
from vftsim.composition.views import media_of
from vftsim.records.forms.xen_media import experiment
from vftsim.report.markdown import markdown_table

CORES, STREAMS, DUTIES, BOOSTS = (1, 2), (8, 40, 160), (50, 70, 90, 100), (True, False)
SEED, REPLICATIONS = 606, 10
FIGURES = {"p50": 50, "p90": 90, "p99": 99}
LAB_SPREADS = (0.1, 0.3)
"""Assumption: standard deviation of the logarithm of a percentile from run to run in a laboratory."""
LEVEL, WANTED, MOST_RUNS = 0.05, 0.90, 200
Cell = tuple[int, int, int, bool]
Runs = npt.NDArray[np.float64]


def system(cores: int, streams: int, duty: int, boost: bool) -> Any:
    """Return the default mixed case with fewer cores and streams."""
    guests = [f"domains.{guest}.applications.job.duty={duty} %" for guest in ("cpu1", "cpu2")]
    return experiment(
        "mixed.D",
        [
            f"hosts.host.pcpus={cores}",
            f"domains.dom0.vcpus={cores}",
            f"workloads.media.streams={streams}",
            f"workloads.signaling.calls_per_s={streams / 12}",
            f"hosts.host.scheduler.boost={str(boost).lower()}",
            "measure.duration=20 s",
            "measure.warm_up=2 s",
            *guests,
        ],
    )


def figures(cell: Cell) -> dict[str, list[float]]:
    """Return percentiles of the delay in ms and the loss in percent, a value a run."""
    model = system(*cell)
    flows = [media_of(model, run_model(model, SEED, r)) for r in range(REPLICATIONS)]
    found = {name: [flow.delay_ms(percent) for flow in flows] for name, percent in FIGURES.items()}
    return found | {"loss": [100.0 * flow.loss_ratio for flow in flows]}


# Power


def power(effect: float, spread: float, runs: Runs) -> Runs:
    """Return how often a two-sided t test at 5 % finds a difference of means, and its sign, with so many runs each."""
    degrees = 2 * runs - 2
    limits = stats.t.ppf(1.0 - LEVEL / 2.0, degrees)
    found: Runs = stats.nct.sf(limits, degrees, effect / (spread * np.sqrt(2.0 / runs)))
    return found


def runs_needed(first: Sequence[float], second: Sequence[float], lab_spread: float) -> int | None:
    """Return the fewest runs on each side with a power of 90 %, at most 200."""
    a, b = np.log(first), np.log(second)
    effect = abs(float(a.mean() - b.mean()))
    spread = math.sqrt((float(a.var(ddof=1)) + float(b.var(ddof=1))) / 2.0 + lab_spread**2)
    runs = np.arange(2.0, MOST_RUNS + 1.0)
    enough = runs[power(effect, spread, runs) >= WANTED]
    return int(enough[0]) if enough.size else None


# Tables


def boost_rows(results: Mapping[Cell, Mapping[str, Sequence[float]]]) -> Iterator[list[str]]:
    """Yield one row a setting: delays with boost and without, and the runs that p99 and the best percentile need."""
    for cores, streams, duty in itertools.product(CORES, STREAMS, DUTIES):
        with_boost, without = results[cores, streams, duty, True], results[cores, streams, duty, False]
        pairs = [f"{_mean(with_boost[name])} / {_mean(without[name])}" for name in FIGURES]
        best = _furthest(_ratios(with_boost, without))
        yield [
            str(cores),
            str(streams),
            f"{duty} %",
            *pairs,
            *_needed(with_boost["p99"], without["p99"]),
            best,
            *_needed(with_boost[best], without[best]),
        ]


def _ratios(first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: float(np.exp(np.log(second[name]).mean() - np.log(first[name]).mean())) for name in FIGURES}


def _furthest(ratios: Mapping[str, float]) -> str:
    return max(ratios, key=lambda name: abs(math.log(ratios[name])))


def duty_rows(results: Mapping[Cell, Mapping[str, Sequence[float]]]) -> Iterator[list[str]]:
    """Yield one row for neighbouring duties: the ratio of each percentile, and the runs that the best of them needs."""
    for boost, cores, streams in itertools.product(BOOSTS, CORES, STREAMS):
        for low, high in itertools.pairwise(DUTIES):
            a, b = results[cores, streams, low, boost], results[cores, streams, high, boost]
            ratios = _ratios(a, b)
            best = _furthest(ratios)
            yield [
                "yes" if boost else "no",
                str(cores),
                str(streams),
                f"{low} and {high} %",
                *(f"{ratio:.2f}" for ratio in ratios.values()),
                best,
                *_needed(a[best], b[best]),
            ]


def _needed(first: Sequence[float], second: Sequence[float]) -> list[str]:
    found = [runs_needed(first, second, spread) for spread in LAB_SPREADS]
    return [str(n) if n else f"over {MOST_RUNS}" for n in found]


def _mean(values: Sequence[float]) -> str:
    return f"{float(np.exp(np.log(values).mean())):.3g}"


def tables(results: Mapping[Cell, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    """Return both tables as lines of Markdown."""
    runs = [f"runs ({spread:g})" for spread in LAB_SPREADS]
    heads = ("cores", "streams", "duty", *(f"{name}, ms" for name in FIGURES))
    by_p99 = [f"p99: {each}" for each in runs]
    yield "## Boost against none\n\n" + markdown_table((*heads, *by_p99, "best", *runs), boost_rows(results))
    yield ""
    heads = ("boost", "cores", "streams", "duties", *(f"{name}, ratio" for name in FIGURES), "best")
    yield "## Duty\n\n" + markdown_table((*heads, *runs), duty_rows(results))


def main() -> None:
    """Run every setting, or read them, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--read", type=Path, help="print the tables of a file that an earlier run wrote")
    arguments = parser.parse_args()
    cells: list[Cell] = list(itertools.product(CORES, STREAMS, DUTIES, BOOSTS))
    if arguments.read:
        found = json.loads(arguments.read.read_text(encoding="utf-8"))
    else:
        found = []
        for cell in cells:
            found.append(figures(cell))
            print(*cell, file=sys.stderr, flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print("\n".join(tables(dict(zip(cells, found, strict=True)))))


if __name__ == "__main__":
    main()
