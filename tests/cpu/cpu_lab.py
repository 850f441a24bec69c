"""A host with named domains whose every scheduling decision is written down."""

from dataclasses import dataclass, field
from typing import Any

from vftsim.cpu import Guest, Host, Vcpu, Work
from vftsim.cpu.parameters import DomainScheduling, SchedulerSpec
from vftsim.engine import Clock, EventKind

MS = 1_000_000
HOG_NS = 10**15
IDLE = "-"


@dataclass
class Recorder:
    """A ScheduleObserver that keeps (time, pCPU, who), one entry a change; two at an instant are one."""

    names: dict[int, str] = field(default_factory=dict)
    decisions: list[tuple[float, int, str]] = field(default_factory=list)
    priorities: list[tuple[float, str, str]] = field(default_factory=list)
    wakes: list[tuple[float, str]] = field(default_factory=list)
    on: dict[int, Vcpu] = field(default_factory=dict)

    def on_dispatch(self, pcpu: int, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        assert pcpu in vcpu.affinity
        assert pcpu not in self.on
        assert vcpu not in self.on.values()
        self.on[pcpu] = vcpu
        self._note(now_ns, pcpu, self.names[vcpu.index])

    def on_stop(self, pcpu: int, vcpu: Vcpu, now_ns: int, reason: str) -> None:
        assert reason in {"blocked", "preempted"}
        assert self.on.pop(pcpu) is vcpu
        self._note(now_ns, pcpu, IDLE)

    def on_wake(self, vcpu: Vcpu, now_ns: int) -> None:
        self.wakes.append((now_ns / MS, self.names[vcpu.index]))

    def on_priority(self, vcpu: Vcpu, now_ns: int, priority: str) -> None:
        self.priorities.append((now_ns / MS, self.names[vcpu.index], priority))

    def _note(self, now_ns: int, pcpu: int, name: str) -> None:
        entry = (now_ns / MS, pcpu, name)
        if self.decisions and self.decisions[-1] == (now_ns / MS, pcpu, IDLE):
            self.decisions.pop()
        self.decisions.append(entry)


class Lab:
    """One host; domains are added, then ``run`` starts it."""

    def __init__(self, spec: SchedulerSpec, pcpus: int = 1, switch_cost_ns: int = 0) -> None:
        self.clock = Clock()
        self.recorder = Recorder()
        self.host = Host(self.clock, pcpus, spec.build(), switch_cost_ns, self.recorder)
        self.guests: dict[str, Guest] = {}
        self.finished: list[tuple[float, str]] = []
        self._started = False
        self._serial = 0

    def domain(
        self, name: str, vcpus: int = 1, affinity: Any = None, quantum_ns: int = 100 * MS, **parameters: Any
    ) -> Guest:
        domain = DomainScheduling(**parameters)
        added = [self.host.add_vcpu(domain, affinity) for _ in range(vcpus)]
        for number, vcpu in enumerate(added):
            self.recorder.names[vcpu.index] = name if vcpus == 1 else f"{name}{number}"
        self.guests[name] = Guest(self.host, added, quantum_ns)
        return self.guests[name]

    def hog(self, *names: str, at_ms: float = 0) -> None:
        """Give every vCPU of the domains work without end."""
        for name in names:
            for _ in self.guests[name].vcpus:
                self.work(name, at_ms, HOG_NS)

    def burst(self, name: str, *at_ms: float, demand_ms: float) -> None:
        """A job of ``demand_ms`` at each of the times."""
        for time_ms in at_ms:
            self.work(name, time_ms, round(demand_ms * MS))

    def work(self, name: str, at_ms: float, demand_ns: int) -> None:
        self._serial += 1
        guest = self.guests[name]

        def submit(_: object) -> None:
            guest.submit(Work(demand_ns, lambda _: self.finished.append((self.clock.now_ns / MS, name))))

        self.clock.at(round(at_ms * MS), EventKind.ARRIVAL, self._serial, submit)

    def run(self, until_ms: float) -> "Lab":
        if not self._started:
            self._started = True
            self.host.start()
        self.clock.run(round(until_ms * MS))
        self.host.check_conservation()
        return self

    def decisions(self, pcpu: int = 0) -> list[tuple[float, str]]:
        return [(time_ms, name) for time_ms, p, name in self.recorder.decisions if p == pcpu]

    def run_ns(self, name: str) -> int:
        self.host.busy_ns()
        return sum(vcpu.run_ns for vcpu in self.guests[name].vcpus)

    def percent(self, name: str) -> float:
        """CPU time so far in percent of one pCPU."""
        return 100 * self.run_ns(name) / self.clock.now_ns
