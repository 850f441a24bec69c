"""A model file, read, checked and ready to be studied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import Document, json_schema, list_shipped, read_document
from vftsim.study.digest import sha256_of
from vftsim.study.shorten import Shortened, quick, shorten
from vftsim.study.validity import as_fitted, with_changes, without_foreign_measure
from vftsim.study.workers import deferred_interrupts


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model.

    Parameters
    ----------
    label : str
        What the user called it: a shipped name or a path.
    spec : ModelSpec
        The checked description.
    assignments : tuple of str
        Overrides made with ``--set``.
    notes : tuple of str
        What was changed beside (shortened steps), in words.
    """

    label: str
    spec: ModelSpec
    assignments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def workloads(self) -> tuple[str, ...]:
        """Kinds of its workloads."""
        return tuple(dict.fromkeys(workload.kind for workload in self.spec.workloads.values()))

    @property
    def description(self) -> str:
        """What the file says the system is."""
        return self.spec.description

    @property
    def name(self) -> str:
        """The name that the file gives the system; what the user called it if it gives none."""
        return self.spec.name or self.label

    def resolved(self) -> dict[str, Any]:
        """Return the model as one file would say it: all values, units written out."""
        with deferred_interrupts():  # pydantic takes an interruption for a kind that does not fit, and goes on
            data: dict[str, Any] = self.spec.model_dump(mode="json")
        return data

    def digest(self) -> str:
        """Return the SHA-256 of the resolved model; equal for equal models, whatever their files."""
        return sha256_of(self.resolved())

    def shortened(self, factor: float) -> Model:
        """Return the model with its measured time scaled by a factor above 0."""
        if not 0.0 < factor <= 1000.0:
            raise UsageError(f"a scale of {factor:g} makes no sense; 0.1 measures a tenth of the time")
        if factor == 1.0:
            return self
        return self._noting(shorten(self.spec, factor))

    def quick(self) -> Model:
        """Return the model shortened for a first look."""
        return self._noting(quick(self.spec))

    def _noting(self, short: Shortened) -> Model:
        return replace(self, spec=short.spec, notes=(*self.notes, short.note) if short.note else self.notes)


def load_model(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a file.

    Parameters
    ----------
    name_or_path : str or Path
        A file, or the name of a shipped model.
    overrides : sequence of str
        Assignments such as ``domains.sut.weight=512``.

    Raises
    ------
    ModelFileError
        The file, one it extends or an override is wrong.
    UsageError
        There is no such file.
    """
    return model_of(read_document(name_or_path), str(name_or_path), overrides)


def model_of(document: Document, label: str, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a document that was read before."""
    spec = document.override(ModelSpec, overrides).validate(ModelSpec)
    spec = with_changes(spec, as_fitted(document))
    if overrides:
        spec = without_foreign_measure(document, spec)
    return Model(label, spec, tuple(overrides))


def in_yaml(data: dict[str, Any]) -> str:
    """Return plain data as a model file has it."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 110
    stream = StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with vftsim."""
    return list_shipped("models")


def models_schema() -> dict[str, Any]:
    """Return the JSON Schema of model files."""
    return json_schema(ModelSpec, "vftsim model")
