"""Libraries that only some studies need: imported when they are, with a clear word where they are missing."""

import importlib
from typing import Any

from vftsim.errors import UsageError


def extra(module: str, name: str, need: str) -> Any:
    """Return a module of the library that an extra has and ``need`` needs; refuse where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise UsageError(f"{need} needs {library}: pip install 'vftsim[{name}]'") from None
