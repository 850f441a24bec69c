"""httperf's printed report: read, and written in the same form.

The report of one test, as httperf 0.9.0 prints it (``core.c``, ``stat/print_reply_stats``, ``stat/basic.c``).
Lines may be broken anywhere: what is read are the words.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vftsim.labs.importing import Figure, Source, importer

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
        """Connections that failed."""
        return sum(self.errors.values())

    def text(self) -> str:
        """Return the report as httperf prints it; the line about the client's processor only where it is known."""
        return "\n".join([*_head(self), *_times(self), *_tail(self)]) + "\n"


def _head(report: HttperfReport) -> list[str]:
    rate = report.connections / report.duration_s
    low, mean, high, median, deviation = report.connection_ms
    return [
        f"Total: connections {report.connections} requests {report.requests} replies {report.replies} "
        f"test-duration {report.duration_s:.3f} s",
        "",
        f"Connection rate: {rate:.1f} conn/s ({1e3 / rate:.1f} ms/conn, <={report.concurrent} concurrent connections)",
        f"Connection time [ms]: min {low:.1f} avg {mean:.1f} max {high:.1f} median {median:.1f} stddev {deviation:.1f}",
        f"Connection time [ms]: connect {report.connect_ms:.1f}",
        f"Connection length [replies/conn]: {report.replies_per_connection:.3f}",
        "",
    ]


def _times(report: HttperfReport) -> list[str]:
    rate = report.requests / report.duration_s
    low, mean, high, _, deviation = report.reply_rate
    total = report.header_bytes + report.content_bytes + report.footer_bytes
    return [
        f"Request rate: {rate:.1f} req/s ({1e3 / rate if rate else 0.0:.1f} ms/req)",
        f"Request size [B]: {report.request_bytes:.1f}",
        "",
        f"Reply rate [replies/s]: min {low:.1f} avg {mean:.1f} max {high:.1f} stddev {deviation:.1f} "
        f"({report.samples} samples)",
        f"Reply time [ms]: response {report.response_ms:.1f} transfer {report.transfer_ms:.1f}",
        f"Reply size [B]: header {report.header_bytes:.1f} content {report.content_bytes:.1f} "
        f"footer {report.footer_bytes:.1f} (total {total:.1f})",
        "Reply status: " + " ".join(f"{n + 1}xx={count}" for n, count in enumerate(report.status)),
        "",
    ]


def _tail(report: HttperfReport) -> list[str]:
    lines = []
    if report.cpu_s is not None:
        user, system = report.cpu_s
        shares = [100.0 * s / report.duration_s for s in (user, system, user + system)]
        lines.append(
            f"CPU time [s]: user {user:.2f} system {system:.2f} (user {shares[0]:.1f}% system {shares[1]:.1f}% "
            f"total {shares[2]:.1f}%)"
        )
    net, first, last = report.net_bytes_per_s, ERRORS[:4], ERRORS[4:]
    counts = {name: report.errors.get(name, 0) for name in ERRORS}
    return [
        *lines,
        f"Net I/O: {net / 1024:.1f} KB/s ({net * 8e-6:.1f}*10^6 bps)",
        "",
        f"Errors: total {report.errors_total} " + " ".join(f"{name} {counts[name]}" for name in first),
        "Errors: " + " ".join(f"{name} {counts[name]}" for name in last),
    ]


_C, _N = r"(\d+)", r"(-?\d+(?:\.\d+)?|-?nan)"
_PARTS = {
    "total": rf"Total: connections {_C} requests {_C} replies {_C} test-duration {_N} s",
    "concurrent": rf"<={_C} concurrent",
    "connection": rf"Connection time \[ms\]: min {_N} avg {_N} max {_N} median {_N} stddev {_N}",
    "connect": rf"Connection time \[ms\]: connect {_N}",
    "length": rf"Connection length \[replies/conn\]: {_N}",
    "request": rf"Request size \[B\]: {_N}",
    "rate": rf"Reply rate \[replies/s\]: min {_N} avg {_N} max {_N} stddev {_N} \({_C} samples\)",
    "reply": rf"Reply time \[ms\]: response {_N} transfer {_N}",
    "size": rf"Reply size \[B\]: header {_N} content {_N} footer {_N}",
    "status": rf"Reply status: 1xx={_C} 2xx={_C} 3xx={_C} 4xx={_C} 5xx={_C}",
    "net": rf"Net I/O: {_N} KB/s",
    "errors": "Errors: total .*?" + ".*?".join(f"{name} {_C}" for name in ERRORS),
}
_CPU = re.compile(rf"CPU time \[s\]: user {_N} system {_N}")


def read_report(source: Source) -> HttperfReport:
    """Return the report in a file; refuse one that lacks a line of it."""
    text = re.sub(r"\s+", " ", source.text)
    found = {}
    for name, pattern in _PARTS.items():
        match = re.search(pattern.replace(" ", r"\s"), text)
        if match is None:
            source.refuse(f"has no line '{pattern.split(':')[0].strip('<=')}' of httperf's report, or a broken one")
        found[name] = [_value(source, value, name) for value in match.groups()]
    cpu = _CPU.search(text)
    low, mean, high, deviation, samples = found["rate"]
    connections, requests, replies, duration_s = found["total"]
    if not connections or not duration_s > 0:
        source.refuse("is the report of a test without a connection or a duration")
    return HttperfReport(
        connections=int(connections),
        requests=int(requests),
        replies=int(replies),
        duration_s=duration_s,
        concurrent=int(found["concurrent"][0]),
        connection_ms=tuple(found["connection"]),
        connect_ms=found["connect"][0],
        replies_per_connection=found["length"][0],
        request_bytes=found["request"][0],
        reply_rate=(low, mean, high, math.nan, deviation),
        samples=int(samples),
        response_ms=found["reply"][0],
        transfer_ms=found["reply"][1],
        header_bytes=found["size"][0],
        content_bytes=found["size"][1],
        footer_bytes=found["size"][2],
        status=tuple(map(int, found["status"])),
        net_bytes_per_s=found["net"][0] * 1024,
        errors={name: int(count) for name, count in zip(ERRORS, found["errors"], strict=True)},
        cpu_s=(_value(source, cpu[1], "CPU time"), _value(source, cpu[2], "CPU time")) if cpu else None,
    )


def _value(source: Source, text: str, name: str) -> float:
    """Return a printed number; httperf prints ``nan`` for what it has no value of."""
    return math.nan if text.endswith("nan") else source.number(text, 0, name)


@importer("httperf", "httperf's report", lambda text: "Total: connections " in text, windowed=False)
def _read(source: Source) -> list[Figure]:
    report = read_report(source)
    low, mean, high, median, deviation = report.connection_ms
    rate_low, rate_mean, rate_high, _, rate_deviation = report.reply_rate
    found = [
        Figure("connections", "count", {"total": report.connections}),
        Figure("requests", "count", {"total": report.requests}),
        Figure("replies", "count", {"total": report.replies}),
        Figure("connection_rate", "/s", {"mean": report.connections / report.duration_s}),
        Figure("request_rate", "/s", {"mean": report.requests / report.duration_s}),
        Figure("failed", "%", {"n": report.connections, "mean": 100.0 * report.errors_total / report.connections}),
    ]
    if report.samples:
        rates = {"n": report.samples, "mean": rate_mean, "sd": rate_deviation, "min": rate_low, "max": rate_high}
        found.append(Figure("reply_rate", "/s", rates))
    if report.replies:
        times = {"n": report.replies, "mean": mean, "sd": deviation, "min": low, "p50": median, "max": high}
        found += [
            Figure("connection_time", "ms", times),
            Figure("connect_time", "ms", {"mean": report.connect_ms}),
            Figure("response_time", "ms", {"mean": report.response_ms}),
            Figure("transfer_time", "ms", {"mean": report.transfer_ms}),
        ]
    return found
