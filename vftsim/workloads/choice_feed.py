"""Feeds of choices: uniform levels, of which a share lies below its part of :data:`LEVELS`."""

from __future__ import annotations

from vftsim.kernel.inputs import Feeder
from vftsim.sampling import Streams, uniform_ns

LEVELS = 1 << 30


class _Levels:
    def __init__(self, streams: Streams, name: str, entity: int) -> None:
        self._streams, self._key, self._next = streams, (name, entity), 0

    def __call__(self, count: int) -> list[int]:
        uniforms = self._streams.uniforms(*self._key, start=self._next, count=count)
        self._next += count
        levels: list[int] = uniform_ns(uniforms, 0, LEVELS - 1).tolist()
        return levels


def choice_feed(
    feeder: Feeder, streams: Streams, name: str, entity: int, percent: float, *, is_drawn: bool = False
) -> tuple[int, int]:
    """Return of how many levels a choice is true, and the feed of its levels.

    The feed is 0 where nothing is left to choose, unless it ``is_drawn`` all the same.
    """
    if percent == 0.0 or (percent == 100.0 and not is_drawn):
        return (LEVELS if percent else 0), 0
    return round(percent / 100.0 * LEVELS), feeder.add(_Levels(streams, name, entity), 256)
