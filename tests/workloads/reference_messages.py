"""Messages over TCP in windows written a second time, from docs/workloads/request-response.md: when each answer comes.

It shares nothing with the package.  A server with one thread answers clients of a closed loop, or requests at instants
that are given; lines carry messages in order, and lose frames of given numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from tests.reference_clock import ARRIVAL, DELIVERY, TIMER, WORK, Clock, S

FRAME, ACKNOWLEDGEMENT = 1538, 90
LARGEST_WINDOW = 3 << 20
IDLE_NS = S // 5
LONGEST_RETRY_NS = 60 * S


@dataclass
class Setting:
    """``retries`` None: a closed loop, which repeats only what was lost, for ever."""

    rate: int = S
    latency_ns: int = 50_000
    initial_window: int = 10
    request: int = 128
    answer: int = 128
    demand_ns: int = 10_000
    backlog: int = 1000
    retry_ns: int = S // 5
    retries: int | None = None
    turn_around_ns: int = 10_000
    lost: tuple[list[int], list[int]] = ([], [])

    def line_ns(self, size: int) -> int:
        return size * 8 * S // self.rate


class Line:
    """One direction: in order, however much waits."""

    def __init__(self, clock: Clock, setting: Setting, lost: list[int]) -> None:
        self.clock, self.setting, self.lost = clock, setting, set(lost)
        self.free, self.frames = Fraction(0), 0
        self.sent: list[tuple[int, int]] = []

    def send(self, size: int, client: int, arrive: Callable[[], None], lose: Callable[[], None] | None) -> int:
        """Send what is lost with one of its last three frames, and comes later with another; ``lose`` None: never.

        Return when it comes without a loss.
        """
        self.free = max(Fraction(self.clock.now_ns), self.free) + Fraction(size * 8 * S, self.setting.rate)
        arrival_ns = int(self.free) + self.setting.latency_ns
        self.sent.append((int(self.free), size))
        count = -(-size // FRAME)
        numbers = range(self.frames, self.frames + count) if lose else range(0)
        self.frames += len(numbers)
        lost = [n for n in numbers if n in self.lost]
        if lose and lost and numbers.stop - 1 - lost[-1] < 3:
            lose()
        else:
            self.clock.at(arrival_ns + (2 * self.setting.latency_ns if lost else 0), DELIVERY, client, arrive)
        return arrival_ns


@dataclass
class Window:
    """What a sender has had acknowledged, since it was idle last; ``heard_ns`` is when it heard that last."""

    size: int = 0
    heard_ns: int = 0
    round_ns: int = 0

    def present(self, now_ns: int, first: int) -> int:
        return max(first, self.size if now_ns - self.heard_ns <= IDLE_NS else 0)

    def acknowledged(self, sent: int, present: int, heard_ns: int) -> None:
        self.size = min(present + sent, LARGEST_WINDOW) if 2 * sent > present else present
        self.heard_ns = heard_ns


@dataclass
class Message:
    """One on its way, in windows; ``window`` is its connection's, or one of its own."""

    test: Test
    client: int
    size: int
    is_request: bool
    window: Window
    come: Callable[[], None]
    lose: Callable[[], None]

    def begin(self) -> None:
        first = self.test.setting.initial_window * FRAME
        self.left = self.size
        self.present = self.window.present(self.test.clock.now_ns, first) if first else self.size
        self._carry(self.present)

    def _carry(self, most: int) -> None:
        self.carried = min(most, self.left)
        self.left -= self.carried
        self.sent_ns = self.test.clock.now_ns
        line = self.test.to_host if self.is_request else self.test.from_host
        self.due_ns = line.send(self.carried, self.client, self._arrive, self.lose)

    def _arrive(self) -> None:
        clock, setting = self.test.clock, self.test.setting
        if self.left == 0:
            # A client expects its acknowledgement no earlier than after a round that it has waited for.
            heard_ns = max(self.due_ns + setting.latency_ns, self.sent_ns + self.window.round_ns)
            self._note(heard_ns if self.is_request else clock.now_ns + setting.latency_ns)
            self.come()
        elif self.is_request:
            self.test.from_host.send(ACKNOWLEDGEMENT, self.client, self._go_on, None)
        else:
            # The client acknowledges the first segment while the rest arrives.
            ahead_ns = setting.line_ns(self.carried) - setting.line_ns(FRAME)
            due_ns = clock.now_ns + max(0, setting.latency_ns - ahead_ns)
            clock.at(due_ns, DELIVERY, self.client, self._go_on)

    def _note(self, heard_ns: int) -> None:
        if self.test.setting.initial_window:
            self.window.acknowledged(self.carried, self.present, heard_ns)

    def _go_on(self) -> None:
        setting = self.test.setting
        self._note(self.test.clock.now_ns)
        self.window.round_ns = self.test.clock.now_ns - self.sent_ns
        self.present = self.window.size
        most = min(2 * self.carried, self.left)
        if setting.line_ns(most) >= self.test.clock.now_ns - self.sent_ns:
            most = self.left
        self._carry(most)


@dataclass
class Client:
    """``request`` numbers its requests; ``on_way`` tries of the present one have not been lost."""

    number: int
    requests: Window = field(default_factory=Window)
    answers: Window = field(default_factory=Window)
    request: int = 0
    begun_ns: int | None = None
    on_way: int = 0


class Test:
    """``ended`` are requests that were answered: when they began, and when the answer came."""

    __test__ = False

    def __init__(self, setting: Setting, begins_ns: list[tuple[int, int]]) -> None:
        self.setting, self.clock = setting, Clock()
        self.to_host, self.from_host = (Line(self.clock, setting, lost) for lost in setting.lost)
        self.socket: deque[tuple[Client, int]] = deque()
        self.is_busy = False
        self.ended: list[tuple[int, int]] = []
        self.repeated = 0
        for number, begin_ns in begins_ns:
            self.clock.at(begin_ns, ARRIVAL, number, partial(self.begin, Client(number)))

    @property
    def is_closed(self) -> bool:
        return self.setting.retries is None

    def begin(self, client: Client) -> None:
        client.request += 1
        client.begun_ns, client.on_way = self.clock.now_ns, 0
        self.ask(client, self.setting.retry_ns, 1)

    def ask(self, client: Client, wait_ns: int, tries: int) -> None:
        client.on_way += 1
        self.wait(client, wait_ns, tries)
        number = client.request
        window = client.requests if self.is_closed else Window(heard_ns=-S)
        come, lose = partial(self.take, client, number), partial(self.lose, client, number)
        Message(self, client.number, self.setting.request, True, window, come, lose).begin()

    def wait(self, client: Client, wait_ns: int, tries: int) -> None:
        if wait_ns:
            number = client.request
            due_ns = self.clock.now_ns + wait_ns
            self.clock.at(due_ns, TIMER, client.number, lambda: self.look(client, number, wait_ns, tries))

    def look(self, client: Client, number: int, wait_ns: int, tries: int) -> None:
        if client.request != number or client.begun_ns is None:
            return
        if not self.is_closed and tries > self.setting.retries:
            client.begun_ns = None
            return
        wait_ns = max(wait_ns, min(2 * wait_ns, LONGEST_RETRY_NS))
        if self.is_closed and client.on_way:
            self.wait(client, wait_ns, tries)
        else:
            self.repeated += 1
            client.requests, client.answers = Window(), Window()
            self.ask(client, wait_ns, tries + 1)

    def lose(self, client: Client, number: int) -> None:
        client.on_way -= client.request == number

    def take(self, client: Client, number: int) -> None:
        if len(self.socket) >= self.setting.backlog:
            self.lose(client, number)
            return
        self.socket.append((client, number))
        self.serve()

    def serve(self) -> None:
        if not self.is_busy and self.socket:
            self.is_busy = True
            client, number = self.socket.popleft()
            due_ns = self.clock.now_ns + self.setting.demand_ns
            self.clock.at(due_ns, WORK, client.number, lambda: self.answer(client, number))

    def answer(self, client: Client, number: int) -> None:
        self.is_busy = False
        window = client.answers if self.is_closed else Window(heard_ns=-S)
        come, lose = partial(self.end, client, number), partial(self.lose, client, number)
        Message(self, client.number, self.setting.answer, False, window, come, lose).begin()
        self.serve()

    def end(self, client: Client, number: int) -> None:
        if client.request != number or client.begun_ns is None:
            return
        self.ended.append((client.begun_ns, self.clock.now_ns))
        client.begun_ns = None
        if self.is_closed:
            due_ns = self.clock.now_ns + self.setting.turn_around_ns
            self.clock.at(due_ns, TIMER, client.number, lambda: self.begin(client))

    def run(self, until_ns: int) -> Any:
        self.clock.run(until_ns)
        return self
