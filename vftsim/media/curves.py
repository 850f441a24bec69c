"""Curves that belong to the record: the default mixed case over what is not known of it, and load curves.

``python -m vftsim.media.curves`` runs them with the fitted costs and writes ``curves.json`` and the figure
of the default case.  The loss of ``mixed.D`` is not a prediction: it hangs on duty and cycle of the
CPU-bound guests, which the study calls "highly compute-intensive tasks in between small idle periods".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.media.fit import STRUCTURES, Budget, overrides
from vftsim.media.record import RIGHT, experiment
from vftsim.media.run import run_media
from vftsim.spec import shipped_dir

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DUTIES = (50, 70, 80, 90, 95, 100)
CYCLES_MS = (10, 100, 1000)
STREAMS = (120, 240, 360, 480, 600, 720)
CURVE = Budget(404, 3, 1.0, 0.3)
_S = 1_000_000_000


def figures(name: str, assignments: Sequence[str], budget: Budget) -> dict[str, Any]:
    """Return losses and delays of an experiment, a value for each replication."""
    system = experiment(name, assignments)
    flows = [
        run_media(system, budget.seed, r, int(budget.seconds * _S), int(budget.warmup_seconds * _S)).media
        for r in range(budget.replications)
    ]
    return {
        "loss_percent": [100.0 * flow.loss_ratio for flow in flows],
        "loss_events": [flow.loss_events for flow in flows],
        "delay_mean_ms": [flow.mean_delay_ms for flow in flows],
        "delay_p99_ms": [flow.delay_ms(99) for flow in flows],
    }


def duty_curve(costs: Sequence[str], jobs: int, budget: Budget = CURVE) -> list[dict[str, Any]]:
    """Return the default mixed case over duty and cycle of its CPU-bound guests."""
    points = [(duty, cycle) for cycle in CYCLES_MS for duty in DUTIES]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(figures, "mixed.D", [*costs, *_duty(d, c)], budget) for d, c in points]
        return [
            {"duty_percent": duty, "cycle_ms": cycle, **future.result()}
            for (duty, cycle), future in zip(points, futures, strict=True)
        ]


def _duty(duty: int, cycle_ms: int) -> list[str]:
    job = [f"domains.{guest}.applications.job" for guest in ("cpu1", "cpu2")]
    return [f"{j}.duty={duty} %" for j in job] + [f"{j}.cycle_ns={cycle_ms} ms" for j in job]


def load_curve(costs: Sequence[str], jobs: int, budget: Budget = CURVE) -> list[dict[str, Any]]:
    """Return the turnkey host on four cores over the number of streams."""
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(figures, "turnkey4.720", [*costs, *_load(n)], budget) for n in STREAMS]
        return [{"streams": n, **f.result()} for n, f in zip(STREAMS, futures, strict=True)]


def _load(streams: int) -> list[str]:
    return [f"workload.rtp.streams={streams}", f"workload.signaling.calls_per_s={streams / 12}"]


def draw_duty_curve(points: Sequence[Mapping[str, Any]], ax: Axes) -> None:
    """Draw loss over duty, a line a cycle, with the 1-2 % the study calls unacceptable marked."""
    ax.axhspan(1.0, 2.0, color="0.85", label="1-2 %, called unacceptable")
    for number, cycle in enumerate(sorted({p["cycle_ms"] for p in points})):
        line = [p for p in points if p["cycle_ms"] == cycle]
        duty = [p["duty_percent"] for p in line]
        mean = [sum(p["loss_percent"]) / len(p["loss_percent"]) for p in line]
        ax.plot(duty, mean, marker="o", color=f"C{number}", label=f"cycle {cycle} ms")
        ax.fill_between(
            duty,
            [min(p["loss_percent"]) for p in line],
            [max(p["loss_percent"]) for p in line],
            color=f"C{number}",
            alpha=0.2,
        )
    ax.set_xlabel("duty of the CPU-bound guests (%)")
    ax.set_ylabel("loss of the default mixed case (%)")
    ax.legend()


def main() -> None:
    """Run the curves with the fitted costs and write them."""
    folder = shipped_dir("calibration") / "xen-media"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=folder / "curves.json")
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    best = json.loads((folder / "fit.json").read_text())[RIGHT]["best"]
    costs = overrides(best["backend_us"], best["relay_us"], STRUCTURES[RIGHT])
    curves = {
        "duty": duty_curve(costs, arguments.jobs),
        "load": load_curve(costs, arguments.jobs),
    }
    arguments.out.write_text(json.dumps(curves, indent=1) + "\n")
    for points in curves.values():
        for point in points:
            print({k: _short(v) for k, v in point.items()})
    if arguments.figure is not None:
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and wanted here only

        figure = Figure(figsize=(7, 4), layout="constrained")
        draw_duty_curve(curves["duty"], figure.subplots())
        figure.savefig(arguments.figure)


def _short(value: Any) -> Any:
    return [float(f"{x:.3g}") for x in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
