"""IBM z/VM: absolute and relative shares, dispatched by deadline.

Rules (z/VM CP Planning and Administration, SET SHARE and SET SRM; general knowledge of the CP
scheduler, no code is public):

* A user with an absolute share is entitled to that percentage of all processors; when the absolute
  shares of those who want to run come to more than 99 % they are scaled down to that.
* The rest is divided among the users with relative shares in proportion to them (100 by default).
* A user's share is split evenly over its virtual processors.
* The dispatch list is in order of deadline.  A virtual processor runs a minor time slice (5 ms); each
  slice sets its deadline later by the time in which its share entitles it to one slice.

As modelled: the deadline starts at the present when the virtual processor wakes late, and the shares
of those on the dispatch list are taken when a slice ends.  A waking virtual processor takes an idle
processor, else it pre-empts the latest deadline if its own is earlier.
Left out: the eligible list with its transaction classes E0 to E3, interactive bias, limits (LIMITHARD,
LIMITSOFT), processor-local dispatch vectors, polarization.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pydantic import Field

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import HostView
from vftsim.cpu.schedulers._shared_queue import Key, SharedQueuePolicy
from vftsim.cpu.vcpu import Vcpu
from vftsim.spec.units import PositiveDurationNs

_ABSOLUTE_CEILING = Fraction(99, 100)


@SCHEDULERS.register
class Zvm(SchedulerSpec):
    """IBM z/VM; the shares are the domains'."""

    kind: Literal["zvm"] = "zvm"
    minor_slice: PositiveDurationNs = Field(
        5_000_000,
        description="Time a virtual processor runs before its deadline is set anew (SET SRM DSPSLICE). "
        "Default 5 ms: z/VM's.",
    )

    def build(self) -> "ZvmScheduler":
        """Make the policy."""
        return ZvmScheduler(self)


@dataclass(slots=True, eq=False)
class User:
    """A domain: its share, and how many of its virtual processors are on the dispatch list."""

    relative: int
    absolute: Fraction
    listed: int = 0


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    user: User
    deadline_ns: int = 0
    ran_ns: int = 0
    serial: int = 0
    since_ns: int = 0


class ZvmScheduler(SharedQueuePolicy[_Record]):
    """The policy."""

    def __init__(self, parameters: Zvm) -> None:
        super().__init__()
        self.minor_slice_ns = parameters.minor_slice

    def attach(self, host: HostView) -> None:
        """List the users."""
        self.users: dict[int, User] = {}
        super().attach(host)

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Join the virtual processor to its user."""
        domain = vcpu.domain
        absolute = Fraction(round(domain.absolute_share * 1000), 100_000)
        user = self.users.setdefault(id(domain), User(domain.relative_share, absolute))
        return _Record(vcpu, user)

    def key(self, record: _Record, now_ns: int) -> Key:
        """Earliest deadline first."""
        return (record.deadline_ns, record.serial)

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """Return the rest of the minor time slice."""
        return self.minor_slice_ns - record.ran_ns

    def on_wake(self, record: _Record, now_ns: int) -> None:
        """Join the dispatch list; a deadline that has passed is set anew from now."""
        record.user.listed += 1
        if record.deadline_ns <= now_ns:
            record.deadline_ns = now_ns + self._interval_ns(record)
            record.ran_ns = 0

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Leave the dispatch list."""
        super().block(vcpu, now_ns)
        vcpu.sched.user.listed -= 1

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Set the deadline later for each minor time slice that has been used up."""
        record: _Record = vcpu.sched
        record.ran_ns += ran_ns
        while record.ran_ns >= self.minor_slice_ns:
            record.ran_ns -= self.minor_slice_ns
            record.deadline_ns += self._interval_ns(record)

    def share(self, user: User) -> Fraction:
        """Part of all processors that a user on the dispatch list is entitled to now."""
        listed = [u for u in self.users.values() if u.listed]
        absolute = sum((u.absolute for u in listed), Fraction(0))
        scale = min(Fraction(1), _ABSOLUTE_CEILING / absolute) if absolute else Fraction(1)
        if user.absolute:
            return user.absolute * scale
        relative = sum(u.relative for u in listed if not u.absolute)
        return (1 - absolute * scale) * Fraction(user.relative, relative)

    def _interval_ns(self, record: _Record) -> int:
        """Time in which the virtual processor's share makes one minor slice."""
        share = self.share(record.user) * self.host.pcpus / record.user.listed
        return int(self.minor_slice_ns / share)
