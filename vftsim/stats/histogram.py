"""A delay histogram in bounded memory whose percentiles are right within 1 %.

The bucket rule is that of DDSketch (Masson, Rim and Lee, VLDB 2019): bucket widths grow in proportion
to the value, so every percentile has the same *relative* error.  Here the values are integer
nanoseconds and the bucket edges are built in integer arithmetic (the last value of a bucket is at
most 101/99 of its first, and values below 50 ns have a bucket each), so a value falls into the same bucket
on every machine.  2,017 buckets reach from 0 to 2**63 - 1 ns; only those in use take memory.

Count, sum, sum of squares, minimum and maximum are exact integers: mean and standard deviation
carry no error of the sketch, and merging gives the same result in any order.

Left out: negative values (a delay has none) and the collapsing of buckets (not needed in this range).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, Self

RELATIVE_ERROR = 0.01
LARGEST_NS = 2**63 - 1


def _bucket_ends_ns() -> tuple[int, ...]:
    ends = [0]
    while ends[-1] < LARGEST_NS:
        first = ends[-1] + 1
        ends.append(min(first * 101 // 99, LARGEST_NS))
    return tuple(ends)


BUCKET_ENDS_NS = _bucket_ends_ns()
"""Largest value of each bucket; bucket *k* holds ``BUCKET_ENDS_NS[k-1] + 1 .. BUCKET_ENDS_NS[k]``."""


class DelayHistogram:
    """Distribution of integer times in nanoseconds."""

    __slots__ = ("_buckets", "_max_ns", "_min_ns", "_sum_ns", "_sum_squares_ns2")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._sum_ns = 0
        self._sum_squares_ns2 = 0
        self._min_ns = LARGEST_NS + 1
        self._max_ns = -1

    def add(self, value_ns: int) -> None:
        # A value out of range breaks a record too: the common path makes one comparison.
        if not self._min_ns <= value_ns <= self._max_ns:
            self._extend(value_ns)
        index = bisect_left(BUCKET_ENDS_NS, value_ns)
        buckets = self._buckets
        buckets[index] = buckets.get(index, 0) + 1
        self._sum_ns += value_ns
        self._sum_squares_ns2 += value_ns * value_ns

    @classmethod
    def together(cls, parts: Iterable[Self]) -> Self:
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    def merge(self, other: Self) -> None:
        for index, count in other._buckets.items():
            self._buckets[index] = self._buckets.get(index, 0) + count
        self._sum_ns += other._sum_ns
        self._sum_squares_ns2 += other._sum_squares_ns2
        self._min_ns = min(self._min_ns, other._min_ns)
        self._max_ns = max(self._max_ns, other._max_ns)

    @property
    def count(self) -> int:
        return sum(self._buckets.values())

    @property
    def min(self) -> int:
        """Smallest value, exact."""
        self._need(1)
        return self._min_ns

    @property
    def max(self) -> int:
        """Largest value, exact."""
        self._need(1)
        return self._max_ns

    @property
    def mean(self) -> float:
        """Mean, exact up to its conversion to a float."""
        self._need(1)
        return self._sum_ns / self.count

    @property
    def sd(self) -> float:
        """Standard deviation with divisor n - 1, exact up to its conversion to a float."""
        self._need(2)
        n = self.count
        return math.sqrt((n * self._sum_squares_ns2 - self._sum_ns**2) / (n * (n - 1)))

    def percentile(self, percent: float) -> float:
        """Return the smallest value with at least ``percent`` % of all values at or below it, within 1 %."""
        self._need(1)
        count = self.count
        rank = _rank(percent, count)
        if rank == count:
            return float(self._max_ns)
        cumulative = 0
        for index in sorted(self._buckets):
            cumulative += self._buckets[index]
            if cumulative >= rank:
                return min(max(_representative_ns(index), self._min_ns), self._max_ns)
        raise AssertionError("bucket counts do not add up to the count")

    def samples_beyond(self, percent: float) -> int:
        """Return how many values lie beyond the percentile: a tail figure should rest on 10 or more."""
        count = self.count
        return count - _rank(percent, count) if count else 0

    def count_beyond(self, value_ns: float) -> int:
        """Return how many values lie in buckets above that of ``value_ns``."""
        last = bisect_left(BUCKET_ENDS_NS, value_ns)
        return sum(count for index, count in self._buckets.items() if index > last)

    def to_dict(self) -> dict[str, Any]:
        """Return the histogram as plain integers and lists, equal for equal histograms."""
        return {
            "count": self.count,
            "sum_ns": self._sum_ns,
            "sum_squares_ns2": self._sum_squares_ns2,
            "min_ns": self._min_ns if self._buckets else None,
            "max_ns": self._max_ns if self._buckets else None,
            "buckets": [[index, self._buckets[index]] for index in sorted(self._buckets)],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what :meth:`to_dict` wrote."""
        result = cls()
        result._buckets = {int(index): int(count) for index, count in data["buckets"]}
        if result.count != data["count"]:
            raise ValueError("bucket counts do not add up to the count")
        result._sum_ns = int(data["sum_ns"])
        result._sum_squares_ns2 = int(data["sum_squares_ns2"])
        if result._buckets:
            result._min_ns, result._max_ns = int(data["min_ns"]), int(data["max_ns"])
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DelayHistogram) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"DelayHistogram(count={self.count}, buckets={len(self._buckets)})"

    def _extend(self, value_ns: int) -> None:
        if not 0 <= value_ns <= LARGEST_NS:
            raise ValueError(f"a delay of {value_ns} ns is outside 0 .. 2**63 - 1")
        self._min_ns = min(self._min_ns, value_ns)
        self._max_ns = max(self._max_ns, value_ns)

    def _need(self, count: int) -> None:
        if self.count < count:
            raise ValueError(f"needs at least {count} value(s), has {self.count}")


def _rank(percent: float, count: int) -> int:
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"a percentile lies between 0 and 100, got {percent}")
    # In this order of operations: 99.9 / 100 * 1,000 can round to just above 999 and so to the next rank.
    return max(math.ceil(percent * count / 100.0), 1)


def _representative_ns(index: int) -> float:
    """Return the point whose relative distance from both ends of the bucket is the same."""
    if index == 0:
        return 0.0
    first, last = BUCKET_ENDS_NS[index - 1] + 1, BUCKET_ENDS_NS[index]
    return 2 * first * last / (first + last)
