"""Plots of results.  Every function draws on the axes it is given; nothing here keeps state.

Equal data give equal files: no pyplot, no clock, the Agg renderer and matplotlib's own font.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vftsim.composition.record import RunRecord
from vftsim.outcome import Outcome, Phase
from vftsim.outcome.declare import Delays, Quotient, Series
from vftsim.stats import DelayHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Records = Sequence[tuple[int, RunRecord]]

COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b58900", "#444444", "#0f8b8d", "#a4243b")


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


def run_figures(title: str, records: Records) -> dict[str, Figure]:
    """Return the plots of a run by file name: of its phases, or the distributions of what the whole run measured."""
    has_phases = any(phase.name for phase in records[0][1].phases)
    return _phase_figures(title, records) if has_phases else _delay_figures(title, records)


def _phase_figures(title: str, records: Records) -> dict[str, Figure]:
    """Return samples over time, shares that lead against the load, and percentiles of delays against it."""
    found = {}
    of_all = f"{title}, {len(records)} replications"
    outcomes = [outcome for *_, outcome in _steps(records)]
    figures = list(dict.fromkeys(figure for outcome in outcomes for figure in outcome.declared.values()))
    if drawn := [figure for figure in figures if isinstance(figure, Series) and figure.drawn]:
        found["over_time"], axes = new_figure(rows=len(drawn), fitted=False)
        for ax, color, series in zip(axes, COLORS, drawn, strict=False):
            _plot_samples(ax, records[0][1], series, color)
        axes[-1].set_xlabel("simulated time (s)")
        axes[0].set_title(f"{title}, replication {records[0][0]}", fontsize=10)
    for figure in figures:
        if isinstance(figure, Quotient) and figure.headline:
            found[figure.name], (ax,) = new_figure(fitted=False)
            _plot_shares(ax, records, figure)
            ax.set_title(of_all, fontsize=10)
    if delays := [figure for figure in figures if isinstance(figure, Delays)]:
        found["delays"], axes = new_figure(rows=2, height_in=6.5, fitted=False)
        for ax, percent in zip(axes, (50, 95), strict=True):
            _plot_percentiles(ax, records, delays, percent)
        axes[0].set_title(of_all, fontsize=10)
        axes[1].set_xlabel("load asked for (/s)")
    return found


def _steps(records: Records) -> Iterator[tuple[Phase, Outcome]]:
    """Yield what workloads measured in steps that have a load."""
    for _, record in records:
        for phase in record.phases:
            if phase.name.startswith("step_"):
                yield from ((phase, each) for owner, each in phase.outcomes.items() if owner.startswith("workloads."))


def _plot_samples(ax: Axes, record: RunRecord, figure: Series, color: str) -> None:
    """Draw one replication's samples over simulated time; gaps are transients."""
    for phase in record.phases:
        for outcome in phase.outcomes.values():
            if figure in outcome.declared.values():
                samples, period_ns = figure.held(outcome), getattr(outcome, figure.period)
                times_s = [(phase.begin_ns + (i + 1) * period_ns) / 1e9 for i in range(len(samples))]
                ax.plot(times_s, samples, color=color, linewidth=0.6)
    ax.set_ylabel(f"{figure.label} ({figure.unit})")
    ax.set_ylim(bottom=0)


def _plot_shares(ax: Axes, records: Records, figure: Quotient) -> None:
    """Draw a share and its parts against the load: a dot a replication and step."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for phase, outcome in _steps(records):
        for entry in figure.entries(outcome):
            lines.setdefault(entry.part, []).append((phase.load or 0.0, entry.value(outcome)))
        if figure.limit:
            limit = getattr(outcome, figure.limit)
    for color, (part, points) in zip(COLORS, lines.items(), strict=False):
        ax.plot([x for x, _ in points], [y for _, y in points], ".", color=color, label=part, markersize=5)
    if figure.limit:
        ax.axhline(limit, color="black", linewidth=0.8, linestyle="--")
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("load asked for (/s)")
    ax.set_ylabel(f"{figure.label} ({figure.unit})")
    ax.legend(fontsize=8, ncols=2)


def _plot_percentiles(ax: Axes, records: Records, delays: Sequence[Delays], percent: float) -> None:
    """Draw a percentile of every delay against the step's load, averaged over replications."""
    for number, figure in enumerate(delays):
        by_load: dict[float, list[float]] = {}
        for phase, outcome in _steps(records):
            if figure in outcome.declared.values() and (distribution := figure.held(outcome)).count:
                by_load.setdefault(phase.load or 0.0, []).append(distribution.percentile(percent) / figure.unit_ns)
        loads = sorted(by_load)
        means = [sum(by_load[x]) / len(by_load[x]) for x in loads]
        color, style = COLORS[number % len(COLORS)], "o-" if number < len(COLORS) else "s--"
        ax.plot(loads, means, style, color=color, label=figure.label, markersize=3, linewidth=1.0)
    ax.set_yscale("log")
    ax.set_ylabel(f"p{percent:g} ({delays[0].unit})")
    ax.legend(fontsize=6, ncols=3)


def _delay_figures(title: str, records: Records) -> dict[str, Figure]:
    """Return the distributions of the delays that lead, of all replications together."""
    pooled: dict[tuple[str, str], DelayHistogram] = {}
    for _, record in records:
        for owner, outcome in record.whole.outcomes.items():
            for figure in outcome.declared.values():
                if isinstance(figure, Delays) and figure.headline and figure.held(outcome).count:
                    together = pooled.setdefault((owner, figure.label), DelayHistogram())
                    together.merge(figure.held(outcome))
    if not pooled:
        return {}
    drawn, (ax,) = new_figure(fitted=False)
    for color, ((owner, label), together) in zip(COLORS * len(pooled), pooled.items(), strict=False):
        _plot_distribution(ax, together, f"{owner.partition('.')[2]}, {label}", color)
    ax.set_title(f"{title}, {len(records)} replications", fontsize=10)
    return {"delays": drawn}


def _plot_distribution(ax: Axes, delays: DelayHistogram, label: str, color: str) -> None:
    """Draw the share of delays beyond a value: straight where the tail is exponential."""
    percents = [0.0, *(100.0 - 100.0 * 10 ** (-k / 10) for k in range(51))]
    beyond = [(delays.percentile(p) / 1e6, 1.0 - p / 100.0) for p in percents if delays.samples_beyond(p) >= 10]
    ax.plot([x for x, _ in beyond], [y for _, y in beyond], color=color, label=label)
    ax.set_yscale("log")
    ax.set_xlabel("delay (ms)")
    ax.set_ylabel("share beyond")
    ax.legend(fontsize=8)
