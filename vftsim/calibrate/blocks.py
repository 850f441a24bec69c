"""Fits, validations and predictions as blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from vftsim.calibrate.intervals import replications_of_chance
from vftsim.calibrate.structure_error import ENOUGH
from vftsim.calibrate.summary import error_of, result, share_that_cannot_tell
from vftsim.calibrate.validation import RunValidationSpec
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Chart, Note, Point, Series, Table
from vftsim.spec import format_duration
from vftsim.stats import Estimate
from vftsim.study.blocks.head import head, outside_notes
from vftsim.study.figures.validity import MARK

if TYPE_CHECKING:
    from vftsim.calibrate.accuracy import Row, Verdict
    from vftsim.calibrate.around import Profile
    from vftsim.calibrate.prediction import Figure, Prediction
    from vftsim.calibrate.run import Calibrated
    from vftsim.calibrate.validate import Validated

_MOST_CHARTS = 6
_WIDE = 20.0
"""Axes are logarithmic where the largest measured figure is so many times the least."""


def prediction_blocks(found: Prediction, advised_draws: int) -> list[Block]:
    """Return every figure with what makes it uncertain; advise more draws, if above 0."""
    several = len(found.structures) > 1
    columns = ["figure", "mean", "between runs", "parameters", *(["structures"] if several else []), "nine of ten runs"]
    learned = any(figure.learned_from for figure in found.figures)
    table = Table(
        [*columns, *(["with structure error"] if learned else []), "n"],
        [_predicted(figure, several, learned, figure.name in found.outside) for figure in found.figures],
        "Prediction",
        f"{found.draws} points of {found.runs} runs"
        + (f" in each of {len(found.structures)} structures: {', '.join(found.structures)}" if several else "")
        + ". Between runs, parameters: standard deviations of one run by its traffic and by the fitted numbers. "
        "Nine of ten runs: traffic and numbers together"
        + (", of the widest structure" if several else "")
        + "; n: runs that have the figure. The fit's own intervals are taken as they are.",
    )
    first = next((figure for figure in found.figures if figure.name.startswith("ramp/")), found.figures[0])
    return [
        *head(found.manifest["models"], found.manifest["seed"]),
        Answer(
            f"nine of ten runs have {first.low:.4g} to {first.high:.4g}",
            f"What will {first.name} be?",
            f"mean {first.mean:.4g}, with the chance of the traffic and of the fitted numbers",
        ),
        Cards([Card(each.name, _ranged(each)) for each in found.figures[:4]]),
        *_figures_by_step(found.figures),
        table,
        *(Note(line) for line in _remarks(found, advised_draws)),
        *(outside_notes(found.model) if found.outside else []),
    ]


def _ranged(figure: Figure) -> Estimate:
    half = (figure.high - figure.low) / 2.0
    return Estimate(figure.mean, half, figure.low, figure.high, figure.runs, 0.9, "range")


def _predicted(figure: Figure, several: bool, learned: bool, is_outside: bool) -> list[Cell]:
    name = f"{figure.name}{MARK}" if is_outside else figure.name
    means: list[Cell] = [f"{figure.least:.4g} to {figure.most:.4g}"] if several else []
    count = f"{figure.runs}" if figure.runs == figure.of else f"{figure.runs} of {figure.of}"
    parts = [None if math.isnan(sd) else sd for sd in (figure.replications_sd, figure.parameters_sd)]
    wider: list[Cell] = [f"{figure.learned_low:.4g} to {figure.learned_high:.4g}" if figure.learned_from else None]
    return [name, figure.mean, *parts, *means, f"{figure.low:.4g} to {figure.high:.4g}", *wider[: int(learned)], count]


def _figures_by_step(figures: Iterable[Figure]) -> list[Block]:
    """Return a chart of each quantity that several steps have."""
    by_quantity: dict[str, list[tuple[int, Figure]]] = {}
    for figure in figures:
        phase, _, quantity = figure.name.partition("/")
        if phase.startswith("step_"):
            by_quantity.setdefault(quantity, []).append((int(phase.removeprefix("step_")), figure))
    charts: list[Block] = []
    for quantity, steps in list(by_quantity.items())[:_MOST_CHARTS]:
        points = [Point.of(float(step), _ranged(figure)) for step, figure in steps]
        if len(points) > 1:
            charts.append(Chart(quantity, "step", quantity, [Series("mean, and nine of ten runs", points)]))
    return charts


def _remarks(found: Prediction, advised_draws: int) -> list[str]:
    """Return what the ranges rest on, and what was drawn otherwise than the fit's interval says."""
    low, high = (f"{100 * x:.0f}" for x in found.range_holds)
    lines = [
        f"Nine of ten rests on the outermost of {found.draws * found.runs} runs at {found.draws} points: a range holds "
        f"{low} to {high} % of further runs (95 %, runs of a point counted as one)"
    ]
    if advised_draws:
        lines[0] += f"; few points: with --draws {advised_draws} the ranges may come out wider or narrower"
    counts = [figure.learned_from for figure in found.figures if figure.learned_from]
    if counts:
        lines.append(
            f"With structure error: the wider of that range and of the errors of {min(counts)} to {max(counts)} "
            "held-out figures of the same kind; it holds nine of ten if further ones err as those did"
        )
        if min(counts) < ENOUGH:
            lines[-1] += f"; of fewer than {ENOUGH} it holds less"
    if found.undetermined:
        keys = ", ".join(found.undetermined)
        lines.append(f"Not told by the data, so drawn evenly from what the fit took as possible beforehand: {keys}")
    if found.refused:
        lines.append(f"Drawn again, as the model's own checks refuse them: {found.refused} points")
    return lines


def calibration_blocks(done: Calibrated) -> list[Block]:
    """Return the fitted parameters, how well the data tell them, and where the search ended."""
    fit, definition = done.fit, done.definition
    count = len(fit.residuals)
    rms = (2 * fit.cost / count) ** 0.5
    shares = ["of chance"] if fit.chance_share else []
    rows = [
        [
            path,
            "not identified" if path in fit.undetermined else _parameter(done, path, value),
            *(_parameter(done, path, v) for v in (fit.low[path], fit.high[path])),
            *(f"{100.0 * fit.chance_share[path]:.0f} %" for _ in shares),
        ]
        for path, value in fit.values.items()
    ]
    caption = f"{count} observations, scaled residual {rms:.2f} rms, seed {definition.seed}; " + (
        "of chance: share of the interval's variance that the chance of runs has, told by "
        f"{replications_of_chance(definition)} replications"
        if shares
        else "fitted before intervals of one replication held the chance of runs"
    )
    told = len(fit.values) - len(fit.undetermined)
    return [
        *head(done.record["manifest"]["models"], definition.seed),
        Answer(
            f"{told} of {len(fit.values)} parameters are told by the data",
            f"What do the data of {definition.name} say of the model?",
            f"{count} observations, scaled residual {rms:.2f} rms",
        ),
        _residuals(fit.residuals),
        Table(
            ["parameter", "value", "2.5 %", "97.5 %", *shares],
            rows,
            f"Fitted parameters: {definition.name}",
            caption,
        ),
        *([_ends(done)] if fit.ends else []),
        *(_profile(done, each) for each in fit.profiles),
        *([_coverage(done)] if fit.coverage else []),
        *(Note(f"not identified by the data: {note}", warns=True) for note in fit.not_identified),
    ]


def _parameter(done: Calibrated, path: str, value: float) -> str:
    return format_duration(value) if done.record["parameters"][path]["unit"] == "ns" else f"{value:.4g}"


def _residuals(residuals: Mapping[tuple[str, str], float]) -> Chart:
    """Return how far every observation is from the model, in units of its scatter."""
    names = list(dict.fromkeys(phase for phase, _ in sorted(residuals)))
    points = [Point(value, float(names.index(phase))) for (phase, _), value in sorted(residuals.items())]
    # A place is the number of its name: here the phase.
    return Chart(
        "Residuals by phase",
        "",
        "simulated less measured, in units of the scatter",
        [Series("observations", [Point(point.y, point.x) for point in points], "dots")],
        [(0.0, "")],
        names=names,
    )


def _profile(done: Calibrated, found: Profile) -> Chart:
    """Return the least squares over a parameter's box; up to the line the data do not refuse a value."""
    factor, unit = (1e-6, ", ms") if done.record["parameters"][found.path]["unit"] == "ns" else (1.0, "")
    points = [Point(value * factor, squares) for value, squares in zip(found.values, found.squares, strict=True)]
    return Chart(
        f"Profile of {found.path}",
        f"{found.path.rpartition('.')[2]}{unit}",
        "squares over the fit's",
        [Series("the other parameters free", points)],
        [(found.limit, "95 %")],
        scale="log",
        at=[(done.fit.values[found.path] * factor, "fitted")],
    )


def _coverage(done: Calibrated) -> Table:
    """Return how often intervals of simulated laboratories hold the truth."""
    rows: list[list[Cell]] = [
        [
            each.path,
            _parameter(done, each.path, each.truth),
            _parameter(done, each.path, each.mean_value),
            _parameter(done, each.path, each.mean_half_width),
            f"{each.inside} of {each.laboratories}",
            f"{each.left_open} of {each.laboratories}",
        ]
        for each in done.fit.coverage
    ]
    return Table(
        ["parameter", "true", "mean of fits", "mean half width", "held", "left open"],
        rows,
        "Coverage by simulated laboratories",
        "The model with the fitted values made the data, seed by seed; each was fitted anew, with intervals as above",
    )


def _ends(done: Calibrated) -> Table:
    ends, replications = done.fit.ends, done.definition.replications
    values = [[path, *(_parameter(done, path, end.values[path]) for end in ends)] for path in done.fit.values]
    return Table(
        ["parameter", *(f"start {number}" for number in range(1, len(ends) + 1))],
        [["cost", *(f"{end.cost:.4g}" for end in ends)], *values],
        "Where the search from each start ended",
        f"with the first of {replications} replications; from the best it goes on with all" if replications > 1 else "",
    )


def validation_blocks(found: Validated) -> list[Block]:
    """Return whether the declared accuracy is met, and what was predicted for every measured row."""
    spec, verdicts = found.spec, found.verdicts
    sample = f"n={spec.replications}, seed {spec.seed}"
    declared = [[v.text, result(v, "MISSED"), v.found] for v in verdicts]
    if isinstance(spec, RunValidationSpec):
        tables: list[Block] = [
            *_against_charts(found.rows),
            rows_table(found.rows, f"Predicted runs: {spec.name}", sample),
            Table(("target", "", "found"), declared, "Declared accuracy", texts=3),
        ]
    else:
        by_environment = [[v.environment, *cells] for v, cells in zip(verdicts, declared, strict=True)]
        heads, title = ("environment", "target", "", "found"), f"Declared accuracy: {spec.name}"
        tables = [*_measured_charts(found.rows), Table(heads, by_environment, title, f"ramp {sample}", texts=4)]
    return [
        *(Note(f"warning: {text}", warns=True) for text in found.warnings),
        _verdict(spec.name, verdicts),
        *tables,
        *([Note(f"Beside null models: {share_that_cannot_tell(found.rows)}.")] if found.rows else []),
        *(
            Note(f"{where}: the edge step collapsed in {bad} of {n} replications")
            for where, (bad, n) in found.collapse.items()
        ),
    ]


def rows_table(rows: Iterable[Row], title: str, caption: str) -> Table:
    """Return measured rows beside their predictions."""
    columns = ("run", "", "quantity", "measured", "predicted", "error")
    body: list[Sequence[Cell]] = [
        [
            row.run,
            "fitted" if row.sample == "in" else "",
            row.quantity,
            row.measured,
            Estimate(row.predicted, (row.high - row.low) / 2.0, row.low, row.high, row.n, 0.9, "range"),
            error_of(row),
        ]
        for row in rows
    ]
    return Table(columns, body, title, f"{caption}; (x to y): central 90 % of the runs", texts=3)


def _verdict(name: str, verdicts: Sequence[Verdict]) -> Answer:
    met = sum(verdict.passed for verdict in verdicts)
    missed = [verdict.text for verdict in verdicts if not verdict.passed]
    return Answer(
        f"{met} of {len(verdicts)} declared targets are met",
        f"How well does the model predict {name}?",
        f"missed: {'; '.join(missed)}" if missed else "",
    )


def _measured_charts(rows: Sequence[Row]) -> list[Block]:
    """Return what was predicted and what was measured over the steps, for the figures with most rows beyond the fit."""
    groups: dict[tuple[str, str], list[tuple[int, Row]]] = {}
    for row in rows:
        if row.phase.startswith("step_"):
            step = int(row.phase.removeprefix("step_"))
            groups.setdefault((row.environment, row.quantity), []).append((step, row))
    charts: list[Block] = []
    for environment in dict.fromkeys(where for where, _ in groups):
        for quantity in ("cpu", "ihs/global", "PX_TRT-SES1/p50", "PX_TRT-SES1/p95"):
            steps = groups.get((environment, quantity), [])
            if len(steps) > 1:
                charts.append(_beside(f"{quantity}, {environment}", quantity, steps))
    return charts


def _against_charts(rows: Sequence[Row]) -> list[Block]:
    """Return predictions over what was measured, of the quantities with most rows; on the line they are equal."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if math.isfinite(row.measured) and math.isfinite(row.predicted):
            groups.setdefault(row.quantity, []).append(row)
    charts: list[Block] = []
    for quantity, own in sorted(groups.items(), key=lambda each: -len(each[1]))[:_MOST_CHARTS]:
        measured = sorted(row.measured for row in own)
        if measured[0] == measured[-1]:
            continue
        is_wide = measured[0] > 0.0 and measured[-1] > _WIDE * measured[0] and min(row.low for row in own) > 0.0
        scale: Literal["log", "linear"] = "log" if is_wide else "linear"
        told = {"fitted to": ("in", "input"), "predicted": ("out",)}
        points = {
            name: [Point(row.measured, row.predicted, row.low, row.high) for row in own if row.sample in samples]
            for name, samples in told.items()
        }
        dots = [Series(name, of, "dots") for name, of in points.items() if of]
        equal = Series("equal", [Point(value, value) for value in (measured[0], measured[-1])], "curve")
        charts.append(Chart(quantity, "measured", "predicted", [*dots, equal], scale=scale, x_scale=scale))
    return charts


def _beside(title: str, quantity: str, steps: Sequence[tuple[int, Row]]) -> Chart:
    predicted = [Point(float(step), row.predicted, row.low, row.high) for step, row in steps]
    measured = [Point(float(step), row.measured) for step, row in steps]
    fitted_to = [step for step, row in steps if row.sample == "in"]
    is_delay = "/p" in quantity
    return Chart(
        title,
        "step",
        f"{quantity} ({'ms' if is_delay else '%'})",
        [Series("predicted, central 90 %", predicted), Series("measured", measured, "measured")],
        within=(min(fitted_to), max(fitted_to)) if fitted_to else None,
        scale="log" if is_delay else "linear",
    )
