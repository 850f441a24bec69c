"""Numbers of a checked model by dotted key: ``domains.sut.applications.proxy.touch_cost``."""

from collections.abc import Mapping
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import Spec
from vftsim.spec.suggest import did_you_mean
from vftsim.spec.units import number_and_unit, quantity_of


def read(spec: ModelSpec, path: str) -> Any:
    """Return what stands at a key; refuse one that the model lacks."""
    node: Any = spec
    for key in path.split("."):
        node = _below(node, key, path)
    return node


def with_values(spec: ModelSpec, values: Mapping[str, Any]) -> ModelSpec:
    """Return the model with numbers at keys replaced; a whole number stays one; refuse a key that it lacks."""
    for path, value in values.items():
        spec = _replaced(spec, path.split("."), value, path)
    return spec


def base_unit(spec: ModelSpec, path: str) -> str:
    """Return the unit in which the model holds the number at a key; empty for a plain number, or for none."""
    value: Any = spec.model_dump(mode="json")
    for key in path.split("."):
        value = value[key]
    written = number_and_unit(value) if isinstance(value, str) else None
    quantity = quantity_of(written[1]) if written else None
    return quantity.base_unit if quantity else ""


def _below(node: Any, key: str, path: str) -> Any:
    if isinstance(node, Mapping) and key in node:
        return node[key]
    if isinstance(node, Spec) and key in type(node).model_fields:
        return getattr(node, key)
    fields = node if isinstance(node, Mapping) else type(node).model_fields if isinstance(node, Spec) else ()
    raise UsageError(f"the model has no key '{path}'{did_you_mean(key, fields)}")


def _replaced(node: Any, keys: list[str], value: Any, path: str) -> Any:
    key = keys[0]
    old = _below(node, key, path)
    last = round(value) if isinstance(old, int) and len(keys) == 1 else value
    new = _replaced(old, keys[1:], value, path) if len(keys) > 1 else last
    if isinstance(node, Mapping):
        return {**node, key: new}
    return node.model_copy(update={key: new})
