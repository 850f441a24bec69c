"""Where two curves cross: lines by hand, closed forms of two mechanisms, orders that are not certain."""

import math
from random import Random

import pytest

from vftsim.spec.units import numbers_of
from vftsim.study.designs.crossovers import crossovers, needed_to_tell

W, TOUCHED, FIXED_S, PAGE_S, ROUND_TRIP_S = 2000, 10_000.0, 0.5e-3, 2e-6, 0.15e-3


def once(values):
    """Replications that have no noise."""
    return [[value, value] for value in values]


def test_two_lines_cross_where_they_are_equal():
    places = [0.0, 1.0, 2.0, 3.0]
    (found,) = crossovers(places, once(places), once([1.25] * 4))
    assert (found.low, found.high, found.first_is_lower_before) == (1.0, 2.0, True)
    assert found.at.mean == 1.25


def test_every_replication_has_its_own_zero():
    """Lines x and c cross at c: zeros 1.2, 1.3, 1.7, whose mean is 1.4."""
    places = [0.0, 1.0, 3.0]
    levels = [1.2, 1.3, 1.7]
    (found,) = crossovers(places, [[x] * 3 for x in places], [levels] * 3)
    assert found.at.mean == pytest.approx(1.4)
    assert (found.at.low, found.at.high, found.at.n) == (1.2, 1.7, 3)


def test_an_order_that_replications_disagree_about_widens_the_bracket():
    first = [[0.0, 0.0], [1.0, 3.0], [4.0, 4.0]]
    (found,) = crossovers([0.0, 1.0, 2.0], first, [[2.0, 2.0]] * 3)
    assert (found.low, found.high) == (0.0, 2.0)
    assert found.at.mean == pytest.approx(((1.0 + 1.0 / 3.0) + 2.0 / 3.0) / 2.0)


def test_no_certain_change_is_no_crossover():
    assert crossovers([0.0, 1.0], [[0.0, 0.0], [1.0, 3.0]], [[2.0, 2.0]] * 2) == []
    assert crossovers([0.0, 1.0], once([1.0, 2.0]), once([1.0, 1.0])) == []
    assert crossovers([0.0, 1.0, 2.0], once([0.0, math.nan, 1.0]), once([2.0] * 3)) == []


def test_curves_that_are_equal_at_a_point_cross_there():
    (found,) = crossovers([0.0, 1.0, 2.0], once([0.0, 1.0, 2.0]), once([1.0] * 3))
    assert (found.low, found.high, found.at.mean) == (0.0, 2.0, 1.0)


@pytest.mark.parametrize(("replications", "spread"), [(12, 0.5), (30, 2.0)])
def test_the_interval_of_a_known_crossing_holds_it(replications, spread):
    """Lines that part by 1 from place to place, under normal noise: each replication's own cross up to five times."""
    random, places, truth = Random(3), [float(n) for n in range(11)], 4.37
    zeros = [[0.0] * replications] * len(places)
    found = []
    for _ in range(40):
        noisy = [[x - truth + random.gauss(0.0, spread) for _ in range(replications)] for x in places]
        found += crossovers(places, noisy, zeros)
    assert len(found) >= 38, "more replications find a crossing more often"
    assert sum(each.low <= truth <= each.high for each in found) >= len(found) - 1
    assert sum(each.at.low <= truth <= each.at.high for each in found) >= 0.9 * len(found)
    assert sum(each.at.mean for each in found) / len(found) == pytest.approx(truth, abs=0.25)
    assert all(each.low <= each.at.low <= each.at.mean <= each.at.high <= each.high for each in found)


@pytest.mark.parametrize("replications", [1, 2, 3, 5])
@pytest.mark.parametrize("noise", [lambda random: random.gauss(0.0, 1.0), lambda random: random.expovariate(1.0)])
def test_equal_curves_cross_by_chance_in_few_studies_of_few_replications(replications, noise):
    """Where all replications agree on an order: 96, 69, 27 and 6 of 100 such studies had a crossover."""
    random, places = Random(replications), [float(n) for n in range(6)]
    claimed = 0
    for _ in range(200):
        first, second = ([[noise(random) for _ in range(replications)] for _ in places] for _ in range(2))
        claimed += bool(crossovers(places, first, second))
    assert claimed <= 0.05 * 200


def test_what_three_replications_make_certain_holds():
    """Lines that part by three standard deviations from place to place; where noise hides the order none is told."""
    random, places, truth = Random(5), [float(n) for n in range(6)], 2.37
    found = []
    for _ in range(200):
        noisy = [[3.0 * (x - truth) + random.gauss(0.0, 1.0) for _ in range(3)] for x in places]
        found += crossovers(places, noisy, [[0.0] * 3] * 6)
    assert len(found) >= 120
    assert sum(each.low <= truth <= each.high for each in found) >= 0.98 * len(found)


def test_so_many_replications_as_are_said_tell_an_order():
    """Differences -1 and 1, standard deviation 1: t (0.9875) / sqrt(n) is 1.005 of eight and 0.917 of nine."""
    zeros = [[0.0] * 2] * 2
    apart = math.sqrt(0.5)
    open_order = [[-1.0 - apart, -1.0 + apart], [1.0 - apart, 1.0 + apart]]
    assert crossovers([0.0, 1.0], open_order, zeros) == []
    assert needed_to_tell(open_order, zeros) == 9
    assert needed_to_tell([[-0.01 - apart, -0.01 + apart], *open_order[1:]], zeros) == math.inf
    assert needed_to_tell([[-1.0, -1.0], [1.0, 1.0]], zeros) == 0, "it is told already"
    assert needed_to_tell([[-1.0, 0.5], [-1.0, 0.5]], zeros) == 0, "the means have one order"
    assert needed_to_tell([[-1.0], [1.0]], [[0.0]] * 2) == 10, "one replication knows no spread"


def test_curves_cross_as_often_as_they_do():
    places = [0.1 * n for n in range(60)]
    found = crossovers(places, once([math.sin(x) for x in places]), once([0.0] * 60))
    assert [each.at.mean for each in found] == pytest.approx([math.pi], rel=1e-3)
    found = crossovers(places, once([math.cos(x) for x in places]), once([0.0] * 60))
    assert [each.at.mean for each in found] == pytest.approx([math.pi / 2, 3 * math.pi / 2], rel=1e-3)
    assert [each.first_is_lower_before for each in found] == [False, True]


def synchronizing(rate, fixed_s=FIXED_S, wire_bits_per_s=1e9, round_trip_s=ROUND_TRIP_S):
    """Time that Kemari stops a guest at Poisson events, by time that it runs."""
    pages = TOUCHED * W / (TOUCHED + rate * W)
    return rate * (fixed_s + (65536 * 8 + pages * 4104 * 8) / wire_bits_per_s + round_trip_s)


def checkpointing(interval_s, fixed_s=FIXED_S):
    """The same of Remus, at its steady state."""
    run_s = interval_s
    for _ in range(100):
        run_s = interval_s - fixed_s - PAGE_S * W * -math.expm1(-TOUCHED * run_s / W)
    return interval_s / run_s - 1.0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, 0.671), ({"fixed_s": 0.1e-3, "wire_bits_per_s": 1e10, "round_trip_s": 90e-6}, 8.66)],
)
def test_events_a_second_at_which_kemari_costs_as_much_as_remus(fields, expected):
    """Set A, and the same with a card of 10 Gbit/s and a quick suspension."""
    places = [expected * (0.55 + 0.1 * n) for n in range(10)]
    level = checkpointing(0.025, fields.get("fixed_s", FIXED_S))
    (found,) = crossovers(places, once([synchronizing(v, **fields) for v in places]), once([level] * 10))
    assert found.at.mean == pytest.approx(expected, rel=0.005)
    assert found.first_is_lower_before


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (("1", "2.5"), ([1.0, 2.5], "")),
        (("10 ms", "25 ms"), ([10.0, 25.0], "ms")),
        (("10 ms", "1 s"), ([1e7, 1e9], "ns")),
        (("100 Mbit/s", "1 Gbit/s"), ([1e8, 1e9], "bit/s")),
        (("5 /s", "1e1 /s"), ([5.0, 10.0], "/s")),
        (("5 /s", "600 /min"), ([5.0, 10.0], "/s")),
        (("a", "b"), None),
        (("10 ms", "1 Gbit/s"), None),
        (("[0,1]", "[2,3]"), None),
    ],
)
def test_axes_that_have_numbers(values, found):
    assert numbers_of(values) == found
