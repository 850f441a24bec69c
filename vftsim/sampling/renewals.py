"""Instants of what happens again and again: a renewal process whose events may last.

Rule: the next event begins a gap after the one before has ended, and gaps are independent, gamma distributed with one
mean and coefficient of variation (1: exponential, so that events that take no time are a Poisson process; 0: constant).
"""

from __future__ import annotations

from vftsim.sampling.draws import gamma_ns
from vftsim.sampling.streams import Streams


def renewals_ns(
    streams: Streams, stream_name: str, entity: int, first_ns: int, mean_ns: float, cv: float, lasts_ns: int, most: int
) -> list[int]:
    """Return the first ``most`` instants; the first comes a gap after ``first_ns``."""
    instants, end_ns = [], first_ns
    for gap_ns in gamma_ns(streams.uniforms(stream_name, entity, count=most), mean_ns, cv):
        instants.append(end_ns + int(gap_ns))
        end_ns = instants[-1] + lasts_ns
    return instants
