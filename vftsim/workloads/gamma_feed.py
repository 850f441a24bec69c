"""Feeds of gamma durations: the uniforms depend on what is drawn and for whom, never on mean or spread."""

from __future__ import annotations

from vftsim.kernel import Sim, part
from vftsim.kernel.inputs import Feeder, draw
from vftsim.sampling import Streams, gamma_ns

AT_ONCE = 256


class GammaDraws:
    """Durations in order, of one entity.

    Parameters
    ----------
    name, entity : str, int
        What they decide, and for whom.
    mean_ns, cv : float
        Mean and coefficient of variation; 0: always the mean, 1: exponential.
    """

    def __init__(self, streams: Streams, name: str, entity: int, mean_ns: float, cv: float) -> None:
        self._streams = streams
        self._key = (name, entity)
        self._distribution = (mean_ns, cv)
        self._next = 0

    def __call__(self, count: int) -> list[int]:
        """Return the next durations."""
        uniforms = self._streams.uniforms(*self._key, start=self._next, count=count)
        self._next += count
        values: list[int] = gamma_ns(uniforms, *self._distribution).tolist()
        return values


def gamma_feed(feeder: Feeder, streams: Streams, name: str, entity: int, mean_ns: int, cv: float) -> int:
    """Return a feed of durations; 0, which :func:`duration_ns` takes for the mean, if they do not vary."""
    if cv == 0.0 or mean_ns == 0:
        return 0
    return feeder.add(GammaDraws(streams, name, entity, float(mean_ns), cv), AT_ONCE)


@part
def duration_ns(sim: Sim, feed: int, mean_ns: int) -> int:
    """Return the next duration of a feed, or the mean where there is none."""
    if feed == 0:
        return mean_ns
    return draw(sim, feed)
