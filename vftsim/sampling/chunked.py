"""Endless sequences of draws in bounded memory.

A two-hour run uses millions of draws but only a few thousand at a time.  :class:`ChunkedDraws` gives
element *i* of an endless sequence; it draws a chunk at a time and keeps the last few chunks.  The
value of element *i* depends on the stream and on *i* alone: not on the order of access, not on the
chunk size, not on what was forgotten in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vftsim.sampling.streams import Streams

DrawT = TypeVar("DrawT", int, float)

CHUNK_SIZE = 4096


class ChunkedDraws(Generic[DrawT]):
    """Element *i* of an endless sequence of draws, as a Python number.

    Parameters
    ----------
    streams : Streams
        The streams of the replication.
    stream_name : str
        What the numbers decide.
    transform : callable
        Turns an array of uniforms into an array of draws, element by element, as the functions of
        ``vftsim.sampling`` do: ``lambda u: exponential_ns(u, 5_000_000)``.
    entity : int
        Whose numbers they are.
    chunk_size : int
        Draws made at once: a matter of speed, without effect on the values.
    kept_chunks : int
        Chunks held in memory; older ones are drawn again when asked for.
    """

    __slots__ = (
        "_chunks",
        "_current",
        "_current_index",
        "_entity",
        "_kept",
        "_name",
        "_size",
        "_streams",
        "_transform",
    )

    def __init__(
        self,
        streams: Streams,
        stream_name: str,
        transform: Callable[[NDArray[np.float64]], NDArray[Any]],
        *,
        entity: int = 0,
        chunk_size: int = CHUNK_SIZE,
        kept_chunks: int = 4,
    ) -> None:
        if chunk_size < 1 or kept_chunks < 1:
            raise ValueError(f"chunk size {chunk_size} and kept chunks {kept_chunks} must be at least 1")
        self._streams = streams
        self._name = stream_name
        self._transform = transform
        self._entity = entity
        self._size = chunk_size
        self._kept = kept_chunks
        self._chunks: dict[int, list[DrawT]] = {}
        self._current_index: int | None = None
        self._current: list[DrawT] = []

    def __getitem__(self, index: int) -> DrawT:
        chunk_index, offset = divmod(index, self._size)
        if chunk_index != self._current_index:
            self._current = self._chunk(chunk_index)
            self._current_index = chunk_index
        return self._current[offset]

    def __iter__(self) -> Iterator[DrawT]:
        """Walk through the sequence from its first element, without end."""
        return (self[index] for index in count())

    def _chunk(self, chunk_index: int) -> list[DrawT]:
        if chunk_index < 0:
            raise IndexError("a sequence of draws has no negative indices")
        chunk = self._chunks.pop(chunk_index, None)
        if chunk is None:
            chunk = self._draw(chunk_index)
        self._chunks[chunk_index] = chunk
        if len(self._chunks) > self._kept:
            del self._chunks[next(iter(self._chunks))]
        return chunk

    def _draw(self, chunk_index: int) -> list[DrawT]:
        uniforms = self._streams.uniforms(self._name, self._entity, start=chunk_index * self._size, count=self._size)
        return cast("list[DrawT]", self._transform(uniforms).tolist())
