"""Failovers as blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vftsim.report.blocks import (
    Answer,
    Bars,
    Block,
    Card,
    Cards,
    Cell,
    Chart,
    Counted,
    Note,
    Point,
    Series,
    Table,
    Timeline,
)
from vftsim.report.blocks import in_words as words_of
from vftsim.study.blocks.head import head, outside_notes, share_in_words
from vftsim.study.crash import PARTS
from vftsim.study.validity import MARK

if TYPE_CHECKING:
    from vftsim.study.failover import FailoverStudy

_WORDS = {
    "before_crash_s": "last packet to crash (s)",
    "detection_s": "detection (s)",
    "takeover_s": "takeover: replay, rollback or boot (s)",
    "announcement_s": "announcement (s)",
    "first_packet_s": "wait for the first packet (s)",
    "outage_s": "outage as clients see it (s)",
    "unprotected_s": "unprotected after the crash (s)",
    "retransmissions": "messages repeated more",
    "rollback_s": "rolled back by (s)",
    "execution_lost_s": "execution undone (s of CPU)",
    "outputs_lost": "outputs that died with the primary",
    "outputs_issued_again": "outputs issued again",
    "outputs_underivable": "outputs seen that the backup lacks",
}
_PARTS = ("until the crash", "detection", "takeover", "announcement", "first packet")
ASK_AGAIN = "clients that lose an answer wait for ever (their workload's retry, or timeout, is off)."
FEWER_FAILED = (
    "Failed or lost, below 0: less than in the same traffic without the crash, for the guest goes on without "
    "protection after the takeover, and does more in that time than under it."
)
_OF_CRASHES = (
    "± or [..]: 95 % interval of the mean, crashes being one in each part of a stretch, from ten crashes on; none, but "
    "lowest and highest crash (x to y), where fewer than five differ from the rest. Crashes with any: how many, and "
    "their share (binomial interval, at least 95 %, Clopper and Pearson). Coverage: docs/interval-coverage.md."
)


def failover_blocks(study: FailoverStudy) -> list[Block]:
    """Return what clients saw of the crashes, in parts, and what the middle one was like."""
    mark = MARK if study.outside else ""
    crashes, back = len(study.failovers), len(study.recovered)
    unasked = sum(each.is_unasked for each in study.failovers)
    blocks: list[Block] = [
        *head(study.manifest["models"], study.manifest["seed"]),
        Note(f"Mechanism: {study.mechanism}; load: {study.load}{mark}; crashes of the primary's host: {crashes}"),
        Answer(
            _outage(study),
            f"What do clients of {study.model.name} see when the primary's host crashes?",
            f"the service came back after {back} of {crashes} ({share_in_words(study.came_back)} of crashes)",
        ),
    ]
    if unasked:
        blocks.append(Note(f"After {unasked} of them the guest was back and no client asked again: {ASK_AGAIN}", True))
    figures = study.figures()
    times = [_row(study, name, values) for name, values in figures.items() if study.share(name) is None]
    counts = [_row(study, name, values) for name, values in figures.items() if study.share(name) is not None]
    columns = ("", "mean", "least", "middle", "largest")
    of_parts = "The parts, from the last packet on, add up to the outage."
    beyond = f"Failed, lost and repeated: beyond the same traffic without the crash. {_OF_CRASHES}"
    if not counts:
        of_parts = f"{of_parts} {_OF_CRASHES}"
    blocks += [_cards(study), *failover_charts(study), Table(columns, times, "Times", of_parts)]
    if counts:
        blocks.append(Table((*columns, "crashes with any"), counts, "What a crash costs", beyond))
    if any(name.startswith("failed_") and min(values) < 0.0 for name, values in figures.items()):
        blocks.append(Note(FEWER_FAILED))
    if study.bands:
        blocks.append(Note(_of_prices(study)))
    if study.outside:
        blocks += outside_notes(study.model)
    middle = sorted(study.failovers, key=lambda each: each.outage_s)[crashes // 2]
    title = f"The crash of the middle outage, {middle.crash_s:.6f} s after the beginning of the stretch:"
    return [*blocks, Timeline(title, [(time_s, what) for time_s, what in middle.timeline if time_s >= 0])]


def _of_prices(study: FailoverStudy) -> str:
    """Say what the intervals rest on besides the crashes."""
    band = study.bands.get("outage_s")
    decides = f" Of the outage {band.decides} decides ({100 * band.share:.0f} % of the variance)." if band else ""
    return (
        "± and [..] are of the crashes and of the ranges of the mechanism's prices together: 95 % of what prices drawn "
        f"from them make (--no-prices: none).{decides}"
    )


def failover_charts(study: FailoverStudy) -> list[Chart | Bars]:
    """Return the outages in their parts, in order of length, and the share of crashes with an outage so long."""
    seen = sorted(study.recovered, key=lambda each: each.outage_s)
    total = len(study.failovers)
    rows = [(str(rank), [float(getattr(each, part)) for part in PARTS]) for rank, each in enumerate(seen, 1)]
    steps = [Point(0.0, 0.0), *(Point(each.outage_s, 100.0 * rank / total) for rank, each in enumerate(seen, 1))]
    shares = Chart(
        "Outages no longer than this",
        "outage as clients see it (s)",
        "share of crashes (%)",
        [Series("crashes", steps, "steps")],
    )
    bars = Bars("Outages in their parts, a bar a crash", "seconds since the last packet", _PARTS, rows)
    return [bars, shares] if seen else [shares]


def _outage(study: FailoverStudy) -> str:
    found = study.mean("outage_s") if study.recovered else None
    return "no packet came out any more" if found is None else f"an outage of {words_of(found, 's')} on average"


def _cards(study: FailoverStudy) -> Cards:
    """Return the figures of one crash that matter most."""
    names = (("outage_s", "outage"), ("detection_s", "of it detection"), ("unprotected_s", "unprotected"))
    cards = [Card(label, found, "s") for name, label in names if (found := study.mean(name)) is not None]
    failed = [name for name in study.figures() if name.startswith("failed_")]
    worst = max(failed, key=lambda name: max(study.figures()[name]), default="")
    if worst and (mean := study.mean(worst)) is not None and mean.mean >= 0.0:
        cards.append(Card(f"failed more: {worst.removeprefix('failed_')}", mean, "", "attempts a crash"))
    return Cards(cards)


def _row(study: FailoverStudy, name: str, values: list[float]) -> list[Cell]:
    """Return one figure of failovers as a row."""
    words = _WORDS.get(name, name.replace("failed_", "failed more: ").replace("lost_", "packets lost: "))
    known = sorted(value for value in values if math.isfinite(value))
    if not known:
        return [words, "never", "", "", ""]
    if len(known) < len(values):
        words += f", {len(known)} of {len(values)}"
    row: list[Cell] = [words, study.mean(name), known[0], known[len(known) // 2], known[-1]]
    if (share := study.share(name)) is not None:
        row.append(Counted(str(sum(value > 0.0 for value in known)), f"({share_in_words(share)})"))
    return row
