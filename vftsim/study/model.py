"""A model file of any kind, read, checked and ready to be studied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vftsim.errors import ModelFileError, UsageError
from vftsim.spec import Document, json_schema, list_shipped, read_document
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.study.digest import sha256_of
from vftsim.study.system import Shortened, System, system_kinds, system_of


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model.

    Parameters
    ----------
    label : str
        What the user called it: a shipped name or a path.
    kind : str
        Kind of system.
    spec : Spec
        The checked description.
    assignments : tuple of str
        Overrides made with ``--set``.
    notes : tuple of str
        What was changed beside (shortened steps), in words.
    """

    label: str
    kind: str
    spec: Any
    assignments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def system(self) -> System:
        """What can be done with a system of this kind."""
        return system_of(self.kind)

    @property
    def description(self) -> str:
        """What the file says the system is."""
        return str(getattr(self.spec, "description", "") or getattr(self.spec, "title", ""))

    @property
    def name(self) -> str:
        """The name that the file gives the system; what the user called it if it gives none."""
        return str(getattr(self.spec, "name", "") or self.label)

    def resolved(self) -> dict[str, Any]:
        """Return the model as one file would say it: all values, units written out."""
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
        return self._noting(self.system.shorten(self.spec, factor))

    def quick(self) -> Model:
        """Return the model shortened for a first look."""
        return self._noting(self.system.quick(self.spec))

    def _noting(self, short: Shortened) -> Model:
        return replace(self, spec=short.spec, notes=(*self.notes, short.note) if short.note else self.notes)


def load_model(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a file, whatever its kind.

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
    document = read_document(name_or_path)
    system = system_of(_kind(document))
    spec = document.override(system.root, overrides).validate(system.root)
    return Model(str(name_or_path), system.kind, spec, tuple(overrides))


def _kind(document: Document) -> str:
    kinds, file = system_kinds(), str(document.files[0])
    top = document.tree.value
    node = top.get("kind") if isinstance(top, dict) else None
    if node is None:
        raise ModelFileError(
            f"the file does not say what kind of system it is; add  kind: {kinds[-1]}  "
            f"(kinds: {listing(kinds)})", file, 0, "kind",
        )  # fmt: skip
    kind = node.plain()
    if not isinstance(kind, str) or kind not in kinds:
        hint = did_you_mean(kind, kinds) if isinstance(kind, str) else ""
        raise ModelFileError(
            f"{shown(kind)} is no kind of system{hint or ';'} kinds: {listing(kinds)}", node.file, node.line, "kind"
        )
    return kind


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with vftsim."""
    return list_shipped("models")


def models_schema(kind: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema of model files of a kind, or of all kinds told apart by ``kind``."""
    kinds = system_kinds()
    if kind is not None and kind not in kinds:
        raise UsageError(f"no kind {shown(kind)}{did_you_mean(kind, kinds) or ';'} kinds: {listing(kinds)}")
    if kind is not None or len(kinds) == 1:
        system = system_of(kind or kinds[0])
        return json_schema(system.root, f"vftsim model: {system.kind}")
    merged: dict[str, Any] = {"title": "vftsim model", "type": "object", "allOf": [], "$defs": {}}
    for each in kinds:
        schema = _renamed(json_schema(system_of(each).root), f"{each}.")
        merged["$schema"] = schema.pop("$schema")
        merged["$defs"].update(schema.pop("$defs"))
        is_it = {"properties": {"kind": {"const": each}}, "required": ["kind"]}
        merged["allOf"].append({"if": is_it, "then": schema})
    return merged


def _renamed(schema: Any, prefix: str) -> Any:
    """Return a schema with every definition's name prefixed."""
    if isinstance(schema, list):
        return [_renamed(item, prefix) for item in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {}
    for key, value in schema.items():
        if key == "$ref":
            renamed[key] = value.replace("#/$defs/", f"#/$defs/{prefix}")
        elif key == "$defs":
            renamed[key] = {prefix + name: _renamed(item, prefix) for name, item in value.items()}
        else:
            renamed[key] = _renamed(value, prefix)
    return renamed
