"""The records of Xen's credit scheduler, and its numbers."""

from vftsim.kernel import Chain, Fifo, Record, Table
from vftsim.platform.cpu.records import domains, hosts, pcpus, vcpus
from vftsim.spec.units import MS

BOOST, UNDER, OVER, IDLE_PRIORITY = 0, -1, -2, -64
NAMES = {BOOST: "BOOST", UNDER: "UNDER", OVER: "OVER"}
NS_PER_CREDIT = MS // 10
TICKS_PER_SLICE = 3
ALL_IDLERS, ONE_IDLER, IDLER_FIRST = 1, 2, 3
TICKLES = {"all_idlers": ALL_IDLERS, "one_idler": ONE_IDLER, "idler_first": IDLER_FIRST}
LONG_AGO_NS = -(10**18)
LEAST_REST_NS = 100


class CreditHost(Record):
    """A host's parameters, rules by release, and counters; ``accounts`` are the domains that earn, newest first."""

    slice_ns: int
    tick_ns: int
    credits_per_slice: int
    rate_limit_ns: int
    balance_limit_ns: int
    migration_delay_ns: int
    accounting_phase_ns: int
    boosts_wakes: bool
    exact_debit: bool
    accounting_in_tick: bool
    weight_per_vcpu: bool
    idle_credit_divisor: int
    tickle_rule: int
    carries_residue: bool
    rate_limit_remainder: bool
    boosts_migrated: bool
    boosts_unparked: bool
    idle_has_slice: bool
    tick_moves_running: bool
    kicks_preempted: bool
    steals_in_turn: bool
    tickled_are_busy: bool
    last_robbed: int
    ticks: int
    balance: int
    accounts: Fifo
    allotments: Fifo
    boosts: int
    preemptions: int
    steals: int
    parks: int
    unparks: int
    rate_limited: int
    kicks: int


class CreditPcpu(Record):
    """A pCPU's run queue.

    ``current`` is the vCPU chosen for it, also when that has blocked, until the pCPU chooses again.  ``is_idler``:
    it found nothing when it chose last.  ``last_tickled`` is the idle pCPU that was woken last from here.
    """

    queue: Fifo
    behind: Fifo
    current: int
    is_idler: bool
    last_tickled: int
    idle_slice: int
    needs_sort: bool
    last_scan_ns: int


class CreditDomain(Record):
    """A domain's account: its active vCPUs, newest first, and its allotment of the present period."""

    cap_credits: int
    active: Fifo
    next_account: int
    next_allotment: int
    credits_per_vcpu: int
    park_below: int


class CreditVcpu(Record):
    """What the scheduler knows of a vCPU; ``processor`` is the pCPU whose queue it belongs to.

    ``moves``: it is to be given another processor when its pCPU has chosen again; ``has_moved``: the next wake does not
    boost it.  ``rest`` is the time below a credit that the last debit left.
    """

    processor: int
    credit: int
    priority: int
    parked: bool
    queued: bool
    active: bool
    moves: bool
    has_moved: bool
    rest: int
    uncharged_ns: int
    running_since_ns: int
    stopped_ns: int
    next_queued: int
    next_active: int


credit_hosts = Table("credit_hosts", CreditHost, beside=hosts)
credit_pcpus = Table("credit_pcpus", CreditPcpu, beside=pcpus)
credit_domains = Table("credit_domains", CreditDomain, beside=domains)
credit_vcpus = Table("credit_vcpus", CreditVcpu, beside=vcpus)
queue_list = Chain(credit_vcpus, "next_queued")
active_list = Chain(credit_vcpus, "next_active")
account_list = Chain(credit_domains, "next_account")
allotment_list = Chain(credit_domains, "next_allotment")
