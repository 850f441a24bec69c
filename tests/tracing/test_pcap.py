"""What tshark reads from a capture: an oracle that knows nothing of vftsim, for loss, jitter and response times."""

import shutil
import struct
import subprocess
from collections import Counter, defaultdict

import pytest

from tests.composition.media_systems import MS, S, host
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.stats import DelayHistogram
from vftsim.study.runs.model import load_model
from vftsim.tracing.pcap import Point, captured, write_pcap
from vftsim.tracing.trace import run_traced
from vftsim.workloads.ims_bench.metrics import PhaseRecord

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (Debian: tshark)")
SIP_LAB = """\
name: lab
domains:
  sut:
    interfaces:
      eth0: {path: {kind: moderated}}
    applications:
      proxy: {kind: sip_server, touch_cost: 4 ms, register_touch_cost: 4 ms}
workloads:
  calls:
    kind: ims_bench
    to: sut.proxy
    subscribers: 2000
    registered: 50 %
    ring_time: 500 ms
    hold_time: 1 s
    pre_registration: {duration: 3 s, rate: 20 /s, transient: 1 s}
    stir: {duration: 2 s, steps: 1}
    steps: {initial: 10 /s, increment: 10 /s, duration: 8 s, transient: 2 s, most: 2}
"""


def tshark(path, *arguments):
    words = ["tshark", "-r", str(path), "-d", "udp.port==5004,rtp", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def fields(path, wanted, *names):
    options = [word for name in names for word in ("-e", name)]
    rows = tshark(path, "-Y", wanted, "-T", "fields", *options).splitlines()
    return [row.split("\t") for row in rows]


def in_ns(seconds):
    whole, _, part = seconds.partition(".")
    return int(whole) * S + int(part.ljust(9, "0"))


@pytest.fixture(scope="module")
def media():
    """Six streams of 200 packets a second for 4 s through one relay that a competitor on its pCPU keeps waiting."""
    relay = {"kind": "media_relay", "packet_cost": 500_000, "threads": 1, "receive_buffer_bytes": 2048}
    spec = host(
        {"kind": "paravirtual"},
        streams=6,
        pcpus=1,
        scheduler={"kind": "credit", "version": "3.2"},
        domains={"cpu": {"applications": {"job": {"kind": "cpu_bound"}}}},
        media={"applications": {"relay": relay, "server": {"kind": "signaling_server", "packet_cost": 100_000}}},
    )
    rtp = spec.workloads["media"].model_copy(update={"interval": 5 * MS})
    spec = spec.model_copy(update={"workloads": {"media": rtp}})
    return run_traced(spec, 1, 0, 0, 4 * S)


@pytest.fixture(scope="module")
def sip(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "lab.yaml"
    path.write_text(SIP_LAB)
    spec = load_model(path).spec
    trace = run_traced(spec, 1, 0, 0, spec.longest_ns + 20 * S)[1]
    return run_model(spec, 1, 0), trace


@needs_tshark
def test_tshark_finds_the_loss(media, tmp_path):
    record, trace = media
    media_outcome = record.whole.outcomes["workloads.media"]
    write_pcap(trace, Point.client, tmp_path / "media.pcap")
    seen = fields(tmp_path / "media.pcap", "rtp", "rtp.ssrc", "rtp.seq", "ip.src")
    sent = {(ssrc, number) for ssrc, number, source in seen if not source.startswith("10.255.")}
    back = {(ssrc, number) for ssrc, number, source in seen if source.startswith("10.255.")}
    assert media_outcome.dropped > 100
    assert back < sent
    assert len(sent - back) == media_outcome.dropped + record.in_flight
    # tshark's own count is of gaps: it cannot know of what is missing at the ends of a stream.
    numbers = defaultdict(list)
    for ssrc, number in back:
        numbers[ssrc].append(int(number))
    gaps = sum(min(numbers[ssrc]) < int(number) < max(numbers[ssrc]) for ssrc, number in sent - back)
    assert sum(stream["lost"] for stream in rtp_streams(tmp_path / "media.pcap")) == gaps
    assert gaps > 0.95 * media_outcome.dropped


@needs_tshark
def test_a_frame_of_g711_is_as_long_as_a_card_hands_it_over(media, tmp_path):
    """160 bytes of speech, 12 of RTP, 8, 20 and 14 of headers; 24 more are on the wire and in no capture."""
    write_pcap(media[1], Point.client, tmp_path / "media.pcap")
    lengths = fields(tmp_path / "media.pcap", "rtp", "frame.len", "ip.len", "udp.length")
    assert set(map(tuple, lengths)) == {("214", "200", "180")}


def rtp_streams(path):
    """Packets, losses and mean jitter of what came back, by tshark."""
    for line in tshark(path, "-q", "-z", "rtp,streams").splitlines():
        words = line.replace("(", " ").split()
        if len(words) > 10 and words[2].startswith("10.255."):
            at = words.index("g711U")
            yield {"packets": int(words[at + 1]), "lost": int(words[at + 2]), "jitter_ms": float(words[at + 8])}


@needs_tshark
def test_tshark_finds_the_jitter(media, tmp_path):
    media_outcome = media[0].whole.outcomes["workloads.media"]
    write_pcap(media[1], Point.client, tmp_path / "media.pcap")
    streams = list(rtp_streams(tmp_path / "media.pcap"))
    packets = sum(stream["packets"] for stream in streams)
    assert packets == media_outcome.delivered
    jitter_ms = sum(stream["jitter_ms"] * stream["packets"] for stream in streams) / packets
    assert jitter_ms == pytest.approx(media_outcome.jitter_ns / 1e6, rel=0.05)


@needs_tshark
def test_tshark_finds_the_response_times(sip, tmp_path):
    """INVITE to 200 at the caller, of the calls of the second step: the same counts in the same bins."""
    record, trace = sip
    write_pcap(trace, Point.client, tmp_path / "sip.pcap")
    step = next(each for phase, _, each in record.of_kind(PhaseRecord) if phase.name == "step_2")
    sent, answered = {}, {}
    for time, call, method, code, source in fields(
        tmp_path / "sip.pcap",
        "sip.CSeq.method == INVITE",
        "frame.time_epoch",
        "sip.Call-ID",
        "sip.Method",
        "sip.Status-Code",
        "ip.dst",
    ):
        if method == "INVITE":
            sent.setdefault(call, in_ns(time))
        elif code == "200" and not source.startswith("10.255."):
            answered.setdefault(call, in_ns(time))
    histogram = DelayHistogram()
    begun = [call for call, at_ns in sent.items() if step.measure_from_ns <= at_ns < step.end_ns]
    for call in begun:
        if call in answered:
            histogram.add(answered[call] - sent[call])
    assert len(begun) > 30
    assert histogram.to_dict() == step.delays["invite200"].to_dict()


@needs_tshark
def test_tshark_has_no_complaint(media, sip, tmp_path):
    for name, trace in (("media", media[1]), ("sip", sip[1])):
        for point in Point:
            path = tmp_path / f"{name}-{point}.pcap"
            write_pcap(trace, point, path)
            seen = fields(path, "frame", "frame.number", "_ws.malformed", "_ws.expert.severity")
            assert len(seen) == len(captured(trace, point)) > 100
            assert not [row for row in seen if row[1]], "malformed"
    kinds = Counter(method for (method,) in fields(tmp_path / "sip-client.pcap", "sip.Method", "sip.Method"))
    assert {"REGISTER", "INVITE", "ACK", "BYE", "MESSAGE"} == set(kinds)


@pytest.mark.parametrize("challenges", [True, False])
def test_answers_have_the_number_of_their_request(challenges, tmp_path):
    """The CSeq of an answer is that of its request (RFC 3261, 8.2.6.2); who challenges nobody has all in the first."""
    change = f"domains.sut.applications.proxy.challenges={str(challenges).lower()}"
    path = tmp_path / "lab.yaml"
    path.write_text(SIP_LAB)
    spec = load_model(path, [change]).spec
    trace = run_traced(spec, 1, 0, 0, 5 * S, "simpy")[1]
    asked, answered = set(), set()
    for _, frame, _ in captured(trace, Point.host):
        first, *lines = frame[42:].decode().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines if line)
        (answered if first.startswith("SIP/2.0") else asked).add((fields["Call-ID"], fields["CSeq"]))
    assert len(answered) > 60
    assert answered <= asked
    registrations = Counter(number for _, number in answered if number.endswith("REGISTER"))
    assert registrations.keys() == ({"1 REGISTER", "2 REGISTER"} if challenges else {"1 REGISTER"})


@needs_tshark
def test_tshark_follows_a_bulk_transfer(tmp_path):
    """Bytes and retransmissions of a TCP transfer, from sequence numbers alone."""
    spec = load_model("net-kvm").spec
    only = {name: workload for name, workload in spec.workloads.items() if workload.kind == "bulk_tcp"}
    (name,) = only
    workload = only[name].model_copy(update={"clients": 1})
    trace = run_traced(spec.model_copy(update={"workloads": {name: workload}}), 1, 0, 0, S // 20)[1]
    write_pcap(trace, Point.client, tmp_path / "tcp.pcap")
    rows = fields(tmp_path / "tcp.pcap", "tcp.len > 0", "tcp.seq_raw", "tcp.len", "tcp.analysis.retransmission")
    data = [one for one in trace.seen if one.label.startswith("segments")]
    assert len(rows) == len(data) > 100
    assert {int(length) for _, length, _ in rows} == {workload.mss}
    ends = max(int(first) + int(length) for first, length, _ in rows)
    assert ends - 1 == workload.mss * max(one.message // 256 + one.message % 256 for one in data)


def test_records_hold_whole_nanoseconds(media, tmp_path):
    """The file itself, read by hand: the magic number of ns, and times and lengths that the trace has."""
    write_pcap(media[1], Point.guest, tmp_path / "guest.pcap")
    data = (tmp_path / "guest.pcap").read_bytes()
    assert struct.unpack("<IHH", data[:8]) == (0xA1B23C4D, 2, 4)
    at, times = 24, []
    while at < len(data):
        seconds, ns, kept, whole = struct.unpack("<IIII", data[at : at + 16])
        assert kept <= whole
        times.append(seconds * S + ns)
        at += 16 + kept
    assert times == sorted(times)
    entered = [mark.time_ns for one in media[1].seen for mark in one.marks if mark.name == "enters the guest"]
    assert Counter(entered) <= Counter(times)


def test_clients_see_their_own_packets_alone():
    """Of a request that a server hands on to another, a client sees two packets, the first server four."""
    server = {"kind": "service", "threads": 8, "demand": "1 ms"}
    front, back = (
        {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}, "applications": {"program": program}}
        for program in ({**server, "calls": [{"to": "back", "count": 1}]}, server)
    )
    spec = ModelSpec.model_validate(
        {
            "hosts": {"host": {"pcpus": 2}},
            "networks": {"lan": {"latency": "1 ms"}},
            "domains": {"front": front, "back": back},
            "workloads": {"load": {"kind": "open_requests", "to": "front", "rate": "20 /s", "gap_cv": 0}},
            "measure": {"duration": "1 s"},
        }
    )
    trace = run_traced(spec, 1, 0, 0, S, "simpy")[1]
    at_client = [frame[26:34] for _, frame, _ in captured(trace, Point.client)]
    assert {end for both in at_client for end in (both[:2], both[4:6])} == {b"\x0a\x00", b"\x0a\xff"}
    requests = sum(both[4:6] == b"\x0a\xff" for both in at_client)
    assert requests == pytest.approx(20, abs=1)
    assert len(at_client) == pytest.approx(2 * requests, abs=1)
    at_hosts = Counter(bytes(sorted(frame[27:28] + frame[31:32])) for _, frame, _ in captured(trace, Point.host))
    assert at_hosts[b"\xfe\xff"] == pytest.approx(4 * requests, abs=4), "asked and answered, at either end"


def test_clients_of_copies_see_their_packets():
    """Of a request to any copy of a domain its clients see two packets, under addresses of each part of the load."""
    sut = {
        "count": 2,
        "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
        "applications": {"program": {"kind": "service", "threads": 8, "demand": "1 ms"}},
    }
    spec = ModelSpec.model_validate(
        {
            "hosts": {"host": {"pcpus": 2}},
            "domains": {"sut": sut},
            "workloads": {"load": {"kind": "open_requests", "to": "sut", "rate": "20 /s", "gap_cv": 0}},
            "measure": {"duration": "1 s"},
        }
    )
    trace = run_traced(spec, 1, 0, 0, S, "simpy")[1]
    ends = [sorted((frame[26:30], frame[30:34])) for _, frame, _ in captured(trace, Point.client)]
    between = Counter((client[:2], server) for client, server in ends)
    assert between.keys() == {(b"\x0a\x00", b"\x0a\xff\x00\x01"), (b"\x0a\x01", b"\x0a\xff\x00\x02")}
    for seen in between.values():
        assert seen == pytest.approx(2 * 20, abs=2)
