"""A Dask cluster as an executor: its scheduler finds workers and carries data, this process leads the study.

* **What travels.** A function by its name (or an object of ours) and a task, both pickled here by Python's pickle,
  which holds no code; results come back in the same way.  Dask itself unpickles what its peers
  send: a cluster is trusted.
* **One task at a time in each worker process**, another one waits there.  Each is sent to a worker by name, so
  what a lost worker was at is known here, and goes to another one: nothing else is computed again.
* **Who may join.** A worker's versions are compared before it gets a task
  (:func:`vftsim.study.runs.versions.versions`).
"""

import asyncio
import json
import logging
import os
import pickle
import queue
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as TooLateError
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from vftsim.errors import UsageError, WorkerLostError
from vftsim.kernel.choose import VARIABLE
from vftsim.spec.suggest import counted
from vftsim.study.runs.versions import different, installed_engine, versions
from vftsim.study.runs.workers import Notify, applied, clusters, silent

try:
    import distributed
except ImportError:
    raise UsageError("--cluster needs Dask: pip install 'vftsim[cluster]'") from None

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2
"""Tasks that a worker process has: one under way, one that waits, so that it is never idle for a round trip."""
_MOST_LOSSES = 5
_LOOK_S, _GATHER_S, _CONNECT_S = 0.5, 10.0, 20.0

_alone = threading.Lock()
logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it would say of lost peers is said here


def worker_versions(engine: str) -> tuple[str, dict[str, str]]:
    """Return the host of a worker and its versions; runs there."""
    return socket.gethostname(), versions(engine)


def call(function: bytes, task: bytes, engine: str) -> bytes:
    """Return the pickled result of a pickled task; runs in a worker, one at a time however many threads it has."""
    with _alone:
        os.environ[VARIABLE] = engine
        return pickle.dumps(applied(_loaded(function), pickle.loads(task)), pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)
def _loaded(function: bytes) -> Callable[[Any], Any]:
    loaded: Callable[[Any], Any] = pickle.loads(function)
    return loaded


class Cluster:
    """The workers of a Dask scheduler, those that may take part.

    The address is that of the scheduler, or the path of a scheduler file; ``notify`` is told of workers that are
    refused.  Where nobody answers, or no worker may take part, it is refused.
    """

    def __init__(self, address: str, notify: Notify = silent) -> None:
        self.address = address
        self._client = _connected(address)
        self._engine = installed_engine()
        self._expected = versions(self._engine)
        self._admitted: set[str] = set()
        self._refused: dict[str, str] = {}
        self._looked_s = 0.0
        self._running: dict[Any, tuple[int, str]] = {}
        try:
            self._admit_workers(notify)
            if self._refused and not self._admitted:
                raise UsageError(f"no worker of '{address}' can be used: {next(iter(self._refused.values()))}")
        except BaseException:
            self.close()
            raise

    def count(self) -> int:
        """Return how many worker processes may take part now, at least one."""
        return max(1, len(self._admitted))

    def close(self) -> None:
        """Leave the cluster, which goes on without this process."""
        self.stop()
        with suppress(Exception):
            self._client.close(timeout=5)

    def stop(self) -> None:
        """Take back what has not begun; what a worker is at runs to its end there, and nobody wants it."""
        futures, self._running = list(self._running), {}
        with suppress(Exception):
            self._client.cancel(futures, force=True)

    def map_unordered(
        self, function: Callable[[T], R], tasks: Sequence[T], notify: Notify = silent
    ) -> Iterator[tuple[int, R]]:
        """Yield (index of the task, result), each once, as results arrive; whoever stops taking them ends the rest.

        WorkerLostError: the scheduler is gone, or a task loses every worker that it is given to.
        """
        packed = pickle.dumps(function, pickle.HIGHEST_PROTOCOL)
        left, losses = deque(range(len(tasks))), Counter[int]()
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._admit_workers(notify)
        try:
            while left or self._running:
                self._assign(packed, tasks, left, losses, arrived)
                finished = self._arrivals(arrived)
                yield from self._results_of(finished, arrived)
                if not finished or time.monotonic() - self._looked_s > _LOOK_S:
                    self._admit_workers(notify)
                    self._reassign_lost(left, losses, notify)
        except (OSError, TimeoutError, CancelledError, asyncio.CancelledError):
            raise WorkerLostError(self._scheduler_lost()) from None
        finally:
            self.stop()

    def _assign(
        self,
        function: bytes,
        tasks: Sequence[Any],
        left: deque[int],
        losses: Counter[int],
        arrived: queue.SimpleQueue[Any],
    ) -> None:
        """Give every worker what it has room for, in the order of the tasks; alone what a worker was lost at before.

        Beside a task that kills, another would lose its result with the worker each time, and be blamed for it.
        """
        has = Counter(worker for _, worker in self._running.values())
        suspected = {worker for index, worker in self._running.values() if losses[index]}
        for worker in [w for turn in range(_AHEAD) for w in sorted(self._admitted) if has[w] <= turn]:
            if not left:
                return
            is_suspect = losses[left[0]] > 0
            if worker in suspected or (is_suspect and has[worker]):
                continue
            index = left.popleft()
            has[worker] += 1
            if is_suspect:
                suspected.add(worker)
            task = pickle.dumps(tasks[index], pickle.HIGHEST_PROTOCOL)
            future = self._client.submit(call, function, task, self._engine, workers=[worker], pure=False)
            self._running[future] = index, worker
            future.add_done_callback(arrived.put)

    def _arrivals(self, arrived: queue.SimpleQueue[Any]) -> list[Any]:
        """Wait a little for what is done, and return all of it."""
        futures = []
        with suppress(queue.Empty):
            futures.append(arrived.get(timeout=_LOOK_S))
            while True:
                futures.append(arrived.get_nowait())
        return [future for future in dict.fromkeys(futures) if future in self._running]

    def _results_of(self, futures: list[Any], arrived: queue.SimpleQueue[Any]) -> Iterator[tuple[int, Any]]:
        """Yield what tasks gave; what was lost on the way, with its worker perhaps, is left to the next look."""
        for future in futures:
            if future.status == "error":
                self._raise(future)
        done = [future for future in futures if future.status == "finished"]
        getting = asyncio.run_coroutine_threadsafe(
            self._client.gather(done, asynchronous=True), self._client.loop.asyncio_loop
        )
        try:
            results = self._waited_for(getting, {self._running[future][1] for future in done})
        except (TooLateError, CancelledError, distributed.scheduler.KilledWorker):
            getting.cancel()
            for future in done:
                arrived.put(future)
            return
        for future, result in zip(done, results, strict=True):
            index, _ = self._running.pop(future)
            future.release()
            yield index, pickle.loads(result)

    def _waited_for(self, getting: Future[list[bytes]], workers: set[str]) -> list[bytes]:
        """Return what workers have; not waited for where one of them, or the scheduler, is gone meanwhile."""
        for _ in range(round(_GATHER_S / _LOOK_S)):
            with suppress(TooLateError):
                return getting.result(_LOOK_S)
            self._see_scheduler()
            if not workers <= set(self._client.nthreads()):
                break
        raise TooLateError

    def _raise(self, future: Any) -> None:
        """Pass on what went wrong in a task, unless it is that its worker was killed."""
        error = future.exception(timeout=_GATHER_S)
        if isinstance(error, distributed.scheduler.KilledWorker):
            return
        if isinstance(error, MemoryError):
            raise WorkerLostError("a worker of the cluster has not enough memory for a run") from None
        raise error

    def _admit_workers(self, notify: Notify) -> None:
        """See which workers there are, and let in who has come with the right versions."""
        self._looked_s = time.monotonic()
        self._see_scheduler()
        workers = set(self._client.nthreads())
        new = workers - self._admitted - self._refused.keys()
        self._admitted &= workers
        if not new:
            return
        answers = self._client.run(worker_versions, self._engine, workers=sorted(new), on_error="return")
        for worker, answer in answers.items():
            why = ""
            if isinstance(answer, OSError):
                continue  # it has gone again, or is asked at the next look
            if isinstance(answer, BaseException):
                why = f"worker {worker} cannot run vftsim: {type(answer).__name__}: {answer}"
            elif wrong := different(self._expected, answer[1]):
                why = f"worker {worker} on {answer[0]} has other versions ({wrong})"
            if not why:
                self._admitted.add(worker)
                continue
            self._refused[worker] = why
            notify(f"{why}; it gets nothing to do")

    def _reassign_lost(self, left: deque[int], losses: Counter[int], notify: Notify) -> None:
        """Give what lost workers had to others, last: what kills its worker must not delay the rest."""
        lost = {
            future: (index, worker)
            for future, (index, worker) in self._running.items()
            if worker not in self._admitted or future.status in {"lost", "cancelled"}
        }
        first = set[str]()
        for future, (index, worker) in lost.items():
            del self._running[future]
            left.append(index)
            if worker not in first:  # the one that was under way
                losses[index] += 1
                if losses[index] == _MOST_LOSSES:
                    raise WorkerLostError(
                        f"{_MOST_LOSSES} workers of the cluster were lost at the same task, perhaps for want of "
                        "memory; where a command keeps what has finished, the same command goes on from it"
                    )
            first.add(worker)
        if lost:
            self._client.cancel(list(lost), force=True)
            notify(f"lost {counted(len(first), 'worker')} of the cluster; {len(self._admitted)} left")

    def _see_scheduler(self) -> None:
        if self._client.status != "running":
            raise WorkerLostError(self._scheduler_lost())

    def _scheduler_lost(self) -> str:
        return (
            f"the scheduler '{self.address}' is gone; what has arrived is kept where a command keeps it, and with a "
            "scheduler again the same command goes on"
        )


class _Client(distributed.Client):
    """A client that does not wait for ever where a port is open and does not speak as a scheduler."""

    def start(self, **kwargs: Any) -> None:
        """Connect, in the time that this takes and as much again for the greeting."""
        base: Any = super()
        base.start(**kwargs, callback_timeout=2 * _CONNECT_S)


def _connected(address: str) -> Any:
    is_file, client = address.endswith(".json") or Path(address).is_file(), cast("Any", _Client)
    scheduler = _address_in(address) if is_file else address
    try:
        return client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        why = str(error).partition("\n")[0] or "it does not speak as one"
        raise UsageError(
            f"--cluster: no Dask scheduler answers at '{address}' ({why}); it is an address such as tcp://host:8786, "
            "or the path of a scheduler file"
        ) from None


def _address_in(file: str) -> str:
    """Return the scheduler's address of its file; refuse another file."""
    if not Path(file).is_file():
        raise UsageError(f"--cluster: there is no scheduler file '{file}'")
    try:
        return str(json.loads(Path(file).read_bytes())["address"] or "")
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"--cluster: '{file}' is no scheduler file: it has no address; 'dask scheduler --scheduler-file' writes one"
        ) from None


@contextmanager
def on_cluster(address: str, notify: Notify = silent) -> Iterator[Cluster]:
    """Let the studies inside run on a Dask cluster, and tell ``notify`` of workers that cannot be used.

    The address is that of its scheduler (``tcp://host:8786``), or the path of a scheduler file.  A scheduler that
    cannot be reached is refused, one none of whose workers can be used, and any if ``distributed`` is not installed.
    """
    cluster = Cluster(address, notify)
    clusters.append(cluster)
    try:
        yield cluster
    finally:
        clusters.remove(cluster)
        cluster.close()
