"""Workloads that play a ramp: steps of constant load, each above the one before, until one is too much.

Rule of its end (ETSI TS 186 008, and the lab's report): the design objective capacity (DOC) is the effective load of
the last step that passed, and the report prints its integer part: 139, 100 and 34 for 139.75, 100.44 and 34.84.  Here
``doc_saps`` is that integer and ``effective_saps`` the load before truncation.

A step passes or fails by what is known when it ends (:meth:`StepOutcome.passes`), not by its final figures, which also
hold what befell its attempts during the next step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar, Self

from vftsim.outcome import Outcome, attribute
from vftsim.workloads.parts import WorkloadSpec


class StepOutcome(Outcome):
    """What was measured in a phase of a ramp, and whether that is within its limit."""

    index: int = attribute()
    """Number of the step, from 1; 0: a phase that is no load step."""
    requested_saps: float = attribute()
    """Load that was asked for, a second."""
    limit_percent: float = attribute()
    """Of failed attempts, by which a step is judged."""
    sample_period_ns: int = attribute()
    """Between two samples of a series."""

    @property
    def carried(self) -> float:
        """Load that there was, a second."""
        raise NotImplementedError

    @property
    def worst_percent(self) -> float:
        """Share of failed attempts, of all or of the kind that has most of them, by the final figures."""
        raise NotImplementedError

    @property
    def failed(self) -> Mapping[str, int]:
        """Attempts that failed, by their kind."""
        raise NotImplementedError

    @property
    def repeated(self) -> int:
        """Messages that were sent again."""
        raise NotImplementedError

    @property
    def missing(self) -> int:
        """Attempts that were asked for and could not begin."""
        raise NotImplementedError

    def passes(self, limit_percent: float) -> bool:
        """Whether it is within a limit by what was known when it ended."""
        raise NotImplementedError

    def ended_within(self, limit_percent: float) -> bool:
        """Whether it is within a limit by its final figures: right where no step follows."""
        raise NotImplementedError

    @property
    def is_within(self) -> bool:
        """Whether it is within its own limit: a step by what is known when it ends, else by the final figures."""
        return self.passes(self.limit_percent) if self.index else self.ended_within(self.limit_percent)

    def samples(self, name: str) -> list[float]:
        """Return what was sampled of a declared series."""
        return list(self.declared[name].held(self))


class RampSpec(WorkloadSpec):
    """Base of workloads that play a ramp."""

    most_steps_key: ClassVar[str]
    limit_key: ClassVar[str]
    transient_key: ClassVar[str]
    """Parameters, as ``--set`` has them below the workload."""

    @property
    def first_load(self) -> float:
        """Load of the first step, a second."""
        return self.step_loads()[0]

    @property
    def highest_share(self) -> float:
        """The highest rate within a step as a share of its load."""
        return max((load.highest_share for load in self.load_profiles().values()), default=1.0)

    @property
    def limit_percent(self) -> float:
        """Share of failed attempts above which the ramp ends."""
        return float(attrgetter(self.limit_key)(self))

    @property
    def transient_ns(self) -> int:
        """First part of a step that is not counted."""
        return int(attrgetter(self.transient_key)(self))

    @property
    def sample_period_ns(self) -> int:
        """Between two samples of a series."""
        raise NotImplementedError

    def at_load(self, load: float) -> Self:
        """Return it with one step at a load, and nothing before it that takes its time."""
        raise NotImplementedError

    def with_times(self, transient_ns: int, measured_ns: int) -> Self:
        """Return it with other lengths of a step's parts."""
        raise NotImplementedError

    def first_window_ns(self) -> tuple[int, int]:
        """Return when the first step is measured, in the time of a run."""
        begin_ns = self.time_of("step 1", self.transient_ns) or 0
        return begin_ns, begin_ns + self.step_ns()


@dataclass(frozen=True, slots=True)
class RampEnd:
    """What one ramp says."""

    stop_step: int
    """Number of the first step over the limit; 0 when none was, and the capacity is a lower bound."""
    stop_saps: float
    """Load that step asked for; that of the last step when none failed."""
    effective_saps: float
    """Effective load of the last step that passed; 0 when the first step failed."""

    @property
    def doc_saps(self) -> int:
        """Design objective capacity."""
        return int(self.effective_saps)


def ramp_end(steps: Sequence[StepOutcome], limit_percent: float) -> RampEnd:
    """Return where a ramp ended under a limit on the share of failed attempts.

    There is at least one step; phases that are no load steps are left out.  The limit is at most the model's stop
    rule: a run that has stopped says nothing beyond.
    """
    effective_saps = 0.0
    steps = [step for step in steps if step.index > 0]
    for step in steps:
        if not step.passes(limit_percent):
            return RampEnd(step.index, step.requested_saps, effective_saps)
        effective_saps = step.carried
    return RampEnd(0, steps[-1].requested_saps, effective_saps)
