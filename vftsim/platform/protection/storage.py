"""The storage that both hosts share, and when neither of them can reach it.

On it lie the guest's disks, and the lock by which one host wins where a mechanism fences.  While it is out of reach no
request of a disk is served and nobody gets the lock: whoever asks, or is still waiting for the answer, asks again when
it is back.  All outages are known before the run (:mod:`.device_faults`).
"""

from vftsim.kernel import Chain, Fifo, Record, Sim, Table
from vftsim.platform.protection.guard import Guard, guards


class Outage(Record):
    """The storage is out of reach from ``from_ns`` until ``until_ns``."""

    link: int
    from_ns: int
    until_ns: int


class Storage(Record):
    """The outages of the storage of one guard's domain."""

    outages: Fifo


storages = Table("storages", Storage, beside=guards)
outages = Table("storage_outages", Outage, 1 << 16, "let fewer faults strike")
outage_list = Chain(outages, "link")


def expect_outage(sim: Sim, guard: Guard, from_ns: int, until_ns: int) -> None:
    """Learn of an outage to come."""
    row = outages.new(sim, from_ns=from_ns, until_ns=until_ns)
    outage_list.push(sim, storages(sim)[guard.row].outages, row)


def lock_from_ns(sim: Sim, guard: Guard, asked_ns: int, takes_ns: int) -> int:
    """Return when a host that wants the lock at ``asked_ns`` asks for it in vain no more; the lock ``takes_ns``."""
    begin_ns = asked_ns
    row = storages(sim)[guard.row].outages.first
    while row != 0:
        outage = outages(sim)[row]
        is_hit = outage.from_ns <= begin_ns or outage.from_ns < begin_ns + takes_ns
        if is_hit and begin_ns < outage.until_ns:
            # From the front again: an outage before this one in the list may cover its end.
            begin_ns = outage.until_ns
            row = storages(sim)[guard.row].outages.first
        else:
            row = outage.link
    return begin_ns


def locked_ns(sim: Sim, guard: Guard, is_fenced: bool, asked_ns: int, takes_ns: int) -> int:
    """Return when a host that wants to continue alone at ``asked_ns`` has the lock; without fencing it needs none."""
    return lock_from_ns(sim, guard, asked_ns, takes_ns) + takes_ns if is_fenced else asked_ns
