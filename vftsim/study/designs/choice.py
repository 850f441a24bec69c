"""The answer of ``vftsim optimize``: the choice, what it rests on, and its files."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, with_unit
from vftsim.spec.suggest import counted, listing
from vftsim.stats.estimate import plain
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.designs import optimize as searching
from vftsim.study.designs.runner import Evaluator
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import DataFrame, factor_columns, frame, interval_columns, rows
from vftsim.study.figures.names import Objective
from vftsim.study.figures.summary import resting_on_some


@dataclass(frozen=True)
class Choice(Printed):
    """The cheapest configuration that meets the objectives, with its evidence."""

    request: searching.Request
    winner: searching.Candidate | None
    runner_up: searching.Candidate | None
    again: Mapping[int, searching.Candidate]
    """Both with random numbers that the search has not seen, by number of the configuration."""
    candidates: list[searching.Candidate]
    """All that are possible, the cheapest first."""
    refused: Mapping[str, str]
    """Choices that the model cannot have, with the reason."""
    is_settled: bool
    """Whether everything cheaper is known to miss the objectives."""
    runs: int
    """Of the search and of the proof."""
    manifest: dict[str, Any]
    remarks: list[str] = field(default_factory=list)
    table = "configurations.csv"

    @property
    def preferred(self) -> list[searching.Candidate]:
        """Configurations that would be chosen if they met the objectives; all, where there is no choice."""
        if self.winner is None:
            return self.candidates
        return self.candidates[: self.candidates.index(self.winner)]

    @property
    def dropped_at_once(self) -> int:
        """Preferred configurations out of which all first runs missed an objective."""
        return sum(each.n == searching.FEW and each.verdict == searching.MISSED for each in self.preferred)

    @property
    def fronts(self) -> dict[str, list[searching.Candidate]]:
        """For each objective the configurations that nothing cheaper beats in its figure, of those looked at."""
        front_of: dict[str, list[searching.Candidate]] = {}
        for objective in self.request.objectives:
            best, front = math.inf, list[searching.Candidate]()
            for each in self.candidates:
                estimate = each.figures.get(objective.figure)
                if estimate is not None and objective.sign * estimate.mean < best:
                    best = objective.sign * estimate.mean
                    front.append(each)
            front_of[objective.figure] = front
        return front_of

    def unit_of(self, figure: str) -> str:
        return next(objective.unit for objective in self.request.objectives if objective.figure == figure)

    def to_pandas(self) -> DataFrame:
        """Return one row a configuration that was looked at."""
        return frame([self._row(each) for each in self.candidates if not each.is_new])

    def _row(self, candidate: searching.Candidate) -> dict[str, Any]:
        chosen = factor_columns(candidate.point.values, self.request.figures)
        row: dict[str, Any] = {"configuration": candidate.number, **chosen, "cost": candidate.cost}
        row |= {f"units_{name}": amount for name, amount in candidate.quantities.items()}
        row |= {"n": candidate.n, "verdict": candidate.verdict}
        for name in self.request.figures:
            row |= {**interval_columns(name, candidate.figures.get(name)), f"{name}_unit": self.unit_of(name)}
        return row

    def blocks(self) -> list[Block]:
        """Return the answer, the evidence, the front of cost against each objective, and notes."""
        blocks: list[Block] = [*head(self.manifest["models"], self.manifest["seed"])]
        blocks.append(Answer(*_answer(self)))
        if self.winner is not None:
            blocks.append(_evidence(self))
        blocks += [_chart(self, objective) for objective in self.request.objectives]
        blocks += [_front(self, name, front) for name, front in self.fronts.items() if front]
        return [*blocks, *(Note(text) for text in _notes(self))]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "objectives": [str(objective) for objective in self.request.objectives],
            "confidence": self.request.confidence,
            "unit": self.request.prices.unit,
            "settled": self.is_settled,
            "runs": self.runs,
            "winner": self._row(self.winner) if self.winner else None,
            "runner_up": self._row(self.runner_up) if self.runner_up else None,
            "with_fresh_seeds": [self._row(each) for each in self.again.values()],
            "fronts": {name: [each.number for each in front] for name, front in self.fronts.items()},
            "refused": dict(self.refused),
            "configurations": rows(self.to_pandas()),
        }


def optimize(request: searching.Request, execution: Execution) -> Choice:
    """Find the cheapest configuration that meets the objectives; the execution has a store.

    Refuses a request that makes no sense, and too much to choose from where optuna is missing.
    """
    request.check()
    execution.check()
    seeds = execution.seed, (execution.seed + searching.FRESH) % 2**128
    first, fresh = (Evaluator(request.interval, replace(execution, seed=seed)) for seed in seeds)
    search = searching.Search(request, first, fresh)
    winner = search.run()
    manifest = execution.manifest([request.base], searching.COMMAND, 0)
    manifest["optimize"] = {
        "choices": {name: list(values) for name, values in request.choices.items()},
        "objectives": [str(objective) for objective in request.objectives],
        "confidence": request.confidence,
        "prices": request.prices.model_dump(mode="json"),
        "points": len(search.candidates),
    }
    cheaper = search.candidates[: None if winner is None else search.candidates.index(winner)]
    settled = not search.unknown_below(winner) and not any(each.is_left_open for each in cheaper)
    runner_up = search.runner_up(winner) if winner is not None else None
    runs = search.runs + sum(each.n for each in search.proven.values())
    return Choice(request, winner, runner_up, search.proven, search.candidates, search.refused, settled, runs, manifest)


_MOST_ON_FRONT = 8
_WHY_NOT: Mapping[str, tuple[str, str]] = {
    searching.MISSED: ("misses it", "miss it"),
    searching.MET: ("met it in the search and not with fresh seeds",) * 2,
    searching.REFUSED: ("cannot be run",) * 2,
    searching.LACKING: ("has no such figure", "have no such figure"),
}
"""Of one, and of several."""


def _chart(choice: Choice, objective: Objective) -> Chart:
    """Return every configuration that was looked at by its cost, and the front that nothing cheaper beats."""
    measured = [each for each in choice.candidates if objective.figure in each.figures]
    series = [
        Series(verdict, [Point.of(each.cost, each.figures[objective.figure]) for each in candidates], "dots")
        for verdict in (searching.MET, searching.MISSED, searching.OPEN)
        if (candidates := [each for each in measured if each.verdict == verdict])
    ]
    front = [Point(each.cost, each.figures[objective.figure].mean) for each in choice.fronts[objective.figure]]
    return Chart(
        f"Cost against {objective.figure}",
        with_unit("cost", choice.request.prices.unit),
        _in_unit(choice, objective.figure),
        [*series, Series("nothing cheaper is better", front, "steps")],
        [(objective.value, str(objective))],
        scale=scale_of(series),
        at=[(choice.winner.cost, "the choice")] if choice.winner is not None else (),
    )


def _cost(choice: Choice, candidate: searching.Candidate) -> str:
    unit = choice.request.prices.unit
    return f"{plain(candidate.cost)} {unit}".rstrip()


def _answer(choice: Choice) -> tuple[str, str, str]:
    """Return the answer, its question, and what is known of what would be cheaper."""
    question = f"Which is the cheapest of {counted(len(choice.candidates), 'configuration')} that does?"
    objectives = listing([str(objective) for objective in choice.request.objectives])
    percent = f"{100 * choice.request.confidence:g} %"
    if choice.winner is None:
        closest = "; ".join(f"{name}: best {front[-1].name}" for name, front in choice.fronts.items() if front)
        sure = "None can" if choice.is_settled else "Some stay open"
        none = f"No configuration is known to meet {objectives} with {percent} confidence. {sure}."
        return none, question, f"{closest}." if closest else ""
    named = f"{choice.winner.name}, at {_cost(choice, choice.winner)}"
    text = f"The cheapest that meets {objectives} with {percent} confidence: {named}."
    return text, question, _why_nothing_cheaper(choice, choice.winner)


def _why_nothing_cheaper(choice: Choice, winner: searching.Candidate) -> str:
    """Return what is known of the configurations that would be chosen instead if they met the objectives."""
    preferred = choice.preferred
    is_cheaper = all(each.cost < winner.cost for each in preferred)
    named = "cheaper {}" if is_cheaper else "{} at a lower cost, or named before it at the same,"
    one, several = map(named.format, ("configuration", "configurations"))
    if not choice.is_settled:
        unseen = sum(each.is_new for each in preferred)
        unclear = sum(bool(each.n) and each.verdict == searching.OPEN for each in preferred)
        return (
            f"More runs may change that: of {len(preferred)} {several} {unseen} were not looked "
            f"at (--budget) and {unclear} stay open, most after {searching.STEPS[-1]} runs."
        )
    if not preferred:
        return "Nothing is cheaper."
    counts = Counter(each.verdict for each in preferred)
    if len(counts) == 1:
        (verdict, count), *_ = counts.items()
        they = f"all {count} {several}" if count > 1 else f"the one {one}"
        return f"More runs cannot change that: {they} {_WHY_NOT[verdict][count > 1]}."
    reasons = listing([f"{count} {_WHY_NOT[verdict][count > 1]}" for verdict, count in counts.items()])
    return f"More runs cannot change that: of {len(preferred)} {several} {reasons}."


def _evidence(choice: Choice) -> Table:
    """Return winner and runner-up, in the search and with fresh random numbers."""
    table: list[list[Cell]] = []
    for title, candidate in (("choice", choice.winner), ("next", choice.runner_up)):
        if candidate is None:
            continue
        table.append([f"{title}: {candidate.name}, {_cost(choice, candidate)}"])
        for words, each in (("in the search", candidate), ("with fresh seeds", choice.again.get(candidate.number))):
            if each is not None:
                figures: list[Cell] = [each.figures.get(name) for name in choice.request.figures]
                table.append([f"  {words}", str(each.n), each.verdict, *figures])
    heads = [_in_unit(choice, name) for name in choice.request.figures]
    return Table(["evidence", "runs", "verdict", *heads], table)


def _front(choice: Choice, name: str, front: list[searching.Candidate]) -> Table:
    table: list[list[Cell]] = [
        [each.name, plain(each.cost), each.figures[name], each.verdict] for each in front[:_MOST_ON_FRONT]
    ]
    cost = with_unit("cost", choice.request.prices.unit)
    return Table(["cheapest for its figure", cost, _in_unit(choice, name), "verdict"], table)


def _in_unit(choice: Choice, name: str) -> str:
    return with_unit(name, choice.unit_of(name))


def _notes(choice: Choice) -> list[str]:
    request, notes = choice.request, list[str]()
    looked = sum(bool(each.n) for each in choice.candidates)
    notes.append(
        f"{looked} of {len(choice.candidates)} configurations were looked at, {choice.runs} runs in all. "
        f"Out after {searching.FEW} runs, all of which missed an objective: {choice.dropped_at_once}"
        f"{' at no higher cost than the choice' if choice.winner else ''}."
    )
    if choice.refused:
        name, why = next(iter(choice.refused.items()))
        notes.append(f"{counted(len(choice.refused), 'combination')} cannot be, such as {name}: {why}")
    if failed := [each for each in choice.candidates if each.failed_again]:
        notes.append(f"Met the objectives in the search and not with fresh seeds: {'; '.join(e.name for e in failed)}.")
    notes.append(
        f"meets: of each figure the {100 * request.interval:g} % interval of {searching.STEPS[0]} runs or more is on "
        "the right side; where there is no interval, as where runs are alike, all of them are."
    )
    notes += why_open(choice)
    candidates = [candidate for candidate in (choice.winner, choice.runner_up) if candidate]
    shown = [each for candidate in candidates for each in (candidate, choice.again.get(candidate.number))]
    notes += resting_on_some((f"{e.name}: {name}", e.figures[name].n, e.n) for e in shown if e for name in e.figures)
    prices = request.prices
    source = f" ({prices.source})" if prices.source else ""
    units = searching.price_units(request, [each.point for each in choice.candidates])
    of_each = "".join(f", of each {unit} of {key}" for key, unit in units.items() if unit)
    notes.append(
        f"Prices: {prices.name}{source}{of_each}. Looks are few runs: a front's figures are estimates with ranges."
    )
    return notes


def why_open(choice: Choice) -> list[str]:
    """Say what stays open as runs give nothing of a figure, or see too little of it for an interval and disagree."""
    texts = []
    left = [each for each in choice.candidates if each.is_left_open or each.failed_again]
    for objective in choice.request.objectives:
        looks = {each.name: choice.again.get(each.number, each).figures.get(objective.figure) for each in left}
        if none := [name for name, estimate in looks.items() if estimate is None]:
            texts.append(f"{objective.figure}: no run of {'; '.join(none)} gives one. Longer runs may.")
        ranges = {name: each for name, each in looks.items() if each is not None and not each.is_interval}
        if apart := [name for name, each in ranges.items() if objective.holds(each.low) != objective.holds(each.high)]:
            texts.append(
                f"{objective.figure} has no interval at {'; '.join(apart)}: single runs see too little of it, and do "
                "not agree. Longer runs give one."
            )
    return texts
