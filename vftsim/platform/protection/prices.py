"""Prices of mechanisms: what of their parameters nobody knows exactly, by what it is known, and between which values.

A price is declared where the parameter is, as a word of its type:

.. code-block:: python

    page: Annotated[DurationNs, assumed(500, 8_000)] = Field(2_000, description="Copying a page to the buffer.")

A value that a model gives is that model's own and has no range.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vftsim.spec.base import Spec

Basis = Literal["assumed", "published", "measured"]


@dataclass(frozen=True)
class Price:
    """What is known of a parameter, beside its value."""

    basis: Basis
    """Assumed, published by a source, or measured."""
    low: float
    high: float
    """Between which values it lies, in the parameter's base unit; a higher value costs the guest more."""
    source: str = ""
    """Who published or measured it."""


def assumed(low: float, high: float) -> Price:
    """Nobody has said it: an order of magnitude."""
    return Price("assumed", low, high)


def published(low: float, high: float, source: str) -> Price:
    """A source says it, or within which bounds it lies."""
    return Price("published", low, high, source)


@dataclass(frozen=True)
class Priced:
    """A parameter that is a price, by its key (dotted where nested: ``pause.page``), and the value in use."""

    key: str
    price: Price
    value: float

    @property
    def is_of_failure(self) -> bool:
        """Whether it counts only when something fails: nothing else needs to be run for it."""
        return self.key.partition(".")[0] in _OF_FAILURE


_OF_FAILURE = {"failover", "reprotection", "restore"}


def prices_of(spec: Spec, within: str = "") -> Iterator[Priced]:
    """Yield the prices that a mechanism has at their defaults: those that a model gives are its own."""
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if isinstance(value, Spec):
            yield from prices_of(value, f"{within}{name}.")
        price = next((noted for noted in field.metadata if isinstance(noted, Price)), None)
        if price is not None and name not in spec.model_fields_set:
            yield Priced(f"{within}{name}", price, float(value))


def at_prices(spec: Any, values: Mapping[str, float]) -> Any:
    """Return a mechanism with other values of prices, by their keys."""
    nested: dict[str, dict[str, float]] = {}
    updates: dict[str, Any] = {}
    for key, value in values.items():
        name, _, rest = key.partition(".")
        if rest:
            nested.setdefault(name, {})[rest] = value
        else:
            updates[name] = round(value) if isinstance(getattr(spec, name), int) else value
    updates |= {name: at_prices(getattr(spec, name), each) for name, each in nested.items()}
    return spec.model_copy(update=updates)
