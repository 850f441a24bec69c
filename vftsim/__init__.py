"""vftsim: discrete-event simulation of virtualized, fault-tolerant systems, with error bars.

The Python interface mirrors the command line::

    import vftsim

    model = vftsim.load("lab-virtual", ["workloads.calls.steps.initial=80 /s"])
    vftsim.run(model, replications=10).to_pandas("summary")
    print(vftsim.run(model, quick=True))
    vftsim.capacity("lab-virtual", quick=True).to_pandas()
    vftsim.compare(["lab-native", "lab-virtual"], quick=True).to_pandas()
    vftsim.sweep("xen-media", ["weight=256,1024"], quick=True).results
    vftsim.failover("lab-virtual", protection="lockstep", quick=True).report("failover.html")
    vftsim.open("result").plot()

``print`` of a result shows the tables of the command, ``report`` makes a page of it, ``plot`` draws one of its charts.

Importing the package imports nothing else; each function imports what it needs when it is called.
"""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim._version import __version__

if TYPE_CHECKING:
    from vftsim.calibrate.prediction import Prediction
    from vftsim.calibrate.run import Calibrated
    from vftsim.calibrate.validate import Validated
    from vftsim.calibrate.validate_runs import ValidatedRuns
    from vftsim.study.availability import AvailabilityStudy
    from vftsim.study.capacity_request import CapacityAnswer
    from vftsim.study.compare import Comparison
    from vftsim.study.failover import FailoverStudy
    from vftsim.study.model import Model
    from vftsim.study.printed import Printed
    from vftsim.study.results import RunResult
    from vftsim.study.sweep import SweepResult
    from vftsim.tracing.trace import Trace

__all__ = [
    "__version__",
    "availability",
    "calibrate",
    "capacity",
    "compare",
    "failover",
    "load",
    "open",
    "predict",
    "report",
    "run",
    "sweep",
    "trace",
    "validate",
]


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


def failover(
    model: Model | str | Path,
    crashes: int | None = None,
    seed: int = 1,
    jobs: int = 1,
    *,
    load: float | None = None,
    domain: str | None = None,
    over_s: float = 1.0,
    after_s: float | None = None,
    protection: str | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
) -> FailoverStudy:
    """Let the primary's host crash at many instants; return detection, takeover, outage, and what clients lost.

    Parameters
    ----------
    model : Model, str or Path
    crashes : int, optional
        Spread over ``over_s``; by default 20, a quarter of that if ``quick``.
    seed, jobs : int
    load : float, optional
        Attempts a second; by default the benchmark's first step.
    domain : str, optional
        Whose host crashes; by default the one that is protected.
    over_s, after_s : float
        Stretch of time over which crashes are spread, and how long a run goes on after one and a restart.
    protection : str, optional
        Protect the domain with this mechanism and its defaults.
    quick, force : bool
    directory : str or Path, optional
        Keep every finished run and the answer here; the same call goes on from them.
    """
    from vftsim.study.failover import DEFAULT_CRASHES, failover_study
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.protections import under
    from vftsim.study.replicate import fewer_crashes

    chosen, count = fewer_crashes(_model(model), crashes, DEFAULT_CRASHES, quick)
    if protection is not None:
        chosen = under(chosen, protection, domain)
    after_ns = None if after_s is None else round(after_s * 1e9)
    with kept_in(Path(directory) if directory is not None else None, "failover", force) as store:
        study = failover_study(
            chosen, count, seed, jobs, load=load, domain=domain, span_ns=round(over_s * 1e9), after_ns=after_ns,
            store=store,
        )  # fmt: skip
        keep_answer(store, study)
    return study


def availability(
    model: Model | str | Path,
    mtbf_s: float,
    protection: str = "none,ha_restart,lockstep,checkpoint",
    crashes: int | None = None,
    seed: int = 1,
    jobs: int = 1,
    *,
    restart_s: float = 77.0,
    after_s: float | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
) -> AvailabilityStudy:
    """Return how long the service is down in a year with each mechanism, how long unprotected, what clients lose.

    Parameters
    ----------
    model : Model, str or Path
    mtbf_s : float
        Mean time between failures of a host.
    protection : str
        Mechanisms with commas, or ``all``.
    crashes : int, optional
        Simulated failovers of each; by default 10.
    seed, jobs : int
    restart_s : float
        Length of an outage that no mechanism shortens.
    after_s : float, optional
        How long a run goes on after a crash and a restart.
    quick, force : bool
    directory : str or Path, optional
        Keep every finished run and the answer here; the same call goes on from them.
    """
    from vftsim.study.availability import DEFAULT_CRASHES, availability_study
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.protections import kinds_named
    from vftsim.study.replicate import fewer_crashes

    chosen, count = fewer_crashes(_model(model), crashes, DEFAULT_CRASHES, quick)
    after_ns = None if after_s is None else round(after_s * 1e9)
    with kept_in(Path(directory) if directory is not None else None, "availability", force) as store:
        study = availability_study(
            chosen, kinds_named(protection), mtbf_s, count, seed, jobs, restart_s=restart_s, after_ns=after_ns,
            store=store,
        )  # fmt: skip
        keep_answer(store, study)
    return study


def predict(
    model: Model | str | Path,
    fit: Sequence[str],
    structure: Sequence[str] = (),
    draws: int = 20,
    replications: int = 2,
    seed: int = 1,
    jobs: int = 1,
    *,
    figures: Sequence[str] = ("*",),
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
) -> Prediction:
    """Predict with the uncertainty of replications, fitted parameters and structure.

    Parameters
    ----------
    model : Model, str or Path
    fit, structure : sequence of str
        Fits that the model's values come from, and those of other structures: shipped names, or files.
    draws, replications : int
        Points drawn from each fit, and runs of each point.
    seed, jobs : int
    figures : sequence of str
    quick, force : bool
    directory : str or Path, optional
        Keep every finished run and the answer here; the same call goes on from them.
    """
    from vftsim.calibrate.drawn import read_fit
    from vftsim.calibrate.prediction import predict as predict_study
    from vftsim.study.kept import keep_answer, kept_in

    fits, others = ([read_fit(name) for name in names] for names in (fit, structure))
    with kept_in(Path(directory) if directory is not None else None, "predict", force) as store:
        found = predict_study(
            _model(model, quick), fits, others, draws, replications, seed, jobs, figures=tuple(figures), store=store
        )
        keep_answer(store, found)
    return found


def validate(
    name_or_path: str | Path = "sip-lab/validation",
    environments: Sequence[str] = (),
    replications: int | None = None,
    jobs: int = 1,
    *,
    keep: str | Path | None = None,
) -> Validated | ValidatedRuns:
    """Predict every measured row of a validation, and say whether the declared accuracy is met.

    With ``keep``, a directory, every finished run is kept there; the same call goes on from them.
    """
    from vftsim.calibrate.validate import run_validation
    from vftsim.calibrate.validate_runs import is_by_runs, run_runs
    from vftsim.study.kept import keep_data, kept_in
    from vftsim.study.progress import Silent

    name, chosen = str(name_or_path), list(environments)
    found: Validated | ValidatedRuns
    with kept_in(None if keep is None else Path(keep), "validation") as store:
        if is_by_runs(name):
            found = run_runs(name, chosen, replications, jobs, Silent(), store=store)
        else:
            found = run_validation(name, chosen, replications, jobs, Silent(), store)
        keep_data(store, found.for_machines(), found.manifest)
    return found


def open(directory: str | Path) -> Printed:
    """Return the object that the call returned which made a result's directory.

    Raises
    ------
    UsageError
        The directory holds no result that is finished.
    """
    from importlib import import_module

    from vftsim.study.opened import class_of

    module, name = class_of(Path(directory))
    found: Printed = getattr(import_module(module), name).opened(Path(directory))
    return found


def report(directories: Sequence[str | Path], path: str | Path | None = None) -> str:
    """Return a page about one result, or about several beside each other; with ``path``, write it there.

    Raises
    ------
    UsageError
        A directory holds no result, or the extra ``report`` is not installed.
    """
    from vftsim.study.blocks.beside import page_of
    from vftsim.study.files import write_file

    folders = [Path(each) for each in directories]
    text = page_of([open(folder) for folder in folders], [folder.name for folder in folders])
    if path is not None:
        write_file(Path(path), text.encode())
    return text


def _model(model: Model | str | Path, quick: bool = False) -> Model:
    found = load(model) if isinstance(model, (str, Path)) else model
    return found.quick() if quick else found
