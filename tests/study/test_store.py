"""What is on disk: durable, of one study, of one writer, and never at the cost of anybody's files."""

import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.study.grids import make_grid, run_study, run_sweep
from vftsim._version import __version__
from vftsim.errors import StorageError, UsageError
from vftsim.files import sha256_of, to_json, write_file
from vftsim.study.execution import Execution
from vftsim.study.runs import versions as versions_module
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.database import DATABASE
from vftsim.study.store.lock import DirectoryLock, Holder
from vftsim.study.store.opened import read_answer, stored
from vftsim.study.store.store import Opening, Store, checksum, unpacked

ONE = {"model": "a" * 64, "seed": 1, "vftsim": __version__}
OTHER = {**ONE, "seed": 2}
READ = {"seed": 1, "replications": [0, 1]}
"""Of a manifest, what says which replications are read."""


def test_what_json_lacks_becomes_null_and_nothing_else_changes():
    whole = {"a": (1, 2.5, "ü"), "b": {3: None}}
    assert to_json(whole, indent=None) == '{"a": [1, 2.5, "ü"], "b": {"3": null}}'
    for lacked in (math.nan, math.inf, -math.inf):
        assert to_json({**whole, "c": [lacked]}, indent=None) == '{"a": [1, 2.5, "ü"], "b": {"3": null}, "c": [null]}'
    assert to_json(MappingProxyType(whole), indent=None) == to_json(whole, indent=None)


def writes(**files):
    """Return what a study's writer of files does: ``a_csv="x"`` writes ``a.csv``; manifest and a plot come always."""

    def write(folder):
        (folder / "plots").mkdir()
        write_file(folder / "plots" / "p.png", b"plot")
        write_file(folder / "manifest.json", b"{}")
        for name, text in files.items():
            write_file(folder / name.replace("_", "."), text.encode())

    return write


def filled(folder, identity=ONE, numbers=(0, 1), **files):
    with Store(folder, "run") as store:
        for number in numbers:
            store.keep(identity, number, {"x": number})
        store.finish(writes(**(files or {"a_csv": "x"})))


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def snapshot(folder):
    return {name: (folder / name).read_bytes() for name in names(folder)}


def foreign(tmp_path):
    """Directories of users that resemble a result."""
    web = tmp_path / "web"
    web.mkdir()
    (web / "manifest.json").write_text("{}")
    (web / "index.html").write_text("x")
    old = tmp_path / "old"
    (old / "replications").mkdir(parents=True)
    (old / "manifest.json").write_text('{"identity": {}}')
    (old / "replications" / "000000.json.gz").write_bytes(b"z")
    fake = tmp_path / "fake"
    fake.mkdir()
    with closing(sqlite3.connect(fake / DATABASE)) as connection:
        connection.execute("CREATE TABLE replications (x)")
    junk = tmp_path / "junk"
    junk.mkdir()
    (junk / DATABASE).write_text("no database at all")
    return [web, old, fake, junk]


@pytest.mark.parametrize("opening", Opening)
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_what_is_not_ours_is_refused_and_untouched(tmp_path, opening, command):
    for folder in foreign(tmp_path):
        before = snapshot(folder)
        with pytest.raises(UsageError, match="is no result of vftsim") as refusal:
            Store(folder, command, opening)
        assert "--force" not in str(refusal.value)
        assert snapshot(folder) == before


def test_a_directory_that_merely_holds_a_manifest_survives_run_force(tiny, tmp_path):
    web = foreign(tmp_path)[0]
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(UsageError, match="is no result of vftsim; choose another name"):
            run_study(tiny, 1, Execution(1, 1), directory=web, **options)
    assert names(web) == ["index.html", "manifest.json"]


@pytest.mark.thorough
def test_the_users_own_files_survive_everything(tiny, tmp_path):
    out = tmp_path / "out"
    run_study(tiny, 1, Execution(1, 1), directory=out)
    (out / "NOTES.md").write_text("mine")
    (out / "plots").mkdir()
    (out / "plots" / "sketch.png").write_text("mine")
    run_study(tiny, 2, Execution(1, 1), directory=out, resume=True)
    run_study(tiny, 1, Execution(2, 1), directory=out, force=True)
    assert (out / "NOTES.md").read_text() == (out / "plots" / "sketch.png").read_text() == "mine"


def test_a_file_that_was_edited_is_kept_under_another_name(tmp_path):
    out = tmp_path / "out"
    filled(out)
    for expected in ("a.csv.kept", "a.csv.kept-2"):
        (out / "a.csv").write_text(f"edited, {expected}")
        with Store(out, "run", Opening.CONTINUE) as store:
            store.finish(writes(a_csv="new"))
            assert expected in store.remarks[0]
        assert (out / expected).read_text() == f"edited, {expected}"
        assert (out / "a.csv").read_text() == "new"


def test_files_of_the_replaced_result_go_and_edited_ones_stay(tmp_path):
    out = tmp_path / "out"
    filled(out, a_csv="a", b_csv="b")
    (out / "b.csv").write_text("edited")
    with Store(out, "run", Opening.REPLACE) as store:
        store.keep(OTHER, 0, {})
        store.finish(writes(c_csv="c"))
    assert names(out) == ["b.csv", "c.csv", "manifest.json", "plots/p.png", DATABASE]


def test_a_replaced_result_stands_until_the_new_one_does(tmp_path):
    out = tmp_path / "out"
    filled(out)
    with Store(out, "run", Opening.REPLACE) as store:
        store.keep(OTHER, 0, {"x": 5})
    assert (out / "a.csv").read_text() == "x"
    with Store(out, "run", Opening.REPLACE) as store:
        assert not store.studies()
    with Store(out, "run", Opening.CONTINUE) as store:
        assert store.known(OTHER) == {0: {"x": 5}}
        assert store.known(ONE) == {}
        store.finish(writes(a_csv="new"))
    with closing(sqlite3.connect(out / DATABASE)) as connection:
        assert connection.execute("SELECT count(*) FROM replications").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM studies").fetchone() == (1,)


def test_interrupted_before_anything_a_replacement_leaves_the_result(tmp_path):
    out = tmp_path / "out"
    filled(out)
    before = {name: data for name, data in snapshot(out).items() if name != DATABASE}
    with Store(out, "run", Opening.REPLACE):
        pass
    with Store(out, "run", Opening.CONTINUE) as store:
        assert store.known(ONE) == {0: {"x": 0}, 1: {"x": 1}}
    assert {name: data for name, data in snapshot(out).items() if name != DATABASE} == before


def test_the_article_of_a_command_is_right(tmp_path):
    with Store(tmp_path, "optimize", Opening.CONTINUE) as store:
        store.keep(ONE, 0, {})
    with pytest.raises(UsageError, match="holds an optimize, not a run"):
        Store(tmp_path, "run", Opening.CONTINUE).__enter__()


def test_run_force_on_a_sweep_is_refused(tiny, tmp_path):
    out = tmp_path / "s"
    with Store(out, "sweep", Opening.CONTINUE) as store:
        store.keep(ONE, 0, {})
    with pytest.raises(UsageError, match="holds a sweep, not a run"):
        run_study(tiny, 1, Execution(1, 1), directory=out, force=True)
    with Store(out, "sweep", Opening.CONTINUE) as store:
        assert store.known(ONE) == {0: {}}


def test_one_writer_and_a_message_that_names_it(tiny, tmp_path):
    out = tmp_path / "out"
    with Store(out, "run"):
        for opening in Opening:
            with pytest.raises(UsageError, match=f"in use by process {os.getpid()} on "):
                Store(out, "run", opening)
        with pytest.raises(UsageError, match="in use by"):
            run_study(tiny, 1, Execution(1, 1), directory=out, force=True)


def test_a_holder_that_says_its_name_late_is_named(tmp_path, monkeypatch):
    """Between taking the lock and writing the name there is an instant."""
    holder = Holder(4711, "elsewhere", "vftsim run", "now")
    looks = iter([None, None, holder])
    monkeypatch.setattr(Holder, "read", lambda _: next(looks))
    first = DirectoryLock(tmp_path)
    first.acquire()
    with pytest.raises(UsageError, match="in use by process 4711 on elsewhere"):
        DirectoryLock(tmp_path).acquire()
    first.release()


@pytest.mark.parametrize("name", ["result", "a#b", "a?mode=rwc", "100%41"])
def test_a_result_is_read_without_a_change_whatever_it_is_called(tmp_path, name):
    """A read-only place could not be read if anything were written there."""
    filled(tmp_path / name)
    before = snapshot(tmp_path)
    assert stored(tmp_path / name, ONE["model"], READ) == [(0, {"x": 0}), (1, {"x": 1})]
    assert snapshot(tmp_path) == before


def test_what_a_killed_command_left_in_its_log_is_read_and_stays_there(tmp_path):
    with Store(tmp_path / "a", "run") as store:
        store.keep(ONE, 1, {"x": 1})
        shutil.copytree(tmp_path / "a", tmp_path / "killed")
    before = snapshot(tmp_path / "killed")
    assert len(before[f"{DATABASE}-wal"]) > 0
    assert stored(tmp_path / "killed", ONE["model"], READ) == [(1, {"x": 1})]
    assert snapshot(tmp_path / "killed") == before


def test_a_result_that_is_being_written_is_in_use_and_not_damaged(tmp_path):
    filled(tmp_path)
    with Store(tmp_path, "run", Opening.CONTINUE) as store:
        store.keep(ONE, 2, {"x": 2})
        with pytest.raises(UsageError, match=rf"in use by process {os.getpid()}"):
            stored(tmp_path, ONE["model"], READ)


@pytest.mark.parametrize("edited", ['{"outage": 2.5}', "{}", "[]", "{", '{ "outage": 25 }'])
def test_an_answer_that_was_edited_is_not_shown_as_that_of_the_command(tmp_path, edited):
    filled(tmp_path, answer_json='{"outage": 25}')
    assert read_answer(tmp_path) == {"outage": 25}
    (tmp_path / "answer.json").write_text(edited)
    with pytest.raises(UsageError, match=r"answer.json': changed or damaged since it was written; the command that"):
        read_answer(tmp_path)


def test_no_replication_of_another_study_is_counted(tmp_path):
    out = tmp_path / "out"
    filled(out, numbers=(0, 1, 2))
    with Store(out, "run", Opening.CONTINUE) as store:
        assert store.known(OTHER) == {}
        with pytest.raises(UsageError, match=r"another study \(different seed\)"):
            store.check_only(OTHER)
        store.check_only(ONE)


@pytest.mark.thorough
def test_two_writers_at_once_mix_nothing(tiny_path, tmp_path):
    """Pairs of commands start together on one directory: one result, of one study, and a refusal."""
    out = tmp_path / "mx"
    command = [sys.executable, "-m", "vftsim", "run", str(tiny_path), "--set", "workloads.calls.steps.most=1"]
    command += ["-n", "12", "-j", "1", "-q", "--csv", "-o", str(out), "--seed"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    pair = [subprocess.Popen([*command, *more], **quiet) for more in (["1"], ["2", "--force"])]
    errors = [process.communicate(timeout=120)[1] for process in pair]
    codes = [process.returncode for process in pair]
    assert sorted(codes) == [0, 2], errors
    assert "in use by process" in errors[codes.index(2)]
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["seed"], manifest["replications"]) == (codes.index(0) + 1, list(range(12)))


@pytest.mark.thorough
def test_a_result_never_shrinks_and_says_so(tiny, tmp_path):
    out = tmp_path / "out"
    run_study(tiny, 3, Execution(1, 1), directory=out)
    again = run_study(tiny, 2, Execution(1, 1), directory=out, resume=True)
    assert [number for number, _ in again.records] == [0, 1, 2]
    assert again.remarks == [
        "2 replications were asked for and the result held more; it never shrinks and has 3",
    ]
    assert run_study(tiny, 3, Execution(1, 1), directory=out, resume=True).remarks == []


def test_a_replication_that_unpacks_to_more_than_any_is_damaged_and_none_is_written(tmp_path, monkeypatch):
    """A file from somebody else may be a few kilobytes that unpack to gigabytes, with the right checksum."""
    monkeypatch.setattr("vftsim.study.store.store.MOST_BYTES", 1000)
    key, large = sha256_of(ONE), zlib.compress(b'"' + 10**7 * b"x" + b'"')
    assert unpacked(key, 0, large, checksum(key, 0, large)) is None
    cut = zlib.compress(b'{"x": 1}')[:-1]
    assert unpacked(key, 0, cut, checksum(key, 0, cut)) is None
    filled(tmp_path / "out", numbers=(0,))
    with (
        Store(tmp_path / "out", "run", Opening.CONTINUE) as store,
        pytest.raises(StorageError, match="more than the 0 that are read again"),
    ):
        store.keep(ONE, 1, {"x": 2000 * "x"})
    with Store(tmp_path / "out", "run", Opening.CONTINUE) as store:
        assert store.known(ONE) == {0: {"x": 0}}


def test_a_damaged_replication_is_named_and_computed_again(tmp_path):
    out = tmp_path / "out"
    filled(out, numbers=(0, 1, 2))
    with closing(sqlite3.connect(out / DATABASE)) as connection, connection:
        connection.execute("UPDATE replications SET replication = 7 WHERE replication = 2")
        connection.execute("UPDATE replications SET data = x'00' WHERE replication = 0")
    with Store(out, "run", Opening.CONTINUE) as store:
        assert store.known(ONE) == {1: {"x": 1}}
        assert [remark.split(" in ")[0] for remark in store.remarks] == ["replication 0", "replication 7"]
        store.keep(ONE, 0, {"x": 0})
        assert store.known(ONE) == {0: {"x": 0}, 1: {"x": 1}}


def test_a_replication_is_kept_once(tmp_path):
    with Store(tmp_path / "s", "run") as store:
        store.keep(ONE, 0, {})
        with pytest.raises(sqlite3.IntegrityError):
            store.keep(ONE, 0, {})
        store.keep(ONE, 1, {})


def test_another_format_is_named(tmp_path):
    filled(tmp_path / "s")
    with closing(sqlite3.connect(tmp_path / "s" / DATABASE)) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(UsageError, match="format 9 of another version of vftsim"):
        Store(tmp_path / "s", "run", Opening.REPLACE)


def test_a_cut_database_is_named(tmp_path):
    filled(tmp_path / "s", numbers=range(50))
    path = tmp_path / "s" / DATABASE
    os.truncate(path, path.stat().st_size // 2)
    with (
        pytest.raises(UsageError, match=r"is damaged .*vftsim check .* --repair"),
        Store(tmp_path / "s", "run", Opening.CONTINUE) as store,
    ):
        store.known(ONE)


def test_a_directory_that_is_taken_away_meanwhile_is_said(tmp_path):
    with Store(tmp_path / "s", "run") as store:
        shutil.rmtree(tmp_path / "s")
        with pytest.raises(StorageError, match="was removed or replaced"):
            store.keep(ONE, 0, {})


def test_nothing_finished_leaves_nothing(tmp_path):
    with Store(tmp_path / "new", "run"):
        pass
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    with Store(tmp_path / "empty", "run"):
        pass
    assert names(tmp_path / "empty") == []


def test_files_are_whole_or_as_before(tmp_path):
    out = tmp_path / "out"
    filled(out)

    def fails(folder):
        writes(a_csv="new")(folder)
        raise OSError(28, "No space left on device")

    with Store(out, "run", Opening.CONTINUE) as store:
        with pytest.raises(StorageError, match=r"No space left on device; .* are kept"):
            store.finish(fails)
        assert (out / "a.csv").read_text() == "x"
        store.finish(writes(a_csv="new"))
    assert names(out) == ["a.csv", "manifest.json", "plots/p.png", DATABASE]


def test_ctrl_c_while_files_are_written_says_what_is_kept(tmp_path):
    def pressed(_):
        raise KeyboardInterrupt

    with Store(tmp_path / "s", "run") as store:
        store.keep(ONE, 0, {})
        with pytest.raises(Interrupted, match="the 1 finished replications are kept"):
            store.finish(pressed)


def test_places_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("n" * 300), Path("/proc/none/out")):
        with pytest.raises(UsageError):
            Store(place, "run")


def test_sweep_force_replaces_at_the_end_alone(tmp_path):
    small = ["workloads.signaling=null", "measure.duration=100 ms", "measure.warm_up=100 ms"]
    grid = make_grid("xen-media", None, ["streams=10"], small)
    run_sweep(grid, tmp_path / "s", 1, Execution(1, 1))
    again = run_sweep(grid, tmp_path / "s", 1, Execution(2, 1), force=True)
    assert (again.already, again.manifest["seed"]) == (0, 2)
    assert run_sweep(grid, tmp_path / "s", 1, Execution(2, 1)).already == 1
    assert run_sweep(grid, tmp_path / "s", 1, Execution(1, 1)).already == 0, "gone with what it was part of"


def test_the_source_of_vftsim_is_that_of_all_its_rooms(monkeypatch):
    """Runs are kept under it: an edit anywhere in the package makes others of them."""
    asked = []

    def noted(package, *rooms, begin):
        asked.append((package, rooms, begin))
        return "0" * 64

    monkeypatch.setattr(versions_module, "source_of", noted)
    versions_module._source.__wrapped__()
    ((package, rooms, beside),) = asked
    assert (package / "errors.py").read_bytes() in beside
    assert (package / "composition" / "run.py").exists()
    assert {"composition", "kernel", "platform", "spec", "study", "workloads"} <= set(rooms)
