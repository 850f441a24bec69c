"""The compiled engine's wheel keeps the order of all events, near and far, and an agenda's items take part in it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from vftsim.errors import RunFailure
from vftsim.kernel import Engine, Linked, Record, Sim, Table, at, event, link
from vftsim.kernel.agenda import Agenda, agenda_due
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.kernel.engine import FOREVER_NS
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.kernel.wheel import MOST_EVENTS

_TURN_NS = 1 << 33
"""A turn of the wheel, about 8.6 s."""


class Mark(Record):
    """What has happened: when, and to whom."""

    time_ns: int
    place: int
    token: int


marks = Table("marks", Mark, 1 << 14)


@event
def on_mark(sim: Sim, place: int, token: int) -> None:
    row = marks.new(sim)
    marks(sim)[row].time_ns = sim.now_ns
    marks(sim)[row].place = place
    marks(sim)[row].token = token
    if place >= 8:
        # Children at once, soon, and more than a turn later; several at one instant with different kinds.
        half = place // 2
        at(sim, sim.now_ns, place % 10, 0, on_mark, half)
        at(sim, sim.now_ns + place * 1_000_003, 9 - place % 10, place % 3, on_mark, half // 2)
        at(sim, sim.now_ns + (place % 4) * 5_000_000_000, place % 3, 1, on_mark, half // 2)


@event
def on_slip(sim: Sim, target: int) -> None:
    at(sim, sim.now_ns - target, 0, 0, on_mark, 0)


@cache
def _linked() -> Linked:
    return link([], {}, [on_mark, on_slip, *Agenda.ACTIONS], [marks, agenda_due])


def _listed(engine: Engine) -> list[tuple[int, int, int]]:
    rows = engine.rows(marks)
    return [(int(rows[n].time_ns), int(rows[n].place), int(rows[n].token)) for n in range(1, engine.used(marks) + 1)]


@pytest.mark.parametrize("seed", range(4))
def test_both_engines_keep_one_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = rng.choice([1_000, 500_000, 10_000_000, _TURN_NS, 5 * _TURN_NS], 150)
    planned = [
        (int(rng.integers(0, scale)) // 1_000 * 1_000, int(rng.integers(0, 10)), int(rng.integers(0, 4)), 40 - n % 40)
        for n, scale in enumerate(scales)
    ]
    stops = [0, 1, 524_288, 524_289, *sorted(int(t) for t in rng.integers(0, 6 * _TURN_NS, 20)), FOREVER_NS]
    found = []
    for make in (SimpyEngine, CompiledEngine):
        engine: Engine = make(_linked())
        for time_ns, kind, entity, place in planned:
            engine.at(time_ns, kind, entity, engine.number(on_mark), place)
        reached = []
        for stop_ns in stops:
            engine.run(stop_ns)
            reached.append((engine.now_ns if stop_ns < FOREVER_NS else 0, engine.used(marks)))
        found.append((_listed(engine), reached))
    assert len(found[0][0]) > 1_000
    assert found[0] == found[1]


@pytest.mark.parametrize("make", [SimpyEngine, CompiledEngine])
def test_items_of_an_agenda_come_in_the_order_of_events(make: type[SimpyEngine] | type[CompiledEngine]) -> None:
    done: list[tuple[int, str, int]] = []
    engine: Engine = make(_linked(), lambda: agenda.serve())  # noqa: PLW0108 - the agenda is made below
    agenda = Agenda(engine)

    def item(name: str) -> int:
        return agenda.add(lambda: done.append((engine.now_ns, name, engine.used(marks))))

    agenda.at(7_000, 9, 0, item("second"))
    agenda.at(7_000, 2, 0, item("first"))
    agenda.at(_TURN_NS * 3, 2, 0, item("later"))
    engine.at(7_000, 5, 0, engine.number(on_mark), 1)
    engine.run(6_999)
    assert done == []
    engine.run()
    assert done == [(7_000, "first", 0), (7_000, "second", 1), (_TURN_NS * 3, "later", 1)]


@pytest.mark.slow
def test_more_events_than_the_wheel_holds_are_a_matter_of_the_model() -> None:
    engine = CompiledEngine(_linked())
    mark = engine.number(on_mark)
    for place in range(MOST_EVENTS - 1):
        engine.at(5_000, 0, place, mark, 1)
    with pytest.raises(RunFailure, match="events are planned at one time; lower the rate"):
        engine.at(5_000, 0, MOST_EVENTS, mark, 1)


@pytest.mark.parametrize("kind", [SimpyEngine, CompiledEngine])
@pytest.mark.parametrize(("time_ns", "action"), [(4_999, on_mark), (5_000, on_slip)])
def test_the_past_is_refused(kind: type[Engine], time_ns: int, action: Any) -> None:
    """By every engine with the same words, whoever plans: who runs a model, or an event of the model."""
    engine = kind(_linked())
    engine.run(5_000)

    def plan() -> None:
        engine.at(time_ns, 0, 0, engine.number(action), 1)
        engine.run(6_000)

    with pytest.raises(RunFailure, match=r"^at 5e-06 s an event was planned for a time that has passed; "):
        plan()
