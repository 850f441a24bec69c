"""Timers: events that whoever planned them may call off or plan anew, in both engines."""

import pytest

from vftsim.kernel import BESIDE, EventKind, Record, Sim, Table, at, entry, link, make_engine, timer


class Bell(Record):
    row: int
    rings: int


class Clock(Record):
    alarm: int
    rang_ns: int


bells = Table("bells", Bell, 4)
clocks = Table("clocks", Clock, beside=bells)


@timer(clocks, "alarm")
def on_alarm(sim: Sim, bell: Bell, clock: Clock = BESIDE) -> None:
    bell.rings += 1
    clock.rang_ns = sim.now_ns
    # Kept no more: a first alarm plans a second one, which finds its own token.
    if clock.alarm == 0 and bell.rings == 1:
        clock.alarm = at(sim, sim.now_ns + 5, EventKind.TIMER, 0, on_alarm, bell.row)


@entry
def set_alarm(sim: Sim, bell: Bell, delay_ns: int, clock: Clock = BESIDE) -> None:
    clock.alarm = at(sim, sim.now_ns + delay_ns, EventKind.TIMER, 0, on_alarm, bell.row)


@entry
def call_off(sim: Sim, bell: Bell, clock: Clock = BESIDE) -> None:
    clock.alarm = 0


@pytest.mark.parametrize("engine_name", ["simpy", "compiled"])
def test_a_timer_goes_off_once_when_its_token_is_still_kept(engine_name):
    engine = make_engine(link([set_alarm, call_off], {}), engine_name)
    rings, set_anew, silent = (engine.add(bells)[0] for _ in range(3))
    engine.call(set_alarm, rings, 10)
    # The first of two that are planned is stale, whichever comes first.
    engine.call(set_alarm, set_anew, 10)
    engine.call(set_alarm, set_anew, 7)
    engine.call(set_alarm, silent, 10)
    engine.call(call_off, silent)
    engine.run(100)
    assert [int(row.rings) for row in engine.rows(bells)[1:4]] == [2, 2, 0]
    assert [int(row.rang_ns) for row in engine.rows(clocks)[1:4]] == [15, 12, 0]
    assert [int(row.alarm) for row in engine.rows(clocks)[1:4]] == [0, 0, 0]


def test_a_field_that_is_not_there_keeps_no_token():
    with pytest.raises(TypeError, match="Clock has no field alert"):
        timer(clocks, "alert")
