"""Elided events: periodic work alone on a pCPU, whose CPU time is computed because nobody can see when it runs.

It is as if each period's work had run at once: exact as long as nothing else runs in the domain or on the pCPU, the
scheduler decides nothing there, the pCPU has the speed that work is stated for, and a period's work ends within the
period, the switch to it included.
"""

from vftsim.kernel import Engine, Record, Sim, Table, entry
from vftsim.platform.cpu.background import cyclic_loads
from vftsim.platform.cpu.parameters import SchedulerSpec
from vftsim.platform.cpu.records import domains, hosts, pcpus, vcpus


class ElidedLoad(Record):
    """Where and since when a load's events are elided, and what of it is in the accounts of its vCPU and pCPU."""

    vcpu: int
    pcpu: int
    begin_ns: int
    periods: int
    run_ns: int
    switching_ns: int


elided_loads = Table("elided_loads", ElidedLoad, beside=cyclic_loads)


def elide(engine: Engine, row: int, scheduler: SchedulerSpec) -> bool:
    """Elide the events of a load that was added, from now on; False if they can be seen, and then nothing is done.

    The caller sees to it that it is all the work its domain ever has.
    """
    load = engine.rows(cyclic_loads)[row]
    domain = engine.rows(domains)[load.domain]
    host = engine.rows(hosts)[domain.host]
    pcpu = scheduler.own_pcpu(engine, int(domain.first_vcpu)) if domain.vcpus == 1 else 0
    if domain.cpu_speed != 1.0:
        return False
    if pcpu == 0 or host.observed or load.busy_ns == 0 or load.busy_ns + host.switch_cost_ns >= load.period_ns:
        return False
    elided = engine.rows(elided_loads)[row]
    elided.vcpu, elided.pcpu, elided.begin_ns = int(domain.first_vcpu), pcpu, engine.now_ns + load.phase_ns
    return True


@entry
def account_for_elided(sim: Sim, row: int) -> None:
    """Bring the accounts of an elided load, its vCPU and pCPU up to now, without later events of this instant."""
    load = cyclic_loads(sim)[row]
    elided = elided_loads(sim)[row]
    if elided.pcpu == 0:
        return
    vcpu = vcpus(sim)[elided.vcpu]
    pcpu = pcpus(sim)[elided.pcpu]
    host = hosts(sim)[vcpu.host]
    passed_ns = sim.now_ns - elided.begin_ns
    if passed_ns < 0:
        return
    begun = max((passed_ns + load.period_ns - 1) // load.period_ns, 1)
    if elided.periods == 0:
        vcpu.context_switches += 1
        host.context_switches += 1
    switching_ns = min(host.switch_cost_ns, passed_ns)
    last_ns = passed_ns - (begun - 1) * load.period_ns - (switching_ns if begun == 1 else 0)
    run_ns = (begun - 1) * load.busy_ns + min(last_ns, load.busy_ns)
    load.done = begun if last_ns > load.busy_ns else begun - 1
    # Added, so that nothing that others wrote is lost: where somebody else ran too, the accounts do not add up.
    vcpu.wakeups += begun - elided.periods
    vcpu.run_ns += run_ns - elided.run_ns
    pcpu.busy_ns += run_ns - elided.run_ns
    pcpu.switching_ns += switching_ns - elided.switching_ns
    # To the host the pCPU has been idle all the time.
    pcpu.idle_ns -= run_ns - elided.run_ns + switching_ns - elided.switching_ns
    elided.periods, elided.run_ns, elided.switching_ns = begun, run_ns, switching_ns
