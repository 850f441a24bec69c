"""Free parameters held against the models that a fit sets them in: their units, and what the models can have."""

from collections.abc import Mapping
from typing import Any

from vftsim.calibrate.definition import CalibrationSpec, FreeParameter
from vftsim.calibrate.drawn import accepted
from vftsim.composition.keys import base_unit, read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import format_duration
from vftsim.spec.suggest import shown
from vftsim.spec.units import quantity_of
from vftsim.spec.yaml_source import Node


def units_of(definition: CalibrationSpec, tree: Node, specs: ModelSpec | Mapping[str, ModelSpec]) -> dict[str, str]:
    """Return the unit of each parameter's numbers, by path, empty for plain ones; the tree is the definition's.

    Refuses a parameter that no run has, that is no number of the model, or whose bounds the model cannot have.
    """
    units, nodes = {}, tree.at("parameters").value
    assert isinstance(nodes, list)
    for parameter, node in zip(definition.parameters, nodes, strict=True):
        spec = specs if isinstance(specs, ModelSpec) else _model_with(parameter, node, specs)
        _check(parameter, node, spec)
        units[parameter.path] = base_unit(spec, parameter.path)
    return units


def in_unit(value: float, unit: str) -> str:
    """Return a parameter's number as text; a time in the unit that fits."""
    return format_duration(value) if unit == "ns" else f"{value:.4g} {unit}".rstrip()


def _model_with(parameter: FreeParameter, node: Node, specs: Mapping[str, ModelSpec]) -> ModelSpec:
    """Return the model of a run in which a parameter is set; refuse one that is set in no run."""
    for run, spec in specs.items():
        if not parameter.environments or run.partition("/")[0] in parameter.environments:
            return spec
    raise node.error(f"no run in sample has {parameter.path}", "environments")


def _number_at(spec: ModelSpec, key: str, node: Node, place: str) -> Any:
    """Return what the model has at a key, which a parameter names at a place; refuse one that the model lacks."""
    try:
        return read(spec, key)
    except UsageError as error:
        raise node.error(str(error), place) from None


def _check(parameter: FreeParameter, node: Node, spec: ModelSpec) -> None:
    """Refuse what is no number of the model, a 0 among those that scale together, and bounds that it cannot have."""
    path, in_model = parameter.path, _number_at(spec, parameter.path, node, "path")
    if isinstance(in_model, bool) or not isinstance(in_model, int | float | None):
        raise node.error(f"{path} is {shown(in_model)} in the model, and no number", "path")
    scales = {key: _number_at(spec, key, node, "scales") for key in parameter.scales}
    together = {path: in_model, **scales} if scales else {}
    for key, value in together.items():
        if not isinstance(value, int | float) or not value:
            raise node.error(f"{key} is {value or 0} in the model, of which there are no multiples", "scales")
    quantity = quantity_of(base_unit(spec, path))
    numbers = {"low": parameter.bounds[0], "high": parameter.bounds[1], "start": parameter.first}
    for key, number in numbers.items():
        unit = parameter.unit(key)
        if in_model is not None and number and unit != quantity and (unit or (quantity and quantity.whole)):
            needs = f"a {quantity.name} such as '{quantity.example}'" if quantity else "a plain number"
            raise node.error(f"{path} is {needs}, not {shown(getattr(parameter, key))}", key)
        scaled = {other: value * number / in_model for other, value in together.items() if in_model}
        if why := accepted(with_values(spec, {path: number} | scaled)):
            raise node.error(f"the model cannot have {shown(getattr(parameter, key))}: {why}", key)
