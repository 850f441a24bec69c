"""Where a ramp ended, and the capacity it gives.

Rule (ETSI TS 186 008, and the lab's report): the design objective capacity (DOC) is the effective load of
the last step that passed, and the report prints its integer part: 139, 100 and 34 for 139.75, 100.44 and
34.84.  Here ``doc_saps`` is that integer and ``effective_saps`` the load before truncation.

A step passes or fails by what its manager knows when it ends (:meth:`PhaseRecord.passes`), not by its final
figures, which also hold what befell its attempts during the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.workloads.ims_bench.metrics import PhaseRecord


@dataclass(frozen=True, slots=True)
class RampEnd:
    """What one ramp says.

    Parameters
    ----------
    stop_step : int
        Number of the first step over the limit; 0 when none was, and the capacity is a lower bound.
    stop_saps : float
        Load that step asked for; that of the last step when none failed.
    effective_saps : float
        Effective load of the last step that passed; 0 when the first step failed.
    """

    stop_step: int
    stop_saps: float
    effective_saps: float

    @property
    def doc_saps(self) -> int:
        """Design objective capacity."""
        return int(self.effective_saps)


def ramp_end(phases: Sequence[PhaseRecord], limit_percent: float) -> RampEnd:
    """Return where a ramp ended under a limit on the share of inadequately handled attempts.

    Parameters
    ----------
    phases : sequence of PhaseRecord
        One run, at least one step in it.
    limit_percent : float
        At most the model's own stop rule: a run that has stopped says nothing beyond.
    """
    effective_saps = 0.0
    steps = [phase for phase in phases if phase.index > 0]
    for step in steps:
        if not step.passes(limit_percent):
            return RampEnd(step.index, step.requested_saps, effective_saps)
        effective_saps = step.effective
    return RampEnd(0, steps[-1].requested_saps, effective_saps)
