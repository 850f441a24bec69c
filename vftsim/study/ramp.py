"""Capacity as the laboratory measures it: raise the load step by step until a step fails.

The lab makes one such run, whose end gives the design objective capacity (:mod:`vftsim.sip.ramp_end`);
here it is made with many seeds, so that the result is a distribution: a mean with its interval, and how
often which step was the end.  A run that reaches the most steps its model allows without failing gives a
lower bound only, and is counted as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vftsim.errors import UsageError
from vftsim.sip.ramp_end import RampEnd, ramp_end
from vftsim.sip.system import SipLabSpec
from vftsim.stats import Estimate, binomial_interval, ramp_capacity
from vftsim.study.model import Model
from vftsim.study.sip_summary import estimate_columns


@dataclass(frozen=True)
class RampCapacity:
    """The ramp's capacity over replications.

    Parameters
    ----------
    model : Model
    runs : tuple of (int, RampEnd)
        Replication and where its ramp ended, in the order of the replications.
    step_saps : float
        Height of a load step.
    limit_percent : float
        The IHS limit applied.
    confidence : float
    """

    model: Model
    runs: tuple[tuple[int, RampEnd], ...]
    step_saps: float
    limit_percent: float
    confidence: float = 0.95

    @property
    def docs(self) -> list[float]:
        """DOC of each replication."""
        return [float(end.doc_saps) for _, end in self.runs]

    @property
    def estimate(self) -> Estimate:
        """Mean DOC; its interval is never narrower than half a load step on either side."""
        return ramp_capacity(self.docs, self.step_saps, self.confidence)

    @property
    def unfailed(self) -> int:
        """Runs whose ramp ended before any step failed: their DOC is a lower bound."""
        return sum(end.stop_step == 0 for _, end in self.runs)

    def stop_steps(self) -> pd.DataFrame:
        """Return how often which step was the first over the limit, with binomial intervals."""
        counts = Counter((end.stop_step, end.stop_saps) for _, end in self.runs)
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
                "model": self.model.label, "replication": replication, "doc_saps": end.doc_saps,
                "effective_saps": end.effective_saps, "stop_step": end.stop_step, "stop_requested_saps": end.stop_saps,
            }
            for replication, end in self.runs
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
    runs = tuple((number, ramp_end(record, limit)) for number, record in records)
    return RampCapacity(model, runs, steps.increment, limit, confidence)


def sip_spec(model: Model) -> SipLabSpec:
    """Return the spec of a SIP lab; other systems have no SAPS."""
    if not isinstance(model.spec, SipLabSpec):
        raise UsageError(f"'{model.label}' is a {model.kind}; capacity in SAPS is that of a sip_lab")
    return model.spec
