"""Charts as files.  Matplotlib takes its time: it is imported where there is something to draw."""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.report.blocks import Bars, Block, Chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHARTS = "charts.png"
_FEW = 4


def write_charts(folder: Path, blocks: Sequence[Block]) -> None:
    """Write the charts among blocks, those of a page, on one figure into a directory; nothing where there is none."""
    charts = [block for block in blocks if isinstance(block, Chart | Bars)]
    if charts:
        write_figure(drawn(charts), folder / CHARTS)


def drawn(charts: Sequence[Chart | Bars]) -> Figure:
    """Return charts on one figure, in as many columns as they fill."""
    from vftsim.report.charts import figure_of

    return figure_of(charts, 1 if len(charts) == 1 else 2 if len(charts) <= _FEW else 3)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure; equal figures give equal files."""
    from vftsim.report.charts import saying_boxes

    with saying_boxes():
        figure.savefig(path, dpi=110, metadata={"Software": None})
