"""INVITEs that are lost behind a server: it forwards them again.

Rule: a proxy that tells the caller that its INVITE is under way is a client to the called one (RFC 3261, 16.6): it
sends the INVITE again after T1, 2 T1, 4 T1 ... until an answer comes, for 64 T1 at most (17.1.1.2, timers A and B), for
the caller has stopped.  A server that was booted has forgotten.

Simplifications: it takes no CPU time of the server beyond what the path takes; one whose answer is late, and that is
not lost, is not sent again.
"""

from vftsim.kernel import EventKind, Sim, at, event, part
from vftsim.workloads.common import new_packet, send_or_wait
from vftsim.workloads.farm import records as farm
from vftsim.workloads.farm.server import boot_of


@part
def plan_retransmission(sim: Sim, load: farm.FarmLoad, call: farm.Call, server_row: int) -> None:
    """Let a server forward a lost INVITE again (timer A), as long as it waits for an answer (timer B)."""
    if call.forward_wait_ns == 0:
        call.forwarded_ns = sim.now_ns
        call.forward_wait_ns = load.t1_ns
    else:
        call.forward_wait_ns *= 2
    call.forwarded_by = server_row
    due_ns = sim.now_ns + call.forward_wait_ns
    if due_ns - call.forwarded_ns < farm.GIVE_UP * load.t1_ns:
        call.forward_timer = at(sim, due_ns, EventKind.TIMER, call.row, on_retransmission, call.row)


@event
def on_retransmission(sim: Sim, call_row: int, token: int) -> None:
    """Forward an INVITE again, unless its server has been booted since."""
    call = farm.calls(sim)[call_row]
    if token != call.forward_timer or call.stage == 0:
        return
    load, server = farm.loads(sim)[call.load], farm.servers(sim)[call.forwarded_by]
    if call.known == boot_of(server) and call.known_serial == call.uses:
        invite = farm.KINDS * call.uses + farm.Message.INVITE
        row = new_packet(sim, load.flow, call.front, call.row, call.row, invite, load.message_size_bytes)
        farm.visits(sim)[row].server = server.row
        farm.visits(sim)[row].serial = 0
        farm.visits(sim)[row].is_forwarded = True
        send_or_wait(sim, row)
