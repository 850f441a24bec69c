"""Judge what a published study says against what the model gives.

A statement is a number with a relation ("about 19 %"), a word ("minimal loss"), or a comparison with another experiment
or set ("worse than mixed.D").  What numbers and words mean is in the record's file, with the limits that
``calibration/xen-media/protocol.md`` fixed beforehand.  A comparison is judged on differences paired by replication: of
loss in points, of mean delay as the logarithm of the ratio.  Where the sign of a difference is not certain, two
one-sided tests say whether it is within the margin of no change (Schuirmann 1987), and where they do not either, the
runs are too few to tell.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

from vftsim.records.definition import Statement
from vftsim.records.judge import HOLDS, MISSED, NOISE, UNDECIDED, Row, lead_verdict, row_of, same_verdict
from vftsim.records.runner import read

Quantity = Literal["loss", "delay"]
VERDICTS = (HOLDS, NOISE, UNDECIDED, MISSED)
"""What can be said of a statement; ``within noise`` is shown to be no difference, ``undecided`` is not known."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Results of one experiment, a value for each replication."""

    loss_percent: Sequence[float]
    delay_mean_ms: Sequence[float]
    delay_p95_ms: Sequence[float]
    delay_p99_ms: Sequence[float]

    @cached_property
    def loss(self) -> float:
        """Mean loss in percent."""
        return _mean(self.loss_percent)

    @cached_property
    def delay(self) -> float:
        """Mean delay in ms; infinite if nothing came through."""
        return _mean(self.delay_mean_ms)


@dataclass(frozen=True, slots=True)
class Judged:
    """One statement with its verdict."""

    experiment: str
    quantity: Quantity
    statement: str
    found: str
    verdict: str

    @property
    def is_ordinal(self) -> bool:
        """A comparison, not a number or a word."""
        return ":" in self.statement or self.statement in {"lower", "higher", "no_improvement", "no_change"}


_MARGINAL_POINTS = 5.0
_PAIRS = 1 << 14
_NO_WORD = {"", "not_stated", "similar"}


def judge(row: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> list[Judged]:
    """Judge all statements of one row of the measured table."""
    key = row["experiment_key"]
    judged = []
    if row["loss_percent"]:
        stated = f"{row['loss_relation']} {float(row['loss_percent']):g}"
        judged.append(_judge_word(key, "loss", "loss_percent", stated, outcomes[key]))
    # A word beside a number says the same again.
    words = [w for w in row["outcome"].split(";") if w not in _NO_WORD and (":" in w or not row["loss_percent"])]
    judged += [_judge_loss(key, word, outcomes) for word in words]
    delay_words = [w for w in row["delay_outcome"].split(";") if w not in _NO_WORD]
    return judged + [_judge_delay(key, word, row, outcomes) for word in delay_words]


@cache
def _words() -> Mapping[str, Mapping[str, Statement]]:
    """Return what words mean, by what they are of."""
    claims = read("xen-media").spec.claims
    return claims.words if claims else {}


def _judge_word(key: str, quantity: Quantity, of: str, word: str, outcome: Outcome) -> Judged:
    figure = str(_words()[of][word].value)
    judged = _of_word(of, word, outcome.loss if figure == "loss" else _mean(getattr(outcome, figure)))
    return Judged(key, quantity, judged.stated, judged.found, judged.verdict)


@cache
def _of_word(of: str, word: str, value: float) -> Row:
    """Judge a word by a value, once: shuffled labels ask for the same again and again."""
    statement = _words()[of][word]
    return row_of(statement, {str(statement.value): value, "percent": _percent})


def _judge_loss(key: str, word: str, outcomes: Mapping[str, Outcome]) -> Judged:
    if ":" not in word:
        return _judge_word(key, "loss", "loss", word, outcomes[key])
    relation, target = word.split(":")
    mine, other, rival = outcomes[key], *_other(relation, target, key, outcomes, lambda each: (each.loss, each.delay))
    words = f"{_percent(mine.loss)} against {_percent(other.loss)}{rival}"
    compared = _LOSS
    if max(mine.loss, other.loss) == 0.0 and relation in {"best_in", "better_than", "worse_than"}:
        compared = _DELAY
        words = words if rival else f"no loss; mean delay {mine.delay:.3g} against {other.delay:.3g} ms"
    if relation == "marginal_improvement_vs" and abs(mine.loss - other.loss) >= _MARGINAL_POINTS:
        return Judged(key, "loss", word, words, MISSED)
    return Judged(key, "loss", word, words, _compare(compared, relation, mine, other))


def _judge_delay(key: str, word: str, row: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> Judged:
    if word in _words()["delay"]:
        return _judge_word(key, "delay", "delay", word, outcomes[key])
    relation, target = _delay_relation(word, row)
    mine, other, _ = outcomes[key], *_other(relation, target, key, outcomes, lambda each: each.delay)
    words = f"mean {mine.delay:.3g} against {other.delay:.3g} ms"
    return Judged(key, "delay", word, words, _compare(_DELAY, relation, mine, other))


def _other(
    relation: str, target: str, key: str, outcomes: Mapping[str, Outcome], rank: Callable[[Outcome], Any]
) -> tuple[Outcome, str]:
    """Return what an experiment is compared with, and its name in brackets if it is the best rival of a set."""
    if relation != "best_in":
        return _reference(target, key, outcomes), ""
    rivals = _rivals(target, key, outcomes)
    rival = min(rivals, key=lambda name: rank(rivals[name]))
    return rivals[rival], f" ({rival})"


def _compare(compared: "_Compared", relation: str, mine: Outcome, other: Outcome) -> str:
    if relation.startswith("no_"):
        return _same(compared, mine, other, only_less=relation.startswith("no_improvement"))
    return _sign(compared, mine, other, is_more=relation in {"worse_than", "higher_than", "higher"})


def _delay_relation(word: str, row: Mapping[str, str]) -> tuple[str, str]:
    if ":" in word:
        relation, target = word.split(":")
        return relation, target
    if word == "lower":
        return word, "mixed.D"
    if word == "higher":
        return word, "set.weights"
    return word, row["outcome"].split(";")[-1].split(":")[-1]


def _rivals(target: str, key: str, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the experiments of a set without one."""
    return {k: o for k, o in outcomes.items() if k.startswith(target.removeprefix("set.")) and k != key}


def _reference(target: str, key: str, outcomes: Mapping[str, Outcome]) -> Outcome:
    """Return an experiment, or the mean of a set without the experiment itself."""
    if not target.startswith("set."):
        return outcomes[target]
    members = _rivals(target, key, outcomes).values()

    def mean_of(name: str) -> list[float]:
        return [_mean(column) for column in zip(*(getattr(o, name) for o in members), strict=True)]

    return Outcome(*(mean_of(each.name) for each in fields(Outcome)))


@dataclass(frozen=True, slots=True)
class _Compared:
    """A figure of two experiments: its differences by replication, and how small they are where nothing changes."""

    differences: Callable[[Outcome, Outcome], list[float]]
    margin: float


# Shuffled labels compare the same pairs again and again.
@lru_cache(_PAIRS)
def _sign(compared: _Compared, mine: Outcome, other: Outcome, *, is_more: bool) -> str:
    """Whether differences have the stated sign; the sign of most of them where a delay is infinite."""
    differences = compared.differences(mine, other)
    stated = differences if is_more else [-d for d in differences]
    if not all(map(math.isfinite, stated)):
        return HOLDS if sum(d > 0.0 for d in stated) > len(stated) / 2 else MISSED
    return lead_verdict(stated, same=compared.margin)


@lru_cache(_PAIRS)
def _same(compared: _Compared, mine: Outcome, other: Outcome, *, only_less: bool) -> str:
    """Whether differences are shown to be within the margin; ``only_less``: not below it."""
    differences = compared.differences(mine, other)
    if not all(map(math.isfinite, differences)):
        return HOLDS if only_less and max(differences) > 0.0 else MISSED
    return same_verdict(differences, compared.margin, only_less=only_less)


def _ratio(mine: float, other: float) -> float:
    """Return the logarithm of a ratio of mean delays; infinite where one lets nothing through, 0 where neither does."""
    if not math.isfinite(mine):
        return math.inf if math.isfinite(other) else 0.0
    return math.log(mine / other) if math.isfinite(other) else -math.inf


_LOSS = _Compared(lambda a, b: [x - y for x, y in zip(a.loss_percent, b.loss_percent, strict=True)], 1.0)
_DELAY = _Compared(
    lambda a, b: [_ratio(x, y) for x, y in zip(a.delay_mean_ms, b.delay_mean_ms, strict=True)], math.log(1.5)
)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.inf


def _percent(value: float) -> str:
    return f"{value:.2f} %" if value else "0 %"
