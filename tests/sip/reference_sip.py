"""User agents and a stateful proxy over UDP written a second time, from docs/sip/retransmission.md and server.md.

It shares nothing with the package.  A callee, a caller and the server know of each other what their messages say; the
server does its work in order of arrival.  Messages are named as in the package's log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tests.reference_clock import ARRIVAL, DELIVERY, TIMER, WORK, Clock, S, Timer

TOUCHES = {"INVITE": 3}
RELAYED_REQUESTS = ("INVITE", "BYE", "MESSAGE")
FINAL = {"INVITE": "OK_INVITE", "BYE": "OK_BYE", "MESSAGE": "OK_MESSAGE"}
GIVE_UP_NS = 30 * S

Loss = Callable[[str, str, int], bool]


@dataclass
class Setting:
    """Prices of repetitions are relative to a new message; ``socket`` is how many datagrams wait at most."""

    wire_ns: int
    touch_ns: int
    register_touch_ns: int
    t1_ns: int
    t2_ns: int
    server_t1_ns: int
    server_t2_ns: int
    again: float
    own_repeat: float
    processes: int
    socket: int
    after_send: float


class Repeats:
    """RFC 3261, 17.1.1.2 and 17.1.2.2: after T1, then after twice the last wait, at most the ceiling."""

    def __init__(
        self, clock: Clock, first_ns: int, ceiling_ns: int | None, send: Callable[[], None], give_up: Callable[[], None]
    ) -> None:
        self.clock, self.wait_ns, self.ceiling_ns, self.send, self.give_up = clock, first_ns, ceiling_ns, send, give_up
        self.left: int | None = None
        self.end_ns: int | None = None
        self.timer = Timer(clock, self._due)

    @property
    def is_on(self) -> bool:
        return self.timer.is_set

    def start(self) -> Repeats:
        left_ns = self.wait_ns if self.end_ns is None else min(self.wait_ns, self.end_ns - self.clock.now_ns)
        self.timer.set(left_ns)
        return self

    def stop(self) -> None:
        self.timer.stop()

    def _due(self) -> None:
        if self.left == 0 or (self.end_ns is not None and self.clock.now_ns >= self.end_ns):
            self.give_up()
            return
        self.left = None if self.left is None else self.left - 1
        self.wait_ns = 2 * self.wait_ns if self.ceiling_ns is None else min(2 * self.wait_ns, self.ceiling_ns)
        self.start()
        self.send()


@dataclass
class Transaction:
    """At the server: its request, the last reply it has sent, and the repetition of what it has forwarded."""

    call: Call
    request: str
    replied: str = ""
    is_final: bool = False
    repeats: Repeats | None = None

    def answered(self) -> None:
        if self.repeats is not None:
            self.repeats.stop()


@dataclass
class Call:
    """An attempt: a caller and a callee."""

    test: Test
    number: int
    scenario: str
    ring_ns: int
    hold_ns: int
    seen: set[str] = field(default_factory=set)
    client: Repeats | None = None
    callee: Repeats | None = None
    has_picked_up: bool = False
    is_over: bool = False
    has_failed: bool = False
    transaction: Transaction | None = None

    def begin(self) -> None:
        self.ask({"IMS_UAC": "INVITE", "IMS_MSGC": "MESSAGE"}.get(self.scenario, "REGISTER"))

    def ask(self, request: str) -> None:
        setting = self.test.setting
        is_invite = request == "INVITE"
        send = partial(self.test.to_server, self, request)
        ceiling_ns = None if is_invite else setting.t2_ns
        self.client = Repeats(self.test.clock, setting.t1_ns, ceiling_ns, send, self.fail)
        self.client.left = 5 if is_invite else 9
        self.client.start()
        send()

    def stop_asking(self) -> None:
        if self.client is not None:
            self.client.stop()

    def fail(self) -> None:
        self.has_failed = True
        self.end()

    def end(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.test.ended.append((self.test.clock.now_ns, self.number, self.has_failed))

    def take(self, message: str) -> None:
        """Act on what comes from the server."""
        is_first = message not in self.seen
        self.seen.add(message)
        if message in ("INVITE", "ACK", "BYE", "MESSAGE"):
            self._called(message, is_first)
        elif message in ("TRYING", "RINGING"):
            self.stop_inviting()
        elif message == "OK_INVITE":
            self.stop_inviting() if is_first else None
            self.test.to_server(self, "ACK")
        elif not self.is_over and (is_first or message == "REQUEST_TIMEOUT"):
            self.stop_asking()
            self._answered(message)

    def stop_inviting(self) -> None:
        if "BYE sent" not in self.seen:
            self.stop_asking()

    def _answered(self, message: str) -> None:
        if message == "UNAUTHORIZED":
            self.ask("REGISTER_CREDENTIALS")
        elif message == "REQUEST_TIMEOUT":
            self.fail()
        else:
            self.end()

    def _called(self, message: str, is_first: bool) -> None:
        send = partial(self.test.to_server, self)
        if message == "INVITE":
            send("OK_INVITE" if self.has_picked_up else "RINGING")
            if is_first:
                self.test.clock.at(self.test.clock.now_ns + self.ring_ns, TIMER, self.number, self.pick_up)
        elif message == "ACK":
            if self.callee is not None:
                self.callee.stop()
            if is_first and not self.is_over:
                self.test.clock.at(self.test.clock.now_ns + self.hold_ns, TIMER, self.number, self.hang_up)
        else:
            send(FINAL[message])

    def pick_up(self) -> None:
        setting = self.test.setting
        self.has_picked_up = True
        send = partial(self.test.to_server, self, "OK_INVITE")
        self.callee = Repeats(self.test.clock, setting.t1_ns, setting.t2_ns, send, self.fail)
        self.callee.left = 9
        self.callee.start()
        send()

    def hang_up(self) -> None:
        if not self.is_over:
            self.seen.add("BYE sent")
            self.ask("BYE")


class Test:
    """``log`` is every arrival: when, where, what; ``ended`` every attempt: when, which, whether in failure."""

    __test__ = False

    def __init__(self, setting: Setting, loses: Loss) -> None:
        self.setting, self.loses, self.clock = setting, loses, Clock()
        self.log: list[tuple[int, str, str]] = []
        self.ended: list[tuple[int, int, bool]] = []
        self.sent: dict[tuple[str, str], int] = {}
        self.work: deque[tuple[int, int, Callable[[], None], Callable[[], None]]] = deque()
        self.waiting: deque[tuple[Call, str]] = deque()
        self.idle, self.is_working = setting.processes, False

    def begin(self, number: int, scenario: str, start_ns: int, ring_ns: int, hold_ns: int) -> None:
        self.clock.at(start_ns, ARRIVAL, number, Call(self, number, scenario, ring_ns, hold_ns).begin)

    def _send(self, where: str, call: Call, message: str, take: Callable[[], None]) -> None:
        nth = self.sent[where, message] = self.sent.get((where, message), 0) + 1
        if not self.loses(where, message, nth):
            self.clock.at(self.clock.now_ns + self.setting.wire_ns, DELIVERY, call.number, take)

    def to_server(self, call: Call, message: str) -> None:
        self._send("server", call, message, partial(self._serve, call, message))

    def to_agents(self, call: Call, message: str) -> None:
        def take() -> None:
            self.log.append((self.clock.now_ns, "agents", message))
            call.take(message)

        self._send("agents", call, message, take)

    # The server

    def _serve(self, call: Call, message: str) -> None:
        self.log.append((self.clock.now_ns, "server", message))
        if self.idle:
            self.idle -= 1
            self._work_on(call, message)
        elif len(self.waiting) < self.setting.socket:
            self.waiting.append((call, message))

    def _work_on(self, call: Call, message: str) -> None:
        transaction, is_again = self._met(call, message)
        touch_ns = self.setting.register_touch_ns if message.startswith("REG") else self.setting.touch_ns
        cost = TOUCHES.get(message, 2) * touch_ns * (self.setting.again if is_again else 1.0)
        after_ns = int(cost * self.setting.after_send)
        answer = partial(self._answer, call, message, transaction, is_again)
        self._do(int(cost) - after_ns, answer, after_ns, self._release)

    def _release(self) -> None:
        if self.waiting:
            self._work_on(*self.waiting.popleft())
        else:
            self.idle += 1

    def _do(
        self, cost_ns: int, done: Callable[[], None], after_ns: int = 0, over: Callable[[], None] = lambda: None
    ) -> None:
        """Have a process work, send what comes of it, and do the rest, without losing the CPU between them."""
        self.work.append((cost_ns, after_ns, done, over))
        self._next()

    def _next(self) -> None:
        if not self.is_working and self.work:
            self.is_working = True
            cost_ns, after_ns, done, over = self.work.popleft()
            self.clock.at(self.clock.now_ns + cost_ns, WORK, 0, lambda: self._sent(done, after_ns, over))

    def _sent(self, done: Callable[[], None], after_ns: int, over: Callable[[], None]) -> None:
        done()
        if after_ns:
            self.clock.at(self.clock.now_ns + after_ns, WORK, 0, lambda: self._end(over))
        else:
            self._end(over)

    def _end(self, over: Callable[[], None]) -> None:
        over()
        self.is_working = False
        self._next()

    def _met(self, call: Call, message: str) -> tuple[Transaction | None, bool]:
        """Return the transaction that a message meets, and whether it is a repetition."""
        if message.startswith("REG"):
            return None, False
        met = call.transaction
        if message in RELAYED_REQUESTS:
            if met is not None and met.request == message:
                return met, True
            call.transaction = Transaction(call, message)
            return call.transaction, False
        return met, met is not None and met.is_final and message != "ACK"

    def _answer(self, call: Call, message: str, transaction: Transaction | None, is_again: bool) -> None:
        if message == "REGISTER":
            self.to_agents(call, "UNAUTHORIZED")
        elif message == "REGISTER_CREDENTIALS":
            self.to_agents(call, "OK_REGISTER")
        elif message == "ACK":
            self.to_agents(call, "ACK")
        elif transaction is None:
            pass
        elif message not in RELAYED_REQUESTS:
            self._relay(call, message, transaction, is_again)
        elif not is_again:
            self._forward(transaction)
        elif transaction.replied:
            self.to_agents(call, transaction.replied)

    def _relay(self, call: Call, message: str, transaction: Transaction, is_again: bool) -> None:
        transaction.answered()
        if message == "RINGING":
            if not transaction.is_final:
                transaction.replied = message
                self.to_agents(call, message)
        elif message == "OK_INVITE" or not is_again:
            if not transaction.is_final:
                transaction.is_final, transaction.replied = True, message
            self.to_agents(call, message)

    def _forward(self, transaction: Transaction) -> None:
        setting, call = self.setting, transaction.call
        is_invite = transaction.request == "INVITE"
        if is_invite:
            transaction.replied = "TRYING"
            self.to_agents(call, "TRYING")
        self.to_agents(call, transaction.request)
        repeat, give_up = partial(self._repeat, transaction), partial(self._give_up, transaction)
        ceiling_ns = None if is_invite else setting.server_t2_ns
        transaction.repeats = Repeats(self.clock, setting.server_t1_ns, ceiling_ns, repeat, give_up)
        transaction.repeats.end_ns = self.clock.now_ns + GIVE_UP_NS
        transaction.repeats.start()

    def _repeat(self, transaction: Transaction) -> None:
        def done() -> None:
            if transaction.repeats is not None and transaction.repeats.is_on:
                self.to_agents(transaction.call, transaction.request)

        self._do(int(self.setting.touch_ns * self.setting.own_repeat), done)

    def _give_up(self, transaction: Transaction) -> None:
        transaction.is_final, transaction.replied = True, "REQUEST_TIMEOUT"
        self._do(self.setting.touch_ns, partial(self.to_agents, transaction.call, "REQUEST_TIMEOUT"))

    def run(self, until_ns: int) -> Test:
        self.clock.run(until_ns)
        return self
