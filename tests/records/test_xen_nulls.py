"""Scores that mean nothing: a model that loses nothing, shuffled labels, McNemar's test by hand."""

import pytest

from vftsim.records.forms.xen_media import RIGHT, measured_rows, outcomes_of
from vftsim.records.forms.xen_nulls import NULL, chance, contest, in_words, judged_rows, null_outcomes, shuffled
from vftsim.records.forms.xen_statements import Judged, Outcome

BLANK = {"loss_percent": "", "loss_relation": "", "outcome": "", "delay_outcome": ""}


def lossy(*losses):
    return {
        f"set.{n}": Outcome([loss, loss + 0.1], [1.0, 1.1], [2.0, 2.0], [3.0, 3.0]) for n, loss in enumerate(losses)
    }


def test_a_model_that_loses_nothing_holds_what_says_no_loss_and_no_more():
    keys = [row["experiment_key"] for row in measured_rows()]
    judged = judged_rows(measured_rows(), null_outcomes(keys, 10))
    assert len(judged) == 90
    for one in judged:
        if one.statement.startswith(("worse_than", "better_than", "best_in", "lower", "higher")):
            assert one.verdict == "within noise", one
        if one.statement in {"bad", "high", "unacceptable"}:
            assert one.verdict == "missed", one
        if one.statement.startswith(("no_change", "no_improvement", "minimal_loss", "= 0 %")):
            assert one.verdict == "holds", one


def test_shuffled_labels_of_two_experiments_by_hand():
    """One of two orders holds both statements, the other none: on average one, and half of the deals are as good."""
    table = [
        BLANK | {"experiment_key": "set.0", "outcome": "bad"},
        BLANK | {"experiment_key": "set.1", "outcome": "minimal_loss"},
    ]
    found = shuffled(table, lossy(5.0, 0.0), 400, 1, within_sets=True)
    assert (found["right"], found["best"], found["deals"]) == (2, 2.0, 400)
    assert found["mean"] == pytest.approx(1.0, abs=3.5 / 400**0.5)
    assert found["share"] == pytest.approx(0.5, abs=3.5 * 0.5 / 400**0.5)


def test_shuffles_within_sets_keep_a_set_of_one():
    table = [BLANK | {"experiment_key": "alone.1", "outcome": "bad"}]
    outcomes = {"alone.1": lossy(5.0)["set.0"], "other.1": lossy(0.0)["set.0"]}
    assert shuffled(table, outcomes, 50, 1, within_sets=True)["mean"] == 1.0
    assert 0.2 < shuffled(table, outcomes, 50, 1, within_sets=False)["mean"] < 0.8


def judged(*verdicts):
    return [Judged("a", "loss", "bad", "", verdict) for verdict in verdicts]


def test_mcnemar_by_hand():
    """Five against one: 2 (1 + 6) / 2^6 = 0.219; statements that both or neither hold do not count."""
    first = judged(*["holds"] * 5, "missed", "holds", "undecided")
    second = judged(*["missed"] * 5, "holds", "holds", "within noise")
    found = contest(first, second)
    assert (found["only_first"], found["only_second"]) == (5, 1)
    assert found["p_value"] == pytest.approx(14 / 64)
    assert contest(first, first)["p_value"] == 1.0


def test_chance_is_told_beside_a_model():
    keys = [row["experiment_key"] for row in measured_rows()]
    results = {}
    for number, key in enumerate(keys):
        loss = 20.0 if number % 2 else 0.0
        delays = [None, None] if number == 3 else [1.0, 1.2]
        found = {"loss_percent": [loss, loss + 0.2], "delay_mean_ms": delays, "delay_p95_ms": delays}
        results[key] = {"outcome": found | {"delay_p99_ms": delays}}
    found = chance(measured_rows(), {RIGHT: outcomes_of(results)}, 505, deals=40)
    assert list(found["held"]) == [RIGHT, NULL]
    assert found["statements"] == 90
    lines = in_words(found)
    assert len(lines) == 4
    assert f"Against '{NULL}'" in lines[-1]
