"""The shipped models carry the fitted values, and nothing else was fitted."""

import json

import pytest

from tests.golden.old_form import new_assignment
from vftsim.composition.keys import read
from vftsim.spec import shipped_dir
from vftsim.study.runs.model import load_model

PROXY = "domains.sut.applications.proxy"
FITTED = shipped_dir("calibration") / "sip-lab" / "fitted"


def fitted(name):
    record = json.loads((FITTED / f"{name}.json").read_text(encoding="utf-8"))
    # The records name parameters as model files did when they were made.
    return {new_assignment("sip_lab", path): entry["value"] for path, entry in record["parameters"].items()}


def test_native_model_has_the_native_fit():
    spec = load_model("lab-native").spec
    for path, value in fitted("native").items():
        assert read(spec, path) == pytest.approx(value, rel=2e-3), path


def test_virtual_model_costs_what_the_virtual_fit_says():
    """Effective cost = inflation x native cost (+ relay cost for relayed messages)."""
    spec = load_model("lab-virtual").spec
    effective = fitted("virtual")
    domain, _, server = spec.target_of(spec.ramp)
    sut = spec.domains[domain]
    inflation, relay = sut.cpu_inflation, server.relay_cost
    assert inflation * server.touch_cost + relay == pytest.approx(effective[f"{PROXY}.touch_cost"], rel=2e-3)
    for key in ("register_touch_cost", "removal_cost", "housekeeping_cost", "location_write_cost"):
        assert inflation * getattr(server, key) == pytest.approx(effective[f"{PROXY}.{key}"], rel=2e-3), key
    assert server.work_after_send == pytest.approx(effective[f"{PROXY}.work_after_send"], rel=2e-3)
    assert server.growth_per_transaction == pytest.approx(effective[f"{PROXY}.growth_per_transaction"], rel=2e-3)


def test_fault_tolerant_model_has_its_fit():
    spec = load_model("lab-virtual-ft").spec
    for path, value in fitted("ft").items():
        assert read(spec, path) == pytest.approx(value, rel=2e-3), path
