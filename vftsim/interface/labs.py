"""What measured data are for: fits, validations, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.interface.arguments import as_model
from vftsim.interface.plan import Plan, conducted

if TYPE_CHECKING:
    from vftsim.calibrate.prediction import Prediction
    from vftsim.calibrate.run import Calibrated
    from vftsim.calibrate.validated import Validated
    from vftsim.records.judge import Judgement
    from vftsim.study.execution import Execution
    from vftsim.study.runs.model import Model


@conducted
def calibrate(
    name_or_path: str | Path,
    jobs: int | None = 1,
    *,
    at: str | Path | None = None,
    profile: bool = False,
    coverage: int = 0,
    keep: str | Path | None = None,
    progress: bool = False,
) -> Plan[Calibrated]:
    """Fit the free parameters of a model to measured data, as a calibration file describes it.

    Parameters
    ----------
    name_or_path : CALIBRATION
        A shipped calibration (sip-lab/virtual) or a file.
    at : --at FIT
        Stay at the values of an earlier fit (sip-lab/ft, or a file); no search.
    profile : --profile
        Hold each parameter at places over its box, the others free.
    coverage : --coverage N
        Refit N simulated laboratories, and count how often intervals hold the truth.
    """
    from vftsim.calibrate.run import run_calibration

    name, stays_at = str(name_or_path), None if at is None else str(at)
    study = partial(run_calibration, name, at=stays_at, profile=profile, laboratories=coverage)
    return Plan("calibration", f"calibrate {name}", [], None, study)


@conducted
def predict(
    model: Model | str | Path,
    fit: Sequence[str],
    structure: Sequence[str] = (),
    draws: int = 20,
    replications: int = 2,
    seed: int = 1,
    jobs: int | None = 1,
    *,
    figures: Sequence[str] = (),
    held_out: str | Path | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[Prediction]:
    """Predict with the uncertainty of replications, fitted parameters and structure, apart and together.

    Parameters
    ----------
    fit : --fit FIT
        Fit that the model's values come from: a shipped one (sip-lab/virtual), or a file.
    structure : --structure FIT
        Fit of another structure that is accepted beside the model's own.
    held_out : --held-out ROWS
        Held-out rows that tell the structure error: a shipped lab's (linux-lab), or what 'vftsim validate --held-out'
        wrote.
    draws : --draws
        Points drawn from each fit.
    replications : --replications, -n
        Runs of each point.
    figures : --figure NAME
        Figures, e.g. 'cpu', 'SES1/p99', 'step_6*', '*' for all (default: the usual ones).
    """
    from vftsim.calibrate import prediction
    from vftsim.calibrate.accuracy import read_held_out
    from vftsim.calibrate.fitted import read_fit
    from vftsim.study.runs.estimate import total

    fits, others = ([read_fit(name) for name in names] for names in (fit, structure))
    error = None if held_out is None else read_held_out(str(held_out))
    chosen = as_model(model, quick=quick)
    points = draws * (bool(fits) + len(others))

    study = partial(prediction.predict, chosen, fits, others, draws, replications)
    return Plan(
        "predict",
        f"predict {chosen.name}",
        [chosen],
        partial(total, [chosen.spec], points * replications),
        lambda execution: study(execution, figures=tuple(figures) or prediction.usual(chosen), structure_error=error),
    )


@conducted
def record(
    name_or_path: str | Path,
    models: Sequence[str] = (),
    jobs: int | None = 1,
    *,
    quick: bool = False,
    progress: bool = False,
) -> Plan[Judgement]:
    """Play the experiments of a published study with the shipped fit, and judge every statement of it.

    Parameters
    ----------
    name_or_path : STUDY
        xen-media: 49 experiments (Patnaik et al. 2009); networks: iperf and httperf on bare metal, KVM and ESXi
        (Timalsena 2013); sip-farm: seven runs on z/VM (IBM Montpellier 2007); vmware-ft: VMware's white paper on fault
        tolerance (2009); remus: NSDI 2008; kemari: 2008; epochs: hypervisor-based fault tolerance (Bressoud and
        Schneider 1996); or the record.yaml of a study of your own.
    models : --model
        xen-media: run a wrong or rival model too and show what separates them (one-vcpu, no-boost, round-robin,
        one-vcpu-each, half-duty, all); repeatable.
    quick : --quick
        Few short replications, as the record says, for a first look.
    """
    from vftsim.records.judge import judge
    from vftsim.records.runner import read

    chosen = read(str(name_or_path)).with_models(models)
    played = chosen.quick() if quick else chosen

    def study(execution: Execution) -> Judgement:
        return judge(played, played.run(execution.worker_count, execution.progress))

    return Plan("record", f"record {chosen.name}", [], None, study)


@conducted
def validate(
    name_or_path: str | Path = "sip-lab/validation",
    environments: Sequence[str] = (),
    replications: int | None = None,
    jobs: int | None = 1,
    *,
    overrides: Sequence[str] = (),
    keep: str | Path | None = None,
    progress: bool = False,
) -> Plan[Validated]:
    """Predict every measured row of a validation, and say whether the declared accuracy is met.

    Parameters
    ----------
    name_or_path : VALIDATION
        A shipped validation (sip-lab/validation) or a file.
    environments : --environment, -e
        Only this environment; repeatable.
    replications : --replications, -n >=2
        Replications of each ramp instead of the file's.
    overrides : Model: --set KEY=VALUE
        Change a value of the model, e.g. --set 'hosts.host.switch_cost=4 us'; repeatable.
    """
    from vftsim.calibrate.validate import run_validation

    name = str(name_or_path)
    study = partial(run_validation, name, environments, replications, settings=overrides)
    return Plan("validation", f"validate {name}", [], None, study)
