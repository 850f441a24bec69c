"""Calls of one service by another: which are made, whether the cache has their answers, their path there and back.

A packet that leaves its domain comes to its flow as everywhere; here the flow sends it to the other service's port.
Nobody is told of one that is lost: its asker waits for the time-out.
"""

from vftsim.kernel import BESIDE, Sim
from vftsim.kernel.inputs import draw
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import links
from vftsim.platform.io.loopback import send_across
from vftsim.platform.io.packet import Flow, Packet, delivered, packets, ports, window_bytes
from vftsim.workloads.common import is_chosen, new_packet, outputs_of, routes, send_or_wait, with_overhead_ns
from vftsim.workloads.service.records import (
    Call,
    Plan,
    Service,
    Visit,
    call_list,
    calls,
    peers,
    plans,
    service_call,
    services,
    visits,
)
from vftsim.workloads.windows import (
    begin_message,
    forget_window,
    goes_on_in_guest,
    open_bytes,
    put_out_or_wait,
    use_next,
    widen,
    widen_sender,
)


def plan_calls(sim: Sim, service: Service, packet: int) -> None:
    """Find the calls that are next for a request: one, or parallel ones together; none: it has made all of them."""
    visit = visits(sim)[packet]
    while True:
        if visit.left > 0:
            visit.left -= 1
            plan = plans(sim)[visit.plan]
            if not is_in_cache(sim, service, plan):
                call_list.push(sim, visit.planned, open_call(sim, plan, packet))
                if not plan.is_parallel:
                    return
        elif visit.next_plan == 0 or (visit.planned.length > 0 and not plans(sim)[visit.next_plan].is_parallel):
            return
        else:
            begin_plan(sim, visit)


def begin_plan(sim: Sim, visit: Visit) -> None:
    """Turn to the next entry of the calls; a request that does not make them has none left of it."""
    plan = plans(sim)[visit.next_plan]
    visit.plan = plan.row
    visit.next_plan = plan.next_plan
    if is_chosen(sim, plan.chance, plan.choices):
        visit.left = plan.count


def is_in_cache(sim: Sim, service: Service, plan: Plan) -> bool:
    """Tell whether the cache has the answer; one that it might have had is there from now on."""
    if plan.hit == 0:
        return False
    level = 0 if plan.lookups == 0 else draw(sim, plan.lookups)
    is_there = level < plan.hit
    if is_there and plan.filled < plan.cache_entries:
        # Which of the answers it is: the level within the hits is as good as a further draw.
        is_there = level * plan.cache_entries < plan.hit * plan.filled
        if not is_there:
            plan.filled += 1
    if is_there and sim.now_ns >= service.warmup_ns:
        plan.hits += 1
    return is_there


def open_call(sim: Sim, plan: Plan, packet: int) -> int:
    """Take a row for a call of the next whose turn it is."""
    row = calls.new(sim)
    call = calls(sim)[row]
    call.uses += 1
    call.is_open = True
    call.plan = plan.row
    call.parent = packet
    call.tries = 0
    call.wait_ns = plan.timeout_ns
    call.timer = 0
    copy = next_copy(sim, plan, plan.turn, plan.routes)
    direct(sim, plan, call, copy)
    plan.turn = (copy + 1) % plan.routes
    plan.opened += 1
    return row


def redirect_to_next(sim: Sim, call: Call, plan: Plan = BESIDE) -> None:
    """Direct a call that is repeated at the next copy; where there is one only, at that one again."""
    direct(sim, plan, call, next_copy(sim, plan, call.route - plan.first_route + 1, plan.routes - 1))


def next_copy(sim: Sim, plan: Plan, first: int, number: int) -> int:
    """Return the first of a number of copies in turn that is not passed over; where all of them are, the first."""
    step = 0
    while step < number and is_passed_over(sim, plan, plan.first_route + (first + step) % plan.routes):
        step += 1
    return (first + (0 if step == number else step)) % plan.routes


def is_passed_over(sim: Sim, plan: Plan, route: int) -> bool:
    """Tell whether a copy was silent too often, and neither too long ago nor tried anew since."""
    peer = peers(sim)[route]
    return plan.max_fails > 0 and peer.fails >= plan.max_fails and sim.now_ns - peer.checked_ns <= plan.fail_timeout_ns


def direct(sim: Sim, plan: Plan, call: Call, copy: int) -> None:
    """Direct a call at a copy: one that nobody has tried for long is tried by this call alone."""
    call.route = plan.first_route + copy
    peer = peers(sim)[call.route]
    if sim.now_ns - peer.checked_ns > plan.fail_timeout_ns:
        peer.checked_ns = sim.now_ns


def note_timeout(sim: Sim, call: Call) -> None:
    """The copy at which a call was directed has not answered in time: its connection is closed (Go, ``net/http``)."""
    peer = peers(sim)[call.route]
    forget_window(peer.requests)
    forget_window(peer.answers)
    peer.fails += 1
    peer.failed_ns = sim.now_ns
    peer.checked_ns = sim.now_ns


def note_answer(sim: Sim, call: Call, route: int) -> None:
    """An answer has come by a route: a copy that the call has tried anew is asked as before."""
    peer = peers(sim)[route]
    if route == call.route and peer.failed_ns < peer.checked_ns:
        peer.fails = 0


def forget_peers(sim: Sim, plan: Plan) -> None:
    """Forget which copies were silent, and the connections to all of them."""
    route = plan.first_route
    while route < plan.first_route + plan.routes:
        peer = peers(sim)[route]
        peer.fails = 0
        forget_window(peer.requests)
        forget_window(peer.answers)
        route += 1


def close_call(sim: Sim, call: Call) -> None:
    """Free a call that is in no list; what is still on its path is nobody's."""
    plans(sim)[call.plan].closed += 1
    # Before the row is free: an answer or a time-out that comes later finds the call over.
    call.is_open = False
    call.timer = 0
    calls.free(sim, call.row)


def close_all(sim: Sim, visit: Visit) -> None:
    """Free the calls of a request that waits for them no more."""
    while visit.planned.length > 0:
        close_call(sim, calls(sim)[call_list.pop(sim, visit.planned)])
    while visit.asked.length > 0:
        close_call(sim, calls(sim)[call_list.pop(sim, visit.asked)])


def making_ns(sim: Sim, service: Service, visit: Visit) -> int:
    """Return the CPU time of making the calls that are planned: the asker's own, its path's, its protection's."""
    demand_ns = 0
    for call in calls.listed(sim, call_list, visit.planned):
        port = ports(sim)[routes(sim)[call.route].from_port]
        demand_ns += with_overhead_ns(sim, service.program, plans(sim)[call.plan].cost_ns, outputs_of(port))
        demand_ns += port.transmit_ns
    return demand_ns


def asker_of(sim: Sim, call: Call) -> int:
    """Return the row of the service that makes a call."""
    return plans(sim)[call.plan].service


def send_call(sim: Sim, call: Call) -> None:
    """Send the request of a call; its thread waits for the answer, room or not."""
    flow = services(sim)[asker_of(sim, call)].flow
    port = routes(sim)[call.route].from_port
    size_bytes = plans(sim)[call.plan].size_bytes
    call.tries += 1
    packet_record = new_packet(sim, flow, port, call.row, call.route, call.uses, size_bytes)
    window = peers(sim)[call.route].requests
    begin_message(sim, packet_record, open_bytes(sim, window))
    widen_sender(sim, window, packet_record, window.round_ns, True)
    send_or_wait(sim, packet_record)


@service_call.implements(window_bytes)
def window_of_answers(sim: Sim, flow: Flow, packet: int) -> int:
    """Return what a service may answer another one at once."""
    return open_bytes(sim, peers(sim)[packets(sim)[packet].entity].answers)


def one_way_ns(sim: Sim, packet: Packet) -> int:
    """Return how long a packet between two services is on the network beside transmission: the links of both hosts."""
    card = ports(sim)[packet.port].card
    return 2 * links(sim)[cards(sim)[card].from_host].latency_ns if card > 0 else 0


def goes_on_at_asker(sim: Sim, packet: int) -> bool:
    """Answer a window or an acknowledgement, and keep what it says of the connection; False: it is an answer."""
    packet_record = packets(sim)[packet]
    peer = peers(sim)[packet_record.entity]
    if packet_record.acked_bytes == 0:
        widen(sim, peer.answers, packet, one_way_ns(sim, packet_record))
        return goes_on_in_guest(sim, packet)
    use_next(sim, peer.requests, packet, True)
    put_out_or_wait(sim, packet)
    return True


@service_call.implements(delivered)
def take_across(sim: Sim, flow: Flow, packet: int) -> None:
    """A packet has left one service: to the other; ``entity`` says by which route."""
    packet_record = packets(sim)[packet]
    route = routes(sim)[packet_record.entity]
    packet_record.port = route.to_port if packet_record.port == route.from_port else route.from_port
    send_across(sim, packet)
