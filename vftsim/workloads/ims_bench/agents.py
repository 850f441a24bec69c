"""The test systems: user agents that play the benchmark's scenarios against the server.

Callers retransmit by SIPp's rules (see :mod:`vftsim.workloads.sip.retransmission`), callees repeat a 200 to an
INVITE until its ACK arrives (RFC 3261, 13.3.1.4) and answer a repeated request with its last reply.
A delay above its threshold, or a message never answered, makes the attempt inadequately handled.
"""

from vftsim.kernel import BESIDE, EventKind, Sim, at, event, timer
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import Flow, copied, delivered, discarded, flows, lost, packets, workload
from vftsim.workloads.ims_bench.attempt import Attempt, Bench, attempts, benches
from vftsim.workloads.ims_bench.metrics import INVITE200, PMM1, REG1, REG2, REG4, REL1, SES1, SES2
from vftsim.workloads.ims_bench.verdict import count, end, inadequate, measure
from vftsim.workloads.sip.messages import Message, Scenario, add_ref, drop_ref, new_message, streams
from vftsim.workloads.sip.retransmission import Repetition, begin, must_repeat, wait

ims_bench = workload.kind("ims_bench")


def start_attempt(sim: Sim, bench: Bench, row: int) -> None:
    # Referred to before anything is sent: a message dropped at once is the last to refer to its stream.
    attempts(sim)[row].is_kept = True
    add_ref(sim, row)
    scenario = attempts(sim)[row].scenario
    if scenario == Scenario.IMS_UAC:
        bench.uac_begun += 1
        send_request(sim, bench, row, Message.INVITE)
    elif scenario == Scenario.IMS_MSGC:
        send_request(sim, bench, row, Message.MESSAGE)
    else:
        send_request(sim, bench, row, Message.REGISTER)
    update_ref(sim, row)


def update_ref(sim: Sim, row: int) -> None:
    """Last in all that happens to an attempt: refer to its stream for as long as something can happen by itself."""
    attempt = attempts(sim)[row]
    timers = attempt.client.timer | attempt.callee.timer | attempt.ring | attempt.hold
    is_alive = not attempt.ended or timers != 0
    if is_alive and not attempt.is_kept:
        attempt.is_kept = True
        add_ref(sim, row)
    elif attempt.is_kept and not is_alive:
        attempt.is_kept = False
        drop_ref(sim, row)


# Messages out and in


def send_message(sim: Sim, bench: Bench, row: int, message: int) -> None:
    """Send a message, at the price of CPU time if the user agents run on a host of the model."""
    bench.to_server[message] += 1
    packet = new_message(sim, bench.flow, bench.port, row, message)
    is_answer = message not in (Message.REGISTER, Message.INVITE, Message.BYE, Message.MESSAGE)
    if bench.reaction_time_ns > 0 and is_answer:
        due_ns = sim.now_ns + bench.reaction_time_ns
        at(sim, due_ns, EventKind.TIMER, streams(sim)[row].number, on_reacted, packet)
    else:
        send_after_work(sim, bench, packet)


@event
def on_reacted(sim: Sim, packet_row: int) -> None:
    """The user agent has come to an answer."""
    send_after_work(sim, benches(sim)[flows(sim)[packets(sim)[packet_row].flow].state_row], packet_row)


def send_after_work(sim: Sim, bench: Bench, packet: int) -> None:
    """Put a message on its way, after the CPU work for it."""
    packets(sim)[packet].sent_ns = sim.now_ns
    if bench.message_cost_ns > 0:
        submit(sim, domains(sim)[bench.domain], bench.message_cost_ns, on_sent, packet, 0)
    else:
        send_to_host(sim, packet)


on_sent = work_done(send_to_host)


@ims_bench.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int, bench: Bench = BESIDE) -> None:
    """Take in a message from the server, at the price of CPU time if the user agents run on a host of the model."""
    if bench.message_cost_ns > 0:
        submit(sim, domains(sim)[bench.domain], bench.message_cost_ns, on_received, packet, bench.row)
    else:
        handle_message(sim, bench, packet)


@work_done
def on_received(sim: Sim, packet: int, argument: int) -> None:
    """The CPU work for a message from the server is done."""
    handle_message(sim, benches(sim)[argument], packet)


@ims_bench.implements(lost)
def lose(sim: Sim, flow: Flow, packet: int) -> None:
    """Let go of a lost packet's stream."""
    drop_ref(sim, packets(sim)[packet].stream)


@ims_bench.implements(copied)
def copy(sim: Sim, flow: Flow, packet: int) -> None:
    """Refer to the stream once more."""
    add_ref(sim, packets(sim)[packet].stream)


@ims_bench.implements(discarded)
def discard(sim: Sim, flow: Flow, packet: int) -> None:
    """Let go of a discarded packet's stream."""
    drop_ref(sim, packets(sim)[packet].stream)


def handle_message(sim: Sim, bench: Bench, packet: int) -> None:
    """Act on a message from the server, and free it."""
    row = packets(sim)[packet].stream
    message = packets(sim)[packet].message
    bench.from_server[message] += 1
    attempt = attempts(sim)[row]
    if message <= Message.BYE or message == Message.MESSAGE:
        handle_relayed(sim, attempt, row, message)
    else:
        handle_reply(sim, attempt, row, message)
    update_ref(sim, row)
    drop_ref(sim, row)
    packets.free(sim, packet)


def note_received(attempt: Attempt, message: int) -> bool:
    """Note that a user agent has received a message; true the first time."""
    bit = 1 << message
    is_first = attempt.seen & bit == 0
    attempt.seen |= bit
    return is_first


# Requests of the caller


def send_request(sim: Sim, bench: Bench, row: int, message: int) -> None:
    """Send a request, and repeat it until it is answered or given up."""
    attempt = attempts(sim)[row]
    attempt.sent_ns = sim.now_ns
    attempt.request = message
    attempt.outstanding = True
    if message == Message.INVITE:
        begin(attempt.client, bench.t1_ns, 0, bench.invite_retransmissions, 0)
    else:
        begin(attempt.client, bench.t1_ns, bench.t2_ns, bench.request_retransmissions, 0)
    wait(sim, attempt.client, streams(sim)[row].number, on_unanswered, row)
    send_message(sim, bench, row, message)


@timer(attempts, "client.timer")
def on_unanswered(sim: Sim, attempt_row: int) -> None:
    """Nobody has answered the caller's request: repeat it, or fail."""
    attempt = attempts(sim)[attempt_row]
    repeat_or_fail(sim, attempt, attempt.client, attempt_row, on_unanswered, attempt.request)


def repeat_or_fail(sim: Sim, attempt: Attempt, repetition: Repetition, row: int, on_wait: int, message: int) -> None:
    """Send a message again that nobody has answered, or end its attempt in failure."""
    bench = benches(sim)[attempt.bench]
    if must_repeat(sim, repetition, streams(sim)[row].number, on_wait, row):
        bench.repeated[attempt.scenario] += 1
        send_message(sim, bench, row, message)
    else:
        fail_attempt(sim, attempt)
    update_ref(sim, row)


def answered(attempt: Attempt) -> None:
    """Take note that the caller's request is answered."""
    if attempt.outstanding:
        attempt.client.timer = 0
        attempt.outstanding = False


def fail_attempt(sim: Sim, attempt: Attempt, bench: Bench = BESIDE) -> None:
    """End an attempt in failure.

    A request still outstanding goes on being repeated in vain: only a callee that gives up leaves one.
    """
    attempt.outstanding = False
    inadequate(sim, attempt)
    end(sim, bench, attempt)


def overdue(sim: Sim, attempt: Attempt, bench: Bench = BESIDE) -> bool:
    """Tell whether the caller has waited for an answer for longer than the threshold of the delay it makes."""
    if not attempt.outstanding:
        return False
    limit_ns = bench.registration_ns
    if attempt.request == Message.INVITE:
        limit_ns = bench.session_setup_ns
    elif attempt.request == Message.BYE:
        limit_ns = bench.release_ns
    elif attempt.request == Message.MESSAGE:
        limit_ns = bench.message_ns
    return sim.now_ns - attempt.sent_ns > limit_ns


# Replies to the caller


def handle_reply(sim: Sim, attempt: Attempt, row: int, message: int) -> None:
    """Act on the server's reply, or on one that ends an attempt."""
    if message == Message.TRYING:
        provisional(attempt)
    elif message == Message.UNAUTHORIZED or message == Message.UNAUTHORIZED_AGAIN:
        challenged(sim, attempt, row)
    elif message == Message.OK_REGISTER:
        registered(sim, attempt)
    elif message == Message.OK_BYE:
        finished(sim, attempt, message, REL1)
    elif message == Message.OK_MESSAGE:
        finished(sim, attempt, message, PMM1)
    elif not attempt.ended:
        # A 408: nobody has answered the request that the server forwarded.
        answered(attempt)
        fail_attempt(sim, attempt)


def challenged(sim: Sim, attempt: Attempt, row: int, bench: Bench = BESIDE) -> None:
    """Register again with credentials; a second challenge is unexpected."""
    is_first = note_received(attempt, Message.UNAUTHORIZED)
    if attempt.ended:
        return
    if not is_first:
        if bench.fails_on_second_challenge:
            answered(attempt)
            fail_attempt(sim, attempt)
        return
    answered(attempt)
    measure(sim, bench, attempt, REG1, sim.now_ns - attempt.sent_ns)
    send_request(sim, bench, row, Message.REGISTER_CREDENTIALS)


def registered(sim: Sim, attempt: Attempt, bench: Bench = BESIDE) -> None:
    """End a registration."""
    if not note_received(attempt, Message.OK_REGISTER) or attempt.ended:
        return
    answered(attempt)
    if attempt.scenario == Scenario.IMS_REREG:
        measure(sim, bench, attempt, REG4, sim.now_ns - attempt.start_ns)
    measure(sim, bench, attempt, REG2, sim.now_ns - attempt.sent_ns)
    bench.completed += 1
    end(sim, bench, attempt)


def finished(sim: Sim, attempt: Attempt, message: int, delay: int, bench: Bench = BESIDE) -> None:
    """End a call or a page message with the answer to its last request."""
    if not note_received(attempt, message) or attempt.ended:
        return
    answered(attempt)
    measure(sim, bench, attempt, delay, sim.now_ns - attempt.sent_ns)
    bench.completed += 1
    end(sim, bench, attempt)


def provisional(attempt: Attempt) -> None:
    """Repeat the INVITE no more, unless it was answered already."""
    if attempt.seen & (1 << Message.OK_INVITE) == 0:
        answered(attempt)


def answered_call(sim: Sim, attempt: Attempt) -> None:
    """Take note that the callee has answered the call."""
    if not note_received(attempt, Message.OK_INVITE):
        return
    answered(attempt)
    count(sim, attempt, INVITE200, sim.now_ns - attempt.start_ns)
    if attempt.rang_ns == 0:
        attempt.rang_ns = attempt.answered_ns - attempt.ring_ns


@timer(attempts, "hold")
def on_hang_up(sim: Sim, attempt_row: int) -> None:
    attempt = attempts(sim)[attempt_row]
    if not attempt.ended:
        send_request(sim, benches(sim)[attempt.bench], attempt_row, Message.BYE)
    update_ref(sim, attempt_row)


# Setting up a call, and what callees answer


def handle_relayed(sim: Sim, attempt: Attempt, row: int, message: int, bench: Bench = BESIDE) -> None:
    """Act on what the server has relayed: a request to the callee, or a reply to the caller's INVITE."""
    if message == Message.INVITE:
        invited(sim, attempt, row)
    elif message == Message.RINGING:
        provisional(attempt)
        if note_received(attempt, Message.RINGING):
            attempt.rang_ns = sim.now_ns
    elif message == Message.OK_INVITE:
        answered_call(sim, attempt)
        send_message(sim, bench, row, Message.ACK)
    elif message == Message.ACK:
        acknowledged(sim, attempt, row)
    elif message == Message.BYE:
        send_message(sim, bench, row, Message.OK_BYE)
    else:
        send_message(sim, bench, row, Message.OK_MESSAGE)


def invited(sim: Sim, attempt: Attempt, row: int, bench: Bench = BESIDE) -> None:
    """Ring; answer a repeated INVITE with the last reply."""
    if note_received(attempt, Message.INVITE):
        measure(sim, bench, attempt, SES2, sim.now_ns - attempt.start_ns)
        send_message(sim, bench, row, Message.RINGING)
        due_ns = sim.now_ns + attempt.ring_ns
        attempt.ring = at(sim, due_ns, EventKind.TIMER, streams(sim)[row].number, on_pick_up, row)
    elif attempt.answered_ns != 0:
        send_message(sim, bench, row, Message.OK_INVITE)
    else:
        send_message(sim, bench, row, Message.RINGING)


@timer(attempts, "ring")
def on_pick_up(sim: Sim, attempt_row: int) -> None:
    """The callee answers, and repeats the answer until it is acknowledged."""
    attempt = attempts(sim)[attempt_row]
    bench = benches(sim)[attempt.bench]
    attempt.answered_ns = sim.now_ns
    begin(attempt.callee, bench.t1_ns, bench.t2_ns, bench.request_retransmissions, 0)
    wait(sim, attempt.callee, streams(sim)[attempt_row].number, on_unacknowledged, attempt_row)
    send_message(sim, bench, attempt_row, Message.OK_INVITE)
    update_ref(sim, attempt_row)


@timer(attempts, "callee.timer")
def on_unacknowledged(sim: Sim, attempt_row: int) -> None:
    """The answer to a call was not acknowledged: repeat it, or give up."""
    attempt = attempts(sim)[attempt_row]
    repeat_or_fail(sim, attempt, attempt.callee, attempt_row, on_unacknowledged, Message.OK_INVITE)


def acknowledged(sim: Sim, attempt: Attempt, row: int, bench: Bench = BESIDE) -> None:
    """The call is set up: it lasts for its holding time."""
    attempt.callee.timer = 0
    if not note_received(attempt, Message.ACK) or attempt.ended:
        return
    setup_ns = attempt.rang_ns - attempt.start_ns + sim.now_ns - attempt.answered_ns
    measure(sim, bench, attempt, SES1, setup_ns)
    due_ns = sim.now_ns + attempt.hold_ns
    attempt.hold = at(sim, due_ns, EventKind.TIMER, streams(sim)[row].number, on_hang_up, row)
