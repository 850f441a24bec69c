"""The workloads under real mechanisms: what protection costs, and what clients see when the host crashes."""

import pytest

from tests.workloads import lab
from vftsim.platform.protection.guard import guards
from vftsim.workloads.batch import BatchSpec
from vftsim.workloads.bulk_udp import BulkUdpSpec
from vftsim.workloads.request_response import RequestResponseSpec
from vftsim.workloads.service.application import ServiceSpec
from vftsim.workloads.tcp.client import BulkTcpSpec
from vftsim.workloads.tcp.program import TcpSinkSpec
from vftsim.workloads.udp_sink import UdpSinkSpec
from vftsim.workloads.web.httperf import HttperfSpec
from vftsim.workloads.web.prefork import PreforkWebServerSpec

US, MS, S = 1000, 1_000_000, 1_000_000_000
PARTS = (
    BatchSpec,
    TcpSinkSpec,
    ServiceSpec,
    UdpSinkSpec,
    PreforkWebServerSpec,
    BulkTcpSpec,
    BulkUdpSpec,
    RequestResponseSpec,
    HttperfSpec,
)
CRASH = {"kind": "primary_crash", "at": "2 s"}
RESTART = {
    "kind": "ha_restart",
    "failover": {
        "detection": {"heartbeat_interval": S // 10, "timeout": S},
        "placement": S // 2,
        "boot_time": 2 * S,
    },
}
BACK_NS = 3_000_000_000 + 2_500_000_000
"""Last heartbeat at 2 s, silence of 1 s, placement and boot 2.5 s."""


def guarded(program, protection=None, *blows, **host):
    made = lab.Lab(lab.linked(*PARTS, guarded=True), moderation=0, **host)
    made.run_program(program)
    if protection:
        made.protect(protection, *blows)
    made.start()
    return made


def loop(protection, *blows, until_ns=S, **clients):
    made = guarded(ServiceSpec(demand=20 * US), protection, *blows)
    driver = made.add_clients(RequestResponseSpec(spread=0, turn_around=0, **clients))
    driver.begin()
    made.run(until_ns)
    return made, driver.outcome()


def test_no_protection_costs_nothing():
    assert loop(None)[1].latency.to_dict() == loop({"kind": "none"})[1].latency.to_dict()


def test_lockstep_holds_each_answer_for_a_round_trip_of_the_log():
    """An answer leaves when the backup has acknowledged it: 2 x 74.5 us of channel at least, once a round."""
    plain, held = loop(None)[1], loop({"kind": "lockstep"})[1]
    added_us = (held.latency.mean - plain.latency.mean) / US
    assert 149 < added_us < 149 + 60
    assert held.rate == pytest.approx(S / (plain.latency.mean + added_us * US), rel=0.01)


def test_a_closed_loop_survives_a_restart():
    """A request is repeated 0.2, 0.6, 1.4, 3.0, 6.2 s after the crash: the last of these finds the new machine."""
    made, found = loop(RESTART, CRASH, until_ns=9 * S)
    assert found.repeated == 5
    assert found.latency.max == pytest.approx(6.2 * S, abs=0.01 * S)
    before, after = 2 * S, 9 * S - (2 * S + found.latency.max)
    round_ns = found.latency.percentile(50)
    assert found.answered == pytest.approx((before + after) / round_ns, rel=0.02)
    assert not made.engine.rows(guards)[made.guard].dead


@pytest.mark.thorough
def test_lockstep_keeps_tcp_connections_through_a_crash():
    made = guarded(TcpSinkSpec(), {"kind": "lockstep", "reprotection": None}, CRASH, latency_ns=MS)
    # The acknowledgement that the secondary issues when it goes live lets the sender send before it can be reached; the
    # next attempt comes after a timeout that has been doubled since the crash (RFC 6298, 5.5).
    driver = made.add_clients(BulkTcpSpec(duration=16 * S, interval=S, spread=0, window=4 * 1448, delayed_ack=0))
    driver.begin()
    made.run(16 * S + MS)
    found = driver.results()[0]
    carried = [count for _, _, count in found.intervals]
    assert carried[0] > 0
    assert min(carried) == 0  # nobody answers for about three seconds
    assert carried[-1] > 0.5 * carried[0]
    assert found.timeouts > 2


def test_a_restart_resets_the_connections_of_a_web_server():
    made = guarded(PreforkWebServerSpec(script=50 * MS), RESTART, CRASH, quantum_ns=6 * MS)
    made.installed.start()
    driver = made.add_clients(HttperfSpec(rate=10.0, connections=100, timeout=20 * S))
    driver.begin()
    made.run(30 * S)
    found = driver.report()
    assert found.replies + found.errors_total == 100
    assert 0 <= found.errors["connreset"] <= 2
    assert found.errors["client-timo"] == 0
    # Whoever came while nobody answered has come through with a later SYN.
    assert found.connection_ms[2] > 3000


def test_batch_jobs_lose_what_they_had_begun():
    made = guarded(BatchSpec(demand=300 * MS), RESTART, CRASH)
    made.installed.start()
    made.run(BACK_NS + S)
    found = made.installed.outcome()
    assert found.ended == 6 + 3
    assert found.begun == 7 + 4
