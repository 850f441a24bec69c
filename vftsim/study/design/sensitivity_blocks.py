"""What a figure depends on, as blocks: the answer in words, the factors, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, plain
from vftsim.spec.suggest import listing
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.head import head
from vftsim.study.design.ranges import own_outside

if TYPE_CHECKING:
    from vftsim.study.design.sensitivity import Effect, Sensitivity

_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def sensitivity_blocks(found: Sensitivity) -> list[Block]:
    """Return the answer, the shares of factors, what each does by itself, and notes."""
    confidence, unit = found.request.confidence, f" ({found.unit})" if found.unit else ""
    ends, shares, short = list[list[Cell]](), list[list[Cell]](), shortened([each.name for each in found.effects])
    for one in found.effects:
        span = f"{one.span.at(0.0)} to {one.span.at(1.0)}"
        ends.append([short[one.name], span, one.low, one.high])
        effect = one.effect.estimate(confidence, found.request.trajectories)
        total, first = (
            None if index is None else index.estimate(confidence, found.request.samples)
            for index in (one.total, one.first)
        )
        shares.append([short[one.name], total, first, effect])
    return [
        *head(found.manifest["models"], found.manifest["seed"]),
        *(Answer(text) for text in _answers(found)),
        *_charts(found, short),
        Table(["factor", "total share", "first order", f"mu*{unit}"], shares),
        Table(["one at a time", "range", f"at low{unit}", f"at high{unit}"], ends),
        *(Note(text) for text in _notes(found)),
    ]


def _charts(found: Sensitivity, short: Mapping[str, str]) -> list[Chart]:
    """Return what each factor does by itself, and its share of the variance."""
    confidence, samples = found.request.confidence, found.request.samples
    ends = [(end, each) for end in ("low", "high") for each in [[getattr(one, end) for one in found.effects]]]
    series = [
        Series(f"at its {end} end", [Point.of(float(n), e) for n, e in enumerate(estimates) if e is not None], "dots")
        for end, estimates in ends
    ]
    totals = [None if one.total is None else one.total.estimate(confidence, samples) for one in found.effects]
    shares = [Point.of(float(n), total) for n, total in enumerate(totals) if total is not None]
    names, unit = [short[one.name] for one in found.effects], f" ({found.unit})" if found.unit else ""
    difference = f"difference from the model as it is{unit}"
    return [
        Chart(f"{found.figure}, one factor at a time", "", difference, series, [(0.0, "")], names=names),
        Chart("Total share of the variance", "", "share", [Series("total share", shares, "dots")], names=names),
    ]


def _answers(found: Sensitivity) -> list[str]:
    deciding, count = found.deciding, len(found.effects)
    unit = f" {found.unit}" if found.unit else ""
    own, spread = plain(found.own.mean), found.spread
    over = (
        f"It is {own}{unit} as the model stands, and {plain(spread.low)} to {plain(spread.high)}{unit} over the ranges"
    )
    if not deciding:
        return [
            f"{found.figure}: no factor's share is known to be above 5 %; more --samples tell them apart.",
            f"{over} (95 % of the points).",
        ]
    names = [f"{each.name} ({_percent(each)})" for each in deciding]
    number = _WORDS[len(deciding)] if len(deciding) < len(_WORDS) else str(len(deciding))
    which = "this one" if len(deciding) == 1 else f"these {number}"
    return [
        f"{found.figure} depends on {which} of {count} factors: {listing(names)} of its variance with all that each "
        "takes part in.",
        f"{over} (95 % of the points). {_rest(found)}",
    ]


def _percent(one: Effect) -> str:
    assert one.total is not None
    return f"{100 * min(one.total.value, 1.0):.0f} %"  # few samples can say more than all of it


def _rest(found: Sensitivity) -> str:
    """Say what the factors that were screened out do."""
    out = [each for each in found.effects if each.total is None]
    if not out:
        return "All factors were looked at to the end."
    most = max(out, key=lambda each: each.effect.value)
    unit = f" {found.unit}" if found.unit else ""
    return f"The other {len(out)} screened out move it by {plain(most.effect.value)}{unit} at most ({most.name})."


def _notes(found: Sensitivity) -> list[str]:
    request, notes = found.request, list[str]()
    for text in own_outside(request.base.spec, request.spans):
        notes.append(f"As the model stands, {text}: at low and at high start from there.")
    closed = [each for each in found.effects if each.total is not None]
    gaps = [(a.name, b.name) for a, b in pairwise(closed) if _overlap(a, b)]
    if gaps:
        pairs = listing([f"{a} and {b}" for a, b in gaps])
        notes.append(f"Not told apart (intervals of their total shares overlap): {pairs}; more --samples do.")
    few = "lowest and highest replication" if request.replications < FEWEST_RUNS else "intervals of pairs"
    notes.append(f"At low, at high: difference from the model as it is, the other factors as they are; ( ) {few}.")
    notes.append("mu*: mean absolute effect of a factor's whole range (Morris), other factors anywhere in theirs.")
    notes.append("Total share: of the variance (Sobol), with all that the factor takes part in; first order: alone.")
    percent = f"{100 * request.confidence:g}"
    notes.append(
        f"{found.runs} runs: {request.replications} replications a point under the same random numbers, "
        f"{request.trajectories} trajectories, {request.samples} samples; ± and [ ]: {percent} % by bootstrap. "
        "Factors are spread evenly over their ranges."
    )
    return notes


def _overlap(a: Effect, b: Effect) -> bool:
    assert a.total is not None
    assert b.total is not None
    return a.total.low < b.total.high


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Return the last words of each dotted name that tell it from the others."""
    found = {}
    for name in names:
        words = name.split(".")
        ends = (".".join(words[-count:]) for count in range(1, len(words) + 1))
        found[name] = next(
            (end for end in ends if sum(other == end or other.endswith(f".{end}") for other in names) == 1), name
        )
    return found
