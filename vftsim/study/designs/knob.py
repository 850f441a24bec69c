"""A number of a model that a study turns: ``workloads.web.rate``, ``domains.sut.protection.interval``.

Any key with a number, or a quantity with a unit, can be turned; a level is a number in the unit in which the model
states the key's own value.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from vftsim.composition.model import WITH_HOSTS, ModelSpec
from vftsim.errors import UsageError
from vftsim.spec.suggest import instead, shown
from vftsim.spec.units import number_and_unit, quantity_of


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
    number, unit = number_of(value) or (0.0, "")
    if not number > 0.0 or (isinstance(value, str) and not unit):
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
            known = list(value) if isinstance(value, dict) else list(map(str, range(len(value))))
            raise UsageError(f"{option} {key}: no '{part}' in '{where}'{instead(part, known, 'it has:')}") from None
        done.append(part)
    return value


def _index(holder: Any, key: str) -> Any:
    return int(key) if isinstance(holder, list) else key


def number_of(value: Any) -> tuple[float, str] | None:
    """Return a value's number and unit; None for what is neither a number nor a text of one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return number_and_unit(value) if isinstance(value, str) else (float(value), "")
