"""``vftsim sweep``: a model over a grid of values and schedulers, under common random numbers.

Every point gets the same replications: the same traffic meets every setting, so differences between
points are those of the settings.  A finished replication is on disk before it is counted; a sweep that
was killed or interrupted goes on with the same command and ends in the same files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.errors import UsageError
from vftsim.study.design.runner import Runner
from vftsim.study.files import to_json, write_file
from vftsim.study.frames import estimate_columns, frame
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress, Silent
from vftsim.study.replicate import check_study
from vftsim.study.results import CONFIDENCE, csv_text, rows, write_figure
from vftsim.study.shard import WHOLE, Shard
from vftsim.study.store import MANIFEST, Opening, Store
from vftsim.study.sweep_crossovers import COLUMNS as CROSSOVER_COLUMNS
from vftsim.study.sweep_crossovers import sweep_crossovers
from vftsim.study.sweep_figures import Figures, estimates, simulate
from vftsim.study.sweep_grid import MOST_DRAWN, Grid, Point
from vftsim.study.validity import is_outside, load_behind, not_covered
from vftsim.study.workers import Interrupted, checked_jobs

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_REPLICATIONS = 3


@dataclass(frozen=True)
class SweepResult(Printed):
    """What is known of the points of a grid.

    Parameters
    ----------
    grid : Grid
    records : list of dict
        For each point, figures by replication.
    refused : dict
        Why points have none, by number of the point.
    manifest : dict
        How the result came to be.
    wanted : int
        Replications asked for, all points together; refused points count none.
    already : int
        Replications that were on disk at the start.
    interrupted : bool
    remarks : list of str
        What happened to the directory on the way that the user must know.
    """

    grid: Grid
    records: list[dict[int, Figures]]
    refused: dict[int, str]
    manifest: dict[str, Any]
    wanted: int
    already: int
    interrupted: bool
    confidence: float = CONFIDENCE
    remarks: list[str] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Replications that are there."""
        return sum(len(known) for known in self.records)

    @property
    def refusals(self) -> dict[str, str]:
        """Schedulers and points that could not run, and why."""
        found = dict(self.grid.refused)
        for number, why in self.refused.items():
            point = self.grid.points[number]
            alone = all(p.number in self.refused for p in self.grid.points if p.variant == point.variant)
            found[point.variant.name if alone else point_name(point)] = why
        return found

    @cached_property
    def results(self) -> pd.DataFrame:
        """Every figure of every point across replications: one row a figure."""
        columns = ["metric", "estimate", "low", "high", "n", "confidence", "interval"]
        # Column by column: a dict a row takes several times the memory of the table.
        found: dict[str, list[Any]] = {name: [] for name in [*self._head_columns, *columns]}
        for point, known in zip(self.grid.points, self.records, strict=True):
            head = _head(point)
            for metric, estimate in estimates([known[n] for n in sorted(known)], self.confidence) if known else ():
                for name, value in {**head, "metric": metric, **estimate_columns(estimate)}.items():
                    found[name].append(value)
        return frame(found)

    @cached_property
    def replications(self) -> pd.DataFrame:
        """Every figure of every replication: one row a replication."""
        found = [
            {**_head(point), "replication": n, **known[n]}
            for point, known in zip(self.grid.points, self.records, strict=True)
            for n in sorted(known)
        ]
        return frame(found) if found else frame(columns=[*self._head_columns, "replication"])

    @property
    def outside(self) -> list[list[Any]] | None:
        """Point and figure where a load is outside of what the model was fitted to; None if it does not say to what."""
        if self.grid.base.spec.calibrated is None:
            return None
        found = []
        for number, metric, value in self.results[["point", "metric", "estimate"]].values.tolist():
            spec = self.grid.points[number].model.spec
            load = load_behind(spec, metric, value)
            if load is not None and is_outside(spec, load):
                found.append([number, metric])
        return found

    @property
    def not_covered(self) -> list[str]:
        """Keys that are something else at a point than when the model was fitted; mechanisms, if compared, left out."""
        keys = dict.fromkeys(key for point in self.grid.points for key in not_covered(point.model.spec))
        return [key for key in keys if not (self.grid.protections and key.split(".")[2:3] == ["protection"])]

    @property
    def is_drawn(self) -> bool:
        """Whether ``sweep.png`` is among the files: nobody reads a figure of more points."""
        return len(self.grid.points) <= MOST_DRAWN

    @property
    def _head_columns(self) -> list[str]:
        return list(_head(self.grid.points[0]))

    def without_effect(self) -> list[tuple[str, str]]:
        """Return (scheduler and mechanism, axis) where no value of the axis changed anything, to the last digit."""
        found = []
        for variant in dict.fromkeys(point.variant for point in self.grid.points):
            points = [p for p in self.grid.points if p.variant == variant and self.records[p.number]]
            for axis in self.grid.axes:
                groups: dict[str, list[str]] = {}
                for point in points:
                    others = json.dumps({k: v for k, v in point.values.items() if k != axis.name})
                    groups.setdefault(others, []).append(json.dumps(self.records[point.number], sort_keys=True))
                if any(len(g) > 1 for g in groups.values()) and all(len(set(g)) == 1 for g in groups.values()):
                    found.append((variant.name, axis.name))
        return found

    @cached_property
    def crossovers(self) -> pd.DataFrame:
        """Where mechanisms overtake each other: one row a figure, pair of mechanisms and place."""
        found = sweep_crossovers(self.grid, self.records, self.confidence)
        return frame(found, columns=[*CROSSOVER_COLUMNS])

    def print_tables(self) -> None:
        """Print the figures of every point, and what was found."""
        from vftsim.report.sweep_tables import print_sweep  # noqa: PLC0415 - study and report know each other

        print_sweep(self)

    def for_machines(self) -> dict[str, Any]:
        """Return manifest, results and refusals as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest, "confidence": self.confidence, "results": rows(self.results),
            "outside_calibration": self.outside,
            "refused": self.refusals, "without_effect": [list(pair) for pair in self.without_effect()],
            **({"crossovers": rows(self.crossovers)} if self.grid.protections else {}),
        }  # fmt: skip

    def write_files(self, folder: Path) -> None:
        """Write results, replications, plot and manifest into a directory."""
        from vftsim.study.sweep_plot import sweep_figure  # noqa: PLC0415 - matplotlib takes its time

        write_file(folder / "results.csv", csv_text(self.results).encode())
        write_file(folder / "replications.csv", csv_text(self.replications).encode())
        if self.grid.protections:
            write_file(folder / "crossovers.csv", csv_text(self.crossovers).encode())
        figure = sweep_figure(self.grid, self.results) if self.is_drawn else None
        if figure is not None:
            write_figure(figure, folder / "sweep.png")
        write_file(folder / MANIFEST, (to_json(self.manifest) + "\n").encode())


def point_name(point: Point) -> str:
    """Return a point in words."""
    return ", ".join([*point.variant.names.values(), *(f"{k}={v}" for k, v in point.values.items())])


def _head(point: Point) -> dict[str, Any]:
    return {"point": point.number, **point.variant.names, **point.values}


def run_sweep(
    grid: Grid,
    folder: Path,
    replications: int = DEFAULT_REPLICATIONS,
    seed: int = 1,
    jobs: int | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
    shard: Shard = WHOLE,
) -> SweepResult:
    """Run what is missing of a sweep; an interrupted one returns what is done.

    Parameters
    ----------
    grid : Grid
    folder : Path
        Where finished replications and results are.
    replications, seed : int
    jobs : int, optional
        Worker processes, without influence on the results; by default all cores.
    force : bool
        Forget what the folder holds, once the new result stands.
    progress : Progress, optional
    shard : Shard
        The share of the replications of all points to be run.

    Raises
    ------
    Interrupted
        Ctrl-C before anything was done.
    """
    workers = checked_jobs(jobs)
    check_study(replications, seed, workers)
    started = utc_now()
    show = progress or Silent()
    records: list[dict[int, Figures]] = [{} for _ in grid.points]
    interrupted = False

    def take(number: int, replication: int, figures: Figures) -> None:
        records[number][replication] = figures

    with Store(folder, "sweep", Opening.REPLACE if force else Opening.CONTINUE) as store:
        runner = Runner(grid.points, seed, simulate, take, store, shard)
        wanted_of = [replications] * len(grid.points)
        already = runner.load(wanted_of)
        try:
            runner.run(wanted_of, workers, show, lambda number: point_name(grid.points[number]))
        except KeyboardInterrupt:
            interrupted = True
        if interrupted and not any(records):
            raise Interrupted("nothing had finished")
        wanted = replications * (len(grid.points) - len(runner.refused))
        said = _manifest(grid, seed, replications, workers, started, interrupted)
        result = SweepResult(grid, records, runner.refused, said, wanted, already, interrupted)
        if not any(records):
            if not runner.refused:
                shard.refuse_idle(interrupted)
            raise UsageError(f"no point could be run: {'; '.join(f'{k}: {m}' for k, m in result.refusals.items())}")
        store.finish(result.write_files)
        result.remarks.extend(store.remarks)
    return result


def _manifest(grid: Grid, seed: int, replications: int, jobs: int, started: str, interrupted: bool) -> dict[str, Any]:
    state = "interrupted" if interrupted else "finished"
    said = manifest(
        [grid.base], command="sweep", seed=seed, replications=list(range(replications)), wanted=replications,
        jobs=jobs, started=started, state=state,
    )  # fmt: skip
    axes: Mapping[str, Any] = {axis.name: {"keys": axis.keys, "values": axis.values} for axis in grid.axes}
    sweep = {
        "schedulers": grid.schedulers, "protections": grid.protections, "axes": axes, "points": len(grid.points),
    }  # fmt: skip
    return {**said, "sweep": sweep}
