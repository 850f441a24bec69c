"""What the searches of a capacity have in common as blocks: the answer, the doubts, the curve, the resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import ramp_of
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Chart, Note, Point, Series, Table, in_words
from vftsim.stats import CapacityResult, Estimate, sequential_binomial_interval
from vftsim.study.blocks.head import estimate_of, within
from vftsim.study.results import rows
from vftsim.study.validity import marked as marked_text

if TYPE_CHECKING:
    import pandas as pd

    from vftsim.study.offered import Missing
    from vftsim.study.price_bands import Band
    from vftsim.study.search_levels import SearchSettings

SEQUENTIAL = (
    "[..]: at least 95 % whenever a load's runs were ended; the share itself leans towards the verdict. '<', '>': none "
    "or all."
)
INTERVAL = "± or [..]: 95 % interval."


def search_answer(
    question: str,
    result: CapacityResult,
    settings: SearchSettings,
    unit: str,
    within_limit: str,
    *,
    form: str = ".4g",
    of_load: ModelSpec | None = None,
    missing: Missing | None = None,
) -> Answer:
    """Return what a search has found; no figure for one that ended before any load had passed or failed.

    ``of_load`` is the model where the figures are attempts a second of its benchmark.
    """

    def load(value: float, form: str = "g") -> str:
        text = f"{value:{form}}"
        return text if of_load is None else marked_text(of_load, value, text)

    e = result.estimate
    bound = "no load failed" if missing is None else "above it less was offered than asked"
    text = {
        "between": f"{load(e.mean, form)} {unit}, in [{load(e.low)}, {load(e.high)}]",
        "at least": f"at least {load(e.low)} {unit}, {bound}",
        "below": f"below {load(e.high)} {unit}, no load passed",
        "unknown": f"not found: no load passed or failed, up to {result.probes[-1].level:g} {unit} were tried",
    }[result.answer]
    share = f"{100 * settings.probability:g} % of runs {within_limit}"
    return Answer(text, question, f"({100 * settings.confidence:g} %, {e.n} runs; {share})")


def of_prices(found: Estimate | None, band: Band | None, unit: str) -> list[Block]:
    """Return what the ranges of a mechanism's prices make of a capacity, and which price decides."""
    if found is None or band is None:
        return []
    text = (
        f"With prices of the protection anywhere in their ranges: {in_words(found, unit)}. {band.decides} decides "
        f"({100.0 * band.share:.0f} % of the variance). --no-prices leaves this out."
    )
    return [Note(text), Cards([Card("with prices over their ranges", found, unit)])]


def doubts(result: CapacityResult, interrupted: bool, missing: Missing | None) -> list[Block]:
    """Return what a reader of a search's answer must know beside it."""
    ended = result.budget_ended and not interrupted
    is_open = (missing is None and result.answer != "between") or (ended and not result.resolved)
    texts = (
        (interrupted, "interrupted: the search had not come to its end"),
        (missing is not None, str(missing)),
        (is_open, next_step(result)),
        (
            not (result.resolved or interrupted or ended) and result.answer == "between",
            "not resolved further: runs at the loads between pass and fail by chance",
        ),
        (result.non_monotone, "warning: a higher load passed more often than a lower one"),
    )
    return [Note(text, warns=True) for holds, text in texts if holds]


def next_step(result: CapacityResult) -> str:
    """Return what is missing for a capacity, and what to do about it."""
    spent = f"the budget of {result.estimate.n} runs ended the search; " if result.budget_ended else ""
    if result.answer == "at least":
        return f"{spent}--budget raises it" if spent else "no load that was tried ever failed: is the limit reached?"
    if result.answer == "between":
        return f"{spent}--budget narrows the interval"
    return (
        f"{spent}a load passes after {result.runs_to_pass} runs without a failure at least: --budget "
        f"{10 * result.runs_to_pass} or more, or a lower --probability"
    )


def beside_the_ramp(spec: ModelSpec, load: float, settings: SearchSettings, stop_s: tuple[float, float] | None) -> str:
    """Return why the lab's ramp may give another figure than a search, in either direction.

    Parameters
    ----------
    load : float
        What the search found.
    stop_s : (float, float), optional
        For how long after a stop, and how long after it, attempts are judged.
    """
    loads = ramp_of(spec).step_loads()
    below, above = max((x for x in loads if x <= load), default=None), min((x for x in loads if x > load), default=None)
    tried = f"{below:g} and {above:g}" if below and above else "loads"
    judged = "its whole step is"
    if stop_s is not None:
        judged = f"attempts of {stop_s[0]:g} s, {stop_s[1]:g} s after the stop, are"
    return (
        f"not the ramp's capacity, and it may lie above: the ramp tries nothing between {tried}, climbs there, and "
        f"half of the ramps must pass; here a run has one constant load, {100 * settings.probability:g} % of "
        f"runs must pass, and {judged} judged"
    )


def share_of(result: CapacityResult, confidence: float) -> list[Estimate]:
    """Return the percentage of the runs beyond the limit at each load that was tried."""
    found = (sequential_binomial_interval(probe.beyond, probe.runs, confidence) for probe in result.probes)
    return [e.times(100.0) for e in found]


def curve_chart(title: str, x: str, result: CapacityResult, settings: SearchSettings, spec: ModelSpec | None) -> Chart:
    """Return the share of runs beyond the limit over the load."""
    points = [
        Point.of(probe.level, share)
        for probe, share in zip(result.probes, share_of(result, settings.confidence), strict=True)
    ]
    most = 100.0 * (1.0 - settings.probability)
    return Chart(
        title,
        x,
        "share of runs (%)",
        [Series("simulated", points)],
        [(most, f"limit {most:.4g} %")],
        None if spec is None else within(spec),
    )


def resources_blocks(found: pd.DataFrame, title: str) -> list[Block]:
    """Return the use of every resource, the limiting one first."""
    of_resources: list[tuple[str, Estimate, str]] = [
        (str(row["resource"]), estimate_of(row), str(row["unit"])) for row in rows(found)
    ]
    body: list[Sequence[Cell]] = [[name, use, unit] for name, use, unit in of_resources]
    n = of_resources[0][1].n
    busy = [(name, use) for name, use, unit in of_resources if unit == "%"]
    points = [Point.of(float(place), use) for place, (_, use) in enumerate(busy)]
    names = [name for name, _ in busy]
    charts: list[Block] = [Chart(title, "", "busy (%)", [Series("use", points, "dots")], names=names)] if busy else []
    only = "Only one vCPU or pCPU that stands out is shown by itself."
    return [*charts, Table(("resource", "use", "unit"), body, title, f"n={n} runs; {INTERVAL} {only}")]
