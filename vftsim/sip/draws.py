"""Everything random of a benchmark run, drawn with numpy ahead of its use.

Streams are keyed by phase number and chunk, never by load, environment or what the server does: two
configurations see the same attempts with the same demands, only faster or slower one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vftsim.sampling import Streams, categorical, exponential_ns, gamma_ns, unit_exponential
from vftsim.sip.messages import DEMANDS_PER_ATTEMPT

CHUNK = 2048
_UNIT_NS = 1 << 30


@dataclass(slots=True, frozen=True)
class AttemptDraw:
    """One attempt's randomness: ``gap`` to the attempt before in mean gaps, the rest as used."""

    gap: float
    scenario: int
    ring_ns: int
    hold_ns: int
    demands: list[float]
    user: float
    destination: float


def draw_attempts(
    streams: Streams,
    phase: int,
    shares: list[float],
    ring_ns: int,
    hold_ns: int,
    demand_cv: float,
) -> Iterator[AttemptDraw]:
    """Yield the attempts of a phase without end, drawn in chunks.

    Parameters
    ----------
    streams : Streams
    phase : int
        0 pre-registration, 1 stir, 2 ... the steps.
    shares : list of float
        Percent of each scenario.
    ring_ns, hold_ns : int
        Means of the exponential ringing and holding times.
    demand_cv : float
        Coefficient of variation of the relative demands (mean 1).
    """
    probabilities = [share / 100.0 for share in shares]
    chunk = 0
    while True:
        entity = (phase << 32) | chunk
        u = streams.uniforms("ims_bench.attempt", entity, count=CHUNK * 6).reshape(6, CHUNK)
        d = streams.uniforms("ims_bench.demand", entity, count=CHUNK * DEMANDS_PER_ATTEMPT)
        demands = (gamma_ns(d, _UNIT_NS, demand_cv) / _UNIT_NS).reshape(CHUNK, DEMANDS_PER_ATTEMPT)
        yield from map(
            AttemptDraw,
            unit_exponential(u[0]).tolist(),
            categorical(u[1], probabilities).tolist(),
            np.maximum(exponential_ns(u[2], ring_ns), 1).tolist(),
            np.maximum(exponential_ns(u[3], hold_ns), 1).tolist(),
            demands.tolist(),
            u[4].tolist(),
            u[5].tolist(),
        )
        chunk += 1
