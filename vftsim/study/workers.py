"""Running many independent simulations on several cores, without the number of cores mattering.

Each task is a pure function of its arguments, and results are put in the order of the tasks, so any
number of workers gives the same answer.  A result is handed over as soon as it arrives: what is done
survives an interruption.  Ctrl-C ends the work under way at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from vftsim.errors import UsageError, WorkerLostError

T = TypeVar("T")
R = TypeVar("R")

MOST_JOBS = 1024


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C before there was anything to keep."""


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return int(joblib.cpu_count())


def checked_jobs(jobs: int | None) -> int:
    """Return the number of worker processes asked for, all cores if none was.

    Raises
    ------
    UsageError
        It is out of range.
    """
    if jobs is None:
        return available_cores()
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(f"jobs: from 1 to {MOST_JOBS} worker processes, got {jobs}")
    return jobs


class Workers(Generic[T, R]):
    """Applies a function to tasks, in this process or in several.

    Parameters
    ----------
    function : callable
        A module's function or a picklable object.
    jobs : int
        Processes; 1 works in this one.
    """

    def __init__(self, function: Callable[[T], R], jobs: int) -> None:
        self.function = function
        self.jobs = jobs

    def as_they_come(self, tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Yield (index of the task, result) as results arrive; Ctrl-C ends the workers and is passed on."""
        if self.jobs == 1 or len(tasks) == 1:
            for index, task in enumerate(tasks):
                yield index, self.function(task)
            return
        try:
            yield from self._parallel(tasks)
        except TerminatedWorkerError:
            stop_workers()
            raise WorkerLostError(
                "a worker process was killed from outside, perhaps for want of memory; fewer --jobs need less, and "
                "where a command has --resume it goes on from what had finished"
            ) from None
        except BaseException:
            # Also when whoever takes the results gives up: nobody wants the rest.
            stop_workers()
            raise

    def in_order(self, tasks: Sequence[T]) -> list[R]:
        """Return the results in the order of the tasks."""
        return [result for _, result in sorted(self.as_they_come(tasks), key=lambda pair: pair[0])]

    def _parallel(self, tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        # Workers stay when idle: a capacity search comes back for the next level at once.
        pool = joblib.Parallel(
            n_jobs=self.jobs, backend="loky", batch_size=1, return_as="generator_unordered", mmap_mode=None,
            max_nbytes=None, initializer=_ignore_interrupts,
        )  # fmt: skip
        yield from pool(joblib.delayed(_numbered)(self.function, i, task) for i, task in enumerate(tasks))


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Let what is inside happen whole: a Ctrl-C during it takes effect at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def note(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        pressed = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def stop_workers() -> None:
    """End all worker processes, whatever they are doing."""
    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _ignore_interrupts() -> None:
    """Ctrl-C goes to every process of the terminal; only the coordinating one acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _numbered(function: Callable[[Any], Any], index: int, task: Any) -> tuple[int, Any]:
    return index, function(task)
