"""How many rows of a table are taken and not given back, in either engine."""

from typing import Any

from vftsim.kernel import Engine, Table
from vftsim.kernel.compiled_engine import CompiledEngine


def rows_in_use(engine: Engine, table: Table[Any]) -> int:
    return engine.used(table) - len(free_rows(engine, table))


def free_rows(engine: Engine, table: Table[Any]) -> set[int]:
    """Rows that were taken and given back: each is linked to the one that was given back before it."""
    if isinstance(engine, CompiledEngine):
        links = engine._layout.arrays[f"{table.name}_after"]
        after: Any = engine._bytes[links.offset : links.end].view(links.dtype)
    else:
        after = getattr(engine.sim, f"{table.name}_after")
    free, row = set[int](), int(getattr(engine.sim, f"{table.name}_unused"))
    while row:
        free.add(row)
        row = int(after[row])
    return free
