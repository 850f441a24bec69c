"""The object model that went before the kernel, out of the project's history, timed in turn with what is here.

    python experiments/benchmarks/object_model.py [--repeat 3]

Both play the same models at the same settings (the fitted constants of the day differ a little), in processes of
their own, one after the other and then again, so that a time when the machine is busy falls on both.  CPU time of
the simulation alone: the model file is read and the parts are put together before.  Needs the project's git history.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "ad6a7f9"
"""The last one at which nothing but the object model ran models, with the golden results' own timing of it."""
HEADER = ("model", "simulated s", "object model: sim. s / CPU s", "compiled: sim. s / CPU s", "times")
SECONDS = 200
_SIP = (
    "{w}.pre_registration={{duration: 10 s, rate: 50 /s, transient: 1 s}}", "{w}.stir={{duration: 5 s, steps: 2}}",
    "{w}.steps={{loads: [{loads}], duration: " + str(SECONDS) + " s, transient: 2 s}}",
)  # fmt: skip
_MEDIA = ("{m}.duration=1.9 s", "{m}.warm_up=100 ms")
SETTINGS = {
    "lab-native": (_SIP, "80 /s, 130 /s"),
    "lab-virtual": (_SIP, "60 /s, 95 /s"),
    "lab-virtual-ft": (_SIP, "20 /s, 32 /s"),
    "xen-media": (_MEDIA, ""),
    "xen-media-turnkey": (_MEDIA, ""),
}
OLD = """
import sys
from tests.golden import baseline
model, *assignments = sys.argv[1:]
baseline.SETTINGS[model] = tuple(assignments)
cpu_s, _, end_ns = baseline.run(model)
print(cpu_s, end_ns)
"""
NEW = """
import sys, time
from vftsim.composition.run import Run
from vftsim.study.model import load_model
model, *assignments = sys.argv[1:]
for _ in range(2):  # the first one loads the kernel
    run = Run(load_model(model, assignments).spec, 1, 0, engine="compiled")
    begun_s = time.process_time()
    run.run()
    cpu_s = time.process_time() - begun_s
print(cpu_s, run.now_ns)
"""


def rows(repeat: int) -> Iterator[tuple[str, ...]]:
    """Return, for each model, simulated seconds a CPU second of both, the best of ``repeat`` runs, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        _unpack(Path(folder))
        for model, (settings, loads) in SETTINGS.items():
            old, new = [], []
            for _ in range(repeat):
                old.append(_rate(OLD, folder, model, _said(settings, "workload", "workload", loads)))
                new.append(_rate(NEW, str(ROOT), model, _said(settings, "workloads.calls", "measure", loads)))
            (seconds, before), (_, now) = max(old), max(new)
            yield (
                model,
                f"{seconds:.3g}",
                f"{before:.3g}",
                f"{now:,.0f}" if now >= 100 else f"{now:.3g}",
                f"{now / before:.0f}",
            )


def _unpack(folder: Path) -> None:
    packed = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"the object model is in the project's history only ({packed.stderr.decode().strip()})")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    (folder / "tests" / "__init__.py").touch()  # else another folder named tests comes first


def _said(settings: tuple[str, ...], workload: str, measure: str, loads: str) -> list[str]:
    return [each.format(w=workload, m=measure, loads=loads) for each in settings]


def _rate(script: str, folder: str, model: str, assignments: list[str]) -> tuple[float, float]:
    """Return the simulated seconds of a run and how many of them a CPU second takes."""
    done = subprocess.run(
        [sys.executable, "-c", script, model, *assignments],
        cwd=folder, env={"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "HOME": str(Path.home())}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    cpu_s, end_ns = done.stdout.split()
    return int(end_ns) / 1e9, int(end_ns) / 1e9 / float(cpu_s)


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, the best counts (default 3)")
    repeat = max(1, parser.parse_args().repeat)
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for row in rows(repeat):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
