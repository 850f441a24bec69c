"""sysstat ``sar -u [ALL] [-P ALL]``: CPU samples as printed, with times of 24 or twice 12 hours."""

from __future__ import annotations

import re

from vftsim.labs.cpu_samples import Samples
from vftsim.labs.importing import Figure, Importer, Source, register

_LINE = re.compile(r"(?P<h>[0-9]{1,2})[:.](?P<m>[0-9]{2})[:.](?P<s>[0-9]{2})(?:\s+(?P<half>[AP]M))?\s+(?P<rest>\S.*)")
_DAY_S = 86_400.0


def _read(source: Source) -> list[Figure]:
    columns: list[str] | None = None
    samples = Samples()
    start: float | None = None
    at = begin = 0.0
    for line, text in enumerate(source.text.splitlines(), start=1):
        match = _LINE.match(text)
        if match is None or "LINUX RESTART" in text:
            _check_other(source, line, text)
            continue
        before, at = at, _time_s(match, at)
        words = match["rest"].split()
        if words[0] == "CPU":
            if "%idle" not in words:
                source.refuse("is not a table of CPU use; make it with  sar -u", line)
            columns, begin = words[1:], at
            start = at if start is None else start
            continue
        if columns is None or start is None:
            source.refuse("comes before the line that names the columns (CPU, %user, ...)", line)
        if at != before:
            begin = before
        if source.window.holds(begin - start, at - start):
            samples.add(source, line, words[0], columns, words[1:])
    return samples.figures()


def _time_s(match: re.Match[str], previous: float) -> float:
    """Return seconds since the first midnight; a clock that goes back has passed midnight."""
    hours = int(match["h"]) % 12 + 12 * (match["half"] == "PM") if match["half"] else int(match["h"])
    clock = hours * 3600.0 + int(match["m"]) * 60.0 + int(match["s"])
    days = previous // _DAY_S
    return days * _DAY_S + clock + (_DAY_S if days * _DAY_S + clock < previous else 0.0)


def _check_other(source: Source, line: int, text: str) -> None:
    """Refuse what is neither the title, a blank line, an average nor a restart."""
    if text.strip() and line > 1 and not text.startswith("Average") and "LINUX RESTART" not in text:
        source.refuse("is no line of sar: a time, a processor and percentages", line)


register(
    Importer(
        "sar",
        "sysstat sar -u, printed",
        lambda text: re.match(r"Linux \S+ \(.*\)", text) is not None and "%idle" in text[:2000],
        _read,
    )
)
