"""Clients that send requests and wait for answers, in a closed loop or an open one.

**Closed** (``request_response``): each client sends a request, waits for the answer, turns around, and sends the next.
What netperf's TCP_RR measures: the rate is one over the time of a round, so it says how long a message takes, not how
many the server could handle.  The **turn-around time** of a client is what lies between an answer's arrival and the
next request (with exponential times the closed queue of the machine-repair model): of a user, the time to think.

**Open** (``open_requests``): requests come at a rate, whatever becomes of those before them (a Poisson process, unless
``gap_cv`` says otherwise), which may have a load profile (:mod:`.gaps`).

A request of the closed loop is repeated as TCP would: after a first wait, then after twice as long each time (RFC
6298, 5.5), at most a minute, if it or its answer is lost by then; one that the server has is acknowledged, and waits
for as long as it takes.  These clients never give up.  An open request is repeated whenever its time-out is over,
twice as long each time, and given up after ``retries`` repetitions.  An answer to a request that has been answered
already is ignored.  An answer that says that the request has failed ends it: it counts apart from the others, and its
time is no response time.

A request or an answer goes in windows (:mod:`.windows`): of a closed loop on a connection that each client keeps, of
an open one on one that nobody has used for long.  Left out: how connections are opened.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, EventKind, Row, Sim, Table, at, entry, event, timer
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import add_delay_since, histogram
from vftsim.platform.io import packet as io
from vftsim.platform.io.host_cards import cards, send_to_host
from vftsim.platform.io.link import links
from vftsim.platform.rows import add_row
from vftsim.spec.units import ByteCount, DurationNs, PositiveDurationNs, RatePerSecond, S
from vftsim.stats import DelayHistogram
from vftsim.workloads.common import WorkloadRow, duration_ns, new_packet, unread_without
from vftsim.workloads.gaps import Gaps, LoadProfileSpec, begins_ns, next_gap_ns
from vftsim.workloads.offer import FEWEST_SERVED, UNANSWERED, Offer
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, Driver, RunProfile, Target, WorkloadSpec
from vftsim.workloads.windows import (
    Window,
    begin_message,
    forget_window,
    goes_on_at_client,
    open_bytes,
    use_next,
    widen,
    widen_sender,
)
from vftsim.workloads.wire import Wire

request_response = io.workload.kind("request_response")
open_requests = io.workload.kind("open_requests")

LONGEST_RETRY_NS = 60_000_000_000
ORDER = 1 << 20
"""Orders arrivals of open loops behind those of clients at one instant."""
_MOST_UNTIMED = 0.25
"""Where more of the requests have no answer by the end, those with one are the fast ones."""
_WORK_NS = 30_000
"""Least work of a request on its path, for an estimate."""


class Exchange(WorkloadRow):
    """The requests of one workload; clients of a closed loop stand in consecutive rows.

    Rounds that began before ``warmup_ns`` count in ``requests``, ``answered``, ``repeated`` and ``dropped`` only;
    ``answers`` are those that came after it, ``failed`` those that say so, ``given_up`` requests after it.
    An open one has ``gaps`` between requests, each of which is a client that leaves after its answer, or after
    ``most_tries``.  ``retry_ns`` is the first wait before a request is repeated, 0: it never is.
    """

    first_client: int
    clients: int
    request_size_bytes: int
    turn_around_ns: int
    retry_ns: int
    gaps: Gaps
    most_tries: int
    warmup_ns: int
    offered: int
    requests: int
    answered: int
    repeated: int
    dropped: int
    answers: int
    failed: int
    given_up: int
    latency: int


class Client(Row):
    """One client; ``request`` is the number of the one under way.

    The wait for its answer is over at ``due_ns`` (0: there is none); ``timer`` is the event that looks, at ``look_ns``,
    which is not later: one is moved on, in place of one planned for each request.
    So many packets of the request or its answer are ``on_way``; if none is, it was lost.  What a client of a closed
    loop and its server may send at once: ``requests``, ``answers``.
    """

    exchange: int
    turn_arounds: int
    first_ns: int
    request: int
    sent_ns: int
    wait_ns: int
    tries: int
    due_ns: int
    timer: int
    look_ns: int
    on_way: int
    requests: Window
    answers: Window


exchanges = Table("exchanges", Exchange, 4096)
clients = Table("exchange_clients", Client, 1 << 21, "lower the rate, or shorten the time-out or the measured time")


@event
def on_turn(sim: Sim, client: Client) -> None:
    """Send a client's next request."""
    begin_request(sim, exchanges(sim)[client.exchange], client)


@event
def on_arrival(sim: Sim, exchange: Exchange) -> None:
    """Send a request of an open loop, and plan the next."""
    row = clients.new(sim, exchange=exchange.row)
    client = clients(sim)[row]
    begin_request(sim, exchange, client)
    next_ns = sim.now_ns + next_gap_ns(sim, exchange.gaps)
    at(sim, next_ns, EventKind.ARRIVAL, ORDER + exchange.row, on_arrival, exchange.row)


def begin_request(sim: Sim, exchange: Exchange, client: Client) -> None:
    """Send a new request."""
    client.request += 1
    client.sent_ns = sim.now_ns
    client.wait_ns = exchange.retry_ns
    client.tries = 0
    client.on_way = 0
    exchange.requests += 1
    if sim.now_ns >= exchange.warmup_ns:
        exchange.offered += 1
    send_request(sim, exchange, client)


def send_request(sim: Sim, exchange: Exchange, client: Client) -> None:
    """Send the present request and watch for its answer."""
    client.tries += 1
    client.on_way += 1
    if exchange.retry_ns > 0:
        wait_for_answer(sim, client)
    size_bytes = exchange.request_size_bytes
    packet_record = new_packet(sim, exchange.flow, exchange.port, client.row, client.row, client.request, size_bytes)
    if is_closed(exchange):
        begin_message(sim, packet_record, open_bytes(sim, client.requests))
        widen_sender(sim, client.requests, packet_record, client.requests.round_ns, False)
    else:
        begin_message(sim, packet_record, 0)
    send_to_host(sim, packet_record)


def is_closed(exchange: Exchange) -> bool:
    """Tell whether its clients keep their connections."""
    return exchange.gaps.whole_ns == 0


def wait_for_answer(sim: Sim, client: Client) -> None:
    """Let the wait of a try begin."""
    client.due_ns = sim.now_ns + client.wait_ns
    if client.timer == 0 or client.look_ns > client.due_ns:
        plan_look(sim, client)


def plan_look(sim: Sim, client: Client) -> None:
    """Look for the answer when the wait is over."""
    client.look_ns = client.due_ns
    client.timer = at(sim, client.due_ns, EventKind.TIMER, client.row, on_no_answer, client.row)


@timer(clients, "timer")
def on_no_answer(sim: Sim, client: Client) -> None:
    """Repeat a request that has not been answered, or give it up."""
    if client.due_ns == 0:
        return
    # The wait is that of a later request, perhaps of the row's next user.
    if client.due_ns > sim.now_ns:
        plan_look(sim, client)
        return
    exchange = exchanges(sim)[client.exchange]
    if exchange.most_tries > 0 and client.tries == exchange.most_tries:
        if client.sent_ns >= exchange.warmup_ns:
            exchange.given_up += 1
        end_request(sim, exchange, client)
        return
    client.wait_ns = max(client.wait_ns, min(2 * client.wait_ns, LONGEST_RETRY_NS))
    if is_closed(exchange) and client.on_way > 0:
        # The server's TCP has acknowledged it: there is nothing to repeat as long as it is there.
        wait_for_answer(sim, client)
        return
    exchange.repeated += 1
    # Which of the two was lost the client does not know, and both have been idle for its wait.
    forget_window(client.requests)
    forget_window(client.answers)
    send_request(sim, exchange, client)


def end_request(sim: Sim, exchange: Exchange, client: Client) -> None:
    """Turn around to the next request; an open loop's client leaves."""
    client.due_ns = 0
    client.sent_ns = -1
    if exchange.gaps.whole_ns > 0:
        # Last: the row may have another user from here on.
        clients.free(sim, client.row)
        return
    next_ns = sim.now_ns + duration_ns(sim, client.turn_arounds, exchange.turn_around_ns)
    at(sim, next_ns, EventKind.TIMER, client.row, on_turn, client.row)


@request_response.implements(io.delivered)
@open_requests.implements(io.delivered)
def handle_answer(sim: Sim, flow: io.Flow, packet: int, exchange: Exchange = BESIDE) -> None:
    """End the request that an answer is for, unless it has ended."""
    client = clients(sim)[io.packets(sim)[packet].stream]
    if goes_on(sim, exchange, client, packet):
        return
    message = io.packets(sim)[packet].message
    io.packets.free(sim, packet)
    if abs(message) != client.request or client.sent_ns < 0:
        return
    if message < 0:
        if sim.now_ns >= exchange.warmup_ns:
            exchange.failed += 1
    else:
        exchange.answered += 1
        if sim.now_ns >= exchange.warmup_ns:
            exchange.answers += 1
        add_delay_since(sim, exchange.latency, client.sent_ns, exchange.warmup_ns)
    end_request(sim, exchange, client)


def goes_on(sim: Sim, exchange: Exchange, client: Client, packet: int) -> bool:
    """Answer a window or an acknowledgement, and keep what it says of the client's connection."""
    is_acknowledgement = io.packets(sim)[packet].acked_bytes > 0
    if not is_closed(exchange):
        return goes_on_at_client(sim, packet)
    if not is_acknowledgement:
        widen(sim, client.answers, packet, links(sim)[cards(sim)[io.ports(sim)[exchange.port].card].to_host].latency_ns)
        return goes_on_at_client(sim, packet)
    use_next(sim, client.requests, packet, False)
    send_to_host(sim, packet)
    return True


@request_response.implements(io.window_bytes)
def window_of_answers(sim: Sim, flow: io.Flow, packet: int) -> int:
    """Return what the server may send a client at once."""
    return open_bytes(sim, clients(sim)[io.packets(sim)[packet].stream].answers)


@request_response.implements(io.lost)
@open_requests.implements(io.lost)
def count_drop(sim: Sim, flow: io.Flow, packet: int) -> None:
    """Count a request or an answer that was dropped."""
    exchanges(sim)[flow.state_row].dropped += 1
    note_loss(sim, packet)


@request_response.implements(io.copied)
def note_copy(sim: Sim, flow: io.Flow, packet: int) -> None:
    """A copy of a request or an answer is on its way too."""
    client = clients(sim)[io.packets(sim)[packet].stream]
    if abs(io.packets(sim)[packet].message) == client.request:
        client.on_way += 1


@request_response.implements(io.discarded)
def take_discarded(sim: Sim, flow: io.Flow, packet: int) -> None:
    """An answer of a machine that is dead never comes."""
    note_loss(sim, packet)


def note_loss(sim: Sim, packet: int) -> None:
    """Let the client repeat its request when its wait is over, if nothing of the one under way is left."""
    client = clients(sim)[io.packets(sim)[packet].stream]
    if abs(io.packets(sim)[packet].message) == client.request:
        client.on_way -= 1


@entry
def start_exchange(sim: Sim, exchange: Exchange) -> None:
    """Let the clients begin, each at its time; of an open loop the first comes after a gap."""
    if exchange.gaps.whole_ns > 0:
        first_ns = sim.now_ns + begins_ns(sim, exchange.gaps) + next_gap_ns(sim, exchange.gaps)
        at(sim, first_ns, EventKind.ARRIVAL, ORDER + exchange.row, on_arrival, exchange.row)
    for client in clients.span(sim, exchange.first_client, exchange.clients):
        client.sent_ns = -1
        at(sim, sim.now_ns + client.first_ns, EventKind.ARRIVAL, client.row, on_turn, client.row)


class RequestLoop(Outcome):
    """What the clients of a closed loop saw: answers after the warm-up, latency of requests begun after it."""

    requests: int = declare.total(label="requests sent, from the start")
    answered: int = declare.total(label="answers, from the start")
    answers: int = declare.total()
    failed: int = declare.total(label="answers that say failed", better="lower", headline=declare.IF_ANY)
    repeated: int = declare.total(label="requests repeated, from the start", better="lower", headline=declare.IF_ANY)
    dropped: int = declare.total(label="packets dropped, from the start", better="lower")
    latency: DelayHistogram = declare.delays(label="request to answer", better="lower", headline=("p50", "p99"))
    rate = declare.rate(answers, label="answers", better="higher", headline=True, known_as=("rate_per_s",))


class OpenLoop(Outcome):
    """What became of requests at a rate: of those that came after the warm-up, and answers after it."""

    offered: int = declare.total(label="requests offered")
    answers: int = declare.total()
    errors: int = declare.total(label="answers that say failed", better="lower")
    given_up: int = declare.total(label="requests given up", better="lower")
    failures: int = declare.total(label="requests failed", better="lower")
    repeated: int = declare.total(label="requests repeated, from the start", better="lower")
    dropped: int = declare.total(label="packets dropped, from the start", better="lower")
    latency: DelayHistogram = declare.delays(label="request to answer", better="lower", headline=("p50", "p99"))
    rate = declare.rate(answers, label="answers", better="higher", headline=True)
    failed = declare.ratio(
        failures, failures, answers, unit="%", label="requests failed", better="lower", headline=True
    )
    answered_of_offered = declare.total(
        source=lambda seen: seen.latency.count, label="requests offered and answered", better="higher"
    )
    lag = declare.total(
        source=lambda seen: max(seen.offered - seen.answers, 0), label="answers fewer than requests", better="lower"
    )
    served = declare.ratio(
        answered_of_offered,
        offered,
        unit="%",
        label="offered requests answered by the end",
        better="higher",
        headline=True,
    )
    """The others are under way at the end or found no place; ``failed`` has them when their clients give up."""
    behind = declare.ratio(lag, offered, unit="%", label="answers behind requests", better="lower")
    """Above 0 beyond chance: requests wait longer and longer.  Those that are always under way do not count."""


class RequestWire(Wire):
    """A message is the number of its request, below 0 where that has failed."""

    def exchange(self, message: int) -> int:
        """Return the request's number."""
        return abs(message)


class _RequestsSpec(WorkloadSpec):
    """Clients that send requests, each of which is one packet there and back."""

    speaks = "request"
    transport = io.MESSAGE
    needs_link = True
    entries = (start_exchange,)

    if TYPE_CHECKING:
        request_size: int

    def wire(self, application: ApplicationSpec) -> Wire:
        """Requests and answers, as UDP of their size."""
        return RequestWire()


@WORKLOADS.register
class RequestResponseSpec(_RequestsSpec):
    """Clients in a closed loop."""

    products = ("netperf",)
    load_key = "clients"
    outcomes = (RequestLoop,)

    kind: Literal["request_response"] = "request_response"
    to: str = Field("server", description="Domain that answers.")
    clients: int = Field(1, ge=1, le=10_000, description="Requests under way at most. Default: netperf, one.")
    request_size: ByteCount = Field(
        128,
        ge=64,
        le=1 << 20,
        description="Request on the wire. Default: 1 byte (netperf TCP_RR), 52 TCP/IP with time stamp, 38 Ethernet "
        "with preamble and gap, rounded up.",
    )
    turn_around: DurationNs = Field(
        10_000,
        description="Mean time from an answer to the client's next request. Assumption: a system call in and out.",
    )
    turn_around_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Its coefficient of variation (gamma); 0: always the same, 1: exponential."
    )
    spread: DurationNs = Field(
        1_000_000, description="First requests come at random within this time. Assumption; 0: all at once."
    )
    retry: DurationNs = Field(
        200_000_000,
        description="Wait before a request that was lost, or its answer, is repeated, doubled each time up to a "
        "minute; 0: never. Default: Linux, TCP_RTO_MIN.",
    )

    def without_effect(self) -> Mapping[str, str]:
        """Say that a turn-around of no time does not vary."""
        return unread_without(self, {"turn_around": ("turn_around_cv",)})

    def packets(self, profile: RunProfile) -> float:
        """A round of each client takes its turn-around, the network both ways and the work on the way."""
        round_ns = self.turn_around + 2 * profile.latency_ns + _over_tiers(profile.application, profile, _work_ns)
        at_most = profile.length_ns / _work_ns(profile.application)
        rounds = min(self.clients * profile.length_ns / round_ns, at_most)
        return rounds * _over_tiers(profile.application, profile, lambda _: 1.0)

    def install(self, target: Target) -> Driver:
        """Add the clients, each with its time of beginning."""
        exchange = target.add_clients(exchanges, self, latency=target.add_delays())
        phases = target.streams.uniforms("request_response.first", target.number, count=self.clients)
        begin_ns = target.phase_ns(self.kind, target.number, self.turn_around, self.turn_around_cv)
        for n in range(self.clients):
            first_ns, entity = begin_ns + int(phases[n] * self.spread), (target.number << 20) + n
            turn_arounds = target.gamma_feed(
                "request_response.turn_around", entity, self.turn_around, self.turn_around_cv
            )
            client = add_row(
                target.engine, clients, exchange=exchange.row, first_ns=first_ns, turn_arounds=turn_arounds
            )
            exchange.first_client = exchange.first_client or client.row

        def measured() -> RequestLoop:
            return RequestLoop.of_row(exchange, **_of_exchange(target, exchange))

        def offered() -> Offer:
            """Without repetitions each loss ends the requests of one client."""
            silent = 0 if self.retry else min(int(exchange.dropped), self.clients)
            if silent == 0:
                return _with_times(target, exchange)
            why = f"a client whose request or answer was lost never asks again (workloads.{target.name}.retry)"
            return Offer(float(self.clients), float(self.clients - silent), "clients", why)

        return Driver(target, exchange, start_exchange, measured, offered)


@WORKLOADS.register
class OpenRequestsSpec(LoadProfileSpec, _RequestsSpec):
    """Requests that come at a rate."""

    load_key = "rate"
    objectives = ("failed <= 0.1", "behind <= 5")
    fewest_judged = FEWEST_SERVED
    outcomes = (OpenLoop,)

    kind: Literal["open_requests"] = "open_requests"
    to: str = Field("server", description="Domain that answers.")
    rate: RatePerSecond = Field(gt=0, description="Requests a second.")
    gap_cv: float = Field(
        1.0,
        ge=0.0,
        le=5.0,
        description="Coefficient of variation of the gaps between them (gamma). Default 1: Poisson.",
    )
    request_size: ByteCount = Field(512, ge=64, le=1 << 20, description="Request on the wire. Assumption.")
    timeout: PositiveDurationNs = Field(
        1_000_000_000, description="Wait before a request is repeated, doubled each time up to a minute. Assumption."
    )
    retries: int = Field(2, ge=0, le=20, description="Repetitions before a request is given up. Assumption.")

    @property
    def wire_bits_per_s(self) -> float:
        return 8 * self.attempts_per_s * self.request_size

    @property
    def attempts_per_s(self) -> float:
        return self.rate * self.mean_share

    @property
    def patience_ns(self) -> int:
        """All its waits, each twice as long as the one before, up to the longest."""
        longest_ns = max(self.timeout, LONGEST_RETRY_NS)
        return sum(min(self.timeout << number, longest_ns) for number in range(self.retries + 1))

    def packets(self, profile: RunProfile) -> float:
        """Return its requests, and those that they make services send each other."""
        return self.attempts_per_s * profile.seconds * _over_tiers(profile.application, profile, lambda _: 1.0)

    def in_flight(self, profile: RunProfile) -> float:
        """Those that take as long as their time-out, of a run's at most."""
        return self.rate * min(self.highest_share * self.timeout, self.load_ns(profile.length_ns)) / 1e9

    def install(self, target: Target) -> Driver:
        """Add the requests."""
        exchange = target.add_clients(
            exchanges, self, retry_ns=self.timeout, most_tries=self.retries + 1, latency=target.add_delays()
        )
        target.set_gaps(exchange.gaps, f"{self.kind}.gap", target.number, self.rate, self.gap_cv)
        self.begin_profile(exchange.gaps, self.add_profile(target.engine))

        def measured() -> OpenLoop:
            errors, given_up = int(exchange.failed), int(exchange.given_up)
            return OpenLoop.of_row(
                exchange, errors=errors, failures=errors + given_up, **_of_exchange(target, exchange)
            )

        def offered() -> Offer | None:
            over = int(exchange.answers) + int(exchange.failed) + int(exchange.given_up)
            return self.unanswered(int(exchange.offered), over, round(target.measured_s() * S), "requests")

        return Driver(target, exchange, start_exchange, measured, offered)


def _of_exchange(target: Target, exchange: Exchange) -> dict[str, Any]:
    """Return what both loops measure beside counts."""
    return {"latency": histogram(target.engine, int(exchange.latency)), "seconds": target.measured_s()}


def _with_times(target: Target, exchange: Exchange) -> Offer:
    """Return the requests of the measured time and those of them that were over by its end: times are of these."""
    begun, over = int(exchange.offered), histogram(target.engine, int(exchange.latency)).count + int(exchange.failed)
    why = "times are of the others; a longer measure.duration has more of them"
    return Offer(float(begun), float(min(over, begun)), "requests", why, UNANSWERED, _MOST_UNTIMED, "latency")


def _over_tiers(
    server: ApplicationSpec | None, profile: RunProfile, of: Callable[[ApplicationSpec | None], float]
) -> float:
    """Return the sum of a figure over all requests that one of a client causes."""
    total = of(server)
    if server is not None and profile.peer is not None:
        total += math.fsum(times * _over_tiers(profile.peer(to), profile, of) for to, times in server.mean_requests)
    return total


def _work_ns(server: ApplicationSpec | None) -> float:
    return max(_WORK_NS, 0 if server is None else server.packet_work_ns)
