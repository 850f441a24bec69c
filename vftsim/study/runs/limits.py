"""Limits of a study: what it takes is said beforehand, asked for when it is much, refused when it is too much.

The check stands before a result's directory is opened, so that a refusal writes nothing.  A study that takes longer
than it may, or more memory, is ended as Ctrl-C ends it.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from vftsim.errors import UsageError
from vftsim.study.runs.estimate import Needs, duration_in_words, in_words

WORTH_SAYING_S = 60.0
LONG_S = 3600.0
_S = 1e9
_LOOK_S = 0.1


@dataclass(frozen=True)
class Limits:
    """Limits set by the user."""

    is_agreed: bool = False
    """Begin, however long it takes."""
    most_ns: int | None = None
    """Time after which the study ends as if interrupted."""
    most_bytes: int | None = None
    """Memory that it may need; without it a quarter of the machine's is asked about."""


def check(needs: Needs, jobs: int, limits: Limits, confirm: Callable[[str], bool]) -> str:
    """Return what to say of a study that takes much when it begins, if it may begin; empty: nothing.

    ``confirm`` asks the user whether to go on; without anybody to ask, False.  Refused is what takes too much, or what
    nobody agreed to.
    """
    words = in_words(needs, jobs)
    memory = needs.memory_bytes(jobs)
    if limits.most_bytes is not None and memory > limits.most_bytes:
        raise UsageError(
            f"this takes {words}, and --max-memory allows {limits.most_bytes / 1e9:.2g} GB; fewer --jobs, shorter "
            "steps or a longer sample_period take less"
        )
    seconds = needs.wall_seconds(jobs)
    is_bounded = limits.most_ns is not None and limits.most_ns <= LONG_S * _S
    is_long = seconds > LONG_S and not is_bounded
    is_large = limits.most_bytes is None and memory > memory_of_machine() / 4
    if (is_long or is_large) and not limits.is_agreed and not confirm(f"this takes {words}; begin?"):
        why = "above an hour" if is_long else "above a quarter of this machine's memory"
        raise UsageError(
            f"this takes {words}, {why}; --yes begins it all the same, --quick, --scale or fewer replications take less"
        )
    return f"this takes {words}" if seconds > WORTH_SAYING_S else ""


def memory_of_machine() -> float:
    """Return the bytes of memory of this machine; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


@contextmanager
def ended_beyond(most_ns: int | None, most_bytes: int | None, notify: Callable[[str], None]) -> Iterator[None]:
    """Interrupt what is inside after a time, or when its processes together use more memory; as Ctrl-C does.

    What has finished is kept.  Either it is interrupted, and that is said, or it is left: never one after the other.
    """
    if (most_ns, most_bytes) == (None, None) or threading.current_thread() is not threading.main_thread():
        yield
        return
    main, over, left, deciding = threading.main_thread(), threading.Event(), threading.Event(), threading.Lock()
    end_s = math.inf if most_ns is None else time.monotonic() + most_ns / _S

    def watch() -> None:
        while not left.wait(max(0.0, min(end_s - time.monotonic(), math.inf if most_bytes is None else _LOOK_S))):
            used = 0 if most_bytes is None else memory_in_use()
            if most_bytes is not None and used > most_bytes:
                why = f"{used / 1e6:.0f} MB of memory are used, --max-memory allows {most_bytes / 1e6:.0f} MB"
            elif most_ns is not None and time.monotonic() >= end_s:
                why = f"the --max-time of {duration_in_words(most_ns / _S)} is over"
            else:
                continue
            with deciding:
                if not left.is_set():
                    notify(why)
                    over.set()
                    _interrupt(main)
            return

    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGINT, _ignoring_until(over))
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        try:
            with deciding:
                left.set()
        finally:
            if is_ignored:
                signal.signal(signal.SIGINT, signal.SIG_IGN)


def memory_in_use() -> int:
    """Return the bytes that this process and all below it hold together; 0 where the system does not say.

    As ``top`` shows it of each (RES): libraries that several share count for each of them.  A child that has not begun
    its own program yet has its parent's memory, which counts once.
    """
    processes, held = [(os.getpid(), "")], 0
    for pid, of_parent in processes:  # which grows meanwhile
        statm = _memory_of(pid)
        if statm in ("", of_parent):
            continue
        held += int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                processes += ((int(child), statm) for child in children.read_text().split())
    return held


def _memory_of(process: int) -> str:
    """Return what the system says of a process' memory, in pages: whole, resident, shared, ...; empty: it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{process}/statm").read_text()
    return ""


def _ignoring_until(over: threading.Event) -> Callable[[int, FrameType | None], None]:
    """Return what handles Ctrl-C where it is ignored (a job in the background of a script): the end of time is heard.

    Once only, as the orderly end is not to be disturbed.
    """

    def handle(_: int, __: FrameType | None) -> None:
        if over.is_set():
            over.clear()
            raise KeyboardInterrupt

    return handle


def _interrupt(thread: threading.Thread) -> None:
    """Send Ctrl-C's signal to a thread, so that what it waits for is interrupted as well."""
    if hasattr(signal, "pthread_kill") and thread.ident is not None:
        signal.pthread_kill(thread.ident, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
