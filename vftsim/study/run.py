"""``vftsim run``: replications of one model, kept on disk if asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vftsim._version import __version__
from vftsim.sampling import STREAM_SCHEME
from vftsim.stats import StoppingRule
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.precision import run_until
from vftsim.study.progress import Progress
from vftsim.study.replicate import (
    DEFAULT_REPLICATIONS,
    DEFAULT_SEED,
    Replications,
    check_study,
    replicate,
)
from vftsim.study.results import RunResult
from vftsim.study.store import ResultDirectory
from vftsim.study.system import Record
from vftsim.study.workers import Interrupted, checked_jobs


def run_study(
    model: Model,
    replications: int = DEFAULT_REPLICATIONS,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    directory: Path | None = None,
    force: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
    rule: StoppingRule | None = None,
) -> RunResult:
    """Run a model; an interrupted run returns what is done.

    Parameters
    ----------
    model : Model
    replications, seed : int
    jobs : int, optional
        Worker processes; by default all cores.
    directory : Path, optional
        Where the result goes.
    force, resume : bool
        Replace the directory, or go on with it.
    progress : Progress, optional
    rule : StoppingRule, optional
        When there are enough replications; ``replications`` are then what a result has at least.

    Raises
    ------
    Interrupted
        Ctrl-C before anything was done.
    """
    workers = checked_jobs(jobs)
    check_study(replications, seed, workers)
    started = utc_now()
    system = model.system
    target: ResultDirectory | None = None

    def arrived(_: int, replication: int, record: Any) -> None:
        if target is not None:
            target.keep(replication, system.to_dict(record))

    try:
        known = {}
        if directory is not None:
            target = ResultDirectory(directory, identity(model, seed), force=force, resume=resume)
            known = {n: system.from_dict(data) for n, data in target.known().items()}
        # Replications beyond those asked for are kept: a result never shrinks by being continued.
        wanted = max(replications, *(n + 1 for n in known), 0)

        def batch(count: int, records: dict[int, Record]) -> Replications:
            return replicate([model], count, seed, workers, progress=progress, done=[records], on_result=arrived)[0]

        done, verdict = (batch(wanted, known), None) if rule is None else run_until(model, rule, batch, known)
        if not done.records:
            raise Interrupted("nothing had finished")
    finally:
        if target is not None and target.is_empty:
            target.discard()
    result = _result(done, max(wanted, len(done.records)) if rule else wanted, workers, started)
    result.precision = verdict
    if target is not None:
        target.finish(result.write_files)
    return result


def identity(model: Model, seed: int) -> dict[str, Any]:
    """Return what makes replications belong together."""
    return {"model": model.digest(), "seed": seed, "stream_scheme": STREAM_SCHEME, "vftsim": __version__}


def _result(done: Replications, wanted: int, jobs: int, started: str) -> RunResult:
    records = done.ordered()
    said = manifest(
        [done.model],
        command="run",
        seed=done.seed,
        replications=[number for number, _ in records],
        wanted=wanted,
        jobs=jobs,
        started=started,
        state="interrupted" if done.interrupted else "finished",
    )
    said["identity"] = identity(done.model, done.seed)
    return RunResult(done.model, records, said)
