"""Measure on the machine at hand: engines, other simulators, estimates, start-up, commands, workers.

    python experiments/benchmarks/benchmark.py [queues models ramps estimates start-up commands workers] [--repeat 3]

Prints a table in Markdown for each part; all of them if none is named.  One queue, with the same customers, in five
simulators (:mod:`queues`); its waiting times must agree.  The shipped models in both engines, one at a time, each in a
process of its own, so that the largest memory is its own.  What a user waits for: commands, each as a process, by wall
clock and by the CPU time of all its processes.  Compiled kernels come from the cache: everything is run once before it
is measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import queues

from vftsim.report.markdown import markdown_table
from vftsim.study.runs.model import shipped_models

ROOT = Path(__file__).resolve().parents[2]
CUSTOMERS = 20_000
INFINITE = float("inf")
MODELS = {
    "lab-native": ["workloads.calls.steps.initial=110 /s"],
    "lab-virtual": ["workloads.calls.steps.initial=70 /s"],
    "lab-virtual-ft": ["workloads.calls.steps.initial=30 /s"],
    "xen-media": [],
    "net-kvm": ["workloads.web=null"],
}
ONE_STEP = (
    "workloads.calls.steps.most=1",
    "workloads.calls.steps.transient=1 s",
    "workloads.calls.steps.duration=60 s",
    "workloads.calls.pre_registration.duration=0",
    "workloads.calls.stir.duration=0",
    "faults=[]",
)
NOTHING = (
    "--set workloads.calls.steps.most=1 --set workloads.calls.steps.duration=61s --set workloads.calls.stir.duration=0 "
    "--set workloads.calls.pre_registration.duration=0"
)
COMMANDS = {
    "--help": ("--help", "under 0.3 s"),
    "run lab-virtual -n 1 -q, next to nothing": (f"run lab-virtual -n 1 -q {NOTHING}", "start under 1.5 s"),
    "run lab-virtual -n 1 --quick -q": ("", ""),
    "run lab-virtual -n 1 -q": ("", "full ramp"),
    "run lab-virtual-ft -n 1 -q": ("", "full ramp"),
    "capacity lab-virtual -n 10 -q": ("", "under 25 CPU s, 15 s on two idle cores"),
    "sweep --scheduler credit -q": ("", "under 10 s"),
    "compare lab-native lab-virtual lab-virtual-ft -n 5 -q": ("", "under 45 s, two cores"),
    "compare lab-virtual --protection all --quick -n 2 -q": ("", "under 30 CPU s"),
}
"""What a user waits for, by name: the command if it is another, and the aim."""
RAMPS = {"lab-virtual": "under 2.5", "lab-virtual-ft": "under 5"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What a measured piece took."""

    wall_s: float
    cpu_s: float


def queue_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return the queue in each simulator: CPU time, customers a second, against SimPy's tutorial form.

    C and the compiled engine, which take milliseconds for it, then play a hundred times as many customers.
    """
    compiled, plain = "vftsim, compiled", "SimPy, as its tutorial writes it"
    few, many = queues.customers(CUSTOMERS), queues.customers(100 * CUSTOMERS)
    lists = [column.tolist() for column in few]
    with queues.queue_in_c() as in_c:
        best = _best(
            {
                compiled: partial(queues.vftsim_queue("compiled"), *few),
                "vftsim, simpy": partial(queues.vftsim_queue("simpy"), *few),
                plain: partial(queues.simpy_processes, *lists),
                "Ciw": partial(queues.ciw_queue, *lists),
                "salabim": partial(queues.salabim_queue, *lists),
            },
            repeat,
        )
        longer = _best(
            {"C by hand": partial(in_c, *many), compiled: partial(queues.vftsim_queue("compiled"), *many)}, repeat
        )
    for count, found in ((CUSTOMERS, best), (100 * CUSTOMERS, longer)):
        for name, cpu_s in found.items():
            per_s = count / cpu_s
            yield name, f"{count:,}", f"{cpu_s:.3f}", f"{per_s:,.0f}", f"{per_s * best[plain] / CUSTOMERS:.2f}"


def _best(forms: Mapping[str, Callable[[], int]], repeat: int) -> dict[str, float]:
    """Return the least CPU time of each form, turn by turn; all must find the same sum of waiting times."""
    best = dict.fromkeys(forms, INFINITE)
    waited = set()
    for _ in range(repeat + 1):
        for name, form in forms.items():
            begin = time.process_time()
            waited.add(form())
            best[name] = min(best[name], time.process_time() - begin)
    if len(waited) != 1:
        raise SystemExit(f"the simulators do not agree on the sum of waiting times: {waited}")
    return best


ONE_MODEL = """
import resource, sys, time
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec import load
name, engine, repeat, *overrides = sys.argv[1:]
spec = load(name, ModelSpec, overrides)
run_model(spec, 1, 0, engine=engine)
best = 1e9
for _ in range(int(repeat)):
    begin = time.process_time()
    record = run_model(spec, 1, 0, engine=engine)
    best = min(best, time.process_time() - begin)
print(record.events, record.last_measured.end_ns / 1e9, best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def model_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return each model in each engine: events, simulated and CPU seconds, rates, memory."""
    for name, settings in MODELS.items():
        overrides = [*settings, *(ONE_STEP if name.startswith("lab") else ())]
        found = {}
        for engine in ("compiled", "simpy"):
            found[engine] = _one_model(name, engine, repeat, overrides)
        for engine, (events, seconds, cpu_s, memory_kib) in found.items():
            yield (
                name,
                engine,
                f"{events:,.0f}",
                f"{seconds:.3g}",
                f"{cpu_s:.3f}",
                f"{seconds / cpu_s:,.1f}",
                f"{1e6 * cpu_s / events:.2f}",
                f"{found['simpy'][2] / cpu_s:.1f}",
                f"{memory_kib / 1024:,.0f}",
            )


def ramp_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return full ramps, as their models have them, in a process that has begun: events, seconds, the aim."""
    for name, aim in RAMPS.items():
        events, seconds, cpu_s, _ = _one_model(name, "compiled", repeat, [])
        yield name, f"{events:,.0f}", f"{seconds:,.0f}", f"{cpu_s:.2f}", aim


TOLD = """
import sys, time
from vftsim.composition.run import run_model
from vftsim.study.runs.estimate import needs_of
from vftsim.study.runs.model import load_model
for name in sys.argv[2:]:
    spec = load_model(name).quick().spec
    record, best = run_model(spec, 1, 0), 1e9
    for _ in range(int(sys.argv[1])):
        begin = time.process_time()
        run_model(spec, 1, 0)
        best = min(best, time.process_time() - begin)
    told = needs_of(spec)
    print(name, told.events, record.events, told.seconds, best)
"""


def told_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return what the estimate tells of each shipped model's ``--quick`` run, and what it takes."""
    for line in _said(TOLD, str(repeat), *shipped_models()).splitlines():
        name, *figures = line.split()
        events, simulated, seconds, cpu_s = map(float, figures)
        yield (
            name,
            f"{events:,.0f}",
            f"{simulated:,.0f}",
            f"{events / simulated:.2f}",
            f"{seconds:.3f}",
            f"{cpu_s:.3f}",
            f"{seconds / cpu_s:.2f}",
        )


START_UP = """
import contextlib, gc, io, sys, time
from vftsim.__main__ import COLLECT_AFTER
gc.set_threshold(COLLECT_AFTER)
spent = [("Python", time.process_time())]
def done(what):
    spent.append((what, time.process_time()))
from vftsim.cli.main import build_app
build_app()
done("the command line (typer)")
import numpy
done("numpy")
import pydantic.fields, pydantic.json_schema
done("pydantic")
import vftsim.composition.model
done("parts of models")
from vftsim.study.runs.model import load_model
from vftsim.study.designs.run import run_study
from vftsim.study.execution import Execution
import vftsim.study.runs.estimate
done("studies")
model = load_model("lab-virtual", sys.argv[1:])
done("the model: read and checked")
from vftsim.composition.one_kernel import the_kernel
the_kernel()
done("the engine: llvmlite, kernel")
result = run_study(model, 1, Execution(1, 1))
done("the run, and what made it (manifest)")
with contextlib.redirect_stdout(io.StringIO()):
    result.print_tables()
done("tables, printed (rich)")
for (_, before), (what, after) in zip([("", 0.0), *spent], spent):
    print(what, after - before, sep="=")
"""


def start_up_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return what a command that simulates next to nothing spends, by part; the least of twice as many processes."""
    overrides = [word for word in NOTHING.split() if word != "--set"]
    runs = [dict(line.split("=") for line in _said(START_UP, *overrides).splitlines()) for _ in range(2 * repeat)]
    best = {what: min(float(run[what]) for run in runs) for what in runs[0]}
    for what, cpu_s in [*best.items(), ("together", sum(best.values()))]:
        yield what, f"{cpu_s:.3f}"


def _one_model(name: str, engine: str, repeat: int, overrides: list[str]) -> tuple[float, ...]:
    return tuple(float(word) for word in _said(ONE_MODEL, name, engine, str(repeat), *overrides).split())


def _said(program: str, *words: str) -> str:
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=_environment()).stdout


def _environment() -> dict[str, str]:
    found = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    return found


def command_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return what each command takes, the quickest of its runs but the first."""
    for name, (command, aim) in COMMANDS.items():
        costs = []
        for _ in range(repeat + 1):
            with tempfile.TemporaryDirectory() as folder:
                costs.append(_run(command or name, folder))
        cost = min(costs[1:], key=lambda each: each.wall_s)
        said, comma, note = name.partition(",")
        yield f"`vftsim {said}`{comma}{note}", f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", aim


def worker_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return a study of twenty ramps with one and with two workers, in turn; the quickest of each."""
    costs: dict[int, Cost] = {}
    for jobs in (1, 2) * repeat:
        with tempfile.TemporaryDirectory() as folder:
            cost = _run(f"capacity lab-virtual -n 20 -q -j {jobs}", folder)
        costs[jobs] = min(costs.get(jobs, cost), cost, key=lambda each: each.wall_s)
    for jobs, cost in costs.items():
        yield str(jobs), f"{cost.wall_s:.1f}", f"{cost.cpu_s:.1f}", f"{costs[1].wall_s / cost.wall_s:.2f}"


def _run(command: str, folder: str) -> Cost:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "vftsim", *command.split()],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"vftsim {command}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - begin, cpu_s)


Rows = Callable[[int], Iterator[tuple[str, ...]]]
PARTS: dict[str, tuple[tuple[str, ...], Rows]] = {
    "queues": (("simulator", "customers", "CPU s", "customers/s", "times SimPy"), queue_rows),
    "models": (
        ("model", "engine", "events", "sim. s", "CPU s", "sim. s / CPU s", "us/event", "times simpy", "MiB"),
        model_rows,
    ),
    "ramps": (("model", "events", "simulated s", "CPU s", "aim"), ramp_rows),
    "estimates": (("model", "events told", "simulated", "ratio", "s told", "CPU s", "ratio"), told_rows),
    "start-up": (("part", "CPU s"), start_up_rows),
    "commands": (("command", "wall s", "CPU s", "aim"), command_rows),
    "workers": (("workers", "wall s", "CPU s", "times one"), worker_rows),
}
"""Head and rows of each table."""


def main() -> None:
    """Measure the parts that are wanted and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, the best counts (default 3)")
    arguments = parser.parse_args()
    if unknown := [part for part in arguments.parts if part not in PARTS]:
        parser.error(f"there is no part '{unknown[0]}': {', '.join(PARTS)}")
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    for part in arguments.parts or PARTS:
        header, rows = PARTS[part]
        print(f"## {part}\n\n{markdown_table(header, list(rows(arguments.repeat)))}\n", flush=True)


if __name__ == "__main__":
    main()
