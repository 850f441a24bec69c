"""The SIP lab under every mechanism: it serves, fails over, and the parts of an outage make the whole."""

from itertools import pairwise

import pytest

from vftsim.platform.protection import passes

from .test_faults import S, crash, lab

COPY = {"delay": "1 s", "memory": "100 MB"}
NOT_ROLLED_BACK = ("coarse_lockstep", "hypervisor_epoch")
"""Their backup goes on from where it is."""
LOAD = {"steps": {"initial": 20.0, "increment": 5.0, "duration": 12 * S, "transient": 1 * S, "most": 1}}
MECHANISMS = {
    "checkpoint": {"kind": "checkpoint", "interval": "25 ms", "reprotection": COPY},
    "coarse_lockstep": {"kind": "coarse_lockstep", "reprotection": COPY},
    "event_sync": {"kind": "event_sync", "reprotection": COPY},
    "hypervisor_epoch": {"kind": "hypervisor_epoch", "reprotection": COPY},
    "micro_checkpoint": {"kind": "micro_checkpoint", "shipped": True, "reprotection": COPY},
}


def play(protection, *faults):
    return passes.play(lambda: lab(protection, *faults, load=LOAD), lambda run: run.engine, lambda run: run.run())


@pytest.mark.slow
@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_crash_of_the_primary_fails_over(kind):
    plain = play(MECHANISMS[kind])
    assert plain.cuts == ()
    assert plain.run.timeline == [(0, "protected")]
    crashed = play(MECHANISMS[kind], crash())
    moments = {what: time_ns for time_ns, what in crashed.run.timeline}
    order = ["primary crash", "failure declared", "state restored", "secondary live", "reachable", "protected"]
    assert sorted(order, key=lambda what: moments[what]) == order
    steps = [moments[b] - moments[a] for a, b in pairwise(order[:5])]
    assert sum(steps) == moments["reachable"] - moments["primary crash"]
    # Remus' timeout of 1 s, 5 ms, 100 ms and 10 ms; silence begins up to an epoch or a heartbeat before the crash.
    assert 0.95 * S < sum(steps) < 1.25 * S
    assert crashed.run.summary["failovers"] == 1
    assert len(crashed.cuts) == (0 if kind in NOT_ROLLED_BACK else 1)
