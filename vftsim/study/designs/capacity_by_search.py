"""A capacity found by judging whole runs at levels of one load: search, curve, and the resources at the limit.

The load is a number of the model, the judgement a condition on what a run measured.  Attempts a second of a benchmark,
media streams and any other key of a model (:mod:`.capacity`) share all of this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import ramp_of
from vftsim.files import Number, read_back
from vftsim.report import blocks as page
from vftsim.stats import CapacityResult, Estimate, sequential_binomial_interval
from vftsim.study.blocks.head import estimate_of, marked, outside_notes, within
from vftsim.study.designs import capacity_search as searching
from vftsim.study.designs.price_bands import Band
from vftsim.study.designs.resources import Uses, WatchedRun, limit_in_words, resource_table, watch
from vftsim.study.execution import Execution
from vftsim.study.figures import validity
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame, rows
from vftsim.study.figures.validity import Missing, rows_of
from vftsim.study.runs.model import Model

SAPS = "load_saps"
"""Key of the attempts a second of a benchmark."""
WATCHED_REPLICATIONS = 10


@dataclass(frozen=True)
class LevelSearch:
    """A capacity found by search."""

    model: Model
    names: searching.LoadNames
    result: CapacityResult
    settings: searching.SearchSettings
    figures: dict[float, dict[str, list[Number]]]
    """The judged figures of every run, by load and name."""
    watched_level: float
    """Load whose resources were watched: the one beside the answer that failed, or the highest that passed."""
    resources: DataFrame
    """Use of the resources there, the limiting one first; empty after an interruption, and of a search with a stop."""
    interrupted: bool = False
    missing: Missing | None = None
    """Traffic that was not offered at the load beside the answer that failed."""
    band: Band | None = None
    """The band of the capacity over the ranges of a mechanism's prices."""

    @property
    def with_prices(self) -> Estimate | None:
        """The capacity with an interval for search and prices; None where no price moves it."""
        return None if self.band is None else self.band.around(self.result.estimate, 0.0)

    @property
    def loads(self) -> list[float]:
        return [probe.level for probe in self.result.probes]

    @property
    def of_load(self) -> ModelSpec | None:
        """The model, where the levels are attempts a second of its benchmark."""
        spec, key = self.model.spec, self.names.key
        return spec if key == SAPS or validity.is_load(spec, key) else None

    @property
    def judged(self) -> tuple[str, ...]:
        """Names of the figures by which runs were judged."""
        return tuple(next(iter(self.figures.values())))

    def curve(self) -> DataFrame:
        """Return one row a load: the runs beyond the limit, and mean, least and largest of each judged figure.

        The share has an interval that holds after a sequential stop, and leans itself towards the verdict.  The figures
        have none: a load is left when its runs have decided it, which is when they were on one side.
        """
        table = []
        for probe in self.result.probes:
            beyond = sequential_binomial_interval(probe.beyond, probe.runs, self.settings.confidence)
            row: dict[str, Any] = {self.names.key: probe.level, "runs": probe.runs, "beyond_limit": probe.beyond}
            row |= {"decision": str(probe.decision), **estimate_columns(beyond)}
            for name in self.judged:
                values = [x for x in self.figures[probe.level][name] if not math.isnan(x)]
                row[f"{name}_mean"] = math.fsum(values) / len(values) if values else math.nan
                row[f"{name}_least"] = min(values, default=math.nan)
                row[f"{name}_largest"] = max(values, default=math.nan)
            table.append(row)
        return frame(table)

    def for_machines(self) -> dict[str, Any]:
        return {
            **self.names.details,
            "not_offered": rows_of([self.missing] if self.missing else []),
            "probability": self.settings.probability,
            "beyond_limit_by_load": rows(self.curve()),
            "watched": self.watched_level,
            "resources": rows(self.resources),
            "prices": asdict(self.band) if self.band else None,
            "search": {
                "settings": asdict(self.settings),
                "result": asdict(self.result),
                "names": asdict(self.names),
                "figures": [[level, self.figures[level]] for level in self.loads],
            },
        }

    @classmethod
    def from_machines(cls, model: Model, data: Mapping[str, Any], *, interrupted: bool) -> LevelSearch:
        missing = next(iter(data["not_offered"]), None)
        beside = {"watched_level": data["watched"], "missing": missing, "band": data.get("prices")}
        search = {**data["search"], "figures": dict(data["search"]["figures"]), **beside}
        return read_back(cls, search, model=model, resources=frame(data["resources"]), interrupted=interrupted)


def search_level(
    model: Model, execution: Execution, settings: searching.SearchSettings, study: searching.LevelStudy
) -> LevelSearch:
    """Search for the capacity, and watch the resources at the limit; what was judged before an interruption counts."""
    mapper = searching.SearchMapper(execution, study.names.unit, study.cache(model, execution))
    result, missing = searching.search_levels(study, settings, mapper)
    # Runs of a batch beyond a level's decision are left out, as in the search: --jobs must not matter.
    judged = {p.level: mapper.outcomes[p.level][: p.runs] for p in result.probes}
    figures = {n: {name: [run.figures[name] for run in runs] for name in runs[0].figures} for n, runs in judged.items()}
    failed = searching.next_failed(result)
    watched = failed.level if failed else result.probes[-1].level if missing is None else result.estimate.low
    watched = watched or result.probes[0].level
    resources, interrupted = frame(), mapper.interrupted
    if study.is_watched and not interrupted:
        try:
            resources = resource_table(_watched(model, execution, study, watched))
        except KeyboardInterrupt:
            interrupted = True
    return LevelSearch(model, study.names, result, settings, figures, watched, resources, interrupted, missing)


def _watched(model: Model, execution: Execution, study: searching.LevelStudy, level: float) -> list[Uses]:
    """Return the use of resources at a level, run by run: in the measured time, or in the first step."""
    spec = study.load.at(level)
    begin_ns = spec.measure.warm_up
    window_ns = spec.ramp.first_window_ns() if spec.ramp else (begin_ns, begin_ns + spec.measure.duration)
    tasks = {n: WatchedRun(study.load, level, n, *window_ns) for n in range(WATCHED_REPLICATIONS)}
    cache = execution.cache(model, Uses, watched=level, load=study.names.key)
    return cache.in_order(execution.workers(watch, is_counted=False), tasks)


_MANY_COPIES = 4
"""Of so many copies of a domain a table has the one that uses most of a resource."""
_SEQUENTIAL = (
    "[..]: at least 95 % whenever a load's runs were ended; the share itself leans towards the verdict. '<', '>': none "
    "or all."
)


def level_blocks(search: LevelSearch) -> list[page.Block]:
    """Return the load that a system carries under a limit, and what limits it."""
    names, of_load, result = search.names, search.of_load, search.result
    blocks: list[page.Block] = [_answer(search), *of_prices(search.with_prices, search.band, names.unit)]
    if text := _with_the_load(search):
        blocks.append(page.Note(text))
    blocks += _doubts(search)
    if names.key == SAPS and result.answer == "between":
        blocks.append(page.Note(_beside_the_ramp(search)))
    blocks += _curves(search)
    if of_load and validity.outside(of_load, search.loads):
        blocks += outside_notes(search.model)
    if search.resources.empty:
        return blocks
    highest = "the highest load tried" if search.missing is None else "the highest load judged"
    failed = searching.next_failed(result)
    beside = "highest" if result.eases else "lowest"
    judged = f"the {beside} load that fails" if failed and failed.level == search.watched_level else highest
    # Where a figure of a ramp is judged it may be one of another step.
    step = ", in step 1" if search.model.spec.ramp is not None and names.key != SAPS else ""
    blocks.append(page.Note(f"Limiting resource{step}: {limit_in_words(search.resources)}"))
    title = f"Resources at {search.watched_level:.4g} {names.unit}, {judged}{step}"
    return [*blocks, *_resources(search.resources, title)]


def _answer(search: LevelSearch) -> page.Answer:
    """Return what a search has found; no figure for one that ended before any load had passed or failed."""
    names, e, of_load = search.names, search.result.estimate, search.of_load

    def load(value: float, form: str = "g") -> str:
        text = f"{value:{form}}"
        return text if of_load is None else validity.marked(of_load, value, text)

    unit, is_counted, bounded = names.unit, names.is_counted, search.result.is_bounded
    last = f", and the model can have no {'lower' if e.high < math.inf else 'higher'} one" if bounded else ""
    missing = None if search.missing is None else search.missing.word.lower()
    untried = f"not found: no load passed or failed, up to {search.loads[-1]:g} {unit} were tried"
    passing = {
        "between": f"{load(e.mean, '.0f' if is_counted else '.4g')} {unit}, in [{load(e.low)}, {load(e.high)}]",
        "at least": f"at least {load(e.low)} {unit}, {f'above it: {missing}' if missing else f'no load failed{last}'}",
        "below": f"below {load(e.high)} {unit}, no load passed",
        "unknown": untried,
    }
    needed = {
        "between": f"{load(e.high)} {unit}; {load(e.low)} falls short",
        "at least": f"more than {load(e.low)} {unit}, no load passed{last}",
        "below": f"at most {load(e.high)} {unit}, {f'below it: {missing}' if missing else f'no load failed{last}'}",
        "unknown": untried,
    }
    text, title = (needed, "Needed") if search.result.eases else (passing, names.title)
    share = f"{100 * search.settings.probability:g} % of runs {names.within}"
    more = f"({100 * search.settings.confidence:g} %, {e.n} runs; {share})"
    return page.Answer(text[search.result.answer], title, more)


def _doubts(search: LevelSearch) -> list[page.Note]:
    """Return what a reader of a search's answer must know beside it."""
    result, names, interrupted, missing = search.result, search.names, search.interrupted, search.missing
    ended = result.budget_ended and not interrupted
    is_open = (missing is None and result.answer != "between") or (ended and not result.resolved)
    is_open = is_open and not (result.is_bounded or (result.eases and names.is_counted and result.estimate.high <= 1.0))
    by_chance = not (result.resolved or interrupted or ended) and result.answer == "between"
    irregular, regular = ("lower", "higher") if result.eases else ("higher", "lower")
    end = f"; this is the {'lower' if result.eases else 'upper'} end of those that pass" if names.may_ease else ""
    texts = (
        (interrupted, "interrupted: the search had not come to its end"),
        (missing is not None, str(missing)),
        (is_open, _next_step(result, names)),
        (by_chance, "not resolved further: runs at the loads between pass and fail by chance"),
        (result.non_monotone, f"warning: a {irregular} load passed more often than a {regular} one{end}"),
        *((True, text) for text in _without_figure(search)),
    )
    return [page.Note(text, warns=True) for holds, text in texts if holds]


def _without_figure(search: LevelSearch) -> list[str]:
    """Say of judged figures in how many runs nothing happened that they are of: these count as beyond the limit."""
    texts = []
    for name in search.judged:
        lacking = {level: sum(map(math.isnan, search.figures[level][name])) for level in search.loads}
        loads = [level for level, count in lacking.items() if count]
        if loads:
            at = f"{loads[0]:g}" if len(loads) == 1 else f"{loads[0]:g} to {loads[-1]:g}"
            runs = sum(len(search.figures[level][name]) for level in loads)
            texts.append(
                f"{sum(lacking.values())} of {runs} runs at {at} {search.names.unit} have no {name}, as nothing in "
                "them gives one: each counts as beyond the limit. Longer runs may have one"
            )
    return texts


def of_prices(with_prices: Estimate | None, band: Band | None, unit: str) -> list[page.Block]:
    """Return what the ranges of a mechanism's prices make of a capacity, and which price decides."""
    if with_prices is None or band is None:
        return []
    text = (
        f"With prices of the protection anywhere in their ranges: {page.in_words(with_prices, unit)}. {band.decides} "
        f"decides ({100.0 * band.share:.0f} % of the variance). --no-prices leaves this out."
    )
    return [page.Note(text), page.Cards([page.Card("with prices over their ranges", with_prices, unit)])]


_LARGER_FAILED = (
    "; single runs at larger ones, a quarter of a doubling apart and more, failed too (not seen: what passes between "
    "two of them)"
)


def _next_step(result: CapacityResult, names: searching.LoadNames) -> str:
    """Return what is missing for a capacity, and what to do about it."""
    spent = f"the budget of {result.estimate.n} runs ended the search; " if result.budget_ended else ""
    if result.answer == "at least":
        never = "passed: is something else the limit?" if result.eases else "failed: is the limit reached?"
        return f"{spent}--budget raises it" if spent else f"no load that was tried ever {never}"
    if result.answer == "between":
        return f"{spent}--budget narrows the interval"
    if result.answer == "below" and result.resolved:
        too = _LARGER_FAILED if names.may_ease and not result.eases else ""
        if names.is_counted and result.estimate.high <= 1.0:
            return f"not even one passes{too}: change what else is in the model"
        verdict = "passed" if result.eases else "failed"
        return f"the lowest load that a search tries {verdict}{too}: a lower --resolution tries lower ones"
    return (
        f"{spent}a load passes after {result.runs_to_pass} runs without a failure at least: --budget "
        f"{10 * result.runs_to_pass} or more, or a lower --probability"
    )


def _beside_the_ramp(search: LevelSearch) -> str:
    """Return why the lab's ramp may give another figure than a search, in either direction."""
    loads, load, stop_s = ramp_of(search.model.spec).step_loads(), search.result.estimate.mean, search.names.judged_s
    below, above = max((x for x in loads if x <= load), default=None), min((x for x in loads if x > load), default=None)
    tried = f"{below:g} and {above:g}" if below and above else "loads"
    judged = "its whole step is"
    if stop_s is not None:
        judged = f"attempts of {stop_s[0]:g} s, {stop_s[1]:g} s after the stop, are"
    return (
        f"not the ramp's capacity, and it may lie above: the ramp tries nothing between {tried}, climbs there, and "
        f"half of the ramps must pass; here a run has one constant load, {100 * search.settings.probability:g} % of "
        f"runs must pass, and {judged} judged"
    )


def _with_the_load(search: LevelSearch) -> str:
    """Return for how long a run measures, and what else goes with the load."""
    names, at_it = search.names, search.result.estimate.mean
    amounts = [f"{each:.3g} {noun} for each" for noun, each in names.per_unit.items() if each]
    at_capacity = [f"{each * at_it:.3g} {noun} at the capacity" for noun, each in names.per_unit.items() if each]
    with_it = f"With the load go {', '.join(amounts)}" if amounts else ""
    if with_it:
        with_it += f", {', '.join(at_capacity)}." if search.result.answer == "between" else "."
    if names.beside:
        with_it = f"Beside it as written: workloads {', '.join(names.beside)}."
    if search.model.spec.ramp is not None:
        return ""
    measure = search.model.spec.measure
    shortened = " Whole runs, without --quick or --scale, differ less by chance." if search.model.notes else ""
    until = f", or until {names.fewest_judged:,} have been offered" if names.fewest_judged else ""
    tests = "its tests, at most " if search.model.spec.tests_ns else ""
    measured = f"A run measures {tests}{measure.duration / 1e9:g} s after {measure.warm_up / 1e9:g} s{until}."
    return f"{measured}{shortened} {with_it}".rstrip()


def _curves(search: LevelSearch) -> list[page.Block]:
    """Return the runs beyond the limit, and the figures that are judged, over the load."""
    key, of_load = search.names.key, search.of_load
    probes, confidence = search.result.probes, search.settings.confidence
    axis, limits = search.names.axis or key, None if of_load is None else within(of_load)
    curve, most = rows(search.curve()), 100.0 * (1.0 - search.settings.probability)
    shares = [sequential_binomial_interval(each.beyond, each.runs, confidence).times(100.0) for each in probes]
    body: list[list[page.Cell]] = []
    for row, share in zip(curve, shares, strict=True):
        figures_there = (_range(row, name) for name in search.judged)
        body.append([marked(of_load, row[key]), str(row["runs"]), share, *figures_there, str(row["decision"])])
    titles = [name.replace("_percent", " %") for name in search.judged]
    figures = [
        page.with_unit(title, search.names.units.get(name)) for title, name in zip(titles, search.judged, strict=True)
    ]
    simulated = [page.Point.of(load, share) for load, share in zip(search.loads, shares, strict=True)]
    lines, at_most = [page.Series("simulated", simulated)], [(most, f"limit {most:.4g} %")]
    charts: list[page.Block] = [page.Chart("Runs beyond the limit", axis, "share of runs (%)", lines, at_most, limits)]
    for name, title, words in zip(search.judged, titles, figures, strict=True):
        points = [page.Point.of(row[key], e) for row in curve if isinstance(e := _range(row, name), Estimate)]
        charts.append(page.Chart(title, axis, words, [page.Series("mean of the runs", points)], within=limits))
    caption = _SEQUENTIAL + (" Figures: mean over the runs, lowest and highest run." if figures else "")
    columns = (axis, "runs", "runs beyond the limit %", *figures, "verdict")
    return [*charts, page.Table(columns, body, "Runs by load", caption)]


def _range(row: Mapping[str, Any], figure: str) -> Estimate | str:
    mean, low, high = (row[f"{figure}_{end}"] for end in ("mean", "least", "largest"))
    if mean is None or math.isnan(mean):
        return "none"
    return Estimate(mean, (high - low) / 2.0, low, high, row["runs"], math.nan, "range")


def _of_copies_the_busiest(resources: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    """Return resources with their names, of many copies of a domain the one that uses most."""
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for row in (every := list(resources)):
        alike.setdefault(_alike(row["resource"]), []).append(row)
    of_many = {name: copies for name, copies in alike.items() if len(copies) >= _MANY_COPIES}
    many = {name: max(copies, key=lambda row: float(row["estimate"])) for name, copies in of_many.items()}
    by_row = [(many.get(_alike(row["resource"])), row) for row in every]
    return [
        (row, row["resource"] if busiest is None else f"{row['resource']}, most of the copies")
        for busiest, row in by_row
        if busiest is None or busiest is row
    ]


def _alike(resource: str) -> str:
    """Return a resource's name without the number of a copy."""
    return re.sub(r"^([^:.]+)-\d+(?=[:.])", r"\1", resource)


def _resources(resources: DataFrame, title: str) -> list[page.Block]:
    """Return the use of every resource, the limiting one first."""
    of_resources: list[tuple[str, Estimate, str]] = [
        (name, estimate_of(row), str(row["unit"])) for row, name in _of_copies_the_busiest(rows(resources))
    ]
    body: list[Sequence[page.Cell]] = [[name, use, unit] for name, use, unit in of_resources]
    n = of_resources[0][1].n
    busy = {name: use for name, use, unit in of_resources if unit == "%"}
    chart = page.dot_chart(title, "busy (%)", list(busy), {"use": list(busy.values())})
    caption = f"n={n} runs; ± or [..]: 95 % interval. Only one vCPU or pCPU that stands out is shown by itself."
    return [*([chart] if busy else []), page.Table(("resource", "use", "unit"), body, title, caption)]
