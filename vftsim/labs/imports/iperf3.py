"""iperf3's JSON output (``iperf3 -J``) of one test.

Figures are of all streams together, and of each where there are several: the throughput of the intervals as the file's
own end sees it, its mean over the test at the receiver, the sender's, retransmitted segments, round trips, jitter and
loss of datagrams, and the processors' use at both ends.
"""

import json
from statistics import fmean
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vftsim.labs.importing import BOTH_WAYS, LARGEST, Figure, Source, importer, of_rates, of_share
from vftsim.spec.explain import first_mistake

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
    if isinstance(data["end"], dict) and any(key.endswith("_bidir_reverse") for key in data["end"]):
        source.refuse(BOTH_WAYS)
    try:
        return _Test.model_validate(data)
    except ValidationError as error:
        source.refuse(f"is not the output of  iperf3 -J: {first_mistake(error).lower()}")


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


def _received(start: _Start, receiver: _Span | None, both_ends: _Span | None) -> float | None:
    """Return a rate at the receiver: its own, else that of both ends, without what was lost if it is the sender's."""
    if receiver is not None:
        return receiver.mbit_per_s
    if both_ends is None:
        return None
    is_sent = start.sends if both_ends.sender is None else both_ends.sender
    lost = (both_ends.lost_packets or 0) / both_ends.packets if is_sent and both_ends.packets else 0.0
    return both_ends.mbit_per_s * (1.0 - lost)


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
