"""Spoiling a mechanism in the engine for reading, for tests of what judges it."""

from collections.abc import Callable
from typing import Any

from vftsim.kernel import Engine
from vftsim.kernel.declare import part_of


def replaced(old: Any, make: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Engine], None]:
    """Put what ``make`` makes of a part, given it and all parts by name, in its place."""

    def spoil(engine: Engine) -> None:
        namespace = engine._namespace  # type: ignore[attr-defined]
        namespace[part_of(old).name] = make(namespace[part_of(old).name], namespace)

    return spoil
