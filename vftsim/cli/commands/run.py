"""``vftsim run``: replications of a model, as the tables of a benchmark report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from vftsim.cli.common import ScaledStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.errors import UsageError
from vftsim.interface import studies


class Tables(StrEnum):
    """How much is printed."""

    summary = "summary"
    all = "all"


@dataclass(kw_only=True)
class Runs(ScaledStudy):
    """The same of a run, which has tables of its own.

    Parameters
    ----------
    output : Result: --output, -o DIR
        Write tables, plots and manifest here.
    force : Result: --force
        Replace an existing result.
    tables : --tables
        Print the step table, or all tables of the report.
    """

    output: Path | None = None
    force: bool = False
    tables: Tables = Tables.summary

    def print(self, result: Any) -> None:
        from vftsim.report.screen import print_blocks

        if self.as_csv or self.tables is Tables.summary:
            super().print(result)
        else:
            print_blocks(result.blocks(everything=True))


@made_from(studies.run, Runs)
def run(call: StudyCall, shard: str | None = None, *, common: Runs) -> None:
    """Simulate a model and print its tables; with -o, keep tidy files, plots and a manifest."""
    if ((common.force and common.report is None) or call.arguments["resume"]) and common.output is None:
        raise UsageError("--force and --resume are about a result directory: name it with -o DIR")
    from vftsim.study.execution import Shard

    share = Shard.parse(shard)
    if shard is not None and (common.output is None or "precision_percent" in call.arguments):
        raise UsageError("--shard: goes with -o DIR, and not with --precision, which looks at all replications")
    plan = call.plan()
    common.show_all(plan, common.conduct(plan, shard=share))
