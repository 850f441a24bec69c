"""The timer processes of a SIP server: removal of transactions, write-back of location records, stalls.

Rules: :mod:`vftsim.workloads.sip.server` and :mod:`vftsim.workloads.sip.transactions`.
"""

from vftsim.kernel import BESIDE, EventKind, Sim, at, timer
from vftsim.platform.cpu.jobs import submit_background, submit_for
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import packet_list
from vftsim.workloads.sip.forwarding import catch_up, do_in_timer_process, give_up
from vftsim.workloads.sip.records import (
    SipRules,
    SipServer,
    ringing_list,
    sip_rules,
    sip_servers,
    transactions,
    worker_list,
)
from vftsim.workloads.sip.transactions import drop_use, tick
from vftsim.workloads.sip.utilization import busy_factor
from vftsim.workloads.sip.worker import work_on

_REMOVAL, _FLUSH, _STALL = 0, 1, 2


def start_timers(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    """Start the periodic timer processes; those of an earlier boot are stopped by it."""
    plan_housekeeping(sim, server)
    server.flush = 0
    server.stall = 0
    server.end_of_stall = 0
    if rules.location_write_cost_ns > 0:
        plan_flush(sim, server)
    if rules.stall_duration_ns > 0:
        plan_stall(sim, server)


def plan_housekeeping(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    """Plan the next run of the timer process."""
    due_ns = sim.now_ns + rules.timer_period_ns
    server.housekeeping = at(sim, due_ns, EventKind.TIMER, _REMOVAL, on_housekeeping, server.row)


@timer(sip_servers, "housekeeping")
def on_housekeeping(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    """Remove expired transactions; the timer process holds the CPU like any other process."""
    if server.is_flushing and rules.timers_wait_for_flush:
        server.late_ticks += 1
    else:
        do_housekeeping(sim, server, 1)
    plan_housekeeping(sim, server)


def do_housekeeping(sim: Sim, server: SipServer, ticks: int, rules: SipRules = BESIDE) -> None:
    """Do the work of one or more periods of the timer process."""
    give_up_ringing(sim, server)
    expired = 0
    for _ in range(ticks):
        expired += tick(sim, server)
    fixed_ns = rules.housekeeping_cost_ns if expired > 0 else 0
    cost_ns = int(server.inflation * (rules.removal_cost_ns * expired + fixed_ns) * busy_factor(sim, server))
    if cost_ns > 0:
        do_in_timer_process(sim, server, cost_ns, on_removed, server.row)


def give_up_ringing(sim: Sim, server: SipServer) -> None:
    """Give up the INVITEs that have rung for too long."""
    while server.ringing.length > 0 and transactions(sim)[server.ringing.first].rings_until_ns <= sim.now_ns:
        row = ringing_list.pop(sim, server.ringing)
        give_up(sim, server, row)
        drop_use(sim, row)


@work_done
def on_removed(sim: Sim) -> None:
    """Expired transactions have been removed; nothing is seen of it outside."""


def plan_flush(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    """Plan the next flush of location records."""
    server.flush = at(sim, sim.now_ns + rules.location_flush_period_ns, EventKind.TIMER, _FLUSH, on_flush, server.row)


@timer(sip_servers, "flush")
def on_flush(sim: Sim, server: SipServer) -> None:
    """The location timer begins to write all records changed since its last run."""
    # Read first: a flush that is still under way writes these records too, one after the other.
    was_idle = server.records_to_write == 0
    server.records_to_write += server.changed_records
    server.changed_records = 0
    if was_idle and server.records_to_write > 0:
        server.is_flushing = sip_rules(sim)[server.row].flush_in_timer_process
        write_record(sim, server)
    plan_flush(sim, server)


def write_record(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    """Write one location record, in the background or from the timer process, which prepares the query and sleeps."""
    cost_ns = max(1, int(server.inflation * rules.location_write_cost_ns * busy_factor(sim, server)))
    if rules.flush_in_timer_process:
        prepare_ns = max(1, int(cost_ns * (1.0 - rules.flush_database_share)))
        submit_for(
            sim,
            domains(sim)[server.domain],
            server.timer_process,
            prepare_ns,
            on_prepared,
            server.row,
            max(1, cost_ns - prepare_ns),
        )
    else:
        submit_background(sim, domains(sim)[server.domain], cost_ns, on_written, server.row, 0)


@work_done
def on_prepared(sim: Sim, server: SipServer, argument: int) -> None:
    """The timer process waits for the database, which writes the record for ``argument`` ns."""
    submit_for(sim, domains(sim)[server.domain], server.flush_database, argument, on_written, server.row, 0)


@work_done
def on_written(sim: Sim, server: SipServer) -> None:
    """A location record has been written: the next, if any."""
    server.records_to_write -= 1
    if server.records_to_write > 0:
        write_record(sim, server)
    elif server.is_flushing:
        end_flush(sim, server)


def end_flush(sim: Sim, server: SipServer) -> None:
    """The timer process turns to what has come due during the flush."""
    # First: timers that go off from here on are served at once again.
    server.is_flushing = False
    ticks = server.late_ticks
    server.late_ticks = 0
    if ticks > 0:
        do_housekeeping(sim, server, ticks)
    catch_up(sim, server)


def plan_stall(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    server.stall = at(sim, sim.now_ns + rules.stall_period_ns, EventKind.TIMER, _STALL, on_stall, server.row)


@timer(sip_servers, "stall")
def on_stall(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> None:
    """No process takes a message until the stall is over."""
    server.stalled = True
    server.end_of_stall = at(
        sim, sim.now_ns + rules.stall_duration_ns, EventKind.TIMER, _STALL, on_end_of_stall, server.row
    )
    plan_stall(sim, server)


@timer(sip_servers, "end_of_stall")
def on_end_of_stall(sim: Sim, server: SipServer) -> None:
    """Idle processes take what has waited."""
    server.stalled = False
    while server.buffer.length > 0 and server.idle.length > 0:
        row = worker_list.pop(sim, server.idle)
        work_on(sim, server, row, packet_list.pop(sim, server.buffer))
