"""Studies that a page began: each a process with the command line of its address, one after the other.

A study's folder in the store is named by all that determines its result.  In it stand what was asked and how it ended
(``asked.json``), standard error of its process (``stderr.txt``) and the result itself (``result``), made by the command
alone: it keeps every finished replication, so that an interrupted study goes on and a finished one is never run again.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vftsim.errors import UsageError, VftsimError
from vftsim.files import write_json
from vftsim.study.store.lock import LOCK, DirectoryLock, Holder
from vftsim.study.store.store import MANIFEST

MOST_WAITING, MOST_KEPT = 12, 2000
_ASKED, _STDERR, _RESULT = "asked.json", "stderr.txt", "result"
_NAME = re.compile(r"[0-9a-f]{20}")
_OF = re.compile(r": (\d{1,9})/(\d{1,9})\b(?:.* - (\d{1,3}) % of number)?")
_TAIL_BYTES, _END_S, _LOOK_S = 2000, 20.0, 0.2
_DONE, _REFUSED, _STOPPED = 0, 2, 3
_STOPPING = "stopping: what has finished is being written"
_CHANGED = "vftsim: the model's file was changed since, or the store's; ask again"
Word = Literal["new", "waiting", "running", "done", "stopped", "refused"]


@dataclass(frozen=True)
class State:
    """How far a study has come: a word, what its process said last, and the share that is done."""

    word: Word
    last_line: str = ""
    share: float = 0.0


@dataclass(frozen=True)
class Study:
    """A command line, and the folder where it is kept."""

    folder: Path
    """In the store, named by all that determines the result."""
    words: tuple[str, ...]
    """What is asked of the command line."""
    address: str
    """Of the page that asks this alone."""

    @property
    def result(self) -> Path:
        return self.folder / _RESULT


class Runs:
    """The studies of a store, and the one process that works for them.

    The store is made if it is not there, and locked as long as this is open; one that another page uses, or that
    cannot be written, is refused.  Options are what every command line is given beside: workers, a limit of time.
    ``study_now`` gives the study that an address asks now: another one if the model's file was changed.  What a file of
    the store says is run only if it is that one.
    """

    def __init__(self, store: Path, options: Sequence[str], study_now: Callable[[str], Study]) -> None:
        self.store = store
        self._options, self._study_now = tuple(options), study_now
        try:
            store.mkdir(parents=True, exist_ok=True)
            self._lock = DirectoryLock(store)
            self._lock.acquire()
        except OSError as error:
            raise UsageError(f"cannot use '{store}': {error.strerror or error}") from None
        self._change = threading.Condition()
        self._waiting = [study for study, ended in self._all() if ended is None]
        self._running: Study | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = self._is_closed = False
        self._worker = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin with what waits; ``study_now`` is asked from here on."""
        self._worker.start()

    def command(self, study: Study) -> list[str]:
        """Return the whole command line of a study, but for the program."""
        resume = ["--resume"] if study.words[0] == "run" else []
        return [*study.words, *self._options, *resume, "-o", str(study.result)]

    def state(self, study: Study) -> State:
        with self._change:
            if study in self._waiting:
                return State("waiting")
            is_running, is_stopped = study == self._running, self._is_stopped
        last_line = _last_line(study.folder / _STDERR)
        if is_running:
            return State("running", _STOPPING if is_stopped else last_line, _share(last_line))
        ended = _ended(study)
        if ended is None:
            return State("new")
        if ended == _DONE:
            return State("done", share=1.0)
        return State("refused" if ended == _REFUSED else "stopped", last_line)

    def begin(self, study: Study) -> None:
        """Have a study run, or go on, unless it is done or under way; refuse if too many wait, or the store is full."""
        with self._change:
            if study in self._waiting or study == self._running or _ended(study) == _DONE:
                return
            if len(self._waiting) >= MOST_WAITING:
                raise UsageError(f"{MOST_WAITING} studies wait already; stop one, or ask again later")
            if not study.folder.exists() and sum(1 for _ in self.store.glob("*")) > MOST_KEPT:
                raise UsageError(f"the store holds {MOST_KEPT} studies: remove some, or name another one")
            _write(study, None)
            self._waiting.append(study)
            self._change.notify_all()

    def stop(self, study: Study) -> None:
        """Interrupt a study as Ctrl-C does: what has finished is kept."""
        with self._change:
            if study in self._waiting:
                self._waiting.remove(study)
                _write(study, _STOPPED)
            elif study == self._running:
                self._is_stopped = True
                self._interrupt()

    def past(self) -> list[tuple[Study, State]]:
        """Return every study of the store with its state, the latest first."""
        return [(study, self.state(study)) for study, _ in reversed(self._all())]

    def close(self) -> None:
        """End what runs; it goes on when the store is opened again."""
        with self._change:
            self._is_closed = True
            self._interrupt()
            self._change.notify_all()
        self._worker.join(_END_S)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._lock.release()

    def _all(self) -> list[tuple[Study, int | None]]:
        """Return what was asked so far and how it ended, the oldest first."""
        entries = [_read(each) for each in self.store.glob("*") if _NAME.fullmatch(each.name)]
        return [(study, ended) for _, study, ended in sorted(filter(None, entries), key=lambda each: each[0])]

    def _work(self) -> None:
        while True:
            with self._change:
                self._running = None
                self._change.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                self._running, self._is_stopped = self._waiting.pop(0), False
                study = self._running
            ended = self._run(study)
            with self._change:
                if self._is_closed and ended != _DONE:
                    return  # nobody stopped it: it goes on with the next start
                with contextlib.suppress(UsageError):  # a disk that is full: asked again, it goes on
                    _write(study, ended)

    def _run(self, study: Study) -> int:
        """Run a study's command; wait before for one that another process is at, such as one of a page that is gone."""
        while holder := _at_work(study.result):
            if self._is_closed or self._is_stopped:
                with contextlib.suppress(OSError):
                    os.kill(holder.pid, signal.SIGTERM)
                return _STOPPED
            time.sleep(_LOOK_S)
        self._process = None
        with self._change, contextlib.suppress(OSError), (study.folder / _STDERR).open("wb") as stderr:
            if self._is_closed or self._is_stopped:
                return _STOPPED
            if not self._is_as_asked(study):
                stderr.write(_CHANGED.encode())
                return _REFUSED
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vftsim", *self.command(study)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        return _STOPPED if self._process is None else self._process.wait()

    def _is_as_asked(self, study: Study) -> bool:
        try:
            return self._study_now(study.address) == study
        except VftsimError:
            return False

    def _interrupt(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()


def _at_work(result: Path) -> Holder | None:
    """Return the process of this host that writes a result just now; that of another one has another's number."""
    if not (result / LOCK).exists():
        return None
    lock = DirectoryLock(result)
    try:
        lock.acquire()
    except UsageError:
        holder = Holder.read(result / LOCK)
        return holder if holder is not None and holder.host == socket.gethostname() else None
    lock.release()
    return None


def _write(study: Study, ended: int | None) -> None:
    written = {"words": list(study.words), "address": study.address, "exit_code": ended}
    try:
        study.folder.mkdir(exist_ok=True)
        write_json(study.folder / _ASKED, written)
    except OSError as error:
        raise UsageError(f"cannot write in '{study.folder}': {error.strerror or error}") from None


def _read(folder: Path) -> tuple[float, Study, int | None] | None:
    """Return when something was asked in a folder, what, and how it ended; None if nothing says so."""
    path = folder / _ASKED
    try:
        written: Any = json.loads(path.read_text(encoding="utf-8"))
        ended = None if written["exit_code"] is None else int(written["exit_code"])
        study = Study(folder, tuple(map(str, written["words"])), str(written["address"]))
        return path.stat().st_mtime, study, ended
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ended(study: Study) -> int | None:
    """Return the exit code with which a study ended; None if it did not, or if its result is gone."""
    entry = _read(study.folder)
    if entry is None or (entry[2] == _DONE and not (study.result / MANIFEST).is_file()):
        return None
    return entry[2]


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = stream.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


def _share(line: str) -> float:
    """Return the share that a line of progress tells: ``run lab-virtual: 3/10 - 40 % of number 4``."""
    match = _OF.search(line)
    if match is None or not int(match[2]):
        return 0.0
    return min(1.0, (int(match[1]) + int(match[3] or 0) / 100.0) / int(match[2]))
