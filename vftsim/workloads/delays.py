"""A distribution of delays as a record: the buckets of :mod:`vftsim.stats.histogram`, filled while a model runs.

Sums are kept in two words, as 64 bits do not hold them: a word below 2**62, and how often it has been passed.
"""

from typing import Annotated, Any

import numpy as np

from vftsim.kernel import Engine, Record, Sim, Table, part
from vftsim.stats.histogram import BUCKET_ENDS_NS, DelayHistogram

BUCKETS = len(BUCKET_ENDS_NS)
WORD = 1 << 62
HALF = 1 << 31
LARGEST_NS = WORD - 1


class BucketEnds(Record):
    """The largest value of each bucket."""

    ends_ns: Annotated[list[int], BUCKETS]


class Delays(Record):
    """A distribution of times from 0 to 2**62 - 1 ns."""

    number: int
    sum_low: int
    sum_high: int
    squares_low: int
    squares_high: int
    min_ns: int
    max_ns: int
    buckets: Annotated[list[int], BUCKETS]


bucket_ends = Table("flow_bucket_ends", BucketEnds, 2, is_fixed=True)


@part
def bucket_of(sim: Sim, value_ns: int) -> int:
    """Return the first bucket whose end is not below the value."""
    ends_ns = bucket_ends(sim)[1].ends_ns
    low = 0
    high = BUCKETS - 1
    while low < high:
        middle = (low + high) // 2
        if ends_ns[middle] < value_ns:
            low = middle + 1
        else:
            high = middle
    return low


@part
def add_square(delays: Delays, value_ns: int) -> None:
    """Add the square of a value below 2**62 to the sum of squares.

    With value = a * 2**31 + b, all products of a and b are below 2**62.
    """
    a = value_ns // HALF
    b = value_ns % HALF
    low = delays.squares_low + b * b
    # 2 a b 2**31 = (a b) 2**32; of a product, what passes 2**62 is its upper part from bit 30 on.
    product = a * b
    delays.squares_high += a * a + low // WORD + product // (1 << 30)
    low = low % WORD + product % (1 << 30) * (1 << 32)
    delays.squares_high += low // WORD
    delays.squares_low = low % WORD


@part
def add_delay(sim: Sim, delays: Delays, value_ns: int) -> None:
    """Count one value."""
    if delays.number == 0 or value_ns < delays.min_ns:
        delays.min_ns = value_ns
    delays.max_ns = max(delays.max_ns, value_ns)
    delays.number += 1
    total = delays.sum_low + value_ns
    delays.sum_high += total // WORD
    delays.sum_low = total % WORD
    add_square(delays, value_ns)
    delays.buckets[bucket_of(sim, value_ns)] += 1


def write_bucket_ends(engine: Engine) -> None:
    """Set up what :func:`add_delay` needs."""
    engine.rows(bucket_ends)[1].ends_ns[:] = BUCKET_ENDS_NS


def histogram(delays: Any) -> DelayHistogram:
    """Return a record's distribution."""
    counts = np.asarray(delays.buckets, np.int64)
    return DelayHistogram.from_dict({
        "count": int(delays.number),
        "sum_ns": int(delays.sum_high) * WORD + int(delays.sum_low),
        "sum_squares_ns2": int(delays.squares_high) * WORD + int(delays.squares_low),
        "min_ns": int(delays.min_ns),
        "max_ns": int(delays.max_ns),
        "buckets": [[bucket, int(counts[bucket])] for bucket in np.flatnonzero(counts).tolist()],
    })  # fmt: skip
