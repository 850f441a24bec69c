"""One writer for each directory: the second is refused and told who the first is; a dead holder holds nothing."""

import errno
import os
import socket
import subprocess
import sys
import threading

import pytest

from vftsim.errors import UsageError
from vftsim.study.store import lock as module
from vftsim.study.store.database import DATABASE
from vftsim.study.store.lock import LOCK, DirectoryLock
from vftsim.study.store.store import Store

HOLDS = """
import sys, time
from pathlib import Path
from vftsim.study.store.lock import DirectoryLock
DirectoryLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_the_second_is_told_who_the_first_is(tmp_path):
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    first.acquire()
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on {socket.gethostname()} since 2"):
        second.acquire()
    with pytest.raises(UsageError, match="in use"):
        second.refuse_taken()
    first.release()
    second.refuse_taken()
    second.acquire()
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_holder_holds_nothing(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(UsageError, match=f"process {process.pid} "):
            DirectoryLock(tmp_path).acquire()
        process.kill()
    assert (tmp_path / LOCK).exists(), "left behind, and no obstacle"
    mine = DirectoryLock(tmp_path)
    mine.acquire()
    mine.release()


def test_where_there_are_no_locks_the_database_keeps_the_second_out(tmp_path, monkeypatch):
    """As SQLite has it: its own locks are of another kind, and another process finds them."""
    monkeypatch.setattr(module, "_os_lock", lambda _: True)
    reads = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT * FROM studies')"
    with Store(tmp_path / "result", "run") as store:
        words = [sys.executable, "-c", reads, str(store.folder / DATABASE)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr


def test_of_many_at_once_one_gets_it(tmp_path):
    for _ in range(20):
        got, start = [], threading.Barrier(8)

        def take(got=got, start=start):
            lock = DirectoryLock(tmp_path)
            start.wait()
            try:
                lock.acquire()
            except UsageError:
                return
            got.append(lock)

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1
        got[0].release()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="opens what a link names")
def test_a_link_in_the_locks_place_makes_no_file_elsewhere(tmp_path):
    (tmp_path / LOCK).symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        DirectoryLock(tmp_path).acquire()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "once"), KeyboardInterrupt()])
def test_who_is_refused_with_the_lock_in_hand_leaves_no_file(tmp_path, monkeypatch, error):
    """A file system fails once, when the lock is there and is looked at: nothing is left, and the next has it."""
    errors = [error]

    def failing_once(one, other, samestat=os.path.samestat):
        if errors:
            raise errors.pop()
        return samestat(one, other)

    monkeypatch.setattr(os.path, "samestat", failing_once)
    lock = DirectoryLock(tmp_path)
    with pytest.raises(type(error)):
        lock.acquire()
    assert not list(tmp_path.iterdir())
    lock.acquire()
    assert (tmp_path / LOCK).is_file()
    lock.release()
    assert not list(tmp_path.iterdir())
