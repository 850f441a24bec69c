"""The SIP lab as its ``dataset.yaml`` describes it is the SIP lab as it was read before there was one."""

import json
from pathlib import Path

import pytest

from vftsim.calibrate.figures import measured
from vftsim.spec import shipped_dir

BEFORE = json.loads((Path(__file__).parent / "data" / "observations_before_dataset_file.json").read_text())


@pytest.mark.parametrize("environment", sorted(BEFORE))
def test_the_described_dataset_gives_the_same_observations(environment):
    found = measured(shipped_dir("calibration") / "sip-lab" / "data", environment)
    before = {(phase, quantity): value for phase, quantity, value in BEFORE[environment]}
    assert {key: found[key] for key in before} == before
    assert all(quantity.endswith("/max") for _, quantity in found.keys() - before.keys()), "the largest of all delays"
