"""SIPp ``-trace_screen``: the screens at the end of a run; of several dumps the last counts."""

from __future__ import annotations

import re

from vftsim.labs.importing import Figure, Importer, Source, register
from vftsim.labs.sipp import delay_name, span_s

_SCENARIO = "- Scenario Screen -"
_STATISTICS = "- Statistics Screen -"
_CALLER = re.compile(r"\s+(?P<name>\S+) (?P<way>-+>|<-+)(?P<rest>.*)")
_CALLEE = re.compile(r"\s+(?P<way>-+>|<-+) (?P<name>\S+)(?P<rest>.*)")
_RTD = re.compile(r"\b[BE]-RTD\S*")
_SENT, _RECEIVED = ("Sent", "Retrans", "Timeout"), ("Recv", "Retrans", "Timeout", "Unexp")
_CUMULATIVE = re.compile(r"\s*(?P<name>[A-Z][^|]*?)\s*\|[^|]*\|\s*(?P<value>[0-9.:]+)")


def _read(source: Source) -> list[Figure]:
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

    found = [Figure("load", "/s", {"mean": value("Call Rate")})]
    failed, done = value("Failed call"), value("Successful call")
    if failed + done:
        found.append(Figure("failed", "%", {"n": failed + done, "mean": 100.0 * failed / (failed + done)}))
    for name, (line, text) in counters.items():
        if name.startswith("Response Time "):
            metric = delay_name(name.removeprefix("Response Time "))
            found.append(Figure(metric, "ms", {"mean": 1e3 * span_s(source, text, line, name)}))
    return found


register(Importer("sipp-screen", "SIPp -trace_screen", lambda text: _SCENARIO in text[:4000], _read, windowed=False))
