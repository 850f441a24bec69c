"""Calibration and validation against measured data.

Called, the package is the function ``vftsim.calibrate``, whose name it takes in ``vftsim`` once it is imported.
"""

import sys
from types import ModuleType
from typing import Any

import vftsim

_function = vftsim.calibrate


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _function(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
