"""Sensitivity and decisions against brute force: every combination of a grid, on two shipped models each.

    python experiments/decisions/decisions.py [--jobs 2] [--write] [--keep DIR]

* **Ranking.** ``vftsim sensitivity`` orders the factors of a figure.  The grid has the middle of each of six slices of
  every range, in all combinations; a factor's total share there is the mean variance over its values divided by the
  whole variance.  The first three of both orders are compared.
* **Choice.** ``vftsim optimize`` finds the cheapest configuration that meets objectives.  The grid is every
  configuration with twenty replications under random numbers of its own, judged by the same intervals.  Its best lies
  between the cheapest that it cannot exclude and the cheapest that it knows to meet them; the choice must, too.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "io-faults"))
from table import put

from vftsim.interface.plan import Plan
from vftsim.report.markdown import markdown_table
from vftsim.study.designs.choice import optimize
from vftsim.study.designs.optimize import MET, MISSED, measured, read_prices
from vftsim.study.designs.optimize import Request as Choice
from vftsim.study.designs.points import read_range
from vftsim.study.designs.runner import Evaluator, found_at
from vftsim.study.designs.sensitivity import Request as Question
from vftsim.study.designs.sensitivity import Sensitivity, sensitivity, short_names
from vftsim.study.execution import Execution
from vftsim.study.figures.names import one_figure, read_objective
from vftsim.study.runs.model import load_model
from vftsim.study.runs.progress import Silent
from vftsim.study.store.store import Opening, Store

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
SLICES, GRID_RUNS, GRID_SEED, FIRST = 6, 20, 77, 3
MEDIA = ("workloads.signaling=null", "measure.duration=300 ms", "measure.warm_up=200 ms")
WEB = ("workloads.tcp=null", "workloads.udp=null", "workloads.web.connections=60")


@dataclass(frozen=True)
class Ranking:
    """A question of what a figure depends on."""

    model: str
    settings: tuple[str, ...]
    figure: str
    ranges: tuple[str, ...]

    def question(self) -> Question:
        """Return it as the command has it."""
        spans = dict(read_range(text) for text in self.ranges)
        base = load_model(self.model, self.settings)
        return Question(self.model, self.settings, self.figure, spans, base, samples=128, replications=2)


@dataclass(frozen=True)
class Decide:
    """A choice."""

    model: str
    settings: tuple[str, ...]
    objectives: tuple[str, ...]
    choices: Mapping[str, Sequence[str]]

    def choice(self) -> Choice:
        """Return it as the command has it."""
        objectives = tuple(read_objective(text) for text in self.objectives)
        base = load_model(self.model, self.settings)
        return Choice(self.model, self.settings, base, self.choices, objectives, read_prices(None), looks=16)


RANKINGS = (
    Ranking(
        "xen-media",
        (*MEDIA, "workloads.media.streams=300"),
        "workloads.media.delay.p99",
        (
            "workloads.media.streams=200..380",
            "hosts.host.switch_cost=1 us..10 us log",
            "domains.dom0.weight=128..1024 log",
            "domains.cpu1.applications.job.duty=20 %..90 %",
        ),
    ),
    Ranking(
        "net-kvm",
        (*WEB, "workloads.web.rate=4 /s", "workloads.web.gap_cv=1"),
        "workloads.web.response.mean",
        (
            "workloads.web.rate=2 /s..6 /s",
            "domains.server.applications.web.script=60 ms..140 ms",
            "domains.server.applications.web.reply_size=100000 B..2000000 B",
            "networks.lan.latency=5 us..20 ms",
        ),
    ),
    Ranking(
        "xen-media",
        (*MEDIA, "workloads.media.streams=200"),
        "workloads.media.delay.mean",
        (
            "workloads.media.streams=100..300",
            "hosts.host.switch_cost=1 us..10 us log",
            "domains.dom0.weight=128..1024 log",
            "domains.cpu1.applications.job.duty=20 %..90 %",
        ),
    ),
)
DECISIONS = (
    Decide(
        "xen-media",
        (*MEDIA, "workloads.media.streams=400"),
        ("workloads.media.loss <= 0.1", "workloads.media.delay.p99 <= 1"),
        {
            "hosts.host.pcpus": ("1", "2", "3", "4"),
            "weight": ("256", "512", "1024"),
            "scheduler": ("credit", "credit2"),
            "domains.dom0.vcpus": ("1", "2"),
        },
    ),
    Decide(
        "net-kvm",
        (*WEB, "workloads.web.rate=12 /s"),
        ("workloads.web.answered >= 95", "workloads.web.response.p95 <= 1000"),
        {
            "hosts.host.pcpus": ("1", "2", "3", "4"),
            "domains.server.vcpus": ("1", "2", "3", "4"),
            "domains.server.applications.web.max_clients": ("20", "150"),
            "domains.server.interfaces.eth0.path": ("{kind: paravirtual}", "{kind: emulated}"),
        },
    ),
)


def grid_shares(question: Question, figure: str, evaluate: Evaluator) -> dict[str, float]:
    """Return the total share of each factor over a grid of all combinations."""
    middles = [(n + 0.5) / SLICES for n in range(SLICES)]
    values = [
        {name: span.at(share) for (name, span), share in zip(question.spans.items(), row, strict=True)}
        for row in itertools.product(middles, repeat=len(question.spans))
    ]
    points = question.points(values)
    runs = evaluate(points, question.replications)
    means = [found_at(point, evaluate.summary(runs, point.number), figure)[1].mean for point in points]
    outputs = np.array(means).reshape((SLICES,) * len(question.spans))
    whole = outputs.var()
    return {name: float(outputs.var(axis=axis).mean() / whole) for axis, name in enumerate(question.spans)}


def kept(study: Callable[..., Any], request: Any, folder: Path, jobs: int | None) -> Any:
    """Return the answer to a request; its runs are kept."""
    plan: Plan[Any] = Plan(study.__name__, "", [], None, partial(study, request), directory=folder / study.__name__)
    return replace(plan, jobs=jobs).answer(Silent())[0]


def rank(one: Ranking, folder: Path, jobs: int | None) -> list[list[str]]:
    """Return rows of factors with both shares, in the grid's order."""
    question = one.question()
    figure = one_figure(one.figure, question.base.spec)
    found = kept(sensitivity, question, folder, jobs)
    with Store(folder / "grid", "grid", Opening.CONTINUE) as store:
        shares = grid_shares(question, figure, Evaluator(0.95, Execution(GRID_SEED, jobs or 1, store=store)))
    order, short = sorted(shares, key=lambda name: -shares[name]), short_names(list(shares))
    places = {each.name: place for place, each in enumerate(found.effects, 1)}
    total_effects = {each.name: each.total for each in found.effects}
    return [
        [
            f"{one.model}: {figure}" if place == 1 else "",
            short[name],
            f"{shares[name]:.3f}",
            "screened out" if (i := total_effects[name]) is None else f"{i.mean:.3f} ({i.low:.3f} to {i.high:.3f})",
            str(place),
            str(places[name]),
            "" if place > FIRST else _verdict(name, places[name] == place, found),
        ]
        for place, name in enumerate(order, 1)
    ]


def _verdict(name: str, is_same: bool, found: Sensitivity) -> str:
    """Say whether a place is the same, or whether the answer itself leaves that open."""
    if is_same:
        return "same"
    return "not told apart" if name in open_order(found) else "**other**"


def open_order(found: Sensitivity) -> set[str]:
    """Return the factors whose order is said to be open: intervals of neighbours overlap."""
    closed = [each for each in found.effects if each.total is not None]
    pairs = [(a, b) for a, b in itertools.pairwise(closed) if a.total.low < b.total.high]
    return {each.name for pair in pairs for each in pair}


def decide(one: Decide, folder: Path, jobs: int | None) -> list[str]:
    """Return a row with the choice and the interval of the grid's best."""
    request = one.choice()
    found = kept(optimize, request, folder, jobs)
    with Store(folder / "grid", "grid", Opening.CONTINUE) as store:
        evaluate = Evaluator(request.interval, Execution(GRID_SEED, jobs or 1, store=store))
        every = measured(evaluate, request, found.candidates, GRID_RUNS)
    known = [each.cost for each in every if each.verdict == MET]
    open_yet = [each.cost for each in every if each.verdict != MISSED]
    low, high = min(open_yet, default=float("nan")), min(known, default=float("nan"))
    assert found.winner is not None
    short = short_names(list(request.choices))
    name = ", ".join(f"{short[key]}={value}" for key, value in found.winner.point.values.items())
    return [
        one.model,
        "; ".join(one.objectives),
        name,
        f"{found.winner.cost:g}",
        f"{low:g} to {high:g}",
        "inside" if low <= found.winner.cost <= high else "**outside**",
        str(len(every)),
        str(found.runs),
        str(len(every) * GRID_RUNS),
    ]


def main() -> int:
    """Compare; exit code 1 where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/studies.md")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all runs there, and go on from them")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as elsewhere:
        place = chosen.keep or Path(elsewhere)
        place.mkdir(parents=True, exist_ok=True)
        ranked = []
        for number, one in enumerate(RANKINGS):
            (folder := place / f"ranking-{number}").mkdir(exist_ok=True)
            ranked += rank(one, folder, chosen.jobs)
        made = []
        for number, each in enumerate(DECISIONS):
            (folder := place / f"decision-{number}").mkdir(exist_ok=True)
            made.append(decide(each, folder, chosen.jobs))
    text = "\n\n".join(
        [
            markdown_table(
                ("figure", "factor", "share, grid", "share, sensitivity", "place, grid", "place", "first three"), ranked
            ),
            markdown_table(
                ("model", "objectives", "choice", "cost", "grid's best", "", "configurations", "runs", "runs, grid"),
                made,
            ),
        ]
    )
    print(text)
    if chosen.write:
        put(PAGE, "decisions.py", text)
    return int("**" in text)


if __name__ == "__main__":
    sys.exit(main())
