"""The base class of everything a model file can say.

A spec is a value: frozen, compared by content, holding what the user asked for and never the state
of a simulation.  It is strict: no text is taken for a number, no number for a text, no unknown key is
passed over, no default escapes its check.

Rules for a field: a description that says what it is, its unit and where its default comes from
(paper and section, RFC, Xen version, or the word Assumption), bounds in ``Field(gt=..., le=...)``, a
quantity type of :mod:`vftsim.spec.units` whenever it has a dimension, ``Items[T]`` for a list.
Defaults of quantities are numbers in the base unit, or ``DURATION.parse("25 ms")`` and the like.
Modules with specs do without ``from __future__ import annotations``: pydantic would read each from its text.
A check across fields is a ``model_validator(mode="after")`` raising ``ValueError`` with cause and
remedy; a :class:`~vftsim.errors.ModelFileError` with ``key`` set points at a key below the part.
"""

from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Strict

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Strict(False)]
"""A list in the file, an immutable tuple in the model; its items are checked as strictly as ever."""


class Spec(BaseModel):
    """Base of all specs: frozen, strict, unknown keys refused, defaults checked.

    Building the validator waits until its first use, so that parts registered by an imported module
    are part of it (:mod:`vftsim.spec.registry`).
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_default=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    products: ClassVar[tuple[str, ...]] = ()
    """Other names under which people look for a part: products, projects, devices."""
