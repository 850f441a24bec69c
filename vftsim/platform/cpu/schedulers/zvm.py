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
processor, else it pre-empts the latest deadline if its own is earlier.  Where those that run on all processors it
may use get less than their shares (pinned to few processors) their deadlines are past, and where they get more, as one
that cannot use all of its share leaves it to others, far ahead: the present is theirs then.  One that has its
processor to itself is never behind.  Where no user with a relative share wants to run, the absolute ones divide all.
These three are assumptions (:attr:`Zvm.counts_anew`): all count anew from when they meet.
Left out: the eligible list with its transaction classes E0 to E3, interactive bias, limits (LIMITHARD,
LIMITSOFT), processor-local dispatch vectors, polarization.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Failure, Record, Sim, Table, fail
from vftsim.platform.arithmetic import LARGEST, product_quotient
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu import shared_queue as shared
from vftsim.platform.cpu.build import domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.records import Host, Vcpu, domains, hosts, pcpus, vcpus
from vftsim.platform.rows import fill_row
from vftsim.spec.units import PeriodNs

_WHOLE = 100_000
_ABSOLUTE_CEILING = 99_000
_TOO_LATE = Failure(
    "a z/VM user's deadline lies beyond the 64-bit range; shorten the minor time slice or raise its share"
)
zvm = shared.share_one_queue(scheduler.scheduler.kind("zvm"))


class ZvmHost(Record):
    """A host's parameter, and the sums of the shares on its dispatch list: absolute ones in 1/100000.

    ``most_relative`` is the largest share of a user, ``furthest_ns`` the latest deadline there has been.
    """

    minor_slice_ns: int
    counts_anew: bool
    absolute: int
    relative: int
    most_relative: int
    furthest_ns: int


class ZvmUser(Record):
    """A domain: its share (absolute in 1/100000, 0: none), and how many of its virtual processors are on the list."""

    relative: int
    absolute: int
    listed: int


class ZvmVcpu(Record):
    """A virtual processor's deadline, and what it has run of the present minor time slice."""

    deadline_ns: int
    ran_ns: int


zvm_hosts = Table("zvm_hosts", ZvmHost, beside=hosts)
zvm_users = Table("zvm_users", ZvmUser, beside=domains)
zvm_vcpus = Table("zvm_vcpus", ZvmVcpu, beside=vcpus)


@SCHEDULERS.register
class Zvm(SchedulerSpec):
    """IBM z/VM; the shares are the domains'."""

    kind: Literal["zvm"] = "zvm"
    reads: ClassVar[frozenset[str] | None] = frozenset({"absolute_share", "relative_share"})
    minor_slice: PeriodNs = Field(
        5_000_000,
        description="Time a virtual processor runs before its deadline is set anew (SET SRM DSPSLICE). "
        "Default 5 ms: z/VM's.",
    )
    counts_anew: bool = Field(
        True,
        description="Those that meet count from then on, whatever more or less than their shares they have had: "
        "an assumption. Off, deadlines say what is still owed.",
    )

    def unread(self, domain: DomainScheduling) -> dict[str, str]:
        """Add what an absolute share replaces."""
        of_share = {"relative_share": "its absolute share replaces it"} if domain.absolute_share else {}
        return super().unread(domain) | of_share

    def install(self, engine: Engine, host: int) -> None:
        """Write the minor time slice and the users' shares."""
        zvm_host = fill_row(engine, zvm_hosts, host, self)
        for row in domains_of(engine, host):
            user, entitlement = engine.rows(zvm_users)[row], engine.rows(entitlements)[row]
            user.relative = entitlement.relative_share
            zvm_host.most_relative = max(int(zvm_host.most_relative), int(user.relative))
            user.absolute = round(float(entitlement.absolute_share) * 1000)


@zvm.implements(shared.urgency)
def urgency_of(sim: Sim, host: Host, vcpu: Vcpu) -> tuple[int, int]:
    """Earliest deadline first."""
    return 0, zvm_vcpus(sim)[vcpu.row].deadline_ns


@zvm.implements(shared.longest_ns)
def rest_of_slice(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the rest of the minor time slice."""
    return zvm_hosts(sim)[host.row].minor_slice_ns - zvm_vcpus(sim)[vcpu.row].ran_ns


@zvm.implements(shared.on_wake)
def join(sim: Sim, host: Host, vcpu: Vcpu, zvm_vcpu: ZvmVcpu = BESIDE) -> None:
    """Join the dispatch list; a deadline that has passed is set anew from now."""
    user = zvm_users(sim)[vcpu.domain]
    user.listed += 1
    if user.listed == 1:
        list_share(sim, host, user, 1)
    begin_ns = present_ns(sim, host, vcpu) if zvm_hosts(sim)[host.row].counts_anew else sim.now_ns
    if zvm_vcpu.deadline_ns <= begin_ns:
        set_deadline(sim, host, zvm_vcpu, begin_ns + interval_ns(sim, host, user))
        zvm_vcpu.ran_ns = 0


def set_deadline(sim: Sim, host: Host, zvm_vcpu: ZvmVcpu, deadline_ns: int, zvm_host: ZvmHost = BESIDE) -> None:
    zvm_vcpu.deadline_ns = deadline_ns
    zvm_host.furthest_ns = max(zvm_host.furthest_ns, deadline_ns)


def present_ns(sim: Sim, host: Host, vcpu: Vcpu, zvm_host: ZvmHost = BESIDE) -> int:
    """Return the present of the processors that a virtual one may use, the latest of them."""
    latest_ns = 0
    near_ns = 2 * shortest_interval_ns(host, zvm_host)
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        running = shared.queue_pcpus(sim)[pcpu.row].current
        # Once it is now at least, none is later that is idle, or whose deadline is less than two intervals ahead.
        is_later = latest_ns < sim.now_ns or (
            running != 0 and zvm_vcpus(sim)[running].deadline_ns > latest_ns + near_ns
        )
        if is_later and scheduler.may_run(sim, vcpu, pcpu):
            latest_ns = max(latest_ns, present_of_ns(sim, host, running))
        if latest_ns >= sim.now_ns and zvm_host.furthest_ns <= latest_ns + near_ns:
            # A host of many processors is not searched at each waking.
            return latest_ns
    return latest_ns


def shortest_interval_ns(host: Host, zvm_host: ZvmHost) -> int:
    """Return a time below all intervals: that of one virtual processor with the largest relative share of a user."""
    if zvm_host.absolute > 0:
        return 0
    return product_quotient(zvm_host.minor_slice_ns, zvm_host.relative, zvm_host.most_relative * host.pcpus)


def present_of_ns(sim: Sim, host: Host, running: int) -> int:
    """Return now, or when what runs on a processor is due if that is past or more than two of its intervals ahead."""
    if running == 0:
        return sim.now_ns
    deadline_ns = zvm_vcpus(sim)[running].deadline_ns
    # A slice that ends at once after its deadline was set leaves it up to two ahead.
    ahead_ns = 2 * interval_ns(sim, host, zvm_users(sim)[vcpus(sim)[running].domain])
    return min(max(sim.now_ns, deadline_ns - ahead_ns), deadline_ns)


@zvm.implements(scheduler.block)
def leave(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Free its pCPU and leave the dispatch list."""
    shared.block(sim, host, vcpu)
    user = zvm_users(sim)[vcpu.domain]
    user.listed -= 1
    if user.listed == 0:
        list_share(sim, host, user, -1)


def list_share(sim: Sim, host: Host, user: ZvmUser, sign: int, zvm_host: ZvmHost = BESIDE) -> None:
    """Add a user's share to those on the dispatch list, or take it off (-1)."""
    zvm_host.absolute += sign * user.absolute
    if user.absolute == 0:
        zvm_host.relative += sign * user.relative


@zvm.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int, zvm_vcpu: ZvmVcpu = BESIDE) -> None:
    """Set the deadline later for each minor time slice that has been used up."""
    counts_anew = zvm_hosts(sim)[host.row].counts_anew
    slice_ns = zvm_hosts(sim)[host.row].minor_slice_ns
    zvm_vcpu.ran_ns += ran_ns
    while zvm_vcpu.ran_ns >= slice_ns:
        zvm_vcpu.ran_ns -= slice_ns
        later_ns = interval_ns(sim, host, zvm_users(sim)[vcpu.domain])
        set_deadline(sim, host, zvm_vcpu, zvm_vcpu.deadline_ns + later_ns)
        if zvm_vcpu.deadline_ns > LARGEST:
            fail(sim, _TOO_LATE)
        # One processor at most, whatever its share: nobody owes it the rest.
        is_late = counts_anew and zvm_vcpu.deadline_ns < sim.now_ns
        if is_late and shared.first_in_order(sim, host, pcpus(sim)[vcpu.last_pcpu]) == 0:
            zvm_vcpu.deadline_ns = sim.now_ns


def interval_ns(sim: Sim, host: Host, user: ZvmUser, zvm_host: ZvmHost = BESIDE) -> int:
    """Return in what time one virtual processor of a listed user is entitled to one minor slice.

    With the share a fraction s of all p processors, split over n virtual ones, that is slice x n / (s x p).
    The divisors are below 2**45, as p is at most 2**10.
    """
    slices_ns = zvm_host.minor_slice_ns * user.listed
    if user.absolute == 0:
        rest = _WHOLE - min(zvm_host.absolute, _ABSOLUTE_CEILING)
        return product_quotient(slices_ns, _WHOLE * zvm_host.relative, rest * user.relative * host.pcpus)
    if zvm_host.relative == 0 and zvm_host.counts_anew:
        return product_quotient(slices_ns, zvm_host.absolute, user.absolute * host.pcpus)
    if zvm_host.absolute <= _ABSOLUTE_CEILING:
        return product_quotient(slices_ns, _WHOLE, user.absolute * host.pcpus)
    return product_quotient(slices_ns, 100 * zvm_host.absolute, 99 * user.absolute * host.pcpus)
