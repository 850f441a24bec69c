"""SIPp ``-trace_stat``: calls, failures and retransmissions of each period."""

from __future__ import annotations

from vftsim.labs.importing import Figure, Importer, Source, of_values, register
from vftsim.labs.sipp import delay_name, epoch_s, span_s, table

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
_SHORT = 0.5
"""A period below this share of the longest one (the last, usually) counts in means only."""


def _read(source: Source) -> list[Figure]:
    spans: list[float] = []
    counts: dict[str, list[float]] = {name: [] for name in (*_CALLS, "failed")}
    last: tuple[int, dict[str, str]] | None = None
    for line, row in table(source, _NEEDED):
        start, begin, end = (epoch_s(source, row[column], line, column) for column in _NEEDED[:3])
        last = line, row
        if end > begin and source.window.holds(begin - start, end - start):
            spans.append(end - begin)
            for name, columns in (*_CALLS.items(), ("failed", ("FailedCall(P)",))):
                counts[name].append(sum(source.number(row[column], line, column) for column in columns))
    if not spans:
        return []
    found = [_rate(name, counts[name], spans) for name in _CALLS]
    ended = sum(counts["completed"]) + sum(counts["failed"])
    if ended:
        found.append(Figure("failed", "%", {"n": ended, "mean": 100.0 * sum(counts["failed"]) / ended}))
    if last is not None and source.window.whole:
        found += _response_times(source, *last)
    return found


def _rate(name: str, counts: list[float], spans: list[float]) -> Figure:
    long_enough = [(c, s) for c, s in zip(counts, spans, strict=True) if s >= _SHORT * max(spans)]
    return of_values(name, "/s", [c / s for c, s in long_enough], mean=sum(counts) / sum(spans))


def _response_times(source: Source, line: int, row: dict[str, str]) -> list[Figure]:
    """Return mean and standard deviation over the whole run, to the millisecond that SIPp keeps."""
    found = []
    for column, cell in row.items():
        name = column.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        if column != _PREFIX + name + _SUFFIX or name.endswith("StDev") or "Repartition" in name:
            continue
        deviation = f"{_PREFIX}{name}StDev{_SUFFIX}"
        statistics = {"mean": 1e3 * span_s(source, cell, line, column)}
        if deviation in row:
            statistics["sd"] = 1e3 * span_s(source, row[deviation], line, deviation)
        found.append(Figure(delay_name(name), "ms", statistics))
    return found


register(Importer("sipp-stat", "SIPp -trace_stat", lambda text: text.startswith("StartTime;LastResetTime;"), _read))
