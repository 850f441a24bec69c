"""Mechanisms by name, and a model under each of them.

Every mechanism with its defaults, but the model's own with the parameters that the model gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vftsim.composition.model import MeasuredSpec, ModelSpec
from vftsim.composition.views import with_domain
from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.spec.suggest import did_you_mean, listing
from vftsim.study.failover import protected_domain
from vftsim.study.model import Model

ALL = "all"


def kinds_named(text: str) -> tuple[str, ...]:
    """Return the mechanisms of a list with commas, or all.

    Raises
    ------
    UsageError
        One of them does not exist.
    """
    known = sorted(protections())
    if text == ALL:
        return ("none", *(kind for kind in known if kind != "none"))
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in known:
            hint = protections().did_you_mean(name) or ";"
            raise UsageError(f"--protection: no mechanism '{name}'{hint} mechanisms: {listing(known)}, or all")
    return names


def under(model: Model, kind: str, domain: str | None = None) -> Model:
    """Return a model with a domain under a mechanism, and without faults.

    Parameters
    ----------
    domain : str, optional
        By default the protected one, or the one that has traffic.

    Raises
    ------
    UsageError
        There is no such mechanism or domain, it is not one mechanism, or it does not fit.
    """
    named = kinds_named(kind)
    if len(named) > 1:
        raise UsageError(f"--protection: one mechanism here, not '{kind}'; compare and availability take several")
    (kind,) = named
    spec = model.spec.model_copy(update={"faults": ()})
    name = protected_domain(model) if domain is None else _entry_of(spec, domain)
    notes = (*model.notes, f"protection: {kind}")
    own = spec.domains[name]
    if own.protection.kind == kind:  # type: ignore[attr-defined]
        return replace(model, spec=spec, notes=notes)
    mechanism = protections()[kind]()
    if own.vcpus > mechanism.most_vcpus:
        raise UsageError(f"{kind} handles {mechanism.most_vcpus} vCPU at most, and '{name}' has {own.vcpus}")
    # What was measured on a real system is of the system under its own mechanism.
    spec = spec.model_copy(update={"measured": MeasuredSpec()})
    return replace(model, spec=with_domain(spec, name, protection=mechanism), notes=notes)


def fitting(model: Model, kinds: Sequence[str]) -> tuple[dict[str, Model], dict[str, str]]:
    """Return a model under each mechanism that fits, and why the others do not.

    Raises
    ------
    UsageError
        None fits, or the model has no domain to protect.
    """
    protected_domain(model)
    models: dict[str, Model] = {}
    refused: dict[str, str] = {}
    for kind in kinds:
        try:
            models[kind] = under(model, kind)
        except UsageError as error:
            refused[kind] = str(error)
    if not models:
        raise UsageError("no mechanism fits: " + "; ".join(refused.values()))
    return models, refused


def _entry_of(spec: ModelSpec, domain: str) -> str:
    """Return the entry of a model file that stands for a domain."""
    try:
        return spec.entry_of(domain)
    except KeyError:
        hint = did_you_mean(domain, spec.expanded()) or ";"
        known = listing(sorted(spec.expanded()))
        raise UsageError(f"--domain: no domain '{domain}'{hint} domains: {known}") from None
