"""What Python means by an expression, compiled: small functions and awkward values, each against Python itself.

Where Python raises or needs more than 64 bits, the compiled value is what ``docs/engines.md`` says.
"""

import ctypes
import inspect
import itertools
import math
import struct
import textwrap

import numpy as np
import pytest

from vftsim.kernel import Record, Table, entry, link, object_code
from vftsim.kernel.compiled_engine import BoundsCheckedEngine, CompiledEngine
from vftsim.kernel.ir import Program, UntranslatableError
from vftsim.kernel.layout import Layout
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.testing.differences import state_differences

INT, REAL, TRUTH = "i64", "double", "i1"
CTYPES = {INT: ctypes.c_int64, REAL: ctypes.c_double, TRUTH: ctypes.c_bool}
WHOLE = [0, 1, -1, 2, -2, 3, -7, 10, 63, -64, 2**31, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
REALS = [0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 2.5, -2.5, 3.0, 1e-300, 5e-324, 1e300, -1e300, math.inf, -math.inf, math.nan]
SHIFTS = [0, 1, 31, 62, 63, 64, 200]


def wrapped(value):
    """An integer as 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63 if type(value) is int else value


def entry_of(source, types):
    """A module whose entry ``called`` is the function ``f`` for arguments of these types, and the type of its result.

    Functions take truth values as numbers.
    """
    program = Program(source, Layout(np.dtype([]), {}, 0))
    symbol, result = program.function("f", types)
    arguments = ", ".join(f"{t} %a{n}" for n, t in enumerate(types))
    call = f" %result = call {result} {symbol}({arguments})\n ret {result} %result"
    return program.module(f"define {result} @called({arguments}) {{\n{call}\n}}\n"), result


def compiled(function, types):
    source = textwrap.dedent(inspect.getsource(function))
    source = source.replace(f"def {function.__name__}", "def f", 1)
    text, result = entry_of(source, types)
    loaded = object_code.Loaded(object_code.compiled(text), ["called"])
    call = ctypes.CFUNCTYPE(CTYPES[result], *(CTYPES[t] for t in types))(loaded.address("called"))
    call.loaded = loaded
    return call


def same(one, other):
    one, other = (int(v) if isinstance(v, bool) else v for v in (one, other))
    if isinstance(one, float) or isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))
    return one == other


def compare(function, types, cases):
    call, differing = compiled(function, types), []
    for values in cases:
        expected = wrapped(function(*values))
        found = call(*values)
        if not same(expected, found):
            differing.append((values, expected, found))
    assert not differing, f"{len(differing)} of {len(cases)}, first {differing[0]} (arguments, Python, compiled)"


def pairs(one, other=None):
    return list(itertools.product(one, other or one))


def plus(a, b):
    return a + b


def minus(a, b):
    return a - b


def times(a, b):
    return a * b


def floored(a, b):
    return a // b


def rest(a, b):
    return a % b


def rest_of_seven(a, b):
    return (a % 7) * 10 + a // -7 + b


def powers_of_two(a, b):
    """Divided by what the source says: bits do it."""
    return (a % 1024) * 8 + (b % 1) + a // 8 + b // 1 + (b % 2)


def divided(a, b):
    return a / b


def bits(a, b):
    return (a & b) ^ (a | ~b)


def smaller(a, b):
    return min(a, b)


def larger(a, b):
    return max(a, b)


def smallest_of_three(a, b):
    return min(a, b, -a)


def both(a, b):
    return a and b


def either(a, b):
    return a or b


def neither(a, b):
    return not (a or b)


def between(a, b):
    return a < b < 3 or b <= a <= 2 or a == b != 1


def chosen(a, b):
    return a if a > b else b


def turned(a, b):
    return -a + abs(b)


def one_of(a, b):
    return a in (b, 1, 3) and b not in (0, 2)


def not_fused(a, b):
    return a * b + a * 3.0


BOTH = [plus, minus, times, smaller, larger, smallest_of_three, both, either, neither, between, chosen, turned]


@pytest.mark.parametrize("function", [*BOTH, one_of, bits, rest_of_seven, powers_of_two], ids=lambda f: f.__name__)
def test_whole_numbers(function):
    compare(function, [INT, INT], pairs(WHOLE))


@pytest.mark.parametrize("function", [*BOTH, not_fused], ids=lambda f: f.__name__)
def test_floats(function):
    compare(function, [REAL, REAL], pairs(REALS))


@pytest.mark.parametrize("function", [plus, times, between, smaller, either, chosen], ids=lambda f: f.__name__)
def test_a_whole_number_and_a_float(function):
    """Up to 2**53: above, a comparison rounds the whole number first, which Python does not."""
    compare(function, [INT, REAL], pairs([n for n in WHOLE if abs(n) <= 2**53], REALS))


@pytest.mark.parametrize("function", [floored, rest, divided], ids=lambda f: f.__name__)
def test_division(function):
    compare(function, [REAL, REAL], [(a, b) for a, b in pairs(REALS) if b != 0])
    small = WHOLE if function is not divided else [n for n in WHOLE if abs(n) < 2**53]
    compare(function, [INT, INT], [(a, b) for a, b in pairs(small) if b != 0])
    compare(function, [INT, REAL], [(a, b) for a, b in pairs([1, -7, 10], REALS) if b != 0])


def test_division_by_zero_is_zero_of_whole_numbers_and_of_floats_what_the_processor_says():
    for function in (floored, rest):
        call = compiled(function, [INT, INT])
        assert [call(a, 0) for a in WHOLE] == [0] * len(WHOLE)
    call = compiled(divided, [REAL, REAL])
    assert [call(a, 0.0) for a in (1.0, -1.0)] == [math.inf, -math.inf]
    assert math.isnan(call(0.0, 0.0))


def left(a, b):
    return a << b


def right(a, b):
    return a >> b


@pytest.mark.parametrize("function", [left, right], ids=lambda f: f.__name__)
def test_shifts(function):
    compare(function, [INT, INT], pairs(WHOLE, SHIFTS))


def whole_of(a):
    return int(a)


def real_of(a):
    return float(a) * 0.5


def truth_of(a):
    return bool(a)


def test_conversions():
    compare(whole_of, [REAL], [(a,) for a in REALS if abs(a) < 2**63])
    call = compiled(whole_of, [REAL])
    assert [call(a) for a in (math.inf, -math.inf, 1e300, math.nan)] == [2**63 - 1, -(2**63), 2**63 - 1, 0]
    for function in (real_of, truth_of, whole_of):
        compare(function, [INT], [(a,) for a in WHOLE])
        compare(function, [INT], [(False,), (True,)])
    compare(truth_of, [REAL], [(a,) for a in REALS])


def test_truth_values():
    for function in (both, either, neither, plus, chosen):
        compare(function, [INT, INT], pairs([False, True]))


def counts(a, b):
    total = 0
    for n in range(a, b, 3):
        if n == 7:
            continue
        if n > 40:
            break
        total += n
    for n in range(b, a, -2):
        total -= n
    n = 0
    while n < b:
        n += 1
        if n % 5 == 0:
            continue
        total += n * 1000
    return total


def grows(a, b):
    x = 0
    for n in range(a):
        x = x + b * 0.5 if n % 2 else x + 1
    return x


def nested(a, b):
    found = 0
    for i in range(a):
        for j in range(i, b):
            if (i * j) % 7 == 3:
                break
            found = found * 3 + j & 1023
    return found


@pytest.mark.parametrize("function", [counts, nested], ids=lambda f: f.__name__)
def test_loops(function):
    compare(function, [INT, INT], pairs([-5, 0, 1, 7, 12, 60]))


def test_a_variable_that_becomes_a_float():
    compare(grows, [INT, INT], pairs([1, 2, 5, 8]))


class Log(Record):
    digits: int
    ratio: float
    is_set: bool


logs = Table("logs", Log, 8, is_fixed=True)


def note(sim, digit: int, value: int) -> int:
    logs(sim)[0].digits = logs(sim)[0].digits * 10 + digit
    return value


def pair(sim, value: int) -> tuple[int, float]:
    return note(sim, 9, value), value / 4


@entry
def in_order(sim, a: int, b: int) -> int:
    """Who is asked, and in which order, is part of what an expression means."""
    logs(sim)[0].digits = 0
    found = note(sim, 1, a) - note(sim, 2, b) * note(sim, 3, a)
    if note(sim, 4, a) < note(sim, 5, b) < note(sim, 6, 3):
        found += 100
    if (note(sim, 7, a) and note(sim, 8, b)) or not note(sim, 1, a):
        found += 1000
    logs(sim)[note(sim, 2, 1)].digits += note(sim, 3, b)
    whole, ratio = pair(sim, a)
    logs(sim)[2].ratio = logs(sim)[2].ratio * 0.5 + ratio
    logs(sim)[2].is_set = note(sim, 4, a) > 2 or logs(sim)[2].is_set
    return found + min(note(sim, 5, a), note(sim, 6, b)) + whole


def test_operands_are_asked_from_left_to_right_and_no_more_than_needed():
    linked = link([in_order], {})
    engines = [kind(linked) for kind in (SimpyEngine, CompiledEngine, BoundsCheckedEngine)]
    for a, b in pairs([-2, 0, 1, 2, 3]):
        assert len({engine.call(in_order, a, b) for engine in engines}) == 1
        for engine in engines[1:]:
            assert not list(state_differences(engines[0], engine))


def refused(source):
    with pytest.raises(UntranslatableError) as found:
        entry_of(textwrap.dedent(source), [INT, INT])
    return str(found.value)


def test_what_is_no_part_of_the_language_is_refused_by_name():
    assert "Pow is no operator of kernels: a ** b" in refused("def f(a, b):\n    return a ** b")
    assert "Try is no part" in refused("def f(a, b):\n    try:\n        return a\n    finally:\n        pass")
    assert "c is used before it is given a value" in refused("def f(a, b):\n    a = c\n    c = 1\n    return a")
    assert "bits of a float" in refused("def f(a, b):\n    return (a * 0.5) & b")
    assert "64 bits do not hold" in refused("def f(a, b):\n    return a + 9223372036854775808")
    assert "is called with 2 arguments" in refused("def f(a):\n    return a")
    assert "no function g" in refused("def f(a, b):\n    return g(a)")
    assert "only for ... in range" in refused("def f(a, b):\n    for n in (1, 2):\n        a += n\n    return a")
