"""Execution of a study: made once by the caller, passed down unchanged, read by every design.

*Shares* of a study are for batch systems without a scheduler of ours: each is computed into its own directory.  Which
share a task belongs to follows from its place in the whole study, whatever is done already: shards of one command share
nothing and miss nothing, and each goes on where it was ended.

*Replications* of one or several models are under common random numbers.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar

from vftsim._version import __version__
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord as Record
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.files import codec
from vftsim.sampling import STREAM_SCHEME
from vftsim.study.runs.estimate import share_by, worthwhile_jobs
from vftsim.study.runs.model import Model
from vftsim.study.runs.progress import Progress, Silent
from vftsim.study.runs.workers import Workers, checked_jobs, deferred_interrupts, is_here
from vftsim.study.store.opened import BIT_GENERATOR, about, environment, git_state, identity, identity_of, utc_now
from vftsim.study.store.store import RunCache, Store, together

T = TypeVar("T")
R = TypeVar("R")

DEFAULT_SEED = 1
MOST_REPLICATIONS = 100_000


MOST_SHARDS = 100_000


@dataclass(frozen=True, slots=True)
class Shard:
    """Share ``number``, from 1, of ``of``."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Return the shard that ``i/n`` names, the whole study for None; refuse anything else."""
        if text is None:
            return cls()
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST_SHARDS):
            raise UsageError(f"--shard: '{text}' is not i/n with i from 1 to n, e.g. 1/4, 2/4, 3/4 and 4/4")
        return cls(int(number), int(of))

    def has(self, index: int) -> bool:
        """Whether the task at a place of the whole study is one of this share."""
        return index % self.of == self.number - 1

    def refuse_idle(self, interrupted: bool) -> None:
        """Refuse a share that has no task at all, if that is why nothing was done."""
        if self.of > 1 and not interrupted:
            raise UsageError(f"--shard: share {self} has nothing to do; there are fewer runs than shares")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard()


@dataclass(frozen=True)
class Execution:
    """Settings of an execution; none but the seed influences results."""

    seed: int = DEFAULT_SEED
    jobs: int | None = None
    """Worker processes; by default all cores."""
    progress: Progress = field(default_factory=Silent)
    store: Store | None = None
    """Cache of finished runs."""
    shard: Shard = WHOLE
    """The share of the runs that is to be done."""
    asked: tuple[str, ...] = ()
    """Digests of the models that the study is asked about, for its manifest."""
    started_utc: str = field(default_factory=utc_now)
    """When the study began, for its manifest."""

    @cached_property
    def worker_count(self) -> int:
        """The number of worker processes; refused out of range."""
        return checked_jobs(self.jobs)

    def check(self, replications: int = 1) -> None:
        if not 1 <= replications <= MOST_REPLICATIONS:
            raise UsageError(f"replications: from 1 to {MOST_REPLICATIONS}, got {replications}")
        if not 0 <= self.seed < 2**128:
            raise UsageError(f"the seed must be from 0 to 2**128 - 1, got {self.seed}")
        self.worker_count  # noqa: B018 - refuses what is out of range

    def workers(self, function: Callable[[T], R], jobs: int | None = None, *, is_counted: bool = True) -> Workers[T, R]:
        """Return the workers that apply a function to tasks; each result is a unit of progress, if ``is_counted``."""
        on_result = self.progress.advance if is_counted else None
        return Workers(function, jobs or self.worker_count, self.progress.say, on_result)

    def cache(self, model: Model, kind: Any = None, **determinants: Any) -> RunCache:
        """Return the cache of a model's results of one kind, and of all else that determines them."""
        return RunCache(self.store, {**identity(model, self.seed), **determinants}, *(codec(kind) if kind else ()))

    def play(
        self, function: Callable[[T], R], caches: Sequence[RunCache], tasks: Sequence[Mapping[int, T]], jobs: int = 0
    ) -> list[list[R]]:
        """Return the results of the tasks of several studies, done in one go; those in the store are not done again."""
        missing = (len(each) - cache.count_stored(each) for cache, each in zip(caches, tasks, strict=True))
        self.progress.total(sum(missing))
        return together(caches, self.workers(function, jobs), tasks)

    def manifest(
        self,
        models: Sequence[Model],
        command: str,
        replications: int | Sequence[int],
        *,
        wanted: int | None = None,
        interrupted: bool = False,
    ) -> dict[str, Any]:
        """Return the manifest of a result of a kind of study: run, capacity, compare.

        ``replications`` are how many the result holds, or which; ``wanted``, if not those, how many were asked for, and
        ``interrupted`` whether it ended before that.
        """
        held = range(replications) if isinstance(replications, int) else replications
        return {
            "vftsim": __version__,
            "git": git_state(),
            "command": command,
            "command_line": [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else [],
            "models": [about(model) for model in models],
            "asked": list(self.asked),
            "seed": self.seed,
            "stream_scheme": STREAM_SCHEME,
            "bit_generator": BIT_GENERATOR,
            "replications_wanted": len(held) if wanted is None else wanted,
            "replications": list(held),
            **environment(),
            "workers": self.worker_count,
            "started_utc": self.started_utc,
            "ended_utc": utc_now(),
            "state": "interrupted" if interrupted else "finished",
        }


DEFAULT_REPLICATIONS = 10
QUICK_SHARE = 4
_FIRST_PART_NS = 1_000_000
_SHORT_S, _LONG_S = 0.1, 0.4
"""Real time between two looks at a replication under way; without influence on its result."""
OnTime = Callable[[int], int]
"""Called with an instant of a run; returns after how much simulated time it is to be called again."""


@dataclass(frozen=True, slots=True)
class Task:
    """One replication to be run, with all that determines it."""

    spec: ModelSpec
    seed: int
    replication: int


def _simulate(task: Task, on_time: OnTime | None = None) -> Record:
    return run_model(task.spec, task.seed, task.replication, on_time=on_time)


def simulated(simulate: Callable[..., R], tasks: Sequence[Task], execution: Execution) -> Iterator[tuple[int, R]]:
    """Yield (index of the task, what its run gave) as they arrive.

    ``simulate`` takes a task; in this process also an :data:`OnTime`, by which is shown how far the run is.
    """
    execution.progress.total(len(tasks))
    jobs = worthwhile_jobs(execution.worker_count, (task.spec for task in tasks))
    shown = partial(_in_parts, execution.progress, simulate)
    function = shown if is_here(jobs, len(tasks)) else simulate
    return execution.workers(function, jobs, is_counted=False).unordered(tasks)


def _in_parts(progress: Progress, simulate: Callable[..., R], task: Task) -> R:
    share = share_by(task.spec)
    part_ns, last_s = _FIRST_PART_NS, time.monotonic()

    def on_time(now_ns: int) -> int:
        nonlocal part_ns, last_s
        passed_s, last_s = time.monotonic() - last_s, time.monotonic()
        if passed_s < _SHORT_S:
            part_ns *= 2
        elif passed_s > _LONG_S:
            part_ns = max(part_ns // 2, 1)
        progress.part(min(share(now_ns), 0.99))
        return part_ns

    return simulate(task, on_time)


def fewer_crashes(model: Model, crashes: int | None, default: int, quick: bool) -> tuple[Model, int]:
    """Return how many crashes a study makes, and the model that says so where they are fewer than usual."""
    if crashes is not None or not quick:
        return model, default if crashes is None else crashes
    count = max(default // QUICK_SHARE, 2)
    note = f"{count} crashes instead of {default}; about {100 - 100 * count // default} % of the work saved"
    return replace(model, notes=(*model.notes, note)), count


@dataclass
class Replications:
    """Replications of models, each the same traffic for all of them; equal models share theirs."""

    models: Sequence[Model]
    execution: Execution
    by_digest: dict[str, dict[int, Record]] = field(default_factory=dict)
    """Records by the digest of their model, and by number; those that the caller has already need no store."""
    interrupted: bool = False
    """Whether the user ended the study before all were done."""

    @cached_property
    def _digests(self) -> list[str]:
        return [model.digest() for model in self.models]

    @property
    def records(self) -> list[dict[int, Record]]:
        """The records of each model, by number."""
        return [self.by_digest.setdefault(digest, {}) for digest in self._digests]

    @property
    def common(self) -> list[int]:
        """The numbers that all models have."""
        return sorted(set.intersection(*map(set, self.records)))

    def run(self, count: int) -> bool:
        """Run what is missing of replications 0 ... count-1 of the seed; tell whether that went to its end."""
        execution, seed = self.execution, self.execution.seed
        execution.check(count)
        specs = dict(zip(self._digests, (model.spec for model in self.models), strict=True))
        of_runs = partial(RunCache, execution.store, encode=Record.to_dict, decode=Record.from_dict)
        caches = {digest: of_runs(identity_of(digest, seed)) for digest in specs}
        of_model = dict(zip(self._digests, self.records, strict=True))
        for digest, records in of_model.items():
            stored = caches[digest].known()
            records.update({n: record for n, record in stored.items() if n < count and n not in records})
        # Replication by replication: an interrupted comparison has complete pairs.
        missing = [
            (digest, n)
            for n in range(count)
            for number, digest in enumerate(specs)
            if n not in of_model[digest] and execution.shard.has(n * len(specs) + number)
        ]
        tasks = [Task(specs[digest], seed, n) for digest, n in missing]
        try:
            for index, record in simulated(_simulate, tasks, execution):
                digest, n = missing[index]
                with deferred_interrupts():
                    caches[digest].keep(n, record)
                    of_model[digest][n] = record
                execution.progress.advance()
        except KeyboardInterrupt:
            self.interrupted = True
        return not self.interrupted
