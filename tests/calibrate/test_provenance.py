"""A fitted file knows what it was made from, and a validation says when that has changed."""

import json
import math
from pathlib import Path

import pytest

from vftsim import __version__
from vftsim.calibrate import fitted
from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.figures import measured
from vftsim.calibrate.intervals import Fit
from vftsim.labs import dataset
from vftsim.spec import shipped_dir
from vftsim.study.runs.model import load_model
from vftsim.workloads.ims_bench import metrics

SHIPPED_FITS = sorted((shipped_dir("calibration") / "sip-lab/fitted").glob("*.json"))
DATA = {
    ("step_1", "load"): 50.0,
    ("step_1", "cpu"): 40.0,
    ("step_2", "load"): 60.0,
    ("step_2", "cpu"): 48.0,
    ("step_1", "memory"): 3000.0,
}
KEYS = [("step_1", "cpu")]


def record(environment="virtual"):
    parameter = {
        "path": "domains.sut.applications.proxy.touch_cost",
        "low": "0.3 ms",
        "high": "2 ms",
        "start": "1 ms",
        "meaning": "cost",
    }
    definition = CalibrationSpec(
        name="n", model="m", dataset="data", environment=environment, parameters=[parameter], in_sample=["step_1"]
    )
    value = {"domains.sut.applications.proxy.touch_cost": 1e6}
    fit = Fit(value, value, value, dict.fromkeys(KEYS, 0.1), 0.0, 1)
    return fitted.as_record(definition, load_model("lab-native").spec, DATA, fit, {}, dict.fromkeys(value, "ns"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fitted").mkdir()
    fitted.write(tmp_path / "fitted" / "virtual.json", record())
    return tmp_path


def test_the_file_says_version_calibration_model_and_data():
    made = record()
    assert made["vftsim_version"] == __version__
    hashes = [made[name] for name in ("calibration_sha256", "model_sha256", "data_sha256")]
    assert all(len(each) == 64 for each in hashes)
    assert len(set(hashes)) == 3
    assert record("native")["calibration_sha256"] != made["calibration_sha256"]


@pytest.mark.parametrize("path", SHIPPED_FITS, ids=lambda path: path.stem)
def test_the_shipped_fits_name_no_path_of_a_machine(path):
    command_line = json.loads(path.read_text())["manifest"]["command_line"]
    assert not [word for word in command_line if Path(word).is_absolute()]


def test_the_same_data_give_no_warning_whatever_else_the_dataset_holds(folder):
    assert fitted.warnings(folder, "virtual", DATA) == []
    more = {("step_1", "memory"): 0.0, ("step_2", "cpu"): 99.0, ("step_1", "REG1/p50"): 1.0}
    assert fitted.warnings(folder, "virtual", DATA | more) == []


@pytest.mark.parametrize("change", [{("step_1", "cpu"): 40.1}, {("step_1", "load"): 50.1}])
def test_another_observation_or_load_is_noticed(folder, change):
    (warning,) = fitted.warnings(folder, "virtual", DATA | change)
    assert warning == "fitted/virtual.json was fitted to other data than the dataset holds now for 'virtual'"
    assert fitted.warnings(folder, "native", DATA | change) == []


def test_files_without_a_hash_are_tolerated_and_broken_ones_named(folder):
    old = {key: value for key, value in record().items() if key != "data_sha256"}
    (folder / "fitted" / "virtual.json").write_text(json.dumps(old))
    assert fitted.warnings(folder, "virtual", {}) == []
    (folder / "fitted" / "virtual.json").write_text("{")
    assert fitted.warnings(folder, "virtual", {}) == ["fitted/virtual.json cannot be read as a fitted file"]
    assert fitted.warnings(folder / "fitted", "virtual", DATA) == []


def fsum_of_floats(values, start=0):
    """What ``sum`` is from Python 3.12 on, but for rare last bits."""
    numbers = list(values)
    return math.fsum([start, *numbers]) if any(isinstance(each, float) for each in numbers) else sum(numbers, start)


@pytest.mark.parametrize("add", [sum, fsum_of_floats], ids=["sum as it is here", "sum as it is from Python 3.12 on"])
def test_the_shipped_fits_were_made_from_the_shipped_data(add, monkeypatch):
    for module in (dataset, metrics):
        monkeypatch.setattr(module, "sum", add, raising=False)
    home = shipped_dir("calibration") / "sip-lab"
    for environment in ("native", "virtual", "virtual_ft"):
        assert fitted.warnings(home, environment, measured(home / "data", environment)) == []
