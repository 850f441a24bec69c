"""A dataset is what its file says it is; every mistake is told with file, line and key or column."""

import json
from typing import get_args

import pytest
from small_lab_dataset import write

from vftsim.cli.main import main
from vftsim.errors import ModelFileError
from vftsim.labs.dataset import read_dataset
from vftsim.labs.table import read_rows
from vftsim.labs.units import Unit, observed, observed_unit
from vftsim.spec import shipped_dir


def test_observations_have_the_units_names_and_environments_of_the_file(tmp_path):
    """600 a minute are 10 a second; repeats are averaged; rows of another source are left out."""
    dataset = read_dataset(write(tmp_path))
    assert dataset.observations("home") == {
        ("step_1", "cpu"): 21.0,
        ("step_1", "load"): pytest.approx(10.5),
        ("step_1", "steal"): 1.0,
        ("step_1", "SES2/p50"): 2.0,
        ("step_1", "SES2_sd"): 0.5,
        ("step_1", "bye/p50"): 3.0,
        ("step_1", "bye_sd"): 1.0,
    }
    assert dataset.repeats("home")["step_1", "cpu"] == [20.0, 22.0]
    assert dataset.observations("garden")["step_1", "cpu"] == 40.0
    assert dataset.units()["SES2/p50"].unit == "ms"


def test_file_and_folder_name_the_same_dataset(tmp_path):
    write(tmp_path)
    both = [read_dataset(path).observations("home") for path in (tmp_path, tmp_path / "dataset.yaml")]
    assert both[0] == both[1]


def test_a_cell_in_quotes_keeps_its_line_breaks(tmp_path):
    table = tmp_path / "table.csv"
    table.write_bytes('phase,value\r\n"a\nb",1\r\n"c\u2028d",2\r\n'.encode())
    rows = list(read_rows(table, ",", ["phase", "value"]))
    assert [row.cells["phase"] for row in rows] == ["a\nb", "c\u2028d"]
    assert [row.line for row in rows] == [3, 4]


def test_every_unit_has_a_size_and_a_place():
    assert {observed_unit(unit) for unit in get_args(Unit)} == {"ms", "/s", "%", "MB", "Mbit/s", "count"}
    assert observed(1.5, "s") == 1500.0
    assert observed(512, "MiB") == pytest.approx(536.870912)
    assert observed(120, "/min") == pytest.approx(2.0)


DATA_MISTAKES = {
    "missing column": ({"runs": ("cpu_percent", "cpu_pct")}, "runs.csv:1: has no column 'cpu_percent'; did you mean"),
    "empty cell": ({"runs": ("1,20,", "1,,")}, "runs.csv:2: cpu_percent: the cell is empty"),
    "empty key": ({"runs": ("garden,", ",")}, "runs.csv:4: where: the cell is empty"),
    "text": ({"runs": ("22,660", "many,660")}, "runs.csv:3: cpu_percent: 'many' is not a number"),
    "decimal comma": ({"delays": ("0.003", "0,003")}, "delays.csv:4: p50_s: '0,003' is not a number; write a decimal"),
    "nan": ({"runs": ("22,660", "nan,660")}, "runs.csv:3: cpu_percent: 'nan' is not a number"),
    "endless": ({"runs": ("22,660", "1e999,660")}, "runs.csv:3: cpu_percent: '1e999' is too large"),
    "ragged": ({"runs": ("0.01,x", "0.01")}, "runs.csv:2: has 6 cells, the header 7"),
    "quotes": ({"runs": ('"quoted,', '"quo"ted,')}, "runs.csv:4: is not a table"),
    "two columns": ({"runs": (",note", ",rate")}, "runs.csv:1: has two columns 'rate'"),
    "environment": ({"runs": ("garden", "gardn")}, "runs.csv:4: where: 'gardn' is no environment of dataset.yaml; did"),
    "twice": ({"runs": ("step_1,2", "step_1,1")}, "runs.csv:3: cpu_percent: gives cpu of 'home', 'step_1', repeat '1'"),
    "nothing": ({"delays": ("wire", "pcap")}, "delays.csv: has no rows with source 'wire'"),
}


@pytest.mark.parametrize(("changed", "message"), DATA_MISTAKES.values(), ids=DATA_MISTAKES)
def test_a_mistake_in_a_table_is_told_with_its_place(tmp_path, changed, message):
    with pytest.raises(ModelFileError) as caught:
        read_dataset(write(tmp_path, **changed))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


FILE_MISTAKES = {
    "unit": ('"%"}', '"procent"}', "dataset.yaml:9: tables.runs.columns.cpu_percent.unit: "),
    "statistic": ("statistic: p50", "statistic: median", "dataset.yaml:21: tables.delays.columns.p50_s.statistic: "),
    "typo": ("where: {source", "wehre: {source", "dataset.yaml:17: tables.delays.wehre: "),
    "no environment": ("    constant: {environment: home}\n", "", "dataset.yaml:12: tables.delays: "),
    "units of two kinds": (
        "metric: steal,",
        "metric: SES2, statistic: p50,",
        "delays.csv:2: p50_s: gives SES2/p50 in ms, runs.csv in %; mend a unit",
    ),
    "unknown": ("constant: {environment: home}", "constant: {environment: hom}", "dataset.yaml"),
    "two metrics": ("p50_s: {unit", "p50_s: {metric: x, unit", "dataset.yaml:12: tables.delays: "),
    "no metric": ("metric: cpu, ", "", "dataset.yaml:5: tables.runs: "),
    "no file": ("file: runs.csv", "file: run.csv", "run.csv: cannot be read: No such file"),
}


@pytest.mark.parametrize(("old", "new", "message"), FILE_MISTAKES.values(), ids=FILE_MISTAKES)
def test_a_mistake_in_the_description_is_told_with_its_place(tmp_path, old, new, message):
    with pytest.raises(ModelFileError) as caught:
        read_dataset(write(tmp_path, dataset=(old, new)))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_a_phase_outside_the_named_ones_and_a_rule_without_rows_are_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"runs\.csv:2: phase: 'step_1' is no phase of dataset\.yaml; did you"):
        read_dataset(write(tmp_path, dataset=("a minute,", "a minute, names: [step_2],")))
    rule = "rows: [{where: {what: cancel}, metric: X}]\n    columns:\n      p50_s"
    with pytest.raises(ModelFileError, match=r"delays\.csv: has no row with what 'cancel'"):
        read_dataset(
            write(
                tmp_path,
                dataset=("metric_column: what\n    rename: {invite: SES2}\n    columns:\n      p50_s", rule),
            )
        )


def test_unknown_environments_are_refused_with_the_known_ones(tmp_path):
    dataset = read_dataset(write(tmp_path))
    with pytest.raises(ModelFileError, match="no environment 'hoem'; did you mean 'home'"):
        dataset.observations("hoem")


def test_a_folder_without_its_file_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"dataset\.yaml: a dataset needs a file dataset\.yaml"):
        read_dataset(tmp_path)


def test_the_shipped_schema_is_the_published_one(capsys):
    assert main(["schema", "dataset"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(
        (shipped_dir("calibration") / "dataset.schema.json").read_text()
    )
    for kind in ("calibration", "validation"):
        assert main(["schema", kind]) == 0
        assert f'"title": "vftsim {kind}"' in capsys.readouterr().out
