"""Disks written a second time, from docs/io-paths/disks.md: when who is answered, and what was counted.

It shares nothing with the package.  A request is (when, what, size); numbered from 1 on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.reference_clock import ARRIVAL, DEVICE, MS, Clock, S

READ, WRITE, FLUSH = 1, 2, 3
READS_NS, ROUND_NS = 100 * MS, 140 * MS


@dataclass
class Request:
    number: int
    what: int
    size: int
    asked_ns: int
    is_awaited: bool = True


@dataclass
class Counted:
    """What stood at the disk, added up over time, as its figures have it."""

    served: int = 0
    awaited: int = 0
    response_ns: int = 0
    busy_ns: int = 0
    present_ns: int = 0


class Disk:
    """``answered`` is when which request was over."""

    def __init__(self, service_ns: int) -> None:
        self.clock, self.service_ns = Clock(), service_ns
        self.answered: list[tuple[int, int]] = []
        self.counted = Counted()
        self.at_disk: dict[int, int] = {}

    def ask(self, asked: list[tuple[int, int, int]]) -> Disk:
        for number, (time_ns, what, size) in enumerate(asked, 1):
            request = Request(number, what, size, time_ns)
            self.clock.at(time_ns, ARRIVAL, number, lambda request=request: self.take(request))
        return self

    def take(self, request: Request) -> None:
        raise NotImplementedError

    def answer(self, request: Request) -> None:
        self.answered.append((self.clock.now_ns, request.number))

    def come(self, request: Request) -> None:
        """A request is at the disk from now on."""
        if request.what != FLUSH:
            self.at_disk[id(request)] = self.clock.now_ns

    def serve(self, request: Request, time_ns: int) -> None:
        end_ns = self.clock.now_ns + time_ns
        self.clock.at(end_ns, DEVICE, 0, lambda: self._end(request, time_ns))

    def _end(self, request: Request, time_ns: int) -> None:
        self.counted.busy_ns += time_ns
        self.count(request)
        self.go_on()
        if request.is_awaited:
            self.answer(request)

    def count(self, request: Request) -> None:
        if request.what != FLUSH:
            self.counted.served += 1
            self.counted.present_ns += self.clock.now_ns - self.at_disk.pop(id(request))
            if request.is_awaited:
                self.counted.awaited += 1
                self.counted.response_ns += self.clock.now_ns - request.asked_ns

    def go_on(self) -> None:
        raise NotImplementedError


@dataclass
class Cache:
    """Writes that programs do not wait for, and their bytes until they are on the disk."""

    flush_ns: int
    limit: int
    dirty: list[Request] = field(default_factory=list)
    size: int = 0
    flushes: int = 0


class Local(Disk):
    """One request at a time; without a ``cache`` everything is written through."""

    def __init__(self, service_ns: int, rate: int, cache: Cache | None = None) -> None:
        super().__init__(service_ns)
        self.rate, self.cache = rate, cache
        self.programs: deque[Request] = deque()
        self.written_back: deque[Request] = deque()
        self.current: Request | None = None
        self.both_since_ns: int | None = None

    def take(self, request: Request) -> None:
        if request.what == FLUSH:
            self._flush(request)
        elif request.what == READ or self.cache is None:
            self._queue(self.programs, request)
        elif self.cache.size + request.size > self.cache.limit:
            self._queue(self.written_back, request)
        else:
            self._keep(request, self.cache)

    def _queue(self, queue: deque[Request], request: Request) -> None:
        self.come(request)
        queue.append(request)
        self._begin()

    def _keep(self, request: Request, cache: Cache) -> None:
        self.answer(request)
        request.is_awaited = False
        cache.size += request.size
        cache.dirty.append(request)
        if len(cache.dirty) == 1:
            cache.flushes += 1
            flush = cache.flushes
            due_ns = self.clock.now_ns + cache.flush_ns
            self.clock.at(due_ns, DEVICE, 0, lambda: self._write_back() if flush == cache.flushes else None)

    def _write_back(self) -> None:
        if self.cache is not None:
            dirty, self.cache.dirty = self.cache.dirty, []
            self.cache.flushes += 1
            for request in dirty:
                self.come(request)
            self.written_back.extend(dirty)
            self._begin()

    def _flush(self, request: Request) -> None:
        self._write_back()
        self.programs.extend(self.written_back)
        self.written_back.clear()
        if self.current is None and not self.programs:
            self.answer(request)
        else:
            self._queue(self.programs, request)

    def _begin(self) -> None:
        if self.current is not None or not (self.programs or self.written_back):
            return
        self.current = self._next().popleft()
        time_ns = 0 if self.current.what == FLUSH else self.service_ns + self.current.size * 8 * S // self.rate
        self.serve(self.current, time_ns)

    def _next(self) -> deque[Request]:
        """Whose turn it is: programs have the disk for 100 ms of 140 while both ask."""
        if not (self.programs and self.written_back):
            self.both_since_ns = None
            return self.programs or self.written_back
        if self.both_since_ns is None:
            self.both_since_ns = self.clock.now_ns
        is_of_programs = (self.clock.now_ns - self.both_since_ns) % ROUND_NS < READS_NS
        return self.programs if is_of_programs else self.written_back

    def count(self, request: Request) -> None:
        super().count(request)
        if self.cache is not None and not request.is_awaited:
            self.cache.size -= request.size

    def go_on(self) -> None:
        self.current = None
        self._begin()


class Array(Disk):
    """As many at once as it has disks; a cache that has all, or nothing, needs none."""

    def __init__(self, service_ns: int, disks: int, hit_ns: int | None) -> None:
        super().__init__(service_ns)
        self.free, self.hit_ns = disks, hit_ns
        self.queue: deque[Request] = deque()

    def take(self, request: Request) -> None:
        if request.what == FLUSH:
            self.answer(request)
            return
        self.come(request)
        if self.hit_ns is not None:
            self.clock.at(self.clock.now_ns + self.hit_ns, DEVICE, 0, lambda: self._hit(request))
            return
        self.queue.append(request)
        self._begin()

    def _hit(self, request: Request) -> None:
        self.count(request)
        self.answer(request)

    def _begin(self) -> None:
        if self.free and self.queue:
            self.free -= 1
            self.serve(self.queue.popleft(), self.service_ns)

    def go_on(self) -> None:
        self.free += 1
        self._begin()
