"""A service that asks copies of another one, written a second time from docs/workloads/service.md and nginx's rules.

It shares nothing with the package.  Each copy has a CPU of its own; what goes from host to host crosses both links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from tests.reference_clock import ARRIVAL, DELIVERY, TIMER, WORK, Clock, S


@dataclass
class Entry:
    """Calls of a request, to the copies of one service."""

    count: int
    is_parallel: bool
    cost_ns: int
    size: int
    timeout_ns: int
    retries: int
    max_fails: int
    fail_timeout_ns: int


@dataclass
class Setting:
    """``back_ns`` is the demand of each copy."""

    threads: int
    demand_ns: int
    entries: list[Entry]
    back_ns: list[int]
    back_threads: int
    back_backlog: int
    rate: int
    latency_ns: tuple[int, int]
    """Of the clients' network, and of that between the services."""


class Link:
    def __init__(self, clock: Clock, rate: int, latency_ns: int) -> None:
        self.clock, self.rate, self.latency_ns = clock, rate, latency_ns
        self.free = Fraction(0)

    def send(self, size: int, number: int, arrive: Callable[[], None]) -> None:
        self.free = max(Fraction(self.clock.now_ns), self.free) + Fraction(size * 8 * S, self.rate)
        self.clock.at(int(self.free) + self.latency_ns, DELIVERY, number, arrive)


class Cpu:
    """Pieces of work in order of arrival."""

    def __init__(self, clock: Clock, number: int = 0) -> None:
        self.clock, self.number, self.work = clock, number, deque[tuple[int, Callable[[], None]]]()
        self.is_busy = False

    def do(self, cost_ns: int, done: Callable[[], None]) -> None:
        self.work.append((cost_ns, done))
        self._next()

    def _next(self) -> None:
        if self.work and not self.is_busy:
            self.is_busy = True
            cost_ns, done = self.work.popleft()
            self.clock.at(self.clock.now_ns + cost_ns, WORK, self.number, partial(self._end, done))

    def _end(self, done: Callable[[], None]) -> None:
        self.is_busy = False
        done()
        self._next()


class Pool:
    """Threads that take requests in order of arrival; ``begin`` is what one does with a request."""

    def __init__(self, threads: int, backlog: int, begin: Callable[[object], None]) -> None:
        self.free, self.backlog, self.begin = threads, backlog, begin
        self.waiting: deque[object] = deque()

    def take(self, request: object) -> None:
        if self.free:
            self.free -= 1
            self.begin(request)
        elif len(self.waiting) < self.backlog:
            self.waiting.append(request)

    def release(self) -> None:
        if self.waiting:
            self.begin(self.waiting.popleft())
        else:
            self.free += 1


@dataclass
class Peer:
    """ngx_http_upstream_rr_peer_t."""

    fails: int = 0
    accessed_ns: int = -1
    checked_ns: int = 0


@dataclass(eq=False)
class Call:
    request: Request
    number: int
    entry: Entry
    peer: int
    wait_ns: int
    tries: int = 0
    is_open: bool = True


@dataclass(eq=False)
class Request:
    """``entry`` is the next of the calls, ``left`` of the one before are still to be made."""

    begun_ns: int
    number: int
    entry: int = 0
    left: int = 0
    asked: list[Call] = field(default_factory=list)
    has_failed: bool = False


class Test:
    """``ended`` are requests: when they began and ended, and whether the answer says that they have failed."""

    __test__ = False

    def __init__(self, setting: Setting, begins: list[tuple[int, int]]) -> None:
        self.setting, self.clock = setting, Clock()
        copies = len(setting.back_ns)
        near, far = (
            [Link(self.clock, setting.rate, latency_ns) for _ in range(4)] for latency_ns in setting.latency_ns
        )
        self.to_front, self.from_front = near[:2]
        self.out, self.into_back, self.from_back, self.back_in = far
        self.cpu, self.cpus = Cpu(self.clock), [Cpu(self.clock, 1 + copy) for copy in range(copies)]
        self.pool = Pool(setting.threads, 1024, self._begin)
        self.pools = [
            Pool(setting.back_threads, setting.back_backlog, partial(self._work_back, copy)) for copy in range(copies)
        ]
        self.peers = [[Peer() for _ in range(copies)] for _ in setting.entries]
        self.turns = [0 for _ in setting.entries]
        self.calls = self.repeated = 0
        self.ended: list[tuple[int, int, bool]] = []
        for number, begin_ns in begins:
            request = Request(begin_ns, number)
            self.clock.at(begin_ns, ARRIVAL, number, partial(self._ask, request))

    def _ask(self, request: Request) -> None:
        self.to_front.send(512, request.number, partial(self.pool.take, request))

    # The front

    def _begin(self, request: object) -> None:
        assert isinstance(request, Request)
        self.cpu.do(self.setting.demand_ns, partial(self._go_on, request))

    def _go_on(self, request: Request) -> None:
        planned = self._plan(request)
        if not planned:
            self._finish(request)
        elif cost_ns := sum(call.entry.cost_ns for call in planned):
            self.cpu.do(cost_ns, partial(self._issue_all, planned))
        else:
            self._issue_all(planned)

    def _plan(self, request: Request) -> list[Call]:
        """The next call, or all parallel ones that stand together."""
        planned: list[Call] = []
        entries = self.setting.entries
        while True:
            if request.left:
                request.left -= 1
                planned.append(self._new_call(request, request.entry - 1))
                if not entries[request.entry - 1].is_parallel:
                    return planned
            elif request.entry == len(entries) or (planned and not entries[request.entry].is_parallel):
                return planned
            else:
                request.left = entries[request.entry].count
                request.entry += 1

    def _new_call(self, request: Request, row: int) -> Call:
        entry = self.setting.entries[row]
        peer = self._next_peer(row, self.turns[row], len(self.peers[row]))
        self.turns[row] = (peer + 1) % len(self.peers[row])
        call = Call(request, row, entry, peer, entry.timeout_ns)
        request.asked.append(call)
        return call

    def _next_peer(self, row: int, first: int, most: int) -> int:
        """ngx_http_upstream_get_peer, with the copies in turn; where all are passed over, the first."""
        peers, now_ns, entry = self.peers[row], self.clock.now_ns, self.setting.entries[row]
        places = [(first + step) % len(peers) for step in range(most)]
        is_down = [
            0 < entry.max_fails <= peers[n].fails and now_ns - peers[n].checked_ns <= entry.fail_timeout_ns
            for n in places
        ]
        chosen = next((n for n, down in zip(places, is_down, strict=True) if not down), first % len(peers))
        if now_ns - peers[chosen].checked_ns > entry.fail_timeout_ns:
            peers[chosen].checked_ns = now_ns
        return chosen

    def _issue_all(self, planned: list[Call]) -> None:
        for call in planned:
            self.calls += 1
            self._issue(call)

    def _issue(self, call: Call) -> None:
        call.tries += 1
        if call.wait_ns:
            due_ns = self.clock.now_ns + call.wait_ns
            self.clock.at(due_ns, TIMER, call.request.number, partial(self._time_out, call, call.tries))
        route = call.number * len(self.setting.back_ns) + call.peer
        asked = partial(self.pools[call.peer].take, (call, call.peer))
        self.out.send(call.entry.size, route, partial(self.into_back.send, call.entry.size, route, asked))

    def _time_out(self, call: Call, tries: int) -> None:
        if not call.is_open or call.tries != tries:
            return
        peer = self.peers[call.number][call.peer]
        peer.fails += 1
        peer.accessed_ns = peer.checked_ns = self.clock.now_ns
        if call.tries > call.entry.retries:
            call.request.has_failed = True
            self._finish(call.request)
            return
        self.repeated += 1
        call.wait_ns *= 2
        others = len(self.setting.back_ns) - 1
        call.peer = self._next_peer(call.number, call.peer + 1, others)
        self._issue(call)

    def _answered(self, call: Call, peer: int) -> None:
        if not call.is_open:
            return
        asked = self.peers[call.number][peer]
        if peer == call.peer and asked.accessed_ns < asked.checked_ns:
            asked.fails = 0
        call.is_open = False
        call.request.asked.remove(call)
        if not call.request.asked:
            self._go_on(call.request)

    def _finish(self, request: Request) -> None:
        for call in request.asked:
            call.is_open = False
        request.asked.clear()
        self.from_front.send(128, request.number, partial(self._end, request))
        self.pool.release()

    def _end(self, request: Request) -> None:
        self.ended.append((request.begun_ns, self.clock.now_ns, request.has_failed))

    # The copies

    def _work_back(self, copy: int, asked: object) -> None:
        self.cpus[copy].do(self.setting.back_ns[copy], partial(self._answer_back, copy, asked))

    def _answer_back(self, copy: int, asked: tuple[Call, int]) -> None:
        route = asked[0].number * len(self.setting.back_ns) + copy
        self.from_back.send(128, route, partial(self.back_in.send, 128, route, partial(self._answered, *asked)))
        self.pools[copy].release()

    def run(self, until_ns: int) -> Test:
        self.clock.run(until_ns)
        return self
