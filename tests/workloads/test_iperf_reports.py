"""Simulated tests written as the tools write theirs, read back by the importers."""

import pytest

from tests.workloads.test_bulk_tcp import MS
from tests.workloads.test_bulk_tcp import Bulk as Tcp
from tests.workloads.test_bulk_udp import Bulk as Udp
from tests.workloads.test_web_server import Web
from vftsim.labs.importing import Source, figures_of, importer_for
from vftsim.labs.imports import httperf
from vftsim.workloads.iperf_reports import iperf2_of_tcp, iperf2_of_udp, iperf3_of_tcp, iperf3_of_udp


def read(text):
    return {each.metric: each.statistics for each in figures_of(Source(text, "made"), importer_for(text, "made"))}


@pytest.mark.parametrize("clients", [1, 2])
def test_tcp(clients):
    results = Tcp(50 * MS, clients=clients, network={"switched": True}, interval=10 * MS, reaction=25_000).results
    total = sum(r.bits_per_s for r in results) / 1e6
    two, three = read(iperf2_of_tcp(results).text()), read(iperf3_of_tcp(results).text())
    assert two["throughput"]["mean"] == pytest.approx(total, rel=0.005)  # three digits are printed
    assert three["throughput"]["mean"] == pytest.approx(total, rel=1e-9)
    assert two["throughput"]["n"] == three["throughput"]["n"] == 5
    assert three["retransmits"]["total"] == sum(r.retransmitted for r in results)
    assert results[0].cumulative_bits_per_s()[-1] == pytest.approx(results[0].bits_per_s)


def test_udp():
    results = Udp(60 * MS, rate=588_000_000, sink={"read_cost": 30_000}).results
    two, three = read(iperf2_of_udp(results[0]).text()), read(iperf3_of_udp(results).text())
    assert two["sent"] == {"total": results[0].sent}
    assert two["lost"]["mean"] == three["lost"]["mean"] == pytest.approx(100 * results[0].loss_ratio)
    assert two["jitter"]["mean"] == pytest.approx(results[0].jitter_ns / 1e6, abs=0.0005)
    assert three["jitter"]["mean"] == pytest.approx(results[0].jitter_ns / 1e6)


def test_httperf():
    report = Web({"script": 100 * MS}, {"rate": 30.0, "connections": 60, "timeout": 2_000 * MS}).report()
    assert 0 < report.replies < 60
    found = httperf.read_report(Source(report.text(), "made"))
    assert (found.connections, found.requests, found.replies) == (60, report.requests, report.replies)
    assert dict(found.errors)["client-timo"] == 60 - report.replies
    assert found.connection_ms == pytest.approx(report.connection_ms, abs=0.05)
    assert read(report.text())["response_time"]["mean"] == pytest.approx(report.response_ms, abs=0.05)
