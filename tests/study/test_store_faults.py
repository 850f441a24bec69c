"""Every system call of a store fails once, wherever it is: one message, nothing lost, and then the same result."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest
from test_store import ONE, OTHER, snapshot, writes

from vftsim.errors import StorageError, UsageError
from vftsim.study.store import database
from vftsim.study.store.check import check
from vftsim.study.store.database import DATABASE
from vftsim.study.store.store import Opening, Store

CALLS = [(os, name) for name in ("fsync", "open", "replace", "rename", "unlink", "mkdir", "write")]
CALLS += [(Path, name) for name in ("open", "replace", "mkdir", "stat")]
CALLS += [(sqlite3, "connect")]
MOST = 60


class Fault:
    """Lets the n-th call fail."""

    def __init__(self, owner, name, nth, number):
        self.owner, self.name, self.nth, self.number = owner, name, nth, number
        self.original, self.calls = getattr(owner, name), 0

    def __call__(self, *arguments, **named):
        self.calls += 1
        if self.calls == self.nth:
            raise OSError(self.number, os.strerror(self.number))
        return self.original(*arguments, **named)

    def put(self, patch):
        def called(*arguments, **named):  # a function binds as a method where it stands for one
            return self(*arguments, **named)

        patch.setattr(self.owner, self.name, called)


def study(folder):
    """Begin or go on: three replications and their files."""
    with Store(folder, "run", Opening.CONTINUE) as store:
        known = store.known(ONE)
        for number in range(3):
            if number not in known:
                store.keep(ONE, number, {"x": number})
        store.finish(writes(a_csv="a", b_csv="b"))


def replaced(folder):
    with Store(folder, "run", Opening.REPLACE) as store:
        store.keep(OTHER, 0, {"x": 9})
        store.finish(writes(a_csv="new"))


def files_of(folder):
    return {name: data for name, data in snapshot(folder).items() if name != DATABASE}


@pytest.mark.thorough
@pytest.mark.parametrize(("owner", "name"), CALLS, ids=lambda value: getattr(value, "__name__", value))
def test_any_call_may_fail(tmp_path, owner, name):
    for nth in range(1, MOST):
        folder = tmp_path / str(nth)
        fault = Fault(owner, name, nth, errno.ENOSPC)
        refused = False
        with pytest.MonkeyPatch.context() as patch:
            fault.put(patch)
            try:
                study(folder)
            except UsageError:
                refused = True
            except StorageError:
                pass
        assert not (refused and name not in ("unlink", "stat") and folder.exists()), "what is refused leaves nothing"
        study(folder)
        assert check(folder).damage == []
        assert sorted(files_of(folder)) == ["a.csv", "b.csv", "manifest.json", "plots/p.png"]
        if fault.calls < nth:
            return
    pytest.fail("there was no end to the calls")


@pytest.mark.thorough
@pytest.mark.parametrize(("owner", "name"), CALLS, ids=lambda value: getattr(value, "__name__", value))
def test_a_replacement_that_fails_loses_nothing(tmp_path, owner, name):
    for nth in range(1, MOST):
        folder = tmp_path / str(nth)
        study(folder)
        (folder / "NOTES.md").write_text("mine")
        fault = Fault(owner, name, nth, errno.EIO)
        failed = False
        with pytest.MonkeyPatch.context() as patch:
            fault.put(patch)
            try:
                replaced(folder)
            except (UsageError, StorageError):
                failed = True
        kept = [*check(folder).studies]
        assert any(study.identity in (ONE, OTHER) and study.replications for study in kept)
        if failed:
            assert any(study.identity == ONE and len(study.replications) == 3 for study in kept)
            replaced(folder)
        # The lock's removal may be what failed: a file that nobody holds, which the next writer takes and removes.
        left = {*files_of(folder)} - {".vftsim.lock"}
        assert sorted(left) == ["NOTES.md", "a.csv", "manifest.json", "plots/p.png"]
        assert (folder / "a.csv").read_text() == "new"
        if fault.calls < nth:
            return
    pytest.fail("there was no end to the calls")


def test_a_database_that_cannot_grow_keeps_what_it_has(tmp_path, monkeypatch):
    connect = database.connect

    def small(path):
        connection = connect(path)
        connection.execute("PRAGMA max_page_count = 12").fetchall()
        return connection

    monkeypatch.setattr("vftsim.study.store.store.connect", small)
    with pytest.raises(StorageError, match=r"full; the replications that had finished are kept"):
        many(tmp_path / "s")
    monkeypatch.undo()
    with Store(tmp_path / "s", "run", Opening.CONTINUE) as store:
        known = store.known(ONE)
        assert 0 < len(known) < 100
        assert list(known) == list(range(len(known)))


def many(folder):
    with Store(folder, "run") as store:
        for number in range(100):
            store.keep(ONE, number, {"x": [number * 7919 % (i + 1) for i in range(300)]})
