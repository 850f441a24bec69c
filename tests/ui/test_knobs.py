"""Knobs are a model's keys: with its values, its bounds, and what is known of other values."""

import pytest

from vftsim.study.runs.model import load_model
from vftsim.ui.knobs import first_of, knobs_of

FT = "lab-virtual-ft"


@pytest.mark.parametrize("name", [FT, "xen-media", "sip-farm-checkpoint", "net-kvm"])
def test_set_to_its_own_values_a_model_is_the_same(name):
    model = load_model(name)
    knobs = knobs_of(model.spec)
    again = load_model(name, [f"{key}={knob.value}" for key, knob in knobs.items()])
    assert again.spec == model.spec
    assert len(knobs) > 100


def test_a_knob_says_what_it_is_and_which_values_it_may_have():
    knobs = knobs_of(load_model(FT).spec)
    assert knobs["domains.sut.vcpus"].help == "Virtual CPUs."
    assert knobs["domains.sut.vcpus"].bounds == "a whole number, at least 1, at most 64"
    assert "a duration such as" in knobs["hosts.host.switch_cost"].bounds
    assert knobs["workloads.calls.steps.load_profile"].bounds == "a list such as [{duration: 25 ms, rate: 300 %}]"
    assert {"none", "checkpoint"} <= {*knobs["domains.sut.protection.kind"].choices}
    assert knobs["domains.sut.applications.proxy.challenges"].choices == ("true", "false")


def test_the_calibrated_range_is_marked_and_what_is_not_calibrated_named():
    knobs = knobs_of(load_model(FT).spec)
    assert knobs["workloads.calls.steps.initial"].mark == "calibrated from 10 /s to 25 /s"
    assert knobs["domains.sut.vcpus"].mark == "not calibrated for other values"
    assert knobs["domains.sut.protection.failover.go_live"].mark == "assumed: 10 ms to 1 s"
    assert not knobs["workloads.calls.subscribers"].mark
    assert not any(knob.mark for knob in knobs_of(load_model("net-kvm").spec).values())


def test_names_and_paths_are_no_knobs():
    knobs = knobs_of(load_model("lab-virtual").spec)
    assert not {"name", "format", "extends", "domains.sut.interfaces.eth0.network", "workloads.calls.to"} & {*knobs}


def test_the_load_and_what_carries_it_come_first():
    spec = load_model("lab-virtual").spec
    first = first_of(spec, knobs_of(spec))
    assert first[0] == "workloads.calls.steps.initial"
    assert {"domains.sut.vcpus", "domains.sut.protection.kind"} <= {*first}
