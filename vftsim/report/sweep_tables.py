"""The table of a sweep: a row a point of the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vftsim.composition.views import has_bench, rtp_of
from vftsim.report.head import INTERVALS, print_head, print_outside
from vftsim.report.screen import error_bar, print_table, print_text
from vftsim.spec import DURATION
from vftsim.study.protection_costs import cost_notes
from vftsim.study.protection_figures import CHANNEL, STOPPED, WAIT
from vftsim.study.sweep_figures import PROTECTION
from vftsim.study.sweep_grid import SHORT_MEANINGS
from vftsim.study.sweep_plot import LOSS_FREE_PERCENT
from vftsim.study.sweep_protection import MEANINGS
from vftsim.study.validity import load_behind, marked

if TYPE_CHECKING:
    from vftsim.study.sweep import SweepResult
    from vftsim.study.sweep_grid import Grid, Point

_MEANINGS = SHORT_MEANINGS | MEANINGS
_MOST_COLUMNS = 5
_MEDIA_COLUMNS = (
    ("loss %", "loss_percent"), ("p50 ms", "delay_p50_ms"), ("p99 ms", "delay_p99_ms"), ("CPU dom0", "cpu_{driver}"),
    ("CPU media", "cpu_{media}"), ("CPU all", "cpu_all"),
)  # fmt: skip
_SIP_COLUMNS = (
    ("DOC SAPS", "doc_saps"), ("stop step", "stop_step"), ("step 1: CPU %", "step1_cpu_percent"),
    ("IHS %", "step1_ihs_percent"), ("SES1 p50 ms", "step1_ses1_p50_ms"), ("SES1 p99 ms", "step1_ses1_p99_ms"),
)  # fmt: skip
_PROTECTION_COLUMNS = (
    ("held ms", f"{PROTECTION}{WAIT}"), ("stopped %", f"{PROTECTION}{STOPPED}"),
    ("channel Mbit/s", f"{PROTECTION}{CHANNEL}"),
)  # fmt: skip


def print_sweep(result: SweepResult) -> None:
    """Print the figures of every point, and what was found on the way."""
    said, grid = result.manifest, result.grid
    heads_of = [{**model, "costs": []} if grid.protections else model for model in said["models"]]
    print_head([{**model, "not_covered": result.not_covered} for model in heads_of], said["seed"])
    for line in _about(result):
        print_text(line)
    columns = _columns(result)
    shown = {(row.point, row.metric): row for row in result.results.itertuples()}
    body = [
        (*point.variant.names.values(),
         *point.values.values(),
         *(_shown(point, shown.get((point.number, metric)), metric) for _, metric in columns),
         str(len(result.records[point.number])))
        for point in grid.points
        if result.records[point.number]
    ]  # fmt: skip
    heads = [
        *(["scheduler"] if grid.schedulers != ("",) else []), *(["protection"] if grid.protections else []),
        *(axis.name for axis in grid.axes),
    ]  # fmt: skip
    print_table(
        "Sweep", (*heads, *(head for head, _ in columns), "n"), body,
        f"n replications with the same traffic at every point, seed {said['seed']}. {INTERVALS}", texts=len(heads),
    )  # fmt: skip
    if result.outside:
        print_outside(grid.base)
    if grid.protections:
        _print_crossovers(result)
    for line in _findings(result):
        print_text(line)


def _print_crossovers(result: SweepResult) -> None:
    """Print where mechanisms overtake each other in the figures shown, and what their costs rest on."""
    heads = {metric: head for head, metric in _columns(result)}
    shown = [row for row in result.crossovers.itertuples() if row.metric in heads]
    if shown:
        print_table(
            "Crossovers", ("figure", "lower before", "lower after", "axis", "at", "between"),
            [(heads[str(row.metric)], str(row.before), str(row.after), _axis_of(row),
              _cell(row), f"{row.from_point:g} and {row.to_point:g}") for row in shown],
            "Where the order of two mechanisms changes on an axis, linear between its values; every replication agrees "
            f"on the order at the two values given. {INTERVALS}", texts=4,
        )  # fmt: skip
    else:
        print_text("Crossovers: no two mechanisms change their order on an axis in a figure shown")
    for kind in result.grid.protections:
        spec = next(point.model.spec for point in result.grid.points if point.variant.protection == kind)
        for text in cost_notes(spec):
            print_text(f"Costs of {text}")


def _axis_of(row: Any) -> str:
    """Return the axis of a crossover, with its unit and the values of the other axes."""
    unit, held = (f" ({row.unit})" if row.unit else ""), (f"; {row.held}" if row.held else "")
    return f"{row.axis}{unit}{held}"


def _about(result: SweepResult) -> list[str]:
    lines = [
        f"{axis.name}: {_MEANINGS[axis.name]}"
        for axis in result.grid.axes
        if axis.name in _MEANINGS and "." not in axis.name
    ]
    if not has_bench(result.grid.base.spec):
        lines.append(_times(result.grid))
    if result.already:
        lines.append(f"{result.already} of {result.wanted} replications were on disk already")
    return lines


def _times(grid: Grid) -> str:
    measures = [point.model.spec.measure for point in grid.points]
    measured, warm_up = (
        ", ".join(DURATION.format(time_ns) for time_ns in dict.fromkeys(times_ns))
        for times_ns in ((m.duration for m in measures), (m.warm_up for m in measures))
    )
    return (
        f"Each replication measures {measured} after {warm_up} of warm-up (measure.duration, measure.warm_up); "
        "more of it, or more --replications, sharpen the intervals"
    )


def _columns(result: SweepResult) -> list[tuple[str, str]]:
    """Return heading and metric of each column, those about protection last."""
    return [*_columns_of_workloads(result), *(_PROTECTION_COLUMNS if result.grid.protections else ())]


def _columns_of_workloads(result: SweepResult) -> list[tuple[str, str]]:
    """Return the columns of a benchmark or of media, else what workloads measured."""
    spec = result.grid.base.spec
    if has_bench(spec):
        return list(_SIP_COLUMNS)
    rtp = rtp_of(spec)
    if rtp is None:
        known = dict.fromkeys(str(name) for name in result.results["metric"])
        own = [name for name in known if "." in name and not name.startswith(PROTECTION)]
        return [*[(name, name) for name in own[:_MOST_COLUMNS]], ("CPU all", "cpu_all")]
    drivers = [driver for driver in map(spec.driver_of, spec.hosts) if driver]
    names = {"driver": drivers[0] if drivers else "", "media": spec.target_of(rtp)[0]}
    return [(head, metric.format(**names)) for head, metric in _MEDIA_COLUMNS]


def _shown(point: Point, row: Any, metric: str) -> str:
    """Return a figure of a point, marked if the load that it is of, or is, was not calibrated."""
    load = None if row is None else load_behind(point.model.spec, metric, row.estimate)
    return _cell(row) if load is None else marked(point.model.spec, load, _cell(row))


def _cell(row: Any) -> str:
    return "" if row is None else error_bar(row.estimate, row.low, row.high, row.interval)


def _findings(result: SweepResult) -> list[str]:
    lines = [f"Refused by {name}: {why}" for name, why in result.refusals.items()]
    for scheduler, axis in result.without_effect():
        lines.append(f"{axis} changed nothing{f' under {scheduler}' if scheduler else ''}, to the last digit")
    losses = result.results[result.results["metric"] == "loss_percent"]
    if not losses.empty:
        highest = losses["high"].fillna(losses["estimate"])
        where = "upper end of the interval, or highest run"
        free = int((highest < LOSS_FREE_PERCENT).sum())
        lines.append(f"Loss below {LOSS_FREE_PERCENT:g} % ({where}): {free} of {len(losses)} points")
    return lines
