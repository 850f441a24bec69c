"""The link: serialization, order, bounded queue, and the accounts of what was sent."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network import Network, reserve_now

from vftsim.kernel import EventKind
from vftsim.platform.io.link import Link, carried_bytes, utilization

_GBIT = 1_000_000_000
_US = 1_000


class Wire:
    """A link out of a host, and what has arrived at its far end."""

    def __init__(self, rate: int, latency_ns: int, queue_bytes: int) -> None:
        self.network = Network()
        self.link: Link = self.network.wire(rate, latency_ns, queue_bytes)

    def arrivals(self, frames: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Send frames of (time, bytes); return (arrival time, number of the frame) in order of arrival."""
        network = self.network
        for number, (time_ns, size) in enumerate(frames):
            network.at(time_ns, EventKind.ARRIVAL, number, lambda n=number, s=size: network.send(s, n))  # type: ignore[misc]
        network.engine.run()
        return network.log

    @property
    def dropped(self) -> int:
        return self.network.dropped(self.link.queue_full)

    @property
    def in_flight(self) -> int:
        """Frames accepted and not yet delivered."""
        return self.link.sent - self.dropped - self.link.delivered


def test_a_rate_that_divides_no_byte_evenly_takes_whole_nanoseconds() -> None:
    """1500 bytes at 3 Mbit/s take 4 ms exactly, although a byte takes 2666.67 ns."""
    assert Wire(3_000_000, 0, 256 * 1024).arrivals([(0, 1500)]) == [(4_000_000, 0)]


@pytest.mark.parametrize(("gbit", "size"), [(100, 64), (100, 82), (40, 82), (10, 84), (3, 1501)])
def test_frames_in_a_row_leave_at_the_rate_where_none_takes_a_whole_number_of_ns(gbit: int, size: int) -> None:
    """64 bytes at 100 Gbit/s take 5.12 ns: the 100th leaves at 512, not at 500.  After a pause all begins anew."""
    frames = [(start, size) for start in (0, 1_000_000) for _ in range(100)]
    leave = [start + (n + 1) * size * 8 // gbit for start in (0, 1_000_000) for n in range(100)]
    assert [time_ns for time_ns, _ in Wire(gbit * _GBIT, 0, 256 * 1024).arrivals(frames)] == leave


def test_utilization_is_the_share_of_the_time_that_the_bits_take() -> None:
    """1250 bytes at 1 Gbit/s fill 10 us; of 40 us that is a quarter."""
    assert utilization(1250, _GBIT, 40 * _US) == 0.25
    assert utilization(0, _GBIT, 0) == 0.0


@pytest.mark.parametrize(("at_us", "carried"), [(0, 0), (4, 500), (8, 1000), (20, 2500), (24, 3000), (99, 3000)])
def test_what_waits_is_not_carried_yet(at_us: int, carried: int) -> None:
    """Three frames of 1000 bytes taken at once leave at 125 bytes a us."""
    wire = Wire(_GBIT, 50 * _US, 3000)
    for number in range(3):
        wire.network.send(1000, number)
    assert carried_bytes(wire.link, at_us * _US) == carried


def test_a_lone_frame_takes_its_transmission_time_and_the_latency() -> None:
    """1250 bytes = 10,000 bits at 1 Gbit/s: 10 us on the wire, then 100 us of latency."""
    link = Wire(_GBIT, 100 * _US, 256 * 1024)
    assert link.arrivals([(0, 1250)]) == [(110 * _US, 0)]


def test_frames_of_one_instant_leave_one_after_another_in_order() -> None:
    """Each waits for those before it; the latency is not waited for."""
    link = Wire(_GBIT, 100 * _US, 256 * 1024)
    frames = [(0, 1250), (0, 125), (0, 2500), (35 * _US, 1250)]
    assert link.arrivals(frames) == [
        (110 * _US, 0),
        (111 * _US, 1),
        (131 * _US, 2),
        (145 * _US, 3),  # the transmitter had been idle for 4 us
    ]


def test_a_frame_beyond_the_queue_is_dropped_and_leaves_no_trace() -> None:
    """A queue of 3000 bytes holds three frames of 1000 with the one in transmission; at 8 us one has left."""
    link = Wire(_GBIT, 0, 3000)
    frames = [(0, 1000), (0, 1000), (0, 1000), (0, 1000), (8 * _US, 1000), (8 * _US, 1)]
    assert link.arrivals(frames) == [(8 * _US, 0), (16 * _US, 1), (24 * _US, 2), (32 * _US, 4)]
    assert (link.link.sent, link.dropped, link.link.delivered, link.in_flight) == (6, 2, 4, 0)
    assert link.link.sent_bytes == 4000


@pytest.mark.parametrize(
    ("queue_bytes", "later_us", "dropped"), [(1000, 0, 1), (1000, 7, 1), (1000, 8, 0), (1500, 4, 0)]
)
def test_a_frame_counts_until_its_last_bit_has_left(queue_bytes: int, later_us: int, dropped: int) -> None:
    """1000 bytes take 8 us; after 4 us half of the first is left, and 1500 bytes hold that and the second."""
    link = Wire(_GBIT, 0, queue_bytes)
    link.arrivals([(0, 1000), (later_us * _US, 1000)])
    assert link.dropped == dropped


def test_frames_in_flight_are_accounted_for() -> None:
    wire = Wire(_GBIT, 100 * _US, 2000)
    for number in range(3):
        wire.network.send(1000, number)
    assert (wire.link.sent, wire.dropped, wire.link.delivered, wire.in_flight) == (3, 1, 0, 2)
    wire.network.engine.run(110 * _US)
    assert (wire.link.delivered, wire.in_flight) == (1, 1)


def test_other_traffic_makes_a_frame_wait_but_is_not_a_frame() -> None:
    """A burst of 125 kB on the same card takes 1 ms at 1 Gbit/s."""
    wire = Wire(_GBIT, 0, 256 * 1024)
    assert wire.network.engine.call(reserve_now, wire.link.row, 125_000) == 1_000 * _US
    assert wire.arrivals([(0, 125)]) == [(1_001 * _US, 0)]
    assert (wire.link.sent, wire.link.sent_bytes) == (1, 125_125)


def test_other_traffic_waits_for_the_frame_on_the_wire() -> None:
    """A frame of 10 us at 0, other traffic of 1 ms at 5 us: the next frame arrives after 10 us, 1 ms and 10 us."""
    wire = Wire(_GBIT, 0, 256 * 1024)
    wire.network.at(
        5 * _US, EventKind.ARRIVAL, 9, lambda: wire.network.engine.call(reserve_now, wire.link.row, 125_000)
    )
    assert wire.arrivals([(0, 1250), (6 * _US, 1250)]) == [(10 * _US, 0), (1_020 * _US, 1)]


_FRAMES = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 4000)), max_size=60)


@settings(max_examples=150, deadline=None)
@given(_FRAMES, st.integers(1000, 20_000), st.integers(0, 50_000))
def test_conservation_order_and_bounds_hold_for_any_traffic(
    frames: list[tuple[int, int]], queue_bytes: int, latency_ns: int
) -> None:
    rate = 100_000_000  # 80 ns a byte
    wire = Wire(rate, latency_ns, queue_bytes)
    frames = sorted((at_us * _US, size) for at_us, size in frames)
    log = wire.arrivals(frames)
    assert wire.link.sent == len(frames) == wire.link.delivered + wire.dropped
    assert [number for _, number in log] == sorted(number for _, number in log)
    for (earlier_ns, _), (later_ns, number) in pairwise(log):
        assert later_ns - earlier_ns >= frames[number][1] * 80
    for arrival_ns, number in log:
        sent_ns, size = frames[number]
        assert size * 80 <= arrival_ns - latency_ns - sent_ns <= queue_bytes * 80
