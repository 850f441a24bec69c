"""Shards: computed apart, together they are the whole study."""

import contextlib
import json
import sqlite3

import pytest

from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.files import sha256_of_file
from vftsim.study.designs.past import merge
from vftsim.study.execution import Shard
from vftsim.study.store.database import DATABASE, Ledger
from vftsim.study.store.lock import DirectoryLock


def stored(folder):
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as connection:
        return sorted(
            connection.execute("SELECT key, replication, data FROM replications JOIN studies ON studies.id = study")
        )


def run(path, folder, *more):
    return main(["run", str(path), "-n", "5", "-j", "1", "-q", "--csv", "-o", str(folder), *more])


@pytest.mark.parametrize("of", [1, 2, 7])
def test_every_task_is_in_one_share(of):
    assert all(sum(Shard(number, of).has(place) for number in range(1, of + 1)) == 1 for place in range(50))


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/", "a/b", "-1/2", "1/2/3", ""])
def test_what_names_no_share_is_refused(text):
    with pytest.raises(UsageError, match="is not i/n"):
        Shard.parse(text)


def test_merged_shards_are_the_whole(tmp_path, tiny_path, capsys):
    shards = [tmp_path / f"s{n}" for n in (1, 2)]
    for number, folder in enumerate(shards, 1):
        assert run(tiny_path, folder, "--shard", f"{number}/2") == 0
    assert [len(stored(folder)) for folder in shards] == [3, 2]
    assert run(tiny_path, tmp_path / "whole") == 0
    done = merge(shards, tmp_path / "all")
    assert (done.new, done.already) == (5, 0)
    assert stored(tmp_path / "all") == stored(tmp_path / "whole")
    assert merge(shards, tmp_path / "all").already == 5, "again is harmless"
    assert run(tiny_path, tmp_path / "all", "--resume") == 0
    assert (tmp_path / "all/summary.csv").read_bytes() == (tmp_path / "whole/summary.csv").read_bytes()
    capsys.readouterr()


def test_the_whole_command_is_that_of_the_largest_share_without_how_it_was_made(tmp_path, tiny_path, monkeypatch):
    shards = [tmp_path / "s1", tmp_path / "s2"]
    for number, wanted, more in ((1, "2", ["-j1", "--json"]), (2, "3", ["-q", "--max-time", "9 h", "--jobs=1"])):
        words = ["run", str(tiny_path), "-n", wanted, *more, "--shard", f"{number}/2", "-o", str(shards[number - 1])]
        monkeypatch.setattr("sys.argv", ["vftsim", *words])
        assert main(words) == 0
    expected = ["vftsim", "run", str(tiny_path), "-n", "3", "--resume", "-o", str(tmp_path / "all")]
    assert merge(shards, tmp_path / "all").next_command.split() == expected


def test_what_does_not_belong_together_is_refused(tmp_path, tiny_path, capsys):
    first, second = tmp_path / "s1", tmp_path / "s2"
    for number, folder in ((1, first), (2, second)):
        assert run(tiny_path, folder, "--shard", f"{number}/2") == 0
    with pytest.raises(UsageError, match="is no result of vftsim"):
        merge([first, tmp_path / "none"], tmp_path / "all")
    with pytest.raises(UsageError, match="a directory of its own"):
        merge([first, second], first)
    manifest = second / "manifest.json"
    data = json.loads(manifest.read_text())
    data["versions"]["numpy"] = "1.0"
    manifest.write_text(json.dumps(data))
    with pytest.raises(UsageError, match="changed or damaged since it was written"):
        merge([first, second], tmp_path / "all")
    with contextlib.closing(sqlite3.connect(second / DATABASE)) as connection, connection:
        Ledger(connection).add({manifest.name: sha256_of_file(manifest)})  # as another version writes it
    with pytest.raises(UsageError, match=r"other versions than .*numpy: 1.0"):
        merge([first, second], tmp_path / "all")
    manifest.unlink()
    with pytest.raises(UsageError, match="has not finished"):
        merge([first, second], tmp_path / "all")
    assert not (tmp_path / "all").exists()
    capsys.readouterr()


def test_shares_of_other_studies_are_refused(tmp_path, tiny_path, capsys):
    """A run of two seeds, or of two models, is one that its own command would not go on with."""
    first, seed, model = (tmp_path / name for name in ("s1", "seed", "model"))
    assert run(tiny_path, first, "--shard", "1/2") == 0
    assert run(tiny_path, seed, "--shard", "2/2", "--seed", "2") == 0
    assert run(tiny_path, model, "--shard", "2/2", "--set", "hosts.host.pcpus=2") == 0
    with pytest.raises(UsageError, match=r"'.*seed' is of another study than '.*s1' \(seed: 2, not 1\)"):
        merge([first, seed], tmp_path / "all")
    with pytest.raises(UsageError, match=r"'.*model' is of another study than '.*s1' \(models: "):
        merge([first, model], tmp_path / "all")
    assert not (tmp_path / "all").exists()
    capsys.readouterr()


def test_shares_of_other_grids_are_refused(tmp_path, tiny_path, capsys):
    """The command that is named asks for the points of one of them; those of the other would lie there unused."""
    folders = []
    for number, weights in enumerate(("1,2", "1,3", "1,2"), 1):
        folders.append(tmp_path / f"s{number}")
        sweep = ["sweep", tiny_path, "--grid", f"domains.sut.weight={weights}", "-n", "1", "-j", "1", "-q"]
        assert main([str(word) for word in (*sweep, "--shard", f"{min(number, 2)}/2", "-o", folders[-1])]) == 0
    first, other, second = folders
    with pytest.raises(UsageError, match=r'another study than .*factors: .*"1", *"3".*, not .*"1", *"2"'):
        merge([first, other], tmp_path / "all")
    assert not (tmp_path / "all").exists()
    assert merge([first, second], tmp_path / "all").new == 2
    capsys.readouterr()


def test_shards_are_only_read(tmp_path, tiny_path, monkeypatch):
    """They may be another user's; a damaged replication is named and left out."""
    assert run(tiny_path, tmp_path / "s", "--shard", "1/2") == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "s" / DATABASE)) as connection, connection:
        connection.execute("UPDATE replications SET data = x'00' WHERE replication = 2")
    before = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    lock = DirectoryLock.acquire

    def acquire(self):
        assert self.folder == tmp_path / "all"
        lock(self)

    monkeypatch.setattr(DirectoryLock, "acquire", acquire)
    done = merge([tmp_path / "s"], tmp_path / "all")
    assert (done.new, done.remarks) == (2, [f"replication 2 in '{tmp_path / 's'}' is damaged and is computed again"])
    assert {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()} == before


def test_a_share_without_a_task_is_refused(tmp_path, tiny_path, capsys):
    assert run(tiny_path, tmp_path / "s", "--shard", "6/6") == 2
    assert "has nothing to do" in capsys.readouterr().err
    assert main(["run", str(tiny_path), "--shard", "1/2"]) == 2
    assert "-o DIR" in capsys.readouterr().err
