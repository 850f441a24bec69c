"""Feeds of choices: uniform levels, of which a share lies below its part of :data:`LEVELS`."""

from __future__ import annotations

from functools import partial

from vftsim.kernel.inputs import Feeder
from vftsim.sampling import Draws, Streams, uniform_ns

LEVELS = 1 << 30
_levels = partial(uniform_ns, low_ns=0, high_ns=LEVELS - 1)


def choice_feed(
    feeder: Feeder, streams: Streams, name: str, entity: int, percent: float, *, is_drawn: bool = False
) -> tuple[int, int]:
    """Return of how many levels a choice is true, and the feed of its levels.

    The feed is 0 where nothing is left to choose, unless it ``is_drawn`` all the same.
    """
    if percent == 0.0 or (percent == 100.0 and not is_drawn):
        return (LEVELS if percent else 0), 0
    return round(percent / 100.0 * LEVELS), feeder.add(Draws(streams, name, entity, _levels), 256)
