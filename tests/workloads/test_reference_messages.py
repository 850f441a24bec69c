"""Messages in windows against their rules written a second time, on random lines: every answer, to the nanosecond."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference_clock import MS, S
from tests.workloads import lab
from tests.workloads.listening import listen, lose
from tests.workloads.reference_messages import FRAME, Setting, Test
from vftsim.platform.io.packet import ports
from vftsim.workloads import request_response as requests
from vftsim.workloads.service.application import ServiceSpec

PARTS = (ServiceSpec, requests.RequestResponseSpec, requests.OpenRequestsSpec)


class Listened(lab.Lab):
    """The package's; ``begun`` has clients and when they asked, ``ended`` when what was answered began and ended."""

    def __init__(self, setting: Setting, queue: int, load: Any) -> None:
        super().__init__(lab.linked(*PARTS), "simpy", latency_ns=setting.latency_ns, rate=setting.rate, queue=queue)
        self.engine.rows(ports)[self.port].first_window_bytes = setting.initial_window * FRAME
        self.run_program(
            ServiceSpec(demand=setting.demand_ns, answer_size=setting.answer, backlog=setting.backlog, threads=1)
        )
        lose(self, setting.lost)
        self.clients = self.add_clients(load)
        self.begun: list[tuple[int, int]] = []
        self.ended: list[tuple[int, int]] = []
        listen(self.engine, requests.begin_request, self.note_begin)
        listen(self.engine, requests.add_delay_since, self.note_end)
        self.start()
        self.clients.begin()

    def note_begin(self, _sim: Any, _exchange: Any, client: Any) -> None:
        self.begun.append((client.row, self.engine.now_ns))

    def note_end(self, _sim: Any, histogram: int, since_ns: int, *_: Any) -> None:
        if histogram == int(self.clients.record.latency):
            self.ended.append((since_ns, self.engine.now_ns))


def setting(draw: random.Random) -> Setting:
    sizes = [draw.randrange(64, draw.choice([20_000, 400_000, 1 << 20])) for _ in range(2)]
    share = draw.choice([0, 0, 0.01, 0.05, 0.2])
    there, back = ([n for n in range(10_000) if draw.random() < share] for _ in range(2))
    return Setting(
        rate=draw.choice([10_000_000, 100_000_000, S, 3 * S, 10 * S]),
        latency_ns=draw.choice([0, 50_000, 2 * MS, 50 * MS]) + draw.randrange(1, 1000),
        initial_window=draw.choice([0, 1, 3, 10, 10, 10]),
        request=sizes[0],
        answer=sizes[1],
        demand_ns=draw.randrange(1, 3 * MS),
        backlog=draw.choice([1, 1000]),
        retry_ns=draw.choice([0, 50 * MS, 200 * MS, 1000 * MS]),
        turn_around_ns=draw.choice([10_000, 30 * MS, 150 * MS, 150 * MS, 300 * MS]) + draw.randrange(1000),
        lost=(there, back),
    )


def closed_load(draw: random.Random, found: Setting) -> Any:
    return requests.RequestResponseSpec(
        clients=draw.choice([1, 1, 3]), request_size=found.request, turn_around=found.turn_around_ns,
        retry=found.retry_ns, spread=100_000,
    )  # fmt: skip


def open_load(draw: random.Random, found: Setting, request_s: float) -> Any:
    # Where windows of both ways come at one instant, as acknowledgements take no time, no rule says which goes first.
    found.answer = min(found.answer, (found.initial_window or 10) * FRAME)
    found.retries, found.retry_ns = draw.choice([0, 2]), found.retry_ns or 100 * MS
    return requests.OpenRequestsSpec(
        rate=draw.choice([0.2, 0.6, 1.2]) / request_s, request_size=found.request, timeout=found.retry_ns,
        retries=found.retries,
    )  # fmt: skip


def check(number: int) -> int:
    """Compare one line; return how many answers came."""
    draw = random.Random(f"messages-{number}")
    found, is_closed = setting(draw), draw.random() < 0.6
    request_s = max(found.request, found.answer) * 8 / found.rate + found.demand_ns / S
    load = closed_load(draw, found) if is_closed else open_load(draw, found, request_s)
    # With losses everything leaves at once: when a message is lost that waits at its sender, no rule says.
    queue = 1 << 24 if found.lost[0] else draw.choice([20_000, 256 * 1024, 3_000_000])
    # When a connection whose request waits at its client is idle is a simplification.
    queue = max(queue, 3 * found.request + 3 * FRAME) if is_closed else queue
    until_ns = min(5 * S, int(100 * request_s * S))
    package = Listened(found, queue, load)
    package.run(until_ns)
    begun = package.begun[: load.clients] if is_closed else package.begun
    ended, expected = sorted(package.ended), sorted(Test(found, begun).run(until_ns).ended)
    first = next((n for n, pair in enumerate(zip(ended, expected, strict=False)) if pair[0] != pair[1]), -1)
    assert ended == expected, f"{number}, answer {first}: {expected[first:][:1]}, found {ended[first:][:1]}"
    return len(ended)


@pytest.mark.parametrize("numbers", [range(20), pytest.param(range(20, 200), marks=pytest.mark.slow)])
def test_every_answer_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 10 * len(numbers)
