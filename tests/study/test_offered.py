"""What was asked of a model and did not happen is said; frame arithmetic says what a line can carry."""

import json
import re

import pytest

import vftsim
from tests.study.tiny import tiny
from vftsim.cli.main import main
from vftsim.composition.run import run_model
from vftsim.composition.without_effect import remarks
from vftsim.errors import ModelFileError, UsageError
from vftsim.report.terminal import as_text
from vftsim.study.designs.capacity import stream_capacity
from vftsim.study.designs.capacity_by_search import level_blocks
from vftsim.study.designs.capacity_search import CapacityRequest, short_offer
from vftsim.study.designs.failover import Crashes, failover_study
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.study.runs.workers import Interrupted

HOST = """\
format: 2
hosts: {host: {pcpus: 1, scheduler: {kind: native}, nics: {eth0: {}}}}
networks: {lan: {rate: LINE, latency: 10 us}}
domains:
  vm:
    interfaces: {eth0: {path: PATH}}
    applications: {app: APPLICATION}
workloads:
  load: WORKLOAD
measure: {duration: 1 s, warm_up: 0 s}
"""
MODERATED = "{kind: moderated}"
NATIVE = "{kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}"
UDP = "{kind: bulk_udp, to: vm, rate: 2 Mbit/s, duration: 1 s, network: {switched: true, rate: 1 Mbit/s, queue: 4 KiB}}"
TCP = "{kind: bulk_tcp, to: vm, duration: 900 ms, interval: 100 ms, network: {switched: true, rate: 10 Mbit/s}}"
RTP = "{kind: rtp, to: vm, streams: 40}"
CALLS = "{kind: calls, to: vm, calls_per_s: 100}"
ASKING = "{kind: request_response, to: vm, clients: 4, turn_around: 5 ms, retry: 0 ms}"
FRAME = 1470 / (1470 + 66)
"""Payload of a datagram in its frame: UDP, IP, Ethernet, preamble and gap are 66 bytes."""


@pytest.fixture
def written(tmp_path):
    def write(workload, application, line="1 Gbit/s", path=MODERATED, more=""):
        text = HOST.replace("LINE", line).replace("PATH", path).replace("APPLICATION", application)
        file = tmp_path / "model.yaml"
        file.write_text(text.replace("WORKLOAD", workload) + more)
        return file

    return write


def said_by(capsys, *words):
    assert main([*map(str, words), "-j", "1", "-q"]) == 0
    return " ".join(capsys.readouterr().out.split())


def offer_of(file):
    return run_model(load_model(file).spec, 1, 0).offers["load"]


def test_a_clients_card_that_sends_less_than_asked_is_named(written, capsys):
    file = written(UDP, "{kind: udp_sink}")
    offer = offer_of(file)
    assert offer.asked == 2.0
    queue = 2 * 8 * 4096 / 1e6  # of its card, written for the test but not sent by its end
    assert 0.99 * FRAME <= offer.sent <= FRAME + queue
    printed = said_by(capsys, "run", file, "-n", "1")
    assert "Mbit/s of load" in printed
    assert "each client's link of 1 Mbit/s is full (workloads.load.network.rate)" in printed


def test_what_is_offered_in_full_is_not_spoken_of(written, capsys):
    assert not offer_of(written(UDP.replace("2 Mbit/s", "900 kbit/s"), "{kind: udp_sink}")).is_short
    assert "Not offered" not in said_by(capsys, "run", written(RTP, "{kind: media_relay}"), "-n", "1")


def test_a_search_passes_no_load_that_was_not_offered(written, tmp_path, capsys):
    words = ["capacity", written(UDP, "{kind: udp_sink}"), "--probability", "0.5", "--resolution", "0.4"]
    printed = json.loads(said_by(capsys, *words, "--budget", "40", "--json", "-o", tmp_path / "out"))
    ((key, found),) = vftsim.open(tmp_path / "out").searches.items()
    passed = [probe.level for probe in found.result.probes if str(probe.decision) == "pass"]
    assert 0.0 < max(passed) <= FRAME + 0.05
    assert found.result.answer == "at least", "the guest itself lost nothing"
    assert found.missing is not None
    text = " ".join(as_text(level_blocks(found), 100).split())
    assert "above it: not offered" in text
    assert "each client's link of 1 Mbit/s is full" in text
    assert printed["capacity"][0]["answer"] == "at least"
    assert "each client's link" in printed[key]["not_offered"][0]["why"]


def test_a_line_that_carries_fewer_streams_than_asked_bounds_their_search(written):
    """A stream is 238 bytes in 20 ms, 95.2 kbit/s: a line of 1 Mbit/s carries ten of them."""
    model = load_model(written(RTP.replace("40", "8"), "{kind: media_relay, packet_cost: 10 us}", "1 Mbit/s"))
    asked = CapacityRequest(probability=0.5, resolution=1.0, budget=100)
    assert stream_capacity(model, asked, Execution(1, 1)).searches["streams"].result.estimate.low <= 10


def test_tcp_names_the_clients_link_where_the_line_is_faster(written, capsys):
    file = written(TCP, "{kind: tcp_sink}", "100 Mbit/s")
    printed = said_by(capsys, "run", file, "-n", "1")
    assert "each client's link of 10 Mbit/s is full" in printed
    slower = written(TCP, "{kind: tcp_sink}", "10 Mbit/s")
    assert "Not offered" not in said_by(capsys, "run", slower, "-n", "1")


@pytest.mark.parametrize("path", [NATIVE, MODERATED], ids=["native", "moderated"])
@pytest.mark.parametrize(
    ("workload", "application", "asked", "frame_bytes"),
    [
        (RTP, "{kind: media_relay}", 40 * 50 * 238 * 8, 238),
        (CALLS, "{kind: signaling_server}", 100 * 5 * 700 * 8, 700),
    ],
    ids=["rtp", "calls"],
)
def test_a_line_loses_what_it_does_not_carry(written, workload, application, asked, frame_bytes, path):
    """40 streams are 3.8 Mbit/s, 100 calls a second 2.8 Mbit/s; the line has 1 Mbit/s, and room for 2,000 bytes.

    The delay is that of the way back, a frame, and of a queue that has no room for one more, or nearly.
    """
    settings = ["networks.lan.queue=2000 B", "networks.lan.latency=0 us", "measure.duration=20 s"]
    spec = load_model(written(workload, application, "1 Mbit/s", path), settings).spec
    flow = run_model(spec, 1, 0).whole.outcomes["workloads.load"]
    assert flow.loss == pytest.approx(100 * (1 - 1e6 / asked), rel=0.02)
    assert flow.delivered / flow.seconds == pytest.approx(1e6 / 8 / frame_bytes, rel=0.01)
    frames = 2000 // frame_bytes
    assert (frames + 1) * frame_bytes * 8e-3 <= flow.delay.mean / 1e6 <= (frames + 3) * frame_bytes * 8e-3


def test_clients_that_never_ask_again_are_said(written, capsys):
    more = "faults: [{kind: primary_crash, at: 500 ms}]\n"
    printed = said_by(capsys, "run", written(ASKING, "{kind: service, demand: 10 us}", more=more), "-n", "1")
    assert "of 4 clients of load" in printed
    assert "never asks again (workloads.load.retry)" in printed


def test_a_test_that_the_run_cuts_is_said(written, capsys):
    workload = "{kind: httperf, to: vm, rate: 10 /s, connections: 100}"
    printed = said_by(capsys, "run", written(workload, "{kind: prefork_web_server, script: 1 ms}"), "-n", "1")
    assert "workloads.load: its test lasts 9.9 s, and a run 1 s: its figures are of a part" in printed


def test_a_fault_after_the_end_of_every_run_is_refused(written):
    more = "faults: [{kind: primary_crash, at: 3000 d}]\n"
    with pytest.raises(ModelFileError, match="'3000 d' is after the end of every run, which lasts 1 s at most"):
        load_model(written(ASKING, "{kind: service}", more=more))


def test_a_run_is_not_scaled_to_end_before_its_fault(written):
    model = load_model(written(ASKING, "{kind: service}", more="faults: [{kind: primary_crash, at: 900 ms}]\n"))
    with pytest.raises(UsageError, match="the fault at 900 ms would be after the end of a run of 500 ms"):
        model.scaled(0.5)
    assert model.quick().spec == model.spec


def test_a_fault_after_the_step_at_which_a_ramp_ended_is_said(tmp_path, capsys):
    file = tmp_path / "tiny.yaml"
    file.write_text(tiny() + "faults: [{kind: pause, at: step 5 + 2 s, duration: 100 ms}]\n")
    printed = said_by(capsys, "run", file, "-n", "1")
    assert "Not offered: 1 of 1 runs of pause at step 5 + 2 s" in printed


def test_a_failover_is_watched_for_no_longer_than_a_run_may_last(written):
    model = load_model(written(ASKING, "{kind: service}"))
    with pytest.raises(UsageError, match="--after"):
        failover_study(model, Crashes(1, after_ns=3653 * 86_400 * 10**9), Execution())


def test_what_the_line_cannot_carry_is_said_before_the_work(written, capsys, monkeypatch):
    """100 calls a second are five packets of 700 bytes each: 2.8 Mbit/s."""

    def begin(*_, **__):
        raise Interrupted("no run has begun")

    monkeypatch.setattr("vftsim.study.execution.run_model", begin)
    file = written(CALLS, "{kind: signaling_server}", "1 Mbit/s")
    assert main(["run", str(file), "-n", "1", "-j", "1", "-q"]) == 3
    said, _, ended = capsys.readouterr().err.partition("no run has begun")
    assert "workloads.load asks for 2.8 Mbit/s, and networks.lan.rate is 1 Mbit/s" in said
    assert not ended.strip()


@pytest.mark.parametrize("path", [NATIVE, MODERATED], ids=["native", "moderated"])
def test_a_line_that_one_overfills_is_said_and_others_wait_for_it(written, path):
    """3.8 Mbit/s on a line of 1, and 0.5 beside them: all wait in one queue, and lose alike."""
    file = written(RTP, "{kind: media_relay}", "1 Mbit/s", path)
    settings = ["workloads.other={kind: rtp, to: vm, streams: 5}", "networks.lan.queue=2000 B"]
    spec = load_model(file, [*settings, "workloads.load.clock_error_ppm=1000", "measure.duration=20 s"]).spec
    assert remarks(spec) == ["workloads.load asks for 3.808 Mbit/s, and networks.lan.rate is 1 Mbit/s"]
    found = run_model(spec, 1, 0).whole.outcomes
    assert found["workloads.other"].delay.mean > 10_000_000
    flows = [found["workloads.load"], found["workloads.other"]]
    assert sum(flow.delivered for flow in flows) / flows[0].seconds == pytest.approx(1e6 / 8 / 238, rel=0.01)


def test_a_test_that_is_over_long_before_the_measured_time_is_said(written, capsys):
    workload = "{kind: httperf, to: vm, rate: 10 /s, connections: 2}"
    server = "{kind: prefork_web_server, script: 1 ms}"
    crash = "faults: [{kind: primary_crash, at: 900 ms}]\n"
    printed = said_by(capsys, "run", written(workload, server, more=crash), "-n", "1")
    assert "workloads.load: its test lasts 100 ms; CPU and links are means up to 1 s" in printed
    printed = said_by(capsys, "run", written(workload, server), "-n", "1")
    assert "its test lasts" not in printed  # the measured time ends with it
    printed = said_by(capsys, "run", written(workload, server), "-n", "1", "--set", "measure.warm_up=200ms")
    assert "its test lasts 100 ms: it is over when measuring begins (measure.warm_up)" in printed


def test_requests_without_an_answer_by_the_end_are_said_and_judge_nothing(written, capsys):
    """40 clients on a thread of 10 ms wait 400 ms: of a second, two rounds in three are over."""
    file = written("{kind: request_response, to: vm, clients: 40, turn_around: 0}", "{kind: service, demand: 10 ms}")
    short = ["--set", "measure.duration=500 ms"]
    assert "Without an answer by the end" in said_by(capsys, "run", file, "-n", "1", *short)
    assert "Without an answer by the end" not in said_by(
        capsys, "run", file, "-n", "1", "--set", "measure.duration=3 s"
    )
    limit = ["--objective", "load.latency.p99 <= 2 s", "--probability", "0.5", "--resolution", "0.5", "--budget", "200"]
    printed = said_by(capsys, "capacity", file, *short, *limit)
    assert "Without an answer by the end" in printed
    passed = [int(level) for level in re.findall(r" (\d+) \d+ < [\d.]+ \d+ pass", printed)]
    assert 0 < max(passed) < 20, "of 20 clients a quarter of 500 ms is under way at the end"


def test_an_overload_in_less_than_the_patience_of_clients_is_said(written, capsys):
    """At twice what the server carries half is answered; nothing fails before 1 + 2 + 4 s are over."""
    workload = "{kind: open_requests, to: vm, rate: 200 /s}"
    file, server = written(workload, "{kind: service, demand: 10 ms}"), "domains.vm.applications.app.demand"
    printed = said_by(capsys, "run", file, "-n", "1")
    assert "requests failed, %" in printed
    assert "of load (" in printed
    assert "none has failed before it has waited for 7 s; less was measured" in printed
    assert "Without an answer" not in said_by(capsys, "run", file, "-n", "1", "--set", f"{server}=4 ms")


def test_requests_that_have_failed_are_not_under_way(written, capsys):
    """Who is asked in turn needs 20 s: after 300 ms each request is answered that it has failed."""
    ways = "interfaces: {eth0: {path: {kind: moderated}}}"
    slow = f"domains.slow={{{ways}, applications: {{app: {{kind: service, threads: 99, demand: 20 s}}}}}}"
    asking = "{kind: service, threads: 99, demand: 0, calls: [{to: slow, timeout: 300 ms, retries: 0}]}"
    file = written("{kind: open_requests, to: vm, rate: 20 /s}", asking)
    more = ["--set", slow, "--set", "hosts.host.pcpus=2", "--set", "measure.duration=5 s"]
    printed = said_by(capsys, "run", file, "-n", "1", *more)
    assert "requests failed, % 100 " in printed
    assert "Without an answer" not in printed


def test_of_a_ramp_the_judged_steps_must_have_been_offered(tmp_path):
    """140 subscribers do for 10 to 30 attempts a second, and not for the 40 that fill the server and last longer."""
    file = tmp_path / "tiny.yaml"
    file.write_text(tiny(subscribers="140"))
    record = run_model(load_model(file).spec, 1, 0)
    assert [step.missing > 0 for step in record.steps()] == [False, False, False, True, True]
    assert record.offers["calls"].is_short

    def short(*judged):
        return short_offer(record, ["calls"], judged)

    assert short("workloads.calls.at_30.ihs") is short("calls.step_3.ihs", "calls.step_1.cpu") is None
    fourth = short("calls.step_3.ihs", "calls.step_4.ihs")
    assert (fourth.asked, fourth.asked - fourth.sent) == ((30 + 40) * 4, record.steps()[3].missing)
    assert short() == short("workloads.calls.doc_saps", "calls.step_3.ihs") == record.offers["calls"]
