"""``vftsim record networks``: all runs on several cores, and the record as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vftsim.records import networks as study
from vftsim.records.networks import RIGHT, WRONG, Budget, Figures
from vftsim.records.networks_claims import CONTRADICTED, Results, Statement, judge, shared_evenly
from vftsim.records.networks_numbers import PRINTED, TELLING, Printed, mechanisms, numbers, printed, twice_as_far
from vftsim.records.study import Table, in_markdown, in_order
from vftsim.study.progress import Progress

_MODELS = tuple(dict.fromkeys([*study.MODELS.values(), *study.BESIDE.values()]))
_COUNTS = range(1, study.MOST_CLIENTS + 1)
_RUNS: dict[str, Callable[..., Figures]] = {
    "tcp": study.tcp, "udp": study.udp, "web": study.sweep, "slow reader": study.slow_reader,
    "udp example": study.udp_example, "static pages": study.static_pages, "handled by two": study.handled,
    "example": study.httperf_example,
}  # fmt: skip


def tasks() -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Return all runs of the record by name: what, and its arguments but the budget."""
    found: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for test in ("web", "tcp", "udp"):
        for model in _MODELS:
            for n in _COUNTS:
                found[f"{test} {model} {n}"] = test, (model, n)
    for buffers in ("own", "shared"):
        for n in _COUNTS:
            found[f"slow reader {buffers} {n}"] = "slow reader", (buffers, n)
    costs = study.fitted_costs()
    for name in (RIGHT, *WRONG):
        found[f"example {name}"] = "example", (name, costs[name])
    found["udp example"] = "udp example", ()
    found["static pages"] = "static pages", ()
    found["handled by two"] = "handled by two", ("net-bare", 2, 8)
    return found


def run_record(jobs: int, budget: Budget, progress: Progress) -> dict[str, Figures]:
    """Run everything; return figures by name of the run, in their order."""
    wanted = tasks()
    work = [(what, arguments, budget) for what, arguments in wanted.values()]
    return dict(zip(wanted, in_order(_run, work, list(wanted), jobs, progress), strict=True))


def _run(task: tuple[str, tuple[Any, ...], Budget]) -> Figures:
    what, arguments, budget = task
    return _RUNS[what](*arguments, budget)


def tables(results: Results) -> list[Table]:
    """Return the whole record."""
    claims = study.stated("claims")
    return [
        Table(
            "Figures, stated against predicted",
            ("figure", "stated", "predicted", "beside it", "verdict", "verdict of what is beside"),
            [(n.what, n.stated, n.predicted, n.beside, n.verdict, n.null or "") for n in numbers(results)],
        ),
        _example_table(results),
        Table(
            "One to five clients, bare metal", ("figure", "simulated", "closed form", "verdict"),
            [(m.what, _listed(m.values), _listed(m.form), m.verdict) for m in mechanisms(results)],
        ),
        _beside_table(results),
        Table(
            "Statements", ("key", "stated", "found", "verdict", "shared evenly"),
            [
                (s.key, s.stated, s.found, s.verdict, null.verdict)
                for s, null in zip(judge(claims, results), judge(claims, shared_evenly()), strict=True)
            ],
        ),
    ]  # fmt: skip


def _example_table(results: Results) -> Table:
    found, stated = printed(results), study.example_figures("httperf_example") | {"first_5_s": 25.0}
    right = found[0]
    rows: list[tuple[str, ...]] = [
        (
            key.replace("_", " "),
            f"{stated[key]:g}",
            *(_with_error(one, key) for one in found),
        )
        for key in ("replies", "first_5_s", *PRINTED)
    ]
    rows += [
        ("median error", "12 %", *(f"{one.median_error:.1%}" for one in found)),
        ("worst", "45 %", *(f"{one.worst} {one.errors[one.worst]:+.0%}".replace("_", " ") for one in found)),
        ("verdict", "", *(one.verdict for one in found)),
        (f"twice as far off, of {len(TELLING)}", "", "", *(str(len(twice_as_far(right, one))) for one in found[1:])),
    ]
    return Table("httperf's printed example (fitted: the first two rows)", ("figure", "printed", RIGHT, *WRONG), rows)


def _with_error(one: Printed, key: str) -> str:
    return f"{one.values[key]:.4g} ({one.errors[key]:+.0%})"


def _beside_table(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for test, figure, what in (
        ("tcp", "mbit_per_s", "TCP, Mbit/s each"), ("udp", "sent_mbit_per_s", "UDP sent, Mbit/s each"),
        ("udp", "loss_percent", "UDP loss, %"), ("udp", "jitter_us", "UDP jitter, us"),
        ("web", "rate_per_s", "web, greatest rate each, /s"), ("web", "onset_per_s", "web, first errors at, /s"),
    ):  # fmt: skip
        for model in _MODELS:
            values = [_mean(results[f"{test} {model} {n}"][figure]) for n in _COUNTS]
            form = _form(test, model) if figure == "rate_per_s" else ""
            rows.append((what, model, _listed(values), form))
    return Table("What each model gives, one to five clients", ("figure", "model", "simulated", "closed form"), rows)


def _form(test: str, model: str) -> str:
    return _listed([study.collapse_form_per_s(model, n) for n in _COUNTS])


def score(statements: Iterable[Statement]) -> str:
    """Return how many statements have which verdict, as text."""
    counts = Counter(one.verdict for one in statements)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def scores(results: Results) -> list[str]:
    """Return the score of the statements, and what it would be with each platform's other network card."""
    claims = study.stated("claims")
    right, null = judge(claims, results), judge(claims, shared_evenly())
    counted = [one for one in right if one.verdict not in {"contradicted by the source itself", "not judged"}]
    both = sum(a.verdict == b.verdict == "holds" for a, b in zip(right, null, strict=True))
    without = sum(one.verdict == "no mechanism" for one in counted)
    figures = [one for one in numbers(results) if one.verdict == "holds"]
    share = f"{both + without} of {len(counted)} statements ({(both + without) / len(counted):.0%})"
    ruled = sum(one.null == "holds" for one in figures)
    return [
        f"Statements: {score(right)}.",
        f"A null model, one resource shared evenly by clients on platforms all alike and no loss: {score(null)}.",
        f"Cannot tell: {share}: {both} hold in the null model as well, in {without} both sides are the same by "
        "construction (no mechanism: not held).",
        f"Of {len(figures)} figures that hold {ruled} are held by the trivial rule or closed form beside them.",
        f"With the other network cards ({', '.join(list(study.BESIDE.values())[1:])}): "
        f"{score(judge(claims, results, beside=True))}.",
        f"Of the source's own statements {len(CONTRADICTED)} are contradicted by others of it or by its tables.",
    ]


def report(results: Results, budget: Budget) -> str:
    """Return the record as Markdown."""
    return in_markdown("Networks: stated against predicted", ran(budget), scores(results), tables(results))


def ran(budget: Budget) -> str:
    """Return what was run, as text."""
    return (
        f"{budget.replications} replications, seed {budget.seed}; TCP and UDP for {budget.seconds:g} s, web tests of "
        "20 s as the study's script."
    )


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
