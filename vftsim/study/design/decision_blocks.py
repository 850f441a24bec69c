"""A decision as blocks: the choice and whether more runs could change it, its evidence, the fronts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, plain
from vftsim.spec.suggest import listing
from vftsim.study.blocks.head import head
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.design.candidates import MET, MISSED, OPEN, STEPS
from vftsim.study.design.optimize import FEW

if TYPE_CHECKING:
    from vftsim.study.design.candidates import Candidate
    from vftsim.study.design.decision import Decision
    from vftsim.study.objective import Objective

_MOST_ON_FRONT = 8


def decision_blocks(found: Decision) -> list[Block]:
    """Return the answer, the evidence, the front of cost against each objective, and notes."""
    blocks: list[Block] = [*head(found.manifest["models"], found.manifest["seed"])]
    blocks += [Answer(text) for text in _answers(found)]
    if found.winner is not None:
        blocks.append(_evidence(found))
    blocks += [_chart(found, one) for one in found.request.objectives]
    blocks += [_front(found, name, front) for name, front in found.fronts.items() if front]
    return [*blocks, *(Note(text) for text in _notes(found))]


def _chart(found: Decision, one: Objective) -> Chart:
    """Return every configuration that was looked at by its cost, and the front that nothing cheaper beats."""
    seen = [each for each in found.candidates if one.figure in each.figures]
    series = [
        Series(verdict, [Point.of(each.cost, each.figures[one.figure]) for each in own], "dots")
        for verdict in (MET, MISSED, OPEN)
        if (own := [each for each in seen if each.verdict == verdict])
    ]
    front = [Point(each.cost, each.figures[one.figure].mean) for each in found.fronts[one.figure]]
    return Chart(
        f"Cost against {one.figure}",
        _cost_words(found),
        one.figure,
        [*series, Series("nothing cheaper is better", front, "steps")],
        [(one.value, str(one))],
        scale=scale_of(series),
        at=[(found.winner.cost, "the choice")] if found.winner is not None else (),
    )


def _cost_words(found: Decision) -> str:
    unit = found.request.prices.unit
    return f"cost ({unit})" if unit else "cost"


def _cost(found: Decision, one: Candidate) -> str:
    unit = found.request.prices.unit
    return f"{plain(one.cost)} {unit}".rstrip()


def _answers(found: Decision) -> list[str]:
    asked = listing([str(one) for one in found.request.objectives])
    percent = f"{100 * found.request.confidence:g} %"
    if found.winner is None:
        closest = "; ".join(f"{name}: best {front[-1].name}" for name, front in found.fronts.items() if front)
        sure = "None can" if found.is_settled else "Some stay open"
        return [f"No configuration is known to meet {asked} with {percent} confidence. {sure}. {closest}."]
    choice = f"{found.winner.name}, at {_cost(found, found.winner)}"
    text = f"The cheapest that meets {asked} with {percent} confidence: {choice}."
    if found.is_settled:
        return [text, f"More runs cannot change that: all {len(found.cheaper)} cheaper configurations miss it."]
    unseen = sum(not each.n for each in found.cheaper)
    unclear = sum(bool(each.n) and each.verdict == OPEN for each in found.cheaper)
    return [
        text,
        f"More runs may change that: of {len(found.cheaper)} cheaper configurations {unseen} were not looked at "
        f"(--budget) and {unclear} stay open, most after {STEPS[-1]} runs.",
    ]


def _evidence(found: Decision) -> Table:
    """Return winner and runner-up, in the search and with fresh random numbers."""
    table: list[list[Cell]] = []
    for title, one in (("choice", found.winner), ("next", found.runner_up)):
        if one is None:
            continue
        table.append([f"{title}: {one.name}, {_cost(found, one)}"])
        for words, each in (("in the search", one), ("with fresh seeds", found.again.get(one.number))):
            if each is not None:
                figures: list[Cell] = [each.figures.get(name) for name in found.request.figures]
                table.append([f"  {words}", str(each.n), each.verdict, *figures])
    return Table(["evidence", "runs", "verdict", *found.request.figures], table)


def _front(found: Decision, name: str, front: list[Candidate]) -> Table:
    table: list[list[Cell]] = [
        [each.name, plain(each.cost), each.figures[name], each.verdict] for each in front[:_MOST_ON_FRONT]
    ]
    return Table(["cheapest for its figure", _cost_words(found), name, "verdict"], table)


def _notes(found: Decision) -> list[str]:
    request, notes = found.request, list[str]()
    looked = sum(bool(each.n) for each in found.candidates)
    notes.append(
        f"{looked} of {len(found.candidates)} configurations were looked at, {found.runs} runs in all. "
        f"{found.dropped_at_once} cheaper ones were out as all of their first {FEW} runs missed an objective."
    )
    if found.refused:
        name, why = next(iter(found.refused.items()))
        notes.append(f"{len(found.refused)} combinations cannot be, such as {name}: {why}")
    if failed := [each for each in found.candidates if each.failed_again]:
        notes.append(f"Met the objectives in the search and not with fresh seeds: {'; '.join(e.name for e in failed)}.")
    notes.append(
        f"meets: of each figure the {100 * request.interval:g} % interval of {STEPS[0]} runs or more is on the right "
        "side; where runs are alike and there is no interval, all of them are."
    )
    prices = request.prices
    source = f" ({prices.source})" if prices.source else ""
    notes.append(f"Prices: {prices.name}{source}. Looks are few runs: a front's figures are estimates with ranges.")
    return notes
