"""Measure, in one run on the machine at hand: engines, other simulators, start-up, commands, scaling; write the table.

    python experiments/benchmarks/benchmark.py [--quick] [--told | --start-up] [--repeat 3] [--write docs/benchmarks.md]

Four parts.  One queue, with the same customers, in five simulators (:mod:`queues`); its waiting times must agree.  The
object model that went before (:mod:`object_model`).  The shipped models in both engines, one at a time, each in a
process of its own, so that the largest memory is its own.  What a user waits for: the commands of the documentation,
each as a process, by wall clock and by the CPU time of all its processes.  Compiled kernels come from the cache:
everything is run once before it is measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import object_model
import queues

from vftsim.study.model import shipped_models

ROOT = Path(__file__).resolve().parents[2]
CUSTOMERS = 50_000
MODELS = {
    "lab-native": ["workloads.calls.steps.initial=110 /s"],
    "lab-virtual": ["workloads.calls.steps.initial=70 /s"],
    "lab-virtual-ft": ["workloads.calls.steps.initial=30 /s"],
    "xen-media": [],
    "net-kvm": ["workloads.web=null"],
}
ONE_STEP = (
    "workloads.calls.steps.most=1", "workloads.calls.steps.transient=1 s", "workloads.calls.steps.duration=60 s",
    "workloads.calls.pre_registration.duration=0", "workloads.calls.stir.duration=0", "faults=[]",
)  # fmt: skip
NOTHING = (
    "--set workloads.calls.steps.most=1 --set workloads.calls.steps.duration=61s --set workloads.calls.stir.duration=0 "
    "--set workloads.calls.pre_registration.duration=0"
)
COMPARE = "compare lab-native lab-virtual lab-virtual-ft -n 5 -q"
SHORT_STEPS = "validate short/sip-lab/validation.yaml -q"
"""The ramps that a validation had when speeds were first asked for: 24 and 20 more, with steps of 300 s."""
COMMANDS = {
    "--help": "under 0.3 s",
    f"run lab-virtual -n 1 -q {NOTHING}": "start under 1.5 s",
    "run lab-virtual -n 1 --quick -q": "",
    "run lab-virtual -n 1 -q": "full ramp, under 2.5 CPU s",
    "run lab-virtual-ft -n 1 -q": "full ramp, under 5 CPU s",
    "capacity lab-virtual -n 10 -q": "under 25 CPU s, 15 s on two idle cores",
    "sweep --scheduler credit -q": "under 10 s",
    COMPARE: "under 45 s from the cache, two cores",
    "compare lab-virtual --protection all --quick -n 2 -q": "under 60 s from the cache, two cores",
    SHORT_STEPS: "under 60 s",
    "validate -q": "",
}
QUICK = frozenset(list(COMMANDS)[:3])
RAMPS = {"lab-virtual": "under 2.5", "lab-virtual-ft": "under 5"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What a measured piece took."""

    wall_s: float
    cpu_s: float


def queue_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return the queue in each simulator: CPU time, customers a second, against SimPy's tutorial form."""
    gaps, services = queues.customers(CUSTOMERS)
    forms: dict[str, Callable[[list[int], list[int]], int]] = {
        "vftsim, compiled": queues.vftsim_queue("compiled"), "vftsim, simpy": queues.vftsim_queue("simpy"),
        "SimPy, as its tutorial writes it": queues.simpy_processes, "Ciw": queues.ciw_queue,
        "salabim": queues.salabim_queue,
    }  # fmt: skip
    waited = {name: form(gaps, services) for name, form in forms.items()}
    if len(set(waited.values())) != 1:
        raise SystemExit(f"the simulators do not agree on the sum of waiting times: {waited}")
    best = {name: min(_cpu_s(lambda f=form: f(gaps, services)) for _ in range(repeat)) for name, form in forms.items()}
    plain = best["SimPy, as its tutorial writes it"]
    for name, cpu_s in best.items():
        yield name, f"{cpu_s:.3f}", f"{CUSTOMERS / cpu_s:,.0f}", f"{plain / cpu_s:.2f}"


def _cpu_s(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


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
    for name, own in MODELS.items():
        overrides = [*own, *(ONE_STEP if name.startswith("lab") else ())]
        found = {}
        for engine in ("compiled", "simpy"):
            found[engine] = _one_model(name, engine, repeat, overrides)
        for engine, (events, seconds, cpu_s, memory_kib) in found.items():
            yield (
                name, engine, f"{events:,.0f}", f"{seconds:.3g}", f"{cpu_s:.3f}", f"{seconds / cpu_s:,.3g}",
                f"{1e6 * cpu_s / events:.2f}", f"{found['simpy'][2] / cpu_s:.1f}", f"{memory_kib / 1024:,.0f}",
            )  # fmt: skip


def ramp_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return full ramps, as their models have them, in a process that has begun: events, seconds, the aim."""
    for name, aim in RAMPS.items():
        events, seconds, cpu_s, _ = _one_model(name, "compiled", repeat, [])
        yield name, f"{events:,.0f}", f"{seconds:,.0f}", f"{cpu_s:.2f}", aim


TOLD = """
import sys, time
from vftsim.composition.run import run_model
from vftsim.study.estimate import needs_of
from vftsim.study.model import load_model
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
            name, f"{events:,.0f}", f"{simulated:,.0f}", f"{events / simulated:.2f}", f"{seconds:.3f}", f"{cpu_s:.3f}",
            f"{seconds / cpu_s:.2f}",
        )  # fmt: skip


def told_part(repeat: int) -> str:
    """Return the section on estimates."""
    header = ("model", "events told", "simulated", "ratio", "s told", "CPU s", "ratio")
    return (
        "## Estimates\n\nWhat is told before a `--quick` run of each shipped model, beside what it takes in a process "
        "that has begun.\n\n" + table(header, told_rows(repeat))
    )


START_UP = """
import contextlib, gc, io, sys, time
from vftsim.__main__ import _COLLECT_AFTER
gc.set_threshold(_COLLECT_AFTER)
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
from vftsim.study.model import load_model
from vftsim.study.run import run_study
import vftsim.study.limits
done("studies")
model = load_model("lab-virtual", sys.argv[1:])
done("the model: read and checked")
from vftsim.composition.one_kernel import the_kernel
the_kernel()
done("the engine: llvmlite, kernel")
result = run_study(model, 1, 1, 1)
done("the run, and what made it (manifest)")
with contextlib.redirect_stdout(io.StringIO()):
    result.print_tables()
done("tables, printed (rich)")
for (_, before), (what, after) in zip([("", 0.0), *spent], spent):
    print(what, after - before, sep="=")
"""


def start_up_part(repeat: int) -> str:
    """Return the section on what a command that simulates next to nothing spends, by part."""
    overrides = [word for word in NOTHING.split() if word != "--set"]
    runs = [dict(line.split("=") for line in _said(START_UP, *overrides).splitlines()) for _ in range(repeat)]
    best = {what: min(float(run[what]) for run in runs) for what in runs[0]}
    rows = ((what, f"{cpu_s:.3f}") for what, cpu_s in [*best.items(), ("together", sum(best.values()))])
    return (
        "## Start-up\n\nWhat a run of next to nothing (one step of a minute) spends, by part, in the order in which a "
        f"process comes to it; the least of {repeat} processes for each part.\n\n" + table(("part", "CPU s"), rows)
    )


def _one_model(name: str, engine: str, repeat: int, overrides: list[str]) -> tuple[float, ...]:
    return tuple(float(word) for word in _said(ONE_MODEL, name, engine, str(repeat), *overrides).split())


def _said(program: str, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


def command_rows(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Return what each command takes, the second time."""
    for name in names:
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                if name == SHORT_STEPS:
                    _write_short_validation(Path(folder))
                cost = _run(name, folder)
        yield f"`vftsim {name}`", f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", COMMANDS[name]
    if COMPARE in names:
        with tempfile.TemporaryDirectory() as folder:
            cost = _run(COMPARE, folder, VFTSIM_CACHE_DIR=folder)
        yield f"the same, `{COMPARE}`, with nothing compiled", f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", "under 120 s"


def _write_short_validation(folder: Path) -> None:
    shutil.copytree(ROOT / "calibration", folder / "short")
    path = folder / "short" / "sip-lab" / "validation.yaml"
    text = path.read_text(encoding="utf-8")
    for before, after in (
        ("step_duration: 900 s", "step_duration: 300 s"),
        ("\nreplications: 20", "\nreplications: 8"),
    ):
        if before not in text:
            raise SystemExit(f"{path} no longer says '{before.strip()}'")
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")


def scaling_rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return a study of ten ramps with one and with two workers, in turn; the quickest of each."""
    costs: dict[int, Cost] = {}
    for jobs in (1, 2) * repeat:
        with tempfile.TemporaryDirectory() as folder:
            cost = _run(f"capacity lab-virtual -n 10 -q -j {jobs}", folder)
        costs[jobs] = min(costs.get(jobs, cost), cost, key=lambda each: each.wall_s)
    for jobs, cost in costs.items():
        yield str(jobs), f"{cost.wall_s:.1f}", f"{cost.cpu_s:.1f}", f"{costs[1].wall_s / cost.wall_s:.2f}"


def _run(command: str, folder: str, **variables: str) -> Cost:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run(
        [sys.executable, "-m", "vftsim", *command.split()],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):  # validate ends with 1 where an accuracy is missed
        raise SystemExit(f"vftsim {command}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - begin, cpu_s)


def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        print(" ".join(row), file=sys.stderr, flush=True)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def page(repeat: int, names: list[str]) -> str:
    """Return the page of the documentation."""
    load = os.getloadavg()[0]
    parts = [
        "# Benchmarks",
        "Written by `python experiments/benchmarks/benchmark.py --write docs/benchmarks.md`, all in one run: ratios "
        "within a table hold on other machines, seconds do not. Times are of the best of "
        f"{repeat} runs after a first one, CPU time unless a column says wall; commands once, from a warm cache. "
        f"Here: Python {platform.python_version()}, {os.cpu_count()} cores, load average {load:.1f} at the begin.",
        f"## One queue, five simulators\n\nFour servers at 80 % load, {CUSTOMERS:,} customers, the same gaps and "
        "service times; the sums of waiting times agree to the nanosecond.",
        table(("simulator", "CPU s", "customers/s", "times SimPy"), queue_rows(repeat)),
        "## Against the object model that went before\n\nOut of the project's history, in turn with what is here "
        "(`experiments/benchmarks/object_model.py`).",
        table(object_model.HEADER, object_model.rows(repeat)),
        "## Shipped models, both engines\n\nA benchmark plays one step of 60 s at about 60 % of its CPU; building the "
        "model is included.",
        table(
            ("model", "engine", "events", "sim. s", "CPU s", "sim. s / CPU s", "us/event", "times simpy", "MiB"),
            model_rows(repeat),
        ),
        "## Ramps\n\nA benchmark as the model has it, 900 s a step, in a process that has begun.",
        table(("model", "events", "simulated s", "CPU s", "aim"), ramp_rows(repeat)),
        told_part(repeat),
        start_up_part(repeat),
        "## Commands\n\nThe time a user waits, worker processes included; the last column is the aim.",
        table(("command", "wall s", "CPU s", "aim"), command_rows(names)),
    ]
    if len(names) > len(QUICK):
        parts += [
            "## Workers\n\n`vftsim capacity lab-virtual -n 10`, by workers; the quickest of as many runs.",
            table(("workers", "wall s", "CPU s", "times one"), scaling_rows(repeat)),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure and print, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument("--told", action="store_true", help="print the table of estimates alone")
    parser.add_argument("--start-up", action="store_true", help="print the table of what starting takes alone")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, the best counts (default 3)")
    parser.add_argument("--write", type=Path, help="file to write; printed if not given")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    if arguments.told or arguments.start_up:
        print((told_part if arguments.told else start_up_part)(arguments.repeat))
        return
    text = page(arguments.repeat, [name for name in COMMANDS if not arguments.quick or name in QUICK])
    if arguments.write is None:
        print(text)
    else:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
