"""Quantities: exact reading, refusals, round trips."""

from fractions import Fraction
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from vftsim.spec import (
    BYTE_COUNT,
    DURATION,
    PERCENT,
    RATE,
    BitRate,
    ByteCount,
    DurationNs,
    Percent,
    PositiveDurationNs,
    RatePerSecond,
    Spec,
    format_duration,
)
from vftsim.spec.units import BIT_RATE, BYTE_RATE, FREQUENCY, ByteRate, Hertz, format_rate
from vftsim.spec.written import WrittenFloat, WrittenInt

ALL = {q.name: q for q in (DURATION, BIT_RATE, BYTE_COUNT, BYTE_RATE, RATE, PERCENT, FREQUENCY)}


class Quantities(Spec):
    duration: DurationNs = 0
    positive: PositiveDurationNs = 1
    bit_rate: BitRate = 0
    size: ByteCount = 0
    byte_rate: ByteRate = 0
    rate: RatePerSecond = 0.0
    percent: Percent = 0.0
    hertz: Hertz = 0


def reason(**values) -> str:
    with pytest.raises(ValidationError) as caught:
        Quantities(**values)
    (only,) = caught.value.errors()
    assert only["type"] == "quantity"
    return only["msg"]


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("duration", "25 ms", 25_000_000),
        ("duration", "25ms", 25_000_000),
        ("duration", " 2 s ", 2_000_000_000),
        ("duration", "1.5 us", 1_500),
        ("duration", "0.1 us", 100),
        ("duration", "0.3 us", 300),
        ("duration", "15 min", 900_000_000_000),
        ("duration", "90 days", 90 * 86_400 * 10**9),
        ("duration", "1 hour", 3_600 * 10**9),
        ("duration", "2 minutes", 120 * 10**9),
        ("duration", "1 h", 3_600_000_000_000),
        ("duration", "1 d", 86_400_000_000_000),
        ("duration", "7 µs", 7_000),
        ("duration", "1e3 ns", 1_000),
        ("duration", "+.5 ms", 500_000),
        ("duration", "0", 0),
        ("duration", 0, 0),
        ("duration", WrittenInt(0), 0),
        ("duration", "0.6 ns", 1),
        ("duration", "1.5 ns", 2),
        ("duration", "2.5 ns", 2),
        ("duration", "0.3333333333 s", 333_333_333),
        ("bit_rate", "1 Gbit/s", 10**9),
        ("bit_rate", "100 Mbit/s", 10**8),
        ("bit_rate", "33.6 kbit/s", 33_600),
        ("size", "4 KiB", 4096),
        ("size", "1 GiB", 2**30),
        ("size", "172 B", 172),
        ("size", "1.5 MB", 1_500_000),
        ("size", "0.5 KiB", 512),
        ("byte_rate", "60 MB/s", 60_000_000),
        ("byte_rate", "4 KiB/s", 4096),
        ("byte_rate", "60 MB", 60_000_000),
        ("rate", "50 /s", 50.0),
        ("rate", "50/s", 50.0),
        ("rate", "90 /min", 1.5),
        ("percent", "10 %", 10.0),
        ("percent", "0.1%", 0.1),
        ("hertz", "3.16 GHz", 3_160_000_000),
    ],
)
def test_reads_exactly(name, text, number):
    value = getattr(Quantities(**{name: text}), name)
    assert value == number
    assert type(value) is type(number) or type(number) is WrittenInt


@pytest.mark.parametrize(
    ("values", "part_of_message"),
    [
        ({"duration": WrittenInt(25)}, "25 has no unit; write a duration with its unit, e.g. '25 ms'"),
        ({"duration": WrittenFloat(2.5)}, "2.5 has no unit"),
        ({"duration": "25"}, "25 has no unit"),
        ({"duration": "25 MB"}, "'MB' in '25 MB' is not a unit of a duration"),
        ({"duration": "25 MB"}, "(units: ns, us, ms, s, min, h, d; e.g. '25 ms')"),
        ({"duration": "25 Ms"}, "did you mean 'ms'?"),
        ({"duration": "-1 ms"}, "must not be negative, got '-1 ms'"),
        ({"duration": -1}, "must not be negative, got -1"),
        ({"duration": "11000 d"}, "must be at most 3653 d"),
        ({"duration": "1e9999 s"}, "must be at most 3653 d"),
        ({"duration": "1e999999999999 s"}, "must be a duration such as '25 ms'"),
        ({"duration": "9" * 70 + " s"}, "must be a duration"),
        ({"duration": "nan s"}, "must be a duration"),
        ({"duration": "inf s"}, "must be a duration"),
        ({"duration": float("nan")}, "must be a finite duration"),
        ({"duration": float("inf")}, "must be a finite duration"),
        ({"duration": 2.5}, "must be an int (ns)"),
        ({"duration": True}, "must be a duration such as '25 ms', got true"),
        ({"duration": None}, "got nothing (null)"),
        ({"duration": ["25 ms"]}, "got a list"),
        ({"duration": ""}, "must be a duration"),
        ({"duration": "ms"}, "must be a duration"),
        ({"positive": "0 ms"}, "must be greater than 0"),
        ({"positive": 0}, "must be greater than 0"),
        ({"positive": "0.1 ns"}, "must be at least 1 ns, got '0.1 ns', which rounds to 0 ns"),
        ({"duration": "0.1 ns"}, "must be 0 or at least 1 ns, got '0.1 ns', which rounds to 0 ns"),
        ({"duration": "0.0005 us"}, "must be 0 or at least 1 ns, got '0.0005 us'"),
        ({"size": "1.5 B"}, "must be a whole number of B"),
        ({"size": "60 MB/s"}, "'MB/s' in '60 MB/s' is not a unit of a size; did you mean 'MB'?"),
        ({"byte_rate": "60 Mbit/s"}, "'60 Mbit/s' is bits a second, and a byte rate is in bytes: '7.5 MB/s'"),
        ({"byte_rate": "1 Gbps"}, "is bits a second, and a byte rate is in bytes: '0.125 GB/s'"),
        ({"byte_rate": "60"}, "60 has no unit; write a byte rate with its unit, e.g. '60 MB/s' (units: B/s, kB/s, "),
        ({"size": "1 KB"}, "did you mean 'kB'?"),
        ({"bit_rate": "1 Gbps"}, "'Gbps' in '1 Gbps' is not a unit of a bit rate"),
        ({"bit_rate": "0.5 bit/s"}, "must be a whole number of bit/s"),
        ({"percent": "101 %"}, "must be at most 100 %"),
        ({"rate": "1e-300 /s"}, "must be 0 or at least 1e-09 /s"),
        ({"percent": "0.1"}, "0.1 has no unit; write a percentage with its unit, e.g. '10 %'"),
        ({"rate": float("inf")}, "must be a finite rate"),
        ({"hertz": "0.0001 Hz"}, "must be a whole number of Hz"),
    ],
)
def test_refuses_with_the_right_form(values, part_of_message):
    assert part_of_message in reason(**values)


def test_python_numbers_are_base_units():
    assert Quantities(duration=25_000_000).duration == 25_000_000
    assert Quantities(duration=np.int64(7)).duration == 7
    assert type(Quantities(duration=np.int64(7)).duration) is int
    assert Quantities(rate=50).rate == 50.0
    assert type(Quantities(rate=50).rate) is float


@given(
    duration=st.integers(0, DURATION.upper),
    positive=st.integers(1, DURATION.upper),
    bit_rate=st.integers(0, BIT_RATE.upper),
    size=st.integers(0, BYTE_COUNT.upper),
    byte_rate=st.integers(0, BYTE_RATE.upper),
    rate=st.just(0.0) | st.floats(float(RATE.least), RATE.upper),
    percent=st.floats(0, 100),
    hertz=st.integers(0, FREQUENCY.upper),
)
def test_dumped_text_reads_back_the_same(**values):
    spec = Quantities(**values)
    dumped = spec.model_dump(mode="json")
    assert all(isinstance(text, str) for text in dumped.values())
    assert Quantities(**dumped) == spec
    assert Quantities.model_validate_json(spec.model_dump_json()) == spec
    assert spec.model_dump() == values


@given(name=st.sampled_from(sorted(ALL)), digits=st.integers(0, 10**7), shift=st.integers(0, 6), data=st.data())
def test_reading_equals_rational_arithmetic(name, digits, shift, data):
    """The written decimal times the unit's size, as fractions: an independent way to the number."""
    quantity = ALL[name]
    unit = data.draw(st.sampled_from(sorted(quantity.units)))
    exact = Fraction(digits, 10**shift) * quantity.units[unit]
    whole = f"{digits:0{shift + 1}d}"
    text = f"{whole[: len(whole) - shift]}.{whole[len(whole) - shift :]} {unit}" if shift else f"{digits} {unit}"
    is_between = quantity.whole and not quantity.rounds and exact.denominator != 1
    is_lost = quantity.whole and 0 < exact <= Fraction(1, 2)
    if exact > quantity.upper or is_between or is_lost or 0 < exact < quantity.least:
        with pytest.raises(Exception, match="must be"):
            quantity.parse(text)
    else:
        assert quantity.parse(text) == (round(exact) if quantity.whole else float(exact))


@pytest.mark.parametrize(
    ("quantity", "number", "text"),
    [
        (DURATION, 0, "0 ns"),
        (DURATION, 1_500, "1.5 us"),
        (DURATION, 25_000_000, "25 ms"),
        (DURATION, 90 * 10**9, "90 s"),
        (DURATION, 120 * 10**9, "2 min"),
        (DURATION, 1_000_001, "1000.001 us"),
        (BYTE_COUNT, 4096, "4 KiB"),
        (BYTE_COUNT, 1500, "1500 B"),
        (BYTE_COUNT, 2_000_000, "2 MB"),
        (BYTE_RATE, 60_000_000, "60 MB/s"),
        (BIT_RATE, 1_500_000_000, "1.5 Gbit/s"),
        (FREQUENCY, 3_160_000_000, "3.16 GHz"),
        (RATE, 50.0, "50 /s"),
        (RATE, 1e-7, "1e-07 /s"),
        (PERCENT, 0.1, "0.1 %"),
    ],
)
def test_written_form(quantity, number, text):
    assert quantity.format(number) == text


def test_bounds_of_a_field_hold_before_and_after_the_unit():
    class Bounded(Spec):
        inside: DurationNs = Field(10, gt=5)
        outside: Annotated[DurationNs, Field(le=20)] = 10

    with pytest.raises(ValidationError, match="greater than 5"):
        Bounded(inside="5 ns")
    with pytest.raises(ValidationError, match="less than or equal to 20"):
        Bounded(outside="21 ns")
    assert Bounded(inside="6 ns", outside="20 ns").model_dump(mode="json") == {
        "inside": "6 ns",
        "outside": "20 ns",
    }


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_250_000, "1.25 ms"),
        (999_999_999, "1 s"),
        (12.34567e9, "12.35 s"),
        (5e12, "5000 s"),
    ],
)
def test_format_duration(number, text):
    assert format_duration(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bit/s"), (1e9, "1 Gbit/s"), (94_130_000, "94.13 Mbit/s"), (64_000, "64 kbit/s")],
)
def test_format_rate(number, text):
    assert format_rate(number) == text
