"""The result of running one model: records, tables, figures across replications, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.report.blocks import Bars, Block, Chart
from vftsim.study.blocks.run import run_blocks
from vftsim.study.blocks.run_charts import run_charts
from vftsim.study.figures.summary import Summary
from vftsim.study.figures.tables import summary_table, tables
from vftsim.study.files import write_file, write_json
from vftsim.study.model import Model, in_yaml
from vftsim.study.offered import Missing, missing_in, rows_of
from vftsim.study.opened import model_of, read_manifest, records_of
from vftsim.study.printed import Printed
from vftsim.study.store import MANIFEST
from vftsim.study.validity import outside_phases

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vftsim.stats import ReplicationResult

CONFIDENCE = 0.95
CHARTS = "charts.png"
_FEW = 4
FORMAT = 4
"""Version of the form of results: phases of outcomes, each with the limit that it is judged by."""


class RunResult(Printed):
    """Replications of one model.

    Parameters
    ----------
    records : list of (int, record)
        In the order of the replications.
    manifest : mapping
        How the result came to be.
    confidence : float
        Level of the intervals.

    Attributes
    ----------
    remarks : list of str
        What happened to the directory on the way that the user must know.
    precision : ReplicationResult or None
        Whether the precision that was asked for was reached.
    """

    def __init__(
        self,
        model: Model,
        records: list[tuple[int, Record]],
        manifest: Mapping[str, Any],
        confidence: float = CONFIDENCE,
    ) -> None:
        if not records:
            raise UsageError("a result needs at least one finished replication")
        self.model = model
        self.records = records
        self.manifest = dict(manifest)
        self.confidence = confidence
        self.remarks: list[str] = []
        self.precision: ReplicationResult | None = None

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Tidy tables, one row a replication and observation."""
        return tables(self.model.name, self.records)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """All figures across replications, with intervals."""
        return summary_table(self.figures_found)

    @cached_property
    def figures_found(self) -> Summary:
        """Every declared figure of the model across replications."""
        return Summary(self.model.label, self.records, self.confidence)

    @property
    def missing(self) -> list[Missing]:
        """What was asked and did not happen."""
        return missing_in(self.model.spec, self.records)

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended before all its replications were done."""
        return bool(self.manifest["state"] == "interrupted")

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Return a table: ``summary``, or one of :attr:`tables`; by default steps, or figures without."""
        table = table or next(iter(self.tables))
        if table == "summary":
            return self.summary
        if table not in self.tables:
            raise UsageError(f"no table '{table}'; tables: summary, {', '.join(self.tables)}")
        return self.tables[table]

    def estimates(self) -> pd.DataFrame:
        """Return every figure of every phase with its interval."""
        return self.summary.drop(
            columns=["table", "metric", "scenario", "statistic", "step_index", "requested_saps"], errors="ignore"
        )

    @classmethod
    def opened(cls, folder: Path) -> RunResult:
        """Return what the directory of a result holds."""
        said = read_manifest(folder)
        return cls(model_of(said), records_of(folder, said), said)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; :meth:`from_dict` reads it back."""
        return {
            "format": FORMAT,
            "confidence": self.confidence,
            "manifest": self.manifest,
            "records": [[number, record.to_dict()] for number, record in self.records],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunResult:
        """Rebuild what :meth:`to_dict` returned."""
        said = data["manifest"]["models"][0]
        if data.get("format") != FORMAT:
            raise UsageError("the result is of another version of vftsim, which had another record; run it again")
        spec = ModelSpec.model_validate(said["resolved"])
        model = Model(said["label"], spec, tuple(said["set"]), tuple(said["notes"]))
        records = [(int(number), Record.from_dict(record)) for number, record in data["records"]]
        return cls(model, records, data["manifest"], data["confidence"])

    def for_machines(self) -> dict[str, Any]:
        """Return manifest, summary and steps as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest,
            "confidence": self.confidence,
            "outside_calibration": outside_phases(self.model.spec, self.records),
            "not_offered": rows_of(self.missing),
            "summary": rows(self.summary),
            "tables": {name: rows(table) for name, table in self.tables.items() if name != "series"},
        }

    def blocks(self, everything: bool = False) -> list[Block]:
        """Return the run as blocks: the figures that lead, or all."""
        return run_blocks(self, everything)

    def write_files(self, folder: Path) -> None:
        """Write manifest, resolved model, tables and charts."""
        for name, table in {"summary": self.summary, **self.tables}.items():
            write_file(folder / f"{name}.csv", csv_text(table).encode())
        write_file(folder / "model.yaml", model_yaml(self.model).encode())
        write_charts(folder, run_charts(self))
        write_json(folder / MANIFEST, self.manifest)


def write_charts(folder: Path, blocks: Sequence[Block]) -> None:
    """Write the charts among blocks, those of a page, on one figure into a directory; nothing where there is none."""
    charts = [block for block in blocks if isinstance(block, Chart | Bars)]
    if charts:
        from vftsim.report.charts import figure_of  # noqa: PLC0415 - matplotlib takes its time

        write_figure(figure_of(charts, 1 if len(charts) == 1 else 2 if len(charts) <= _FEW else 3), folder / CHARTS)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure; equal figures give equal files."""
    figure.savefig(path, dpi=110, metadata={"Software": None})


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as plain rows; empty cells are None."""
    plain = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in plain]


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV, every float with all its digits."""
    return str(table.to_csv(index=False, lineterminator="\n"))


def model_yaml(model: Model) -> str:
    """Return the resolved model as a file that says everything itself."""
    return in_yaml(model.resolved())
