"""The recorded schedule and the decomposition of a delay."""

import json
from dataclasses import replace

import matplotlib as mpl
import pytest

from tests.composition.media_systems import MS, host, run
from tests.tracing.slices import slices
from vftsim.report.charts import empty_figure
from vftsim.report.pictures import write_figure
from vftsim.tracing.chrome import write_chrome
from vftsim.tracing.explain import explain, format_parts, total_ns
from vftsim.tracing.gantt import draw_gantt
from vftsim.tracing.trace import run_traced

mpl.use("Agg")


@pytest.fixture(scope="module")
def busy():
    return host(
        {"kind": "paravirtual"},
        streams=400,
        scheduler={"kind": "credit", "version": "3.2"},
        pcpus=2,
        switch_cost=2_000,
        domains={"cpu": {"applications": {"job": {"kind": "cpu_bound"}}}},
    )


@pytest.fixture(scope="module")
def traced(busy):
    return run_traced(busy, 1, 0, 50 * MS, 40 * MS, "simpy")


def test_listening_changes_nothing(busy, traced):
    plain = run(busy, 1, 0, 40 * MS, 50 * MS)
    assert plain.drops == traced[0].drops
    assert plain.to_dict()["phases"] == traced[0].to_dict()["phases"]


def test_parts_sum_to_the_delay(traced):
    _, trace = traced
    assert len(trace.packets) > 500
    for packet in trace.packets:
        parts = explain(packet, trace)
        assert total_ns(parts) == packet.delay_ns
        assert all(part.length_ns >= 0 for part in parts)


def test_waits_are_told_from_work(traced):
    """At 40 % load on two shared pCPUs some packets wait in the NIC and in the transmit ring, some for a pCPU."""
    names = {part.name for packet in traced[1].packets for part in explain(packet, traced[1])}
    assert {
        "waits for driver domain receive",
        "waits for driver domain transmit",
        "driver domain receive: dom0.0 waits for a pCPU",
    } <= names
    for packet in traced[1].packets:
        first = explain(packet, traced[1])[1]
        waited = packet.marks[1][1] - packet.marks[0][1]
        assert (first.name == "waits for driver domain receive") == (waited > 0)
        assert not waited or first.length_ns == waited


def test_traced_delays_are_the_measured_ones(traced):
    result, trace = traced
    delays = sorted(p.delay_ns for p in trace.packets if p.flow == "media")
    media = result.whole.outcomes["workloads.media"]
    assert len(delays) == media.delivered
    assert (delays[0], delays[-1]) == (media.delay.min, media.delay.max)


def test_lone_packet_is_explained_by_its_costs():
    """As the sum by hand in test_media_paths; nothing waits."""
    _, trace = run_traced(host({"kind": "paravirtual"}), 1, 0, 0, 25 * MS, "simpy")
    parts = {part.name: part.length_ns for part in explain(trace.packets[0], trace)}
    assert parts == {
        "wire, there and back": 20_000,
        "driver domain receive: works": 24_000,
        "front-end: works": 4_500,
        "application: works": 12_000,
        "driver domain transmit: works": 23_000,
    }
    assert "0.0835 ms" in format_parts("packet", explain(trace.packets[0], trace))


def test_chrome_file_has_tracks_without_overlap(traced, tmp_path):
    write_chrome(traced[1], tmp_path / "schedule.json")
    events = json.loads((tmp_path / "schedule.json").read_text())["traceEvents"]
    tracks = slices(events)
    processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert {tid for pid, tid in tracks if pid == processes["pCPUs"]} == {0, 1}
    assert {pid for pid, _ in tracks} > {processes["pCPUs"], processes["vCPUs"]}, "and packets"
    assert all(pid != tid for pid, tid in tracks), "which would be the main thread of a process"
    priorities = {e["args"]["priority"] for e in events if e["ph"] == "B" and e["pid"] == processes["pCPUs"]}
    assert {"BOOST", "UNDER"} <= priorities
    assert any(e["ph"] == "C" and e["name"] == "guest receive ring" for e in events)


def test_busy_time_of_the_trace_is_that_of_the_accounts(traced):
    window, trace = traced[0].whole, traced[1]
    length = trace.end_ns - trace.start_ns
    use = window.outcomes["hosts.host"]
    for pcpu in range(trace.pcpus):
        sliced = sum(s.end_ns - s.start_ns for s in trace.slices if s.pcpu == pcpu) / length
        busy = use.busy_ns[f"pcpu_{pcpu}"] / length
        assert busy <= sliced <= busy + use.switching_ns / length + 1e-9


@pytest.mark.filterwarnings("error")
def test_gantt_of_a_window_in_which_nothing_ran_has_its_pcpus(traced):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    draw_gantt(replace(traced[1], slices=[]), ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["pCPU 0", "pCPU 1"]


@pytest.mark.filterwarnings("error")
def test_gantt_of_many_domains_names_them_within_the_figure_in_colours_of_their_own(traced, tmp_path):
    figure, ax = empty_figure(10.0, 3.0)
    names = tuple(f"generator-{n}.0" for n in range(24))
    slices = [replace(traced[1].slices[0], vcpu=n) for n in range(24)]
    draw_gantt(replace(traced[1], vcpu_names=names, slices=slices), ax)
    write_figure(figure, tmp_path / "gantt.png")
    legend = ax.get_legend()
    assert legend.get_window_extent().width < figure.bbox.width
    assert len({patch.get_facecolor() for patch in legend.get_patches()}) == 24


def test_gantt_draws_every_pcpu(traced):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    draw_gantt(traced[1], ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["pCPU 0", "pCPU 1"]
    assert ax.get_xlim() == (0.0, 40.0)
    drawn = {0: 0.0, 1: 0.0}
    for bars in ax.collections:
        for path in bars.get_paths():
            (left, top), (right, bottom) = path.get_extents().get_points()
            drawn[round((top + bottom) / 2)] += right - left
    for pcpu, width_ms in drawn.items():
        sliced_ns = sum(s.end_ns - s.start_ns for s in traced[1].slices if s.pcpu == pcpu)
        assert width_ms == pytest.approx(sliced_ns / 1e6), "every slice is drawn once, in its row"
