"""Curves that belong to the record: the default mixed case over what is not known of it, and over the load.

The loss of ``mixed.D`` is not a prediction: it hangs on duty and cycle of the CPU-bound guests, which the
study calls "highly compute-intensive tasks in between small idle periods".
``vftsim record xen-media --curve duty`` or ``load`` runs them (:mod:`vftsim.records.xen_study`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vftsim.composition.views import media_of
from vftsim.records.xen_fit import Budget, run_for
from vftsim.records.xen_media import experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DUTIES = (50, 70, 80, 90, 95, 100)
CYCLES_MS = (10, 100, 1000)
STREAMS = (120, 240, 360, 480, 600, 720)
CURVE = Budget(404, 3, 1.0, 0.3)


def figures(name: str, assignments: Sequence[str], budget: Budget) -> dict[str, Any]:
    """Return losses and delays of an experiment, a value for each replication."""
    system = experiment(name, assignments)
    flows = [media_of(system, run_for(system, budget, r)) for r in range(budget.replications)]
    return {
        "loss_percent": [100.0 * flow.loss_ratio for flow in flows],
        "loss_events": [flow.loss_events for flow in flows],
        "delay_mean_ms": [flow.mean_delay_ms for flow in flows],
        "delay_p99_ms": [flow.delay_ms(99) for flow in flows],
    }


@dataclass(frozen=True, slots=True)
class Curve:
    """One experiment over what is varied.

    Parameters
    ----------
    title : str
    experiment : str
        Key of the experiment.
    points : tuple of (dict, list of str)
        What a point is, and its assignments to the model.
    draw : callable
        Draws the finished points.
    """

    title: str
    experiment: str
    points: tuple[tuple[dict[str, int], list[str]], ...]
    draw: Callable[[Sequence[Mapping[str, Any]], Axes], None]


def _duty(duty: int, cycle_ms: int) -> list[str]:
    job = [f"domains.{guest}.applications.job" for guest in ("cpu1", "cpu2")]
    return [f"{j}.duty={duty} %" for j in job] + [f"{j}.cycle={cycle_ms} ms" for j in job]


def _load(streams: int) -> list[str]:
    return [f"workloads.media.streams={streams}", f"workloads.signaling.calls_per_s={streams / 12}"]


def draw_duty_curve(points: Sequence[Mapping[str, Any]], ax: Axes) -> None:
    """Draw loss over duty, a line a cycle, with the 1-2 % the study calls unacceptable marked."""
    ax.axhspan(1.0, 2.0, color="0.85", label="1-2 %, called unacceptable")
    for number, cycle in enumerate(sorted({p["cycle_ms"] for p in points})):
        line = [p for p in points if p["cycle_ms"] == cycle]
        duty = [p["duty_percent"] for p in line]
        ax.plot(
            duty, [_mean(p["loss_percent"]) for p in line], marker="o", color=f"C{number}", label=f"cycle {cycle} ms"
        )
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


def draw_load_curve(points: Sequence[Mapping[str, Any]], ax: Axes) -> None:
    """Draw delay over the number of streams; loss is written where there is any."""
    streams = [p["streams"] for p in points]
    for name, label in (("delay_p99_ms", "99th percentile"), ("delay_mean_ms", "mean")):
        ax.plot(streams, [_mean(p[name]) for p in points], marker="o", label=label)
    for point in points:
        loss = _mean(point["loss_percent"])
        if loss > 0.0:
            ax.annotate(f"{loss:.2g} % lost", (point["streams"], _mean(point["delay_p99_ms"])))
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("media streams")
    ax.set_ylabel("delay, there and back (ms)")
    ax.legend()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


CURVES = {
    "duty": Curve(
        "Default mixed case over duty and cycle of the CPU-bound guests",
        "mixed.D",
        tuple(({"duty_percent": d, "cycle_ms": c}, _duty(d, c)) for c in CYCLES_MS for d in DUTIES),
        draw_duty_curve,
    ),
    "load": Curve(
        "Turnkey host on four cores over the load",
        "turnkey4.720",
        tuple(({"streams": n}, _load(n)) for n in STREAMS),
        draw_load_curve,
    ),
}
