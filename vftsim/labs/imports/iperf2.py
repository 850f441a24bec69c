"""iperf 2's printed reports, of the client and of the server: read, and written in the same form.

A report has one line for each interval of each connection, and one for its whole time; datagrams add jitter and loss,
which the client prints as the server's report.  KByte, MByte and GByte are powers of 1024, Kbit, Mbit and Gbit of 1000
(``stdio.c``); a printed figure has three digits.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from vftsim.labs.importing import BOTH_WAYS, Figure, Source, importer, of_rates, of_share

SUM = "SUM"
_PREFIXES = ("", "K", "M", "G")
_RULE = "-" * 60
_HEAD = "[ ID] Interval       Transfer     Bandwidth"
_LOSS_HEAD = _HEAD + "        Jitter   Lost/Total Datagrams"


@dataclass(frozen=True)
class Iperf2Line:
    """One line: what a connection (or ``SUM``) carried in a span; jitter and loss are the server's alone."""

    connection: str
    begin_s: float
    end_s: float
    bytes: float
    bits_per_s: float
    jitter_ms: float | None = None
    lost: int | None = None
    total: int | None = None

    def text(self) -> str:
        """Return the line as iperf 2 prints it."""
        line = (
            f"[{self.connection:>3}] {self.begin_s:.4f}-{self.end_s:.4f} sec  {_scaled(self.bytes, 1024.0)}Bytes  "
            f"{_scaled(self.bits_per_s, 1000.0)}bits/sec"
        )
        if self.jitter_ms is None or self.lost is None or self.total is None:
            return line
        share = 100.0 * self.lost / self.total if self.total else 0.0
        return line + f"  {self.jitter_ms:6.3f} ms {self.lost:4d}/{self.total:5d} ({share:.2g}%)"


@dataclass(frozen=True)
class Iperf2Report:
    """Lines of a client's or a server's report; ``served`` are those that the server reported to a client."""

    lines: tuple[Iperf2Line, ...]
    served: tuple[Iperf2Line, ...] = ()
    sent_datagrams: int | None = None

    def wholes(self) -> dict[str, Iperf2Line]:
        """Return the line of each connection's whole time: the last one printed that begins at 0."""
        return {line.connection: line for line in self.lines if line.begin_s == 0.0}

    def intervals(self) -> list[Iperf2Line]:
        """Return the lines of intervals: all but each connection's last, or the last where it is the only one."""
        wholes = self.wholes()
        lines = [line for line in self.lines if line is not wholes.get(line.connection)]
        return lines or list(wholes.values())

    def text(self) -> str:
        """Return the report as iperf 2 prints it, from the line of column names on."""
        head = _LOSS_HEAD if any(line.jitter_ms is not None for line in self.lines) else _HEAD
        parts = [head, *(line.text() for line in self.lines)]
        if self.sent_datagrams is not None:
            parts.append(f"[{self.lines[-1].connection:>3}] Sent {self.sent_datagrams} datagrams")
        if self.served:
            parts += [f"[{self.lines[-1].connection:>3}] Server Report:", _LOSS_HEAD]
            parts += [line.text() for line in self.served]
        return "\n".join(parts) + "\n"


def _scaled(value: float, base: float) -> str:
    prefix = 0
    while value >= base and prefix < len(_PREFIXES) - 1:
        value /= base
        prefix += 1
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:4.{digits}f} {_PREFIXES[prefix]}"


_N = r"(\d+(?:\.\d+)?)"
_LINE = re.compile(
    rf"\[ *(\d+|SUM)\] +{_N} *- *{_N} sec +{_N} ([KMG]?)Bytes +{_N} ([KMG]?)bits/sec"
    rf"(?: +{_N} ms +(\d+)/ *(\d+) \([^)]*\))?"
)
_SENT = re.compile(r"\] Sent (\d+) datagrams")
_BOTH_WAYS = re.compile(r"^\[ *\*\d+\]|^\[FD\d+\]|Server listening on (?s:.*)Client connecting to", re.MULTILINE)
"""Of ``--full-duplex``, of which the other direction's lines are marked, and of ``-d``, whose end is both."""


def read_report(source: Source) -> Iperf2Report:
    """Return the report in a file; refuse one without a line of a connection, and one of both directions."""
    if _BOTH_WAYS.search(source.text):
        source.refuse(BOTH_WAYS)
    lines: list[Iperf2Line] = []
    served: list[Iperf2Line] = []
    sent, is_server = None, False
    for number, text in enumerate(source.text.splitlines(), start=1):
        if lines and "connected with" in text:
            source.refuse("begins another test; give each test a file of its own", number)
        if "Server Report" in text:
            is_server = True
        if match := _SENT.search(text):
            sent = (sent or 0) + source.count(match[1], number, "datagrams")
        if match := _LINE.search(text):
            line = _line(source, number, match)
            (served if is_server and line.jitter_ms is not None else lines).append(line)
    if not lines:
        source.refuse("has no line of a connection, as '[  1] 0.0000-1.0000 sec  1.00 MBytes  8.39 Mbits/sec'")
    report = Iperf2Report(tuple(lines), tuple(served), sent)
    _check_whole(source, report)
    return report


def _check_whole(source: Source, report: Iperf2Report) -> None:
    """Refuse a report with several tests, or intervals of a connection after what would be its whole time's line."""
    wholes = report.wholes()
    begun = Counter(line.connection for line in report.lines if line.begin_s == 0.0)
    if twice := next((name for name, count in begun.items() if count > 2), None):
        source.refuse(f"has connection {twice} begin more than once; give each test a file of its own")
    for line in report.lines:
        whole = wholes.get(line.connection)
        if whole is None or line.end_s > whole.end_s:
            source.refuse(f"has no line of the whole time of connection {line.connection}; was the file cut?")


def _line(source: Source, number: int, match: re.Match[str]) -> Iperf2Line:
    def value(text: str, column: str) -> float:
        return source.number(text, number, column)

    connection, begin, end, size, size_unit, rate, rate_unit, jitter, lost, total = match.groups()
    return Iperf2Line(
        connection,
        value(begin, "Interval"),
        value(end, "Interval"),
        value(size, "Transfer") * 1024.0 ** _PREFIXES.index(size_unit),
        value(rate, "Bandwidth") * 1000.0 ** _PREFIXES.index(rate_unit),
        None if jitter is None else value(jitter, "Jitter"),
        None if lost is None else int(value(lost, "Lost")),
        None if total is None else int(value(total, "Total")),
    )


def _recognizes(text: str) -> bool:
    return _LINE.search(text) is not None and ("Interval" in text or text.startswith(_RULE))


@importer("iperf2", "iperf 2's report", _recognizes)
def _read(source: Source) -> list[Figure]:
    report = read_report(source)
    wholes = report.wholes()
    spans = _together(line for line in report.intervals() if _counts(source, line))
    if not spans:
        return []
    mean = max(_together(wholes.values()))[0] if source.window.whole and wholes else None
    figures = [of_rates("throughput", "Mbit/s", spans, mean)]
    if source.window.whole:
        each = {name: line for name, line in wholes.items() if name != SUM}
        if len(each) > 1:
            figures += [
                Figure(f"throughput/{name}", "Mbit/s", {"mean": line.bits_per_s * 1e-6})
                for name, line in sorted(each.items())
            ]
        figures += _datagrams(report)
    return figures


def _counts(source: Source, line: Iperf2Line) -> bool:
    return line.end_s > line.begin_s and source.window.holds(line.begin_s, line.end_s)


def _together(lines: Iterable[Iperf2Line]) -> list[tuple[float, float]]:
    """Return the rate of all connections in each span, in Mbit/s, and its seconds: the line SUM, or the sum."""
    sums: dict[float, tuple[float, float]] = {}
    singles: dict[float, tuple[float, float]] = {}
    for line in lines:
        into = sums if line.connection == SUM else singles
        begin = round(line.begin_s, 2)
        rate, seconds = into.get(begin, (0.0, 0.0))
        into[begin] = rate + line.bits_per_s * 1e-6, max(seconds, line.end_s - line.begin_s)
    return list((sums or singles).values())


def _datagrams(report: Iperf2Report) -> list[Figure]:
    lines = report.served or report.wholes().values()
    ends = [line for line in lines if line.total is not None and line.connection != SUM]
    figures = []
    if report.sent_datagrams is not None:
        figures.append(Figure("sent", "count", {"total": report.sent_datagrams}))
    total = sum(line.total or 0 for line in ends)
    if total:
        figures += of_share("lost", sum(line.lost or 0 for line in ends), total)
        figures.append(Figure("jitter", "ms", {"mean": fmean(line.jitter_ms or 0.0 for line in ends)}))
    return figures
