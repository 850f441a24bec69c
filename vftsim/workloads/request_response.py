"""Clients in a closed loop: each sends a request, waits for the answer, turns around, and sends the next.

What netperf's TCP_RR measures: the rate is one over the time of a round, so it says how long a message takes, not how
many the server could handle.  The **turn-around time** of a client is what lies between an answer's arrival and the
next request (with exponential times the closed queue of the machine-repair model).

A request without an answer is repeated as TCP would: after ``retry``, then after twice as long each time (RFC 6298,
5.5), at most a minute.  An answer to a request that has been answered already is ignored.

Left out: the segments and acknowledgements of the connection; a request or an answer is one packet.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Kind, Record, Sim, Table, at, entry, event, part
from vftsim.kernel.inputs import Feeder
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import add_delay, delays, histogram, install_buckets
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets, workload
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.units import ByteCount, DurationNs
from vftsim.stats import DelayHistogram
from vftsim.workloads.gamma_feed import duration_ns, gamma_feed

request_response = workload.kind("request_response")

LONGEST_RETRY_NS = 60_000_000_000
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


class Exchange(Record):
    """The requests of one workload; its clients stand in consecutive rows.

    Rounds that began before ``warmup_ns`` count in ``sent``, ``answered``, ``repeated`` and ``dropped`` only;
    ``measured`` are the answers that came after it.
    """

    row: int
    flow: int
    port: int
    first_client: int
    clients: int
    request_bytes: int
    turn_around_ns: int
    retry_ns: int
    warmup_ns: int
    sent: int
    answered: int
    repeated: int
    dropped: int
    measured: int
    latency: int


class Client(Record):
    """One client; ``request`` is the number of the one under way, ``timer`` the event that repeats it."""

    row: int
    exchange: int
    turn_arounds: int
    first_ns: int
    request: int
    sent_ns: int
    wait_ns: int
    timer: int


exchanges = Table("exchanges", Exchange, 1024)
clients = Table("exchange_clients", Client, 1 << 17, "use fewer clients")


@event
def on_turn(sim: Sim, place: int, token: int) -> None:
    """Send the next request."""
    client = clients(sim)[place]
    own = exchanges(sim)[client.exchange]
    client.request += 1
    client.sent_ns = sim.now_ns
    client.wait_ns = own.retry_ns
    own.sent += 1
    ask(sim, own, client)


@part
def ask(sim: Sim, own: Exchange, client: Client) -> None:
    """Send the present request and watch for its answer."""
    client.timer = 0
    if own.retry_ns > 0:
        client.timer = at(sim, sim.now_ns + client.wait_ns, EventKind.TIMER, client.row, on_no_answer, client.row)
    made = packets.new(sim)
    packet = packets(sim)[made]
    packet.flow = own.flow
    packet.port = own.port
    packet.ring = 0
    packet.stream = client.row
    packet.what = client.request
    packet.size_bytes = own.request_bytes
    packet.sent_ns = sim.now_ns
    packet.entity = client.row
    send_to_host(sim, made)


@event
def on_no_answer(sim: Sim, place: int, token: int) -> None:
    """Repeat a request that has not been answered."""
    client = clients(sim)[place]
    if token != client.timer:
        return
    own = exchanges(sim)[client.exchange]
    own.repeated += 1
    client.wait_ns = min(2 * client.wait_ns, LONGEST_RETRY_NS)
    ask(sim, own, client)


@request_response.implements(delivered)
def take_answer(sim: Sim, flow: Flow, packet: int) -> None:
    """Take in an answer, and turn around."""
    own = exchanges(sim)[flow.own]
    client = clients(sim)[packets(sim)[packet].stream]
    is_new = packets(sim)[packet].what == client.request and client.sent_ns >= 0
    packets.free(sim, packet)
    if not is_new:
        return
    client.timer = 0
    own.answered += 1
    if sim.now_ns >= own.warmup_ns:
        own.measured += 1
    if client.sent_ns >= own.warmup_ns:
        add_delay(sim, own.latency, sim.now_ns - client.sent_ns)
    client.sent_ns = -1
    next_ns = sim.now_ns + duration_ns(sim, client.turn_arounds, own.turn_around_ns)
    at(sim, next_ns, EventKind.TIMER, client.row, on_turn, client.row)


@request_response.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a request or an answer that was dropped."""
    exchanges(sim)[flow.own].dropped += 1


@entry
def add_clients(sim: Sim, row: int, count: int) -> int:
    """Give an exchange its clients; return the first one's row."""
    own = exchanges(sim)[row]
    own.clients = count
    for number in range(count):
        made = clients.new(sim)
        clients(sim)[made].row = made
        clients(sim)[made].exchange = row
        if number == 0:
            own.first_client = made
    return own.first_client


@entry
def start_exchange(sim: Sim, row: int, _: int) -> int:
    """Let the clients begin, each at its time."""
    own = exchanges(sim)[row]
    for place in range(own.first_client, own.first_client + own.clients):
        client = clients(sim)[place]
        client.sent_ns = -1
        at(sim, sim.now_ns + client.first_ns, EventKind.ARRIVAL, place, on_turn, place)
    return 0


ENTRIES = (add_clients, start_exchange)
ACTIONS = ()
TABLES = (exchanges, clients)


def add_request_response(
    engine: Engine, feeder: Feeder, port: int, spec: RequestResponseSpec, streams: Streams, number: int, warmup_ns: int
) -> int:
    """Add the clients of a port; ``number`` says whose draws are theirs.  Return the row of the exchange."""
    install_buckets(engine)
    row, own = engine.add(
        exchanges, port=port, request_bytes=spec.request_size, turn_around_ns=spec.turn_around, retry_ns=spec.retry,
        warmup_ns=warmup_ns, latency=engine.new(delays),
    )  # fmt: skip
    own.row = row
    own.flow, flow = engine.add(flows, workload=engine.number(request_response), own=row, port=port)
    flow.row = own.flow
    first = engine.call(add_clients, row, spec.clients)
    phases = streams.uniforms("request_response.first", number, count=spec.clients)
    for n in range(spec.clients):
        client = engine.rows(clients)[first + n]
        client.first_ns = int(phases[n] * spec.spread)
        client.turn_arounds = gamma_feed(
            feeder, streams, "request_response.turn_around", (number << 20) + n, spec.turn_around, spec.turn_around_cv
        )
    return row


class RequestLoop(Outcome):
    """What the clients of a closed loop saw: answers after the warm-up, latency of requests begun after it."""

    requests: int = declare.total(label="requests sent, from the start")
    answered: int = declare.total(label="answers, from the start")
    answers: int = declare.total()
    repeated: int = declare.total(label="requests repeated, from the start", better="lower")
    dropped: int = declare.total(label="packets dropped, from the start", better="lower")
    latency: DelayHistogram = declare.delays(label="request to answer", better="lower", headline=("p50", "p99"))
    rate = declare.rate(answers, label="answers", better="higher", headline=True, known_as=("rate_per_s",))


def request_loop_of(engine: Engine, row: int) -> RequestLoop:
    """Return what an exchange has measured up to now."""
    own = engine.rows(exchanges)[row]
    return RequestLoop(
        requests=int(own.sent), answered=int(own.answered), answers=int(own.measured), repeated=int(own.repeated),
        dropped=int(own.dropped), latency=histogram(engine, int(own.latency)),
        seconds=(engine.now_ns - int(own.warmup_ns)) / _S,
    )  # fmt: skip
