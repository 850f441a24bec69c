"""CPU samples of sysstat, busy and stolen time by processor.

``sar -u [ALL] [-P ALL]`` and ``mpstat [-P ALL]`` as printed, with times of 24 or twice 12 hours;
``sadf -d FILE -- -u [ALL] [-P ALL]``, a semicolon table.
"""

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from vftsim.labs.importing import Figure, Source, importer, of_values

_ALL = {"-1", "all"}


@dataclass(slots=True)
class Samples:
    """Percentages of each sample by processor, and its seconds; ``cpu`` is 100 - idle - iowait - steal."""

    source: Source
    columns: list[str] = field(default_factory=list)
    """Of the table that is read."""
    values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, line: int, processor: str, cells: list[str], seconds: float) -> None:
        if len(cells) != len(self.columns):
            self.source.refuse(f"has {len(cells)} percentages, the header {len(self.columns)}; was the file cut?", line)
        shares = {name: self.source.number(cell, line, name) for name, cell in zip(self.columns, cells, strict=True)}
        for name, share in shares.items():
            if not -0.5 <= share <= 100.5:
                self.source.refuse(f"{share:g} is no percentage", line, name)
        suffix = "" if processor in _ALL else f"/{processor}"
        busy = 100.0 - shares["%idle"] - shares.get("%iowait", 0.0) - shares.get("%steal", 0.0)
        self.values.setdefault(f"cpu{suffix}", []).append((max(busy, 0.0), seconds))
        if "%steal" in shares:
            self.values.setdefault(f"steal{suffix}", []).append((shares["%steal"], seconds))

    def figures(self) -> list[Figure]:
        """Return the figures of all processors; means are over time, as sar's averages."""
        figures = []
        for name, pairs in self.values.items():
            values, seconds = zip(*pairs, strict=True)
            whole = math.fsum(seconds)
            mean = math.fsum(value * of for value, of in pairs) / whole if whole and len({*seconds}) > 1 else None
            figures.append(of_values(name, "%", values, mean=mean))
        return figures


_LINE = re.compile(r"(?P<h>[0-9]{1,2})[:.](?P<m>[0-9]{2})[:.](?P<s>[0-9]{2})(?:\s+(?P<half>[AP]M))?\s+(?P<rest>\S.*)")
_DAY_S = 86_400.0


@importer(
    "sar",
    "sysstat sar -u or mpstat, printed",
    lambda text: re.match(r"Linux \S+ \(.*\)", text) is not None and "%idle" in text[:2000],
)
def _read_sar(source: Source) -> list[Figure]:
    samples, start = Samples(source), -1.0
    at = begin = 0.0
    for line, text in enumerate(source.lines, start=1):
        match = _LINE.match(text)
        if match is None or "LINUX RESTART" in text:
            _check_other(source, line, text)
            continue
        before, at = at, _time_s(source, line, match, at)
        words = match["rest"].split()
        if words[0] == "CPU":
            if "%idle" not in words:
                source.refuse("is not a table of CPU use; make it with  sar -u", line)
            samples.columns, begin = words[1:], at
            start = at if start < 0.0 else start
            continue
        if start < 0.0:
            source.refuse("comes before the line that names the columns (CPU, %user, ...)", line)
        if at != before:
            begin = before
        if source.window.holds(begin - start, at - start):
            samples.add(line, words[0], words[1:], at - begin)
    return samples.figures()


def _time_s(source: Source, line: int, match: re.Match[str], previous: float) -> float:
    """Return seconds since the first midnight, passed by a clock that goes back; refuse one that was set back."""
    hours = int(match["h"]) % 12 + 12 * (match["half"] == "PM") if match["half"] else int(match["h"])
    clock = hours * 3600.0 + int(match["m"]) * 60.0 + int(match["s"])
    at = previous // _DAY_S * _DAY_S + clock
    if previous - _DAY_S / 2.0 < at < previous:
        source.refuse(
            "is from before the row above; give what was recorded after the clock was set back a file of its own", line
        )
    return at if at >= previous else at + _DAY_S


def _check_other(source: Source, line: int, text: str) -> None:
    """Refuse what is neither the title, a blank line, an average nor a restart."""
    if text.strip() and line > 1 and not text.startswith("Average") and "LINUX RESTART" not in text:
        source.refuse("is no line of sar: a time, a processor and percentages", line)


_HEAD = ["# hostname", "interval", "timestamp", "CPU"]


@importer("sadf", "sysstat sadf -d", lambda text: text.startswith(";".join(_HEAD)))
def _read_sadf(source: Source) -> list[Figure]:
    samples = Samples(source)
    host, start, before = "", math.nan, -math.inf
    for line, text in enumerate(source.lines, start=1):
        cells = text.strip().split(";")
        if text.startswith("#"):
            if cells[: len(_HEAD)] != _HEAD or "%idle" not in cells:
                source.refuse("is not a table of CPU use; make it with  sadf -d FILE -- -u", line)
            samples.columns = cells[len(_HEAD) :]
        elif text.strip() and "LINUX-RESTART" not in text and not cells[-1].startswith("COM "):
            if len(cells) < len(_HEAD):
                count = len(_HEAD) + len(samples.columns)
                source.refuse(f"has {len(cells)} cells, the header {count}; was the file cut?", line)
            interval = source.number(cells[1], line, "interval")
            end = _epoch_s(source, cells[2], line)
            if math.isnan(start):
                host, start = cells[0], end - interval
            if cells[0] != host or end < before:
                other = "of another host than" if cells[0] != host else "from before"
                source.refuse(f"is {other} the row above; give each recording a file of its own", line)
            before = end
            if source.window.holds(end - interval - start, end - start):
                samples.add(line, cells[3], cells[len(_HEAD) :], interval)
    return samples.figures()


def _epoch_s(source: Source, cell: str, line: int) -> float:
    if cell.isascii() and cell.isdigit():
        return source.number(cell, line, "timestamp")
    try:
        return datetime.strptime(cell.removesuffix(" UTC"), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return source.refuse(f"'{cell[:60]}' is not a time YYYY-MM-DD HH:MM:SS", line, "timestamp")
