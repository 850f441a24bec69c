"""What a sensitivity study varies: ranges that the user gives, of fitted parameters, and of prices of protection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec.units import number_and_unit, quantity_with
from vftsim.study.design.points import Span, span_of
from vftsim.study.knob import knob_of, written

_FORM = re.compile(r"\s*(?P<name>[^=\s]+)\s*=\s*(?P<low>.+?)\s*\.\.\s*(?P<high>.+?)(?P<log>\s+log)?\s*")


def read_range(text: str) -> tuple[str, Span]:
    """Return what ``--range`` says: a key or short name, and its range.

    Raises
    ------
    UsageError
        It is not of the form ``key=low..high``.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--range: '{text}' is not of the form key=low..high, e.g. 'workloads.web.rate=50 /s..200 /s'")
    low, high = (_plain(match[end]) for end in ("low", "high"))
    return match["name"], span_of(match["name"], low, high, bool(match["log"]))


def _plain(text: str) -> Any:
    found = number_and_unit(text)
    if found is None or found[1]:
        return text
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else found[0]


def scaled_range(spec: ModelSpec, key: str, low: float, high: float) -> Span:
    """Return the range between two multiples of the model's own value.

    Raises
    ------
    UsageError
        There is no number above 0 at the key.
    """
    knob = knob_of(spec, key, "--fit")
    return Span(knob.value * low, knob.value * high, knob.unit, False, knob.is_whole)


def price_ranges(spec: ModelSpec) -> dict[str, Span]:
    """Return the prices of the model's mechanisms of protection, each over the range that is declared for it.

    Raises
    ------
    UsageError
        There are none.
    """
    found = {}
    for name, domain in spec.domains.items():
        for each in domain.protection.prices():
            key = f"domains.{name}.protection.{each.key}"
            unit, size = _unit_of(spec, key, each.value)
            is_log = each.price.low > 0.0
            found[key] = Span(each.price.low / size, each.price.high / size, unit, is_log)
    if not found:
        raise UsageError("--prices: no mechanism of this model has a price that it does not give itself")
    return found


def _unit_of(spec: ModelSpec, key: str, value: float) -> tuple[str, float]:
    """Return the unit in which a model writes a key, and its size in the base unit."""
    data: Any = spec.model_dump(mode="json")
    for part in key.split("."):
        data = data[part]
    written_as = number_and_unit(data) if isinstance(data, str) else None
    if written_as is None:
        return "", 1.0
    number, unit = written_as
    if (quantity := quantity_with(unit)) is not None:
        return unit, float(quantity.units[unit])
    return unit, value / number if number else 1.0


def own_outside(spec: ModelSpec, spans: Mapping[str, Span]) -> list[str]:
    """Return in words which of the model's own values lie outside of their ranges; a short name says nothing."""
    found = []
    for name, span in spans.items():
        try:
            knob = knob_of(spec, name, "")
        except UsageError:
            continue
        if knob.unit == span.unit and not span.low <= knob.value <= span.high:
            found.append(f"{name} is {written(knob.value, knob.unit, knob.is_whole)}, outside its range")
    return found
