"""The promise of every mechanism, judged by its independent oracle at many more crashes than the tests have.

``python -m experiments.promise.promise [--per-phase 100] [--jobs 2] [MECHANISM...]``, from the root of the project:
for each mechanism a host crashes (or a guest errs) exactly at, 1 ns before and 1 ns after every boundary of its phases,
and at so many instants evenly spread within each phase; every crash is a run, in the engine for reading, watched from
outside.  The scenarios, phases and oracles are those of ``tests/protection``.  Prints a line a mechanism and exits with
1 if any oracle found anything wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from types import ModuleType
from typing import Any

from tests.protection import (
    test_checkpoint_promise,
    test_coarse_lockstep,
    test_event_sync,
    test_hypervisor_epoch,
    test_micro_promise,
    test_promise,
)


@dataclass(frozen=True)
class Scenario:
    """A mechanism, what strikes it, when, and what an oracle says of that.

    Parameters
    ----------
    module : ModuleType
        Whose ``PER_PHASE`` says how many instants a phase has.
    instants : callable
        Returns the instants in ns.
    judge : callable
        Returns what is wrong after a blow at an instant.
    """

    module: ModuleType
    instants: Callable[[], Sequence[int]]
    judge: Callable[[int], list[str]]


def _lockstep(pair: str, what: str) -> Scenario:
    seed = test_promise.SEEDS[pair]
    return Scenario(
        test_promise, lambda: test_promise.crash_instants(seed), lambda t: test_promise.strike(seed, t, what)
    )


def _epoch(protocol: str) -> Scenario:
    module = test_hypervisor_epoch
    return Scenario(module, lambda: module.crash_instants(protocol), lambda t: module.crash(protocol, t))


def _micro(shipped: bool) -> Scenario:
    module = test_micro_promise
    return Scenario(module, lambda: module.instants(shipped), lambda t: module.strike(shipped, t))


def _plain(module: Any) -> Scenario:
    return Scenario(module, module.crash_instants, module.crash)


SCENARIOS: dict[str, Scenario] = {
    **{
        f"lockstep, {pair}, {what} crashes": _lockstep(pair, what)
        for pair in test_promise.SEEDS
        for what in ("primary", "backup")
    },
    "checkpoint": _plain(test_checkpoint_promise),
    "micro_checkpoint, guest error": _micro(False),
    "micro_checkpoint, shipped": _micro(True),
    "event_sync": _plain(test_event_sync),
    "hypervisor_epoch, original": _epoch("original"),
    "hypervisor_epoch, revised": _epoch("revised"),
    "coarse_lockstep": Scenario(
        test_coarse_lockstep,
        test_coarse_lockstep.crash_instants,
        lambda t: test_coarse_lockstep.judge(t, test_coarse_lockstep.run(t)),
    ),
}


def _judged(name: str, per_phase: int, worker: int, workers: int) -> tuple[int, list[str]]:
    """Return how many crashes a worker's share has, and what was wrong with them."""
    scenario = SCENARIOS[name]
    scenario.module.PER_PHASE = per_phase  # type: ignore[attr-defined]
    instants = scenario.instants()[worker::workers]
    return len(instants), [f"{name} at {t} ns: {why}" for t in instants for why in scenario.judge(t)]


def main(arguments: Sequence[str]) -> int:
    """Judge them all."""
    parser = argparse.ArgumentParser(description="Crashes of every mechanism, judged by independent oracles.")
    parser.add_argument("mechanisms", nargs="*", metavar="MECHANISM", help="Names begin like this; by default all.")
    parser.add_argument("--per-phase", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    names = [name for name in SCENARIOS if not chosen.mechanisms or name.startswith(tuple(chosen.mechanisms))]
    wrong: list[str] = []
    with get_context("fork").Pool(chosen.jobs) as pool:
        for name in names:
            begin_s = time.monotonic()
            shares = [(name, chosen.per_phase, worker, chosen.jobs) for worker in range(chosen.jobs)]
            found = pool.starmap(_judged, shares)
            wrong += [why for _, some in found for why in some]
            crashes, bad = sum(count for count, _ in found), sum(len(some) for _, some in found)
            print(f"{name:36s} {crashes:6d} crashes {bad:4d} wrong {time.monotonic() - begin_s:8.1f} s", flush=True)
    print("\n".join(wrong[:40]) or "every promise was kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
