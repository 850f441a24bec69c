"""The threads of a service, and what they do for a request.

Rules: :mod:`vftsim.workloads.service`.
"""

from vftsim.kernel import BESIDE, EventKind, Sim, at, timer
from vftsim.platform.arithmetic import add_time
from vftsim.platform.cpu.jobs import continue_or_submit_for, interrupt_from_outside
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.delays import add_delay, add_delay_since
from vftsim.platform.io import packet as io
from vftsim.platform.io.disk import disks, forget, read, transfer_done, write
from vftsim.platform.io.marks import PROGRAM_DONE, PROGRAM_TAKEN, PROGRAM_WAITED
from vftsim.workloads.common import drop_all, duration_ns, is_chosen, outputs_of, send_or_wait, with_overhead_ns
from vftsim.workloads.service.calls import (
    asker_of,
    close_all,
    close_call,
    forget_peers,
    goes_on_at_asker,
    making_ns,
    note_answer,
    note_timeout,
    plan_calls,
    redirect_to_next,
    send_call,
)
from vftsim.workloads.service.records import Call, Service, Visit, call_list, calls, plans, service, services, visits
from vftsim.workloads.threads import release_thread, release_threads, serving_threads, take_thread
from vftsim.workloads.windows import begin_answer, goes_on_in_guest


@service.implements(io.receive)
def take_packet(sim: Sim, program: io.Application, packet: int, server: Service = BESIDE) -> None:
    """Give a request to an idle thread, or keep it for one; an answer goes to the thread that waits for it."""
    if io.packets(sim)[packet].flow == server.flow:
        if not goes_on_at_asker(sim, packet):
            handle_answer(sim, server, packet)
        return
    if goes_on_in_guest(sim, packet):
        return
    server.came += 1
    visits(sim)[packet].came_ns = sim.now_ns
    if server.active < server.threads:
        server.active += 1
        take_thread(sim, domains(sim)[server.domain], server.idle, packet)
        begin(sim, server, packet, False)
    elif server.waiting.length < server.backlog:
        io.packet_list.push(sim, server.waiting, packet)
    else:
        server.refused += 1
        io.drop(sim, packet, server.socket_full)


@service.implements(io.held)
def requests_held(sim: Sim, program: io.Application, server: Service = BESIDE) -> int:
    """Those in its socket and with its threads."""
    return server.waiting.length + server.active


@service.implements(io.refused)
def requests_refused(sim: Sim, program: io.Application) -> int:
    """Those that found no place in its socket."""
    return services(sim)[program.state_row].refused


def begin(sim: Sim, service: Service, packet: int, is_running: bool) -> None:
    """Let a thread compute for a request: one that is running continues."""
    visit = visits(sim)[packet]
    visit.begin_ns = sim.now_ns
    visit.has_failed = False
    visit.left = 0
    visit.next_plan = service.first_plan
    visit.reads_left = service.reads + int(is_chosen(sim, service.read_chance, service.read_choices))
    visit.writes_left = service.writes + int(is_chosen(sim, service.write_chance, service.write_choices))
    io.packet_list.push(sim, service.in_hand, packet)
    port = io.ports(sim)[io.packets(sim)[packet].port]
    plain_ns = duration_ns(sim, service.demands, service.demand_ns)
    demand_ns = with_overhead_ns(sim, service.program, plain_ns, outputs_of(port)) + port.transmit_ns
    io.mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
    domain, process = domains(sim)[service.domain], serving_threads(sim)[packet].process
    continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_computed, packet, service.row)


@work_done
def on_computed(sim: Sim, packet: int, argument: int) -> None:
    """The demand of a request is done."""
    io.mark(sim, packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    continue_request(sim, services(sim)[argument], packet, True)


def continue_request(sim: Sim, service: Service, packet: int, is_running: bool) -> None:
    """Do what is next for a request: a transfer, calls, or the answer."""
    visit = visits(sim)[packet]
    if must_wait_for_disk(sim, service, visit, packet):
        return
    plan_calls(sim, service, packet)
    if visit.planned.length == 0:
        finish(sim, service, packet, is_running)
        return
    demand_ns = making_ns(sim, service, visit)
    if demand_ns > 0:
        io.mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, demand_ns)
        domain, process = domains(sim)[service.domain], serving_threads(sim)[packet].process
        continue_or_submit_for(sim, domain, process, is_running, demand_ns, on_calls_made, packet, service.row)
    else:
        send_planned(sim, service, visit)


def must_wait_for_disk(sim: Sim, service: Service, visit: Visit, packet: int) -> bool:
    """Ask for the next transfer, if there is one left; a write that is done at once is followed by the next."""
    while visit.reads_left + visit.writes_left > 0:
        if sim.now_ns >= service.warmup_ns:
            service.transfers += 1
        if visit.reads_left > 0:
            visit.reads_left -= 1
            read(sim, disks(sim)[service.disk], service.program, packet, service.transfer_size_bytes)
            return True
        visit.writes_left -= 1
        if not write(sim, disks(sim)[service.disk], service.program, packet, service.transfer_size_bytes):
            return True
    return False


@service.implements(transfer_done)
def end_transfer(sim: Sim, program: io.Application, tag: int) -> None:
    """Continue the request for which the disk has worked."""
    io.mark(sim, tag, PROGRAM_WAITED, 0, sim.now_ns, 0)
    continue_request(sim, services(sim)[program.state_row], tag, False)


@work_done
def on_calls_made(sim: Sim, visit_row: int, argument: int) -> None:
    """The CPU time of making calls is done."""
    io.mark(sim, visit_row, PROGRAM_DONE, 0, sim.now_ns, 0)
    send_planned(sim, services(sim)[argument], visits(sim)[visit_row])


def send_planned(sim: Sim, service: Service, visit: Visit) -> None:
    while visit.planned.length > 0:
        call = calls(sim)[call_list.pop(sim, visit.planned)]
        call_list.push(sim, visit.asked, call.row)
        if sim.now_ns >= service.warmup_ns:
            plans(sim)[call.plan].made += 1
        issue(sim, call)


def issue(sim: Sim, call: Call) -> None:
    """Send a call, and watch for its answer."""
    call.timer = 0
    if call.wait_ns > 0:
        call.timer = at(sim, sim.now_ns + call.wait_ns, EventKind.TIMER, call.row, on_timer, call.row)
    send_call(sim, call)


@timer(calls, "timer")
def on_timer(sim: Sim, call: Call) -> None:
    """A call has waited for long enough: its asker's guest learns of it by an interrupt, when it runs."""
    domain = domains(sim)[services(sim)[asker_of(sim, call)].domain]
    interrupt_from_outside(sim, domain, 0, on_timeout, call.row, call.uses)


@work_done
def on_timeout(sim: Sim, call: Call, argument: int) -> None:
    """Repeat a call, or give it up, unless its answer has come meanwhile."""
    if not call.is_open or call.uses != argument:
        return
    plan = plans(sim)[call.plan]
    service = services(sim)[plan.service]
    note_timeout(sim, call)
    if call.tries > plan.retries:
        fail_request(sim, service, call)
    else:
        if sim.now_ns >= service.warmup_ns:
            plan.repeated += 1
        call.wait_ns *= 2
        redirect_to_next(sim, call)
        issue(sim, call)


def handle_answer(sim: Sim, service: Service, packet: int) -> None:
    """Continue the request for which another service was asked, if it waits for no other answer."""
    call = calls(sim)[io.packets(sim)[packet].stream]
    message, route = io.packets(sim)[packet].message, io.packets(sim)[packet].entity
    io.packets.free(sim, packet)
    if not call.is_open or call.uses != abs(message):
        return
    note_answer(sim, call, route)
    if message < 0:
        fail_request(sim, service, call)
        return
    parent = call.parent
    visit = visits(sim)[parent]
    # Before the request continues: it may be answered at once, and its visit is over then.
    call_list.remove(sim, visit.asked, call.row)
    close_call(sim, call)
    if visit.asked.length == 0:
        io.mark(sim, parent, PROGRAM_WAITED, 0, sim.now_ns, 0)
        continue_request(sim, service, parent, False)


def fail_request(sim: Sim, service: Service, call: Call) -> None:
    """A call has failed: say at once that so has the request for which it was made."""
    if sim.now_ns >= service.warmup_ns:
        plans(sim)[call.plan].failed += 1
    visits(sim)[call.parent].has_failed = True
    io.mark(sim, call.parent, PROGRAM_WAITED, 0, sim.now_ns, 0)
    finish(sim, service, call.parent, False)


def finish(sim: Sim, service: Service, packet: int, is_running: bool) -> None:
    """Send the answer, or sleep until there is room."""
    io.packet_list.remove(sim, service.in_hand, packet)
    visit = visits(sim)[packet]
    # Before the answer leaves: what comes for its calls later finds nobody who waits.
    close_all(sim, visit)
    count_request(sim, service, visit)
    io.mark(sim, packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    answer = io.packets(sim)[packet]
    answer.size_bytes = service.answer_size_bytes
    if visit.has_failed:
        answer.message = -answer.message
    begin_answer(sim, packet)
    # Read before it is sent: then it belongs to its path.
    process = serving_threads(sim)[packet].process
    if send_or_wait(sim, packet):
        take_next(sim, service, process, is_running)
    else:
        service.blocked += 1


def count_request(sim: Sim, service: Service, visit: Visit) -> None:
    """Count a request that leaves, and the time for which it has kept a thread."""
    if sim.now_ns >= service.warmup_ns:
        service.busy_ns = add_time(sim, service.busy_ns, sim.now_ns - max(visit.begin_ns, service.warmup_ns))
        if visit.has_failed:
            service.failed += 1
        else:
            service.requests += 1
    if visit.came_ns >= service.warmup_ns:
        add_delay(sim, service.wait, visit.begin_ns - visit.came_ns)
    if not visit.has_failed:
        add_delay_since(sim, service.response, visit.came_ns, service.warmup_ns)


def take_next(sim: Sim, service: Service, process: int, is_running: bool) -> None:
    """Let a thread that has sent its answer take the next request, or sleep."""
    service.answered += 1
    packet = io.packet_list.pop(sim, service.waiting)
    if packet == 0:
        service.active -= 1
        release_thread(sim, service.idle, process)
    else:
        serving_threads(sim)[packet].process = process
        begin(sim, service, packet, is_running)


@service.implements(io.go_on)
def send_again(sim: Sim, program: io.Application, packet: int, server: Service = BESIDE) -> None:
    """Send what there was no room for: a call, or the answer of a thread that slept and is resumed."""
    # Read before it is sent: then it belongs to its path.
    is_call = io.packets(sim)[packet].flow == server.flow
    process = serving_threads(sim)[packet].process
    if send_or_wait(sim, packet) and not is_call:
        server.blocked -= 1
        take_next(sim, server, process, False)


@service.implements(io.lose_state)
def lose_memory(sim: Sim, program: io.Application, server: Service = BESIDE) -> None:
    """Lose all requests, what the cache had, and who was silent; CPU work is gone, and the disk works for nobody."""
    server.lost += server.waiting.length + server.active
    drop_all(sim, server.waiting, server.lost_in_boot)
    release_threads(sim, server.idle, server.in_hand)
    while server.in_hand.length > 0:
        packet = io.packet_list.pop(sim, server.in_hand)
        close_all(sim, visits(sim)[packet])
        io.drop(sim, packet, server.lost_in_boot)
    server.blocked = 0
    server.active = 0
    if server.disk != 0:
        forget(sim, disks(sim)[server.disk])
    row = server.first_plan
    while row != 0:
        plans(sim)[row].filled = 0
        forget_peers(sim, plans(sim)[row])
        row = plans(sim)[row].next_plan
