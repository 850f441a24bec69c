"""Mechanisms by name, and a model under each of them.

Every mechanism with its defaults, but the model's own with the parameters that the model gives it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Any

from vftsim.composition.model import MeasuredSpec
from vftsim.composition.views import with_domain
from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.spec import DURATION
from vftsim.spec.registry import PartRegistry
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.study.designs.failover import protected_domain, refuse_driver
from vftsim.study.runs.model import Model

ALL = "all"


def kinds_named(text: str) -> tuple[str, ...]:
    """Return the mechanisms of a list with commas, or all, none first; refuse a name that is none."""
    kinds = parts_named(text, protections(), "--protection", "mechanism")
    return ("none", *(kind for kind in kinds if kind != "none")) if text == ALL else kinds


def parts_named(text: str, registry: PartRegistry[Any], option: str, noun: str) -> tuple[str, ...]:
    """Return the kinds of parts of a list with commas, or all; refuse a name that is none."""
    if not isinstance(text, str):
        raise UsageError(f"{option.lstrip('-')}: one text with commas, such as 'none,lockstep'; got {shown(text)}")
    names = tuple(registry) if text == ALL else tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in registry:
            hint = registry.did_you_mean(name) or ";"
            raise UsageError(f"{option}: no {noun} '{name}'{hint} {noun}s: {listing(registry)}, or all")
    return names


def of_domain(model: Model, domain: str | None) -> Model:
    """Return a model whose mechanisms are those of a domain; refuse one that is none.

    By default it is the protected one, or the one that has traffic.
    """
    if domain is None:
        return model
    try:
        name = model.spec.entry_of(domain)
    except KeyError:
        every = model.spec.expanded()
        hint = did_you_mean(domain, every) or ";"
        raise UsageError(f"--domain: no domain '{domain}'{hint} domains: {listing(sorted(every))}") from None
    refuse_driver(model, name)
    return replace(model, chosen=name, notes=(*model.notes, f"mechanisms are of domain '{name}'"))


def under(model: Model, kind: str) -> Model:
    """Return a model with its domain under a mechanism, and without faults; refuse one that is none or does not fit."""
    named = kinds_named(kind)
    if len(named) > 1:
        raise UsageError(f"--protection: one mechanism here, not '{kind}'; compare and availability take several")
    (kind,) = named
    spec = model.spec.model_copy(update={"faults": ()})
    name = protected_domain(model)
    notes = (*model.notes, f"protection: {kind}")
    entry = spec.domains[name]
    if protections().has_under(kind, entry.protection):
        return replace(model, spec=spec, notes=notes, chosen=name)
    mechanism = protections()[kind]()
    if entry.vcpus > mechanism.most_vcpus:
        raise UsageError(f"{kind} handles {mechanism.most_vcpus} vCPU at most, and '{name}' has {entry.vcpus}")
    # What was measured on a real system is of the system under its mechanism.
    spec = spec.model_copy(update={"measured": MeasuredSpec()})
    return replace(model, spec=with_domain(spec, name, protection=mechanism), notes=notes, chosen=name)


def fitting(model: Model, kinds: Sequence[str]) -> tuple[dict[str, Model], dict[str, str]]:
    """Return a model under each mechanism that fits, and why the others do not; refuse a model that none fits."""
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


MEANINGS = {
    "checkpoint_interval": "interval between checkpoints",
    "dirty_rate": "pages of the working set first touched, a second of guest CPU time",
    "bandwidth": "rate of the channel between the hosts",
    "round_trip": "twice the one-way latency of that channel",
    "lag_limit": "lag of a lockstep secondary that slows the primary down",
}
KEYS = {
    "checkpoint_interval": "interval",
    "dirty_rate": "memory.touch_rate",
    "bandwidth": "channel.rate",
    "round_trip": "channel.latency",
    "lag_limit": "throttle.lag_limit",
}
WRITTEN: dict[str, Callable[[str], str]] = {"round_trip": lambda text: DURATION.format(int(DURATION.parse(text)) // 2)}
"""What is written at the key for a value of the short name, where that is another one."""


def has_parameter(kind: str, name: str) -> bool:
    """Tell whether a mechanism has what a short name stands for; what is no mechanism has nothing."""
    if kind not in protections():
        return False
    with suppress(AttributeError):
        attrgetter(KEYS[name])(protections()[kind]())
        return True
    return False


def mechanism_of(model: Model) -> str:
    """Return the mechanism of the domain whose protection matters; ``none`` in a model without traffic."""
    try:
        kind: str = model.spec.domains[protected_domain(model)].protection.kind  # type: ignore[attr-defined]
    except UsageError:
        return "none"
    return kind


def switch_of(model: Model, kind: str, written_model: Model) -> tuple[str, ...]:
    """Return what puts a model under a mechanism, without the faults of its file; its own keeps its parameters."""
    assignments = ("faults=[]",) if written_model.spec.faults else ()
    if mechanism_of(model) == kind:
        return assignments
    return (*assignments, f"{protection_key(model)}={{kind: {kind}}}")


def protection_key(model: Model) -> str:
    """Return the dotted key of the protection of the domain whose protection matters."""
    return f"domains.{protected_domain(model)}.protection"
