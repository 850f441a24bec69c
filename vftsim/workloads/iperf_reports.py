"""What clients find in a bulk test, and how iperf 2 and iperf3 would report it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.labs.imports.iperf2 import SUM, Iperf2Line, Iperf2Report
from vftsim.labs.imports.iperf3 import Iperf3Report, Iperf3Stream

_NS_MS = 1e-6


@dataclass(frozen=True)
class TcpConnectionResult:
    """What one client would report.

    ``intervals`` are (begin s, end s, bytes that came in order in it); counts of segments and events are of the sender.
    """

    client: int
    intervals: tuple[tuple[float, float, int], ...]
    retransmitted: int
    timeouts: int
    recoveries: int
    acknowledgements: int

    @property
    def bytes(self) -> int:
        """All that came in order."""
        return sum(count for _, _, count in self.intervals)

    @property
    def bits_per_s(self) -> float:
        """Mean over the whole time."""
        return self.bytes * 8 / self.intervals[-1][1] if self.intervals else 0.0

    def cumulative_bits_per_s(self) -> tuple[float, ...]:
        """Means from the beginning up to the end of each interval."""
        total, means = 0, []
        for _, end_s, count in self.intervals:
            total += count
            means.append(total * 8 / end_s)
        return tuple(means)


@dataclass(frozen=True)
class UdpFlowResult:
    """What one client and the server would report; ``lost`` as iperf 2 counts, ``socket_drops`` of it in the guest.

    ``dropped`` were lost anywhere, whether or not a later one has come.
    """

    client: int
    sent: int
    sent_bytes: int
    sending_s: float
    received: int
    received_bytes: int
    receiving_s: float
    lost: int
    total: int
    late: int
    jitter_ns: float
    mean_difference_ns: float
    socket_drops: int
    dropped: int

    @property
    def sent_bits_per_s(self) -> float:
        """Mean over the time of sending."""
        return self.sent_bytes * 8 / self.sending_s

    @property
    def received_bits_per_s(self) -> float:
        """Mean over the server's time."""
        return self.received_bytes * 8 / self.receiving_s

    @property
    def loss_ratio(self) -> float:
        """Lost of total."""
        return self.lost / self.total if self.total else 0.0


def iperf2_of_tcp(results: Sequence[TcpConnectionResult]) -> Iperf2Report:
    """Return the client's report: intervals, then whole times, with sums where there are several connections."""
    lines: list[Iperf2Line] = []
    for n in range(max(len(result.intervals) for result in results)):
        lines += _with_sum(
            [_line(str(result.client), *result.intervals[n]) for result in results if n < len(result.intervals)]
        )
    lines += _with_sum([_line(str(r.client), 0.0, r.intervals[-1][1], r.bytes) for r in results])
    return Iperf2Report(tuple(lines))


def _line(connection: str, begin_s: float, end_s: float, size_bytes: float) -> Iperf2Line:
    return Iperf2Line(connection, begin_s, end_s, size_bytes, size_bytes * 8 / (end_s - begin_s))


def _with_sum(lines: list[Iperf2Line]) -> list[Iperf2Line]:
    if len(lines) < 2:
        return lines
    return [*lines, _line(SUM, lines[0].begin_s, lines[0].end_s, sum(line.bytes for line in lines))]


def iperf2_of_udp(result: UdpFlowResult) -> Iperf2Report:
    """Return the report of one client, the server's in it."""
    connection = str(result.client)
    served = Iperf2Line(
        connection,
        0.0,
        result.receiving_s,
        result.received_bytes,
        result.received_bits_per_s,
        result.jitter_ns * _NS_MS,
        result.lost,
        result.total,
    )
    return Iperf2Report((_line(connection, 0.0, result.sending_s, result.sent_bytes),), (served,), result.sent)


def iperf3_of_tcp(results: Sequence[TcpConnectionResult]) -> Iperf3Report:
    """Return the report of a test; what was sent is what was received in order, retransmissions apart."""
    return Iperf3Report("TCP", tuple(Iperf3Stream(r.intervals, r.bytes, r.bytes, r.retransmitted) for r in results))


def iperf3_of_udp(results: Sequence[UdpFlowResult]) -> Iperf3Report:
    """Return the report of a test as one interval."""
    return Iperf3Report("UDP", tuple(_datagram_stream(result) for result in results))


def _datagram_stream(result: UdpFlowResult) -> Iperf3Stream:
    return Iperf3Stream(
        ((0.0, result.sending_s, result.sent_bytes),),
        result.sent_bytes,
        result.received_bytes,
        None,
        result.jitter_ns * _NS_MS,
        result.lost,
        result.total,
    )
