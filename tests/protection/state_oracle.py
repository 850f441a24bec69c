"""An oracle of the output-commit promise for mechanisms that checkpoint: it knows the parameters and watches the wire.

From the instants at which the guest was stopped it works out by itself what state was on the channel when, what had
reached the backup at a crash, and therefore what may have been seen by then and how life goes on.  It asks the
mechanism nothing.  Of a guest that computes without end in chunks that end with an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from vftsim.testing.plant import OWN, Plant

from .sets import Setting


@dataclass(frozen=True)
class State:
    """A state on the wire; the first, with which protection begins, is at the backup from the start."""

    taken_ns: int
    sent_ns: int
    departs_ns: int
    acknowledged_ns: int
    applied_ns: int


@dataclass(frozen=True)
class Rules:
    """What the oracle is told of the system beside the setting: its clocks."""

    setting: Setting
    chunk_ns: int
    timeout_ns: int
    activation_ns: int
    go_live_ns: int
    spacing_ns: int = 0

    @property
    def way_ns(self) -> int:
        return self.setting.round_trip // 2


class Oracle:
    """What a primary that lives on did, judged as if it had crashed at one instant or another."""

    def __init__(self, rules: Rules, alive: Plant) -> None:
        self.rules = rules
        self.alive = alive
        self.issued = {number: time_ns for time_ns, number in alive.issued}
        self.states = [State(0, 0, 0, 0, 0)]
        self.runs = [0]
        resumed_ns = 0
        for time_ns, _ in alive.stops:
            self._add(time_ns, time_ns - resumed_ns)
            resumed_ns = self.states[-1].sent_ns

    def _add(self, taken_ns: int, run_ns: int) -> None:
        setting = self.rules.setting
        sent_ns = taken_ns + setting.fixed_pause + round(setting.page_pause * setting.pages(run_ns))
        departs_ns = sent_ns + setting.wire(run_ns)
        disk_bytes = round(setting.disk_rate * run_ns / 10**9)
        applied_ns = max(self.states[-1].applied_ns, departs_ns + self.rules.way_ns) + disk_bytes * 1000 // 60
        acknowledged_ns = departs_ns + 2 * self.rules.way_ns
        self.states.append(State(taken_ns, sent_ns, departs_ns, acknowledged_ns, applied_ns))
        self.runs.append(self.runs[-1] + run_ns)

    def missing_bytes(self) -> list[str]:
        """States that were sent with fewer or more bytes than the guest has changed."""
        wrong = []
        for number, (before, after) in enumerate(pairwise(self.alive.stops), 1):
            run_ns = self.runs[number] - self.runs[number - 1]
            due_ns = self.rules.setting.wire(run_ns)
            sent_ns = (after[1] - before[1]) * 8 * 10**9 // self.rules.setting.rate
            if abs(sent_ns - due_ns) > 1:
                wrong.append(f"state {number} is incomplete")
        return wrong

    def received(self, crash_ns: int) -> int:
        """Number of the last state that had left the primary as a whole."""
        return max(n for n, state in enumerate(self.states) if state.departs_ns <= crash_ns)

    def live_ns(self, crash_ns: int) -> int:
        """When the backup goes live: after its timeout since the last byte, and after its disk has followed."""
        heard_ns = max(min(state.departs_ns, crash_ns) for state in self.states if state.sent_ns <= crash_ns)
        declared_ns = heard_ns + self.rules.way_ns + self.rules.timeout_ns
        applied_ns = self.states[self.received(crash_ns)].applied_ns
        return max(declared_ns, applied_ns) + self.rules.activation_ns + self.rules.go_live_ns

    def due(self) -> dict[int, int]:
        """When each output may leave: when the first state that was taken after it is acknowledged."""
        due_ns: dict[int, int] = {}
        for before, state in pairwise(self.states):
            batch = [
                n
                for n, i in self.issued.items()
                if (before.taken_ns < i or not before.taken_ns) and i <= state.taken_ns
            ]
            for place, number in enumerate(batch):
                due_ns[number] = state.acknowledged_ns + place * self.rules.spacing_ns
        return due_ns

    def judge(self, crash_ns: int, world: Plant) -> list[str]:
        """What is wrong with what the world saw of a primary that crashed at an instant."""
        before = [(time_ns, number) for time_ns, number in world.seen if time_ns <= crash_ns]
        after = [(time_ns, number) for time_ns, number in world.seen if time_ns > crash_ns]
        return [
            *self.missing_bytes(),
            *self._before(crash_ns, before),
            *self._after(crash_ns, after, world),
        ]

    def _before(self, crash_ns: int, seen: list[tuple[int, int]]) -> list[str]:
        due_ns = self.due()
        wrong = [f"{n} left too early" for time_ns, n in seen if time_ns < due_ns.get(n, crash_ns + 1)]
        wrong += [f"{n} was held too long" for n, due in due_ns.items() if due <= crash_ns and (due, n) not in seen]
        numbers = [n for _, n in seen]
        wrong += ["an output left twice"] if len(set(numbers)) < len(numbers) else []
        wrong += ["outputs left out of order"] if sorted(numbers, key=lambda n: self.issued[n]) != numbers else []
        taken_ns = self.states[self.received(crash_ns)].taken_ns
        return wrong + [f"{n} was seen and is underivable" for _, n in seen if self.issued[n] > taken_ns]

    def _after(self, crash_ns: int, seen: list[tuple[int, int]], world: Plant) -> list[str]:
        live_ns = self.live_ns(crash_ns)
        lives = [time_ns for time_ns, what in world.timeline if what == "secondary live"]
        if lives != [live_ns]:
            return [f"went live at {lives}, not once at {live_ns}"]
        wrong = [f"{n} left a dead host" for time_ns, n in seen if time_ns < live_ns]
        number = self.received(crash_ns)
        done, run_ns = self.runs[number] // self.rules.chunk_ns, self.runs[number]
        expected = [
            (live_ns + (place + 1) * self.rules.chunk_ns - run_ns, OWN + place + 1)
            for place in range(done, done + (world.until_ns - live_ns) // self.rules.chunk_ns)
        ]
        after_boot = [(time_ns, n) for time_ns, n in seen if n > OWN]
        if after_boot[: len(expected)] != expected[: len(after_boot)] or abs(len(after_boot) - len(expected)) > 1:
            wrong.append("the second life does not go on from the state received last")
        taken_ns = self.states[number].taken_ns
        reachable_ns = world.moments["reachable"]
        wrong += ["a request entered a dead host" for time_ns, _ in world.entered if taken_ns < time_ns < reachable_ns]
        return wrong
