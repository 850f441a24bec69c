"""Fits as distributions: parameters drawn together, as a fit left them uncertain.

What ``vftsim calibrate -o`` wrote gives for each parameter its value and the ends of its 95 % interval, for each pair
the correlation.  A draw is a point of a normal distribution with these correlations, each coordinate stretched to
either end of its interval (which need not be as far below the value as above) and kept within the bounds of the search.
A parameter that the data do not tell has no fitted value worth the name: it is drawn evenly from what the fit took as
possible beforehand, with the same correlations (a Gaussian copula), and its value is taken as it is.

The intervals are those of one fit: where a refit of simulated data shows them too narrow (docs/sip/collapse.md), so are
the draws.  They hold the chance of runs (:mod:`vftsim.calibrate.intervals`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.intervals import End, elsewhere, is_determined
from vftsim.composition.keys import read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.sampling.streams import Streams
from vftsim.spec import shipped_dir
from vftsim.spec.explain import first_mistake
from vftsim.spec.shipped import file_or_shipped
from vftsim.study.runs.model import Model

LARGEST_BYTES = 16 * 1024 * 1024
_PER_SIGMA = 1.959963984540054


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

    @property
    def undetermined(self) -> set[str]:
        """Keys that the data do not tell, also by rules that were not there when the fit was made."""
        low = {key: p.low_95 for key, p in self.parameters.items()}
        high = {key: p.high_95 for key, p in self.parameters.items()}
        boxes = {p.path: p.bounds for p in self.calibration.parameters}
        open_ = {
            k for k, p in self.parameters.items() if not (p.identified and is_determined(low[k], high[k], boxes[k]))
        }
        return open_ | elsewhere([(end.cost, end.values) for end in self.ends], len(self.residuals), low, high).keys()


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
        values = {name: float(read(spec, name)) for name in self.values}
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
    return _drawable(name_or_path, file)


def _drawable(name: str, file: _File) -> DrawableFit:
    bounds = {p.path: p.bounds for p in file.calibration.parameters}
    parameters = file.parameters
    if missing := [key for key in parameters if key not in bounds]:
        raise UsageError(f"'{name}' has a value for {missing[0]}, which its calibration does not fit")
    of_system = ("hosts.", "networks.", "domains.")
    return DrawableFit(
        name,
        {key: p.value for key, p in parameters.items()},
        {key: min(p.low_95, p.value) for key, p in parameters.items()},
        {key: max(p.high_95, p.value) for key, p in parameters.items()},
        bounds,
        file.correlations,
        tuple(text for text in file.calibration.overrides if text.startswith(of_system)),
        frozenset(p.path for p in file.calibration.parameters if p.environments),
        file.calibration.name,
        frozenset(file.undetermined),
    )
