"""What the linker refuses, and what it makes of names."""

import sys

import pytest

from vftsim.kernel import BESIDE, Chain, Family, Fifo, LinkError, Record, Sim, Sort, Table, entry, link, make_engine
from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine


class Machine(Record):
    speed: int
    done: int


machines = Table("machines", Machine, 8)
running = Sort("engine of a machine", by="speed")
OFFSET = -3
RATIO = 2.5


@running.slot
def work(sim: Sim, machine: Machine, amount: int) -> int:
    """Nothing is done without an engine."""
    return 0


slow = running.kind("slow")
fast = running.kind("fast")


@slow.implements(work)
def work_slowly(sim: Sim, machine: Machine, amount: int) -> int:
    machine.done += amount
    return amount


@fast.implements(work)
def work_fast(sim: Sim, machine: Machine, amount: int) -> int:
    machine.done += int(RATIO * amount) + OFFSET
    return 2 * amount


@entry
def work_all(sim: Sim, amount: int) -> int:
    total = 0
    for row in range(1, 4):
        total += work(sim, machines(sim)[row], amount)
    return total


def test_a_slot_goes_to_the_kind_of_the_record():
    engine = SimpyEngine(link([work_all], {running: [slow, fast]}))
    for kind in (0, engine.number(slow), engine.number(fast)):
        engine.add(machines, speed=kind)
    assert engine.call(work_all, 10) == 30
    assert [row.done for row in engine.rows(machines)] == [0, 0, 10, 22]


def test_one_kind_is_called_without_a_test_of_the_field():
    engine = SimpyEngine(link([work_all], {running: [slow]}))
    for _ in range(3):
        engine.add(machines)
    assert engine.call(work_all, 10) == 30


def ping(sim: Sim, left: int) -> int:
    return pong(sim, left - 1)


def pong(sim: Sim, left: int) -> int:
    return ping(sim, left - 1) if left > 0 else 0


@entry
def play(sim: Sim, a: int) -> int:
    return ping(sim, a)


def test_a_circle_of_calls_is_refused_by_name():
    with pytest.raises(LinkError, match=r"ping -> .*pong -> .*ping; let a queue"):
        link([play], {})


bounced = Family("bounced", 1)


@bounced
def bounce(sim: Sim, place: int) -> None:
    bounced.call(sim, machines(sim)[place].done, place)


@entry
def bounce_first(sim: Sim, place: int) -> None:
    machines(sim)[place].done = bounce
    bounced.call(sim, machines(sim)[place].done, place)


def test_a_circle_through_callbacks_is_refused_too():
    with pytest.raises(LinkError, match="in a circle"):
        link([bounce_first], {})


@entry
def calls_python(sim: Sim, a: int) -> int:
    return len(sorted([a]))


def without_types(a):
    return a


@entry
def calls_untyped(sim: Sim, a: int) -> int:
    return without_types(a)


@entry
def uses_text(sim: Sim) -> int:
    return len(__name__)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (calls_python, "calls sorted, which is no part"),
        (calls_untyped, "calls without_types, which is no part"),
        (uses_text, "uses __name__, which is no number"),
    ],
)
def test_code_that_no_kernel_can_contain_is_refused(function, message):
    with pytest.raises(LinkError, match=rf"test_linking\..*, line \d+: {message}"):
        link([function], {})


def test_a_field_must_not_hide_an_array_method():
    with pytest.raises(TypeError, match="sum"):

        class Wrong(Record):
            sum: int


def test_tables_of_one_name_are_refused():
    twin = Table("machines", Machine, 8)
    with pytest.raises(LinkError, match=r"two different things are called machines: tables of .*Machine and .*Machine"):
        link([work_all], {running: [slow]}, tables=[twin])


def test_two_kinds_of_one_name_are_refused_with_the_modules_of_both():
    """As when another distribution brings a kind that the package has: its name is the one that helps."""
    ours = {"__name__": "vftsim.lamps", "sort": Sort("lamp", by="lamp")}
    exec("sort.kind('dim')", ours)
    with pytest.raises(TypeError, match=r"kinds of lamp named dim, in vftsim\.lamps and in other_lamps$"):
        exec("sort.kind('dim')", {**ours, "__name__": "other_lamps"})
    with pytest.raises(TypeError, match=r"in vftsim\.lamps; one that is to change needs a new process"):
        exec("sort.kind('dim')", ours)


def test_a_debugger_finds_the_functions_source():
    engine = SimpyEngine(link([work_all], {running: [slow]}))
    code = engine._namespace[part_of(work_slowly).name].__code__
    assert code.co_filename == __file__
    assert code.co_firstlineno == work_slowly.function.__code__.co_firstlineno + 1  # the line below the decorator


HALF = 4


def more(sim: Sim, amount: int) -> int:
    return HALF * amount + OFFSET


@entry
def grow(sim: Sim, amount: int) -> int:
    return more(sim, amount)


def test_a_name_that_stands_for_something_else_by_now_is_that_in_the_next_kernel(monkeypatch: pytest.MonkeyPatch):
    """Functions are written once for all kernels: not where a constant, or its type, or what is called is another."""
    before = SimpyEngine(link([grow], {}))
    for value in (5, 5.5, 5.0, True):
        monkeypatch.setattr(sys.modules[__name__], "HALF", value)
        found = SimpyEngine(link([grow], {})).call(grow, 10)
        assert (found, type(found)) == (value * 10 - 3, type(value * 10))
    monkeypatch.setattr(sys.modules[__name__], "more", echo)
    assert SimpyEngine(link([grow], {})).call(grow, 10) == 10
    assert before.call(grow, 10) == 37


def echo(sim: Sim, amount: int) -> int:
    return amount


@bounced
def bent(sim: Sim, place: int) -> None:
    machines(sim)[place].speed = 7


@entry
def bend_first(sim: Sim, place: int) -> int:
    machines(sim)[place].done = bent
    bounced.call(sim, machines(sim)[place].done, place)
    return machines(sim)[place].speed


@bounced
def aside(sim: Sim, place: int) -> None:
    machines(sim)[place].speed = 8


def test_a_callback_has_the_number_of_its_own_kernel():
    """Alone it is number 1, beside another one before it number 2; the first kernel runs after the second was made."""
    kernels = [link([bend_first], {}, actions) for actions in ((), (aside,))]
    assert [kernel.number(bent) for kernel in kernels] == [1, 2]
    for kernel in kernels:
        engine = SimpyEngine(kernel)
        engine.add(machines)
        assert engine.call(bend_first, 1) == 7


class Item(Record):
    row: int
    link: int
    owner: int
    weight: int


class Basket(Record):
    row: int
    items: Fifo
    total: int


items = Table("items", Item, 8)
baskets = Table("baskets", Basket, 4)
item_list = Chain(items, "link")


class Label(Record):
    looks: int


labels = Table("labels", Label, beside=baskets)


def new_item(sim: Sim, owner: int) -> int:
    return items.new(sim, owner=owner)


def look(sim: Sim, basket: Basket, label: Label = BESIDE) -> None:
    label.looks += 1


def mark_tenfold(sim: Sim, label: Label) -> None:
    label.looks *= 10


@entry
def put_in(sim: Sim, basket: Basket, weight: int) -> None:
    row = items.new(sim, weight=weight)
    items.free(sim, row)
    item_list.push(sim, basket.items, new_item(sim, basket.items.length + 1))


@entry
def empty(sim: Sim, basket: Basket, label: Label = BESIDE) -> int:
    look(sim, basket)
    mark_tenfold(sim, label)
    for row in item_list.rows(sim, basket.items):
        basket.total += items(sim)[row].row * items(sim)[row].owner * items(sim)[row].weight
        items.free(sim, row)
    basket.items.first = basket.items.length = 0
    return basket.total


@pytest.mark.parametrize("engine_name", ["simpy", "compiled"])
def test_rows_are_handed_over_taken_with_values_and_walked(engine_name):
    engine = make_engine(link([put_in, empty], {}), engine_name)
    basket, record = engine.add(baskets)
    assert [engine.call(put_in, basket, weight) for weight in (5, 7)] == [0, 0]
    assert engine.call(empty, basket) == 1 * 1 * 5 + 2 * 2 * 7
    # A row has its number for good, whoever has it next: of the two that are free the last comes first.
    engine.call(put_in, basket, 3)
    assert engine.call(empty, basket) - 33 == 2 * 1 * 3
    assert (int(record.total), int(engine.rows(labels)[basket].looks)) == (39, 110)


def throw_away(sim: Sim, basket: Basket) -> int:
    basket.total = 0
    return 7


class Lamp(Record):
    bulb: int


lamps = Table("lamps", Lamp, 4)
lighting = Sort("bulb", by="bulb")
led = lighting.kind("led")


@lighting.slot
def shine(sim: Sim, lamp: Lamp) -> int:
    return 0


@led.implements(shine)
def shine_white(sim: Sim, lamp: Lamp) -> int:
    return 9


throw = entry(throw_away)
shine_now = entry(shine)


@pytest.mark.parametrize("engine_name", ["simpy", "compiled"])
def test_an_entry_is_made_of_a_function_or_a_slot_and_gets_the_row(engine_name):
    engine = make_engine(link([throw, shine_now], {lighting: [led]}), engine_name)
    basket, record = engine.add(baskets, total=3)
    lamp, _ = engine.add(lamps, bulb=engine.number(led))
    assert (engine.call(throw, basket), int(record.total)) == (7, 0)
    assert engine.call(shine_now, lamp) == 9


def skips(sim: Sim, basket: Basket) -> None:
    for row in item_list.rows(sim, basket.items):
        if row == 1:
            continue


def misnames(sim: Sim, basket: Basket) -> None:
    row = items.new(sim, colour=1)
    items.free(sim, row)


@entry
def calls_skips(sim: Sim, basket: Basket) -> None:
    skips(sim, basket)


@entry
def calls_misnames(sim: Sim, basket: Basket) -> None:
    misnames(sim, basket)


@entry
def has_nobody_beside(sim: Sim, item: Item, label: Label = BESIDE) -> None:
    label.looks = item.weight


@entry
def is_beside_two(sim: Sim, basket: Basket, other: Basket, label: Label = BESIDE) -> None:
    label.looks = other.total


@entry
def is_handed_nothing(sim: Sim, nothing: Record) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (calls_skips, "without continue"),
        (calls_misnames, "Item has no colour"),
        (has_nobody_beside, "label goes with 0 of its arguments"),
        (is_beside_two, "label goes with 2 of its arguments"),
        (is_handed_nothing, r"handed a Record, of which there are \d+ tables"),
    ],
)
def test_words_that_are_used_wrongly_are_refused(function, message):
    with pytest.raises(LinkError, match=message):
        link([function], {})


def double(sim: Sim, basket: Basket) -> None:
    for item in items.listed(sim, item_list, basket.items):
        item.weight *= 2


@entry
def weigh(sim: Sim, basket: Basket, count: int) -> int:
    double(sim, basket)
    total = 0
    for item in items.span(sim, basket.items.first, count):
        if item.weight == 14:
            continue
        total += item.weight * item.row
    return total


@pytest.mark.parametrize("engine_name", ["simpy", "compiled"])
def test_a_loop_walks_the_records_of_a_list_or_of_rows_one_behind_the_other(engine_name):
    engine = make_engine(link([put_in, weigh], {}), engine_name)
    basket, _ = engine.add(baskets)
    for weight in (5, 7, 11):
        engine.call(put_in, basket, weight)
    for row, weight in enumerate((5, 7, 11), 1):
        engine.rows(items)[row].weight = weight
    assert engine.call(weigh, basket, 3) == 1 * 10 + 3 * 22
