"""Services that ask copies of others against the same rules written a second time: every request, to the nanosecond."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.composition.composed import checked
from tests.reference_clock import MS, S
from tests.workloads.listening import listen
from tests.workloads.reference_services import Entry, Setting, Test
from vftsim.composition.run import Run, run_model
from vftsim.workloads import request_response as requests


def entry(draw: random.Random) -> Entry:
    """Return calls of which no two time out at one instant: no rule says which of them goes first."""
    timeout_ns = draw.choice([0, 20 * MS, 100 * MS, S])
    is_parallel = draw.random() < 0.5
    return Entry(
        count=1 if timeout_ns and is_parallel else draw.choice([1, 1, 2, 4]),
        is_parallel=is_parallel,
        cost_ns=draw.choice([0, 0, draw.randrange(MS)]),
        size=draw.randrange(64, 1500),
        timeout_ns=timeout_ns and timeout_ns + draw.randrange(MS),
        retries=draw.choice([0, 1, 2]),
        max_fails=draw.choice([0, 1, 1, 3]),
        fail_timeout_ns=draw.choice([50 * MS, S, 10 * S]),
    )


def setting(draw: random.Random) -> Setting:
    return Setting(
        threads=draw.choice([1, 4, 30]),
        demand_ns=draw.randrange(5 * MS),
        entries=[entry(draw) for _ in range(draw.choice([1, 1, 2, 3]))],
        back_ns=[draw.randrange(5 * MS)] * draw.choice([1, 2, 3]),
        back_threads=draw.choice([1, 5]),
        back_backlog=draw.choice([0, 3, 1024]),
        rate=draw.choice([10_000_000, S]),
        latency_ns=(draw.randrange(1, MS), draw.randrange(1, 9 * MS)),
    )


def model(found: Setting, rate: float) -> dict[str, Any]:
    """Return it as a model file has it."""
    calls = [
        {
            "to": "back", "via": "wan", "count": each.count, "when": "parallel" if each.is_parallel else "sequential",
            "cost": each.cost_ns, "size": each.size, "timeout": each.timeout_ns, "retries": each.retries,
            "max_fails": each.max_fails, "fail_timeout": each.fail_timeout_ns,
        }
        for each in found.entries
    ]  # fmt: skip
    wire = {"rate": found.rate, "queue": "64 MiB", "initial_window": 0}
    card = {"kind": "moderated"}
    front = {"kind": "service", "threads": found.threads, "demand": found.demand_ns, "calls": calls}
    back = {
        "kind": "service", "threads": found.back_threads, "demand": found.back_ns[0], "backlog": found.back_backlog,
    }  # fmt: skip
    return {
        "hosts": {"front": {}, "back": {"pcpus": len(found.back_ns)}},
        "networks": {
            "lan": wire | {"latency": found.latency_ns[0]}, "wan": wire | {"latency": found.latency_ns[1]},
        },
        "domains": {
            "front": {
                "host": "front",
                "interfaces": {"eth0": {"network": "lan", "path": card}, "eth1": {"network": "wan", "path": card}},
                "applications": {"shop": front},
            },
            "back": {
                "host": "back", "count": len(found.back_ns),
                "interfaces": {"eth0": {"network": "wan", "path": card}}, "applications": {"base": back},
            },
        },
        "workloads": {
            "load": {"kind": "open_requests", "to": "front", "rate": rate, "timeout": "1000 s", "retries": 0}
        },
        "measure": {"warm_up": 0, "duration": "1 s"},
    }  # fmt: skip


class Listener:
    """``begun`` has clients and when they asked, ``ended`` what became of them."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.ended: list[list[int]] = []

    def __call__(self, run: Run) -> None:
        self.run = run
        engine: Any = run.engine
        listen(engine, requests.begin_request, self.note_begin)
        listen(engine, requests.end_request, self.note_end)

    def note_begin(self, _sim: Any, _exchange: Any, client: Any) -> None:
        self.begun.append((client.row, self.run.engine.now_ns))

    def note_end(self, _sim: Any, _exchange: Any, client: Any) -> None:
        self.ended.append([client.sent_ns, self.run.engine.now_ns])


def check(number: int) -> int:
    """Compare one load; return how many requests were over."""
    draw = random.Random(f"services-{number}")
    found = setting(draw)
    calls = sum(each.count for each in found.entries)
    front_ns = found.demand_ns + sum(each.cost_ns * each.count for each in found.entries)
    busy_ns = max(front_ns, calls * found.back_ns[0] / len(found.back_ns), MS / 10)
    listener = Listener()
    spec = checked(model(found, draw.choice([0.2, 0.7, 1.3]) * S / busy_ns))
    record = run_model(spec, number, 0, "simpy", prepare=listener)
    test = Test(found, listener.begun).run(S)
    ended, expected = sorted(listener.ended), sorted(times_ns for *times_ns, _ in test.ended)
    first = next((n for n, pair in enumerate(zip(ended, expected, strict=False)) if pair[0] != pair[1]), -1)
    assert ended == expected, f"{number}, request {first}: {expected[first:][:1]}, found {ended[first:][:1]}"
    failed = record.whole.outcomes["workloads.load"].errors
    assert failed == sum(has_failed for *_, has_failed in test.ended)
    return len(ended)


@pytest.mark.parametrize("numbers", [range(5), pytest.param(range(5, 105), marks=pytest.mark.slow)])
def test_every_request_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 20 * len(numbers)
