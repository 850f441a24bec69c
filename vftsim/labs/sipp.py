"""What SIPp's files share: semicolon tables with a closing semicolon, times, names of response times.

SIPp 3.6: ``stat.cpp`` (dumpData, dumpDataRtt) and ``screen.cpp`` write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vftsim.labs.importing import Source

_SPAN = re.compile(r"([0-9]+):([0-9]{2}):([0-9]{2})(?::([0-9]{6}))?")


def table(source: Source, needed: tuple[str, ...] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells by column of a table that SIPp wrote."""
    lines = source.text.splitlines()
    header = lines[0].removesuffix(";").split(";") if lines else []
    for name in needed:
        if name not in header:
            source.refuse(f"has no column '{name}'; is it a file of this kind, with its first line?", 1)
    for line, text in enumerate(lines[1:], start=2):
        if not text.strip():
            continue
        cells = text.removesuffix(";").split(";")
        if len(cells) != len(header):
            source.refuse(f"has {len(cells)} cells, the header {len(header)}; was the file cut?", line)
        yield line, dict(zip(header, cells, strict=True))


def epoch_s(source: Source, cell: str, line: int, column: str) -> float:
    """Return the seconds since 1970 of a date and time, which SIPp writes after two tabs."""
    parts = cell.split("\t")
    if len(parts) != 3:
        source.refuse(f"'{cell[:60]}' is not a date, a time and seconds since 1970, with tabs between", line, column)
    return source.number(parts[2], line, column)


def span_s(source: Source, cell: str, line: int, column: str) -> float:
    """Return the seconds of ``HH:MM:SS`` or ``HH:MM:SS:microseconds``."""
    match = _SPAN.fullmatch(cell.strip())
    if match is None:
        source.refuse(f"'{cell[:60]}' is not a time HH:MM:SS:microseconds", line, column)
    hours, minutes, seconds, micro = match.groups()
    return source.count(hours, line, column) * 3600 + int(minutes) * 60 + int(seconds) + int(micro or 0) / 1e6


def delay_name(name: str) -> str:
    """Return the metric of a response time: its name in the scenario, ``rtd1`` for number 1."""
    return f"rtd{name}" if name.isdigit() else name
