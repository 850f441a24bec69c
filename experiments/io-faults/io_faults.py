"""Make the n-th file operation of every command fail, for n = 1, 2, ... until none does; go on; compare.

    python experiments/io-faults/io_faults.py [--every K] [--case NAME] [--fault NAME] [--write]

A shared library (``faults.c``, compiled with ``cc``) stands before the C library, so that the files of Python and of
SQLite fail alike, below the command's own folder only.  Each command runs in a child of this process, which has
simulated everything once before: a replication is a pure function, so children take it from memory and only their
files are real.  Judged are the message (one, on standard error, no traceback), the exit code (2 or 3), that every
replication that was kept is still there and whole, and that the same command, started again without a fault, ends
with the files of an undisturbed one and leaves nothing beside them.  A fault that lasts (a disk that stays full) hits
the tidying up as well.  ``MemoryError`` is raised on entry to the n-th call of a function of vftsim.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import inspect
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES, Case, remember_simulations
from table import written

os.environ.setdefault("VFTSIM_ENGINE", "simpy")
HERE = Path(__file__).parent
SOURCE, PAGE = HERE / "faults.c", HERE.parents[1] / "docs" / "robustness.md"
OPEN, CREATE, WRITE, SYNC, RENAME, UNLINK, MKDIR, READ, STAT = (1 << bit for bit in range(9))
LONGEST_S, MOST, NEVER = 120, 5000, 1 << 60
ON_THE_WAY = (".try-", ".tmp-", ".importing-")
CRASHED, TRACEBACK = 99, b"Traceback (most recent call last)"


@dataclass(frozen=True)
class Fault:
    """What fails, how, and whether it stays so."""

    name: str
    kinds: int
    number: int
    lasts: bool


FAULTS = (
    Fault("ENOSPC, once", CREATE | WRITE | SYNC | RENAME | MKDIR, errno.ENOSPC, False),
    Fault("ENOSPC from then on", CREATE | WRITE | SYNC | RENAME | MKDIR, errno.ENOSPC, True),
    Fault("EROFS from then on", CREATE | RENAME | UNLINK | MKDIR, errno.EROFS, True),
    Fault("EIO of a write, once", WRITE | SYNC | RENAME, errno.EIO, False),
    Fault("EIO of a read, once", READ, errno.EIO, False),
    Fault("EACCES, once", OPEN | RENAME | UNLINK | MKDIR | STAT, errno.EACCES, False),
    Fault("EMFILE, once", OPEN, errno.EMFILE, False),
    Fault("EMFILE from then on", OPEN, errno.EMFILE, True),
)
MEMORY = Fault("MemoryError", 0, 0, False)


@dataclass
class Ended:
    """How a command ended."""

    code: int
    calls: int = 0
    hit: str = ""
    kept: int = 0
    errors: bytes = b""


@dataclass
class Tally:
    """What the faults of one kind did to one command."""

    points: int = 0
    injected: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)


def preloaded() -> ctypes.CDLL:
    """Return the library in this process; start the program anew with it where it is not there yet."""
    if "VFTSIM_FAULTS" not in os.environ:
        library = Path(tempfile.mkdtemp(prefix="vftsim-faults-")) / "faults.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        variables = {"LD_PRELOAD": str(library), "VFTSIM_FAULTS": str(library)}
        code = subprocess.run([sys.executable, *sys.argv], check=False, env={**os.environ, **variables}).returncode
        shutil.rmtree(library.parent)
        sys.exit(code)
    found = ctypes.CDLL(os.environ["VFTSIM_FAULTS"])
    found.faults_hit.restype, found.faults_calls.restype = ctypes.c_char_p, ctypes.c_long
    return found


def run(library: ctypes.CDLL, words: list[str], folder: Path, fault: Fault | None = None, nth: int = 0) -> Ended:
    """Run a command line in a child, its n-th operation failing."""
    place = Path(tempfile.mkdtemp(prefix="vftsim-child-"))
    child = os.fork()
    if child == 0:
        _child(library, words, folder, fault, nth, place)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = json.loads((place / "said").read_text()) if (place / "said").exists() else {}
    ended = Ended(code, errors=(place / "err").read_bytes(), **said)
    shutil.rmtree(place)
    return ended


def _child(library: ctypes.CDLL, words: list[str], folder: Path, fault: Fault | None, nth: int, place: Path) -> None:
    from vftsim.cli import main as module
    from vftsim.study.store.store import Store

    signal.alarm(LONGEST_S)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv, kept = ["vftsim", *words], Counter[int]()
    keep = Store.keep

    def counting(*arguments: Any) -> None:
        keep(*arguments)
        kept[0] += 1

    Store.keep = counting  # type: ignore[method-assign]
    count = _MemoryFault(nth) if fault is MEMORY else None
    try:
        if count is not None:
            sys.setprofile(count)
        elif fault is not None:
            library.faults_arm(str(folder).encode(), fault.kinds, ctypes.c_long(nth), fault.number, int(fault.lasts))
        code = module.console()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        code = CRASHED
    sys.setprofile(None)
    calls, hit = library.faults_calls(), library.faults_hit().decode(errors="replace")
    library.faults_arm(b"", 0, 0, 0, 0)
    sys.stderr.flush()
    if count is not None:
        calls, hit = count.calls, count.hit
    (place / "said").write_text(json.dumps({"calls": calls, "hit": hit, "kept": kept[0]}))
    os._exit(code)


class _MemoryFault:
    """Raises MemoryError on entry to the n-th call of a function of vftsim.

    Generators apart: to close one is a call too, and Python drops what is raised there.
    """

    def __init__(self, nth: int) -> None:
        self.nth, self.calls, self.hit = nth, 0, ""

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_flags & inspect.CO_GENERATOR:
            return
        if "/vftsim/" in code.co_filename and "/cli/output" not in code.co_filename:
            self.calls += 1
            if self.calls == self.nth:
                self.hit = f"{code.co_filename.rsplit('/vftsim/', 1)[1]} {code.co_name}"
                raise MemoryError


def points(library: ctypes.CDLL, case: Case, fault: Fault, every: int, place: Path) -> Iterator[int]:
    """Yield which operations fail: every k-th of those that an undisturbed command does."""
    folder = case.begin(place / "work")
    whole = run(library, case.words(folder), folder, fault, NEVER)
    shutil.rmtree(folder)
    if whole.code != case.code:
        raise RuntimeError(f"{case.name} without a fault ended with {whole.code}: {whole.errors.decode()}")
    choose = random.Random(f"{case.name} {fault.name}")
    if fault is MEMORY:
        yield from sorted(choose.randint(1, whole.calls) for _ in range(max(200 // every, 2)))
    elif whole.calls:
        yield from range(choose.randint(1, min(every, whole.calls)), min(whole.calls, MOST) + 1, every)


def judge(library: ctypes.CDLL, case: Case, fault: Fault, nth: int, place: Path) -> tuple[Ended, list[str]]:
    """Let one operation fail and go on; return how it ended and what was wrong."""
    folder = case.begin(place / "work")
    before = _names(folder)
    first = run(library, case.words(folder), folder, fault, nth)
    wrong = list(_wrong_end(case, first))
    if first.code == 2 and not fault.lasts and "unlink" not in first.hit and _names(folder) != before:
        wrong.append(f"refused, and left {sorted(_names(folder) - before)}")
    with contextlib.suppress(FileNotFoundError):
        if case.kept(folder) < first.kept:
            wrong.append(f"{first.kept} replications had been kept, {case.kept(folder)} are there")
    again = run(library, case.again(folder), folder)
    if again.code != case.code:
        wrong.append(f"could not go on ({again.code}): {again.errors.decode()[-300:]}")
    elif differing := _differing(case.results(folder), case.whole, fault.lasts and fault.number != errno.ENOSPC):
        wrong.append(f"different: {differing}")
    shutil.rmtree(folder)
    return first, wrong


def _wrong_end(case: Case, end: Ended) -> Iterator[str]:
    lines = [line for line in end.errors.decode().splitlines() if not case.remarks(line)]
    if TRACEBACK in end.errors or end.code == CRASHED:
        yield "traceback: " + " | ".join(lines[-6:])
    elif end.code < 0:
        yield f"ended by signal {-end.code}"
    elif end.code == case.code:
        if lines and case.code == 0:
            yield f"ended well and said {lines}"
    elif end.code not in case.may:
        yield f"exit code {end.code}"
    elif end.code != 1 and (len(lines) != 1 or not lines[0].startswith("vftsim: ")):
        yield f"not one message: {lines}"
    elif any("standard output" in line for line in lines):
        yield f"blames standard output: {lines[0]}"


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _differing(found: dict[str, Any], whole: dict[str, Any], tidies_nothing: bool) -> list[str]:
    """Return names of different files; what cannot be removed stays on the way."""
    names = (name for name in {*found, *whole} if found.get(name) != whole.get(name))
    return sorted(name for name in names if not (tidies_nothing and any(part in name for part in ON_THE_WAY)))


def tally(library: ctypes.CDLL, case: Case, fault: Fault, every: int, place: Path) -> Tally:
    """Let one kind of fault hit one command wherever it can."""
    found = Tally()
    for nth in points(library, case, fault, every, place):
        found.points += 1
        end, wrong = judge(library, case, fault, nth, place)
        found.injected += bool(end.hit)
        found.codes[end.code] += 1
        found.messages[f"{end.code} {end.errors.decode().replace(str(place), '').strip()[-200:]}"] += 1
        for text in wrong:
            found.defects.append(f"{case.name}, {fault.name}, no. {nth} ({end.hit}): {text}".replace(str(place), ""))
            print(found.defects[-1], flush=True)
    return found


def rows(found: dict[tuple[str, str], Tally]) -> list[list[str]]:
    """Return the table: a row for each command, all faults together, and one for each fault."""
    names: list[tuple[str, Callable[[tuple[str, str]], bool]]] = []
    names += [(f"`{name}`", lambda key, name=name: key[0] == name) for name in dict.fromkeys(c for c, _ in found)]
    names += [(name, lambda key, name=name: key[1] == name) for name in dict.fromkeys(f for _, f in found)]
    names += [("all", lambda _: True)]
    lines = []
    for name, chosen in names:
        some = [one for key, one in found.items() if chosen(key)]
        codes = sum((one.codes for one in some), Counter[int]())
        ended = ", ".join(f"{number} with {code}" for code, number in sorted(codes.items()))
        lines.append([name, str(sum(one.injected for one in some)), ended, str(sum(len(one.defects) for one in some))])
    return lines


def main() -> int:
    """Inject every fault into every command; exit code 1 when anything was lost, mixed or badly said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only every k-th operation")
    parser.add_argument("--case", action="append", help=f"only this command: {', '.join(case.name for case in CASES)}")
    parser.add_argument("--fault", action="append", help="only this fault")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing new after this time")
    parser.add_argument("--messages", action="store_true", help="print every message and how often it came")
    parser.add_argument("--write", action="store_true", help="write the table into docs/robustness.md")
    chosen = parser.parse_args()
    library = preloaded()
    remember_simulations()
    found: dict[tuple[str, str], Tally] = {}
    end = time.monotonic() + 60.0 * chosen.minutes
    memory = Path("/dev/shm")  # waits for no disk
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        place = Path(name)
        os.chdir(place)
        for case in CASES:
            if (chosen.case and case.name not in chosen.case) or time.monotonic() > end:
                continue
            case.learn(place)
            for fault in (*FAULTS, MEMORY):
                if not chosen.fault or fault.name in chosen.fault:
                    found[case.name, fault.name] = tally(library, case, fault, chosen.every, place)
    heads = ["command or fault", "faults", "the command ended", "defects"]
    text = written(heads, rows(found))
    print(text)
    if chosen.messages:
        for message, number in sum((one.messages for one in found.values()), Counter[str]()).most_common():
            print(f"{number:6} {message}")
    if chosen.write:
        from table import put

        put(PAGE, "io_faults.py", text)
    return int(any(one.defects for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
