"""Delays counted in the kernel are those that the histogram of the package counts."""

import pytest

from vftsim.errors import RunFailure
from vftsim.kernel import Sim, entry, link
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.delays import LONGEST_NS, add_delay, delays, histogram, install_buckets
from vftsim.stats import DelayHistogram

VALUES = (
    (5,),
    (0, 1, 2, 3, 999, 1000, 1001),
    (7_000_000, 3, 10**9, 10**9, 12_345_678),
    tuple(int(1.01**k) for k in range(0, 2500, 7)),
)


@entry
def count(sim: Sim, row: int, value_ns: int) -> None:
    """Count a delay."""
    add_delay(sim, row, value_ns)


@pytest.mark.parametrize("values", VALUES, ids=len)
def test_the_same_values_give_the_same_histogram(values):
    engine = SimpyEngine(link([count], {}))
    install_buckets(engine)
    row, _ = engine.add(delays)
    expected = DelayHistogram()
    for value_ns in values:
        engine.call(count, row, value_ns)
        expected.add(value_ns)
    assert histogram(engine, row).to_dict() == expected.to_dict()
    assert histogram(engine, row).max == max(values)


def test_delays_that_add_up_to_more_than_64_bits_end_the_run():
    engine = SimpyEngine(link([count], {}))
    install_buckets(engine)
    row, _ = engine.add(delays)
    for _ in range(4):
        engine.call(count, row, LONGEST_NS)
    assert histogram(engine, row).to_dict()["sum_ns"] == 1 << 62
    with pytest.raises(RunFailure, match="more than 146 years; measure for less"):
        engine.call(count, row, 1)
