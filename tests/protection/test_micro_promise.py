"""Micro-checkpoints judged from outside at stratified guest errors, and at crashes where states are shipped."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from vftsim.kernel.declare import part_of
from vftsim.platform.protection import output_buffer, state_stream
from vftsim.platform.protection.micro_checkpoint import micro_checkpoint
from vftsim.spec.units import MS, US
from vftsim.testing.plant import OWN, Plant, play, watched

from .crashes import quarters
from .sets import A
from .spoilt import replaced
from .state_oracle import Oracle, Rules, State

CHUNK_NS = 700_001
RESTORE_NS = 20 * MS
SETTING = A.but(fixed_pause=100 * US, page_pause=5 * US)
RULES = Rules(SETTING, CHUNK_NS, 60 * MS, 5 * MS, 20 * MS)
FAILOVER = {"detection": {"timeout": RULES.timeout_ns}, "go_live": RULES.go_live_ns}
ASKS = [3_333_333 * i for i in range(1, 90)]
EPOCH = 2
PER_PHASE = 47

seen_micro = watched(micro_checkpoint)


def plant(shipped: bool, **fields: Any) -> dict[str, Any]:
    settings = SETTING.parameters("micro_checkpoint", failover=FAILOVER, shipped=shipped, restore=RESTORE_NS)
    parameters = {k: v for k, v in settings.items() if k not in ("rule", "suspend_request")}
    return {
        "protection": parameters,
        "asks": ASKS,
        "chunk_ns": CHUNK_NS,
        "chunk_is_output": True,
        "part": seen_micro,
        **fields,
    }


class LocalOracle(Oracle):
    """Copies are complete when the guest goes on; nothing is sent, and nobody else takes over."""

    def _add(self, taken_ns: int, run_ns: int) -> None:
        setting = self.rules.setting
        done_ns = taken_ns + setting.fixed_pause + round(setting.page_pause * setting.pages(run_ns))
        self.states.append(State(taken_ns, done_ns, done_ns, done_ns, done_ns))
        self.runs.append(self.runs[-1] + run_ns)

    def missing_bytes(self) -> list[str]:
        return ["something was sent"] if any(sent for _, sent in self.alive.stops) else []

    def live_ns(self, crash_ns: int) -> int:
        return crash_ns + RESTORE_NS

    def _after(self, crash_ns: int, seen: list[tuple[int, int]], world: Plant) -> list[str]:
        """The next life is protected as well: what it issues waits, but goes on where the state was."""
        live_ns, number = self.live_ns(crash_ns), self.received(crash_ns)
        lives = [time_ns for time_ns, what in world.timeline if what == "secondary live"]
        wrong = [] if lives == [live_ns] else [f"went live at {lives}, not once at {live_ns}"]
        run_ns = self.runs[number]
        done = run_ns // self.rules.chunk_ns
        issued = [(t, n) for t, n in world.issued if n > OWN and t >= live_ns][:10]
        expected = [
            (live_ns + (place + 1) * self.rules.chunk_ns - run_ns, OWN + place + 1) for place in range(done, done + 10)
        ]
        if issued != expected:
            wrong.append("the second life does not go on from the last state")
        chunks = [n for _, n in world.seen if n > OWN]
        return wrong + (["an output was lost or left twice"] if chunks != sorted(set(chunks)) else [])


@cache
def alive(shipped: bool) -> Oracle:
    return (Oracle if shipped else LocalOracle)(RULES, Plant(**plant(shipped, until_ns=200 * MS)).run())


@cache
def instants(shipped: bool) -> tuple[int, ...]:
    """Boundaries of an epoch and 1 ns around them, and instants in each of its phases."""
    before, state, after = alive(shipped).states[EPOCH - 1 : EPOCH + 2]
    bounds = sorted(
        {
            before.acknowledged_ns,
            state.taken_ns,
            state.sent_ns,
            state.departs_ns,
            state.acknowledged_ns,
            after.taken_ns,
            after.sent_ns,
        }
    )
    inside = [a + (2 * i + 1) * (b - a) // (2 * PER_PHASE) for a, b in pairwise(bounds) for i in range(PER_PHASE)]
    return tuple(sorted({t + d for t in bounds for d in (-1, 0, 1)} | set(inside)))


def strike(shipped: bool, time_ns: int, spoil: Any = None) -> list[str]:
    kind = "primary_crash" if shipped else "guest_error"
    played = play(
        **plant(shipped, faults=[{"kind": kind, "at": f"{time_ns} ns"}], until_ns=time_ns + 115 * MS, spoil=spoil)
    )
    if spoil is None:
        return alive(shipped).judge(time_ns, played.run)
    oracle = (Oracle if shipped else LocalOracle)(RULES, Plant(**plant(shipped, until_ns=200 * MS, spoil=spoil)).run())
    return oracle.judge(time_ns, played.run)


@pytest.mark.thorough
@pytest.mark.parametrize("part", quarters(2))
@pytest.mark.parametrize("shipped", [False, True])
def test_outputs_are_seen_only_of_a_state_that_can_be_gone_back_to(shipped, part):
    """Shipped states share the code of checkpoints."""
    assert len(instants(shipped)) >= 200
    wrong = {t: strike(shipped, t) for t in instants(shipped)[part::4]}
    assert {t: why for t, why in wrong.items() if why} == {}


def late_barrier(old: Any, namespace: dict[str, Any]) -> Any:
    """The barrier stands where the end of the copy finds it; the outputs of that instant's program are let go."""

    def hold(sim: Any, guard: Any, packet: int) -> None:
        old(sim, guard, packet)
        namespace[part_of(output_buffer.seal).name](sim, guard)
        namespace[part_of(output_buffer.release_sealed).name](sim, guard)

    return hold


def unfinished(old: Any, namespace: dict[str, Any]) -> Any:
    """A state counts before it is complete."""
    return lambda sim, guard: True


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "make", "why"),
    [(output_buffer.hold, late_barrier, "too early"), (state_stream.has_received_last, unfinished, "second life")],
)
def test_a_planted_violation_is_caught(old, make, why):
    wrong = [one for t in instants(False)[::16] for one in strike(False, t, replaced(old, make))]
    assert any(why in one for one in wrong), wrong[:5]
