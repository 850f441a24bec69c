"""What a sensitivity study varies: ranges that the user gives, of fitted parameters, and of what is assumed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.fields import FieldInfo

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import Spec
from vftsim.spec.units import number_and_unit
from vftsim.study.design.points import Span, span_of
from vftsim.study.knob import knob_of, written

_FORM = re.compile(r"\s*(?P<name>[^=\s]+)\s*=\s*(?P<low>.+?)\s*\.\.\s*(?P<high>.+?)(?P<log>\s+log)?\s*")
_ASSUMED = "Assumption"


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


def assumed_ranges(spec: ModelSpec, below: str, factor: float) -> dict[str, Span]:
    """Return the numbers below a key that the model's own documentation calls assumptions, each with a range.

    Parameters
    ----------
    spec : ModelSpec
    below : str
        ``domains.sut.protection``.
    factor : float
        The range goes from the model's value divided by this to that times this, by ratio.

    Raises
    ------
    UsageError
        There is nothing of the kind.
    """
    part: Any = spec
    for key in below.split("."):
        part = part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
    found = {}
    for path in _assumed(part, below) if part is not None else ():
        try:
            knob = knob_of(spec, path, "--assumed")
        except UsageError:
            continue  # nothing, or 0: turned off
        found[path] = Span(knob.value / factor, knob.value * factor, knob.unit, True, knob.is_whole)
    if not found:
        raise UsageError(f"--assumed: nothing below '{below}' is an assumed number above 0; try domains.NAME")
    return found


def _assumed(part: Any, path: str) -> Iterator[str]:
    """Yield the keys of fields whose description says that they are assumptions."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _assumed(value, f"{path}.{key}")
    elif isinstance(part, Spec):
        for name, field in type(part).model_fields.items():
            value = getattr(part, name)
            if isinstance(value, Spec | Mapping):
                yield from _assumed(value, f"{path}.{name}")
            elif _is_assumed(field) and isinstance(value, int | float) and not isinstance(value, bool):
                yield f"{path}.{name}"


def _is_assumed(field: FieldInfo) -> bool:
    return _ASSUMED in (field.description or "")


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
