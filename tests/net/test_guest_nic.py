"""The guest's network card: moderated interrupts, the work they cause, and the bounded ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from network import Network, disconnect, start_job

from tests.kernel.rows_in_use import rows_in_use
from vftsim.kernel import EventKind
from vftsim.kernel.declare import part_of
from vftsim.platform.cpu.records import works
from vftsim.platform.io.packet import ports
from vftsim.platform.io.paths.moderated import GuestNicSpec, guest_nics, install
from vftsim.platform.protection.guard import guards, note_input

_US = 1_000


class Card:
    """A card on a one-CPU guest, and what it delivered: (time in us, number of the packet)."""

    def __init__(
        self,
        ring: int = 256,
        moderation_us: int = 125,
        interrupt_us: int = 4,
        packet_us: int = 1,
        on_input: Callable[[int], int] | None = None,
    ) -> None:
        self.network = Network(is_guarded=on_input is not None)
        spec = GuestNicSpec(ring=ring, moderation=moderation_us * _US)
        install(self.network.engine, self.network.port, spec, interrupt_us * _US, packet_us * _US)
        self.nic = self.network.engine.rows(guest_nics)[self.network.port]
        if on_input is not None:
            self._guard(on_input)

    def _guard(self, on_input: Callable[[int], int]) -> None:
        engine: Any = self.network.engine
        row, guard = engine.add(guards)
        guard.row = row
        engine.rows(ports)[self.network.port].guard = row
        engine._namespace[part_of(note_input).name] = lambda _sim, _guard, size_bytes: on_input(size_bytes)

    def arrivals(self, *times_us: int) -> None:
        for number, time_us in enumerate(times_us):
            self.network.at(
                time_us * _US,
                EventKind.DELIVERY,
                number,
                lambda n=number: self.network.arrive(100, n),  # type: ignore[misc]
            )

    def run(self) -> list[tuple[float, int]]:
        self.network.engine.run()
        return [(time_ns / _US, number) for time_ns, number in self.network.log]

    @property
    def dropped(self) -> int:
        return self.network.dropped(self.nic.ring_full)

    @property
    def waiting(self) -> int:
        return int(self.nic.ring.length + self.nic.taken.length)


def test_moderation_by_hand() -> None:
    """125 us between interrupts, 4 us each, 1 us a packet.

    0 interrupts at once (work 0-5 us).  10 and 50 wait for the interval's end at 125: one interrupt, 6 us.
    260 is beyond the next interval's end (250) and interrupts at once.  300 waits until 385.
    """
    card = Card()
    card.arrivals(0, 10, 50, 260, 300)
    assert card.run() == [(5, 0), (131, 1), (131, 2), (265, 3), (390, 4)]
    assert card.nic.interrupts == 4
    assert card.network.busy_ns() == (4 * 4 + 5 * 1) * _US


def test_packets_of_one_instant_share_an_interrupt() -> None:
    card = Card()
    card.arrivals(7, 7, 7)
    assert card.run() == [(14, 0), (14, 1), (14, 2)]
    assert card.nic.interrupts == 1


def test_without_moderation_every_instant_interrupts() -> None:
    card = Card(moderation_us=0)
    card.arrivals(0, 10, 20)
    assert card.run() == [(5, 0), (15, 1), (25, 2)]


def test_a_packet_that_finds_the_ring_full_is_dropped() -> None:
    """Ring of 2: 1 and 2 wait for the interrupt at 125, 3 and 4 find no descriptor, 5 comes after it."""
    card = Card(ring=2)
    card.arrivals(0, 10, 20, 30, 40, 130)
    assert [number for _, number in card.run()] == [0, 1, 2, 5]
    assert (card.nic.received, card.dropped, card.waiting) == (6, 2, 0)


def test_what_the_driver_has_not_come_to_takes_descriptors() -> None:
    """Ring of 2, 300 us a packet: 1 and 2 are announced at 125 and wait for 0, so 3 finds no descriptor.

    At 300 the driver comes to them, and 4 has room; at 900 it comes to that.
    """
    card = Card(ring=2, interrupt_us=0, packet_us=300)
    card.arrivals(0, 10, 20, 130, 301)
    assert card.run() == [(300, 0), (900, 1), (900, 2), (1200, 4)]
    assert (card.nic.received, card.dropped, card.waiting) == (5, 1, 0)


def test_an_interrupt_that_the_guest_has_not_come_to_finds_what_comes_meanwhile() -> None:
    """4 us an interrupt, 300 a packet: that of 125 us brings 1 and waits for 0 until 304, so 2 joins it at 250.

    The next one, for 3 at 375, waits until 908, so 4 joins it at 500.
    """
    card = Card(interrupt_us=4, packet_us=300)
    card.arrivals(0, 10, 130, 260, 400)
    assert card.run() == [(304, 0), (908, 1), (908, 2), (1512, 3), (1512, 4)]
    assert card.nic.interrupts == 3
    assert card.network.busy_ns() == (3 * 4 + 5 * 300) * _US


def test_a_card_that_costs_nothing_delivers_at_once() -> None:
    card = Card(interrupt_us=0, packet_us=0)
    card.arrivals(3, 4)
    assert card.run() == [(3, 0), (4, 1)]
    assert card.network.busy_ns() == 0


def test_the_protection_mechanism_hears_every_packet_and_its_cost_is_paid() -> None:
    sizes: list[int] = []

    def on_input(size_bytes: int) -> int:
        sizes.append(size_bytes)
        return 20 * _US

    card = Card(on_input=on_input)
    card.arrivals(0, 0)
    assert card.run() == [(46, 0), (46, 1)]  # 4 + 2 x (1 + 20)
    assert sizes == [100, 100]


def test_interrupt_work_goes_before_the_servers_work() -> None:
    """A job of 100 us begins at 0; the interrupt at 10 takes 5 us out of it."""
    card = Card()
    engine: Any = card.network.engine
    engine.call(start_job, card.network.domain, 100 * _US)
    card.arrivals(10)
    assert card.run() == [(15, 0)]
    assert engine.now_ns == 105 * _US  # the job's end is the last event
    assert works_left(card) == 0


def works_left(card: Card) -> int:
    """Pieces of work that have not been given back."""
    return rows_in_use(card.network.engine, works)


def test_a_disconnected_card_loses_what_arrives_and_what_it_held() -> None:
    card = Card()
    card.arrivals(0, 10, 20, 30)

    def unplug() -> None:
        card.network.engine.call(disconnect, card.network.port)
        assert card.network.dropped(card.nic.down) == 2

    card.network.at(25 * _US, EventKind.CONTROL, 0, unplug)
    assert card.run() == [(5, 0)]
    assert card.network.dropped(card.nic.down) == 3


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 2000), max_size=80),
    st.integers(1, 6),
    st.integers(0, 300),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_received_is_delivered_plus_dropped_in_order_and_work_is_conserved(
    times_us: list[int], ring: int, moderation_us: int, interrupt_us: int, packet_us: int
) -> None:
    card = Card(ring, moderation_us, interrupt_us, packet_us)
    card.arrivals(*sorted(times_us))
    delivered = [number for _, number in card.run()]
    nic = card.nic
    assert nic.received == len(times_us) == len(delivered) + card.dropped
    assert delivered == sorted(delivered)
    assert card.network.busy_ns() == (nic.interrupts * interrupt_us + len(delivered) * packet_us) * _US
