"""The transaction table: how long it holds what, what removing costs, and how it makes work grow."""

from __future__ import annotations

import pytest
from bench import MS, US, Bench, S, plain_server
from hypothesis import given, settings
from hypothesis import strategies as st

from vftsim.platform.io.packet import packets
from vftsim.workloads.sip.messages import Message, Scenario, streams
from vftsim.workloads.sip.records import sip_servers
from vftsim.workloads.sip.transactions import add_use, complete, create, tick


class Table:
    """The transaction table of a server that gets no messages."""

    def __init__(self, wait_periods: int) -> None:
        self.bench = Bench(plain_server(transaction_wait=wait_periods * S))
        self.row = self.bench.wires.engine.rows(sip_servers)[self.bench.wires.server_row]
        self.open: list[int] = []
        stream, _ = self.bench.wires.engine.add(streams, number=1, uses=1)
        _, self.packet = self.bench.wires.engine.add(packets, stream=stream, message=int(Message.MESSAGE))

    def create(self) -> None:
        row = self.bench.wires.call(create, self.row, self.packet)
        self.bench.wires.call(add_use, row)  # the next request replaces it, and it is still to be completed
        self.open.append(row)

    def complete(self) -> None:
        self.bench.wires.call(complete, self.row, self.open.pop(0), int(Message.OK_MESSAGE))

    def tick(self) -> int:
        return int(self.bench.wires.call(tick, self.row))


def test_a_completed_transaction_is_held_for_its_wait_and_the_period_it_completed_in() -> None:
    table = Table(5)
    table.create()
    assert [table.tick() for _ in range(20)] == [0] * 20  # not completed: held for ever
    table.complete()
    assert [table.tick() for _ in range(7)] == [0, 0, 0, 0, 0, 1, 0]
    assert (table.row.held, table.row.created) == (0, 1)


HISTORIES = given(st.lists(st.sampled_from(["create", "complete", "tick"]), max_size=200), st.integers(1, 8))


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@HISTORIES
def test_created_is_held_plus_expired_for_any_history(history: list[str], wait_periods: int) -> None:
    check_history(history, wait_periods)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@HISTORIES
def test_created_is_held_plus_expired_for_many_histories(history: list[str], wait_periods: int) -> None:
    check_history(history, wait_periods)


def check_history(history: list[str], wait_periods: int) -> None:
    table = Table(wait_periods)
    completed = expired = ticks = 0
    due: dict[int, int] = {}
    for what in history:
        if what == "create":
            table.create()
        elif what == "complete" and completed < table.row.created:
            completed += 1
            table.complete()
            due[ticks + wait_periods + 1] = due.get(ticks + wait_periods + 1, 0) + 1
        elif what == "tick":
            ticks += 1
            now_expired = table.tick()
            assert now_expired == due.get(ticks, 0)
            expired += now_expired
        assert table.row.held == table.row.created - expired >= 0


def test_transactions_expire_with_the_timer_and_cost_what_they_are_said_to_cost() -> None:
    """Three page messages are complete within 20 ms; the timer of 6 s finds them.

    Housekeeping: 50 ms because something expired and 3 x 1 ms for the removal; nothing at 7 s.
    """
    bench = Bench(plain_server(housekeeping_cost=50 * MS, removal_cost=1 * MS))
    bench.server.start()
    for at_us in (0, 5_000, 10_000):
        bench.attempt(Scenario.IMS_MSGC, at_us=at_us)
    bench.run(5_999_999)
    work_ns = 3 * 4 * 100 * US
    assert (bench.server.held, bench.busy_ns()) == (3, work_ns)
    bench.run(6_500_000)
    assert (bench.server.held, bench.busy_ns()) == (0, work_ns + 53 * MS)
    bench.run(10_000_000)
    assert bench.busy_ns() == work_ns + 53 * MS


def test_a_message_that_arrives_during_housekeeping_waits_for_it() -> None:
    """Housekeeping 6.000 - 6.050 s; a REGISTER that reaches the server at 6.010 is answered at 6.0502."""
    bench = Bench(plain_server(housekeeping_cost=50 * MS))
    bench.server.start()
    bench.attempt(Scenario.IMS_MSGC)
    bench.attempt(Scenario.IMS_REG, at_us=6_009_000)
    bench.run(7e6)
    assert (6_051_200, "agents", "UNAUTHORIZED") in bench.log


def test_changed_location_records_are_written_every_minute_when_no_message_waits() -> None:
    """Three registrations, 50 ms a record: three jobs from 60 s on.

    A REGISTER that reaches the server at 60.011 waits for the first record, goes before the second and is answered at
    60.0502 (+ 1 ms); its second part comes at 60.0522 and waits for the second record, which began at 60.0502.  What
    it changed is written at 120 s.
    """
    bench = Bench(plain_server(location_write_cost=50 * MS))
    bench.server.start()
    for number in range(3):
        bench.attempt(Scenario.IMS_REG, at_us=10_000 * number)
    registration_ns = 4 * 100 * US
    bench.run(59_999_999)
    assert bench.busy_ns() == 3 * registration_ns
    bench.attempt(Scenario.IMS_REG, at_us=60_010_000)
    log = bench.run(119_999_999)
    assert (60_051_200, "agents", "UNAUTHORIZED") in log
    assert (60_101_400, "agents", "OK_REGISTER") in log
    assert bench.busy_ns() == 4 * registration_ns + 150 * MS
    bench.run(200_000_000)
    assert bench.busy_ns() == 4 * registration_ns + 200 * MS


def test_writing_records_waits_for_all_messages() -> None:
    """Ten page messages are in the queue at 60 s: the record of the one registration is written after them."""
    bench = Bench(plain_server(location_write_cost=50 * MS, touch_cost=10 * MS))
    bench.server.start()
    bench.attempt(Scenario.IMS_REG)
    for _ in range(10):
        bench.attempt(Scenario.IMS_MSGC, at_us=59_950_000)
    log = bench.run(62_000_000)
    last_us = max(at_us for at_us, where, what in log if where == "agents" and what == "MESSAGE")
    assert last_us == 59_950_000 + 1_000 + 10 * 20_000 + 1_000
    assert bench.busy_ns() == 4 * 100 * US + 10 * 4 * 10 * MS + 50 * MS


def test_a_registration_without_answer_changes_no_record() -> None:
    """The first REGISTER only asks for the challenge: messages and calls change nothing either."""
    bench = Bench(plain_server(location_write_cost=50 * MS))
    bench.server.start()
    bench.attempt(Scenario.IMS_MSGC)
    bench.run(61_000_000)
    assert bench.busy_ns() == 4 * 100 * US


def test_a_stall_delays_what_arrives_in_it_and_uses_no_cpu() -> None:
    """Stall 10.0 - 10.3 s: a REGISTER that reaches the server at 10.1 s is answered at 10.3002 s; the next at 20 s."""
    bench = Bench(plain_server(stall_period=10 * S, stall_duration=300 * MS))
    bench.server.start()
    bench.attempt(Scenario.IMS_REG, at_us=9_990_000)
    bench.attempt(Scenario.IMS_REG, at_us=10_099_000)
    bench.attempt(Scenario.IMS_REG, at_us=10_400_000)
    log = bench.run(19_000_000)
    answered = [at_us for at_us, where, what in log if where == "agents" and what == "UNAUTHORIZED"]
    assert answered == [9_992_200, 10_301_200, 10_402_200]
    assert bench.busy_ns() == 3 * 4 * 100 * US


def test_work_grows_with_the_completed_transactions() -> None:
    """1 % for each completed one in memory: nine page messages when the INVITE comes: 0.3 ms x 1.09."""
    bench = Bench(plain_server(growth_per_transaction=0.01))
    for number in range(9):
        bench.attempt(Scenario.IMS_MSGC, at_us=10_000 * number)
    bench.attempt(Scenario.IMS_UAC, at_us=200_000)
    bench.run(210_000)
    assert (200_000 + 1_000 + 327 + 1_000, "agents", "INVITE") in bench.log


def test_work_grows_with_the_attempts_served() -> None:
    """The table forgets after 6 s, this growth does not: nine served long ago and the call itself."""
    bench = Bench(plain_server(growth_per_attempt=0.01))
    bench.server.start()
    for number in range(9):
        bench.attempt(Scenario.IMS_MSGC, at_us=10_000 * number)
    bench.attempt(Scenario.IMS_UAC, at_us=20_000_000)
    bench.run(20_010_000)
    assert bench.server.held == 1
    assert (20_000_000 + 1_000 + 330 + 1_000, "agents", "INVITE") in bench.log


def test_work_on_relayed_messages_grows_with_the_workers_at_work() -> None:
    """10 % for each other one: three page messages at once take 0.2, 0.22 and 0.24 ms, registrations 0.2 ms each."""
    bench = Bench(plain_server(growth_per_active_worker=0.1, processes=3))
    for _ in range(3):
        bench.attempt(Scenario.IMS_MSGC)
    for _ in range(3):
        bench.attempt(Scenario.IMS_REG, at_us=50_000)
    log = bench.run(100_000)
    forwarded = [at_us - 2_000 for at_us, where, what in log if (where, what) == ("agents", "MESSAGE")]
    assert forwarded == [200, 420, 660]
    challenged = [at_us - 52_000 for at_us, where, what in log if (where, what) == ("agents", "UNAUTHORIZED")]
    assert challenged == [200, 400, 600]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_cost_of_a_retransmission_is_a_share_of_the_message(share: float) -> None:
    bench = Bench(
        plain_server(retransmission_cost=share),
        loses=lambda where, message, nth: where == "agents" and message is Message.OK_MESSAGE and nth == 1,
    )
    bench.attempt(Scenario.IMS_MSGC)
    bench.run()
    assert bench.busy_ns() == int((4 + 2 * share) * 100 * US)
