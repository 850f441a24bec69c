"""Results that describe themselves as blocks: for the terminal, a page, a notebook and a plot."""

# ruff: noqa: PLC0415 - what renders a result is imported by who asks for it

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.report.blocks import Bars, Block, Cell, Chart, Marked, Note
from vftsim.stats import Estimate, binomial_interval
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.origin import beside, origin_blocks
from vftsim.study.figures.offered import Missing
from vftsim.study.figures.validity import MARK, below_table, is_outside, not_covered_line
from vftsim.study.runs.model import Model

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from xarray import Dataset


_PART = "a part of what was asked for: it ended before all was done, and the figures rest on what had finished"


class Printed:
    """Base of results: what they say of themselves, for whoever renders it."""

    def __init_subclass__(cls, **named: Any) -> None:
        """Let a Python session show what the command prints: a dataclass would show all that it holds."""
        super().__init_subclass__(**named)
        cls.__repr__ = cls.__str__  # type: ignore[method-assign,assignment]

    table = "answer.csv"
    """File of the main table."""

    @property
    def origin(self) -> Mapping[str, Any]:
        """Manifest of the result."""
        manifest: Mapping[str, Any] = getattr(self, "manifest")  # noqa: B009 - each has it in a form of its own
        return manifest

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the study before all was done."""
        return bool(self.origin["state"] == "interrupted")

    def page_blocks(self) -> list[Block]:
        """Return the blocks as a page or a notebook has them, where nobody else says that the study ended early."""
        is_part = self.origin.get("state") == "interrupted"
        return [*([Note(_PART, warns=True)] if is_part else []), *self.blocks()]

    @property
    def title(self) -> str:
        """Title: the study and its method."""
        labels = dict.fromkeys(model["label"] for model in self.origin["models"])
        return f"{' and '.join(labels)}: {self.origin['command']}"

    def blocks(self) -> list[Block]:
        """Return everything for people as blocks."""
        raise TypeError(f"{type(self).__name__} must say what it consists of")

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        raise TypeError(f"{type(self).__name__} must say what it is as plain data")

    def print_tables(self) -> None:
        """Print everything for people."""
        from vftsim.report.screen import print_blocks

        print_blocks(self.blocks())

    def report(self, path: str | Path | None = None) -> str:
        """Return the result as a page that needs nothing else; with ``path``, write it there; see :func:`page_of`."""
        from vftsim.study.store.files import write_file

        text = page_of([self], [self.title])
        if path is not None:
            write_file(Path(path), text.encode())
        return text

    def plot(self, ax: Axes | None = None, chart: int | str = 0) -> Axes:
        """Draw a chart, by its number or its title on a page, on axes or a figure; refuse one that there is not."""
        from vftsim.report.charts import draw, figure_of

        charts = [block for block in self.blocks() if isinstance(block, Chart | Bars)]
        titles = [each.title for each in charts]
        numbers = {title.casefold(): number for number, title in reversed([*enumerate(titles)])}
        number = numbers.get(chart.casefold()) if isinstance(chart, str) else chart
        if number is None or not 0 <= number < len(charts):
            raise UsageError(f"no chart '{chart}'; charts: {'; '.join(titles) or 'none'}")
        if ax is None:
            return figure_of([charts[number]]).axes[0]
        draw(charts[number], ax)
        return ax

    def estimates(self) -> pd.DataFrame:
        """Return the main table with the figures and their intervals."""
        table: pd.DataFrame = getattr(self, "to_pandas")()  # noqa: B009 - each has it in a form of its own
        return table

    def to_xarray(self) -> Dataset:
        """Return the figures with their intervals as a dataset over all that names them: settings, figure, phase.

        Refuses a result that has no such figures, and any where the extra ``xarray`` is not installed.
        """
        from vftsim.study.figures.frames import as_dataset
        from vftsim.study.runs.extras import extra

        extra("xarray", "xarray", "to_xarray()")
        return as_dataset(self.estimates())

    def _repr_html_(self) -> str | None:
        from vftsim.report.html import fragment

        try:
            return fragment(self.title, self.page_blocks())
        except UsageError:  # without the extra a notebook shows the text
            return None

    def __str__(self) -> str:
        with redirect_stdout(StringIO()) as text:
            self.print_tables()
        return text.getvalue()


def page_of(results: Sequence[Printed], labels: Sequence[str]) -> str:
    """Return a page about one result, or several beside each other; refused without the extra that writes pages."""
    from vftsim.report.html import page

    return page(*whole(results, labels))


def whole(results: Sequence[Printed], labels: Sequence[str]) -> tuple[str, list[Block]]:
    """Return title and blocks of such a page; refuse one of nothing."""
    if not results:
        raise UsageError("a page is of one result or several: name a directory")
    if len(results) == 1:
        origin = results[0].origin
        return results[0].title, [*results[0].page_blocks(), *(origin_blocks(origin) if origin else [])]
    commands = dict.fromkeys(str(each.origin["command"]) for each in results)
    title = f"{' beside '.join(labels)}: {' and '.join(commands)}"
    return title, beside([each.page_blocks() for each in results], [each.origin for each in results], labels)


# The head of every result: the simulated model, and the basis of its figures


_INTERVALS = (
    "± or [..]: {} % interval over replications, corrected for skewness, from ten replications on; (x to y): lowest "
    "and highest replication, no interval; neither: one replication or no spread. What happens in few runs may be "
    "missing from all: coverage is measured in docs/interval-coverage.md."
)


def intervals(confidence: float) -> str:
    """Return what intervals in a table mean."""
    return _INTERVALS.format(f"{100.0 * confidence:g}")


INTERVALS = intervals(0.95)


def unseen(n: int) -> str:
    """Return how often at most something happens that no replication has shown; nothing for few."""
    if n < FEWEST_RUNS:
        return ""
    return f" What none of these {n} has shown may befall up to {100 * binomial_interval(0, n).high:.2g} % of runs."


def head(models: Sequence[Mapping[str, Any]], seed: int) -> list[Note]:
    """Return what was simulated and changed, what was set in vain, and what the model's values and costs rest on."""
    notes = []
    for model in models:
        changes = [*(f"--set {text}" for text in model["set"]), *model["notes"]]
        changed = "".join(f"; {change}" for change in changes)
        kinds = f" ({', '.join(model['workloads'])})" if model["workloads"] else ""
        notes.append(Note(f"{model['label']}{kinds}, seed {seed}{changed}"))
        for setting in model["without_effect"]:
            key, _, why = setting.partition(": ")
            notes.append(Note(f"{key} has no effect: {why}", warns=True))
        notes += [Note(remark) for remark in model.get("remarks", ())]
        if line := not_covered_line(model.get("not_covered", ())):
            notes.append(Note(line, warns=True))
        notes += [Note(f"Costs of {costs}") for costs in model.get("costs", ())]
    return [*notes, *not_fitted_notes(models)]


def not_fitted_notes(models: Sequence[Mapping[str, Any]]) -> list[Note]:
    """Return which models do not say what they were fitted to; nothing for none."""
    names = dict.fromkeys(model["name"] for model in models if not model["resolved"].get("calibrated"))
    text = f"no domain of validity is known: what was fitted is not said of {', '.join(names)}"
    return [Note(text, warns=True)] if names else []


def outside_notes(*models: Model) -> list[Note]:
    """Return what the asterisks in a table mean, for the models that have one there; nothing for none."""
    line = below_table([(model.label, model.spec) for model in models])
    return [Note(line, warns=True)] if line else []


def missing_notes(missing: Iterable[Missing]) -> list[Note]:
    """Return what was asked and did not happen: figures are of what did."""
    return [Note(str(each), warns=True) for each in missing]


def marked(spec: ModelSpec | None, load: float, cell: Estimate | float | str | None = None) -> Cell:
    """Return a load, or another figure at it, with an asterisk if the load is outside of the calibration."""
    shown = load if cell is None else cell
    return Marked(shown, MARK) if spec is not None and is_outside(spec, load) else shown


def within(spec: ModelSpec) -> tuple[float, float] | None:
    """Return the loads that a model was fitted to, as a chart shades what lies beyond; None if it does not say."""
    if spec.calibrated is None:
        return None
    low, high = spec.calibrated.loads
    return low, high


def estimate_of(row: Mapping[str, Any]) -> Estimate:
    """Return the estimate that columns of a table hold (:func:`~vftsim.study.figures.frames.estimate_columns`)."""
    value, low, high = (math.nan if row[name] is None else float(row[name]) for name in ("estimate", "low", "high"))
    kind: Any = "range" if row["interval"] == "none" else row["interval"]
    confidence = row["confidence"] if row["confidence"] is not None else math.nan
    return Estimate(value, (high - low) / 2.0, low, high, int(row["n"]), confidence, kind)


def share_in_words(e: Estimate) -> str:
    """Return a share of runs in percent, by the interval that is known of it."""
    if e.kind == "upper bound":
        return f"< {100 * e.high:.2g} %"
    if e.kind == "lower bound":
        return f"> {100 * e.low:.2g} %"
    return " to ".join(f"{100 * x:.2g}" if x < 0.99 else f"{100 * x:.1f}" for x in (e.low, e.high)) + " %"
