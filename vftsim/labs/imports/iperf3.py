"""iperf3's JSON output (``iperf3 -J``) of one test: read, and written with what a test of the model knows.

Figures are of all streams together, and of each where there are several: the throughput of the intervals as the file's
own end sees it, its mean over the test at the receiver, the sender's, retransmitted segments, round trips, jitter and
loss of datagrams, and the processors' use at both ends.
"""

import json
import math
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vftsim.labs.importing import LARGEST, Figure, Source, importer, of_rates, of_share


@dataclass(frozen=True)
class Iperf3Stream:
    """One stream: (begin s, end s, bytes) of each interval, and its totals.

    ``received_bytes`` and what follows are the receiver's; datagram fields are ``None`` for TCP, ``retransmits``
    for UDP.
    """

    intervals: tuple[tuple[float, float, int], ...]
    sent_bytes: int
    received_bytes: int
    retransmits: int | None = None
    jitter_ms: float | None = None
    lost_packets: int | None = None
    packets: int | None = None

    @property
    def seconds(self) -> float:
        return self.intervals[-1][1] if self.intervals else 0.0


@dataclass(frozen=True)
class Iperf3Report:
    """One test."""

    protocol: str
    streams: tuple[Iperf3Stream, ...]

    def text(self) -> str:
        """Return the test as JSON in iperf3's form; what the model does not know is left out."""
        count = max((len(stream.intervals) for stream in self.streams), default=0)
        data = {
            "start": {"test_start": {"protocol": self.protocol, "num_streams": len(self.streams), "reverse": 0}},
            "intervals": [self._interval(n) for n in range(count)],
            "end": {"streams": [self._end(stream) for stream in self.streams], **self._sums()},
        }
        return json.dumps(data, indent="\t") + "\n"

    def _interval(self, n: int) -> dict[str, Any]:
        parts = [_span(*stream.intervals[n]) for stream in self.streams if n < len(stream.intervals)]
        total = sum(part["bytes"] for part in parts)
        return {"streams": parts, "sum": _span(parts[0]["start"], parts[0]["end"], total)}

    def _end(self, stream: Iperf3Stream) -> dict[str, Any]:
        sent = _span(0.0, stream.seconds, stream.sent_bytes)
        if self.protocol == "UDP":
            return {"udp": sent | _datagrams(stream)}
        received = _span(0.0, stream.seconds, stream.received_bytes)
        return {"sender": sent | {"retransmits": stream.retransmits}, "receiver": received}

    def _sums(self) -> dict[str, Any]:
        seconds = max((stream.seconds for stream in self.streams), default=0.0)
        sent = _span(0.0, seconds, sum(stream.sent_bytes for stream in self.streams))
        received = _span(0.0, seconds, sum(stream.received_bytes for stream in self.streams))
        if self.protocol != "UDP":
            sent["retransmits"] = sum(stream.retransmits or 0 for stream in self.streams)
            return {"sum_sent": sent, "sum_received": received}
        lost = sum(stream.lost_packets or 0 for stream in self.streams)
        packets = sum(stream.packets or 0 for stream in self.streams)
        jitter_ms = math.fsum(stream.jitter_ms or 0.0 for stream in self.streams) / max(1, len(self.streams))
        together = Iperf3Stream((), 0, 0, None, jitter_ms, lost, packets)
        return {"sum": sent | _datagrams(together), "sum_sent": sent, "sum_received": received | _datagrams(together)}


def _span(begin_s: float, end_s: float, size_bytes: int) -> dict[str, Any]:
    seconds = end_s - begin_s
    rate = size_bytes * 8 / seconds if seconds else 0.0
    return {"start": begin_s, "end": end_s, "seconds": seconds, "bytes": size_bytes, "bits_per_second": rate}


def _datagrams(stream: Iperf3Stream) -> dict[str, Any]:
    share = 100.0 * (stream.lost_packets or 0) / stream.packets if stream.packets else 0.0
    return {
        "jitter_ms": stream.jitter_ms,
        "lost_packets": stream.lost_packets,
        "packets": stream.packets,
        "lost_percent": share,
    }


_Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
_Count = Annotated[int, Field(ge=-(2**63), le=2**63)]  # late packets count as less than none lost


class _Part(BaseModel):
    """A part of the file; its validator waits for the first file, as every command imports this."""

    model_config = ConfigDict(defer_build=True)


class _TestStart(_Part):
    reverse: int = 0


class _Start(_Part):
    accepted_connection: Any = None
    """Where the server says whom it serves."""
    test_start: _TestStart = _TestStart.model_construct()

    @property
    def sends(self) -> bool:
        """Whether the end that wrote the file is the one that sent."""
        return (self.accepted_connection is None) != bool(self.test_start.reverse)


class _Span(_Part):
    """What an interval, a stream or all of them carried."""

    start: _Number
    end: _Number
    bits_per_second: _Number
    omitted: bool = False
    retransmits: _Count | None = None
    mean_rtt: _Number | None = None
    lost_packets: _Count | None = None
    packets: _Count | None = None
    jitter_ms: _Number = 0.0
    sender: bool | None = None
    """Whether it is what was sent; older versions do not say."""

    @property
    def mbit_per_s(self) -> float:
        return self.bits_per_second * 1e-6


class _Interval(_Part):
    sum: _Span


class _Stream(_Part):
    sender: _Span | None = None
    receiver: _Span | None = None
    udp: _Span | None = None


class _End(_Part):
    streams: list[_Stream] = []
    sum: _Span | None = None
    sum_sent: _Span | None = None
    sum_received: _Span | None = None
    cpu_utilization_percent: dict[str, _Number] = {}


class _Test(_Part):
    start: _Start = _Start.model_construct()
    intervals: list[_Interval]
    end: _End


def _test_of(source: Source) -> _Test:
    """Return what a file says of a test; refuse what is no JSON, cut, tells of an error, or lacks a number."""
    try:
        data = json.loads(source.text, parse_int=float)  # whole numbers of any length
    except RecursionError:
        source.refuse("is nested too deeply; make it with  iperf3 -J")
    except json.JSONDecodeError as error:
        source.refuse(f"is not JSON ({error.msg}); make it with  iperf3 -J", error.lineno)
    if not isinstance(data, dict) or not {"intervals", "end"} <= data.keys():
        source.refuse("is not the output of  iperf3 -J: it needs 'intervals' and 'end'")
    if "error" in data:
        source.refuse(f"tells of a test that failed: {str(data['error'])[:200]}")
    try:
        return _Test.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(key) for key in first["loc"])
        source.refuse(f"is not the output of  iperf3 -J: {where}: {first['msg'].lower()}")


def _recognizes(text: str) -> bool:
    return text.lstrip().startswith("{") and '"intervals"' in text and '"end"' in text


@importer("iperf3", "iperf3 -J", _recognizes)
def _read(source: Source) -> list[Figure]:
    test = _test_of(source)
    figures, end = [], test.end
    spans = [each.sum for each in test.intervals if _counts(source, each.sum)]
    if spans:
        mean = _received(test.start, end.sum_received, end.sum) if source.window.whole else None
        rates = [(each.mbit_per_s, each.end - each.start) for each in spans]
        figures.append(of_rates("throughput", "Mbit/s", rates, mean))
    if source.window.whole:
        figures += [*_sent(end), *_each(test), *_loss(end), *_processors(test)]
    return figures


def _counts(source: Source, span: _Span) -> bool:
    return not span.omitted and span.end > span.start and source.window.holds(span.start, span.end)


def _sent(end: _End) -> list[Figure]:
    figures = []
    if end.sum_sent is not None:
        figures.append(Figure("sent", "Mbit/s", {"mean": end.sum_sent.mbit_per_s}))
        if end.sum_sent.retransmits is not None:
            figures.append(Figure("retransmits", "count", {"total": end.sum_sent.retransmits}))
    trips = [each.sender.mean_rtt * 1e-3 for each in end.streams if each.sender and each.sender.mean_rtt]
    if trips:
        figures.append(Figure("rtt", "ms", {"mean": fmean(trips)}))
    return figures


def _each(test: _Test) -> list[Figure]:
    rates = [_received(test.start, each.receiver, each.udp) for each in test.end.streams]
    if len(rates) < 2:
        return []
    return [Figure(f"throughput/{n}", "Mbit/s", {"mean": rate or 0.0}) for n, rate in enumerate(rates, 1)]


def _received(start: _Start, receiver: _Span | None, both: _Span | None) -> float | None:
    """Return a rate at the receiver: its own, else that of both ends, without what was lost if it is the sender's."""
    if receiver is not None:
        return receiver.mbit_per_s
    if both is None:
        return None
    is_sent = start.sends if both.sender is None else both.sender
    lost = (both.lost_packets or 0) / both.packets if is_sent and both.packets else 0.0
    return both.mbit_per_s * (1.0 - lost)


def _loss(end: _End) -> list[Figure]:
    total = end.sum
    if total is None or total.lost_packets is None or not total.packets:
        return []
    jitter = Figure("jitter", "ms", {"mean": total.jitter_ms})
    return [*of_share("lost", total.lost_packets, total.packets), jitter]


def _processors(test: _Test) -> list[Figure]:
    use, ends = test.end.cpu_utilization_percent, ["client", "server"]
    if test.start.accepted_connection is not None:
        ends.reverse()
    keys = zip(ends, ("host_total", "remote_total"), strict=True)
    return [Figure(f"cpu/{name}", "%", {"mean": use[key]}) for name, key in keys if key in use]
