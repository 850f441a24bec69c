"""All 49 experiments of the one published study: predicted against stated.

Every experiment file under ``experiments/xen-media`` with the costs that the model's own fit has found; numbers
and statements with their verdicts; and the same for deliberately wrong models: what those pass too proves
little.  ``vftsim record xen-media`` runs it (:mod:`vftsim.records.xen_study`).
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import media_of
from vftsim.platform.outcomes import HostUse
from vftsim.records import xen_nulls
from vftsim.records.statements import VERDICTS, Judged, Outcome
from vftsim.records.xen_fit import Budget, overrides, run_for
from vftsim.report.markdown import markdown_table
from vftsim.spec import load, shipped_dir

_MEDIA = ("loss_percent", "loss_events_per_s", "delay_", "jitter_ms", "r_factor", "mos")
RIGHT = "any vCPU"
RIVALS = {
    "one-vcpu": "all on one vCPU",
    "no-boost": "no wake-up boost",
    "round-robin": "round robin",
    "one-vcpu-each": "receive and transmit on one vCPU each",
    "half-duty": "CPU-bound guests at 50 % duty",
}
"""What the model is compared with, as the command line says it and as the fit calls it."""

RECORD = Budget(505, 10, 2.0, 0.5)
_NATIVE = "mixed.N"


def measured_rows() -> list[dict[str, str]]:
    """Return the rows of the measured table."""
    with (shipped_dir("calibration") / "xen-media" / "measured.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def experiment(key: str, assignments: Sequence[str] = ()) -> ModelSpec:
    """Return the system of one experiment, by its key in the measured table."""
    return load(shipped_dir("experiments") / f"xen-media/{key}.yaml", ModelSpec, assignments)


def _assignments(key: str, costs: tuple[float, float], structure: Sequence[str]) -> list[str]:
    """Return the costs and structure of a model, as far as an experiment knows them."""
    backend_us, relay_us = costs
    if key == _NATIVE:
        return [f"domains.linux.applications.relay.packet_cost={relay_us} us"]
    known = experiment(key).domains
    every = [a for a in overrides(backend_us, relay_us, structure) if _domain_of(a) in {None, *known}]
    if key.startswith("bypass.") and key != "bypass.D":
        return [a for a in every if not a.startswith("domains.media.interfaces")]
    return every


def _domain_of(assignment: str) -> str | None:
    """Return the domain an assignment is about, if it is about one."""
    return assignment.split(".")[1] if assignment.startswith("domains.") else None


def _row_of(spec: ModelSpec, record: RunRecord) -> dict[str, Any]:
    """Return a replication's figures as one row: those of the media streams, CPU in pCPUs, what the scheduler did."""
    found = {name: x for name, x in media_of(spec, record).columns().items() if name.startswith(_MEDIA)}
    found |= {f"cpu_{name}": used for name, used in record.pcpus().items()}
    host = next(each for each in record.whole.outcomes.values() if isinstance(each, HostUse))
    used = {"switching": host.switching / 100.0, "context_switches_per_s": host.context_switch_rate}
    return found | used | host.scheduler


def run_experiment(key: str, costs: tuple[float, float], structure: tuple[str, ...], budget: Budget) -> dict[str, Any]:
    """Run all replications of one experiment."""
    system = experiment(key, _assignments(key, costs, structure))
    results = [run_for(system, budget, r) for r in range(budget.replications)]
    rows = [_row_of(system, result) for result in results]
    # A row lacks the delays of a replication in which nothing came through.
    found = {each.name: [row.get(each.name, math.nan) for row in rows] for each in fields(Outcome)}
    names = dict.fromkeys((*found, *(name for row in rows for name in row)))
    drops: Counter[str] = Counter()
    for result in results:
        drops.update({f"{place}: {cause}": count for (place, cause), count in result.drops.items()})
    return {
        "outcome": asdict(Outcome(**found)),
        "mean": {name: known_mean(found.get(name) or [row.get(name) for row in rows]) for name in names},
        "drops": dict(drops),
    }


def known_mean(values: Sequence[float | None]) -> float | None:
    """Mean over the replications that have a value (voice quality has none outside the E-model's validity)."""
    known = [value for value in values if value is not None]
    return _mean(known) if known else None


def judge_all(results: Mapping[str, Mapping[str, Any]]) -> list[Judged]:
    """Verdicts on every statement of the table."""
    return xen_nulls.judged_rows(measured_rows(), outcomes_of(results))


def outcomes_of(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    """Return what was found, by experiment; a delay is nan (``null`` in a file) where nothing came through."""
    return {
        key: Outcome(**{name: [math.nan if v is None else v for v in values] for name, values in found.items()})
        for key, found in ((key, result["outcome"]) for key, result in results.items())
    }


def by_chance(record: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a null model and shuffled labels hold, beside the models of a record, the right one first."""
    return xen_nulls.chance(
        measured_rows(), {name: outcomes_of(entry["results"]) for name, entry in record.items()}, RECORD.seed
    )


def table(results: Mapping[str, Mapping[str, Any]], judged: Iterable[Judged]) -> list[str]:
    """Markdown: one line an experiment with its statements."""
    by_key: dict[str, list[Judged]] = {}
    for one in judged:
        by_key.setdefault(one.experiment, []).append(one)
    lines = [
        "| experiment | loss % | mean delay ms | p99 ms | stated | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for key, result in results.items():
        mean = result["mean"]
        figures = f"{mean['loss_percent']:.2f} | {mean['delay_mean_ms']:.3g} | {mean['delay_p99_ms']:.3g}"
        for number, one in enumerate(by_key.get(key, [])):
            head = f"{key} | {figures}" if number == 0 else " | | | "
            lines.append(f"| {head} | {one.quantity} {one.statement}: {one.found} | {one.verdict} |")
    return lines


def score(judged: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """How many statements hold, by kind."""
    counts: dict[str, Counter[str]] = {"numbers and words": Counter(), "ordinal": Counter()}
    for one in judged:
        counts["ordinal" if one.is_ordinal else "numbers and words"][one.verdict] += 1
    return {kind: dict(count) for kind, count in counts.items()}


def separating(models: Mapping[str, Sequence[Judged]], right: str) -> list[tuple[str, ...]]:
    """Return the statements on which the models differ: each with every model's verdict, in their order."""
    rows = []
    for position, one in enumerate(models[right]):
        verdicts = [judged[position] for judged in models.values()]
        if len({v.verdict for v in verdicts}) > 1:
            cells = [f"{v.verdict} ({v.found})" for v in verdicts]
            rows.append((f"{one.experiment}: {one.quantity} {one.statement}", *cells))
    return rows


def report(record: Mapping[str, Any], right: str, chance: Mapping[str, Any]) -> str:
    """Return the whole record as Markdown; ``chance`` is what :func:`by_chance` says of it."""
    models = {name: judge_all(entry["results"]) for name, entry in record.items()}
    lines = ["# Predicted against stated", ""]
    for name, judged in models.items():
        backend, relay = record[name]["costs_us"]
        lines.append(f"* {name} (back-end {backend:g} us, relay {relay:g} us): {in_words(score(judged))}")
    lines += ["", f"## {right}", "", *table(record[right]["results"], models[right])]
    lines += [
        "",
        "## What says nothing about Xen",
        "",
        *(f"* {line}" for line in xen_nulls.in_words(chance)),
    ]
    if len(models) > 1:
        lines += [
            "",
            "## What separates the models",
            "",
            markdown_table(("statement", *models), separating(models, right)),
        ]
    return "\n".join(lines) + "\n"


def in_words(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a score as a line of text."""
    return "; ".join(
        f"{kind}: " + ", ".join(f"{by_verdict.get(v, 0)} {v}" for v in VERDICTS) for kind, by_verdict in counts.items()
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
