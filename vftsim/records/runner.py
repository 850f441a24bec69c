"""Plays the experiments of a record, whatever they are, on several cores."""

import csv
import importlib
import inspect
import math
import pkgutil
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import numpy as np

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.records import forms
from vftsim.records.definition import RecordSpec, Runs
from vftsim.records.expressions import Names, evaluate, write
from vftsim.spec import load, shipped_dir
from vftsim.spec.shipped import file_or_shipped
from vftsim.spec.suggest import did_you_mean, instead, listing, shown
from vftsim.study.figures.names import check_names
from vftsim.study.figures.summary import figures_in
from vftsim.study.runs.progress import Progress
from vftsim.study.runs.workers import Workers

Figures = dict[str, list[float]]
"""Values of each replication by name."""
Results = Mapping[str, Figures]


def shipped_records() -> dict[str, Path]:
    """Return the files of the shipped records by name."""
    return {path.parent.name: path for path in sorted(shipped_dir("calibration").glob("*/record.yaml"))}


@dataclass(frozen=True)
class Record:
    """A record's file, and where it lies."""

    name: str
    folder: Path
    spec: RecordSpec
    budget: Mapping[str, float]
    models: tuple[str, ...] = ()
    """Variants that are played beside the first."""

    def quick(self) -> Self:
        return self.with_budget(self.spec.quick)

    def with_budget(self, changes: Mapping[str, float]) -> Self:
        return replace(self, budget={**self.budget, **changes})

    def with_models(self, options: Sequence[str]) -> Self:
        """Return it with rivals of its model, as the command line calls them, or all; refuse one that there is not."""
        if options and self.spec.variants is None:
            raise UsageError(f"--model is of xen-media; {self.name} always shows its wrong models")
        allowed = self._options()
        for option in options:
            if option != "all" and option not in allowed:
                hint = did_you_mean(option, allowed) or ";"
                raise UsageError(f"--model: record {self.name} has no '{option}'{hint} {listing([*allowed, 'all'])}")
        chosen = list(allowed) if "all" in options else list(dict.fromkeys(options))
        return replace(self, models=tuple(allowed[option] for option in chosen))

    def _options(self) -> dict[str, str]:
        axis = self.spec.axes.get(self.spec.variants or "", {})
        return {str(case["option"]): name for name, case in axis.items() if "option" in case}

    @property
    def command(self) -> str:
        """Return the command line that plays this, with this budget if it is that of a first look."""
        option_of = {name: option for option, name in self._options().items()}
        is_quick = self.budget != self.spec.budget and self.budget == {**self.spec.budget, **self.spec.quick}
        options = [word for name in self.models for word in ("--model", option_of[name])]
        return shlex.join(["vftsim", "record", self.name, *options, *(["--quick"] if is_quick else [])])

    @property
    def ran(self) -> str:
        return write(self.spec.ran, self.names)

    @cached_property
    def names(self) -> Names:
        plain: dict[str, Any] = {
            "abs": abs,
            "min": lambda *values: float(min(*values)),
            "max": lambda *values: float(max(*values)),
            "sum": math.fsum,
            "round": round,
            "len": len,
            "steps": _steps,
            "mean_of": fmean,
            "known": lambda value, otherwise: otherwise if math.isnan(value) else value,
            "cell": partial(cell, self.folder),
            "axis": self.axis,
            "model": self.model,
        }
        return {**plain, **_forms(self.spec.forms), **self.budget, "budget": self.budget}

    def cases(self, axes: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield every combination of axes as names: of each its case, and the values of that."""
        for chosen in product(*(self._cases(axis).items() for axis in axes)):
            values = {key: value for _, case_values in chosen for key, value in case_values.items()}
            yield {**values, **{axis: case for axis, (case, _) in zip(axes, chosen, strict=True)}}

    def _cases(self, axis: str) -> Mapping[str, Mapping[str, Any]]:
        if axis in self.spec.rows_of:
            rows = self.spec.rows_of[axis]
            return {row[rows.column]: row for row in rows_of(self.folder / f"{rows.table}.csv")}
        if axis not in self.spec.axes:
            raise UsageError(f"record {self.name}: there is no axis '{axis}'; {listing(list(self.spec.axes))}")
        every = self.spec.axes[axis]
        chosen = (next(iter(every)), *self.models) if axis == self.spec.variants else every
        return {case: every[case] for case in chosen}

    def axis(self, name: str, value: str) -> np.ndarray:
        """Return a value of an axis by case."""
        return np.array([case[value] for case in self.cases((name,))])

    def model(self, experiment: str) -> ModelSpec:
        return self.system(*self.tasks()[experiment])

    def tasks(self) -> dict[str, tuple[Runs, dict[str, Any]]]:
        """Return every experiment by name: its entry of the file, and its case."""
        tasks: dict[str, tuple[Runs, dict[str, Any]]] = {}
        for runs in self.spec.runs:
            for case in self.cases(runs.over):
                name = write(runs.name, {**self.names, **case})
                if name in tasks:
                    raise UsageError(
                        f"record {self.name}: two experiments are called {shown(name)}; a name says in braces what is "
                        "varied"
                    )
                tasks[name] = runs, case
        return tasks

    def system(self, runs: Runs, case: Mapping[str, Any]) -> ModelSpec:
        names = {**self.names, **case}
        further = [each for name in runs.sets for each in evaluate(name, names)]
        settings = [write(each, names) for each in (*runs.set, *further)]
        name = write(runs.model, names)
        beside = self.folder / f"{name}.yaml"
        return load(beside if beside.is_file() else name, ModelSpec, settings)

    def play(self, runs: Runs, case: Mapping[str, Any]) -> Figures:
        """Play all replications of an experiment as a file has it."""
        names = {**self.names, **case}
        spec = self.system(runs, case) if runs.model else None
        if runs.play is not None:
            played: Figures = evaluate(runs.play, {**names, "spec": spec})
            return played
        assert spec is not None
        seed, replications = int(self.budget["seed"]), int(self.budget["replications"])
        rows: list[dict[str, float]] = []
        for replication in range(replications):
            record = run_model(spec, seed, replication)
            addresses: list[str] = []
            at_hand = {**names, **_of_run(record, addresses), "spec": spec, "record": record}
            row = evaluate(runs.read, at_hand) if runs.read is not None else {}
            for name, each in runs.figures.items():
                addresses.clear()
                row = {**row, name: float(evaluate(each, at_hand))}
                if math.isnan(row[name]):
                    check_names(addresses, [spec], f"record {self.name}: {shown(name)}")
            rows.append(row)
        return {name: [row[name] for row in rows] for name in rows[0]}

    def run(self, jobs: int, progress: Progress) -> dict[str, Figures]:
        """Play everything; return figures by name of the experiment, in their order."""
        tasks, results = self.tasks(), dict[str, Figures]()
        names, work = list(tasks), [(self.name, dict(self.budget), *task) for task in tasks.values()]
        progress.total(len(work))
        for index, figures in Workers(_play, jobs, progress.say).unordered(work):
            results[names[index]] = figures
            progress.advance(names[index])
        return {name: results[name] for name in names}


@cache
def read(name: str) -> Record:
    """Return a shipped record by its name, or one of one's own by its file; refuse a missing or wrong one."""
    path = file_or_shipped(name, shipped_records(), "record", ", or a file of your own (.yaml)")
    spec = load(path, RecordSpec)
    return Record(name, path.parent, spec, spec.budget)


def _play(task: tuple[str, dict[str, float], Runs, dict[str, Any]]) -> Figures:
    name, budget, runs, case = task
    return read(name).with_budget(budget).play(runs, case)


def _forms(name: str | None) -> dict[str, Any]:
    """Return what a record's module holds: its functions and its constants."""
    if name is None:
        return {}
    names = [each.name for each in pkgutil.iter_modules(forms.__path__)]
    if name not in names:
        raise UsageError(f"there are no forms {shown(name)}{instead(name, names, 'of records:')}")
    module = importlib.import_module(f"vftsim.records.forms.{name}")
    public = {key: each for key, each in vars(module).items() if not (key.startswith("_") or inspect.isclass(each))}
    defined = {key for key, each in public.items() if getattr(each, "__module__", "") == module.__name__}
    return {key: each for key, each in public.items() if key in defined or isinstance(each, str | int | float | dict)}


def _of_run(record: RunRecord, addresses: list[str]) -> dict[str, Any]:
    """Return what an expression may ask of a run: a figure by its address, and what befell the guarded domains.

    An address that is asked for is noted in ``addresses``.
    """
    moments = [moment for timeline in record.timelines.values() for moment in timeline]

    def first(event: str) -> float:
        return min((ns * 1e-9 for ns, word in moments if word == event), default=math.inf)

    return {
        "figure": partial(_figure, record, addresses),
        "between": lambda begin, end: first(end) - first(begin),
        "times": lambda what: float(sum(word == what for _, word in moments)),
    }


def _figure(record: RunRecord, addresses: list[str], address: str) -> float:
    addresses.append(address)
    return figures_in(record, [address])[address]


def _steps(low: float, high: float, by: float) -> list[float]:
    """Return the numbers from one to another, both among them."""
    return [float(low + n * by) for n in range(round((high - low) / by) + 1)]


# Tables that lie beside a record: what a source states


def cell(folder: Path, table: str, column: str, **where: str) -> float:
    """Return a number of a table beside the record, of the first row with the given words; a LookupError for none."""
    for row in rows_of(folder / f"{table}.csv"):
        if all(row[key] == str(value) for key, value in where.items()):
            return float(row[column])
    raise LookupError(f"{table}.csv has no row with {where}")


@cache
def rows_of(path: Path) -> tuple[dict[str, str], ...]:
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
