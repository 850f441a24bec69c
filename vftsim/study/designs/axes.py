"""What the points of a design vary: keys of the model, short names that stand for some of them, kinds of its parts.

Short names exist for media streams on a host, where one question touches several domains, and for
parameters of protection (:mod:`.protections`), which mechanisms have under different keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic_core import PydanticCustomError

from vftsim.errors import ModelFileError, UsageError
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.suggest import instead
from vftsim.study.designs.protections import KEYS, MEANINGS, WRITTEN, has_parameter, protection_key
from vftsim.study.runs.model import Model

SHORT_NAMES = ("weight", "cap", "streams", "calls")
SHORT_MEANINGS = {
    "weight": "weight of the driver domain and of the media VM",
    "cap": "cap of each CPU-bound VM in percent of a pCPU, 0: none",
    "streams": "media streams",
    "calls": "calls per second",
}
_OPEN, _CLOSE = "[{(", "]})"


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that is varied under one name."""

    name: str
    """As the user said it."""
    keys: tuple[str, ...]
    """Dotted keys of the model that get the value; of a short name about protection, in mechanisms that have it."""
    unit: str = ""
    """Added to a value that is a bare number."""
    is_short: bool = False
    """Whether the name is a short one."""

    def assignments(self, value: str, kind: str) -> tuple[str, ...]:
        """Return what ``--set`` would say for a value under a mechanism; nothing if that has no such parameter."""
        if self.is_short and self.name in MEANINGS:
            if not has_parameter(kind, self.name):
                return ()
            value = self._written(value)
        text = f"{value} {self.unit}" if self.unit and _is_number(value) else value
        return tuple(f"{key}={text}" for key in self.keys)

    def _written(self, value: str) -> str:
        """Return what is written at the key; refuse what is no value of the short name."""
        try:
            return WRITTEN.get(self.name, str)(value)
        except PydanticCustomError as error:
            raise ModelFileError(error.message(), ORIGIN, key=f"{self.name}={value}") from None


def axis_of(model: Model, name: str, kinds: Sequence[str], option: str) -> Axis:
    """Return the axis that a dotted key or a short name is; refuse one that means nothing under these mechanisms."""
    if "." in name:
        return Axis(name, (name,))
    if name in MEANINGS:
        if not any(has_parameter(kind, name) for kind in kinds):
            means = f"'{name}' ({MEANINGS[name]}) means nothing under {', '.join(kinds)}"
            raise UsageError(f"{option}: {means}; say a protection that has it")
        return Axis(name, (f"{protection_key(model)}.{KEYS[name]}",), is_short=True)
    if name not in SHORT_NAMES:
        known = (*SHORT_NAMES, *MEANINGS)
        there = instead(name, known, "short names:")
        raise UsageError(f"{option}: no short name '{name}'{there}; or a dotted key of the model")
    keys = short_keys(model, name)
    if not keys:
        raise UsageError(f"{option}: '{name}' ({SHORT_MEANINGS[name]}) means nothing in '{model.label}'")
    return Axis(name, keys, "%" if name == "cap" else "", is_short=True)


def short_keys(model: Model, name: str) -> tuple[str, ...]:
    """Return the keys that a short name about media streams stands for in a model; none if it means nothing there."""
    spec = model.spec
    loads = {workload.load_key: workload_name for workload_name, workload in reversed(spec.workloads.items())}
    if key := {"streams": "streams", "calls": "calls_per_s"}.get(name):
        return (f"workloads.{loads[key]}.{key}",) if key in loads else ()
    if name == "weight":
        reached = spec.target_of(spec.workloads[loads["streams"]])[0] if "streams" in loads else None
        domains = dict.fromkeys((*map(spec.driver_of, spec.hosts), reached))
        return tuple(f"domains.{domain}.weight" for domain in domains if domain)
    return tuple(
        f"domains.{domain}.cap"
        for domain, each in spec.domains.items()
        if each.applications and all(program.busy_percent for program in each.applications.values())
    )


def scheduler_switch(model: Model, kind: str) -> tuple[str, ...]:
    """Return what gives the model a scheduler; one that it has already keeps its parameters."""
    first = next(iter(model.spec.hosts.values())).scheduler
    if first.kind == kind:  # type: ignore[attr-defined]
        return ()
    return tuple(f"{key}={{kind: {kind}}}" for key in scheduler_keys(model))


def scheduler_keys(model: Model) -> tuple[str, ...]:
    """Return the dotted key of each host's scheduler."""
    return tuple(f"hosts.{host}.scheduler" for host in model.spec.hosts)


def refuse_overwritten(keys_of: Mapping[str, Sequence[str]], option: str) -> None:
    """Refuse factors, with their keys in the order in which they are set, of which one undoes another.

    One that sets a key again, or all below which the key is, as a new kind does, would leave points that are not what
    they are called.
    """
    set_by: dict[str, str] = {}
    for name, keys in keys_of.items():
        wholes = [".".join(map(str.strip, key.split("."))).removesuffix(".kind") for key in keys]
        for whole, (key, other) in itertools.product(wholes, set_by.items()):
            if key == whole:
                raise UsageError(f"{option}: '{other}' and '{name}' both set {key}; leave one of them out")
            if key.startswith(f"{whole}."):
                raise UsageError(f"{option}: '{name}' sets all of {whole} and undoes '{other}'; name it first")
        set_by |= dict.fromkeys(wholes, name)


def split_values(text: str) -> list[str]:
    """Split at commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
