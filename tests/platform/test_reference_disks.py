"""Disks against the same rules written a second time, for random requests: every answer, and what was counted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.platform.reference_disks import FLUSH, READ, WRITE, Array, Cache, Disk, Local
from tests.platform.test_disks import DiskLab
from tests.reference_clock import MS, S

SIZES = {READ: 0, WRITE: 1000, FLUSH: 0}
"""As the lab asks."""


def pair(draw: random.Random, service_ns: int) -> tuple[DiskLab, Disk]:
    """Return a disk of the package and of the reference, with the same parameters."""
    kind = draw.choice(["through", "buffered", "buffered", "buffered", "array", "hit"])
    if kind in ("array", "hit"):
        disks, hit_ns = draw.randint(1, 4), draw.randrange(MS)
        hits = {"hits": 100.0, "hit_time": hit_ns} if kind == "hit" else {}
        return DiskLab(disks=disks, service=service_ns, **hits), Array(service_ns, disks, hit_ns if hits else None)
    rate = draw.choice([8 * 10**13, 4_000_003, 1_000_000])
    if kind == "through":
        return DiskLab(service=service_ns, rate=rate), Local(service_ns, rate)
    cache = Cache(draw.choice([30, 300, 2000]) * MS + draw.randrange(MS), draw.choice([3, 20, 1000]) * 1000)
    values: dict[str, Any] = {"flush_period": cache.flush_ns, "dirty_limit": cache.limit, "writes": "buffered"}
    return DiskLab(service=service_ns, rate=rate, **values), Local(service_ns, rate, cache)


def asked(draw: random.Random, service_ns: int, until_ns: int) -> list[tuple[int, int]]:
    """Return requests at a load from idle to twice what one disk serves, in heaps or one by one."""
    gap_ns = service_ns * draw.choice([0.5, 1, 2, 10])
    weights = draw.choice([(7, 3, 0), (3, 7, 0.3), (1, 8, 1), (0, 1, 0.05)])
    time_ns, found = 0, []
    while len(found) < 400 and time_ns < until_ns:
        time_ns += draw.choice([0, int(draw.expovariate(1 / gap_ns)), int(draw.expovariate(1 / gap_ns))]) + 1
        found.append((time_ns, draw.choices([READ, WRITE, FLUSH], weights)[0]))
    return found


def check(number: int) -> int:
    """Compare one disk; return how many requests were answered."""
    draw = random.Random(f"disk-{number}")
    service_ns = draw.randrange(MS, 9 * MS)
    lab, disk = pair(draw, service_ns)
    requests = asked(draw, service_ns, 4 * S)
    lab.asking(*requests).run(100 * S)
    disk.ask([(time_ns, what, SIZES[what]) for time_ns, what in requests]).clock.run(100 * S)
    found = [(round(time_ms * MS), tag) for time_ms, tag in lab.answered()]
    first = next((n for n, both in enumerate(zip(found, disk.answered, strict=False)) if both[0] != both[1]), -1)
    assert found == disk.answered, f"{number}, answer {first}: {disk.answered[first:][:3]}, found {found[first:][:3]}"
    use = lab.use()
    assert vars(disk.counted) == {name: getattr(use, name) for name in vars(disk.counted)}
    return len(found)


@pytest.mark.parametrize("numbers", [range(20), pytest.param(range(20, 120), marks=pytest.mark.slow)])
def test_every_answer_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 100 * len(numbers)
