"""Rows that are filled from a spec by the names of their fields."""

import pytest

from vftsim.kernel import Record, Table, link
from vftsim.kernel.choose import make_engine
from vftsim.platform.rows import add_row
from vftsim.spec import ByteCount, DurationNs, Spec


class Stall(Record):
    row: int
    wait_ns: int
    size_bytes: int
    share: float
    is_open: bool
    served: int


class StallSpec(Spec):
    wait: DurationNs = 5
    size: ByteCount = 7
    share: float = 0.25
    is_open: bool = True
    kind: str = "stall"


class WrongSpec(Spec):
    served: float = 1.0


stalls = Table("stalls", Stall, 16)


@pytest.fixture
def engine():
    return make_engine(link([], {}, [], [stalls]), "simpy")


def test_a_field_has_the_value_of_the_parameter_of_its_name_with_or_without_a_unit(engine):
    stall = add_row(engine, stalls, StallSpec())
    assert (stall.row, stall.wait_ns, stall.size_bytes, stall.share) == (1, 5, 7, 0.25)
    assert (stall.is_open, stall.served) == (True, 0)


def test_what_is_given_by_name_counts_more(engine):
    add_row(engine, stalls)
    stall = add_row(engine, stalls, StallSpec(wait=9), wait_ns=3, served=2)
    assert (stall.row, stall.wait_ns, stall.size_bytes, stall.served) == (2, 3, 7, 2)


def test_a_parameter_of_another_type_is_refused_unless_its_value_is_given(engine):
    with pytest.raises(TypeError, match="served is int, but served of WrongSpec is float"):
        add_row(engine, stalls, WrongSpec())
    assert add_row(engine, stalls, WrongSpec(), served=4).served == 4
