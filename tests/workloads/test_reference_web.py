"""httperf against the same rules written a second time, under random losses: every connection, to the nanosecond."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference_clock import MS, S
from tests.workloads import lab
from tests.workloads.listening import listen, lose
from tests.workloads.reference_messages import FRAME
from tests.workloads.reference_messages import Setting as Network
from tests.workloads.reference_web import MSS, PIECE, Setting, Test
from vftsim.platform.io.packet import ports
from vftsim.workloads.web import httperf
from vftsim.workloads.web.prefork import PreforkWebServerSpec
from vftsim.workloads.web.records import CONNECTING

PARTS = (PreforkWebServerSpec, httperf.HttperfSpec)


class Listened(lab.Lab):
    """The package's; ``begun`` has connections and when they began, ``ended`` the times of those with a reply."""

    def __init__(self, network: Network, server: dict[str, Any], load: dict[str, Any]) -> None:
        super().__init__(lab.linked(*PARTS), "simpy", latency_ns=network.latency_ns, rate=network.rate, queue=1 << 26)
        self.engine.rows(ports)[self.port].first_window_bytes = network.initial_window * FRAME
        self.server = self.run_program(PreforkWebServerSpec(**server))
        lose(self, network.lost)
        self.clients = self.add_clients(httperf.HttperfSpec(**load))
        self.begun: list[tuple[int, int]] = []
        self.ended: list[tuple[int, ...]] = []
        self.is_reply = False
        listen(self.engine, httperf.set_stage_timer, self.note_stage)
        listen(self.engine, httperf.add_delay, self.note_end)
        listen(self.engine, httperf.close, self.note_close)
        self.start()
        self.installed.start()
        self.clients.begin()

    def note_stage(self, _sim: Any, _load: Any, connection: Any) -> None:
        if connection.stage == CONNECTING:
            self.begun.append((connection.serial, self.engine.now_ns))

    def note_end(self, _sim: Any, histogram: int, _value_ns: int) -> None:
        self.is_reply |= histogram == int(self.clients.record.lifetimes)

    def note_close(self, _sim: Any, _load: Any, connection: Any) -> None:
        if self.is_reply:
            times_ns = connection.start_ns, connection.requested_ns, connection.first_ns, self.engine.now_ns
            self.ended.append(times_ns)
        self.is_reply = False


def network(draw: random.Random) -> Network:
    share = draw.choice([0, 0, 0.003, 0.02, 0.1])
    there, back = ([n for n in range(20_000) if draw.random() < share] for _ in range(2))
    return Network(
        rate=draw.choice([10_000_000, 100_000_000, S]),
        latency_ns=draw.choice([50_000, 5 * MS, 40 * MS]) + draw.randrange(1000),
        initial_window=draw.choice([0, 1, 3, 10, 10]),
        lost=(there, back),
    )


def setting(draw: random.Random, size: int) -> Setting:
    pieces = -(-size // (PIECE * MSS))
    return Setting(
        network=network(draw),
        segments=-(-size // MSS),
        short=-size % MSS,
        before_ns=draw.choice([0, draw.randrange(100 * MS)]),
        piece_ns=draw.choice([0, draw.randrange(100 * MS // pieces)]),
        processes=draw.randint(1, 6),
        accept_queue=draw.choice([0, 2, 128]),
        aborts=draw.random() < 0.7,
        timeout_ns=draw.choice([0, 0, 2 * S + 7, 300 * MS + 7]),
        request=66,
        retry_ns=draw.choice([1000, 200]) * MS + 3,
        linear=draw.choice([0, 4]),
    )


def played(draw: random.Random, found: Setting, size: int) -> Listened:
    """Play it in the package."""
    script_ns = found.before_ns + found.piece_ns * -(-found.segments // PIECE)
    server = {
        "start_servers": found.processes, "min_spare": found.processes, "max_spare": found.processes + 1,
        "max_clients": found.processes, "accept_queue": found.accept_queue, "script": script_ns, "reply_size": size,
        "output_share": 100 * (1 - found.before_ns / script_ns) if script_ns else 0,
        "abort_when_closed": found.aborts,
    }  # fmt: skip
    load = {
        "connections": draw.randint(1, 30), "rate": draw.choice([1, 10, 60]), "gap_cv": 1.0,
        "timeout": found.timeout_ns, "retry": found.retry_ns, "linear_retries": found.linear,
    }  # fmt: skip
    return Listened(found.network, server, load)


def check(number: int) -> int:
    """Compare one test; return how many connections had a reply."""
    draw = random.Random(f"web-{number}")
    size = draw.randrange(1000, draw.choice([5000, 100_000, 800_000]))
    found = setting(draw, size)
    package = played(draw, found, size).run(100 * S)
    test = Test(found, package.begun).run(100 * S)
    ended, expected = sorted(package.ended), sorted(test.ended)
    first = next((n for n, pair in enumerate(zip(ended, expected, strict=False)) if pair[0] != pair[1]), -1)
    assert ended == expected, f"{number}, connection {first}: {expected[first:][:1]}, found {ended[first:][:1]}"
    record = package.clients.record
    assert (int(record.timeouts), int(record.repeated)) == (test.given_up, test.repeated)
    return len(ended)


@pytest.mark.parametrize("numbers", [range(10), pytest.param(range(10, 210), marks=pytest.mark.slow)])
def test_every_connection_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 5 * len(numbers)
