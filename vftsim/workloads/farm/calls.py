"""Calls through a farm: two user agents for each, an open loop, held for a while, with SIP's retransmission.

A caller sends REGISTER (if it registers), INVITE, on the answer ACK, after ``hold`` BYE.  The callee rings and
answers at once (SIPp's built-in scenarios).  The response time is SIPp's: from the first INVITE to the 200 OK.

Timers (RFC 3261, 17): INVITE, REGISTER and BYE are repeated after T1, 2 T1, 4 T1 ... (all but INVITE: T2 at most),
INVITE until any answer, the 200 OK by the callee until the ACK.  What has not come 64 T1 after it was first asked
for has failed; a call that rings for that long too (the proxy's timer C would wait for three minutes).

Messages from the caller go to where the workload is directed, those of the callee to the server that handles the
call.  **Established** calls: until ``hold`` has passed, calls begun before the run hang up at the rate at which they
began.

**Generators**: where the user agents run in domains of the model, each message that one sends or receives takes CPU
time there first, as the work of a process of the guest.

Left out: media.
"""

import math
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from vftsim.errors import UsageError
from vftsim.kernel import BESIDE, EventKind, Sim, at, entry, event, timer
from vftsim.outcome import Outcome, declare
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.delays import add_delay, histogram
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.link import never_fits
from vftsim.platform.io.packet import Flow, delivered, lost, packets
from vftsim.spec.units import ByteCount, DurationNs, PositiveDurationNs, RatePerSecond, S
from vftsim.stats import DelayHistogram
from vftsim.workloads.common import new_packet
from vftsim.workloads.farm import records as farm
from vftsim.workloads.farm.forwarding import end_forwarding, start_timer_a
from vftsim.workloads.farm.server import FarmServerSpec, OperationSpec
from vftsim.workloads.gaps import LoadProfileSpec, begins_ns, next_gap_ns
from vftsim.workloads.offer import FEWEST_SERVED, Offer
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, Driver, RunProfile, Target, WorkloadSpec
from vftsim.workloads.wire import Wire

_MESSAGE_WEIGHT, _REQUEST_WEIGHT, _DISK_WEIGHT = 0.6, 1.0, 0.4
"""Events of each, in those of a packet on its path."""
_DEEPEST = 16


@event
def on_begin(sim: Sim, load: farm.FarmLoad) -> None:
    """Begin a call, and plan the next."""
    load.begun += 1
    call = farm.calls(sim)[open_call(sim, load, load.begun)]
    if is_measured(load, call):
        load.offered += 1
    begin_stage(sim, call, farm.REGISTERING if load.registered else farm.INVITING)
    next_ns = sim.now_ns + next_gap_ns(sim, load.gaps)
    at(sim, next_ns, EventKind.ARRIVAL, load.row, on_begin, load.row)


@event
def on_earlier(sim: Sim, load: farm.FarmLoad) -> None:
    """Let a call hang up that was begun before the run, and plan the next such."""
    call = farm.calls(sim)[open_call(sim, load, load.earlier - load.held)]
    load.earlier += 1
    call.start_ns = sim.now_ns - load.hold_ns
    call.is_answered = True
    call.is_acknowledged = True
    begin_stage(sim, call, farm.ENDING)
    next_ns = sim.now_ns + next_gap_ns(sim, load.earlier_gaps)
    if next_ns < load.earlier_ns:
        at(sim, next_ns, EventKind.ARRIVAL, load.row, on_earlier, load.row)


def open_call(sim: Sim, load: farm.FarmLoad, number: int) -> int:
    """Take a row for a call."""
    row = farm.calls.new(sim)
    call = farm.calls(sim)[row]
    if call.front != 0:
        call.former = call.front
        call.former_serial = call.uses
    call.uses += 1
    call.load = load.row
    call.front = 0 if load.is_balanced else load.port
    call.number = number
    call.start_ns = sim.now_ns
    call.timer = 0
    call.is_answered = False
    call.is_acknowledged = False
    call.callee_timer = 0
    load.active += 1
    load.most_active = max(load.most_active, load.active + still_held(load, sim.now_ns))
    return row


def still_held(load: farm.FarmLoad, now_ns: int) -> int:
    """Return how many calls from before the run last yet, on average: they take a row when they hang up only."""
    rest_ns = load.earlier_ns - now_ns
    return 0 if rest_ns <= 0 else product_quotient(rest_ns, load.held, load.hold_ns)


def close_call(sim: Sim, call: farm.Call, load: farm.FarmLoad = BESIDE) -> None:
    """Free a call; what is still on its path is nobody's."""
    # Before the row is free: events and packets that still refer to it find it over.
    call.stage = 0
    call.timer = 0
    call.callee_timer = 0
    end_forwarding(call)
    load.active -= 1
    load.ended += 1
    farm.calls.free(sim, call.row)


def is_measured(load: farm.FarmLoad, call: farm.Call) -> bool:
    """Tell whether a call began after the warm-up."""
    return call.start_ns >= load.warmup_ns


def begin_stage(sim: Sim, call: farm.Call, stage: int, load: farm.FarmLoad = BESIDE) -> None:
    call.stage = stage
    call.asked_ns = sim.now_ns
    call.wait_ns = load.t1_ns
    send_request(sim, call)
    recheck_at(sim, call, sim.now_ns + (load.t1_ns if load.retransmits else farm.GIVE_UP * load.t1_ns))


def send_request(sim: Sim, call: farm.Call, load: farm.FarmLoad = BESIDE) -> None:
    """Send what the caller waits for an answer to."""
    message = int(farm.Message.INVITE)
    if call.stage == farm.REGISTERING:
        message = int(farm.Message.REGISTER)
    elif call.stage == farm.ENDING:
        message = int(farm.Message.BYE)
    send_message(sim, call, message, load.port)


def send_message(sim: Sim, call: farm.Call, message: int, port: int, load: farm.FarmLoad = BESIDE) -> None:
    if sim.now_ns >= load.warmup_ns:
        load.messages += 1
    tagged = farm.KINDS * call.uses + message
    row = new_packet(sim, load.flow, port, call.row, call.row, tagged, load.message_size_bytes)
    if load.message_cost_ns > 0:
        agent = agent_of(load, call, is_from_callee(message))
        submit(sim, domains(sim)[agent], load.message_cost_ns, on_sent, row, 0)
    else:
        send_to_host(sim, row)


def is_from_callee(message: int) -> bool:
    return message == farm.Message.RINGING or message == farm.Message.OK or message == farm.Message.BYE_OK


def agent_of(load: farm.FarmLoad, call: farm.Call, is_callee: bool) -> int:
    """Return the domain in which a call's user agent runs: calls take turns, its two ends are half a round apart."""
    ahead = load.agents // 2 if is_callee else 0
    return load.first_agent + (call.number + ahead) % load.agents


@work_done
def on_sent(sim: Sim, packet_row: int) -> None:
    """The user agent's CPU work for a message that it sends is done."""
    packets(sim)[packet_row].sent_ns = sim.now_ns
    send_to_host(sim, packet_row)


def recheck_at(sim: Sim, call: farm.Call, due_ns: int) -> None:
    """Recheck the caller at a time; an event that is planned for earlier waits on."""
    call.due_ns = due_ns
    if call.timer == 0 or call.timer_ns > due_ns:
        call.timer_ns = due_ns
        call.timer = at(sim, due_ns, EventKind.TIMER, call.row, on_caller, call.row)


@timer(farm.calls, "timer")
def on_caller(sim: Sim, call: farm.Call) -> None:
    """The caller's time has come: hang up, repeat, or give up."""
    if call.stage == 0:
        return
    load = farm.loads(sim)[call.load]
    start_timer_a(sim, call)
    if call.due_ns > sim.now_ns:
        recheck_at(sim, call, call.due_ns)
    elif call.stage == farm.ESTABLISHED:
        begin_stage(sim, call, farm.ENDING)
    elif call.stage == farm.PROCEEDING or sim.now_ns - call.asked_ns >= farm.GIVE_UP * load.t1_ns:
        fail_call(sim, call)
    else:
        repeat_request(sim, call)


def fail_call(sim: Sim, call: farm.Call, load: farm.FarmLoad = BESIDE) -> None:
    if is_measured(load, call):
        load.failed += 1
    close_call(sim, call)


def repeat_request(sim: Sim, call: farm.Call, load: farm.FarmLoad = BESIDE) -> None:
    """Ask again, and wait for twice as long."""
    if sim.now_ns >= load.warmup_ns:
        load.repeated += 1
    send_request(sim, call)
    call.wait_ns *= 2
    if call.stage != farm.INVITING:
        call.wait_ns = min(call.wait_ns, load.t2_ns)
    recheck_at(sim, call, min(sim.now_ns + call.wait_ns, call.asked_ns + farm.GIVE_UP * load.t1_ns))


@farm.farm_calls.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """A packet has left a server: on from the balancer to the call's server, or to the user agent it is for."""
    tagged = packets(sim)[packet].message
    call = farm.calls(sim)[packets(sim)[packet].stream]
    if farm.is_forwarded(tagged):
        # Also what is over by now: a balancer knows of packets, not of calls.
        packets(sim)[packet].message = -tagged
        packets(sim)[packet].port = farm.visits(sim)[packet].forward_to
        send_to_host(sim, packet)
    elif call.stage == 0 or call.uses != farm.serial_of(tagged):
        packets.free(sim, packet)
    elif farm.loads(sim)[flow.state_row].message_cost_ns > 0:
        load = farm.loads(sim)[flow.state_row]
        agent = agent_of(load, call, is_for_callee(farm.message_of(tagged)))
        submit(sim, domains(sim)[agent], load.message_cost_ns, on_received, packet, load.row)
    else:
        handle_message(sim, call, packet)


def is_for_callee(message: int) -> bool:
    return message == farm.Message.INVITE or message == farm.Message.ACK or message == farm.Message.BYE


@work_done
def on_received(sim: Sim, packet_row: int) -> None:
    """The user agent's CPU work for a message that it receives is done; the call may be over meanwhile."""
    call = farm.calls(sim)[packets(sim)[packet_row].stream]
    if call.stage == 0 or call.uses != farm.serial_of(packets(sim)[packet_row].message):
        packets.free(sim, packet_row)
    else:
        handle_message(sim, call, packet_row)


def handle_message(sim: Sim, call: farm.Call, packet: int) -> None:
    """Let the user agent that a message is for act on it, and free it."""
    message = farm.message_of(packets(sim)[packet].message)
    packets.free(sim, packet)
    if is_for_callee(message):
        handle_at_callee(sim, call, message)
    else:
        handle_at_caller(sim, call, message)


def handle_at_callee(sim: Sim, call: farm.Call, message: int, load: farm.FarmLoad = BESIDE) -> None:
    if message == farm.Message.BYE:
        send_message(sim, call, farm.Message.BYE_OK, call.front)
    elif message == farm.Message.ACK:
        call.is_acknowledged = True
    elif call.callee_timer == 0 and not call.is_acknowledged:
        send_message(sim, call, farm.Message.RINGING, call.front)
        send_message(sim, call, farm.Message.OK, call.front)
        call.callee_asked_ns = sim.now_ns
        call.callee_wait_ns = load.t1_ns
        if load.retransmits:
            plan_callee(sim, call)


def plan_callee(sim: Sim, call: farm.Call) -> None:
    """Recheck after a while whether the answer was acknowledged."""
    due_ns = sim.now_ns + call.callee_wait_ns
    call.callee_timer = at(sim, due_ns, EventKind.TIMER, call.row, on_callee, call.row)


@event
def on_callee(sim: Sim, call: farm.Call, token: int) -> None:
    """Repeat the answer unless it was acknowledged; after 64 T1 nobody will."""
    if call.stage == 0 or token != call.callee_timer or call.is_acknowledged:
        return
    load = farm.loads(sim)[call.load]
    if sim.now_ns - call.callee_asked_ns >= farm.GIVE_UP * load.t1_ns:
        return
    if sim.now_ns >= load.warmup_ns:
        load.repeated += 1
    send_message(sim, call, farm.Message.OK, call.front)
    call.callee_wait_ns = min(2 * call.callee_wait_ns, load.t2_ns)
    plan_callee(sim, call)


def handle_at_caller(sim: Sim, call: farm.Call, message: int, load: farm.FarmLoad = BESIDE) -> None:
    if message == farm.Message.REGISTERED and call.stage == farm.REGISTERING:
        if is_measured(load, call):
            add_delay(sim, load.registrations, sim.now_ns - call.asked_ns)
        begin_stage(sim, call, farm.INVITING)
    elif (message == farm.Message.TRYING or message == farm.Message.RINGING) and call.stage == farm.INVITING:
        call.stage = farm.PROCEEDING
        recheck_at(sim, call, call.asked_ns + farm.GIVE_UP * load.t1_ns)
    elif message == farm.Message.OK:
        handle_ok(sim, call)
    elif message == farm.Message.BYE_OK and call.stage == farm.ENDING:
        close_call(sim, call)


def handle_ok(sim: Sim, call: farm.Call, load: farm.FarmLoad = BESIDE) -> None:
    """Acknowledge the answer, every time it comes; the first time the call begins."""
    if not call.is_answered:
        call.is_answered = True
        if sim.now_ns >= load.warmup_ns:
            load.answered += 1
        if is_measured(load, call):
            add_delay(sim, load.responses, sim.now_ns - call.asked_ns)
        call.stage = farm.ESTABLISHED
        recheck_at(sim, call, sim.now_ns + load.hold_ns)
    send_message(sim, call, farm.Message.ACK, load.port)


@farm.farm_calls.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    load = farm.loads(sim)[flow.state_row]
    if sim.now_ns >= load.warmup_ns:
        load.dropped += 1


@entry
def start_calls(sim: Sim, load: farm.FarmLoad) -> None:
    """Let the first call begin, and the first established one end, half a mean gap apart."""
    first_ns = begins_ns(sim, load.gaps) + next_gap_ns(sim, load.gaps)
    at(sim, sim.now_ns + first_ns, EventKind.ARRIVAL, load.row, on_begin, load.row)
    if load.earlier_ns > 0:
        load.earlier_ns += sim.now_ns
        first_ns = max(1, first_ns // 2) if load.earlier_gaps.stretch == 0 else next_gap_ns(sim, load.earlier_gaps)
        if first_ns < load.hold_ns:
            at(sim, sim.now_ns + first_ns, EventKind.ARRIVAL, load.row, on_earlier, load.row)


class CallsAnswered(Outcome):
    """What the user agents of a farm, or of several together, got; counts from the end of the warm-up."""

    offered: int = declare.total(label="calls offered")
    answered: int = declare.total(label="calls answered")
    failed: int = declare.total(label="calls failed", better="lower", headline=True)
    messages: int = declare.total(label="messages sent")
    repeated: int = declare.total(label="messages repeated", better="lower")
    dropped: int = declare.total(label="messages dropped", better="lower")
    response: DelayHistogram = declare.delays(
        label="INVITE to 200, less ringing", better="lower", headline=("p50", "p95")
    )
    registration: DelayHistogram = declare.delays(label="REGISTER to 200", better="lower")
    offered_rate = declare.rate(offered, label="calls offered", known_as=("offered_per_s",))
    rate = declare.rate(answered, label="calls answered", better="higher", headline=True, known_as=("calls_per_s",))
    answered_of_offered = declare.total(
        source=lambda seen: seen.response.count, label="calls offered and answered", better="higher"
    )
    lag = declare.total(
        source=lambda seen: max(seen.offered - seen.answered, 0), label="answers fewer than calls", better="lower"
    )
    served = declare.ratio(
        answered_of_offered,
        offered,
        unit="%",
        label="offered calls answered by the end",
        better="higher",
        headline=True,
    )
    behind = declare.ratio(lag, offered, unit="%", label="answers behind calls", better="lower")
    retransmissions = declare.ratio(
        repeated, messages, unit="%", label="messages repeated", better="lower", known_as=("retransmissions_percent",)
    )


class CallsSeen(CallsAnswered):
    """What the user agents of one farm saw."""

    active_calls: int = declare.number(label="calls at the end")
    most_active_calls: int = declare.number(label="calls at a time, most")


class FarmWire(Wire):
    """Names of messages; a stream is one call after another."""

    def name(self, message: int) -> str:
        """Return which message it is."""
        return farm.Message(abs(message) % farm.KINDS).name.replace("_", " ")

    def exchange(self, message: int) -> int:
        """Return the call's number in its stream."""
        return abs(message) // farm.KINDS

    def is_last(self, message: int) -> bool:
        """Tell whether it has come to a user agent, not to a balancer's server."""
        return message > 0


def _weight_of(server: ApplicationSpec | None, message: str, profile: RunProfile, depth: int = 0) -> float:
    """Return the weight of a message with all that it causes."""
    if depth > _DEEPEST:
        raise UsageError("requests between servers go in a circle: leave one of their `asks` out")
    weight = _REQUEST_WEIGHT if depth else _MESSAGE_WEIGHT
    used: Mapping[str, OperationSpec] = server.operations if isinstance(server, FarmServerSpec) else {}  # type: ignore[assignment]
    if message in used and profile.peer is not None:
        weight += _DISK_WEIGHT * used[message].disk_operations
        weight += math.fsum(
            ask.times * _weight_of(profile.peer(ask.to), ask.message, profile, depth + 1) for ask in used[message].asks
        )
    return weight


@WORKLOADS.register
class FarmCallsSpec(LoadProfileSpec, WorkloadSpec):
    """Calls through a farm at a rate, whatever becomes of them."""

    speaks = "farm"
    load_key = "rate"
    objectives = ("behind <= 5",)
    fewest_judged = FEWEST_SERVED
    needs_link = True
    agents_may_be_many = True
    entries = (start_calls,)
    outcomes = (CallsSeen,)

    kind: Literal["farm_calls"] = "farm_calls"
    rate: RatePerSecond = Field(gt=0, description="Calls begun a second.")
    gap_cv: float = Field(
        1.0,
        ge=0.0,
        le=5.0,
        description="Coefficient of variation of the gaps between calls (gamma). Default 1, Poisson: many generators "
        "beside one another; 0: one generator that keeps time.",
    )
    registered: bool = Field(False, description="The caller registers before each call, both have accounts.")
    hold: PositiveDurationNs = Field(
        60_000_000_000, description="From the answer to the BYE. Default: 60 s, the record's."
    )
    established: bool = Field(
        True,
        description="Calls begun before the run hang up in it, at the rate at which they began (that of the end of a "
        "`load_profile`): it begins in the steady state.",
    )
    retransmits: bool = Field(True, description="User agents repeat what is not answered (RFC 3261, 17).")
    t1: PositiveDurationNs = Field(
        500_000_000, description="First repetition; then after twice as long each time. RFC 3261."
    )
    t2: PositiveDurationNs = Field(
        4_000_000_000, description="Longest wait between repetitions of all but INVITE. RFC 3261."
    )
    message_size: ByteCount = Field(500, ge=64, le=65_535, description="A message on the wire. Assumption.")
    agents_in: str | None = Field(
        None,
        description="Domain in which the user agents run; calls take turns on its copies, and the called one is on "
        "another than the caller, if there are two. On machines of their own if not given.",
    )
    message_cost: DurationNs = Field(
        0, description="CPU time of each message that user agents in a domain send or receive, its path included."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.t2 < self.t1:
            raise ValueError("t2 is the longest wait and cannot be below t1, the first")
        return self

    @model_validator(mode="after")
    def _agents_that_cost(self) -> Self:
        if self.message_cost and self.agents_in is None:
            raise ValueError("message_cost is CPU time of a domain of the model: say which with agents_in")
        return self

    @property
    def attempts_per_s(self) -> float:
        return self.rate * self.mean_share

    @property
    def patience_ns(self) -> int:
        """Timer B."""
        return farm.GIVE_UP * self.t1

    def events_a_packet(self, profile: RunProfile) -> float:
        """More where the user agents' CPU work is modelled."""
        return 0.0 if self.message_cost == 0 else 4.0

    def wire(self, application: ApplicationSpec) -> Wire:
        """Each call by itself."""
        return FarmWire()

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int, queue_bytes: int) -> str:
        """A message is one packet."""
        return never_fits("message_size", self.message_size, queue_bytes)

    def packets(self, profile: RunProfile) -> float:
        """Every message of every call, through balancer and front end, and what it makes them ask and read."""
        return self.attempts_per_s * profile.seconds * self._weight(profile)

    def _weight(self, profile: RunProfile) -> float:
        """Return a call's messages, requests and disk operations, each by its events; measured."""
        caller = (*(("register",) if self.registered else ()), "invite", "ack", "bye")
        handler, weight = profile.application, 0.0
        if isinstance(handler, FarmServerSpec) and handler.passes_to is not None and profile.peer is not None:
            handler, weight = profile.peer(handler.passes_to), _MESSAGE_WEIGHT * len(caller)
        return weight + math.fsum(_weight_of(handler, each, profile) for each in (*caller, "ringing", "ok", "bye_ok"))

    def in_flight(self, profile: RunProfile) -> float:
        """Return the calls that are held."""
        return self.rate * self.highest_share * min(profile.seconds, self.hold / S)

    def install(self, target: Target) -> Driver:
        """Add the user agents."""
        load = target.add_clients(
            farm.loads,
            self,
            # Of calls that end now: they began as long ago as one is held, so many gaps, to the nearest.
            held=math.floor(-self.load_ns(-self.hold) / S * self.rate + 0.5),
            earlier_ns=self.hold if self.established else 0,
            responses=target.add_delays(),
            registrations=target.add_delays(),
            is_balanced=target.application.forwards_to is not None,
            first_agent=next(iter(target.agents_domains), 0),
            agents=len(target.agents_domains),
        )
        target.set_gaps(load.gaps, f"{self.kind}.gap", target.number, self.rate, self.gap_cv)
        target.set_gaps(load.earlier_gaps, f"{self.kind}.earlier", target.number, self.rate, self.gap_cv)
        profile_rows = self.add_profile(target.engine)
        self.begin_profile(load.gaps, profile_rows)
        self.begin_profile(load.earlier_gaps, profile_rows, -self.hold)

        def measured() -> CallsSeen:
            return CallsSeen.of_row(
                load,
                active_calls=int(load.active + still_held(load, target.engine.now_ns)),
                most_active_calls=int(load.most_active),
                response=histogram(target.engine, int(load.responses)),
                registration=histogram(target.engine, int(load.registrations)),
                seconds=target.measured_s(),
            )

        def offered() -> Offer | None:
            over = int(load.answered) + int(load.failed)
            return self.unanswered(int(load.offered), over, round(target.measured_s() * S), "calls")

        return Driver(target, load, start_calls, measured, offered)
