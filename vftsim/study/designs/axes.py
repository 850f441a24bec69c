"""What studies vary: keys of the model, short names that stand for some of them, kinds of its parts.

*Axes.* Short names exist for media streams on a host, where one question touches several domains, and for
parameters of protection (:mod:`.protections`), which mechanisms have under different keys.

*Knobs*: ``workloads.web.rate``, ``domains.sut.protection.interval``.  Any key with a number, or a quantity with a unit,
can be turned; a level is a number in the unit in which the model states the key's value.

*Shared knobs* are settings of all mechanisms that can change their order.  A setting of protection has one value for
all mechanisms that have it, under whatever key; a mechanism without it stays as it is.  The load is a factor on every
workload that has one.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import WITH_HOSTS, ModelSpec
from vftsim.errors import ModelFileError, UsageError
from vftsim.platform.cpu.parameters import schedulers
from vftsim.spec import DURATION
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.suggest import instead, or_below, shown
from vftsim.spec.units import RATE, Quantity, number_and_unit, quantity_of
from vftsim.study.designs.protections import ALL, KEYS, MEANINGS, WRITTEN, has_parameter, protection_key
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

    def assignments(self, value: str, kind: str) -> tuple[str, ...]:
        """Return what ``--set`` would say for a value under a mechanism; nothing if that has no such parameter."""
        if self.is_short and self.name in MEANINGS:
            if not has_parameter(kind, self.name):
                return ()
            try:
                value = WRITTEN.get(self.name, str)(value)
            except PydanticCustomError as error:
                raise ModelFileError(error.message(), ORIGIN, key=f"{self.name}={value}") from None
        text = f"{value} {self.unit}" if self.unit and _is_number(value) else value
        return tuple(f"{key}={text}" for key in self.keys)


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
        others = f"{instead(name, (*SHORT_NAMES, *MEANINGS), 'short names:')}; or a dotted key of the model"
        raise UsageError(f"{option}: no short name '{name}'{or_below([name], model.spec.model_dump()) or others}")
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
    if schedulers().has_under(kind, first):
        return ()
    return tuple(f"{key}={{kind: {kind}}}" for key in scheduler_keys(model))


def scheduler_keys(model: Model) -> tuple[str, ...]:
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


@dataclass(frozen=True, slots=True)
class Knob:
    """A key of a model, and how its value is written."""

    key: str
    """Dotted."""
    unit: str
    """Of a level; empty for a plain number."""
    value: float
    """The model's own."""
    is_whole: bool
    """Whether it is a count."""

    def at(self, spec: ModelSpec, level: float) -> ModelSpec:
        """Return the model with another value; refuse one that it cannot have."""
        data = spec.model_dump(mode="json")
        *path, last = self.key.split(".")
        holder: Any = data
        for key in path:
            holder = holder[_index(holder, key)]
        holder[_index(holder, last)] = written(level, self.unit, self.is_whole)
        try:
            return ModelSpec.model_validate(data, context=WITH_HOSTS)
        except ValidationError as error:
            why = error.errors(include_url=False)[0]["msg"]
            at = f"{level:g} {self.unit}".rstrip()
            raise UsageError(f"{self.key}: the model cannot have {at}: {why}") from None


def written(level: float, unit: str, is_whole: bool) -> str | float:
    """Return a number as a model file has it; quantities that are counted (bytes, ns) come out whole."""
    if not unit:
        return round(level) if is_whole else level
    quantity = quantity_of(unit)
    if quantity is None or not quantity.whole:
        return f"{level:.12g} {unit}"
    return quantity.format(round(level * quantity.units[unit]))


def load_keys(spec: ModelSpec) -> list[str]:
    """Return the key of the load of each workload that has one; of a benchmark that of its first step."""
    keys = ((name, each.first_load_key) for name, each in spec.workloads.items())
    return [f"workloads.{name}.{key}" for name, key in keys if key]


def knob_of(spec: ModelSpec, key: str, option: str = "--vary") -> Knob:
    """Return the knob that a key is; refuse a key that the model lacks, or without a number above 0."""
    value = value_at(spec, key, option)
    parsed = number_of(value)
    number, unit = parsed or (0.0, "")
    if parsed is None or (isinstance(value, str) and not unit):
        raise UsageError(f"{option} {key}: {shown(value)} is no number that could be turned")
    if not number > 0.0:
        raise UsageError(f"{option} {key}: begins at {shown(value)}, not at a number above 0; --set one first")
    return Knob(key, unit, number, isinstance(value, int))


def value_at(spec: ModelSpec, key: str, option: str) -> Any:
    """Return what a model file has at a key; refuse a key that the model lacks."""
    value: Any = spec.model_dump(mode="json")
    done: list[str] = []
    for part in key.split("."):
        try:
            value = value[_index(value, part)]
        except (KeyError, IndexError, TypeError, ValueError):
            where = ".".join(done) or "the model"
            if not isinstance(value, (dict, list)):
                text = f"there is nothing below '{where}', which is {shown(value)}"
                raise UsageError(f"{option} {key}: {text}") from None
            keys = list(value) if isinstance(value, dict) else list(map(str, range(len(value))))
            meant = "" if done else or_below(key.split("."), value)
            hint = meant or instead(part, keys, "it has:")
            raise UsageError(f"{option} {key}: no '{part}' in '{where}'{hint}") from None
        done.append(part)
    return value


def _index(holder: Any, key: str) -> Any:
    return int(key) if isinstance(holder, list) else key


def number_of(value: Any) -> tuple[float, str] | None:
    """Return a value's number and unit; None for what is neither a number nor a text of one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return number_and_unit(value) if isinstance(value, str) else (float(value), "")


LOAD, _NONE = "load", "none"
_VALUES = 5


@dataclass(frozen=True, slots=True)
class _Sort:
    """Unit and usual range of a setting."""

    unit: str
    size: float
    """Of the unit, in the quantity's base unit."""
    reach: tuple[float, float]
    """From what part of the least value in use to what multiple of the largest one looks."""
    quantity: Quantity | None = None
    held: float = 1.0
    """The share of the setting that a model holds."""
    usual: float = 1.0
    """The value to look around where no mechanism has one of its own."""


_SORTS: Mapping[str, _Sort] = {
    "checkpoint_interval": _Sort("ms", 1e6, (0.25, 2.0), DURATION),
    "dirty_rate": _Sort("/s", 1.0, (0.2, 5.0), RATE),
    # From a cable between the hosts to another town.
    "round_trip": _Sort("us", 1e3, (0.5, 100.0), DURATION, held=0.5, usual=150.0),
    LOAD: _Sort("times its own", 1.0, (0.25, 2.0)),
}


@dataclass(frozen=True, slots=True)
class SharedKnob:
    """A setting with the values that it gets."""

    name: str
    unit: str
    values: tuple[float, ...]
    """In its unit, ascending."""

    def at(self, model: Model, entry: str, value: float) -> Model:
        """Return a model with the setting at a value, which must be possible; the same one without such a setting."""
        spec = model.spec
        if self.name == LOAD:
            for key in load_keys(spec):
                knob = knob_of(spec, key, "--crossovers load")
                spec = knob.at(spec, knob.value * value)
            return replace(model, spec=spec)
        sort = _SORTS[self.name]
        if _value_of(spec.domains[entry], self.name) is None or sort.quantity is None:
            return model
        knob = Knob(f"domains.{entry}.protection.{KEYS[self.name]}", sort.quantity.base_unit, value, False)
        return replace(model, spec=knob.at(spec, value * sort.size * sort.held))


def shared_knobs(texts: Sequence[str], models: Mapping[str, Model], entry: str) -> list[SharedKnob]:
    """Return the settings that somebody names: ``all``, ``NAME`` or ``NAME=VALUE,VALUE``.

    The models are one model under several mechanisms, whose protected domain is the entry.  Refuses a setting that none
    of them has, a value that makes no sense, and models all of which are protected: from the other one prices are told.
    """
    if texts and _NONE not in models:
        raise UsageError("--crossovers: prices are told from the run without protection; add 'none' to --protection")
    named: dict[str, str] = {}
    for text in texts:
        name, _, values = (part.strip() for part in text.partition("="))
        if name not in (ALL, *_SORTS):
            raise UsageError(f"--crossovers: no setting '{name}'{instead(name, _SORTS, 'settings:')}, or all")
        if name == ALL and values:
            raise UsageError(f"--crossovers {text}: each setting has values of its own; name it, as in 'load=0.5,1,2'")
        named[name] = values
    having = [name for name in _SORTS if any(_has(name, model, entry) for model in models.values())]
    for name in named:
        if name not in (ALL, *having):
            raise UsageError(f"--crossovers {name}: neither the model nor one of these mechanisms has one")
    names = [name for name in having if name in named or ALL in named]
    read_values = {name: _read(name, named[name]) for name in names if named.get(name)}
    values_of = {name: read_values.get(name) or _around(name, list(models.values()), entry) for name in names}
    return [SharedKnob(name, _SORTS[name].unit, values) for name, values in values_of.items()]


def _has(name: str, model: Model, entry: str) -> bool:
    return bool(load_keys(model.spec)) if name == LOAD else _value_of(model.spec.domains[entry], name) is not None


def _around(name: str, models: Sequence[Model], entry: str) -> tuple[float, ...]:
    """Return values around those that the models have."""
    sort = _SORTS[name]
    in_use = [] if name == LOAD else [_value_of(model.spec.domains[entry], name) for model in models]
    around = [value / (sort.size * sort.held) for value in in_use if value] or [sort.usual]
    low, high = min(around) * sort.reach[0], max(around) * sort.reach[1]
    return tuple(float(f"{low * (high / low) ** (n / (_VALUES - 1)):.3g}") for n in range(_VALUES))


def _read(name: str, values: str) -> tuple[float, ...]:
    sort = _SORTS[name]
    try:
        values_read = [
            _factor(text) if sort.quantity is None else sort.quantity.parse(text.strip()) / sort.size
            for text in values.split(",")
        ]
    except ValueError as error:
        raise UsageError(f"--crossovers {name}: {error}") from None
    if len(set(values_read)) < 2 or min(values_read) <= 0.0:
        raise UsageError(f"--crossovers {name}: two different values above 0 at least, got '{values}'")
    return tuple(sorted(set(values_read)))


def _factor(text: str) -> float:
    number, unit = number_and_unit(text) or (0.0, text)
    if unit:
        raise ValueError(f"'{text.strip()}' is no number; write a factor, such as 0.5")
    return number


def _value_of(domain: DomainSpec, name: str) -> float | None:
    """Return a setting as a domain's mechanism holds it; None if it has none; 0 if that is another part's word."""
    if name == "round_trip" and domain.protection.channel_network is not None:
        return None
    try:
        value = attrgetter(KEYS[name])(domain.protection)
    except AttributeError:
        return None
    return float(value) if isinstance(value, int | float) else 0.0
