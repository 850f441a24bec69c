"""vftsim: discrete-event simulation of virtualized, fault-tolerant systems, with error bars.

The Python interface mirrors the command line::

    import vftsim

    model = vftsim.load("lab-virtual", ["workloads.calls.steps.initial=80 /s"])
    vftsim.run(model, replications=10).to_pandas("summary")
    print(vftsim.run(model, quick=True))
    vftsim.capacity("lab-virtual", quick=True).to_pandas()
    vftsim.compare(["lab-native", "lab-virtual"], quick=True).to_pandas()
    vftsim.sweep("xen-media", ["weight=256,1024"], quick=True).results

``print`` of a result shows the tables of the command.

Importing the package imports nothing else; each function imports what it needs when it is called.
"""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim._version import __version__

if TYPE_CHECKING:
    from vftsim.calibrate.run import Calibrated
    from vftsim.study.capacity_request import CapacityAnswer
    from vftsim.study.compare import Comparison
    from vftsim.study.model import Model
    from vftsim.study.results import RunResult
    from vftsim.study.sweep import SweepResult
    from vftsim.tracing.trace import Trace

__all__ = ["__version__", "calibrate", "capacity", "compare", "load", "run", "sweep", "trace"]


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
    quick: bool = False,
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
    quick : bool
        Measure a minute of each step, or half a second of a steady state, at most.
    directory : str or Path, optional
        Where the result goes.
    force, resume : bool
        Replace the directory, or go on with it.
    """
    from vftsim.study.run import run_study

    target = Path(directory) if directory is not None else None
    return run_study(_model(model, quick), replications, seed, jobs, directory=target, force=force, resume=resume)


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
    headroom_percent: float | None = None,
    labs: str | Path | None = None,
    vary: str | None = None,
    objectives: Sequence[str] = (),
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
    headroom_percent : float, optional
        With a benchmark's ramp: share of the load that fills the CPU to leave free.
    labs : str or Path, optional
        With a benchmark's ramp: file with systems of one's own whose ramps were measured.
    vary : str, optional
        Key of the model whose largest value is sought instead, e.g. ``workloads.web.rate``.
    objectives : sequence of str
        What a run must achieve then, e.g. ``web.answered >= 90``; by default what the workload declares.
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
    chosen = _model(model, quick)
    with kept_in(Path(directory) if directory is not None else None, "capacity", force) as store:
        request = CapacityRequest(
            seed=seed, jobs=jobs, quick=quick, method=method, replications=replications,
            ihs_limit_percent=ihs_limit_percent, loss_limit_percent=loss_limit_percent,
            after_stop_ns=None if after_stop_s is None else round(after_stop_s * 1e9), store=store,
            vary=vary, objectives=tuple(objectives), headroom_percent=headroom_percent,
            labs=None if labs is None else Path(labs),
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

    chosen = [_model(each, quick) for each in models]
    with kept_in(Path(directory) if directory is not None else None, "compare", force) as store:
        comparison = compare_study(chosen, replications, seed, jobs, store=store)
        keep_answer(store, comparison)
    return comparison


def sweep(
    model: str | Path | None = None,
    grid: Sequence[str] = (),
    scheduler: str | None = None,
    replications: int = 3,
    seed: int = 1,
    jobs: int = 1,
    *,
    overrides: Sequence[str] = (),
    protection: str | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
) -> SweepResult:
    """Run a model at every point of a grid, under the same traffic.

    Parameters
    ----------
    model : str or Path, optional
        A file or shipped name; by default the Xen media host.
    grid : sequence of str
        Axes such as ``domains.dom0.weight=256,512``; by default those of the model's default study.
    scheduler : str, optional
        A scheduler, several with commas, or ``all``; by default the model's own.
    replications, seed, jobs : int
    overrides : sequence of str
        Assignments that hold at every point.
    protection : str, optional
        A mechanism, several with commas, or ``all``, without the model's faults; by default the model's own.
    quick : bool
        Shorten every point for a first look.
    directory : str or Path, optional
        Keep replications and results here; the same call goes on from them.
    force : bool
        Start over; what the directory holds goes when the new result stands.
    """
    from tempfile import TemporaryDirectory

    from vftsim.study.sweep import run_sweep
    from vftsim.study.sweep_grid import plan_grid

    plan = plan_grid(None if model is None else str(model), scheduler, grid, tuple(overrides), protection)
    if quick:
        plan = plan.quick()
    with TemporaryDirectory() as elsewhere:
        folder = Path(elsewhere) / "sweep" if directory is None else Path(directory)
        return run_sweep(plan.grid(), folder, replications, seed, jobs, force=force)


def calibrate(name_or_path: str | Path, jobs: int = 1, *, keep: str | Path | None = None) -> Calibrated:
    """Fit the free parameters of a model to measured data, as a calibration file describes it.

    With ``keep``, a directory, every finished run is kept there; the same call goes on from them.
    """
    from vftsim.calibrate.run import run_calibration
    from vftsim.study.kept import keep_data, kept_in
    from vftsim.study.progress import Silent

    with kept_in(None if keep is None else Path(keep), "calibration") as store:
        done = run_calibration(str(name_or_path), jobs, Silent(), store)
        keep_data(store, done.record, done.record["manifest"])
    return done


def trace(
    model: Model | str | Path,
    start_s: float = 0.5,
    length_s: float = 0.1,
    seed: int = 1,
    replication: int = 0,
    *,
    path: str | Path | None = None,
) -> Trace:
    """Return who ran where, and every packet's way, in a window of a run; with ``path``, write it for ui.perfetto.dev.

    Raises
    ------
    UsageError
        The run is over before the window is.
    """
    from vftsim.errors import UsageError
    from vftsim.tracing.chrome import write_chrome
    from vftsim.tracing.trace import run_traced

    spec = _model(model).spec
    start_ns, length_ns = round(start_s * 1e9), round(length_s * 1e9)
    if start_ns < 0 or length_ns <= 0 or start_ns + length_ns > spec.longest_ns:
        raise UsageError(f"a window of {length_s:g} s from {start_s:g} s on is not within {spec.longest_ns / 1e9:g} s")
    found = run_traced(spec, seed, replication, start_ns, length_ns)[1]
    if path is not None:
        write_chrome(found, Path(path))
    return found


def _model(model: Model | str | Path, quick: bool = False) -> Model:
    found = load(model) if isinstance(model, (str, Path)) else model
    return found.quick() if quick else found
