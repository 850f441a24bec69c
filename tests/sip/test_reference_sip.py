"""SIP over UDP against the same rules written a second time, under random losses: every datagram, to the nanosecond."""

from __future__ import annotations

import random

import pytest
from bench import US, Bench, plain_server
from reference_sip import Loss, Setting, Test

from tests.reference_clock import MS, S
from vftsim.workloads.ims_bench.parameters import Thresholds
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Scenario


def setting(draw: random.Random) -> Setting:
    def t1_ns() -> int:
        return draw.choice([500, 500, 100, 2000]) * MS + draw.randrange(1000)

    return Setting(
        wire_ns=draw.randrange(1, 50_000) * US,
        touch_ns=draw.randrange(20 * US, draw.choice([2, 40]) * MS),
        register_touch_ns=draw.randrange(20 * US, draw.choice([2, 40]) * MS),
        t1_ns=t1_ns(),
        t2_ns=4 * S + draw.randrange(1000),
        server_t1_ns=t1_ns(),
        server_t2_ns=4 * S + draw.randrange(1000),
        again=draw.choice([0.4, 1.0, 0.25]),
        own_repeat=draw.choice([0.5, 1.0]),
        processes=draw.choice([1, 2, 4, 64]),
        socket=draw.choice([1, 10, 1000]),
        after_send=draw.choice([0, 0.4]),
    )


def package(found: Setting, loses: Loss) -> Bench:
    server = plain_server(
        processes=found.processes, socket_buffer=found.socket, memory_per_datagram=1, work_after_send=found.after_send,
        touch_cost=found.touch_ns, register_touch_cost=found.register_touch_ns, t1=found.server_t1_ns,
        t2=found.server_t2_ns, retransmission_cost=found.again, own_repeat_cost=found.own_repeat,
    )  # fmt: skip
    limits = dict.fromkeys(Thresholds.model_fields, 1000 * S)
    agents = ImsBenchSpec(to="server", t1=found.t1_ns, t2=found.t2_ns, thresholds=Thresholds(**limits))
    return Bench(server, agents, found.wire_ns // US, lambda where, message, nth: loses(where, message.name, nth))


def losses(draw: random.Random, number: int) -> Loss:
    """Lose a share of all datagrams, and sometimes all of a sort."""
    share = draw.choice([0, 0.1, 0.4, 0.7, 0.9])
    sort = draw.choice(["server", "agents"]), draw.choice(["OK_INVITE", "ACK", "BYE", "TRYING", "RINGING"])
    loses_sort = draw.random() < 0.4

    def loses(where: str, message: str, nth: int) -> bool:
        if loses_sort and (where, message) == sort:
            return True
        return random.Random(f"{number} {where} {message} {nth}").random() < share

    return loses


def check(number: int) -> int:
    """Compare one load; return how many datagrams arrived."""
    draw = random.Random(f"sip-{number}")
    found, loses, attempts = setting(draw), losses(draw, number), {}
    bench, test = package(found, loses), Test(found, loses)
    for count in range(1, draw.choice([2, 9, 9, 60])):
        scenario, longest_ns = draw.choice([Scenario.IMS_UAC, Scenario.IMS_UAC, *Scenario]), draw.choice([S, 20 * S])
        start_ns, ring_ns, hold_ns = draw.randrange(2 * S), draw.randrange(longest_ns), draw.randrange(longest_ns)
        made = bench.plan(count, scenario, [1.0] * DEMANDS_PER_ATTEMPT, ring_ns, hold_ns, start_ns)
        attempts[id(made)] = count
        test.begin(count, scenario.name, start_ns, ring_ns, hold_ns)
    bench.run(200 * S / US)
    test.run(200 * S)
    log = [(round(time * US), where, message) for time, where, message in bench.log]
    first = next((n for n, pair in enumerate(zip(log, test.log, strict=False)) if pair[0] != pair[1]), -1)
    assert log == test.log, f"{number}, datagram {first}: {test.log[first:][:1]}, found {log[first:][:1]}"
    assert [(round(time * US), attempts[id(made)], bool(made.failed)) for time, made in bench.ended] == test.ended
    return len(log)


@pytest.mark.parametrize("numbers", [range(20), pytest.param(range(20, 220), marks=pytest.mark.slow)])
def test_every_datagram_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 10 * len(numbers)
