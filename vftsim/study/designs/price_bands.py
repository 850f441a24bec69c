"""Bands of figures over the ranges of prices, and the price that decides each.

Each price is set to either end of its range in a run of its own, all other prices at their values, under the same
random numbers.  What a figure moves is taken as piecewise linear in the price between the ends and the value in use, as
a cost is (so many events, each at the price), and as a sum over prices.  Prices are then drawn evenly from their
ranges, in the logarithm where they are above 0, and the band is where 95 % of the figures fall.

What prices do together is not the sum of what they do alone.  Two more runs have all prices at their lower and at their
upper ends.  Where every price moves the figure there to the same side, what the run shows beyond the sum is shared out
among pairs of prices, in proportion to the product of their moves: prices on that side of their values move a figure by
the sum of their moves and by that of their pairs.  A band ends where the figures of all runs do.

Left out: other interactions of prices.  How often a band holds the figure of a laboratory whose prices are drawn is
measured (``tests/study/test_price_bands.py``).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vftsim.composition.views import with_domain
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.prices import Priced, at_prices
from vftsim.sampling import Streams
from vftsim.stats import Estimate
from vftsim.study.runs.model import Model

ALL = "all"
DRAWS = 5000
SHARE = 0.95


@dataclass(frozen=True)
class Variant:
    """A model with a price, or all of them, at an end of the range."""

    price: str
    """Key of the price; :data:`ALL`."""
    basis: str
    position: float
    """Position of the value in its range, from 0 to 1; in the logarithm where the range is above 0."""
    ratio: float
    """The upper end of the range over the lower; 0 where that is 0."""
    is_high: bool
    is_of_failure: bool
    """Whether only a crash shows it."""
    model: Model


@dataclass(frozen=True)
class Effect:
    """Change of a figure with a price at the lower and at the upper end of its range."""

    price: str
    basis: str
    position: float
    at_low: float
    at_high: float
    ratio: float = 0.0

    @property
    def width(self) -> float:
        """Between which two values it moves the figure."""
        moves = (self.at_low, 0.0, self.at_high)
        return max(moves) - min(moves)

    def moved(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much it moves the figure where it lies at positions in its range."""
        values, share_in_use = self._shares(positions), float(self._shares(np.array(self.position)))
        if 0.0 < share_in_use < 1.0:
            return np.interp(values, (0.0, share_in_use, 1.0), (self.at_low, 0.0, self.at_high))
        ends = (0.0, self.at_high) if share_in_use <= 0.0 else (self.at_low, 0.0)
        return np.interp(values, (0.0, 1.0), ends)

    def _shares(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return which share of the way from the lower to the upper end prices are at positions in the range."""
        if self.ratio <= 1.0:
            return positions
        shares: NDArray[np.float64] = np.expm1(positions * math.log(self.ratio)) / (self.ratio - 1.0)
        return shares


@dataclass(frozen=True)
class Band:
    """Uncertainty of a figure by the ranges of prices."""

    below: float
    above: float
    """Ends of the band, from the figure at the prices in use."""
    effects: tuple[Effect, ...]
    """The one that moves the figure most first."""

    @property
    def decides(self) -> str:
        """The price that moves the figure most."""
        return self.effects[0].price

    def columns(self, mean: float) -> dict[str, Any]:
        """Return it around a figure as columns of a table, with the price that decides."""
        ends = {"prices_low": mean + self.below, "prices_high": mean + self.above}
        return {**ends, "decided_by": self.decides, "decided_share": self.share}

    @property
    def share(self) -> float:
        """Share of that price in the variance over the ranges."""
        squares = [each.width**2 for each in self.effects]
        return squares[0] / math.fsum(squares)

    def around(self, estimate: Estimate, least: float = -math.inf) -> Estimate:
        """Return a figure, ``least`` or more, with an interval for replications and prices, which are independent."""
        low = estimate.mean - math.hypot(min(0.0, self.below), _finite(estimate.mean - estimate.low))
        low = max(low, min(least, estimate.mean))
        high = estimate.mean + math.hypot(max(0.0, self.above), _finite(estimate.high - estimate.mean))
        return replace(estimate, low=low, high=high, half_width=(high - low) / 2.0, kind="with prices")


def variants(model: Model, domain: str) -> Iterator[Variant]:
    """Yield a model with each price of a domain's mechanism at either end of its range."""
    protection = model.spec.domains[domain].protection
    assert isinstance(protection, ProtectionSpec)
    prices = list(protection.prices())

    def at(name: str, moved: Sequence[Priced], is_high: bool) -> Variant:
        ends = {each.key: each.price.high if is_high else each.price.low for each in moved}
        played = replace(model, spec=with_domain(model.spec, domain, protection=at_prices(protection, ends)))
        first = moved[0]
        ratio = first.price.high / first.price.low if first.price.low > 0.0 else 0.0
        return Variant(name, first.price.basis, position_of(first), ratio, is_high, first.is_of_failure, played)

    for each in prices:
        yield from (at(each.key, [each], is_high) for is_high in (False, True))
    running = [each for each in prices if not each.is_of_failure]
    if len(running) > 1:
        yield from (at(ALL, running, is_high) for is_high in (False, True))


def position_of(priced: Priced) -> float:
    """Return where in its range a price lies, in the logarithm where there is one."""
    low, high = priced.price.low, priced.price.high
    if low <= 0.0:
        return (priced.value - low) / (high - low)
    return math.log(priced.value / low) / math.log(high / low)


def effects_of(played: Iterable[tuple[Variant, float]], in_use: float) -> list[Effect]:
    """Return what each price moves a figure by, which is nan where what was played has none."""
    effects: dict[str, Effect] = {}
    for end, figure in played:
        none = Effect(end.price, end.basis, end.position, 0.0, 0.0, end.ratio)
        moved = _finite(figure - in_use)
        effect = effects.get(end.price, none)
        effects[end.price] = replace(effect, at_high=moved) if end.is_high else replace(effect, at_low=moved)
    return list(effects.values())


def band_of(effects: Sequence[Effect]) -> Band | None:
    """Return where a figure may lie; None where no price moves it."""
    single = [each for each in effects if each.price != ALL]
    moving = sorted((each for each in single if each.width > 0.0), key=lambda each: -each.width)
    if not moving:
        return None
    streams, position = Streams(0, 0), np.array([[each.position] for each in moving])
    positions = np.array([streams.uniforms("prices", number, count=DRAWS) for number in range(len(moving))])
    moves = np.array([each.moved(at) for each, at in zip(moving, positions, strict=True)])
    total = moves.sum(axis=0)
    together = [each for each in effects if each.price == ALL]
    for each in together:
        total += _of_pairs(
            np.where(positions < position, moves, 0.0), [effect.at_low for effect in moving], each.at_low
        )
        total += _of_pairs(
            np.where(positions > position, moves, 0.0), [effect.at_high for effect in moving], each.at_high
        )
    below, above = np.quantile(total, ((1.0 - SHARE) / 2.0, (1.0 + SHARE) / 2.0))
    if together:
        shifts = [end for each in effects for end in (each.at_low, 0.0, each.at_high)]
        below, above = max(below, min(shifts)), min(above, max(shifts))
    return Band(float(below), float(above), tuple(moving))


def _of_pairs(moves: NDArray[np.float64], ends: Sequence[float], together: float) -> NDArray[np.float64]:
    """Return what pairs of prices move a figure by, beyond what each does: none unless all move it to one side."""
    alone, of_ends = math.fsum(ends), _pairs(np.array(ends))
    if together * alone <= 0.0 or of_ends <= 0.0 or any(each * alone < 0.0 for each in ends):
        return np.zeros(moves.shape[1])
    return _pairs(moves) * (together - alone) / of_ends


def _pairs(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = (moves.sum(axis=0) ** 2 - (moves**2).sum(axis=0)) / 2.0
    return sums


def widened(
    estimate: Estimate | None, bands: Mapping[str, Band], name: str, *, is_difference: bool = False
) -> Estimate | None:
    """Return a figure, or a difference, with the band of its prices, if it has one."""
    band = bands.get(name)
    if estimate is None or band is None:
        return estimate
    return band.around(estimate, -math.inf if is_difference or estimate.low < 0.0 else 0.0)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
