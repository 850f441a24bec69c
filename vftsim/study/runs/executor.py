"""What the tasks of a study are done by: the cluster that this process uses, if there is one.

A study hands over a function and its tasks and takes results as they come; it never knows where they were made.
Here is what a cluster has to offer; this process and local ones are in :mod:`.workers`, a Dask cluster in
:mod:`.cluster`.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Notify = Callable[[str], None]


def silent(_: str) -> None:
    """Notify nobody."""


class Executor(Protocol):
    """Applies a function to tasks, somewhere; where does not matter to the results."""

    def count(self) -> int:
        """Return how many tasks it works on at once, by what is known now."""
        ...

    def map_unordered(
        self, function: Callable[[T], R], tasks: Sequence[T], notify: Notify = silent
    ) -> Iterator[tuple[int, R]]:
        """Yield (index of the task, result), each once, as results arrive; whoever stops taking them ends the rest.

        Parameters
        ----------
        function : callable
            A module's function or a picklable object.
        notify : callable
            Told in words when workers are lost, refused or replaced.

        Raises
        ------
        WorkerLostError
            Workers are lost again and again, or whoever leads them is, or there is not enough memory.
        """
        ...


def applied(function: Callable[[Any], Any], task: Any) -> Any:
    """Return a task's result, and leave none of its memory behind."""
    result = function(task)
    gc.collect(0)  # a run that is over holds megabytes in a circle, and few objects for Python to look for it
    return result


_clusters: list[Executor] = []


def the_cluster() -> Executor | None:
    """Return the cluster that the studies of this process use; None: this machine."""
    return _clusters[-1] if _clusters else None


@contextmanager
def using(cluster: Executor) -> Iterator[Executor]:
    """Let the studies inside run on a cluster."""
    _clusters.append(cluster)
    try:
        yield cluster
    finally:
        _clusters.remove(cluster)
