"""One model under several protection mechanisms: what each costs, and what clients see when something fails.

Every mechanism with its defaults, but the model's own with the parameters that the model gives it.  All meet the same
traffic.  The model's faults are left out; a crash of the primary's host is simulated apart (:mod:`.failover`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import MeasuredSpec, ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import flows_of, has_bench, phases_of, with_domain
from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.spec.suggest import did_you_mean, listing
from vftsim.stats import Estimate, mean_interval
from vftsim.study.failover import FailoverStudy, failover_study, protected_domain
from vftsim.study.frames import estimate_columns, frame
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.progress import Progress
from vftsim.study.protection_costs import cost_note
from vftsim.study.protection_figures import protection_figures
from vftsim.study.ramp import RampCapacity, ramp_capacity_of
from vftsim.study.replicate import DEFAULT_SEED, Replications, replicate
from vftsim.study.results import CONFIDENCE, rows
from vftsim.study.run_figures import protection_of
from vftsim.study.sip_records import steps_of
from vftsim.study.store import Store
from vftsim.study.validity import first_load, outside
from vftsim.study.workers import Interrupted, checked_jobs

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
_MS = 1e6


@dataclass(frozen=True)
class ProtectionComparison:
    """A model under several mechanisms.

    Parameters
    ----------
    base : Model
    kinds : tuple of str
    figures : dict
        By mechanism: values over the replications, by name with unit.
    capacities : dict
        By mechanism, if the model has a benchmark.
    failovers : dict
        By mechanism.
    refused : dict
        Mechanisms that do not fit, with the reason.
    notes : dict
        What must be said of a mechanism's costs.
    manifest : dict
    """

    base: Model
    kinds: tuple[str, ...]
    figures: Mapping[str, Mapping[str, list[float]]]
    capacities: Mapping[str, RampCapacity]
    failovers: Mapping[str, FailoverStudy]
    refused: Mapping[str, str]
    notes: Mapping[str, str]
    manifest: dict[str, Any]

    @property
    def interrupted(self) -> bool:
        """Whether the study was ended early."""
        return bool(self.manifest["state"] == "interrupted")

    def estimate(self, kind: str, name: str) -> Estimate | None:
        """Return a figure of a mechanism across replications, or across crashes."""
        if name == "capacity_saps":
            return self.capacities[kind].estimate if kind in self.capacities else None
        if name.startswith("failover."):
            return self.failovers[kind].mean(name.removeprefix("failover.")) if kind in self.failovers else None
        values = [value for value in self.figures[kind].get(name, []) if not math.isnan(value)]
        return mean_interval(values, CONFIDENCE) if values else None

    def names(self) -> list[str]:
        """Return all figures that any mechanism has."""
        found = dict.fromkeys(name for kind in self.kinds for name in self.figures[kind])
        of_crashes = dict.fromkeys(f"failover.{name}" for study in self.failovers.values() for name in study.figures())
        return [*(["capacity_saps"] if self.capacities else []), *found, *of_crashes]

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a mechanism and figure."""
        table = []
        for kind in self.kinds:
            for name in self.names():
                estimate = self.estimate(kind, name)
                if estimate is not None:
                    table.append({"mechanism": kind, "figure": name, **estimate_columns(estimate)})
        return frame(table)

    @property
    def outside(self) -> list[list[str]] | None:
        """Mechanism and figure where a load is outside of what the model was fitted to; None as of other studies."""
        if self.base.spec.calibrated is None:
            return None
        at_first = bool(outside(self.base.spec, first_load(self.base.spec)))
        of_ramp = {kind for kind, ramp in self.capacities.items() if ramp.ends_outside}
        return [
            [kind, name]
            for kind in self.kinds
            for name in self.names()
            if (kind in of_ramp if name == "capacity_saps" else at_first)
        ]

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest, "comparison": rows(self.to_pandas()), "refused": dict(self.refused),
            "notes": dict(self.notes), "outside_calibration": self.outside,
        }  # fmt: skip


def kinds_named(text: str) -> tuple[str, ...]:
    """Return the mechanisms of a list with commas, or all.

    Raises
    ------
    UsageError
        One of them does not exist.
    """
    known = sorted(protections())
    if text == ALL:
        return ("none", *(kind for kind in known if kind != "none"))
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in known:
            hint = protections().did_you_mean(name) or ";"
            raise UsageError(f"--protection: no mechanism '{name}'{hint} mechanisms: {listing(known)}, or all")
    return names


def under(model: Model, kind: str, domain: str | None = None) -> Model:
    """Return a model with a domain under a mechanism, and without faults.

    Parameters
    ----------
    model : Model
    kind : str
    domain : str, optional
        By default the protected one, or the one that has traffic.

    Raises
    ------
    UsageError
        There is no such mechanism or domain, it is not one mechanism, or it does not fit.
    """
    named = kinds_named(kind)
    if len(named) > 1:
        raise UsageError(f"--protection: one mechanism here, not '{kind}'; compare and availability take several")
    (kind,) = named
    spec = model.spec.model_copy(update={"faults": ()})
    name = protected_domain(model) if domain is None else _entry_of(spec, domain)
    notes = (*model.notes, f"protection: {kind}")
    own = spec.domains[name]
    if own.protection.kind == kind:  # type: ignore[attr-defined]
        return replace(model, spec=spec, notes=notes)
    mechanism = protections()[kind]()
    if own.vcpus > mechanism.most_vcpus:
        raise UsageError(f"{kind} handles {mechanism.most_vcpus} vCPU at most, and '{name}' has {own.vcpus}")
    # What was measured on a real system is of the system under its own mechanism.
    spec = spec.model_copy(update={"measured": MeasuredSpec()})
    return replace(model, spec=with_domain(spec, name, protection=mechanism), notes=notes)


def fitting(model: Model, kinds: Sequence[str]) -> tuple[dict[str, Model], dict[str, str]]:
    """Return a model under each mechanism that fits, and why the others do not.

    Raises
    ------
    UsageError
        None fits, or the model has no domain to protect.
    """
    protected_domain(model)
    models: dict[str, Model] = {}
    refused: dict[str, str] = {}
    for kind in kinds:
        try:
            models[kind] = under(model, kind)
        except UsageError as error:
            refused[kind] = str(error)
    if not models:
        raise UsageError("no mechanism fits: " + "; ".join(refused.values()))
    return models, refused


def _entry_of(spec: ModelSpec, domain: str) -> str:
    """Return the entry of a model file that stands for a domain."""
    for name in spec.domains:
        if domain in spec.copies(name):
            return name
    hint = did_you_mean(domain, spec.expanded()) or ";"
    raise UsageError(f"--domain: no domain '{domain}'{hint} domains: {listing(sorted(spec.expanded()))}")


def compare_protections(
    model: Model,
    kinds: Sequence[str],
    replications: int,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    progress: Progress | None = None,
    store: Store | None = None,
) -> ProtectionComparison:
    """Run a model under every mechanism for the same replications, and as many crashes of each.

    Raises
    ------
    UsageError
        No mechanism fits the model.
    Interrupted
        Ctrl-C before one replication of every mechanism was done.
    """
    started, workers = utc_now(), checked_jobs(jobs)
    models, refused = fitting(model, kinds)
    done = replicate(list(models.values()), replications, seed, workers, progress=progress, store=store)
    common = sorted(set.intersection(*(set(each.records) for each in done)))
    if not common:
        raise Interrupted("no replication of all mechanisms had finished")
    by_kind = dict(zip(models, done, strict=True))
    figures = {kind: _figures(models[kind], each, common) for kind, each in by_kind.items()}
    capacities = (
        {k: ramp_capacity_of(each.model, [(n, each.records[n]) for n in common]) for k, each in by_kind.items()}
        if has_bench(model.spec)
        else {}
    )
    name = protected_domain(model)
    interrupted = any(each.interrupted for each in done)
    failovers = {
        kind: failover_study(each, max(replications, 2), seed, workers, progress=progress, store=store)
        for kind, each in ({} if interrupted else models).items()
    }
    notes = {kind: text for kind, each in models.items() if (text := cost_note(each.spec.domains[name]))}
    said = manifest(
        list(models.values()), command="compare", seed=seed, replications=common, wanted=replications, jobs=workers,
        started=started, state="interrupted" if interrupted else "finished",
    )  # fmt: skip
    return ProtectionComparison(model, tuple(models), figures, capacities, failovers, refused, notes, said)


def _figures(model: Model, done: Replications, common: Sequence[int]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for number in common:
        for name, value in _of_run(model, done.records[number]).items():
            found.setdefault(name, []).append(value)
    return found


def _of_run(model: Model, record: RunRecord) -> dict[str, float]:
    """Return what protection costs in one replication: in the first load step of a benchmark, or all of it."""
    name = model.spec.copies(protected_domain(model))[0]
    found: dict[str, float] = {}
    if has_bench(model.spec):
        step = steps_of(phases_of(record))[0]
        delays = step.delays["SES1"]
        if delays.count:
            found |= {f"SES1_p{p}_ms": delays.percentile(p) / _MS for p in (50, 95)}
    for label, flow in flows_of(record).items():
        found |= {f"{label}_loss_percent": 100.0 * flow.loss_ratio, f"{label}_delay_p99_ms": flow.delay_ms(99)}
        if flow.is_voice:
            voice = flow.voice()
            found |= {
                f"{label}_jitter_ms": flow.jitter_ns / _MS,
                f"{label}_mos": voice.mos if voice.is_valid else math.nan,
            }
    steps = [phase for phase in record.phases if phase.name in {"step_1", ""}]
    used: Any = steps[0].outcomes[f"domains.{name}"]
    found["cpu_percent"] = used.cpu / model.spec.expanded()[name].vcpus
    return found | protection_figures(protection_of(record).get(name))
