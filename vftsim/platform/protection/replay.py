"""The secondary: takes log entries into its buffer, acknowledges them, replays them at its own speed.

Rule (Scales, Nelson, Venkitachalam, OSR 44(4) 2010): an entry is acknowledged when it arrives in the
secondary's log buffer, before it is executed.  The secondary cannot execute past the last entry it
holds, because the next one may take effect at the very next instruction.  So with w_k the primary's
execution since the entry before, entry k is done at

    r_k = max(r_(k-1), a_k) + w_k x factor + cost

and the execution lag is r_k minus the instant at which the primary was there.  A full buffer takes the
next entry only when replay has made room (back-pressure to the primary).

A secondary that reads the shared disk by itself (section 4.2 there) asks for what the primary asks for when its
execution comes to that point, and executes the entry that ends the read no earlier than it has the data.

No event of the simulation is needed for any of this; the buffer costs amortized constant time an entry, and holds no
more than the entries that the secondary has not executed.  Its CPU time is what all entries take, less what it has not
replayed yet.
"""

from vftsim.kernel import Chain, Fifo, Record, Sim, Table


class Replay(Record):
    """A secondary's execution of the log.

    Parameters are ``factor``, the time it needs for execution that took the primary 1; ``entry_cost_ns`` for an entry
    itself, ``kibibyte_ns`` for a KiB of it; ``buffer_bytes``.  It is done with all it was sent at ``end_ns``, then
    ``lag_ns`` behind the primary; all of it takes ``need_ns`` of CPU time.  What a lost channel has kept from it takes
    ``owed_ns``, but for its bytes.  ``holds`` is the last output entry known to have arrived.  Of the entries in
    ``buffer`` those in ``leaving`` are executed before the next one arrives, but not all by now.  Its own path to the
    disk is free at ``disk_free_ns``; ``read_ns``: when it has read by itself what the next entry tells the end of.
    """

    factor: float
    entry_cost_ns: int
    kibibyte_ns: int
    buffer_bytes: int
    end_ns: int
    lag_ns: int
    need_ns: int
    owed_ns: int
    buffer: Fifo
    leaving: Fifo
    buffered_bytes: int
    arrivals: Fifo
    holds: int
    disk_free_ns: int
    read_ns: int


class LogEntry(Record):
    """An entry in the secondary's buffer (``time_ns`` when it is done, ``amount`` its bytes), or an output's arrival.

    An entry takes ``need_ns``, the execution before it included, begins at ``begins_ns`` at the earliest, and ends at
    ``ends_ns`` at the earliest; all of it has arrived at ``arrival_ns``.  Of an arrival, ``time_ns`` is the instant and
    ``amount`` the output's number.
    """

    link: int
    time_ns: int
    amount: int
    need_ns: int
    begins_ns: int
    ends_ns: int
    arrival_ns: int


log_entries = Table("log_entries", LogEntry, 1 << 20, "make the secondary's log buffer smaller")
entry_list = Chain(log_entries, "link")


def start(sim: Sim, replay: Replay) -> None:
    """Begin now, in step with the primary, with nothing in the buffer; the parameters are set."""
    replay.end_ns = sim.now_ns
    replay.lag_ns = 0
    replay.owed_ns = 0
    replay.need_ns = 0
    replay.holds = 0
    replay.disk_free_ns = sim.now_ns
    replay.read_ns = 0
    clear(sim, replay)


def clear(sim: Sim, replay: Replay) -> None:
    """Give back everything that is kept of entries."""
    clear_buffer(sim, replay)
    clear_list(sim, replay.arrivals)


def clear_buffer(sim: Sim, replay: Replay) -> None:
    """Give back the entries that are not known to be executed."""
    clear_list(sim, replay.leaving)
    clear_list(sim, replay.buffer)
    replay.buffered_bytes = 0


def clear_list(sim: Sim, entries: Fifo) -> None:
    while entries.length > 0:
        log_entries.free(sim, entry_list.pop(sim, entries))


def has_room(replay: Replay, size_bytes: int) -> bool:
    """Tell whether an entry fits; entries replayed since the last :func:`admit` may still count."""
    return replay.buffered_bytes + size_bytes <= replay.buffer_bytes


def admit(sim: Sim, replay: Replay, arrival_ns: int, size_bytes: int) -> int:
    """Return when an entry that reaches the host at ``arrival_ns`` gets into the buffer."""
    # Entries that are done by then have left; only if there is no room all the same does this one wait for others.
    while replay.buffer.length > 0 and log_entries(sim)[replay.buffer.first].time_ns <= arrival_ns:
        make_room(sim, replay)
    # Then one after the other as they are done; into an empty buffer even an entry larger than it gets in.
    while replay.buffer.length > 0 and not has_room(replay, size_bytes):
        arrival_ns = max(arrival_ns, make_room(sim, replay))
    return arrival_ns


def make_room(sim: Sim, replay: Replay) -> int:
    """Take the first entry out of the buffer; return when it is done."""
    while replay.leaving.length > 0 and log_entries(sim)[replay.leaving.first].time_ns <= sim.now_ns:
        log_entries.free(sim, entry_list.pop(sim, replay.leaving))
    row = entry_list.pop(sim, replay.buffer)
    replay.buffered_bytes -= log_entries(sim)[row].amount
    # Its execution may be still to come.
    entry_list.push(sim, replay.leaving, row)
    return log_entries(sim)[row].time_ns


def execute(sim: Sim, replay: Replay, written_ns: int, arrival_ns: int, size_bytes: int, work_ns: int) -> None:
    """Replay ``work_ns`` of the primary's execution, then the entry written at ``written_ns``."""
    need_ns = int(work_ns * replay.factor) + replay.entry_cost_ns + replay.kibibyte_ns * size_bytes // 1024
    need_ns += replay.owed_ns
    replay.owed_ns = 0
    row = log_entries.new(
        sim,
        amount=size_bytes,
        need_ns=need_ns,
        begins_ns=arrival_ns,
        ends_ns=replay.read_ns,
        arrival_ns=arrival_ns,
    )
    # The read was for this entry: the next one does not wait for it.
    replay.read_ns = 0
    buffer_entry(sim, replay, row, written_ns, arrival_ns)


def read(replay: Replay, asked_ns: int, work_ns: int, service_ns: int) -> int:
    """Return when the secondary has read what the primary asks for after ``work_ns`` of execution since the last entry.

    It asks when it comes to that point itself, not before ``asked_ns``, when it can know; one read at a time.
    """
    asked_ns = max(asked_ns, replay.end_ns + int(work_ns * replay.factor))
    replay.disk_free_ns = max(replay.disk_free_ns, asked_ns) + service_ns
    return replay.disk_free_ns


def execute_train(
    sim: Sim,
    replay: Replay,
    last_ns: int,
    first_arrival_ns: int,
    last_arrival_ns: int,
    count: int,
    size_bytes: int,
    work_ns: int,
) -> None:
    """Replay evenly spaced entries, ``size_bytes`` in all, and the work between them; the last is of ``last_ns``."""
    need_ns = int(work_ns * replay.factor) + count * replay.entry_cost_ns
    # The last entry is not done before it has arrived, and its share of the work has followed.
    ends_ns = last_arrival_ns + need_ns // count
    row = log_entries.new(
        sim,
        amount=size_bytes,
        need_ns=need_ns,
        begins_ns=first_arrival_ns,
        ends_ns=ends_ns,
        arrival_ns=last_arrival_ns,
    )
    buffer_entry(sim, replay, row, last_ns, last_arrival_ns)


def buffer_entry(sim: Sim, replay: Replay, row: int, written_ns: int, arrival_ns: int) -> None:
    """Put an entry into the buffer until it is executed."""
    # Two for one keeps the buffer as short as it can be; no later entry arrives before this one.
    for _ in range(2):
        if replay.buffer.length > 0 and log_entries(sim)[replay.buffer.first].time_ns <= arrival_ns:
            make_room(sim, replay)
    entry = log_entries(sim)[row]
    put_behind(replay, entry)
    replay.need_ns += entry.need_ns
    replay.lag_ns = replay.end_ns - written_ns
    entry_list.push(sim, replay.buffer, row)
    replay.buffered_bytes += entry.amount


def put_behind(replay: Replay, entry: LogEntry) -> None:
    """Let an entry be executed after everything before it."""
    entry.time_ns = max(max(replay.end_ns, entry.begins_ns) + entry.need_ns, entry.ends_ns)
    replay.end_ns = entry.time_ns


def left_ns(sim: Sim, replay: Replay) -> int:
    """Return how much CPU time the secondary still needs for what it was sent."""
    return left_in(sim, replay.leaving) + left_in(sim, replay.buffer)


def left_in(sim: Sim, entries: Fifo) -> int:
    total_ns = 0
    for entry in log_entries.listed(sim, entry_list, entries):
        total_ns += entry_left_ns(sim, entry)
    return total_ns


def entry_left_ns(sim: Sim, entry: LogEntry) -> int:
    """Return how much of an entry is not executed yet; one that waits for its end waits first."""
    return min(entry.need_ns, max(0, entry.time_ns - sim.now_ns))


def halt(sim: Sim, replay: Replay) -> None:
    """Execute nothing more."""
    replay.need_ns -= left_ns(sim, replay)
    clear_buffer(sim, replay)


def set_pace(sim: Sim, replay: Replay, factor: float, entry_cost_ns: int, kibibyte_ns: int) -> None:
    """Let execution continue at another speed: what is left of the entries that it has takes longer, or less long."""
    ratio = factor / replay.factor
    replay.factor = factor
    replay.entry_cost_ns = entry_cost_ns
    replay.kibibyte_ns = kibibyte_ns
    replay.owed_ns = int(replay.owed_ns * ratio)
    end_ns = replay.end_ns
    replay.end_ns = min(end_ns, sim.now_ns)
    stretch(sim, replay, replay.leaving, ratio)
    stretch(sim, replay, replay.buffer, ratio)
    replay.lag_ns += replay.end_ns - end_ns


def stretch(sim: Sim, replay: Replay, entries: Fifo, ratio: float) -> None:
    """Let what is left of entries take ``ratio`` times as long; those that are done keep their instants."""
    for entry in log_entries.listed(sim, entry_list, entries):
        if entry.time_ns > sim.now_ns:
            rest_ns = entry_left_ns(sim, entry)
            entry.need_ns = int(rest_ns * ratio)
            replay.need_ns += entry.need_ns - rest_ns
            put_behind(replay, entry)


def receive(sim: Sim, replay: Replay, sequence: int, arrival_ns: int) -> None:
    """Enter an output's log entry in the record that :func:`holds` answers from."""
    row = log_entries.new(sim, time_ns=arrival_ns, amount=sequence)
    entry_list.push(sim, replay.arrivals, row)


def holds(sim: Sim, replay: Replay) -> int:
    """Return the last output entry in the buffer or executed by now."""
    while replay.arrivals.length > 0 and log_entries(sim)[replay.arrivals.first].time_ns <= sim.now_ns:
        row = entry_list.pop(sim, replay.arrivals)
        replay.holds = log_entries(sim)[row].amount
        log_entries.free(sim, row)
    return replay.holds


def unarrived_bytes(sim: Sim, replay: Replay) -> int:
    """Return the bytes of what has not arrived by now, or not all of it."""
    return unarrived_in(sim, replay.leaving) + unarrived_in(sim, replay.buffer)


def unarrived_in(sim: Sim, entries: Fifo) -> int:
    total_bytes = 0
    for entry in log_entries.listed(sim, entry_list, entries):
        if entry.arrival_ns > sim.now_ns:
            total_bytes += entry.amount
    return total_bytes


def drop_in_flight(sim: Sim, replay: Replay) -> None:
    """Lose the entries that have not arrived by now; of a train that has begun to, none."""
    # What has arrived by now is taken in first: it is not in flight any more.
    holds(sim, replay)
    clear_list(sim, replay.arrivals)
    replay.end_ns = min(replay.end_ns, sim.now_ns)
    drop_from(sim, replay, replay.leaving)
    drop_from(sim, replay, replay.buffer)
    # For whom they were to make room does not come now.
    replay.buffered_bytes = 0
    while replay.leaving.length > 0:
        row = entry_list.pop(sim, replay.leaving)
        replay.buffered_bytes += log_entries(sim)[row].amount
        entry_list.push(sim, replay.buffer, row)


def drop_from(sim: Sim, replay: Replay, entries: Fifo) -> None:
    """Lose what has not arrived by now, and forget what is done; the rest of a list is behind what is leaving."""
    for _ in range(entries.length):
        row = entry_list.pop(sim, entries)
        entry = log_entries(sim)[row]
        if entry.begins_ns > sim.now_ns:
            replay.need_ns -= entry.need_ns
            # If it is sent again it is executed then, and its bytes count then.
            replay.owed_ns += entry.need_ns - replay.kibibyte_ns * entry.amount // 1024
            log_entries.free(sim, row)
        elif entry.time_ns <= sim.now_ns:
            log_entries.free(sim, row)
        else:
            entry_list.push(sim, replay.leaving, row)
            replay.end_ns = entry.time_ns
