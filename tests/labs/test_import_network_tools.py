"""httperf, iperf 2 and iperf3 against files that the tools wrote on loopback, and the writers against the readers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.labs.iperf3_files import Iperf3Report, Iperf3Stream
from vftsim.errors import ModelFileError
from vftsim.labs.importing import Source, Window, figures_of, importer_for
from vftsim.labs.imports import iperf2
from vftsim.labs.imports.httperf import read_report

FILES = Path(__file__).parent / "files"


def source(name, old="", new=""):
    text = (FILES / name).read_text(encoding="utf-8")
    assert old in text
    return Source(text.replace(old, new) if old else text, name)


def figures(name, start=0.0, end=float("inf")):
    found = source(name)
    return of_text(found.text, start, end)


def of_text(text, start=0.0, end=float("inf")):
    made = Source(text, "made", Window(start, end))
    return {each.metric: each.statistics for each in figures_of(made, importer_for(text, "made"))}


def test_httperf_without_failures():
    found = figures("httperf_ok.txt")
    assert found["connections"] == found["replies"] == {"total": 120}
    assert found["failed"] == {"n": 120, "mean": 0.0}
    assert found["connection_time"] == {"n": 120, "mean": 95.0, "sd": 8.6, "min": 91.1, "p50": 91.5, "max": 139.1}
    assert found["request_rate"]["mean"] == pytest.approx(14.9, abs=0.05)


def test_httperf_of_several_requests_a_connection():
    """40 connections with 3 replies each: as many times of connections, of whose none ended there are none."""
    assert figures("httperf_ok.txt")["connection_time"]["n"] == 120
    length = "Connection length [replies/conn]: "
    found = of_text(source("httperf_ok.txt", f"{length}1.000", f"{length}3.000").text)
    assert (found["connection_time"]["n"], found["replies"]) == (40, {"total": 120})
    assert "connection_time" not in of_text(source("httperf_ok.txt", f"{length}1.000", f"{length}0.000").text)


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


def test_httperf_reports_of_several_rates_in_one_file_are_not_the_first():
    text = source("httperf_ok.txt").text + source("httperf_overload.txt").text
    with pytest.raises(ModelFileError, match="holds the reports of several tests; give each test a file of its own"):
        of_text(text)


def test_httperf_report_that_was_cut():
    with pytest.raises(ModelFileError, match="has no line"):
        read_report(source("httperf_ok.txt", "Net I/O", "Net"))


def test_iperf2_client_of_one_connection():
    found = figures("iperf2_tcp.txt")
    assert found["throughput"]["n"] == 3
    assert (found["throughput"]["min"], found["throughput"]["max"]) == (300.0, 301.0)
    assert found["throughput"]["mean"] == 300.0  # the whole time's line
    assert set(found) == {"throughput"}
    assert figures("iperf2_tcp.txt", 0.9, 2.1)["throughput"]["n"] == 1


def test_iperf2_of_two_connections_reads_the_sums():
    found = figures("iperf2_two.txt")
    assert (found["throughput"]["n"], found["throughput"]["max"], found["throughput"]["mean"]) == (2, 201.0, 201.0)
    assert found["throughput/1"] == found["throughput/2"] == {"mean": 100.0}
    without = "\n".join(line for line in source("iperf2_two.txt").text.splitlines() if "SUM" not in line)
    assert of_text(without)["throughput"]["max"] == 202.0


def test_iperf2_datagrams_from_both_ends():
    client, server = figures("iperf2_udp.txt"), figures("iperf2_udp_server.txt")
    assert client["sent"] == {"total": 25516}
    assert client["lost"] == server["lost"] == {"n": 25515, "mean": 100 * 2410 / 25515}
    assert (client["jitter"]["mean"], server["jitter"]["mean"]) == (0.001, 0.002)
    assert (client["throughput"]["mean"], server["throughput"]["mean"]) == (100.0, 90.6)


@pytest.mark.parametrize("name", ["iperf2_tcp.txt", "iperf2_two.txt", "iperf2_udp.txt", "iperf2_udp_server.txt"])
def test_iperf2_s_lines_come_out_as_the_tool_wrote_them(name):
    text = source(name).text
    written = iperf2.read_report(source(name)).text()
    report = [line.rstrip() for line in text[text.index("[ ID]") :].splitlines()]
    assert written.splitlines() == report


def test_iperf2_client_of_two_connections_that_has_each_server_s_report_behind_its_own():
    """30 Mbit/s sent by two, of which 850 of 25,500 datagrams were lost."""
    text = """[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-10.0000 sec  11.9 MBytes  10.0 Mbits/sec
[  1] Sent 8500 datagrams
[  1] Server Report:
[  1] 0.0000-10.0003 sec  10.7 MBytes  9.00 Mbits/sec   0.001 ms  850/ 8500 (10%)
[  2] 0.0000-10.0000 sec  23.8 MBytes  20.0 Mbits/sec
[  2] Sent 17000 datagrams
[  2] Server Report:
[  2] 0.0000-10.0003 sec  23.8 MBytes  20.0 Mbits/sec   0.003 ms    0/17000 (0%)
"""
    found = of_text(text)
    assert found["throughput"]["mean"] == 30.0
    assert (found["throughput/1"], found["throughput/2"]) == ({"mean": 10.0}, {"mean": 20.0})
    assert (found["sent"], found["lost"]) == ({"total": 25500}, {"n": 25500, "mean": 100 * 850 / 25500})


def test_iperf2_report_that_was_cut():
    """Without its last line the first interval would be taken for the whole time."""
    with pytest.raises(ModelFileError, match="no line of the whole time of connection 1; was the file cut"):
        of_text(source("iperf2_tcp.txt").text.rpartition("[  1]")[0])


def test_iperf2_of_two_tests_one_after_the_other_is_no_sum_of_both():
    """A server's log: the same line numbers again (older versions), or new ones behind a line that says connected."""
    text = source("iperf2_tcp.txt").text
    with pytest.raises(ModelFileError, match=r"made:\d+: begins another test; give each test a file of its own"):
        of_text(text + text.replace("[  1]", "[  2]"))
    lines = "\n".join(line for line in text.splitlines() if "connected with" not in line)
    with pytest.raises(ModelFileError, match="has connection 1 begin more than once"):
        of_text(f"{lines}\n{lines}\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Client connecting to", "Server listening on TCP port 5001\n---\nClient connecting to"),
        ("[  1] 1.0", "[ *1] 1.0"),
        ("[  1] 1.0", "[FD1] 1.0"),
    ],
    ids=["-d", "the other way", "both of --full-duplex"],
)
def test_iperf2_of_both_directions_at_once_is_neither_the_sum_nor_one_of_them(old, new):
    with pytest.raises(ModelFileError, match="both directions at once; give each direction a test of its own"):
        of_text(source("iperf2_tcp.txt", old, new).text)


def test_iperf2_of_2012_as_the_record_prints_it():
    """Older versions print tenths of seconds and wider spaces; figures of Timalsena 2013, 3.2.1."""
    text = """[ ID] Interval       Transfer     Bandwidth
[  3]  0.0-10.0 sec   970 MBytes   814 Mbits/sec
[  3] Sent 691784 datagrams
[  3] Server Report:
[  3]  0.0-10.0 sec   969 MBytes   813 Mbits/sec   0.018 ms  279/691783 (0.04%)
"""
    found = of_text(text)
    assert found["throughput"]["mean"] == 814.0
    assert found["lost"]["mean"] == pytest.approx(0.0403, abs=1e-4)
    assert found["jitter"] == {"mean": 0.018}
    line = iperf2.Iperf2Line("3", 0.0, 10.0, 969 * 2**20, 813e6, 0.018, 279, 691783)
    assert line.text() == "[  3] 0.0000-10.0000 sec   969 MBytes   813 Mbits/sec   0.018 ms  279/691783 (0.04%)"


def test_iperf3_tcp():
    found = figures("iperf3_tcp.json")
    assert found["throughput"]["n"] == 3
    assert found["throughput"]["mean"] == pytest.approx(200, rel=0.01)
    assert found["retransmits"] == {"total": 0}
    assert found["rtt"]["mean"] == pytest.approx(0.1, abs=0.1)
    assert set(found) == {"throughput", "sent", "retransmits", "rtt", "cpu/client", "cpu/server"}
    assert figures("iperf3_tcp.json", 0.9, 2.1)["throughput"]["n"] == 1


def test_iperf3_of_the_server_calls_its_own_processor_the_server_s():
    """The host of a file is the end that wrote it; a server accepts where a client connects."""
    client = figures("iperf3_tcp.json")
    server = of_text(source("iperf3_tcp.json", "connecting_to", "accepted_connection").text)
    assert client["cpu/client"] == server["cpu/server"] == {"mean": pytest.approx(3.6917, abs=1e-4)}
    assert client["cpu/server"] == server["cpu/client"] == {"mean": pytest.approx(1.2744, abs=1e-4)}


def test_iperf3_of_two_streams():
    found = figures("iperf3_two.json")
    assert found["throughput"]["mean"] == pytest.approx(100, rel=0.02)
    parts = found["throughput/1"]["mean"] + found["throughput/2"]["mean"]
    assert parts == pytest.approx(found["throughput"]["mean"], rel=0.01)


def test_iperf3_datagrams():
    """751 of 12,752 lost by its own totals; sent 50, received 47 Mbit/s."""
    found = figures("iperf3_udp.json")
    assert found["lost"] == {"n": 12752, "mean": pytest.approx(5.889272, abs=1e-6)}
    assert found["jitter"]["mean"] == pytest.approx(0.0059743, abs=1e-6)
    assert found["sent"]["mean"] == pytest.approx(49.9866, abs=1e-3)
    assert found["throughput"]["mean"] == pytest.approx(47.0408, abs=1e-3)


def test_iperf3_datagrams_of_versions_that_tell_the_sender_s_rate_alone():
    """No sum is the receiver's, and none says whose it is: 49.9866 Mbit/s less 5.889 % lost, of either stream."""
    test = json.loads(source("iperf3_udp.json").text)
    whole, (stream,) = test["end"]["sum"], test["end"]["streams"]
    for span in (whole, stream["udp"]):
        del span["sender"]
    test["end"] = {"sum": whole, "streams": [stream, stream]}
    found = of_text(json.dumps(test))
    assert found["throughput"]["mean"] == pytest.approx(47.0428, abs=1e-3)
    assert found["throughput/1"] == found["throughput/2"] == {"mean": pytest.approx(47.0428, abs=1e-3)}
    test["start"]["test_start"]["reverse"] = 1
    assert of_text(json.dumps(test))["throughput"]["mean"] == pytest.approx(49.9866, abs=1e-3), "what it received"


@pytest.mark.parametrize("tool", ["iperf2", "iperf3"])
def test_a_part_of_an_interval_at_the_end_counts_by_its_length(tool):
    """Two seconds at 900 Mbit/s and a tenth of one at 0: 857.1 on average, in no second less than 900."""
    ends = [(0.0, 1.0, 900e6), (1.0, 2.0, 900e6), (2.0, 3.0, 900e6), (3.0, 3.1, 0.0)]
    if tool == "iperf2":
        lines = [*ends, (0.0, 3.1, 870e6)]
        text = iperf2.Iperf2Report(tuple(iperf2.Iperf2Line("1", a, b, rate / 8, rate) for a, b, rate in lines)).text()
    else:
        spans = tuple((a, b, int((b - a) * rate / 8)) for a, b, rate in ends)
        text = Iperf3Report("TCP", (Iperf3Stream(spans, 337_500_000, 337_125_000),)).text()
    found = of_text(text, start=1.0)["throughput"]
    assert found["mean"] == pytest.approx(900 * 2 / 2.1, rel=1e-3)
    assert (found["n"], found["sd"]) == (2, pytest.approx(0.0, abs=1e-4))
    assert found["min"] == pytest.approx(900.0)
    assert of_text(text)["throughput"]["mean"] == pytest.approx(870.0, rel=1e-3), "the line of the whole time"


def test_iperf3_written_reads_back():
    streams = tuple(Iperf3Stream(((0.0, 1.0, 1_250_000), (1.0, 2.0, 2_500_000)), 4_000_000, 3_750_000, 5) for _ in "ab")
    found = of_text(Iperf3Report("TCP", streams).text())
    assert (found["throughput"]["min"], found["throughput"]["max"]) == (20.0, 40.0)
    assert found["throughput"]["mean"] == 30.0
    assert found["sent"]["mean"] == 32.0
    assert found["retransmits"] == {"total": 10}
    udp = (Iperf3Stream(((0.0, 1.0, 1_250_000),), 1_250_000, 1_000_000, None, 0.5, 20, 100),)
    found = of_text(Iperf3Report("UDP", udp).text())
    assert found["lost"] == {"n": 100, "mean": 20.0}
    assert (found["jitter"]["mean"], found["throughput"]["mean"], found["sent"]["mean"]) == (0.5, 8.0, 10.0)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"end":', '"End":', "is none of the files"),
        ('{\n\t"start"', '{"error": "refused", "start"', "failed: refused"),
        ('"intervals":\t[{', '"intervals":\t[{},{', "intervals.0.sum: field required"),
        ('"sum_received":\t{', '"sum_received":\t{}, "was":\t{', "end.sum_received.start: field required"),
        ('"bits_per_second":\t', '"bits_per_second":\t' + "9" * 400, "bits_per_second: "),
        ('"streams":\t[', '"streams":\t[3,', "streams"),
        ('"sum_received":\t{', '"sum_sent_bidir_reverse":\t{}, "sum_received":\t{', "both directions at once"),
    ],
)
def test_iperf3_that_is_no_test(old, new, match):
    text = source("iperf3_tcp.json", old, new).text
    with pytest.raises(ModelFileError, match=match):
        of_text(text)


def test_iperf3_that_was_cut():
    text = source("iperf3_tcp.json").text
    with pytest.raises(ModelFileError, match="is not JSON"):
        of_text(text[:-40])
