"""What a host does with a script of :mod:`host_scripts`, as plain data.

::

    vcpus        [{"run_ns", "wait_ns", "wakeups", "context_switches", "migrations"}] by number;
                 ``wait_ns``: time runnable without a pCPU, up to its last dispatch
    pcpus        [{"busy_ns", "switching_ns", "idle_ns"}]: time that has passed in each; they add up to the run
    context_switches   dispatches of another vCPU than the one this pCPU ran last
    counters     of the scheduler, by its own names
    finished     {"count", "sum_ns": sum of the times, "sha256": of lines "time job" in ascending order}
    switches     {"count", "sha256": of lines "time pcpu vcpu", "first": the first 50 as lists}: who is on each
                 pCPU (-1: nobody) whenever it is another at the end of an instant than at its beginning, in
                 ascending order; what comes and goes within one instant is not in it

After the run every running vCPU is charged up to the end.
"""

from typing import Any

from pydantic import TypeAdapter
from vftsim.cpu import Guest, Host, Vcpu, Work
from vftsim.engine import Clock, EventKind

from vftsim.platform.cpu.parameters import DomainScheduling, schedulers

from .compact import digest
from .host_scripts import Script

NOBODY = -1


class _Switches:
    """A ScheduleObserver that remembers who was on each pCPU at the end of each instant."""

    def __init__(self, pcpus: int) -> None:
        self.last: dict[tuple[int, int], int] = {}
        self.pcpus = pcpus

    def on_dispatch(self, pcpu: int, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        self.last[now_ns, pcpu] = vcpu.index

    def on_stop(self, pcpu: int, vcpu: Vcpu, now_ns: int, reason: str) -> None:
        self.last[now_ns, pcpu] = NOBODY

    def on_wake(self, vcpu: Vcpu, now_ns: int) -> None:
        pass

    def on_priority(self, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        pass

    def listed(self) -> list[list[int]]:
        before = [NOBODY] * self.pcpus
        switches = []
        for (now_ns, pcpu), vcpu in sorted(self.last.items()):
            if vcpu != before[pcpu]:
                before[pcpu] = vcpu
                switches.append([now_ns, pcpu, vcpu])
        return switches


class ScriptedHost:
    """A host with the guests of a script, whose jobs it starts."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.clock = Clock()
        self.switches = _Switches(script["pcpus"])
        parameters = dict(script["scheduler"])
        spec = TypeAdapter(schedulers()[parameters["kind"]]).validate_python(parameters)
        self.host = Host(self.clock, script["pcpus"], spec.build(), script["switch_cost_ns"], self.switches)
        self.guests = [self._guest(domain) for domain in script["domains"]]
        self.finished: list[tuple[int, int]] = []

    def _guest(self, domain: dict[str, Any]) -> Guest:
        scheduling = DomainScheduling(**domain["scheduling"])
        vcpus = [self.host.add_vcpu(scheduling, domain["affinity"]) for _ in range(domain["vcpus"])]
        return Guest(self.host, vcpus, domain["quantum_ns"])

    def run(self) -> None:
        for number, job in enumerate(self.script["jobs"]):
            if job[0] >= 0:
                self.clock.at(job[0], EventKind.ARRIVAL, number, self._start, number)
        for number, (from_ns, to_ns, domain) in enumerate(self.script["pauses"]):
            self.clock.at(from_ns, EventKind.CONTROL, 2 * number, self._freeze, self.guests[domain])
            self.clock.at(to_ns, EventKind.CONTROL, 2 * number + 1, self._thaw, self.guests[domain])
        self.host.start()
        self.clock.run(self.script["until_ns"])
        self.host.check_conservation()

    def _start(self, number: int) -> None:
        _, domain, kind, vcpu, demand_ns, _ = self.script["jobs"][number]
        guest = self.guests[domain]
        work = Work(demand_ns, self._done, number)
        if kind == "interrupt":
            guest.raise_interrupt(guest.vcpus[vcpu], work)
        else:
            submit = {"job": guest.submit, "background": guest.submit_background, "next": guest.submit_next}
            submit[kind](work)

    def _done(self, number: int) -> None:
        self.finished.append((self.clock.now_ns, number))
        then = self.script["jobs"][number][5]
        if then >= 0:
            self._start(then)

    def _freeze(self, guest: Guest) -> None:
        guest.freeze()

    def _thaw(self, guest: Guest) -> None:
        guest.thaw()


def result(script: Script) -> dict[str, Any]:
    """Run a script and return what came of it."""
    lab = ScriptedHost(script)
    lab.run()
    host = lab.host
    finished = sorted(lab.finished)
    switches = lab.switches.listed()
    fields = ("run_ns", "wait_ns", "wakeups", "context_switches", "migrations")
    return {
        "vcpus": [{name: getattr(vcpu, name) for name in fields} for vcpu in host.vcpus],
        "pcpus": [_pcpu(host, pcpu) for pcpu in range(host.pcpus)],
        "context_switches": host.context_switches,
        "counters": dict(getattr(host.scheduler, "counters", {})),
        "finished": {
            "count": len(finished),
            "sum_ns": sum(time_ns for time_ns, _ in finished),
            "sha256": digest(f"{time_ns} {number}" for time_ns, number in finished),
        },
        "switches": {
            "count": len(switches),
            "sha256": digest(f"{time_ns} {pcpu} {vcpu}" for time_ns, pcpu, vcpu in switches),
            "first": switches[:50],
        },
    }


def _pcpu(host: Host, pcpu: int) -> dict[str, int]:
    running = host.running[pcpu]
    ahead_ns = 0 if running is None else max(running.dispatched_ns - host.clock.now_ns, 0)
    return {
        "busy_ns": host.pcpu_busy_ns[pcpu],
        "switching_ns": host.pcpu_switching_ns[pcpu] - ahead_ns,
        "idle_ns": host.idle_ns(pcpu),
    }
