"""How attempts begin: in batches at a constant rate, or with random gaps; and everything random of them.

The draws come ready-made, with numpy ahead of their use; the driver writes more when :func:`take_draw` asks.  Streams
are keyed by phase number and chunk, never by load, environment or what the server does: two configurations see the same
attempts with the same demands, only faster or slower one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel import BESIDE, Engine, EventKind, Failure, Record, Sim, Table, at, entry, event, fail
from vftsim.kernel.agenda import make_due
from vftsim.kernel.columns import write_columns
from vftsim.sampling import Streams, categorical, gamma_ns, unit_exponential
from vftsim.workloads.gaps import in_profile_ns
from vftsim.workloads.ims_bench.agents import overdue, start_attempt
from vftsim.workloads.ims_bench.attempt import Bench, Phase, attempts, benches, phases
from vftsim.workloads.ims_bench.subscribers import put_back, take_subscriber
from vftsim.workloads.ims_bench.verdict import judge
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Scenario, streams

CHUNK = 2048
MOST_DRAWS = 2 * CHUNK
EXHAUSTED = Failure("more attempts began at one instant than were drawn")
_ENTITY = 1
_UNIT_NS = 1 << 30


class AttemptDraw(Record):
    """One attempt's randomness: ``gap`` to the attempt before in mean gaps, the rest as used."""

    gap: float
    scenario: int
    ring_ns: int
    hold_ns: int
    demands: Annotated[list[float], DEMANDS_PER_ATTEMPT]
    user: float
    destination: float


attempt_draws = Table("attempt_draws", AttemptDraw, MOST_DRAWS, is_fixed=True)
"""The coming attempts in turn, draw ``n`` in row ``n`` modulo :data:`MOST_DRAWS`; no row stands for nobody."""


@dataclass(frozen=True, slots=True)
class PhaseDraws:
    """The attempts of one phase, without end."""

    streams: Streams
    phase: int
    """0 pre-registration, 1 stir, 2 ... the steps."""
    shares: Sequence[float]
    """Percent of each scenario."""
    ring_ns: int
    hold_ns: int
    """Means of ringing and holding times; 0: none."""
    demand_cv: float
    time_cv: float = 1.0
    gap_cv: float = 1.0
    """Coefficients of variation of the relative demands (mean 1), of ringing and holding times, and of gaps."""

    def chunk(self, number: int) -> dict[str, NDArray[Any]]:
        """Return :data:`CHUNK` attempts by field of :class:`AttemptDraw`."""
        entity = (self.phase << 32) | number
        u = self.streams.uniforms("ims_bench.attempt", entity, count=CHUNK * 6).reshape(6, CHUNK)
        d = self.streams.uniforms("ims_bench.demand", entity, count=CHUNK * DEMANDS_PER_ATTEMPT)
        return {
            "gap": unit_exponential(u[0]) if self.gap_cv == 1.0 else self._relative(u[0], self.gap_cv),
            "scenario": categorical(u[1], [share / 100.0 for share in self.shares]),
            "ring_ns": self._times(u[2], self.ring_ns),
            "hold_ns": self._times(u[3], self.hold_ns),
            "demands": self._relative(d, self.demand_cv).reshape(CHUNK, DEMANDS_PER_ATTEMPT),
            "user": u[4],
            "destination": u[5],
        }

    @staticmethod
    def _relative(uniforms: NDArray[Any], cv: float) -> NDArray[Any]:
        """Return variates of mean 1."""
        variates: NDArray[Any] = gamma_ns(uniforms, _UNIT_NS, cv) / _UNIT_NS
        return variates

    def _times(self, uniforms: NDArray[Any], mean_ns: int) -> NDArray[Any]:
        """Return durations of a call, at least 1 ns."""
        times = gamma_ns(uniforms, mean_ns, self.time_cv) if mean_ns else np.zeros(len(uniforms), np.int64)
        return np.maximum(times, 1)


def write_chunk(engine: Engine, number: int, chunk: dict[str, NDArray[Any]]) -> None:
    """Write a chunk's draws into its rows."""
    write_columns(engine, attempt_draws, chunk, number * CHUNK % MOST_DRAWS)


def take_draw(sim: Sim, bench: Bench) -> int:
    """Take the next draw; the one before must have been used."""
    if bench.next_draw == bench.draws_written:
        fail(sim, EXHAUSTED)
    row = bench.next_draw % MOST_DRAWS
    bench.next_draw += 1
    if bench.draws_written - bench.next_draw < CHUNK:
        sim.wants_input = True
    return row


@entry
def begin_batches(sim: Sim, bench: Bench, count: int) -> None:
    """Begin ``count`` batches at a constant rate, the first now."""
    bench.batches_left = count
    begin_batch(sim, bench)


def begin_batch(sim: Sim, bench: Bench) -> None:
    """Begin a batch, and plan the next."""
    if bench.batches_left == 0:
        make_due(sim, bench.batches_over)
        return
    bench.batches_left -= 1
    for _ in range(bench.batch):
        begin_attempt(sim, bench, attempt_draws(sim)[take_draw(sim, bench)])
    at(sim, sim.now_ns + bench.batch_period_ns, EventKind.ARRIVAL, _ENTITY, on_batch, bench.row)


on_batch = event(begin_batch)


@entry
def begin_arrivals(sim: Sim, bench: Bench) -> None:
    """Begin arrivals with mean gaps of ``gap_ns``, until ``until_ns``."""
    bench.due_ns = float(sim.now_ns)
    plan_arrival(sim, bench)


def plan_arrival(sim: Sim, bench: Bench) -> None:
    """Plan the next arrival, if it comes in time; its place is the row of its draw."""
    row = take_draw(sim, bench)
    gap_ns = attempt_draws(sim)[row].gap * bench.gap_ns
    bench.due_ns += gap_ns if bench.gaps.stretch == 0 else in_profile_ns(sim, bench.gaps, int(gap_ns))
    if bench.due_ns < bench.until_ns:
        at(sim, int(bench.due_ns), EventKind.ARRIVAL, _ENTITY, on_arrival, bench.row * MOST_DRAWS + row)


@event
def on_arrival(sim: Sim, draw_row: int) -> None:
    """An attempt begins."""
    bench = benches(sim)[draw_row // MOST_DRAWS]
    # Used before the next is taken: the driver may write over it then.
    begin_attempt(sim, bench, attempt_draws(sim)[draw_row % MOST_DRAWS])
    plan_arrival(sim, bench)


def begin_attempt(sim: Sim, bench: Bench, draw: AttemptDraw, phase: Phase = BESIDE) -> None:
    """Begin an attempt, if subscribers for it are free."""
    is_counted = sim.now_ns >= phase.measure_from_ns
    is_registered = draw.scenario != Scenario.IMS_REG
    needs_two = draw.scenario in (Scenario.IMS_UAC, Scenario.IMS_MSGC)
    user = take_subscriber(sim, bench.registered, draw.user) if is_registered else -1
    if not is_registered:
        user = take_subscriber(sim, bench.unregistered, draw.user)
    destination = -1
    if user >= 0 and needs_two:
        destination = take_subscriber(sim, bench.registered, draw.destination)
    if user < 0 or (needs_two and destination < 0):
        if user >= 0:
            put_back(sim, bench.registered, user)
        if is_counted:
            phase.not_started += 1
        return
    bench.begun += 1
    row = new_attempt(sim, bench, draw)
    attempt = attempts(sim)[row]
    attempt.user = user
    attempt.destination = destination
    attempt.counted = is_counted
    if is_counted:
        phase.attempts[draw.scenario] += 1
    start_attempt(sim, bench, row)


def new_attempt(sim: Sim, bench: Bench, draw: AttemptDraw) -> int:
    """Make a stream and the attempt beside it."""
    row = streams.new(sim, number=bench.begun, uses=0)
    stream = streams(sim)[row]
    for slot in range(DEMANDS_PER_ATTEMPT):
        stream.demands[slot] = draw.demands[slot]
    attempt = attempts(sim)[row]
    attempt.bench = bench.row
    attempt.scenario = draw.scenario
    attempt.phase = bench.phase
    attempt.start_ns = sim.now_ns
    attempt.ring_ns = draw.ring_ns
    attempt.hold_ns = draw.hold_ns
    attempt.failed = False
    attempt.ended = False
    attempt.seen = 0
    attempt.rang_ns = 0
    attempt.answered_ns = 0
    attempt.ring = 0
    attempt.hold = 0
    attempt.callee.timer = 0
    return row


@entry
def judge_overdue(sim: Sim, phase: int, highest: int) -> None:
    """Count the phase's attempts that are overdue and not over; ``highest`` is the last row ever used."""
    for row in range(1, highest + 1):
        attempt = attempts(sim)[row]
        is_open = attempt.phase == phase and attempt.counted and not attempt.ended and not attempt.failed
        if is_open and overdue(sim, attempt):
            judge(phases(sim)[phase], attempt)
