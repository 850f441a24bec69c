"""What the ranges of a mechanism's prices make of a protected server's capacity by the ramp."""

from __future__ import annotations

from vftsim.study.estimate import Needs, needs_of
from vftsim.study.failover import protected_domain
from vftsim.study.model import Model
from vftsim.study.price_bands import Band, Variant, band_of, effects_of, variants
from vftsim.study.progress import Progress
from vftsim.study.ramp import ramp_capacity_of
from vftsim.study.replicate import replicate
from vftsim.study.store import Store

_CAPACITY = "capacity"


def ends_of(model: Model) -> list[Variant]:
    """Return the model with each price that a run shows at either end of its range; none without protection."""
    if not any(domain.protection.protects for domain in model.spec.domains.values()):
        return []
    return [each for each in variants(model, protected_domain(model)) if not each.is_of_failure]


def bands_take(model: Model) -> Needs:
    """Return what the band takes: a ramp at each end of each price, and one at the prices in use."""
    ends = len(ends_of(model))
    return needs_of(model.spec).times(ends + 1 if ends else 0)


def ramp_band(
    model: Model,
    seed: int,
    jobs: int,
    ihs_limit_percent: float | None = None,
    *,
    progress: Progress | None = None,
    store: Store | None = None,
) -> Band | None:
    """Play one ramp at each end of each price; return what the prices make of the capacity.

    Returns
    -------
    Band or None
        None where nothing is protected, no price moves the capacity, or the user ended it.
    """
    ends = ends_of(model)
    if not ends:
        return None
    done = replicate([model, *(each.model for each in ends)], 1, seed, jobs, progress=progress, store=store)
    if any(each.interrupted for each in done):
        return None
    own, *others = (
        ramp_capacity_of(played, each.ordered(), ihs_limit_percent).estimate.mean
        for played, each in zip([model, *(end.model for end in ends)], done, strict=True)
    )
    told = [(end, {_CAPACITY: found}.__getitem__) for end, found in zip(ends, others, strict=True)]
    return band_of(effects_of(told, {_CAPACITY: own}.__getitem__, _CAPACITY))
