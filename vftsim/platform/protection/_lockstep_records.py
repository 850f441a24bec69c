"""The records of the mechanism ``lockstep``, and how its parameters get into them."""

from vftsim.kernel import Chain, Engine, Fifo, Record, Row, Table
from vftsim.platform.arithmetic import nearest
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection import _lockstep_costs, channel, reprotection
from vftsim.platform.protection._lockstep_parameters import LockstepParameters
from vftsim.platform.protection.detection import detectors
from vftsim.platform.protection.guard import guards, protection
from vftsim.platform.protection.machine import cpu_speed
from vftsim.platform.protection.pair import NEVER_NS, Train
from vftsim.platform.protection.throttle import FULL_SHARE, throttles
from vftsim.platform.rows import fill_row
from vftsim.spec.units import S

lockstep = protection.kind("lockstep")

UNPROTECTED, PROTECTED, BROKEN, FAILING_OVER, SPLIT = 1, 2, 3, 4, 5
"""Where a pair of hosts stands: ``BROKEN``: entries do not get through, and the primary has not yet decided to go on
alone; ``SPLIT``: both hosts live."""

STATE_NAMES = ("none", "unprotected", "protected", "broken", "failing_over", "split")


class Lockstep(Record):
    """The mechanism at work for one guard.

    Present: ``pair`` is the row of the present pair, ``begun`` how many there have been.  Entries that would leave
    after ``limit_ns``, the least of ``limits``, die with the primary; ``is_cut``: the first of them has been written.
    ``pending`` are packets that the new primary is to send.  ``replayed_ns`` is the execution of earlier secondaries,
    and ``waited_ns`` how long the ``released`` outputs of earlier pairs waited, ``longest_wait_ns`` the longest.

    The secondary declares the last loss of the channel at ``loss_declared_ns``; ``second`` is the token of its going
    live beside the primary.  What this loss has kept from it has left again by ``resent_ns`` and arrives at
    ``resent_arrival_ns``.

    The rest are parameters: sizes of entries, what they cost the primary, buffers, the speed of the secondary, and what
    a failover takes.
    """

    state: int
    pair: int
    begun: int
    limit_ns: int
    limits: Fifo
    is_full: bool
    is_cut: bool
    is_backup_dead: bool
    second: int
    loss_declared_ns: int
    resent_ns: int
    resent_arrival_ns: int
    pending: Fifo
    replayed_ns: int
    waited_ns: int
    longest_wait_ns: int
    released: int
    packet_bytes: int
    framing_bytes: int
    output_bytes: int
    event_bytes: int
    transport_overhead: float
    packet_cost_ns: int
    kibibyte_cost_ns: int
    output_cost_ns: int
    execution: float
    exits: float
    timer: Train
    disk: Train
    buffer_bytes: int
    buffer_ns: int
    factor: float
    entry_cost_ns: int
    kibibyte_replay_ns: int
    secondary_buffer_bytes: int
    is_fenced: bool
    storage_ns: int
    go_live_ns: int
    announcement_ns: int


class Limit(Record):
    """An instant after which no entry of a primary leaves it, or, if ``is_arrival``, reaches its secondary."""

    link: int
    time_ns: int
    is_arrival: bool


class Plan(Row):
    """What has been decided to happen to a guard's pair of number ``pair``.

    ``state`` is what follows; ``packets`` are those that a secondary issues, ``again`` of which were released before.
    """

    guard: int
    pair: int
    state: int
    packets: Fifo
    again: int


locksteps = Table("locksteps", Lockstep, beside=guards)
limits = Table("limits", Limit, 1 << 16, "let fewer faults strike")
plans = Table("plans", Plan, 1 << 16, "let fewer faults strike")
limit_list = Chain(limits, "link")


def install(engine: Engine, guard: int, spec: LockstepParameters, shared_link: int) -> None:
    """Write the parameters into the records of a guard; ``shared_link`` carries the log too, 0: its own card."""
    spec.install_channel(engine, guard, shared_link)
    vlockstep = fill_row(engine, locksteps, guard, spec.failover, state=UNPROTECTED, limit_ns=NEVER_NS)
    _install_log(vlockstep, spec)
    _install_trains(vlockstep, spec)
    _lockstep_costs.install(engine, guard, spec)
    rate = int(engine.rows(channel.channels)[guard].rate_bits_per_s)
    vlockstep.buffer_ns = spec.log.buffer * BITS_NS // rate
    vlockstep.factor = float(spec.secondary.factor)
    speed = cpu_speed(engine, guard)
    vlockstep.entry_cost_ns = nearest(spec.secondary.entry_cost / speed)
    vlockstep.kibibyte_replay_ns = nearest(spec.secondary.kibibyte / speed)
    vlockstep.secondary_buffer_bytes = spec.secondary.buffer
    vlockstep.is_fenced = spec.failover.fencing
    vlockstep.storage_ns = spec.failover.storage_latency if spec.failover.fencing else 0
    _install_detector(engine, guard, spec)
    fill_row(engine, throttles, guard, spec.throttle, share=FULL_SHARE, lowest_share=FULL_SHARE)
    reprotection.install(engine, guard, spec.copy_again, shared_link)


def _install_log(vlockstep: Lockstep, spec: LockstepParameters) -> None:
    log, cost = spec.log, spec.cost
    reads = log.clock_reads_per_packet
    vlockstep.packet_bytes = log.packet_entry + reads * log.event_entry
    vlockstep.framing_bytes = log.framing
    vlockstep.output_bytes = round(log.output_entry * log.transport_overhead)
    vlockstep.transport_overhead = float(log.transport_overhead)
    vlockstep.buffer_bytes = log.buffer
    vlockstep.event_bytes = log.event_entry
    vlockstep.packet_cost_ns = cost.entry + reads * (cost.clock_read if cost.is_counted else cost.entry)
    vlockstep.kibibyte_cost_ns = cost.kibibyte
    vlockstep.output_cost_ns = cost.output
    vlockstep.execution, vlockstep.exits = cost.slowdown


def _install_trains(vlockstep: Lockstep, spec: LockstepParameters) -> None:
    log, cost = spec.log, spec.cost
    if log.timer_rate:
        vlockstep.timer.period_ns = max(1, round(S / log.timer_rate))
        vlockstep.timer.size_bytes = round(log.timer_entry * log.transport_overhead)
        vlockstep.timer.cost_ns = cost.timer
    if log.disk_read_rate:
        vlockstep.disk.period_ns = max(1, round(S / log.disk_read_rate))
        vlockstep.disk.size_bytes = round((log.packet_entry + log.disk_read_size) * log.transport_overhead)
        vlockstep.disk.cost_ns = cost.entry + cost.kibibyte * log.disk_read_size // 1024


def _install_detector(engine: Engine, guard: int, spec: LockstepParameters) -> None:
    detection, log = spec.failover.detection, spec.log
    wire = engine.rows(channel.channels)[guard]
    detector = engine.rows(detectors)[guard]
    detector.heartbeat_interval_ns = detection.heartbeat_interval
    detector.heartbeat_timeout_ns = detection.timeout
    detector.log_period_ns = round(S / log.timer_rate) if log.timer_rate else detection.heartbeat_interval
    detector.log_timeout_ns = detection.log_silence_ns
    detector.secondary_delay_ns = detection.secondary_delay
    detector.entry_ns = int(wire.latency_ns) + log.timer_entry * BITS_NS // int(wire.rate_bits_per_s)
    detector.ack_ns = int(detector.entry_ns) + int(wire.ack_ns)
