"""``vftsim predict``: a prediction with its whole uncertainty, in parts and together.

Three things make a prediction uncertain: which traffic a run happens to have (replications), how well the data told the
fitted numbers (parameters), and which of the accepted models is right (structures).  That none of them is, only rows
that no fit used can tell (:mod:`vftsim.calibrate.accuracy`).

A point is a set of parameters drawn from their joint fit (:mod:`vftsim.calibrate.fitted`); each is played in several
replications with traffic of their own.  With D points of n runs and mean squares MSB between and MSW within points, the
variance between replications is MSW and that of the parameters (MSB - MSW) / n, not below 0: the one-way layout with
random effects (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6).  What one run of the real
system would show lies in the range of the runs, each of which has parameters and traffic of its own: their central
90 % by order statistics, no distribution assumed.  With several structures the range is the widest of all of them.

A point that the model's checks refuse is drawn again: the distribution is that of the fit within what the model
can be.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

import numpy as np

from vftsim.calibrate.accuracy import ENOUGH, StructureError, step_number
from vftsim.calibrate.definition import in_unit
from vftsim.calibrate.figures import observations_of, unit_of_figure
from vftsim.calibrate.fitted import DrawableFit, accepted
from vftsim.composition.keys import base_unit
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.files import Number, read_back, sha256_of
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Chart, Note, Point, Series, Table, with_unit
from vftsim.spec.suggest import instead, shown
from vftsim.stats import Estimate, central_range, range_content
from vftsim.stats.estimate import span
from vftsim.study.blocks.head import head, outside_notes
from vftsim.study.blocks.printed import Printed
from vftsim.study.execution import Execution, Task
from vftsim.study.figures.frames import DataFrame, frame, rows
from vftsim.study.figures.validity import MARK, is_outside
from vftsim.study.runs.model import Model, load_model
from vftsim.study.store.opened import model_of, read_answer, read_manifest
from vftsim.study.store.store import RunCache
from vftsim.workloads.ramp import ramp_end

Structure = tuple[ModelSpec, Sequence[DrawableFit]]
"""A model, and the fits that its values are drawn from."""

DEFAULT_DRAWS, DEFAULT_RUNS, MOST_DRAWS, MOST_RUNS = 20, 2, 1000, 64
FEW_DRAWS, MOST_ATTEMPTS = 20, 100
"""Points below which a range says little, and how often one is drawn until the model accepts it."""
RANGE_PERCENT = 90.0
_PASSES = "ramp/passes"
USUAL_OF_RAMP, USUAL = (_PASSES, "cpu", "ihs/global"), ("cpu.*", "*.loss_percent", "*.delay_p99_ms", "*_per_s")
"""Figures that a table for people has if none are named; any of them may be missing."""
_MOST_CHARTS, _MOST_ROWS = 6, 100
_MAY_BE_MISSING = (*USUAL, *USUAL_OF_RAMP, "*")


def simulate_point(task: Task) -> dict[str, float]:
    """Play one run; return its figures by ``phase/quantity``, with the load that a ramp passes."""
    record = run_model(task.spec, task.seed, task.replication)
    values = {f"{phase}/{quantity}": float(value) for (phase, quantity), value in observations_of(record).items()}
    if task.spec.ramp is not None and record.steps():
        values[_PASSES] = ramp_end(record.steps(), task.spec.ramp.limit_percent).effective_saps
    return values


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure's prediction."""

    name: str
    """``phase/quantity``."""
    mean: Number
    """Over all runs that have it; the mean of the structures' means."""
    replications_sd: Number
    parameters_sd: Number
    """Standard deviations between runs at one point, and between points; the largest of any structure. ``nan`` where
    not every run has the figure (a step that some ramps do not reach)."""
    least: Number
    most: Number
    """Of the structures' means."""
    low: Number
    high: Number
    """Where nine of ten runs lie, whatever the structure."""
    runs: int
    of: int
    """Runs that have it, of how many."""
    learned_low: Number = math.nan
    learned_high: Number = math.nan
    """The same with what held-out rows tell of figures of its kind; ``nan`` without them."""
    learned_from: int = 0
    """How many of them."""

    @property
    def quantity(self) -> str:
        return self.name.partition("/")[2]

    @property
    def unit(self) -> str:
        """Its unit; of the load that a ramp passes attempts a second."""
        return "/s" if self.name == _PASSES else unit_of_figure(self.quantity) or ""

    def with_structure(self, error: StructureError) -> Self:
        """Return it with what held-out rows tell."""
        low, high = error.around(self.quantity, self.mean, self.low, self.high)
        count = error.count(self.quantity)
        return replace(self, learned_low=low, learned_high=high, learned_from=count) if count else self


@dataclass(frozen=True)
class Prediction(Printed):
    """What a model predicts."""

    model: Model
    structures: tuple[str, ...]
    """The model's own, and other fits."""
    figures: tuple[Figure, ...]
    draws: int
    runs: int
    """Points of each structure, and runs of each point."""
    manifest: dict[str, Any]
    undetermined: tuple[str, ...] = ()
    """Keys that no data told any of the fits."""
    refused: int = 0
    """Points that the model's checks refused, and that were drawn again."""
    otherwise: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The model's value and the fitted one, by key, where the model's lies beyond what the fit says."""

    @property
    def range_holds(self) -> tuple[float, float]:
        """Between which shares of further runs a range of nine of ten holds: 95 %, runs of a point counted as one."""
        return range_content(self.draws, RANGE_PERCENT / 100.0)

    @property
    def outside(self) -> tuple[str, ...]:
        """Figures of steps whose load is outside of what the model was fitted to."""
        spec = self.model.spec
        loads = () if spec.ramp is None else spec.ramp.step_loads()
        outside = {f"step_{number}" for number, load in enumerate(loads, 1) if is_outside(spec, load)}
        return tuple(figure.name for figure in self.figures if figure.name.partition("/")[0] in outside)

    @property
    def listed(self) -> tuple[Figure, ...]:
        """Figures that people are shown: of very many the usual ones."""
        if len(self.figures) <= _MOST_ROWS:
            return self.figures
        chosen = set(named(usual(self.model), [[{figure.name: figure.mean for figure in self.figures}]]))
        return tuple(figure for figure in self.figures if figure.name in chosen)[:_MOST_ROWS]

    def to_pandas(self) -> DataFrame:
        return frame([{"name": figure.name, "unit": figure.unit, **asdict(figure)} for figure in self.figures])

    @classmethod
    def opened(cls, folder: Path) -> Self:
        how, data = read_manifest(folder), read_answer(folder)
        return read_back(cls, data, model=model_of(how), manifest=how)

    def blocks(self) -> list[Block]:
        """Return the figures with what makes them uncertain."""
        listed = self.listed
        several = len(self.structures) > 1
        learned = any(figure.learned_from for figure in listed)
        heads = ["figure", "unit", "mean", "between runs", "parameters", *(["structures"] if several else [])]
        heads += ["nine of ten runs", *(["with structure error"] if learned else []), "n"]
        table = Table(
            heads,
            [_predicted(figure, several, learned, figure.name in self.outside) for figure in listed],
            "Prediction",
            f"{self.draws} points of {self.runs} runs"
            + (f" in each of {len(self.structures)} structures: {', '.join(self.structures)}" if several else "")
            + ". Between runs, parameters: standard deviations of one run by its traffic and by the fitted numbers. "
            "Nine of ten runs: traffic and numbers together"
            + (", of the widest structure" if several else "")
            + "; n: runs that have the figure. The fit's intervals are taken as they are.",
            texts=2,
        )
        first = next((figure for figure in listed if figure.name.startswith("ramp/")), listed[0])
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            *_values_not_fitted(self),
            Answer(
                f"nine of ten runs have {span(first.low, first.high)} {first.unit}".rstrip(),
                f"What will {first.name} be?",
                f"mean {_ranged(first).shown()[0]}, with the chance of the traffic and of the fitted numbers",
            ),
            Cards([Card(each.name, _ranged(each), each.unit) for each in listed[:4]]),
            *_figures_by_step(listed),
            table,
            *(Note(line) for line in _remarks(self)),
            *(outside_notes(self.model) if self.outside else []),
        ]

    def for_machines(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("structures", "draws", "runs", "undetermined", "refused")}
        return {
            "manifest": self.manifest,
            **counts,
            "range_percent": RANGE_PERCENT,
            "range_holds": self.range_holds,
            "otherwise": self.otherwise,
            "outside_calibration": self.outside,
            "figures": rows(self.to_pandas()),
        }


def predict(
    model: Model,
    fits: Sequence[DrawableFit],
    others: Sequence[DrawableFit] = (),
    draws: int = DEFAULT_DRAWS,
    runs: int = DEFAULT_RUNS,
    execution: Execution | None = None,
    *,
    figures: Sequence[str] = ("*",),
    structure_error: StructureError | None = None,
) -> Prediction:
    """Play a model at parameters drawn from the fits that its values come from.

    Fits are of the model's values, drawn independently of each other; others are of other structures: each one's
    settings of the system and its values replace the model's.  There are ``draws`` points of each structure and
    ``runs`` of each point.  Figures to be kept are named with ``*`` for any part.  The structure error is what held-out
    rows tell.  Refuses too few or too many runs, no fit, a key that the model lacks, a figure that there is not.
    """
    if not fits and not others:
        raise UsageError("--fit: the fit that the model's values come from, e.g. --fit sip-lab/virtual")
    if not 2 <= draws <= MOST_DRAWS:
        raise UsageError(f"--draws: from 2 to {MOST_DRAWS} points, got {draws}")
    if not 2 <= runs <= MOST_RUNS:
        raise UsageError(f"-n: from 2 to {MOST_RUNS} runs of each point, got {runs}")
    execution = execution or Execution()
    execution.check()
    seed = execution.seed
    structures: dict[str, Structure] = {"as it is": (model.spec, fits)} if fits else {}
    structures |= {other.name: (other.applied(_of_structure(model, other)), (other,)) for other in others}
    points = {name: _points(base, drawn, draws, seed) for name, (base, drawn) in structures.items()}
    cache = execution.cache(model)
    caches = [cache.at(predict=_digest(*structure), runs=runs) for structure in structures.values()]
    tasks = [[Task(specs[n // runs], seed, n) for n in range(draws * runs)] for specs, _ in points.values()]
    played = _played(tasks, caches, execution, figures)
    how = execution.manifest([model], "predict", draws * runs)
    predicted = tuple(figure_of(name, played, runs) for name in named(figures, played))
    if structure_error is not None:
        predicted = tuple(figure.with_structure(structure_error) for figure in predicted)
    undetermined = {key for _, drawn in structures.values() for fit in drawn for key in fit.undetermined}
    refused = sum(count for _, count in points.values())
    otherwise = {key: pair for fit in fits for key, pair in fit.otherwise(model.spec).items()}
    keys = tuple(sorted(undetermined))
    return Prediction(model, tuple(structures), predicted, draws, runs, how, keys, refused, otherwise)


def _played(
    tasks: Sequence[Sequence[Task]], caches: Sequence[RunCache], execution: Execution, figures: Sequence[str]
) -> list[list[dict[str, float]]]:
    """Play every run of each structure; figures that a first run lacks are refused before the others are played."""
    firsts = execution.play(simulate_point, caches, [{0: queued[0]} for queued in tasks])
    for first in firsts:  # phases differ from run to run
        names = [name for run in first for name in run]
        for pattern in figures:
            if not any(fnmatchcase(name, f"*{pattern.rpartition('/')[2]}") for name in names):
                named([pattern], [first])
    others = execution.play(simulate_point, caches, [dict(enumerate(queued[1:], 1)) for queued in tasks])
    return [first + of_structure for first, of_structure in zip(firsts, others, strict=True)]


def _of_structure(model: Model, fit: DrawableFit) -> ModelSpec:
    """Return the model with a fit's settings of the system; what the user set comes after and wins."""
    other = load_model(model.label, (*fit.settings, *model.assignments)).spec
    # The load, and how long it is watched, may have been shortened since the file was read.
    return other.model_copy(update={name: getattr(model.spec, name) for name in ("workloads", "faults", "measure")})


def _points(base: ModelSpec, fits: Sequence[DrawableFit], draws: int, seed: int) -> tuple[list[ModelSpec], int]:
    """Return a model at every point, and how often one was refused by its checks and drawn again."""
    specs, refused = [], 0
    for point in range(draws):
        for attempt in range(MOST_ATTEMPTS):
            spec = base
            for fit in fits:
                spec = fit.scaled(spec, fit.draw(seed, point, attempt))
            why = accepted(spec)
            if not why:
                specs.append(spec)
                break
            refused += 1
        else:
            raise UsageError(
                f"--fit: the model refuses each of {MOST_ATTEMPTS} points drawn for one prediction ({why}): its values "
                "are too far from the fitted ones"
            )
    return specs, refused


def _digest(base: ModelSpec, fits: Sequence[DrawableFit]) -> str:
    """Return what determines every point, however many are drawn."""
    plain = [{**asdict(fit), "limited": sorted(fit.limited), "undetermined": sorted(fit.undetermined)} for fit in fits]
    return sha256_of([Model("", base).digest(), plain])


def usual(model: Model) -> tuple[str, ...]:
    """Return the figures that people want to see of a model."""
    return USUAL if model.spec.ramp is None else USUAL_OF_RAMP


def named(patterns: Sequence[str], structures: Iterable[Sequence[Mapping[str, float]]]) -> list[str]:
    """Return the figures that are meant, in the order in which runs give them; refuse a pattern that fits none."""
    names = list(dict.fromkeys(name for runs in structures for run in runs for name in run))
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = [n for n in names if fnmatchcase(n, pattern) or fnmatchcase(n.partition("/")[2], pattern)]
        if not fitting and pattern not in _MAY_BE_MISSING:
            quantities = list(dict.fromkeys(name.partition("/")[2] for name in names))
            raise UsageError(f"--figure: no run gives {shown(pattern)}{instead(pattern, quantities, 'there are')}")
        chosen.update(fitting)
    return [name for name in names if name in chosen] or names


def figure_of(name: str, structures: Sequence[Sequence[Mapping[str, float]]], runs: int) -> Figure:
    """Return the prediction of a figure from every structure's runs, those of a point side by side."""
    values_of = [[run[name] for run in of_structure if name in run] for of_structure in structures]
    of, count = sum(map(len, structures)), sum(map(len, values_of))
    present = [values for values in values_of if values]
    means = [statistics.fmean(values) for values in present]
    lows, highs = zip(*(central_range(values, RANGE_PERCENT / 100.0) for values in present), strict=True)
    spreads = [parts(values, runs) for values in present] if count == of else [(math.nan, math.nan)]
    between, within = map(max, zip(*spreads, strict=True))
    mean = statistics.fmean(means)
    return Figure(name, mean, within, between, min(means), max(means), min(lows), max(highs), count, of)


def parts(values: Sequence[float], runs: int) -> tuple[float, float]:
    """Return the standard deviations between points and between runs of a point."""
    table = np.asarray(values, dtype=float).reshape(-1, runs)
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / runs
    return math.sqrt(max(between, 0.0)), math.sqrt(within)


# As blocks


def _ranged(figure: Figure) -> Estimate:
    half = (figure.high - figure.low) / 2.0
    return Estimate(figure.mean, half, figure.low, figure.high, figure.runs, 0.9, "range")


def _predicted(figure: Figure, several: bool, learned: bool, is_outside: bool) -> list[Cell]:
    name = f"{figure.name}{MARK}" if is_outside else figure.name
    means: list[Cell] = [span(figure.least, figure.most)] if several else []
    count = f"{figure.runs}" if figure.runs == figure.of else f"{figure.runs} of {figure.of}"
    parts = [None if math.isnan(sd) else sd for sd in (figure.replications_sd, figure.parameters_sd)]
    wider: list[Cell] = [span(figure.learned_low, figure.learned_high) if figure.learned_from else None]
    spread = span(figure.low, figure.high)
    return [name, figure.unit, figure.mean, *parts, *means, spread, *wider[: int(learned)], count]


def _figures_by_step(figures: Iterable[Figure]) -> list[Block]:
    """Return a chart of each quantity that several steps have."""
    by_quantity: dict[str, list[tuple[int, Figure]]] = {}
    for figure in figures:
        phase, _, quantity = figure.name.partition("/")
        if step := step_number(phase):
            by_quantity.setdefault(quantity, []).append((step, figure))
    charts: list[Block] = []
    for quantity, steps in list(by_quantity.items())[:_MOST_CHARTS]:
        points = [Point.of(float(step), _ranged(figure)) for step, figure in steps]
        if len(points) > 1:
            axis = with_unit(quantity, unit_of_figure(quantity))
            title = f"{quantity}: mean, and nine of ten runs"
            charts.append(Chart(title, "step", axis, [Series("mean", points)]))
    return charts


def _values_not_fitted(prediction: Prediction) -> list[Note]:
    """Return a warning where the model has other values than the fit, around which it is predicted."""
    if not prediction.otherwise:
        return []
    units = {key: base_unit(prediction.model.spec, key) for key in prediction.otherwise}
    pairs = (
        f"{key} ({in_unit(in_model, units[key])}, fitted {in_unit(fitted, units[key])})"
        for key, (in_model, fitted) in prediction.otherwise.items()
    )
    text = (
        f"warning: predicted is the model with its values, not the fitted ones: {', '.join(pairs)}; write those into "
        "it, unless it divides fitted costs, which move its parts by the same factors"
    )
    return [Note(text, warns=True)]


def _remarks(prediction: Prediction) -> list[str]:
    """Return what the ranges rest on, and what was drawn otherwise than the fit's interval says."""
    low, high = (f"{100 * x:.0f}" for x in prediction.range_holds)
    points, runs = prediction.draws, prediction.draws * prediction.runs
    lines = [
        f"Nine of ten rests on the outermost of {runs} runs at {points} points: a range holds "
        f"{low} to {high} % of further runs (95 %, runs of a point counted as one)"
    ]
    if points < FEW_DRAWS:
        lines[0] += f"; few points: with --draws {5 * DEFAULT_DRAWS} the ranges may come out wider or narrower"
    listed = prediction.listed
    if len(listed) < len(prediction.figures):
        lines.append(
            f"{len(listed)} of {len(prediction.figures)} figures, those usually asked for; --figure shows "
            "others, --csv and to_pandas() have all"
        )
    counts = [figure.learned_from for figure in listed if figure.learned_from]
    if counts:
        number = f"{min(counts)} to {max(counts)}" if len({*counts}) > 1 else f"{counts[0]}"
        lines.append(
            f"With structure error: the wider of that range and of the errors of {number} "
            "held-out figures of the same kind; it holds nine of ten if further ones err as those did"
        )
        if min(counts) < ENOUGH:
            lines[-1] += f"; of fewer than {ENOUGH} it holds less"
    if prediction.undetermined:
        keys = ", ".join(prediction.undetermined)
        lines.append(f"Not told by the data, so drawn evenly from what the fit took as possible beforehand: {keys}")
    if prediction.refused:
        lines.append(f"Drawn again, as the model's checks refuse them: {prediction.refused} points")
    return lines
