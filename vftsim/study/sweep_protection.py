"""Axes and variants of a sweep that are about protection: one model under several mechanisms, over their parameters.

A short name stands for the same thing in every mechanism that has it, under whatever key; a mechanism without it is the
same at all values, which is simulated once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.spec import DURATION
from vftsim.study.failover import protected_domain
from vftsim.study.model import Model

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


def _half(text: str) -> str:
    return DURATION.format(int(DURATION.parse(text)) // 2)


_VALUES: dict[str, Callable[[str], str]] = {"round_trip": _half}


@dataclass(frozen=True, slots=True)
class ProtectionAxis:
    """A short name about protection, with its values; the interface of :class:`~.sweep_grid.Axis`.

    Parameters
    ----------
    name : str
    domain : str
        Entry of the model file whose protection it is.
    values : tuple of str
        As the user wrote them.
    """

    name: str
    domain: str
    values: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The dotted key, in mechanisms that have it."""
        return (f"domains.{self.domain}.protection.{KEYS[self.name]}",)

    def assignments(self, value: str, kind: str) -> tuple[str, ...]:
        """Return what ``--set`` would say for a value under a mechanism; nothing if that has no such parameter."""
        if not has_parameter(kind, self.name):
            return ()
        return (f"{self.keys[0]}={_VALUES.get(self.name, str)(value)}",)


def has_parameter(kind: str, name: str) -> bool:
    """Tell whether a mechanism has what a short name stands for."""
    spec: object = protections()[kind]()
    for part in KEYS[name].split("."):
        if not hasattr(spec, part):
            return False
        spec = getattr(spec, part)
    return True


def own_kind(model: Model) -> str:
    """Return the mechanism of the domain whose protection matters; ``none`` in a model without traffic."""
    try:
        kind: str = model.spec.domains[protected_domain(model)].protection.kind  # type: ignore[attr-defined]
    except UsageError:
        return "none"
    return kind


def protection_axis(model: Model, name: str, values: tuple[str, ...], kinds: tuple[str, ...]) -> ProtectionAxis:
    """Return the axis of a short name.

    Raises
    ------
    UsageError
        None of the mechanisms has such a parameter.
    """
    if not any(has_parameter(kind, name) for kind in kinds):
        raise UsageError(
            f"--grid: '{name}' ({MEANINGS[name]}) means nothing under {', '.join(kinds)}; say --protection with a "
            "mechanism that has it"
        )
    return ProtectionAxis(name, protected_domain(model), values)


def switch_of(model: Model, kind: str) -> tuple[str, ...]:
    """Return what puts a model under a mechanism, without its faults; its own mechanism keeps its parameters."""
    domain = protected_domain(model)
    found = ("faults=[]",) if model.spec.faults else ()
    if own_kind(model) == kind:
        return found
    return (*found, f"domains.{domain}.protection={{kind: {kind}}}")
