"""Bulk TCP as a workload and as programs: what a model names, and what comes out.

Rules: :mod:`vftsim.workloads.tcp.sender`, :mod:`~vftsim.workloads.tcp.receiver`, :mod:`~vftsim.workloads.tcp.program`,
:mod:`~vftsim.workloads.tcp.client`, :mod:`~vftsim.workloads.stations`.
"""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.kernel import Engine
from vftsim.workloads import stations
from vftsim.workloads.tcp.client import add_bulk_tcp, on_client_room, start_bulk_tcp
from vftsim.workloads.tcp.parameters import (
    HEADER_BYTES,
    BulkTcpSpec,
    TcpSinkSpec,
    TcpSourceSpec,
    bulk_tcp,
    tcp_sink,
    tcp_source,
)
from vftsim.workloads.tcp.program import add_tcp_program, tcp_programs
from vftsim.workloads.tcp.records import bulks, connections, intervals

ENTRIES = (start_bulk_tcp,)
ACTIONS = (on_client_room,)
TABLES = (bulks, connections, intervals, tcp_programs, *stations.TABLES)

__all__ = [
    "ACTIONS",
    "ENTRIES",
    "TABLES",
    "BulkTcpSpec",
    "TcpConnectionResult",
    "TcpSinkSpec",
    "TcpSourceSpec",
    "add_bulk_tcp",
    "add_tcp_program",
    "bulk_tcp",
    "bulk_tcp_result",
    "line_payload_bits_per_s",
    "start_bulk_tcp",
    "tcp_sink",
    "tcp_source",
    "window_payload_bits_per_s",
]

_S = 1_000_000_000


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


def bulk_tcp_result(engine: Engine, row: int) -> list[TcpConnectionResult]:
    """Return what each client of a workload would report by now."""
    bulk = engine.rows(bulks)[row]
    first, mss = int(bulk.first), int(bulk.segment_bytes)
    rows = [engine.rows(intervals)[n] for n in range(1, engine.used(intervals) + 1)]
    results = []
    for n in range(int(bulk.clients)):
        connection, before, parts = engine.rows(connections)[first + n], 0, []
        for each in (interval for interval in rows if interval.connection == first + n):
            parts.append((int(each.begin_ns) / _S, int(each.end_ns) / _S, (int(each.segments) - before) * mss))
            before = int(each.segments)
        results.append(
            TcpConnectionResult(
                n + 1,
                tuple(parts),
                int(connection.retransmitted),
                int(connection.timeouts),
                int(connection.recoveries),
                int(connection.acknowledgements),
            )
        )
    return results


def line_payload_bits_per_s(rate_bits_per_s: float, mss: int = 1448) -> float:
    """Return the payload that a line of full segments carries: frame arithmetic."""
    return rate_bits_per_s * mss / (mss + HEADER_BYTES)


def window_payload_bits_per_s(window_bytes: int, round_trip_ns: int, mss: int = 1448) -> float:
    """Return the payload of a connection that a window of whole segments bounds."""
    return window_bytes // mss * mss * 8 * _S / round_trip_ns
