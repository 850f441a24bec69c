"""Random numbers: streams keyed by entity, inverse-function draws, endless sequences in bounded memory."""

from vftsim.sampling.chunked import CHUNK_SIZE, ChunkedDraws
from vftsim.sampling.draws import (
    categorical,
    erlang_ns,
    exponential_ns,
    gamma_ns,
    poisson_gaps_ns,
    uniform,
    uniform_ns,
    unit_exponential,
)
from vftsim.sampling.renewals import renewals_ns
from vftsim.sampling.streams import STREAM_SCHEME, Streams

__all__ = [
    "CHUNK_SIZE",
    "STREAM_SCHEME",
    "ChunkedDraws",
    "Streams",
    "categorical",
    "erlang_ns",
    "exponential_ns",
    "gamma_ns",
    "poisson_gaps_ns",
    "renewals_ns",
    "uniform",
    "uniform_ns",
    "unit_exponential",
]
