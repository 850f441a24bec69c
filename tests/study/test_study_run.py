"""Replications: the same whatever the number of workers, kept whole, continued without repeating."""

import json
import math
import os
import platform
import signal
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import simpy

from tests.study.grids import run_study
from tests.study.tiny import tiny as tiny_text
from vftsim.errors import UsageError
from vftsim.spec.shipped import PACKAGE
from vftsim.stats import DelayHistogram
from vftsim.study import execution as execution_module
from vftsim.study.designs.run import RunResult, run_answer
from vftsim.study.execution import Execution, Replications
from vftsim.study.figures.frames import csv_text
from vftsim.study.runs import estimate
from vftsim.study.runs.model import load_model
from vftsim.study.runs.progress import Progress
from vftsim.study.store.database import DATABASE


@pytest.fixture(scope="module")
def result(tiny):
    return run_study(tiny, 3, Execution(7, 1))


@pytest.mark.thorough
def test_a_result_gives_the_figures_with_their_intervals_as_its_file_has_them(tiny):
    """It gave values of single replications under names of their own, without intervals."""
    found = run_study(tiny, 2, Execution(1, 1))
    assert csv_text(found.to_pandas()) == csv_text(found.summary)
    assert {"figure", "unit", "estimate", "low", "high", "n", "interval"} <= set(found.to_pandas())


def test_two_workers_give_the_same_tables_to_the_last_bit(tiny, result, monkeypatch):
    monkeypatch.setattr(estimate, "WORTH_WORKERS_S", 0.0)
    parallel = run_study(tiny, 3, Execution(7, 2))
    assert list(parallel.tables) == list(result.tables)
    for name, table in result.tables.items():
        assert csv_text(parallel.tables[name]) == csv_text(table), name
    assert csv_text(parallel.summary) == csv_text(result.summary)


def test_a_study_shorter_than_the_start_of_workers_begins_none(tiny, monkeypatch):
    class BegunError(Exception):
        pass

    def begin(*_):
        raise BegunError

    monkeypatch.setattr("vftsim.study.runs.workers._parallel", begin)
    assert len(run_study(tiny, 3, Execution(7, 2)).records) == 3
    monkeypatch.setattr(estimate, "WORTH_WORKERS_S", 2 * estimate.needs_of(tiny.spec).seconds)
    with pytest.raises(BegunError):
        run_study(tiny, 3, Execution(7, 2))


def test_ramps_that_met_no_limit_say_what_their_last_step_shows(tmp_path):
    """One step at 10 attempts a second, 4 s measured: its attempts are counted in the table."""
    path = tmp_path / "calm.yaml"
    path.write_text(tiny_text(steps="{initial: 10 /s, increment: 10 /s, duration: 6 s, transient: 2 s, most: 1}"))
    result = run_study(load_model(str(path)), 1, Execution(7, 1))
    steps = result.to_pandas("steps")
    begun = steps.loc[steps["phase"] == "step_1", "attempts_global"].item() / 4
    assert run_answer(result).text == f"calls, step_1: attempts begun {begun:g} /s"


def test_another_seed_gives_other_tables(tiny, result):
    other = run_study(tiny, 1, Execution(8, 1))
    assert (
        other.to_pandas("steps")["effective_saps"].tolist()
        != result.to_pandas("steps")["effective_saps"].tolist()[: len(other.to_pandas("steps"))]
    )


def test_steps_have_every_column_of_the_laboratory(result):
    scenarios = ("ims_rereg", "ims_reg", "ims_uac", "ims_dereg", "ims_msgc")
    wanted = ["environment", "phase", "step_index", "requested_saps", "effective_saps", "cpu_percent", "memory_mb"]
    wanted += [f"{what}_{s}_percent" for what in ("ratio", "ihs") for s in scenarios] + ["ihs_global_percent"]
    assert set(wanted) <= set(result.to_pandas("steps").columns)


def test_figures_of_a_step_agree_with_its_records(result):
    """IHS and load recomputed by hand from the counts of one replication's second step."""
    row = result.to_pandas("steps").query("replication == 1 and step_index == 2").iloc[0]
    phase = next(p for p in result.records[1][1].played() if p.index == 2)
    assert row["effective_saps"] == sum(phase.attempts) / 4.0
    assert row["ihs_ims_uac_percent"] == 100.0 * phase.inadequate[2] / phase.attempts[2]
    assert row["cpu_percent"] == pytest.approx(sum(phase.series["cpu_percent"]) / len(phase.series["cpu_percent"]))


def test_the_summary_says_n_and_the_kind_of_interval(result):
    summary = result.summary
    first = summary.query("figure == 'workloads.calls.at_10.cpu'").iloc[0]
    values = result.to_pandas("steps").query("step_index == 1")["cpu_percent"]
    assert (first["n"], first["interval"]) == (3, "range")
    assert math.isnan(first["confidence"]), "three runs have a range and no interval"
    assert first["estimate"] == pytest.approx(values.mean())
    assert (first["low"], first["high"]) == (values.min(), values.max())
    nothing_seen = summary.query("figure == 'workloads.calls.at_10.ihs'").iloc[0]
    assert (nothing_seen["estimate"], nothing_seen["interval"]) == (0.0, "none")
    assert math.isnan(nothing_seen["high"]), "that none was seen in three runs promises nothing"


def test_percentiles_are_those_of_all_runs_together(result):
    """Pooled from the histograms themselves, and printed with every run's percentile as range."""
    together = DelayHistogram()
    for _, record in result.records:
        together.merge(next(p for p in record.played() if p.index == 1).delays["SES1"])
    row = result.summary.query("metric == 'PX_TRT-SES1' and step_index == 1 and statistic == 'p95_ms'").iloc[0]
    in_csv = result.to_pandas("delays").query("metric == 'PX_TRT-SES1' and step_index == 1")["p95_ms"]
    assert row["estimate"] == together.percentile(95) / 1e6
    assert (row["n"], row["low"], row["high"]) == (3, in_csv.min(), in_csv.max())


@pytest.mark.thorough
def test_one_replication_has_no_interval(tiny):
    summary = run_study(tiny, 1, Execution(7, 1)).summary
    assert set(summary[summary["metric"] == "cpu_percent"]["interval"]) == {"none"}
    assert summary[summary["metric"] == "cpu_percent"]["low"].isna().all()


def test_a_kept_result_is_opened_as_it_was(tiny, tmp_path):
    result = run_study(tiny, 2, Execution(7, 1), directory=tmp_path / "out")
    again = RunResult.opened(tmp_path / "out")
    assert (str(again), again.model.spec) == (str(result), result.model.spec)
    for name, table in result.tables.items():
        assert csv_text(again.tables[name]) == csv_text(table), name


@pytest.mark.draws
@pytest.mark.thorough
def test_a_result_directory_has_manifest_tables_and_charts(tiny, tmp_path):
    folder = tmp_path / "out"
    run_study(tiny, 2, Execution(7, 1), directory=folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["replications"] == [0, 1]
    assert manifest["state"] == "finished"
    assert manifest["models"][0]["sha256"] == tiny.digest()
    # The tests run in a checkout, where a result names the commit; in an installed package there is none.
    assert not (PACKAGE.parent / ".git").exists() or len(manifest["git"]["commit"]) == 40
    assert {
        "vftsim",
        "git",
        "seed",
        "stream_scheme",
        "bit_generator",
        "python",
        "os",
        "packages",
        "command_line",
        "started_utc",
        "ended_utc",
        "workers",
    } <= set(manifest)
    assert {p.name for p in folder.iterdir()} == {
        "manifest.json",
        "model.yaml",
        "summary.csv",
        "steps.csv",
        "per_second.csv",
        "delays.csv",
        "percentiles.csv",
        "series.csv",
        "figures.csv",
        "windows.csv",
        "drops.csv",
        "charts.png",
        "vftsim.sqlite",
    }
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.draws
@pytest.mark.thorough
def test_equal_runs_write_equal_files(tiny, tmp_path):
    for name in ("a", "b"):
        run_study(tiny, 2, Execution(7, 1), directory=tmp_path / name)
    for file in sorted((tmp_path / "a").rglob("*")):
        if file.is_file() and file.suffix not in {".json", ".sqlite"}:
            assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes(), file.name


def test_the_manifest_names_what_determines_results_and_differs_in_its_times_alone(tiny):
    first, second = (run_study(tiny, 1, Execution(7, 1)).manifest for _ in range(2))
    assert first["python"] == platform.python_version()
    assert first["packages"]["numpy"] == np.__version__
    assert first["packages"]["simpy"] == simpy.__version__
    times = {"started_utc", "ended_utc"}
    assert {k: v for k, v in first.items() if k not in times} == {k: v for k, v in second.items() if k not in times}


@pytest.mark.thorough
def test_an_existing_result_is_not_overwritten_unasked(tiny, tmp_path):
    folder = tmp_path / "out"
    run_study(tiny, 1, Execution(7, 1), directory=folder)
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match="--resume continues it, --force replaces it"):
        run_study(tiny, 1, Execution(7, 1), directory=folder)
    assert (folder / "manifest.json").read_bytes() == before
    run_study(tiny, 1, Execution(9, 1), directory=folder, force=True)
    assert json.loads((folder / "manifest.json").read_text())["seed"] == 9


@pytest.mark.thorough
def test_resume_adds_replications_and_repeats_none(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    run_study(tiny, 2, Execution(7, 1), directory=folder)
    ran = []
    simulate = execution_module._simulate

    def counted(task, tell=None):
        ran.append(task.replication)
        return simulate(task)

    monkeypatch.setattr(execution_module, "_simulate", counted)
    more = run_study(tiny, 3, Execution(7, 1), directory=folder, resume=True)
    assert ran == [2]
    assert csv_text(more.to_pandas("steps")) == csv_text(run_study(tiny, 3, Execution(7, 1)).to_pandas("steps"))


def test_a_result_of_which_replications_are_lost_is_not_read_as_one_of_fewer(tiny, tmp_path):
    run_study(tiny, 2, Execution(7, 1), directory=tmp_path / "out")
    with closing(sqlite3.connect(tmp_path / "out" / DATABASE)) as connection, connection:
        connection.execute("DELETE FROM replications WHERE replication = 1")
    with pytest.raises(UsageError, match="has 1 of the 2 replications of its tables"):
        RunResult.opened(tmp_path / "out")


@pytest.mark.thorough
def test_resume_refuses_another_study(tiny, tmp_path):
    folder = tmp_path / "out"
    run_study(tiny, 1, Execution(7, 1), directory=folder)
    with pytest.raises(UsageError, match="different seed"):
        run_study(tiny, 2, Execution(8, 1), directory=folder, resume=True)


@pytest.mark.thorough
def test_a_killed_run_goes_on_from_what_had_arrived(tiny, tmp_path, monkeypatch):
    """The third replication dies of a bug: two are on disk, tables are not."""
    folder = tmp_path / "out"
    simulate = execution_module._simulate

    def dies(task, tell=None):
        if task.replication == 2:
            raise RuntimeError("killed")
        return simulate(task)

    monkeypatch.setattr(execution_module, "_simulate", dies)
    with pytest.raises(RuntimeError, match="killed"):
        run_study(tiny, 4, Execution(7, 1), directory=folder)
    assert [path.name for path in folder.iterdir()] == ["vftsim.sqlite"]
    monkeypatch.setattr(execution_module, "_simulate", simulate)
    with pytest.raises(UsageError, match="holds a run with 2 finished replications"):
        run_study(tiny, 4, Execution(7, 1), directory=folder)
    whole = run_study(tiny, 4, Execution(7, 1), directory=folder, resume=True)
    assert [number for number, _ in whole.records] == [0, 1, 2, 3]
    assert (folder / "summary.csv").exists()


def test_a_bug_before_the_first_replication_leaves_nothing(tiny, tmp_path, monkeypatch):
    def dies(_, tell=None):
        raise RuntimeError("bug")

    monkeypatch.setattr(execution_module, "_simulate", dies)
    with pytest.raises(RuntimeError):
        run_study(tiny, 2, Execution(7, 1), directory=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.own_process
def test_interruption_keeps_what_had_arrived(tiny):
    class InterruptedAfterTwo(Progress):
        done = 0

        def advance(self, text=""):
            self.done += 1
            if self.done == 2:
                os.kill(os.getpid(), signal.SIGINT)

    done = Replications([tiny], Execution(7, 1, InterruptedAfterTwo()))
    assert not done.run(5)
    assert done.interrupted
    assert done.common == [0, 1]


@pytest.mark.parametrize(("replications", "seed", "jobs"), [(0, 1, 1), (1, -1, 1), (1, 2**128, 1), (1, 1, 0)])
def test_numbers_that_make_no_sense_are_refused(replications, seed, jobs):
    with pytest.raises(UsageError):
        Execution(seed, jobs).check(replications)
