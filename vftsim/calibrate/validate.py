"""A validation of either form, from its file to its rows and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from vftsim.calibrate import by_ramps, by_runs
from vftsim.calibrate.accuracy import Row, Verdict
from vftsim.calibrate.blocks import validation_blocks
from vftsim.calibrate.capacities import CapacityRow, RatioRow
from vftsim.calibrate.left_out import LeftOut
from vftsim.calibrate.plays import Plays, played
from vftsim.calibrate.summary import groups_of, share_that_cannot_tell
from vftsim.calibrate.validation import RunValidationSpec, ValidationSpec, read_validation
from vftsim.errors import UsageError
from vftsim.labs.dataset import Observations
from vftsim.labs.place import dataset_path, place
from vftsim.report.blocks import Block
from vftsim.study.blocks.printed import Printed
from vftsim.study.runs.progress import Progress
from vftsim.study.store.files import codec
from vftsim.study.store.manifest import manifest, utc_now
from vftsim.study.store.opened import read_answer, read_manifest
from vftsim.study.store.store import Store


@dataclass(slots=True)
class Validated(Printed):
    """Rows and verdicts; what only ramps have is empty of runs."""

    spec: ValidationSpec | RunValidationSpec
    rows: list[Row] = field(default_factory=list)
    edge_rows: list[Row] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What makes the result doubtful, in words."""
    capacities: list[CapacityRow] = field(default_factory=list)
    ratios: list[RatioRow] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    data_sha256: dict[str, str] = field(default_factory=dict)
    """Hash of the measured data, by environment."""
    collapse: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Environment -> (replications of the edge step that collapsed, all)."""
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every declared target was met."""
        return all(verdict.passed for verdict in self.verdicts)

    def add(self, environment: str, verdicts: Sequence[Verdict]) -> None:
        """Add verdicts on an environment."""
        self.verdicts += [replace(verdict, environment=environment) for verdict in verdicts]

    @classmethod
    def opened(cls, folder: Path) -> Validated:
        """Return what the directory of a validation holds."""
        said, data = read_manifest(folder), read_answer(folder)
        form = RunValidationSpec if "model" in data["validation"] else ValidationSpec

        return cls(
            form.model_validate(data["validation"]),
            codec(list[Row])[1](data["rows"]),
            codec(list[Row])[1](data["edge_rows"]),
            codec(list[Verdict])[1]([{**verdict, "text": verdict["target"]} for verdict in data["verdicts"]]),
            data["warnings"],
            codec(list[CapacityRow])[1](data["capacities"]),
            codec(list[RatioRow])[1](data["ratios"]),
            codec(list[LeftOut])[1](data["left_out"]),
            collapse={name: (each["collapsed"], each["n"]) for name, each in data["collapse"].items()},
            manifest=said,
        )

    def for_machines(self) -> dict[str, Any]:
        """Return rows and verdicts as plain data: what ``--json`` prints."""
        return {
            "validation": self.spec.model_dump(mode="json"),
            "warnings": self.warnings,
            "verdicts": [verdict.to_plain() for verdict in self.verdicts],
            "collapse": {n: {"collapsed": bad, "n": total} for n, (bad, total) in self.collapse.items()},
            "capacities": [row.as_data() for row in self.capacities],
            "ratios": [asdict(row) for row in self.ratios],
            "summary": [group.as_data() for group in groups_of(self.rows)],
            "cannot_tell": share_that_cannot_tell(self.rows),
            "left_out": [each.as_data() for each in self.left_out],
            "rows": [row.to_plain() for row in self.rows],
            "edge_rows": [row.to_plain() for row in self.edge_rows],
        }

    def blocks(self) -> list[Block]:
        """Return the validation as blocks."""
        return validation_blocks(self)


def run_validation(
    name_or_path: str,
    environments: Sequence[str],
    replications: int | None,
    jobs: int,
    progress: Progress,
    store: Store | None = None,
    settings: Sequence[str] = (),
) -> Validated:
    """Play the models of a validation and compare.

    Parameters
    ----------
    name_or_path : str
        Shipped name or file.
    environments : sequence of str
        Only these; all when empty.
    replications : int or None
        Instead of the file's number.
    jobs : int
        Worker processes; no influence on the result.
    store : Store, optional
        Where runs are that exist already, and where each goes as it arrives.
    settings : sequence of str
        Settings of every model, as with ``--set``: what a deliberately wrong one gives.

    Raises
    ------
    ModelFileError, UsageError
        The definition, a model or the dataset is wrong.
    """
    spec, tree = read_validation(name_or_path)
    if replications is not None:
        spec = spec.model_copy(update={"replications": replications})
    if unknown := [name for name in environments if name not in spec.environments]:
        raise UsageError(f"no environment '{unknown[0]}'; there are {', '.join(spec.environments)}")
    chosen = [name for name in spec.environments if not environments or name in environments]
    started, found, dataset = utc_now(), Validated(spec), dataset_path(place(tree, "dataset"))
    plays: Plays
    judge: Callable[[Plays, Mapping[str, list[Observations]]], None]
    if isinstance(spec, RunValidationSpec):
        plays, judge = by_runs.planned(spec, tree, chosen, dataset, settings), partial(by_runs.judge, found, spec)
    else:
        plays, judge = by_ramps.planned(spec, tree, chosen, dataset, settings), partial(by_ramps.judge, found, spec)
    judge(plays, played(plays.plays, spec.seed, jobs, progress, store))
    found.manifest = manifest(plays.shown, "validate", spec.seed, spec.replications, jobs, started)
    return found
