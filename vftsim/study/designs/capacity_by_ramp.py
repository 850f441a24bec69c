"""Capacity as the laboratory measures it: raise the load step by step until a step fails.

The lab makes one such run, whose end gives the design objective capacity (:mod:`vftsim.workloads.ramp`);
here it is made with many seeds, and the answer is a pair of steps: the highest that at least half of the ramps
pass and the one above it, each with the number of ramps.  A mean of DOCs would lie between steps where nothing
was tried.  A ramp that reaches the most steps its model allows without failing gives a lower bound only: where
half of them do, the capacity is "at least", and where any does, it bounds ratios and differences no more.

How much of a server's CPU to leave free (tipping): what tips a SIP server before its CPU is full is not in the models,
so their capacity is an upper bound.  What is known is where measured systems tipped, as a share of the load that would
have filled their CPU (:mod:`vftsim.labs.ramps`); the range over them, times the load that fills the model's CPU, stands
beside the model's capacity.  A system's record is left out of what it is told.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from vftsim.composition.views import ramp_key, ramp_of
from vftsim.composition.without_effect import running_vcpus
from vftsim.errors import UsageError
from vftsim.labs import ramps as of_labs
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Chart, Note, Point, Series, Table, in_words
from vftsim.spec.shipped import is_file
from vftsim.stats import Estimate, binomial_interval, median_interval
from vftsim.study.blocks.head import marked, missing_notes, outside_notes, within
from vftsim.study.figures import validity
from vftsim.study.figures.frames import CONFIDENCE, DataFrame, estimate_columns, frame
from vftsim.study.figures.validity import Missing, missing_in
from vftsim.study.runs.model import Model
from vftsim.workloads.ramp import RampEnd, StepOutcome, ramp_end


@dataclass(frozen=True, slots=True)
class Experience:
    """Measured systems of this kind, and the headroom that a user wants."""

    ramps: Mapping[str, of_labs.Ramp]
    """By system."""
    headroom_percent: float | None = None
    """Share of the full load to be left free; None: what the most fragile of the systems needed."""


def experience_of(labs: Path | None = None, headroom_percent: float | None = None) -> Experience:
    """Return what the shipped laboratories tell, with those of a user's file; refuse a wrong file or headroom."""
    if headroom_percent is not None and not 0.0 <= headroom_percent < 100.0:
        raise UsageError(f"--headroom: from 0 to below 100 %, got {headroom_percent:g}")
    if labs is not None and not is_file(labs):
        raise UsageError(f"--labs: there is no file {labs}; 'vftsim schema ramps' says what it holds")
    ramps = {} if labs is None else of_labs.read_ramps(labs)
    return Experience({**of_labs.shipped_ramps(), **ramps}, headroom_percent)


@dataclass(frozen=True, slots=True)
class Tipping:
    """Loads at which a system may tip, learned from others that did."""

    full_saps: float
    """Load that fills its CPU."""
    others: tuple[of_labs.Ramp, ...]
    headroom_percent: float | None
    within_saps: float
    """Capacity by the model."""

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the full load between which the others tipped."""
        return of_labs.shares_seen(self.others)

    @property
    def seen_saps(self) -> tuple[float, float]:
        """The loads that these are here."""
        low, high = self.shares
        return low * self.full_saps, high * self.full_saps

    @property
    def safe_saps(self) -> float:
        """Load that leaves the headroom free, and is within the model's capacity."""
        share = self.shares[0] if self.headroom_percent is None else 1.0 - self.headroom_percent / 100.0
        return min(share * self.full_saps, self.within_saps)

    @property
    def tipped_below(self) -> int:
        """Number of other systems that carried no more than a smaller share, and may have tipped below."""
        return sum(ramp.carried / ramp.full < self.safe_saps / self.full_saps - 1e-9 for ramp in self.others)

    def columns(self) -> dict[str, Any]:
        low, high = self.seen_saps
        tipped = {"tipped_from_saps": low, "tipped_to_saps": high}
        return {"full_saps": self.full_saps, **tipped, "safe_saps": self.safe_saps}

    def for_machines(self) -> dict[str, Any]:
        low, high = self.shares
        return {
            **self.columns(),
            "headroom_percent": self.headroom_percent,
            "low_share": low,
            "high_share": high,
            "systems_tipped_below_safe": self.tipped_below,
            "systems": [
                {
                    "system": ramp.system,
                    "carried": ramp.carried,
                    "tipped": ramp.tipped,
                    "full": ramp.full,
                    "carried_share": ramp.shares[0],
                    "tipped_share": ramp.shares[1],
                }
                for ramp in self.others
            ],
        }


NO_COLUMNS = dict.fromkeys(("full_saps", "tipped_from_saps", "tipped_to_saps", "safe_saps"), math.nan)


def tipping_of(labs: Experience, system: str | None, full_saps: float | None, within_saps: float) -> Tipping | None:
    """Return where a system may tip; None where its ramp does not tell what fills its CPU, or no other is known.

    A system that is one of the known ones has its own name among them.
    """
    others = tuple(ramp for name, ramp in labs.ramps.items() if name != system)
    if full_saps is None or not others:
        return None
    return Tipping(full_saps, others, labs.headroom_percent, within_saps)


@dataclass(frozen=True, slots=True)
class Step:
    """A load step and how many ramps passed it."""

    number: int
    """From 1."""
    saps: float
    """Load asked for."""
    passed: int
    stopped: int
    """Ramps that passed it, and ramps whose first failure it was; the others had failed before."""


@dataclass(frozen=True, slots=True)
class AtLimit:
    """The capacity under one limit, by the figures of the steps as a lab's record has them."""

    limit_percent: float
    """Of any scenario, or of all together."""
    estimate: Estimate
    """Of the middle ramp; its upper end is open where it would be that of a ramp that never failed."""
    unfailed: int
    """Ramps in which no step was beyond the limit."""
    measured: float | None = None
    """Measured capacity of the real system."""


@dataclass(frozen=True)
class RampCapacity:
    """The ramp's capacity over replications."""

    model: Model
    runs: tuple[tuple[int, RampEnd], ...]
    """Replication and where its ramp ended, in the order of the replications."""
    limit_percent: float
    """The IHS limit applied."""
    missing: tuple[Missing, ...] = ()
    """Traffic and faults that were asked for and did not occur."""
    seen: tuple[tuple[of_labs.LoadStep, ...], ...] = ()
    """The steps of each run."""
    known: Experience = field(default_factory=experience_of)
    """Of systems whose ramps were measured."""

    @property
    def docs(self) -> list[float]:
        return [float(end.doc_saps) for _, end in self.runs]

    @property
    def estimate(self) -> Estimate:
        """DOC of the middle ramp; its upper end is open where it would be the DOC of a ramp that never failed."""
        return _middle(self.docs, [not end.stop_step for _, end in self.runs])

    @property
    def by_limit(self) -> list[AtLimit]:
        """The capacity under each of the usual limits that the model's stop rule lets judge."""
        most = ramp_of(self.model.spec).limit_percent
        at_limits = []
        for limit in (limit for limit in of_labs.LIMITS_PERCENT if limit <= most and self.seen):
            bounds = [of_labs.is_bound(steps, limit) for steps in self.seen]
            capacities = [float(of_labs.capacity_at(steps, limit)) for steps in self.seen]
            at_limits.append(AtLimit(limit, _middle(capacities, bounds), sum(bounds), self._measured_at(limit)))
        return at_limits

    @property
    def measured(self) -> float | None:
        """Capacity of the real system under the limit: its own, under another one by the steps of its record."""
        if self.limit_percent == ramp_of(self.model.spec).limit_percent:
            return self.model.spec.measured.capacity
        return self._measured_at(self.limit_percent)

    def _measured_at(self, limit_percent: float) -> float | None:
        record = of_labs.measured_ramp(self.model.spec.measured.system, self.known.ramps)
        return float(of_labs.capacity_at(record.steps, limit_percent)) if record else None

    @property
    def full_saps(self) -> float | None:
        """Load that would fill the CPU, by the mean of the undisturbed steps; None where too few are."""
        return of_labs.full_load(of_labs.mean_steps(self.seen))

    @property
    def unfailed(self) -> int:
        """Runs whose ramp ended before any step failed: their DOC is a lower bound."""
        return sum(end.stop_step == 0 for _, end in self.runs)

    @property
    def steps(self) -> list[Step]:
        """Every load step that a ramp came to."""
        stops, loads = [end.stop_step for _, end in self.runs], ramp_of(self.model.spec).step_loads()
        # One that never failed has played all of them.
        most, steps = max(stop or len(loads) for stop in stops), list[Step]()
        for number, saps in enumerate(loads[:most], 1):
            passed = sum(not stop or number < stop for stop in stops)
            steps.append(Step(number, saps, passed, stops.count(number)))
        return steps

    @property
    def loads(self) -> list[float]:
        return [step.saps for step in self.steps]

    @property
    def ends_outside(self) -> bool:
        """Whether a step by which the capacity is shown is outside of what the model was fitted to."""
        return bool(validity.outside(self.model.spec, (step.saps for step in (self.passes, self.fails) if step)))

    @property
    def passes(self) -> Step | None:
        """The highest step that at least half of the ramps pass."""
        return next((step for step in reversed(self.steps) if 2 * step.passed >= len(self.runs)), None)

    @property
    def fails(self) -> Step | None:
        """The lowest step that more than half of the ramps do not pass."""
        return next((step for step in self.steps if 2 * step.passed < len(self.runs)), None)

    @property
    def tipping(self) -> Tipping | None:
        """Loads at which systems of this kind have tipped; None where the load that fills the CPU is unknown."""
        return tipping_of(self.known, self.model.spec.measured.system, self.full_saps, self.estimate.mean)

    def columns(self) -> dict[str, Any]:
        passes, fails, tipping, measured = self.passes, self.fails, self.tipping, self.measured
        return {
            "passes_saps": passes.saps if passes else math.nan,
            "ramps_passing": passes.passed if passes else 0,
            "fails_saps": fails.saps if fails else math.nan,
            "ramps_failing": len(self.runs) - fails.passed if fails else 0,
            "ramps_unfailed": self.unfailed,
            "measured_saps": math.nan if measured is None else measured,
            **(tipping.columns() if tipping else NO_COLUMNS),
        }

    def limits_table(self) -> DataFrame:
        """Return one row a limit: the capacity under it, and what was measured."""
        table = []
        for each in self.by_limit:
            measured = {"measured": math.nan if each.measured is None else each.measured}
            of_ramps = {**estimate_columns(each.estimate), "ramps_unfailed": each.unfailed}
            table.append({"limit_percent": each.limit_percent, **of_ramps, **measured})
        return frame(table)

    def stop_steps(self) -> DataFrame:
        """Return how often which step was the first over the limit, with binomial intervals."""
        counts = Counter((end.stop_step, end.stop_saps) for _, end in self.runs)
        table = []
        for (step, saps), count in sorted(counts.items()):
            share = estimate_columns(binomial_interval(count, len(self.runs), CONFIDENCE))
            table.append({"stop_step": step, "requested_saps": saps, "runs": count, **share})
        return frame(table)

    def to_pandas(self) -> DataFrame:
        """Return one row a replication."""
        table = []
        for replication, end in self.runs:
            of_steps = {"doc_saps": end.doc_saps, "effective_saps": end.effective_saps, "stop_step": end.stop_step}
            about = {"model": self.model.label, "replication": replication}
            table.append({**about, **of_steps, "stop_requested_saps": end.stop_saps})
        return frame(table)


def ramp_capacity_of(
    model: Model,
    records: Sequence[tuple[int, Any]],
    ihs_limit_percent: float | None = None,
    experience: Experience | None = None,
) -> RampCapacity:
    """Return the capacity of a model with a benchmark from finished replications of its ramp.

    The limit is by default the model's stop rule, and refused above it; the known systems, whose ramps were measured,
    are by default the shipped ones, and a model that names another is refused.
    """
    ramp = ramp_of(model.spec)
    limit = ramp.limit_percent if ihs_limit_percent is None else ihs_limit_percent
    if limit > ramp.limit_percent:
        raise UsageError(
            f"the ramp stops above {ramp.limit_percent:g} % IHS, so a limit of {limit:g} % cannot be judged; "
            f"raise the stop rule with it: --set '{ramp_key(model.spec, ramp.limit_key)}=... %'"
        )
    runs = tuple((number, ramp_end(record.steps(), limit)) for number, record in records)
    experience = experience or experience_of()
    of_labs.measured_ramp(model.spec.measured.system, experience.ramps)
    server, _, _ = model.spec.target_of(model.spec.workloads[model.spec.phased or ""])
    cpus = running_vcpus(model.spec, server)
    steps = tuple(tuple(_load_step(step, cpus) for step in record.steps()) for _, record in records)
    missing = tuple(missing_in(model.spec, records))
    return RampCapacity(model, runs, limit, missing, steps, experience)


def _load_step(step: StepOutcome, cpus: int) -> of_labs.LoadStep:
    cpu = step.samples("cpu")
    return of_labs.LoadStep(step.carried, step.worst_percent, fmean(cpu) / cpus if cpu else 0.0)


def _middle(capacities: Sequence[float], is_bound: Sequence[bool]) -> Estimate:
    """Return the capacity of the middle ramp; its upper end is open where it would be that of a ramp without end."""
    e = median_interval(capacities, CONFIDENCE)
    bounds = [each for each, bound in zip(capacities, is_bound, strict=True) if bound]
    if not bounds or e.high < min(bounds):
        return e
    return dataclasses.replace(e, high=math.inf, half_width=math.inf)


_BINOMIAL = "[..]: binomial interval, at least 95 % (Clopper and Pearson); '<', '>': bound, none or all."


def ramp_blocks(ramp: RampCapacity) -> list[Block]:
    """Return the capacity by the lab's procedure, and how the ramps went step by step."""
    n, spec, measured = len(ramp.runs), ramp.model.spec, ramp.measured
    limit = f"(limit {ramp.limit_percent:g} % IHS of any scenario)"
    blocks: list[Block] = [Answer(_answer(ramp), "Capacity by the lab's ramp", limit)]
    if measured is not None:
        blocks.append(Note(f"Measured on the real system: {measured:g} SAPS"))
    if ramp.passes and ramp.fails:
        blocks.append(Note("Between the two steps nothing was tried; --method search looks there."))
    doc, of_single = doc_of(ramp), f"{min(ramp.docs):g} to {max(ramp.docs):g}{' or more' if ramp.unfailed else ''}"
    blocks.append(Note(f"DOC of the middle ramp: {in_words(doc, 'SAPS')}; of single ramps {of_single}"))
    shares = [binomial_interval(step.passed, n).times(100.0) for step in ramp.steps]
    body: list[list[Cell]] = [
        [str(step.number), marked(spec, step.saps), str(step.passed), share, str(step.stopped)]
        for step, share in zip(ramp.steps, shares, strict=True)
    ]
    columns = ("step", "asked SAPS", "passed", "share %", "failed first here")
    at = () if measured is None else ((measured, f"measured {measured:g}"),)
    of_system = [] if measured is None else [Card("measured on the real system", measured, "SAPS")]
    points = [Point.of(step.saps, share) for step, share in zip(ramp.steps, shares, strict=True)]
    blocks += [
        Cards([Card("DOC of the middle ramp", doc, "SAPS"), *of_system, Card("ramps", str(n))]),
        Chart(
            "Ramps that pass a step",
            "attempts a second",
            "ramps (%)",
            [Series("simulated", points)],
            [(50.0, "half of the ramps")],
            within(spec),
            at=at,
        ),
        Table(columns, body, "Ramps by step", f"n={n} ramps; {_BINOMIAL}"),
        *_limits(ramp),
        *_tipping(ramp),
    ]
    if validity.outside(spec, ramp.loads):
        blocks += outside_notes(ramp.model)
    return [*blocks, *unfailed_notes(ramp)]


def doc_of(ramp: RampCapacity) -> Cell:
    """Return the DOC, marked if the step that it is of is outside of the calibration."""
    return marked(ramp.model.spec, ramp.passes.saps, ramp.estimate) if ramp.passes else ramp.estimate


def _limits(ramp: RampCapacity) -> list[Block]:
    """Return the capacity under each limit beside what was measured."""
    by_limit = ramp.by_limit
    if not by_limit:
        return []
    is_measured = any(each.measured is not None for each in by_limit)
    body: list[list[Cell]] = []
    for each in by_limit:
        cells: list[Cell] = [f"{each.limit_percent:g}", each.estimate]
        if is_measured:
            cells.append("" if each.measured is None else f"{each.measured:g}")
        body.append([*cells, str(each.unfailed)])
    columns = ("limit, % IHS", "SAPS, middle ramp", *(("measured",) if is_measured else ()), "ramps never beyond it")
    rests_on = (
        "By the figures of the steps, as a record has them: what was begun in a step and went wrong under the load of "
        "the next one is in them, and not in the verdict of the ramp above, so they may say less. A ramp never beyond "
        "a limit is a lower bound."
    )
    return [Table(columns, body, "Capacity by limit", rests_on)]


def _tipping(ramp: RampCapacity) -> list[Block]:
    """Return the load at which systems of this kind have been seen to tip, and the one that leaves enough free."""
    tipping = ramp.tipping
    if tipping is None:
        return [Note("Seen to tip: the ramp has too few undisturbed steps to say what load fills the CPU.")]
    low, high = tipping.shares
    systems = "; ".join(f"{each.system} {_percent(*each.shares)}" for each in tipping.others)
    text = (
        f"{_range(*tipping.seen_saps)} SAPS, {_percent(low, high)} of the {tipping.full_saps:.0f} that fill the CPU, "
        f"where other SIP servers tipped ({systems}); the capacity above is an upper bound"
    )
    free = 100.0 * (1.0 - tipping.safe_saps / tipping.full_saps)
    safe = (
        f"{tipping.safe_saps:.0f} SAPS, which leaves {free:.0f} % free: {tipping.tipped_below or 'none'} of "
        f"{len(tipping.others)} systems may have tipped below; --headroom sets another share"
    )
    cards = [Card("seen to tip", _range(*tipping.seen_saps), "SAPS"), Card("safe", f"{tipping.safe_saps:.0f}", "SAPS")]
    return [Note(f"Seen to tip: {text}"), Note(f"Safe: {safe}"), Cards(cards)]


def _range(low: float, high: float) -> str:
    return f"{low:.0f} to {high:.0f}"


def _percent(low: float, high: float) -> str:
    return f"{_range(100.0 * low, 100.0 * high)} %"


def unfailed_notes(ramp: RampCapacity) -> list[Note]:
    """Say that the capacity is a lower bound in some ramps, and what of their load was not offered."""
    bound = (
        f"{ramp.model.label}: {ramp.unfailed} of {len(ramp.runs)} ramps met no limit within the model's steps: "
        f"their DOC is a lower bound; raise {ramp_key(ramp.model.spec, ramp_of(ramp.model.spec).most_steps_key)}"
    )
    return [*([Note(bound, warns=True)] if ramp.unfailed else []), *missing_notes(ramp.missing)]


def _answer(ramp: RampCapacity) -> str:
    """Return between which load steps the capacity lies, and in how many ramps."""
    n, passes, fails, spec = len(ramp.runs), ramp.passes, ramp.fails, ramp.model.spec
    if fails is None:
        last, of_model = ramp.steps[-1], "ramps pass the last step of the model"
        return f"at least {validity.marked(spec, last.saps)} SAPS: {last.passed} of {n} {of_model}"
    failing = f"fails {validity.marked(spec, fails.saps)} ({n - fails.passed} of {n} ramps)"
    if passes is None:
        return f"{failing}, the first step: lower {ramp_key(spec, ramp_of(spec).first_load_key)}"
    return f"passes {validity.marked(spec, passes.saps)} SAPS ({passes.passed} of {n} ramps), {failing}"
