"""The records of Xen's credit2 scheduler, and its numbers."""

from vftsim.kernel import Chain, Fifo, Record, Table
from vftsim.platform.cpu.records import domains, hosts, pcpus, vcpus
from vftsim.spec.units import MS

CREDIT_INIT = 10 * MS
CREDIT_FLOOR = -CREDIT_INIT
CREDIT_MOST = CREDIT_INIT + MS // 2
IDLE_CREDIT = -(1 << 30)
SHORTEST_NS = MS // 2
LONGEST_NS = 10 * MS
TOLERANCE_NS = 50_000
COMPENSATION = 50_000


class Credit2Host(Record):
    """A host's parameters, the highest weight on it, by which all burn, those that wait, and counters.

    ``waiting`` is in order of credit, equals in the order in which they joined.
    """

    rate_limit_ns: int
    resistance: int
    cap_period_ns: int
    highest_weight: int
    has_caps: bool
    waiting: Fifo
    resets: int
    rate_limited: int


class Credit2Pcpu(Record):
    """A pCPU: the vCPU chosen for it, also when that has blocked, until the pCPU chooses again (0: it idles).

    ``tickled``: it has been asked to choose for a vCPU that waits, and has not done so yet.
    """

    current: int
    tickled: bool


class Credit2Domain(Record):
    """A domain's CPU time in a period of its cap; ``budget_ns`` 0: it may use all there is.

    ``left_ns`` is what no vCPU holds, below 0 after an overdraft; ``parked`` are those that found nothing left,
    latest first.
    """

    budget_ns: int
    portion_ns: int
    left_ns: int
    parked: Fifo


class Credit2Vcpu(Record):
    """A vCPU; ``processor`` is the pCPU that it was on last, or starts at, and ``since_ns`` when it was put there.

    ``residue`` is what has been burnt of the next credit, in parts of its weight; ``held_ns`` the part of its
    domain's budget that it has drawn and not used, below 0 if it ran past it.  ``tickled_pcpu`` was asked for it last.
    """

    weight: int
    credit: int
    residue: int
    processor: int
    since_ns: int
    held_ns: int
    parked: bool
    tickled_pcpu: int
    next_waiting: int
    next_parked: int


credit2_hosts = Table("credit2_hosts", Credit2Host, beside=hosts)
credit2_pcpus = Table("credit2_pcpus", Credit2Pcpu, beside=pcpus)
credit2_domains = Table("credit2_domains", Credit2Domain, beside=domains)
credit2_vcpus = Table("credit2_vcpus", Credit2Vcpu, beside=vcpus)
waiting_list = Chain(credit2_vcpus, "next_waiting")
parked_list = Chain(credit2_vcpus, "next_parked")
