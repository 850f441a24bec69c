"""Work that grows with the utilization of the CPU.

Rule: all CPU work of a server is multiplied by 1 + ``growth_with_utilization`` x min(U, ``growth_up_to``), where U is
the utilization of the domain's vCPUs by anything, averaged over the last ``utilization_time`` (exponentially, each
look weighing the time since the one before by passed / (passed + ``utilization_time``)).  Below 0 work falls: caches
and clock frequency of a processor that is seldom used.

Assumption: the measured CPU per attempt grows with load in all environments, alike at equal utilization.  Caches that
others have displaced, process switches and waiting for locks would do so; none of them is shown by the record.
"""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.cpu.records import domains, run_ns
from vftsim.workloads.sip.records import SipRules, SipServer


def busy_factor(sim: Sim, server: SipServer, rules: SipRules = BESIDE) -> float:
    """Return the factor on CPU work that begins now; 1 where it does not grow with utilization."""
    if rules.growth_with_utilization == 0.0:
        return 1.0
    domain = domains(sim)[server.domain]
    passed_ns = sim.now_ns - server.looked_ns
    if passed_ns > 0:
        ran_ns = run_ns(sim, domain)
        share = (ran_ns - server.ran_before_ns) / (passed_ns * domain.vcpus)
        server.utilization += (share - server.utilization) * passed_ns / (passed_ns + rules.utilization_time_ns)
        server.looked_ns = sim.now_ns
        server.ran_before_ns = ran_ns
    return 1.0 + rules.growth_with_utilization * min(server.utilization, rules.growth_up_to)
