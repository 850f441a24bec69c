"""What the functions have in common."""

# ruff: noqa: PLC0415 - importing the package imports nothing else; each function imports what it needs

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from vftsim.study.model import Model
    from vftsim.study.printed import Printed
    from vftsim.study.progress import Progress
    from vftsim.study.store import Store

    Answered = TypeVar("Answered", bound=Printed)


def as_model(model: Model | str | Path, *, quick: bool = False) -> Model:
    """Return a model, of a name or file the checked one; if ``quick`` shortened for a first look."""
    from vftsim.study.model import load_model

    found = load_model(model) if isinstance(model, (str, Path)) else model
    return found.quick() if quick else found


def answered(
    command: str,
    label: str,
    directory: str | Path | None,
    force: bool,
    progress: bool,
    study: Callable[[Store | None, Progress], Answered],
) -> Answered:
    """Return a study's answer; with a directory, its runs and itself are kept there."""
    from vftsim.study.kept import answer_in
    from vftsim.study.progress import make_progress

    folder = None if directory is None else Path(directory)
    with make_progress(label, not progress) as show:
        return answer_in(folder, command, force, lambda store: study(store, show))[0]
