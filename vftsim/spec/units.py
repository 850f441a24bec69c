"""Quantities with a unit in the model file and a plain number in the model.

A file says ``25 ms``; the model holds ``25_000_000``, in the base unit that the field's name ends in
(``_ns``, ``_bytes``, ``_bit_per_s``, ``_percent``, ``_hz``).  Text is read exactly, as a fraction:
``0.1 us`` is 100 ns.  A duration that is no whole number of nanoseconds is rounded half to even,
and refused where that makes it 0; bytes, bit/s and Hz must come out whole.  Python code may pass the
base unit's number; a model file may not (:mod:`vftsim.spec.written`), except 0.  Dumping a model in
JSON mode gives text that reads back as the same number.

Unit names follow SI and IEC 80000-13: k = 1000 and Ki = 1024, ``B`` byte, ``bit`` bit.  Upper limits
stop slips of many orders of magnitude; they are no claims about real systems.
"""

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, NoReturn

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.spec.written import WrittenFloat, WrittenInt

US, MS, S = 1_000, 1_000_000, 1_000_000_000
"""A microsecond, a millisecond and a second, in ns."""
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_QUANTITY = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>.*)", re.DOTALL)
_MAX_TEXT = 64
_MAX_EXPONENT = 4
_MOST_KNOWN, _KNOWN_AGAIN = 8192, (str, int, float)
"""Values that were read or written are known again: the models of a grid hold the same ones at every point."""
_ALIASES = {
    "µs": "us",
    "μs": "us",
    "second": "s",
    "seconds": "s",
    "minute": "min",
    "minutes": "min",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    **{unit: f"{unit}/s" for unit in ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")},
}
"""Other ways to write a unit; of bytes where only a rate can be meant, as files of this form once had it."""

_OTHER_RATES = {
    "bit/s": ("bytes", r"([kKMGT]?)(?:B|byte|bytes)(?:/s|ps)", Fraction(8)),
    "B/s": ("bits", r"([kKMGT]?)(?:b|bit|bits)(?:/s|ps)", Fraction(1, 8)),
}
"""By the base unit of a rate: what somebody may have written instead, its units, and how much of the base it is."""


def number_and_unit(text: str) -> tuple[float, str] | None:
    """Return a number and the unit it is written with, empty if there is none; ``None`` if that is not what it is."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match["unit"][:1].isdigit() or match["unit"].startswith((".", "+", "-")):
        return None
    return float(match["number"]), match["unit"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Pydantic annotation of one dimension: what units it knows and what number it stores."""

    name: str
    """The dimension, as messages call it."""
    units: Mapping[str, Fraction] = field(hash=False)
    """Accepted unit -> its size in the base unit."""
    written_units: tuple[str, ...]
    """The units used when writing, largest first; the last one is the base unit."""
    example: str
    """A right form, for messages and the schema."""
    upper: int
    """Largest accepted value, in the base unit."""
    least: Fraction = Fraction(0)
    """Least accepted value beside 0, in the base unit."""
    whole: bool = True
    """Whether the stored number is an int."""
    rounds: bool = False
    """Whether a fraction of the base unit is rounded (half to even) instead of refused."""
    decimals: int = 0
    """How many decimals the written form of a whole quantity may use."""
    positive: bool = False
    """Whether 0 is refused."""
    recurs: bool = False
    """Whether something happens again each time it has passed, for as long as a run lasts."""

    @property
    def base_unit(self) -> str:
        return self.written_units[-1]

    def parse(self, value: object) -> int | float:
        """Return the number in the base unit of what a file or Python code gave."""
        return self._remembered(value) if type(value) in _KNOWN_AGAIN else self._parsed(value)

    @lru_cache(_MOST_KNOWN, typed=True)  # noqa: B019 - quantities are constants of modules
    def _remembered(self, value: Any) -> int | float:
        return self._parsed(value)

    def _parsed(self, value: object) -> int | float:
        if isinstance(value, bool) or not isinstance(value, (str, numbers.Real)):
            self._refuse(f"must be a {self.name} such as '{self.example}', got {shown(value)}")
        if isinstance(value, (WrittenInt, WrittenFloat)) and value != 0:
            self._refuse_bare(value)
        amount = self._amount_of_text(value) if isinstance(value, str) else self._amount_of_number(value)
        return self._checked(amount, value)

    @lru_cache(_MOST_KNOWN, typed=True)  # noqa: B019 - quantities are constants of modules
    def format(self, value: float) -> str:
        """Return text that :meth:`parse` reads back as the same number."""
        if not self.whole:
            return f"{_plain(value)} {self.base_unit}"
        for unit in self.written_units:
            scaled = Fraction(value) / self.units[unit]
            power_of_ten = str(self.units[unit]).rstrip("0") == "1"
            allowed = self.decimals if power_of_ten and scaled >= 1 else 0
            if scaled != 0 and (scaled * 10**allowed).denominator == 1:
                return f"{_decimal(scaled, allowed)} {unit}"
        return f"{value} {self.base_unit}"

    def _amount_of_text(self, text: str) -> Fraction:
        match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _MAX_TEXT else None
        if match is None:
            self._refuse(f"must be a {self.name} such as '{self.example}', got {shown(text)}")
        number, unit = match["number"], match["unit"]
        if _ALIASES.get(unit) in self.units:
            unit = _ALIASES[unit]
        if len(number.lower().partition("e")[2]) > _MAX_EXPONENT:
            self._refuse(f"must be a {self.name} such as '{self.example}', got {shown(text)}")
        amount = Fraction(number)
        if not unit:
            if amount:
                self._refuse_bare(text.strip())
            return amount
        for base, (other, pattern, factor) in _OTHER_RATES.items():
            if base in self.units and (match := re.fullmatch(pattern, unit)):
                meant = f"{_plain(float(factor * amount))} {match[1].replace('K', 'k')}{base}"
                unit_word = "bits" if base == "bit/s" else "bytes"
                self._refuse(f"{shown(text)} is {other} a second, and a {self.name} is in {unit_word}: '{meant}'")
        if unit not in self.units:
            self._refuse(
                f"{shown(unit)} in {shown(text)} is not a unit of a {self.name}"
                f"{did_you_mean(unit, self.units)} (units: {listing(self.units)}; e.g. '{self.example}')"
            )
        return amount * self.units[unit]

    def _amount_of_number(self, value: numbers.Real) -> Fraction:
        if isinstance(value, numbers.Integral):
            return Fraction(int(value))
        number = float(value)
        if not math.isfinite(number):
            self._refuse(f"must be a finite {self.name} such as '{self.example}', got {value}")
        if self.whole and number != 0:
            self._refuse(f"must be an int ({self.base_unit}) or text such as '{self.example}', got {value}")
        return Fraction(number)

    def _checked(self, amount: Fraction, value: object) -> int | float:
        if amount < 0:
            self._refuse(f"must not be negative, got {shown(value)}")
        if amount > self.upper:
            self._refuse(f"must be at most {self.format(self.upper)}, got {shown(value)}")
        if 0 < amount < self.least:
            self._refuse(f"must be 0 or at least {self.format(float(self.least))}, got {shown(value)}")
        if self.whole and not self.rounds and amount.denominator != 1:
            self._refuse(f"must be a whole number of {self.base_unit}, got {shown(value)}")
        if self.positive and amount == 0:
            self._refuse(f"must be greater than 0, e.g. '{self.example}', got {shown(value)}")
        result = round(amount) if self.whole else float(amount)
        if amount and not result:
            least = f"{'' if self.positive else '0 or '}at least 1 {self.base_unit}"
            self._refuse(f"must be {least}, got {shown(value)}, which rounds to 0 {self.base_unit}")
        return result

    def _refuse_bare(self, value: object) -> NoReturn:
        self._refuse(
            f"{value} has no unit; write a {self.name} with its unit, e.g. '{self.example}' "
            f"(units: {listing(self.units)})"
        )

    def _refuse(self, message: str) -> NoReturn:
        raise PydanticCustomError("quantity", "{why}", {"why": message})

    @property
    def pattern(self) -> str:
        """Regular expression of accepted text (ECMA-262, for editors)."""
        names = [*self.units, *(a for a, unit in _ALIASES.items() if unit in self.units)]
        number = _NUMBER.removeprefix("[+-]?")
        return rf"^\s*(?:{number}\s*(?:{'|'.join(re.escape(n) for n in names)})|0)\s*$"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            self.parse,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(self.format, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "type": "string",
            "pattern": self.pattern,
            "description": f"A {self.name} with its unit ({', '.join(self.units)}), e.g. '{self.example}'.",
            "examples": [self.example],
        }


def _plain(value: float) -> str:
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def _decimal(value: Fraction, decimals: int) -> str:
    digits = str(int(value * 10**decimals)).rjust(decimals + 1, "0")
    if not decimals:
        return digits
    return f"{digits[:-decimals]}.{digits[-decimals:]}".rstrip("0").rstrip(".")


def _sizes(**units: int) -> dict[str, Fraction]:
    return {name: Fraction(size) for name, size in units.items()}


DURATION = Quantity(
    name="duration",
    units=_sizes(ns=1, us=10**3, ms=10**6, s=10**9, min=60 * 10**9, h=3600 * 10**9, d=86_400 * 10**9),
    written_units=("d", "h", "min", "s", "ms", "us", "ns"),
    example="25 ms",
    upper=3653 * 86_400 * 10**9,
    rounds=True,
    decimals=3,
)
BIT_RATE = Quantity(
    name="bit rate",
    units=_sizes(**{"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}),
    written_units=("Tbit/s", "Gbit/s", "Mbit/s", "kbit/s", "bit/s"),
    example="1 Gbit/s",
    upper=10**15,
    decimals=3,
)
BYTE_COUNT = Quantity(
    name="size",
    units=_sizes(B=1, kB=10**3, MB=10**6, GB=10**9, TB=10**12, KiB=2**10, MiB=2**20, GiB=2**30, TiB=2**40),
    written_units=("TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB", "B"),
    example="256 KiB",
    upper=2**50,
)
BYTE_RATE = replace(
    BYTE_COUNT,
    name="byte rate",
    units={f"{unit}/s": size for unit, size in BYTE_COUNT.units.items()},
    written_units=tuple(f"{unit}/s" for unit in BYTE_COUNT.written_units),
    example="60 MB/s",
)
RATE = Quantity(
    name="rate",
    units={"/s": Fraction(1), "/min": Fraction(1, 60), "/h": Fraction(1, 3600)},
    written_units=("/s",),
    example="50 /s",
    upper=10**12,
    least=Fraction(1, 10**9),
    whole=False,
)
PERCENT = Quantity(
    name="percentage",
    units={"%": Fraction(1)},
    written_units=("%",),
    example="10 %",
    upper=100,
    whole=False,
)
FREQUENCY = Quantity(
    name="frequency",
    units=_sizes(Hz=1, kHz=10**3, MHz=10**6, GHz=10**9),
    written_units=("GHz", "MHz", "kHz", "Hz"),
    example="3.16 GHz",
    upper=10**12,
    decimals=3,
)

DurationNs = Annotated[int, DURATION]
"""Nanoseconds; ``25 ms`` in a file."""
PositiveDurationNs = Annotated[int, replace(DURATION, positive=True)]
"""Nanoseconds, more than 0."""
PeriodNs = Annotated[int, replace(DURATION, positive=True, recurs=True)]
"""Nanoseconds from one recurrence to the next, all through a run: what an estimate of its length counts."""
BitRate = Annotated[int, BIT_RATE]
"""Bits per second; ``1 Gbit/s`` in a file."""
ByteCount = Annotated[int, BYTE_COUNT]
"""Bytes; ``4 KiB`` or ``1.5 MB`` in a file."""
ByteRate = Annotated[int, BYTE_RATE]
"""Bytes per second, as of disks; ``60 MB/s`` in a file."""
RatePerSecond = Annotated[float, RATE]
"""Events per second; ``50 /s`` in a file."""
Percent = Annotated[float, PERCENT]
"""Percent, 0 to 100; ``10 %`` in a file."""
Hertz = Annotated[int, FREQUENCY]
"""Hertz; ``3.16 GHz`` in a file."""


def format_duration(duration_ns: float) -> str:
    """Return a duration for a table: four significant digits, in the unit that fits (``1.25 ms``)."""
    return _significant(duration_ns, (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)))


def format_rate(bit_per_s: float) -> str:
    """Return a bit rate for a table: four significant digits, in the unit that fits (``1 Gbit/s``)."""
    return _significant(bit_per_s, (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)))


def _significant(value: float, units: tuple[tuple[str, float], ...]) -> str:
    for unit, size in units:
        # 0.99995 of a unit prints as 1.000 of it, so the choice is made on what will be printed.
        if float(f"{abs(value) / size:.4g}") >= 1:
            return f"{_positional(value / size)} {unit}"
    return f"{_positional(value)} {units[-1][0]}"


def _positional(value: float) -> str:
    rounded = float(f"{value:.4g}")
    return f"{rounded:.0f}" if rounded == int(rounded) else f"{rounded:.10f}".rstrip("0")


_QUANTITIES = (DURATION, BIT_RATE, BYTE_COUNT, BYTE_RATE, FREQUENCY, RATE, PERCENT)


def quantity_of(*units: str) -> Quantity | None:
    """Return the quantity that knows all of these units."""
    return next((quantity for quantity in _QUANTITIES if {*units} <= quantity.units.keys()), None)


def converted(number: float, unit: str, other: str) -> float | None:
    """Return a number in another unit; None where no quantity has both."""
    if unit == other:
        return number
    quantity = quantity_of(unit, other)
    return None if quantity is None else number * float(quantity.units[unit] / quantity.units[other])


def numbers_of(values: Sequence[str]) -> tuple[list[float], str] | None:
    """Return values as they are written as numbers with their common unit; ``None`` if they are no numbers.

    Values in different units of one dimension come in its base unit.  Whether a model can have them is not asked.
    """
    numbers = [each for each in map(number_and_unit, values) if each]
    units = {unit for _, unit in numbers}
    if len(numbers) < len(values):
        return None
    if len(units) == 1:
        return [number for number, _ in numbers], units.pop()
    quantity = quantity_of(*units)
    if quantity is None or not all(math.isfinite(number) for number, _ in numbers):
        return None
    # As fractions: 2.3 s and 2300 ms are one value.
    return [float(Fraction(str(number)) * quantity.units[unit]) for number, unit in numbers], quantity.base_unit
