"""What a reader must know beside a table of steps or of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vftsim.report.screen import print_text

if TYPE_CHECKING:
    import pandas as pd


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
