"""Distributions of delays, gathered while a run goes on: the records behind :class:`~vftsim.stats.DelayHistogram`.

Count, sum, sum of squares, minimum and maximum are exact, buckets those of :mod:`vftsim.stats.histogram`.  The sum of
squares passes 64 bits soon, so it is kept in two words: ``squares_high`` times 2**60 plus ``squares_low``.
"""

from typing import Annotated

import numpy as np

from vftsim.kernel import Engine, Failure, Record, Sim, Table, fail
from vftsim.kernel.columns import write_columns
from vftsim.platform.arithmetic import add_time
from vftsim.stats import DelayHistogram
from vftsim.stats.histogram import BUCKET_ENDS_NS

BUCKETS = len(BUCKET_ENDS_NS)
_ENDS_NS = np.array(BUCKET_ENDS_NS)
LONGEST_NS = 1 << 60
_HALF_BITS = 30
_HALF = (1 << _HALF_BITS) - 1
_WORD_BITS = 2 * _HALF_BITS
_WORD = (1 << _WORD_BITS) - 1
OUT_OF_RANGE = Failure("a delay is negative or longer than 36 years")


class Delays(Record):
    """One distribution of times in nanoseconds."""

    counted: int
    sum_ns: int
    squares_high: int
    squares_low: int
    min_ns: int
    max_ns: int
    buckets: Annotated[list[int], BUCKETS]


class BucketEnd(Record):
    """The largest value of a bucket."""

    end_ns: int


delays = Table("delays", Delays, 1 << 14, "simulate fewer phases")
bucket_ends = Table("bucket_ends", BucketEnd, BUCKETS, is_fixed=True)
"""Row by bucket, the first included: this table has no row for nobody."""


def install_buckets(engine: Engine) -> None:
    """Have the bounds of the buckets in an engine's table; whoever counts delays asks for them."""
    if int(engine.rows(bucket_ends)[BUCKETS - 1].end_ns) == 0:
        write_columns(engine, bucket_ends, {"end_ns": _ENDS_NS}, 0)


def add_delay(sim: Sim, row: int, value_ns: int) -> None:
    """Count one value."""
    if value_ns < 0 or value_ns > LONGEST_NS:
        fail(sim, OUT_OF_RANGE)
        return
    delay = delays(sim)[row]
    if delay.counted == 0 or value_ns < delay.min_ns:
        delay.min_ns = value_ns
    delay.max_ns = max(delay.max_ns, value_ns)
    delay.counted += 1
    delay.sum_ns = add_time(sim, delay.sum_ns, value_ns)
    delay.buckets[bucket_of(sim, value_ns)] += 1
    add_square(delay, value_ns)


def add_delay_since(sim: Sim, row: int, begin_ns: int, warmup_ns: int) -> None:
    """Count how long something took that ends now, unless it began before the end of the warm-up."""
    if begin_ns >= warmup_ns:
        add_delay(sim, row, sim.now_ns - begin_ns)


def add_square(delays: Delays, value_ns: int) -> None:
    """Add a square to the two words; the value is at most 2**60, so every product here is below 2**62."""
    high = value_ns >> _HALF_BITS
    low = value_ns & _HALF
    middle = 2 * high * low
    words = low * low + ((middle & _HALF) << _HALF_BITS) + delays.squares_low
    delays.squares_low = words & _WORD
    delays.squares_high += high * high + (middle >> _HALF_BITS) + (words >> _WORD_BITS)


def bucket_of(sim: Sim, value_ns: int) -> int:
    """Return the first bucket that does not end before a value."""
    ends = bucket_ends(sim)
    low = 0
    high = BUCKETS
    while low < high:
        middle = (low + high) // 2
        if ends[middle].end_ns < value_ns:
            low = middle + 1
        else:
            high = middle
    return low


def histogram(engine: Engine, row: int) -> DelayHistogram:
    """Return a distribution as the rest of the package knows it."""
    delay = engine.rows(delays)[row]
    buckets = np.asarray(delay.buckets)
    counts = [(int(bucket), int(buckets[bucket])) for bucket in np.flatnonzero(buckets)]
    return DelayHistogram.from_dict(
        {
            "count": int(delay.counted),
            "sum_ns": int(delay.sum_ns),
            "buckets": counts,
            "sum_squares_ns2": (int(delay.squares_high) << _WORD_BITS) + int(delay.squares_low),
            "min_ns": int(delay.min_ns),
            "max_ns": int(delay.max_ns),
        }
    )
