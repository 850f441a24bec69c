"""Capacity as the laboratory measures it: raise the load step by step until a step fails.

The design objective capacity (DOC) of one run is the integer part of the effective load of the last
step before the first one in which any scenario, or all together, has more inadequately handled attempts
than the limit.  The lab makes one such run; here it is made with many seeds, so that the result is a
distribution: a mean with its interval, and how often which step was the end.

The run itself stops on what the manager knows when a step ends (:mod:`vftsim.sip.benchmark`); the DOC is
taken from the final figures of each step.  A run that reaches the most steps its model allows without
failing gives a lower bound only, and is counted as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vftsim.errors import UsageError
from vftsim.sip.metrics import PhaseRecord
from vftsim.sip.system import SipLabSpec
from vftsim.stats import Estimate, binomial_interval, ramp_capacity
from vftsim.study.model import Model
from vftsim.study.sip_records import steps_of
from vftsim.study.sip_summary import estimate_columns
from vftsim.study.sip_tables import passed


@dataclass(frozen=True, slots=True)
class RampRun:
    """What the ramp of one replication says.

    Parameters
    ----------
    replication : int
    doc_saps : int
        Design objective capacity; 0 when the first step failed.
    stop_step : int
        Number of the first step over the limit; 0 when none was.
    stop_saps : float
        Load that step asked for; that of the last step when none failed.
    """

    replication: int
    doc_saps: int
    stop_step: int
    stop_saps: float


def ramp_run(replication: int, record: Sequence[PhaseRecord], most: int, limit_percent: float) -> RampRun:
    """Return what one ramp says, from its final figures.

    Parameters
    ----------
    replication : int
    record : sequence of PhaseRecord
    most : int
        Steps the model allows; a run with fewer was stopped by its manager.
    limit_percent : float
        Allowed share of inadequately handled attempts.
    """
    steps = steps_of(list(record))
    failed = next((k for k, step in enumerate(steps) if not passed(step, limit_percent)), None)
    if failed is None and len(steps) < most:
        failed = len(steps) - 1
    last_good = (len(steps) if failed is None else failed) - 1
    doc = int(steps[last_good].effective_saps) if last_good >= 0 else 0
    end = steps[-1] if failed is None else steps[failed]
    return RampRun(replication, doc, 0 if failed is None else end.index, end.requested_saps)


@dataclass(frozen=True)
class RampCapacity:
    """The ramp's capacity over replications.

    Parameters
    ----------
    model : Model
    runs : tuple of RampRun
        In the order of the replications.
    step_saps : float
        Height of a load step.
    limit_percent : float
        The IHS limit applied.
    confidence : float
    """

    model: Model
    runs: tuple[RampRun, ...]
    step_saps: float
    limit_percent: float
    confidence: float = 0.95

    @property
    def docs(self) -> list[float]:
        """DOC of each replication."""
        return [float(run.doc_saps) for run in self.runs]

    @property
    def estimate(self) -> Estimate:
        """Mean DOC; its interval is never narrower than half a load step on either side."""
        return ramp_capacity(self.docs, self.step_saps, self.confidence)

    @property
    def unfailed(self) -> int:
        """Runs whose ramp ended before any step failed: their DOC is a lower bound."""
        return sum(run.stop_step == 0 for run in self.runs)

    def stop_steps(self) -> pd.DataFrame:
        """Return how often which step was the first over the limit, with binomial intervals."""
        counts = Counter((run.stop_step, run.stop_saps) for run in self.runs)
        return pd.DataFrame([
            {
                "stop_step": step, "requested_saps": saps, "runs": count,
                **estimate_columns(binomial_interval(count, len(self.runs), self.confidence)),
            }
            for (step, saps), count in sorted(counts.items())
        ])  # fmt: skip

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a replication."""
        return pd.DataFrame([
            {
                "model": self.model.label, "replication": run.replication, "doc_saps": run.doc_saps,
                "stop_step": run.stop_step, "stop_requested_saps": run.stop_saps,
            }
            for run in self.runs
        ])  # fmt: skip


def ramp_capacity_of(
    model: Model, records: Sequence[tuple[int, Any]], ihs_limit_percent: float | None = None, confidence: float = 0.95
) -> RampCapacity:
    """Return the ramp's capacity from finished replications.

    Parameters
    ----------
    model : Model
        A SIP lab.
    records : sequence of (int, record)
    ihs_limit_percent : float, optional
        By default the model's stop rule.
    confidence : float
    """
    steps = sip_spec(model).workload.steps
    limit = steps.stop_above_ihs if ihs_limit_percent is None else ihs_limit_percent
    if limit > steps.stop_above_ihs:
        raise UsageError(
            f"the ramp stops above {steps.stop_above_ihs:g} % IHS, so a limit of {limit:g} % cannot be judged; "
            "raise the stop rule with it: --set 'workload.steps.stop_above_ihs=... %'"
        )
    runs = tuple(ramp_run(number, record, steps.most, limit) for number, record in records)
    return RampCapacity(model, runs, steps.increment, limit, confidence)


def sip_spec(model: Model) -> SipLabSpec:
    """Return the spec of a SIP lab; other systems have no SAPS."""
    if not isinstance(model.spec, SipLabSpec):
        raise UsageError(f"'{model.label}' is a {model.kind}; capacity in SAPS is that of a sip_lab")
    return model.spec
