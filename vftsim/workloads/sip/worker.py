"""The processes of a SIP server: each takes a datagram, works on it, sends what comes of it, and takes the next.

Rules: :mod:`vftsim.workloads.sip.server`.
"""

from vftsim.kernel import BESIDE, Failure, Sim, fail
from vftsim.platform.cpu.jobs import submit_for, submit_next
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.marks import ENDED, PROGRAM_DONE, PROGRAM_TAKEN
from vftsim.platform.io.packet import Packet, mark, packet_list, packets, ports
from vftsim.platform.protection.guard import put_out
from vftsim.workloads.sip import records as sip
from vftsim.workloads.sip.forwarding import answer_from, forward, send_message, stop_repeating
from vftsim.workloads.sip.messages import Message, drop_ref, message_facts, streams
from vftsim.workloads.sip.transactions import add_use, complete, create, current, drop_use
from vftsim.workloads.sip.utilization import busy_factor

NO_ROOM = Failure("a process of a SIP server was woken to send although there is no room")


def work_on(sim: Sim, server: sip.SipServer, row: int, packet: int, rules: sip.SipRules = BESIDE) -> None:
    """Let a process that is not idle work on a datagram."""
    worker = sip.workers(sim)[row]
    datagram = packets(sim)[packet]
    message = datagram.message
    worker.packet = packet
    find_transaction(sim, worker, datagram)
    facts = message_facts(sim)[1 + message]
    demand = server.plain_ns[message] if worker.is_again else server.cost_ns[message]
    demand *= streams(sim)[datagram.stream].demands[facts.slot]
    demand *= growth(sim, server, message)
    if worker.is_again:
        demand *= price_again(rules, message)
    worker.after_ns = int(demand * rules.work_after_send)
    before_ns = int(demand) - worker.after_ns + (facts.touches - 1) * server.send_cost_ns
    before_ns += waking_ns(sim, server)
    mark(sim, packet, PROGRAM_TAKEN, 0, sim.now_ns, before_ns)
    domain = domains(sim)[server.domain]
    if message == Message.REGISTER_CREDENTIALS and rules.database_cost_ns > 0:
        until_query_ns = min(before_ns, int(demand) // facts.touches)
        worker.left_ns = before_ns - until_query_ns
        submit_for(sim, domain, worker.process, until_query_ns, on_query, row, 0)
    else:
        submit_for(sim, domain, worker.process, before_ns, on_answer, row, 0)


def waking_ns(sim: Sim, server: sip.SipServer, rules: sip.SipRules = BESIDE) -> int:
    """Return the further work of a message that finds all workers waiting for long enough; they do no more."""
    since_ns = server.at_rest_ns
    server.at_rest_ns = sip.BUSY
    if since_ns == sip.BUSY or sim.now_ns - since_ns < rules.wakeup_idle_ns:
        return 0
    return int(server.inflation * rules.wakeup_cost_ns)


def price_again(rules: sip.SipRules, message: int) -> float:
    """Return what a repeated message costs, relative to its original."""
    if message == Message.INVITE:
        return rules.repeated_invite
    if message in (Message.BYE, Message.MESSAGE):
        return rules.repeated_request
    if message == Message.OK_INVITE:
        return rules.repeated_ok
    return rules.repeated_reply


def find_transaction(sim: Sim, worker: sip.Worker, packet: Packet, server: sip.SipServer = BESIDE) -> None:
    """Find or create the transaction of a message, and note whether it is a retransmission."""
    message = packet.message
    worker.transaction = 0
    worker.is_again = False
    if message <= Message.REGISTER_CREDENTIALS:
        return
    row = current(sim, server, packet.stream)
    if message in (Message.INVITE, Message.BYE, Message.MESSAGE):
        worker.is_again = row != 0 and sip.transactions(sim)[row].message == message
        if not worker.is_again:
            row = create(sim, server, packet)
    else:
        worker.is_again = row != 0 and sip.transactions(sim)[row].is_final and message != Message.ACK
    worker.transaction = row
    if row != 0:
        # Until release_datagram(): the work takes time, and the transaction may expire meanwhile.
        add_use(sim, row)


def growth(sim: Sim, server: sip.SipServer, message: int, rules: sip.SipRules = BESIDE) -> float:
    """Return the factor by which work has grown with what the server holds, has served and does besides."""
    factor = 1.0 + rules.growth_per_transaction * server.waiting + rules.growth_per_attempt * server.created
    if rules.growth_per_active_worker > 0.0 and message > Message.REGISTER_CREDENTIALS:
        factor += rules.growth_per_active_worker * (rules.processes - server.idle.length - 1)
    return factor * busy_factor(sim, server)


@work_done
def on_query(sim: Sim, worker: sip.Worker, server: sip.SipServer = BESIDE) -> None:
    """The process asks the database for the credentials and sleeps; the database waits for the CPU."""
    cost_ns = max(1, int(server.inflation * sip.sip_rules(sim)[server.row].database_cost_ns * busy_factor(sim, server)))
    submit_for(sim, domains(sim)[server.domain], worker.database, cost_ns, on_result, worker.row, 0)


@work_done
def on_result(sim: Sim, worker: sip.Worker) -> None:
    """The database has answered; the process waits for the CPU again."""
    domain = domains(sim)[sip.sip_servers(sim)[worker.server].domain]
    submit_for(sim, domain, worker.process, worker.left_ns, on_answer, worker.row, 0)


@work_done
def on_answer(sim: Sim, worker: sip.Worker, server: sip.SipServer = BESIDE) -> None:
    """The part of the work before the outputs is done: send them, and do the rest; sleep before if one has no room."""
    # While it speaks: an output without room is noted as this worker's, which then sleeps before the rest of its work.
    server.speaker = worker.row
    mark(sim, worker.packet, PROGRAM_DONE, 0, sim.now_ns, 0)
    answer(sim, worker, packets(sim)[worker.packet])
    server.speaker = 0
    release_datagram(sim, worker)
    if worker.unsent > 0:
        return
    if worker.after_ns > 0:
        submit_next(sim, domains(sim)[server.domain], worker.process, worker.after_ns, on_end, worker.row, 0)
    else:
        release(sim, server, worker.row)


def send_now(sim: Sim, server: sip.SipServer, packet: int) -> None:
    """Send a datagram for which there is room now; wake its process when it was the last that it waited with."""
    row = packets(sim)[packet].sender
    if not put_out(sim, ports(sim)[packets(sim)[packet].port], packet):
        fail(sim, NO_ROOM)
    if row > 0:
        worker = sip.workers(sim)[row]
        worker.unsent -= 1
        # The last of several: only then does the process go on.
        if worker.unsent == 0 and worker.after_ns > 0:
            submit_for(sim, domains(sim)[server.domain], worker.process, worker.after_ns, on_end, row, 0)
        elif worker.unsent == 0:
            release(sim, server, row)


def release_datagram(sim: Sim, worker: sip.Worker) -> None:
    """Let go of a datagram and its transaction."""
    if worker.transaction != 0:
        drop_use(sim, worker.transaction)
        worker.transaction = 0
    mark(sim, worker.packet, ENDED, 0, sim.now_ns, 0)
    drop_ref(sim, packets(sim)[worker.packet].stream)
    packets.free(sim, worker.packet)
    worker.packet = 0


def answer(sim: Sim, worker: sip.Worker, packet: Packet, server: sip.SipServer = BESIDE) -> None:
    """Send what a message causes."""
    message = packet.message
    row = worker.transaction
    if message == Message.REGISTER:
        answer_register(sim, server, packet)
    elif message == Message.REGISTER_CREDENTIALS:
        answer_credentials(sim, server, packet)
    elif message == Message.ACK:
        send_message(sim, server, packet.flow, packet.port, packet.stream, Message.ACK)
    elif row == 0:
        return
    elif message in (Message.INVITE, Message.BYE, Message.MESSAGE):
        if not worker.is_again:
            forward(sim, server, row)
        elif sip.transactions(sim)[row].replied >= 0:
            answer_from(sim, server, sip.transactions(sim)[row], sip.transactions(sim)[row].replied)
    else:
        # This may drop the timer's use; the worker's own keeps the row.
        stop_repeating(sim, row)
        if message == Message.RINGING:
            relay_ringing(sim, server, row)
        else:
            relay_final(sim, worker, message)


def answer_register(sim: Sim, server: sip.SipServer, packet: Packet) -> None:
    """Challenge a registration, or accept it where none are challenged."""
    if sip.sip_rules(sim)[server.row].challenges:
        send_message(sim, server, packet.flow, packet.port, packet.stream, Message.UNAUTHORIZED)
    else:
        server.changed_records += 1
        send_message(sim, server, packet.flow, packet.port, packet.stream, Message.OK_REGISTER)


def answer_credentials(sim: Sim, server: sip.SipServer, packet: Packet) -> None:
    """Accept credentials, or challenge again those whose nonce has been used."""
    if sip.sip_rules(sim)[server.row].nonces_good_once:
        current(sim, server, packet.stream)
        request = sip.requests(sim)[packet.stream]
        if request.nonce_used:
            send_message(sim, server, packet.flow, packet.port, packet.stream, Message.UNAUTHORIZED_AGAIN)
            return
        request.nonce_used = True
    server.changed_records += 1
    send_message(sim, server, packet.flow, packet.port, packet.stream, Message.OK_REGISTER)


def relay_ringing(sim: Sim, server: sip.SipServer, row: int) -> None:
    """Relay a provisional reply, and watch how long it rings."""
    transaction = sip.transactions(sim)[row]
    if transaction.is_final:
        return
    if transaction.replied != Message.RINGING:
        transaction.rings_until_ns = sim.now_ns + sip.sip_rules(sim)[server.row].ringing_timeout_ns
        sip.ringing_list.push(sim, server.ringing, row)
        add_use(sim, row)
    transaction.replied = Message.RINGING
    answer_from(sim, server, transaction, Message.RINGING)


def relay_final(sim: Sim, worker: sip.Worker, message: int, server: sip.SipServer = BESIDE) -> None:
    """Relay a final reply; a repeated one only if it answers an INVITE."""
    if worker.is_again and message != Message.OK_INVITE:
        return
    transaction = sip.transactions(sim)[worker.transaction]
    if not transaction.is_final:
        complete(sim, server, worker.transaction, message)
    answer_from(sim, server, transaction, message)


@work_done
def on_end(sim: Sim, worker_row: int) -> None:
    """The work after the outputs is done."""
    release(sim, sip.sip_servers(sim)[sip.workers(sim)[worker_row].server], worker_row)


def release(sim: Sim, server: sip.SipServer, row: int) -> None:
    """Let a process take the next datagram, or wait for one."""
    # The next datagram at once: the process does not sleep between two, and so is not woken or charged for it.
    server.taken += 1
    if server.buffer.length > 0 and not server.stalled:
        work_on(sim, server, row, packet_list.pop(sim, server.buffer))
    else:
        # At the front: the process that was busy last is the first to be woken.
        sip.worker_list.push_front(sim, server.idle, row)
        if server.idle.length == sip.sip_rules(sim)[server.row].processes:
            server.at_rest_ns = sim.now_ns
