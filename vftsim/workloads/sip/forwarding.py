"""What a SIP server sends: replies, forwarded requests, and those again that nobody has answered."""

from vftsim.kernel import BESIDE, Sim, event
from vftsim.platform.cpu.jobs import submit_for
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import ports
from vftsim.platform.io.ring import wait_for_slot
from vftsim.platform.protection.guard import is_dead, put_out
from vftsim.workloads.sip import records as sip
from vftsim.workloads.sip.messages import Message, new_message, streams
from vftsim.workloads.sip.retransmission import NO_LIMIT, begin, must_repeat, wait
from vftsim.workloads.sip.transactions import add_use, complete, drop_use, is_in_memory
from vftsim.workloads.sip.utilization import busy_factor

TIMER_PROCESS = -1
"""Who sends what no worker sends."""


def send_message(sim: Sim, server: sip.SipServer, flow: int, port: int, stream: int, message: int) -> None:
    """Put a datagram on its way to the user agents, or have the process that sends it sleep until there is room."""
    packet = new_message(sim, flow, port, stream, message)
    if put_out(sim, ports(sim)[port], packet):
        return
    if server.speaker == 0:
        wait_for_slot(sim, ports(sim)[port], packet, TIMER_PROCESS)
    else:
        sip.workers(sim)[server.speaker].unsent += 1
        wait_for_slot(sim, ports(sim)[port], packet, server.speaker)


def answer_from(sim: Sim, server: sip.SipServer, transaction: sip.Transaction, message: int) -> None:
    send_message(sim, server, transaction.flow, transaction.port, transaction.stream, message)


def forward(sim: Sim, server: sip.SipServer, row: int, rules: sip.SipRules = BESIDE) -> None:
    """Forward a new request, and repeat it until it is answered."""
    transaction = sip.transactions(sim)[row]
    ceiling_ns = rules.t2_ns
    if transaction.message == Message.INVITE:
        transaction.replied = Message.TRYING
        answer_from(sim, server, transaction, Message.TRYING)
        ceiling_ns = 0
    answer_from(sim, server, transaction, transaction.message)
    begin(transaction.forward, rules.t1_ns, ceiling_ns, NO_LIMIT, sim.now_ns + rules.reply_timeout_ns)
    wait(sim, transaction.forward, streams(sim)[transaction.stream].number, on_unanswered, row)
    # The timer refers to the transaction until it is stopped or gives up.
    add_use(sim, row)


def stop_repeating(sim: Sim, row: int) -> None:
    """Take note of a reply to a forwarded request."""
    transaction = sip.transactions(sim)[row]
    if transaction.forward.timer != 0:
        # Before the use is dropped, with which the row may be freed.
        transaction.forward.timer = 0
        drop_use(sim, row)


@event
def on_unanswered(sim: Sim, transaction: sip.Transaction, token: int) -> None:
    """Nobody has answered a forwarded request: repeat it, or give up."""
    if token != transaction.forward.timer:
        return
    if not is_in_memory(sim, transaction.row):
        stop_repeating(sim, transaction.row)
        return
    server = sip.sip_servers(sim)[transaction.server]
    if server.is_flushing and sip.sip_rules(sim)[server.row].timers_wait_for_flush:
        # Its timer has gone off and is not planned again: catch_up() does both, or finds an answer.
        sip.late_list.push(sim, server.late, transaction.row)
        add_use(sim, transaction.row)
    else:
        repeat_or_give_up(sim, server, transaction.row)


def repeat_or_give_up(sim: Sim, server: sip.SipServer, transaction_row: int) -> None:
    """Send a forwarded request again, unless it is time to give it up."""
    transaction = sip.transactions(sim)[transaction_row]
    number = streams(sim)[transaction.stream].number
    if must_repeat(sim, transaction.forward, number, on_unanswered, transaction_row):
        if not is_dead(sim, ports(sim)[transaction.port]):
            server.retransmissions += 1
        cost_ns = int(server.touch_ns * sip.sip_rules(sim)[server.row].own_repeat * busy_factor(sim, server))
        add_use(sim, transaction_row)
        do_in_timer_process(sim, server, cost_ns + server.send_cost_ns, on_repeat, transaction_row)
    else:
        give_up(sim, server, transaction_row)
        # That of the timer, which is not planned any more.
        drop_use(sim, transaction_row)


@work_done
def on_repeat(sim: Sim, transaction: sip.Transaction) -> None:
    """The CPU work of a repetition is done: send it, unless a reply has come."""
    if transaction.forward.timer != 0:
        answer_from(sim, sip.sip_servers(sim)[transaction.server], transaction, transaction.message)
    # Last: it may be the use that keeps the row.
    drop_use(sim, transaction.row)


def give_up(sim: Sim, server: sip.SipServer, row: int) -> None:
    """Give up a request that nobody has answered: the caller gets 408, at the price of one message sent."""
    if sip.transactions(sim)[row].is_final:
        return
    complete(sim, server, row, Message.REQUEST_TIMEOUT)
    # Until the 408 is sent: callers drop their use when they return.
    add_use(sim, row)
    cost_ns = int(server.touch_ns * busy_factor(sim, server)) + server.send_cost_ns
    do_in_timer_process(sim, server, cost_ns, on_give_up, row)


def do_in_timer_process(sim: Sim, server: sip.SipServer, cost_ns: int, on_done: int, row: int) -> None:
    """Have the timer process do a piece of work."""
    submit_for(sim, domains(sim)[server.domain], server.timer_process, cost_ns, on_done, row, 0)


def catch_up(sim: Sim, server: sip.SipServer) -> None:
    """Repeat or give up what came due while the timer process was busy, unless an answer has come since."""
    while server.late.length > 0:
        row = sip.late_list.pop(sim, server.late)
        if sip.transactions(sim)[row].forward.timer != 0:
            repeat_or_give_up(sim, server, row)
        # That of the list.
        drop_use(sim, row)


@work_done
def on_give_up(sim: Sim, transaction: sip.Transaction) -> None:
    """The CPU work of a 408 is done."""
    answer_from(sim, sip.sip_servers(sim)[transaction.server], transaction, Message.REQUEST_TIMEOUT)
    drop_use(sim, transaction.row)
