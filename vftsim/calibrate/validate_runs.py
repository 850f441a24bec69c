"""Validation by runs: each measured run is a run of the model by itself, and targets say how near it must come.

CPU is compared at the measured load of each run.  A run's repeats are averaged; their range is the noise that a
prediction cannot beat, and a target in points may lie beyond it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from vftsim.calibrate.accuracy import Row, Verdict, beside, by_null
from vftsim.calibrate.blocks import validated_runs_blocks
from vftsim.calibrate.definition import run_of
from vftsim.calibrate.figures import observe_as, unit_of_figure
from vftsim.calibrate.fit import at_measured_traffic
from vftsim.calibrate.keep import from_observations, identity_of, played, to_observations
from vftsim.calibrate.left_out import LeftOut, left_out, system_of
from vftsim.calibrate.nulls import NAMES, Base, known
from vftsim.calibrate.patterns import check_measured, matches
from vftsim.calibrate.references import read_definition
from vftsim.calibrate.runs import measured_runs, run_models
from vftsim.calibrate.summary import groups_of, told
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.place import dataset_path, place
from vftsim.labs.ramps import shipped_ramps
from vftsim.report.blocks import Block
from vftsim.spec import Items, Percent, Spec, find, read_document
from vftsim.stats import central_range
from vftsim.study.digest import sha256_of
from vftsim.study.kept import Kept
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.opened import read_answer, read_manifest
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress
from vftsim.study.store import Store

Repeats = Mapping[tuple[str, str], list[float]]
_MOST_RUNS = 100_000


class RunTarget(Spec):
    """How near the predictions of some quantities must come, over the predicted runs."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["median"]}, {"required": ["points"]}]})

    quantities: Annotated[Items[str], Field(min_length=1)] = Field(
        description="Names; `*` stands for any part of a name (`*/p50`)."
    )
    runs: Items[str] = Field(("*/*",), description="Of which predicted runs, `environment/phase`.")
    without: Items[str] = Field((), description="But for these.")
    median: Percent | None = Field(None, description="Median error at most, relative.")
    points: float | None = Field(
        None, ge=0, description="Error of each at most so many of its unit beyond the range of the run's repeats."
    )

    @model_validator(mode="after")
    def _says_one(self) -> RunTarget:
        if (self.median is None) == (self.points is None):
            raise ValueError("needs either median (relative) or points (beyond the range of repeats)")
        return self


class NullsSpec(Spec):
    """What null models know, beside which the predictions stand (:mod:`vftsim.calibrate.nulls`)."""

    base: str = Field(description="Environment of the system alone; line and queue know its fitted runs.")
    left: dict[str, Percent] = Field(
        default_factory=dict, description="Share of the CPU that other environments of the same system leave to it."
    )


class RunValidationSpec(Spec):
    """One validation by runs."""

    name: str = Field(min_length=1, max_length=100, description="Name.")
    model: str = Field(description="Model: a file relative to this one, or a shipped name.")
    dataset: str = Field(description="Dataset: its folder or dataset.yaml relative to this file, or a shipped name.")
    overrides: Items[str] = Field((), description="Settings of all runs, as with --set.")
    environments: Annotated[dict[str, Items[str]], Field(min_length=1)] = Field(
        description="Environments of the dataset, each with settings of the model."
    )
    phases: dict[str, Items[str]] = Field(default_factory=dict, description="Settings of the phases.")
    fitted: Items[str] = Field((), description="Runs whose observations the model was fitted to.")
    predicted: Annotated[Items[str], Field(min_length=1)] = Field(description="Runs that it predicts.")
    quantities: Annotated[Items[str], Field(min_length=1)] = Field(description="What is compared; names or patterns.")
    repeats_of: str | None = Field(
        None,
        description="Environment whose repeats stand in where a run was made once: those of the nearest load, in "
        "percent of the quantity.",
    )
    nulls: NullsSpec | None = Field(None, description="Null models to stand beside the predictions.")
    targets: Items[RunTarget] = Field((), description="Declared accuracy.")
    replications: int = Field(20, ge=2, le=1000, description="Replications of each run.")
    seed: int = Field(2000, ge=0, description="Root seed; other than that of any fit.")

    @model_validator(mode="after")
    def _of_known_environments(self) -> RunValidationSpec:
        for label in (*self.fitted, *self.predicted):
            run_of(label, self.environments)
        for name in (self.nulls.base, *self.nulls.left) if self.nulls else ():
            if name not in self.environments:
                raise ValueError(f"nulls: no environment '{name}'; there are {', '.join(self.environments)}")
        return self


@dataclass(slots=True)
class ValidatedRuns(Printed):
    """Rows and verdicts; ``simulated`` has every replication's figures by run."""

    spec: RunValidationSpec
    rows: list[Row] = field(default_factory=list)
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    simulated: dict[str, list[Observations]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every declared target was met."""
        return all(verdict.passed for _, verdict in self.verdicts)

    @classmethod
    def opened(cls, folder: Path) -> ValidatedRuns:
        """Return what the directory of a validation holds, but for the figures of single replications."""
        said, data = read_manifest(folder), read_answer(folder)
        verdicts = [("", Verdict.from_plain(v)) for v in data["verdicts"]]
        spec = RunValidationSpec.model_validate(data["validation"])
        return cls(spec, [Row.from_plain(row) for row in data["rows"]], verdicts, manifest=said)

    def for_machines(self) -> dict[str, Any]:
        """Return rows and verdicts as plain data: what ``--json`` prints."""
        return {
            "validation": self.spec.model_dump(mode="json"),
            "verdicts": [
                {"target": v.text, "passed": v.passed, "found": v.found, "by_nulls": list(v.by_nulls)}
                for _, v in self.verdicts
            ],
            "summary": [group.as_data() for group in groups_of(self.rows)],
            "cannot_tell": told(self.rows),
            "left_out": [each.as_data() for each in self.left_out],
            "rows": [row.to_plain() for row in self.rows],
        }

    def blocks(self) -> list[Block]:
        """Return the validation as blocks."""
        return validated_runs_blocks(self)


def is_by_runs(name_or_path: str) -> bool:
    """Whether a validation is one by runs: it names the model at its top.

    Raises
    ------
    ModelFileError, UsageError
        The file cannot be read; there is none.
    """
    return "model" in read_document(name_or_path, partial(find, "calibration")).plain()


def run_runs(
    name_or_path: str,
    environments: Iterable[str],
    replications: int | None,
    jobs: int,
    progress: Progress,
    prepare: Callable[[str, ModelSpec], ModelSpec] = lambda _, spec: spec,
    store: Store | None = None,
    settings: Sequence[str] = (),
) -> ValidatedRuns:
    """Play every run of a validation and compare.

    Parameters
    ----------
    name_or_path : str
        Shipped name or file.
    environments : iterable of str
        Only these; all when empty.
    replications : int or None
        Instead of the file's number.
    jobs : int
        Worker processes; no influence on the result.
    progress : Progress
    prepare : callable
        Changes the model of a run.
    store : Store, optional
        Where runs are that exist already, and where each goes as it arrives.
    settings : sequence of str
        Settings of every model, as with ``--set``: what a deliberately wrong one gives.

    Raises
    ------
    ModelFileError, UsageError
        The definition, the model or the dataset is wrong.
    """
    spec, tree = read_definition(name_or_path, RunValidationSpec)
    if replications is not None:
        spec = spec.model_copy(update={"replications": replications})
    wanted = set(environments) or set(spec.environments)
    if unknown := wanted - set(spec.environments):
        raise UsageError(f"no environment '{min(unknown)}'; there are {', '.join(spec.environments)}")
    runs = [
        run
        for run in (run_of(label, spec.environments) for label in (*spec.fitted, *spec.predicted))
        if run[0] in wanted
    ]
    dataset = dataset_path(place(tree, "dataset"))
    data = measured_runs(dataset, runs)
    check_measured(place(tree, "quantities"), spec.quantities, read_dataset(dataset).units())
    models = {name: prepare(name, each) for name, each in run_models(tree, spec, runs, settings).items()}
    found, started = ValidatedRuns(spec), utc_now()
    for (name, _), seen in _played(models, spec, jobs, progress, store).items():
        found.simulated.setdefault(name, []).append(at_measured_traffic(seen, data))
    repeats = {
        (f"{environment}/{phase}", quantity): values
        for environment in spec.environments
        for (phase, quantity), values in read_dataset(dataset).repeats(environment).items()
    }
    found.rows = list(rows_of(spec, data, found.simulated, alone_of(spec, dataset)))
    found.left_out = list(_left_out(dataset, found.simulated))
    found.verdicts = [("", verdict_beside(spec, target, found.rows, data, repeats)) for target in spec.targets]
    found.manifest = manifest(
        [Model(name, each) for name, each in models.items()],
        command="validate",
        seed=spec.seed,
        replications=range(spec.replications),
        wanted=spec.replications,
        jobs=jobs,
        started=started,
        state="finished",
    )
    return found


def _left_out(dataset: Path, simulated: Mapping[str, list[Observations]]) -> Iterable[LeftOut]:
    """Yield the range of tipping of each environment that is a measured ramp, learned without it."""
    for environment in dict.fromkeys(label.partition("/")[0] for label in simulated):
        if ramp := system_of(shipped_ramps(), dataset, environment):
            runs = zip(*(seen for label, seen in simulated.items() if label.startswith(f"{environment}/")), strict=True)
            yield from left_out(shipped_ramps(), ramp, [dict(ChainMap(*run)) for run in runs])


def _played(
    models: Mapping[str, ModelSpec], spec: RunValidationSpec, jobs: int, progress: Progress, store: Store | None
) -> dict[tuple[str, int], Observations]:
    """Return what was observed, by run and replication; what the store has is not played again."""
    plan = {
        r * _MOST_RUNS + run: (each, spec.seed, r, name)
        for r in range(spec.replications)
        for run, (name, each) in enumerate(models.items())
    }
    digests = sha256_of({name: Model("", each).digest() for name, each in models.items()})
    said = identity_of(spec.seed, models=digests, part="runs")
    kept = Kept(store, said, from_observations, to_observations)
    progress.total(len(plan))
    seen = played(kept, _observed, plan, jobs, progress, "run")
    return {(name, r): one for (_, _, r, name), one in zip(plan.values(), seen, strict=True)}


def _observed(task: tuple[ModelSpec, int, int, str]) -> Observations:
    return observe_as(*task)


def alone_of(spec: RunValidationSpec, dataset: Path) -> Observations:
    """Return what was measured of the system alone, by phase; nothing without null models."""
    return read_dataset(dataset).observations(spec.nulls.base) if spec.nulls else {}


def nulls_of(spec: RunValidationSpec, alone: Observations, label: str, quantity: str, load: float) -> dict[str, float]:
    """Return what null models give of a run; nothing of one whose system is another than the base's."""
    environment = label.partition("/")[0]
    if spec.nulls is None or environment not in {spec.nulls.base, *spec.nulls.left}:
        return {}
    own, share = f"{spec.nulls.base}/", spec.nulls.left.get(environment, 100.0) / 100.0
    fitted = Base.of(alone, [run.removeprefix(own) for run in spec.fitted if run.startswith(own)], quantity)
    every = Base.of(alone, list(dict.fromkeys(phase for phase, _ in alone)), quantity)
    without = None if environment == spec.nulls.base else every.between(load)
    return known(line=fitted.curve(load, 1), queue=fitted.queue(load, share), without=without)


def rows_of(
    spec: RunValidationSpec, data: Observations, simulated: Mapping[str, list[Observations]], alone: Observations
) -> Iterable[Row]:
    """Yield what was measured of the runs that were simulated, and what the model and null models say of it."""
    for label, runs in simulated.items():
        environment, phase = run_of(label, spec.environments)
        for (name, quantity), measured in data.items():
            values = [run[name, quantity] for run in runs if (name, quantity) in run]
            if name != label or not values or not any(matches(quantity, pattern) for pattern in spec.quantities):
                continue
            low, high = central_range(values)
            sample = "in" if label in spec.fitted else "out"
            nulls = nulls_of(spec, alone, label, quantity, data[label, "load"]) if (label, "load") in data else {}
            yield Row(
                environment, phase, quantity, sample, measured, float(np.mean(values)), low, high, len(values), nulls
            )


def verdict_beside(
    spec: RunValidationSpec, target: RunTarget, rows: Sequence[Row], data: Observations, repeats: Repeats
) -> Verdict:
    """Hold the predicted rows against a target, and null models where they say something of all of them."""
    found = verdict(spec, target, rows, data, repeats)
    about = [row for row in rows if row.sample == "out" and _is_about(target, row)]
    for null in NAMES:
        others = by_null(about, null)
        if others and len(others) == len(about):
            found = beside(found, verdict(spec, target, others, data, repeats), null)
    return found


def verdict(
    spec: RunValidationSpec, target: RunTarget, rows: Iterable[Row], data: Observations, repeats: Repeats
) -> Verdict:
    """Hold the predicted rows that a target is about against it."""
    about = [row for row in rows if row.sample == "out" and _is_about(target, row)]
    what = ", ".join(target.quantities)
    if not about:
        return Verdict(f"{what} of predicted runs", False, "no such row")
    if target.median is not None:
        median = 100.0 * float(np.median([abs(row.predicted / row.measured - 1.0) for row in about]))
        text = f"median error of {what} at most {target.median:g} %"
        return Verdict(text, median <= target.median, f"{median:.1f} % over {len(about)}")
    assert target.points is not None
    beyond = {f"{row.environment}/{row.phase}": _beyond(row, _range_of(spec, row, data, repeats)) for row in about}
    worst = max(beyond, key=lambda run: beyond[run])
    met = sum(value <= target.points for value in beyond.values())
    unit = unit_of_figure(about[0].quantity) or ""
    return Verdict(
        f"{what} within {target.points:g} {'points' if unit == '%' else unit} beyond the range of repeats",
        met == len(beyond),
        f"{met} of {len(beyond)}; worst {beyond[worst]:.1f} ({worst})",
    )


def _is_about(target: RunTarget, row: Row) -> bool:
    run = f"{row.environment}/{row.phase}"
    return (
        any(matches(row.quantity, pattern) for pattern in target.quantities)
        and any(matches(run, pattern) for pattern in target.runs)
        and not any(matches(run, pattern) for pattern in target.without)
    )


def _beyond(row: Row, noise: tuple[float, float]) -> float:
    """Return by how much a prediction lies outside a range."""
    low, high = noise
    return max(low - row.predicted, row.predicted - high, 0.0)


def _range_of(spec: RunValidationSpec, row: Row, data: Observations, repeats: Repeats) -> tuple[float, float]:
    """Return the range of a run's repeats, or that of the nearest load of ``repeats_of`` around what was measured."""
    own = f"{row.environment}/{row.phase}"
    values = repeats[own, row.quantity]
    if len(values) > 1 or spec.repeats_of is None:
        return min(values), max(values)
    others = [
        (abs(float(np.mean(repeats[run, "load"])) - data[own, "load"]), each)
        for (run, quantity), each in repeats.items()
        if quantity == row.quantity and len(each) > 1 and run.partition("/")[0] == spec.repeats_of
    ]
    if not others or (own, "load") not in data:
        return min(values), max(values)
    nearest = min(others, key=lambda pair: pair[0])[1]
    mean = float(np.mean(nearest))
    return row.measured * min(nearest) / mean, row.measured * max(nearest) / mean
