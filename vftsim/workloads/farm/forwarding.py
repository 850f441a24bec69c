"""INVITEs that nobody answers behind a server: it forwards them again.

Rule: a proxy that tells the caller that its INVITE is under way is a client to the called one (RFC 3261, 16.6): it
sends the INVITE again after T1, 2 T1, 4 T1 ... until an answer comes, provisional or final, for 64 T1 at most
(17.1.1.2, timers A and B), for the caller has stopped.  A server that was booted has forgotten.

Simplifications: it takes no CPU time of the server beyond what the path takes; an answer has come when a thread takes
it up.
"""

from vftsim.kernel import EventKind, Sim, at, event
from vftsim.platform.io.packet import packets
from vftsim.workloads.common import new_packet, send_or_wait
from vftsim.workloads.farm import records as farm

_BOOTS = 1 << 20


def boot_key(server: farm.FarmServer) -> int:
    """Return what tells a server and its present boot from all others."""
    return server.row * _BOOTS + server.boots + 1


def begin_forwarding(sim: Sim, server: farm.FarmServer, packet: int) -> None:
    """Note that a server forwards an INVITE now, to which an answer should come within T1."""
    call = farm.calls(sim)[packets(sim)[packet].stream]
    load = farm.loads(sim)[call.load]
    if not load.retransmits or call.stage == 0 or farm.serial_of(packets(sim)[packet].message) != call.uses:
        return
    call.forwarded_by = server.row
    call.forwarded_ns = sim.now_ns
    call.forward_wait_ns = load.t1_ns
    call.forward_timer = 0
    # The caller's event looks after it as well, and nearly always finds it answered.
    if call.timer == 0 or call.timer_ns > sim.now_ns + load.t1_ns:
        start_timer_a(sim, call)


def start_timer_a(sim: Sim, call: farm.Call) -> None:
    """Plan to send an INVITE again whose answer has not come (timer A)."""
    if call.forward_wait_ns > 0 and call.forward_timer == 0:
        due_ns = max(sim.now_ns, call.forwarded_ns + call.forward_wait_ns)
        call.forward_timer = at(sim, due_ns, EventKind.TIMER, call.row, on_retransmission, call.row)


def end_forwarding(call: farm.Call) -> None:
    """Forward an INVITE no more: it is answered, or its call is over."""
    call.forward_wait_ns = 0
    call.forward_timer = 0


@event
def on_retransmission(sim: Sim, call: farm.Call, token: int) -> None:
    """Forward an INVITE again, unless its server has been booted since; after 64 T1 (timer B) no more."""
    if token != call.forward_timer:
        return
    load, server = farm.loads(sim)[call.load], farm.servers(sim)[call.forwarded_by]
    if call.known != boot_key(server) or call.known_serial != call.uses:
        return
    invite = farm.KINDS * call.uses + farm.Message.INVITE
    row = new_packet(sim, load.flow, call.front, call.row, call.row, invite, load.message_size_bytes)
    farm.visits(sim)[row].serial = 0
    call.forward_wait_ns *= 2
    due_ns = sim.now_ns + call.forward_wait_ns
    if due_ns - call.forwarded_ns < farm.GIVE_UP * load.t1_ns:
        call.forward_timer = at(sim, due_ns, EventKind.TIMER, call.row, on_retransmission, call.row)
    # Last: once it is sent it belongs to its path.
    send_or_wait(sim, row)
