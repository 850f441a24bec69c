"""As many replications as a precision takes: ``vftsim run --precision``.

The rule is :mod:`vftsim.stats.replications`: after each replication look at the interval of every watched
figure, and stop when all are narrow enough and stay so for five more.  Figures are columns of the table with a
row for each replication (``runs`` of a media host) or for each replication and phase (``steps`` of a SIP lab,
then as ``step_1.cpu_percent``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vftsim.composition.views import has_bench
from vftsim.errors import UsageError
from vftsim.stats import ReplicationResult, StoppingRule, run_replications
from vftsim.study import composed
from vftsim.study.composed import Record
from vftsim.study.model import Model
from vftsim.study.replicate import Replications

if TYPE_CHECKING:
    import pandas as pd

BENCH_FIGURE, STEADY_FIGURE = "step_1.cpu_percent", "delay_mean_ms"
"""Watched where the user names none: with a benchmark, and without."""

Batch = Callable[[int, dict[int, Record]], Replications]
"""Runs replications 0 to n-1 except the known ones: ``batch(n, known)``."""


def precision_rule(model: Model, percent: float, figures: Sequence[str], most: int) -> StoppingRule:
    """Return the rule for a precision in percent of each figure.

    Raises
    ------
    UsageError
        A precision out of range, or too small a number of replications.
    """
    if not 0.0 < percent < 100.0:
        raise UsageError(f"--precision: above 0 and below 100 %, got {percent:g} %")
    chosen = tuple(dict.fromkeys(figures)) or (BENCH_FIGURE if has_bench(model.spec) else STEADY_FIGURE,)
    return StoppingRule(chosen, relative_half_width=percent / 100.0, budget=most)


def run_until(
    model: Model, rule: StoppingRule, batch: Batch, known: dict[int, Record]
) -> tuple[Replications, ReplicationResult | None]:
    """Run replications until the rule is met, its budget used up, or the user ends it (then without a verdict)."""
    done = [batch(1, known)]  # one shows which figures there are, before the others cost their time
    if done[0].interrupted:
        return done[0], None
    outcome(model, done[0].records[0], 0, rule.metrics)

    def run_batch(numbers: range) -> list[dict[str, float]]:
        records = done[-1].records
        done.append(batch(numbers.stop, records))
        if done[-1].interrupted:
            raise _Ended
        return [outcome(model, done[-1].records[n], n, rule.metrics) for n in numbers]

    try:
        verdict = run_replications(run_batch, rule)
    except _Ended:
        return done[-1], None
    return done[-1], verdict


def outcome(model: Model, record: Record, replication: int, figures: Sequence[str]) -> dict[str, float]:
    """Return the watched figures of one replication.

    Raises
    ------
    UsageError
        The replication has no such figure.
    """
    table = composed.tables(model.name, model.spec, [(replication, record)])[
        "steps" if has_bench(model.spec) else "runs"
    ]
    return {figure: _value(table, figure, replication) for figure in figures}


def _value(table: pd.DataFrame, figure: str, replication: int) -> float:
    phase, _, column = figure.rpartition(".")
    rows = table[table["phase"] == phase] if "phase" in table else table
    if column not in table or rows.empty:
        names = [name for name in table.columns if table[name].dtype.kind in "biufc" and name != "replication"]
        prefix = f"{table['phase'].iloc[0]}." if "phase" in table else ""
        raise UsageError(
            f"--figure {figure}: replication {replication} has none; one of {prefix}{', '.join(names[:6])}, ..."
        )
    value = float(rows[column].iloc[0])
    if not math.isfinite(value):
        raise UsageError(f"--figure {figure}: nothing to measure in replication {replication}")
    return value


class _Ended(Exception):  # noqa: N818 - the user's wish, no fault
    """The user has ended the study."""
