"""``vftsim warmup``: have the engine, and what models with parts from outside need, before it is needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from vftsim.cli import options

if TYPE_CHECKING:
    from vftsim.kernel import Linked


def warmup(models: list[str] | None = None, set_: list[str] | None = None, quiet: bool = False) -> None:
    """Build the engine if it is not there, and compile what these models need besides; nothing to do as a rule.

    Parameters
    ----------
    models : [MODEL]...
        Models with parts from elsewhere (default: none).
    """
    from vftsim.composition.one_kernel import prepared_for, the_kernel
    from vftsim.kernel.choose import make_engine
    from vftsim.report.screen import print_text

    kernels: dict[str, Callable[[], Linked]] = {"the engine": the_kernel}
    for name in models or ():
        model = options.prepared(name, set_)
        kernels[model.name] = partial(prepared_for, model.spec)
    for name, find in kernels.items():
        begun_s = time.monotonic()
        make_engine(find, "compiled")
        if not quiet:
            print_text(f"{name}: ready after {time.monotonic() - begun_s:.1f} s")
