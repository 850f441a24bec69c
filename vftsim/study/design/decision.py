"""The answer of ``vftsim optimize``: the choice, what it rests on, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.report.blocks import Block
from vftsim.study.design.candidates import MISSED, Candidate
from vftsim.study.design.evaluate import Evaluator
from vftsim.study.design.optimize import COMMAND, FEW, Request, Search, fresh_seed, fronts
from vftsim.study.files import write_file, write_json
from vftsim.study.frames import frame
from vftsim.study.kept import going_on_in
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress, Silent
from vftsim.study.replicate import check_study
from vftsim.study.results import csv_text, rows
from vftsim.study.store import ANSWER, MANIFEST
from vftsim.study.stored import write_blocks
from vftsim.study.workers import checked_jobs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Decision(Printed):
    """The cheapest configuration that meets the objectives, with its evidence.

    Parameters
    ----------
    again : mapping
        Both with random numbers that the search has not seen, by number of the configuration.
    candidates : list of Candidate
        All that are possible, the cheapest first.
    refused : mapping
        Those that the model cannot have, and why.
    is_settled : bool
        Whether everything cheaper is known to miss the objectives.
    runs : int
        Of the search and of the proof.
    """

    request: Request
    winner: Candidate | None
    runner_up: Candidate | None
    again: Mapping[int, Candidate]
    candidates: list[Candidate]
    refused: Mapping[str, str]
    is_settled: bool
    runs: int
    manifest: dict[str, Any]
    remarks: list[str] = field(default_factory=list)

    @property
    def cheaper(self) -> list[Candidate]:
        """Configurations that cost less than the choice; all, where there is none."""
        if self.winner is None:
            return self.candidates
        return self.candidates[: self.candidates.index(self.winner)]

    @property
    def dropped_at_once(self) -> int:
        """Cheaper configurations out of which all first runs missed an objective."""
        return sum(each.n == FEW and each.verdict == MISSED for each in self.cheaper)

    @property
    def fronts(self) -> dict[str, list[Candidate]]:
        """For each objective the configurations that nothing cheaper beats."""
        return fronts(self.request, self.candidates)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a configuration that was looked at."""
        return frame([self._row(each) for each in self.candidates if each.n])

    def _row(self, one: Candidate) -> dict[str, Any]:
        row: dict[str, Any] = {"configuration": one.number, **one.point.values, "cost": one.cost}
        row |= {f"units_{name}": amount for name, amount in one.quantities.items()}
        row |= {"n": one.n, "verdict": one.verdict}
        for name in self.request.figures:
            found = one.figures.get(name)
            row |= {
                name: found.mean if found else None,
                f"{name}_low": found.low if found else None,
                f"{name}_high": found.high if found else None,
            }
        return row

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a configuration that was looked at."""
        return self.table

    def blocks(self) -> list[Block]:
        """Return the decision as blocks."""
        from vftsim.study.design.decision_blocks import decision_blocks  # noqa: PLC0415 - what describes itself knows its blocks

        return decision_blocks(self)

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest,
            "objectives": [str(one) for one in self.request.objectives],
            "confidence": self.request.confidence,
            "unit": self.request.prices.unit,
            "settled": self.is_settled,
            "runs": self.runs,
            "winner": self._row(self.winner) if self.winner else None,
            "runner_up": self._row(self.runner_up) if self.runner_up else None,
            "with_fresh_seeds": [self._row(each) for each in self.again.values()],
            "fronts": {name: [each.number for each in front] for name, front in self.fronts.items()},
            "refused": dict(self.refused),
            "configurations": rows(self.table),
        }

    def write_files(self, folder: Path) -> None:
        """Write the configurations, all of the answer, charts and the manifest."""
        write_file(folder / "configurations.csv", csv_text(self.table).encode())
        write_json(folder / ANSWER, self.for_machines())
        write_blocks(folder, self)
        write_json(folder / MANIFEST, self.manifest)


def optimize(
    request: Request, folder: Path, jobs: int | None = None, *, force: bool = False, progress: Progress | None = None
) -> Decision:
    """Find the cheapest configuration that meets the objectives.

    Raises
    ------
    UsageError
        The request makes no sense, or optuna is missing and there is too much to choose from without.
    Interrupted
        Ctrl-C; what had finished is kept.
    """
    request.check()
    workers, show, started = checked_jobs(jobs), progress or Silent(), utc_now()
    check_study(1, request.seed, workers)
    with going_on_in(folder, COMMAND, force) as store:
        first, fresh = (
            Evaluator(request.figures, seed, request.interval, store, workers, show)
            for seed in (request.seed, fresh_seed(request.seed))
        )
        search = Search(request, first, fresh)
        winner = search.run()
        said = manifest([request.base], COMMAND, request.seed, 0, workers, started)
        said["optimize"] = {
            "choices": {name: list(values) for name, values in request.choices.items()},
            "objectives": [str(one) for one in request.objectives],
            "confidence": request.confidence,
            "prices": request.prices.model_dump(mode="json"),
            "points": len(search.candidates),
        }
        settled = not search.unknown_below(winner) and not any(
            each.is_left_open for each in search.candidates[: _place(search, winner)]
        )
        runner_up = search.runner_up(winner) if winner is not None else None
        runs = search.runs + sum(each.n for each in search.proven.values())
        found = Decision(
            request, winner, runner_up, search.proven, search.candidates, search.refused, settled, runs, said
        )
        store.finish(found.write_files)
        found.remarks.extend(store.remarks)
    return found


def _place(search: Search, winner: Candidate | None) -> int:
    return len(search.candidates) if winner is None else search.candidates.index(winner)
