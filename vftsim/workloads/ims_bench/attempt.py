"""The records of the benchmark: what its user agents and its manager know."""

from typing import Annotated

from vftsim.kernel import Record, Table
from vftsim.workloads.common import WorkloadRow
from vftsim.workloads.gaps import Gaps
from vftsim.workloads.sip.messages import Message, Scenario, streams
from vftsim.workloads.sip.retransmission import Repetition

SCENARIOS = len(Scenario)
MESSAGES = len(Message)


class Attempt(Record):
    """A scenario attempt, as the user agents know it; its number and demands are its stream's.

    ``sent_ns`` is the first transmission of the request in progress, ``client`` repeats it; it is ``outstanding`` while
    ``request`` awaits its answer.  ``callee`` repeats the 200 that awaits its ACK.  ``seen`` has a bit for each message
    that has reached the user agents; ``rang_ns`` is when the caller got a 180, ``answered_ns`` when the callee sent its
    200.  ``ring`` and ``hold`` are timers.  ``counted`` is false during a step's transient.  ``is_kept`` tells whether
    the user agents still refer to the stream.
    """

    bench: int
    scenario: int
    phase: int
    start_ns: int
    sent_ns: int
    ring_ns: int
    hold_ns: int
    user: int
    destination: int
    counted: bool
    failed: bool
    ended: bool
    is_kept: bool
    outstanding: bool
    request: int
    seen: int
    rang_ns: int
    answered_ns: int
    ring: int
    hold: int
    client: Repetition
    callee: Repetition


class Phase(Record):
    """Pre-registration, stir or a step; attempts count where they began.

    ``first_delay`` is the first of its rows of ``delays``, one for each name of
    :data:`~vftsim.workloads.ims_bench.metrics.HISTOGRAMS`.
    """

    measure_from_ns: int
    judged_until_ns: int
    end_ns: int
    first_delay: int
    not_started: int
    attempts: Annotated[list[int], SCENARIOS]
    inadequate: Annotated[list[int], SCENARIOS]
    judged_inadequate: Annotated[list[int], SCENARIOS]


class Pool(Record):
    """Subscribers in blocks that stand in consecutive rows."""

    first_block: int
    count: int


class Bench(WorkloadRow):
    """One benchmark: its user agents, its arrivals, its counters.

    ``flow`` and ``port`` are those of its packets.  User agents that run in a domain of the host (``domain``)
    use ``message_cost_ns`` there for each message; ``reaction_time_ns`` passes before an answer leaves.
    ``batches_over`` is the driver's item for the end of batches.  ``completed`` attempts had their last request
    answered, however late.  Totals only grow; ``ends_ns`` adds up the instants at which attempts ended, modulo
    2**62, to compare runs.
    """

    domain: int
    message_cost_ns: int
    reaction_time_ns: int
    t1_ns: int
    t2_ns: int
    invite_retransmissions: int
    request_retransmissions: int
    fails_on_second_challenge: bool
    session_setup_ns: int
    release_ns: int
    message_ns: int
    registration_ns: int
    reregistration_ns: int
    phase: int
    registered: Pool
    unregistered: Pool
    next_draw: int
    draws_written: int
    gap_ns: float
    gaps: Gaps
    due_ns: float
    until_ns: int
    batch: int
    batches_left: int
    batch_period_ns: int
    batches_over: int
    begun: int
    over: int
    completed: int
    uac_begun: int
    inadequate: int
    uac_inadequate: int
    repeated: Annotated[list[int], SCENARIOS]
    ended: Annotated[list[int], SCENARIOS]
    ends_ns: Annotated[list[int], SCENARIOS]
    failed: Annotated[list[int], SCENARIOS]
    to_server: Annotated[list[int], MESSAGES]
    from_server: Annotated[list[int], MESSAGES]


attempts = Table("attempts", Attempt, beside=streams)
phases = Table("bench_phases", Phase, 1024, "let the benchmark have fewer steps")
benches = Table("benches", Bench, 16)
