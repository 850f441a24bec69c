"""Reading a lab that has run."""

from __future__ import annotations

from pools import check_subscribers

from vftsim.composition.run import Run
from vftsim.composition.views import ramp_of
from vftsim.platform.cpu.records import domains, vcpus
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.link import Link, links
from vftsim.workloads.ims_bench.attempt import benches
from vftsim.workloads.ims_bench.benchmark import Manager
from vftsim.workloads.ims_bench.workload import BenchDriver
from vftsim.workloads.sip.records import SipServer, sip_servers


def busy_ns(lab: Run) -> int:
    """CPU time of all vCPUs up to now."""
    return sum(domain_ns(lab, name) for name in lab.built.domains)


def domain_ns(lab: Run, name: str) -> int:
    """CPU time of a domain up to now."""
    lab.built.settle()
    domain = lab.engine.rows(domains)[lab.built.domains[name]]
    rows = lab.engine.rows(vcpus)
    return sum(int(rows[row].run_ns) for row in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus))


def link(lab: Run, network: str, *, to_host: bool) -> Link:
    """One direction of the link between a network and the only host."""
    card = lab.engine.rows(cards)[lab.built.hosts["host"].cards[network]]
    found: Link = lab.engine.rows(links)[card.to_host if to_host else card.from_host]
    return found


def server(lab: Run) -> SipServer:
    found: SipServer = lab.engine.rows(sip_servers)[1]
    return found


def driver(lab: Run) -> BenchDriver:
    found = lab.built.drivers["calls"]
    assert isinstance(found, BenchDriver)
    return found


def manager(lab: Run) -> Manager:
    return driver(lab).manager


def attempts_begun(lab: Run) -> int:
    return int(lab.engine.rows(benches)[driver(lab).bench].begun)


def run_on(lab: Run, duration_ns: int) -> None:
    """Simulate what is left."""
    lab.engine.run(lab.now_ns + duration_ns)


def check_pools(lab: Run) -> None:
    """Every subscriber is in exactly one place."""
    check_subscribers(lab.engine, lab.engine.rows(benches)[driver(lab).bench], ramp_of(lab.spec).subscribers)
