"""Give the commands thousands of malformed inputs: each is refused with one message, or is not malformed after all.

    python experiments/malformed/malformed.py [--count 10000] [--seed 1] [--kind NAME] [--keep DIR] [--write]

Every input (``kinds.py``) goes to a child of this process with a folder of its own.  A defect is a traceback, a
death, more than 20 s of CPU, more than 500 MB, a refusal (exit code 2) that is not one message of at most 1,000
characters or that wrote, changed or removed anything, and an exit code that no command has.  What is accepted runs
for half a second.
``--keep`` saves every input with a defect for the corpus of ``tests/malformed``.  ``--tally FILE`` notes how each was
answered; those that it holds are not tried again, and the table is that of all that it holds.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import hashlib
import itertools
import json
import math
import os
import random
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from inputs import Input
from kinds import KINDS, makers

os.environ.setdefault("VFTSIM_ENGINE", "simpy")
HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "robustness.md"
LONGEST_S, MOST_BYTES, LONGEST_MESSAGE = 20, 500_000_000, 1000
HANGS_S = 6 * LONGEST_S
"""On the clock; the longest time is of CPU, or a machine with much else to do would fail commands that do not hang."""
CRASHED = 99
_USUAL_BYTES = 150_000_000
"""Of a process that runs one command."""
OURS = (".vftsim.lock", "sqlite-wal", "sqlite-shm", "sqlite-journal")
"""What goes with a lock that is given back and a database that is closed."""


@dataclass
class Outcome:
    """How a command answered an input."""

    code: int
    seconds: float
    most_bytes: int
    errors: str
    defects: list[str] = field(default_factory=list)


class _Accepted(BaseException):
    """Instead of a long computation."""


def answer(one: Input) -> Outcome:
    """Give an input to a command in a child; return what it did."""
    place = Path(tempfile.mkdtemp(dir=_memory()))
    folder = place / "work"
    folder.mkdir()
    one.lay(folder)
    before = snapshot(folder)
    own_bytes, own_resident_bytes = _own_memory()
    child = os.fork()
    if child == 0:
        limit_bytes = own_bytes + 6 * MOST_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        _child(one.line(folder), folder, place)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    errors = (place / "err").read_text(errors="replace").replace(str(folder), "")
    found = Outcome(code, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, errors)
    # A child begins with the pages of the process that forks it, however large that one has become.
    found.defects = list(_defects(found, before, snapshot(folder), max(0, own_resident_bytes - _USUAL_BYTES)))
    shutil.rmtree(place, ignore_errors=True)
    return found


def _own_memory() -> tuple[int, int]:
    """Return the bytes of address space of this process, and of memory."""
    pages = Path("/proc/self/statm").read_text().split()
    return int(pages[0]) * resource.getpagesize(), int(pages[1]) * resource.getpagesize()


def _memory() -> Path | None:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


def _child(words: list[str], folder: Path, place: Path) -> None:
    from vftsim.cli import main as module

    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S + 1))
    signal.alarm(HANGS_S)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    faulthandler.dump_traceback_later(HANGS_S - 1, file=2)  # where it hangs
    sys.argv = ["vftsim", *words]
    os.chdir(folder)
    # As a command's own process does: an end at any instant may leave a file to the collector, and under the tests'
    # filter (every warning is an error) that prints a traceback which no user sees.
    warnings.simplefilter("ignore", ResourceWarning)
    try:
        code = module.console()
        sys.stdout.flush()
    except _Accepted:
        code = 0
    except BaseException:
        traceback.print_exc()
        code = CRASHED
    sys.stderr.flush()
    os._exit(code)


def snapshot(folder: Path) -> dict[str, Any]:
    """Return what is in a folder: every name with its content."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
        found[str(path.relative_to(folder))] = content
    return found


def _defects(found: Outcome, before: dict[str, Any], after: dict[str, Any], own_bytes: int = 0) -> Iterator[str]:
    if "Traceback (most recent call last)" in found.errors or found.code == CRASHED:
        yield "traceback: " + " | ".join(found.errors.strip().splitlines()[-5:])
    elif found.code in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL) or found.seconds > LONGEST_S:
        yield "took too long: " + " | ".join(found.errors.strip().splitlines()[:12])
    elif found.code not in (0, 1, 2, 3):
        yield f"ended with {found.code}: {found.errors[-300:]}"
    if found.most_bytes - own_bytes > MOST_BYTES:
        yield f"took {found.most_bytes / 1e6:.0f} MB"
    if found.code == 2:
        lines = found.errors.strip("\n").split("\n")
        if len(lines) != 1 or not lines[0].startswith("vftsim: ") or len(lines[0]) > LONGEST_MESSAGE:
            yield f"not one message: {found.errors[:1500]!r}"
        if before != after:
            names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
            if all(name.endswith(OURS) for name in names):
                return
            yield f"refused, and touched {names}: {found.errors.strip()[:200]}"


def prepare() -> None:
    """Import what commands need, and put the long computations aside."""
    from matplotlib.figure import Figure

    from vftsim.calibrate import run as calibrate_run
    from vftsim.calibrate import validate
    from vftsim.cli.main import command_line

    command_line()  # the same for every input; a child would spend most of its time on it

    def accepted(*_: Any, **__: Any) -> None:
        raise _Accepted

    def save(self: Any, path: Any, **_: Any) -> None:
        Path(path).write_bytes(b"a figure")

    calibrate_run.search_for = accepted  # type: ignore[attr-defined]
    validate.played = accepted  # type: ignore[attr-defined]
    Figure.savefig = save  # type: ignore[method-assign]
    KINDS["store"](random.Random(1))
    gc.collect()
    gc.freeze()  # children share the pages of what is there; collecting would copy them


def main() -> int:
    """Try as many inputs as asked; exit code 1 when one of them showed a defect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time, however many it were")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help=f"only this kind: {', '.join(KINDS)}")
    parser.add_argument("--keep", type=Path, help="folder for inputs with a defect")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="note every answer here, and go on from there")
    parser.add_argument("--messages", action="store_true", help="print every message of a refusal")
    parser.add_argument("--write", action="store_true", help="write the table into docs/robustness.md")
    chosen = parser.parse_args()
    prepare()
    lines = chosen.tally.read_text().splitlines() if chosen.tally and chosen.tally.exists() else []
    tally: list[dict[str, Any]] = [json.loads(line) for line in lines]
    before = {(line["seed"], line["number"]) for line in tally}
    some = makers(chosen.seed, [chosen.kind] if chosen.kind else KINDS)
    end = time.monotonic() + 60.0 * chosen.minutes
    for number, make in enumerate(itertools.islice(some, chosen.count)):
        if time.monotonic() > end:
            break
        if (chosen.seed, number) in before:
            continue
        one = make()
        found = answer(one)
        tally.append(
            {
                "seed": chosen.seed,
                "number": number,
                "kind": one.kind,
                "code": found.code,
                "seconds": found.seconds,
                "most_bytes": found.most_bytes,
                "defects": len(found.defects),
            }
        )
        if chosen.tally:
            with chosen.tally.open("a") as notes:
                notes.write(json.dumps(tally[-1]) + "\n")
        if chosen.messages:
            print(number, one.kind, found.code, found.errors.strip()[:400], flush=True)
        for text in found.defects:
            print(f"no. {number}, {one.kind}: {text}\n    {' '.join(one.words)[:300]!r}", flush=True)
        if found.defects and chosen.keep:
            chosen.keep.mkdir(exist_ok=True)
            (chosen.keep / f"{one.kind} {chosen.seed}-{number}.json".replace(" ", "_")).write_text(
                json.dumps({**one.as_data(), "defects": found.defects}, indent=1) + "\n"
            )
    text = _table(tally)
    print(text)
    if chosen.write:
        sys.path.insert(0, str(HERE.parent / "io-faults"))
        from table import put

        put(PAGE, "malformed.py", text)
    return int(any(line["defects"] for line in tally))


def _table(tally: list[dict[str, Any]]) -> str:
    sys.path.insert(0, str(HERE.parent / "io-faults"))
    from table import written

    rows = []
    for kind in [*KINDS, "all"]:
        some = [line for line in tally if kind in (line["kind"], "all")]
        codes = Counter(line["code"] for line in some)
        rows.append(
            [
                kind,
                f"{len(some):,}",
                f"{codes[2]:,}",
                f"{codes[1]:,}",
                f"{codes[0] + codes[3]:,}",
                f"{max((line['seconds'] for line in some), default=0.0):.1f} s",
                f"{max((line['most_bytes'] for line in some), default=0) / 1e6:.0f} MB",
                str(sum(line["defects"] for line in some)),
            ]
        )
    heads = ["input", "tried", "refused", "named as damaged", "accepted", "longest", "most memory", "defects"]
    return written(heads, rows)


if __name__ == "__main__":
    sys.exit(main())
