"""A trace in the Chrome trace event format (JSON object form; "Trace Event Format", Google).

ui.perfetto.dev, chrome://tracing and speedscope open it.  Tracks: who ran on each pCPU, the states of each vCPU, what
happened to each protected domain, packets of each workload with the stages of their way, and counters.

Times are in us as the format wants them, and its readers compute the end of a slice as begin + length in double
precision.  Nanoseconds as fractions of a us are rounded there, and slices come to overlap.  So times are written as
whole numbers of 1/1024 us, whose sums are exact: each of them tells one ns from the next, and the arguments of every
slice say its ns themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any

from vftsim.platform.io.marks import RELEASED
from vftsim.tracing.explain import steps
from vftsim.tracing.packets import PacketTrace
from vftsim.tracing.trace import Moment, Trace

Event = dict[str, Any]
_PCPUS, _VCPUS, _COUNTERS, _PROTECTION, _DROPS, _RECORDED, _RECORDED_WHO, _FLOWS = range(1, 9)

_LASTS = {
    "primary crash": "silence, until the failure is declared",
    "failure declared": "takeover, until the other copy is live",
    "secondary live": "announcement, until clients can reach it",
    "booted": "until the first packet",
    "reachable": "until the first packet",
    "first packet": "serves",
}
"""What lasts from a moment to the next one."""


def _us(time_ns: int) -> float:
    """Return a time in us, as a whole number of 1/1024 us."""
    return (time_ns * 128 + 62) // 125 / 1024


def slice_event(
    pid: int, tid: int, name: str, start_ns: int, end_ns: int, arguments: dict[str, Any] | None = None
) -> Event:
    """Return a slice; ``ts`` + ``dur`` is the ``ts`` of what begins at its end."""
    # The instant makes neighbours differ: a reader that pairs begins and ends by name and arguments keeps them apart.
    arguments = {"from_ns": start_ns, "length_ns": end_ns - start_ns, **(arguments or {})}
    ts = _us(start_ns)
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": _us(end_ns) - ts, "args": arguments}


def chrome_events(trace: Trace) -> Iterator[Event]:
    """Return the trace as events of the format."""
    yield from _schedule(trace, (_PCPUS, "pCPUs", "pCPU"), (_VCPUS, "vCPUs"))
    yield from _protection(trace)
    for number, flow in enumerate(dict.fromkeys(one.flow for one in trace.seen)):
        yield from _packets(trace, _FLOWS + number, flow)
    yield from _drops(trace)
    yield from _counters(trace)


def _schedule(trace: Trace, on: tuple[int, str, str], of: tuple[int, str], later_ns: int = 0) -> Iterator[Event]:
    """Yield who ran on each CPU, and the states of everybody."""
    yield from _process(on[0], on[1], [f"{on[2]} {n}" for n in range(trace.pcpus)])
    yield from _process(*of, trace.vcpu_names)
    for s in trace.slices:
        start_ns, end_ns = s.start_ns + later_ns, s.end_ns + later_ns
        name, about = trace.vcpu_names[s.vcpu], {"priority": s.priority, "until": s.reason}
        yield slice_event(on[0], s.pcpu, name, start_ns, end_ns, about)
        yield slice_event(of[0], s.vcpu, "running", start_ns, end_ns, {on[2].lower(): s.pcpu, **about})
    for w in trace.waits:
        yield slice_event(of[0], w.vcpu, f"waits for a {on[2]}", w.start_ns + later_ns, w.end_ns + later_ns)


def _both(trace: Trace, recorded: Trace | None) -> Iterator[Event]:
    yield from chrome_events(trace)
    if recorded is not None:
        later_ns = trace.start_ns - recorded.start_ns
        yield from _schedule(recorded, (_RECORDED, "recorded CPUs", "CPU"), (_RECORDED_WHO, "recorded"), later_ns)


def _process(pid: int, name: str, tracks: Iterable[str]) -> Iterator[Event]:
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    for tid, track in enumerate(tracks):
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": track}}


def _instant(pid: int, tid: int, name: str, time_ns: int, arguments: dict[str, Any]) -> Event:
    return {"ph": "i", "s": "t", "pid": pid, "tid": tid, "name": name, "ts": _us(time_ns), "args": arguments}


def _protection(trace: Trace) -> Iterator[Event]:
    """Yield what happened to protected domains: each moment, and what lasts from it to the next."""
    domains = list(trace.lags)
    if domains:
        tracks = [f"{domain}{what}" for domain in domains for what in ("", " stands still")]
        yield from _process(_PROTECTION, "protection", tracks)
    for stop in trace.stops:
        yield slice_event(_PROTECTION, 2 * domains.index(stop.domain) + 1, "stands still", stop.start_ns, stop.end_ns)
    for tid, domain in zip(range(0, 2 * len(domains), 2), domains, strict=True):
        own = [moment for moment in trace.moments if moment.domain == domain]
        if not own:
            continue
        closing = Moment(domain, max(trace.end_ns, own[-1].time_ns), "")
        for moment, following in pairwise([*own, closing]):
            if trace.start_ns <= moment.time_ns < trace.end_ns:
                yield _instant(_PROTECTION, tid, moment.what, moment.time_ns, {"at_ns": moment.time_ns})
            start_ns, end_ns = max(moment.time_ns, trace.start_ns), min(following.time_ns, trace.end_ns)
            if end_ns > start_ns:
                name = _LASTS.get(moment.what, moment.what)
                yield slice_event(_PROTECTION, tid, name, start_ns, end_ns, {"since": moment.what})


def _packets(trace: Trace, pid: int, flow: str) -> Iterator[Event]:
    """Yield the packets of a workload, each with the stages of its way inside, on as few tracks as hold them apart."""
    own = [one for one in trace.seen if one.flow == flow and one.end_ns > one.begin_ns]
    lanes, used = _lanes((one.begin_ns, one.end_ns) for one in own)
    yield from _process(pid, f"packets of {flow}" if flow else "packets", [f"lane {n}" for n in range(used)])
    for one, lane in zip(own, lanes, strict=True):
        about = {"stream": one.stream, "number": one.number, "begun": one.begun, "end": one.end or "under way"}
        if one.reason:
            about["reason"] = one.reason
        yield slice_event(pid, lane, packet_name(one), one.begin_ns, one.end_ns, about)
        for step in steps(one):
            if step.end_ns > step.start_ns:
                yield slice_event(pid, lane, step.name, step.start_ns, step.end_ns)


def packet_name(one: PacketTrace) -> str:
    """Return what a packet is called on a timeline."""
    way = {"client": "to", "guest": "from", "copy": "copy for"}[one.begun]
    if one.label:
        return f"{one.label} {way} {one.domain}"
    return f"stream {one.stream} packet {one.number}"


def _lanes(spans_ns: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
    """Give spans in order of their begins tracks on which they do not overlap; return these and how many there are."""
    found: list[int] = []
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
        found.append(lane)
    return found, used


def _drops(trace: Trace) -> Iterator[Event]:
    reasons = list(dict.fromkeys(one.reason for one in trace.dropped))
    if reasons:
        yield from _process(_DROPS, "drops", reasons)
    for one in trace.dropped:
        about = {"flow": one.flow, "stream": one.stream, "number": one.number, "domain": one.domain}
        yield _instant(_DROPS, reasons.index(one.reason), f"{packet_name(one)} dropped", one.end_ns, about)


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
        yield {"ph": "C", "pid": _COUNTERS, "name": name, "ts": _us(now_ns), "args": {unit: value}}


def _held(trace: Trace, domain: str) -> list[tuple[int, int]]:
    """Return how many outputs of a domain were held, where that changes."""
    changes: list[tuple[int, int]] = []
    for one in trace.seen:
        if one.domain == domain and one.held_ns:
            let_go_ns = one.time_of(RELEASED) or 0
            changes += [(let_go_ns - one.held_ns, 1), (let_go_ns, -1)]
    found: list[tuple[int, int]] = []
    count = 0
    for now_ns, change in sorted(changes):
        count += change
        if found and found[-1][0] == now_ns:
            found.pop()
        found.append((now_ns, count))
    return found


def write_chrome(trace: Trace, path: Path, recorded: Trace | None = None) -> None:
    """Write the trace for ui.perfetto.dev, chrome://tracing or speedscope; a recording beside it begins with it."""
    with path.open("w") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, event in enumerate(_both(trace, recorded)):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")
