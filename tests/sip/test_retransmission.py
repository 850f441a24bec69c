"""When an unanswered message is sent again and when its sender gives up (RFC 3261 section 17; SIPp)."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest
from bench import MS, US, Bench, S, plain_server
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.kernel import EventKind, Linked, Record, Sim, Table, entry, event, link
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.workloads.sip.messages import Message, Scenario
from vftsim.workloads.sip.retransmission import NO_LIMIT, Repetition, begin, must_repeat, wait

_T1, _T2 = 500 * MS, 4 * S


class Repeater:
    """Repeats a message that is sent at 0; ``log`` has the instants in ns of repetitions and of giving up."""

    def __init__(self, first_ns: int, ceiling_ns: int, limit: int, lifetime_ns: int = 0) -> None:
        self.engine = SimpyEngine(_linked())
        self.log: list[tuple[int, str]] = []
        self.engine._actions[self.engine.number(on_wait)] = self._expired
        self.row, repeated = self.engine.add(repeateds)
        self.repetition = repeated.repetition
        begin(self.repetition, first_ns, ceiling_ns, limit, lifetime_ns)
        self.engine.call(first_wait, self.row)

    def stop_at(self, time_ns: int) -> None:
        """Let an answer come."""
        self.engine.at(time_ns, EventKind.DELIVERY, 1, self.engine.number(on_answer), self.row)

    def run(self) -> list[tuple[int, str]]:
        self.engine.run()
        return self.log

    def _expired(self, sim: Any, place: int, token: int) -> None:
        if token == self.repetition.timer:
            again = self.engine.call(ask_again, place)
            self.log.append((self.engine.now_ns, "send" if again else "give up"))


class Repeated(Record):
    repetition: Repetition


repeateds = Table("repeateds", Repeated, 2)


@entry
def first_wait(sim: Sim, row: int) -> None:
    wait(sim, repeateds(sim)[row].repetition, 1, on_wait, row)


@entry
def ask_again(sim: Sim, row: int) -> int:
    return 1 if must_repeat(sim, repeateds(sim)[row].repetition, 1, on_wait, row) else 0


@event
def on_wait(sim: Sim) -> None:
    pass


@event
def on_answer(sim: Sim, place: int) -> None:
    repeateds(sim)[place].repetition.timer = 0


@cache
def _linked() -> Linked:
    return link([first_wait, ask_again], {}, [on_wait, on_answer])


def _timeline(ceiling_ns: int, limit: int, lifetime_ns: int = 0) -> list[tuple[float, str]]:
    log = Repeater(_T1, ceiling_ns, limit, lifetime_ns).run()
    return [(0.0, "send"), *((time_ns / S, what) for time_ns, what in log)]


def test_invite_of_sipp_doubles_without_a_ceiling_and_gives_up_after_five() -> None:
    sends = [0, 0.5, 1.5, 3.5, 7.5, 15.5]
    assert _timeline(0, 5) == [*((t, "send") for t in sends), (31.5, "give up")]


def test_other_requests_of_sipp_wait_four_seconds_at_most_and_give_up_after_nine() -> None:
    sends = [0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5]
    assert _timeline(_T2, 9) == [*((t, "send") for t in sends), (31.5, "give up")]


def test_an_invite_of_rfc_3261_is_sent_seven_times() -> None:
    """Timer A: 7 sends within 64 T1 = 32 s."""
    assert [t for t, what in _timeline(0, 6) if what == "send"] == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5]


@pytest.mark.parametrize(
    ("ceiling_ns", "sends"),
    [(0, [0, 0.5, 1.5, 3.5, 7.5, 15.5]), (_T2, [0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5])],
)
def test_a_lifetime_ends_it_between_two_repetitions(ceiling_ns: int, sends: list[float]) -> None:
    assert _timeline(ceiling_ns, NO_LIMIT, 30 * S) == [*((t, "send") for t in sends), (30, "give up")]


def test_a_lifetime_that_ends_with_a_repetition_wins() -> None:
    assert _timeline(_T2, NO_LIMIT, 1_500 * MS) == [(0, "send"), (0.5, "send"), (1.5, "give up")]


def test_no_retransmissions_at_all_means_giving_up_after_t1() -> None:
    assert _timeline(_T2, 0) == [(0, "send"), (0.5, "give up")]


def test_an_answer_stops_it_for_good() -> None:
    repeater = Repeater(_T1, _T2, 9)
    repeater.stop_at(2 * S)
    assert [time_ns / S for time_ns, _ in repeater.run()] == [0.5, 1.5]


def test_an_answer_at_the_instant_of_the_timer_comes_first() -> None:
    repeater = Repeater(_T1, _T2, 9)
    repeater.stop_at(_T1)
    assert repeater.run() == []


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**9), st.integers(0, 10**10), st.integers(0, 12))
def test_waits_double_up_to_the_ceiling_for_any_setting(t1_ns: int, ceiling_ns: int, limit: int) -> None:
    log = Repeater(t1_ns, ceiling_ns, limit).run()
    times = [0, *(time_ns for time_ns, what in log if what == "send")]
    assert len(times) == limit + 1
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    for number, wait_ns in enumerate(waits):
        doubled_ns = t1_ns << number
        expected_ns = doubled_ns if not ceiling_ns or number == 0 else min(doubled_ns, max(ceiling_ns, 0))
        assert wait_ns == expected_ns


def _sends_us(scenario: Scenario, request: Message) -> tuple[list[float], float]:
    """Arrivals at the server of a request that never gets an answer, and when the attempt ends."""
    bench = Bench(loses=lambda where, _message, _nth: where == "agents")
    attempt = bench.attempt(scenario)
    bench.run()
    arrivals = [time / 1e6 for time, where, name in bench.log if (where, name) == ("server", request.name)]
    assert attempt.failed
    assert bench.record.inadequate[scenario] == 1
    ((ended_us, who),) = bench.ended
    assert who is attempt
    return arrivals, ended_us / 1e6


def test_an_unanswered_call_ends_after_31_5_s() -> None:
    arrivals, ended_s = _sends_us(Scenario.IMS_UAC, Message.INVITE)
    assert arrivals == pytest.approx([0.001, 0.501, 1.501, 3.501, 7.501, 15.501])
    assert ended_s == 31.5


@pytest.mark.parametrize(
    ("scenario", "request_message"),
    [(Scenario.IMS_MSGC, Message.MESSAGE), (Scenario.IMS_REG, Message.REGISTER)],
)
def test_an_unanswered_message_or_registration_ends_after_31_5_s(scenario: Scenario, request_message: Message) -> None:
    arrivals, ended_s = _sends_us(scenario, request_message)
    assert arrivals == pytest.approx([0.001 + t for t in (0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5)])
    assert ended_s == 31.5


def test_the_server_gives_up_a_message_that_nobody_answers_after_30_s() -> None:
    """Every MESSAGE that it forwards is lost: ten at the server's timers, then 408, half a second before SIPp's end."""
    bench = Bench(loses=lambda where, message, _nth: (where, message) == ("agents", Message.MESSAGE))
    attempt = bench.attempt(Scenario.IMS_MSGC)
    bench.run()
    assert attempt.failed
    assert bench.server.retransmissions == 9
    ((ended_us, _),) = bench.ended
    assert 30e6 < ended_us < 30.01e6


def test_the_server_gives_up_a_call_that_rings_for_too_long() -> None:
    """Every 200 of the callee is lost; the caller, who heard it ring, waits for the server's 408."""
    bench = Bench(
        plain_server(ringing_timeout=20 * S),
        loses=lambda where, message, _nth: (where, message) == ("server", Message.OK_INVITE),
    )
    bench.server.start()
    attempt = bench.attempt(Scenario.IMS_UAC)
    bench.run(25e6)
    assert attempt.failed
    ((ended_us, _),) = bench.ended
    assert 20e6 < ended_us < 21.1e6  # at the first run of the one-second timer after it
    assert bench.server.waiting == 1


def test_retransmissions_are_counted_by_scenario() -> None:
    bench = Bench(loses=lambda where, message, nth: where == "agents" and nth <= 2)
    bench.attempt(Scenario.IMS_REG)
    bench.attempt(Scenario.IMS_REREG, at_us=100 * S / US)
    bench.run(200 * S / US)
    again = bench.agents.repeated
    # First attempt: two 401s lost (0.5, 1.5 s), then two 200s lost; the second meets no loss.
    assert again[Scenario.IMS_REG] == 4
    assert sum(again) == 4
