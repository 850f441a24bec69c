"""Searches, ramps and comparisons that were ended go on with the same command and give the same answer."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.study.searches import search_study
from vftsim.cli.main import main
from vftsim.study import execution as execution_module
from vftsim.study.blocks.printed import write_answer
from vftsim.study.designs.capacity_search import JudgedLoad, SearchSettings
from vftsim.study.runs.workers import Interrupted, Workers
from vftsim.study.store.database import DATABASE
from vftsim.study.store.store import RunCache, resumable_store

SETTINGS = SearchSettings(probability=0.5, resolution=8.0, runs_per_level=8, budget=24)


def stored(folder):
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        return connection.execute("SELECT count(*) FROM replications").fetchone()[0]


def answer(text):
    """An answer without the times of day in its manifest."""
    data = json.loads(text)
    return {name: value for name, value in data.items() if name != "manifest"}


def test_an_interrupted_study_without_an_answer_says_what_is_kept(tmp_path):
    """Of 'compare --protection all' one mechanism's runs had finished."""
    told = rf"no run of all had finished; 1 finished run is in '{tmp_path / 's'}', the same command goes on"

    def end_after_one_run():
        with resumable_store(tmp_path / "s", "compare") as store:
            store.keep({"model": "m", "seed": 1}, 0, {"x": 1})
            raise Interrupted("no run of all had finished")

    with pytest.raises(Interrupted, match=told):
        end_after_one_run()


def test_an_interrupted_study_that_nobody_keeps_says_what_had_finished():
    def ended(task):
        if task == 3:
            raise KeyboardInterrupt
        return task

    with pytest.raises(Interrupted, match=r"3 of 8 runs had finished and nobody keeps them; with -o DIR"):
        RunCache().in_order(Workers(ended, 1), {n: n for n in range(8)})


def test_tasks_are_done_once(tmp_path):
    done = []
    tasks = {n: n for n in range(4)}
    for most in (2, 4):
        with resumable_store(tmp_path / "s", "capacity") as store:
            kept = RunCache(store, {"model": "m"}, str, int)
            chosen = {n: tasks[n] for n in range(most)}
            assert kept.in_order(Workers(lambda n: done.append(n) or -n, 1), chosen) == [-n for n in range(most)]
    assert done == [0, 1, 2, 3]
    with resumable_store(tmp_path / "s", "capacity") as store:
        assert RunCache(store, {"model": "m"}).at(load=2).in_order(Workers(abs, 1), {0: -5}) == [5], "another study"


@pytest.mark.thorough
def test_an_interrupted_search_goes_on_and_ends_in_the_same_answer(tiny, tmp_path, monkeypatch):
    whole = search_study(tiny, 1, 1, settings=SETTINGS)
    ran = []
    judge = JudgedLoad.__call__

    def stops_at(most):
        def judged(load, saps, replication):
            if len(ran) == most:
                raise KeyboardInterrupt
            ran.append((saps, replication))
            return judge(load, saps, replication)

        return judged

    for most in (3, 7):
        monkeypatch.setattr(JudgedLoad, "__call__", stops_at(most))
        with resumable_store(tmp_path / "s", "capacity") as store:
            assert search_study(tiny, 1, 1, settings=SETTINGS, store=store).interrupted
        assert stored(tmp_path / "s") == most
    monkeypatch.setattr(JudgedLoad, "__call__", stops_at(None))
    with resumable_store(tmp_path / "s", "capacity") as store:
        found = search_study(tiny, 1, 1, settings=SETTINGS, store=store)
        write_answer(store, found)
    assert len(ran) == len(set(ran)), "none twice"
    assert answer(json.dumps(found.for_machines())) == answer(json.dumps(whole.for_machines()))
    assert answer((tmp_path / "s" / "answer.json").read_text()) == answer(json.dumps(whole.for_machines()))


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["capacity", "compare"])
def test_commands_keep_their_replications(tiny_path, tmp_path, monkeypatch, capsys, command):
    out = tmp_path / "out"
    models = [str(tiny_path)] * (2 if command == "compare" else 1)
    words = [command, *models, "-n", "3", "-j", "1", "-q", "--json"]
    assert main(words) == 0
    whole = capsys.readouterr().out
    simulate, ran = execution_module._simulate, []

    def stops_at_two(task, tell=None):
        if task.replication == 2:
            raise KeyboardInterrupt
        return simulate(task)

    monkeypatch.setattr(execution_module, "_simulate", stops_at_two)
    assert main([*words, "-o", str(out)]) == 3
    assert f"'{out}', the same command goes on" in capsys.readouterr().err

    def counted(task, tell=None):
        ran.append(task.replication)
        return simulate(task)

    monkeypatch.setattr(execution_module, "_simulate", counted)
    assert main([*words, "-o", str(out)]) == 0
    assert set(ran) == {2}
    assert answer(capsys.readouterr().out) == answer(whole)
    kept = {"answer.csv", "answer.json", "charts.png", "manifest.json", DATABASE}
    assert {path.name for path in out.iterdir()} == kept
    assert main([*words, "-o", str(out), "--force", "--seed", "4"]) == 0
    assert stored(out) == 3


def test_force_without_a_directory_is_refused(tiny_path, capsys):
    assert main(["capacity", str(tiny_path), "--force"]) == 2
    assert "name it with -o DIR" in capsys.readouterr().err


def test_nothing_judged_is_an_interruption_that_keeps_what_ran(tiny, tmp_path, monkeypatch):
    def stops(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(JudgedLoad, "__call__", stops)
    with pytest.raises(Interrupted), resumable_store(tmp_path / "s", "capacity") as store:
        search_study(tiny, 1, 1, settings=SETTINGS, store=store)
    assert not (tmp_path / "s").exists()


def test_tables_of_another_model_take_the_place_of_others_only_if_asked_to(tmp_path, capsys):
    """Next week's change of a model file, and the same command: last week's tables were gone."""
    path, words = tmp_path / "model.yaml", ["-q", "-n", "1", "-j", "1", "-o", str(tmp_path / "kept")]
    text = "domains: {a: {applications: {job: {kind: cpu_bound, duty: 50 %}}}}\nmeasure: {duration: 100 ms}\n"
    grid = ["sweep", str(path), "--grid", "domains.a.weight=256,512", *words]
    asked = [("50", []), ("50", ["--seed", "1"]), ("60", []), ("50", ["--seed", "2"]), ("70", ["--force"]), ("70", [])]
    codes = list[int]()
    for duty, more in asked:
        path.write_text(text.replace("50", duty))
        codes.append(main([*grid, *more]))
        assert ("tells of another model or seed" in capsys.readouterr().err) == (codes[-1] == 2)
    assert codes == [0, 0, 2, 2, 0, 0]
