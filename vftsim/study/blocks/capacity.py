"""Capacities of a system as blocks: by the lab's ramp, and by searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.composition.views import ramp_key, ramp_of
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Chart, Note, Point, Series, Table
from vftsim.report.blocks import in_words as words_of
from vftsim.stats import binomial_interval
from vftsim.study.blocks.head import head, marked, missing_notes, outside_notes, within
from vftsim.study.level_search import level_blocks, of_prices
from vftsim.study.validity import marked as marked_text
from vftsim.study.validity import outside, varied

if TYPE_CHECKING:
    from vftsim.study.capacity import CapacityStudy
    from vftsim.study.ramp import RampCapacity

_BINOMIAL = "[..]: binomial interval, at least 95 % (Clopper and Pearson); '<', '>': bound, none or all."


def capacity_blocks(study: CapacityStudy) -> list[Block]:
    """Return the capacities of one system."""
    models = study.manifest["models"]
    for search in study.searches.values():
        models = [varied(model, search.model.spec, search.names.key) for model in models]
    blocks: list[Block] = [*head(models, study.manifest["seed"])]
    if study.ramp is not None:
        blocks += ramp_blocks(study.ramp)
        blocks += of_prices(study.with_prices, study.band, "SAPS")
    for search in study.searches.values():
        blocks += level_blocks(search)
    return blocks


def ramp_blocks(ramp: RampCapacity) -> list[Block]:
    """Return the capacity by the lab's procedure, and how the ramps went step by step."""
    n, spec, measured = len(ramp.runs), ramp.model.spec, ramp.model.spec.measured.capacity
    limit = f"(limit {ramp.limit_percent:g} % IHS of any scenario)"
    blocks: list[Block] = [Answer(_answer(ramp), "Capacity by the lab's ramp", limit)]
    if measured is not None:
        blocks.append(Note(f"Measured on the real system: {measured:g} SAPS"))
    if ramp.passes and ramp.fails:
        blocks.append(Note("Between the two steps nothing was tried; --method search looks there."))
    doc: Cell = marked(spec, ramp.passes.saps, ramp.estimate) if ramp.passes else ramp.estimate
    blocks.append(Note(f"DOC of the middle ramp: {words_of(doc, 'SAPS')}; of single ramps {_spread(ramp)}"))
    shares = [binomial_interval(step.passed, n).times(100.0) for step in ramp.steps]
    body: list[list[Cell]] = [
        [str(step.number), marked(spec, step.saps), str(step.passed), share, str(step.stopped)]
        for step, share in zip(ramp.steps, shares, strict=True)
    ]
    columns = ("step", "asked SAPS", "passed", "share %", "failed first here")
    at = () if measured is None else ((measured, f"measured {measured:g}"),)
    points = [Point.of(step.saps, share) for step, share in zip(ramp.steps, shares, strict=True)]
    blocks += [
        Cards([Card("DOC of the middle ramp", doc, "SAPS"), *_measured_card(measured), Card("ramps", str(n))]),
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
    if outside(spec, ramp.loads):
        blocks += outside_notes(ramp.model)
    return [*blocks, *unfailed_notes(ramp)]


def _limits(ramp: RampCapacity) -> list[Block]:
    """Return the capacity under each limit beside what was measured."""
    found = ramp.by_limit
    if not found:
        return []
    is_measured = any(each.measured is not None for each in found)
    body: list[list[Cell]] = []
    for each in found:
        cells: list[Cell] = [f"{each.limit_percent:g}", each.estimate]
        if is_measured:
            cells.append("" if each.measured is None else f"{each.measured:g}")
        body.append([*cells, str(each.unfailed)])
    columns = ("limit, % IHS", "SAPS, middle ramp", *(("measured",) if is_measured else ()), "ramps never beyond it")
    rests_on = "By the figures of the steps, as a record has them. A ramp never beyond a limit is a lower bound."
    return [Table(columns, body, "Capacity by limit", rests_on)]


def _tipping(ramp: RampCapacity) -> list[Block]:
    """Return the load at which systems of this kind have been seen to tip, and the one that leaves enough free."""
    found = ramp.tipping
    if found is None:
        return [Note("Seen to tip: the ramp has too few undisturbed steps to say what load fills the CPU.")]
    low, high = found.shares
    systems = "; ".join(f"{each.system} {_percent(*each.shares)}" for each in found.others)
    seen = (
        f"{_range(*found.seen_saps)} SAPS, {_percent(low, high)} of the {found.full_saps:.0f} that fill the CPU, where "
        f"other SIP servers tipped ({systems}); the capacity above is an upper bound"
    )
    free = 100.0 * (1.0 - found.safe_saps / found.full_saps)
    safe = (
        f"{found.safe_saps:.0f} SAPS, which leaves {free:.0f} % free: {found.tipped_below or 'none'} of "
        f"{len(found.others)} systems may have tipped below; --headroom sets another share"
    )
    cards = [Card("seen to tip", _range(*found.seen_saps), "SAPS"), Card("safe", found.safe_saps, "SAPS")]
    return [Note(f"Seen to tip: {seen}"), Note(f"Safe: {safe}"), Cards(cards)]


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


def _measured_card(measured: float | None) -> list[Card]:
    return [] if measured is None else [Card("measured on the real system", measured, "SAPS")]


def _answer(ramp: RampCapacity) -> str:
    """Return between which load steps the capacity lies, and in how many ramps."""
    n, passes, fails, spec = len(ramp.runs), ramp.passes, ramp.fails, ramp.model.spec
    if fails is None:
        last = ramp.steps[-1]
        return (
            f"at least {marked_text(spec, last.saps)} SAPS: {last.passed} of {n} ramps pass the last step of the model"
        )
    failing = f"fails {marked_text(spec, fails.saps)} ({n - fails.passed} of {n} ramps)"
    if passes is None:
        return f"{failing}, the first step: lower {ramp_key(spec, ramp_of(spec).first_load_key)}"
    return f"passes {marked_text(spec, passes.saps)} SAPS ({passes.passed} of {n} ramps), {failing}"


def _spread(ramp: RampCapacity) -> str:
    spread = f"{min(ramp.docs):g} to {max(ramp.docs):g}"
    return f"{spread} or more" if ramp.unfailed else spread
