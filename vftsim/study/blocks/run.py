"""What replications of one model have measured, as blocks: cards and tables of the figures that its parts declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.outcome.declare import Verdict
from vftsim.report.blocks import Answer, Block, Card, Cards, Note
from vftsim.report.blocks import in_words as words_of
from vftsim.study.blocks.head import INTERVALS, head, missing_notes, outside_notes, unseen
from vftsim.study.blocks.run_charts import leading, run_charts, words
from vftsim.study.figures.blocks import every_phase_table, figures_table, phase_table
from vftsim.study.figures.summary import Summary
from vftsim.study.validity import outside_phases

if TYPE_CHECKING:
    from vftsim.stats import ReplicationResult
    from vftsim.study.results import RunResult

_MOST_CARDS = 6
_MOST_SAID = 3


def run_blocks(result: RunResult, everything: bool = False) -> list[Block]:
    """Return what was measured: charts and cards, the figures of phases and of the whole run."""
    summary, spec = result.figures_found, result.model.spec
    marks = outside_phases(spec, result.records) or ()
    tables = [phase_table(summary, marks), figures_table(summary, everything=everything)]
    if everything:
        tables += every_phase_table(summary, marks)
    n = len(result.records)
    return [
        *head(result.manifest["models"], result.manifest["seed"]),
        run_answer(result),
        *_cards(summary),
        *run_charts(result),
        *(table for table in tables if table.rows),
        *(outside_notes(result.model) if marks else []),
        Note(f"{n} replications, seed {result.manifest['seed']}. {INTERVALS}{unseen(n)}"),
        *_mixed_notes(summary),
        *missing_notes(result.missing),
        *_precision_notes(result.precision),
    ]


def _mixed_notes(summary: Summary) -> list[Note]:
    """Return in how many runs a step went beyond the limit, of steps in which some did and others did not."""
    verdicts = [row for row in summary.rows.values() if isinstance(row.address.entry.figure, Verdict)]
    beyond = [
        (row.phase.name, e)
        for row in verdicts
        if row.address.phase in summary.mixed and (e := summary.estimate(row.address.text)) is not None
    ]
    return [
        Note(
            f"{phase}: {round(e.mean * e.n / 100)} of {e.n} runs beyond the limit, "
            f"{e.low:.2g} to {e.high:.2g} % of all (binomial interval, at least 95 %, Clopper and Pearson); "
            "its figures are means of two kinds of runs, without interval",
            warns=True,
        )
        for phase, e in beyond
        if e.mean not in {0.0, 100.0}
    ]


def _precision_notes(found: ReplicationResult | None) -> list[Note]:
    """Return whether a precision was reached, and with how many replications."""
    if found is None:
        return []
    reached = "reached with" if found.reached else "not reached with"
    figures = ", ".join(f"{name} = {words_of(e)}" for name, e in found.estimates.items())
    advice = "" if found.reached else "; more --replications, or a longer --scale"
    return [Note(f"Precision {reached} {found.n} replications: {figures}{advice}", warns=not found.reached)]


def run_answer(result: RunResult) -> Answer:
    """Return the first figures that lead, in words."""
    first = leading(result.figures_found)[:_MOST_SAID]
    texts = [
        f"{address.owner.rpartition('.')[2]}: {words(address)} {words_of(e, address.entry.unit)}"
        for address, e in first
    ]
    many = "replication" if len(result.records) == 1 else "replications"
    asked = f"What do {len(result.records)} {many} of {result.model.name} show?"
    return Answer(texts[0] if texts else "nothing that leads", asked, "; ".join(texts[1:]))


def _cards(summary: Summary) -> list[Block]:
    """Return the figures of the whole run that lead."""
    cards = [Card(f"{address.owner}: {words(address)}", e, address.entry.unit) for address, e in leading(summary)]
    return [Cards(cards[:_MOST_CARDS])] if cards else []
