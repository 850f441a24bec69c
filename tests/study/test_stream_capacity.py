"""Capacity in media streams, on a server whose capacity is known by arithmetic.

One CPU, 1 ms of work a packet and 50 packets a second a stream: 20 streams fill it.  Its buffer holds ten
packets, so each stream above is lost but for a moment; below, packets of one period never pile up to ten.
"""

import json
import math
from functools import partial

import pytest

from vftsim.cli.main import main
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run, run_model
from vftsim.composition.views import STREAMS, calls_of, loaded_by, streams_of
from vftsim.errors import UsageError
from vftsim.outcome import Phase
from vftsim.stats import DelayHistogram
from vftsim.study.designs.capacity import at_streams, meets, saturating_streams, stream_capacity
from vftsim.study.designs.capacity_search import CapacityRequest, JudgedLoad
from vftsim.study.designs.resources import WatchedRun, ceiling_pcpus, limit_in_words, resource_table, watch
from vftsim.study.execution import Execution
from vftsim.study.figures.names import Objective
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.model import load_model
from vftsim.study.runs.workers import Workers
from vftsim.workloads.calls import MESSAGE_BYTES
from vftsim.workloads.flow import FlowResult

pytestmark = pytest.mark.thorough

SERVER = """\
hosts:
  host: {pcpus: 1, scheduler: {kind: native}, nics: {eth0: {}}}
networks:
  lan: {latency: 10 us}
domains:
  linux:
    vcpus: 1
    interfaces:
      eth0: {path: {kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}}
    applications:
      relay: {kind: media_relay, threads: 1, packet_cost: 1 ms, receive_buffer_bytes: 4960}
      server: {kind: signaling_server, packet_cost: 1 us}
workloads:
  media: {kind: rtp, to: linux, streams: 24}
  signaling: {kind: calls, to: linux, calls_per_s: 2}
measure:
  duration: 500 ms
  warm_up: 100 ms
"""
FILLS = 20
COPIES = """\
hosts:
  host: {pcpus: 3, scheduler: {kind: credit2}}
networks:
  lan: {latency: 10 us}
domains:
  dom0: {driver: {placement: any}}
  media:
    count: 2
    interfaces: {eth0: {path: {kind: paravirtual, frontend_receive_cost: 0, frontend_transmit_cost: 0, event_cost: 0}}}
    applications:
      relay: {kind: media_relay, threads: 1, packet_cost: 1 ms, receive_buffer_bytes: 4960}
      server: {kind: signaling_server, packet_cost: 1 us}
workloads:
  media: {kind: rtp, to: media, streams: 24}
  signaling: {kind: calls, to: media, calls_per_s: 2}
measure:
  duration: 500 ms
  warm_up: 100 ms
"""


def searched_streams(model, jobs=1, **asked):
    return stream_capacity(model, CapacityRequest(**asked), Execution(3, jobs)).searches["streams"]


def load_of(model):
    limit = Objective(f"{loaded_by(model.spec, STREAMS)}.loss", "<=", 0.1)
    return JudgedLoad(model.spec, 1, at_streams, partial(meets, objectives=(limit,)))


def watched(load, streams, replication):
    measure = load.spec.measure
    return watch(WatchedRun(load, streams, replication, measure.warm_up, measure.warm_up + measure.duration))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "server.yaml"
    path.write_text(SERVER)
    return load_model(path)


@pytest.fixture(scope="module")
def found(server):
    return searched_streams(server, resolution=1.0, probability=0.5)


def test_the_pilot_finds_the_load_that_fills_the_cpu(server):
    """50 packets of 1 ms for each stream, and 24 / 2 calls of 5 packets of 1 us: 5.0005 % of the CPU."""
    assert saturating_streams(server.spec, 1) == pytest.approx(20.0, rel=0.02)
    capped = load_model("xen-media", ["domains.media.cap=10 %"])
    free = load_model("xen-media")
    ratio = saturating_streams(capped.spec, 1) / saturating_streams(free.spec, 1)
    assert 0.01 < ratio < 0.2, "a cap of a tenth of a pCPU bounds the media VM"


def test_the_search_finds_the_load_that_fills_the_cpu(found):
    """Of 21 packets in 20 ms the CPU handles 20; the buffer is full when the measurement begins."""
    estimate = found.result.estimate
    assert estimate.low <= FILLS < estimate.high <= FILLS + 1
    assert found.result.resolved
    curve = found.curve().set_index("streams")
    assert curve["workloads.media.loss_mean"].is_monotonic_increasing
    assert curve["workloads.media.loss_mean"][21.0] == pytest.approx(100 / 21, rel=0.05)
    assert found.watched_level == 21.0


def test_the_cpu_is_named_and_the_buffer_that_overflows(found):
    words = limit_in_words(found.resources)
    assert words.startswith("1 pCPU, 100 % busy")
    assert words.endswith("packets are lost in socket buffer, full (100 %)")


def test_the_answer_does_not_depend_on_the_number_of_workers(server, found):
    two = searched_streams(server, 2, resolution=1.0, probability=0.5)
    assert two.result == found.result
    assert two.figures == found.figures
    assert two.resources.equals(found.resources)


@pytest.mark.slow
def test_a_looser_limit_carries_more(server, found):
    loose = searched_streams(server, resolution=1.0, probability=0.5, loss_limit_percent=20.0)
    assert loose.result.estimate.low > found.result.estimate.high
    assert loose.for_machines()["loss_limit_percent"] == 20.0


def test_calls_go_with_streams_and_the_first_streams_stay_the_same(server):
    more = at_streams(server.spec, 48)
    assert (streams_of(more).streams, calls_of(more).calls_per_s) == (48, 4.0)
    assert calls_of(at_streams(load_model("xen-media-turnkey").spec, 360)).calls_per_s == 30.0
    from vftsim.sampling import Streams
    from vftsim.workloads.rtp import senders

    few, many = (senders(streams_of(at_streams(server.spec, n)), Streams(1, 0)) for n in (10, 40))
    for column, longer in zip(few, many, strict=True):
        assert longer[:10].tolist() == column.tolist()


def test_the_command_prints_interval_curve_and_limit(server, found, capsys):
    arguments = ["capacity", server.label, "--resolution", "1", "--probability", "0.5", "--seed", "3", "-j", "1", "-q"]
    assert main(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Capacity: 20 media streams, in [20, 21]" in out
    assert "50 % of runs lose at most 0.1 % of their media packets" in out
    assert f"{found.result.estimate.mean / 12:.3g} calls/s at the capacity" in out, "2 calls/s with 24 streams"
    assert "Limiting resource: 1 pCPU, 100 % busy; packets are lost in socket buffer" in out
    assert "Resources at 21 media streams, the lowest load that fails" in out


def test_the_command_writes_json_and_csv(server, found, capsys):
    arguments = ["capacity", server.label, "--resolution", "1", "--probability", "0.5", "--seed", "3", "-j", "1", "-q"]
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["capacity"]
    assert (row["capacity"], row["low"], row["high"]) == ("streams", 20.0, 21.0)
    assert printed["streams"]["resources"][0]["resource"] == "1 pCPU"
    assert len(printed["streams"]["beyond_limit_by_load"]) == len(found.result.probes)
    assert main([*arguments, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("capacity,unit,estimate,low,high")


def test_ctrl_c_keeps_what_was_judged(server, monkeypatch):
    """The third batch is interrupted: two runs are kept, and the study says so."""
    batches = []
    run = Workers.unordered

    def pressed(self, tasks):
        batches.append(len(tasks))
        if len(batches) == 3:
            raise KeyboardInterrupt
        return run(self, tasks)

    monkeypatch.setattr(Workers, "unordered", pressed)
    study = searched_streams(server)
    assert study.interrupted
    assert sum(probe.runs for probe in study.result.probes) == 2
    assert study.resources.empty


def test_ctrl_c_while_resources_are_watched_keeps_the_capacity(server, found, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("vftsim.study.designs.capacity_by_search.watch", pressed)
    study = searched_streams(server, resolution=1.0, probability=0.5)
    assert study.interrupted
    assert study.result == found.result


def test_a_model_without_streams_is_refused(server):
    for change, message in (
        ("workloads.media=null", "no media streams"),
        ("workloads.media.streams=0", "how many calls"),
    ):
        model = load_model(server.label, [change])
        with pytest.raises(UsageError, match=message):
            stream_capacity(model, CapacityRequest(), Execution(jobs=1))


def test_nothing_delivered_and_nothing_dropped_is_no_success(server, monkeypatch):
    empty = FlowResult(
        delivered=0,
        dropped=0,
        late=0,
        loss_events=0,
        loss_bursts=0,
        delay=DelayHistogram(),
        jitter_ns=0.0,
        playout_ns=60_000_000,
        interval_ns=20_000_000,
        codec=[0.0, 25.1, 0.0],
        seconds=0.5,
    )
    phase = Phase("", None, 0, 1, {"workloads.media": empty})
    record = RunRecord(phases=(phase,), drops={}, in_flight=0, events=0, timelines={}, offers={})
    monkeypatch.setattr(Run, "run", lambda _: record)
    judged = load_of(server)(5, 0)
    assert (judged.is_within, judged.short) == (False, None)
    assert math.isnan(judged.figures["media.loss"])


def test_a_pinned_driver_domain_is_the_limit_not_the_host():
    """Stated of pinning 2.1: one core for the driver domain.  At 800 streams that core is full, the host is not."""
    load = load_of(load_model("xen-media-turnkey", ["domains.dom0.affinity=[0]"]).quick())
    table = resource_table([watched(load, 800, n) for n in range(2)])
    use = table.set_index("resource")["estimate"]
    assert table["resource"].iloc[0] == "dom0: pinned to pCPU 0"
    assert use.iloc[0] > 95.0
    assert use["4 pCPUs"] < 75.0
    assert use["dom0: waiting for a pCPU"] > 1.0, "its other vCPUs stand in line"


@pytest.fixture
def copies(tmp_path):
    path = tmp_path / "copies.yaml"
    path.write_text(COPIES)
    return load_model(path)


def test_a_link_that_is_not_modelled_carries_the_streams_of_all_copies_and_the_calls(copies):
    """For either copy 24 streams of 50 packets a second, and what the server receives of 2 calls a second."""
    media, calls = copies.spec.workloads["media"], copies.spec.workloads["signaling"]
    load = JudgedLoad(copies.spec, 1, at_streams, partial(meets, objectives=()))
    use = resource_table([watched(load, 24, 0)]).set_index("resource")["estimate"]
    bits_per_s = 2 * 8 * (24 * 50 * media.frame_bytes + 2 * calls.received_packets * MESSAGE_BYTES)
    assert use["link of lan to host"] == pytest.approx(100 * bits_per_s / 1e9, rel=1e-6)


def test_each_copy_has_to_carry_its_streams(copies):
    """Either server is full with 20 streams, and loses what is beyond that."""
    found = searched_streams(copies, resolution=1.0, probability=0.5)
    assert found.result.estimate.low <= FILLS <= found.result.estimate.high <= FILLS + 1
    assert found.names.unit == "media streams, to each of 2 copies"
    curve = found.curve().set_index("streams")
    for copy in (1, 2):
        assert curve[f"workloads.media-{copy}.loss_mean"][21.0] == pytest.approx(100 / 21, rel=0.1)


def test_no_interval_tells_of_more_than_all_of_a_resource():
    """Of threads that are busy all the time in most runs; a line that is asked for more than it has is no part."""
    shares = [100.0, 99.9, 99.7, 100.0, 98.2, 100.0, 99.8, 99.4, 100.0, 99.0]
    uses = [[("pool", "% of threads", share), ("line", "%", share + 10.0)] for share in shares]
    table = resource_table(uses).set_index("resource")
    assert table["estimate"]["pool"] == pytest.approx(sum(shares) / 10)
    assert table["low"]["pool"] < table["estimate"]["pool"] < table["high"]["pool"] <= 100.0
    assert table["high"]["line"] > 109.6


def test_driver_work_on_one_vcpu_names_that_vcpu():
    load = load_of(load_model("xen-media-turnkey", ["domains.dom0.driver.placement=one"]).quick())
    table = resource_table([watched(load, 700, 0)])
    assert table["resource"].iloc[0] == "dom0: vCPU 0"
    assert table["estimate"].iloc[0] > 95.0


def test_cpu_bound_guests_are_shown_but_limit_nothing():
    load = load_of(load_model("xen-media", ["domains.dom0.cap=5 %"]).quick())
    table = resource_table([watched(load, 100, 0)])
    assert table["resource"].iloc[0] == "dom0: ceiling of 0.05 pCPUs"
    assert set(table["unit"][table["resource"].str.startswith("cpu")]) == {"pCPUs"}


@pytest.mark.parametrize(
    ("scheduler", "settings"),
    [
        ("credit", ["cap=20 %"]),
        ("credit2", ["cap=20 %"]),
        ("esxi", ["limit=20 %"]),
        ("cfs", ["quota=20 ms"]),
        ("rtds", ["budget=1 ms", "extratime=false"]),
        ("sedf", ["slice=10 ms", "extratime=false"]),
    ],
)
def test_an_overloaded_domain_gets_the_ceiling_that_its_scheduler_names(scheduler, settings):
    """The search begins at the load that fills it, and a resource is named by it."""
    assignments = [f"hosts.host.scheduler={{kind: {scheduler}}}", *(f"domains.media.{each}" for each in settings)]
    model = load_model("xen-media", [*assignments, "workloads.media.streams=600"]).quick()
    ceiling = ceiling_pcpus(model.spec, "media")
    assert ceiling == pytest.approx(0.2)
    used = Summary([(0, run_model(model.spec, 1, 0))]).estimate("domains.media.cpu").mean
    assert used == pytest.approx(100.0 * ceiling, rel=0.1)
