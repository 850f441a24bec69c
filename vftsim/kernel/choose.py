"""Choosing an engine: ``compiled`` where LLVM works, else ``simpy``, which gives the same results.

Results do not depend on the engine, so the choice is none of a model or a study: it is the process's, made with the
environment variable ``VFTSIM_ENGINE``, which worker processes inherit and the option ``--engine`` sets.

``bounds-checked`` and ``checked`` are builds of the two that find what a part does wrong (docs/engines.md).
"""

import os
import warnings
from collections.abc import Callable
from typing import Literal, get_args

from vftsim.errors import UsageError
from vftsim.kernel.engine import Engine
from vftsim.kernel.link import Linked

EngineName = Literal["auto", "compiled", "simpy", "bounds-checked", "checked"]
ENGINE_NAMES: tuple[str, ...] = get_args(EngineName)
VARIABLE = "VFTSIM_ENGINE"


class EngineWarning(UserWarning):
    """The compiled engine cannot be used here; the run goes on in the other, more slowly."""


def make_engine(
    linked: Linked | Callable[[], Linked],
    name: str = "auto",
    on_input: Callable[[], None] | None = None,
    prepared: Callable[[], Linked] | None = None,
) -> Engine:
    """Return an engine for one replication of a kernel; ``auto`` is what ``VFTSIM_ENGINE`` says, else ``compiled``.

    Parameters
    ----------
    on_input : callable, optional
        See :class:`~vftsim.kernel.engine.Engine`.
    prepared : callable, optional
        Returns what the compiled engine runs instead, a kernel with at least the same parts.

    Raises
    ------
    UsageError
        If there is no engine of that name, or no LLVM for the one that needs it.
    """
    if name == "auto":
        name = os.environ.get(VARIABLE) or name
    if name not in ENGINE_NAMES:
        raise UsageError(f"there is no engine '{name}'; engines are {', '.join(ENGINE_NAMES)}")
    if name == "simpy":
        return _simpy_engine(_linked(linked), on_input)
    if name in ("bounds-checked", "checked"):
        return _checking_engine(name, _linked(linked), on_input)
    try:
        from vftsim.kernel.compiled_engine import CompiledEngine

        return CompiledEngine(prepared() if prepared is not None else _linked(linked), on_input)
    except Exception as error:  # whatever LLVM or the disk has, the other engine can do the run
        cannot = f"the compiled engine cannot be used ({error})"
        if name == "compiled" and isinstance(error, ImportError):
            raise UsageError(f"{cannot}; 'simpy' gives the same results") from None
        if name == "compiled":
            raise
        warnings.warn(f"{cannot}; going on with simpy", EngineWarning, stacklevel=2)
        return _simpy_engine(_linked(linked), on_input)


def _linked(linked: Linked | Callable[[], Linked]) -> Linked:
    return linked if isinstance(linked, Linked) else linked()


def _simpy_engine(linked: Linked, on_input: Callable[[], None] | None) -> Engine:
    from vftsim.kernel.simpy_engine import SimpyEngine  # most runs never need SimPy

    return SimpyEngine(linked, on_input)


def _checking_engine(name: str, linked: Linked, on_input: Callable[[], None] | None) -> Engine:
    if name == "checked":
        from vftsim.kernel.checked_engine import CheckedEngine

        return CheckedEngine(linked, on_input)
    from vftsim.kernel.compiled_engine import BoundsCheckedEngine

    return BoundsCheckedEngine(linked, on_input)
