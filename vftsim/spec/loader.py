"""From a file's name to a checked model.

The steps: find the file, read it and all it extends, merge, make the overrides, validate.  Whatever is
wrong with what the user wrote comes out as one :class:`~vftsim.errors.ModelFileError` that names the file
really holding the key (or ``--set``), the line, the key, the cause and the remedy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from vftsim.spec.explain import explain
from vftsim.spec.extends import Search, read_chain
from vftsim.spec.overrides import apply_override
from vftsim.spec.shipped import find
from vftsim.spec.yaml_source import Node

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Document:
    """A model file merged with all it extends, not yet validated."""

    tree: Node
    """The merged values with their places."""
    files: tuple[Path, ...]
    """The files read, the named one first."""
    assignments: tuple[str, ...] = ()
    """The overrides made so far, in order."""
    before: tuple[Node, ...] = ()
    """The values before each of them."""

    def plain(self) -> dict[str, Any]:
        """Return the document as plain data, as if it stood in one file."""
        data: dict[str, Any] = self.tree.plain()
        return data

    def override(self, root: type[BaseModel], assignments: Sequence[str]) -> "Document":
        """Return the document with more overrides made; the original stays as it is."""
        trees = [self.tree]
        for number, assignment in enumerate(assignments, start=len(self.assignments) + 1):
            trees.append(apply_override(root, trees[-1], assignment, number))
        return Document(trees[-1], self.files, (*self.assignments, *assignments), (*self.before, *trees[:-1]))

    def validate(self, root: type[T], context: Mapping[str, str] | None = None) -> T:
        """Return the model that the document describes; its validators may ask for the context."""
        try:
            return root.model_validate(self.tree.plain(), context=context)
        except ValidationError as error:
            labels = [str(path) for path in self.files]
            raise explain(error, root, self.tree, labels, self.assignments, self._spoilt_by(root, context)) from None

    def _spoilt_by(self, root: type[BaseModel], context: Mapping[str, str] | None) -> str:
        """Return the override that made a right document wrong; empty where the files are wrong themselves."""
        for tree, assignment in zip(reversed(self.before), reversed(self.assignments), strict=True):
            try:
                root.model_validate(tree.plain(), context=context)
            except ValidationError:
                continue
            return assignment
        return ""


def read_document(path_or_name: str | Path, search: Search | None = None) -> Document:
    """Read a model file and all it extends, without validating."""
    look_up = search or partial(find, "models")
    tree, files = read_chain(look_up(str(path_or_name)), look_up)
    return Document(tree, files)


def load(
    path_or_name: str | Path,
    root: type[T],
    overrides: Sequence[str] = (),
    search: Search | None = None,
) -> T:
    """Return the checked model of a file, or of the name of a shipped one, with overrides ``domains.sut.weight=512``.

    ``search`` gives the path of a name, or raises :class:`~vftsim.errors.UsageError`; by default a path that exists,
    else a shipped model.  A ModelFileError says that the file, one it extends or an override is wrong.
    """
    return read_document(path_or_name, search).override(root, overrides).validate(root)
