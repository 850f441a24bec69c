"""Parameters that mechanisms share which send states of a guest to a backup, and how they get into the records.

Sources: Remus, NSDI 2008; Xen ``tools/remus/remus`` and ``tools/python/xen/remus``; the thesis, Appendix G.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from vftsim.kernel import Engine
from vftsim.outcome import declare
from vftsim.platform.io.disk import PAGE_BYTES
from vftsim.platform.protection import disk_mirror, machine, memory, output_buffer, reprotection, sender, state_stream
from vftsim.platform.protection._replication_records import UNPROTECTED, replications
from vftsim.platform.protection.channel import ChannelFields
from vftsim.platform.protection.detection import DetectionSpec
from vftsim.platform.protection.memory import MemorySpec
from vftsim.platform.protection.outcome import Protection
from vftsim.platform.protection.prices import Priced, assumed
from vftsim.platform.protection.sender import SenderSpec, senders
from vftsim.platform.protection.state_stream import state_streams
from vftsim.platform.protection.when import Instant, When
from vftsim.platform.rows import fill_row
from vftsim.spec.base import Spec
from vftsim.spec.units import DURATION, MS, US, ByteCount, ByteRate, DurationNs, PeriodNs, PositiveDurationNs, S

_MB = 1e6
_OF_STATES = (
    *(f"memory.{key}" for key in ("working_set", "touch_rate", "per_request")),
    *(f"state.{key}" for key in ("fixed", "page", "compression", "compression_cost", "receive_cost")),
    *(f"disk.{key}" for key in ("mirrored", "write_rate", "apply_rate")),
)
_OF_BACKUPS = (
    *("channel", "reprotection", "failover", "initial_copy", "disk.mirrored", "disk.apply_rate"),
    *("state.compression_cost", "state.receive_cost", "sender.page", "sender.state"),
)


RINGS = {"by_path": machine.RINGS_BY_PATH, "lost": machine.LOST_RINGS, "saved": machine.SAVED_RINGS}


class StatesSent(Protection):
    """What mechanisms that send states did and cost."""

    dirty_pages: float = declare.total(label="pages sent")
    most_uncommitted_bytes: int = declare.number(label="disk writes not yet committed, most", unit="B")
    most_outputs_held: int = declare.number(label="outputs held, most")
    outputs_dropped: int = declare.total(label="outputs dropped for want of room", better="lower")


class StateSpec(Spec):
    """What a state is made of on the wire."""

    fixed: Annotated[ByteCount, assumed(16 * 1024, 256 * 1024)] = Field(
        64 * 1024, description="vCPUs, devices, headers. Assumption."
    )
    page: Annotated[ByteCount, Field(gt=0)] = Field(4104, description="A page with its number (Xen: 4096 B and 8 B).")
    compression: float = Field(1.0, ge=1.0, le=1000.0, description="Ratio by which pages shrink; 1: none.")
    receive_cost: Annotated[DurationNs, assumed(2 * US, 12 * US)] = Field(
        6_000,
        description="CPU time of the second host for a page received, or for 4 KiB of disk writes. Assumption: that of "
        "`sender.page`.",
    )
    compression_cost: DurationNs = Field(
        0, description="CPU time to compress a page, while the guest runs, of who sends it (`sender`). Assumption."
    )
    receive_ring: Literal["by_path", "lost", "saved"] = Field(
        "by_path",
        description="Packets in the guest's receive ring when its state is taken: `saved` with it, or `lost` when its "
        "driver connects anew; `by_path`: saved with an emulated card, lost with Xen's split driver and a real card.",
    )


class DiskMirrorSpec(Spec):
    """Disk writes that go to the backup."""

    mirrored: bool = Field(
        True, description="What programs write goes to a disk of the backup's own; false: both hosts share the storage."
    )
    write_rate: ByteRate = Field(
        0,
        description="What the guest writes in a second of its CPU time (as `memory.touch_rate`) beside what programs "
        "do; it goes with the state.",
    )
    apply_rate: Annotated[ByteRate, Field(gt=0)] = Field(
        60_000_000, description="What the backup's disk takes. Assumption: a disk of 2008."
    )


class OutputQueueSpec(Spec):
    """The queue in which outputs wait."""

    most: int = Field(10_000, ge=1, le=1 << 18, description="Packets; further ones are dropped. Assumption.")
    spacing: DurationNs = Field(0, description="Time between two packets of a burst leaving the queue. Assumption: 0.")


class StateSilenceSpec(DetectionSpec):
    """How backup and primary notice that the other one is gone: by states and their acknowledgements."""

    timeout: PositiveDurationNs = Field(1 * S, description="Silence after which the backup takes over (Remus: 1 s).")
    backup_timeout: PositiveDurationNs = Field(
        1 * S,
        description="Wait for an acknowledgement, or for a heartbeat where there are any, after which the primary goes "
        "on alone (Remus: 1 s).",
    )


class BackupHeartbeatSpec(StateSilenceSpec):
    """How they notice it where heartbeats tell a silent guest from a dead host."""

    heartbeat_interval: PeriodNs = Field(
        100 * MS, description="Heartbeats between the hosts, both ways (QEMU's COLO). Their time is an assumption."
    )

    @model_validator(mode="after")
    def _hears_the_backup(self) -> "BackupHeartbeatSpec":
        if self.backup_timeout < self.heartbeat_interval:
            raise ValueError("backup_timeout must be at least heartbeat_interval, or every pause is a failure")
        return self


class TakeoverSpec(Spec):
    """How a failure is noticed, and what follows."""

    detection: StateSilenceSpec = Field(default_factory=StateSilenceSpec, description="How a failure is noticed.")
    fencing: bool = Field(
        False, description="A lock on shared storage halts the loser. Remus has none (thesis, Appendix G)."
    )
    storage_latency: DurationNs = Field(5 * MS, description="Time to take that lock. Assumption.")
    activation_record: Annotated[DurationNs, assumed(1 * MS, 20 * MS)] = Field(
        5 * MS, description="Writing the activation record. Assumption: one write."
    )
    go_live: Annotated[DurationNs, assumed(10 * MS, 1 * S)] = Field(
        100 * MS, description="From the restored state to execution: devices. Assumption."
    )
    announcement: Annotated[DurationNs, assumed(1 * MS, 100 * MS)] = Field(
        10 * MS, description="From then until the switches have learnt the new place. Assumption."
    )


class HeartbeatTakeoverSpec(TakeoverSpec):
    """How a failure is noticed, also by heartbeats, and what follows."""

    detection: BackupHeartbeatSpec = Field(default_factory=BackupHeartbeatSpec, description="How a failure is noticed.")


class ReplicationFields(ChannelFields):
    """Parameters of every mechanism of this sort."""

    outcome: ClassVar[type[Protection]] = StatesSent
    sends_pages: ClassVar[bool] = True
    """Whether it sends the pages that the guest dirties, as states or as copies of them."""
    applies_writes: ClassVar[int] = disk_mirror.BUFFERED
    """What its backup does with disk writes."""

    active_from: When | None = Field(None, description="When protection is turned on; from the start if not given.")
    memory: MemorySpec = Field(default_factory=MemorySpec, description="What the guest writes to.")
    state: StateSpec = Field(default_factory=StateSpec, description="A state on the wire.")
    outputs: OutputQueueSpec = Field(default_factory=OutputQueueSpec, description="Queue of outputs.")
    disk: DiskMirrorSpec = Field(default_factory=DiskMirrorSpec, description="Mirrored disk writes.")
    sender: SenderSpec = Field(default_factory=SenderSpec, description="CPU time of the driver domain for sending.")
    failover: TakeoverSpec = Field(default_factory=TakeoverSpec, description="Detection and takeover.")
    initial_copy: bool = Field(
        False, description="Protection begins with a copy of the guest, as `reprotection` says; else at once."
    )

    @property
    def has_backup(self) -> bool:
        return True

    @property
    def patience_ns(self) -> int:
        return max(self.failover.detection.timeout, self.failover.detection.backup_timeout)

    def prices(self) -> list[Priced]:
        """Leave out those of pages where none are sent, and those of a backup where there is none."""
        prices = super().prices()
        if not self.sends_pages:
            prices = [each for each in prices if each.key.partition(".")[0] not in ("memory", "state", "sender")]
        if not self.has_backup:
            prices = [each for each in prices if not each.is_of_failure and each.key != "state.receive_cost"]
        if not self.failover.fencing:
            prices = [each for each in prices if each.key != "failover.storage_latency"]
        return prices

    def without_effect(self) -> Mapping[str, str]:
        """Those of states where none are sent, those of a backup where there is none, and of a lock nobody takes."""
        unread = {} if self.sends_pages else dict.fromkeys(_OF_STATES, "the mechanism sends no states")
        if not self.has_backup:
            return {**unread, **dict.fromkeys(_OF_BACKUPS, "states stay on their host")}
        if not self.failover.fencing:
            unread["failover.storage_latency"] = "nobody takes a lock (failover.fencing)"
        return {**super().without_effect(), **unread}

    @property
    def is_fenced(self) -> bool:
        return self.failover.fencing

    @property
    def pages_a_packet(self) -> float | None:
        return self.memory.per_request

    @property
    def mirrors_writes(self) -> bool:
        return self.disk.mirrored and self.sends_pages and self.has_backup

    @property
    def backup_disk_bytes_per_s(self) -> int:
        """Return the rate at which it applies them."""
        return self.disk.apply_rate if self.has_backup and self.applies_writes == disk_mirror.BUFFERED else 0

    def without_sender(self, has_driver_domain: bool) -> Mapping[str, str]:
        """Those of the sender, where nothing is sent or nobody pays for it."""
        if not self.sends_pages:
            return dict.fromkeys(("sender.domain", "sender.page", "sender.state"), "the mechanism sends no states")
        if self.sent_by is None and not has_driver_domain:
            why = "no domain pays for it: the host has no driver domain"
            return dict.fromkeys(("sender.page", "sender.state"), why)
        return {}

    @property
    def longest_silence_ns(self) -> int:
        """For how long the backup hears nothing of a primary that works, at least."""
        return 0

    @property
    def taken_for_dead(self) -> str:
        silence_ns, timeout_ns = self.longest_silence_ns, self.failover.detection.timeout
        if not self.has_backup or timeout_ns > silence_ns:
            return ""
        timeout, silence = DURATION.format(timeout_ns), DURATION.format(silence_ns)
        return (
            f"failover.detection.timeout ({timeout}) must be above the {silence} for which the backup hears nothing of "
            "a primary that works, or it takes over from it at once"
        )

    @model_validator(mode="after")
    def _is_heard_of(self) -> "ReplicationFields":
        if why := self.taken_for_dead:
            raise ValueError(why)
        return self

    @property
    def sent_by(self) -> str | None:
        """Domain that pays for sending states, if the model says it."""
        return self.sender.domain

    @property
    def begins(self) -> Instant | None:
        return self.active_from

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        memory.install(engine, guard, self.memory)
        self.install_channel(engine, guard, vm_link)
        disk_mirror.install(engine, guard, self.applies_writes if self.mirrors_writes else 0)
        output_buffer.install(engine, guard, self.outputs.most, self.outputs.spacing)
        sender.install(engine, guard, self.sender, self.state.compression_cost)
        reprotection.install(engine, guard, self.copy_again, vm_link)
        self._install_stream(engine, guard)
        self._install_takeover(engine, guard)

    def _install_stream(self, engine: Engine, guard: int) -> None:
        stream = engine.rows(state_streams)[guard]
        stream.fixed_bytes = self.state.fixed
        stream.page_bytes = self.state.page / self.state.compression
        stream.page_ns = self.state.compression_cost / machine.cpu_speed(engine, guard)
        stream.disk_bytes_per_ns = self.disk.write_rate * machine.work_speed(engine, guard) / S
        stream.disk_rate = self.disk.apply_rate

    def _install_takeover(self, engine: Engine, guard: int) -> None:
        failover = self.failover
        replication = fill_row(engine, replications, guard, failover.detection, state=UNPROTECTED)
        fill_row(engine, replications, guard, failover, activation_ns=failover.activation_record)
        replication.is_fenced = failover.fencing
        replication.copies_first = self.initial_copy and self.reprotection is not None
        replication.storage_ns = failover.storage_latency if failover.fencing else 0
        replication.rings = RINGS[self.state.receive_ring]

    def holds(self, engine: Engine, guard: int) -> dict[str, Any]:
        stream, of_states = engine.rows(state_streams)[guard], state_stream.holds(engine, guard)
        state_mb = int(stream.most_bytes) / _MB
        pages = float(stream.pages_taken) + of_states["backup_disk_bytes"] / PAGE_BYTES
        received_ns = self.state.receive_cost * pages / machine.cpu_speed(engine, guard)
        held = {
            "backup_cpu_ns": round(received_ns) + self.executed_ns(engine, guard),
            "backup_memory": self._guest_mb + state_mb + int(stream.most_uncommitted_bytes) / _MB,
        }
        return {
            **super().holds(engine, guard),
            **of_states,
            **output_buffer.holds(engine, guard),
            "sender_cpu_ns": int(engine.rows(senders)[guard].charged_ns),
            "memory": state_mb,
            **(held if self.has_backup else {"backup_disk_bytes": 0}),
        }

    @property
    def _guest_mb(self) -> float:
        """Memory of the guest, which the second host keeps as well."""
        return self.memory_bytes / _MB

    def executed_ns(self, engine: Engine, guard: int) -> int:
        """Return the CPU time of second copies that have done what the guest did; 0 where none does."""
        return self.followed_ns(engine, guard) if self.backup_executes else 0

    def followed_ns(self, engine: Engine, guard: int) -> int:
        """Return the CPU time that the guest has used while there was a backup."""
        replication = engine.rows(replications)[guard]
        return int(replication.follow_ns) + (machine.used_ns(engine, guard) if replication.follows else 0)

    def forget_extremes(self, engine: Engine, guard: int) -> None:
        output_buffer.forget_extremes(engine, guard)
        stream = engine.rows(state_streams)[guard]
        stream.most_uncommitted_bytes = stream.most_bytes = 0


class HeartbeatFields(ReplicationFields):
    """Parameters of those of them whose guest may be silent: heartbeats tell it from a dead host."""

    failover: HeartbeatTakeoverSpec = Field(
        default_factory=HeartbeatTakeoverSpec, description="Detection and takeover."
    )

    @property
    def longest_silence_ns(self) -> int:
        """From one heartbeat to the next."""
        return self.failover.detection.heartbeat_interval
