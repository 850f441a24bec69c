"""Execution of a study: made once by the caller, passed down unchanged, read by every design.

*Shares* of a study are for batch systems without a scheduler of ours: each is computed into its own directory.  Which
share a task belongs to follows from its place in the whole study, whatever is done already: shards of one command share
nothing and miss nothing, and each goes on where it was ended.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from vftsim._version import __version__
from vftsim.errors import UsageError
from vftsim.sampling import STREAM_SCHEME
from vftsim.study.runs.model import Model
from vftsim.study.runs.progress import Progress, Silent
from vftsim.study.runs.workers import Workers, checked_jobs
from vftsim.study.store.files import codec
from vftsim.study.store.manifest import BIT_GENERATOR, about, git_state, here, identity, utc_now
from vftsim.study.store.resumable import RunCache
from vftsim.study.store.store import Store

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

    def has(self, place: int) -> bool:
        """Whether the task at a place of the whole study is one of this share."""
        return place % self.of == self.number - 1

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
            "seed": self.seed,
            "stream_scheme": STREAM_SCHEME,
            "bit_generator": BIT_GENERATOR,
            "replications_wanted": len(held) if wanted is None else wanted,
            "replications": list(held),
            **here(),
            "workers": self.worker_count,
            "started_utc": self.started_utc,
            "ended_utc": utc_now(),
            "state": "interrupted" if interrupted else "finished",
        }
