"""Results that describe themselves as blocks: for the terminal, a page, a notebook and a plot."""

# ruff: noqa: PLC0415 - what renders a result is imported by who asks for it

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.errors import UsageError
from vftsim.report.blocks import Bars, Block, Chart, Note
from vftsim.spec.suggest import together
from vftsim.study.blocks.origin import beside, origin_blocks

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
        labels = list(dict.fromkeys(model["label"] for model in self.origin["models"]))
        return f"{together(labels)}: {self.origin['command']}"

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
        from vftsim.files import write_file

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
        """Return the figures with their intervals as a dataset over all that names them: settings, figure.

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
    title = f"{' beside '.join(labels)}: {together(list(commands))}"
    return title, beside([each.page_blocks() for each in results], [each.origin for each in results], labels)
