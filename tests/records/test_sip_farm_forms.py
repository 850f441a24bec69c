"""Closed forms of the SIP farm: bounds by hand, and what R1 to R4 leave open."""

import pytest

from vftsim.records.forms import sip_farm as farm
from vftsim.records.forms.sip_farm import (
    BACK,
    FRONT,
    RUNS,
    STORAGE,
    bounds,
    costs_after,
    costs_before,
    interval,
    limit,
)


def test_the_dataset_is_whole():
    assert list(farm.stated()) == list(RUNS)
    assert farm.stated()["R5"]["calls_per_s"] == ""
    for name, layout in RUNS.items():
        row = farm.stated()[name]
        assert (layout.fronts, layout.backs) == (int(row["frontends"]), int(row["backends"]))
        assert (layout.is_registered, layout.has_nas) == (row["register_auth"] == "yes", row["nas_server"] == "yes")


def test_what_is_input_comes_out_again():
    for run, resource in (("R1", farm.SERVER), ("R2", FRONT), ("R4", farm.SERVER)):
        assert limit(bounds(costs_before(), RUNS[run])) == (resource, pytest.approx(farm.rate(run)))
    for run, resource in (("R6", BACK), ("R7", STORAGE)):
        assert limit(bounds(costs_after(), RUNS[run])) == (resource, pytest.approx(farm.rate(run)))


def test_processors_of_r3_from_one_front_end():
    """2 CPUs / 712.9 calls/s x 6568.4 calls/s = 18.43 of the 19.30 measured."""
    found = farm.processors_used(costs_before(), "R3", farm.rate("R3"))
    assert found == pytest.approx(2 * 6568.4 / 712.9)
    assert found == pytest.approx(farm.processors_stated(), rel=0.06)
    assert limit(bounds(costs_after(), RUNS["R3"]))[1] > farm.rate("R3")


def test_the_split_of_r6_is_open():
    """All that registration adds on the back end: 2 / (2/175.8 - 2/781.6); nothing: the 24 processors."""
    low, high = interval(costs_after(), RUNS["R6"])
    assert low == pytest.approx(1 / (1 / 175.8 - 1 / 781.6))
    assert low < farm.rate("R6") < high
    assert high == pytest.approx(1919, rel=0.005)


def test_r5_with_the_split_of_r6():
    resource, found = limit(bounds(costs_after(), RUNS["R5"]))
    assert (resource, found) == (FRONT, pytest.approx(289, rel=0.002))
    low, high = interval(costs_after(), RUNS["R5"])
    assert (low, high) == (pytest.approx(160, rel=0.005), pytest.approx(336, rel=0.005))


def test_r7_is_limited_by_none_of_the_processors():
    found = bounds(costs_after(), RUNS["R7"])
    assert {name: round(value) for name, value in found.items()} == {
        FRONT: 3764,
        BACK: 2758,
        farm.ALL_PROCESSORS: 1981,
        STORAGE: 1050,
    }
    assert farm.without_storage(costs_after()) / farm.rate("R7") == pytest.approx(1.89, abs=0.01)


def test_wrong_models_fail_on_r3s_processors():
    one_cpu = farm.processors_used(costs_before(1.0), "R3", farm.rate("R3"))
    assert farm.processors_stated() - one_cpu == pytest.approx(10.1, abs=0.05)
    alike = farm.processors_used(costs_before(clustered=False), "R3", farm.rate("R3"))
    assert alike < 0.94 * farm.processors_stated()
