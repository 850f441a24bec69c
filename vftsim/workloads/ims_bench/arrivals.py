"""How attempts begin: in batches at a constant rate, or as a Poisson process.

The draws come ready-made (:mod:`vftsim.workloads.ims_bench.draws`); the driver writes more when :func:`take_draw` asks.
"""

from vftsim.kernel import EventKind, Failure, Sim, at, entry, event, fail, part
from vftsim.kernel.agenda import tell
from vftsim.workloads.ims_bench.agents import overdue, start_attempt
from vftsim.workloads.ims_bench.attempt import Bench, attempts, benches, phases
from vftsim.workloads.ims_bench.draws import CHUNK, MOST_DRAWS, AttemptDraw, attempt_draws
from vftsim.workloads.ims_bench.subscribers import put_back, take_subscriber
from vftsim.workloads.ims_bench.verdict import judge
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Scenario, streams

EXHAUSTED = Failure("more attempts began at one instant than were drawn")
_ENTITY = 1


@part
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
def begin_batches(sim: Sim, row: int, count: int) -> int:
    """Begin ``count`` batches at a constant rate, the first now."""
    bench = benches(sim)[row]
    bench.batches_left = count
    begin_batch(sim, bench)
    return 0


@event
def on_batch(sim: Sim, bench_row: int, token: int) -> None:
    """The next batch is due; one period after the last the phase ends."""
    begin_batch(sim, benches(sim)[bench_row])


@part
def begin_batch(sim: Sim, bench: Bench) -> None:
    """Begin a batch, and plan the next."""
    if bench.batches_left == 0:
        tell(sim, bench.batches_over)
        return
    bench.batches_left -= 1
    for _ in range(bench.batch):
        begin_attempt(sim, bench, attempt_draws(sim)[take_draw(sim, bench)])
    at(sim, sim.now_ns + bench.batch_period_ns, EventKind.ARRIVAL, _ENTITY, on_batch, bench.row)


@entry
def begin_arrivals(sim: Sim, row: int, _: int) -> int:
    """Begin Poisson arrivals with mean gaps of ``gap_ns``, until ``until_ns``."""
    bench = benches(sim)[row]
    bench.due_ns = float(sim.now_ns)
    plan_arrival(sim, bench)
    return 0


@part
def plan_arrival(sim: Sim, bench: Bench) -> None:
    """Plan the next arrival, if it comes in time; its place is the row of its draw."""
    row = take_draw(sim, bench)
    bench.due_ns += attempt_draws(sim)[row].gap * bench.gap_ns
    if bench.due_ns < bench.until_ns:
        at(sim, int(bench.due_ns), EventKind.ARRIVAL, _ENTITY, on_arrival, bench.row * MOST_DRAWS + row)


@event
def on_arrival(sim: Sim, draw_row: int, token: int) -> None:
    """An attempt begins."""
    bench = benches(sim)[draw_row // MOST_DRAWS]
    begin_attempt(sim, bench, attempt_draws(sim)[draw_row % MOST_DRAWS])
    plan_arrival(sim, bench)


@part
def begin_attempt(sim: Sim, bench: Bench, draw: AttemptDraw) -> None:
    """Begin an attempt, if subscribers for it are free."""
    phase = phases(sim)[bench.phase]
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
        phase.not_started += 1
        return
    bench.begun += 1
    row = new_attempt(sim, bench, draw)
    attempt = attempts(sim)[row]
    attempt.user = user
    attempt.destination = destination
    attempt.counted = sim.now_ns >= phase.measure_from_ns
    if attempt.counted:
        phase.attempts[draw.scenario] += 1
    start_attempt(sim, bench, row)


@part
def new_attempt(sim: Sim, bench: Bench, draw: AttemptDraw) -> int:
    """Make a stream and the attempt beside it."""
    row = streams.new(sim)
    stream = streams(sim)[row]
    stream.number = bench.begun
    stream.uses = 0
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
def judge_overdue(sim: Sim, phase: int, highest: int) -> int:
    """Count the phase's attempts that are overdue and not over; ``highest`` is the last row ever used."""
    for row in range(1, highest + 1):
        attempt = attempts(sim)[row]
        is_open = attempt.phase == phase and attempt.counted and not attempt.ended and not attempt.failed
        if is_open and overdue(sim, benches(sim)[attempt.bench], attempt):
            judge(phases(sim)[phase], attempt)
    return 0
