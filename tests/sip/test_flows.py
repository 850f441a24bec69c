"""Whole scenarios worked out by hand: wires of 1 ms, 0.1 ms of CPU for each message received or sent.

A registration message received causes one sent (2 touches, 0.2 ms); an INVITE causes a 100 and the
forwarded INVITE (3 touches, 0.3 ms); every other message is passed on (0.2 ms).
"""

from __future__ import annotations

from typing import Any

import pytest
from bench import MS, US, Bench, plain_server

from vftsim.workloads.sip.messages import TOUCHES, Message, Scenario

_REGISTRATION = [
    (1_000, "server", "REGISTER"),
    (2_200, "agents", "UNAUTHORIZED"),
    (3_200, "server", "REGISTER_CREDENTIALS"),
    (4_400, "agents", "OK_REGISTER"),
]

_CALL = [
    (1_000, "server", "INVITE"),
    (2_300, "agents", "TRYING"),
    (2_300, "agents", "INVITE"),
    (3_300, "server", "RINGING"),
    (4_500, "agents", "RINGING"),
    (13_300, "server", "OK_INVITE"),  # the callee answered 10 ms after its INVITE
    (14_500, "agents", "OK_INVITE"),
    (15_500, "server", "ACK"),
    (16_700, "agents", "ACK"),
    (37_700, "server", "BYE"),  # the caller hung up 20 ms after the ACK
    (38_900, "agents", "BYE"),
    (39_900, "server", "OK_BYE"),
    (41_100, "agents", "OK_BYE"),
]

_PAGE_MESSAGE = [
    (1_000, "server", "MESSAGE"),
    (2_200, "agents", "MESSAGE"),
    (3_200, "server", "OK_MESSAGE"),
    (4_400, "agents", "OK_MESSAGE"),
]


@pytest.mark.parametrize("scenario", [Scenario.IMS_REG, Scenario.IMS_DEREG, Scenario.IMS_REREG])
def test_registration_message_by_message(scenario: Scenario) -> None:
    bench = Bench()
    bench.attempt(scenario)
    assert bench.run() == _REGISTRATION
    assert bench.delays_us("REG1") == (1, 2_200)
    assert bench.delays_us("REG2") == (1, 2_200)
    if scenario is Scenario.IMS_REREG:
        assert bench.delays_us("REG4") == (1, 4_400)
    else:
        assert bench.record.delays["REG4"].count == 0
        assert bench.delays_us(f"REG1/{scenario.label}") == (1, 2_200)
    assert bench.busy_ns() == 4 * 100 * US
    assert bench.server.created == 0  # answered without a transaction


def test_call_message_by_message() -> None:
    bench = Bench()
    attempt = bench.attempt(Scenario.IMS_UAC)
    assert bench.run() == _CALL
    assert bench.delays_us("SES2") == (1, 2_300)
    assert bench.delays_us("REL1") == (1, 4_400)
    assert bench.ended == [(41_100, attempt)]
    assert not attempt.failed
    assert bench.busy_ns() == 13 * 100 * US
    assert bench.server.created == 2  # INVITE and BYE


def test_session_setup_is_the_sum_of_four_passes_without_the_ringing() -> None:
    """INVITE 2.3 + 180 2.2 + 200 2.2 + ACK 2.2 ms, however long it rings."""
    for ring_us in (1_000, 10_000, 5_000_000):
        bench = Bench()
        bench.attempt(Scenario.IMS_UAC, ring_us=ring_us)
        bench.run()
        assert bench.delays_us("SES1") == (1, 8_900)


def test_page_message_message_by_message() -> None:
    bench = Bench()
    bench.attempt(Scenario.IMS_MSGC)
    assert bench.run() == _PAGE_MESSAGE
    assert bench.delays_us("PMM1") == (1, 4_400)
    assert bench.busy_ns() == 4 * 100 * US
    assert bench.server.created == 1


@pytest.mark.parametrize(
    ("log", "touches"), [(_REGISTRATION, 4), (_CALL, 13), (_PAGE_MESSAGE, 4)], ids=["reg", "call", "page"]
)
def test_touches_of_a_scenario_are_the_messages_that_cross_the_server(
    log: list[tuple[float, str, str]], touches: int
) -> None:
    received = [Message[name] for _, where, name in log if where == "server"]
    assert len(log) == touches == sum(TOUCHES[message] for message in received)


def test_two_at_one_instant_are_served_one_after_another_on_one_cpu() -> None:
    """The second waits 0.2 ms for the first, and the first's second REGISTER finds the CPU free again."""
    bench = Bench()
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_REG)
    assert bench.run() == [
        (1_000, "server", "REGISTER"),
        (1_000, "server", "REGISTER"),
        (2_200, "agents", "UNAUTHORIZED"),
        (2_400, "agents", "UNAUTHORIZED"),
        (3_200, "server", "REGISTER_CREDENTIALS"),
        (3_400, "server", "REGISTER_CREDENTIALS"),
        (4_400, "agents", "OK_REGISTER"),
        (4_600, "agents", "OK_REGISTER"),
    ]


def test_work_after_sending_delays_the_next_message_but_not_this_one() -> None:
    """40 % of the work comes after the reply: 0.12 ms to the first reply, 0.2 + 0.12 ms to the second."""
    bench = Bench(plain_server(work_after_send=0.4))
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_REG)
    replies = [time for time, where, name in bench.run() if name == "UNAUTHORIZED"]
    assert replies == [2_120, 2_320]
    assert bench.busy_ns() == 8 * 100 * US


def test_the_database_is_asked_with_the_credentials_only() -> None:
    bench = Bench(plain_server(database_cost=500 * US))
    bench.attempt(Scenario.IMS_REG)
    assert [time for time, _, _ in bench.run()] == [1_000, 2_200, 3_200, 4_900]
    assert bench.delays_us("REG2") == (1, 2_700)


def test_worker_and_database_queue_for_the_cpu_with_every_query() -> None:
    """Two at once, work 0.1 + 0.1 ms, query 0.5 ms: the first worker's second half waits for the second's query."""

    def replies_us(processes: int) -> list[int]:
        bench = Bench(plain_server(database_cost=500 * US, processes=processes))
        bench.attempt(Scenario.IMS_REG)
        bench.attempt(Scenario.IMS_REG)
        log = bench.run()
        asked = next(time for time, _, name in log if name == "REGISTER_CREDENTIALS")
        assert bench.busy_ns() == (8 * 100 + 2 * 500) * US
        return [time - asked - 1_000 for time, _, name in log if name == "OK_REGISTER"]

    # The second arrives 0.2 ms after the first: 0.1 first, 0.5 query of the first; 0.1 second, 0.1 first, 0.5, 0.1.
    assert replies_us(processes=2) == [800, 1_400]
    # A single worker takes the second when it has answered the first.
    assert replies_us(processes=1) == [700, 1_400]


def test_virtualization_inflates_work_and_charges_relayed_messages_and_packets() -> None:
    """Call: 13 x (1.5 x 100 + 10) us of work and 7 packets sent at 5 us; registration: 4 x 150 + 2 x 5."""
    virtual: dict[str, Any] = {"server": plain_server(relay_cost=10 * US), "cpu_inflation": 1.5}
    bench = Bench(**virtual, packet_cost_ns=5 * US)
    bench.attempt(Scenario.IMS_UAC)
    bench.run()
    assert bench.busy_ns() == (13 * 160 + 7 * 5) * US
    assert bench.delays_us("SES2") == (1, 2_000 + 3 * 160 + 2 * 5)
    bench = Bench(**virtual, packet_cost_ns=5 * US)
    bench.attempt(Scenario.IMS_REG)
    bench.run()
    assert bench.busy_ns() == (4 * 150 + 2 * 5) * US


def test_demands_belong_to_the_messages_of_the_attempt() -> None:
    """Demands 1 to 6 of a call: INVITE, 180, 200, ACK, BYE, 200; the ACK with 4 takes 0.8 ms."""
    bench = Bench()
    attempt = bench.attempt(Scenario.IMS_UAC)
    attempt.give_demands([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    log = bench.run()
    passes = [log[0][0], log[2][0], log[3][0], log[4][0]]
    assert passes == [1_000, 2_300, 3_300, 4_700]
    assert (16_300 - 400, "server", "ACK") in log
    assert bench.busy_ns() == (3 * 1 + 2 * (2 + 3 + 4 + 5 + 6)) * 100 * US


def test_a_timer_run_that_finds_nothing_costs_nothing() -> None:
    bench = Bench(plain_server(housekeeping_cost=50 * MS, removal_cost=1 * MS))
    bench.server.start()
    bench.attempt(Scenario.IMS_REG)
    assert bench.run(10e6) == _REGISTRATION
    assert bench.busy_ns() == 4 * 100 * US


def test_recording_multiplies_execution_and_exits_apart() -> None:
    """MESSAGE at inflation 1.5 and 20 us a touch: 2 x (150 + 20) us; recorded at 2 and 10: 2 x (300 + 200) us."""
    bench = Bench(plain_server(relay_cost=20 * US), cpu_inflation=1.5)
    bench.attempt(Scenario.IMS_MSGC)
    bench.run(3_000)
    assert bench.busy_ns() == 340 * US
    bench.run(10_000)
    assert bench.busy_ns() == 680 * US
    bench.server.set_overhead(execution=2.0, exits=10.0)
    bench.attempt(Scenario.IMS_MSGC, at_us=20_000)
    bench.run(23_000)
    assert bench.busy_ns() == 680 * US + 1_000 * US
    bench.server.set_overhead()
    bench.run(30_000)
    assert bench.busy_ns() == 680 * US + 1_000 * US + 340 * US
