"""Record how Linux schedules two programs of known demand on one processor, for `vftsim trace --beside`.

    python experiments/recorded-schedule/record.py recorded.txt    # as root, with perf; vftsim is not needed

*periodic* takes 4 ms of CPU time by its own clock, sleeps 16 ms, and begins again; *batch* computes without end.  Both
run on the last processor, in namespaces of their own (processes, network) and in a control group with ten times the
weight of a plain one, so that what else the machine does disturbs little.  ``host.yaml`` is the same as a model.

Two seconds are recorded, from one second after the start.  Threads of other programs are called `other`: who they were
is nobody's business.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DEMAND_NS, SLEEP_NS = 4_000_000, 16_000_000
PLAYED_S, BEFORE_S, RECORDED_S = 5.0, 1.0, 2.0
GROUP = f"vftsim-{os.getpid()}"
_HEAVY = ((Path("/sys/fs/cgroup/cpu"), "cpu.shares", "10240"), (Path("/sys/fs/cgroup"), "cpu.weight", "1000"))
_COMM = re.compile(r"(\b(?:prev_|next_)?comm=)(.*?)( (?:prev_|next_)?pid=)")


def batch() -> None:
    """Compute without end."""
    while True:
        pass


def periodic() -> None:
    """Take a demand of CPU time, sleep, and begin again."""
    while True:
        end_ns = time.thread_time_ns() + DEMAND_NS
        while time.thread_time_ns() < end_ns:
            pass
        time.sleep(SLEEP_NS / 1e9)


def play(cpu: int) -> None:
    """Run both for a while."""
    os.sched_setaffinity(0, {cpu})
    programs: tuple[Callable[[], None], ...] = (periodic, batch)
    children = []
    for program in programs:
        if not (child := os.fork()):
            Path("/proc/self/comm").write_text(program.__name__)
            program()
        children.append(child)
    os.sched_setaffinity(0, {0})
    time.sleep(PLAYED_S)
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)


@contextmanager
def heavy() -> Iterator[Path | None]:
    """Make a control group with ten times a plain one's weight; none where the machine has no such groups."""
    for room, name, weight in _HEAVY:
        folder = room / GROUP
        try:
            folder.mkdir()
            (folder / name).write_text(weight)
        except OSError:
            if folder.is_dir():
                folder.rmdir()
            continue
        try:
            yield folder
        finally:
            folder.rmdir()
        return
    print("No control group here: whatever else runs disturbs as much as either program.", file=sys.stderr)
    yield None


def record(cpu: int) -> str:
    """Return the text of the recording."""
    with tempfile.TemporaryDirectory() as folder, heavy() as group:
        apart = ["unshare", "--pid", "--net", "--fork", "--mount-proc", sys.executable, __file__, "--play", str(cpu)]
        if group is not None:
            apart = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *apart]
        with subprocess.Popen(apart) as played:
            time.sleep(BEFORE_S)
            data = Path(folder) / "perf.data"
            events = ["-e", "sched:sched_switch", "-e", "sched:sched_waking"]
            perf = ["perf", "record", "-q", *events, "-C", str(cpu), "-o", str(data), "sleep", str(RECORDED_S)]
            subprocess.run(perf, check=True)
            said = subprocess.run(
                ["perf", "script", "--ns", "-F", "comm,tid,cpu,time,event,trace", "-i", str(data)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            played.wait()
    return "".join(f"{line}\n" for line in map(_plain, said.splitlines()) if line)


def _plain(line: str) -> str:
    """Return a line without names of other programs."""
    head, _, rest = line.partition(" [")
    name = " ".join(head.split()[:-1])
    rest = _COMM.sub(lambda found: f"{found[1]}{_known(found[2])}{found[3]}", rest)
    return f"{_known(name)} {head.split()[-1]} [{rest}" if rest else ""


def _known(name: str) -> str:
    return name if name in {"periodic", "batch", "swapper"} or name.startswith("swapper/") else "other"


def main() -> None:
    """Play, or record and write."""
    if sys.argv[1:2] == ["--play"]:
        play(int(sys.argv[2]))
    elif len(sys.argv) == 2:
        text = record(max(os.sched_getaffinity(0)))
        Path(sys.argv[1]).write_text(text)
        print(f"{text.count(chr(10))} events in {sys.argv[1]}")
    else:
        raise SystemExit(f"usage: {sys.argv[0]} FILE")


if __name__ == "__main__":
    main()
