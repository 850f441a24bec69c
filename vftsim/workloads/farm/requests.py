"""Requests between servers of a farm: over the path of the one, the network and the path of the other, and back.

A packet that leaves its domain comes to its flow as everywhere; here the flow sends it to the other server's port.
What is lost on the way or with a machine's memory is repeated after ``retry``, as TCP would; an answer that comes twice
is ignored.  Left out: segments, acknowledgements, windows.
"""

from vftsim.kernel import EventKind, Sim, at, timer
from vftsim.platform.io.loopback import send_across
from vftsim.platform.io.packet import Flow, delivered, discarded, lost, packets
from vftsim.workloads.common import new_packet, routes, send_or_wait
from vftsim.workloads.farm import records as farm


def make_request(sim: Sim, server: farm.FarmServer, packet: int, ask: farm.Ask) -> None:
    """Send a request to the server whose turn it is, for the packet in the asker's hand."""
    route = routes(sim)[ask.first_route + ask.turn]
    ask.turn = (ask.turn + 1) % ask.routes
    row = farm.requests.new(sim)
    request = farm.requests(sim)[row]
    request.uses += 1
    request.state = farm.ASKED
    request.asker = server.row
    request.parent = packet
    request.parent_serial = farm.visits(sim)[packet].serial
    request.message = ask.message
    request.size_bytes = ask.size_bytes
    request.from_port = route.from_port
    request.to_port = route.to_port
    request.timer = 0
    send_request(sim, request, request.from_port, request.message)


def send_request(sim: Sim, request: farm.Request, port: int, message: int) -> None:
    flow = farm.servers(sim)[request.asker].flow
    tagged = farm.KINDS * request.uses + message
    send_or_wait(sim, new_packet(sim, flow, port, request.row, request.row, tagged, request.size_bytes))


def is_over(sim: Sim, packet: int) -> bool:
    """Tell whether the request of a packet has had its answer."""
    request = farm.requests(sim)[packets(sim)[packet].stream]
    return request.state == 0 or request.uses != farm.serial_of(packets(sim)[packet].message)


@farm.farm_request.implements(delivered)
def take_across(sim: Sim, flow: Flow, packet: int) -> None:
    """A packet has left one server: to the other."""
    if is_over(sim, packet):
        packets.free(sim, packet)
        return
    request = farm.requests(sim)[packets(sim)[packet].stream]
    is_answer = farm.message_of(packets(sim)[packet].message) == farm.Message.ANSWER
    packets(sim)[packet].port = request.from_port if is_answer else request.to_port
    send_across(sim, packet)


@farm.farm_request.implements(lost)
def repeat_lost(sim: Sim, flow: Flow, packet: int) -> None:
    """Plan to send again what was dropped."""
    plan_repeat(sim, flow, packet)


@farm.farm_request.implements(discarded)
def repeat_discarded(sim: Sim, flow: Flow, packet: int) -> None:
    """Plan to send again what ended unseen; where it was a copy, nothing will be missing by then."""
    if farm.message_of(packets(sim)[packet].message) == farm.Message.ANSWER or not is_taken(sim, packet):
        plan_repeat(sim, flow, packet)


def is_taken(sim: Sim, packet: int) -> bool:
    """Tell whether a server has the request of a packet in hand, or has answered it."""
    return farm.requests(sim)[packets(sim)[packet].stream].state > farm.ASKED


def plan_repeat(sim: Sim, flow: Flow, packet: int) -> None:
    """Plan to send a request or an answer again; a request that is lost is in nobody's hand."""
    if is_over(sim, packet):
        return
    request = farm.requests(sim)[packets(sim)[packet].stream]
    if farm.message_of(packets(sim)[packet].message) != farm.Message.ANSWER:
        request.state = farm.ASKED
    due_ns = sim.now_ns + farm.servers(sim)[flow.state_row].retry_ns
    request.timer = at(sim, due_ns, EventKind.TIMER, request.row, on_repeat, request.row)


@timer(farm.requests, "timer")
def on_repeat(sim: Sim, request: farm.Request) -> None:
    """Send again what is still missing."""
    if request.state == 0:
        return
    if request.state == farm.ANSWERED:
        send_request(sim, request, request.to_port, farm.Message.ANSWER)
    elif request.state == farm.ASKED:
        send_request(sim, request, request.from_port, request.message)


def end_request(sim: Sim, request: farm.Request) -> None:
    """Free a request whose answer has come."""
    request.state = 0
    request.timer = 0
    farm.requests.free(sim, request.row)
