"""What a mechanism did to a guest and what it cost, as figures that every mechanism has."""

from collections.abc import Mapping
from typing import Any

from vftsim.kernel import Engine
from vftsim.outcome import Outcome, attribute, declare
from vftsim.platform.protection import machine
from vftsim.platform.protection.account import UNITS, counters
from vftsim.platform.protection.guard import guards


class Protection(Outcome):
    """What any mechanism did and cost."""

    stopped_ns: int = declare.total(label="time the guest stands still", unit="ns", better="lower")
    """Time the guest stood still."""
    released: int = declare.total(label="outputs released")
    held_ns: int = declare.total(label="time outputs were held", unit="ns", better="lower")
    longest_held_ns: int = declare.number(label="output held, longest", unit="ns", better="lower")
    """Outputs let go; how long they had waited, together and at most."""
    channel_bytes: int = declare.total(label="sent over the channel", unit="B", better="lower")
    """Sent to the other host."""
    backup_cpu_ns: int = declare.total(label="CPU time of the second host", unit="ns", better="lower")
    sender_cpu_ns: int = declare.total(label="CPU time for sending", unit="ns", better="lower")
    """CPU time of the second host, and of whoever pays for sending states."""
    backup_disk_bytes: int = declare.total(label="written to the second host's disk", unit="B", better="lower")
    """Written to the second host's disk."""
    memory: float = declare.number(label="memory taken on the primary's host", unit="MB", better="lower")
    backup_memory: float = declare.number(label="memory taken on the second host", unit="MB", better="lower")
    """Memory in MB that it takes on the primary's host, beside the guest's own, and on the second host."""
    judged: int = declare.total(label="outputs judged")
    breaches: int = declare.total(label="outputs that broke the promise", better="lower", headline=declare.IF_ANY)
    """Outputs that the auditor has seen leave while the promise was in force; those that left too early."""
    first_breach: dict[str, int] | None = attribute()
    """Of the first of these in the run: the row of its flow, and in ns up to when the backup had to know the guest for
    it, when it left, and up to when the backup knew the guest then."""
    counted: dict[str, float] = declare.total(by="name", joined="nothing", known_as=("",), units=UNITS)
    """What the mechanism counts by its names: failovers, outputs issued again, states."""
    output_held = declare.ratio(
        held_ns,
        released,
        factor=1e-6,
        unit="ms",
        label="output held, mean",
        short="held",
        better="lower",
        headline=True,
        known_as=("output_wait_ms",),
    )
    stopped = declare.rate(
        stopped_ns,
        factor=1e-7,
        unit="%",
        label="guest stands still",
        short="stopped",
        better="lower",
        headline=True,
        known_as=("stopped_percent",),
    )
    channel = declare.rate(
        channel_bytes,
        factor=8e-6,
        unit="Mbit/s",
        label="channel",
        better="lower",
        headline=True,
        known_as=("channel_mbit_per_s",),
    )
    backup_cpu = declare.rate(
        backup_cpu_ns,
        factor=1e-7,
        unit="%",
        label="CPU of the second host",
        better="lower",
        known_as=("backup_cpu_percent",),
    )
    backup_disk = declare.rate(
        backup_disk_bytes, factor=1e-6, unit="MB/s", label="disk of the second host", better="lower"
    )
    sender_cpu = declare.rate(
        sender_cpu_ns, factor=1e-7, unit="%", label="CPU for sending", better="lower", known_as=("sender_cpu_percent",)
    )

    @classmethod
    def of_copies(cls) -> type[Outcome]:
        """Return what every mechanism tells of several guests."""
        return ProtectionOfCopies


class ProtectionOfCopies(Outcome):
    """What a mechanism did to several guests and cost; times and shares are means of them."""

    stopped_ns: int = declare.total(label="time guests stand still", unit="ns", better="lower")
    released: int = declare.total(label="outputs released")
    held_ns: int = declare.total(label="time outputs were held", unit="ns", better="lower")
    channel_bytes: int = declare.total(label="sent over their channels", unit="B", better="lower")
    breaches: int = declare.total(label="outputs that broke the promise", better="lower", headline=declare.IF_ANY)
    copies: int = declare.number()
    output_held = declare.ratio(
        held_ns, released, factor=1e-6, unit="ms", label="output held, mean", better="lower", headline=True
    )
    stopped_of_all = declare.rate(stopped_ns, factor=1e-7, unit="%", label="guests stand still, all", better="lower")
    stopped = declare.number(
        source=lambda guests: guests.stopped_of_all / guests.copies,
        unit="%",
        label="guests stand still, mean",
        better="lower",
        headline=True,
    )
    channel = declare.rate(
        channel_bytes, factor=8e-6, unit="Mbit/s", label="channels together", better="lower", headline=True
    )


def named_breach(first: Mapping[str, int]) -> str:
    """Return in words which output was the first to break the promise."""
    return (
        f"the first, of flow {first['flow']}, left at {first['left_ns'] / 1e9:.9f} s: it depends on what the guest did "
        f"up to {first['issued_ns'] / 1e9:.9f} s, and the backup had what it did up to {first['known_ns'] / 1e9:.9f} s"
    )


def held_by_every(engine: Engine, guard: int) -> dict[str, Any]:
    """Return what the outcome of every mechanism holds, up to now; what a mechanism has more stands in their place."""
    audit = engine.rows(guards)[guard].audit
    first = ("flow", "issued_ns", "left_ns", "known_ns")
    return {
        "judged": int(audit.judged),
        "breaches": int(audit.breaches),
        "first_breach": {name: int(getattr(audit, f"first_{name}")) for name in first} if audit.breaches else None,
        "stopped_ns": machine.stood_still_ns(engine, guard),
        "released": 0,
        "held_ns": 0,
        "longest_held_ns": 0,
        "channel_bytes": 0,
        "backup_cpu_ns": 0,
        "sender_cpu_ns": 0,
        "backup_disk_bytes": 0,
        "memory": 0.0,
        "backup_memory": 0.0,
        "counted": dict(counters(engine, guard)),
    }
