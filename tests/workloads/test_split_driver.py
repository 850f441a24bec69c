"""Programs behind Xen's split driver with a transmit ring of one or two slots: senders sleep, and nothing is lost."""

import pytest

from tests.installing import Installing
from tests.workloads import lab
from vftsim.kernel import link
from vftsim.kernel.choose import make_engine
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.parameters import DomainScheduling, schedulers
from vftsim.platform.cpu.records import domains
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.delays import bucket_ends
from vftsim.platform.io import build as io
from vftsim.platform.io.build import Site
from vftsim.platform.io.driver_domain import DriverDomainSpec
from vftsim.platform.io.host_cards import add_card, cards
from vftsim.platform.io.nic import NicSpec
from vftsim.platform.io.packet import drops, flows, packets, path, ports
from vftsim.platform.io.parameters import io_paths
from vftsim.platform.io.paths.moderated import moderated
from vftsim.platform.io.paths.paravirtual import Paravirtual, paravirtual
from vftsim.platform.io.ring import rings
from vftsim.platform.io.stage import task
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import protection
from vftsim.platform.protection.mechanism import protections
from vftsim.sampling import Streams
from vftsim.workloads.batch import BatchSpec
from vftsim.workloads.bulk_udp import BulkUdpSpec
from vftsim.workloads.request_response import RequestResponseSpec
from vftsim.workloads.service.application import ServiceSpec
from vftsim.workloads.tcp.client import BulkTcpSpec
from vftsim.workloads.tcp.program import TcpSinkSpec, TcpSourceSpec
from vftsim.workloads.udp_sink import UdpSinkSpec
from vftsim.workloads.web.httperf import HttperfSpec
from vftsim.workloads.web.prefork import PreforkWebServerSpec

US, MS, S = 1000, 1_000_000, 1_000_000_000
PROGRAMS = (BatchSpec, TcpSinkSpec, TcpSourceSpec, UdpSinkSpec, ServiceSpec, PreforkWebServerSpec)
PARTS = (*PROGRAMS, BulkTcpSpec, BulkUdpSpec, RequestResponseSpec, HttperfSpec)


def of_all(name):
    return [item for part in PARTS for item in getattr(part, name)]


def test_all_of_them_link_with_every_scheduler_path_and_mechanism():
    """No circle of calls, no two tables of one name."""
    tasks = {kind.name: kind for spec in io_paths().values() for kind in spec.tasks}
    made = link(
        [*cpu.ENTRIES, *io.ENTRIES, *protect.ENTRIES, *of_all("entries")],
        {
            scheduler: [spec.part for spec in schedulers().values()],
            path: [moderated, *(spec.part for spec in io_paths().values())],
            task: list(tasks.values()),
            protection: [spec.part for spec in protections().values()],
            fault: [spec.part for spec in FAULTS.values()],
            **lab.kinds_of(PARTS),
        },
        [*protect.ACTIONS, *of_all("actions")],
        [*cpu.TABLES, *io.TABLES, *protect.TABLES, *of_all("tables")],
    )
    assert {"tcp_connections", "http_connections"} <= set(made.tables)


KERNEL = link(
    [*cpu.ENTRIES, *io.ENTRIES, lab.boot_program, *of_all("entries")],
    {
        scheduler: [native],
        path: [paravirtual],
        task: list(Paravirtual.tasks),
        protection: [],
        **lab.kinds_of(PARTS),
    },
    of_all("actions"),
    [*cpu.TABLES, *io.TABLES, cards, drops, feeds, flows, bucket_ends, *of_all("tables")],
)


class XenLab:
    """Driver domain and guest, a vCPU and a pCPU each; the back-end needs ``backend_us`` for each packet out."""

    def __init__(self, program, slots=1, backend_us=50, engine="simpy"):
        self.engine = make_engine(KERNEL, engine, self.on_input)
        self.feeder = Feeder(self.engine)
        self.streams = Streams(1, 0)
        self.host = cpu.add_host(self.engine, 2, Native())
        driver = cpu.add_domain(self.engine, self.host, DomainScheduling(), 1, [0])
        self.domain = cpu.add_domain(self.engine, self.host, DomainScheduling(), 1, [1], 6 * MS)
        card = add_card(self.engine, 10**9, 100_000, 256 * 1024)
        self.io = io.Io(self.engine)
        nic = self.io.add_nic("eth0", NicSpec(receive_ring_packets=4096))
        transmit = self.io.add_driver_domain(
            DriverDomainSpec(budget_packets=1, event_cost=0, receive_cost=0, transmit_cost=0), driver, [nic]
        )
        self.site = Installing(self.engine, self.feeder, self.streams)
        self.installed = program.install(self.site.context(self.domain))
        self.program = self.installed.row
        spec = Paravirtual(ring_packets=256, backend_receive_cost=0, backend_transmit_cost=backend_us * US)
        self.port = self.io.add_port("guest", self.domain, nic, self.program, spec.part, saves_ring=spec.saves_ring)
        self.engine.rows(ports)[self.port].card = card
        spec.connect(self.io, Site("guest", self.domain, nic, (self.port,), driver, transmit))
        self.engine.rows(rings)[self.engine.rows(ports)[self.port].send_ring].capacity = slots

    def on_input(self):
        self.feeder.fill()

    def start(self, spec):
        """Let the program and its clients begin; return the clients."""
        clients = spec.install(self.site.target(self.port))
        self.installed.start()
        cpu.start(self.engine, self.host, Native())
        self.io.start()
        clients.begin()
        return clients

    def run(self, until_ns):
        self.engine.run(until_ns)
        self.engine.check()
        return self


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_threads_sleep_while_the_ring_is_full(engine):
    """Sixteen clients, four threads: the back-end's 50 us a packet bound the rate, and no answer is lost."""
    xen = XenLab(ServiceSpec(threads=4, demand=US), engine=engine)
    clients = xen.start(RequestResponseSpec(clients=16, turn_around=0, retry=0))
    xen.run(200 * MS)
    found = clients.outcome()
    assert found.dropped == 0
    assert found.answered == pytest.approx(200 * MS / (50 * US), rel=0.01)
    server = xen.installed.record
    assert server.blocked > 0
    xen.engine.call(lab.boot_program, xen.program)
    assert (server.active, server.blocked) == (0, 0)


@pytest.mark.parametrize("direction", ["upload", "download"])
def test_tcp_comes_through_a_ring_of_two_slots(direction):
    """50 us of the back-end for each packet out: a segment (download), an acknowledgement of two (upload)."""
    xen = XenLab(TcpSourceSpec() if direction == "download" else TcpSinkSpec(), slots=2)
    clients = xen.start(
        BulkTcpSpec(direction=direction, duration=100 * MS, interval=10 * MS, spread=0, clients=4, window=65_536)
    )
    xen.run(101 * MS)
    found = clients.results()
    assert all(result.timeouts == 0 for result in found)
    segments = sum(result.bytes for result in found) / 1448
    assert segments == pytest.approx(100 * MS / (50 * US) * (1 if direction == "download" else 2), rel=0.08)


def test_a_reply_comes_through_a_ring_of_one_slot():
    xen = XenLab(PreforkWebServerSpec(script=MS, reply_size=500_000, output_share=50.0), backend_us=3000)
    clients = xen.start(HttperfSpec(rate=1000.0, connections=20, retry=60 * S))
    xen.run(5 * S)
    found = clients.report()
    assert found.replies == 20
    assert found.content_bytes == 500_000 - 202
    # 8 pieces and a SYN-ACK for each of 20: 3 ms of the back-end each.
    assert found.duration_s == pytest.approx(20 * 9 * 0.003, rel=0.05)
    assert xen.engine.rows(domains)[xen.domain].jobs.length == 0
    assert xen.engine.used(packets) < 100
