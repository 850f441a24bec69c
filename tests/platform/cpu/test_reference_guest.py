"""Process schedulers of a guest against the same rules written a second time, for random work: every end of a job."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.platform.cpu.guest_lab import GuestLab, on_begin
from tests.platform.cpu.reference_guest import O1, WEIGHTS, Cfs, Eevdf, Guest, Job, Rules
from tests.reference_clock import MS
from vftsim.platform.cpu.guest_parameters import guest_schedulers

KINDS = ("o1", "cfs", "eevdf")


def pair(draw: random.Random, kind: str) -> tuple[Any, Rules]:
    """Return a scheduler of the package and of the reference, with the same parameters."""
    spec = guest_schedulers()[kind]
    if kind == "o1":
        slice_ns = draw.choice([100, 100, 40]) * MS
        return spec(time_slice=slice_ns), O1(slice_ns)
    if kind == "cfs":
        latency_ns, granularity_ns, wakeup_ns = draw.choice(
            [(6 * MS, 750_000, MS), (20 * MS, 4 * MS, 5 * MS), (6 * MS, 2 * MS, 0)]
        )
        values = {"latency": latency_ns, "granularity": granularity_ns, "wakeup_granularity": wakeup_ns}
        return spec(**values), Cfs(latency_ns, granularity_ns, wakeup_ns)
    slice_ns, to_parity = draw.choice([750_000, 3 * MS]), draw.random() < 0.7
    return spec(slice=slice_ns, run_to_parity=to_parity), Eevdf(slice_ns, to_parity)


def work(draw: random.Random, tasks: list[Any], until_ms: int) -> list[tuple[int, Job]]:
    """Return when which jobs come, each with those that begin one after the other at its end."""
    count, load = draw.choice([10, 60, 200]), draw.choice([0.3, 0.9, 1.5])
    coming = []
    for _ in range(count):
        then = None
        for _ in range(draw.choice([1, 1, 2, 4])):
            demand_ns = round(draw.expovariate(2 * count / (load * until_ms)) * MS) + 1
            then = Job(draw.choice(tasks), demand_ns, then)
        coming.append((draw.randrange(1, until_ms * MS), then))
    if draw.random() < 0.5:
        coming.append((draw.randrange(1, until_ms * MS), Job(tasks[0], until_ms * MS // 2)))
    return sorted(coming, key=lambda each: each[0])


def add(lab: GuestLab, job: Job | None) -> int:
    """Add a job of the reference to the package's guest; return its row."""
    return 0 if job is None else lab.job(str(job.task.number), job.left_ns / MS, then=add(lab, job.then))


def check(kind: str, number: int) -> int:
    """Compare one guest; return how many jobs ended."""
    draw = random.Random(f"{kind}-{number}")
    spec, rules = pair(draw, kind)
    nices = [draw.choice([0, 0, 0, draw.choice([*WEIGHTS])]) for _ in range(draw.randint(2, 6))]
    lab, guest = GuestLab(spec), Guest(rules, nices)
    for task in guest.tasks:
        lab.process(str(task.number), task.nice)
    coming = work(draw, guest.tasks, draw.choice([300, 3000, 12_000]))
    for time_ns, job in coming:
        lab.at(time_ns / MS, on_begin, add(lab, job))
    expected = guest.run(coming)
    found = [(round(time_ms * MS), int(name)) for time_ms, name in lab.run(10**6)]
    first = next((n for n, both in enumerate(zip(found, expected, strict=False)) if both[0] != both[1]), -1)
    assert found == expected, f"{kind} {number}, end {first}: {expected[first:][:1]}, found {found[first:][:1]}"
    return len(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [range(5), pytest.param(range(5, 105), marks=pytest.mark.slow)])
def test_every_end_is_that_of_the_rules_written_a_second_time(kind: str, numbers: range):
    assert sum(check(kind, number) for number in numbers) > 10 * len(numbers)
