"""What the tasks of a study are done by: the cluster that this process uses, if there is one.

A study hands over a function and its tasks and takes results as they come; it never knows where they were made: this
process and local ones are in :mod:`.workers`, a Dask cluster in :mod:`.cluster`.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

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
