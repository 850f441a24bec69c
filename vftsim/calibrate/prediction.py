"""``vftsim predict``: a prediction with its whole uncertainty, in parts and together.

Three things make a prediction uncertain: which traffic a run happens to have (replications), how well the data told the
fitted numbers (parameters), and which of the accepted models is right (structures).

A point is a set of parameters drawn from their joint fit (:mod:`vftsim.calibrate.drawn`); each is played in several
replications with traffic of their own.  With D points of n runs and mean squares MSB between and MSW within points, the
variance between replications is MSW and that of the parameters (MSB - MSW) / n, not below 0: the one-way layout with
random effects (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6).  What one run of the real
system would show lies in the range of the runs, each of which has parameters and traffic of its own: their central
90 % by order statistics, no distribution assumed.  With several structures the range is the widest of all of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from vftsim.calibrate.drawn import DrawableFit
from vftsim.calibrate.figures import observations_of
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.views import bench_of, has_bench, phases_of
from vftsim.errors import UsageError
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.stats import central_range
from vftsim.study.digest import sha256_of
from vftsim.study.frames import frame
from vftsim.study.kept import Kept
from vftsim.study.manifest import identity, manifest, utc_now
from vftsim.study.model import Model, load_model
from vftsim.study.progress import Progress, Silent
from vftsim.study.replicate import Task
from vftsim.study.results import rows
from vftsim.study.store import Store
from vftsim.study.validity import is_outside
from vftsim.study.workers import Workers, checked_jobs
from vftsim.workloads.ims_bench.ramp_end import ramp_end

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_DRAWS, DEFAULT_RUNS, MOST_DRAWS, MOST_RUNS = 20, 2, 1000, 64
RANGE_PERCENT = 90.0
USUAL_OF_RAMP, USUAL = ("ramp/passes", "cpu", "ihs/global"), ("cpu.*", "loss_percent", "delay_p99_ms", "*_per_s")
"""Figures that a table for people has if none are named; any of them may be missing."""


def simulate_point(task: Task) -> dict[str, float]:
    """Play one run; return its figures by ``phase/quantity``, with the load that a ramp passes."""
    record = run_model(task.spec, task.seed, task.replication)
    found = {f"{phase}/{quantity}": float(value) for (phase, quantity), value in observations_of(record).items()}
    if has_bench(task.spec) and any(phase.index > 0 for phase in phases_of(record)):
        end = ramp_end(phases_of(record), bench_of(task.spec).steps.stop_above_ihs)
        found["ramp/passes"] = end.effective_saps
    return found


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure's prediction.

    Parameters
    ----------
    name : str
        ``phase/quantity``.
    mean : float
        Over all runs that have it; the mean of the structures' means.
    replications_sd, parameters_sd : float
        Standard deviations between runs at one point, and between points; the largest of any structure. ``nan`` where
        not every run has the figure (a step that some ramps do not reach).
    least, most : float
        Of the structures' means.
    low, high : float
        Where nine of ten runs lie, whatever the structure.
    runs, of : int
        Runs that have it, of how many.
    """

    name: str
    mean: float
    replications_sd: float
    parameters_sd: float
    least: float
    most: float
    low: float
    high: float
    runs: int
    of: int


@dataclass(frozen=True)
class Prediction:
    """What a model predicts.

    Parameters
    ----------
    model : Model
    structures : tuple of str
        The model's own, and other fits.
    figures : tuple of Figure
    draws, runs : int
        Points of each structure, and runs of each point.
    manifest : dict
    """

    model: Model
    structures: tuple[str, ...]
    figures: tuple[Figure, ...]
    draws: int
    runs: int
    manifest: dict[str, Any]

    @property
    def outside(self) -> tuple[str, ...]:
        """Figures of steps whose load is outside of what the model was fitted to."""
        return tuple(f.name for f in self.figures if _is_outside(self.model.spec, f.name.partition("/")[0]))

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a figure."""
        return frame([{field: getattr(f, field) for field in Figure.__slots__} for f in self.figures])

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest, "structures": list(self.structures), "draws": self.draws, "runs": self.runs,
            "range_percent": RANGE_PERCENT, "outside_calibration": list(self.outside),
            "figures": rows(self.to_pandas()),
        }  # fmt: skip


def _is_outside(spec: ModelSpec, phase: str) -> bool:
    number = phase.removeprefix("step_")
    if not has_bench(spec) or not number.isdigit():
        return False
    return is_outside(spec, bench_of(spec).steps.load_of(int(number) - 1))


def predict(
    model: Model,
    fits: Sequence[DrawableFit],
    others: Sequence[DrawableFit] = (),
    draws: int = DEFAULT_DRAWS,
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    jobs: int | None = None,
    *,
    figures: Sequence[str] = ("*",),
    progress: Progress | None = None,
    store: Store | None = None,
) -> Prediction:
    """Play a model at parameters drawn from the fits that its values come from.

    Parameters
    ----------
    model : Model
    fits : sequence of DrawableFit
        Fits of the model's own values, drawn independently of each other.
    others : sequence of DrawableFit
        Fits of other structures: each one's settings of the system and its values replace the model's.
    draws, runs, seed : int
        Points of each structure, and runs of each.
    jobs : int, optional
    figures : sequence of str
        Which to keep, ``*`` for any part of a name.
    progress : Progress, optional
    store : Store, optional

    Raises
    ------
    UsageError
        Too few or too many runs, no fit, a key that the model lacks, no figure of that name.
    """
    if not fits and not others:
        raise UsageError("--fit: the fit that the model's values come from, e.g. --fit sip-lab/virtual")
    if not 2 <= draws <= MOST_DRAWS:
        raise UsageError(f"--draws: from 2 to {MOST_DRAWS} points, got {draws}")
    if not 2 <= runs <= MOST_RUNS:
        raise UsageError(f"-n: from 2 to {MOST_RUNS} runs of each point, got {runs}")
    workers, started, show = checked_jobs(jobs), utc_now(), progress or Silent()
    structures: dict[str, tuple[ModelSpec, Sequence[DrawableFit]]] = {"as it is": (model.spec, fits)} if fits else {}
    for other in others:
        structures[other.name] = (other.applied(_of_structure(model, other)), (other,))
    tasks = {name: _tasks(base, drawn, draws, runs, seed) for name, (base, drawn) in structures.items()}
    kept = Kept(store, identity(model, seed))
    places = {name: kept.at(predict=_digest(*structure), runs=runs) for name, structure in structures.items()}
    show.total(sum(len(own) - places[name].there(own) for name, own in tasks.items()))
    pool = Workers(simulate_point, workers, show.say, show.advance)
    found = {name: places[name].in_order(pool, own) for name, own in tasks.items()}
    how = manifest(
        [model], command="predict", seed=seed, replications=range(draws * runs), wanted=draws * runs, jobs=workers,
        started=started, state="finished",
    )  # fmt: skip
    said = tuple(figure_of(name, list(found.values()), runs) for name in named(figures, found.values()))
    return Prediction(model, tuple(found), said, draws, runs, how)


def _of_structure(model: Model, fit: DrawableFit) -> ModelSpec:
    """Return the model with a fit's settings of the system; what the user set comes after and wins."""
    other = load_model(model.label, (*fit.settings, *model.assignments)).spec
    # The load, and how long it is watched, may have been shortened since the file was read.
    return other.model_copy(update={name: getattr(model.spec, name) for name in ("workloads", "faults", "measure")})


def _tasks(base: ModelSpec, fits: Sequence[DrawableFit], draws: int, runs: int, seed: int) -> dict[int, Task]:
    tasks = {}
    for point in range(draws):
        spec = base
        for fit in fits:
            spec = fit.scaled(spec, fit.draw(seed, point))
        for number in range(point * runs, (point + 1) * runs):
            tasks[number] = Task(spec, seed, number)
    return tasks


def _digest(base: ModelSpec, fits: Sequence[DrawableFit]) -> str:
    """Return what determines every point, however many are drawn."""
    return sha256_of([Model("", base).digest(), [{**asdict(fit), "limited": sorted(fit.limited)} for fit in fits]])


def usual(model: Model) -> tuple[str, ...]:
    """Return the figures that people want to see of a model."""
    return USUAL_OF_RAMP if has_bench(model.spec) else USUAL


def named(patterns: Sequence[str], found: Iterable[Sequence[Mapping[str, float]]]) -> list[str]:
    """Return the figures that are meant, in the order in which runs give them.

    Raises
    ------
    UsageError
        A pattern fits none.
    """
    there = list(dict.fromkeys(name for runs in found for run in runs for name in run))
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = [n for n in there if fnmatchcase(n, pattern) or fnmatchcase(n.partition("/")[2], pattern)]
        if not fitting and pattern not in (*USUAL, *USUAL_OF_RAMP):
            quantities = list(dict.fromkeys(name.partition("/")[2] for name in there))
            hint = did_you_mean(pattern, quantities) or ";"
            raise UsageError(f"--figure: no run gives {shown(pattern)}{hint} there are {listing(quantities)}")
        chosen.update(fitting)
    return [name for name in there if name in chosen] or there


def figure_of(name: str, structures: Sequence[Sequence[Mapping[str, float]]], runs: int) -> Figure:
    """Return the prediction of a figure from every structure's runs, those of a point side by side."""
    means, inner, outer, low, high, count, of = [], [], [], [], [], 0, 0
    for found in structures:
        values = [run[name] for run in found if name in run]
        of += len(found)
        count += len(values)
        if not values:
            continue
        means.append(statistics.fmean(values))
        if len(values) == len(found):
            between, within = parts(values, runs)
            outer.append(between)
            inner.append(within)
        ends = central_range(values, RANGE_PERCENT / 100.0)
        low.append(ends[0])
        high.append(ends[1])
    whole = count == of
    return Figure(
        name, statistics.fmean(means), max(inner) if whole else math.nan, max(outer) if whole else math.nan,
        min(means), max(means), min(low), max(high), count, of,
    )  # fmt: skip


def parts(values: Sequence[float], runs: int) -> tuple[float, float]:
    """Return the standard deviations between points and between runs of a point."""
    table = np.asarray(values, dtype=float).reshape(-1, runs)
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / runs
    return math.sqrt(max(between, 0.0)), math.sqrt(within)
