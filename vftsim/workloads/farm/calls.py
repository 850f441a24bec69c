"""Calls through a farm: two user agents for each, an open loop, held for a while, with SIP's retransmission.

A caller sends REGISTER (if it registers), INVITE, on the answer ACK, after ``hold`` BYE.  The called one rings and
answers at once (SIPp's built-in scenarios).  The response time is SIPp's: from the first INVITE to the 200 OK.

Timers (RFC 3261, 17): INVITE, REGISTER and BYE are repeated after T1, 2 T1, 4 T1 ... (all but INVITE: T2 at most),
INVITE until any answer, the 200 OK by the called one until the ACK.  What has not come 64 T1 after it was first asked
for has failed; a call that rings for that long too (the proxy's timer C would wait for three minutes).

Messages from the caller go to where the workload is directed, those of the called one to the server that handles the
call.  **Established** calls: until ``hold`` has passed, calls begun before the run hang up at the rate of the others.

**Generators**: where the user agents run in domains of the model, each message that one sends or receives takes CPU
time there first, as the work of a process of the guest.

Left out: media.
"""

from vftsim.kernel import Engine, EventKind, Sim, at, entry, event, part
from vftsim.kernel.inputs import Feeder
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.delays import add_delay, delays, install_buckets
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets
from vftsim.sampling import Streams
from vftsim.workloads.farm.messages import KINDS, Message, is_passed_on, message_of, serial_of
from vftsim.workloads.farm.parameters import FarmCallsSpec
from vftsim.workloads.farm.records import (
    ENDING,
    ESTABLISHED,
    INVITING,
    PROCEEDING,
    REGISTERING,
    Call,
    FarmLoad,
    calls,
    farm_calls,
    farm_loads,
)
from vftsim.workloads.gamma_feed import duration_ns, gamma_feed

GIVE_UP = 64
"""Times T1: timers B, F and H."""
_S = 1_000_000_000


@event
def on_begin(sim: Sim, farm_load_row: int, token: int) -> None:
    """Begin a call, and plan the next."""
    load = farm_loads(sim)[farm_load_row]
    load.begun += 1
    call = calls(sim)[open_call(sim, load)]
    if is_measured(load, call):
        load.offered += 1
    ask_first(sim, load, call, REGISTERING if load.is_registered else INVITING)
    next_ns = sim.now_ns + max(1, duration_ns(sim, load.gaps, load.gap_ns))
    at(sim, next_ns, EventKind.ARRIVAL, farm_load_row, on_begin, farm_load_row)


@event
def on_earlier(sim: Sim, farm_load_row: int, token: int) -> None:
    """Let a call hang up that was begun before the run, and plan the next such."""
    load = farm_loads(sim)[farm_load_row]
    load.earlier += 1
    call = calls(sim)[open_call(sim, load)]
    call.start_ns = sim.now_ns - load.hold_ns
    call.is_answered = True
    call.is_acknowledged = True
    ask_first(sim, load, call, ENDING)
    next_ns = sim.now_ns + max(1, duration_ns(sim, load.earlier_gaps, load.gap_ns))
    if next_ns < load.earlier_ns:
        at(sim, next_ns, EventKind.ARRIVAL, farm_load_row, on_earlier, farm_load_row)


@part
def open_call(sim: Sim, load: FarmLoad) -> int:
    """Take a row for a call."""
    row = calls.new(sim)
    call = calls(sim)[row]
    call.row = row
    call.uses += 1
    call.load = load.row
    call.front = 0 if load.is_balanced else load.port
    call.turn = load.begun + load.earlier
    call.known = 0
    call.start_ns = sim.now_ns
    call.timer = 0
    call.is_answered = False
    call.is_acknowledged = False
    call.callee_timer = 0
    load.active += 1
    load.most_active = max(load.most_active, load.active)
    return row


@part
def close_call(sim: Sim, load: FarmLoad, call: Call) -> None:
    """Free a call; what is still on the way is nobody's."""
    call.stage = 0
    call.timer = 0
    call.callee_timer = 0
    load.active -= 1
    load.over += 1
    calls.free(sim, call.row)


@part
def is_measured(load: FarmLoad, call: Call) -> bool:
    """Tell whether a call began after the warm-up."""
    return call.start_ns >= load.warmup_ns


@part
def ask_first(sim: Sim, load: FarmLoad, call: Call, stage: int) -> None:
    """Send what a stage begins with."""
    call.stage = stage
    call.asked_ns = sim.now_ns
    call.wait_ns = load.t1_ns
    send_request(sim, load, call)
    look_again(sim, call, sim.now_ns + (load.t1_ns if load.retransmits else GIVE_UP * load.t1_ns))


@part
def send_request(sim: Sim, load: FarmLoad, call: Call) -> None:
    """Send what the caller waits for an answer to."""
    message = int(Message.INVITE)
    if call.stage == REGISTERING:
        message = int(Message.REGISTER)
    elif call.stage == ENDING:
        message = int(Message.BYE)
    send_message(sim, load, call, message, load.port)


@part
def send_message(sim: Sim, load: FarmLoad, call: Call, message: int, port: int) -> None:
    """Send a message to a port of the farm."""
    if sim.now_ns >= load.warmup_ns:
        load.messages += 1
    row = packets.new(sim)
    made = packets(sim)[row]
    made.flow = load.flow
    made.port = port
    made.ring = 0
    made.stream = call.row
    made.what = 2 * KINDS * call.uses + message
    made.size_bytes = load.message_bytes
    made.sent_ns = sim.now_ns
    made.entity = call.row
    if load.message_cost_ns > 0:
        submit(sim, domains(sim)[agent_of(load, call, is_from_called(message))], load.message_cost_ns, on_said, row, 0)
    else:
        send_to_host(sim, row)


@part
def is_from_called(message: int) -> bool:
    """Tell whether it is the called one who says a message."""
    return message == Message.RINGING or message == Message.OK or message == Message.BYE_OK


@part
def agent_of(load: FarmLoad, call: Call, is_called: bool) -> int:
    """Return the domain in which a call's user agent runs: calls take turns, its two ends are half a round apart."""
    ahead = load.agents // 2 if is_called else 0
    return load.first_agent + (call.turn + ahead) % load.agents


@work_done
def on_said(sim: Sim, packet_row: int, argument: int) -> None:
    """The user agent's CPU work for a message that it sends is done."""
    packets(sim)[packet_row].sent_ns = sim.now_ns
    send_to_host(sim, packet_row)


@part
def look_again(sim: Sim, call: Call, due_ns: int) -> None:
    """See to the caller at a time; an event that is planned for earlier looks and goes on waiting."""
    call.due_ns = due_ns
    if call.timer == 0 or call.timer_ns > due_ns:
        call.timer_ns = due_ns
        call.timer = at(sim, due_ns, EventKind.TIMER, call.row, on_caller, call.row)


@event
def on_caller(sim: Sim, call_row: int, token: int) -> None:
    """The caller's time has come: hang up, repeat, or give up."""
    call = calls(sim)[call_row]
    if call.stage == 0 or token != call.timer:
        return
    call.timer = 0
    load = farm_loads(sim)[call.load]
    if call.due_ns > sim.now_ns:
        look_again(sim, call, call.due_ns)
    elif call.stage == ESTABLISHED:
        ask_first(sim, load, call, ENDING)
    elif call.stage == PROCEEDING or sim.now_ns - call.asked_ns >= GIVE_UP * load.t1_ns:
        fail_call(sim, load, call)
    else:
        repeat_request(sim, load, call)


@part
def fail_call(sim: Sim, load: FarmLoad, call: Call) -> None:
    """Give a call up."""
    if is_measured(load, call):
        load.failed += 1
    close_call(sim, load, call)


@part
def repeat_request(sim: Sim, load: FarmLoad, call: Call) -> None:
    """Ask again, and wait for twice as long."""
    if sim.now_ns >= load.warmup_ns:
        load.repeated += 1
    send_request(sim, load, call)
    call.wait_ns *= 2
    if call.stage != INVITING:
        call.wait_ns = min(call.wait_ns, load.t2_ns)
    look_again(sim, call, min(sim.now_ns + call.wait_ns, call.asked_ns + GIVE_UP * load.t1_ns))


@farm_calls.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """A packet has left a server: on from the balancer to the call's server, or to the user agent it is for."""
    what = packets(sim)[packet].what
    call = calls(sim)[packets(sim)[packet].stream]
    if call.stage == 0 or call.uses != serial_of(what):
        packets.free(sim, packet)
    elif is_passed_on(what):
        packets(sim)[packet].what = what - KINDS
        packets(sim)[packet].port = call.front
        send_to_host(sim, packet)
    elif farm_loads(sim)[flow.own].message_cost_ns > 0:
        load = farm_loads(sim)[flow.own]
        agent = agent_of(load, call, is_for_called(message_of(what)))
        submit(sim, domains(sim)[agent], load.message_cost_ns, on_heard, packet, load.row)
    else:
        hear(sim, farm_loads(sim)[flow.own], call, packet)


@part
def is_for_called(message: int) -> bool:
    """Tell whether it is the called one who hears a message."""
    return message == Message.INVITE or message == Message.ACK or message == Message.BYE


@work_done
def on_heard(sim: Sim, packet_row: int, argument: int) -> None:
    """The user agent's CPU work for a message that it receives is done; the call may be over meanwhile."""
    call = calls(sim)[packets(sim)[packet_row].stream]
    if call.stage == 0 or call.uses != serial_of(packets(sim)[packet_row].what):
        packets.free(sim, packet_row)
    else:
        hear(sim, farm_loads(sim)[argument], call, packet_row)


@part
def hear(sim: Sim, load: FarmLoad, call: Call, packet: int) -> None:
    """Let the user agent that a message is for act on it, and free it."""
    message = message_of(packets(sim)[packet].what)
    packets.free(sim, packet)
    if is_for_called(message):
        hear_called(sim, load, call, message)
    else:
        hear_caller(sim, load, call, message)


@part
def hear_called(sim: Sim, load: FarmLoad, call: Call, message: int) -> None:
    """The called one hears a message."""
    if message == Message.BYE:
        send_message(sim, load, call, Message.BYE_OK, call.front)
    elif message == Message.ACK:
        call.is_acknowledged = True
    elif call.callee_timer == 0 and not call.is_acknowledged:
        send_message(sim, load, call, Message.RINGING, call.front)
        send_message(sim, load, call, Message.OK, call.front)
        call.callee_asked_ns = sim.now_ns
        call.callee_wait_ns = load.t1_ns
        if load.retransmits:
            plan_callee(sim, call)


@part
def plan_callee(sim: Sim, call: Call) -> None:
    """Look after a while whether the answer was acknowledged."""
    due_ns = sim.now_ns + call.callee_wait_ns
    call.callee_timer = at(sim, due_ns, EventKind.TIMER, call.row, on_callee, call.row)


@event
def on_callee(sim: Sim, call_row: int, token: int) -> None:
    """Repeat the answer unless it was acknowledged; after 64 T1 nobody will."""
    call = calls(sim)[call_row]
    if call.stage == 0 or token != call.callee_timer or call.is_acknowledged:
        return
    load = farm_loads(sim)[call.load]
    if sim.now_ns - call.callee_asked_ns >= GIVE_UP * load.t1_ns:
        return
    if sim.now_ns >= load.warmup_ns:
        load.repeated += 1
    send_message(sim, load, call, Message.OK, call.front)
    call.callee_wait_ns = min(2 * call.callee_wait_ns, load.t2_ns)
    plan_callee(sim, call)


@part
def hear_caller(sim: Sim, load: FarmLoad, call: Call, message: int) -> None:
    """The caller hears a message."""
    if message == Message.REGISTERED and call.stage == REGISTERING:
        note_registration(sim, load, call)
        ask_first(sim, load, call, INVITING)
    elif (message == Message.TRYING or message == Message.RINGING) and call.stage == INVITING:
        call.stage = PROCEEDING
        look_again(sim, call, call.asked_ns + GIVE_UP * load.t1_ns)
    elif message == Message.OK:
        hear_answer(sim, load, call)
    elif message == Message.BYE_OK and call.stage == ENDING:
        close_call(sim, load, call)


@part
def note_registration(sim: Sim, load: FarmLoad, call: Call) -> None:
    """Count how long a registration took."""
    if is_measured(load, call):
        add_delay(sim, load.registrations, sim.now_ns - call.asked_ns)


@part
def hear_answer(sim: Sim, load: FarmLoad, call: Call) -> None:
    """Acknowledge the answer, every time it comes; the first time the call begins."""
    if not call.is_answered:
        call.is_answered = True
        if sim.now_ns >= load.warmup_ns:
            load.answered += 1
        if is_measured(load, call):
            add_delay(sim, load.responses, sim.now_ns - call.asked_ns)
        call.stage = ESTABLISHED
        look_again(sim, call, sim.now_ns + load.hold_ns)
    send_message(sim, load, call, Message.ACK, load.port)


@farm_calls.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a message that was dropped."""
    farm_loads(sim)[flow.own].dropped += 1


@entry
def start_calls(sim: Sim, row: int, _: int) -> int:
    """Let the first call begin, and the first established one end, half a mean gap apart."""
    load = farm_loads(sim)[row]
    load.start_ns = sim.now_ns
    first_ns = max(1, duration_ns(sim, load.gaps, load.gap_ns))
    at(sim, sim.now_ns + first_ns, EventKind.ARRIVAL, row, on_begin, row)
    if load.earlier_ns > 0:
        load.earlier_ns += sim.now_ns
        at(sim, sim.now_ns + max(1, first_ns // 2), EventKind.ARRIVAL, row, on_earlier, row)
    return 0


def add_calls(
    engine: Engine, feeder: Feeder, port: int, spec: FarmCallsSpec, streams: Streams, number: int, warmup_ns: int
) -> int:
    """Add calls to a port; ``number`` says whose draws are theirs.  Return the row of the load."""
    install_buckets(engine)
    gap_ns = round(_S / spec.rate)
    row, load = engine.add(
        farm_loads,
        port=port,
        gap_ns=gap_ns,
        is_registered=spec.registered,
        retransmits=spec.retransmits,
        gaps=gamma_feed(feeder, streams, "farm_calls.gap", number, gap_ns, spec.gap_cv),
        earlier_gaps=gamma_feed(feeder, streams, "farm_calls.earlier", number, gap_ns, spec.gap_cv),
        hold_ns=spec.hold,
        earlier_ns=spec.hold if spec.established else 0,
        t1_ns=spec.t1,
        t2_ns=spec.t2,
        message_bytes=spec.message_size,
        message_cost_ns=spec.message_cost,
        warmup_ns=warmup_ns,
        responses=engine.new(delays),
        registrations=engine.new(delays),
    )
    load.row = row
    load.flow, flow = engine.add(flows, workload=engine.number(farm_calls), own=row, port=port)
    flow.row = load.flow
    return row


ENTRIES = (start_calls,)
