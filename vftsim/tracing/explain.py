"""Where the time of one packet, or of one exchange, went: parts in order of time that sum to the total.

Between two boundaries a packet either waits or is in the hands of a stage.  There, the CPU time of its batch is work,
and the rest is waiting: where the stage is bound to a vCPU, either for that vCPU (other work of its own, a switch) or
for a pCPU; where any vCPU will do, for a CPU.

An exchange (a call, a registration, a request, a transfer) is a chain of packets, found from its last packet back: what
a program puts out follows from what it had in hand, what a client sends from what it heard last.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from vftsim.errors import UsageError
from vftsim.platform.io import marks
from vftsim.tracing.packets import CLIENT, GUEST, PacketTrace
from vftsim.tracing.trace import Trace


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a delay."""

    name: str
    length_ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """What a packet did or waited for between two boundaries."""

    name: str
    start_ns: int
    end_ns: int
    stage: str = ""
    spent_ns: int = 0


_BETWEEN = {
    marks.AT_HOST: "network to the host",
    marks.RETURNED: "network to the client",
    marks.RELEASED: "held by the protection",
    marks.PROGRAM_WAITED: "application: waits for disk or others",
    marks.PUT_OUT: "waits for room",
    marks.ENTERED: "enters the guest",
    marks.DROPPED: "waits, and ends",
    marks.DISCARDED: "waits, and ends",
}


def steps(packet: PacketTrace) -> list[Step]:
    """Return the steps of a packet's way, in order; they fill the time from its first boundary to its last."""
    listed: list[Step] = []
    spent_ns = 0
    for before, mark in pairwise(packet.marks):
        stage, _, _ = mark.name.rpartition(" ")
        span_ns = before.time_ns, mark.time_ns
        if mark.boundary in (marks.TAKEN, marks.PROGRAM_TAKEN):
            listed.append(Step(f"waits for {stage}", *span_ns))
            spent_ns = mark.spent_ns
        elif mark.boundary in (marks.DONE, marks.PROGRAM_DONE):
            used_ns = min(mark.spent_ns or spent_ns, span_ns[1] - span_ns[0])
            listed.append(Step(f"in the hands of {stage}", *span_ns, stage, used_ns))
        else:
            listed.append(Step(_between(before.boundary, mark.boundary), *span_ns))
    return listed


def _between(before: int, boundary: int) -> str:
    """Return what a packet waits for before a boundary that is no stage's."""
    if boundary == marks.RELEASED and before == marks.RELEASED:
        return "waits for room"
    if boundary == marks.RETURNED and before != marks.DELIVERED:
        return "leaves the host"
    if boundary == marks.PUT_OUT and before == marks.ENTERED:
        return "application: waits and works"  # it marks neither itself
    return _BETWEEN.get(boundary, "leaves the host")


def explain(packet: PacketTrace, trace: Trace) -> list[Part]:
    """Decompose the delay of a traced packet, in order of time."""
    parts = [Part("wire, there and back" if packet.begun == CLIENT else "wire", packet.wire_ns)]
    for step in steps(packet):
        parts += _parts_of(step, packet, trace)
    return [part for part in parts if part.length_ns]


def _parts_of(step: Step, packet: PacketTrace, trace: Trace) -> list[Part]:
    length_ns = step.end_ns - step.start_ns
    if not step.stage:
        return [Part(step.name, length_ns)]
    stage, work = step.stage, Part(f"{step.stage}: works", step.spent_ns)
    of_host = trace.vcpu_of_stage.get((trace.host_of.get(packet.domain, ""), stage))
    vcpu = trace.vcpu_of_stage.get((packet.domain, stage), of_host)
    if vcpu is None:
        return [work, Part(f"{stage}: waits for a CPU", length_ns - step.spent_ns)]
    running_ns = trace.running_ns(vcpu, step.start_ns, step.end_ns)
    return [
        work,
        Part(f"{stage}: {trace.vcpu_names[vcpu]} does other work", running_ns - step.spent_ns),
        Part(f"{stage}: {trace.vcpu_names[vcpu]} waits for a pCPU", length_ns - running_ns),
    ]


@dataclass(frozen=True, slots=True)
class Exchange:
    """The packets that led, one to the next, to the last one that came back to a client.

    A request is one packet there and back.
    """

    chain: tuple[PacketTrace, ...]

    @property
    def delay_ns(self) -> int:
        """From the first packet's beginning to the last one's end."""
        return self.chain[-1].end_ns - self.chain[0].begin_ns


def exchanges(trace: Trace) -> list[Exchange]:
    """Return the exchanges that began and ended in the window, by their ends."""
    streams: dict[tuple[str, int, int, int], list[PacketTrace]] = {}
    for packet in trace.seen:
        if packet.flow:
            streams.setdefault((packet.flow, packet.stream, packet.entity, packet.exchange), []).append(packet)
    answered = [
        Exchange(tuple(_chain(packets)))
        for packets in streams.values()
        if any(packet.end == "delivered" for packet in packets)
    ]
    inside = [
        exchange
        for exchange in answered
        if (len(exchange.chain) > 1 or exchange.chain[0].exchange)
        and exchange.chain[0].begun == CLIENT
        and exchange.chain[-1].is_last
        and exchange.chain[0].begin_ns >= trace.start_ns
        and exchange.chain[-1].end_ns < trace.end_ns
    ]
    return sorted(inside, key=lambda exchange: exchange.chain[-1].end_ns)


def _chain(packets: list[PacketTrace]) -> list[PacketTrace]:
    """Follow a stream from the last packet delivered in it back to what caused it, as far as that is seen."""
    last = max((packet for packet in packets if packet.end == "delivered"), key=lambda packet: packet.end_ns)
    chain = [last]
    while (cause := _cause(chain[-1], packets)) is not None:
        chain.append(cause)
    return chain[::-1]


def _cause(packet: PacketTrace, packets: list[PacketTrace]) -> PacketTrace | None:
    """Return the latest packet that came to where another began, before it did; a program is done with it by then."""
    at_ns = packet.begin_ns
    if packet.begun == GUEST:
        came = [
            (ns, other)
            for other in packets
            if other is not packet and (ns := _in_hand_ns(other)) is not None and ns <= at_ns
        ]
    elif packet.begun == CLIENT:
        came = [(other.end_ns, other) for other in packets if other.end == "delivered" and other.end_ns <= at_ns]
    else:
        return None
    earlier = [(ns, other) for ns, other in came if other.begin_ns < at_ns]
    return max(earlier, key=lambda pair: (pair[0], pair[1].begin_ns))[1] if earlier else None


def _in_hand_ns(packet: PacketTrace) -> int | None:
    """Return when the program was done with a packet from a client, or where that is not told, when it came."""
    if packet.begun != CLIENT:
        return None
    return packet.time_of(marks.PROGRAM_DONE) or packet.time_of(marks.ENTERED)


def explain_exchange(exchange: Exchange, trace: Trace) -> list[Part]:
    """Decompose an exchange, in order of time."""
    parts: list[Part] = []
    at_ns = exchange.chain[0].begin_ns
    for packet, following in zip(exchange.chain, [*exchange.chain[1:], None], strict=True):
        until_ns = packet.end_ns if following is None else following.begin_ns
        name = packet.label or f"packet {packet.number}"
        if packet.begin_ns > at_ns:
            parts.append(
                Part(f"{'client' if packet.begun == CLIENT else 'program'}: before {name}", packet.begin_ns - at_ns)
            )
        for step in steps(packet):
            if step.start_ns < until_ns:
                cut = Step(step.name, step.start_ns, min(step.end_ns, until_ns), step.stage, step.spent_ns)
                parts += [Part(f"{name}: {part.name}", part.length_ns) for part in _parts_of(cut, packet, trace)]
        at_ns = min(packet.end_ns, until_ns)
    return [part for part in parts if part.length_ns]


def explain_hold(packet: PacketTrace, trace: Trace) -> list[Part]:
    """Decompose what an output waited for between the guest and the way out: a copy elsewhere that must come first.

    Parts end where what happened to the domain's protection did (a crash, its detection, the takeover), if it did.
    """
    at_ns = packet.time_of(marks.PUT_OUT) or 0
    end_ns = at_ns + packet.held_ns
    parts: list[Part] = []
    name = "held until the other copy has its inputs or state"
    for moment in trace.moments:
        if moment.domain == packet.domain and at_ns < moment.time_ns < end_ns:
            parts.append(Part(f"{name}, until {moment.event}", moment.time_ns - at_ns))
            at_ns = moment.time_ns
    return [*parts, Part(name, end_ns - at_ns)]


OF = ("packet", "exchange", "output")
"""What can be explained: a packet, an exchange, or an output that protection held."""
WHICH = ("best", "median", "worst")
_NONE = {
    "packet": "no packet was both sent and delivered in the window; make it longer with --length",
    "exchange": "no call, request or transfer began and ended in the window; make it longer with --length, or explain "
    "--of packet",
    "output": "no output was held in the window: nothing protects the domain, or it was too short (--length)",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where the time of one thing went."""

    title: str
    flow: str
    stream: int
    number: int
    of_all: int
    """Its stream; its number among all of its kind in the window."""
    delay_ns: int
    parts: list[Part]
    """They sum to the delay."""

    def __str__(self) -> str:
        return format_parts(self.title, self.parts)

    __repr__ = __str__


def explained(trace: Trace, of: str = "packet", which: str | int = "worst") -> Explanation:
    """Return where the time of a packet, an exchange or a held output of a window went.

    It is one of :data:`OF`, and one of :data:`WHICH` or a number from 0, in order of ends; refused if there is none.
    """
    if of not in OF:
        raise UsageError(f"nothing is called '{of}' here: {', '.join(OF)}")
    every = _every(trace, of)
    number = _chosen([delay_ns for delay_ns, _ in every], which, _NONE[of])
    delay_ns, traced = every[number]
    chain = traced.chain if isinstance(traced, Exchange) else (traced,)
    title, first = f"{chain[0].flow or chain[0].domain} stream {chain[0].stream}", chain[0]
    if isinstance(traced, Exchange):
        title += f", {first.label or 'packet'} to {chain[-1].label or 'answer'}"
        parts = explain_exchange(traced, trace)
    else:
        title += f", {traced.label} {traced.begun}" if traced.label else ""
        parts = explain_hold(traced, trace) if of == "output" else explain(traced, trace)
    return Explanation(title, first.flow, first.stream, number, len(every), delay_ns, parts)


def _every(trace: Trace, of: str) -> list[tuple[int, PacketTrace | Exchange]]:
    """Return what can be explained, with the time that it took, in order of its end."""
    if of == "exchange":
        return [(exchange.delay_ns, exchange) for exchange in exchanges(trace)]
    if of == "output":
        return [(packet.held_ns, packet) for packet in trace.packets if packet.held_ns]
    return [(packet.delay_ns, packet) for packet in trace.packets]


def _chosen(delays_ns: list[int], which: str | int, none: str) -> int:
    """Return the number of what the user means."""
    if not delays_ns:
        raise UsageError(none)
    if isinstance(which, int) or which.isdecimal():
        if not 0 <= int(which) < len(delays_ns):
            raise UsageError(f"--packet: from 0 to {len(delays_ns) - 1} in this window; got {which}")
        return int(which)
    if which not in WHICH:
        raise UsageError(f"--packet: a number from 0, or one of {', '.join(WHICH)}; got '{which}'")
    by_delay = sorted(range(len(delays_ns)), key=lambda n: (delays_ns[n], n))
    return by_delay[{"best": 0, "median": len(by_delay) // 2, "worst": -1}[which]]


def total_ns(parts: Iterable[Part]) -> int:
    return sum(part.length_ns for part in parts)


def format_parts(title: str, parts: Iterable[Part]) -> str:
    parts = list(parts)
    width = max((len(part.name) for part in parts), default=len("total"))
    lines = [f"{title}: {total_ns(parts) / 1e6:.4f} ms"]
    lines += [f"  {part.name:<{width}}  {part.length_ns / 1e6:9.4f} ms" for part in parts]
    lines.append(f"  {'total':<{width}}  {total_ns(parts) / 1e6:9.4f} ms")
    return "\n".join(lines)
