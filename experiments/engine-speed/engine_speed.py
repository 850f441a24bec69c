"""How fast the engine is: simulated seconds and events a second of the shipped models, beside a bare SimPy queue.

    python experiments/engine-speed/engine_speed.py [--seconds 60] [--repeat 3]

Each SIP environment plays one step of the benchmark at a load of about 60 % of its CPU; the media host carries its 800
streams for a thirtieth of that time.  Times are the best of
``--repeat`` runs in this process, building the model included; rates are for a second of this process's CPU
time, so that other work on the machine does not count.  The yardstick is the M/M/1 queue as a
SimPy tutorial writes it (one process a customer, one Resource) in the same process: what a machine does with it tells
machines apart, the ratio of the two does not depend much on the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import simpy
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec import load

_LOAD_SAPS = {"lab-native": 110.0, "lab-virtual": 70.0, "lab-virtual-ft": 30.0}
"""About 60 % of each environment's CPU."""


@dataclass(frozen=True, slots=True)
class Speed:
    """One line of the table."""

    label: str
    simulated_s: float
    events: int
    wall_s: float
    cpu_s: float

    @property
    def events_per_s(self) -> float:
        """Events the engine handles in a second of CPU time."""
        return self.events / self.cpu_s


class _Watch:
    """Wall and CPU time since it was made."""

    def __init__(self) -> None:
        self.wall_s, self.cpu_s = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall_s, time.process_time() - self.cpu_s


def _lab(name: str, seconds: int) -> Speed:
    overrides = [
        f"workloads.calls.steps.initial={_LOAD_SAPS[name]:g} /s",
        f"workloads.calls.steps.duration={seconds} s",
        "workloads.calls.steps.transient=1 s",
        "workloads.calls.steps.most=1",
        "workloads.calls.pre_registration.duration=0",
        "workloads.calls.stir.duration=0",
        "faults=[]",
    ]
    spec = load(name, ModelSpec, overrides)
    watch = _Watch()
    record = run_model(spec, seed=1, replication=0)
    return Speed(name, seconds, record.events, *watch.read())


def _media_host(seconds: int) -> Speed:
    spec = load("xen-media", ModelSpec, [f"measure.duration={max(seconds * 1000 // 30, 100)} ms"])
    watch = _Watch()
    record = run_model(spec, seed=1, replication=0)
    return Speed("xen-media", (spec.measure.duration + spec.measure.warm_up) / 1e9, record.events, *watch.read())


def _bare_simpy(customers: int = 20_000) -> Speed:
    """M/M/1 at 80 % load; events: gap, start, grant, service, release and end of each customer."""
    rng = np.random.default_rng(1)
    gaps = rng.exponential(1.0, customers).tolist()
    services = rng.exponential(0.8, customers).tolist()
    watch = _Watch()
    environment = simpy.Environment()
    server = simpy.Resource(environment)
    handled = 0

    def customer(service: float) -> Generator[Any, Any, None]:
        with server.request() as turn:
            yield turn
            yield environment.timeout(service)

    def source() -> Generator[Any, Any, None]:
        for gap, service in zip(gaps, services, strict=True):
            yield environment.timeout(gap)
            environment.process(customer(service))

    environment.process(source())
    while environment.peek() != float("inf"):
        environment.step()
        handled += 1
    return Speed("bare SimPy M/M/1", environment.now, handled, *watch.read())


def _best(measure: Callable[[], Speed], repeat: int) -> Speed:
    return min((measure() for _ in range(repeat)), key=lambda speed: speed.cpu_s)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="length of the step (default 60)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, the best counts (default 3)")
    arguments = parser.parse_args()
    if arguments.seconds < 2 or arguments.repeat < 1:
        parser.error("need --seconds of 2 at least and --repeat of 1 at least")
    bare = _best(_bare_simpy, arguments.repeat)
    measures = [partial(_lab, name, arguments.seconds) for name in _LOAD_SAPS]
    measures.append(partial(_media_host, arguments.seconds))
    speeds = [_best(measure, arguments.repeat) for measure in measures]

    table = Table(box=SIMPLE_HEAD, title=f"Engine speed: one step of {arguments.seconds} s, best of {arguments.repeat}")
    for column in ("model", "sim. s", "1000 events", "wall s", "CPU s", "sim. s / s", "1000 events / s", "of bare"):
        table.add_column(column, justify="left" if column == "model" else "right", no_wrap=column == "model")
    for speed in [*speeds, bare]:
        is_bare = speed is bare
        table.add_row(
            speed.label,
            "" if is_bare else f"{speed.simulated_s:,.3g}",
            f"{speed.events / 1000:,.0f}",
            f"{speed.wall_s:.2f}",
            f"{speed.cpu_s:.2f}",
            "" if is_bare else f"{speed.simulated_s / speed.cpu_s:,.3g}",
            f"{speed.events_per_s / 1000:,.0f}",
            f"{speed.events_per_s / bare.events_per_s:.2f}",
        )
    Console().print(table)
    Console().print(
        "Events are those planned, cancelled timers included. Time and events include the calls "
        "that are played to their end after the step; simulated seconds (sim. s) do not. Rates: a second of CPU time.",
        style="dim",
    )


if __name__ == "__main__":
    main()
