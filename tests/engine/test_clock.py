"""The clock: integer time, and an order of simultaneous events that nobody's planning order can change."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.engine import Clock, EventKind

_MS = 1_000_000


def _noted(clock: Clock, log: list[Any], label: Any) -> Any:
    return lambda _: log.append((clock.now_ns, label))


def test_events_happen_in_the_order_of_time_then_kind_then_entity() -> None:
    clock = Clock()
    log: list[Any] = []
    plan = [
        (20, EventKind.CPU, 0),
        (10, EventKind.CONTROL, 0),
        (10, EventKind.CPU, 7),
        (10, EventKind.TIMER, 2),
        (10, EventKind.TIMER, 1),
        (10, EventKind.CPU, 3),
        (5, EventKind.ARRIVAL, 9),
    ]
    for time_ns, kind, entity in plan:
        clock.at(time_ns, kind, entity, log.append, (time_ns, kind.name, entity))
    clock.run()
    assert log == [
        (5, "ARRIVAL", 9),
        (10, "CPU", 3),
        (10, "CPU", 7),
        (10, "TIMER", 1),
        (10, "TIMER", 2),
        (10, "CONTROL", 0),
        (20, "CPU", 0),
    ]


def test_a_large_entity_does_not_spill_into_the_next_kind() -> None:
    clock = Clock()
    log: list[Any] = []
    clock.at(1, EventKind.SLICE, 0, log.append, "slice")
    clock.at(1, EventKind.CPU, (1 << 40) - 1, log.append, "cpu")
    clock.run()
    assert log == ["cpu", "slice"]


def test_equal_time_kind_and_entity_keep_the_order_of_planning() -> None:
    clock = Clock()
    log: list[Any] = []
    for label in "abc":
        clock.at(3, EventKind.TIMER, 1, log.append, label)
    clock.run()
    assert log == ["a", "b", "c"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(list(EventKind)), st.integers(0, 3)),
        unique=True,
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_of_planning_gives_the_same_order_of_events(
    plan: list[tuple[int, EventKind, int]], shuffler: random.Random
) -> None:
    shuffled = list(plan)
    shuffler.shuffle(shuffled)
    clock = Clock()
    log: list[Any] = []
    for event in shuffled:
        clock.at(*event, log.append, event)
    clock.run()
    assert log == sorted(plan)
    assert clock.events == len(plan)


def test_an_event_planned_for_now_by_a_later_kind_still_happens_now() -> None:
    """A timer that plans CPU work for its own instant: the work follows, before the sampler looks."""
    clock = Clock()
    log: list[Any] = []

    def expire(_: Any) -> None:
        clock.after(0, EventKind.CPU, 0, log.append, "cpu")

    clock.at(5, EventKind.TIMER, 0, expire)
    clock.at(5, EventKind.CONTROL, 0, log.append, "sample")
    clock.run()
    assert log == ["cpu", "sample"]


def test_a_cancelled_alarm_does_nothing_and_may_be_cancelled_again() -> None:
    clock = Clock()
    log: list[Any] = []
    first = clock.at(10, EventKind.TIMER, 0, log.append, "first")
    second = clock.at(20, EventKind.TIMER, 0, log.append, "second")
    clock.at(15, EventKind.TIMER, 0, lambda _: second.cancel())
    clock.at(25, EventKind.TIMER, 0, log.append, "third")
    clock.run()
    first.cancel()
    second.cancel()
    assert log == ["first", "third"]


def test_a_cancel_at_the_same_instant_counts_when_it_comes_first() -> None:
    """An answer (DELIVERY) at the very instant of the timer (TIMER) stops it."""
    clock = Clock()
    log: list[Any] = []
    timer = clock.at(500 * _MS, EventKind.TIMER, 1, log.append, "retransmission")
    clock.at(500 * _MS, EventKind.DELIVERY, 1, lambda _: timer.cancel())
    clock.run()
    assert log == []


def test_commensurate_periods_meet_exactly_after_many_periods() -> None:
    """A 30 ms slice and a 20 ms packet coincide every 60 ms, for ever: 10,000 times in 600 s."""
    clock = Clock()
    seen: dict[str, list[int]] = {"slice": [], "packet": []}

    def every(period_ns: int, kind: EventKind, name: str) -> None:
        def tick(_: Any) -> None:
            seen[name].append(clock.now_ns)
            clock.after(period_ns, kind, 0, tick)

        clock.after(period_ns, kind, 0, tick)

    every(30 * _MS, EventKind.SLICE, "slice")
    every(20 * _MS, EventKind.DELIVERY, "packet")
    clock.run(600_000 * _MS + 1)
    both = set(seen["slice"]) & set(seen["packet"])
    assert len(both) == 10_000
    assert max(both) == 600_000 * _MS
    assert all(type(t) is int for t in seen["slice"])


def test_time_stays_exact_where_a_float_would_not() -> None:
    """2**60 ns is 36 years; a double there has steps of 256 ns."""
    clock = Clock()
    log: list[Any] = []
    far_ns = 2**60
    clock.at(far_ns, EventKind.TIMER, 0, _noted(clock, log, "far"))
    clock.at(far_ns + 1, EventKind.TIMER, 0, _noted(clock, log, "one later"))
    clock.run()
    assert log == [(far_ns, "far"), (far_ns + 1, "one later")]


def test_run_stops_before_the_events_of_its_last_instant() -> None:
    clock = Clock()
    log: list[Any] = []
    for kind in EventKind:
        clock.at(10, kind, 0, log.append, kind)
    clock.run(10)
    assert (log, clock.now_ns) == ([], 10)
    clock.run(11)
    assert log == list(EventKind)


def test_nothing_can_be_planned_in_the_past() -> None:
    clock = Clock()
    clock.run(10)
    with pytest.raises(ValueError, match="9 ns"):
        clock.at(9, EventKind.TIMER, 0, lambda _: None)


def test_a_process_waits_in_the_same_order_as_events() -> None:
    clock = Clock()
    log: list[Any] = []

    def customer() -> Generator[Any, Any, None]:
        yield clock.wait(10, EventKind.ARRIVAL, 0)
        log.append((clock.now_ns, "arrives"))
        yield clock.wait(5, EventKind.CPU, 0)
        log.append((clock.now_ns, "served"))

    clock.process(customer())
    clock.at(10, EventKind.CONTROL, 0, _noted(clock, log, "sample"))
    clock.at(10, EventKind.TIMER, 0, _noted(clock, log, "timer"))
    clock.at(15, EventKind.SLICE, 0, _noted(clock, log, "slice"))
    clock.run()
    assert log == [(10, "timer"), (10, "arrives"), (10, "sample"), (15, "served"), (15, "slice")]
