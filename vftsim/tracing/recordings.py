"""Schedules that real systems recorded, read from the text of their tools into the trace that a model's run gives.

==================  ==============================================================================================
``perf``            ``perf sched script`` or ``perf script`` of ``sched:*`` events (Linux tools/perf)
``ftrace``          ``trace-cmd report`` or ``/sys/kernel/tracing/trace``: ``sched_switch``, ``sched_waking``,
                    ``sched_wakeup``, ``sched_wakeup_new``, with named fields or as libtraceevent's plugin writes them
``xentrace``        ``xentrace_format`` with the ``formats`` file of Xen's tools: changes of a vCPU's state; times in
                    cycles
==================  ==============================================================================================

A thread or vCPU runs from when it is switched to until it is switched from.  It waits for a CPU from when it is woken,
or switched from while it could go on (state ``R``), until it is switched to.  Idle threads and Xen's idle domain are
left out.  What a CPU was doing before its first event is taken to have begun with the recording.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

from vftsim.errors import ModelFileError, UsageError
from vftsim.tracing.schedule import Schedule
from vftsim.tracing.trace import Trace

MOST_BYTES = 1_000_000_000
_LOOKED_AT = 1000
_IDLE_DOMAIN = 0x7FFF

_PERF = re.compile(
    r"^\s*\S.*?\s+\d+(?:/\d+)?\s+\[(?P<cpu>\d+)\]\s+(?:[^\s:]+\s+)?(?P<time>\d+\.\d+):\s+"
    r"sched:(?P<event>\w+):\s+(?P<rest>.*)$"
)
_FTRACE = re.compile(
    r"^\s*\S.*-\d+\s+(?:\([\s\d-]+\)\s+)?\[(?P<cpu>\d+)\]\s+(?:[^\s:]+\s+)?(?P<time>\d+\.\d+):\s+"
    r"(?P<event>sched_\w+):\s+(?P<rest>.*)$"
)
_XEN = re.compile(
    r"^CPU(?P<cpu>\d+)\s+(?P<cycles>\d+)\s+\(\+\s*\d+\)\s+(?P<change>[a-z]+_to_[a-z]+)\s+"
    r"\[\s*dom:vcpu\s*=\s*0x(?P<vcpu>[0-9a-fA-F]+)"
)
_SWITCHES = (
    re.compile(r"prev_comm=(.*) prev_pid=(\d+) .*prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)"),
    re.compile(r"(.*):(\d+) \[-?\d+\] (\S+) ==> (.*):(\d+) \[-?\d+\]"),
)
_WAKES = (re.compile(r"comm=(.*) pid=(\d+) prio="), re.compile(r"(.*):(\d+) \[-?\d+\]"))
_WAKING = {"sched_waking", "sched_wakeup", "sched_wakeup_new"}

Kind = Literal["enters", "leaves", "leaves runnable", "woken"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a recording says of a thread or vCPU; ``cpu`` is -1 where none is meant."""

    time_ns: int
    transition: Kind
    cpu: int
    who: str
    name: str


def read_recording(path: Path, cycles_per_s: float | None = None) -> Trace:
    """Return a recorded schedule, its times from its first event on.

    ``cycles_per_s`` is the frequency of the time stamp counter, of ``xentrace`` alone.  Refuses a file that cannot be
    read, is of none of the tools above, holds no schedule, or has times in cycles without a frequency.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"'{path}' has more than {MOST_BYTES / 1e9:g} GB; record a shorter time")
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}") from None
    head = lines[:_LOOKED_AT]
    if any(_XEN.match(line) for line in head):
        if cycles_per_s is None:
            raise UsageError(
                f"'{path}' has its times in cycles: --cycles '2.4 GHz' says how many there are in a second"
            )
        events = list(_of_xen(lines, cycles_per_s))
    elif any(_PERF.match(line) for line in head):
        events = list(_of_linux(lines, _PERF))
    elif any(_FTRACE.match(line) for line in head):
        events = list(_of_linux(lines, _FTRACE))
    else:
        raise UsageError(
            f"'{path}' is no recorded schedule: neither 'perf sched script', nor 'trace-cmd report' with sched events, "
            "nor 'xentrace_format'"
        )
    trace = _traced(events)
    if not trace.slices:
        raise ModelFileError("nobody runs in it: it has no switches (sched_switch, runnable_to_running)", str(path))
    return trace


def _of_linux(lines: Iterable[str], line_of: re.Pattern[str]) -> Iterator[Event]:
    for line in lines:
        match = line_of.match(line)
        if match is None:
            continue
        time_ns, cpu, rest = int(Decimal(match["time"]) * 1_000_000_000), int(match["cpu"]), match["rest"]
        if match["event"] == "sched_switch":
            yield from _switch(time_ns, cpu, rest)
        elif match["event"] in _WAKING and (woken := _first(_WAKES, rest)) is not None and woken[2] != "0":
            yield Event(time_ns, "woken", -1, woken[2], f"{woken[1]}-{woken[2]}")


def _switch(time_ns: int, cpu: int, rest: str) -> Iterator[Event]:
    switch = _first(_SWITCHES, rest)
    if switch is None:
        return
    before, before_pid, state, after, after_pid = switch.groups()
    if before_pid != "0":
        transition: Kind = "leaves runnable" if state.startswith("R") else "leaves"
        yield Event(time_ns, transition, cpu, before_pid, f"{before}-{before_pid}")
    if after_pid != "0":
        yield Event(time_ns, "enters", cpu, after_pid, f"{after}-{after_pid}")


def _of_xen(lines: Iterable[str], cycles_per_s: float) -> Iterator[Event]:
    for line in lines:
        match = _XEN.match(line)
        if match is None:
            continue
        domain, vcpu = divmod(int(match["vcpu"], 16), 1 << 16)
        before, _, after = match["change"].partition("_to_")
        if domain == _IDLE_DOMAIN:
            continue
        time_ns, name = round(int(match["cycles"]) * 1e9 / cycles_per_s), f"d{domain}v{vcpu}"
        if after == "running":
            yield Event(time_ns, "enters", int(match["cpu"]), name, name)
        elif before == "running":
            transition: Kind = "leaves runnable" if after == "runnable" else "leaves"
            yield Event(time_ns, transition, int(match["cpu"]), name, name)
        elif after == "runnable":
            yield Event(time_ns, "woken", -1, name, name)


def _first(patterns: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.match(text)) is not None), None)


def _traced(events: list[Event]) -> Trace:
    """Return events as slices and waits; CPUs that are named get rows from 0 on, in order."""
    events.sort(key=lambda event: event.time_ns)
    # A thread is called what it was called last: it takes another name when it begins its program.
    names = {event.who: event.name for event in events}
    cpus = {cpu: n for n, cpu in enumerate(sorted({event.cpu for event in events if event.cpu >= 0}))}
    span_ns = events[-1].time_ns - events[0].time_ns if events else 0
    trace = Trace(0, span_ns, [f"CPU {cpu}" for cpu in cpus], list(names.values()))
    schedule, begun = Schedule(trace), set[int]()
    who = {each: n for n, each in enumerate(names)}
    for event in events:
        now_ns, task = event.time_ns - events[0].time_ns, who[event.who]
        if event.transition == "woken":
            schedule.wake(task, now_ns)
            continue
        cpu = cpus[event.cpu]
        if event.transition == "enters":
            schedule.dispatch(cpu, task, now_ns)
        else:
            if cpu not in begun:  # what it did before its first event began with the recording, or when it was woken
                schedule.dispatch(cpu, task, schedule.waits_since_ns(task, 0))
            schedule.stop(cpu, task, now_ns, is_runnable=event.transition == "leaves runnable")
        begun.add(cpu)
    schedule.close()
    return trace
