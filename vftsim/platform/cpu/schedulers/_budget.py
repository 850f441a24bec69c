"""CPU time a domain may use in a period, drawn by its vCPUs in portions (CFS bandwidth).

The pool is refilled to its budget once a period; what was not used is not saved.  A vCPU runs on what
it has drawn, draws again when that is gone, gives back what it does not need when it blocks, and is
held when the pool is empty.
"""

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.cpu.records import Host, Vcpu, domains, vcpus
from vftsim.platform.cpu.shared_queue import hold, queue_hosts, waiting_list


class Pool(Record):
    """One domain's time; ``budget_ns`` 0: the domain may use all there is."""

    budget_ns: int
    portion_ns: int
    left_ns: int


class Purse(Record):
    """What a vCPU has drawn from its domain's pool and not spent."""

    drawn_ns: int


pools = Table("budget_pools", Pool, beside=domains)
purses = Table("budget_purses", Purse, beside=vcpus)


def open_pool(engine: Engine, domain: int, budget_ns: int, portion_ns: int) -> None:
    """Give a domain a budget, full at the start."""
    pool = engine.rows(pools)[domain]
    pool.budget_ns = pool.left_ns = budget_ns
    pool.portion_ns = portion_ns


def has_pool(sim: Sim, vcpu: Vcpu) -> bool:
    """Tell whether the domain's time is limited."""
    return pools(sim)[vcpu.domain].budget_ns > 0


def has_budget(sim: Sim, vcpu: Vcpu) -> bool:
    """Tell whether the vCPU may run."""
    pool = pools(sim)[vcpu.domain]
    return pool.budget_ns == 0 or purses(sim)[vcpu.row].drawn_ns > 0 or pool.left_ns > 0


def at_most_drawn(sim: Sim, vcpu: Vcpu, time_ns: int) -> int:
    """Shorten a time to what the vCPU has drawn."""
    return min(time_ns, purses(sim)[vcpu.row].drawn_ns) if has_pool(sim, vcpu) else time_ns


def draw(sim: Sim, vcpu: Vcpu, purse: Purse = BESIDE) -> None:
    """Take a portion if nothing is left of the last one."""
    pool = pools(sim)[vcpu.domain]
    if pool.budget_ns > 0 and purse.drawn_ns <= 0:
        portion_ns = min(pool.portion_ns, pool.left_ns)
        pool.left_ns -= portion_ns
        # Added, not set: what was overdrawn is paid first.
        purse.drawn_ns += portion_ns


def spend(sim: Sim, vcpu: Vcpu, ran_ns: int) -> None:
    """Take off what the vCPU has run."""
    if has_pool(sim, vcpu):
        purses(sim)[vcpu.row].drawn_ns -= ran_ns


def give_back(sim: Sim, vcpu: Vcpu, keep_ns: int, purse: Purse = BESIDE) -> None:
    """Return what was drawn, except ``keep_ns``."""
    pool = pools(sim)[vcpu.domain]
    if pool.budget_ns > 0 and purse.drawn_ns > keep_ns:
        # Never above the budget: it may have been drawn in the period before.
        pool.left_ns = min(pool.left_ns + purse.drawn_ns - keep_ns, pool.budget_ns)
        purse.drawn_ns = keep_ns


def hold_throttled(sim: Sim, host: Host, domain: int) -> None:
    """Mark a domain's waiting vCPUs that have no budget, to be placed when there is some."""
    for vcpu in vcpus.listed(sim, waiting_list, queue_hosts(sim)[host.row].waiting):
        if vcpu.domain == domain and not has_budget(sim, vcpu):
            hold(sim, vcpu)


def refill(sim: Sim, host: Host, domain: int) -> None:
    """Begin a domain's period; leaves those whom its end has let go marked for placing."""
    # Before the refill: afterwards it could not be told who had no budget.
    hold_throttled(sim, host, domain)
    pool = pools(sim)[domain]
    pool.left_ns = pool.budget_ns
