"""The tables of the Linux lab agree with themselves, with each other, and with what the lab set."""

import csv

import pytest

from vftsim.labs.dataset import read_dataset
from vftsim.spec import shipped_dir

LAB = shipped_dir("calibration") / "linux-lab"


def table(name):
    with (LAB / "data" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


RUNS = table("runs")
TIMES = table("response_times")
WIRE = [row for row in TIMES if (row["source"], row["scope"]) == ("wire", "window")]


def number(row, column):
    return float(row[column] or 0.0)


def of(environment):
    return [row for row in RUNS if row["environment"] == environment]


def test_49_runs_each_with_its_response_times():
    assert len(RUNS) == len({row["run_id"] for row in RUNS}) == 49
    calls = {"bye200", "bye_fwd", "invite100", "invite180", "invite200", "invite_fwd", "ok_fwd"}
    for run in RUNS:
        metrics = {row["metric"] for row in WIRE if row["run_id"] == run["run_id"]}
        assert metrics == ({"register200"} if run["scenario"] == "register" else calls), run["run_id"]


def test_keys_say_what_the_run_was_called():
    for row in RUNS + TIMES:
        assert row["run_id"].endswith(f"_{row['environment']}_{row['phase']}_n{row['repeat']}")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["run_id"])
def test_a_run_agrees_with_itself(run):
    """CPU seconds, share of the core, CPU a call and rates are the same numbers said in several ways."""
    window = number(run, "window_s")
    assert run["phase"] == f"r{run['rate_set']}"
    assert number(run, "sut_core_pct") == pytest.approx(100 * number(run, "sut_cpu_s") / window, abs=0.01)
    completed = number(run, "completed_cps") * window
    assert number(run, "sut_cpu_ms_per_completed") == pytest.approx(
        1e3 * number(run, "sut_cpu_s") / completed, rel=2e-3
    )
    assert number(run, "win_calls") == pytest.approx(number(run, "offered_cps") * window, abs=1.0)
    assert number(run, "win_calls") == pytest.approx(number(run, "rate_set") * window, rel=0.03)
    core = sum(number(run, c) for c in ("sut_core_pct", "hog_core_pct", "cpu1_steal_pct", "cpu1_idle_pct"))
    assert 98.0 < core < 115.0  # stolen time is partly counted as used, too


def test_percentiles_rise_and_hold_the_mean():
    names = ["min", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999", "max"]
    for row in TIMES:
        if row["n"] == "0":
            continue
        values = [float(row[f"{name}_ms"]) for name in names]
        assert values == sorted(values), (row["run_id"], row["metric"])
        assert values[0] <= float(row["mean_ms"]) <= values[-1]
        assert float(row["sd_ms"]) <= values[-1] - values[0]


def test_times_of_a_run_count_its_calls():
    """A call of the window has its INVITE answered or is counted as unanswered; BYEs of earlier calls count too."""
    calls = {run["run_id"]: run for run in RUNS}
    for row in WIRE:
        run = calls[row["run_id"]]
        if row["metric"] == "invite200":
            assert int(row["n"]) == int(run["win_calls"]) - int(run["win_unanswered"])
        elif row["metric"].startswith("invite"):
            assert int(row["n"]) <= int(run["win_calls"])


def test_affected_and_unaffected_calls_of_the_outage_are_all_of_them():
    counts = {}
    for row in TIMES:
        if row["environment"] == "out1" and row["source"] == "wire":
            counts.setdefault(row["metric"], {})[row["scope"]] = int(row["n"])
    for scopes in counts.values():
        assert scopes["affected"] + scopes["unaffected"] == scopes["window"]


def test_the_quota_was_kept_and_only_there():
    """40 ms in 100 ms: at most 40 % of the core, 10 periods a second while there is something to run."""
    for run in of("q40"):
        assert number(run, "quota_us") / number(run, "period_us") == 0.4
        assert number(run, "sut_core_pct") <= 40.5
        assert number(run, "nr_throttled") <= number(run, "nr_periods") <= 10 * number(run, "window_s") + 1
    assert not [run for run in RUNS if run["environment"] != "q40" and number(run, "nr_throttled")]
    assert number(of("q40")[4], "nr_throttled") > 100  # at twice the load it can carry


def test_the_competitor_took_what_was_left():
    assert not [run for run in RUNS if (run["environment"] == "eq") != (number(run, "hog_core_pct") > 1)]
    for run in of("eq"):
        assert number(run, "hog_core_pct") >= 50.0 - 2.0
        assert number(run, "cpu1_idle_pct") < 1.0


@pytest.mark.parametrize(("environment", "length"), [("p2t50", 2), ("p5t50", 5), ("p10t50", 10)])
def test_stops_were_made_as_set(environment, length):
    for run in of(environment):
        assert number(run, "pause_ms") == length
        assert number(run, "pauses_n") == pytest.approx(20 * number(run, "window_s"), rel=0.03)
        assert length <= number(run, "pause_actual_mean_ms") < length + 0.5
        assert number(run, "cpu_ns_while_frozen_max") == 0


def test_nothing_was_completed_during_the_outage():
    bins = table("outage_timeline")
    starts = [int(row["t_from_freeze_ms"]) for row in bins]
    assert starts == list(range(starts[0], starts[-1] + 100, 100))
    frozen = [row for row in bins if 100 <= int(row["t_from_freeze_ms"]) < 1000]
    assert sum(int(row["calls_completed"]) for row in frozen) == 0
    assert sum(int(row["invites_started"]) for row in frozen) == pytest.approx(180, rel=0.15)


def test_the_dataset_averages_repeats_and_names_its_metrics():
    dataset = read_dataset(LAB / "data")
    base = dataset.repeats("base")
    assert base["r50", "cpu"] == [10.95, 10.91, 12.22]
    assert dataset.observations("base")["r50", "cpu"] == pytest.approx(11.36)
    assert set(dataset.spec.environments) == {run["environment"] for run in RUNS}
    row = next(r for r in WIRE if (r["run_id"], r["metric"]) == ("A_base_r250_n1", "invite_fwd"))
    assert base["r250", "SES2/p90"][0] == float(row["p90_ms"])
    assert dataset.observations("q40")["r280", "calls_unanswered/total"] == 419
    assert dataset.observations("out1")["r200", "affected/SES2"] > 100


def test_the_noise_that_the_page_tells_is_that_of_the_repeats():
    """Every row of the page's table, recomputed; three significant digits."""
    page = (LAB / "README.md").read_text(encoding="utf-8")
    repeats = {name: read_dataset(LAB / "data").repeats(name) for name in ("base", "q40", "eq", "p5t50")}
    lines = [
        line.split("|")[1:-1]
        for line in page.splitlines()
        if line.startswith(("| base r", "| q40 r", "| eq r", "| p5"))
    ]
    assert len(lines) == 11
    for cells in lines:
        environment, phase = cells[0].split()
        for cell, quantity in zip(
            cells[2:], ("cpu_per_call", "invite200/p50", "invite200/p90", "completed"), strict=True
        ):
            values = repeats[environment][phase, quantity]
            assert len(values) == int(cells[1])
            told = [float(word) for word in cell.split(" to ")]
            assert [told[0], told[-1]] == pytest.approx([min(values), max(values)], rel=6e-3), (cells[0], quantity)
