"""A stateful SIP proxy and registrar (OpenSIPS/Kamailio class) over UDP.

Worker processes share one UDP socket and one CPU: a worker takes a datagram, works on it until the
outputs leave, then does the rest (bookkeeping of the transaction) before it takes the next.  The
socket's receive buffer is bounded in kernel memory; a datagram that does not fit is dropped there.

CPU work of a received message = touches x ``touch_cost`` x drawn relative demand
x (1 + ``growth_per_transaction`` x transactions that wait for their removal
+ ``growth_per_attempt`` x transactions created + ``growth_per_active_worker`` x other workers at work, for
relayed messages: contention for the transaction table).
All three growths are assumptions: the measured CPU per attempt rises with load in every environment, and so
do the transactions in memory (longer hash chains, a more fragmented shared-memory heap), the number served so
far and the workers at work.  Zero turns them off; the lab's models use the first alone.  Completed transactions
only, because with those under way included the work would grow in a collapse, and the measured collapse is less
deep than that.

Credentials are looked up in the database by the worker that has the second REGISTER (OpenSIPS ``auth_db``, a
synchronous query): after the work for the message received it asks and sleeps; the database, on the same CPU,
queues for it with ``database_cost``, and so does the worker again when it has the answer.

Location records are written back (OpenSIPS ``usrloc``, ``db_mode`` 2, the lab's setting): a registration
changes memory only, and a timer process writes all changed records to the database every
``location_flush_period`` (``timer_interval``, 60 s by default), one query after the other.  It waits for the
database after each query and the database for the next, so each record (``location_write_cost``) is a job of its
own, and one in the background: on Linux 2.6.18 processes that compute without a pause run after those that sleep much,
as the workers do.  The same cost for all records is an assumption; the lab's CPU series of the
registration phase shows such flushes (8.5 points from second to second, one second at 86 %).  Zero turns it off.

With ``flush_in_timer_process`` the records are written as OpenSIPS 1.6.2 does it (``timer.c``, ``usrloc``
``udomain.c``): the timer process prepares each query, sleeps until the database has written, and goes on; both are
processes of the guest, whose scheduler decides whether they run before the workers.  With ``timers_wait_for_flush``
the one-second timer of transactions and the repetitions of forwarded requests, which the same process serves, wait
until it is done.

A nonce is good once (``nonces_good_once``; OpenSIPS 1.6.2 ``auth/api.c``, ``post_auth``): credentials that come a
second time are looked up and then challenged again.

Stalls: every ``stall_period`` no worker takes a message for ``stall_duration``, as when all of them wait for one lock
of the database; messages already in hand are finished.  They use no CPU, the flush of location records does.
An assumption for what-ifs: the lab shows none, so the default is none.

Sending: the UDP socket of OpenSIPS blocks (``udp_send``, plain ``sendto``), so a process sleeps while the way out has
no room, as a thread of a pool does: until all it has to send for a message has left, in order.  A datagram of the timer
process waits in the same order; the timer's other work, modelled as jobs of their own, does not wait for it, and timers
of a request run from the instant at which its sending began.

Left out: TCP, forking, DNS, failure replies other than 408 (503, redirection); the CPU time of transaction
timers apart from the sends they cause.
"""

from vftsim.kernel import BESIDE, Sim, entry
from vftsim.platform.io import packet as io
from vftsim.workloads.sip import records as sip
from vftsim.workloads.sip.forwarding import stop_repeating
from vftsim.workloads.sip.housekeeping import start_timers
from vftsim.workloads.sip.messages import RECEIVED, Message, drop_ref, message_facts
from vftsim.workloads.sip.transactions import drop_use
from vftsim.workloads.sip.worker import release_datagram, send_now, work_on

sip_server = io.application.kind("sip_server")


@entry
def start_server(sim: Sim, server: sip.SipServer) -> None:
    """Start a server that was added: all its processes wait, its timers run."""
    set_costs(sim, server, 0, 1.0, 1.0)
    idle_all(sim, server)
    start_timers(sim, server)


def idle_all(sim: Sim, server: sip.SipServer) -> None:
    """Let all processes wait for a datagram."""
    server.at_rest_ns = sim.now_ns
    for row in range(server.first_worker, server.first_worker + sip.sip_rules(sim)[server.row].processes):
        sip.worker_list.push(sim, server.idle, row)


def in_progress(sim: Sim, server: sip.SipServer) -> int:
    """Return how many datagrams are in the socket buffer or in a process's hands."""
    return server.buffer.length + sip.sip_rules(sim)[server.row].processes - server.idle.length


@sip_server.implements(io.held)
def datagrams_held(sim: Sim, program: io.Application) -> int:
    """Those in the socket buffer or in a process's hands."""
    return in_progress(sim, sip.sip_servers(sim)[program.state_row])


@sip_server.implements(io.refused)
def datagrams_refused(sim: Sim, program: io.Application) -> int:
    """Those that met a full buffer."""
    return io.drops(sim)[sip.sip_servers(sim)[program.state_row].buffer_full].count


@sip_server.implements(io.receive)
def take_datagram(sim: Sim, program: io.Application, packet: int, server: sip.SipServer = BESIDE) -> None:
    """Give a datagram at the socket to a process, or keep it for one."""
    server.received += 1
    if server.idle.length > 0 and not server.stalled:
        work_on(sim, server, sip.worker_list.pop(sim, server.idle), packet)
    elif server.buffer.length < sip.sip_rules(sim)[server.row].socket_buffer_messages:
        io.packet_list.push(sim, server.buffer, packet)
    else:
        io.drop(sim, packet, server.buffer_full)


@sip_server.implements(io.go_on)
def resume_sending(sim: Sim, program: io.Application, packet: int) -> None:
    """Send a datagram that has waited for room."""
    send_now(sim, sip.sip_servers(sim)[program.state_row], packet)


@sip_server.implements(io.set_overhead)
def apply_overhead(sim: Sim, program: io.Application, output_ns: int, execution: float, exits: float) -> None:
    """Let work that begins from now on cost what protection makes it cost."""
    set_costs(sim, sip.sip_servers(sim)[program.state_row], output_ns, execution, exits)


def set_costs(sim: Sim, server: sip.SipServer, output_ns: int, execution: float, exits: float) -> None:
    """Compute the mean CPU work of each received message when no transaction is held."""
    rules = sip.sip_rules(sim)[server.row]
    server.inflation = rules.cpu_inflation * execution
    server.send_cost_ns = rules.packet_cost_ns + output_ns
    relay_ns = rules.relay_cost_ns * exits
    server.touch_ns = server.inflation * rules.touch_cost_ns + relay_ns
    for message in range(RECEIVED):
        touches = message_facts(sim)[1 + message].touches
        if message <= Message.REGISTER_CREDENTIALS:
            server.plain_ns[message] = server.inflation * touches * rules.register_touch_cost_ns
        else:
            server.plain_ns[message] = touches * server.touch_ns
        server.cost_ns[message] = server.plain_ns[message] + server.inflation * rules.script_ns[message]


@sip_server.implements(io.lose_state)
def lose_memory(sim: Sim, program: io.Application, server: sip.SipServer = BESIDE) -> None:
    """Start with empty memory: transactions, timers and queued datagrams are gone, and the CPU work for them."""
    # Counted before anything is forgotten.
    server.lost_in_crash += in_progress(sim, server)
    forget_datagrams(sim, server)
    forget_transactions(sim, server)
    # From here on what still refers to the transactions of before finds that they are not in memory.
    server.boots += 1
    server.stalled = False
    server.changed_records = 0
    server.records_to_write = 0
    server.is_flushing = False
    server.late_ticks = 0
    idle_all(sim, server)
    start_timers(sim, server)


def forget_datagrams(sim: Sim, server: sip.SipServer) -> None:
    """Lose the datagrams in the socket buffer and in the processes' hands, and leave no process idle."""
    while server.buffer.length > 0:
        packet = io.packet_list.pop(sim, server.buffer)
        drop_ref(sim, io.packets(sim)[packet].stream)
        io.packets.free(sim, packet)
    while server.idle.length > 0:
        sip.worker_list.pop(sim, server.idle)
    for worker in sip.workers.span(sim, server.first_worker, sip.sip_rules(sim)[server.row].processes):
        # What waited for room was lost with the ring: nobody wakes the process for it.
        worker.unsent = 0
        if worker.packet != 0:
            release_datagram(sim, worker)


def forget_transactions(sim: Sim, server: sip.SipServer) -> None:
    """Lose all transactions; those repeated at present find out when their timer goes off."""
    while server.ringing.length > 0:
        drop_use(sim, sip.ringing_list.pop(sim, server.ringing))
    while server.late.length > 0:
        late = sip.late_list.pop(sim, server.late)
        stop_repeating(sim, late)
        drop_use(sim, late)
    for row in range(server.first_expiry, server.first_expiry + sip.sip_rules(sim)[server.row].wait_periods + 1):
        sip.expiries(sim)[row].count = 0
    server.slot = 0
    server.held = 0
    server.waiting = 0
    server.created_before += server.created
    server.created = 0
