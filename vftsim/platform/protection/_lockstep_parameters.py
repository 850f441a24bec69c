"""Parameters of VMware vLockstep; S2 is Scales, Nelson, Venkitachalam, OSR 44(4) 2010."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vftsim.platform.protection.channel import ChannelFields
from vftsim.platform.protection.detection import HeartbeatSpec
from vftsim.platform.protection.guard import FRAMING_BYTES
from vftsim.platform.protection.prices import assumed, published
from vftsim.platform.protection.when import When
from vftsim.spec.base import Spec
from vftsim.spec.units import (
    MS,
    US,
    BitRate,
    ByteCount,
    DurationNs,
    Percent,
    PeriodNs,
    PositiveDurationNs,
    RatePerSecond,
    S,
)

_EXIT_NS = 4_000
_PRICES = ("entry", "kibibyte", "timer", "output", "clock_read", "disk_operation", "batch", "exit", "context_switch")
_ONLY_COUNTED = (
    "log.clock_read_rate",
    "cost.clock_read",
    "cost.disk_operation",
    "cost.batch",
    "cost.context_switch",
    "cost.exit",
    "cost.plain_exit",
    "cost.settling",
)
_PositiveBytes = Annotated[ByteCount, Field(gt=0)]


class LogSpec(Spec):
    """What the primary writes into the log."""

    packet_entry: Annotated[ByteCount, assumed(32, 128)] = Field(
        64,
        description="Bytes of a received packet's entry beside its data: where in the execution it comes, the card's "
        "descriptor, its part of an interrupt. Assumption.",
    )
    framing: ByteCount = Field(
        FRAMING_BYTES,
        le=FRAMING_BYTES,
        description="Of a received packet on the wire, bytes that never enter the guest, so that nothing has to log "
        "them: preamble 8, gap 12, check sequence 4 (IEEE 802.3).",
    )
    output_entry: Annotated[ByteCount, assumed(16, 64)] = Field(
        32, description="Bytes of an output operation's entry. Assumption."
    )
    event_entry: Annotated[ByteCount, assumed(16, 64)] = Field(
        32, description="Bytes of a clock or counter read's entry. Assumption."
    )
    clock_reads_per_packet: int = Field(
        0, ge=0, le=1000, description="Clock and counter reads logged for each packet received; 0 turns them off."
    )
    clock_read_rate: RatePerSecond = Field(
        0.0,
        le=1e7,
        description="Clock and counter reads logged for each second of the guest's CPU time at speed 1 and without "
        "`cpu_inflation`; 0 turns them off. Only in the form `counted`.",
    )
    timer_rate: RatePerSecond = Field(
        1000.0,
        le=100_000,
        description="Timer interrupts of the guest (RHEL 5 kernel: 1000 a second); 0 turns them off.",
    )
    timer_entry: Annotated[ByteCount, published(59, 176, "S2")] = Field(
        120,
        description="Bytes of a timer interrupt's entry, with the frame that it has alone; makes the 0.5-1.5 Mbit/s "
        "of an idle guest (S2).",
    )
    disk_reads: bool = Field(
        True,
        description="What programs read from the domain's disks travels over the log (S2: by default); false: the "
        "secondary reads the shared disk itself.",
    )
    disk_read_rate: RatePerSecond = Field(
        0.0, le=1e6, description="Disk reads beside those of the model's programs that travel over the log; 0: none."
    )
    disk_read_size: ByteCount = Field(4096, description="Data of a disk read.")
    transport_overhead: Annotated[float, published(1.01, 1.2, "frames of 9000 B; VMware's sizing rule")] = Field(
        1.062,
        ge=1.0,
        le=10.0,
        description="Bytes on the wire for a byte of log: segments of TCP with 1448 B of it in 1538 B. (VMware's "
        "sizing rule, 1.2 for each byte received, has entries and timers in it, which are counted here.)",
    )
    buffer: _PositiveBytes = Field(
        512 * 1024, description="Log buffer on the primary; when it is full the guest stops. Assumption."
    )


class PrimaryCostSpec(Spec):
    """CPU time that recording costs the primary's guest: of events that are counted, or as two factors."""

    form: Literal["counted", "factors"] | None = Field(
        None,
        description="`counted`: each event has its price; `factors`: of these only the first four, and two factors. "
        "Not given: `factors` where `execution` or `exits` is given, else `counted`.",
    )
    entry: Annotated[DurationNs, assumed(2 * US, 20 * US)] = Field(
        10 * US, description="For each packet or disk read logged. Assumption."
    )
    kibibyte: Annotated[DurationNs, assumed(US // 4, 4 * US)] = Field(
        1 * US, description="For each KiB of data logged (copying). Assumption."
    )
    timer: Annotated[DurationNs, assumed(US // 5, 5 * US)] = Field(
        1 * US, description="For each timer interrupt logged. Assumption."
    )
    output: Annotated[DurationNs, assumed(2 * US, 20 * US)] = Field(
        10 * US, description="For each output held and released. Assumption."
    )
    clock_read: Annotated[DurationNs, assumed(US // 2, 5 * US)] = Field(
        2 * US,
        description="`counted`: for each clock read logged: it leaves the guest. Assumption. (`factors`: `entry`.)",
    )
    disk_operation: Annotated[DurationNs, assumed(2 * US, 20 * US)] = Field(
        10 * US, description="`counted`: for each disk operation of a program that ends. Assumption; 0 turns it off."
    )
    batch: Annotated[DurationNs, assumed(US // 2, 10 * US)] = Field(
        2 * US,
        description="`counted`: for each batch of entries sent and acknowledged; what is written while the channel is "
        "busy joins a batch. Timer interrupts have it in their price. Assumption; 0 turns it off.",
    )
    context_switch: Annotated[DurationNs, assumed(0, 5 * US)] = Field(
        0,
        description="`counted`: for each time the guest goes from one process to another (address space, shadow "
        "page tables). Not known: 0.",
    )
    exit: Annotated[DurationNs, assumed(US, 8 * US)] = Field(
        _EXIT_NS,
        description="`counted`: for each exit to the hypervisor, beside what it costs anyway. Assumption: as much "
        "again; 0 turns it off.",
    )
    plain_exit: PositiveDurationNs = Field(
        _EXIT_NS,
        description="What an exit costs without recording: makes exits of `relay_cost` of a server. Assumption, that "
        "of the emulated cards.",
    )
    settling: PeriodNs = Field(
        10 * MS, description="`counted`: how long costs wait at most for an interrupt that carries them. Assumption."
    )
    execution: float | None = Field(
        None,
        ge=1.0,
        le=10.0,
        description="`factors`: factor on all CPU work of the guest while it is recorded. Assumption; 1 turns it off.",
    )
    exits: float | None = Field(
        None,
        ge=1.0,
        le=1000.0,
        description="`factors`: factor on the guest's exits to the hypervisor (`relay_cost` of the server) while it "
        "is recorded: each is logged as well. Assumption; 1 turns it off.",
    )

    @property
    def is_counted(self) -> bool:
        """Whether the costs are those of counted events."""
        if self.form is None:
            return self.execution is None and self.exits is None
        return self.form == "counted"

    @property
    def slowdown(self) -> tuple[float, float]:
        """Factors on all CPU work of the guest and on its exits to the hypervisor."""
        if self.is_counted:
            return 1.0, 1.0 + self.exit / self.plain_exit
        return self.execution or 1.0, self.exits or 1.0

    def remark(self) -> str:
        """Say which prices nobody has calibrated: those at their defaults."""
        if not self.is_counted:
            return (
                f"factors on execution ({self.slowdown[0]:g}) and exits ({self.slowdown[1]:g}), which hold for the "
                "server that they were fitted to and no other"
            )
        at_defaults = [name for name in _PRICES if getattr(self, name) == type(self).model_fields[name].default]
        unknown = [name for name in at_defaults if not getattr(self, name)]
        assumed = [name for name in at_defaults if name not in unknown]
        parts = ["prices of counted events"]
        if assumed:
            parts.append(f"assumed, not calibrated for this model: {', '.join(assumed)}")
        if unknown:
            parts.append(f"not known, taken as 0: {', '.join(unknown)}")
        return "; ".join(parts if len(parts) > 1 else [*parts, "all the model's own"])

    @model_validator(mode="after")
    def _one_form(self) -> "PrimaryCostSpec":
        if self.form == "counted" and (self.execution is not None or self.exits is not None):
            raise ValueError(
                "execution and exits belong to the form 'factors'; for 'counted' set both to null, or take form away"
            )
        return self


class SecondaryDiskSpec(Spec):
    """The secondary's path to the shared disk: it reads what the log leaves out, one read at a time."""

    service: DurationNs = Field(description="Time of a read, whatever its size.")
    rate: Annotated[BitRate, Field(gt=0)] | None = Field(None, description="Rate at which data come; none: at once.")


class SecondarySpec(Spec):
    """The replaying host."""

    factor: float = Field(
        1.0,
        gt=0.0,
        le=100.0,
        description="Time it needs for execution that took the primary 1; above 1: a slow backup.",
    )
    entry_cost: Annotated[DurationNs, assumed(US, 20 * US)] = Field(
        5 * US, description="Time to replay an entry. Assumption."
    )
    kibibyte: Annotated[DurationNs, assumed(0, US)] = Field(
        0, description="Time to replay a KiB of logged data (copying into the guest). Not known: 0."
    )
    buffer: _PositiveBytes = Field(512 * 1024, description="Log buffer of the secondary. Assumption.")
    disk: SecondaryDiskSpec | None = Field(
        None,
        description="Its path to the shared disk where `log.disk_reads` is false; not given: it has read what the "
        "primary has as soon as it gets there.",
    )


class ThrottleSpec(Spec):
    """When and how a primary that is too far ahead is slowed down."""

    lag_limit: DurationNs = Field(1 * S, description="Execution lag above which the primary is slowed (S2: 1 s).")
    caught_up: DurationNs = Field(100 * MS, description="Lag below which it is given back (S2: normal below 100 ms).")
    step: Percent = Field(3.0, description="CPU share taken or given at a time (S2: a few percent).")
    period: PeriodNs = Field(1 * S, description="Time between two looks at the lag. Assumption.")
    least_share: Percent = Field(10.0, description="Share never gone below. Assumption.")
    cycle: PeriodNs = Field(50 * MS, description="Length of the duty cycle. Assumption.")


class LogSilenceSpec(HeartbeatSpec):
    """How the hosts notice that the other one is gone: by heartbeats and by the log."""

    heartbeat_interval: PeriodNs = Field(1 * S, description="UDP heartbeats between the hosts. Assumption.")
    timeout: Annotated[PositiveDurationNs, published(1 * S, 5 * S, "S2: a few seconds")] = Field(
        3 * S,
        description="Silence of heartbeats, or of log entries and acknowledgements, that means failure (S2: of the "
        "order of a few seconds).",
    )
    log_timeout: PositiveDurationNs | None = Field(
        None, description="Silence of log entries or acknowledgements that means failure; `timeout` if not given."
    )
    secondary_delay: Annotated[DurationNs, assumed(0, 100 * MS)] = Field(
        10 * MS,
        description="How much longer the secondary waits than the primary, so that with both alive "
        "the primary, which runs, wins the race. Assumption.",
    )

    @property
    def log_silence_ns(self) -> int:
        """Silence of the log that means failure."""
        return self.timeout if self.log_timeout is None else self.log_timeout


class FailoverSpec(Spec):
    """How a failure is noticed and what follows."""

    detection: LogSilenceSpec = Field(default_factory=LogSilenceSpec, description="How a failure is noticed.")
    go_live: Annotated[DurationNs, assumed(10 * MS, 1 * S)] = Field(
        100 * MS, description="From the end of replay to execution as primary: devices, pending disk I/O. Assumption."
    )
    announcement: Annotated[DurationNs, assumed(1 * MS, 100 * MS)] = Field(
        10 * MS, description="From then until the switches have learnt the new place of the MAC address. Assumption."
    )
    fencing: bool = Field(True, description="Atomic test-and-set on the shared storage before going live (S2).")
    storage_latency: Annotated[DurationNs, assumed(1 * MS, 20 * MS)] = Field(
        5 * MS, description="Time of the test-and-set. Assumption."
    )


class LockstepParameters(ChannelFields):
    """All parameters of the mechanism, by subject."""

    active_from: When | None = Field(
        None, description="When protection is turned on (`step 1`, `20 s`); from the start if not given."
    )
    log: LogSpec = Field(default_factory=LogSpec, description="Log entries.")
    cost: PrimaryCostSpec = Field(default_factory=PrimaryCostSpec, description="CPU cost on the primary.")
    secondary: SecondarySpec = Field(default_factory=SecondarySpec, description="Replay.")
    throttle: ThrottleSpec = Field(default_factory=ThrottleSpec, description="Limit of the execution lag.")
    failover: FailoverSpec = Field(default_factory=FailoverSpec, description="Detection and go-live.")

    @property
    def patience_ns(self) -> int:
        detection = self.failover.detection
        return max(detection.timeout, detection.log_silence_ns) + detection.secondary_delay

    def without_effect(self) -> dict[str, str]:
        """Return the keys that nothing reads as it stands, each with the reason."""
        reasons = {} if self.cost.is_counted else dict.fromkeys(_ONLY_COUNTED, "only costs in the form counted read it")
        reasons |= super().without_effect()
        if self.log.disk_read_rate == 0:
            reasons["log.disk_read_size"] = "reads of programs have sizes of their own, and there are no others"
        if not self.failover.fencing:
            reasons["failover.storage_latency"] = "nobody takes a lock (failover.fencing)"
        if self.log.disk_reads and self.secondary.disk is not None:
            reasons["secondary.disk"] = "what is read travels over the log (log.disk_reads)"
        detection = self.failover.detection
        log_ns = detection.log_silence_ns + detection.secondary_delay
        if detection.timeout >= detection.heartbeat_interval + log_ns:
            reasons["failover.detection.timeout"] = (
                "log_timeout is always over first, since a host that fails stops the log too; give timeout alone"
            )
        return reasons

    @model_validator(mode="after")
    def _notices_failures(self) -> "LockstepParameters":
        detection = self.failover.detection
        if self.log.timer_rate and detection.log_silence_ns * self.log.timer_rate < S:
            name = "timeout" if detection.log_timeout is None else "log_timeout"
            raise ValueError(f"failover.detection.{name} must be longer than the time between two timer interrupts")
        return self
