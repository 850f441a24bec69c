"""Plots of results.  Every function draws on the axes it is given; nothing here keeps state.

Equal data give equal files: no pyplot, no clock, the Agg renderer and matplotlib's own font.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vftsim.stats import DelayHistogram
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.parameters import ImsBenchSpec
from vftsim.workloads.sip.messages import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Runs = Sequence[tuple[int, Sequence[PhaseRecord]]]

LOAD_COLOR, CPU_COLOR = "#1b6ca8", "#c8553d"
_COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b58900", "#444444", "#0f8b8d", "#a4243b")


def new_figure(
    width_in: float = 9.0, height_in: float = 4.5, rows: int = 1, *, fitted: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure that needs no display, and its axes from top to bottom.

    ``fitted``: margins that fit the labels.  Finding them takes as long as drawing, so what every run draws, whose
    labels are known to be short, does without.
    """
    figure = Figure(figsize=(width_in, height_in), layout="constrained" if fitted else None)
    FigureCanvasAgg(figure)
    if not fitted:
        figure.subplots_adjust(
            0.8 / width_in, 0.5 / height_in, 1.0 - 0.15 / width_in, 1.0 - 0.3 / height_in, hspace=0.1
        )
    return figure, list(figure.subplots(rows, 1, squeeze=False, sharex=True)[:, 0])


def plot_series(ax: Axes, phases: Sequence[PhaseRecord], quantity: str, period_ns: int, color: str) -> None:
    """Draw one replication's samples of a quantity over simulated time."""
    for phase in phases:
        values = phase.series[quantity]
        times_s = [(phase.measure_from_ns + (i + 1) * period_ns) / 1e9 for i in range(len(values))]
        ax.plot(times_s, values, color=color, linewidth=0.6)


def plot_load_and_cpu(load_axes: Axes, cpu_axes: Axes, phases: Sequence[PhaseRecord], period_ns: int) -> None:
    """Draw load and CPU utilization of one replication over time; gaps are transients."""
    plot_series(load_axes, phases, "load", period_ns, LOAD_COLOR)
    for phase in phases:
        load_axes.hlines(phase.requested_saps, phase.start_ns / 1e9, phase.end_ns / 1e9, color="black", linewidth=1.0)
    load_axes.set_ylabel("scenario attempts /s")
    load_axes.set_ylim(bottom=0)
    plot_series(cpu_axes, phases, "cpu_percent", period_ns, CPU_COLOR)
    cpu_axes.set_ylabel("CPU (%)")
    cpu_axes.set_ylim(0, 105)
    cpu_axes.set_xlabel("simulated time (s)")


def plot_ihs(ax: Axes, runs: Runs, limit_percent: float) -> None:
    """Draw inadequately handled scenarios against effective load: a dot a replication and step."""
    for color, scenario in zip(_COLORS, (*Scenario, None), strict=False):
        points = [
            (phase.effective_saps, phase.ihs_percent(scenario))
            for _, record in runs
            for phase in record
            if phase.index > 0
        ]
        label = scenario.label if scenario is not None else "all"
        ax.plot([x for x, _ in points], [y for _, y in points], ".", color=color, label=label, markersize=5)
    ax.axhline(limit_percent, color="black", linewidth=0.8, linestyle="--")
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("effective load (scenario attempts per second)")
    ax.set_ylabel("inadequately handled (%)")
    ax.legend(fontsize=8, ncols=2)


def plot_delays(ax: Axes, runs: Runs, percent: float) -> None:
    """Draw a percentile of every delay against the step's load, averaged over replications."""
    names = [name for name in runs[0][1][-1].delays if "/" not in name]
    for color, name in zip(_COLORS, names, strict=False):
        by_load: dict[float, list[float]] = {}
        for _, record in runs:
            for phase in record:
                if phase.index > 0 and phase.delays[name].count:
                    by_load.setdefault(phase.requested_saps, []).append(phase.delays[name].percentile(percent))
        loads = sorted(by_load)
        means = [sum(by_load[x]) / len(by_load[x]) / 1e6 for x in loads]
        ax.plot(loads, means, "o-", color=color, label=name, markersize=3, linewidth=1.0)
    ax.set_yscale("log")
    ax.set_ylabel(f"p{percent:g} delay (ms)")
    ax.legend(fontsize=8, ncols=4)


def plot_delay_distribution(ax: Axes, delays: DelayHistogram, label: str) -> None:
    """Draw the share of delays beyond a value: straight where the tail is exponential."""
    percents = [0.0, *(100.0 - 100.0 * 10 ** (-k / 10) for k in range(51))]
    beyond = [(delays.percentile(p) / 1e6, 1.0 - p / 100.0) for p in percents if delays.samples_beyond(p) >= 10]
    ax.plot([x for x, _ in beyond], [y for _, y in beyond], color=_COLORS[0], label=label)
    ax.set_yscale("log")
    ax.set_xlabel("delay (ms)")
    ax.set_ylabel("share of packets beyond")
    ax.legend(fontsize=8)


def plot_probability(
    ax: Axes, points: Iterable[tuple[float, float, float, float]], label: str, color: str = _COLORS[1]
) -> None:
    """Draw a probability against load with its interval: (load, estimate, low, high)."""
    rows = sorted(points)
    loads = [row[0] for row in rows]
    below = [max(row[1] - row[2], 0.0) for row in rows]
    above = [max(row[3] - row[1], 0.0) for row in rows]
    ax.errorbar(loads, [row[1] for row in rows], [below, above], fmt="o-", color=color, capsize=3, label=label)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("load (scenario attempts per second)")
    ax.set_ylabel("probability")
    ax.legend(fontsize=8)


def sip_figures(bench: ImsBenchSpec, name: str, runs: Runs) -> dict[str, Figure]:
    """Return the plots of a SIP run: load and CPU over time, IHS, delays."""
    period_ns = bench.sample_period
    first = runs[0]
    over_time, (load_axes, cpu_axes) = new_figure(rows=2, fitted=False)
    plot_load_and_cpu(load_axes, cpu_axes, first[1], period_ns)
    load_axes.set_title(f"{name}, replication {first[0]}", fontsize=10)
    figures = {"load_and_cpu": over_time}
    if any(phase.index > 0 for phase in first[1]):
        ihs, (ax,) = new_figure(fitted=False)
        plot_ihs(ax, runs, bench.steps.stop_above_ihs)
        ax.set_title(f"{name}, {len(runs)} replications", fontsize=10)
        delays, both = new_figure(rows=2, height_in=6.5, fitted=False)
        for axes, percent in zip(both, (50.0, 99.0), strict=True):
            plot_delays(axes, runs, percent)
        both[0].set_title(f"{name}, mean of {len(runs)} replications", fontsize=10)
        both[1].set_xlabel("requested load (scenario attempts per second)")
        figures |= {"ihs": ihs, "delays": delays}
    return figures
