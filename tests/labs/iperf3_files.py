"""iperf3's JSON output of tests whose numbers are known."""

import json
import math
from dataclasses import dataclass
from typing import Any


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
