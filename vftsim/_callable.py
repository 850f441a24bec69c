"""Packages that are called as a function whose name they take in ``vftsim`` once they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def as_function(name: str, function: Callable[..., Any]) -> None:
    """Let a call of an imported package be one of a function."""

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

    sys.modules[name].__class__ = CallablePackage
