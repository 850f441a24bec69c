"""Reading a lab that has run."""

from __future__ import annotations

from vftsim.platform.cpu.records import domains, vcpus
from vftsim.platform.io.link import Link, links
from vftsim.sip.lab import SipLab
from vftsim.workloads.ims_bench.attempt import benches
from vftsim.workloads.ims_bench.subscribers import check_subscribers
from vftsim.workloads.sip.records import SipServer, sip_servers


def busy_ns(lab: SipLab) -> int:
    """CPU time of all vCPUs up to now."""
    return sum(domain_ns(lab, name) for name in lab.built.domains)


def domain_ns(lab: SipLab, name: str) -> int:
    """CPU time of a domain up to now."""
    lab.built.settle()
    domain = lab.engine.rows(domains)[lab.built.domains[name]]
    rows = lab.engine.rows(vcpus)
    return sum(int(rows[row].run_ns) for row in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus))


def link(lab: SipLab, row: int) -> Link:
    found: Link = lab.engine.rows(links)[row]
    return found


def server(lab: SipLab) -> SipServer:
    found: SipServer = lab.engine.rows(sip_servers)[lab.built.server]
    return found


def run_on(lab: SipLab, duration_ns: int) -> None:
    """Simulate what is left."""
    lab.engine.run(lab.now_ns + duration_ns)


def check_pools(lab: SipLab) -> None:
    """Every subscriber is in exactly one place."""
    check_subscribers(lab.engine, lab.engine.rows(benches)[lab.built.bench], lab.spec.workload.subscribers)
