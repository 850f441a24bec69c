"""Models, and what happens inside of one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.interface.arguments import as_model, checked, to_ns_if_given

if TYPE_CHECKING:
    from vftsim.study.runs.model import Model
    from vftsim.tracing.explain import Explanation
    from vftsim.tracing.trace import Trace


@checked
def load(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a file or shipped name, with overrides as after ``--set``."""
    from vftsim.study.runs.model import load_model

    return load_model(name_or_path, overrides)


def models() -> list[str]:
    """Return the names of the shipped models."""
    from vftsim.study.runs.model import shipped_models

    return list(shipped_models())


def schema() -> dict[str, Any]:
    """Return the JSON Schema of model files."""
    from vftsim.study.runs.model import models_schema

    return models_schema()


@checked
def trace(
    model: Model | str | Path,
    start_s: float | None = None,
    length_s: float | None = None,
    seed: int = 1,
    replication: int = 0,
    *,
    path: str | Path | None = None,
) -> Trace:
    """Return who ran where, and every packet's way, in a window of a run; with ``path``, write it for ui.perfetto.dev.

    Without begin or length the window is one in which something happens, as for ``vftsim trace``.

    Refuses a window that is not within the run, or above 10 s long.
    """
    from vftsim.tracing.chrome import write_chrome
    from vftsim.tracing.trace import window_traced

    traced = window_traced(as_model(model).spec, seed, replication, to_ns_if_given(start_s), to_ns_if_given(length_s))
    if path is not None:
        write_chrome(traced, Path(path))
    return traced


@checked
def explain(
    model: Model | str | Path,
    of: str = "packet",
    which: str | int = "worst",
    start_s: float | None = None,
    length_s: float | None = None,
    seed: int = 1,
    replication: int = 0,
) -> Explanation:
    """Return where the time of a packet, an exchange or a held output in a window of a run went.

    The window begins at ``start_s`` and is ``length_s`` long; without them, as for :func:`trace`.

    Parameters
    ----------
    which : --packet N|WORD
        worst, median or best delay, or the n-th delivered in the window from 0.
    of : --of packet|exchange|output
        A packet; an exchange: a call, a registration, a request, a transfer, from its first packet to the last one that
        its client got; or an output that protection held, longest first of all.

    Raises
    ------
    UsageError
        There is none in the window.
    """
    from vftsim.tracing.explain import explained

    return explained(trace(model, start_s, length_s, seed, replication), of, which)
