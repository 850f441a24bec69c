"""The two failovers of the lab's run with fault tolerance: failed attempts, simulated against inferred.

Inferred from the percentages of the two steps (900 s, failovers triggered from the vSphere client) in which the
failovers must have been: 8 failed attempts at 15 SAPS (7 calls, 1 re-registration), 28 at 25 SAPS (17 calls, 3
re-registrations, 8 page messages).  Measured: scenarios in progress had delays of 10-100 ms.  The shipped model is
used as it is, for both; only the timeout (of heartbeats and of the log alike), of which the source says "a few
seconds", is varied.  The crash comes at a random phase of the heartbeats, as nobody knows it.

    python experiments/sip-lab-failovers/failovers.py --replications 30 --timeouts 3 --jobs 2
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from loky import get_reusable_executor

from vftsim.composition.run import run_model
from vftsim.study.runs.model import load_model
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.sip.messages import Scenario

INFERRED = {15: (1, 0, 7, 0, 0), 25: (3, 0, 17, 0, 8)}
"""Load in SAPS: failed attempts by scenario, in the order of :class:`Scenario`."""

SEED = 20100422
CRASH_S = 110
"""By then calls of all ages are in progress."""


def one_failover(saps: int, timeout_s: float, phase: float, replication: int) -> PhaseRecord:
    """Play one step with a crash; ``phase`` is that of the heartbeats, in [0, 1)."""
    overrides = (
        f"domains.sut.protection.failover.detection.timeout={timeout_s} s",
        "domains.sut.protection.reprotection=null",
        f"faults=[{{kind: primary_crash, at: step 1 + {CRASH_S + phase:.6f} s}}]",
        "workloads.calls.pre_registration.duration=0 s",
        f"workloads.calls.steps.initial={saps} /s",
        "workloads.calls.steps.duration=150 s",
        "workloads.calls.steps.most=1",
    )
    return (run_model(load_model("lab-virtual-ft", overrides).spec, SEED, replication)).played()[-1]


def report(saps: int, timeout_s: float, records: list[PhaseRecord]) -> None:
    """Print failed attempts and delays of one load and timeout."""
    failed = np.array([record.inadequate for record in records])
    inferred = INFERRED[saps]
    rows = [("all", failed.sum(axis=1), sum(inferred))]
    rows += [(s.label, failed[:, s], inferred[s]) for s in Scenario]
    for label, counts, seen in rows:
        low, high = np.percentile(counts, [5, 95])
        inside = "inside" if low <= seen <= high else "outside"
        print(
            f"timeout {timeout_s:g} s, {saps} SAPS, {label:9s} mean {counts.mean():5.1f}, 90 % {low:4.1f}-{high:4.1f}, "
            f"inferred {seen:2d} {inside}",
            flush=True,
        )
    for delay in ("SES1", "REL1"):
        p50, p95 = (np.mean([r.delays[delay].percentile(p) for r in records]) / 1e6 for p in (50, 95))
        print(f"timeout {timeout_s:g} s, {saps} SAPS, {delay} p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)


def main() -> None:
    """Play both failovers for each timeout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=30)
    parser.add_argument("--timeouts", default="2,2.5,2.75,3,3.5", help="seconds, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    phases = np.random.Generator(np.random.PCG64(SEED)).random(arguments.replications)
    with get_reusable_executor(arguments.jobs) as pool:
        for timeout_s in map(float, arguments.timeouts.split(",")):
            for saps in INFERRED:
                played = pool.map(partial(one_failover, saps, timeout_s), map(float, phases), range(len(phases)))
                report(saps, timeout_s, list(played))


if __name__ == "__main__":
    main()
