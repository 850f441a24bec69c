"""Simulated tests written as the tools write theirs, read back by the importers."""

import pytest

from tests.workloads.test_bulk_tcp import MS
from tests.workloads.test_bulk_tcp import Bulk as Tcp
from tests.workloads.test_web_server import Web
from vftsim.labs.importing import Source, figures_of, importer_for
from vftsim.labs.imports import httperf
from vftsim.workloads.iperf_reports import iperf2_of_tcp


def read(text):
    return {each.metric: each.statistics for each in figures_of(Source(text, "made"), importer_for(text, "made"))}


@pytest.mark.parametrize("clients", [1, 2])
def test_tcp(clients):
    results = Tcp(50 * MS, clients=clients, network={"switched": True}, interval=10 * MS, reaction=25_000).results
    total = sum(r.bits_per_s for r in results) / 1e6
    found = read(iperf2_of_tcp(results).text())
    assert found["throughput"]["mean"] == pytest.approx(total, rel=0.005)  # three digits are printed
    assert found["throughput"]["n"] == 5


def test_httperf():
    report = Web({"script": 100 * MS}, {"rate": 30.0, "connections": 60, "timeout": 2_000 * MS}).report()
    assert 0 < report.replies < 60
    found = httperf.read_report(Source(report.text(), "made"))
    assert (found.connections, found.requests, found.replies) == (60, report.requests, report.replies)
    assert dict(found.errors)["client-timo"] == 60 - report.replies
    assert found.connection_ms == pytest.approx(report.connection_ms, abs=0.05)
    assert read(report.text())["response_time"]["mean"] == pytest.approx(report.response_ms, abs=0.05)
