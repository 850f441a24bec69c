"""A validation from its file to its rows and verdicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vftsim.calibrate import provenance
from vftsim.calibrate.accuracy import Row, Verdict, edge_verdict, fitted_steps, rows_of, stop_verdict, verdicts
from vftsim.calibrate.blocks import validation_blocks
from vftsim.calibrate.capacities import CapacityRow, RatioRow, capacity_rows, null_capacities, ratio_rows
from vftsim.calibrate.environment import run_environment
from vftsim.calibrate.figures import measured
from vftsim.calibrate.fit import at_measured_traffic
from vftsim.calibrate.left_out import LeftOut, left_out, system_of
from vftsim.calibrate.nulls import Base
from vftsim.calibrate.references import read_definition
from vftsim.calibrate.run import sip_model
from vftsim.calibrate.summary import groups_of, told
from vftsim.calibrate.validation import ValidationSpec
from vftsim.composition.views import ramp_of
from vftsim.errors import UsageError
from vftsim.labs.place import dataset_path, place
from vftsim.labs.ramps import shipped_ramps
from vftsim.report.blocks import Block
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.opened import read_answer, read_manifest
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress
from vftsim.study.store import Store

EDGE_QUANTITIES = ["cpu", "retransmissions", "ihs/global"]
_COLLAPSED_PERCENT = 10.0


@dataclass(slots=True)
class Validated(Printed):
    """Rows and verdicts by environment."""

    spec: ValidationSpec
    rows: list[Row] = field(default_factory=list)
    edge_rows: list[Row] = field(default_factory=list)
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
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
        return all(verdict.passed for _, verdict in self.verdicts)

    @classmethod
    def opened(cls, folder: Path) -> Validated:
        """Return what the directory of a validation holds."""
        said, data = read_manifest(folder), read_answer(folder)
        rows, edge = ([Row.from_plain(row) for row in data[name]] for name in ("rows", "edge_rows"))
        return cls(
            ValidationSpec.model_validate(data["validation"]),
            rows,
            edge,
            [(v["environment"], Verdict.from_plain(v)) for v in data["verdicts"]],
            data["warnings"],
            [CapacityRow.from_data(row) for row in data["capacities"]],
            [RatioRow(**row) for row in data["ratios"]],
            [LeftOut.from_data(each) for each in data["left_out"]],
            collapse={name: (each["collapsed"], each["n"]) for name, each in data["collapse"].items()},
            manifest=said,
        )

    def for_machines(self) -> dict[str, Any]:
        """Return rows and verdicts as plain data: what ``--json`` prints."""
        return {
            "validation": self.spec.model_dump(mode="json"),
            "warnings": self.warnings,
            "verdicts": [
                {"environment": n, "target": v.text, "passed": v.passed, "found": v.found, "by_nulls": list(v.by_nulls)}
                for n, v in self.verdicts
            ],
            "collapse": {n: {"collapsed": bad, "n": total} for n, (bad, total) in self.collapse.items()},
            "capacities": [row.as_data() for row in self.capacities],
            "ratios": [asdict(row) for row in self.ratios],
            "summary": [group.as_data() for group in groups_of(self.rows)],
            "cannot_tell": told(self.rows),
            "left_out": [each.as_data() for each in self.left_out],
            "rows": [row.to_plain() for row in self.rows],
            "edge_rows": [row.to_plain() for row in self.edge_rows],
        }

    def blocks(self) -> list[Block]:
        """Return the validation as blocks."""
        return validation_blocks(self)


def run_validation(
    name_or_path: str,
    environments: list[str],
    replications: int | None,
    jobs: int,
    progress: Progress,
    store: Store | None = None,
    settings: tuple[str, ...] = (),
) -> Validated:
    """Run the models of a validation and compare.

    Parameters
    ----------
    name_or_path : str
        Shipped name or file.
    environments : list of str
        Only these; all when empty.
    replications : int or None
        Instead of the file's number.
    jobs : int
        Worker processes; no influence on the result.
    progress : Progress
    store : Store, optional
        Where runs are that exist already, and where each goes as it arrives.
    settings : tuple of str
        Settings of every model, as with ``--set``: what a deliberately wrong one gives.

    Raises
    ------
    ModelFileError, UsageError
        The definition, a model or the dataset is wrong.
    """
    spec, tree = read_definition(name_or_path, ValidationSpec)
    folder, dataset = Path(tree.file).parent, dataset_path(place(tree, "dataset"))
    if replications is not None:
        spec = spec.model_copy(update={"replications": replications})
    unknown = [name for name in environments if name not in spec.environments]
    if unknown:
        raise UsageError(f"no environment '{unknown[0]}'; there are {', '.join(spec.environments)}")
    chosen = {n: e for n, e in spec.environments.items() if not environments or n in environments}
    models = {
        name: sip_model(place(tree, "environments", name, "model"), f"environments.{name}.model", settings)[0]
        for name in chosen
    }
    started = utc_now()
    progress.total(sum(spec.replications + (spec.edge_replications if e.edge_step else 0) for e in chosen.values()))
    found = Validated(spec)
    for name, environment in chosen.items():
        data = measured(dataset, name)
        found.data_sha256[name] = provenance.data_sha256(data, data)
        found.warnings += provenance.warnings(folder, name, data)
        model = models[name].spec
        runs, edge = run_environment(model, environment, spec, jobs, progress, store)
        # Memory falls with every attempt served: shortened steps serve fewer.
        shortened = spec.step_duration < ramp_of(model).transient_ns + ramp_of(model).step_ns()
        without = ("load", "memory") if shortened else ("load",)
        brought = [at_measured_traffic(run.observations, data, spec.targets.cpu_up_to) for run in runs]
        rows = rows_of(name, environment, data, brought, without=without)
        found.rows += rows
        found.verdicts += [(name, v) for v in verdicts(environment, spec.targets, rows)]
        found.verdicts.append((name, stop_verdict(environment, [run.end.stop_step for run in runs])))
        nulls = null_capacities(Base.of(data, fitted_steps(environment), "cpu"), ramp_of(model).step_loads())
        capacities = capacity_rows(name, data, [run.observations for run in runs], nulls)
        found.verdicts += [(name, row.verdict(ramp_of(model).increment)) for row in capacities]
        found.capacities += capacities
        if ramp := system_of(shipped_ramps(), dataset, name):
            found.left_out += left_out(shipped_ramps(), ramp, [run.observations for run in runs])
        if edge:
            phase = f"step_{environment.edge_step}"
            edge_rows = [r for r in rows_of(name, environment, data, edge, EDGE_QUANTITIES) if r.phase == phase]
            found.edge_rows += edge_rows
            found.verdicts.append((name, edge_verdict(edge_rows)))
            bad = sum(run[phase, "ihs/global"] > _COLLAPSED_PERCENT for run in edge)
            found.collapse[name] = (bad, len(edge))
    found.ratios = ratio_rows(found.capacities)
    found.manifest = manifest(
        list(models.values()),
        command="validate",
        seed=spec.seed,
        replications=range(spec.replications),
        wanted=spec.replications,
        jobs=jobs,
        started=started,
        state="finished",
    )
    return found
