"""What httperf would print of a simulated test, and when a web server collapses."""

from __future__ import annotations

import math

from vftsim.kernel import Engine
from vftsim.labs.imports.httperf import HttperfReport
from vftsim.outcome import Outcome, declare, kept
from vftsim.platform.delays import histogram
from vftsim.platform.io.packet import applications
from vftsim.stats import DelayHistogram
from vftsim.workloads.web.loads import HttpLoad, http_loads
from vftsim.workloads.web.processes import PreforkServer, prefork_servers

_MS = 1e6


class WebTest(Outcome):
    """What one httperf counts of its test, from its first connection to its last."""

    connections: int = declare.total(label="connections asked for")
    requests: int = declare.total(label="requests sent")
    replies: int = declare.total()
    timeouts: int = declare.total(label="connections given up", better="lower")
    resets: int = declare.total(label="connections reset", better="lower")
    concurrent: int = declare.number(label="connections at a time, most")
    duration_s: float = declare.number(label="length of the test", unit="s")
    connect_ms: float = declare.number(label="time to connect, mean", unit="ms", better="lower")
    transfer_ms: float = declare.number(label="time to transfer, mean", unit="ms", better="lower")
    response: DelayHistogram = declare.delays(label="request to reply", better="lower", headline=("p50", "p95"))
    lifetime: DelayHistogram = declare.delays(label="connection, opened to closed")
    sampled: float = declare.number(label="replies a second, mean of samples over 5 s", better="higher")
    report: str = kept()
    answered = declare.ratio(
        replies,
        connections,
        unit="%",
        label="connections answered",
        better="higher",
        headline=True,
        known_as=("answered_percent",),
    )
    reply_rate = declare.rate(replies, label="replies", better="higher", headline=True)


def web_test_of(engine: Engine, row: int) -> WebTest:
    """Return what an httperf has measured up to now."""
    load: HttpLoad = engine.rows(http_loads)[row]
    report = httperf_report(engine, row)
    return WebTest(
        connections=report.connections,
        requests=report.requests,
        replies=report.replies,
        timeouts=int(load.timeouts),
        resets=int(load.resets),
        concurrent=report.concurrent,
        duration_s=report.duration_s,
        connect_ms=report.connect_ms,
        transfer_ms=report.transfer_ms,
        response=histogram(engine, int(load.response_times)),
        lifetime=histogram(engine, int(load.lifetimes)),
        report=report.text(),
        sampled=report.reply_rate[1],
        seconds=report.duration_s,
    )


def httperf_report(engine: Engine, row: int, header_bytes: int = 200, footer_bytes: int = 2) -> HttperfReport:
    """Return the report of an httperf up to now; the median is within 1 %.

    ``header_bytes`` and ``footer_bytes`` say how the reply is divided; the model knows its whole size only.
    """
    load: HttpLoad = engine.rows(http_loads)[row]
    end_ns = int(load.end_ns) or engine.now_ns
    duration_s = max(1, end_ns - int(load.start_ns)) / 1e9
    replies, connects, responses = int(load.replies), int(load.connects), int(load.responses)
    content = int(load.bytes_received) / replies - header_bytes - footer_bytes if replies else 0.0
    return HttperfReport(
        connections=int(load.begun),
        requests=int(load.requests),
        replies=replies,
        duration_s=duration_s,
        concurrent=int(load.most_active),
        connection_ms=_lifetimes(engine, load),
        connect_ms=int(load.connect_ns) / connects / _MS if connects else 0.0,
        replies_per_connection=1.0 if replies else 0.0,
        request_bytes=float(load.request_bytes),
        reply_rate=_reply_rates(load),
        samples=int(load.samples),
        response_ms=int(load.response_ns) / responses / _MS if responses else 0.0,
        transfer_ms=int(load.transfer_ns) / replies / _MS if replies else 0.0,
        header_bytes=float(header_bytes),
        content_bytes=content,
        footer_bytes=float(footer_bytes),
        status=(0, replies, 0, 0, 0),
        net_bytes_per_s=(int(load.bytes_sent) + int(load.bytes_received)) / duration_s,
        errors={"client-timo": int(load.timeouts), "connreset": int(load.resets)},
    )


def _lifetimes(engine: Engine, load: HttpLoad) -> tuple[float, float, float, float, float]:
    times = histogram(engine, int(load.lifetimes))
    if times.count == 0:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    deviation = times.sd / _MS if times.count > 1 else 0.0
    return times.min / _MS, times.mean / _MS, times.max / _MS, times.percentile(50) / _MS, deviation


def _reply_rates(load: HttpLoad) -> tuple[float, float, float, float, float]:
    count = int(load.samples)
    if count == 0:
        return (0.0, 0.0, 0.0, math.nan, 0.0)
    mean = float(load.sample_sum) / count
    spread = (float(load.sample_squares) - count * mean * mean) / (count - 1) if count > 1 else 0.0
    return float(load.sample_min), mean, float(load.sample_max), math.nan, math.sqrt(max(0.0, spread))


def web_server_of(engine: Engine, program: int) -> PreforkServer:
    """Return the record of an application row."""
    server: PreforkServer = engine.rows(prefork_servers)[engine.rows(applications)[program].own]
    return server


def collapse_rate_per_s(cores: float, script_s: float, timeout_s: float, test_s: float) -> float:
    """Return the rate above which a test of that length has failures: (cores / cost)(1 + time-out / length).

    What arrives in the test must be served in the test and one time-out more.  The rule is that of a server that
    gets no slower when it queues and wastes no work on clients that have gone.
    """
    return cores / script_s * (1.0 + timeout_s / test_s)
