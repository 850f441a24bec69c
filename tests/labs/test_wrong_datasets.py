"""What a new user gets wrong in a dataset: one message with file, line and key or column, exit code 2, no traceback."""

import pytest

from vftsim.cli.main import main

DATASET = """\
name: mine
environments:
  home: {}
phases:
  meaning: a run of a minute
tables:
  runs:
    file: runs.csv
    keys: {environment: where, phase: run, repeat: n}
    columns:
      cpu: {metric: cpu, unit: "%"}
      rate: {metric: load, unit: /s}
"""
RUNS = "where,run,n,cpu,rate\nhome,step_1,1,20,50\nhome,step_2,1,40,100\n"
FIT = """\
name: mine
model: lab-native
dataset: .
environment: home
parameters:
  - {path: domains.sut.applications.proxy.touch_cost, low: 0.1 ms, high: 1 ms, start: 0.5 ms, meaning: price}
in_sample: [step_1]
"""

IN_THE_FILE = {
    "a tab": ("  home: {}", "\thome: {}", ":3"),
    "no colon": ("phases:\n", "phases\n", ":5: is not well-formed"),
    "a key twice": ("phases:", "environments: {x: {}}\nphases:", ":4"),
    "unquoted percent": ('unit: "%"', "unit: %", ":11"),
    "environments as a list": ("environments:\n  home: {}", "environments: [home]", ":2: environments"),
    "no phases": ("phases:\n  meaning: a run of a minute\n", "", "phases"),
    "phases as a list": ("phases:\n  meaning: a run of a minute", "phases: [step_1]", ":4: phases"),
    "no meaning": ("meaning: a run of a minute", "names: [step_1]", ":4: phases.meaning"),
    "no name": ("name: mine\n", "", "name"),
    "nothing in an environment": ("  home: {}", "  home:", ":3: environments.home"),
    "another word for a unit": ("unit: /s", "unit: per second", ":12: tables.runs.columns.rate.unit"),
    "a unit that is none": ("unit: /s", "unit: cps", ":12: tables.runs.columns.rate.unit"),
    "average": ("unit: /s", "unit: /s, statistic: average", ":12: tables.runs.columns.rate.statistic"),
    "p100": ("unit: /s", "unit: /s, statistic: p100", ":12: tables.runs.columns.rate.statistic"),
    "a metric of two words": ("metric: load", "metric: offered load", ":12: tables.runs.columns.rate.metric"),
    "no columns": (DATASET[DATASET.index("    columns") :], "", ":7: tables.runs.columns"),
    "no key": ("environment: where, ", "", ":7: tables.runs"),
    "a key of another name": ("repeat: n", "run: n", ":9: tables.runs.keys.run"),
    "rename alone": ("    columns", "    rename: {a: b}\n    columns", ":7: tables.runs"),
    "file forgotten": ("    file: runs.csv\n", "", ":7: tables.runs.file"),
    "file of another name": ("file: runs.csv", "file: data.csv", "data.csv: cannot be read"),
    "a folder as file": ("file: runs.csv", "file: .", "cannot be read"),
    "tables as a list": ("tables:\n  runs:\n    file", "tables:\n  - file", ":6: tables"),
    "a number where words belong": ("name: mine", "name: 5", ":1: name"),
    "format unknown": ("file: runs.csv", "file: runs.csv\n    format: excel", ":9: tables.runs.format"),
    "not a mapping": (DATASET, "runs.csv\n", "dataset.yaml"),
    "empty": (DATASET, "", "dataset.yaml"),
}
IN_THE_TABLE = {
    "percent sign": (",20,", ",20 %,", "runs.csv:2: cpu: '20 %' is not a number"),
    "unit in the cell": (",50\n", ",50/s\n", "runs.csv:2: rate: '50/s' is not a number"),
    "thousands": (
        ",100\n",
        ',"1,000"\n',
        "runs.csv:3: rate: '1,000' is not a number; write a decimal point, and thousands without a separator",
    ),
    "more thousands": (",100\n", ',"1,000,000.5"\n', "not a number; write a decimal point, and thousands without"),
    "semicolons": (RUNS, RUNS.replace(",", ";"), "runs.csv:1: has no column 'where'"),
    "no header": ("where,run,n,cpu,rate\n", "", "runs.csv:1: has no column"),
    "header alone": (RUNS, "where,run,n,cpu,rate\n", "runs.csv: has no rows"),
    "nothing": (RUNS, "", "runs.csv: is empty"),
    "a comma too many": (",20,50", ",20,50,", "runs.csv:2: has 6 cells, the header 5"),
    "another case": ("home,step_1", "Home,step_1", "runs.csv:2: where: 'Home' is no environment"),
    "the same run again": ("step_2", "step_1", "runs.csv:3: cpu: gives cpu of 'home', 'step_1', repeat '1' a second"),
    "n/a": (",20,", ",n/a,", "runs.csv:2: cpu: 'n/a' is not a number"),
    "no such phase": ("step_1", "one", "has no observations"),
    "a spreadsheet": (RUNS, "PK\x03\x04\x00\xff", "runs.csv"),
}


def told(folder, capsys, dataset=DATASET, runs=RUNS):
    (folder / "dataset.yaml").write_text(dataset)
    (folder / "runs.csv").write_bytes(runs.encode("latin-1"))
    (folder / "fit.yaml").write_text(FIT)
    assert main(["calibrate", str(folder / "fit.yaml"), "-q", "-j", "1"]) == 2
    printed = capsys.readouterr().err
    assert printed.count("vftsim:") == 1
    assert "Traceback" not in printed
    return printed


@pytest.mark.parametrize(("old", "new", "where"), IN_THE_FILE.values(), ids=IN_THE_FILE)
def test_a_mistake_in_the_file(tmp_path, capsys, old, new, where):
    assert old in DATASET
    assert where in told(tmp_path, capsys, dataset=DATASET.replace(old, new))


@pytest.mark.parametrize(("old", "new", "where"), IN_THE_TABLE.values(), ids=IN_THE_TABLE)
def test_a_mistake_in_a_table(tmp_path, capsys, old, new, where):
    assert old in RUNS
    assert where in told(tmp_path, capsys, runs=RUNS.replace(old, new))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings(tmp_path, capsys, encoding):
    """UTF-16, as spreadsheets write it, is refused; a byte order mark before UTF-8 is read over."""
    message = None
    (tmp_path / "dataset.yaml").write_text(DATASET)
    (tmp_path / "fit.yaml").write_text(FIT.replace("in_sample: [step_1]", "in_sample: [step_9]"))
    (tmp_path / "runs.csv").write_bytes(RUNS.encode(encoding))
    assert main(["calibrate", str(tmp_path / "fit.yaml"), "-q", "-j", "1"]) == 2
    message = capsys.readouterr().err
    assert ("runs.csv:1: is not UTF-8 text" in message) == (encoding == "utf-16")
    assert ("has no observations of cpu for" in message) == (encoding == "utf-8-sig")
