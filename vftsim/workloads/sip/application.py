"""The SIP server as an application of a domain: what a model file says of it, and how it is built."""

from typing import Literal

from pydantic import Field, model_validator

from vftsim.errors import ConservationError
from vftsim.kernel import Engine
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.cpu.guest_schedulers.round_robin import RoundRobinGuest
from vftsim.platform.cpu.processes import add_process, processes
from vftsim.platform.io.packet import applications, drops, ports
from vftsim.platform.rows import add_row, fill_row
from vftsim.spec import ByteCount, DurationNs, Percent, PeriodNs, PositiveDurationNs, Spec
from vftsim.spec.units import MS, S
from vftsim.workloads.common import pages_per_request, unread_without
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program
from vftsim.workloads.sip.messages import TOUCHES, Message, install_messages
from vftsim.workloads.sip.records import SipRules, SipServer, expiries, sip_rules, sip_servers, workers
from vftsim.workloads.sip.server import sip_server, start_server

TOUCHES_AN_ATTEMPT = 8.5
"""Messages received and sent for an attempt of the lab's mix: half calls of 13, half others of 4."""
_OF_ALL_WORK = 1.56
"""CPU time of an attempt over that of its messages, in the shipped models: so that ramps end where theirs do."""
_READ_WITH = {
    "growth_with_utilization": ("growth_up_to", "utilization_time"),
    "wakeup_cost": ("wakeup_idle",),
    "stall_duration": ("stall_period",),
    "flush_in_timer_process": ("flush_database_share", "flush_waits_on_disk"),
}
"""Keys that count only with another one."""


class ScriptSpec(Spec):
    """Work of the routing script on a received message: units of ``cost``, run once for each new message.

    A repeated message that meets its transaction is recognised before the script and pays none of it.
    """

    cost: DurationNs = Field(0, description="CPU time of a unit; 0: the script costs nothing of its own.")
    registration: float = Field(0.0, ge=0, le=1e6, description="Units of a REGISTER.")
    invite: float = Field(0.0, ge=0, le=1e6, description="Units of an INVITE.")
    ack: float = Field(0.0, ge=0, le=1e6, description="Units of an ACK.")
    bye: float = Field(0.0, ge=0, le=1e6, description="Units of a BYE.")
    message: float = Field(0.0, ge=0, le=1e6, description="Units of a MESSAGE.")
    reply: float = Field(0.0, ge=0, le=1e6, description="Units of any reply.")

    def by_message(self) -> list[int]:
        """CPU time of the script for each received message, in the order of their numbers."""
        units = (
            self.registration,
            self.registration,
            self.invite,
            self.reply,
            self.reply,
            self.ack,
            self.bye,
            self.reply,
            self.message,
            self.reply,
        )
        return [round(self.cost * each) for each in units]

    def without_effect(self) -> dict[str, str]:
        """Return the keys that nothing reads as it stands, each with the reason."""
        units = [key for key in type(self).model_fields if key != "cost"]
        if self.cost == 0:
            return dict.fromkeys(units, "with script.cost 0 the script costs nothing")
        return {} if any(getattr(self, key) for key in units) else {"cost": "no message has units of the script's work"}


@APPLICATIONS.register
class SipServerSpec(ApplicationSpec):
    """A stateful SIP proxy and registrar; see :mod:`vftsim.workloads.sip.server` for the mechanism."""

    products = ("opensips", "kamailio")
    speaks = "sip"
    entries = (start_server,)

    kind: Literal["sip_server"] = "sip_server"
    pages_per_request: float = pages_per_request(3.0, "its buffer, and 8 KiB of transaction")
    processes: int = Field(
        4,
        ge=1,
        le=4096,
        description="Worker processes on one UDP socket (OpenSIPS `children`: 4 by default; the lab's is not printed).",
    )
    socket_buffer: ByteCount = Field(
        256 * 1024,
        description="Receive buffer of the UDP socket in kernel memory: rmem_max of Linux 2.6.18 (131071), doubled.",
    )
    memory_per_datagram: ByteCount = Field(
        1848,
        description="Kernel memory of a queued datagram: a driver buffer of 1,600 bytes and a descriptor of 248 "
        "(Linux 2.6.18, x86-64).",
    )
    touch_cost: PositiveDurationNs = Field(
        700_000, description="CPU time for a message received or sent when no transaction is held."
    )
    register_touch_cost: PositiveDurationNs = Field(
        650_000, description="CPU time for a registration message received or sent."
    )
    relay_cost: DurationNs = Field(
        0,
        description="Further CPU time for each message of a forwarded transaction received or sent. Assumption: "
        "relaying wakes other processes and sets timers, which exit to the hypervisor; registrations do not.",
    )
    database_cost: DurationNs = Field(
        0,
        description="CPU time of the database for the query of a REGISTER with credentials; the worker sleeps "
        "meanwhile. 0: no query.",
    )
    demand_cv: float = Field(
        1.0,
        ge=0.0,
        le=5.0,
        description="Coefficient of variation of a message's demand (gamma; 1 is exponential).",
    )
    work_after_send: float = Field(
        0.4, ge=0.0, lt=1.0, description="Share of a message's work that is done after its outputs have left."
    )
    growth_per_transaction: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="Growth of the CPU work for each completed transaction in memory, relative. Assumption; 0: none.",
    )
    growth_per_active_worker: float = Field(
        0.0,
        ge=0.0,
        le=5.0,
        description="Growth of the CPU work on a relayed message for each other worker that is at work, relative. "
        "Assumption; 0: none.",
    )
    growth_per_attempt: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="Growth of the CPU work for each request served since the start, relative. Assumption; 0: none.",
    )
    growth_with_utilization: float = Field(
        0.0,
        ge=-0.99,
        le=5.0,
        description="Growth of all CPU work with the utilization of the CPU, relative, at 100 %; below 0 it falls. "
        "Assumption; 0: none.",
    )
    growth_up_to: Percent = Field(
        100.0, description="Utilization beyond which work neither grows nor falls any more. Assumption."
    )
    utilization_time: PositiveDurationNs = Field(
        300 * MS, description="Time over which the utilization is averaged for that. Assumption."
    )
    retransmission_cost: float = Field(
        0.4,
        ge=0.0,
        le=1.0,
        description="CPU work of a retransmission that meets its transaction, relative to a new message.",
    )
    repeated_request_cost: float | None = Field(
        None,
        ge=0.0,
        le=2.0,
        description="The same for a repeated request alone, relative to a message of two touches. Assumption: 0.5, one "
        "received and answered from memory. None: `retransmission_cost`.",
    )
    repeated_reply_cost: float | None = Field(
        None,
        ge=0.0,
        le=2.0,
        description="The same for a repeated reply that goes no further. Assumption: 0.5, received and not sent. None: "
        "`retransmission_cost`.",
    )
    repeated_ok_cost: float | None = Field(
        None,
        ge=0.0,
        le=2.0,
        description="The same for a repeated 200 to an INVITE, which is relayed like the first: 1. None: "
        "`retransmission_cost`.",
    )
    own_repeat_cost: float | None = Field(
        None,
        ge=0.0,
        le=2.0,
        description="CPU work of the server's repetition of a request, relative to a message sent. Assumption: 1. "
        "None: `retransmission_cost`.",
    )
    script: ScriptSpec = Field(
        default_factory=ScriptSpec, description="Work of the routing script by message, beside that of its touches."
    )
    wakeup_cost: DurationNs = Field(
        0,
        description="Further CPU time of a message that finds all workers waiting: leaving an idle state, cold caches. "
        "Assumption; 0: none.",
    )
    wakeup_idle: DurationNs = Field(0, description="How long they must have waited for that. Assumption; 0: any time.")
    challenges: bool = Field(
        True,
        description="Whether a REGISTER is challenged (401) before it is accepted; without, it is answered at once.",
    )
    nonces_good_once: bool = Field(
        False,
        description="Whether credentials that come again are challenged again (OpenSIPS 1.6.2 `auth`: each nonce is "
        "good once).",
    )
    timer_period: PeriodNs = Field(S, description="Period of the timer process (OpenSIPS tm: 1 s).")
    transaction_wait: PositiveDurationNs = Field(
        5 * S, description="Time a completed transaction stays in memory (OpenSIPS wt_timer: 5 s)."
    )
    removal_cost: DurationNs = Field(
        0, description="CPU time to remove one expired transaction. Assumption; 0 turns it off."
    )
    housekeeping_cost: DurationNs = Field(
        0, description="CPU time of a timer run that finds expired transactions. Assumption; 0 turns it off."
    )
    location_flush_period: PeriodNs = Field(
        60 * S,
        description="Time between two writes of changed location records (OpenSIPS usrloc timer_interval: 60 s).",
    )
    location_write_cost: DurationNs = Field(
        0,
        description="CPU time to write one changed location record, server and database together. Assumption; 0: none.",
    )
    flush_in_timer_process: bool = Field(
        False,
        description="Whether the timer process writes the records, one query after the other, each a job of its own "
        "and one of the database (OpenSIPS 1.6.2 `timer.c`, `usrloc`); otherwise when no message waits.",
    )
    flush_database_share: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="Share of `location_write_cost` that is the database's in this case. Assumption: half.",
    )
    timers_wait_for_flush: bool = Field(
        False,
        description="Whether removals, repetitions of forwarded requests and their giving up wait until the timer "
        "process has written all records (OpenSIPS 1.6.2: one process serves both); needs `flush_in_timer_process`.",
    )
    flush_waits_on_disk: bool = Field(
        False,
        description="Whether the waits of timer process and database in a flush are disk sleeps, which Linux 2.6 does "
        "not reward with priority (`o1`). Assumption: they wait for each other.",
    )
    stall_period: PeriodNs = Field(60 * S, description="Time from one stall of all workers to the next.")
    stall_duration: DurationNs = Field(
        0,
        description="How long the workers stand still in a stall (a database or table lock): they take no message and "
        "use no CPU. Assumption; 0: none.",
    )
    t1: PositiveDurationNs = Field(500 * MS, description="Retransmission timer T1 (RFC 3261).")
    t2: PositiveDurationNs = Field(4 * S, description="Retransmission ceiling T2 (RFC 3261).")
    reply_timeout: PositiveDurationNs = Field(
        30 * S,
        description="Time without an answer after which a forwarded request is given up with a 408; an INVITE is safe "
        "with any answer (OpenSIPS fr_timer: 30 s).",
    )
    ringing_timeout: PositiveDurationNs = Field(
        120 * S,
        description="Time after which an INVITE that was only answered provisionally is given up (OpenSIPS "
        "fr_inv_timer: 120 s).",
    )
    memory_per_attempt: ByteCount = Field(
        455,
        description="Memory that an attempt leaves used to the end of the run (from the lab's available memory).",
    )
    memory_per_transaction: ByteCount = Field(4096, description="Memory of a transaction held. Assumption.")

    def without_effect(self) -> dict[str, str]:
        """Return the keys (dotted where nested) that nothing reads as it stands, each with the reason."""
        script = {f"script.{key}": why for key, why in self.script.without_effect().items()}
        return script | unread_without(self, _READ_WITH)

    @property
    def socket_buffer_messages(self) -> int:
        """Datagrams the socket buffer holds."""
        return self.socket_buffer // self.memory_per_datagram

    @model_validator(mode="after")
    def _can_work(self) -> "SipServerSpec":
        if self.memory_per_datagram == 0 or self.socket_buffer < self.memory_per_datagram:
            raise ValueError("socket_buffer must hold at least one datagram of memory_per_datagram")
        if self.stall_duration >= self.stall_period:
            raise ValueError("stall_duration must be shorter than stall_period, or the server never works")
        if self.timers_wait_for_flush and not self.flush_in_timer_process:
            raise ValueError(
                "timers_wait_for_flush needs flush_in_timer_process: nothing else keeps the timers waiting"
            )
        return self

    def most_per_s(self, inflation: float, exits: float) -> float:
        """What a CPU has time for; timers, lookups and what grows with load take nearly as much as the messages."""
        touch_ns = self.touch_cost * inflation + self.relay_cost * exits
        return 1e9 / (TOUCHES_AN_ATTEMPT * touch_ns * _OF_ALL_WORK)

    def install(self, context: InstallContext) -> "SipServerProgram":
        """Add the server."""
        return SipServerProgram(self, context)


class SipServerProgram(Program):
    """A SIP server in a running model; ``server`` is its row."""

    def __init__(self, spec: SipServerSpec, context: InstallContext) -> None:
        install_messages(context.engine)
        server = add_server(context.engine, context.domain, spec, context.cpu_inflation, guest=context.guest_scheduler)
        server.buffer_full = context.drop_row(f"{context.name} socket buffer", "full")
        super().__init__(context, server, start_server)
        self.server = int(server.row)
        self._processes = spec.processes

    def connected(self, port: int) -> None:
        """A worker pays the path's transmit work for each datagram."""
        self.engine.rows(sip_rules)[self.server].packet_cost_ns = self.engine.rows(ports)[port].transmit_ns

    def in_flight(self) -> int:
        """Datagrams in the socket's buffer and in the hands of processes."""
        server = self.record
        return int(server.buffer.length) + self._processes - int(server.idle.length)

    def check(self) -> None:
        """Raise unless what came to the socket is done, dropped, lost in a crash or in progress."""
        server, in_progress = self.record, self.in_flight()
        dropped = self.engine.rows(drops)[server.buffer_full].count
        if server.received != server.taken + dropped + in_progress + server.lost_in_crash or server.held < 0:
            raise ConservationError(
                f"of {server.received} datagrams at the socket of {self.name} {server.taken} are done, {dropped} were "
                f"dropped, {server.lost_in_crash} were lost in a crash and {in_progress} are in progress"
            )


def add_server(
    engine: Engine,
    domain: int,
    spec: SipServerSpec,
    cpu_inflation: float = 1.0,
    packet_cost_ns: int = 0,
    guest: GuestSchedulerSpec | None = None,
) -> SipServer:
    """Add a SIP server and its row of applications to a domain.

    ``cpu_inflation`` is the factor that the hypervisor puts on its CPU work, ``packet_cost_ns`` the CPU time that a
    worker pays the I/O path for each datagram it sends; by default of ``guest`` jobs take turns.
    """
    server = add_row(engine, sip_servers, domain=domain, boots=1, buffer_full=engine.new(drops))
    program = add_row(engine, applications, program=engine.number(sip_server), state_row=server.row, domain=domain)
    server.program = program.row
    rules = _write_rules(engine, server.row, spec)
    rules.cpu_inflation, rules.packet_cost_ns = cpu_inflation, packet_cost_ns
    _add_processes(engine, server, spec, guest or RoundRobinGuest())
    periods = [engine.new(expiries) for _ in range(rules.wait_periods + 1)]
    server.first_expiry = periods[0]
    return server


def _write_rules(engine: Engine, server: int, spec: SipServerSpec) -> SipRules:
    rules = fill_row(
        engine,
        sip_rules,
        server,
        spec,
        wait_periods=max(1, spec.transaction_wait // spec.timer_period),
        growth_up_to=spec.growth_up_to / 100.0,
        socket_buffer_messages=spec.socket_buffer_messages,
        **_prices_of_repeats(spec),
    )
    for message, script_ns in enumerate(spec.script.by_message()):
        rules.script_ns[message] = script_ns
    return rules


def _add_processes(engine: Engine, server: SipServer, spec: SipServerSpec, guest: GuestSchedulerSpec) -> None:
    """Add the processes of the timers, of the workers and of the database that serves each."""
    domain = int(server.domain)
    server.timer_process = add_process(engine, domain, guest)
    server.flush_database = add_process(engine, domain, guest)
    for process in (server.timer_process, server.flush_database):
        engine.rows(processes)[process].sleeps_on_disk = spec.flush_waits_on_disk
    for _ in range(spec.processes):
        process, database = add_process(engine, domain, guest), add_process(engine, domain, guest)
        worker, _ = engine.add(workers, server=server.row, process=process, database=database)
        server.first_worker = server.first_worker or worker


def _prices_of_repeats(spec: SipServerSpec) -> dict[str, float]:
    """Return what repeated messages cost, relative to their originals."""
    common, request = spec.retransmission_cost, spec.repeated_request_cost
    return {
        # A price is relative to a message of two touches; an INVITE causes three.
        "repeated_invite": common if request is None else request * 2 / TOUCHES[Message.INVITE],
        "repeated_request": common if request is None else request,
        "repeated_reply": common if spec.repeated_reply_cost is None else spec.repeated_reply_cost,
        "repeated_ok": common if spec.repeated_ok_cost is None else spec.repeated_ok_cost,
        "own_repeat": common if spec.own_repeat_cost is None else spec.own_repeat_cost,
    }
