"""Several starts: each is searched with one replication, and the best end goes on with all; nothing is played twice."""

import collections
import json

import pytest

from tests.calibrate.test_fit import PROXY, definition, lab
from tests.calibrate.two_guests import CPU, DATASET, FIT, SPIN
from vftsim.calibrate import fit as fit_module
from vftsim.calibrate.fit import search_for, starts_of
from vftsim.calibrate.run import _identity
from vftsim.cli.main import main
from vftsim.composition.keys import read
from vftsim.study.store.store import RunCache, resumable_store

COST = f"{PROXY}.touch_cost"
LOW, SPAN = 300_000.0, 1_200_000.0
MEASURED = {("step_1", "cpu"): 20.0, ("step_2", "cpu"): 20.0}
SHIFTS = (0.0, 9.0, -3.0, 6.0)
"""What a replication adds to CPU of the second step; 3 points in the mean."""


def share(cost):
    return (cost - LOW) / SPAN


@pytest.fixture
def played(monkeypatch):
    """Two minima in place of simulations, at 0.2 of the bounds and, the lower one, at 0.8; returns what was played."""
    ran = collections.Counter()

    def observe(spec, seed, replication):
        u = share(read(spec, COST))
        ran[u, replication] += 1
        second = 20.0 + 3.0 * (u - 0.8) + SHIFTS[replication % len(SHIFTS)]
        return {("step_1", "cpu"): 20.0 + 40.0 * (u - 0.2) * (u - 0.8), ("step_2", "cpu"): second}

    monkeypatch.setattr(fit_module, "observe", observe)
    return ran


def wanted(**changes):
    parameter = {"path": COST, "low": "0.3 ms", "high": "1.5 ms", "start": "0.4 ms", "meaning": "cost"}
    return definition(parameters=[parameter], **changes)


def test_one_start_ends_at_the_minimum_that_is_near(played):
    found = search_for(wanted(), lab(), MEASURED).fit
    assert share(found.values[COST]) == pytest.approx(0.2, abs=0.02)
    assert found.ends == []


def test_more_starts_find_the_lower_minimum_and_say_where_each_ended(played):
    found = search_for(wanted(starts=4), lab(), MEASURED).fit
    assert share(found.values[COST]) == pytest.approx(0.8, abs=0.01)
    assert len(found.ends) == 4
    assert share(found.ends[0].values[COST]) == pytest.approx(0.2, abs=0.02)
    assert min(end.cost for end in found.ends) == found.cost < 0.01 < found.ends[0].cost
    assert found.evaluations == sum(end.evaluations for end in found.ends)


def test_the_best_end_goes_on_with_all_replications_and_the_others_do_not(played):
    """With all four the second step is 3 points too high: the fit moves against it, between the two residuals."""
    found = search_for(wanted(starts=4, replications=4), lab(), MEASURED).fit
    first = search_for(wanted(starts=4), lab(), MEASURED).fit
    assert all(u > 0.5 for u, replication in played if replication)
    # Residuals 24 d and 3 d + 3 at a way d from 0.8; the search's slope of the first is a secant's, 24 + 40 * 0.08.
    way = -3.0 * 3.0 / (27.2 * 24.0 + 3.0 * 3.0)
    assert share(found.values[COST]) - share(first.values[COST]) == pytest.approx(way, rel=0.1)
    assert found.ends == first.ends


def test_no_replication_of_a_point_is_played_twice(played):
    search_for(wanted(starts=4, replications=4), lab(), MEASURED)
    assert set(played.values()) == {1}


def test_a_fit_with_more_starts_and_replications_goes_on_from_one_with_fewer(played, tmp_path):
    few, many = wanted(), wanted(starts=4, replications=2)
    identity = _identity(few, lab(), MEASURED)
    assert _identity(many, lab(), MEASURED) == identity
    with resumable_store(tmp_path / "kept", "calibration") as store:
        search_for(few, lab(), MEASURED, cache=RunCache(store, identity))
        found = search_for(many, lab(), MEASURED, cache=RunCache(store, identity)).fit
        assert set(played.values()) == {1}
        before = played.total()
        assert search_for(many, lab(), MEASURED, cache=RunCache(store, identity)).fit == found
    assert played.total() == before


def test_progress_never_passes_what_was_announced(played):
    many, counts = wanted(starts=3, replications=2, most_evaluations=3), []
    search_for(many, lab(), MEASURED, progress=lambda count, cost: counts.append(count))
    assert counts == list(range(1, len(counts) + 1))
    assert 9 < len(counts) <= many.searches * 3 == 12
    assert (wanted(starts=3).searches, wanted(replications=2).searches) == (3, 1)


def test_starts_are_spread_over_the_box_and_the_same_again():
    """Of a Latin hypercube every parameter has one start in each of as many equal parts of 0.1 to 0.9."""
    after_send = {"path": f"{PROXY}.work_after_send", "low": 0.0, "high": 0.8, "start": 0.2, "meaning": "share"}
    many = definition(parameters=[*wanted().model_dump()["parameters"], after_send], starts=5)
    declared, *spread = starts_of(many)
    assert declared.tolist() == pytest.approx([1 / 12, 0.25])
    for column in zip(*spread, strict=True):
        assert sorted(int((u - 0.1) / 0.2) for u in column) == [0, 1, 2, 3]
    assert [s.tolist() for s in starts_of(many)] == [s.tolist() for s in (declared, *spread)]
    other = starts_of(many.model_copy(update={"seed": 4}))
    assert (other[0] == declared).all()
    assert (other[1] != spread[0]).all()


def test_ends_are_printed_and_recorded(monkeypatch, tmp_path, capsys):
    """CPU of the small guest as half of its weight: 51 in one run and 20 in the other want a weight of 71."""
    monkeypatch.setattr(
        fit_module, "observe", lambda spec, *_: {("measured", "cpu.small"): spec.domains["small"].weight / 2.0}
    )
    for name, text in (("two-guests.yaml", SPIN), ("dataset.yaml", DATASET), ("cpu.csv", CPU)):
        (tmp_path / name).write_text(text)
    words = ["calibrate", str(tmp_path / "fit.yaml"), "-j", "1", "-q"]
    (tmp_path / "fit.yaml").write_text(FIT)
    assert main(words) == 0
    assert "each start" not in capsys.readouterr().out
    (tmp_path / "fit.yaml").write_text(f"{FIT}starts: 3\nreplications: 2\n")
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "start 3" in out[out.index("Where the search from each start ended") :]
    assert "with the first of 2 replications" in out
    assert main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [end["values"]["domains.small.weight"] for end in record["ends"]] == pytest.approx([71.0] * 3, abs=2.0)
    assert record["evaluations"] > sum(end["evaluations"] for end in record["ends"])


def test_searches_that_end_elsewhere_at_like_cost_leave_the_parameter_open(played):
    """Both minima of the first step's parabola fit alike where the second step is not asked."""
    found = search_for(wanted(starts=4, in_sample=["step_1"]), lab(), MEASURED).fit
    assert found.undetermined == [COST]
    assert (found.low[COST], found.high[COST]) == (LOW, LOW + SPAN)
    assert any("searches that end at like cost give" in note for note in found.not_identified)
