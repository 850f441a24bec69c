"""A moderated card against the same rules written a second time, for random packets: each, to the nanosecond."""

from __future__ import annotations

import random
from functools import partial

import pytest
from network import Network, job_over, start_job
from reference_nic import Guest, Setting

from tests.reference_clock import MS, S
from tests.workloads.listening import listen
from vftsim.kernel import EventKind
from vftsim.platform.io.paths.moderated import GuestNicSpec, guest_nics, install

US = 1000


def setting(draw: random.Random) -> Setting:
    return Setting(
        ring=draw.choice([1, 4, 32, 256]),
        moderation_ns=draw.choice([0, 10 * US, 125 * US, MS]) + draw.randrange(100),
        interrupt_ns=draw.choice([0, draw.randrange(1, 50 * US)]),
        packet_ns=draw.randrange(1, 20 * US),
    )


def check(number: int) -> int:
    """Compare one card; return how many packets came to their socket."""
    draw = random.Random(f"nic-{number}")
    found = setting(draw)
    network, guest, done_ns = Network(), Guest(found), []
    install(
        network.engine, network.port, GuestNicSpec(ring=found.ring, moderation=found.moderation_ns), found.interrupt_ns,
        found.packet_ns,
    )  # fmt: skip
    listen(network.engine, job_over, lambda *_: done_ns.append(network.engine.now_ns))
    time_ns, gap_ns = 0, draw.choice([5, 20, 200]) * US
    for packet in range(draw.choice([30, 300])):
        time_ns += draw.choice([0, int(draw.expovariate(1 / gap_ns))])
        network.at(time_ns, EventKind.DELIVERY, packet, partial(network.arrive, 100, packet))
        guest.arrive(time_ns, packet)
    for job in range(draw.choice([0, 20])):
        begin_ns, demand_ns = draw.randrange(time_ns + 1), draw.randrange(1, 300 * US)
        network.at(begin_ns, EventKind.ARRIVAL, job, partial(network.engine.call, start_job, network.domain, demand_ns))
        guest.job(begin_ns, job, demand_ns)
    network.engine.run(S)
    guest.run(S)
    assert network.log == guest.handed, number
    assert done_ns == guest.done_ns
    nic = network.engine.rows(guest_nics)[network.port]
    assert network.dropped(nic.ring_full) == guest.dropped
    return len(guest.handed)


@pytest.mark.parametrize("numbers", [range(20), pytest.param(range(20, 220), marks=pytest.mark.slow)])
def test_every_packet_is_that_of_the_rules_written_a_second_time(numbers: range):
    assert sum(map(check, numbers)) > 20 * len(numbers)
