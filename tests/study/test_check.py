"""Damage of every sort is named, and what is whole survives the repair."""

import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from test_store import ONE, OTHER, filled, foreign, snapshot, writes

import vftsim
from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.study.store.check import check
from vftsim.study.store.database import DATABASE, reading
from vftsim.study.store.lock import LOCK, DirectoryLock
from vftsim.study.store.store import Opening, Store, checksum


def change(folder, *statements):
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def known(folder, identity=ONE):
    with Store(folder, "run", Opening.CONTINUE) as store:
        return store.known(identity)


def test_a_whole_result_is_said_to_be_whole(tmp_path, capsys):
    filled(tmp_path / "s")
    before = (tmp_path / "s" / DATABASE).read_bytes()
    report = check(tmp_path / "s")
    assert (report.command, report.whole, report.damage, report.notes) == ("run", 2, [], [])
    assert main(["check", str(tmp_path / "s")]) == 0
    assert "Nothing is damaged" in capsys.readouterr().out
    assert (tmp_path / "s" / DATABASE).read_bytes() == before


def test_a_file_that_cannot_be_read_is_not_said_to_be_missing(tiny_path, tmp_path):
    vftsim.run(tiny_path, 1, directory=tmp_path / "s")
    (tmp_path / "s/manifest.json").unlink()
    (tmp_path / "s/manifest.json").mkdir()
    (tmp_path / "s/summary.csv").unlink()
    texts = {note.partition(";")[0] for note in check(tmp_path / "s").notes}
    assert {"'manifest.json' cannot be read", "'summary.csv' is missing"} <= texts


def test_a_file_that_was_edited_is_said_to_be_kept_and_written_again_as_it_then_is(tiny_path, tmp_path):
    """Edited, ``manifest.json`` is no record of the run any more."""
    vftsim.run(tiny_path, 1, directory=tmp_path / "s")
    whole = (tmp_path / "s/manifest.json").read_text()
    (tmp_path / "s/manifest.json").write_text(whole + " ")
    (note,) = check(tmp_path / "s").notes
    assert note == (
        "'manifest.json' was changed after it was written, and may say another thing than what was run; the same "
        "command with --resume writes it again, and keeps yours beside it"
    )
    vftsim.run(tiny_path, 1, directory=tmp_path / "s", resume=True)
    assert (tmp_path / "s/manifest.json.kept").read_text() == whole + " "
    assert "changed" not in "".join(check(tmp_path / "s").notes)


def test_a_database_that_may_not_be_read_is_not_said_to_be_damaged(tmp_path, monkeypatch):
    filled(tmp_path / "s")
    opened = Path.open

    def refusing(path, mode="r", *more):
        if path.name == DATABASE and mode == "rb":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, mode, *more)

    monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(UsageError, match=r"cannot read '.*s': Permission denied"):
        check(tmp_path / "s")
    with pytest.raises(PermissionError), reading(tmp_path / "s"):
        pass


@pytest.mark.parametrize("cut", [0, 5000])
def test_a_look_changes_nothing_in_a_place_that_may_be_read_only(tmp_path, monkeypatch, cut):
    """Whole or cut, with the log of a killed command: no lock, no file beside, nothing moved from the log."""
    with Store(tmp_path / "a", "run") as store:
        store.keep(ONE, 1, {"x": 1})
        shutil.copytree(tmp_path / "a", tmp_path / "killed")
    os.truncate(tmp_path / "killed" / DATABASE, (tmp_path / "killed" / DATABASE).stat().st_size - cut)
    before = snapshot(tmp_path / "killed")
    monkeypatch.setattr(DirectoryLock, "acquire", lambda *_: pytest.fail("it locks the directory"))
    report = check(tmp_path / "killed")
    assert report.studies[0].replications == [1]
    assert snapshot(tmp_path / "killed") == before


@pytest.mark.parametrize(
    ("statement", "text", "left"),
    [
        (
            "UPDATE replications SET data = x'00' WHERE replication = 1",
            "replication 1 of study 1 does not",
            {0, 2},
        ),
        ("UPDATE replications SET replication = 9 WHERE replication = 0", "replication 9 of study 1 does not", {1, 2}),
        ("UPDATE replications SET study = 5 WHERE replication = 2", "replication 2 belongs to no study", {0, 1}),
        ("UPDATE studies SET identity = '{}'", "study 1 is not what its hash says", set()),
    ],
)
def test_edits_are_named_and_the_rest_is_kept(tmp_path, capsys, statement, text, left):
    folder = tmp_path / "s"
    filled(folder, numbers=(0, 1, 2))
    change(folder, statement)
    assert main(["check", str(folder)]) == 1
    assert text in capsys.readouterr().out
    assert main(["check", str(folder), "--repair"]) == 0
    assert f"{len(left)} replications are whole and kept" in capsys.readouterr().out
    assert check(folder).damage == []
    assert set(known(folder)) == left
    assert (folder / f"{DATABASE}.damaged").exists()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_cut_database_keeps_what_is_before_the_cut(tmp_path, share):
    folder = tmp_path / "s"
    with Store(folder, "run") as store:
        for number in range(60):
            store.keep(ONE, number, {"x": [(number * 7919 + i * i) % 10007 for i in range(1500)]})
        store.finish(writes())
    whole = known(folder)
    size = (folder / DATABASE).stat().st_size
    os.truncate(folder / DATABASE, int(size * share))
    report = check(folder, repair=True)
    assert report.damage[0].startswith("the database is damaged")
    left = known(folder)
    assert len(left) > 60 * share * 0.5
    assert left.items() <= whole.items()
    assert check(folder).damage == []


def test_overwritten_pages_cost_what_stood_in_them(tmp_path):
    folder = tmp_path / "s"
    filled(folder, numbers=range(300))
    whole = known(folder)
    with (folder / DATABASE).open("r+b") as stream:
        stream.seek(-8192, os.SEEK_END)
        stream.write(b"\xff" * 4096)
    check(folder, repair=True)
    left = known(folder)
    assert 200 <= len(left) <= 300
    assert left.items() <= whole.items()


def test_what_is_no_damage_is_noted(tmp_path):
    folder = tmp_path / "s"
    filled(folder, a_csv="a", b_csv="b")
    (folder / "a.csv").write_text("edited")
    (folder / "b.csv").unlink()
    (folder / "NOTES.md").write_text("mine")
    with Store(folder, "run", Opening.REPLACE) as store:
        store.keep(OTHER, 0, {})
    notes = "\n".join(check(folder).notes)
    for part in ("'a.csv' was changed", "'b.csv' is missing", "left alone: NOTES.md", "a run with --force was killed"):
        assert part in notes


def test_nothing_else_is_looked_at(tmp_path):
    for folder in [*foreign(tmp_path), tmp_path / "nowhere"]:
        with pytest.raises(UsageError, match="no result of vftsim"):
            check(folder, repair=True)
    filled(tmp_path / "s")
    with Store(tmp_path / "s", "run", Opening.CONTINUE), pytest.raises(UsageError, match="in use by"):
        check(tmp_path / "s")


FOREIGN = {
    "UPDATE studies SET generation = 9223372036854775807": "a row of its table 'studies'",
    "UPDATE studies SET generation = 'x'": "a row of its table 'studies'",
    "UPDATE replications SET replication = 'x' || replication": "a row of its table 'replications'",
    "UPDATE replications SET replication = -replication - 1": "a row of its table 'replications'",
    "UPDATE studies SET identity = '{'": "a study is not what its hash says",
    "UPDATE files SET name = '../../x'": "files outside of the directory",
    "UPDATE files SET name = x'ff'": "a row of its table 'files'",
    "DELETE FROM about": "the kind of study is lost",
    "UPDATE about SET value = x'ff'": "the kind of study is lost",
    "DROP TABLE files": "its tables are not those",
    "CREATE TRIGGER t BEFORE INSERT ON replications BEGIN SELECT RAISE(ABORT, 'no'); END": "its tables are not those",
    "ALTER TABLE studies RENAME COLUMN key TO name": "its tables are not those",
}


@pytest.mark.parametrize("statement", FOREIGN)
def test_a_database_that_somebody_changed_is_damaged_whatever_is_asked(tmp_path, statement):
    filled(tmp_path / "s")
    change(tmp_path / "s", statement)
    with pytest.raises(UsageError, match=FOREIGN[statement]):
        known(tmp_path / "s")
    assert check(tmp_path / "s").damage
    assert main(["check", str(tmp_path / "s"), "--json"]) == 1
    if "about" not in statement:
        assert check(tmp_path / "s", repair=True).repaired
        assert set(known(tmp_path / "s")) <= {0, 1, 2}


@pytest.mark.parametrize("data", [b"no zlib", zlib.compress(b"{"), zlib.compress(b"[" * 100_000)])
def test_what_is_no_replication_is_damaged_although_its_checksum_is_right(tmp_path, data):
    filled(tmp_path / "s")
    with closing(sqlite3.connect(tmp_path / "s" / DATABASE)) as connection, connection:
        ((key,),) = connection.execute("SELECT DISTINCT key FROM studies")
        right = (data, checksum(key, 1, data))
        connection.execute("UPDATE replications SET data = ?, sha256 = ? WHERE replication = 1", right)
    assert 1 not in known(tmp_path / "s")
    assert "replication 1" in check(tmp_path / "s").damage[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal", f"{DATABASE}-journal", "a.csv", "manifest.json", LOCK])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    filled(tmp_path / "s")
    (tmp_path / "s" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "s" / name)
    if name.startswith(DATABASE):
        for asked in (check, known):
            with pytest.raises(UsageError, match=r"no plain file|no result of vftsim"):
                asked(tmp_path / "s")
    else:
        assert check(tmp_path / "s").damage == []


@pytest.mark.parametrize("at", range(28, 4068, 101))
def test_a_flipped_bit_where_the_tables_are_named_costs_nothing(tmp_path, at):
    """The first page says which tables there are, in text, and where: all of that is known without it."""
    folder = tmp_path / "s"
    filled(folder)
    whole = (folder / DATABASE).read_bytes()
    spots = [place for place in range(100, 4096) if whole[place]]
    place = spots[at % len(spots)]
    for bit in (0, 2, 7):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        (folder / DATABASE).write_bytes(flipped)
        report = check(folder, repair=True)
        assert (report.whole, bool(report.damage)) == (2, bool(report.repaired)), (place, bit)
        assert set(known(folder)) == {0, 1}


def test_damaged_text_of_the_tables_is_said_in_one_line(tmp_path, capsys):
    folder = tmp_path / "s"
    filled(folder)
    damaged = (folder / DATABASE).read_bytes().replace(b"CREATE TABLE files", b"CREATE TABLE fi\xeces")
    (folder / DATABASE).write_bytes(damaged)
    with pytest.raises(UsageError, match=r"is damaged \(.*vftsim check .* --repair"):
        known(folder)
    assert main(["check", str(folder)]) == 1
    assert "damaged" in capsys.readouterr().out
    assert main(["check", str(folder), "--repair"]) == 0
    assert set(known(folder)) == {0, 1}
