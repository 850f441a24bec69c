"""A host: physical CPUs that run virtual CPUs as its scheduler decides.

The host keeps the accounts: every nanosecond of a pCPU is work of a vCPU, switching, or idle time.
Switching cost is lost when a pCPU starts another vCPU than the one it ran last; a switch that is
itself interrupted has cost what had passed of it, and goes on if the same vCPU is chosen again.
A vCPU that is dispatched and finds nothing to do still costs its switch.

Re-entrancy: a finished piece of work may wake anything, freeze domains and make this very pCPU choose
again before its callback returns; the host then leaves the pCPU as the callback put it (:func:`on_run_end`).
"""

from vftsim.kernel import BESIDE, EventKind, Sim, at, is_due_before, timer
from vftsim.platform.cpu import guest_scheduler, scheduler
from vftsim.platform.cpu.guest import finish, next_run
from vftsim.platform.cpu.notes import DISPATCHED, STOPPED, WOKEN, note
from vftsim.platform.cpu.records import (
    BLOCKED,
    BUSY,
    RUNNABLE,
    RUNNING,
    Host,
    Pcpu,
    PcpuQueue,
    Vcpu,
    asked,
    domains,
    hosts,
    pcpus,
    vcpus,
    work_done,
    works,
)

AT_ONCE = -1


def wake(sim: Sim, vcpu: Vcpu) -> None:
    """Tell that a blocked vCPU has work; nothing happens to one that is not blocked."""
    if vcpu.state != BLOCKED:
        return
    host = hosts(sim)[vcpu.host]
    # The state first: the scheduler reads it, and the vCPU may be running before this returns (serve_requests()).
    vcpu.state = RUNNABLE
    vcpu.wakeups += 1
    vcpu.waiting_since_ns = sim.now_ns
    if host.observed:
        note(sim, WOKEN, 0, vcpu.row, 0)
    # Known before the scheduler requests anything: it says whether requests are served below or by an event.
    host.acts_at_once = not is_due_before(sim, EventKind.CHANNEL)
    scheduler.wake(sim, host, vcpu)
    serve_requests(sim, host)


def request_reschedule(sim: Sim, pcpu: Pcpu) -> None:
    """Have ``pcpu`` choose again at this instant: once, however often it is asked, after all ticks and accounting.

    A request to reschedule is a soft interrupt in Xen, and a flag in Linux: timers are served before it.  What is
    asked in a timer, or while one, the end of a piece of work or another choice is due, waits in the order of pCPU
    numbers; else the first that is asked chooses, then those that it asks in turn.
    """
    # May be called from anywhere, also while a pCPU of this host chooses.  Whoever sets ``acts_at_once`` calls
    # serve_requests() afterwards, so that nothing stays in the queue.
    if pcpu.choice != 0:
        return
    host = hosts(sim)[pcpu.host]
    if not host.acts_at_once:
        pcpu.choice = at(sim, sim.now_ns, EventKind.SLICE, pcpu.number, on_choice, pcpu.row)
        return
    pcpu.choice = AT_ONCE
    queue = asked(sim)[host.row]
    queue.rows[queue.queued] = pcpu.row
    queue.queued += 1


def serve_requests(sim: Sim, host: Host, queue: PcpuQueue = BESIDE) -> None:
    """Let the pCPU choose that was asked first, and those that are asked besides: the lowest number first."""
    lowest = 0
    # A choice may ask further pCPUs, which join the list: a loop, because compiled functions call in no circle.
    while queue.queued > 0:
        row = queue.rows[lowest]
        # The last takes the place of the one served: the next is looked for by its number, not by its place.
        queue.queued -= 1
        queue.rows[lowest] = queue.rows[queue.queued]
        reschedule(sim, pcpus(sim)[row])
        lowest = 0
        for other in range(1, queue.queued):
            if queue.rows[other] < queue.rows[lowest]:
                lowest = other
    # Requests of a scheduler's events, made elsewhere, go through an event of kind SLICE again.
    host.acts_at_once = False


def sync_running(sim: Sim, host: Host) -> None:
    """Bring the accounts of all that runs up to now: first thing in a scheduler's event."""
    # Only what runs: whatever waits was charged when it stopped.
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        running = pcpu.running
        if running != 0:
            sync(sim, vcpus(sim)[running])


def reschedule(sim: Sim, pcpu: Pcpu, host: Host = BESIDE) -> None:
    """Charge what runs on ``pcpu``, which stays runnable, and fill the pCPU."""
    # The request is served first: what the scheduler requests of this pCPU while it chooses is another one.
    pcpu.choice = 0
    before = pcpu.running
    if before != 0:
        vcpu = vcpus(sim)[before]
        stop(sim, host, pcpu, vcpu)
        # Before the scheduler chooses, which reads by the state whether this vCPU can run on.
        vcpu.state = RUNNABLE
        vcpu.waiting_since_ns = sim.now_ns
    fill(sim, host, pcpu, before)


def sync(sim: Sim, vcpu: Vcpu) -> None:
    """Bring the accounts of a running vCPU up to now without stopping it."""
    ran_ns = sim.now_ns - vcpu.dispatched_ns
    # Not above 0 where it was charged at this instant already, or is still in its switch.
    if ran_ns > 0 and vcpu.state == RUNNING:
        charge(sim, vcpu, ran_ns)


def charge(sim: Sim, vcpu: Vcpu, ran_ns: int) -> None:
    """Account for what a vCPU has run since ``dispatched_ns``."""
    vcpu.run_ns += ran_ns
    pcpus(sim)[vcpu.pcpu].busy_ns += ran_ns
    # From here on a second charge at this instant finds nothing to charge.
    vcpu.dispatched_ns = sim.now_ns
    # 0 while the callback of a finished piece of work runs: finish() has cleared it.
    if vcpu.current != 0:
        work = works(sim)[vcpu.current]
        work.remaining_ns -= ran_ns
        work.quantum_left_ns -= ran_ns
        guest_scheduler.charge_job(sim, domains(sim)[vcpu.domain], vcpu, ran_ns)
    scheduler.charge(sim, hosts(sim)[vcpu.host], vcpu, ran_ns)


def stop(sim: Sim, host: Host, pcpu: Pcpu, vcpu: Vcpu) -> None:
    """Take ``vcpu`` off ``pcpu``; the caller says what becomes of it."""
    # The events of both stay planned, and are stale by these tokens.
    pcpu.completion = 0
    pcpu.slice_end = 0
    ran_ns = sim.now_ns - vcpu.dispatched_ns
    if ran_ns > 0:
        charge(sim, vcpu, ran_ns)
    elif ran_ns < 0:
        # Still in its switch: the rest of it is taken back, and paid if the same vCPU is chosen next.
        pcpu.switching_ns += ran_ns
        pcpu.switch_left_ns = -ran_ns
    # After the charge, which goes to the pCPU that the vCPU names.
    vcpu.pcpu = 0
    pcpu.running = 0


def fill(sim: Sim, host: Host, pcpu: Pcpu, before: int) -> None:
    """Let the scheduler choose for ``pcpu``, which runs nothing, until something runs there or it idles."""
    # On entry nothing runs on the pCPU.  On exit a vCPU runs there with its end planned, or the pCPU idles.
    while True:
        chosen = scheduler.choose(sim, host, pcpu)
        if host.observed and before != 0 and before != chosen:
            note(sim, STOPPED, pcpu.row, before, vcpus(sim)[before].state)
        if chosen == 0:
            # A pCPU that idled already goes on idling since then.
            if pcpu.idle_since_ns == BUSY:
                pcpu.idle_since_ns = sim.now_ns
            return
        vcpu = vcpus(sim)[chosen]
        if host.observed and before != chosen:
            note(sim, DISPATCHED, pcpu.row, chosen, scheduler.priority(sim, host, vcpu))
        # Dispatched before the guest looks for work: a vCPU that finds none has cost its switch all the same.
        dispatch(sim, host, pcpu, vcpu)
        run_ns = next_run(sim, vcpu)
        if run_ns >= 0 or vcpu.dispatched_ns > sim.now_ns:
            plan(sim, pcpu, vcpu, run_ns)
            return
        # What its finished work is to be followed by is not known before the callback returns: on_run_end() looks.
        if chosen == host.finishing:
            return
        # It was chosen and had nothing to do: blocked again, and the scheduler is asked for another one.
        block(sim, host, pcpu, vcpu)
        # What ran before the first choice has been noted above, once.
        before = 0


def dispatch(sim: Sim, host: Host, pcpu: Pcpu, vcpu: Vcpu) -> None:
    """Put ``vcpu`` on ``pcpu``, at the price of a switch if another was there last."""
    # What is left of an interrupted switch, if it is to the same vCPU.
    delay_ns = pcpu.switch_left_ns
    if pcpu.last != vcpu.row:
        pcpu.last = vcpu.row
        host.context_switches += 1
        vcpu.context_switches += 1
        delay_ns = host.switch_cost_ns
    # Booked in advance: stop() takes back what has not passed.
    pcpu.switching_ns += delay_ns
    pcpu.switch_left_ns = 0
    if pcpu.idle_since_ns != BUSY:
        pcpu.idle_ns += sim.now_ns - pcpu.idle_since_ns
        pcpu.idle_since_ns = BUSY
    if vcpu.last_pcpu != 0 and vcpu.last_pcpu != pcpu.row:
        vcpu.migrations += 1
    vcpu.wait_ns += sim.now_ns - vcpu.waiting_since_ns
    vcpu.state = RUNNING
    vcpu.pcpu = pcpu.row
    vcpu.last_pcpu = pcpu.row
    pcpu.running = vcpu.row
    # It runs, and its slice begins, when the switch is over.
    vcpu.dispatched_ns = sim.now_ns + delay_ns
    if pcpu.slice_ns >= 0:
        # At least 1 ns, or a scheduler that gives 0 would choose for ever at one instant.
        slice_end_ns = sim.now_ns + delay_ns + max(pcpu.slice_ns, 1)
        pcpu.slice_end = at(sim, slice_end_ns, EventKind.SLICE, pcpu.number, on_slice_end, pcpu.row)


def plan(sim: Sim, pcpu: Pcpu, vcpu: Vcpu, run_ns: int) -> None:
    """Plan the end of the present run; a vCPU with nothing to do (below 0) runs to the end of its switch."""
    end_ns = vcpu.dispatched_ns + max(run_ns, 0)
    pcpu.completion = at(sim, end_ns, EventKind.CPU, pcpu.number, on_run_end, pcpu.row)


def run_next(sim: Sim, host: Host, pcpu: Pcpu, vcpu: Vcpu) -> None:
    """Start the next piece of work of the vCPU that runs on ``pcpu``, or block it."""
    # On entry the vCPU runs here, charged up to now, without a planned end.  On exit its next end is planned, or it is
    # blocked and its pCPU has chosen or will at this instant.
    run_ns = next_run(sim, vcpu)
    if run_ns >= 0 or vcpu.dispatched_ns > sim.now_ns:
        plan(sim, pcpu, vcpu, run_ns)
        return
    # By a request, not by choosing here: others may ask this pCPU at this instant too, and it chooses once.
    block(sim, host, pcpu, vcpu)
    host.acts_at_once = not is_due_before(sim, EventKind.CHANNEL)
    request_reschedule(sim, pcpu)
    serve_requests(sim, host)


def block(sim: Sim, host: Host, pcpu: Pcpu, vcpu: Vcpu) -> None:
    """Take a vCPU without work off its pCPU."""
    # Charged while it still runs: the scheduler's rule for one that blocks looks at paid accounts.
    stop(sim, host, pcpu, vcpu)
    vcpu.state = BLOCKED
    if host.observed:
        note(sim, STOPPED, pcpu.row, vcpu.row, BLOCKED)
    # Last: the scheduler finds the vCPU charged, blocked and off its pCPU.
    scheduler.block(sim, host, vcpu)


def interrupt(sim: Sim, vcpu: Vcpu, pcpu: Pcpu = BESIDE) -> None:
    """Make a running vCPU look at its queues again: something more urgent than its job has come."""
    # May be called while the callback of this vCPU's finished work runs: on_run_end() finds what was planned here.
    # The planned end is stale from here on; the accounts come before the choice of work, which looks at what is left.
    pcpu.completion = 0
    sync(sim, vcpu)
    run_next(sim, hosts(sim)[vcpu.host], pcpu, vcpu)


on_slice_end = timer(pcpus, "slice_end")(reschedule)
on_choice = timer(pcpus, "choice")(reschedule)
"""The pCPU was asked to choose, and no slice has ended there at this instant, by which it has chosen already."""


@timer(pcpus, "completion")
def on_run_end(sim: Sim, pcpu: Pcpu, host: Host = BESIDE) -> None:
    """The present run is over: a piece of work is done, or has used up its quantum."""
    row = pcpu.running
    vcpu = vcpus(sim)[row]
    # Before finish(), which looks at what is left of the work.
    sync(sim, vcpu)
    done = finish(sim, vcpu)
    if done != 0:
        work = works(sim)[done]
        # Read and freed before the call, which may take this very row for the next piece of work.
        on_done, where, argument = work.on_done, work.target, work.argument
        works.free(sim, done)
        host.finishing = row
        work_done.call(sim, on_done, where, argument)
        host.finishing = 0
    # The callback may have put something else here, moved this vCPU, or planned its next run already.
    if vcpu.state == RUNNING and pcpus(sim)[vcpu.pcpu].completion == 0:
        run_next(sim, host, pcpus(sim)[vcpu.pcpu], vcpu)
