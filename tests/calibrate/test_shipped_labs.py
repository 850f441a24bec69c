"""The labs that are shipped by runs: their files fit together, and the models have the prices that were fitted."""

import json

import pytest

from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.calibrate.fit import chosen
from vftsim.calibrate.fitted import data_sha256
from vftsim.calibrate.validation import RunValidationSpec, measured_runs, read_validation, run_models
from vftsim.composition.keys import read
from vftsim.labs.dataset import read_dataset
from vftsim.labs.named_files import dataset_path
from vftsim.spec import shipped_dir

ROOM = shipped_dir("calibration")
FITTED = {"linux-lab/base": "linux-lab/fitted/base.json", "own-lab/fit": "own-lab/fitted.json"}
VALIDATIONS = {"linux-lab/base": "linux-lab/validation", "own-lab/fit": "own-lab/validation"}


@pytest.mark.parametrize("name", FITTED)
def test_models_have_the_prices_of_the_fit_and_the_fit_the_data(name):
    record = json.loads((ROOM / FITTED[name]).read_text())
    definition, tree = read_definition(name, CalibrationSpec)
    data = measured_runs(dataset_path(tree.at("dataset")), definition.runs)
    assert {(each["phase"], each["quantity"]) for each in record["residuals"]} == set(chosen(definition, data))
    assert record["data_sha256"] == data_sha256(data, chosen(definition, data))
    (model, *_) = run_models(tree, definition, definition.runs).values()
    for path, fitted in record["parameters"].items():
        assert read(model, path) == pytest.approx(fitted["value"], rel=1e-3, abs=1e-3), path


@pytest.mark.parametrize("name", FITTED)
def test_every_measured_run_is_fitted_or_predicted_and_none_is_both(name):
    spec, tree = read_validation(VALIDATIONS[name])
    assert isinstance(spec, RunValidationSpec)
    dataset = read_dataset(dataset_path(tree.at("dataset")))
    runs = {f"{each.environment}/{each.phase}" for each in dataset.measurements}
    assert not set(spec.fitted) & set(spec.predicted)
    assert set(spec.fitted) | set(spec.predicted) == runs
    definition, _ = read_definition(name, CalibrationSpec)
    assert set(definition.in_sample) == set(spec.fitted)
    wanted = [tuple(run.split("/")) for run in sorted(runs)]
    assert set(run_models(tree, spec, wanted)) == runs


def test_what_is_set_of_a_run_is_what_the_lab_set():
    """Rate, quota, stops with 0.27 ms of freezing, and the outage 6 s into the window."""
    spec, tree = read_definition("linux-lab/validation", RunValidationSpec)
    runs = [tuple(label.split("/")) for label in (*spec.fitted, *spec.predicted)]
    models = run_models(tree, spec, runs)
    for label, model in models.items():
        assert model.workloads["calls"].steps.initial == float(label.partition("/r")[2])
        quota = (model.domains["sut"].quota, model.domains["sut"].period) if label.startswith("q40") else (0, None)
        assert (model.domains["sut"].quota, model.domains["sut"].period) == quota
        assert ("hog" in model.domains) == label.startswith("eq")
    assert models["q40/r80"].domains["sut"].quota / models["q40/r80"].domains["sut"].period == 0.4
    stop = models["p5t50/r200"].faults[0]
    assert (stop.duration, stop.repeat.every) == (5_270_000, 50_000_000)
    out = models["out1/r200"]
    assert out.time_of(out.faults[0].at) - out.workloads["calls"].steps.transient == 6_000_000_000
