"""From ``dataset.yaml`` and its tables to observations.

An observation is one quantity of one phase of one environment, in the unit of its dimension
(:mod:`vftsim.labs.units`); over repeats of a phase it is their mean.
"""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NoReturn

from vftsim.errors import ModelFileError
from vftsim.labs.definition import DatasetSpec, RowRule, TableSpec, quantity
from vftsim.labs.table import SEPARATORS, Row, read_rows
from vftsim.labs.units import observed, observed_unit
from vftsim.spec import read_document
from vftsim.spec.suggest import instead, shown

FILE = "dataset.yaml"
Observations = dict[tuple[str, str], float]
"""(phase, quantity) -> value."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number with all that it is keyed by, and its place."""

    environment: str
    phase: str
    repeat: str
    quantity: str
    value: float
    unit: str
    file: str
    line: int
    column: str


@dataclass(frozen=True)
class Dataset:
    """A measured laboratory, checked as a whole."""

    spec: DatasetSpec
    path: Path
    """The file that describes it."""
    measurements: list[Measurement]

    def of(self, environment: str) -> list[Measurement]:
        """Return the measurements of one environment; refuse one that is not there, or of which there are none."""
        if environment not in self.spec.environments:
            others = instead(environment, self.spec.environments, "environments:")
            message = f"there is no environment {shown(environment)}{others}"
            raise ModelFileError(message, str(self.path), 0, "environments")
        rows = [each for each in self.measurements if each.environment == environment]
        if not rows:
            raise ModelFileError(f"no table has rows for the environment '{environment}'", str(self.path))
        return rows

    def observations(self, environment: str) -> Observations:
        """Return the observations of one environment; the mean where a phase was repeated."""
        # From left to right in every Python (sum() is compensated from 3.12 on): fits know their data by a hash.
        return {key: reduce(operator.add, values) / len(values) for key, values in self.repeats(environment).items()}

    def repeats(self, environment: str) -> dict[tuple[str, str], list[float]]:
        """Return every value of each observation, one for each repeat of its phase."""
        values_of: dict[tuple[str, str], list[float]] = {}
        for each in self.of(environment):
            values_of.setdefault((each.phase, each.quantity), []).append(each.value)
        return values_of

    def units(self) -> dict[str, Measurement]:
        """Return for every quantity one measurement of it: its unit and where it was read."""
        return {each.quantity: each for each in reversed(self.measurements)}


def dataset_file(path: Path) -> Path:
    """Return the file that describes a dataset, given that file or its folder."""
    return path / FILE if path.is_dir() else path


def read_dataset(path: Path) -> Dataset:
    """Read a dataset, given its file or folder; a mistake is told with file, line, and the key or column."""
    file = dataset_file(path)
    if path.is_dir() and not file.is_file():
        raise ModelFileError(f"a dataset needs a file {FILE} that describes its tables", str(file))
    document = read_document(file)
    spec = document.validate(DatasetSpec)
    measurements: list[Measurement] = []
    first: dict[tuple[str, ...], Measurement] = {}
    unit_of: dict[str, Measurement] = {}
    for name, table in spec.tables.items():
        # Beside the description that names it, which may be one that this one extends.
        folder = Path(document.tree.at("tables", name, "file").file).parent
        for each in _measurements(spec, table, folder):
            key = (each.environment, each.phase, each.repeat, each.quantity)
            if key in first:
                _refuse_second(first[key], each)
            first[key] = each
            if unit_of.setdefault(each.quantity, each).unit != each.unit:
                _refuse_other_unit(unit_of[each.quantity], each)
            measurements.append(each)
    return Dataset(spec, file, measurements)


def _measurements(spec: DatasetSpec, table: TableSpec, folder: Path) -> Iterator[Measurement]:
    path = folder / table.file
    complete = 0
    unused = list(table.rows)
    for row in read_rows(path, SEPARATORS[table.format], _needed(table)):
        if not _has(row, table.where):
            continue
        complete += 1
        rule = next((rule for rule in table.rows if _has(row, rule.where)), None)
        if table.rows and rule is None:
            continue
        if rule in unused:
            unused.remove(rule)
        yield from _of_row(spec, table, row, rule)
    if not complete:
        condition = f" with {_condition(table.where)}" if table.where else ""
        raise ModelFileError(f"has no rows{condition}", str(path))
    if unused:
        raise ModelFileError(f"has no row with {_condition(unused[0].where)}", str(path))


def _of_row(spec: DatasetSpec, table: TableSpec, row: Row, rule: RowRule | None) -> Iterator[Measurement]:
    environment = table.constant.environment or row.text(str(table.keys.environment))
    phase = table.constant.phase or row.text(str(table.keys.phase))
    repeat = row.text(table.keys.repeat) if table.keys.repeat else ""
    _check_known("environment", environment, tuple(spec.environments), row, table.keys.environment)
    if spec.phases.names:
        _check_known("phase", phase, spec.phases.names, row, table.keys.phase)
    named = rule.metric if rule else None
    if table.metric_column:
        cell = row.text(table.metric_column)
        named = table.rename.get(cell, cell)
    for name, column in table.columns.items():
        value = row.number(name, column.optional)
        if value is not None:
            yield Measurement(
                environment,
                phase,
                repeat,
                quantity(str(column.metric or named), column.statistic),
                observed(value, column.unit),
                observed_unit(column.unit),
                row.file,
                row.line,
                name,
            )


def _needed(table: TableSpec) -> list[str]:
    keys = [table.keys.environment, table.keys.phase, table.keys.repeat, table.metric_column]
    conditions = [table.where, *(rule.where for rule in table.rows)]
    return [*(key for key in keys if key), *(column for where in conditions for column in where), *table.columns]


def _has(row: Row, where: dict[str, str]) -> bool:
    return all(row.cells[column].strip() == cell for column, cell in where.items())


def _condition(where: dict[str, str]) -> str:
    return " and ".join(f"{column} {shown(cell)}" for column, cell in where.items())


def _check_known(column_kind: str, cell: str, names: tuple[str, ...], row: Row, column: str | None) -> None:
    if cell not in names:
        message = f"{shown(cell)} is no {column_kind} of {FILE}{instead(cell, names, 'it names')}"
        raise ModelFileError(message, row.file, row.line, column or "")


def _refuse_other_unit(first: Measurement, second: Measurement) -> NoReturn:
    raise ModelFileError(
        f"gives {second.quantity} in {second.unit}, {Path(first.file).name} in {first.unit}; mend a unit in {FILE}, or "
        "name another metric",
        second.file,
        second.line,
        second.column,
    )


def _refuse_second(first: Measurement, second: Measurement) -> NoReturn:
    repeat = f", repeat '{first.repeat}'" if first.repeat else ""
    raise ModelFileError(
        f"gives {first.quantity} of '{first.environment}', '{first.phase}'{repeat} a second time, first in "
        f"{Path(first.file).name} line {first.line}; repeats need a column of their own (keys: repeat)",
        second.file,
        second.line,
        second.column,
    )
