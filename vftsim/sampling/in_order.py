"""Draws of one entity in order, some at a time: a source of a feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vftsim.sampling.streams import Streams


class Draws:
    """Draws of one entity in order; each depends on the stream and its number alone, not on how many come at a time.

    Parameters
    ----------
    streams : Streams
        The streams of the replication.
    name, entity : str, int
        What they decide, and for whom.
    transform : callable
        Turns an array of uniforms into one of draws, element by element.
    first : int
        Number of the first one.
    """

    def __init__(
        self,
        streams: Streams,
        name: str,
        entity: int,
        transform: Callable[[NDArray[np.float64]], NDArray[Any]],
        *,
        first: int = 0,
    ) -> None:
        self._streams = streams
        self._key = (name, entity)
        self._transform = transform
        self._next = first

    def __call__(self, count: int) -> NDArray[Any]:
        """Return the next draws."""
        uniforms = self._streams.uniforms(*self._key, start=self._next, count=count)
        self._next += count
        return self._transform(uniforms)
