"""httperf's printed report: read, and written in the same form.

The report of one test, as httperf 0.9.0 prints it (``core.c``, ``stat/print_reply_stats``, ``stat/basic.c``).
Lines may be broken anywhere: what is read are the words.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from string import Formatter
from typing import Any

from vftsim.labs.importing import Figure, Source, importer, of_share

ERRORS = ("client-timo", "socket-timo", "connrefused", "connreset", "fd-unavail", "addrunavail", "ftab-full", "other")


@dataclass(frozen=True)
class HttperfReport:
    """One test; times in ms, rates a second, sizes in bytes, as printed.

    ``connection_ms`` and ``reply_rate`` are (min, mean, max, median or ``nan``, standard deviation); httperf gives no
    median of rates.  ``cpu_s`` is (user, system) of the client, ``None`` where nobody measured it.
    """

    connections: int
    requests: int
    replies: int
    duration_s: float
    concurrent: int
    connection_ms: tuple[float, ...]
    connect_ms: float
    replies_per_connection: float
    request_bytes: float
    reply_rate: tuple[float, ...]
    samples: int
    response_ms: float
    transfer_ms: float
    header_bytes: float
    content_bytes: float
    footer_bytes: float
    status: tuple[int, ...]
    net_bytes_per_s: float
    errors: Mapping[str, int] = field(default_factory=dict)
    cpu_s: tuple[float, float] | None = None

    @property
    def errors_total(self) -> int:
        return sum(self.errors.values())

    def text(self) -> str:
        """Return the report as httperf prints it; the line about the client's processor only where it is known."""
        connections, requests = (count / self.duration_s for count in (self.connections, self.requests))
        user, system = self.cpu_s or (math.nan, math.nan)
        reported = {
            **vars(self),
            "errors": {name: self.errors.get(name, 0) for name in ERRORS},
            "errors_total": self.errors_total,
            "connection_rate": connections,
            "ms_a_connection": 1e3 / connections if connections else 0.0,
            "request_rate": requests,
            "ms_a_request": 1e3 / requests if requests else 0.0,
            "reply_bytes": self.header_bytes + self.content_bytes + self.footer_bytes,
            "percent": [100.0 * s / self.duration_s for s in (user, system, user + system)],
            "net_kb_per_s": self.net_bytes_per_s / 1024,
            "net_mbit_per_s": self.net_bytes_per_s * 8e-6,
        }
        return "".join(f"{line.format(**reported)}\n" for line in _LINES if line != _CPU or self.cpu_s is not None)


_CPU = (
    "CPU time [s]: user {cpu_s[0]:.2f} system {cpu_s[1]:.2f} "
    "(user {percent[0]:.1f}% system {percent[1]:.1f}% total {percent[2]:.1f}%)"
)
_LINES = (
    "Total: connections {connections} requests {requests} replies {replies} test-duration {duration_s:.3f} s",
    "",
    "Connection rate: {connection_rate:.1f} conn/s "
    "({ms_a_connection:.1f} ms/conn, <={concurrent} concurrent connections)",
    "Connection time [ms]: min {connection_ms[0]:.1f} avg {connection_ms[1]:.1f} max {connection_ms[2]:.1f} "
    "median {connection_ms[3]:.1f} stddev {connection_ms[4]:.1f}",
    "Connection time [ms]: connect {connect_ms:.1f}",
    "Connection length [replies/conn]: {replies_per_connection:.3f}",
    "",
    "Request rate: {request_rate:.1f} req/s ({ms_a_request:.1f} ms/req)",
    "Request size [B]: {request_bytes:.1f}",
    "",
    "Reply rate [replies/s]: min {reply_rate[0]:.1f} avg {reply_rate[1]:.1f} max {reply_rate[2]:.1f} "
    "stddev {reply_rate[4]:.1f} ({samples} samples)",
    "Reply time [ms]: response {response_ms:.1f} transfer {transfer_ms:.1f}",
    "Reply size [B]: header {header_bytes:.1f} content {content_bytes:.1f} footer {footer_bytes:.1f} "
    "(total {reply_bytes:.1f})",
    "Reply status: 1xx={status[0]} 2xx={status[1]} 3xx={status[2]} 4xx={status[3]} 5xx={status[4]}",
    "",
    _CPU,
    "Net I/O: {net_kb_per_s:.1f} KB/s ({net_mbit_per_s:.1f}*10^6 bps)",
    "",
    "Errors: total {errors_total} client-timo {errors[client-timo]} socket-timo {errors[socket-timo]} "
    "connrefused {errors[connrefused]} connreset {errors[connreset]}",
    "Errors: fd-unavail {errors[fd-unavail]} addrunavail {errors[addrunavail]} ftab-full {errors[ftab-full]} "
    "other {errors[other]}",
)
"""Of a report; a whole number has no digits after the point."""
_READ = {each.name for each in fields(HttperfReport)} | {"net_kb_per_s"}
"""What is taken of it; the rest follows from that, and may be infinite (milliseconds a request, of none)."""
_WHOLE, _NUMBER = r"(\d+)", r"(-?\d+(?:\.\d+)?|-?nan|-?inf)"


def read_report(source: Source) -> HttperfReport:
    """Return the report in a file; refuse one that lacks a line of it, and several."""
    text = re.sub(r"\s+", " ", source.text)
    if text.count("Total: connections ") > 1:
        source.refuse("holds the reports of several tests; give each test a file of its own")
    values: dict[str, Any] = {}
    for line in filter(None, _LINES):
        parts = [(re.escape(words), name or "", form) for words, name, form, _ in Formatter().parse(line)]
        pattern = "".join(words + ((_NUMBER if form else _WHOLE) if name else "") for words, name, form in parts)
        match = re.search(pattern, text)
        if match is not None:
            for (name, form), each in zip([part[1:] for part in parts if part[1]], match.groups(), strict=True):
                if name.partition("[")[0] in _READ:
                    values[name] = _value(source, each, name) if form else source.count(each, 0, name)
        elif line != _CPU:
            source.refuse(f"has no line '{line.split(':')[0]}' of httperf's report, or a broken one")
    if not values["connections"] or not values["duration_s"] > 0:
        source.refuse("is the report of a test without a connection or a duration")
    low, mean, high, deviation = (values[f"reply_rate[{n}]"] for n in (0, 1, 2, 4))
    return HttperfReport(
        **{each.name: values[each.name] for each in fields(HttperfReport) if each.name in values},
        connection_ms=tuple(values[f"connection_ms[{n}]"] for n in range(5)),
        reply_rate=(low, mean, high, math.nan, deviation),
        status=tuple(values[f"status[{n}]"] for n in range(5)),
        net_bytes_per_s=values["net_kb_per_s"] * 1024,
        errors={name: values[f"errors[{name}]"] for name in ERRORS},
        cpu_s=(values["cpu_s[0]"], values["cpu_s[1]"]) if "cpu_s[0]" in values else None,
    )


def _value(source: Source, text: str, name: str) -> float:
    """Return a printed number; httperf prints ``nan`` for what it has no value of."""
    return math.nan if text.endswith("nan") else source.number(text, 0, name)


@importer("httperf", "httperf's report", lambda text: "Total: connections " in text, windowed=False)
def _read(source: Source) -> list[Figure]:
    report = read_report(source)
    low, mean, high, median, deviation = report.connection_ms
    rate_low, rate_mean, rate_high, _, rate_deviation = report.reply_rate
    figures = [
        Figure("connections", "count", {"total": report.connections}),
        Figure("requests", "count", {"total": report.requests}),
        Figure("replies", "count", {"total": report.replies}),
        Figure("connection_rate", "/s", {"mean": report.connections / report.duration_s}),
        Figure("request_rate", "/s", {"mean": report.requests / report.duration_s}),
        *of_share("failed", report.errors_total, report.connections),
    ]
    if report.samples:
        rates = {"n": report.samples, "mean": rate_mean, "sd": rate_deviation, "min": rate_low, "max": rate_high}
        figures.append(Figure("reply_rate", "/s", rates))
    if report.replies_per_connection > 0:
        lives = round(report.replies / report.replies_per_connection)
        times = {"n": lives, "mean": mean, "sd": deviation, "min": low, "p50": median, "max": high}
        figures.append(Figure("connection_time", "ms", times))
    if report.replies:
        figures += [
            Figure("connect_time", "ms", {"mean": report.connect_ms}),
            Figure("response_time", "ms", {"mean": report.response_ms}),
            Figure("transfer_time", "ms", {"mean": report.transfer_ms}),
        ]
    return figures
