"""Everything random of a benchmark run, drawn with numpy ahead of its use.

Streams are keyed by phase number and chunk, never by load, environment or what the server does: two
configurations see the same attempts with the same demands, only faster or slower one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel import Engine, Record, Table
from vftsim.kernel.columns import write_columns
from vftsim.sampling import Streams, categorical, gamma_ns, unit_exponential
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT

CHUNK = 2048
MOST_DRAWS = 2 * CHUNK
_UNIT_NS = 1 << 30


class AttemptDraw(Record):
    """One attempt's randomness: ``gap`` to the attempt before in mean gaps, the rest as used."""

    gap: float
    scenario: int
    ring_ns: int
    hold_ns: int
    demands: Annotated[list[float], DEMANDS_PER_ATTEMPT]
    user: float
    destination: float


attempt_draws = Table("attempt_draws", AttemptDraw, MOST_DRAWS, is_fixed=True)
"""The coming attempts in turn, draw ``n`` in row ``n`` modulo :data:`MOST_DRAWS`; no row stands for nobody."""


@dataclass(frozen=True, slots=True)
class PhaseDraws:
    """The attempts of one phase, without end.

    Parameters
    ----------
    phase : int
        0 pre-registration, 1 stir, 2 ... the steps.
    shares : list of float
        Percent of each scenario.
    ring_ns, hold_ns : int
        Means of ringing and holding times; 0: none.
    demand_cv, time_cv : float
        Coefficients of variation of the relative demands (mean 1), and of ringing and holding times.
    """

    streams: Streams
    phase: int
    shares: Sequence[float]
    ring_ns: int
    hold_ns: int
    demand_cv: float
    time_cv: float = 1.0

    def chunk(self, number: int) -> dict[str, NDArray[Any]]:
        """Return :data:`CHUNK` attempts by field of :class:`AttemptDraw`."""
        entity = (self.phase << 32) | number
        u = self.streams.uniforms("ims_bench.attempt", entity, count=CHUNK * 6).reshape(6, CHUNK)
        d = self.streams.uniforms("ims_bench.demand", entity, count=CHUNK * DEMANDS_PER_ATTEMPT)
        return {
            "gap": unit_exponential(u[0]),
            "scenario": categorical(u[1], [share / 100.0 for share in self.shares]),
            "ring_ns": self._times(u[2], self.ring_ns),
            "hold_ns": self._times(u[3], self.hold_ns),
            "demands": (gamma_ns(d, _UNIT_NS, self.demand_cv) / _UNIT_NS).reshape(CHUNK, DEMANDS_PER_ATTEMPT),
            "user": u[4],
            "destination": u[5],
        }

    def _times(self, uniforms: NDArray[Any], mean_ns: int) -> NDArray[Any]:
        """Return durations of a call, at least 1 ns."""
        times = gamma_ns(uniforms, mean_ns, self.time_cv) if mean_ns else np.zeros(len(uniforms), np.int64)
        return np.maximum(times, 1)


def write_chunk(engine: Engine, number: int, chunk: dict[str, NDArray[Any]]) -> None:
    """Write a chunk's draws into its rows."""
    write_columns(engine, attempt_draws, chunk, number * CHUNK % MOST_DRAWS)
