"""How much to leave free: the range over other systems, a user's own, and the share that is asked for."""

from dataclasses import replace

import pytest

from vftsim.errors import UsageError
from vftsim.labs.ramps import Ramp
from vftsim.report.terminal import as_text
from vftsim.study.designs.capacity import ramp_study
from vftsim.study.designs.capacity_by_ramp import Experience, experience_of, tipping_of
from vftsim.study.designs.capacity_search import CapacityRequest
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model

FIRM, FRAGILE = Ramp("firm", (), 90.0, 95.0, 100.0), Ramp("fragile", (), 30.0, 40.0, 50.0)
KNOWN = Experience({"firm": FIRM, "fragile": FRAGILE})


def test_the_range_is_that_of_the_others():
    """Between 60 % carried by the fragile one and 95 % not carried by the firm one, of a full load of 200."""
    found = tipping_of(KNOWN, None, 200.0, 500.0)
    assert found.seen_saps == (120.0, 190.0)
    assert (found.safe_saps, found.tipped_below) == (120.0, 0)
    assert tipping_of(KNOWN, "fragile", 200.0, 500.0).seen_saps == (180.0, 190.0)
    assert tipping_of(KNOWN, "firm", 200.0, 500.0).seen_saps == (120.0, 160.0)


def test_a_headroom_that_was_asked_for_is_told_who_may_have_tipped():
    found = tipping_of(replace(KNOWN, headroom_percent=20.0), None, 200.0, 500.0)
    assert (found.safe_saps, found.tipped_below) == (160.0, 1)
    assert found.seen_saps == (120.0, 190.0), "what was seen stays"


def test_a_load_is_never_safe_beyond_the_model():
    assert tipping_of(KNOWN, None, 200.0, 100.0).safe_saps == 100.0


def test_nothing_is_said_where_nothing_is_known():
    assert tipping_of(KNOWN, None, None, 100.0) is None
    assert tipping_of(Experience({"firm": FIRM}), "firm", 100.0, 100.0) is None


def test_a_users_systems_stand_beside_the_shipped_ones(tmp_path):
    (tmp_path / "mine.yaml").write_text("systems: {mine: {carried: 10 /s, tipped: 20 /s, full: 100 /s}}\n")
    known = experience_of(tmp_path / "mine.yaml")
    assert {"mine", "SIP lab, native", "Linux lab"} <= set(known.ramps)
    assert tipping_of(known, None, 1000.0, 1e6).seen_saps[0] == 100.0
    with pytest.raises(UsageError, match=r"--labs: there is no file .*none.yaml"):
        experience_of(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="--headroom"):
        experience_of(None, 100.0)


def test_two_cpus_are_filled_by_twice_the_load(tiny_path):
    """The tiny server fills one at 29 attempts a second; one that cannot run beside it adds none."""
    two = ["hosts.host.pcpus=2", "domains.sut.vcpus=2"]
    full = {
        pinned: ramp_study(
            load_model(tiny_path, [*two, *pinned]), CapacityRequest(replications=2), Execution(3, 1)
        ).ramp.full_saps
        for pinned in ((), ("hosts.host.scheduler={kind: credit}", "domains.sut.affinity=[0]"))
    }
    assert [round(each, 1) for each in full.values()] == pytest.approx([58.8, 29.4], rel=0.1)


def test_a_capacity_shows_it_beside_the_models_limit(tiny):
    study = ramp_study(tiny, CapacityRequest(replications=2), Execution(3, 1), KNOWN)
    full = study.ramp.full_saps
    row = study.to_pandas().iloc[0]
    assert row["tipped_from_saps"] == pytest.approx(0.6 * full)
    assert row["safe_saps"] <= row["tipped_from_saps"] < row["tipped_to_saps"] < full
    assert [each["system"] for each in study.for_machines()["ramp"]["tipping"]["systems"]] == ["firm", "fragile"]
    out = as_text(study.blocks(), 1000)
    assert f"Seen to tip: {0.6 * full:.0f} to {0.95 * full:.0f} SAPS" in out
    assert "none of 2 systems may have tipped below" in out
