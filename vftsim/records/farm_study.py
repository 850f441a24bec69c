"""``vftsim record sip-farm``: all runs on several cores, and the record as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from vftsim.records import farm
from vftsim.records import farm_bounds as form
from vftsim.records.farm import Budget, Figures
from vftsim.records.farm_rows import (
    FORM_MARGIN,
    Agreement,
    Results,
    agreements,
    contradictions,
    mean,
    numbers,
    wrong_models,
)
from vftsim.records.study import Table, in_markdown, in_order
from vftsim.study.progress import Progress

_RUNS: dict[str, Callable[..., Figures]] = {
    "bounds": farm.bounds, "held out": farm.held_out, "saturated": farm.saturated, "what if": farm.what_if,
    "protected": farm.protected, "unprotected": farm.unprotected, "bound": farm.protected_bound,
}  # fmt: skip
ARRIVALS = ("random", "even", "exponential")


def tasks() -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Return all runs of the record by name: what, and its arguments but the budget."""
    found: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for arrivals in ARRIVALS:
        found[f"R3 held out, {arrivals}"] = "held out", (arrivals,)
    for run in form.RUNS:
        found[f"bounds {run}"] = "bounds", (run,)
    for run in farm.SATURATED:
        found[f"saturated {run}"] = "saturated", (run,)
    for model in farm.WHAT_IFS:
        found[model] = "what if", (model,)
    for model in farm.PROTECTED:
        found[f"{model}, plain"] = "unprotected", (model,)
        found[model] = "protected", (model, False)
        found[f"{model}, crash"] = "protected", (model, True)
        found[f"{model}, plain, bound"] = "bound", (model, False)
        found[f"{model}, bound"] = "bound", (model, True)
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
    return [
        Table(
            "Figures, stated against predicted",
            ("figure", "stated", "predicted", "limiting resource", "baseline", "verdict", "baseline's verdict"),
            [(n.what, n.stated, n.predicted, n.limit, n.baseline, n.verdict, n.null or "") for n in numbers(results)],
        ),
        Table(
            "Wrong models, each on the row that tells", ("model", "row", "stated", "right", "wrong", "verdict"),
            [(w.model, w.row, w.stated, w.right, w.wrong, w.verdict) for w in wrong_models()],
        ),
        Table("What the source says twice", ("figure", "stated", "also"), contradictions()),
        Table(
            "Calls a second that each resource allows: event model and closed form",
            ("run", "resource", "simulated", "closed form", "off", ""),
            [_agreement_row(each) for each in agreements(results)],
        ),
        _generator_table(results),
        _response_table(results),
        _what_if_table(results),
        _protection_table(results),
    ]  # fmt: skip


def _agreement_row(each: Agreement) -> tuple[str, ...]:
    figures = f"{each.simulated:.1f}", f"{each.form:.1f}", f"{each.off:+.2%}"
    return each.run, each.resource, *figures, "limit" if each.is_limit else ""


def _generator_table(results: Results) -> Table:
    """Return what the callers' partition allows, which is to be no run's limit."""
    cost_us = 1e6 * farm.GENERATOR_COST_S
    rows = []
    for run, layout in form.RUNS.items():
        simulated = mean(results[f"bounds {run}"][form.GENERATORS])
        by_form = form.generators_bound(farm.GENERATOR_COST_S, layout)
        least = form.limit(form.bounds(form.costs_after(), layout))[1]
        rows.append((run, f"{simulated:.0f}", f"{by_form:.0f}", f"{simulated / by_form - 1.0:+.2%}",
                     f"{simulated / least:.1f} times"))  # fmt: skip
    head = ("run", "simulated", "closed form", "off", "over the run's own limit")
    return Table(f"Calls a second that the load generators allow, {cost_us:g} us a message (assumption)", head, rows)


def _response_table(results: Results) -> Table:
    rows = []
    for arrivals in ARRIVALS:
        figures = results[f"R3 held out, {arrivals}"]
        rows.append((arrivals, *(_listed(figures[name]) for name in ("response_ms", "longest_ms", "processors_used"))))
    return Table(
        "R3 by arrivals of calls (exponential: CPU times too)",
        ("arrivals", "response, ms", "longest, ms", "processors"), rows,
    )  # fmt: skip


def _what_if_table(results: Results) -> Table:
    rows = []
    for model in farm.WHAT_IFS:
        figures = results[model]
        resources = (*form.RESOURCES, form.STORAGE)
        bounds = {name: mean(figures[name]) for name in resources if name in figures}
        name, bound = form.limit(bounds)
        rows.append((model, f"{bound:.0f}", name, _listed(figures["response_ms"]), _listed(figures["processors_used"])))
    head = ("model", "calls/s, bound", "limiting resource", "response, ms", "processors")
    return Table("Predictions: farms that nobody measured", head, rows)


def _protection_table(results: Results) -> Table:
    rows = []
    for model in farm.PROTECTED:
        for what, name in (("no protection", f"{model}, plain"), ("protected", model), ("crash", f"{model}, crash")):
            figures = results[name]
            columns = ("response_ms", "longest_ms", "retransmissions_percent", "failed")
            bound = results.get(f"{name}, bound")
            allowed = _listed(bound["calls_per_s"]) if bound is not None else ""
            rows.append((model, what, allowed, *(_listed(figures[column]) for column in columns)))
    head = ("model", "", "calls/s, bound", "response, ms", "longest, ms", "retransmissions, %", "failed calls")
    return Table("Predictions: a protected front end", head, rows)


def scores(results: Results) -> list[str]:
    """Return how many rows have which verdict, and how far the event model is from the closed forms."""
    rows = numbers(results)
    counts, held = Counter(one.verdict for one in rows), [one for one in rows if one.verdict == "holds"]
    both = sum(one.null == "holds" for one in held)
    failing = sum(one.verdict == "missed" for one in wrong_models())
    limits = [one for one in agreements(results) if one.is_limit]
    worst = max(limits, key=lambda one: abs(one.off))
    within = "within" if abs(worst.off) <= FORM_MARGIN else "not within"
    return [
        "Rows: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) + ".",
        f"Cannot tell: {both} of the {len(held)} rows that hold, because the baseline (so many times one server) holds "
        "them too.",
        f"{failing} of {len(wrong_models())} wrong models fail on their row.",
        f"The event model's limits are {within} {FORM_MARGIN:.0%} of the closed forms; the furthest is {worst.run}, "
        f"{worst.resource}: {worst.off:+.2%}.",
    ]


def report(results: Results, budget: Budget) -> str:
    """Return the record as Markdown."""
    return in_markdown("SIP farm: stated against predicted", ran(budget), scores(results), tables(results))


def ran(budget: Budget) -> str:
    """Return what was run, as text."""
    return f"{budget.replications} replications, seed {budget.seed}, lengths times {budget.length:g}."


def _listed(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"
