"""One writer for each directory: the second is refused and told who the first is; a dead holder holds nothing."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from vftsim.errors import UsageError
from vftsim.study.store import lock as module
from vftsim.study.store.lock import HOLDER, LOCK, DirectoryLock

HOLDS = """
import sys, time
from pathlib import Path
from vftsim.study.store.lock import DirectoryLock
DirectoryLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["of the system", "by name"])
def kind(request, monkeypatch):
    """With the operating system's locks, and where there are none."""
    if request.param == "by name":
        monkeypatch.setattr(module, "_os_lock", lambda _: None)
    return request.param


def test_the_second_is_told_who_the_first_is(tmp_path, kind):
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


def _left_by(tmp_path, pid, host):
    holder = {"pid": pid, "host": host, "command": "vftsim run", "since": "2026-01-01 00:00:00 UTC"}
    (tmp_path / HOLDER).write_text(json.dumps(holder))


def test_a_stale_name_is_recognised(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_os_lock", lambda _: None)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    _left_by(tmp_path, ended.pid, socket.gethostname())
    mine = DirectoryLock(tmp_path)
    mine.acquire()
    mine.release()
    _left_by(tmp_path, ended.pid, "another-host")
    with pytest.raises(UsageError, match=r"on another-host since .*if that is not so, remove"):
        mine.acquire()


def test_of_many_at_once_one_gets_it(tmp_path, kind):
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
