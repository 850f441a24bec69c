"""The 49 experiments of Patnaik et al. 2009 under the model and its rivals: what a run gives, and the record's page.

Numbers and statements with their verdicts, and the same for deliberately wrong models: what those pass too proves
little.  Structures and budgets are in ``calibration/xen-media/record.yaml``.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from statistics import fmean
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.composition.views import media_of
from vftsim.platform.outcomes import HostUse
from vftsim.records.forms import xen_nulls
from vftsim.records.forms.xen_statements import VERDICTS, Judged, Outcome
from vftsim.records.judge import Judgement, table_of
from vftsim.records.runner import rows_of
from vftsim.report.blocks import Table
from vftsim.spec import load, shipped_dir

_MEDIA = ("loss_percent", "loss_events_per_s", "delay_", "jitter_ms", "r_factor", "mos")
RIGHT = "any vCPU"
_NATIVE = "mixed.N"
_FOLDER = shipped_dir("calibration") / "xen-media"


def measured_rows() -> Sequence[Mapping[str, str]]:
    return rows_of(_FOLDER / "measured.csv")


def experiment(key: str, assignments: Sequence[str] = ()) -> ModelSpec:
    """Return the system of one experiment, by its key in the measured table."""
    return load(shipped_dir("experiments") / f"xen-media/{key}.yaml", ModelSpec, assignments)


def costs_of(model: str) -> tuple[float, float]:
    """Return the costs of a model, back-end and relay, in us: the shipped file's for the right one, else the fit's."""
    if model == RIGHT:
        domain = load("xen-media", ModelSpec).domains["media"]
        path: Any = domain.interfaces["eth0"].path
        relay: Any = domain.applications["relay"]
        return path.backend_receive_cost / 1000, relay.packet_cost / 1000
    best = json.loads((_FOLDER / "fit.json").read_text(encoding="utf-8"))[model]["best"]
    return best["backend_us"], best["relay_us"]


def overrides(backend_us: float, relay_us: float, structure: Sequence[str] = ()) -> list[str]:
    backend = [
        f"domains.{domain}.interfaces.eth0.path.{cost}={backend_us} us"
        for domain in ("media", "signaling")
        for cost in ("backend_receive_cost", "backend_transmit_cost")
    ]
    return [*backend, f"domains.media.applications.relay.packet_cost={relay_us} us", *structure]


def assignments(key: str, model: str, structure: Sequence[str]) -> list[str]:
    """Return the costs and structure of a model, as far as an experiment knows them, as templates."""
    return priced(key, *costs_of(model), structure)


def priced(key: str, backend_us: float, relay_us: float, structure: Sequence[str]) -> list[str]:
    """Return costs and a structure, as far as an experiment knows them, as templates."""
    if key == _NATIVE:
        return [f"domains.linux.applications.relay.packet_cost={relay_us} us"]
    domains = experiment(key).domains
    every = overrides(backend_us, relay_us, structure)
    every = [a for a in every if not a.startswith("domains.") or a.split(".")[1] in domains]
    if key.startswith("bypass.") and key != "bypass.D":
        every = [a for a in every if not a.startswith("domains.media.interfaces")]
    return [a.replace("{", "{{").replace("}", "}}") for a in every]


def _row_of(spec: ModelSpec, record: RunRecord) -> dict[str, Any]:
    """Return a replication's figures as one row: those of the media streams, CPU in pCPUs, what the scheduler did."""
    media = {name: x for name, x in media_of(spec, record).columns().items() if name.startswith(_MEDIA)}
    media |= {f"cpu_{name}": used for name, used in record.pcpus().items()}
    host = next(each for each in record.whole.outcomes.values() if isinstance(each, HostUse))
    used = {"switching": host.switching / 100.0, "context_switches_per_s": host.context_switch_rate}
    return media | used | host.scheduler


def run_experiment(spec: ModelSpec, budget: Mapping[str, float]) -> dict[str, Any]:
    results = [run_model(spec, int(budget["seed"]), each) for each in range(int(budget["replications"]))]
    rows = [_row_of(spec, result) for result in results]
    # A row lacks the delays of a replication in which nothing came through.
    outcome = {each.name: [row.get(each.name, math.nan) for row in rows] for each in fields(Outcome)}
    names = dict.fromkeys((*outcome, *(name for row in rows for name in row)))
    drops: Counter[str] = Counter()
    for result in results:
        drops.update({f"{place}: {cause}": count for (place, cause), count in result.drops.items()})
    return {
        "outcome": outcome,
        "mean": {name: known_mean(outcome.get(name) or [row.get(name) for row in rows]) for name in names},
        "drops": dict(drops),
    }


def known_mean(values: Sequence[float | None]) -> float | None:
    """Mean over the replications that have a value (voice quality has none outside the E-model's validity)."""
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def judge_all(results: Mapping[str, Mapping[str, Any]]) -> list[Judged]:
    return xen_nulls.judged_rows(measured_rows(), outcomes_of(results))


def outcomes_of(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    """Return what was found, by experiment; a delay is nan (``null`` in a file) where nothing came through."""
    return {
        key: Outcome(**{name: [math.nan if v is None else v for v in values] for name, values in outcome.items()})
        for key, outcome in ((key, result["outcome"]) for key, result in results.items())
    }


def score(judged: Iterable[Judged]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {"numbers and words": Counter(), "ordinal": Counter()}
    for row in judged:
        counts["ordinal" if row.is_ordinal else "numbers and words"][row.verdict] += 1
    return {kind: dict(count) for kind, count in counts.items()}


def separating(models: Mapping[str, Sequence[Judged]], right: str) -> list[tuple[str, ...]]:
    """Return the statements on which the models differ: each with every model's verdict, in their order."""
    rows = []
    for position, row in enumerate(models[right]):
        verdicts = [judged[position] for judged in models.values()]
        if len({v.verdict for v in verdicts}) > 1:
            cells = [f"{v.verdict} ({v.found})" for v in verdicts]
            rows.append((f"{row.experiment}: {row.quantity} {row.statement}", *cells))
    return rows


def in_words(counts: Mapping[str, Mapping[str, int]]) -> str:
    return "; ".join(
        f"{kind}: " + ", ".join(f"{by_verdict.get(v, 0)} {v}" for v in VERDICTS) for kind, by_verdict in counts.items()
    )


class MediaJudgement(Judgement):
    """The record: results by model and experiment, beside what says nothing about Xen."""

    @cached_property
    def models(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """Return results by model and experiment, the right model first."""
        results_of: dict[str, dict[str, Mapping[str, Any]]] = {}
        for name, (_, case) in self.record.tasks().items():
            results_of.setdefault(case["model"], {})[case["experiment"]] = self.results[name]
        return results_of

    @cached_property
    def judged(self) -> dict[str, list[Judged]]:
        return {name: judge_all(results) for name, results in self.models.items()}

    @cached_property
    def chance(self) -> dict[str, Any]:
        """Return what a null model and shuffled labels hold, beside the models of the record."""
        outcomes = {name: outcomes_of(results) for name, results in self.models.items()}
        return xen_nulls.chance(measured_rows(), outcomes, int(self.record.spec.budget["seed"]))

    @property
    def ran(self) -> str:
        return f"{super().ran} {_costs(RIGHT).capitalize()} (shipped model)."

    def tables(self) -> list[Table]:
        """Return every experiment with what is stated of it, and what separates the models."""
        columns = ("experiment", "loss %", "mean ms", "p99 ms", "stated", "found", "verdict")
        listed = [table_of("Predicted against stated", columns, list(self._experiments()))]
        if len(self.models) > 1:
            listed.append(
                table_of("What separates the models", ("statement", *self.models), separating(self.judged, RIGHT))
            )
        return listed

    def _experiments(self) -> Iterable[tuple[str, ...]]:
        for key, result in self.models[RIGHT].items():
            mean = result["mean"]
            head = (key, *(f"{mean[name]:.3g}" for name in ("loss_percent", "delay_mean_ms", "delay_p99_ms")))
            judged = (row for row in self.judged[RIGHT] if row.experiment == key)
            rows = [(f"{row.quantity} {row.statement}", row.found, row.verdict) for row in judged]
            for number, cells in enumerate(rows or [("", "", "")]):
                yield (*(head if number == 0 else ("",) * 4), *cells)

    def scores(self) -> list[str]:
        """Return how many statements hold, of each model, and how many cannot tell."""
        lines = [in_words({kind: counts}) for kind, counts in score(self.judged[RIGHT]).items()]
        if self.record.budget["replications"] == 1:
            lines.insert(0, "One replication has no interval: comparisons are 'undecided'.")
        if len(self.models) > 1:
            lines += [f"{name} ({_costs(name)}): {in_words(score(rows))}" for name, rows in self.judged.items()]
        return [*lines, *xen_nulls.in_words(self.chance)]

    def for_machines(self) -> dict[str, Any]:
        models = {}
        for name, results in self.models.items():
            judged = {"judged": [asdict(row) for row in self.judged[name]], "score": score(self.judged[name])}
            models[name] = {"costs_us": list(costs_of(name)), "results": results, **judged}
        return {"budget": dict(self.record.budget), "right": RIGHT, "chance": self.chance, "models": models}


def _costs(model: str) -> str:
    backend_us, relay_us = costs_of(model)
    return f"back-end {backend_us:g} us, relay {relay_us:g} us"
