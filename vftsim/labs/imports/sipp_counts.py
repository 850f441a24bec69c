"""SIPp ``-trace_counts``: messages sent, received, retransmitted, timed out, unexpected, by step of the scenario."""

from __future__ import annotations

import re

from vftsim.labs.importing import Figure, Importer, Source, register
from vftsim.labs.sipp import span_s, table

_HEAD = "CurrentTime;ElapsedTime;"
_MESSAGE = re.compile(r"[0-9]+_(?!Pause_).+_(Sent|Recv|Retrans|Timeout|Unexp|Lost)")


def _read(source: Source) -> list[Figure]:
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for line, row in table(source, ("ElapsedTime",)):
        at_s = span_s(source, row["ElapsedTime"], line, "ElapsedTime")
        totals = {name: source.number(cell, line, name) for name, cell in row.items() if _MESSAGE.fullmatch(name)}
        if at_s <= source.window.start_s:
            before = totals
        if at_s <= source.window.end_s:
            after = totals
    if not after or after is before:
        return []
    return [Figure(name, "count", {"total": total - before.get(name, 0.0)}) for name, total in after.items()]


register(Importer("sipp-counts", "SIPp -trace_counts", lambda text: text.startswith(_HEAD), _read))
