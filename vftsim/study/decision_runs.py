"""What is played for a decision: runs of models, crashes of them, and a mechanism's figures put together of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vftsim.errors import UsageError
from vftsim.study.availability import DEFAULT_RESTART_S, rate_of, year_of
from vftsim.study.decision_figures import Protected, address_in, computed
from vftsim.study.failover import FailoverStudy, crashes_of_each
from vftsim.study.figures.summary import Summary
from vftsim.study.model import Model
from vftsim.study.objective import Objective
from vftsim.study.progress import Progress
from vftsim.study.ramp import ramp_capacity_of
from vftsim.study.replicate import Replications, replicate
from vftsim.study.results import CONFIDENCE
from vftsim.study.store import Store

DEFAULT_MTBF_S = 365 * 86_400.0


@dataclass(frozen=True)
class Asked:
    """The question.

    Parameters
    ----------
    objectives : tuple of Objective
        What a mechanism has to achieve, all of them.
    mtbf_s : float
        Mean time between failures of a host.
    restart_s : float
        How long it takes somebody to bring back by hand what does not come back by itself.
    bands : bool
        Whether each price is also played at both ends of its range, once.
    crossovers : tuple of str
        Settings over which the order of mechanisms is sought, as :func:`~.shared_knobs.shared_knobs` reads them.
    """

    objectives: tuple[Objective, ...] = ()
    mtbf_s: float = DEFAULT_MTBF_S
    restart_s: float = DEFAULT_RESTART_S
    bands: bool = True
    crossovers: tuple[str, ...] = ()


SOON_NS = 8_000_000_000
"""Above the longest detection and takeover that prices make, a restart aside."""


@dataclass(frozen=True)
class Playing:
    """How models are played, and what for.

    Parameters
    ----------
    domain : str
        The protected one, as records name it.
    asked : Asked
    seed, jobs : int
    progress : Progress, optional
    store : Store, optional
    """

    domain: str
    asked: Asked
    seed: int
    jobs: int
    progress: Progress | None = None
    store: Store | None = None

    def runs(self, models: Sequence[Model], replications: int) -> list[Replications]:
        """Return replications of every model."""
        return replicate(models, replications, self.seed, self.jobs, progress=self.progress, store=self.store)

    def crashes(self, models: Sequence[Model], count: int, after_ns: int | None = None) -> list[FailoverStudy]:
        """Return crashes of every model's host."""
        return crashes_of_each(
            models, count, self.seed, self.jobs, after_ns=after_ns, progress=self.progress, store=self.store
        )

    def of_runs(
        self, played: Sequence[Replications], numbers: Sequence[int], unprotected: Replications | None
    ) -> list[Protected]:
        """Return the figures of replications, beside those without protection, which are one of those played."""
        records = [[(number, each.records[number]) for number in numbers] for each in played]
        summaries = [Summary(each.model.label, own, CONFIDENCE) for each, own in zip(played, records, strict=True)]
        beside = next((own for each, own in zip(played, summaries, strict=True) if each is unprotected), None)
        found = []
        for each, summary, own in zip(played, summaries, records, strict=True):
            for one in self.asked.objectives:
                address_in(summary, one.figure)  # a percentile that nobody has listed comes to be
            capacity = ramp_capacity_of(each.model, own) if each.model.spec.ramp is not None else None
            of_both = computed(each.model, self.domain, summary, beside)
            found.append(Protected(each.model, self.domain, summary, of_both, capacity))
        return found

    def with_failovers(self, each: Protected, study: FailoverStudy) -> Protected:
        """Return a mechanism with what its crashes show; without a year if one ended before the guest was back."""
        try:
            rate = rate_of(each.model)
            year = year_of(study, study.mechanism, self.asked.mtbf_s, self.asked.restart_s, rate)
        except UsageError:
            year = None
        return replace(each, failovers=study, year=year)
