"""What a reader must know beside a table of steps or of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vftsim.composition.views import bench_of
from vftsim.report.screen import print_text

if TYPE_CHECKING:
    import pandas as pd

    from vftsim.stats import CapacityResult
    from vftsim.study.search import SearchCapacity


def print_mixed(summary: pd.DataFrame) -> None:
    """Print in how many runs a step went beyond the limit, of steps in which some did and others did not."""
    for row in summary[summary["metric"] == "runs_beyond_limit_percent"].itertuples():
        if line := _mixed_line(row):
            print_text(line)


def _mixed_line(row: Any) -> str:
    if row.estimate in {0.0, 100.0}:
        return ""
    return (
        f"{row.phase}: {round(row.estimate * row.n / 100)} of {row.n} runs beyond the limit, {row.low:.2g} to "
        f"{row.high:.2g} % of all (binomial interval, at least 95 %, Clopper and Pearson); its figures are means of "
        "two kinds of runs, without interval"
    )


def beside_the_ramp(search: SearchCapacity) -> str:
    """Return why the lab's ramp may give another figure than a search, in either direction."""
    steps, load = bench_of(search.model.spec).steps, search.result.estimate.mean
    loads = [steps.load_of(number) for number in range(steps.most)]
    below, above = max((x for x in loads if x <= load), default=None), min((x for x in loads if x > load), default=None)
    tried = f"{below:g} and {above:g}" if below and above else "loads"
    judged = "its whole step is"
    if search.stop is not None:
        judged = (
            f"attempts of {search.stop.observed_ns / 1e9:g} s, {search.stop.window_ns / 1e9:g} s after the stop, are"
        )
    return (
        f"not the ramp's capacity, and it may lie above: the ramp tries nothing between {tried}, climbs there, and "
        f"half of the ramps must pass; here a run has one constant load, {100 * search.settings.probability:g} % of "
        f"runs must pass, and {judged} judged"
    )


def next_step(result: CapacityResult) -> str:
    """Return what is missing for a capacity, and what to do about it."""
    spent = f"the budget of {result.estimate.n} runs ended the search; " if result.budget_ended else ""
    if result.answer == "at least":
        return f"{spent}--budget raises it" if spent else "no load that was tried ever failed: is the limit reached?"
    if result.answer == "between":
        return f"{spent}--budget narrows the interval"
    return (
        f"{spent}a load passes after {result.runs_to_pass} runs without a failure at least: --budget "
        f"{10 * result.runs_to_pass} or more, or a lower --probability"
    )
