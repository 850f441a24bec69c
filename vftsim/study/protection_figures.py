"""What protection does to a guest while nothing fails, as figures that every mechanism has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vftsim.platform.protection.outcome import Protection, named_breach

if TYPE_CHECKING:
    from vftsim.composition.record import RunRecord


def broken_promises(records: Iterable[tuple[int, RunRecord]]) -> list[str]:
    """Return for each guarded domain how many outputs broke the promise, and which was the first."""
    found: dict[str, list[tuple[int, Protection]]] = {}
    for number, record in records:
        for owner, outcome in record.whole.outcomes.items():
            if isinstance(outcome, Protection) and outcome.breaches:
                found.setdefault(owner.removesuffix(".protection"), []).append((number, outcome))
    said = []
    for owner, each in found.items():
        breaches, judged = (sum(getattr(outcome, name) for _, outcome in each) for name in ("breaches", "judged"))
        number, first = each[0]
        said.append(
            f"{owner}: {breaches} of {judged} outputs left before a backup could take over from there; in replication "
            f"{number} {named_breach(first.first_breach or {})}"
        )
    return said
