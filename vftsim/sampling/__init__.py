"""Random numbers: streams keyed by entity, inverse-function draws, draws in order."""

from vftsim.sampling.draws import (
    Draws,
    categorical,
    exponential_ns,
    gamma_ns,
    poisson_gaps_ns,
    renewals_ns,
    uniform,
    uniform_ns,
    unit_exponential,
)
from vftsim.sampling.streams import STREAM_SCHEME, Streams

__all__ = [
    "STREAM_SCHEME",
    "Draws",
    "Streams",
    "categorical",
    "exponential_ns",
    "gamma_ns",
    "poisson_gaps_ns",
    "renewals_ns",
    "uniform",
    "uniform_ns",
    "unit_exponential",
]
