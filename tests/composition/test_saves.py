"""Going back in a run: a pass that begins at a kept state ends as one from time 0, and everything is put back."""

import contextlib
import functools
import itertools
import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.composition.generated import model
from vftsim.composition import saves
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run, run_model
from vftsim.composition.saves import CannotNoteError, SavedStateWarning, notes_of
from vftsim.errors import VftsimError
from vftsim.outcome import Outcome, declare
from vftsim.spec import Spec
from vftsim.study.runs.model import load_model, shipped_models

from .composed import BENCH, checked, interface, media_model, relay, server, sip_model, streams

SOON: dict[str, Any] = {
    "failover": {"detection": {"timeout": "300 ms"}, "go_live": "10 ms"},
    "reprotection": {"delay": "20 ms", "memory": "1 MiB", "resume": "5 ms"},
}
OFTEN = {"checkpoint": {"interval": "20 ms"}}
CRASHES: list[dict[str, Any]] = [{"kind": "primary_crash", "at": "333 ms", "repeat": {"every": "777 ms"}}]


def benchmark(kind: str) -> ModelSpec:
    """Two steps of a benchmark; the server's host crashes soon after each phase has begun, and ten times more."""
    guest = server(protection={"kind": kind, **OFTEN.get(kind, {}), **SOON})
    steps: Any = {**BENCH["steps"], "most": 2, "stop_above_ihs": "100 %"}  # type: ignore[dict-item]
    return checked(
        sip_model(
            domains={"sut": guest},
            workloads={"calls": {**BENCH, "steps": steps}},
            faults=[{"kind": "primary_crash", "at": "1050 ms", "repeat": {"every": "4 s"}}],
        )
    )


def media(kind: str) -> ModelSpec:
    """Media streams and other clients of a machine that crashes some five times."""
    guest = relay(protection={"kind": kind, **OFTEN.get(kind, {}), **SOON})
    guest["interfaces"] = interface("moderated")
    guest["applications"] |= {
        "echo": {"kind": "service", "demand": "300 us"},
        "job": {"kind": "cpu_bound", "duty": "20 %", "cv": 0.5},
    }
    clients = {"kind": "request_response", "to": "media.echo", "clients": 4, "turn_around": "2 ms"}
    return checked(
        media_model(
            domains={"media": guest},
            workloads={"media": streams("media.relay", 50), "clients": clients},
            faults=CRASHES,
            measure={"warm_up": "100 ms", "duration": "4 s"},
        )
    )


def played(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch, every: int) -> tuple[str, int, int]:
    """Return a run's record, how often it went back to a state (kept each ``every`` events), and its builds."""
    counts = Counter[str]()

    def go_back(run: Run, before_ns: int, original: Callable[[Run, int], bool] = Run.go_back) -> bool:
        done = original(run, before_ns)
        counts["back"] += done
        return done

    with monkeypatch.context() as patched:
        patched.setattr(Run, "go_back", go_back)
        patched.setattr(saves, "EVENTS_BETWEEN", every)
        record = run_model(spec, 3, 0, "compiled", lambda _: counts.update(["built"]))
    return json.dumps(record.to_dict()), counts["back"], counts["built"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("system", "kind", "every"),
    [(benchmark, "checkpoint", 900), (media, "event_sync", 300), (media, "checkpoint", 4000)],
)
def test_a_pass_from_a_kept_state_ends_as_one_from_time_0(system, kind, every, monkeypatch):
    """Phases, series, histograms, timelines, drops, CPU times and the number of events."""
    spec = system(kind)
    record, back, built = played(spec, monkeypatch, every)
    plain, never, passes = played(spec, monkeypatch, 1 << 40)
    assert record == plain
    assert (back >= 3, never) == (True, 0), "several rollbacks were foreseen in the middle"
    assert built + back == passes


class Slotted:
    __slots__ = ("__private", "late", "value")

    def __init__(self) -> None:
        self.value = [1, 2]
        self.__private = 5

    def change(self) -> None:
        self.value.append(3)
        self.late = 7
        self.__private = 6

    def shown(self) -> tuple[Any, ...]:
        return self.value, hasattr(self, "late"), self.__private


class Holder:
    """Everything that can change, in every place where it can stand."""

    def __init__(self) -> None:
        self.numbers = [1.5, 2.5]
        self.nested: dict[str, Any] = {"a": [{"b": {1, 2}}]}
        self.counts = Counter("aab")
        self.last = deque([1, 2], maxlen=2)
        self.array = np.arange(3)
        self.generator = np.random.default_rng(5)
        self.slotted = Slotted()
        self.itself = self
        total = [0]
        seen = 0

        def count(into: list[int], step: int) -> int:
            nonlocal seen
            seen += step
            into[0] += step
            return seen

        def late() -> int:
            return later

        def defaulted(kept: list[int] = [0]) -> list[int]:  # noqa: B006 - it is kept nowhere else
            return kept

        def set_later() -> None:
            nonlocal later
            later = 7

        if total[0]:
            later = 0  # never: its cell is empty
        self.late, self.defaulted, self.set_later = late, defaulted, set_later
        self.count = functools.partial(count, total)
        self.method = self.slotted.change
        self.total = total

    def change(self) -> None:
        self.numbers.append(3.5)
        self.nested["a"][0]["b"].add(3)
        self.nested["new"] = 1
        self.counts["a"] += 5
        self.last.append(9)
        self.array[1] = 8
        self.generator.random(7)
        self.count(2)
        self.method()
        self.set_later()
        self.defaulted().append(1)
        self.numbers = [*self.numbers]
        self.later = 1

    def has_late(self) -> bool:
        try:
            return self.late() > 0
        except NameError:
            return False

    def shown(self) -> str:
        # Looking must not change anything.
        return repr(
            (
                self.numbers,
                self.nested,
                self.counts,
                self.last,
                self.array,
                self.generator.bit_generator.state,
                self.count(0),
                self.total,
                self.slotted.shown(),
                hasattr(self, "later"),
                self.defaulted(),
                self.has_late(),
            )
        )


@pytest.fixture
def known(monkeypatch):
    """What these tests define is taken for the package's own."""
    monkeypatch.setattr(saves, "PACKAGES", saves.PACKAGES | {"tests"})


def test_everything_is_put_back_into_the_same_objects(known):
    holder = Holder()
    before, numbers = holder.shown(), holder.numbers
    notes = notes_of(holder)
    for _ in range(2):
        holder.change()
        assert holder.shown() != before
        for put_back in notes:
            put_back()
        assert holder.shown() == before
        assert holder.numbers is numbers


class Numbers(list[int]):
    """A container with attributes of its own."""


class Table(dict[str, int]):
    """Likewise."""


class Level(float):
    """Never changes, but for its attributes."""


drawn = 0


def draw_on() -> int:
    global drawn  # noqa: PLW0603 - that is the case
    drawn += 1
    return drawn


class Drawer:
    drawn = 0


def test_attributes_of_containers_and_functions_are_put_back(known):
    held: list[Any] = [Numbers([1]), Table(a=1), Level(0.5), Counter("a"), draw_on]
    for thing in held:
        thing.seen = [1]
    notes = notes_of(held)
    for thing in held:
        thing.seen.append(2)
        thing.more = 1
    for put_back in notes:
        put_back()
    assert [vars(thing) for thing in held] == [{"seen": [1]}] * 5
    del draw_on.seen  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "held",
    [
        Random(5).random,
        Numbers(),
        Table(),
        Level(0.5),
        draw_on,
        Drawer,
        Drawer(),
        Drawer().__init__,
        itertools,
        functools.partial(draw_on),
        defaultdict(Drawer),
        np.random.random,
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_a_part_from_outside_may_keep_elsewhere_is_not_noted(held):
    """Its attributes, its class's, its module's: a run with such a part is played from time 0."""
    with pytest.raises(CannotNoteError):
        notes_of([held])


@pytest.mark.parametrize(
    "held",
    [itertools.count(), iter([1]), (n for n in range(3)), np.array([object()]), Random(1), threading.Lock(), object()],
    ids=lambda held: type(held).__name__,
)
def test_what_cannot_be_noted_is_said(held):
    with pytest.raises(CannotNoteError):
        notes_of([held])
    notes_of([[held]], apart=[held])


class Ticks:
    """A part from outside that counts, and says nothing of what it remembers."""

    def __init__(self, run: Run) -> None:
        self.run, self.count = run, 0
        run.ticks = self  # type: ignore[attr-defined]
        run.at(50_000_000, self.tick)

    def tick(self) -> None:
        self.count += 1
        if self.run.now_ns < 3_900_000_000:
            self.run.at(self.run.now_ns + 50_000_000, self.tick)


class RewindableTicks(Ticks):
    """The same, and it can go back."""

    def save(self) -> int:
        return self.count

    def restore(self, state: int) -> None:
        self.count = state


def ticked(kind: type[Ticks], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int, int, int]:
    """A run with a part from outside: its record, what the part has counted, states gone back to, and builds."""
    counts, made = Counter[str](), list[Ticks]()

    def go_back(run: Run, before_ns: int, original: Callable[[Run, int], bool] = Run.go_back) -> bool:
        done = original(run, before_ns)
        counts["back"] += done
        return done

    with monkeypatch.context() as patched:
        patched.setattr(Run, "go_back", go_back)
        patched.setattr(saves, "EVENTS_BETWEEN", 4000)
        record = run_model(media("checkpoint"), 3, 0, "compiled", lambda run: made.append(kind(run)))
    return json.dumps(record.to_dict()), made[-1].count, counts["back"], len(made)


@pytest.mark.thorough
def test_a_part_from_outside_goes_back_if_it_says_what_it_remembers_and_is_named_if_not(monkeypatch):
    record, count, back, built = ticked(RewindableTicks, monkeypatch)
    assert back >= 3
    named = r"^a Ticks of .*test_saves cannot be kept .* save\(\) and restore"
    with pytest.warns(SavedStateWarning, match=named) as text:
        plain, counted, never, passes = ticked(Ticks, monkeypatch)
    assert never == 0
    assert len(text) == passes
    assert built + back == passes
    assert record == plain
    assert count == counted == 78


SEEN: list[int] = []


class OutsideOutcome(Outcome):
    """What a part from outside has measured."""

    answers: int = declare.total()


def test_a_function_from_outside_is_noted_with_what_it_names():
    """As a program's `measured` and `in_flight` are, which the pages write as closures."""
    counted = [1]
    held = [lambda: OutsideOutcome(answers=len(SEEN) + counted[0], seconds=1.0)]
    notes = notes_of([held, held[0]()])
    SEEN.append(1)
    counted[0] = 2
    for put_back in notes:
        put_back()
    assert (SEEN, counted) == ([], [1])


def test_a_function_from_outside_that_imports_is_not_noted():
    def drawn_elsewhere() -> float:
        import random

        return random.random()

    with pytest.raises(CannotNoteError, match="sets globals or imports"):
        notes_of(drawn_elsewhere)


class OutsideSpec(Spec):
    """Parameters of a part from outside."""

    numbers: tuple[int, ...] = (1, 2)


def test_parameters_of_a_part_from_outside_can_be_noted():
    notes_of([OutsideSpec()])


def test_a_file_cannot_be_noted(tmp_path):
    with (tmp_path / "log").open("w") as file, pytest.raises(CannotNoteError):
        notes_of({"log": file})


@pytest.mark.thorough
@pytest.mark.parametrize("name", shipped_models())
def test_every_shipped_model_can_go_back(name):
    run = Run(load_model(name).spec, 1, 0, engine="compiled")
    run.start()
    run.engine.run(50_000_000)
    assert len(notes_of(run)) > 20


@pytest.mark.thorough
def test_every_part_can_go_back():
    """Drawn from all applications, workloads, paths, schedulers and mechanisms; some are refused when built."""
    noted = 0
    for spec in filter(None, map(model, range(40))):
        with contextlib.suppress(VftsimError):
            run = Run(spec, 1, 0, engine="compiled")
            run.start()
            run.engine.run(20_000_000)
            noted += len(notes_of(run)) > 20
    assert noted > 25
