"""The way of every packet through a window: the boundaries it passed, how it ended, and why.

A packet begins where a client sends it or where a guest puts it out; one that a program hands back as it is (a media
relay's) goes on.  What a program takes in and answers with a packet of its own ends there.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vftsim.composition.run import Run
from vftsim.platform.io import marks
from vftsim.workloads.wire import Wire

CLIENT, GUEST, COPY = "client", "guest", "copy"
"""Where a packet began; a copy is one that protection made, of which the beginning is not seen."""

_NAMES = {
    marks.ARRIVED: "arrived",
    marks.SENT: "sent",
    marks.AT_HOST: "reaches the host",
    marks.ENTERED: "enters the guest",
    marks.PROGRAM_TAKEN: "application taken",
    marks.PROGRAM_DONE: "application done",
    marks.PUT_OUT: "put out",
    marks.PROGRAM_WAITED: "application goes on",
    marks.RELEASED: "let go",
    marks.DELIVERED: "leaves the host",
    marks.RETURNED: "delivered",
    marks.DROPPED: "dropped",
    marks.DISCARDED: "discarded",
    marks.ENDED: "taken in",
}
_ENDS = (marks.RETURNED, marks.DROPPED, marks.DISCARDED, marks.ENDED)


class Passed(NamedTuple):
    """An entry of the log of passed boundaries, as its columns are called."""

    packet: int
    boundary: int
    place: int
    time_ns: int
    spent_ns: int
    flow: int
    port: int
    stream: int
    entity: int
    message: int
    size_bytes: int
    left_bytes: int


class Mark(NamedTuple):
    """A boundary that a packet passed; ``spent_ns`` is CPU time of the work before it, as far as it is known."""

    name: str
    time_ns: int
    spent_ns: int
    boundary: int


@dataclass(slots=True)
class PacketTrace:
    """The boundaries one packet passed, with their times.

    ``number`` counts the packets of its stream that clients sent, from 0 (of a stream that began before the run was
    watched: from the first one seen).  ``message`` is what it means to both ends, ``label`` the same in words.
    ``end`` is ``delivered`` (to the client), ``taken in`` (by the program), ``dropped`` or ``discarded``; empty while
    it is under way.  ``reason`` says where and why it was dropped.  ``wire_ns`` is what it spends on a network that is
    not modelled, there and back.
    """

    flow: str
    domain: str
    begun: str
    stream: int
    entity: int
    number: int
    message: int
    label: str
    size_bytes: int
    wire_ns: int
    marks: list[Mark]
    end: str = ""
    reason: str = ""
    exchange: int = 0
    """Which exchange of its stream it belongs to; 0: a stream is one."""
    is_last: bool = True
    """Whether the exchange can be over when a client has it; never of traffic that waits for no answer."""
    left_bytes: int = 0
    """Of its message over TCP, still to come in further windows."""

    @property
    def begin_ns(self) -> int:
        """When it was sent, as the host's end of the network knows it."""
        return self.marks[0].time_ns

    @property
    def end_ns(self) -> int:
        """When it passed its last boundary."""
        return self.marks[-1].time_ns

    @property
    def is_whole(self) -> bool:
        """Whether it came to where it was to go."""
        return self.end in ("delivered", "taken in")

    @property
    def delay_ns(self) -> int:
        """From its beginning to its end; of packets that return to their client there and back, as it measures it."""
        return self.end_ns - self.begin_ns + self.wire_ns

    def time_of(self, *boundaries: int) -> int | None:
        """Return when it first passed a boundary; ``None``: it did not."""
        return next((mark.time_ns for mark in self.marks if mark.boundary in boundaries), None)

    @property
    def held_ns(self) -> int:
        """How long the guest's protection held it; 0: it did not."""
        put_ns, let_go_ns = self.time_of(marks.PUT_OUT), self.time_of(marks.RELEASED)
        return 0 if put_ns is None or let_go_ns is None else let_go_ns - put_ns


class PacketReader:
    """Reads the log of passed boundaries and keeps the packets that are seen in a window.

    Kept is what is under way in it for at least an instant.  ``wires`` says how packets look, by workload; of one that
    is directed at several copies of a domain by its part to each.
    """

    def __init__(self, run: Run, start_ns: int, end_ns: int) -> None:
        self._run = run
        self._window_ns = start_ns, end_ns
        built = run.built
        stages = [(stage.row, stage.name) for host in built.hosts.values() for stage in host.io.stages]
        self._of_stages = {(marks.TAKEN, row): f"{name} taken" for row, name in stages}
        self._of_stages |= {(marks.DONE, row): f"{name} done" for row, name in stages}
        self._places = {row: key for host in built.hosts.values() for key, row in host.io.drop_rows.items()}
        self._owners = {port: owner for host in built.hosts.values() for port, owner in host.io.owners.items()}
        self._flows: dict[int, str] = {getattr(d, "flow", 0): name for name, d in built.drivers.items()}
        workloads = {name: run.spec.workload_of(name) for name in built.drivers}
        self.wires = {name: each.wire(run.spec.target_of(each)[2]) for name, each in workloads.items()}
        self._asking = {name for name, each in workloads.items() if each.needs_link}
        self._wire_ns = {name: driver.wire_ns() for name, driver in built.drivers.items()}
        self._numbers: Counter[tuple[int, int]] = Counter()
        self._alive: dict[int, tuple[tuple[int, int], PacketTrace]] = {}
        self.finished: list[PacketTrace] = []

    def read(self) -> None:
        """Take over all marks since the last time."""
        log: Any = self._run.engine.rows(marks.mark_logs)[1]
        count = int(log.written)
        if not count:  # as at most samples
            return
        columns = [np.asarray(getattr(log, name)[:count]).tolist() for name in Passed._fields]
        for entry in map(Passed._make, zip(*columns, strict=True)):
            self._take(entry)
        log.written = 0

    def close(self) -> None:
        """End the window: keep what is under way."""
        for _, packet in self._alive.values():
            self._keep(packet)
        self._alive.clear()
        self.finished.sort(key=lambda packet: (packet.begin_ns, packet.flow, packet.stream, packet.number))

    def _take(self, passed: Passed) -> None:
        boundary, time_ns = passed.boundary, passed.time_ns
        identity, packet = self._alive.get(passed.packet, (None, None))
        if packet is None or identity != (passed.flow, passed.stream) or _begins(packet, passed):
            if packet is not None:
                self._end(passed.packet, packet, "taken in")
            packet = self._new(passed)
            self._alive[passed.packet] = (passed.flow, passed.stream), packet
        name = self._of_stages.get((boundary, passed.place)) or _NAMES[boundary]
        packet.marks.append(Mark(name, time_ns, passed.spent_ns, boundary))
        packet.left_bytes = passed.left_bytes
        if boundary in _ENDS:
            # Of a message over TCP windows are to come.
            packet.is_last &= passed.left_bytes == 0
            packet.reason = (
                " ".join(self._places.get(passed.place, ("elsewhere",))) if boundary == marks.DROPPED else ""
            )
            self._end(passed.packet, packet, name)

    def _new(self, passed: Passed) -> PacketTrace:
        begun = {marks.ARRIVED: CLIENT, marks.SENT: CLIENT, marks.PUT_OUT: GUEST}.get(passed.boundary, COPY)
        name, domain = self._flows.get(passed.flow, ""), self._owners.get(passed.port, "")
        stream, message, size = passed.stream, passed.message, passed.size_bytes
        number = self._numbers[passed.flow, stream]
        if begun == CLIENT:
            self._numbers[passed.flow, stream] += 1
        wire = self.wires.get(name, Wire())
        wire_ns = self._wire_ns.get(name, 0) if begun == CLIENT else self._wire_ns.get(name, 0) // 2
        packet = PacketTrace(
            name, domain, begun, stream, passed.entity, number, message, wire.name(message), size, wire_ns, []
        )
        packet.exchange, packet.is_last = wire.exchange(message), name in self._asking and wire.is_last(message)
        return packet

    def _end(self, packet: int, packet_trace: PacketTrace, how: str) -> None:
        packet_trace.end = how
        del self._alive[packet]
        self._keep(packet_trace)

    def _keep(self, packet_trace: PacketTrace) -> None:
        start_ns, end_ns = self._window_ns
        if (packet_trace.end_ns >= start_ns or not packet_trace.end) and packet_trace.begin_ns <= end_ns:
            self.finished.append(packet_trace)


def _begins(packet_trace: PacketTrace, passed: Passed) -> bool:
    """Tell whether a mark is of another packet than the one whose row it was."""
    last = packet_trace.marks[-1].boundary
    if passed.boundary == marks.SENT:
        return not (last == marks.ARRIVED and packet_trace.end_ns == passed.time_ns)
    if passed.boundary == marks.PUT_OUT and last == marks.ENTERED and packet_trace.begun == CLIENT:
        # A client's own packet, by a program that marks nothing; else another in its row, or a message's next window.
        is_the_same = (packet_trace.entity, packet_trace.message) == (passed.entity, passed.message)
        return not is_the_same or packet_trace.left_bytes > 0
    if passed.boundary == marks.PUT_OUT:
        return last not in (marks.PROGRAM_DONE, marks.PUT_OUT, marks.RELEASED)
    return passed.boundary == marks.ARRIVED
