"""Calls through a proxy of a farm written a second time, from docs/workloads/sip-farm.md and RFC 3261.

It shares nothing with the package.  A call that is over is nobody's: neither end repeats anything then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.reference_clock import ARRIVAL, Clock, Timer
from tests.workloads.reference_services import Cpu, Link, Pool

FOR_CALLEE = ("INVITE", "ACK", "BYE")


@dataclass
class Setting:
    """``costs_ns`` by message; ``lost`` are numbers of frames on the lines to the server and from it."""

    rate: int
    latency_ns: int
    size: int
    costs_ns: dict[str, int]
    repeat_share: float
    threads: int
    backlog: int
    registered: bool
    hold_ns: int
    t1_ns: int
    t2_ns: int
    lost: tuple[list[int], list[int]]

    @property
    def longest_ns(self) -> int:
        return 64 * self.t1_ns


class Lossy(Link):
    """Each message is one frame."""

    def __init__(self, clock: Clock, setting: Setting, lost: list[int]) -> None:
        super().__init__(clock, setting.rate, setting.latency_ns)
        self.lost, self.frames = set(lost), 0

    def send(self, size: int, number: int, arrive: Callable[[], None]) -> None:
        is_lost = self.frames in self.lost
        self.frames += 1
        super().send(size, number, (lambda: None) if is_lost else arrive)


class Call:
    """Both user agents, and what the server knows of the call; ``row`` orders what comes at one instant."""

    def __init__(self, test: Test, number: int, row: int) -> None:
        self.test, self.number, self.row, clock = test, number, row, test.clock
        self.stage, self.asked_ns, self.wait_ns = "", 0, 0
        self.caller, self.callee, self.forward = (
            Timer(clock, action, row) for action in (self._caller_due, self._callee_due, self._forward_due)
        )
        self.is_answered = self.is_acknowledged = self.has_picked_up = self.is_known = False
        self.callee_ns = self.callee_wait_ns = self.forward_ns = self.forward_wait_ns = 0

    def begin(self) -> None:
        self._ask("registering" if self.test.setting.registered else "inviting")

    def _ask(self, stage: str) -> None:
        self.stage, self.asked_ns, self.wait_ns = stage, self.test.clock.now_ns, self.test.setting.t1_ns
        self._send_request()
        self.caller.set(self.wait_ns)

    def _send_request(self) -> None:
        self.send({"registering": "REGISTER", "inviting": "INVITE", "ending": "BYE"}[self.stage])

    def send(self, message: str) -> None:
        self.test.note(self, "sent", message)
        self.test.to_server.send(self.test.setting.size, self.row, partial(self.test.pool.take, (self, message)))

    def _close(self, *, has_failed: bool) -> None:
        self.test.failed += has_failed
        self.stage = "over"
        for timer in (self.caller, self.callee, self.forward):
            timer.stop()

    def _caller_due(self) -> None:
        now_ns, setting = self.test.clock.now_ns, self.test.setting
        if self.stage == "established":
            self._ask("ending")
        elif self.stage == "proceeding" or now_ns - self.asked_ns >= setting.longest_ns:
            self._close(has_failed=True)
        else:
            self.test.repeated += 1
            self._send_request()
            self.wait_ns = 2 * self.wait_ns if self.stage == "inviting" else min(2 * self.wait_ns, setting.t2_ns)
            self.caller.set(min(self.wait_ns, self.asked_ns + setting.longest_ns - now_ns))

    def take(self, message: str) -> None:
        if self.stage == "over":
            return
        self.test.note(self, "came", message)
        (self._take_at_callee if message in FOR_CALLEE else self._take_at_caller)(message)

    def _take_at_caller(self, message: str) -> None:
        now_ns, setting = self.test.clock.now_ns, self.test.setting
        if message == "REGISTERED" and self.stage == "registering":
            self._ask("inviting")
        elif message in ("TRYING", "RINGING") and self.stage == "inviting":
            self.stage = "proceeding"
            self.caller.set(self.asked_ns + setting.longest_ns - now_ns)
        elif message == "OK":
            if not self.is_answered:
                self.is_answered, self.stage = True, "established"
                self.test.answered += 1
                self.caller.set(setting.hold_ns)
            self.send("ACK")
        elif message == "BYE_OK" and self.stage == "ending":
            self._close(has_failed=False)

    def _take_at_callee(self, message: str) -> None:
        if message == "BYE":
            self.send("BYE_OK")
        elif message == "ACK":
            self.is_acknowledged = True
            self.callee.stop()
        elif not self.has_picked_up and not self.is_acknowledged:
            self.has_picked_up = True
            self.send("RINGING")
            self.send("OK")
            self.callee_ns, self.callee_wait_ns = self.test.clock.now_ns, self.test.setting.t1_ns
            self.callee.set(self.callee_wait_ns)

    def _callee_due(self) -> None:
        setting = self.test.setting
        if self.test.clock.now_ns - self.callee_ns < setting.longest_ns:
            self.test.repeated += 1
            self.send("OK")
            self.callee_wait_ns = min(2 * self.callee_wait_ns, setting.t2_ns)
            self.callee.set(self.callee_wait_ns)

    # The server

    def forwarded(self) -> None:
        """The first INVITE goes on: RFC 3261, 16.6 and 17.1.1.2."""
        if self.stage != "over":
            self.forward_ns, self.forward_wait_ns = self.test.clock.now_ns, self.test.setting.t1_ns
            self.forward.set(self.forward_wait_ns)

    def _forward_due(self) -> None:
        self.forward_wait_ns *= 2
        due_ns = self.test.clock.now_ns + self.forward_wait_ns
        if due_ns - self.forward_ns < self.test.setting.longest_ns:
            self.forward.set(self.forward_wait_ns)
        self.test.leave(self, "INVITE")


class Test:
    """``log`` is what user agents sent and got: when, whose, which."""

    __test__ = False

    def __init__(self, setting: Setting, begins: list[tuple[int, int, int]]) -> None:
        self.setting, self.clock = setting, Clock()
        self.to_server, self.from_server = (Lossy(self.clock, setting, lost) for lost in setting.lost)
        self.cpu = Cpu(self.clock)
        self.pool = Pool(setting.threads, setting.backlog, self._begin)
        self.log: list[tuple[int, int, str, str]] = []
        self.answered = self.failed = self.repeated = 0
        for number, row, begin_ns in begins:
            self.clock.at(begin_ns, ARRIVAL, 0, Call(self, number, row).begin)

    def note(self, call: Call, what: str, message: str) -> None:
        self.log.append((self.clock.now_ns, call.number, what, message))

    def leave(self, call: Call, message: str) -> None:
        self.from_server.send(self.setting.size, call.row, partial(call.take, message))

    def _begin(self, taken: object) -> None:
        call, message = taken  # type: ignore[misc]
        is_repeat = message == "INVITE" and call.is_known
        call.is_known |= message == "INVITE"
        if message in ("RINGING", "OK"):
            call.forward.stop()
        cost_ns = self.setting.costs_ns[message]
        cost_ns = int(cost_ns * self.setting.repeat_share) if is_repeat else cost_ns
        self.cpu.do(cost_ns, partial(self._done, call, message, is_repeat))

    def _done(self, call: Call, message: str, is_repeat: bool) -> None:
        if message == "INVITE":
            self.leave(call, "TRYING")
        if message == "INVITE" and not is_repeat:
            call.forwarded()
        if not is_repeat:
            self.leave(call, "REGISTERED" if message == "REGISTER" else message)
        self.pool.release()

    def run(self, until_ns: int) -> Test:
        self.clock.run(until_ns)
        return self
