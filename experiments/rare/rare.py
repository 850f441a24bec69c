"""Rare events of a queue by splitting, against its closed form and brute force; prints what it finds as JSON.

``python experiments/rare/rare.py [--answers N] [--jobs N]``: N whole answers (each with its own seed) to the
probability, about 1e-6, that M/D/1 reaches a length within a run: how many intervals hold the exact one, and what
runs from time 0 would cost for the same variance; the first loss of M/D/1/K; splitting and brute force near 1e-3.

The truth is no simulation: the distribution of M/D/1 is carried from one part of a service to the next.
"""

from __future__ import annotations

import argparse
import json
from math import exp, factorial
from pathlib import Path
from statistics import fmean, median, variance

import numpy as np

import vftsim
from vftsim.study.designs.rare import RareStudy

MODEL = str(Path(__file__).with_name("queue.yaml"))
ARRIVALS_PER_S, SERVICES_PER_S, SECONDS = 400.0, 1000.0, 0.1
"""As the model file has them."""
PLACE = Path(".rare-experiment")
"""Where answers are kept: the same command goes on."""
SIZE = 50, 12
"""Trials at a level and repetitions of each of many answers."""
PARTS = 100
LENGTH, SEEN_BY_BRUTE_FORCE = 12, 8
LEVELS = [*range(3, LENGTH)]


def exact(limit: int) -> float:
    """Return the probability that M/D/1 reaches a length, which is that of M/D/1/(length - 1) losing a request.

    The distribution over the number in the system and the parts of a service that are left is carried from part to
    part; a request that finds the server idle is served from the end of its part, half a part too late on average.
    """
    part_s = 1.0 / SERVICES_PER_S / PARTS
    come = [exp(-ARRIVALS_PER_S * part_s) * (ARRIVALS_PER_S * part_s) ** k / factorial(k) for k in range(4)]
    idle, reached, busy = 1.0, 0.0, np.zeros((limit, PARTS))
    for _ in range(round(SECONDS / part_s)):
        more = np.zeros_like(busy)
        for k, chance in enumerate(come):
            more[k:] += chance * busy[: limit - k]
            reached += chance * float(busy[limit - k :].sum())
        after = np.zeros_like(busy)
        after[:, :-1] = more[:, 1:]
        after[1 : limit - 1, -1] += more[2:, 0]
        for k, chance in enumerate(come[1:], 1):
            after[k, -1] += idle * chance
        idle, busy = float(more[1, 0]) + idle * come[0], after
    return reached


def said(found: RareStudy, truth: float) -> dict[str, float | str | bool]:
    """Return an answer beside the truth."""
    chance = found.probability
    return {
        "event": str(found.request.event).removeprefix("domains.server.applications."),
        "exact": truth,
        "found": chance.mean,
        "low": chance.low,
        "high": chance.high,
        "holds": chance.low <= truth <= chance.high,
        "events": found.events,
    }


def many(answers: int, jobs: int) -> dict[str, float]:
    """Return how often the interval of an answer holds the truth, and what an answer costs."""
    truth, held, values, events, widths = exact(LENGTH), 0, [], [], []
    levels = ",".join(map(str, LEVELS))
    for seed in range(1, answers + 1):
        kept = PLACE / f"answer-{seed}"
        found = vftsim.rare(MODEL, f"queue.held >= {LENGTH}", *SIZE, levels, seed, jobs, directory=kept)
        chance = found.probability
        held += chance.low <= truth <= chance.high
        values.append(chance.mean)
        events.append(found.events)
        widths.append(chance.high / truth)
    pilot = vftsim.rare(MODEL, "queue.held >= 1000", 400, 1, seed=1, brute_force=True)
    run_events = pilot.events / 400
    brute = truth * (1.0 - truth) / variance(values) * run_events
    return {
        "length": LENGTH,
        "exact": truth,
        "answers": answers,
        "held": held,
        "mean": fmean(values),
        "mean_error": float(np.sqrt(variance(values) / answers)),
        "upper_end": median(widths),
        "events": fmean(events),
        "run_events": run_events,
        "brute_force_events": brute,
        "times": brute / fmean(events),
    }


def main() -> None:
    """Answer, and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--answers", type=int, default=100)
    arguments.add_argument("--jobs", type=int, default=1)
    given = arguments.parse_args()
    near, small = f"queue.held >= {SEEN_BY_BRUTE_FORCE}", exact(SEEN_BY_BRUTE_FORCE)
    loss = "domains.server.applications.queue.backlog"
    full = vftsim.load(MODEL, [f"{loss}={LENGTH - 2}"])
    result = {
        "many": many(given.answers, given.jobs),
        "one": {
            "splitting": said(vftsim.rare(MODEL, near, 100, 20, jobs=given.jobs), small),
            "brute force": said(vftsim.rare(MODEL, near, 1000, 20, jobs=given.jobs, brute_force=True), small),
            "loss": said(vftsim.rare(full, "queue.lost >= 1", 100, 20, jobs=given.jobs), exact(LENGTH)),
        },
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
