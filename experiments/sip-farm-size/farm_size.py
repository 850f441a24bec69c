"""How a large SIP farm runs: simulated seconds per CPU second, CPU time and events a call, memory, at several rates.

``python experiments/sip-farm-size/farm_size.py [SECONDS]``: 200 guests (140 front ends, 59 back ends with disks of
their own, a balancer) on a z/VM host of 160 processors; calls with registered accounts.  Every line is a process of its
own, which first runs a fifth of a second: to link, and to compile where that has not been done.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.report.markdown import markdown_table
from vftsim.spec import load
from vftsim.workloads.farm.records import loads

FARM = (
    "hosts.lpar1.pcpus=160",
    "domains.front.count=140",
    "domains.back.count=59",
    "domains.back.disks.data.disks=8",
    "workloads.calls.message_cost=0 us",
    "measure.warm_up=100 ms",
)
HEAD = (
    "calls/s",
    "held",
    "simulated s per CPU s",
    "CPU us a call",
    "events a call",
    "calls at once",
    "failed",
    "peak memory, MiB",
)
LINES = ((2_500, "60 s"), (5_000, "60 s"), (10_000, "60 s"), (10_000, "100 ms"))
_MIB = 1024.0


def run_once(rate: int, hold: str, seconds: float) -> tuple[Run, float]:
    """Run the farm; return the run and its CPU seconds from its start to its end."""
    changes = [f"workloads.calls.rate={rate} /s", f"workloads.calls.hold={hold}"]
    length = f"measure.duration={1000 * seconds - 100:g} ms"
    run = Run(load("sip-farm-no-nas", ModelSpec, [*FARM, *changes, length]), 1, 0)
    run.start()
    begin = time.process_time()
    run.engine.run(run.built.window_ns[1])
    cpu_s = time.process_time() - begin
    run.finish()
    return run, cpu_s


def line(rate: int, hold: str, seconds: float) -> tuple[str, ...]:
    """Return a line of the table."""
    run_once(rate, hold, 0.2)
    run, cpu_s = run_once(rate, hold, seconds)
    load: Any = run.engine.rows(loads)[1]
    begun, peak = int(load.begun), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    return (
        f"{rate:,}",
        hold,
        f"{seconds / cpu_s:.1f}",
        f"{1e6 * cpu_s / begun:.0f}",
        f"{run.engine.events / begun:.0f}",
        f"{int(load.most_active):,}",
        str(int(load.failed)),
        f"{peak:.0f}",
    )


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    lines = []
    for rate, hold in LINES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            lines.append(pool.apply(line, (rate, hold, seconds)))
    print(markdown_table(HEAD, lines))


if __name__ == "__main__":
    main()
