"""``dataset.yaml``: what the tables of a measured laboratory hold.

A dataset is a folder with tables and this file.  It says for every table which cells name the environment, the
phase and the repeat of a row, and for every column what it measures, in which unit and as which statistic.
Nothing is known by the name of a file, column or environment.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from vftsim.labs.units import Unit
from vftsim.spec import Items, Spec

STATISTICS = r"^(mean|sd|min|max|n|total|p[0-9]{1,2}(\.[0-9]{1,2})?)$"
Name = Annotated[str, Field(min_length=1, max_length=200)]
METRIC = r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$"
Metric = Annotated[str, Field(pattern=METRIC, max_length=100)]


class EnvironmentText(Spec):
    """One environment: a system, or a setting of it, that was measured."""

    description: str = Field("", max_length=4000, description="What it is.")


class PhasesText(Spec):
    """What a phase is: the time over which one row of a table was measured."""

    meaning: str = Field(
        min_length=3, max_length=4000, description="What a phase is: a step of a ramp, a run; how long; what is cut."
    )
    names: Items[Name] = Field((), description="All phases there may be, in order; without it any name is taken.")
    repeats: str = Field("", max_length=4000, description="What a repeat of a phase is.")


class KeyColumns(Spec):
    """Which columns say what a row was measured in."""

    environment: Name | None = Field(None, description="Column with the environment.")
    phase: Name | None = Field(None, description="Column with the phase.")
    repeat: Name | None = Field(None, description="Column with the repeat of the phase.")


class KeyValues(Spec):
    """What all rows of a table were measured in, where no column says it."""

    environment: Name | None = Field(None, description="The environment of every row.")
    phase: Name | None = Field(None, description="The phase of every row.")


class ColumnSpec(Spec):
    """What the numbers of one column are."""

    metric: Metric | None = Field(None, description="What is measured; left out where the row says it.")
    unit: Unit = Field(description="Unit of the column.")
    statistic: str = Field(
        "mean",
        pattern=STATISTICS,
        description="Over the phase: mean, sd, min, max, n (how many values), total, or a percentile (p50, p99.9).",
    )
    optional: bool = Field(False, description="Whether a cell may be empty (not measured).")
    description: str = Field("", max_length=4000, description="Further words.")


class RowRule(Spec):
    """Rows with certain cells, and what they measure."""

    where: Annotated[dict[Name, str], Field(min_length=1)] = Field(description="Column: its cell.")
    metric: Metric = Field(description="What these rows measure.")


def _one_of_keys(key: str) -> dict[str, Any]:
    """Return what a schema says of a table: a column or a constant names it, not both."""
    column = {"required": ["keys"], "properties": {"keys": {"required": [key]}}}
    constant = {"required": ["constant"], "properties": {"constant": {"required": [key]}}}
    return {"oneOf": [column, constant]}


def _metric_of(**has: Any) -> dict[str, Any]:
    """Return one way to say what a table measures: by rows, by a column of names, or (neither) by its columns."""
    metric = {"properties": {"metric": {"type": "null"}}} if has else {"required": ["metric"]}
    others = {"rows": {"maxItems": 0}, "metric_column": {"type": "null"}}
    rest = {name: rule for name, rule in others.items() if name not in has}
    return {"required": list(has), "properties": {**has, **rest, "columns": {"additionalProperties": metric}}}


_TABLE_RULES: dict[str, Any] = {
    "allOf": [
        _one_of_keys("environment"),
        _one_of_keys("phase"),
        {"anyOf": [_metric_of(), _metric_of(rows={"minItems": 1}), _metric_of(metric_column={"type": "string"})]},
    ],
    "dependentRequired": {"rename": ["metric_column"]},
}
"""What the validators below ask for, as an editor can check it while one types."""


class TableSpec(Spec):
    """One table: a text file with a header line."""

    model_config = ConfigDict(json_schema_extra=_TABLE_RULES)

    file: Name = Field(description="File, relative to this one.")
    format: Literal["csv", "semicolon", "tab"] = Field("csv", description="What separates the cells; csv is a comma.")
    keys: KeyColumns = Field(default_factory=KeyColumns, description="Columns that say what a row was measured in.")
    constant: KeyValues = Field(default_factory=KeyValues, description="The same for all rows.")
    where: dict[Name, str] = Field(default_factory=dict, description="Only rows with these cells (column: cell).")
    metric_column: Name | None = Field(None, description="Column whose cells name what a row measures.")
    rename: dict[Name, Metric] = Field(
        default_factory=dict, description="With metric_column: cell -> the name of the metric, where it differs."
    )
    rows: Items[RowRule] = Field((), description="What rows measure, by their cells; other rows are left out.")
    columns: Annotated[dict[Name, ColumnSpec], Field(min_length=1)] = Field(
        description="Measured columns; others are not read."
    )

    @model_validator(mode="after")
    def _keyed(self) -> Self:
        for key in ("environment", "phase"):
            sources = [getattr(self.keys, key), getattr(self.constant, key)]
            if sources.count(None) != 1:
                how = "says twice" if None not in sources else "does not say"
                raise ValueError(
                    f"{how} in which {key} a row was measured; give it either under keys (a column) "
                    "or under constant (one for all rows)"
                )
        return self

    @model_validator(mode="after")
    def _measuring(self) -> Self:
        by_row = bool(self.rows) + (self.metric_column is not None)
        if by_row > 1:
            raise ValueError("has both rows and metric_column; one of them says what a row measures")
        if self.rename and self.metric_column is None:
            raise ValueError("has rename without metric_column")
        for name, column in self.columns.items():
            if by_row and column.metric is not None:
                raise ValueError(f"column '{name}' has a metric although the row says what it measures; remove one")
            if not by_row and column.metric is None:
                raise ValueError(f"column '{name}' needs a metric (or the table a metric_column, or rows)")
        return self


class DatasetSpec(Spec):
    """A measured laboratory."""

    name: str = Field(min_length=1, max_length=100, description="Name.")
    description: str = Field("", max_length=4000, description="What was measured, and how.")
    source: str = Field("", max_length=4000, description="Where the numbers come from.")
    environments: Annotated[dict[Name, EnvironmentText], Field(min_length=1)] = Field(
        description="Environments by the names that the tables use."
    )
    phases: PhasesText = Field(description="What a phase is.")
    tables: Annotated[dict[Name, TableSpec], Field(min_length=1)] = Field(description="Tables by a name.")

    @model_validator(mode="after")
    def _of_described_environments(self) -> Self:
        if slashed := next((name for name in self.environments if "/" in name), None):
            raise ValueError(f"environment '{slashed}': its runs are called environment/phase, so its name has no '/'")
        for name, table in self.tables.items():
            constant = table.constant
            if constant.environment is not None and constant.environment not in self.environments:
                raise ValueError(f"table '{name}' is of an environment '{constant.environment}' that is not described")
            if constant.phase is not None and self.phases.names and constant.phase not in self.phases.names:
                raise ValueError(f"table '{name}' is of a phase '{constant.phase}' that is not among phases.names")
        return self


def quantity(metric: str, statistic: str) -> str:
    """Return the name of an observation: ``cpu``, ``cpu_sd``, ``SES1/p50``, ``load/max``."""
    if statistic == "mean":
        return metric
    return f"{metric}_sd" if statistic == "sd" else f"{metric}/{statistic}"
