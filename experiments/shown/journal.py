"""Commands that the documentation shows, run once each for a state of the sources and kept.

A command runs in a folder of its own, with a copy of the sources that nobody edits meanwhile: one for all commands of
one state of them, so that Python translates its modules once.  What it printed and wrote is kept under the hash of the
command and of the sources it may read, so a run that was ended goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".shown"
READ = ("vftsim/**/*.py", "models/*.yaml", "calibration/**/*.yaml", "calibration/**/*.csv", "calibration/**/*.json")
"""What any command may read."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``docs/shown.yaml``."""

    name: str
    run: str
    """As it is typed; words of :attr:`options` are for this script."""
    options: str = ""
    quick: bool = False
    tolerance: float = 0.0
    """Share by which figures may differ beyond a unit of the last digit."""
    exact: tuple[str, ...] = ()
    """Columns of a table without it: what a run counts."""
    exit: tuple[int, ...] = (0,)
    values: Mapping[str, str] = field(default_factory=dict)
    writes: str = ""
    """Page into which it writes by itself, and the name of its marks there."""
    why: str = ""
    """Why figures may differ, or what hinders."""

    def key(self, written: frozenset[Path]) -> str:
        """Return the hash of the command and of what it reads; files that are results are not read."""
        found = hashlib.sha256(f"{self.run} {self.options}".encode())
        rooms = [Path(word).parent for word in self.run.split() if word.startswith("experiments/")]
        room_patterns = [str(room / pattern) for room in rooms for pattern in ("*.py", "*.json")]
        for path in sorted({path for pattern in (*READ, *room_patterns) for path in ROOT.glob(pattern)} - written):
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + _content(path) + b"\0")
        return found.hexdigest()[:20]

    def words(self, tree: Path) -> list[str]:
        """Return what is executed, with the sources of a tree."""
        first, *rest = shlex.split(f"{self.run} {self.options}")
        begin = [sys.executable, *(["-m", "vftsim"] if first == "vftsim" else [])]
        rooms = ("experiments/", "calibration/")
        return begin + [str(tree / word) if word.startswith(rooms) else word for word in rest]


@dataclass(frozen=True, slots=True)
class Kept:
    """A command that has run."""

    folder: Path

    @property
    def is_there(self) -> bool:
        """Say whether it ran to its end."""
        return (self.folder / "ran.json").exists()

    @property
    def ran(self) -> dict[str, Any]:
        """Its exit code, its seconds, and how it ended."""
        found: dict[str, Any] = json.loads((self.folder / "ran.json").read_text(encoding="utf-8"))
        return found

    @property
    def printed(self) -> str:
        """Its standard output."""
        return (self.folder / "printed").read_text(encoding="utf-8")

    def held(self, name: str, now: bool) -> bool:
        """Return whether a block held when it was first looked at after this run; ``now``: whether it does."""
        path = self.folder / "held.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if name not in known:
            known[name] = now
            path.write_text(json.dumps(known, indent=1), encoding="utf-8")
        return bool(known[name])


def run(command: Command, key: str) -> Kept:
    """Run a command unless it ran well; what a run that was ended or failed left is begun anew."""
    kept = Kept(KEPT / f"{command.name}-{key}")
    if kept.is_there and kept.ran["exit"] in command.exit:
        return kept
    shutil.rmtree(kept.folder, ignore_errors=True)
    work = kept.folder / "work"
    work.mkdir(parents=True)
    tree = _tree()
    if command.writes:
        tree = Path(shutil.copytree(tree, kept.folder / "tree"))
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin_s = time.monotonic()
    with (kept.folder / "printed").open("wb") as out, (kept.folder / "errors").open("wb") as err:
        done = subprocess.run(command.words(tree), cwd=work, env=environment, stdout=out, stderr=err, check=False)
    if command.writes:
        page = command.writes.split()[0]
        shutil.copyfile(tree / page, work / Path(page).name)
        shutil.rmtree(tree)
    said = (kept.folder / "errors").read_text(encoding="utf-8", errors="replace")[-2000:]
    ran = {
        "seconds": round(time.monotonic() - begin_s, 1),
        "exit": done.returncode,
        "errors": said,
        "run": command.run,
        "day": time.strftime("%Y-%m-%d"),
    }
    (kept.folder / "ran.json").write_text(json.dumps(ran, indent=1), encoding="utf-8")
    return kept


def _tree() -> Path:
    """Return a copy of all sources as they are now; copies of what they were before go."""
    sources = {path.relative_to(ROOT): _content(path) for path in sorted(_sources())}
    found = hashlib.sha256()
    for path, content in sources.items():
        found.update(f"{path} {len(content)}\0".encode() + content)
    tree = KEPT / f"tree-{found.hexdigest()[:20]}"
    if not tree.exists():
        for old in KEPT.glob("tree-*"):
            shutil.rmtree(old)
        # Under its name once it is whole: a copy that was ended is none.
        begun = KEPT / "tree-begun"
        begun.mkdir()
        for path, content in sources.items():
            (begun / path).parent.mkdir(parents=True, exist_ok=True)
            (begun / path).write_bytes(content)
        begun.rename(tree)
    return tree


def _content(path: Path) -> bytes:
    """Return what a file has, read anew only where it was written since."""
    state = path.stat()
    return _read(path, state.st_mtime_ns, state.st_size)


@cache
def _read(path: Path, written_ns: int, size_bytes: int) -> bytes:
    return path.read_bytes()


def _sources() -> Iterator[Path]:
    """Yield every file of the checkout that a command may need."""
    for room in ("vftsim", "models", "calibration", "experiments", "docs", "tests"):
        yield from (p for p in (ROOT / room).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    yield from (ROOT / name for name in ("README.md", "pyproject.toml"))
