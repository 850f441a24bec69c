"""What shipped models say they were fitted to is what the calibrations fitted, by their own files and data."""

import pytest

from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.labs.dataset import read_dataset
from vftsim.labs.named_files import dataset_path, model_file
from vftsim.study.runs.model import load_model, shipped_models

ENVIRONMENT = {"linux-lab/base": "base", "own-lab/fit": "proxy"}
"""That of the model as it stands, where a calibration has several; the others change the system or the mix."""
FITS = {
    "lab-native": "sip-lab/native",
    "lab-virtual": "sip-lab/virtual",
    "lab-virtual-ft": "sip-lab/ft",
    "linux-lab": "linux-lab/base",
}


def fitted_loads(name):
    """Return the measured loads of the steps, or of the runs of the model as it stands, that a calibration fitted."""
    definition, tree = read_definition(name, CalibrationSpec)
    environment = definition.environment or ENVIRONMENT[name]
    measured = read_dataset(dataset_path(tree.at("dataset"))).observations(environment)
    prefix = f"{environment}/" if definition.environments else ""
    phases = [
        phase.removeprefix(prefix)
        for phase in definition.in_sample
        if phase.startswith(prefix) and phase != "pre_registration"
    ]
    return [measured[phase, "load"] for phase in phases], str(model_file(tree.at("model"), "model"))


@pytest.mark.parametrize("name", [*FITS.values(), "own-lab/fit"])
def test_a_model_says_the_loads_that_its_calibration_fitted(name):
    """Asked for in the model, so within 1 % of what was measured."""
    loads, path = fitted_loads(name)
    calibrated = load_model(path).spec.calibrated
    assert calibrated.by.startswith(f"{name}, ")
    assert calibrated.loads == pytest.approx((min(loads), max(loads)), rel=0.01)
    assert calibrated.not_covered == ()


def test_every_shipped_model_that_was_fitted_is_held_by_the_test_above():
    fitted = {name for name in shipped_models() if (text := load_model(name).spec.calibrated) and not text.not_covered}
    assert fitted == set(FITS)
    for model, name in FITS.items():
        assert fitted_loads(name)[1].endswith(f"{model}.yaml")


def test_a_model_that_changes_the_system_of_a_fitted_one_says_what():
    single = load_model("lab-single-host").spec.calibrated
    assert single.loads == load_model("lab-virtual").spec.calibrated.loads
    assert {"hosts.host.pcpus", "networks.vmnic0.rate", "domains.uac"} <= set(single.not_covered)
    shared = load_model("lab-virtual-shared-nic").spec.calibrated.not_covered
    assert {"networks.vmnic1", "domains.vmkernel.affinity"} <= set(shared)
