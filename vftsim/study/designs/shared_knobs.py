"""Settings of all mechanisms that can change their order: an interval, a dirty rate, a round trip, the load.

A setting of protection has one value for all mechanisms that have it, under whatever key; a mechanism without it stays
as it is.  The load is a factor on every workload that has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vftsim.composition.hosts import DomainSpec
from vftsim.errors import UsageError
from vftsim.spec import DURATION
from vftsim.spec.suggest import instead
from vftsim.spec.units import RATE, Quantity, number_and_unit
from vftsim.study.designs.knob import Knob, knob_of, load_keys
from vftsim.study.designs.protections import KEYS
from vftsim.study.runs.model import Model

ALL, LOAD, _NONE = "all", "load", "none"
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
    wanted = [name for name in having if name in named or ALL in named]
    given = {name: _read(name, named[name]) for name in wanted if named.get(name)}
    return [
        SharedKnob(name, _SORTS[name].unit, given.get(name) or _around(name, list(models.values()), entry))
        for name in wanted
    ]


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
    value: object = domain.protection
    if name == "round_trip" and domain.protection.channel_network is not None:
        return None
    for part in KEYS[name].split("."):
        if not hasattr(value, part):
            return None
        value = getattr(value, part)
    return float(value) if isinstance(value, int | float) else 0.0
