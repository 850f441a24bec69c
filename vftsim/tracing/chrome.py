"""A trace in the Chrome trace event format (JSON object form; "Trace Event Format", Google).

ui.perfetto.dev, chrome://tracing and speedscope open it.  Tracks: who ran on each pCPU, the states of each vCPU, what
happened to each protected domain, packets of each workload with the stages of their way, and counters.

A slice is written as an event of its begin and one of its end, never as one with a length.  Times are in us, and
readers round them: speedscope adds begin and length in double precision, Perfetto cuts both to whole ns first.  Either
makes neighbours overlap by a ns, and Perfetto drops what overlaps.  One instant is rounded to one number by every
reader, so begins and ends stay in order; the arguments of a slice say its ns themselves.
"""

import json
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from vftsim.platform.io.marks import RELEASED
from vftsim.tracing.explain import steps
from vftsim.tracing.packets import PacketTrace
from vftsim.tracing.trace import Moment, Trace

Event = dict[str, Any]
# No track has the number of its process: Perfetto takes such a track for the main thread, and mixes it with others.
_PCPUS, _VCPUS, _COUNTERS, _PROTECTION, _DROPS, _RECORDED, _RECORDED_WHO, _FLOWS = range(100_001, 100_009)

_LASTS = {
    "primary crash": "silence, until the failure is declared",
    "failure declared": "takeover, until the other copy is live",
    "secondary live": "announcement, until clients can reach it",
    "booted": "until the first packet",
    "reachable": "until the first packet",
    "first packet": "serves",
}
"""What lasts from a moment to the next one."""


class Slice(NamedTuple):
    """What lasts on a track."""

    pid: int
    tid: int
    name: str
    start_ns: int
    end_ns: int
    about: dict[str, Any]


def _slice(pid: int, tid: int, name: str, start_ns: int, end_ns: int, about: dict[str, Any] | None = None) -> Slice:
    # The instant makes neighbours differ: a reader that pairs begins and ends by name and arguments keeps them apart.
    return Slice(
        pid, tid, name, start_ns, end_ns, {"from_ns": start_ns, "length_ns": end_ns - start_ns, **(about or {})}
    )


def begins_and_ends(slices: Iterable[Slice]) -> Iterator[Event]:
    """Yield the events of slices that are nested on their tracks, each track in the order of its instants.

    Readers keep the order of events of one instant: what ends there ends before what begins there, and what is around
    another begins first and ends last.
    """
    around: list[Slice] = []

    def over(now_ns: int | None) -> Iterator[Event]:
        while around and (now_ns is None or around[-1].end_ns <= now_ns):
            ended = around.pop()
            yield _event("E", ended, ended.end_ns)

    track = None
    for piece in sorted(slices, key=lambda each: (each.pid, each.tid, each.start_ns, -each.end_ns)):
        yield from over(piece.start_ns if (piece.pid, piece.tid) == track else None)
        track = piece.pid, piece.tid
        around.append(piece)
        yield _event("B", piece, piece.start_ns)
    yield from over(None)


def _event(phase: str, piece: Slice, time_ns: int) -> Event:
    # speedscope pairs ends with begins by name and arguments: both have them.
    where = {"ph": phase, "pid": piece.pid, "tid": piece.tid}
    return {**where, "name": piece.name, "ts": time_ns / 1000, "args": piece.about}


def chrome_events(trace: Trace, recorded: Trace | None = None) -> Iterator[Event]:
    """Yield the events of a trace, and of a recording beside it, which begins with it."""
    slices: list[Slice] = []
    for event in _tracks(trace, recorded):
        if isinstance(event, Slice):
            slices.append(event)
        else:
            yield event
    yield from begins_and_ends(slices)


def _tracks(trace: Trace, recorded: Trace | None) -> Iterator[Event | Slice]:
    yield from _schedule(trace, (_PCPUS, "pCPUs", "pCPU"), (_VCPUS, "vCPUs"))
    yield from _protection(trace)
    for number, flow in enumerate(dict.fromkeys(packet.flow for packet in trace.seen)):
        yield from _packets(trace, _FLOWS + number, flow)
    yield from _drops(trace)
    yield from _counters(trace)
    if recorded is not None:
        later_ns = trace.start_ns - recorded.start_ns
        yield from _schedule(recorded, (_RECORDED, "recorded CPUs", "CPU"), (_RECORDED_WHO, "recorded"), later_ns)


def _schedule(
    trace: Trace, on: tuple[int, str, str], of: tuple[int, str], later_ns: int = 0
) -> Iterator[Event | Slice]:
    """Yield who ran on each CPU, and the states of everybody."""
    yield from _process(on[0], on[1], trace.pcpu_names)
    yield from _process(*of, trace.vcpu_names)
    for s in trace.slices:
        start_ns, end_ns = s.start_ns + later_ns, s.end_ns + later_ns
        name, about = trace.vcpu_names[s.vcpu], {"priority": s.priority, "until": s.reason}
        yield _slice(on[0], s.pcpu, name, start_ns, end_ns, about)
        yield _slice(of[0], s.vcpu, "running", start_ns, end_ns, {on[2].lower(): s.pcpu, **about})
    for w in trace.waits:
        yield _slice(of[0], w.vcpu, f"waits for a {on[2]}", w.start_ns + later_ns, w.end_ns + later_ns)


def _process(pid: int, name: str, tracks: Iterable[str]) -> Iterator[Event]:
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    for tid, track in enumerate(tracks):
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": track}}


def _instant(pid: int, tid: int, name: str, time_ns: int, arguments: dict[str, Any]) -> Event:
    return {"ph": "i", "s": "t", "pid": pid, "tid": tid, "name": name, "ts": time_ns / 1000, "args": arguments}


def _protection(trace: Trace) -> Iterator[Event | Slice]:
    """Yield what happened to protected domains: each moment, and what lasts from it to the next."""
    domains = list(trace.lags)
    if domains:
        tracks = [f"{domain}{suffix}" for domain in domains for suffix in ("", " stands still")]
        yield from _process(_PROTECTION, "protection", tracks)
    for stop in trace.stops:
        yield _slice(_PROTECTION, 2 * domains.index(stop.domain) + 1, "stands still", stop.start_ns, stop.end_ns)
    for tid, domain in zip(range(0, 2 * len(domains), 2), domains, strict=True):
        moments = [moment for moment in trace.moments if moment.domain == domain]
        if not moments:
            continue
        closing = Moment(domain, max(trace.end_ns, moments[-1].time_ns), "")
        for moment, following in pairwise([*moments, closing]):
            if trace.start_ns <= moment.time_ns < trace.end_ns:
                yield _instant(_PROTECTION, tid, moment.event, moment.time_ns, {"at_ns": moment.time_ns})
            start_ns, end_ns = max(moment.time_ns, trace.start_ns), min(following.time_ns, trace.end_ns)
            if end_ns > start_ns:
                name = _LASTS.get(moment.event, moment.event)
                yield _slice(_PROTECTION, tid, name, start_ns, end_ns, {"since": moment.event})


def _packets(trace: Trace, pid: int, flow: str) -> Iterator[Event | Slice]:
    """Yield the packets of a workload, each with the stages of its way inside, on as few tracks as hold them apart."""
    packets = [packet for packet in trace.seen if packet.flow == flow and packet.end_ns > packet.begin_ns]
    lanes, used = _lanes((packet.begin_ns, packet.end_ns) for packet in packets)
    yield from _process(pid, f"packets of {flow}" if flow else "packets", [f"lane {n}" for n in range(used)])
    for packet, lane in zip(packets, lanes, strict=True):
        about = {
            "stream": packet.stream,
            "number": packet.number,
            "begun": packet.begun,
            "end": packet.end or "under way",
        }
        if packet.reason:
            about["reason"] = packet.reason
        yield _slice(pid, lane, packet_name(packet), packet.begin_ns, packet.end_ns, about)
        for step in steps(packet):
            if step.end_ns > step.start_ns:
                yield _slice(pid, lane, step.name, step.start_ns, step.end_ns)


def packet_name(packet: PacketTrace) -> str:
    """Return what a packet is called on a timeline."""
    direction = {"client": "to", "guest": "from", "copy": "copy for"}[packet.begun]
    if packet.label:
        return f"{packet.label} {direction} {packet.domain}"
    return f"stream {packet.stream} packet {packet.number}"


def _lanes(spans_ns: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
    """Give spans in order of their begins tracks on which they do not overlap; return these and how many there are."""
    lanes: list[int] = []
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    for begin_ns, end_ns in spans_ns:
        while busy and busy[0][0] <= begin_ns:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, used = used, used + 1
        heappush(busy, (end_ns, lane))
        lanes.append(lane)
    return lanes, used


def _drops(trace: Trace) -> Iterator[Event]:
    reasons = list(dict.fromkeys(packet.reason for packet in trace.dropped))
    if reasons:
        yield from _process(_DROPS, "drops", reasons)
    for packet in trace.dropped:
        about = {"flow": packet.flow, "stream": packet.stream, "number": packet.number, "domain": packet.domain}
        yield _instant(_DROPS, reasons.index(packet.reason), f"{packet_name(packet)} dropped", packet.end_ns, about)


def _counters(trace: Trace) -> Iterator[Event]:
    yield {"ph": "M", "pid": _COUNTERS, "name": "process_name", "args": {"name": "rings, outputs held, lag"}}
    for name, samples in trace.rings.items():
        yield from _counter(name, "packets", samples)
    for domain, samples in trace.lags.items():
        if any(lag_ns for _, lag_ns in samples):
            yield from _counter(f"second copy of {domain} is behind", "ns", samples)
        yield from _counter(f"outputs of {domain} held", "packets", _held(trace, domain))


def _counter(name: str, unit: str, samples: Iterable[tuple[int, int]]) -> Iterator[Event]:
    for now_ns, value in samples:
        yield {"ph": "C", "pid": _COUNTERS, "name": name, "ts": now_ns / 1000, "args": {unit: value}}


def _held(trace: Trace, domain: str) -> list[tuple[int, int]]:
    """Return how many outputs of a domain were held, where that changes."""
    changes: list[tuple[int, int]] = []
    for packet in trace.seen:
        if packet.domain == domain and packet.held_ns:
            let_go_ns = packet.time_of(RELEASED) or 0
            changes += [(let_go_ns - packet.held_ns, 1), (let_go_ns, -1)]
    levels: list[tuple[int, int]] = []
    count = 0
    for now_ns, change in sorted(changes):
        count += change
        if levels and levels[-1][0] == now_ns:
            levels.pop()
        levels.append((now_ns, count))
    return levels


def write_chrome(trace: Trace, path: Path, recorded: Trace | None = None) -> None:
    """Write :func:`chrome_events` for ui.perfetto.dev, chrome://tracing or speedscope."""
    with path.open("w") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, event in enumerate(chrome_events(trace, recorded)):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")
