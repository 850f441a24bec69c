"""Worker processes: independent simulations on several cores, with the same results for any number of them.

Each task is a pure function of its arguments, and results are put in the order of the tasks, so any
number of workers gives the same answer.  A result is handed over as soon as it arrives: what is done
survives an interruption.  Ctrl-C ends the work under way at once.  Workers end with the process that
started them, however it ends; workers that are killed are replaced.

A study hands over a function and its tasks and takes results as they come; it never knows where they were made: here,
or by the cluster that this process uses, if there is one (:mod:`.cluster`).
"""

# ruff: noqa: PLC0415 - what manages processes takes 0.1 s to import, and most commands need none

import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from vftsim.composition.one_kernel import make_ready
from vftsim.errors import UsageError, WorkerLostError
from vftsim.spec.registry import REGISTRIES
from vftsim.study.figures.frames import import_meanwhile

T = TypeVar("T")
R = TypeVar("R")

Notify = Callable[[str], None]


class Executor(Protocol):
    """A cluster (:class:`.cluster.Cluster`), as studies use it."""

    def count(self) -> int: ...

    def map_unordered(
        self, function: Callable[[T], R], tasks: Sequence[T], notify: Notify
    ) -> Iterator[tuple[int, R]]: ...


clusters: list[Executor] = []
"""Those that studies run on; the last one is used."""


def silent(_: str) -> None:
    """Notify nobody."""


def applied(function: Callable[[Any], Any], task: Any) -> Any:
    """Return a task's result, and leave none of its memory behind."""
    result = function(task)
    gc.collect(0)  # a run that is over holds megabytes in a circle, and few objects for Python to look for it
    return result


def the_cluster() -> Executor | None:
    """Return the cluster that the studies of this process use; None: this machine."""
    return clusters[-1] if clusters else None


MOST_JOBS = 1024
ENDING = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)
"""Signals that ask a command to end: Ctrl-C, kill, a terminal that closes."""

_GROUPS = Path("/sys/fs/cgroup")
_QUOTAS = ((_GROUPS / "cpu.max",), (_GROUPS / "cpu/cpu.cfs_quota_us", _GROUPS / "cpu/cpu.cfs_period_us"))
"""Files that say how much a container may use, on Linux, in both versions of control groups: quota, period."""
_MOST_LOSSES = 3
_BETWEEN_LOOKS_S = 0.5
_IDLE_S = 300.0
"""So long workers stay without work."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Settings of numpy's libraries: one thread a worker, unless the user has said otherwise."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_REMEDY = "fewer --jobs need less, and where a command has --resume it goes on from what had finished"
_LOST = f"worker processes are killed from outside again and again, perhaps for want of memory; {_REMEDY}"
_NO_MEMORY = f"there is not enough memory for what the worker processes compute; {_REMEDY}"


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C before there was anything to keep."""


def available_cores() -> int:
    """Return the number of cores that a study may use: of this machine, or the workers of its cluster."""
    if (cluster := the_cluster()) is not None:
        return cluster.count()
    return _local_cores()


def _local_cores() -> int:
    """Return the CPUs that this process may use: by its affinity, and by the quota of its container."""
    if not hasattr(os, "sched_getaffinity") or "LOKY_MAX_CPU_COUNT" in os.environ:
        from loky import cpu_count  # it knows every way in which that is said

        return int(cpu_count())
    allowed = len(os.sched_getaffinity(0))
    for files in _QUOTAS:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or no quota
            quota, period = map(int, " ".join(file.read_text() for file in files).split())
            if quota > 0:
                allowed = min(allowed, -(-quota // period))
    return allowed


def checked_jobs(jobs: int | None) -> int:
    """Return how many worker processes were asked for, all that there are if None; refuse a number out of range."""
    if jobs is None:
        return available_cores()
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(f"jobs: from 1 to {MOST_JOBS} worker processes, got {jobs}")
    return jobs


@dataclass(frozen=True)
class Workers(Generic[T, R]):
    """Applies a function to the tasks of a study, wherever this process is told to have them done."""

    function: Callable[[T], R]
    """A module's function or a picklable object."""
    jobs: int
    """Processes of this machine; 1 works in this one.  Without meaning on a cluster."""
    notify: Notify = silent
    """Told in words when workers were lost and replaced."""
    on_result: Callable[[], None] | None = None
    """Told of each result that arrives."""

    def unordered(self, tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Yield (index of the task, result), each once, as results arrive; whoever stops taking them ends the rest.

        WorkerLostError: workers are lost again and again, or whoever leads them is, or there is not enough memory.
        """
        for numbered in self._done(tasks):
            if self.on_result is not None:
                self.on_result()
            yield numbered

    def _done(self, tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        here_only = _only_here()
        if (cluster := the_cluster()) is not None:
            if here_only:
                raise UsageError(here_only)
            return cluster.map_unordered(self.function, tasks, self.notify)
        if is_here(self.jobs, len(tasks)):
            if here_only and self.jobs > 1 and len(tasks) > 1:
                warnings.warn(f"{here_only}; everything is computed in this process", stacklevel=2)
            return ((index, applied(self.function, task)) for index, task in enumerate(tasks))
        return in_processes(self.function, tasks, self.jobs, self.notify)

    def in_order(self, tasks: Sequence[T]) -> list[R]:
        return [result for _, result in sorted(self.unordered(tasks), key=lambda pair: pair[0])]


def is_here(jobs: int, tasks: int) -> bool:
    return the_cluster() is None and (jobs == 1 or tasks == 1 or bool(_only_here()))


def _only_here() -> str:
    """Return why no other process can compute what this one can: a part that it has imported from no module."""
    parts = (part for registry in REGISTRIES for part in registry.values())
    in_script = next((part.__name__ for part in parts if part.__module__ == "__main__"), "")
    return f"{in_script} stands in the script or notebook itself: workers need it in a module" if in_script else ""


def in_processes(
    function: Callable[[T], R], tasks: Sequence[T], jobs: int, notify: Notify = silent
) -> Iterator[tuple[int, R]]:
    """Yield (index of the task, result) as results arrive from so many processes of this machine.

    They stay when idle: a capacity search comes back for more at once.  Ctrl-C ends them and is passed on.  Those that
    somebody kills are replaced, and what they were at is computed again; WorkerLostError where they are killed again
    and again, or there is not enough memory.
    """
    from loky.process_executor import BrokenProcessPool

    left, losses = dict.fromkeys(range(len(tasks))), 0
    while left:
        # What was under way when a worker was lost is suspect; where nothing else is left, one at a time tells.
        alone = losses > 0 and len(left) <= jobs
        batches = [[index] for index in left] if alone else [list(left)]
        try:
            for index, result in chain.from_iterable(_parallel(function, tasks, batch, jobs) for batch in batches):
                del left[index]
                losses = 0
                yield index, result
        except BrokenProcessPool:
            end_processes()
            losses += 1
            if losses == _MOST_LOSSES:
                raise WorkerLostError(_LOST) from None
            left, jobs = _suspects_last(left, 1 if alone else jobs), max(2, jobs // 2)
            notify(f"a worker process was killed from outside; {jobs} new ones go on")
        except MemoryError:
            end_processes()
            raise WorkerLostError(_NO_MEMORY) from None
        except BaseException:
            # Also when whoever takes the results gives up: nobody wants the rest.
            end_processes()
            raise


def end_processes() -> None:
    """End all worker processes, whatever they are doing."""
    from loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


def _parallel(
    function: Callable[[T], R], tasks: Sequence[T], indices: Sequence[int], jobs: int
) -> Iterator[tuple[int, R]]:
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    from loky import get_reusable_executor
    from loky.process_executor import BrokenProcessPool

    make_ready()
    with _passing_on_a_blocked_mask():
        # Workers stay when idle: a capacity search comes back for the next level at once.
        pool = get_reusable_executor(
            jobs,
            timeout=_IDLE_S,
            initializer=_begin_worker,
            initargs=(
                os.getpid(),
                threading.current_thread() is threading.main_thread(),
                gc.get_threshold(),
                _own_hook(),
            ),
            env={name: os.environ.get(name, "1") for name in _THREADS},
        )
    to_do = iter(indices)

    def handed_out(count: int) -> set[Future[tuple[int, R]]]:
        with _passing_on_a_blocked_mask():  # the first starts the workers, and any may replace one
            return {pool.submit(_numbered, function, index, tasks[index]) for index in islice(to_do, count)}

    # Each worker has its next task at hand: it need not wait for whoever takes the results.
    under_way = handed_out(2 * jobs)
    import_meanwhile()
    while under_way:
        done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        broken = None
        try:
            under_way |= handed_out(len(done))
        except BrokenProcessPool as error:
            broken = error  # what has arrived is not lost with the pool
        for future in sorted(done, key=lambda each: each.exception() is not None):  # who has a result is not lost
            yield future.result()
        if broken is not None:
            raise broken


def _suspects_last(tasks: dict[int, T], number: int) -> dict[int, T]:
    """Put the tasks that may have been under way at the end: one that kills its worker must not delay the others."""
    order = list(tasks)
    return {index: tasks[index] for index in (*order[number:], *order[:number])}


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Let what is inside happen whole: Ctrl-C or a request to end takes effect when it is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    # What is ignored, or ends the process by default, stays as it is.
    before = {number: handler for number in ENDING if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if pressed:
        signal.raise_signal(pressed[0])


@contextmanager
def _passing_on_a_blocked_mask() -> Iterator[None]:
    """Let what is started inside never see the signals that end a command, not even while it starts.

    The mask is inherited, also by the thread that starts workers later; what arrives meanwhile is delivered at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    import multiprocessing.resource_tracker

    from loky.backend import resource_tracker

    for tracker in (multiprocessing.resource_tracker, resource_tracker):
        tracker.ensure_running()  # starting one lifts the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _own_hook() -> Any:
    """Return what this process warns by, if that is a function of ours; else what Python has."""
    hook = warnings.showwarning
    return hook if hook.__module__.startswith("vftsim.") else None


def _begin_worker(parent: int, parent_thread_stays: bool, collecting: tuple[int, int, int], hook: Any) -> None:
    """Leave interruptions to the coordinating process, collect garbage and warn as it does, and end with it."""
    gc.set_threshold(*collecting)
    if hook is not None:
        warnings.showwarning = hook
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if parent_thread_stays and sys.platform == "linux":
        _end_with_parent()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _end_with_parent() -> None:
    """Ask Linux to kill this process when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _watch(parent: int) -> None:
    """End when the parent is gone: what other systems have, and for a parent that ended before Linux was asked."""
    while os.getppid() == parent:
        time.sleep(_BETWEEN_LOOKS_S)
    os._exit(1)


def _numbered(function: Callable[[Any], Any], index: int, task: Any) -> tuple[int, Any]:
    return index, applied(function, task)
