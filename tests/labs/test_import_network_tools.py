"""httperf against files that the tool wrote on loopback, and its writer against its reader."""

from dataclasses import replace
from pathlib import Path

import pytest

from vftsim.errors import ModelFileError
from vftsim.labs.importing import Source, figures_of, importer_for
from vftsim.labs.imports.httperf import read_report

FILES = Path(__file__).parent / "files"


def source(name, old="", new=""):
    text = (FILES / name).read_text(encoding="utf-8")
    assert old in text
    return Source(text.replace(old, new) if old else text, name)


def figures(name):
    found = source(name)
    return {each.metric: each.statistics for each in figures_of(found, importer_for(found.text, name))}


def test_httperf_without_failures():
    found = figures("httperf_ok.txt")
    assert found["connections"] == found["replies"] == {"total": 120}
    assert found["failed"] == {"n": 120, "mean": 0.0}
    assert found["connection_time"] == {"n": 120, "mean": 95.0, "sd": 8.6, "min": 91.1, "p50": 91.5, "max": 139.1}
    assert found["request_rate"]["mean"] == pytest.approx(14.9, abs=0.05)


def test_httperf_in_overload():
    report = read_report(source("httperf_overload.txt"))
    assert (report.requests, report.replies, report.errors["client-timo"]) == (288, 26, 274)
    assert report.errors_total == 274
    assert report.cpu_s == (0.19, 3.49)
    assert report.concurrent == 68


@pytest.mark.parametrize("name", ["httperf_ok.txt", "httperf_overload.txt"])
def test_httperf_s_lines_come_out_as_the_tool_wrote_them(name):
    """All but rates that the tool computed from times it does not print."""
    text = source(name).text
    written = read_report(source(name)).text().splitlines()
    lines = text.splitlines()[text.splitlines().index("") + 1 :]
    loose = ("Connection rate", "Request rate", "CPU time", "Net I/O")
    assert [line for line in written if not line.startswith(loose)] == [
        line for line in lines if not line.startswith(loose)
    ]
    assert [line.split(":")[0] for line in written] == [line.split(":")[0] for line in lines]


def test_httperf_broken_lines_and_no_cpu():
    """The printed example of Timalsena 2013 has its lines broken, which is no matter."""
    text = source("httperf_overload.txt", "median", "\nmedian").text.replace("stddev 2", "\nstddev 2")
    report = read_report(Source(text, "broken"))
    assert report.connection_ms == (97.7, 350.7, 979.9, 220.5, 292.5)
    without = replace(report, cpu_s=None)
    assert "CPU time" not in without.text()
    assert read_report(Source(without.text(), "again")) == replace(without, net_bytes_per_s=88.2 * 1024)


def test_httperf_report_that_was_cut():
    with pytest.raises(ModelFileError, match="has no line"):
        read_report(source("httperf_ok.txt", "Net I/O", "Net"))
