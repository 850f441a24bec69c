"""SIPp 3.6 (``stat.cpp``, ``screen.cpp``): ``-trace_rtt``, ``-trace_counts``, ``-trace_stat`` and ``-trace_screen``.

All but the screens are semicolon tables with a closing semicolon.
"""

import math
import re
from collections.abc import Iterator

from vftsim.labs.importing import Figure, Source, importer, of_rates, of_share, of_values

_CLOCK_S = 1e-3
"""By which clocks of rows may differ, s."""
_SPAN = re.compile(r"([0-9]+):([0-9]{2}):([0-9]{2})(?::([0-9]{6}))?")


def _table(source: Source, needed: tuple[str, ...] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells by column of a table that SIPp wrote."""
    lines = source.lines
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


def _epoch_s(source: Source, cell: str, line: int, column: str) -> float:
    """Return the seconds since 1970 of a date and time, which SIPp writes after two tabs."""
    parts = cell.split("\t")
    if len(parts) != 3:
        source.refuse(f"'{cell[:60]}' is not a date, a time and seconds since 1970, with tabs between", line, column)
    return source.number(parts[2], line, column)


def _span_s(source: Source, cell: str, line: int, column: str) -> float:
    """Return the seconds of ``HH:MM:SS`` or ``HH:MM:SS:microseconds``."""
    match = _SPAN.fullmatch(cell.strip())
    if match is None:
        source.refuse(f"'{cell[:60]}' is not a time HH:MM:SS:microseconds", line, column)
    hours, minutes, seconds, micro = match.groups()
    return source.count(hours, line, column) * 3600 + int(minutes) * 60 + int(seconds) + int(micro or 0) / 1e6


def _in_order(source: Source, line: int, before_s: float, begin_s: float, end_s: float) -> float:
    """Return when a row ended; refuse one that began before the one above ended: a row twice, or of another run."""
    if begin_s < before_s - _CLOCK_S:
        source.refuse("begins before the row above ended; give each run a file of its own, and no row twice", line)
    return end_s


def _delay_name(name: str) -> str:
    """Return the metric of a response time: its name in the scenario, ``rtd1`` for number 1."""
    return f"rtd{name}" if name.isdigit() else name


# -trace_rtt: every response time, with the name that the scenario gives it (start_rtd, rtd)

_DATE, _TIME, _NAME = "Date_ms", "response_time_ms", "rtd_no"


@importer("sipp-rtt", "SIPp -trace_rtt", lambda text: text.startswith(f"{_DATE};{_TIME};{_NAME}"))
def _read_rtt(source: Source) -> list[Figure]:
    values: dict[str, list[float]] = {}
    before_s = -math.inf
    for line, row in _table(source, (_DATE, _TIME, _NAME)):
        at_s = source.number(row[_DATE], line, _DATE) / 1e3
        before_s = _in_order(source, line, before_s, at_s, at_s)
        if not row[_NAME].strip():
            source.refuse("the cell is empty", line, _NAME)
        delay_ms = source.number(row[_TIME], line, _TIME)
        if delay_ms < 0:
            source.refuse(f"a response time of {delay_ms:g} ms is below 0", line, _TIME)
        if source.window.holds(at_s, at_s):
            values.setdefault(_delay_name(row[_NAME].strip()), []).append(delay_ms)
    return [of_values(name, "ms", times_ms) for name, times_ms in sorted(values.items())]


# -trace_counts: messages sent, received, retransmitted, timed out, unexpected, by step of the scenario

_COUNTS_HEAD = "CurrentTime;ElapsedTime;"
_MESSAGE = re.compile(r"[0-9]+_(?!Pause_).+_(Sent|Recv|Retrans|Timeout|Unexp|Lost)")


@importer("sipp-counts", "SIPp -trace_counts", lambda text: text.startswith(_COUNTS_HEAD))
def _read_counts(source: Source) -> list[Figure]:
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    before_s = -math.inf
    for line, row in _table(source, ("ElapsedTime",)):
        at_s = _span_s(source, row["ElapsedTime"], line, "ElapsedTime")
        before_s = _in_order(source, line, before_s, at_s, at_s)
        totals = {name: source.number(cell, line, name) for name, cell in row.items() if _MESSAGE.fullmatch(name)}
        if at_s <= source.window.start_s:
            before = totals
        if at_s <= source.window.end_s:
            after = totals
    if not after or after is before:
        return []
    return [Figure(name, "count", {"total": total - before.get(name, 0.0)}) for name, total in after.items()]


# -trace_stat: calls, failures and retransmissions of each period

_NEEDED = (
    "StartTime",
    "LastResetTime",
    "CurrentTime",
    "IncomingCall(P)",
    "OutgoingCall(P)",
    "SuccessfulCall(P)",
    "FailedCall(P)",
    "Retransmissions(P)",
)
_CALLS = {
    "load": ("IncomingCall(P)", "OutgoingCall(P)"),
    "completed": ("SuccessfulCall(P)",),
    "retransmissions": ("Retransmissions(P)",),
}
_PREFIX, _SUFFIX = "ResponseTime", "(C)"


@importer("sipp-stat", "SIPp -trace_stat", lambda text: text.startswith("StartTime;LastResetTime;"))
def _read_stat(source: Source) -> list[Figure]:
    spans: list[float] = []
    counts: dict[str, list[float]] = {name: [] for name in (*_CALLS, "failed")}
    last: tuple[int, dict[str, str]] | None = None
    before_s = -math.inf
    for line, row in _table(source, _NEEDED):
        start, begin, end = (_epoch_s(source, row[column], line, column) for column in _NEEDED[:3])
        before_s = _in_order(source, line, before_s, begin, end)
        last = line, row
        if end > begin and source.window.holds(begin - start, end - start):
            spans.append(end - begin)
            for name, columns in (*_CALLS.items(), ("failed", ("FailedCall(P)",))):
                counts[name].append(sum(source.number(row[column], line, column) for column in columns))
    if not spans:
        return []
    rates = {name: [(count / span, span) for count, span in zip(counts[name], spans, strict=True)] for name in _CALLS}
    figures = [of_rates(name, "/s", each) for name, each in rates.items()]
    ended = sum(counts["completed"]) + sum(counts["failed"])
    figures += of_share("failed", sum(counts["failed"]), ended)
    if last is not None and source.window.whole:
        figures += _response_times(source, *last)
    return figures


def _response_times(source: Source, line: int, row: dict[str, str]) -> list[Figure]:
    """Return mean and standard deviation over the whole run, to the millisecond that SIPp keeps."""
    figures = []
    for column, cell in row.items():
        name = column.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        if column != _PREFIX + name + _SUFFIX or name.endswith("StDev") or "Repartition" in name:
            continue
        deviation = f"{_PREFIX}{name}StDev{_SUFFIX}"
        statistics = {"mean": 1e3 * _span_s(source, cell, line, column)}
        if not statistics["mean"] and row.get("SuccessfulCall(C)") == "0":
            continue  # of no response, for which SIPp writes 0
        if deviation in row:
            statistics["sd"] = 1e3 * _span_s(source, row[deviation], line, deviation)
        figures.append(Figure(_delay_name(name), "ms", statistics))
    return figures


# -trace_screen: the screens at the end of a run; of several dumps the last counts

_SCENARIO = "- Scenario Screen -"
_STATISTICS = "- Statistics Screen -"
_CALLER = re.compile(r"\s+(?P<name>\S+) (?P<way>-+>|<-+)(?P<rest>.*)")
_CALLEE = re.compile(r"\s+(?P<way>-+>|<-+) (?P<name>\S+)(?P<rest>.*)")
_RTD = re.compile(r"\b[BE]-RTD\S*")
_SENT, _RECEIVED = ("Sent", "Retrans", "Timeout"), ("Recv", "Retrans", "Timeout", "Unexp")
_CUMULATIVE = re.compile(r"\s*(?P<name>[A-Z][^|]*?)\s*\|[^|]*\|\s*(?P<value>[0-9.:]+)")


@importer("sipp-screen", "SIPp -trace_screen", lambda text: _SCENARIO in text[:4000], windowed=False)
def _read_screen(source: Source) -> list[Figure]:
    lines = source.text.splitlines()
    counters: dict[str, tuple[int, str]] = {}
    messages: list[Figure] = []
    for line in _screen(lines, _STATISTICS):
        match = _CUMULATIVE.match(lines[line - 1])
        if match:
            counters[match["name"]] = line, match["value"]
    for index, line in enumerate(_steps(lines)):
        messages += _message(source, index, line, lines[line - 1])
    if not counters:
        source.refuse("has no Statistics Screen; -trace_screen writes it when SIPp ends")
    return _calls(source, counters) + messages


def _screen(lines: list[str], title: str) -> range:
    """Return the line numbers of the last screen with a title."""
    first = max((number for number, text in enumerate(lines, start=1) if title in text), default=0)
    if not first:
        return range(0)
    end = next((n for n in range(first + 1, len(lines) + 1) if "Change Screen" in lines[n - 1]), len(lines) + 1)
    return range(first + 1, end)


def _steps(lines: list[str]) -> list[int]:
    """Return the lines of the scenario's steps: below the heads of the columns, but for blank and closing ones."""
    screen = _screen(lines, _SCENARIO)
    head = next((line for line in screen if "Messages  Retrans" in lines[line - 1]), screen.stop)
    return [n for n in range(head + 1, screen.stop) if lines[n - 1].strip() and not lines[n - 1].startswith("-")]


def _message(source: Source, index: int, line: int, text: str) -> list[Figure]:
    """Return the counts of a step; a caller's screen names the message before the arrow, a callee's after it."""
    caller = _CALLER.match(text)
    match = caller or _CALLEE.match(text)
    if match is None:
        return []  # a pause or another step that is no message
    sent = (match["way"][0] == "-") == bool(caller)
    name = f"{index}_{match['name']}"
    counts = _RTD.sub("", match["rest"]).split()
    return [
        Figure(f"{name}_{kind}", "count", {"total": source.number(count, line, name)})
        for kind, count in zip(_SENT if sent else _RECEIVED, counts, strict=False)
    ]


def _calls(source: Source, counters: dict[str, tuple[int, str]]) -> list[Figure]:
    def value(name: str) -> float:
        if name not in counters:
            source.refuse(f"has no counter '{name}' on its Statistics Screen")
        line, text = counters[name]
        return source.number(text, line, name)

    figures = [Figure("load", "/s", {"mean": value("Call Rate")})]
    failed, done = value("Failed call"), value("Successful call")
    figures += of_share("failed", failed, failed + done)
    for name, (line, text) in counters.items():
        if name.startswith("Response Time ") and ((seconds := _span_s(source, text, line, name)) or done):
            figures.append(Figure(_delay_name(name.removeprefix("Response Time ")), "ms", {"mean": 1e3 * seconds}))
    return figures
