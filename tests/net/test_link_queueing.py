"""The link under Poisson traffic of equal frames is an M/D/1 queue; messages over TCP wait for it without loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from network import Network

from tests.composition.composed import checked
from tests.stats.theory import md1
from vftsim.composition.run import run_model
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


def _asked(queue: int, answer: int, measure: dict[str, Any], **loads: dict[str, Any]) -> Any:
    program = {"kind": "service", "threads": 20, "demand": 1000, "answer_size": answer}
    data = {
        "networks": {"lan": {"queue": queue}},
        "domains": {
            "guest": {"interfaces": {"eth0": {"path": {"kind": "native"}}}, "applications": {"server": program}}
        },
        "workloads": {
            name: {"kind": "request_response", "to": "guest", "spread": 0, **load} for name, load in loads.items()
        },
        "measure": measure,
    }
    return run_model(checked(data), 1, 0, "compiled")


def test_messages_over_tcp_share_a_line_without_loss() -> None:
    """20 clients who think for 5 ms fill a gigabit with answers of 100 kB, of which its queue takes two: 1,250 /s.

    A round is 20 / 1,250 s (Little), less the thinking.  When they were dropped 789 came, some after 200 ms.
    """
    load = {"clients": 20, "turn_around": "5 ms", "turn_around_cv": 1}
    record = _asked(262_144, 100_000, {"warm_up": "1 s", "duration": "4 s"}, load=load)
    found: Any = record.whole.outcomes["workloads.load"]
    assert not any(record.drops.values())
    assert found.answered / 5 == pytest.approx(1250, rel=2e-3)
    assert found.latency.mean == pytest.approx(11_000_000, rel=0.02)


def test_every_connection_may_wait_for_a_line() -> None:
    """1,100 requests at once and a queue of one frame: one on the wire, and the others wait in their connections."""
    load = {"clients": 550, "turn_around": 0, "request_size": 1538}
    record = _asked(1538, 64, {"warm_up": 0, "duration": "100 ms"}, some=load, others=load)
    assert not [place for place, _ in record.drops if place.startswith("link")]
