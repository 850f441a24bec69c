"""Verdicts on hand-made outcomes."""

import pytest

from vftsim.records.statements import Outcome, judge

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
