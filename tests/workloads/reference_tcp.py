"""Bulk TCP written a second time from its RFCs and its page, in lists and fractions: when who sends what.

It shares nothing with the package.  At one instant work ends first, then packets arrive, then timers go off, then
clients begin.  A packet is (first segment, number of segments, time stamp); one without segments acknowledges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from tests.reference_clock import ARRIVAL, DELIVERY, DEVICE, WORK, Clock, S, Timer

LONGEST_RTO_NS = 60 * S


class Packet(NamedTuple):
    client: int
    first: int
    count: int
    stamp_ns: int


@dataclass
class Setting:
    """Parameters as on the page; ``lost`` are, for the host's line each way, numbers of frames that it loses."""

    upload: bool = True
    clients: int = 1
    duration_ns: int = S
    rate: int = S
    latency_ns: int = 50_000
    queue: int = 256 * 1024
    mss: int = 1448
    window: int = 128 * 1024
    initial_window: int = 10
    delayed_ack_ns: int = 40_000_000
    min_rto_ns: int = 200_000_000
    first_rto_ns: int = S
    offload: bool = False
    segment_ns: int = 0
    copy_ns: int = 0
    ack_ns: int = 0
    switch: tuple[int, int, int] | None = None
    """Rate, latency and queue of a client's line to a switch."""
    has_pauses: bool = False
    """IEEE 802.3x: the switch holds back what does not fit, and its sender stands still for it."""
    lost: tuple[list[int], list[int]] = ([], [])

    @property
    def most(self) -> int:
        return 65_536 // self.mss if self.offload else 1

    @property
    def window_segments(self) -> int:
        return self.window // self.mss

    def size(self, packet: Packet) -> int:
        return max(packet.count * (self.mss + 90), 90)


@dataclass
class Line:
    """One direction: what does not fit into the queue is dropped; ``lost`` are numbers of frames."""

    clock: Clock
    rate: int
    latency_ns: int
    queue: int
    setting: Setting
    arrive: Callable[[Packet], None]
    lost: Iterator[int] = field(default_factory=lambda: iter(()))
    free: Fraction = Fraction(0)
    frames: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self.next_lost = next(self.lost, None)

    def time_ns(self, size: int) -> int:
        return size * 8 * S // self.rate

    @property
    def queue_ns(self) -> int:
        return self.time_ns(self.queue)

    @property
    def backlog_ns(self) -> int:
        return max(0, int(self.free) - self.clock.now_ns)

    def send(self, packet: Packet) -> None:
        size = self.setting.size(packet)
        if self.backlog_ns + self.time_ns(size) > self.queue_ns:
            self.dropped += max(1, packet.count)
            return
        self.free = max(Fraction(self.clock.now_ns), self.free) + Fraction(size * 8 * S, self.rate)
        end_ns = int(self.free)
        frame_ns = self.time_ns(size) // max(1, packet.count)
        for part, behind in self._left(packet):
            arrival_ns = end_ns - behind * frame_ns + self.latency_ns
            self.clock.at(arrival_ns, DELIVERY, packet.client, lambda part=part: self.arrive(part))

    def _left(self, packet: Packet) -> Iterator[tuple[Packet, int]]:
        """Yield what is left of a packet between the frames that are lost, and how many frames follow it."""
        frames, begin = max(1, packet.count), 0
        ends = []
        while self.next_lost is not None and self.next_lost < self.frames + frames:
            ends.append(self.next_lost - self.frames)
            self.next_lost = next(self.lost, None)
        self.frames += frames
        self.dropped += len(ends)
        for end in [*ends, frames]:
            if end > begin:
                part = packet._replace(first=packet.first + begin, count=end - begin) if packet.count else packet
                yield part, frames - end
            begin = end + 1


@dataclass
class Receiver:
    """RFC 5681, 4.2; RFC 7323, 4.3."""

    setting: Setting
    expected: int = 0
    beyond: set[int] = field(default_factory=set)
    acknowledged: int = 0
    stamp_ns: int = 0

    def take(self, packet: Packet) -> bool:
        """Take in data; tell whether they are to be acknowledged at once."""
        segments = range(packet.first, packet.first + packet.count)
        if packet.first <= self.acknowledged:
            self.stamp_ns = max(self.stamp_ns, packet.stamp_ns)
        had_gap, before = bool(self.beyond), self.expected
        self.beyond |= {each for each in segments if each >= before}
        while self.expected in self.beyond:
            self.beyond.remove(self.expected)
            self.expected += 1
        if had_gap or self.expected == before or self.setting.delayed_ack_ns == 0:
            return True
        return self.expected - self.acknowledged >= 2

    @property
    def is_pending(self) -> bool:
        return self.expected > self.acknowledged

    def acknowledge(self, client: int) -> Packet:
        self.acknowledged = self.expected
        return Packet(client, self.expected, 0, self.stamp_ns)


class Sender:
    """RFC 5681, 3.1 and 3.2, with the count of RFC 3465; RFC 6582; RFC 6298; RFC 6675, 4, of what came together."""

    def __init__(self, clock: Clock, setting: Setting, receiver: Receiver, on_timeout: Callable[[], None]) -> None:
        self.clock, self.setting, self.receiver, self.on_timeout = clock, setting, receiver, on_timeout
        self.cwnd, self.ssthresh = setting.initial_window, setting.window_segments
        self.una = self.nxt = self.recover = self.duplicates = self.credit = 0
        self.is_recovering = self.is_backing_off = False
        self.again: int | None = None
        self.srtt_ns: int | None = None
        self.rttvar_ns, self.rto_ns = 0, setting.first_rto_ns
        self.timer = Timer(clock, self.time_out)
        self.end_ns = 0

    def open(self) -> tuple[int, int] | None:
        """Return what may be sent now: the first segment, and how many together."""
        if self.again is not None:
            count = 1
            while count < min(self.setting.most, self.recover - self.again):
                if self.again + count in self.receiver.beyond:
                    break
                count += 1
            return self.again, count
        room = min(self.cwnd, self.setting.window_segments) - (self.nxt - self.una)
        if room <= 0 or (self.nxt >= self.recover and self.clock.now_ns >= self.end_ns):
            return None
        return self.nxt, min(room, self.setting.most)

    def sent(self, first: int, count: int) -> None:
        if self.again is None:
            self.nxt = first + count
        self.again = None
        if not self.timer.is_set:
            self.timer.set(self.rto_ns)

    def take(self, packet: Packet) -> None:
        """Take in an acknowledgement."""
        if packet.first > self.una:
            self._advance(packet.first - self.una, packet.stamp_ns)
            self.timer.stop()
            if self.nxt > self.una:
                self.timer.set(self.rto_ns)
        elif packet.first == self.una and self.nxt > self.una:
            self._duplicate()

    def _advance(self, count: int, stamp_ns: int) -> None:
        self.una += count
        self.nxt = max(self.nxt, self.una)
        self.duplicates, self.is_backing_off = 0, False
        self._measure(self.clock.now_ns - stamp_ns)
        if not self.is_recovering:
            self._grow(count)
        elif self.una >= self.recover:
            self.is_recovering, self.credit = False, 0
            self.cwnd = min(self.ssthresh, max(self.nxt - self.una, 1) + 1)
        else:
            self.again = self.una
            self.cwnd = max(1, self.cwnd - count + 1)

    def _grow(self, count: int) -> None:
        slow = max(0, min(count, self.ssthresh - self.cwnd))
        self.cwnd += slow
        self.credit += count - slow
        if self.credit >= self.cwnd:
            self.credit -= self.cwnd
            self.cwnd += 1
        self.cwnd = min(self.cwnd, self.setting.window_segments)

    def _duplicate(self) -> None:
        beyond = len(self.receiver.beyond) if self.setting.offload else 0
        self.duplicates = max(self.duplicates + 1, beyond)
        if self.is_recovering:
            self.cwnd = max(self.cwnd + 1, self.ssthresh + beyond if self.setting.offload else 0)
        elif self.duplicates >= 3 and self.una >= self.recover:
            self.is_recovering, self.recover, self.again = True, self.nxt, self.una
            self.ssthresh = max((self.nxt - self.una) // 2, 2)
            self.cwnd = self.ssthresh + 3

    def _measure(self, trip_ns: int) -> None:
        if self.srtt_ns is None:
            self.srtt_ns, self.rttvar_ns = trip_ns, trip_ns // 2
        else:
            self.rttvar_ns += (abs(self.srtt_ns - trip_ns) - self.rttvar_ns) // 4
            self.srtt_ns += (trip_ns - self.srtt_ns) // 8
        self.rto_ns = min(max(self.setting.min_rto_ns, self.srtt_ns + 4 * self.rttvar_ns), LONGEST_RTO_NS)

    def time_out(self) -> None:
        if not self.is_backing_off:
            self.ssthresh = max((self.nxt - self.una) // 2, 2)
        self.is_backing_off, self.is_recovering = True, False
        self.cwnd, self.credit, self.duplicates = 1, 0, 0
        self.recover = max(self.recover, self.nxt)
        self.nxt, self.again = self.una, None
        self.rto_ns = min(2 * self.rto_ns, LONGEST_RTO_NS)
        self.on_timeout()


@dataclass
class Turns:
    """Who waits for room on a line, and whose turn it is."""

    waiting: list[Client] = field(default_factory=list)
    sender: Client | None = None


class Client:
    """A machine that reacts at once; its own card never drops."""

    def __init__(self, test: Test, number: int) -> None:
        self.test, self.number, clock, setting = test, number, test.clock, test.setting
        self.receiver = Receiver(setting)
        self.server = Server(test, self)
        self.sender = Sender(clock, setting, self.server.receiver, self.pump)
        self.delay = Timer(clock, self.acknowledge)
        self.asking = Timer(clock, self.ask)
        self.end_ns = setting.duration_ns
        self.out, self.into, self.turns, self.held_ns = test.to_host, None, test.turns, 0
        if setting.switch:
            rate, latency_ns, queue = setting.switch
            self.out = Line(clock, rate, latency_ns, 2 * queue, setting, test.cross)
            self.into = Line(clock, rate, latency_ns, queue, setting, self.take)
            self.turns = Turns()

    def begin(self) -> None:
        self.sender.end_ns = self.server.sender.end_ns = self.end_ns
        if self.test.setting.upload:
            self.pump()
        else:
            self.ask()

    def ask(self) -> None:
        """RFC 6298, 2.1 and 5.5, as a SYN is repeated."""
        if self.test.clock.now_ns < self.end_ns:
            self.acknowledge()
            passed_ns = self.test.clock.now_ns - (self.end_ns - self.test.setting.duration_ns)
            self.asking.set(min(passed_ns + self.test.setting.first_rto_ns, LONGEST_RTO_NS))

    def pump(self) -> None:
        while (segments := self.sender.open()) is not None:
            packet = Packet(self.number, *segments, self.test.clock.now_ns)
            if not self._fits(self.out.time_ns(self.test.setting.size(packet))):
                self._wait()
                return
            self.sender.sent(*segments)
            self.test.note(packet)
            self.out.send(packet)

    def _fits(self, time_ns: int) -> bool:
        """Nobody passes those that wait for the same line."""
        waiting = self.turns.waiting
        if waiting and self not in (waiting[0], self.turns.sender):
            return False
        return self.out.backlog_ns + self.held_ns + time_ns <= self.out.queue_ns

    def _wait(self) -> None:
        if self not in self.turns.waiting:
            self.turns.waiting.append(self)
            if self.turns.waiting[0] is self:
                self.look_again()

    def look_again(self) -> None:
        """When half of the queue is free."""
        half_ns = self.out.queue_ns // 2
        if self.held_ns <= half_ns:
            due_ns = self.test.clock.now_ns + max(0, self.out.backlog_ns + self.held_ns - half_ns)
            self.test.clock.at(due_ns, DEVICE, self.number, self._has_room)

    def _has_room(self) -> None:
        if self not in self.turns.waiting:
            return
        self.turns.waiting.pop(0)
        others = list(self.turns.waiting)
        self.turns.sender = self
        self.pump()
        self.turns.sender = None
        if others:
            self.turns.waiting[0].look_again()

    def take(self, packet: Packet) -> None:
        self.asking.stop()
        if packet.count == 0:
            self.sender.take(packet)
            self.pump()
        elif self.receiver.take(packet):
            self.acknowledge()
        elif not self.delay.is_set:
            self.delay.set(self.test.setting.delayed_ack_ns)

    def acknowledge(self) -> None:
        self.delay.stop()
        packet = self.receiver.acknowledge(self.number)
        self.test.note(packet)
        self.out.send(packet)


class Server:
    """A process of the server: one packet after the other, then what it owes, then data."""

    def __init__(self, test: Test, client: Client) -> None:
        self.test, self.client, setting = test, client, test.setting
        self.receiver = Receiver(setting)
        self.sender = Sender(test.clock, setting, client.receiver, self.go_on)
        self.queue: deque[Packet] = deque()
        self.is_busy = self.owes = self.is_accepted = False
        self.delay = Timer(test.clock, self.put_off_long_enough)

    def take(self, packet: Packet) -> None:
        self.queue.append(packet)
        self.is_accepted = True
        self.go_on()

    def put_off_long_enough(self) -> None:
        self.owes = True
        self.go_on()

    def go_on(self) -> None:
        if self.is_busy:
            return
        setting, segments = self.test.setting, None
        if self.queue:
            packet = self.queue.popleft()
            if packet.count:
                self.owes |= self.receiver.take(packet)
            cost_ns = self._data_ns(packet.count) if packet.count else setting.ack_ns
            cost_ns += setting.ack_ns if self.owes and packet.count else 0
            self._work(cost_ns, lambda: self._taken(packet))
        elif self.owes:
            self._work(setting.ack_ns, self._acknowledge)
        elif not setting.upload and self.is_accepted and (segments := self.sender.open()) is not None:
            self._work(self._data_ns(segments[1]), self._write)

    def _data_ns(self, count: int) -> int:
        return self.test.setting.segment_ns + self.test.setting.copy_ns * count * self.test.setting.mss // 1024

    def _work(self, cost_ns: int, done: Callable[[], None]) -> None:
        self.is_busy = True

        def end() -> None:
            self.is_busy = False
            done()
            self.go_on()

        self.test.clock.at(self.test.clock.now_ns + cost_ns, WORK, 0, end)

    def _taken(self, packet: Packet) -> None:
        if packet.count == 0:
            self.sender.take(packet)
        elif self.owes:
            self._acknowledge()
        elif self.receiver.is_pending and not self.delay.is_set:
            self.delay.set(self.test.setting.delayed_ack_ns)

    def _acknowledge(self) -> None:
        self.owes = False
        self.delay.stop()
        self._send(self.receiver.acknowledge(self.client.number))

    def _write(self) -> None:
        if (segments := self.sender.open()) is not None:
            self.sender.sent(*segments)
            self._send(Packet(self.client.number, *segments, self.test.clock.now_ns))

    def _send(self, packet: Packet) -> None:
        self.test.note(packet)
        self.test.from_host.send(packet)


class Test:
    """One iperf; ``sent`` is every packet that either end has put out, and when."""

    __test__ = False

    def __init__(self, setting: Setting, begins_ns: list[int]) -> None:
        self.setting, self.clock = setting, Clock()
        self.sent: list[tuple[int, int, int, int]] = []
        line = (setting.rate, setting.latency_ns, setting.queue, setting)
        to, back = (iter(each) for each in setting.lost)
        self.to_host = Line(self.clock, *line, lambda packet: self.clients[packet.client].server.take(packet), to)
        self.from_host = Line(self.clock, *line, self._leave, back)
        self.turns, self.held, self.is_planned = Turns(), deque[Packet](), False
        self.clients = [Client(self, number) for number in range(setting.clients)]
        for client, begin_ns in zip(self.clients, begins_ns, strict=True):
            client.end_ns += begin_ns
            self.clock.at(begin_ns, ARRIVAL, client.number, client.begin)

    def _leave(self, packet: Packet) -> None:
        client = self.clients[packet.client]
        (client.take if client.into is None else client.into.send)(packet)

    def cross(self, packet: Packet) -> None:
        """A frame of a client has reached the switch."""
        if not self.setting.has_pauses or (not self.held and self._fits(packet)):
            self.to_host.send(packet)
            return
        self.held.append(packet)
        client = self.clients[packet.client]
        client.held_ns += client.out.time_ns(self.setting.size(packet))
        self._plan_release()

    def _fits(self, packet: Packet) -> bool:
        line = self.to_host
        return line.backlog_ns + line.time_ns(self.setting.size(packet)) <= line.queue_ns

    def _plan_release(self) -> None:
        if self.held and not self.is_planned:
            self.is_planned = True
            line = self.to_host
            missing_ns = line.backlog_ns + line.time_ns(self.setting.size(self.held[0])) - line.queue_ns
            self.clock.at(self.clock.now_ns + max(0, missing_ns), DEVICE, 0, self._release)

    def _release(self) -> None:
        self.is_planned = False
        while self.held and self._fits(self.held[0]):
            packet = self.held.popleft()
            client = self.clients[packet.client]
            client.held_ns -= client.out.time_ns(self.setting.size(packet))
            self.to_host.send(packet)
            if client in client.turns.waiting:
                client.look_again()
        self._plan_release()

    def note(self, packet: Packet) -> None:
        self.sent.append((self.clock.now_ns, packet.client, packet.first, packet.count))

    def run(self, until_ns: int) -> Any:
        self.clock.run(until_ns)
        return self
