"""Fitted parameters on disk: values, intervals, residuals, what was held out, and how they came to be.

Also what a fitted file was made from, and whether that is still what the dataset says.  A hash covers the observations
that a fit used and the measured traffic of their phases (CPU is compared at the measured load and mix), not the tables
they stand in: a column or environment added to a table changes nothing.

*As distributions*: parameters drawn together, as a fit left them uncertain.  What ``vftsim calibrate -o`` wrote gives
for each parameter its value and the ends of its 95 % interval, for each pair the correlation.  A draw is a point of a
normal distribution with these correlations, each coordinate stretched to either end of its interval (which need not be
as far below the value as above) and kept within the bounds of the search.  A parameter that the data do not tell has no
fitted value worth the name: it is drawn evenly from what the fit took as possible beforehand, with the same
correlations (a Gaussian copula), and its value is taken as it is.

The intervals are those of one fit: where a refit of simulated data shows them too narrow (docs/sip/collapse.md), so are
the draws.  They hold the chance of runs (:mod:`vftsim.calibrate.intervals`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from vftsim._version import __version__
from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.intervals import End, Fit, elsewhere, is_determined
from vftsim.composition.keys import base_unit, read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.files import read_back, sha256_of, write_file
from vftsim.labs.dataset import Observations
from vftsim.sampling.streams import Streams
from vftsim.spec import shipped_dir
from vftsim.spec.explain import first_mistake
from vftsim.spec.shipped import file_or_shipped
from vftsim.study.designs.points import Span, price_ranges, read_range
from vftsim.study.runs.model import Model

FORMAT = 1
FITTED = "fitted"
"""Folder of the fitted files, beside the calibrations."""


def as_record(
    definition: CalibrationSpec,
    spec: ModelSpec,
    data: Observations,
    fit: Fit,
    manifest: dict[str, Any],
    units: Mapping[str, str],
) -> dict[str, Any]:
    """Return a fit as plain data, sufficient to tell how it came to be; units are those of the parameters by path."""
    calibration = definition.model_dump(mode="json")
    return {
        "format": FORMAT,
        "vftsim_version": __version__,
        "calibration_sha256": sha256_of(calibration),
        "model_sha256": Model("", spec).digest(),
        "data_sha256": data_sha256(data, fit.residuals),
        "calibration": calibration,
        "parameters": {
            path: {
                "value": value,
                "low_95": fit.low[path],
                "high_95": fit.high[path],
                "identified": path not in fit.undetermined,
                "unit": units[path],
                "meaning": next(p.meaning for p in definition.parameters if p.path == path),
            }
            for path, value in fit.values.items()
        },
        "cost": fit.cost,
        "evaluations": fit.evaluations,
        "is_cut": fit.is_cut,
        "ends": [asdict(end) for end in fit.ends],
        "not_identified": fit.not_identified,
        "sensitivity": _sensitivity(fit),
        "chance_of_runs": {
            "replications": definition.replications,
            "in_intervals": bool(fit.chance_share),
            "share_of_variance": {path: round(share, 4) for path, share in fit.chance_share.items()},
        },
        "correlations": fit.correlations,
        "profiles": [asdict(each) for each in fit.profiles],
        "coverage": [asdict(each) for each in fit.coverage],
        "residuals": [
            {"phase": phase, "quantity": quantity, "scaled_residual": round(value, 4)}
            for (phase, quantity), value in sorted(fit.residuals.items())
        ],
        "held_out": list(definition.held_out),
        "manifest": manifest,
    }


def from_record(record: dict[str, Any]) -> Fit:
    """Return the fit that a record is of, but for what it rounds and for how the data told the parameters."""
    parameters = record["parameters"]
    values, low, high = (
        {path: float(each[key]) for path, each in parameters.items()} for key in ("value", "low_95", "high_95")
    )
    return read_back(
        Fit,
        record,
        values=values,
        low=low,
        high=high,
        residuals={(each["phase"], each["quantity"]): each["scaled_residual"] for each in record["residuals"]},
        undetermined=[path for path, each in parameters.items() if not each.get("identified", True)],
        sensitivity=None,
        chance_share=record.get("chance_of_runs", {}).get("share_of_variance", {}),
    )


def _sensitivity(fit: Fit) -> dict[str, Any] | None:
    """Return rank and condition of the fit, and what the data leave of each parameter's spread."""
    sensitivity = fit.sensitivity
    if sensitivity is None:
        return None
    return {
        "rank": sensitivity.rank,
        "condition": sensitivity.condition if math.isfinite(sensitivity.condition) else None,
        "remaining": {path: round(share, 4) for path, share in zip(fit.values, sensitivity.remaining, strict=True)},
    }


def write(path: Path, record: dict[str, Any]) -> None:
    write_file(path, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())


def data_sha256(data: Observations, keys: Iterable[tuple[str, str]]) -> str:
    """Return the hash of the observations ``keys`` and of the traffic of their phases."""
    used = {*keys}
    used |= {(phase, traffic) for phase, _ in used for traffic in ("load", "touches")}
    return sha256_of([[phase, quantity, data.get((phase, quantity))] for phase, quantity in sorted(used)])


def warnings(folder: Path, environment: str, data: Observations) -> list[str]:
    """Return a line for every fitted file of an environment that was made from other data than the dataset has now.

    There is nothing to say of a folder of calibrations without fitted files.
    """
    lines = []
    for path in sorted((folder / FITTED).glob("*.json")):
        name = f"{FITTED}/{path.name}"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["calibration"]["environment"] != environment or "data_sha256" not in record:
                continue  # files of before there was a hash do not say
            keys = [(entry["phase"], entry["quantity"]) for entry in record["residuals"]]
        except (OSError, ValueError, KeyError, TypeError):
            lines.append(f"{name} cannot be read as a fitted file")
            continue
        if record["data_sha256"] != data_sha256(data, keys):
            lines.append(f"{name} was fitted to other data than the dataset holds now for '{environment}'")
    return lines


LARGEST_BYTES = 16 * 1024 * 1024
_PER_SIGMA = 1.959963984540054
_OF_SYSTEM = ("hosts.", "networks.", "domains.")


class _Parameter(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    value: float
    low_95: float
    high_95: float
    identified: bool = True


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    format: Literal[1]
    parameters: dict[str, _Parameter]
    correlations: dict[str, float]
    calibration: CalibrationSpec
    ends: list[End] = []
    residuals: list[Any] = []

    def drawable(self, name: str) -> DrawableFit:
        """Return its distribution; refuse a value that its calibration does not fit.

        What the data do not tell is also what rules say that were not there when the fit was made.
        """
        boxes, parameters = {p.path: p.bounds for p in self.calibration.parameters}, self.parameters
        if missing := [key for key in parameters if key not in boxes]:
            raise UsageError(f"'{name}' has a value for {missing[0]}, which its calibration does not fit")
        low, high = ({key: getattr(p, end) for key, p in parameters.items()} for end in ("low_95", "high_95"))
        determined = {k for k, p in parameters.items() if p.identified and is_determined(low[k], high[k], boxes[k])}
        determined -= elsewhere([(end.cost, end.values) for end in self.ends], len(self.residuals), low, high).keys()
        return DrawableFit(
            name,
            {key: p.value for key, p in parameters.items()},
            {key: min(p.low_95, p.value) for key, p in parameters.items()},
            {key: max(p.high_95, p.value) for key, p in parameters.items()},
            boxes,
            self.correlations,
            tuple(text for text in self.calibration.overrides if text.startswith(_OF_SYSTEM)),
            frozenset(p.path for p in self.calibration.parameters if p.environments),
            self.calibration.name,
            frozenset(parameters.keys() - determined),
        )


@dataclass(frozen=True)
class DrawableFit:
    """A fit whose parameters can be drawn."""

    name: str
    values: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    """Fitted values and the ends of their 95 % intervals, in base units, by key of the model."""
    bounds: dict[str, tuple[float, float]]
    """Between which the fit searched."""
    correlations: Mapping[str, float]
    """Of pairs ``key ~ key``; a pair that is missing is taken as uncorrelated."""
    settings: tuple[str, ...]
    """What the fit set of hosts, networks and domains, as with ``--set``: its structure."""
    limited: frozenset[str] = frozenset()
    """Keys that the fit moved in some of its environments only."""
    calibration: str = ""
    """Name of its calibration, which keys what is drawn wherever the file lies; that of the fit if not given."""
    undetermined: frozenset[str] = frozenset()
    """Keys that the data do not tell."""

    def draw(self, seed: int, number: int, attempt: int = 0) -> dict[str, float]:
        """Return one point of the joint distribution; the same seed, number and attempt give the same point."""
        names = list(self.values)
        stream = f"calibrate.draw.{self.calibration or self.name}"
        if attempt:
            stream += f".again.{attempt}"
        normal = Streams(seed, 0).generator(stream, number).standard_normal(len(names))
        point = self._root @ normal
        return {name: self._stretched(name, float(z)) for name, z in zip(names, point, strict=True)}

    def _stretched(self, name: str, z: float) -> float:
        value, (low, high) = self.values[name], self.bounds[name]
        if name in self.undetermined:
            return low + (high - low) * (1.0 + math.erf(z / math.sqrt(2.0))) / 2.0
        reach = (self.high[name] - value if z > 0 else value - self.low[name]) / _PER_SIGMA
        return min(max(value + z * reach, low), high)

    @cached_property
    def _root(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return a root of the correlation matrix; correlations of a bootstrap need not be of full rank."""
        names = list(self.values)
        matrix = np.eye(len(names))
        for i, first in enumerate(names):
            for j, second in enumerate(names[:i]):
                of_pair = (self.correlations.get(key) for key in (f"{second} ~ {first}", f"{first} ~ {second}"))
                matrix[i, j] = matrix[j, i] = next((each for each in of_pair if each is not None), 0.0)
        values, vectors = np.linalg.eigh(matrix)
        root: np.ndarray[Any, np.dtype[np.float64]] = vectors * np.sqrt(np.clip(values, 0.0, None))
        # What was cut off must not make any coordinate wider or narrower.
        root /= np.linalg.norm(root, axis=1, keepdims=True)
        return root

    def scaled(self, spec: ModelSpec, drawn: Mapping[str, float]) -> ModelSpec:
        """Return a model whose values are as far from its own as drawn ones are from the fitted ones.

        A model that divides fitted costs (a virtual machine's, into those of bare metal and a factor) stays as it is
        divided; one that has the fitted values gets the drawn ones.  What :meth:`is_scaled` does not hold of is taken
        as drawn.  The model is not checked (:func:`accepted`), but refused if it lacks a key that was fitted.
        """
        return with_values(
            spec,
            {
                name: in_model * drawn[name] / self.values[name] if self.is_scaled(name, in_model) else drawn[name]
                for name, in_model in self._model_values(spec).items()
            },
        )

    def is_scaled(self, name: str, model_value: float) -> bool:
        """Whether a model's value counts in multiples of the fitted one.

        Not what the data do not tell, nor what was fitted as 0 or as what it does not tell from the 0 of the model.
        """
        if name in self.undetermined or self.values[name] == 0.0:
            return False
        return model_value != 0.0 or self.low[name] > 0.0

    def otherwise(self, spec: ModelSpec) -> dict[str, tuple[float, float]]:
        """Return a model's value and the fitted one of each key that is scaled though it lies beyond its interval."""
        return {
            name: (in_model, self.values[name])
            for name, in_model in self._model_values(spec).items()
            if self.is_scaled(name, in_model) and not self.low[name] <= in_model <= self.high[name]
        }

    def applied(self, spec: ModelSpec) -> ModelSpec:
        """Return a model with the fitted values; refuse one that lacks a key that was fitted."""
        return with_values(spec, {name: self.values[name] for name in self._model_values(spec)})

    def _model_values(self, spec: ModelSpec) -> dict[str, float]:
        """Return a model's values of the fitted keys, but for those of another environment: no cost, or a factor of 1.

        Refuses a model that lacks a key.
        """
        try:
            values = {name: float(read(spec, name)) for name in self.values}
        except UsageError as error:
            raise UsageError(f"{error}, which '{self.name}' fits") from None
        return {name: value for name, value in values.items() if name not in self.limited or value not in (0.0, 1.0)}


def accepted(spec: ModelSpec) -> str:
    """Return why a model that was put together from numbers would be refused as a file; nothing if it would not."""
    try:
        ModelSpec.model_validate(Model("", spec).resolved())
    except ValidationError as error:
        return first_mistake(error)
    return ""


def shipped_fits() -> dict[str, Path]:
    """Return the files of the shipped fits by name."""
    files = sorted(shipped_dir("calibration").glob("*/fitted/*.json"))
    return {f"{path.parent.parent.name}/{path.stem}": path for path in files}


def read_fit(name_or_path: str) -> DrawableFit:
    """Return what ``vftsim calibrate -o`` wrote: a file, or a shipped fit (``sip-lab/virtual``).

    Refuses a name that there is not, and a file that is no fit.
    """
    path = file_or_shipped(name_or_path, shipped_fits(), "fit")
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise UsageError(f"'{path}' has more than {LARGEST_BYTES >> 20} MiB: no fit of vftsim")
        file = _File.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"'{path}' is no fit that 'vftsim calibrate -o' wrote: {first_mistake(error)}") from None
    return file.drawable(name_or_path)


def spans_named(
    spec: ModelSpec, ranges: Sequence[str], *, prices: bool = False, fit: str | None = None
) -> dict[str, Span]:
    """Return the range of each factor of a sensitivity study, those that the user gives by name before all others.

    Each is ``KEY=LOW..HIGH``, with ``log`` behind it spread by ratio, and refused where it is none, or given twice.
    With ``prices``, those of the model's protection go over the ranges declared for them; parameters of a fit go over
    their intervals.
    """
    spans: dict[str, Span] = {}
    for text in ranges:
        name, span = read_range(text)
        if name in spans:
            raise UsageError(f"--range: '{name}' is given twice")
        spans[name] = span
    if prices:
        spans = {**price_ranges(spec), **spans}
    if fit is not None:
        spans = {**_fitted(spec, fit), **spans}
    return spans


def _fitted(spec: ModelSpec, fit: str) -> dict[str, Span]:
    """Return ranges of fitted parameters, as far from the model's values as the interval's ends from the fitted ones.

    What the data do not tell has the bounds of the search; other ranges are as the fit has them where the model's value
    is no multiple of the fitted one (:meth:`~vftsim.calibrate.fitted.DrawableFit.is_scaled`).
    """
    drawable = read_fit(fit)
    spans: dict[str, Span] = {}
    for key, value in drawable.values.items():
        in_model, unit = read(spec, key), base_unit(spec, key)
        if key in drawable.limited and in_model in (0.0, 1.0):
            continue  # of another environment
        low, high = drawable.bounds[key] if key in drawable.undetermined else (drawable.low[key], drawable.high[key])
        if drawable.is_scaled(key, in_model):
            if in_model == 0.0:
                raise UsageError(f"--fit: the model has 0 at {key}, of which there are no multiples; --set it first")
            low, high = in_model * low / value, in_model * high / value
        spans[key] = Span(low, high, unit, is_whole=isinstance(in_model, int) and not unit)
    return spans
