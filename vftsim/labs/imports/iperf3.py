"""iperf3's JSON output (``iperf3 -J``) of one test: read, and written with what a test of the model knows.

Figures are of all streams together, and of each where there are several: the throughput of the intervals as the file's
own end sees it, its mean over the test at the receiver, the sender's, retransmitted segments, round trips, jitter and
loss of datagrams, and the processors' use at both ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from vftsim.labs.importing import Figure, Importer, Source, of_values, register


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
        """How long it lasted."""
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
        jitter_ms = sum(stream.jitter_ms or 0.0 for stream in self.streams) / max(1, len(self.streams))
        together = Iperf3Stream((), 0, 0, None, jitter_ms, lost, packets)
        return {"sum": sent | _datagrams(together), "sum_sent": sent, "sum_received": received | _datagrams(together)}


def _span(begin_s: float, end_s: float, size_bytes: int) -> dict[str, Any]:
    seconds = end_s - begin_s
    rate = size_bytes * 8 / seconds if seconds else 0.0
    return {"start": begin_s, "end": end_s, "seconds": seconds, "bytes": size_bytes, "bits_per_second": rate}


def _datagrams(stream: Iperf3Stream) -> dict[str, Any]:
    share = 100.0 * (stream.lost_packets or 0) / stream.packets if stream.packets else 0.0
    return {
        "jitter_ms": stream.jitter_ms, "lost_packets": stream.lost_packets, "packets": stream.packets,
        "lost_percent": share,
    }  # fmt: skip


def read_test(source: Source) -> dict[str, Any]:
    """Return the JSON of a test.

    Raises
    ------
    ModelFileError
        It is no JSON, is cut, or tells of an error instead of a test.
    """
    try:
        data = json.loads(source.text)
    except json.JSONDecodeError as error:
        source.refuse(f"is not JSON ({error.msg}); make it with  iperf3 -J", error.lineno)
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("intervals"), list)
        or not isinstance(data.get("end"), dict)
    ):
        source.refuse("is not the output of  iperf3 -J: it needs 'intervals' and 'end'")
    if "error" in data:
        source.refuse(f"tells of a test that failed: {str(data['error'])[:200]}")
    return data


def _read(source: Source) -> list[Figure]:
    data = read_test(source)
    found = []
    rates = _rates(source, data)
    if rates:
        end = data["end"]
        mean = _mbit(end.get("sum_received", end.get("sum"))) if source.window.whole else None
        found.append(of_values("throughput", "Mbit/s", rates, mean=mean))
    if source.window.whole:
        found += [*_sent(data), *_each(data), *_loss(data["end"]), *_processors(data["end"])]
    return found


def _rates(source: Source, data: dict[str, Any]) -> list[float]:
    rates = []
    for n, interval in enumerate(data["intervals"], 1):
        total = interval.get("sum") if isinstance(interval, dict) else None
        if not isinstance(total, dict) or not {"start", "end", "bits_per_second"} <= total.keys():
            source.refuse(f"interval {n} has no 'sum' with start, end and bits_per_second")
        if not total.get("omitted") and source.window.holds(total["start"], total["end"]):
            rates.append(_mbit(total))
    return rates


def _mbit(total: dict[str, Any] | None) -> float:
    return float(total["bits_per_second"]) * 1e-6 if total else 0.0


def _sent(data: dict[str, Any]) -> list[Figure]:
    end, found = data["end"], []
    if "sum_sent" in end:
        found.append(Figure("sent", "Mbit/s", {"mean": _mbit(end["sum_sent"])}))
        if "retransmits" in end["sum_sent"]:
            found.append(Figure("retransmits", "count", {"total": end["sum_sent"]["retransmits"]}))
    trips = [s["sender"]["mean_rtt"] * 1e-3 for s in end.get("streams", []) if s.get("sender", {}).get("mean_rtt")]
    if trips:
        found.append(Figure("rtt", "ms", {"mean": sum(trips) / len(trips)}))
    return found


def _each(data: dict[str, Any]) -> list[Figure]:
    streams = data["end"].get("streams", [])
    if len(streams) < 2:
        return []
    return [
        Figure(f"throughput/{n}", "Mbit/s", {"mean": _mbit(stream.get("receiver", stream.get("udp")))})
        for n, stream in enumerate(streams, 1)
    ]


def _loss(end: dict[str, Any]) -> list[Figure]:
    total = end.get("sum", {})
    if "lost_packets" not in total or not total.get("packets"):
        return []
    return [
        Figure("lost", "%", {"n": total["packets"], "mean": 100.0 * total["lost_packets"] / total["packets"]}),
        Figure("jitter", "ms", {"mean": total["jitter_ms"]}),
    ]


def _processors(end: dict[str, Any]) -> list[Figure]:
    use = end.get("cpu_utilization_percent", {})
    names = {"cpu/client": "host_total", "cpu/server": "remote_total"}
    return [Figure(name, "%", {"mean": float(use[key])}) for name, key in names.items() if key in use]


def _recognizes(text: str) -> bool:
    return text.lstrip().startswith("{") and '"intervals"' in text and '"end"' in text


register(Importer("iperf3", "iperf3 -J", _recognizes, _read))
