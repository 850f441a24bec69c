"""Over which ranges factors go in a sensitivity study: named ones, prices, fitted parameters."""

from collections.abc import Sequence

from vftsim.calibrate.drawn import read_fit
from vftsim.composition.keys import base_unit, read
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.study.designs.points import Span, price_ranges, read_range


def spans_named(
    spec: ModelSpec, ranges: Sequence[str], *, prices: bool = False, fit: str | None = None
) -> dict[str, Span]:
    """Return the range of each factor of a sensitivity study, those that the user gives by name before all others.

    Each is ``KEY=LOW..HIGH``, with ``log`` behind it spread by ratio, and refused where it is none, or given twice.
    With ``prices``, those of the model's protection go over the ranges declared for them; parameters of a fit go over
    their intervals.
    """
    spans: dict[str, Span] = {}
    for text in ranges:
        name, span = read_range(text)
        if name in spans:
            raise UsageError(f"--range: '{name}' is given twice")
        spans[name] = span
    if prices:
        spans = {**price_ranges(spec), **spans}
    if fit is not None:
        spans = {**_fitted(spec, fit), **spans}
    return spans


def _fitted(spec: ModelSpec, fit: str) -> dict[str, Span]:
    """Return ranges of fitted parameters, as far from the model's values as the interval's ends from the fitted ones.

    What the data do not tell has the bounds of the search; other ranges are as the fit has them where the model's value
    is no multiple of the fitted one (:meth:`~vftsim.calibrate.drawn.DrawableFit.is_scaled`).
    """
    drawable = read_fit(fit)
    spans: dict[str, Span] = {}
    for key, value in drawable.values.items():
        in_model, unit = read(spec, key), base_unit(spec, key)
        if key in drawable.limited and in_model in (0.0, 1.0):
            continue  # of another environment
        low, high = drawable.bounds[key] if key in drawable.undetermined else (drawable.low[key], drawable.high[key])
        if drawable.is_scaled(key, in_model):
            if in_model == 0.0:
                raise UsageError(f"--fit: the model has 0 at {key}, of which there are no multiples; --set it first")
            low, high = in_model * low / value, in_model * high / value
        spans[key] = Span(low, high, unit, is_whole=isinstance(in_model, int) and not unit)
    return spans
