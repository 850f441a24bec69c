"""Bulk TCP against the same rules written a second time, on random lines: every packet, to the nanosecond."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference_clock import MS, S
from tests.workloads.listening import listen, lose
from tests.workloads.reference_tcp import Setting, Test
from tests.workloads.test_bulk_tcp import Bulk
from vftsim.workloads.tcp import connection as tcp


class Listened(Bulk):
    """The package's, where what both ends send is listened to."""

    def __init__(self, setting: Setting, until_ns: int) -> None:
        self.setting, self.sent = setting, []
        network = dict(zip(("rate", "latency", "queue"), setting.switch, strict=True)) if setting.switch else {}
        super().__init__(
            setting.duration_ns,
            {"segment_cost": setting.segment_ns, "copy_cost": setting.copy_ns, "ack_cost": setting.ack_ns},
            network=network | {"switched": bool(network), "flow_control": setting.has_pauses}, until_ns=until_ns,
            engine="simpy", spread=100_000,
            latency_ns=setting.latency_ns, queue=setting.queue, rate=setting.rate, clients=setting.clients,
            direction="upload" if setting.upload else "download", window=setting.window, mss=setting.mss,
            initial_window=setting.initial_window, delayed_ack=setting.delayed_ack_ns, min_rto=setting.min_rto_ns,
            first_rto=setting.first_rto_ns, segmentation_offload=setting.offload,
        )  # fmt: skip

    def start(self) -> None:
        lose(self, self.setting.lost)
        listen(self.engine, tcp.new_stamped, self.note)
        super().start()
        self.begins_ns = [
            int(each.first_ns) for each in self.engine.rows(tcp.connections)[1 : 1 + self.setting.clients]
        ]

    def note(self, _sim: Any, _bulk: Any, connection: Any, message: int, *_: Any) -> None:
        self.sent.append((self.engine.now_ns, connection.row - 1, *divmod(message, 256)))


def losses(draw: random.Random) -> tuple[list[int], list[int]]:
    """Return frames that are lost each way: none, some, or many in a row."""
    first, length = draw.randrange(200), draw.choice([0, 0, draw.randrange(40)])
    shares = draw.choice([(0, 0), (0.003, 0), (0.02, 0.02), (0.1, 0), (0.1, 0.1)])
    there, back = (
        [n for n in range(10_000) if draw.random() < share or first <= n < first + length] for share in shares
    )
    return there, back


def setting(draw: random.Random) -> Setting:
    is_switched = draw.random() < 0.4
    clients = draw.choice([1, 2, 3])
    found = Setting(
        upload=draw.random() < 0.5,
        clients=clients,
        duration_ns=draw.choice([20, 60]) * MS,
        rate=draw.choice([1, 3, 10, 30]) * 100_000_000,
        latency_ns=draw.choice([0, 50_000, MS, 5 * MS]) + draw.randrange(1000),
        mss=draw.choice([1448, 1448, 536, 8948]),
        window=draw.choice([9, 20, 128, 128, 512]) * 1024,
        initial_window=draw.choice([1, 2, 4, 10]),
        delayed_ack_ns=draw.choice([0, MS // 2 + 17, 40 * MS]),
        min_rto_ns=draw.choice([1, 10, 200]) * MS + 13,
        first_rto_ns=draw.choice([20, 1000]) * MS + 7,
        offload=draw.random() < 0.4,
        lost=losses(draw),
    )
    if clients == 1 and draw.random() < 0.5:
        found.segment_ns, found.copy_ns, found.ack_ns = draw.randrange(9000), draw.randrange(300), draw.randrange(5000)
    largest = (found.mss + 90) * min(found.most, found.window_segments)
    found.queue = draw.choice([2 * largest, 4 * largest, max(2 * largest, 256 * 1024)]) + draw.randrange(90)
    if is_switched:
        found.has_pauses = draw.random() < 0.4
        found.switch = draw.choice([1, 2, 10]) * found.rate, draw.randrange(20_000), draw.choice([1, 4, 50]) * largest
    return found


def check(number: int) -> None:
    found = setting(random.Random(f"tcp-{number}"))
    until_ns = found.duration_ns + (MS, 500 * MS, 3 * S)[number % 3]
    package = Listened(found, until_ns)
    sent, expected = (sorted(each) for each in (package.sent, Test(found, package.begins_ns).run(until_ns).sent))
    first = next((n for n, pair in enumerate(zip(sent, expected, strict=False)) if pair[0] != pair[1]), -1)
    assert sent == expected, f"{number}, packet {first}: {expected[first]}, found {sent[first]}"


@pytest.mark.parametrize("numbers", [range(10), pytest.param(range(10, 110), marks=pytest.mark.slow)])
def test_every_packet_is_that_of_the_rules_written_a_second_time(numbers: range):
    for number in numbers:
        check(number)
