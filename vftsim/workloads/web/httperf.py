"""httperf: connections begun at a rate whatever becomes of them, one call on each, a time-out in every stage.

Rules (httperf 0.9.0, ``core.c``, ``conn.c``, ``stat/basic.c``): connection n begins n gaps after the first; the
time-out runs anew with each progress (connected, a part of the reply received); a connection without progress for
that long is closed and counts as ``client-timo``.  Lifetimes are of connections that had a reply; connect times of
all that were connected; reply rates are samples of 5 s; the test lasts until the last connection has ended.

Without a time-out a test of so many connections ends with all of them answered, at whatever rate they began.  Whether
replies keep pace shows in the second half of the connections: by how many replies that come in it are fewer.

What a client waits for it asks for again after ``retry``, then after twice as long (its TCP: SYNs after 1, 2, 4 s).
Simplification: so are requests, with the segments received so far, while real TCP has an acknowledgement of the
request and leaves it to the server to repeat pieces; this adds a few small packets for each connection that waits
for seconds.

Left out: calls beyond the first on a connection, sessions, the client's processor (httperf polls with all of
it), its limit of open files.
"""

import math
from typing import Literal, Self

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Sim, Table, at, entry, event, timer
from vftsim.labs.imports.httperf import HttperfReport
from vftsim.outcome import Outcome, attribute, declare
from vftsim.platform.delays import add_delay, histogram
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import MESSAGE, Flow, delivered, lost, packets, workload
from vftsim.spec.units import ByteCount, DurationNs, PeriodNs, PositiveDurationNs, RatePerSecond
from vftsim.stats import DelayHistogram
from vftsim.workloads.common import WorkloadRow
from vftsim.workloads.gaps import Gaps, LoadProfileSpec, begins_ns, next_gap_ns
from vftsim.workloads.offer import FEWEST_SERVED, MOST_UNANSWERED, Offer
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, Driver, RunProfile, Target, WorkloadSpec
from vftsim.workloads.web import records as http
from vftsim.workloads.windows import goes_on_at_client
from vftsim.workloads.wire import Wire

httperf = workload.kind("httperf")

LONGEST_RETRY_NS = 60_000_000_000
_MS = 1e6
_PACKETS_A_CONNECTION = 12
_FEWEST_TOLD = 100
"""Of fewer connections in the second half a tenth is open by chance."""
_HEADER_BYTES, _FOOTER_BYTES = 200, 2
"""How a report divides a reply, of which the model knows the whole size only."""


class HttpLoad(WorkloadRow):
    """One httperf.

    ``active`` connections are open, ``most_active`` is the largest number at a time.  Times are sums in ns: until
    connected, from request to the first piece of the reply, from there to the last; ``lifetimes`` is a row of
    delays, of connections that had a reply; ``response_times`` another, from request to first piece.  A sample is the
    reply rate of a span, ``sampled`` replies had come by its beginning.  By when half of the connections had begun
    ``half_replies`` had come, by when all had ``last_replies``.
    """

    gaps: Gaps
    connections: int
    timeout_ns: int
    request_size_bytes: int
    retry_ns: int
    linear_retries: int
    sample_ns: int
    start_ns: int
    end_ns: int
    begun: int
    active: int
    most_active: int
    connects: int
    connect_ns: int
    requests: int
    responses: int
    response_ns: int
    replies: int
    half_replies: int
    last_replies: int
    transfer_ns: int
    lifetimes: int
    response_times: int
    timeouts: int
    resets: int
    sampled: int
    samples: int
    sample_sum: float
    sample_squares: float
    sample_min: float
    sample_max: float
    repeated: int
    dropped: int
    bytes_sent: int
    bytes_received: int


http_loads = Table("http_loads", HttpLoad, 1024)


@event
def on_begin(sim: Sim, load: HttpLoad) -> None:
    """Begin a connection, and plan the next."""
    load.begun += 1
    load.active += 1
    load.most_active = max(load.most_active, load.active)
    connection = http.http_connections(sim)[http.open_row(sim, load.row, load.flow)]
    set_stage_timer(sim, load, connection)
    send(sim, load, connection, http.SYN, http.HEADER_BYTES)
    watch(sim, connection, load.retry_ns)
    if load.begun == half_of(load.connections):
        load.half_replies = load.replies
    if load.begun < load.connections:
        next_ns = sim.now_ns + next_gap_ns(sim, load.gaps)
        at(sim, next_ns, EventKind.ARRIVAL, load.row, on_begin, load.row)
    else:
        load.last_replies = load.replies


def half_of(connections: int) -> int:
    """Return how many connections are the first half of a test, of one all."""
    return (connections + 1) // 2


def send(sim: Sim, load: HttpLoad, connection: http.HttpConnection, kind: int, size_bytes: int) -> None:
    """Send a packet; a request says how many segments of the reply are there."""
    packet = http.new_http_packet(sim, load.flow, load.port, connection, kind, connection.received, size_bytes)
    load.bytes_sent += size_bytes - http.HEADER_BYTES
    send_to_host(sim, packet)


def set_stage_timer(sim: Sim, load: HttpLoad, connection: http.HttpConnection) -> None:
    """Let the time-out run from now on; an event planned for earlier plans it anew."""
    if load.timeout_ns == 0:
        return
    connection.due_ns = sim.now_ns + load.timeout_ns
    if connection.timer == 0:
        connection.timer = at(sim, connection.due_ns, EventKind.TIMER, connection.row, on_timeout, connection.row)


def watch(sim: Sim, connection: http.HttpConnection, wait_ns: int) -> None:
    """Ask again after a while for what the client waits for."""
    connection.wait_ns = min(wait_ns, LONGEST_RETRY_NS)
    due_ns = sim.now_ns + connection.wait_ns
    connection.retry = at(sim, due_ns, EventKind.TIMER, connection.row, on_retry, connection.row)


@timer(http.http_connections, "retry")
def on_retry(sim: Sim, connection: http.HttpConnection) -> None:
    """Nothing has come: ask again."""
    if connection.serial == 0:
        return
    load = http_loads(sim)[connection.load]
    load.repeated += 1
    connection.repeats += 1
    factor = 2
    if connection.stage == http.CONNECTING:
        send(sim, load, connection, http.SYN, http.HEADER_BYTES)
        if connection.repeats <= load.linear_retries:
            factor = 1
    else:
        send(sim, load, connection, http.REQUEST, load.request_size_bytes + http.HEADER_BYTES)
    watch(sim, connection, factor * connection.wait_ns)


@timer(http.http_connections, "timer")
def on_timeout(sim: Sim, connection: http.HttpConnection) -> None:
    """Give a connection up that has made no progress for too long."""
    if connection.serial == 0:
        return
    if connection.due_ns > sim.now_ns:
        connection.timer = at(sim, connection.due_ns, EventKind.TIMER, connection.row, on_timeout, connection.row)
        return
    load = http_loads(sim)[connection.load]
    load.timeouts += 1
    close(sim, load, connection)


def close(sim: Sim, load: HttpLoad, connection: http.HttpConnection) -> None:
    """End a connection at the client, and the test with the last one."""
    send(sim, load, connection, http.FIN, http.HEADER_BYTES)
    connection.stage = http.CLOSED
    connection.timer = 0
    connection.retry = 0
    load.active -= 1
    if load.active == 0 and load.begun == load.connections:
        load.end_ns = sim.now_ns
    # Last: the row may have another user from here on.
    http.free_if_unused(sim, connection)


@httperf.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """Act on a packet from the server, and free it or acknowledge it."""
    kind = packets(sim)[packet].message % http.KINDS
    connection = http.http_connections(sim)[packets(sim)[packet].stream]
    is_over = http.is_stale(sim, packet) or connection.stage == http.CLOSED
    load = http_loads(sim)[flow.state_row]
    before = connection.received
    if not is_over and connection.stage != http.CONNECTING and (kind == http.PIECE or kind == http.LAST_PIECE):
        take_segments(sim, load, connection, packet)
    if is_over or not goes_on_at_client(sim, packet):
        packets.free(sim, packet)
    if is_over:
        return
    if kind == http.SYN_ACK and connection.stage == http.CONNECTING:
        connected(sim, load, connection)
    elif kind == http.RESET:
        load.resets += 1
        close(sim, load, connection)
    elif connection.received > before:
        take_piece(sim, load, connection, connection.received == connection.last)


def take_segments(sim: Sim, load: HttpLoad, connection: http.HttpConnection, packet: int) -> None:
    """Take in what a piece has that is not there yet, and all that it makes whole, which its packet acknowledges.

    Simplification: what comes behind a second piece that is missing is thrown away.
    """
    piece = packets(sim)[packet]
    first = http.segments_of(piece.message)
    end = first + http.segments_in(piece.size_bytes)
    if piece.message % http.KINDS == http.LAST_PIECE:
        connection.last = end
    if first > connection.received:
        if connection.early_end == 0:
            connection.early = first
        elif first != connection.early_end:
            return
        connection.early_end = end
        load.bytes_received += payload_bytes(piece.size_bytes)
    elif end > connection.received:
        load.bytes_received += payload_bytes(piece.size_bytes) - http.MSS * (connection.received - first)
        connection.received = end
    if 0 < connection.early <= connection.received:
        connection.received = max(connection.received, connection.early_end)
        piece.message += http.KINDS * (connection.received - end)
        connection.early = 0
        connection.early_end = 0


def payload_bytes(size_bytes: int) -> int:
    """Return what a piece carries: without the headers of its segments."""
    return size_bytes - http.HEADER_BYTES * http.segments_in(size_bytes)


def connected(sim: Sim, load: HttpLoad, connection: http.HttpConnection) -> None:
    """Send the request."""
    load.connects += 1
    load.connect_ns += sim.now_ns - connection.start_ns
    load.requests += 1
    connection.stage = http.WAITING
    connection.requested_ns = sim.now_ns
    set_stage_timer(sim, load, connection)
    send(sim, load, connection, http.REQUEST, load.request_size_bytes + http.HEADER_BYTES)
    watch(sim, connection, load.retry_ns)


def take_piece(sim: Sim, load: HttpLoad, connection: http.HttpConnection, is_last: bool) -> None:
    """Take in the next piece of the reply."""
    if connection.stage == http.WAITING:
        connection.stage = http.RECEIVING
        connection.first_ns = sim.now_ns
        load.responses += 1
        load.response_ns += sim.now_ns - connection.requested_ns
        add_delay(sim, load.response_times, sim.now_ns - connection.requested_ns)
    if not is_last:
        set_stage_timer(sim, load, connection)
        watch(sim, connection, load.retry_ns)
        return
    load.replies += 1
    load.transfer_ns += sim.now_ns - connection.first_ns
    add_delay(sim, load.lifetimes, sim.now_ns - connection.start_ns)
    close(sim, load, connection)


@httperf.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    http_loads(sim)[flow.state_row].dropped += 1


@event
def on_sample(sim: Sim, load: HttpLoad) -> None:
    """Take a sample of the reply rate, while the test lasts."""
    if load.end_ns != 0:
        return
    rate = (load.replies - load.sampled) * 1e9 / load.sample_ns
    load.sampled = load.replies
    if load.samples == 0 or rate < load.sample_min:
        load.sample_min = rate
    load.sample_max = max(load.sample_max, rate)
    load.samples += 1
    load.sample_sum += rate
    load.sample_squares += rate * rate
    at(sim, sim.now_ns + load.sample_ns, EventKind.TIMER, load.row, on_sample, load.row)


@entry
def start_httperf(sim: Sim, load: HttpLoad, delay_ns: int) -> None:
    """Begin the test after a while."""
    load.start_ns = sim.now_ns + delay_ns + begins_ns(sim, load.gaps)
    at(sim, load.start_ns, EventKind.ARRIVAL, load.row, on_begin, load.row)
    at(sim, load.start_ns + load.sample_ns, EventKind.TIMER, load.row, on_sample, load.row)


class WebReplies(Outcome):
    """What one httperf, or several together, got of their servers."""

    connections: int = declare.total(label="connections asked for")
    requests: int = declare.total(label="requests sent")
    replies: int = declare.total()
    second_half: int = declare.total(label="connections asked for, second half")
    lag: int = declare.total(label="replies fewer than connections, second half", better="lower")
    timeouts: int = declare.total(label="connections given up", better="lower")
    resets: int = declare.total(label="connections reset", better="lower")
    repeated: int = declare.total(label="SYNs and requests repeated", better="lower")
    response: DelayHistogram = declare.delays(label="request to reply", better="lower", headline=("p50", "p95"))
    lifetime: DelayHistogram = declare.delays(label="connection, opened to closed", better="lower", headline=("p50",))
    answered = declare.ratio(
        replies,
        connections,
        unit="%",
        label="connections answered",
        better="higher",
        headline=True,
        known_as=("answered_percent",),
    )
    reply_rate = declare.rate(replies, label="replies", better="higher", headline=True)
    behind = declare.ratio(lag, second_half, unit="%", label="replies behind connections, second half", better="lower")
    """Above 0 beyond chance: connections are open longer and longer, or fail."""


class WebTest(WebReplies):
    """What one httperf counts of its test, from its first connection to its last."""

    concurrent: int = declare.number(label="connections at a time, most")
    duration_s: float = declare.number(label="length of the test", unit="s")
    connect_ms: float = declare.number(label="time to connect, mean", unit="ms", better="lower")
    transfer_ms: float = declare.number(label="time to transfer, mean", unit="ms", better="lower")
    sampled: float = declare.number(label="replies a second, mean of samples over 5 s", better="higher")
    report: str = attribute()


def _lifetimes(engine: Engine, load: HttpLoad) -> tuple[float, float, float, float, float]:
    times = histogram(engine, int(load.lifetimes))
    if times.count == 0:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    deviation = times.sd / _MS if times.count > 1 else 0.0
    return times.min / _MS, times.mean / _MS, times.max / _MS, times.percentile(50) / _MS, deviation


def _reply_rates(load: HttpLoad) -> tuple[float, float, float, float, float]:
    count = int(load.samples)
    if count == 0:
        return (0.0, 0.0, 0.0, math.nan, 0.0)
    mean = float(load.sample_sum) / count
    spread = (float(load.sample_squares) - count * mean * mean) / (count - 1) if count > 1 else 0.0
    return float(load.sample_min), mean, float(load.sample_max), math.nan, math.sqrt(max(0.0, spread))


def collapse_rate_per_s(cores: float, script_s: float, timeout_s: float, test_s: float) -> float:
    """Return the rate above which a test of that length has failures: (cores / cost)(1 + time-out / length).

    What arrives in the test must be served in the test and one time-out more.  The rule is that of a server that
    gets no slower when it queues and wastes no work on clients that have gone.
    """
    return cores / script_s * (1.0 + timeout_s / test_s)


class HttpWire(Wire):
    """Names of what opens a connection, asks, answers and closes."""

    _NAMES = ("", "SYN", "SYN ACK", "request", "reply", "FIN", "RST", "reply, last piece")

    def name(self, message: int) -> str:
        """Return what a packet is, of a reply from which segment on."""
        word = self._NAMES[message % http.KINDS]
        return f"{word} {http.segments_of(message)}" if word == "reply" else word

    def exchange(self, message: int) -> int:
        """Return the connection's number."""
        return message // http.SERIALS

    def is_last(self, message: int) -> bool:
        """Tell whether a reply, or the connection, ends with it."""
        return message % http.KINDS in (http.LAST_PIECE, http.RESET)


@WORKLOADS.register
class HttperfSpec(LoadProfileSpec, WorkloadSpec):
    """One httperf: connections at a rate, one call on each."""

    speaks = "http"
    transport = MESSAGE
    load_key = "rate"
    objectives = ("answered >= 90", "behind <= 5")
    fewest_judged = FEWEST_SERVED
    needs_link = True
    entries = (start_httperf,)
    outcomes = (WebTest,)

    kind: Literal["httperf"] = "httperf"
    to: str = Field("server", description="Domain of the web server.")
    rate: RatePerSecond = Field(10.0, gt=0, description="Connections begun a second (--rate).")
    gap_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Variation of their gaps: 0 fixed (httperf's default), 1 exponential."
    )
    connections: int = Field(200, ge=1, le=10_000_000, description="Connections in all (--num-conns).")
    timeout: DurationNs = Field(
        0, description="Longest wait without progress in any stage (--timeout); 0: none, httperf's default."
    )
    request_size: ByteCount = Field(
        66, ge=16, le=1400, description="Bytes of a request. Default: the printed example of Timalsena 2013."
    )
    retry: PositiveDurationNs = Field(
        1_000_000_000, description="First wait of the client's TCP, then doubled. Default: RFC 6298, Linux 3.1."
    )
    linear_retries: int = Field(
        0,
        ge=0,
        le=100,
        description="Repetitions of a SYN after which the wait is still the first one. Default 0: Linux before 6.5; "
        "since then 4 (tcp_syn_linear_timeouts, Documentation/networking/ip-sysctl.rst).",
    )
    sample: PeriodNs = Field(5_000_000_000, description="Length of a reply-rate sample. Default: httperf, 5 s.")

    @property
    def attempts_per_s(self) -> float:
        return self.rate * self.mean_share

    def test_ns(self) -> int:
        """Until the last connection has begun, and its time-out is over."""
        return self.least_test_ns() + self.timeout

    def least_test_ns(self) -> int:
        """Until the last connection begins."""
        return max(self.idle_ns, round(self.due_ns((self.connections - 1) * 1e9 / self.rate)))

    def judged(self, measured_ns: int) -> Self:
        """As many connections as show whether replies keep pace: what comes in the measured time, or more."""
        in_it = int(self.load_ns(measured_ns) * self.rate / 1e9)
        return self.model_copy(update={"connections": max(self.connections, FEWEST_SERVED, in_it)})

    def packets(self, profile: RunProfile) -> float:
        """Three to open, the request, the reply in segments with their acknowledgements, three to close."""
        return min(self.connections, self.rate * self.mean_share * profile.seconds) * _PACKETS_A_CONNECTION

    def samples(self, profile: RunProfile) -> float:
        """One a period."""
        return profile.length_ns / self.sample

    def wire(self, application: ApplicationSpec) -> Wire:
        """Pieces of connections, as UDP of their size."""
        return HttpWire()

    def install(self, target: Target) -> "HttperfDriver":
        """Add the client."""
        load = target.add_clients(http_loads, self, lifetimes=target.add_delays(), response_times=target.add_delays())
        target.set_gaps(load.gaps, f"{self.kind}.gap", target.number, self.rate, self.gap_cv)
        self.begin_profile(load.gaps, self.add_profile(target.engine))
        return HttperfDriver(target, load, start_httperf)


class HttperfDriver(Driver):
    """One httperf in a running model."""

    def report(self) -> HttperfReport:
        """Return what it would print by now; the median is within 1 %."""
        load = self.record
        end_ns = int(load.end_ns) or self.engine.now_ns
        duration_s = max(1, end_ns - int(load.start_ns)) / 1e9
        replies, connects, responses = int(load.replies), int(load.connects), int(load.responses)
        content = int(load.bytes_received) / replies - _HEADER_BYTES - _FOOTER_BYTES if replies else 0.0
        return HttperfReport(
            connections=int(load.begun),
            requests=int(load.requests),
            replies=replies,
            duration_s=duration_s,
            concurrent=int(load.most_active),
            connection_ms=_lifetimes(self.engine, load),
            connect_ms=int(load.connect_ns) / connects / _MS if connects else 0.0,
            replies_per_connection=1.0 if replies else 0.0,
            request_bytes=float(load.request_size_bytes),
            reply_rate=_reply_rates(load),
            samples=int(load.samples),
            response_ms=int(load.response_ns) / responses / _MS if responses else 0.0,
            transfer_ms=int(load.transfer_ns) / replies / _MS if replies else 0.0,
            header_bytes=float(_HEADER_BYTES),
            content_bytes=content,
            footer_bytes=float(_FOOTER_BYTES),
            status=(0, replies, 0, 0, 0),
            net_bytes_per_s=(int(load.bytes_sent) + int(load.bytes_received)) / duration_s,
            errors={"client-timo": int(load.timeouts), "connreset": int(load.resets)},
        )

    def _second_half(self) -> tuple[int, int]:
        """Return the connections begun in the second half of the test, and the replies that came while they did.

        Of a run that ends before: of what has begun by then.  None where no reply came in the first half: what lasts
        longer than that tells nothing.
        """
        load, begun = self.record, int(self.record.begun)
        if not load.half_replies:
            return 0, 0
        replies = int(load.last_replies) if begun == int(load.connections) else int(load.replies)
        return begun - half_of(int(load.connections)), replies - int(load.half_replies)

    def offer(self) -> Offer | None:
        """Return what it tells of a test that nobody gives up: how far replies fell behind as connections began."""
        begun, in_pace = self._second_half()
        if begun < _FEWEST_TOLD or self.record.timeouts or self.record.resets:
            return None
        why = "the rest came when all had begun; the reply rate is what is served at this load"
        return Offer(begun, min(in_pace, begun), "connections", why, "Replies out of pace", MOST_UNANSWERED, "behind")

    @property
    def is_testing(self) -> bool:
        """Until the last connection has ended."""
        return bool(self.record.active) or int(self.record.begun) < int(self.record.connections)

    def outcome(self) -> WebTest:
        """Return what it counts, and its report."""
        report, load = self.report(), self.record
        begun, in_pace = self._second_half()
        return WebTest(
            connections=report.connections,
            requests=report.requests,
            replies=report.replies,
            second_half=begun,
            lag=max(begun - in_pace, 0),
            timeouts=int(load.timeouts),
            resets=int(load.resets),
            repeated=int(load.repeated),
            concurrent=report.concurrent,
            duration_s=report.duration_s,
            connect_ms=report.connect_ms,
            transfer_ms=report.transfer_ms,
            response=histogram(self.engine, int(load.response_times)),
            lifetime=histogram(self.engine, int(load.lifetimes)),
            report=report.text(),
            sampled=report.reply_rate[1],
            seconds=report.duration_s,
        )
