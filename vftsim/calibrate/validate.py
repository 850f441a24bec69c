"""A validation of either form, from its file to its rows and verdicts."""

from collections.abc import Sequence
from dataclasses import replace

from vftsim.calibrate import by_ramps, by_runs
from vftsim.calibrate.validated import Validated
from vftsim.calibrate.validation import RunValidationSpec, played, read_validation
from vftsim.errors import UsageError
from vftsim.labs.named_files import dataset_path
from vftsim.study.execution import Execution


def run_validation(
    name_or_path: str,
    environments: Sequence[str],
    replications: int | None,
    execution: Execution,
    settings: Sequence[str] = (),
) -> Validated:
    """Play the models of a validation, a shipped name or file, in some environments or all, and compare.

    Replications stand instead of the file's number.  The seed is the file's; runs that the execution's store has are
    not played again.  Settings are those of every model, as with ``--set``: what a deliberately wrong one gives.
    """
    spec, tree = read_validation(name_or_path)
    if replications is not None:
        spec = spec.model_copy(update={"replications": replications})
    if unknown := [name for name in environments if name not in spec.environments]:
        raise UsageError(f"no environment '{unknown[0]}'; there are {', '.join(spec.environments)}")
    chosen = [name for name in spec.environments if not environments or name in environments]
    execution = replace(execution, seed=spec.seed)
    execution.check(spec.replications)
    validated, dataset = Validated(spec), dataset_path(tree.at("dataset"))
    if isinstance(spec, RunValidationSpec):
        plays = by_runs.planned(spec, tree, chosen, dataset, settings)
        by_runs.judge(validated, spec, plays, played(plays.plays, execution))
    else:
        plays = by_ramps.planned(spec, tree, chosen, dataset, settings)
        by_ramps.judge(validated, spec, plays, played(plays.plays, execution))
    validated.manifest = execution.manifest(plays.shown, "validate", spec.replications)
    return validated
