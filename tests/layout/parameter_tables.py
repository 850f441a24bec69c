"""Parameter tables of the pages under docs, made from the specs.

``python tests/layout/parameter_tables.py`` rewrites them.
A page says ``<!-- parameters: vftsim.workloads.ims_bench.parameters.StirSpec -->`` where it wants the table of a spec.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from vftsim.platform.protection.prices import Price
from vftsim.platform.protection.when import WhenText
from vftsim.spec import OneOf, Quantity, Spec

DOCS = Path(__file__).parents[2] / "docs"
_TABLE = re.compile(r"<!-- parameters: (?P<spec>[\w.]+) -->\n(?:\|[^\n]*\n)*")
_HEAD = "| parameter | quantity | default | meaning and source |\n|---|---|---|---|\n"
_NOTHING = "| | | | no parameters |\n"


def pages() -> list[Path]:
    """Return the pages that have such a table."""
    return [page for page in sorted(DOCS.rglob("*.md")) if _TABLE.search(page.read_text(encoding="utf-8"))]


def shown() -> set[str]:
    """Return the full names of all specs that have a table somewhere."""
    return {found["spec"] for page in pages() for found in _TABLE.finditer(page.read_text(encoding="utf-8"))}


def _metadata(annotation: Any) -> Iterator[Any]:
    """Yield what annotations say of a type, also inside of ``X | None``."""
    yield from getattr(annotation, "__metadata__", ())
    if get_origin(annotation) in (Union, UnionType):
        for option in get_args(annotation):
            yield from _metadata(option)


def _options(annotation: Any) -> list[Any]:
    is_union = get_origin(annotation) in (Union, UnionType)
    return [a for a in get_args(annotation) if a is not NoneType] if is_union else [annotation]


def _kind(annotation: Any, message: list[Any]) -> str:
    quantity = next((item for item in message if isinstance(item, Quantity)), None)
    if quantity is not None:
        return quantity.name
    if any(isinstance(item, WhenText) for item in message):
        return "instant"
    return (
        "part by `kind`" if any(isinstance(item, OneOf) for item in message) else _plain_kind(_options(annotation)[0])
    )


def _plain_kind(option: Any) -> str:
    if get_origin(option) is Annotated:
        return _plain_kind(get_args(option)[0])
    if get_origin(option) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(option))
    if get_origin(option) is dict:
        return "mapping by name"
    if get_origin(option) is tuple or "Items" in str(option):
        return "list"
    is_spec = isinstance(option, type) and issubclass(option, Spec)
    return "mapping" if is_spec else getattr(option, "__name__", "")


def _default(field: Any, message: list[Any]) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    quantity = next((item for item in message if isinstance(item, Quantity)), None)
    if isinstance(value, Spec):
        return f"`{value.kind}`" if hasattr(value, "kind") else "its defaults"  # type: ignore[attr-defined]
    if isinstance(value, dict) and value:
        return ", ".join(f"`{name}`" for name in value)
    if value in ({}, (), None, ""):
        return "none"
    if quantity is not None:
        return str(quantity.format(value))
    return f"`{value}`" if isinstance(value, str) else str(value)


def _row(name: str, field: Any) -> str:
    notes = [*field.metadata, *_metadata(field.annotation)]
    default = f"{_default(field, notes)}{_range(notes)}"
    return f"| `{name}` | {_kind(field.annotation, notes)} | {default} | {field.description or ''} |\n"


def _range(message: list[Any]) -> str:
    """Between which values a price lies."""
    price = next((item for item in message if isinstance(item, Price)), None)
    if price is None:
        return ""
    quantity = next((item for item in message if isinstance(item, Quantity)), None)
    low, high = (f"{end:g}" if quantity is None else quantity.format(end) for end in (price.low, price.high))
    return f" ({price.basis}: {low} to {high})"


def _has_own_table(field: Any) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Spec) and not _is_part(field)


def _is_part(field: Any) -> bool:
    return any(isinstance(item, OneOf) for item in field.metadata)


def table(spec: type[Spec]) -> str:
    """One row for each plain parameter of a spec; mappings with a table of their own are left out."""
    rows = [
        _row(name, field)
        for name, field in spec.model_fields.items()
        if name not in ("kind", "format") and not _has_own_table(field)
    ]
    return _HEAD + ("".join(rows) or _NOTHING)


def rendered(text: str) -> str:
    """A page with its tables made anew."""

    def fill(found: re.Match[str]) -> str:
        module, _, name = found["spec"].rpartition(".")
        return f"<!-- parameters: {found['spec']} -->\n" + table(getattr(importlib.import_module(module), name))

    return _TABLE.sub(fill, text)


if __name__ == "__main__":
    for page in pages():
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
