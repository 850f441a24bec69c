"""Over which ranges factors go in a sensitivity study: named ones, prices, fitted parameters."""

from collections.abc import Sequence

from vftsim.calibrate.drawn import read_fit
from vftsim.composition.keys import read
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.study.designs.points import Span, price_ranges, read_range, scaled_range


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

    What the data do not tell has the bounds of the search.
    """
    drawable = read_fit(fit)
    spans: dict[str, Span] = {}
    for key, value in drawable.values.items():
        model_value = float(read(spec, key))
        if key in drawable.limited and model_value in (0.0, 1.0):
            continue  # of another environment
        is_bounds = key in drawable.undetermined or value == 0.0
        low, high = drawable.bounds[key] if is_bounds else (drawable.low[key], drawable.high[key])
        about = model_value if is_bounds else value
        if about == 0.0:
            raise UsageError(f"--fit: the model has 0 at {key}, of which there are no multiples; --set it first")
        spans[key] = scaled_range(spec, key, low / about, high / about)
    return spans
