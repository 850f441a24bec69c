"""Calls of a farm against the same rules written a second time, under random losses: every message, to the ns."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference_clock import MS, S
from tests.workloads import lab
from tests.workloads.listening import listen, lose
from tests.workloads.reference_farm import Setting, Test
from vftsim.platform.io.packet import packets
from vftsim.workloads.farm import calls as farm_calls
from vftsim.workloads.farm.calls import FarmCallsSpec
from vftsim.workloads.farm.records import KINDS, Message
from vftsim.workloads.farm.server import FarmServerSpec
from vftsim.workloads.parts import Wiring

PARTS = (FarmServerSpec, FarmCallsSpec)
FROM_AGENTS = ("REGISTER", "INVITE", "RINGING", "OK", "ACK", "BYE", "BYE_OK")


class Listened(lab.Lab):
    """The package's, where what user agents send and get is listened to."""

    def __init__(self, setting: Setting, load: dict[str, Any]) -> None:
        super().__init__(lab.linked(*PARTS), "simpy", latency_ns=setting.latency_ns, rate=setting.rate, queue=1 << 26)
        operations = {name.lower(): {"demand": cost_ns} for name, cost_ns in setting.costs_ns.items()}
        self.run_program(
            FarmServerSpec(
                threads=setting.threads,
                backlog=setting.backlog,
                repeat_share=setting.repeat_share,
                operations=operations,
            )
        )
        self.installed.connect_peers(Wiring({"lan": self.port}, lambda _: []))
        lose(self, setting.lost)
        self.clients = self.add_clients(FarmCallsSpec(**load))
        self.begun: list[tuple[int, int, int]] = []
        self.log: list[tuple[int, int, str, str]] = []
        listen(self.engine, farm_calls.begin_stage, self.note_stage)
        listen(self.engine, farm_calls.send_message, self.note_sent)
        listen(self.engine, farm_calls.handle_message, self.note_came)
        self.start()
        self.clients.begin()

    def note_stage(self, _sim: Any, call: Any, *_: Any) -> None:
        if call.number > len(self.begun):
            self.begun.append((call.number, call.row, self.engine.now_ns))

    def note_sent(self, _sim: Any, call: Any, message: int, *_: Any) -> None:
        self.log.append((self.engine.now_ns, call.number, "sent", Message(message).name))

    def note_came(self, _sim: Any, call: Any, packet: int) -> None:
        message = Message(self.engine.rows(packets)[packet].message % KINDS)
        self.log.append((self.engine.now_ns, call.number, "came", message.name))


def setting(draw: random.Random) -> Setting:
    share = draw.choice([0, 0.05, 0.3, 0.6])
    there, back = ([n for n in range(20_000) if draw.random() < share] for _ in range(2))
    t1_ns = draw.choice([50, 500]) * MS + draw.randrange(1000)
    return Setting(
        rate=draw.choice([10_000_000, 1_000_000_000]),
        latency_ns=draw.randrange(1, 20 * MS),
        size=draw.randrange(64, 1500),
        costs_ns={name: draw.randrange(1, 5 * MS) for name in FROM_AGENTS},
        repeat_share=draw.choice([0.5, 0.25, 1.0]),
        threads=draw.choice([1, 4, 100]),
        backlog=draw.choice([1, 5, 1000]),
        registered=draw.random() < 0.4,
        hold_ns=draw.randrange(1, 2 * S),
        t1_ns=t1_ns,
        t2_ns=8 * t1_ns + draw.randrange(1000),
        lost=(there, back),
    )


def check(number: int) -> int:
    """Compare one load; return how many messages user agents sent and got."""
    draw = random.Random(f"farm-{number}")
    found = setting(draw)
    load = {
        "to": "server", "rate": draw.choice([1, 10, 60]), "registered": found.registered, "hold": found.hold_ns,
        "established": False,
        "t1": found.t1_ns, "t2": found.t2_ns, "message_size": found.size,
    }  # fmt: skip
    until_ns = (draw.choice([2, 40]) if load["rate"] < 60 else 2) * S
    package = Listened(found, load).run(until_ns)
    test = Test(found, package.begun).run(until_ns)
    log, expected = sorted(package.log), sorted(test.log)
    first = next((n for n, pair in enumerate(zip(log, expected, strict=False)) if pair[0] != pair[1]), -1)
    assert log == expected, f"{number}, message {first}: {expected[first:][:1]}, found {log[first:][:1]}"
    record = package.clients.record
    counts = int(record.answered), int(record.failed), int(record.repeated)
    assert counts == (test.answered, test.failed, test.repeated)
    return len(log)


@pytest.mark.parametrize("numbers", [range(8), pytest.param(range(8, 108), marks=pytest.mark.slow)])
def test_every_message_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 50 * len(numbers)
