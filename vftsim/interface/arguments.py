"""What the functions are given: read, and held against their annotations, so that a mistake is said before any work."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from vftsim.study.runs.model import Model

Arguments = ParamSpec("Arguments")
Answered = TypeVar("Answered")


def as_model(
    model: Model | str | Path, overrides: Sequence[str] = (), *, quick: bool = False, least_ns: int = 0
) -> Model:
    """Return a model, of a name or file the checked one with overrides; if ``quick`` shortened for a first look."""
    from vftsim.errors import UsageError
    from vftsim.study.runs.model import Model, load_model

    loaded = load_model(model, overrides) if isinstance(model, (str, Path)) else model
    if not isinstance(loaded, Model):
        raise UsageError(f"a model is a name, a file, or what vftsim.load returns; got {model!r}")
    if overrides and loaded is model:
        raise UsageError("overrides: they go with a name or a file; vftsim.load takes those of what it returns")
    return loaded.quick(least_ns) if quick else loaded


def as_variant(model: Model | str | Path, load: Callable[..., Model] | None = None) -> Model:
    """Return a model; of a text ``MODEL+KEY=VALUE`` the one with these changes, called by them.

    ``load`` makes it of a name and changes, in place of :func:`as_model`.
    """
    from vftsim.study.runs.model import variant_of

    name, changes = variant_of(model) if isinstance(model, str) else (model, [])
    loaded = as_model(name, changes) if load is None else load(name, *changes)
    return dataclasses.replace(loaded, label=str(model)) if changes else loaded


def as_texts(axes: Sequence[str] | Mapping[str, Sequence[object]]) -> list[str]:
    """Return axes with their values as they are typed, ``NAME=VALUE,VALUE``; of a dictionary a text for each."""
    if not isinstance(axes, Mapping):
        return list(axes)
    return [f"{name}={v if isinstance(v, str) else ','.join(map(str, v))}" for name, v in axes.items()]


def to_ns(time_s: float, option: str = "a time") -> int:
    """Return an option's seconds as nanoseconds; refuse what no model file may say either."""
    from vftsim.errors import UsageError
    from vftsim.spec import DURATION

    if time_s * 1e9 > DURATION.upper:
        raise UsageError(f"{option} is at most {DURATION.format(DURATION.upper)}, got {time_s:g} s")
    return round(time_s * 1e9)


def to_ns_if_given(time_s: float | None, option: str = "a time") -> int | None:
    """Return an option's seconds as nanoseconds, None if none are given."""
    return None if time_s is None else to_ns(time_s, option)


_KINDS: dict[str, tuple[type[Any], str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number from 0 on"),
    "bool": (bool, "True or False"),
    "str": (str, "text"),
    "Path": (PathLike, "a path"),
    "None": (type(None), "None"),
}
"""Plain types and words for them, by annotation.  No number that is not whole may be negative."""


def checked(function: Callable[Arguments, Answered]) -> Callable[Arguments, Answered]:
    """Return a function that refuses arguments of other types than it says."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answered:
        refuse_others(function, *args, **kwargs)
        return function(*args, **kwargs)

    return call


def refuse_others(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Refuse arguments of other types than the annotations, which are text, say.

    Raises
    ------
    UsageError
        Names the argument, what it may be, and what it is.
    """
    with contextlib.suppress(TypeError):  # one is missing, or there is none of this name: Python says so
        for name, value in inspect.signature(function).bind(*args, **kwargs).arguments.items():
            _refuse_other(name, function.__annotations__[name], value)


def _refuse_other(name: str, annotation: str, value: Any) -> None:
    from vftsim.errors import UsageError

    if annotation.startswith("Sequence["):
        elements, _, axes = annotation.partition(" | Mapping[")
        if axes and isinstance(value, Mapping):
            return
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise UsageError(f"{name}: a list{' or a dictionary' if axes else ''}, got {value!r}")
        for each in value:
            _refuse_other(name, elements[len("Sequence[") : -1], each)
        return
    kinds = annotation.split(" | ")
    if all(kind in _KINDS for kind in kinds) and not any(_is_a(kind, value) for kind in kinds):
        raise UsageError(f"{name}: {' or '.join(_KINDS[kind][1] for kind in kinds)}, got {value!r}")


def _is_a(kind: str, value: Any) -> bool:
    if isinstance(value, bool):  # which Python counts as a number
        return kind == "bool"
    return isinstance(value, _KINDS[kind][0]) and (kind != "float" or 0 <= value < math.inf)
