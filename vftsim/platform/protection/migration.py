"""Live migration by pre-copy: how long it takes, how much it sends, how long the guest stands still.

Rule: round 0 sends all memory while the guest runs; each later round sends what was dirtied during the
round before; when little enough is left, or the limits of rounds or volume are reached, the guest is
stopped and the rest is sent.  Xen up to 4.4 (``xc_domain_save.c``): at most 29 rounds and the final
one, at most three times the memory, stop below 50 pages.

Where hosts do not share the storage the disk goes first, at a rate of its own (DRBD: a full synchronization, whose
``resync-rate`` its guide sets to about 30 % of the network's; QEMU: ``drive-mirror sync=full``).  What the guest writes
meanwhile is mirrored at once, so there is no further round of it.

On a link that others use a round takes what they leave of it (:mod:`.reprotection`): with a share s of R, s R takes the
place of R.

With dirty rate D, link rate R, l = D / R and no limit reached: T_i = V/R l^i, n = ceil(log_l(V_stop/V)),
total = V/R (1 - l^(n+1)) / (1 - l), downtime = V/R l^n + resume.  A writable working set bounds what one
round can dirty.

Left out: what reading the disk costs the guest, and what the mirrored writes take of the link; compression, adaptive
rates, the dependence of the dirty rate on load.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection.prices import assumed
from vftsim.spec.base import Spec
from vftsim.spec.units import MS, BitRate, ByteCount, DurationNs, Percent, S

MOST_VOLUME = 3.0
"""Data sent with the guest running, at most, in multiples of the memory."""


class ReprotectionSpec(Spec):
    """A new secondary on a third host, cloned by live migration."""

    delay: Annotated[DurationNs, assumed(10 * S, 300 * S)] = Field(
        30 * S, description="From going live to the start of the copy. Assumption."
    )
    memory: Annotated[ByteCount, Field(gt=0)] = Field(4 * 1024**3, description="Memory of the VM.")
    disk: ByteCount = Field(
        0, description="What of the guest's disks is copied before its memory; 0: both hosts reach them."
    )
    disk_rate: Annotated[BitRate, Field(gt=0)] = Field(
        264_000_000, description="Rate of that, at most `rate`. Default: 33 MB/s, 30 % of a gigabit (DRBD's guide)."
    )
    rate: Annotated[BitRate, Field(gt=0), assumed(400_000_000, 950_000_000)] = Field(
        800_000_000, description="Rate of the copy, at most the `rate` of the channel or its network's. Assumption."
    )
    dirty_rate: Annotated[BitRate, assumed(10_000_000, 300_000_000)] = Field(
        80_000_000, description="Rate at which memory is dirtied. Assumption."
    )
    working_set: ByteCount | None = Field(None, description="Most memory that a round can dirty; all if not given.")
    stop_below: ByteCount = Field(50 * 4096, description="Remainder sent with the VM stopped (Xen: 50 pages).")
    most_rounds: int = Field(29, ge=1, le=1000, description="Rounds with the VM running (Xen up to 4.4: 29).")
    resume: DurationNs = Field(
        100 * MS, description="Part of the stop that is not transmission (S2: stop below 1 s in all)."
    )
    cpu_share: Percent = Field(10.0, description="CPU time that the copy takes of the VM's first vCPU. Assumption.")


@dataclass(frozen=True, slots=True)
class PrecopyPlan:
    """Length and volume of a migration: the disk, and rounds, the last of which is sent while the guest is stopped."""

    disk_ns: int
    rounds_ns: tuple[int, ...]
    sent_bytes: int
    downtime_ns: int

    @property
    def live_ns(self) -> int:
        """Time in which the guest runs: of the disk, and of all rounds but the last."""
        return self.disk_ns + sum(self.rounds_ns[:-1])


def plan_copy(spec: ReprotectionSpec, most_volume: float = MOST_VOLUME) -> PrecopyPlan:
    """Return how a copy goes that has the wire to itself."""
    most_dirtied_bytes, most_sent_bytes = dirtied_at_most(spec), int(most_volume * spec.memory)
    disk_ns = product_quotient(spec.disk, BITS_NS, min(spec.disk_rate, spec.rate))
    rounds_ns: list[int] = []
    round_bytes, sent_bytes = spec.memory, 0
    while True:
        round_ns = product_quotient(round_bytes, BITS_NS, spec.rate)
        rounds_ns.append(round_ns)
        sent_bytes += round_bytes
        limits = spec.stop_below, spec.most_rounds, most_sent_bytes
        if is_last(len(rounds_ns), round_bytes, sent_bytes, *limits):
            return PrecopyPlan(disk_ns, tuple(rounds_ns), sent_bytes, round_ns + spec.resume)
        round_bytes = dirtied_bytes(round_ns, spec.dirty_rate, most_dirtied_bytes)


def dirtied_at_most(spec: ReprotectionSpec) -> int:
    """Return the most that a round can dirty, in bytes."""
    return spec.memory if spec.working_set is None else min(spec.memory, spec.working_set)


def dirtied_bytes(round_ns: int, dirty_rate_bits_per_s: int, most_bytes: int) -> int:
    """Return what a round has dirtied."""
    return min(product_quotient(round_ns, dirty_rate_bits_per_s, BITS_NS), most_bytes)


def is_last(
    rounds: int, round_bytes: int, sent_bytes: int, stop_below_bytes: int, most_rounds: int, most_sent_bytes: int
) -> bool:
    """Tell whether the guest stands still for a round; ``rounds`` and ``sent_bytes`` have it."""
    return rounds > 1 and (round_bytes <= stop_below_bytes or rounds > most_rounds or sent_bytes > most_sent_bytes)
