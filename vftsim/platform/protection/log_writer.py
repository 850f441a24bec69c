"""The primary's side of the log: entries, the instants at which they travel, and what they cost.

Timer interrupts and disk reads come at constant rates; they are written as trains when the next packet
or output makes it necessary, with the guest's execution shared out between them evenly, so that they
cost no events.  While the guest is stopped it takes no timer interrupts.
"""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.protection import audit, replay
from vftsim.platform.protection.channel import channels, hold_until, push, push_train, take_back, transmission_ns
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.machine import run_ns
from vftsim.platform.protection.pair import NEVER_NS, Log, Pair, Train


def start(sim: Sim, pair: Pair) -> None:
    """Begin an empty log now; the trains are set."""
    log = pair.log
    log.entries = 0
    log.train_entries = 0
    log.cost_due_ns = 0
    log.last_depart_ns = sim.now_ns
    log.last_arrival_ns = 0
    log.unsent_bytes = 0
    log.broken = False
    log.written_ns = sim.now_ns
    log.run_ns = run_ns(sim, guards(sim)[pair.guard])
    log.work_ns = 0
    log.recording_ns = 0


def write(sim: Sim, pair: Pair, size_bytes: int, limit_ns: int) -> bool:
    """Write an entry now; False if it would leave the primary after ``limit_ns``, and is lost with it."""
    # The trains first: the channel takes entries in the order in which they were written.
    advance(sim, pair)
    channel = channels(sim)[pair.guard]
    log = pair.log
    sent_ns = push(sim, channel, size_bytes)
    arrival_ns = buffered_ns(sim, pair, sent_ns, size_bytes)
    depart_ns = arrival_ns - channel.latency_ns
    guard_audit = guards(sim)[pair.guard].audit
    audit.mark(sim, guard_audit)
    audit.mark_released(guard_audit)
    # The wire is what the auditor sees itself; a secondary's buffer that is full makes it later.
    audit.send(sim, guard_audit, size_bytes, max(sent_ns, depart_ns), channel.latency_ns)
    # Lost with the primary: neither the log nor the secondary has it, but the channel was occupied.
    if depart_ns > limit_ns:
        return False
    log.entries += 1
    log.last_depart_ns = depart_ns
    log.last_arrival_ns = arrival_ns
    replay.execute(sim, pair.secondary, sim.now_ns, arrival_ns, size_bytes, work_to_replay(log))
    return True


def work_to_replay(log: Log) -> int:
    """Return the execution since the last entry that paced the secondary, but for recording, and begin anew."""
    recording_ns = min(log.work_ns, log.recording_ns)
    work_ns = log.work_ns - recording_ns
    log.recording_ns -= recording_ns
    log.work_ns = 0
    return work_ns


def buffered_ns(sim: Sim, pair: Pair, depart_ns: int, size_bytes: int) -> int:
    """Return when entries get into the secondary's buffer; while it is full the channel stands still."""
    channel = channels(sim)[pair.guard]
    arrival_ns = depart_ns + channel.latency_ns
    # Asked first: admit() walks the buffer, which few entries need.
    if not replay.has_room(pair.secondary, size_bytes):
        arrival_ns = replay.admit(sim, pair.secondary, arrival_ns, size_bytes)
        hold_until(channel, arrival_ns - channel.latency_ns)
    return arrival_ns


def write_unsent(sim: Sim, pair: Pair, size_bytes: int) -> None:
    """Write an entry that cannot be sent at present."""
    advance(sim, pair)
    pair.log.entries += 1
    keep(pair, 1, size_bytes)


def keep(pair: Pair, count: int, size_bytes: int) -> None:
    """Keep entries until the channel works again."""
    pair.log.unsent_bytes += size_bytes
    pair.secondary.owed_ns += count * pair.secondary.entry_cost_ns


def stop_sending(sim: Sim, pair: Pair) -> None:
    """Keep what is written from now on, and what has not left by now."""
    # Trains up to now were sent over the channel that worked: written before it counts as broken.
    advance(sim, pair)
    pair.log.broken = True
    channel, most_bytes = channels(sim)[pair.guard], replay.unarrived_bytes(sim, pair.secondary)
    pair.log.unsent_bytes = take_back(channel, sim.now_ns, most_bytes)
    audit.limit_unsent(guards(sim)[pair.guard].audit, transmission_ns(channel, most_bytes))


def resend(sim: Sim, pair: Pair) -> None:
    """Send what could not be sent."""
    advance(sim, pair)
    log = pair.log
    log.broken = False
    size_bytes = max(1, log.unsent_bytes)
    log.unsent_bytes = 0
    # What is kept is written as one, which is none of its entries.
    keep(pair, -1, 0)
    write(sim, pair, size_bytes, NEVER_NS)


def advance(sim: Sim, pair: Pair, guard: Guard = BESIDE) -> None:
    """Write the trains up to now."""
    log = pair.log
    # Both marks move in this one place, so that no stretch is written twice, whoever asks for it.
    total_ns = run_ns(sim, guard)
    fresh_ns = total_ns - log.run_ns
    log.run_ns = total_ns
    # A guest that stood still has taken no timer interrupts.
    from_ns = max(log.written_ns, guard.resumed_ns)
    log.written_ns = sim.now_ns
    if not guard.stopped:
        if log.timer.period_ns != 0:
            fresh_ns -= pace(sim, log, from_ns, fresh_ns)
            write_train(sim, pair, log.timer, from_ns, True)
        if log.disk.period_ns != 0:
            write_train(sim, pair, log.disk, from_ns, False)
    log.work_ns += fresh_ns


def pace(sim: Sim, log: Log, from_ns: int, fresh_ns: int) -> int:
    """Return how much of the execution since ``from_ns`` came before the last timer interrupt; it is work now."""
    last_ns = sim.now_ns // log.timer.period_ns * log.timer.period_ns
    if last_ns // log.timer.period_ns == from_ns // log.timer.period_ns:
        return 0
    before_ns = product_quotient(fresh_ns, last_ns - from_ns, sim.now_ns - from_ns)
    log.work_ns += before_ns
    return before_ns


def write_train(sim: Sim, pair: Pair, train: Train, from_ns: int, paces: bool) -> None:
    """Write the entries of a train since ``from_ns``."""
    log = pair.log
    last = sim.now_ns // train.period_ns
    count = last - from_ns // train.period_ns
    if count == 0:
        return
    log.train_entries += count
    log.cost_due_ns += count * train.cost_ns
    # Kept back with everything else until the channel works again.
    if log.broken:
        keep(pair, count, count * train.size_bytes)
        return
    work_ns = 0
    if paces:
        work_ns = work_to_replay(log)
    send_train(sim, pair, train, count, last * train.period_ns, work_ns)


def send_train(sim: Sim, pair: Pair, train: Train, count: int, last_ns: int, work_ns: int) -> None:
    """Send ``count`` entries, the last of ``last_ns``, and let the secondary do ``work_ns`` between them."""
    channel = channels(sim)[pair.guard]
    size_bytes = count * train.size_bytes
    first_ns = last_ns - (count - 1) * train.period_ns
    depart_ns = push_train(sim, channel, first_ns, last_ns, count, train.size_bytes)
    arrival_ns = buffered_ns(sim, pair, depart_ns, size_bytes)
    pair.log.last_depart_ns = arrival_ns - channel.latency_ns
    first_arrival_ns = first_ns + transmission_ns(channel, train.size_bytes) + channel.latency_ns
    replay.execute_train(sim, pair.secondary, last_ns, first_arrival_ns, arrival_ns, count, size_bytes, work_ns)
