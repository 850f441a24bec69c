"""What a lost datagram causes: who repeats what, and who answers without asking further."""

from __future__ import annotations

import pytest
from bench import MS, Bench, Loss, S, plain_server

from vftsim.workloads.sip.messages import Message, Scenario


def _first(where: str, *messages: Message) -> Loss:
    """Lose the first of each of these datagrams."""
    return lambda to, message, nth: to == where and message in messages and nth == 1


def _of(bench: Bench, where: str, message: Message) -> list[float]:
    return [time for time, to, name in bench.log if (to, name) == (where, message.name)]


def test_a_repeated_invite_is_answered_by_its_transaction_and_not_forwarded_again() -> None:
    """100 and 180 are lost; at 0.5 s the caller repeats; the server sends its last reply, the 180, again.

    A repeated message costs 0.4 of a new one: 0.12 ms.
    """
    bench = Bench(loses=_first("agents", Message.TRYING, Message.RINGING))
    bench.attempt(Scenario.IMS_UAC, ring_us=2_000_000)
    bench.run()
    assert _of(bench, "server", Message.INVITE) == [1_000, 501_000]
    assert _of(bench, "agents", Message.INVITE) == [2_300]
    assert _of(bench, "agents", Message.RINGING) == [502_120]
    assert bench.server.created == 2
    assert bench.ended[0][1].failed is False


def test_a_repeated_page_message_gets_the_200_that_its_transaction_remembers() -> None:
    bench = Bench(loses=_first("agents", Message.OK_MESSAGE))
    bench.attempt(Scenario.IMS_MSGC)
    bench.run()
    assert _of(bench, "agents", Message.MESSAGE) == [2_200]
    assert _of(bench, "agents", Message.OK_MESSAGE) == [502_080]
    assert bench.delays_us("PMM1") == (1, 502_080)


def test_a_repeated_register_is_a_registration_like_any_other() -> None:
    """No transaction remembers it: it costs the full work again."""
    bench = Bench(loses=_first("agents", Message.UNAUTHORIZED))
    bench.attempt(Scenario.IMS_REG)
    bench.run()
    assert bench.log[-1] == (504_400, "agents", "OK_REGISTER")
    assert bench.delays_us("REG1") == (1, 502_200)
    assert bench.busy_ns() == 3 * 200_000


@pytest.mark.parametrize("hop", ["server", "agents"])
def test_a_lost_200_is_repeated_by_the_callee(hop: str) -> None:
    """The callee answers at 12.3 ms and, without an ACK, again at 512.3 ms; SES1 then is 0.5 s longer."""
    bench = Bench(loses=_first(hop, Message.OK_INVITE))
    bench.attempt(Scenario.IMS_UAC)
    bench.run()
    assert _of(bench, "server", Message.OK_INVITE)[-1] == 513_300
    again_us = 120 if hop == "agents" else 0  # a 200 the server has seen costs 0.08 instead of 0.2 ms
    assert _of(bench, "agents", Message.OK_INVITE) == [514_500 - again_us]
    assert bench.delays_us("SES1") == (1, 508_900 - again_us)
    assert bench.agents.repeated[Scenario.IMS_UAC] == 1
    assert not bench.ended[0][1].failed


@pytest.mark.parametrize("hop", ["server", "agents"])
def test_a_lost_ack_is_recovered_by_the_callees_200(hop: str) -> None:
    """The caller acknowledges every 200 it gets; the call is set up once."""
    bench = Bench(loses=_first(hop, Message.ACK))
    bench.attempt(Scenario.IMS_UAC)
    bench.run()
    assert _of(bench, "agents", Message.OK_INVITE) == [14_500, 514_380]
    assert _of(bench, "agents", Message.ACK) == [516_580]
    assert bench.delays_us("SES1") == (1, 4_500 + 516_580 - 12_300)
    assert bench.delays_us("REL1") == (1, 4_400)
    assert not bench.ended[0][1].failed


def test_without_any_ack_the_callee_gives_up_after_64_t1() -> None:
    bench = Bench(loses=lambda where, message, _nth: message is Message.ACK)
    attempt = bench.attempt(Scenario.IMS_UAC)
    bench.run()
    assert bench.ended == [(12_300 + 31_500_000, attempt)]
    assert attempt.failed
    assert len(_of(bench, "server", Message.OK_INVITE)) == 10
    assert bench.record.delays["SES1"].count == 0


@pytest.mark.parametrize(
    ("scenario", "request_message"), [(Scenario.IMS_UAC, Message.INVITE), (Scenario.IMS_MSGC, Message.MESSAGE)]
)
def test_a_lost_forwarded_request_is_repeated_by_the_server(scenario: Scenario, request_message: Message) -> None:
    """After T1, at the price of one touch at 0.4: 40 us."""
    bench = Bench(loses=_first("agents", request_message))
    bench.attempt(scenario)
    bench.run()
    sent_us = 1_300 if scenario is Scenario.IMS_UAC else 1_200
    assert _of(bench, "agents", request_message) == [sent_us + 500_000 + 40 + 1_000]
    assert bench.server.retransmissions == 1
    assert not bench.ended[0][1].failed


def test_a_100_stops_the_callers_repetitions_but_not_the_servers() -> None:
    """The server goes on at 0.5, 1.5, 3.5 s until the callee's 180 comes."""
    bench = Bench(loses=lambda where, message, nth: where == "agents" and message is Message.INVITE and nth <= 3)
    bench.attempt(Scenario.IMS_UAC)
    bench.run()
    assert _of(bench, "server", Message.INVITE) == [1_000]
    assert _of(bench, "agents", Message.INVITE) == [1_300 + 3_500_000 + 40 + 1_000]
    assert bench.server.retransmissions == 3


def test_a_lost_200_to_a_bye_costs_one_repetition_on_both_sides() -> None:
    """Server and caller both repeat the BYE after 0.5 s; the caller's meets a transaction without a reply."""
    bench = Bench(loses=_first("server", Message.OK_BYE))
    bench.attempt(Scenario.IMS_UAC)
    bench.run()
    assert len(_of(bench, "server", Message.BYE)) == 2
    assert len(_of(bench, "agents", Message.BYE)) == 2
    count, mean_us = bench.delays_us("REL1")
    assert count == 1
    # Forwarded at 37.9, repeated 0.5 s later (40 us after the caller's repetition took 80 us of the CPU).
    assert 500_000 < mean_us < 510_000
    assert not bench.ended[0][1].failed


def test_a_socket_buffer_that_is_full_drops_and_the_caller_repeats() -> None:
    """One worker, room for two: of four at once the fourth is dropped and comes back at 0.5 s."""
    server = plain_server(processes=1, socket_buffer=2, memory_per_datagram=1)
    bench = Bench(server)
    for _ in range(4):
        bench.attempt(Scenario.IMS_REG)
    bench.run(400 * MS / 1_000)
    assert (bench.server.received, bench.server.dropped, bench.server.in_progress) == (4 + 3, 1, 0)
    bench.run(2 * S / 1_000)
    assert len(bench.ended) == 4
    assert bench.record.delays["REG1"].max == 502_200_000
    assert bench.server.received == bench.server.taken + bench.server.dropped
