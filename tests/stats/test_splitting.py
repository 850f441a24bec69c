"""Splitting: unbiased on a walk whose chance is known, by levels of its own or a pilot's, and worth its while."""

import random

import numpy as np
import pytest

from vftsim.errors import UsageError
from vftsim.stats.splitting import find_levels, split

STEPS, UP = 40, 0.3


class Walk:
    """A walk on 0, 1, 2, ... of so many steps, up with one chance and else down; each branch draws for itself."""

    def __init__(self, seed):
        self.seed, self.place, self.events, self.highest = seed, 0, 0, 0

    def state(self):
        return _Kept(self)

    def go_on(self, branch, limit):
        draw = random.Random(f"{self.seed} {branch}")
        self.highest = self.place
        while self.events < STEPS and self.place < limit:
            self.place = max(0, self.place + (1 if draw.random() < UP else -1))
            self.highest = max(self.highest, self.place)
            self.events += 1
        return self.place >= limit


class _Kept:
    def __init__(self, walk):
        self.walk, self.content = walk, (walk.place, walk.events)

    def put_back(self):
        self.walk.place, self.walk.events = self.content


def exact(limit):
    """Return the chance that the walk reaches a limit, by its distribution over all places."""
    chance = np.zeros(limit + 1)
    chance[0] = 1.0
    for _ in range(STEPS):
        after = np.zeros_like(chance)
        after[limit] = chance[limit]
        for place in range(limit):
            after[place + 1] += UP * chance[place]
            after[max(0, place - 1)] += (1 - UP) * chance[place]
        chance = after
    return chance[limit]


@pytest.mark.parametrize("levels", [(14,), (3, 14), (2, 4, 6, 8, 10, 12, 14)])
def test_the_mean_of_repetitions_is_the_probability(levels):
    limit = levels[-1] if len(levels) > 2 else 5
    levels = (*levels[:-1], limit)
    found = [split(Walk(n), levels, 30, np.random.default_rng(n)).probability(len(levels)) for n in range(200)]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - exact(limit)) < 4 * error
    assert error < 0.2 * exact(limit)


def test_a_pilots_levels_are_a_fifth_apart_and_a_repetition_of_them_costs_little():
    pilot = find_levels(Walk("pilot"), 16, 500, np.random.default_rng(1))
    assert pilot.levels[-1] == 16
    assert list(pilot.levels) == sorted(set(pilot.levels))
    found = [split(Walk(n), pilot.levels, 200, np.random.default_rng(n)) for n in range(20)]
    values = [each.probability(len(pilot.levels)) for each in found]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - exact(16)) < 4 * error
    by_brute_force = exact(16) / error**2 * STEPS
    assert pilot.run_events == pytest.approx(STEPS, rel=0.02)
    assert sum(each.events for each in found) + pilot.events < by_brute_force / 100


def test_what_never_happens_is_said_by_the_pilot_and_estimated_as_0():
    assert split(Walk(0), (STEPS + 1,), 10, np.random.default_rng(0)).probability(1) == 0.0
    with pytest.raises(UsageError, match=r"none of \d+ trials came beyond level"):
        find_levels(Walk(0), STEPS + 1, 4, np.random.default_rng(0))
