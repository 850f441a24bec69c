"""Verdicts on hand-made outcomes."""

import pytest

from vftsim.records.forms.xen_statements import Outcome, judge

BLANK = {"loss_percent": "", "loss_relation": "", "outcome": "", "delay_outcome": ""}


def outcome(*loss, delay=(1.0, 1.1, 0.9)):
    return Outcome(list(loss), list(delay), [2 * d for d in delay], [3 * d for d in delay])


OUTCOMES = {
    "set1.a": outcome(10.0, 11.0, 10.5),
    "set1.b": outcome(2.0, 2.2, 1.8, delay=(20.0, 21.0, 20.5)),
    "set1.c": outcome(2.1, 1.9, 2.0, delay=(5.0, 5.0, 5.1)),
    "zero": outcome(0.0, 0.0, 0.0, delay=(0.1, 0.11, 0.1)),
    "none": outcome(0.0, 0.0, 0.0, delay=(0.3, 0.31, 0.32)),
}


def verdicts(key, **row):
    return [j.verdict for j in judge(BLANK | {"experiment_key": key} | row, OUTCOMES)]


@pytest.mark.parametrize(
    ("key", "statement", "verdict"),
    [
        ("set1.a", "worse_than:set1.b", "holds"),
        ("set1.b", "worse_than:set1.a", "missed"),
        ("set1.b", "worse_than:set1.c", "within noise"),
        ("zero", "better_than:none", "holds"),
        ("set1.b", "no_change_vs:set1.c", "holds"),
        ("set1.a", "no_change_vs:set1.c", "missed"),
        ("set1.a", "no_improvement_vs:set1.c", "holds"),
        ("set1.b", "no_improvement_vs:set1.a", "missed"),
        ("set1.a", "worse_than:set.set1", "holds"),
        ("set1.a", "best_in:set.set1", "missed"),
        ("set1.b", "marginal_improvement_vs:set1.c", "within noise"),
        ("set1.a", "bad", "holds"),
        ("zero", "minimal_loss", "holds"),
        ("set1.a", "minimal_loss", "missed"),
    ],
)
def test_loss_statements(key, statement, verdict):
    assert verdicts(key, outcome=statement) == [verdict]


def test_numbers_and_a_word_that_repeats_one():
    assert verdicts("zero", loss_percent="0", loss_relation="eq", outcome="zero") == ["holds"]
    assert verdicts("set1.a", loss_percent="19", loss_relation="approximately", outcome="high") == ["missed"]


def test_delay_statements():
    assert verdicts("zero", delay_outcome="minimal") == ["holds"]
    assert verdicts("set1.b", delay_outcome="high") == ["holds"]
    assert verdicts("set1.b", delay_outcome="good") == ["missed"]
    assert verdicts("set1.b", delay_outcome="better_than:set1.c") == ["missed"]
    assert verdicts("set1.c", delay_outcome="better_than:set1.b") == ["holds"]
    assert verdicts("set1.c", outcome="no_change_vs:set1.b", delay_outcome="no_improvement") == [
        "holds",
        "missed",
    ]


WIDE = {
    "few.a": outcome(10.0, 4.0),
    "few.b": outcome(5.0, 6.0),
    "near.a": outcome(2.0, 2.1, 1.9, delay=(1.0, 1.0, 1.0)),
    "near.b": outcome(2.1, 2.0, 1.95, delay=(1.1, 0.9, 1.0)),
    "far.a": outcome(0.4, 0.6, 0.5, delay=(3.0, 3.1, 2.9)),
    "silent": outcome(100.0, 100.0, 100.0, delay=(float("nan"),) * 3),
}


@pytest.mark.parametrize(
    ("key", "statement", "verdict"),
    [
        ("few.a", "worse_than:few.b", "undecided"),
        ("few.a", "no_change_vs:few.b", "undecided"),
        ("few.a", "no_improvement_vs:few.b", "undecided"),
        ("near.a", "worse_than:near.b", "within noise"),
        ("near.a", "no_change_vs:near.b", "holds"),
        ("near.a", "no_improvement_vs:near.b", "holds"),
        ("far.a", "no_change_vs:near.a", "missed"),
        ("far.a", "no_improvement_vs:near.a", "missed"),
        ("near.a", "no_improvement_vs:far.a", "holds"),
    ],
)
def test_few_runs_are_not_taken_for_no_difference(key, statement, verdict):
    """By hand: few differ by 5 and -2, 90 % interval +-22; near by -0.1, 0.1 and -0.05, +-0.18."""
    assert [j.verdict for j in judge(BLANK | {"experiment_key": key, "outcome": statement}, WIDE)] == [verdict]


@pytest.mark.parametrize(
    ("key", "other", "verdict"),
    [("near.a", "near.b", "holds"), ("far.a", "near.a", "missed"), ("silent", "near.a", "missed")],
)
def test_delays_are_the_same_within_a_factor(key, other, verdict):
    row = BLANK | {"experiment_key": key, "outcome": f"similar;no_change_vs:{other}", "delay_outcome": "no_change"}
    assert judge(row, WIDE)[-1].verdict == verdict


def test_what_lets_nothing_through_is_slower_than_anything():
    row = BLANK | {"experiment_key": "silent", "delay_outcome": "worse_than:near.a"}
    assert [j.verdict for j in judge(row, WIDE)] == ["holds"]
    row = BLANK | {"experiment_key": "near.a", "delay_outcome": "worse_than:silent"}
    assert [j.verdict for j in judge(row, WIDE)] == ["missed"]
