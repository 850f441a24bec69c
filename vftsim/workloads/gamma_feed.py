"""Feeds of gamma durations: the uniforms depend on what is drawn and for whom, never on mean or spread."""

from __future__ import annotations

from functools import partial

from vftsim.kernel import Sim, part
from vftsim.kernel.inputs import Feeder, draw
from vftsim.sampling import Draws, Streams, gamma_ns

AT_ONCE = 256


def gamma_feed(feeder: Feeder, streams: Streams, name: str, entity: int, mean_ns: int, cv: float) -> int:
    """Return a feed of durations; 0, which :func:`duration_ns` takes for the mean, if they do not vary."""
    if cv == 0.0 or mean_ns == 0:
        return 0
    return feeder.add(Draws(streams, name, entity, partial(gamma_ns, mean_ns=float(mean_ns), cv=cv)), AT_ONCE)


@part
def duration_ns(sim: Sim, feed: int, mean_ns: int) -> int:
    """Return the next duration of a feed, or the mean where there is none."""
    if feed == 0:
        return mean_ns
    return draw(sim, feed)
