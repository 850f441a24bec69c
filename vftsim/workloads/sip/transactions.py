"""The server's transaction table (OpenSIPS ``tm``), and its one-second timer.

Rule (OpenSIPS 1.6 ``tm``): a forwarded request creates a transaction; a retransmitted request meets
it and is answered from it without being forwarded again.  The server itself repeats a forwarded
request over UDP after T1, doubling to T2, until any reply (INVITE) or the final reply (other requests)
has come, and answers 408 itself when none comes within ``fr_timer`` = 30 s (INVITE that rings:
``fr_inv_timer`` = 120 s, seen by the one-second timer).  A transaction stays in memory for ``wt_timer``
= 5 s after its final reply; expired ones are removed by a timer process that runs once a second.
Registrations are answered without a transaction (``sl_send_reply``).

Assumption: removing expired transactions is what holds the CPU once a second; the lab's delay
percentiles show such bursts in the mix and not in pre-registration, which creates no transactions.
``removal_cost`` and ``housekeeping_cost`` of the server set it; zero turns it off.
"""

from vftsim.kernel import Sim
from vftsim.platform.io.packet import Packet
from vftsim.workloads.sip.messages import add_ref, drop_ref, streams
from vftsim.workloads.sip.records import SipServer, expiries, requests, sip_rules, sip_servers, transactions


def current(sim: Sim, server: SipServer, stream: int) -> int:
    """Return the transaction that a stream's messages meet; 0 if the server knows of none."""
    request = requests(sim)[stream]
    if request.number != streams(sim)[stream].number or request.boot != server.boots:
        # The stream is another attempt's by now, or the server has been booted since and remembers nothing.
        replace_current(sim, stream, 0)
        request.number = streams(sim)[stream].number
        request.boot = server.boots
        request.nonce_used = False
    return request.transaction


def replace_current(sim: Sim, stream: int, row: int) -> None:
    """Let a stream's messages meet another transaction from now on."""
    request = requests(sim)[stream]
    before = request.transaction
    request.transaction = row
    # After the new one is entered: nothing refers to the old row any more when it is freed.
    if before != 0:
        transactions(sim)[before].is_current = False
        free_unused(sim, before)


def create(sim: Sim, server: SipServer, packet: Packet) -> int:
    """Make the transaction of a request, and let the stream's messages meet it."""
    row = transactions.new(sim)
    transaction = transactions(sim)[row]
    transaction.server = server.row
    transaction.boot = server.boots
    transaction.stream = packet.stream
    transaction.flow = packet.flow
    transaction.port = packet.port
    transaction.message = packet.message
    transaction.replied = -1
    transaction.is_final = False
    transaction.is_current = True
    transaction.uses = 0
    transaction.forward.timer = 0
    # Being current keeps the new row alive until another replaces it.
    replace_current(sim, packet.stream, row)
    server.held += 1
    server.created += 1
    return row


def add_use(sim: Sim, row: int) -> None:
    """Refer to a transaction, and so to its stream."""
    transaction = transactions(sim)[row]
    transaction.uses += 1
    add_ref(sim, transaction.stream)


def drop_use(sim: Sim, row: int) -> None:
    """Refer to a transaction no longer."""
    transaction = transactions(sim)[row]
    transaction.uses -= 1
    # Before the row may be freed, which knows the stream.
    drop_ref(sim, transaction.stream)
    free_unused(sim, row)


def free_unused(sim: Sim, row: int) -> None:
    """Free a transaction that nothing refers to."""
    transaction = transactions(sim)[row]
    if transaction.uses == 0 and not transaction.is_current:
        transactions.free(sim, row)


def is_in_memory(sim: Sim, row: int) -> bool:
    """Tell whether a transaction is still in its server's memory."""
    transaction = transactions(sim)[row]
    return transaction.boot == sip_servers(sim)[transaction.server].boots


def complete(sim: Sim, server: SipServer, row: int, reply: int) -> None:
    """Give a transaction its final reply; it expires ``wait_periods`` timer runs from now."""
    transaction = transactions(sim)[row]
    transaction.is_final = True
    transaction.replied = reply
    server.waiting += 1
    slots = sip_rules(sim)[server.row].wait_periods + 1
    # The slot that tick() comes to last.
    expiries(sim)[server.first_expiry + (server.slot + slots - 1) % slots].count += 1


def tick(sim: Sim, server: SipServer) -> int:
    """Pass one period of the timer process; return how many transactions expire now."""
    due = expiries(sim)[server.first_expiry + server.slot]
    expired = due.count
    due.count = 0
    server.slot = (server.slot + 1) % (sip_rules(sim)[server.row].wait_periods + 1)
    server.held -= expired
    server.waiting -= expired
    return expired
