"""Clients that send requests and wait for answers, in a closed loop or an open one.

**Closed** (``request_response``): each client sends a request, waits for the answer, turns around, and sends the next.
What netperf's TCP_RR measures: the rate is one over the time of a round, so it says how long a message takes, not how
many the server could handle.  The **turn-around time** of a client is what lies between an answer's arrival and the
next request (with exponential times the closed queue of the machine-repair model): of a user, the time to think.

**Open** (``open_requests``): requests come at a rate, whatever becomes of those before them (a Poisson process, unless
``gap_cv`` says otherwise).

A request without an answer is repeated as TCP would: after a first wait, then after twice as long each time (RFC 6298,
5.5), at most a minute.  Clients of the closed loop never give up; an open request is given up after ``retries``
repetitions.  An answer to a request that has been answered already is ignored.  An answer that says that the request
has failed ends it: it counts apart from the others, and its time is no response time.

Left out: the segments and acknowledgements of the connection; a request or an answer is one packet.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Kind, Record, Sim, Table, at, entry, event, part
from vftsim.kernel.inputs import Feeder
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import add_delay_since, delays, histogram, install_buckets
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets, workload
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, DurationNs, PositiveDurationNs, RatePerSecond
from vftsim.stats import DelayHistogram
from vftsim.workloads.gamma_feed import duration_ns, gamma_feed

request_response = workload.kind("request_response")
open_requests = workload.kind("open_requests")

LONGEST_RETRY_NS = 60_000_000_000
ORDER = 1 << 20
"""Orders arrivals of open loops behind those of clients at one instant."""
_S = 1_000_000_000


class RequestResponseSpec(Spec):
    """Clients in a closed loop."""

    part: ClassVar[Kind] = request_response

    kind: Literal["request_response"] = "request_response"
    to: str = Field("server", description="Domain that answers.")
    clients: int = Field(1, ge=1, le=1000, description="Requests under way at most. Default: netperf, one.")
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
        description="Wait before a request is repeated, doubled each time; 0: never. Default: Linux, TCP_RTO_MIN.",
    )


class OpenRequestsSpec(Spec):
    """Requests that come at a rate."""

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
        1_000_000_000, description="Wait before a request is repeated, doubled each time. Assumption."
    )
    retries: int = Field(2, ge=0, le=20, description="Repetitions before a request is given up. Assumption.")


class Exchange(Record):
    """The requests of one workload; clients of a closed loop stand in consecutive rows.

    Rounds that began before ``warmup_ns`` count in ``requests``, ``answered``, ``repeated`` and ``dropped`` only;
    ``answers`` are those that came after it, ``failed`` those that say so, ``given_up`` requests after it.
    An open one has ``gap_ns`` between requests, each of which is a client that leaves after its answer, or after
    ``most_tries``.
    """

    row: int
    flow: int
    port: int
    first_client: int
    clients: int
    request_bytes: int
    turn_around_ns: int
    retry_ns: int
    gap_ns: int
    gaps: int
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


class Client(Record):
    """One client; ``request`` is the number of the one under way, ``timer`` the event that repeats it after a try."""

    row: int
    exchange: int
    turn_arounds: int
    first_ns: int
    request: int
    sent_ns: int
    wait_ns: int
    tries: int
    timer: int


exchanges = Table("exchanges", Exchange, 1024)
clients = Table("exchange_clients", Client, 1 << 17, "use fewer clients, or a lower rate")


@event
def on_turn(sim: Sim, client_row: int, token: int) -> None:
    """Send a client's next request."""
    client = clients(sim)[client_row]
    begin_request(sim, exchanges(sim)[client.exchange], client)


@event
def on_arrival(sim: Sim, exchange_row: int, token: int) -> None:
    """Send a request of an open loop, and plan the next."""
    exchange = exchanges(sim)[exchange_row]
    row = clients.new(sim)
    client = clients(sim)[row]
    client.row = row
    client.exchange = exchange_row
    begin_request(sim, exchange, client)
    next_ns = sim.now_ns + max(1, duration_ns(sim, exchange.gaps, exchange.gap_ns))
    at(sim, next_ns, EventKind.ARRIVAL, ORDER + exchange_row, on_arrival, exchange_row)


@part
def begin_request(sim: Sim, exchange: Exchange, client: Client) -> None:
    """Send a new request."""
    client.request += 1
    client.sent_ns = sim.now_ns
    client.wait_ns = exchange.retry_ns
    client.tries = 0
    exchange.requests += 1
    if sim.now_ns >= exchange.warmup_ns:
        exchange.offered += 1
    ask(sim, exchange, client)


@part
def ask(sim: Sim, exchange: Exchange, client: Client) -> None:
    """Send the present request and watch for its answer."""
    client.timer = 0
    client.tries += 1
    if exchange.retry_ns > 0:
        client.timer = at(sim, sim.now_ns + client.wait_ns, EventKind.TIMER, client.row, on_no_answer, client.row)
    made = packets.new(sim)
    packet = packets(sim)[made]
    packet.flow = exchange.flow
    packet.port = exchange.port
    packet.ring = 0
    packet.stream = client.row
    packet.what = client.request
    packet.size_bytes = exchange.request_bytes
    packet.sent_ns = sim.now_ns
    packet.entity = client.row
    send_to_host(sim, made)


@event
def on_no_answer(sim: Sim, client_row: int, token: int) -> None:
    """Repeat a request that has not been answered, or give it up."""
    client = clients(sim)[client_row]
    if token != client.timer:
        return
    exchange = exchanges(sim)[client.exchange]
    if exchange.most_tries > 0 and client.tries == exchange.most_tries:
        if client.sent_ns >= exchange.warmup_ns:
            exchange.given_up += 1
        end_request(sim, exchange, client)
        return
    exchange.repeated += 1
    client.wait_ns = min(2 * client.wait_ns, LONGEST_RETRY_NS)
    ask(sim, exchange, client)


@part
def end_request(sim: Sim, exchange: Exchange, client: Client) -> None:
    """Turn around to the next request; an open loop's client leaves."""
    # No event has the token 0: a repetition that is planned finds nothing to repeat.
    client.timer = 0
    client.sent_ns = -1
    if exchange.gap_ns > 0:
        clients.free(sim, client.row)
        return
    next_ns = sim.now_ns + duration_ns(sim, client.turn_arounds, exchange.turn_around_ns)
    at(sim, next_ns, EventKind.TIMER, client.row, on_turn, client.row)


@request_response.implements(delivered)
@open_requests.implements(delivered)
def take_answer(sim: Sim, flow: Flow, packet: int) -> None:
    """Take in an answer."""
    exchange = exchanges(sim)[flow.own]
    client = clients(sim)[packets(sim)[packet].stream]
    what = packets(sim)[packet].what
    packets.free(sim, packet)
    if abs(what) != client.request or client.sent_ns < 0:
        return
    if what < 0:
        if sim.now_ns >= exchange.warmup_ns:
            exchange.failed += 1
    else:
        exchange.answered += 1
        if sim.now_ns >= exchange.warmup_ns:
            exchange.answers += 1
        add_delay_since(sim, exchange.latency, client.sent_ns, exchange.warmup_ns)
    end_request(sim, exchange, client)


@request_response.implements(lost)
@open_requests.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a request or an answer that was dropped."""
    exchanges(sim)[flow.own].dropped += 1


@entry
def start_exchange(sim: Sim, row: int, _: int) -> int:
    """Let the clients begin, each at its time; of an open loop the first comes after a gap."""
    exchange = exchanges(sim)[row]
    if exchange.gap_ns > 0:
        first_ns = sim.now_ns + max(1, duration_ns(sim, exchange.gaps, exchange.gap_ns))
        at(sim, first_ns, EventKind.ARRIVAL, ORDER + row, on_arrival, row)
    for client_row in range(exchange.first_client, exchange.first_client + exchange.clients):
        client = clients(sim)[client_row]
        client.sent_ns = -1
        at(sim, sim.now_ns + client.first_ns, EventKind.ARRIVAL, client_row, on_turn, client_row)
    return 0


ENTRIES = (start_exchange,)
ACTIONS = ()
TABLES = (exchanges, clients)


def add_request_response(
    engine: Engine, feeder: Feeder, port: int, spec: RequestResponseSpec, streams: Streams, number: int, warmup_ns: int
) -> int:
    """Add the clients of a port; ``number`` says whose draws are theirs.  Return the row of the exchange."""
    install_buckets(engine)
    row, exchange = engine.add(
        exchanges,
        port=port,
        request_bytes=spec.request_size,
        turn_around_ns=spec.turn_around,
        retry_ns=spec.retry,
        warmup_ns=warmup_ns,
        latency=engine.new(delays),
    )
    exchange.row = row
    exchange.flow, flow = engine.add(flows, workload=engine.number(request_response), own=row, port=port)
    flow.row = exchange.flow
    exchange.clients = spec.clients
    phases = streams.uniforms("request_response.first", number, count=spec.clients)
    for n in range(spec.clients):
        made, client = engine.add(clients, exchange=row, first_ns=int(phases[n] * spec.spread))
        client.row = made
        exchange.first_client = exchange.first_client or made
        client.turn_arounds = gamma_feed(
            feeder, streams, "request_response.turn_around", (number << 20) + n, spec.turn_around, spec.turn_around_cv
        )
    return row


def add_open_requests(
    engine: Engine, feeder: Feeder, port: int, spec: OpenRequestsSpec, streams: Streams, number: int, warmup_ns: int
) -> int:
    """Add requests at a rate to a port; ``number`` says whose draws are theirs.  Return the row of the exchange."""
    install_buckets(engine)
    gap_ns = max(1, round(_S / spec.rate))
    row, exchange = engine.add(
        exchanges,
        port=port,
        request_bytes=spec.request_size,
        retry_ns=spec.timeout,
        gap_ns=gap_ns,
        gaps=gamma_feed(feeder, streams, "open_requests.gap", number, gap_ns, spec.gap_cv),
        most_tries=spec.retries + 1,
        warmup_ns=warmup_ns,
        latency=engine.new(delays),
    )
    exchange.row = row
    exchange.flow, flow = engine.add(flows, workload=engine.number(open_requests), own=row, port=port)
    flow.row = exchange.flow
    return row


class RequestLoop(Outcome):
    """What the clients of a closed loop saw: answers after the warm-up, latency of requests begun after it."""

    requests: int = declare.total(label="requests sent, from the start")
    answered: int = declare.total(label="answers, from the start")
    answers: int = declare.total()
    failed: int = declare.total(label="answers that say failed", better="lower", headline=declare.IF_ANY)
    repeated: int = declare.total(label="requests repeated, from the start", better="lower")
    dropped: int = declare.total(label="packets dropped, from the start", better="lower")
    latency: DelayHistogram = declare.delays(label="request to answer", better="lower", headline=("p50", "p99"))
    rate = declare.rate(answers, label="answers", better="higher", headline=True, known_as=("rate_per_s",))


def request_loop_of(engine: Engine, row: int) -> RequestLoop:
    """Return what an exchange has measured up to now."""
    exchange = engine.rows(exchanges)[row]
    return RequestLoop.of_row(
        exchange,
        latency=histogram(engine, int(exchange.latency)),
        seconds=(engine.now_ns - int(exchange.warmup_ns)) / _S,
    )


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


def open_loop_of(engine: Engine, row: int) -> OpenLoop:
    """Return what became of requests at a rate up to now."""
    exchange = engine.rows(exchanges)[row]
    errors = int(exchange.failed)
    return OpenLoop.of_row(
        exchange,
        errors=errors,
        failures=errors + int(exchange.given_up),
        latency=histogram(engine, int(exchange.latency)),
        seconds=(engine.now_ns - int(exchange.warmup_ns)) / _S,
    )
