"""Each importer against a real file of its tool, with values worked out from the file by hand or by its own totals."""

import math
import re
from pathlib import Path

import pytest

from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.importing import Source, Window, figures_of, importer_for, importers

FILES = Path(__file__).parent / "files"
KINDS = {
    "sipp_uac_stat.csv": "sipp-stat",
    "linux_lab/A_base_r50_n1_uac_stat.csv": "sipp-stat",
    "sipp_uac_rtt.csv": "sipp-rtt",
    "linux_lab/A_base_r50_n1_uac_rtt_first.csv": "sipp-rtt",
    "sipp_uac_counts.csv": "sipp-counts",
    "sipp_uas_counts.csv": "sipp-counts",
    "linux_lab/F_out1_r200_n1_uac_counts.csv": "sipp-counts",
    "sipp_uac_screen.log": "sipp-screen",
    "sipp_uas_screen.log": "sipp-screen",
    "sadf_u.csv": "sadf",
    "sar_u.txt": "sar",
    "sar_all_24.txt": "sar",
    "cgroup_v1.txt": "cgroup-cpu",
    "cgroup_v2.txt": "cgroup-cpu",
    "httperf_ok.txt": "httperf",
    "httperf_overload.txt": "httperf",
    "iperf2_tcp.txt": "iperf2",
    "iperf2_two.txt": "iperf2",
    "iperf2_udp.txt": "iperf2",
    "iperf2_udp_server.txt": "iperf2",
    "iperf3_tcp.json": "iperf3",
    "iperf3_two.json": "iperf3",
    "iperf3_udp.json": "iperf3",
}


def read(name, start=0.0, end=float("inf"), old="", new=""):
    text = (FILES / name).read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new, 1) if old else text
    found = figures_of(Source(text, name, Window(start, end)), importer_for(text, name))
    return {figure.metric: figure.statistics for figure in found}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_file_is_recognized(name, kind):
    assert importer_for((FILES / name).read_text(), name).name == kind


def test_every_importer_has_a_file_here():
    assert set(importers()) == {*KINDS.values(), "ims-bench"}


def test_sipp_statistics_over_the_whole_run_add_up_to_its_totals():
    """160 calls at 20 a second, each answered and ended; the last row's cumulative columns say the same."""
    found = read("sipp_uac_stat.csv")
    assert found["failed"] == {"n": 160.0, "mean": 0.0}
    assert found["load"]["mean"] == pytest.approx(160 / 8.213, rel=1e-3)
    assert found["load"]["p50"] == pytest.approx(20, rel=0.02)
    assert found["retransmissions"]["max"] == 0.0
    assert found["rtd1"] == {"mean": 0.0, "sd": 0.0}


def test_sipp_statistics_of_the_linux_lab_agree_with_its_table():
    """Run A_base_r50_n1: 1115 calls in all; between 4 and 22 s 49.8 calls a second (its runs.csv)."""
    assert read("linux_lab/A_base_r50_n1_uac_stat.csv")["failed"] == {"n": 1115.0, "mean": 0.0}
    cut = read("linux_lab/A_base_r50_n1_uac_stat.csv", 4.0, 22.0)
    assert cut["load"]["n"] == 17
    assert cut["completed"]["mean"] == pytest.approx(50.11, abs=1.0)
    assert "invite200" not in cut  # SIPp keeps means of the whole run only
    # The last row's cumulative mean; SIPp cuts it to whole milliseconds.
    assert read("linux_lab/A_base_r50_n1_uac_stat.csv")["invite200"]["mean"] == 1.0


def test_sipp_response_times_by_name_and_window():
    found = read("sipp_uac_rtt.csv")
    assert found["rtd1"]["n"] == 160.0
    assert found["rtd1"]["max"] == 4.0
    lab = read("linux_lab/A_base_r50_n1_uac_rtt_first.csv")
    assert set(lab) == {"invite100", "invite180", "invite200", "bye200"}
    assert sum(each["n"] for each in lab.values()) == 399
    assert lab["bye200"]["p50"] == pytest.approx(1.063, rel=0.2)  # 1.063 in the whole run
    window = read("linux_lab/A_base_r50_n1_uac_rtt_first.csv", 4.010, 4.0145)
    assert window["bye200"]["mean"] == 0.81
    assert window["invite100"]["mean"] == 2.852
    assert "invite180" not in window


def test_sipp_counts_between_two_times():
    """At 1 s 19 INVITEs had been sent (second row), at the end 160."""
    whole, later = read("sipp_uac_counts.csv"), read("sipp_uac_counts.csv", start=1.1)
    assert whole["0_INVITE_Sent"] == {"total": 160.0}
    assert later["0_INVITE_Sent"] == {"total": 141.0}
    assert not [name for name in whole if "Pause" in name]


def test_counts_and_screen_of_one_run_agree():
    for side in ("uac", "uas"):
        counts, screen = read(f"sipp_{side}_counts.csv"), read(f"sipp_{side}_screen.log")
        both = set(counts) & set(screen)
        assert len(both) >= 15
        assert {name: screen[name] for name in both} == {name: counts[name] for name in both}


def test_sipp_screen():
    found = read("sipp_uac_screen.log")
    assert found["load"] == {"mean": 19.481}
    assert found["failed"] == {"n": 160.0, "mean": 0.0}


@pytest.mark.parametrize("name", ["sadf_u.csv", "sar_all_24.txt"])
def test_cpu_samples(name):
    """First sample of all processors: idle, wait 0, steal 0.5: busy 99.5; processor 1 had 98 to 100 %."""
    found = read(name)
    assert found["cpu"]["n"] == 6.0
    assert found["cpu"]["min"] == pytest.approx(99.5)
    assert found["steal"]["max"] == pytest.approx(0.5)
    assert found["cpu/1"]["n"] == 6.0
    assert read(name, 1.0, 3.0)["cpu/1"]["n"] == 2.0


@pytest.mark.parametrize(
    "text",
    [
        "# hostname;interval;timestamp;CPU;%user;%idle\nlab;1;1700000001;-1;10;90\nlab;99;1700000100;-1;90;10\n",
        "Linux 6.1.0 (lab)\n\n10:00:00 CPU %user %idle\n10:00:01 all 10 90\n10:01:40 all 90 10\n",
    ],
    ids=["sadf", "sar"],
)
def test_the_mean_of_samples_of_unequal_length_is_over_time(text):
    """A second at 10 % and 99 at 90 % are 89.2 %, as sar's average says; half of the samples is at 10."""
    (found,) = figures_of(Source(text, "made"), importer_for(text, "made"))
    assert (found.statistics["n"], found.statistics["p50"]) == (2.0, 50.0)
    assert found.statistics["mean"] == pytest.approx(89.2)


def test_both_ways_that_sysstat_prints_are_read_alike():
    assert read("sar_all_24.txt") == read("sadf_u.csv")


def test_sar_with_twice_twelve_hours_and_over_midnight():
    """The same samples, begun at 23:59:57, by a 12 hour clock: the first three seconds hold three of them."""
    clock = ["11:59:57 PM", "11:59:58 PM", "11:59:59 PM", "12:00:00 AM", "12:00:01 AM", "12:00:02 AM", "12:00:03 AM"]
    text = (FILES / "sar_u.txt").read_text()
    for old, new in zip([f"19:49:{s}" for s in range(55, 60)] + ["19:50:00", "19:50:01"], clock, strict=True):
        text = text.replace(old, new)
    found = figures_of(Source(text, "sar", Window(0.0, 3.0)), importer_for(text, "sar"))
    assert found[0].statistics["n"] == 3.0
    assert found[0].statistics["mean"] == pytest.approx((99.5 + 100 + 99.5) / 3, abs=0.02)


def test_sar_by_a_clock_that_was_set_back_is_no_day_longer():
    """At the end of summer time an hour comes twice; the first sample after it was taken for one of 23 h 10 min."""
    head = "Linux 6.1.0 (lab)\n\n02:30:01 CPU %user %idle\n02:40:01 all 10 90\n02:50:01 all 10 90\n"
    with pytest.raises(ModelFileError, match="made:6: is from before the row above; give what was recorded after"):
        figures_of(Source(head + "02:00:01 all 90 10\n", "made"), importer_for(head, "made"))


def test_cgroup_samples():
    """Version 1: 30 periods of 100 ms, 8 of them throttled; version 2: two cores busy, the first step by hand."""
    assert read("cgroup_v1.txt")["throttled_periods"] == {"n": 30.0, "mean": pytest.approx(100 * 8 / 30)}
    found = read("cgroup_v2.txt")
    assert found["cpu"]["n"] == 5.0
    assert found["cpu"]["max"] == pytest.approx(201.2, abs=0.05)
    first = 100 * (1450.064974 - 1449.033241) / (1795290799.705947224 - 1795290799.189078127)
    assert read("cgroup_v2.txt", end=0.6)["cpu"]["mean"] == pytest.approx(first)


BROKEN = {
    "cut row": ("sipp_uac_stat.csv", {"old": ";0;0;0;0;0;0;0;0;\n", "new": "\n"}, "sipp_uac_stat.csv:2: has "),
    "no date": ("sipp_uac_stat.csv", {"old": "\t1795290587.421580", "new": ""}, "sipp_uac_stat.csv:2: StartTime: "),
    "stat": ("sipp_uac_stat.csv", {"old": "OutgoingCall(P)", "new": "x"}, "sipp_uac_stat.csv:1: has no column 'O"),
    "rtt text": ("sipp_uac_rtt.csv", {"old": ";0;1", "new": ";?;1"}, "sipp_uac_rtt.csv:2: response_time_ms: '?' is"),
    "rtt negative": ("sipp_uac_rtt.csv", {"old": ";0;1", "new": ";-3;1"}, "sipp_uac_rtt.csv:2: response_time_ms: "),
    "rtt nameless": ("sipp_uac_rtt.csv", {"old": ";0;1", "new": ";0; "}, "sipp_uac_rtt.csv:2: rtd_no: the cell is"),
    "counts": ("sipp_uac_counts.csv", {"old": "00:00:01:", "new": "1 s:"}, "sipp_uac_counts.csv:3: ElapsedTime: '1 s"),
    "screen": ("sipp_uac_screen.log", {"old": "Statistics Screen", "new": "x"}, "sipp_uac_screen.log: has no Stat"),
    "sadf": ("sadf_u.csv", {"old": ";0.50;0.00\n", "new": ";0.50\n"}, "sadf_u.csv:2: has 5 percentages, the header 6"),
    "sadf time": ("sadf_u.csv", {"old": "2026-11-21", "new": "21.11.26"}, "sadf_u.csv:2: timestamp: '21.11.26 19:49:"),
    "sadf host": ("sadf_u.csv", {"old": "\nlab;1", "new": "\nlab2;1"}, "sadf_u.csv:3: is of another host than"),
    "sadf again": ("sadf_u.csv", {"old": "19:49:57", "new": "19:49:54"}, "sadf_u.csv:5: is from before the row above"),
    "sadf other": ("sadf_u.csv", {"old": "%idle", "new": "%x"}, "sadf_u.csv:1: is not a table of CPU use"),
    "sar": ("sar_u.txt", {"old": "     49.50", "new": "      49,5"}, "sar_u.txt:4: %user: '49,5' is not a number"),
    "sar share": ("sar_u.txt", {"old": "     49.50", "new": "     149.5"}, "sar_u.txt:4: %user: 149.5 is no"),
    "sar line": ("sar_u.txt", {"old": "Average", "new": "Mittel"}, "sar_u.txt:10: is no line of sar"),
    "cgroup": ("cgroup_v2.txt", {"old": "user_usec", "new": "usage"}, "cgroup_v2.txt"),
    "cgroup back": ("cgroup_v2.txt", {"old": "1450064974", "new": "1"}, "cgroup_v2.txt:7: usage_usec: is less than in"),
    "cgroup clock": (
        "cgroup_v2.txt",
        {"old": "1795290799.705947224", "new": "1795290799.1"},
        "cgroup_v2.txt:6: is a time that",
    ),
    "cgroup word": ("cgroup_v2.txt", {"old": "usage_usec 1450064974", "new": "?"}, "cgroup_v2.txt:7: is neither a"),
}


@pytest.mark.parametrize(("name", "change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_file_is_told_with_its_place(name, change, message):
    with pytest.raises(ModelFileError) as caught:
        read(name, **change)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", KINDS)
def test_a_file_cut_anywhere_is_read_or_refused_but_never_crashes(name):
    text = (FILES / name).read_text(encoding="utf-8")
    for end in range(0, len(text), max(len(text) // 60, 1)):
        try:
            cut = text[:end]
            figures_of(Source(cut, name), importer_for(cut, name))
        except ModelFileError as error:
            assert name in str(error)  # noqa: PT017 - either outcome is right, its text is what counts


@pytest.mark.parametrize(
    "name", ["sipp_uac_stat.csv", "sipp_uac_rtt.csv", "sipp_uac_counts.csv", "sadf_u.csv", "sar_u.txt", "cgroup_v2.txt"]
)
def test_a_last_line_that_was_cut_is_not_read(name):
    """Of 98.50 % idle 9 is left, of a response time's name a part, of a count a digit: all of them could be read."""
    text = (FILES / name).read_text(encoding="utf-8")
    for end in range(text[:-1].rindex("\n") + 2, len(text)):
        with pytest.raises(ModelFileError, match="has no end; was the file cut"):
            figures_of(Source(text[:end], name), importers()[KINDS[name]])


@pytest.mark.parametrize("kind", ["stat", "rtt", "counts"])
def test_rows_of_a_second_run_or_that_are_there_twice_are_no_longer_run(kind):
    """The rows of a run behind those of another have its counters from 0 on again: 19 of 179 INVITEs would be left."""
    head, *rows = (FILES / f"sipp_uac_{kind}.csv").read_text().splitlines(keepends=True)
    for text in ([head, *rows, *rows[:2]], [head, *rows[:4], *rows[1:4], *rows[4:]]):
        with pytest.raises(ModelFileError, match="begins before the row above ended; give each run a file of its own"):
            figures_of(Source("".join(text), "made"), importers()[f"sipp-{kind}"])


@pytest.mark.parametrize(("succeeded", "cell", "mean_ms"), [(0, "000000", None), (3, "000000", 0.0), (0, "7000", 7.0)])
def test_a_run_without_a_response_has_no_mean_response_time(succeeded, cell, mean_ms):
    """SIPp writes 0 for it; of calls that succeeded within a ms, too, and of some that failed later it is no 0."""
    start, end = ("2026-11-21\t19:49:47\t1795290587.0", "2026-11-21\t19:49:48\t1795290588.0")
    columns = {"StartTime": start, "LastResetTime": start, "CurrentTime": end, "IncomingCall(P)": "0"}
    columns |= {"OutgoingCall(P)": "3", "SuccessfulCall(P)": f"{succeeded}", "SuccessfulCall(C)": f"{succeeded}"}
    columns |= {"FailedCall(P)": f"{3 - succeeded}", "Retransmissions(P)": "0"}
    columns |= {"ResponseTime1(C)": f"00:00:00:{cell:0>6}"}
    text = "".join(f"{';'.join(row)};\n" for row in (columns, columns.values()))
    found = {each.metric: each.statistics for each in figures_of(Source(text, "made"), importer_for(text, "made"))}
    assert found.get("rtd1", {}).get("mean") == mean_ms
    assert found["failed"] == {"n": 3.0, "mean": pytest.approx(100.0 * (3 - succeeded) / 3.0)}


def test_mpstat_is_read_as_sar():
    """Two samples of two processors, a table of its own each: 100 - 68.50 - 0.40 - 0.10 and so on are busy."""
    head = "     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
    rows = (
        "     all   25.00    0.00    5.00    0.40    0.00    1.00    0.10    0.00    0.00   68.50\n",
        "       0   50.00    0.00   10.00    0.80    0.00    2.00    0.20    0.00    0.00   37.00\n",
        "       1    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00  100.00\n",
    )
    tables = "".join(
        f"\n11:00:0{n}{head}" + "".join(f"11:00:0{n + 1}{row}" for row in rows) for n in range(2)
    )  # the head has the time before
    text = f"Linux 6.1.0-18-amd64 (lab) \t11/30/26 \t_x86_64_\t(2 CPU)\n{tables}\nAverage:{head}Average:{rows[0]}"
    found = {each.metric: each.statistics for each in figures_of(Source(text, "made"), importer_for(text, "made"))}
    assert {name: round(each["mean"], 6) for name, each in found.items() if name.startswith("cpu")} == {
        "cpu": 31.0,
        "cpu/0": 62.0,
        "cpu/1": 0.0,
    }
    assert found["cpu"]["n"] == 2.0


def test_what_is_no_such_file_is_refused_with_those_that_are():
    with pytest.raises(ModelFileError, match=r"a table of your own needs no import, but a dataset\.yaml that says"):
        importer_for("load,cpu\n50,20\n", "mine.csv")
    with pytest.raises(ModelFileError, match=r"x: is none of the files .* sipp-stat: SIPp -trace_stat"):
        importer_for("hello\n", "x")
    with pytest.raises(ModelFileError, match="x: is empty"):
        importer_for(" \n", "x")
    with pytest.raises(UsageError, match="no importer 'sipp-rt'; did you mean 'sipp-rtt'"):
        importer_for("hello\n", "x", "sipp-rt")


def test_a_total_of_a_run_cannot_be_cut_and_an_empty_window_is_told():
    with pytest.raises(ModelFileError, match="holds totals of a whole run"):
        read("sipp_uac_screen.log", 1.0, 2.0)
    with pytest.raises(ModelFileError, match="holds nothing between --from and --until"):
        read("sipp_uac_rtt.csv", 1000.0, 2000.0)


ABSURD = ("inf", "-inf", "nan", "0", "1e308", "1e999", "9" * 30, "9" * 400, "9" * 5000, "²")


@pytest.mark.parametrize("name", KINDS)
def test_no_number_of_a_file_crashes_its_importer(name):
    """Infinite, huge or no number, in each of many places a third of them and in all places at once."""
    text = (FILES / name).read_text(encoding="utf-8")
    places = list(re.finditer(r"\d+(?:\.\d+)?", text))
    spans = [place.span() for place in places[:: max(len(places) // 60, 1)]]
    texts = [
        text[:begin] + absurd + text[end:]
        for number, (begin, end) in enumerate(spans)
        for absurd in ABSURD[number % 3 :: 3]
    ]
    texts += [re.sub(r"\d+(?:\.\d+)?", absurd, text) for absurd in ABSURD]
    for changed in texts:
        try:
            found = figures_of(Source(changed, name), importers()[KINDS[name]])
        except ModelFileError as error:
            assert name in str(error)  # noqa: PT017 - either outcome is right, its text is what counts
        else:
            assert all(math.isfinite(value) for figure in found for value in figure.statistics.values())


def test_an_httperf_test_without_connections_is_refused():
    with pytest.raises(ModelFileError, match="without a connection or a duration"):
        read(
            "httperf_ok.txt",
            old="Total: connections ",
            new="Total: connections 0 requests 1 replies 1 test-duration 1 s",
        )
