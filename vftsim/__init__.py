"""vftsim: discrete-event simulation of virtualized, fault-tolerant systems, with error bars.

The Python interface mirrors the command line::

    import vftsim

    model = vftsim.load("lab-virtual", ["workloads.calls.steps.initial=80 /s"])
    vftsim.run(model, replications=10).to_pandas("summary")
    vftsim.capacity("lab-virtual", quick=True).to_pandas()
    vftsim.compare(["lab-native", "lab-virtual"], quick=True).to_pandas()

Importing the package imports nothing else; each function imports what it needs when it is called.
"""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim._version import __version__

if TYPE_CHECKING:
    from vftsim.study.capacity_request import CapacityAnswer
    from vftsim.study.compare import Comparison
    from vftsim.study.model import Model
    from vftsim.study.results import RunResult

__all__ = ["__version__", "capacity", "compare", "load", "run"]


def load(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a file or shipped name, with overrides as after ``--set``."""
    from vftsim.study.model import load_model

    return load_model(name_or_path, overrides)


def run(
    model: Model | str | Path,
    replications: int = 10,
    seed: int = 1,
    jobs: int = 1,
    *,
    directory: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
) -> RunResult:
    """Run replications of a model; with ``directory``, keep the result there.

    Parameters
    ----------
    model : Model, str or Path
    replications, seed : int
    jobs : int
        Worker processes; without influence on the results.
    directory : str or Path, optional
        Where the result goes.
    force, resume : bool
        Replace the directory, or go on with it.
    """
    from vftsim.study.run import run_study

    target = Path(directory) if directory is not None else None
    return run_study(_model(model), replications, seed, jobs, directory=target, force=force, resume=resume)


def capacity(
    model: Model | str | Path,
    method: str | None = None,
    replications: int | None = None,
    seed: int = 1,
    jobs: int = 1,
    *,
    quick: bool = False,
    after_stop_s: float | None = None,
    ihs_limit_percent: float | None = None,
    loss_limit_percent: float | None = None,
    directory: str | Path | None = None,
    force: bool = False,
) -> CapacityAnswer:
    """Return what a system carries.

    Parameters
    ----------
    model : Model, str or Path
    method : str, optional
        ``ramp``: the lab's procedure, once for each replication (default with a benchmark); ``search``: the
        largest constant load that stays within the limit in 90 % of the runs (the method with media streams).
    replications : int, optional
        Ramps; by default 10.
    seed, jobs : int
    quick : bool
        Measure a minute of each step, or half a second of a steady state, at most.
    after_stop_s : float, optional
        With a benchmark: search for the largest load that recovers from a stop of so many seconds instead.
    ihs_limit_percent : float, optional
        With a benchmark: by default the model's stop rule.
    loss_limit_percent : float, optional
        With media streams: allowed loss of media packets; by default 0.1.
    directory : str or Path, optional
        Keep every finished run and the answer here; the same call goes on from them.
    force : bool
        Start over; what the directory holds goes when the new answer stands.
    """
    from vftsim.errors import UsageError
    from vftsim.study.capacity_request import CapacityRequest
    from vftsim.study.find_capacity import find_capacity
    from vftsim.study.kept import keep_answer, kept_in

    if method not in (None, "ramp", "search"):
        raise UsageError(f"method '{method}' is neither 'ramp' nor 'search'")
    chosen = _model(model).quick() if quick else _model(model)
    with kept_in(Path(directory) if directory is not None else None, "capacity", force) as store:
        request = CapacityRequest(
            seed=seed, jobs=jobs, quick=quick, method=method, replications=replications,
            ihs_limit_percent=ihs_limit_percent, loss_limit_percent=loss_limit_percent,
            after_stop_ns=None if after_stop_s is None else round(after_stop_s * 1e9), store=store,
        )  # fmt: skip
        answer = find_capacity(chosen, request)
        keep_answer(store, answer)
    return answer


def compare(
    models: Sequence[Model | str | Path],
    replications: int = 10,
    seed: int = 1,
    jobs: int = 1,
    *,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
) -> Comparison:
    """Compare ramp capacities under common random numbers; ratios are to the first model.

    With ``directory``, every finished replication and the answer are kept there, and the same call goes on from them;
    ``force`` starts over.
    """
    from vftsim.study.compare import compare_study
    from vftsim.study.kept import keep_answer, kept_in

    chosen = [_model(each).quick() if quick else _model(each) for each in models]
    with kept_in(Path(directory) if directory is not None else None, "compare", force) as store:
        comparison = compare_study(chosen, replications, seed, jobs, store=store)
        keep_answer(store, comparison)
    return comparison


def _model(model: Model | str | Path) -> Model:
    return load(model) if isinstance(model, (str, Path)) else model
