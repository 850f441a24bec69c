"""What clients find in a bulk test, and how iperf 2 would report one of TCP."""

from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.labs.imports.iperf2 import SUM, Iperf2Line, Iperf2Report


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
    begun = [result for result in results if result.intervals]
    lines += _with_sum([_line(str(each.client), 0.0, each.intervals[-1][1], each.bytes) for each in begun])
    return Iperf2Report(tuple(lines))


def _line(connection: str, begin_s: float, end_s: float, size_bytes: float) -> Iperf2Line:
    return Iperf2Line(connection, begin_s, end_s, size_bytes, size_bytes * 8 / (end_s - begin_s))


def _with_sum(lines: list[Iperf2Line]) -> list[Iperf2Line]:
    if len(lines) < 2:
        return lines
    return [*lines, _line(SUM, lines[0].begin_s, lines[0].end_s, sum(line.bytes for line in lines))]
