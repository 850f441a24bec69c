"""Parameter tables of the pages under docs/sip, made from the specs.

``python tests/layout/parameter_tables.py`` rewrites them.
A page says ``<!-- parameters: vftsim.workloads.ims_bench.parameters.StirSpec -->`` where it wants the table of a spec.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, get_args

from vftsim.spec import Quantity, Spec

PAGES = Path(__file__).parents[2] / "docs" / "sip"
_TABLE = re.compile(r"<!-- parameters: (?P<spec>[\w.]+) -->\n(?:\|[^\n]*\n)*")


def _row(name: str, field: Any) -> str:
    quantity = next((item for item in field.metadata if isinstance(item, Quantity)), None)
    plain = float if float in get_args(field.annotation) else field.annotation
    kind = quantity.name if quantity else getattr(plain, "__name__", "")
    if field.default_factory is not None:
        default = "see below"
    elif field.is_required():
        default = "required"
    elif quantity is not None:
        default = str(quantity.format(field.default))
    else:
        unset = "none" if plain is float else "all"
        default = unset if field.default is None else str(field.default)
    return f"| `{name}` | {kind} | {default} | {field.description} |\n"


def table(spec: type[Spec]) -> str:
    """One row for each plain parameter of a spec; parts with a table of their own are left out."""
    rows = [
        _row(name, field)
        for name, field in spec.model_fields.items()
        if name != "kind" and not (isinstance(field.annotation, type) and issubclass(field.annotation, Spec))
    ]
    return "| parameter | quantity | default | meaning and source |\n|---|---|---|---|\n" + "".join(rows)


def rendered(text: str) -> str:
    """A page with its tables made anew."""

    def fill(found: re.Match[str]) -> str:
        module, _, name = found["spec"].rpartition(".")
        return f"<!-- parameters: {found['spec']} -->\n" + table(getattr(importlib.import_module(module), name))

    return _TABLE.sub(fill, text)


if __name__ == "__main__":
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
