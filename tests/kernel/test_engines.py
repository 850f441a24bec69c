"""Both engines, and the two test builds, do the same; what differs is named."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernel import toy
from vftsim.errors import RunFailure
from vftsim.kernel import Engine, Record, Table, compiled_engine, entry, link
from vftsim.kernel.checked_engine import CheckedEngine, KernelOverflowError
from vftsim.kernel.compiled_engine import BoundsCheckedEngine, CompiledEngine
from vftsim.kernel.link import LinkError
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.testing.differences import first_difference, state_differences

LINKED = toy.linked()
ENGINES = [SimpyEngine, CheckedEngine, CompiledEngine, BoundsCheckedEngine]
GAPS_NS = [70, 130, 10, 10, 200, 90]
SERVICES_NS = [60, 90, 30, 120]


def run(kind: type[Engine], until_ns: int) -> Engine:
    engine = kind(LINKED)
    toy.build(engine, GAPS_NS, SERVICES_NS)
    engine.run(until_ns)
    return engine


@pytest.mark.parametrize("kind", ENGINES[1:])
def test_every_engine_reaches_the_same_state(kind: type[Engine]):
    one, other = run(SimpyEngine, 500_000), run(kind, 500_000)
    assert one.call(toy.served, 1) > 5_000
    assert not list(state_differences(one, other))
    assert one.events == other.events


@pytest.mark.parametrize("kind", ENGINES)
def test_a_run_in_pieces_is_the_run(kind: type[Engine]):
    engine = kind(LINKED)
    toy.build(engine, GAPS_NS, SERVICES_NS)
    for until_ns in (1, 777, 778, 40_000, 100_000):
        engine.run(until_ns, most_events=engine.events + 2)
        engine.run(until_ns, most_events=1_000_000)
        assert engine.now_ns == until_ns
    assert not list(state_differences(engine, run(kind, 100_000)))


def test_a_long_run_comes_back_to_python_now_and_then_and_is_the_same(monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C is heard between events, where a whole run in machine code heard it at its end."""
    monkeypatch.setattr(compiled_engine, "EVENTS_AT_ONCE", 50)
    engine = CompiledEngine(LINKED)
    toy.build(engine, GAPS_NS, SERVICES_NS)
    do, at_events = engine._do, [0]

    def noted(*arguments: int) -> int:
        result: int = do(*arguments)
        at_events.append(engine.events)
        return result

    monkeypatch.setattr(engine, "_do", noted)
    engine.run(500_000)
    assert max(after - before for before, after in pairwise(at_events)) == 50
    assert not list(state_differences(engine, run(SimpyEngine, 500_000)))


@pytest.mark.parametrize("kind", ENGINES)
def test_time_that_stands_still_is_a_named_failure(monkeypatch: pytest.MonkeyPatch, kind):
    """More events at one instant than a run can plan beforehand come from each other."""
    monkeypatch.setattr(compiled_engine, "EVENTS_AT_ONCE", 2)
    monkeypatch.setattr(kind, "most_at_once", 5)
    engine = kind(LINKED)
    for time_ns in (7, 7, 7, 7, 7, 8, 8, 8, 8, 8):
        engine.at(time_ns, 0, 0, engine.number(toy.on_seen), 1)
    for until_ns in (8, 1_000):  # a run that goes on moves time too
        engine.run(until_ns)
    for _ in range(8):
        engine.at(1_000, 0, 0, engine.number(toy.on_seen), 1)
    with pytest.raises(RunFailure, match="time stands still at 1e-06 s"):
        engine.run(2_000)


def test_every_engine_watches_after_the_same_events():
    """The driver is called where three wait, and where a feed runs low; not any more when nobody watches."""
    seen = []
    for kind in ENGINES:
        engine = kind(LINKED)
        toy.build(engine, GAPS_NS, SERVICES_NS)
        fill, calls = engine.on_input, []

        def note(engine=engine, fill=fill, calls=calls):
            calls.append((engine.events, int(engine.rows(toy.queues)[1].waiting.length)))
            fill()

        engine.on_input = note
        for watching in (0, engine.number(toy.look_for_three), 0):
            engine.sim.watching = watching
            calls.append("watched" if watching else "not watched")
            engine.run(engine.now_ns + 20_000)
        seen.append(calls)
    assert seen[1:] == seen[:1] * 3
    between = seen[0][seen[0].index("watched") : -1]
    assert sum(each[1] == 3 for each in between[1:-1]) > 10


@pytest.mark.parametrize("kind", [CompiledEngine, BoundsCheckedEngine])
def test_a_run_that_goes_back_is_the_run(kind: type[Engine]):
    """Twice to the same state, from one with more rows in use and more planned.

    All before a feed runs low: where its source stands is the driver's to remember.
    """
    engine = run(kind, 30_000)
    saved = engine.save()
    for until_ns in (60_000, 70_000):
        for n in range(40):
            engine.at(engine.now_ns + 50 * n, 0, 0, engine.number(toy.on_seen), n)
        engine.new(toy.queues)
        engine.run(until_ns)
        engine.restore(saved)
        assert not list(state_differences(engine, run(kind, 30_000)))
    row, queue = engine.add(toy.queues)
    assert row == 2
    assert not queue.tobytes().strip(b"\0"), "what was taken since is as new"
    engine.run(70_000)
    assert engine.call(toy.served, 1) == run(kind, 70_000).call(toy.served, 1)


@pytest.mark.parametrize("kind", [SimpyEngine, CompiledEngine])
def test_an_event_in_ten_years_takes_place(kind: type[Engine]):
    ten_years_ns = 10 * 365 * 86_400 * 10**9
    engine = kind(LINKED)
    for time_ns in (3, ten_years_ns, ten_years_ns + 1):
        engine.at(time_ns, 0, 0, engine.number(toy.on_seen), time_ns % 7)
    engine.run(ten_years_ns)
    assert engine.used(toy.seen) == 1
    engine.run()
    assert engine.used(toy.seen) == 3
    assert engine.now_ns == ten_years_ns + 1


# time, kind, entity; many ties
PLANS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 3)), max_size=60)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(PLANS)
def test_simultaneous_events_in_order_of_kind_entity_and_planning(plans):
    expected = [n for n, _ in sorted(enumerate(plans), key=lambda p: (*p[1], p[0]))]
    for kind in (SimpyEngine, CompiledEngine):
        engine = kind(LINKED)
        for number, (time_ns, event_kind, entity) in enumerate(plans):
            engine.at(time_ns, event_kind, entity, engine.number(toy.on_seen), number)
        engine.run()
        rows = engine.rows(toy.seen)
        assert [int(rows[n].what) for n in range(1, engine.used(toy.seen) + 1)] == expected


@pytest.mark.parametrize("kind", ENGINES)
def test_a_full_table_is_a_named_failure(kind: type[Engine]):
    engine = kind(LINKED)
    toy.build(engine, [10], [1000])
    with pytest.raises(RunFailure, match=r"more than 63 customers at one time; serve them faster"):
        engine.run(100_000)


def test_events_of_the_stop_instant_are_not_included():
    for kind in ENGINES:
        engine = kind(LINKED)
        for time_ns in (5, 6, 7):
            engine.at(time_ns, 0, 0, engine.number(toy.on_seen), time_ns)
        engine.run(6)
        assert engine.used(toy.seen) == 1
        engine.run(7)
        assert engine.used(toy.seen) == 2


@pytest.mark.parametrize("kind", ENGINES)
def test_time_does_not_go_back(kind: type[Engine]):
    engine = kind(LINKED)
    for until_ns in (1_000_000, 400_000):
        engine.run(until_ns)
        assert engine.now_ns == 1_000_000


def test_a_planted_difference_is_named_with_its_first_event():
    def make() -> tuple[Engine, Engine]:
        one, other = SimpyEngine(LINKED), CompiledEngine(LINKED)
        toy.build(one, GAPS_NS, SERVICES_NS)
        # The fifth service is 1 ns longer in one of them.
        toy.build(other, GAPS_NS, [*SERVICES_NS, 61, *SERVICES_NS[1:]])
        return one, other

    for engine in make():
        engine.run(1)
    found = first_difference(make, 10_000)
    assert found is not None
    assert "event " in found
    assert "feeds" in found or "queues" in found


def test_equal_runs_have_no_first_difference():
    def make() -> tuple[Engine, Engine]:
        one, other = SimpyEngine(LINKED), CompiledEngine(LINKED)
        for engine in (one, other):
            toy.build(engine, GAPS_NS, SERVICES_NS)
        return one, other

    assert first_difference(make, 10_000) is None


class Number(Record):
    value: int
    ratio: float


numbers = Table("numbers", Number, 4)


@entry
def multiply(sim, a: int, b: int) -> None:
    numbers(sim)[0].value = a * b


@entry
def store_a_float(sim, a: int) -> None:
    numbers(sim)[0].value = a / 2


def test_the_checked_build_finds_what_64_bits_do_not_hold():
    engine = CheckedEngine(link([multiply, store_a_float], {}))
    engine.call(multiply, 1 << 31, 1 << 31)
    with pytest.raises(KernelOverflowError, match="does not fit 64 bits"):
        engine.call(multiply, 1 << 32, 1 << 31)


def test_the_checked_build_finds_a_float_in_an_integer_field():
    engine = CheckedEngine(link([multiply, store_a_float], {}))
    with pytest.raises(KernelOverflowError, match=r"Number.value is an int and was given 1\.5"):
        engine.call(store_a_float, 3)


def test_a_table_that_no_function_names_is_named():
    """A parameter that is written before the run and read by nobody: its table is in no kernel."""
    unread = Table("unread", Number, 4)
    for kind in ENGINES:
        with pytest.raises(LinkError, match="this kernel has no table 'unread': no function of its parts names it"):
            kind(LINKED).rows(unread)


@entry
def look_beyond(sim, a: int) -> int:
    return numbers(sim)[a].value


@entry
def share(sim, a: int, b: int) -> int:
    return halved(a) // (a - b)


def halved(a: int) -> int:
    return a // 2


def test_the_bounds_checked_build_names_an_index_out_of_range():
    """It is refused below 0 as well: Python would count from the end, and other engines read what lies before."""
    engine = BoundsCheckedEngine(link([look_beyond], {}))
    assert engine.call(look_beyond, 3) == 0
    for beyond in (4, -1, 1 << 40):
        with pytest.raises(IndexError, match=r"look_beyond: return sim.numbers\[a\].value"):
            engine.call(look_beyond, beyond)
    assert engine.call(look_beyond, 0) == 0, "and the engine goes on"


def test_the_bounds_checked_build_names_a_division_by_zero():
    engine = BoundsCheckedEngine(link([share], {}))
    assert engine.call(share, 7, 5) == 1
    with pytest.raises(ZeroDivisionError, match=r"share: return .*halved.a. // .a - b"):
        engine.call(share, 7, 7)
    assert CompiledEngine(link([share], {})).call(share, 7, 7) == 0
