"""Location flush in the timer process, late timers, prices of repeated messages, nonces, growth with utilization."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from bench import MS, US, Bench, S, plain_server
from read_lab import domain_ns
from small_lab import fingerprint, run, small_lab

from vftsim.composition.run import Run
from vftsim.kernel import EventKind
from vftsim.platform.cpu.guest_parameters import guest_schedulers
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.messages import Message, Scenario
from vftsim.workloads.sip.wire import SipWire
from vftsim.workloads.wire import Address

FLUSH = {"flush_in_timer_process": True}


def _times(bench: Bench, where: str, message: Message) -> list[float]:
    return [time for time, to, name in bench.log if (to, name) == (where, message.name)]


def _lost(where: str, *messages: Message) -> Any:
    return lambda to, message, nth: to == where and message in messages and nth == 1


def test_timer_process_and_database_take_turns_with_the_workers() -> None:
    """Three records of 50 ms: the timer process 25 ms, the database 25 ms, and so on, 150 ms in all.

    A REGISTER that reaches the server at 60.011 waits for the first 25 ms and goes before the database.
    """
    bench = Bench(plain_server(location_write_cost=50 * MS, **FLUSH))
    bench.server.start()
    for number in range(3):
        bench.attempt(Scenario.IMS_REG, at_us=10_000 * number)
    bench.run(59_999_999)
    bench.attempt(Scenario.IMS_REG, at_us=60_010_000)
    bench.run(61_000_000)
    assert _times(bench, "agents", Message.UNAUTHORIZED)[-1] == 60_026_200
    assert bench.busy_ns() == 4 * 4 * 100 * US + 150 * MS


@pytest.mark.parametrize("wait", [False, True])
def test_repetitions_wait_for_the_end_of_the_flush(wait: bool) -> None:
    """One record of 2 s, written from 60 to 62 s; a page message forwarded at 59.8 s is due again at 60.3 s."""
    bench = Bench(
        plain_server(location_write_cost=2 * S, timers_wait_for_flush=wait, **FLUSH),
        loses=_lost("agents", Message.MESSAGE),
    )
    bench.server.start()
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_MSGC, at_us=59_800_000)
    bench.run(70_000_000)
    (again_us,) = _times(bench, "agents", Message.MESSAGE)
    assert (62_000_000 < again_us < 62_010_000) if wait else (again_us < 61_500_000)


@pytest.mark.parametrize("wait", [False, True])
def test_removals_wait_for_the_end_of_the_flush(wait: bool) -> None:
    """A page message complete at 55.2 s is removed at 61 s, or with all that was due when the flush ends at 62 s."""
    bench = Bench(plain_server(location_write_cost=2 * S, timers_wait_for_flush=wait, removal_cost=1 * MS, **FLUSH))
    bench.server.start()
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_MSGC, at_us=55_200_000)
    bench.run(61_900_000)
    assert bench.server.held == (1 if wait else 0)
    bench.attempt(Scenario.IMS_MSGC, at_us=62_500_000)
    bench.run(62_900_000)
    assert bench.server.held == 1
    bench.run(68_999_000)
    assert bench.server.held == 0
    assert bench.busy_ns() == 3 * 4 * 100 * US + 2 * S + 2 * MS


def test_a_request_that_came_to_its_end_during_a_flush_is_given_up_after_it() -> None:
    """Forwarded at 30.5 s and never answered: given up after 30 s, but the flush lasts to 62 s."""
    bench = Bench(
        plain_server(location_write_cost=2 * S, timers_wait_for_flush=True, **FLUSH),
        loses=lambda to, message, nth: to == "agents" and message is Message.MESSAGE,
    )
    bench.server.start()
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_MSGC, at_us=30_500_000)
    bench.run(70_000_000)
    (given_up_us,) = _times(bench, "agents", Message.REQUEST_TIMEOUT)
    assert 62_000_000 < given_up_us < 62_010_000


@pytest.mark.parametrize(
    ("scenario", "lost", "key", "extra_us"),
    [
        # Two touches of 0.1 ms each, whatever the request: an INVITE is not charged for its 100 again.
        (Scenario.IMS_MSGC, _lost("agents", Message.OK_MESSAGE), "repeated_request_cost", 200),
        (Scenario.IMS_UAC, _lost("agents", Message.TRYING, Message.RINGING), "repeated_request_cost", 200),
        (Scenario.IMS_UAC, _lost("agents", Message.OK_INVITE), "repeated_ok_cost", 200),
        (Scenario.IMS_MSGC, _lost("agents", Message.MESSAGE), "own_repeat_cost", 100),
    ],
)
def test_prices_of_repeated_messages(scenario: Scenario, lost: Any, key: str, extra_us: int) -> None:
    busy = {}
    for price in (0.0, 0.5, 1.0):
        bench = Bench(plain_server(retransmission_cost=0.0, **{key: price}), loses=lost)
        bench.attempt(scenario, ring_us=1_000_000)
        bench.run()
        busy[price] = bench.busy_ns()
    assert busy[0.5] - busy[0.0] == extra_us * US // 2
    assert busy[1.0] - busy[0.0] == extra_us * US


@pytest.mark.parametrize("once", [False, True])
def test_credentials_that_come_again_are_challenged_again(once: bool) -> None:
    """The 200 is lost; at 503.2 ms the caller repeats its credentials and gets 200 or, the nonce being used, 401."""
    bench = Bench(
        plain_server(nonces_good_once=once),
        ImsBenchSpec(to="server", fails_on_second_challenge=True),
        loses=_lost("agents", Message.OK_REGISTER),
    )
    bench.attempt(Scenario.IMS_REG)
    bench.run()
    assert bench.log[-1] == (505_400 - 1_000, "agents", "UNAUTHORIZED_AGAIN" if once else "OK_REGISTER")
    assert bench.ended[0][1].failed is once
    assert bench.server.changed_records == (1 if once else 2)


@pytest.mark.parametrize("answer", [Message.UNAUTHORIZED_AGAIN, Message.OK_REGISTER])
def test_what_answers_credentials_has_their_number(answer: Message) -> None:
    """RFC 3261, 8.2.6.2: the CSeq of an answer is that of its request, and credentials come with the second one."""
    packet = SimpleNamespace(message=answer, entity=1, size_bytes=700)
    said = SipWire(is_challenging=True).contents(packet, Address(bytes(4), 5060))
    assert b"\r\nCSeq: 2 REGISTER\r\n" in said


@pytest.mark.parametrize("fails", [False, True])
def test_a_second_challenge_fails_the_attempt_if_said_so(fails: bool) -> None:
    """The server stands still for 0.7 s and then answers the REGISTER and its repetition."""
    bench = Bench(workload=ImsBenchSpec(to="server", fails_on_second_challenge=fails))
    bench.attempt(Scenario.IMS_REG)
    bench.wires.at(1, EventKind.CONTROL, 1, bench.freeze)
    bench.wires.at(700 * MS, EventKind.CONTROL, 1, bench.thaw)
    bench.run()
    assert len(_times(bench, "agents", Message.UNAUTHORIZED)) == 2
    assert bench.ended[0][1].failed is fails


def test_work_grows_with_utilization() -> None:
    """Growth 1, averaged over 1 ms: the credentials come 2.2 ms after the REGISTER, of which 0.2 ms were work.

    U = 0.2 / 2.2 x 2.2 / 3.2 = 0.0625: 0.2125 ms.
    """
    bench = Bench(plain_server(growth_with_utilization=1.0, utilization_time=1 * MS))
    bench.attempt(Scenario.IMS_REG)
    assert bench.run()[-1] == (1_200 + 2_000 + 212.5 + 1_000, "agents", "OK_REGISTER")


def _guest_lab(kind: str, **server: Any) -> Any:
    return small_lab(server, guest_scheduler={"kind": kind})


@pytest.mark.thorough
def test_the_same_work_is_done_under_every_process_scheduler() -> None:
    """No message is repeated at this load and no work grows, so CPU time and attempts do not depend on the order."""
    kept = {"location_write_cost": 300 * US, "database_cost": 200 * US, "location_flush_period": 5 * S, **FLUSH}
    found = set()
    for kind in guest_schedulers():
        lab, phases = run(_guest_lab(kind, **kept))
        assert sum(phase.ihs_percent() for phase in phases) == 0
        found.add((domain_ns(lab, "sut"), *(tuple(phase.attempts) for phase in phases)))
    assert len(found) == 1


@pytest.mark.slow
def test_both_engines_play_the_same_lab_with_all_of_it() -> None:
    server = {
        "touch_cost": 2_800 * US,
        "database_cost": 200 * US,
        "location_write_cost": 2 * MS,
        "location_flush_period": 5 * S,
        "timers_wait_for_flush": True,
        "nonces_good_once": True,
        "growth_with_utilization": 0.5,
        "repeated_request_cost": 0.65,
    }
    spec = _guest_lab("o1", **server, **FLUSH)
    played = [Run(spec, 7, 0, engine=engine).run().played() for engine in ("simpy", "compiled")]
    assert max(phase.ihs_percent() for phase in played[0]) > 0
    assert fingerprint(played[0]) == fingerprint(played[1])
