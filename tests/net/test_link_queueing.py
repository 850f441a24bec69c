"""The link under Poisson traffic of equal frames is an M/D/1 queue."""

from __future__ import annotations

import math

import numpy as np
import pytest
from network import Network

from tests.stats.theory import md1
from vftsim.kernel import EventKind
from vftsim.sampling import Streams, poisson_gaps_ns

_FRAME_BYTES = 1250
_SERVICE_NS = 10_000
_REPLICATIONS = 20
_FRAMES = 4_500
_WARM_UP = 500


def _mean_wait_ns(load: float, replication: int) -> float:
    network = Network()
    network.wire(1_000_000_000, 0, 1 << 30)
    uniforms = Streams(20, replication).uniforms("frames", count=_FRAMES)
    sent = np.cumsum(poisson_gaps_ns(uniforms, load / (_SERVICE_NS / 1e9))).tolist()
    for number, time_ns in enumerate(sent):
        network.at(time_ns, EventKind.ARRIVAL, number, lambda n=number: network.send(_FRAME_BYTES, n))  # type: ignore[misc]
    network.engine.run()
    waits = [arrived_ns - sent[number] - _SERVICE_NS for arrived_ns, number in network.log]
    return float(np.mean(waits[_WARM_UP:]))


@pytest.mark.thorough
@pytest.mark.parametrize("load", [pytest.param(0.3, marks=pytest.mark.slow), 0.6])
def test_mean_wait_is_that_of_m_d_1(load: float) -> None:
    """20 replications of 4,000 frames: within 3.5 standard errors of rho S / (2 (1 - rho))."""
    means = [_mean_wait_ns(load, replication) for replication in range(_REPLICATIONS)]
    theory_ns = 1e9 * md1(load / (_SERVICE_NS / 1e9), _SERVICE_NS / 1e9).wait
    standard_error = float(np.std(means, ddof=1)) / math.sqrt(_REPLICATIONS)
    assert standard_error < 0.02 * theory_ns
    assert abs(float(np.mean(means)) - theory_ns) <= 3.5 * standard_error
