"""The tables on the screen: every figure with its interval, every table with n, kind of interval and seed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vftsim.composition.model import ModelSpec
from vftsim.report.head import INTERVALS, print_head, print_missing, print_outside, unseen, warn_unfailed
from vftsim.report.remarks import print_mixed
from vftsim.report.screen import error_bar, print_blocks, print_table, print_text
from vftsim.study.figures.blocks import every_phase_table, figures_table, phase_table
from vftsim.study.validity import marked, outside_phases

if TYPE_CHECKING:
    from vftsim.stats import Estimate, ReplicationResult
    from vftsim.study.compare import Comparison
    from vftsim.study.ramp import RampCapacity
    from vftsim.study.results import RunResult


def print_run(result: RunResult, everything: bool) -> None:
    """Print a run: the figures that lead, by phase where there are phases, or all of them."""
    print_head(result.manifest["models"], result.manifest["seed"])
    summary = result.figures_found
    beyond = outside_phases(result.model.spec, result.records) or ()
    of_phases, of_run = phase_table(summary, beyond), figures_table(summary, everything=everything)
    print_blocks([table for table in (of_phases, of_run) if table.rows])
    if everything:
        print_blocks(every_phase_table(summary, beyond))
    if beyond:
        print_outside(result.model)
    print_text(_caption(result))
    print_mixed(result.summary)
    print_missing(result.missing)


def print_precision(found: ReplicationResult) -> None:
    """Print whether a precision was reached, and with how many replications."""
    reached = "reached with" if found.reached else "not reached with"
    figures = ", ".join(f"{name} = {_bar(e)}" for name, e in found.estimates.items())
    advice = "" if found.reached else "; more --replications, or a longer --scale"
    print_text(f"Precision {reached} {found.n} replications: {figures}{advice}")


def print_comparison(result: Comparison) -> None:
    """Print capacities side by side, and the figures that were asked for or lead."""
    print_head(result.manifest["models"], result.manifest["seed"])
    if result.capacities and not result.figures:
        _print_capacities(result)
    else:
        print_blocks(result.blocks())


def _print_capacities(result: Comparison) -> None:
    body = []
    for number, capacity in enumerate(result.capacities):
        ratio, difference = ("1", "") if not number else (_bar(result.ratio(number)), _bar(result.difference(number)))
        body.append((
            capacity.model.label, *_ends(capacity), _doc(capacity), _measured(capacity.model.spec), ratio,
            difference, str(len(capacity.runs)),
        ))  # fmt: skip
    first = result.capacities[0].model.label
    caption = (
        "Passes: highest load step that at least half of the ramps pass (in how many); fails: the step above. DOC: "
        "integer load of the last step within the limit, of the middle ramp; n ramps with the same traffic for all; "
        "ratio and difference are paired by ramp, the middle one is shown. [..]: interval of the middle, at least 95 % "
        "for any distribution, from six ramps on; (x to y): lowest and highest ramp; -: a ramp without end has only a "
        "bound."
    )
    columns = ("model", "passes", "fails", "DOC", "measured", f"ratio to {first}", f"less {first}", "n")
    print_table("Capacity (SAPS)", columns, body, caption)
    print_outside(*(c.model for c in result.capacities if c.ends_outside))
    for capacity in result.capacities:
        warn_unfailed(capacity)


def _measured(spec: ModelSpec) -> str:
    """Return what a model's file says was measured on the real system."""
    return "" if spec.measured.capacity is None else f"{spec.measured.capacity:g}"


def _ends(ramp: RampCapacity) -> tuple[str, str]:
    passes, fails, n, spec = ramp.passes, ramp.fails, len(ramp.runs), ramp.model.spec
    return (
        f"{marked(spec, passes.saps)} ({passes.passed} of {n})" if passes else "none",
        f"{marked(spec, fails.saps)} ({n - fails.passed} of {n})" if fails else "none",
    )


def _doc(ramp: RampCapacity) -> str:
    """Return the DOC, marked if the step that it is of is outside of the calibration."""
    bar = _bar(ramp.estimate)
    return marked(ramp.model.spec, ramp.passes.saps, bar) if ramp.passes else bar


def _caption(result: RunResult) -> str:
    n = len(result.records)
    return f"{n} replications, seed {result.manifest['seed']}. {INTERVALS}{unseen(n)}"


def _bar(e: Estimate | None) -> str:
    if e is None:
        return "-"
    if math.isinf(e.high) and math.isfinite(e.low):
        return f"{e.mean:.4g}, at least {e.low:.4g}"
    return error_bar(e.mean, e.low, e.high, e.kind)
