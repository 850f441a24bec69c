"""The two failovers of the lab's FT run: failed attempts by scenario, simulated against measured.

Run as a script: ``python tests/protection/failover_record.py [replications]``.

Measured (steps of 900 s, vSphere client's test failover): 8 failed attempts at 15 SAPS (7 calls, 1
re-registration), 28 at 25 SAPS (17 calls, 3 re-registrations, 8 page messages); calls in progress had
delays of 10-100 ms.  One set of parameters serves both; only the timeout (of heartbeats and of the log
alike), of which the source says "a few seconds", is varied.  The crash comes at a random phase of the
heartbeats, as nobody knows it.
"""

import sys

import numpy as np

from vftsim.sip.lab import SipLab
from vftsim.sip.messages import Scenario
from vftsim.sip.system import SipLabSpec

MEASURED = {15: (1, 0, 7, 0, 0), 25: (3, 0, 17, 0, 8)}
S = 1_000_000_000
# CPU work per message that gives the measured 26.7 % at 15 and 44.1 % at 25 SAPS.
TOUCH_NS, REGISTER_TOUCH_NS = 2_250_000, 800_000


def failover_spec(saps: int, timeout_ns: int, phase: float) -> SipLabSpec:
    """One step at ``saps`` with a crash when calls of all ages are in progress."""
    return SipLabSpec(
        name="failover",
        domains={"sut": {}},
        server={"touch_cost": TOUCH_NS, "register_touch_cost": REGISTER_TOUCH_NS},
        protection={
            "kind": "lockstep",
            "failover": {"log_timeout": timeout_ns, "heartbeat_timeout": timeout_ns},
            "reprotection": None,
        },
        faults=[{"kind": "primary_crash", "at": f"step 1 + {round((110 + phase) * S)} ns"}],
        workload={
            "pre_registration": {"duration": 0},
            "stir": {"duration": 0},
            "steps": {"initial": float(saps), "duration": 150 * S, "transient": 1 * S, "most": 1},
        },
    )


def failed_attempts(saps: int, timeout_ns: int, replications: int, seed: int = 20100422) -> np.ndarray:
    """Failed attempts by scenario, one row a replication."""
    phases = np.random.Generator(np.random.PCG64(seed)).random(replications)
    return np.array(
        [
            SipLab(failover_spec(saps, timeout_ns, float(phase)), seed, number).run()[0].inadequate
            for number, phase in enumerate(phases)
        ]
    )


def main(replications: int = 40) -> None:
    for timeout_s in (2.0, 2.5, 2.75, 3.0, 3.5):
        for saps, measured in MEASURED.items():
            failed = failed_attempts(saps, int(timeout_s * S), replications)
            rows = [("all", failed.sum(axis=1), sum(measured))]
            rows += [(s.label, failed[:, s], measured[s]) for s in Scenario]
            for label, counts, seen in rows:
                low, high = np.percentile(counts, [5, 95])
                inside = "inside" if low <= seen <= high else "outside"
                print(
                    f"timeout {timeout_s} s, {saps} SAPS, {label:10s} mean {counts.mean():5.1f}, "
                    f"90 % {low:4.1f}-{high:4.1f}, measured {seen:2d} {inside}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
