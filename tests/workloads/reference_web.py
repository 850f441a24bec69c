"""httperf and a web server with a fixed pool written a second time, from docs/workloads/web-server.md.

It shares nothing with the package.  The server has one CPU, on which pieces of work queue in order of arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.reference_clock import ARRIVAL, DELIVERY, WORK, Clock, S, Timer
from tests.workloads.reference_messages import FRAME, LARGEST_WINDOW, Line
from tests.workloads.reference_messages import Setting as Network

MSS, HEADER, PIECE = 1448, 90, 45
LONGEST_RETRY_NS = 60 * S


@dataclass
class Setting:
    network: Network
    segments: int
    short: int
    before_ns: int
    piece_ns: int
    processes: int
    accept_queue: int
    aborts: bool
    timeout_ns: int
    request: int
    retry_ns: int
    linear: int


@dataclass(frozen=True)
class Packet:
    """``first`` is that of a piece, or of a request how many segments its client has."""

    kind: str
    first: int = 0
    count: int = 0


class Connection:
    """Both ends; ``begun_ns`` and what follows are what httperf counts."""

    def __init__(self, test: Test, number: int) -> None:
        self.test, self.number = test, number
        self.begun_ns = self.requested_ns = self.first_ns = 0
        self.stage = ""
        self.received, self.last = 0, -1
        self.early: tuple[int, int] | None = None
        self.repeats, self.wait_ns = 0, 0
        self.retry, self.limit = Timer(test.clock, self.repeat), Timer(test.clock, self.give_up)
        # The server's end.
        self.state = "unknown"
        self.made = self.sent = self.acked = self.window = 0
        self.has_left = False

    # The client

    def begin(self) -> None:
        self.begun_ns, self.stage = self.test.clock.now_ns, "connecting"
        self._progress()
        self.to_server(Packet("SYN"))
        self._watch(self.test.setting.retry_ns)

    def _progress(self) -> None:
        if self.test.setting.timeout_ns:
            self.limit.set(self.test.setting.timeout_ns)

    def _watch(self, wait_ns: int) -> None:
        self.wait_ns = min(wait_ns, LONGEST_RETRY_NS)
        self.retry.set(self.wait_ns)

    def repeat(self) -> None:
        self.repeats += 1
        self.test.repeated += 1
        is_linear = False
        if self.stage == "connecting":
            self.to_server(Packet("SYN"))
            is_linear = self.repeats <= self.test.setting.linear
        else:
            self.to_server(Packet("REQUEST", self.received))
        self._watch(self.wait_ns if is_linear else 2 * self.wait_ns)

    def give_up(self) -> None:
        self.test.given_up += 1
        self.close()

    def close(self) -> None:
        self.to_server(Packet("FIN"))
        self.stage = "closed"
        self.retry.stop()
        self.limit.stop()

    def to_server(self, packet: Packet) -> None:
        size = HEADER + (self.test.setting.request if packet.kind == "REQUEST" else 0)
        self.test.to_host.send(size, self.number, partial(self.serve, packet), self.test.lose)

    def take(self, packet: Packet, size: int) -> None:
        """Act on what comes from the server."""
        if self.stage == "closed":
            return
        if packet.kind == "SYN_ACK":
            if self.stage == "connecting":
                self.stage, self.requested_ns = "waiting", self.test.clock.now_ns
                self._progress()
                self.to_server(Packet("REQUEST"))
                self._watch(self.test.setting.retry_ns)
            return
        before, end = self.received, packet.first + packet.count
        self._receive(packet.first, end)
        if end == self.test.setting.segments:
            self.last = end
        elif self.test.setting.network.initial_window:
            self._acknowledge(size, max(end, self.received if self.received > before else 0))
        if self.received > before:
            self._take_piece()

    def _receive(self, first: int, end: int) -> None:
        """Keep what comes early behind one gap; throw away what comes behind another."""
        if first > self.received:
            if self.early is None:
                self.early = first, end
            elif first == self.early[1]:
                self.early = self.early[0], end
        else:
            self.received = max(self.received, end)
        if self.early is not None and self.early[0] <= self.received:
            self.received, self.early = max(self.received, self.early[1]), None

    def _acknowledge(self, size: int, end: int) -> None:
        network, now_ns = self.test.setting.network, self.test.clock.now_ns
        ahead_ns = network.line_ns(size) - network.line_ns(FRAME)
        due_ns = now_ns + max(0, network.latency_ns - ahead_ns)
        self.test.clock.at(due_ns, DELIVERY, self.number, partial(self.acknowledged, end))

    def _take_piece(self) -> None:
        now_ns = self.test.clock.now_ns
        if self.stage == "waiting":
            self.stage, self.first_ns = "receiving", now_ns
        if self.received == self.last:
            times_ns = self.requested_ns, self.first_ns, now_ns
            self.test.ended.append((self.begun_ns, *times_ns))
            self.close()
        else:
            self._progress()
            self._watch(self.test.setting.retry_ns)

    # The server

    @property
    def is_over(self) -> bool:
        """What is under way for a connection that both ends have closed finds nobody."""
        return self.stage == "closed" and self.state not in ("queued", "in work")

    def serve(self, packet: Packet) -> None:
        """Act on what comes from the client."""
        if self.is_over:
            return
        setting, waiting = self.test.setting, self.test.waiting
        is_new = (packet.kind, self.state) in (("SYN", "unknown"), ("REQUEST", "half open"))
        if len(waiting) > setting.accept_queue and is_new:
            self.test.lose()
        elif packet.kind == "SYN":
            self.state = "half open" if self.state == "unknown" else self.state
            self.to_client(Packet("SYN_ACK"), HEADER)
        elif packet.kind == "FIN":
            self.has_left = True
        elif self.state == "half open":
            self.state = "queued"
            self._begin_window(0)
            waiting.append(self)
            self.test.assign()
        elif packet.first < self.sent:
            self._begin_window(packet.first)
            self.send_open()

    def _begin_window(self, received: int) -> None:
        self.sent = self.acked = received
        self.window = self.test.setting.network.initial_window

    def acknowledged(self, end: int) -> None:
        if not self.is_over and end > self.acked:
            self.sent = max(self.sent, end)
            if 2 * (self.sent - self.acked) > self.window:
                self.window = min(self.window + end - self.acked, LARGEST_WINDOW // MSS)
            self.acked = end
            self.send_open()

    def send_open(self) -> None:
        """Send what may leave of what the script has put out."""
        setting = self.test.setting
        while True:
            count = min(self.made - self.sent, PIECE)
            if setting.network.initial_window:
                count = min(count, self.acked + self.window - self.sent)
            if count <= 0:
                return
            packet = Packet("PIECE", self.sent, count)
            self.sent += count
            size = count * (MSS + HEADER) - (setting.short if self.sent == setting.segments else 0)
            self.to_client(packet, size)

    def to_client(self, packet: Packet, size: int) -> None:
        self.test.from_host.send(size, self.number, partial(self.take, packet, size), self.test.lose)


class Test:
    """``ended`` are connections with a reply: when they began, asked, got the first piece and the last."""

    __test__ = False

    def __init__(self, setting: Setting, begins_ns: list[tuple[int, int]]) -> None:
        self.setting, self.clock = setting, Clock()
        self.to_host, self.from_host = (Line(self.clock, setting.network, lost) for lost in setting.network.lost)
        self.waiting: deque[Connection] = deque()
        self.work: deque[tuple[int, Callable[[], None]]] = deque()
        self.idle, self.is_working = setting.processes, False
        self.ended: list[tuple[int, ...]] = []
        self.given_up = self.repeated = self.dropped = 0
        for number, begin_ns in begins_ns:
            self.clock.at(begin_ns, ARRIVAL, number, Connection(self, number).begin)

    def lose(self) -> None:
        self.dropped += 1

    def assign(self) -> None:
        while self.idle and self.waiting:
            self.idle -= 1
            connection = self.waiting.popleft()
            connection.state = "in work"
            self._do(self.setting.before_ns + self.setting.piece_ns, partial(self._put_out, connection))

    def _do(self, cost_ns: int, done: Callable[[], None]) -> None:
        self.work.append((cost_ns, done))
        self._next()

    def _next(self) -> None:
        if self.is_working or not self.work:
            return
        self.is_working = True
        cost_ns, done = self.work.popleft()

        def end() -> None:
            self.is_working = False
            done()
            self._next()

        self.clock.at(self.clock.now_ns + cost_ns, WORK, 0, end)

    def _put_out(self, connection: Connection) -> None:
        has_aborted = connection.has_left and self.setting.aborts
        if not has_aborted:
            connection.made = min(connection.made + PIECE, self.setting.segments)
            connection.send_open()
        if has_aborted or connection.made == self.setting.segments:
            connection.state = "done"
            self.idle += 1
            self.assign()
        else:
            self._do(self.setting.piece_ns, partial(self._put_out, connection))

    def run(self, until_ns: int) -> Test:
        self.clock.run(until_ns)
        return self
