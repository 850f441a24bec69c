"""The guest's network card: moderated interrupts, the work they cause, and the bounded ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.cpu import Guest, Host, Work
from vftsim.cpu.parameters import DomainScheduling
from vftsim.cpu.schedulers.native import Native
from vftsim.engine import Clock, EventKind
from vftsim.net.guest_nic import GuestNic

_US = 1_000


class Card:
    """A card on a one-CPU guest, and what it delivered: (time in us, payload)."""

    def __init__(
        self,
        ring: int = 256,
        moderation_us: int = 125,
        interrupt_us: int = 4,
        packet_us: int = 1,
        on_input: Callable[[int], int] | None = None,
    ) -> None:
        self.clock = Clock()
        self.host = Host(self.clock, 1, Native().build())
        self.guest = Guest(self.host, [self.host.add_vcpu(DomainScheduling())], 100_000 * _US)
        self.host.start()
        self.log: list[tuple[float, Any]] = []
        self.nic = GuestNic(
            self.clock, self.guest, ring, moderation_us * _US, interrupt_us * _US, packet_us * _US, on_input,
            lambda payload: self.log.append((self.clock.now_ns / _US, payload)),
        )  # fmt: skip

    def arrivals(self, *times_us: int) -> None:
        for number, time_us in enumerate(times_us):
            self.clock.at(time_us * _US, EventKind.DELIVERY, number, self.nic.receive, (100, number))


def test_moderation_by_hand() -> None:
    """125 us between interrupts, 4 us each, 1 us a packet.

    0 interrupts at once (work 0-5 us).  10 and 50 wait for the interval's end at 125: one interrupt, 6 us.
    260 is beyond the next interval's end (250) and interrupts at once.  300 waits until 385.
    """
    card = Card()
    card.arrivals(0, 10, 50, 260, 300)
    card.clock.run()
    assert card.log == [(5, 0), (131, 1), (131, 2), (265, 3), (390, 4)]
    assert card.nic.interrupts == 4
    assert card.host.busy_ns() == (4 * 4 + 5 * 1) * _US


def test_packets_of_one_instant_share_an_interrupt() -> None:
    card = Card()
    card.arrivals(7, 7, 7)
    card.clock.run()
    assert card.log == [(14, 0), (14, 1), (14, 2)]
    assert card.nic.interrupts == 1


def test_without_moderation_every_instant_interrupts() -> None:
    card = Card(moderation_us=0)
    card.arrivals(0, 10, 20)
    card.clock.run()
    assert card.log == [(5, 0), (15, 1), (25, 2)]


def test_a_packet_that_finds_the_ring_full_is_dropped() -> None:
    """Ring of 2: 1 and 2 wait for the interrupt at 125, 3 and 4 find no descriptor, 5 comes after it."""
    card = Card(ring=2)
    card.arrivals(0, 10, 20, 30, 40, 130)
    card.clock.run()
    assert [payload for _, payload in card.log] == [0, 1, 2, 5]
    assert (card.nic.received, card.nic.dropped, card.nic.waiting) == (6, 2, 0)


def test_a_card_that_costs_nothing_delivers_at_once() -> None:
    card = Card(interrupt_us=0, packet_us=0)
    card.arrivals(3, 4)
    card.clock.run()
    assert card.log == [(3, 0), (4, 1)]
    assert card.host.busy_ns() == 0


def test_the_protection_mechanism_hears_every_packet_and_its_cost_is_paid() -> None:
    sizes: list[int] = []

    def on_input(size_bytes: int) -> int:
        sizes.append(size_bytes)
        return 20 * _US

    card = Card(on_input=on_input)
    card.arrivals(0, 0)
    card.clock.run()
    assert sizes == [100, 100]
    assert card.log == [(46, 0), (46, 1)]  # 4 + 2 x (1 + 20)


def test_interrupt_work_goes_before_the_servers_work() -> None:
    """A job of 100 us begins at 0; the interrupt at 10 takes 5 us out of it."""
    card = Card()
    done: list[float] = []
    card.guest.submit(Work(100 * _US, lambda _: done.append(card.clock.now_ns / _US)))
    card.arrivals(10)
    card.clock.run()
    assert card.log == [(15, 0)]
    assert done == [105]


def test_a_disconnected_card_loses_what_arrives_and_what_it_held() -> None:
    card = Card()
    card.arrivals(0, 10, 20, 30)

    def unplug(_: Any) -> None:
        card.nic.connected = False
        assert card.nic.discard() == 2

    card.clock.at(25 * _US, EventKind.CONTROL, 0, unplug)
    card.clock.run()
    assert card.log == [(5, 0)]
    assert card.nic.lost_while_down == 3


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
    card.clock.run()
    nic = card.nic
    delivered = [payload for _, payload in card.log]
    assert nic.received == len(times_us) == len(delivered) + nic.dropped
    assert delivered == sorted(delivered)
    assert card.host.busy_ns() == (nic.interrupts * interrupt_us + len(delivered) * packet_us) * _US
