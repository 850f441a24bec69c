"""Parameters of the SIP server, of the network around it and of the benchmark that loads it."""

from pydantic import Field, model_validator

from vftsim.sip.messages import Scenario
from vftsim.spec import (
    ByteCount,
    DurationNs,
    Items,
    Percent,
    PositiveDurationNs,
    RatePerSecond,
    Spec,
)

_MS = 1_000_000
_S = 1_000_000_000


class SipServerSpec(Spec):
    """A stateful SIP proxy and registrar; see :mod:`vftsim.sip.server` for the mechanism."""

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
    retransmission_cost: float = Field(
        0.4,
        ge=0.0,
        le=1.0,
        description="CPU work of a retransmission that meets its transaction, relative to a new message.",
    )
    timer_period: PositiveDurationNs = Field(_S, description="Period of the timer process (OpenSIPS tm: 1 s).")
    transaction_wait: PositiveDurationNs = Field(
        5 * _S, description="Time a completed transaction stays in memory (OpenSIPS wt_timer: 5 s)."
    )
    removal_cost: DurationNs = Field(
        0, description="CPU time to remove one expired transaction. Assumption; 0 turns it off."
    )
    housekeeping_cost: DurationNs = Field(
        0, description="CPU time of a timer run that finds expired transactions. Assumption; 0 turns it off."
    )
    location_flush_period: PositiveDurationNs = Field(
        60 * _S,
        description="Time between two writes of changed location records (OpenSIPS usrloc timer_interval: 60 s).",
    )
    location_write_cost: DurationNs = Field(
        0,
        description="CPU time to write one changed location record, server and database together. Assumption; 0: none.",
    )
    stall_period: PositiveDurationNs = Field(60 * _S, description="Time from one stall of all workers to the next.")
    stall_duration: DurationNs = Field(
        0,
        description="How long the workers stand still in a stall (a database or table lock): they take no message and "
        "use no CPU. Assumption; 0: none.",
    )
    t1: PositiveDurationNs = Field(500 * _MS, description="Retransmission timer T1 (RFC 3261).")
    t2: PositiveDurationNs = Field(4 * _S, description="Retransmission ceiling T2 (RFC 3261).")
    reply_timeout: PositiveDurationNs = Field(
        30 * _S,
        description="Time without an answer after which a forwarded request is given up with a 408; an INVITE is safe "
        "with any answer (OpenSIPS fr_timer: 30 s).",
    )
    ringing_timeout: PositiveDurationNs = Field(
        120 * _S,
        description="Time after which an INVITE that was only answered provisionally is given up (OpenSIPS "
        "fr_inv_timer: 120 s).",
    )
    memory_per_attempt: ByteCount = Field(
        455,
        description="Memory that an attempt leaves used to the end of the run (from the lab's available memory).",
    )
    memory_per_transaction: ByteCount = Field(4096, description="Memory of a transaction held. Assumption.")
    quantum: PositiveDurationNs = Field(
        100 * _MS, description="Time slice of the guest's scheduler (Linux 2.6.18 O(1): 100 ms at nice 0)."
    )

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
        return self


class VirtualizationSpec(Spec):
    """What running on a hypervisor costs the guest; all zero (and 1) on bare metal."""

    cpu_inflation: float = Field(
        1.0,
        ge=1.0,
        le=10.0,
        description="Factor on the guest's CPU work (shadow paging, exits in computation).",
    )
    relay_cost: DurationNs = Field(
        0,
        description="Further CPU time for each message of a forwarded transaction received or sent. Assumption: "
        "relaying wakes other processes and sets timers, which exit to the hypervisor; registrations do not.",
    )
    packet_cost: DurationNs = Field(
        0, description="CPU time for each packet received or sent (exits, copies of the virtual NIC)."
    )
    interrupt_cost: DurationNs = Field(
        0, description="CPU time for each virtual interrupt, however many packets it announces."
    )


class Thresholds(Spec):
    """Delays above which an attempt is inadequately handled.

    Inferred from the virtual environment's last step, where the shares of inadequately handled attempts
    meet the measured delay percentiles at these values; the benchmark's own settings are not printed.
    """

    registration: PositiveDurationNs = Field(2 * _S, description="REG1 and REG2: REGISTER to its answer.")
    reregistration: PositiveDurationNs = Field(2_250 * _MS, description="REG4: a whole re-registration.")
    session_setup: PositiveDurationNs = Field(4 * _S, description="SES1: INVITE to ACK, ringing excluded.")
    release: PositiveDurationNs = Field(2 * _S, description="REL1: BYE to 200.")
    message: PositiveDurationNs = Field(2 * _S, description="PMM1: MESSAGE to 200.")


class Mix(Spec):
    """Shares of the scenarios among the attempts; must add up to 100 %."""

    ims_rereg: Percent = Field(15.0, description="Re-registrations.")
    ims_reg: Percent = Field(2.5, description="Initial registrations.")
    ims_uac: Percent = Field(50.0, description="Calls.")
    ims_dereg: Percent = Field(2.5, description="De-registrations.")
    ims_msgc: Percent = Field(30.0, description="Page messages.")

    @model_validator(mode="after")
    def _adds_up(self) -> "Mix":
        total = sum(self.shares())
        if abs(total - 100.0) > 0.01:
            raise ValueError(f"the shares of the mix must add up to 100 %, they add up to {total:g} %")
        return self

    def shares(self) -> list[float]:
        """Shares in the order of :class:`~vftsim.sip.messages.Scenario`, in percent."""
        return [float(getattr(self, scenario.label)) for scenario in Scenario]


class StepsSpec(Spec):
    """The measured ramp: constant load for a step, then more."""

    initial: RatePerSecond = Field(50.0, gt=0, le=100_000, description="Load of the first step, attempts a second.")
    increment: RatePerSecond = Field(10.0, gt=0, le=100_000, description="Rise from step to step.")
    loads: Items[RatePerSecond] = Field(
        (), max_length=1000, description="Load of each step in turn; instead of initial and increment when given."
    )
    duration: PositiveDurationNs = Field(900 * _S, description="Length of a step.")
    transient: DurationNs = Field(30 * _S, description="First part of a step that is not counted.")
    most: int = Field(30, ge=1, le=1000, description="Most steps a run may have.")
    stop_above_ihs: Percent = Field(
        10.0,
        description="Stop after a step in which this share of a scenario's attempts is inadequately handled.",
    )

    @model_validator(mode="after")
    def _measures_something(self) -> "StepsSpec":
        if self.transient >= self.duration:
            raise ValueError("transient must be shorter than duration, or nothing is measured")
        if any(load <= 0 for load in self.loads):
            raise ValueError("every load must be above 0")
        return self

    @property
    def count(self) -> int:
        """Most steps a run may have."""
        return min(self.most, len(self.loads)) if self.loads else self.most

    def load_of(self, step: int) -> float:
        """Load of a step, counted from 0, in attempts a second."""
        return self.loads[step] if self.loads else self.initial + step * self.increment


class PreRegistrationSpec(Spec):
    """Registration of subscribers before the ramp, at a constant rate."""

    rate: RatePerSecond = Field(50.0, gt=0, le=100_000, description="Registrations a second, over all test systems.")
    duration: DurationNs = Field(120 * _S, description="How long it is simulated; 0 skips it.")
    transient: DurationNs = Field(10 * _S, description="First part that is not counted.")


class StirSpec(Spec):
    """Gradual rise to the first step's load, not measured."""

    duration: DurationNs = Field(60 * _S, description="Length of the stir phase.")
    steps: int = Field(3, ge=1, le=100, description="Equal rises of the load in it.")


class ImsBenchSpec(Spec):
    """The IMS benchmark (ETSI TS 186 008 as run by IMS Bench SIPp); see :mod:`vftsim.sip.benchmark`."""

    test_systems: int = Field(
        10,
        ge=1,
        le=1000,
        description="User agent hosts; pre-registration starts one user on each at the same time.",
    )
    subscribers: int = Field(100_000, ge=10, le=10_000_000, description="Provisioned subscribers.")
    registered: Percent = Field(20.0, description="Share of the subscribers that is registered when the ramp begins.")
    mix: Mix = Field(default_factory=Mix, description="Scenario mix.")
    ring_time: PositiveDurationNs = Field(5 * _S, description="Mean ringing time of a call, exponential.")
    hold_time: PositiveDurationNs = Field(30 * _S, description="Mean holding time of a call, exponential.")
    pre_registration: PreRegistrationSpec = Field(default_factory=PreRegistrationSpec, description="First phase.")
    stir: StirSpec = Field(default_factory=StirSpec, description="Second phase.")
    steps: StepsSpec = Field(default_factory=StepsSpec, description="Measured phase.")
    thresholds: Thresholds = Field(default_factory=Thresholds, description="Limits of adequate handling.")
    t1: PositiveDurationNs = Field(500 * _MS, description="Retransmission timer T1 of the user agents.")
    t2: PositiveDurationNs = Field(4 * _S, description="Retransmission ceiling T2, not for INVITE.")
    invite_retransmissions: int = Field(5, ge=0, le=32, description="Retransmissions of an INVITE (SIPp: 5).")
    request_retransmissions: int = Field(9, ge=0, le=32, description="Retransmissions of other messages (SIPp: 9).")
    sample_period: PositiveDurationNs = Field(_S, description="Interval of the CPU, load and memory series.")
