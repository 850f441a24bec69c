"""Put faults into the code, one at a time, and see whether the tests notice.

    python experiments/mutants/mutants.py [--minutes M] [--file PART] [--write]
    python experiments/mutants/mutants.py --propose 120 --seed 1
    python experiments/mutants/mutants.py --count

``mutants.json`` is the list that is kept: file, old text (there once), new text, the tests that should notice, and for
a fault that none needs to notice the reason.  Each is made in a copy of the tree; the tests run in a child of this
process that has imported what vftsim stands on, but nothing of vftsim.  A fault that no test notices survives; exit
code 1 if more than one in twenty does, or one without a reason.  ``--propose`` writes a new list: comparisons,
signs, factors and conditions changed at random places.  ``--every 3 --from 1`` takes faults 1, 4, 7, ... of the list.

What became of a fault is kept in ``tried.jsonl`` beside this script, so an interrupted attack goes on where it was; a
fault is tried anew once the file that it changes or one of its tests has changed, or with ``--anew``.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "io-faults"))

from table import put, written

TREE = Path(__file__).parents[2]
LIST, PAGE = Path(__file__).parent / "mutants.json", TREE / "docs" / "robustness.md"
TRIED = Path(__file__).parent / "tried.jsonl"
LONGEST_S, MOST_BYTES = 30, 4_000_000_000
"""Of CPU, and of address space; on the clock 30 times as long.  A fault that ends nothing is noticed too."""
PARTS = {
    "kernel/wheel.py": "kernel/test_wheel.py",
    "kernel/simpy_engine.py": "kernel/test_engines.py",
    "platform/arithmetic.py": "platform/cpu/test_exact.py",
    "platform/cpu/host.py": "platform/cpu/test_host_corners.py",
    "platform/cpu/shared_queue.py": "platform/cpu/test_other_schedules.py platform/cpu/test_host_corners.py",
    "platform/cpu/schedulers/_credit_rules.py": "platform/cpu/test_xen_schedules.py",
    "platform/cpu/schedulers/_credit_accounting.py": (
        "platform/cpu/test_xen_schedules.py platform/cpu/test_scheduler_guarantees.py"
    ),
    "platform/cpu/schedulers/credit.py": "platform/cpu/test_xen_schedules.py",
    "platform/cpu/schedulers/credit2.py": "platform/cpu/test_credit2_schedules.py",
    "platform/cpu/schedulers/sedf.py": "platform/cpu/test_sedf_schedules.py platform/cpu/test_xen_schedules.py",
    "platform/cpu/schedulers/rtds.py": "platform/cpu/test_xen_schedules.py platform/cpu/test_other_schedules.py",
    "platform/cpu/schedulers/cfs.py": "platform/cpu/test_other_schedules.py platform/cpu/test_cfs_weights.py",
    "platform/io/link.py": "net/test_link.py",
    "platform/io/nic.py": "net/test_nics.py platform/test_nic_and_rings.py",
    "platform/io/ring.py": "platform/test_nic_and_rings.py",
    "platform/delays.py": "platform/test_delay_counts.py",
    "platform/protection/channel.py": "protection/test_channel_and_replay.py",
    "platform/protection/replay.py": "protection/test_channel_and_replay.py",
    "platform/protection/log_writer.py": "protection/test_channel_and_replay.py protection/test_lockstep_limits.py",
    "platform/protection/throttle.py": "protection/test_lockstep_limits.py",
    "platform/protection/migration.py": "protection/test_migration.py",
    "platform/protection/memory.py": "protection/test_checkpoint.py",
    "platform/protection/output_buffer.py": "protection/test_checkpoint.py",
    "platform/protection/commit.py": "protection/test_output_commit.py",
    "workloads/sip/retransmission.py": "sip/test_retransmission.py",
    "workloads/tcp/connection.py": "workloads/test_tcp_rules.py",
    "workloads/voice_quality.py": "workloads/test_voice_quality.py",
    "workloads/windows.py": "workloads/test_tcp_windows.py",
    "workloads/ramp.py": "sip/test_ramp_end.py",
    "workloads/ims_bench/verdict.py": "sip/test_verdict_counts.py sip/test_ramp_end.py",
    "workloads/ims_bench/subscribers.py": "sip/test_subscribers.py",
    "stats/intervals.py": "stats/test_intervals.py",
    "stats/histogram.py": "stats/test_histogram.py",
    "stats/percentiles.py": "stats/test_percentiles.py",
    "spec/units.py": "spec/test_spec_units.py",
    "study/store/database.py": "study/test_check.py",
    "study/store/lock.py": "study/test_lock.py",
}
"""Files that ``--propose`` changes, and the tests that are about them."""
CHANGES = (
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " // "),
    (r" // ", " * "),
    (r" and ", " or "),
    (r" or ", " and "),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\bnot ", ""),
    (r"\bTrue\b", "False"),
    (r"\bFalse\b", "True"),
    (r"\b1\b", "2"),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r"\b0\b", "1"),
    (r" / ", " * "),
    (r"\b2\b", "3"),
)


def statements(path: Path) -> Iterator[int]:
    """Yield the lines of code in functions, without heads, documentation and what refuses."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for one in function.body:
            for node in ast.walk(one):
                is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                if (
                    isinstance(node, ast.stmt)
                    and not is_text
                    and not isinstance(node, (ast.Raise, ast.ImportFrom, ast.Assert))
                ):
                    yield node.lineno


def propose(count: int, seed: int) -> list[dict[str, str]]:
    """Return faults at random places, spread over the files."""
    choose, found, seen = random.Random(seed), [], set()
    names = list(PARTS)
    for number in range(count * 20):
        name = names[number % len(names)]
        path = TREE / "vftsim" / name
        lines = path.read_text(encoding="utf-8").splitlines()
        at = choose.choice(sorted(set(statements(path))) or [1]) - 1
        fitting = [(old, new) for old, new in CHANGES if re.search(old, lines[at].split("  # ")[0])]
        if not fitting or '"' in lines[at]:
            continue
        old, new = choose.choice(fitting)
        changed = re.sub(old, new, lines[at], count=1)
        whole = "\n".join(lines[max(at - 1, 0) : at + 1])
        if (name, at) in seen or path.read_text(encoding="utf-8").count(whole) != 1:
            continue
        seen.add((name, at))
        new_text = "\n".join([*lines[max(at - 1, 0) : at], changed])
        tests = " ".join(f"tests/{test}" for test in PARTS[name].split())
        found.append({"file": f"vftsim/{name}", "old": whole, "new": new_text, "tests": tests, "reason": ""})
        if len(found) == count:
            break
    return sorted(found, key=lambda one: one["file"])


def survives(one: dict[str, str], copy: Path) -> bool:
    """Put a fault into the copy, run its tests, take it out again: whether none has noticed."""
    path = copy / one["file"]
    good = path.read_text(encoding="utf-8")
    assert good.count(one["old"]) == 1, f"{one['file']}: no longer there once: {one['old']}"
    path.write_text(good.replace(one["old"], one["new"]), encoding="utf-8")
    try:
        child = os.fork()
        if child == 0:
            _run_tests(one["tests"].split(), copy)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        path.write_text(good, encoding="utf-8")


def _run_tests(tests: list[str], copy: Path) -> None:
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.alarm(30 * LONGEST_S)
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    os.environ |= {"VFTSIM_ENGINE": "simpy", "PYTHONPATH": str(copy)}
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    code = 1
    try:
        code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    finally:
        # Also where pytest itself fails: unwound, this child would remove the parent's copy of the tree.
        os._exit(code)


def identity(one: dict[str, str]) -> str:
    """Return what tells a fault from others and from itself before its file or its tests changed."""
    found = hashlib.sha256(f"{one['old']}\0{one['new']}".encode())
    for name in (one["file"], *one["tests"].split()):
        found.update((TREE / name).read_bytes())
    return found.hexdigest()


def known() -> dict[str, bool]:
    """Return which faults were tried before, and whether they survived."""
    lines = TRIED.read_text(encoding="utf-8").splitlines() if TRIED.exists() else []
    return {found["fault"]: found["survived"] for found in map(json.loads, lines)}


def note(fault: str, survived: bool) -> None:
    """Keep what became of a fault."""
    with TRIED.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"fault": fault, "survived": survived}) + "\n")


def copied(place: Path) -> Path:
    """Return a copy of the tree that may be changed."""
    for part in ("vftsim", "tests", "models", "calibration", "experiments", "docs"):
        shutil.copytree(TREE / part, place / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TREE / "pyproject.toml", place)
    compileall.compile_dir(place / "vftsim", quiet=2)  # or every child would do it
    return place


def attack(everything: list[dict[str, str]], end: float, *, anew: bool) -> Iterator[tuple[dict[str, str], bool]]:
    """Yield faults and whether they survived, until the time is over."""
    before = {} if anew else known()
    with tempfile.TemporaryDirectory() as place:
        copy = copied(Path(place))
        for one in everything:
            fault = identity(one)
            if fault not in before:
                if time.monotonic() > end:
                    continue
                begun = time.monotonic()
                before[fault] = survives(one, copy)
                note(fault, before[fault])
                name = one["file"].removeprefix("vftsim/")
                how = "survives" if before[fault] else "noticed"
                print(f"{how} after {time.monotonic() - begun:.0f} s: {name}", file=sys.stderr, flush=True)
            yield one, before[fault]


def _import_what_is_below() -> None:
    import matplotlib.figure
    import pandas
    import pydantic
    import pytest
    import scipy.stats
    import simpy
    import typer

    assert all((matplotlib, pandas, pydantic, pytest, scipy, simpy, typer))
    assert not any(name.split(".")[0] == "vftsim" for name in sys.modules)


def stands(fault: Mapping[str, str]) -> bool:
    """Whether the text that a fault changes is there once, and the tests that should notice are there."""
    file, tests = TREE / fault["file"], [TREE / test.split("::")[0] for test in fault["tests"].split()]
    return file.exists() and file.read_text().count(fault["old"]) == 1 and all(test.exists() for test in tests)


def main() -> int:
    """Try the list; exit code 1 if too many faults survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--propose", type=int, metavar="COUNT", help="write a new list")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time, however many it were")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="take every K-th fault only")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="begin with this one")
    parser.add_argument("--file", help="only faults of files with this in their name")
    parser.add_argument("--anew", action="store_true", help="try those again that were tried before")
    parser.add_argument("--count", action="store_true", help="try nothing; say how many faults the list has")
    parser.add_argument("--write", action="store_true", help="write the table into docs/robustness.md")
    chosen = parser.parse_args()
    if chosen.propose:
        LIST.write_text(json.dumps(propose(chosen.propose, chosen.seed), indent=1) + "\n", encoding="utf-8")
        return 0
    everything = json.loads(LIST.read_text(encoding="utf-8"))[chosen.first :: chosen.every]
    everything = [one for one in everything if (chosen.file or "") in one["file"]]
    if stale := [f"{one['file']}: {one['old']}" for one in everything if not stands(one)]:
        print("no longer to be put in, since their file, their text or their tests are not there:", *stale, sep="\n  ")
        return 1
    if chosen.count:
        print(f"{len(everything)} faults in {len({one['file'] for one in everything})} files")
        return 0
    random.Random(chosen.seed).shuffle(everything)
    _import_what_is_below()
    tried, alive, unexplained = Counter[str](), Counter[str](), 0
    for one, survived in attack(everything, time.monotonic() + 60.0 * chosen.minutes, anew=chosen.anew):
        place = "/".join(one["file"].split("/")[1:3]).removesuffix(".py")
        tried[place] += 1
        if survived:
            alive[place] += 1
            unexplained += not one["reason"]
            said = f"{one['old']}\n  ->\n{one['new']}\n  {one['reason']}"
            print(f"survives ({tried.total()} tried): {one['file']}\n{said}", flush=True)
    rows = [[f"`{place}`", str(tried[place]), str(alive[place])] for place in sorted(tried)]
    text = written(["part", "faults", "survived"], [*rows, ["all", str(tried.total()), str(alive.total())]])
    print(text)
    if chosen.write:
        put(PAGE, "mutants.py", text)
    return int(alive.total() > 0.05 * tried.total() or unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
