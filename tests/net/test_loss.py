"""Packets that a network loses: how many, which way, and what those who sent them make of it."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.composition.without_effect import without_effect
from vftsim.platform.io.link import frames_to_loss

WAYS = ("link of lan to host", "link of lan from host")
RELAY = {"kind": "media_relay", "packet_cost": "1 us"}
STREAMS = {"kind": "rtp", "to": "guest.relay", "streams": 200}
REQUESTS = {"kind": "open_requests", "to": "guest.server", "rate": "500 /s", "timeout": "50 ms", "retries": 1}


def lossy(share: str, path: str = "native", **workloads: dict[str, Any]) -> dict[str, Any]:
    programs = {"relay": RELAY, "server": {"kind": "service", "threads": 50}, "sink": {"kind": "tcp_sink"}}
    return {
        "networks": {"lan": {"loss": share, "latency": "5 ms"}},
        "domains": {"guest": {"interfaces": {"eth0": {"path": {"kind": path}}}, "applications": programs}},
        "workloads": workloads,
        "measure": {"warm_up": "1 s", "duration": "10 s"},
    }


def lost(record: Any) -> list[int]:
    return [record.drops[place, "on the way"] for place in WAYS]


@pytest.mark.parametrize("path", ["native", "moderated"])
def test_a_share_of_each_way_is_lost(path: str):
    """Of n there 10 % are lost, of the rest back as many: 19 % of the streams' packets, within four standard errors."""
    record = run_model(checked(lossy("10 %", path, load=STREAMS)), 1, 0, "compiled")
    there, back = lost(record)
    sent = 200 * 11 * 50
    assert there == pytest.approx(0.1 * sent, abs=4 * (0.09 * sent) ** 0.5)
    assert back == pytest.approx(0.1 * (sent - there), abs=4 * (0.09 * sent) ** 0.5)
    assert record.whole.outcomes["workloads.load"].loss_ratio == pytest.approx(0.19, abs=4 * (0.154 / 1e5) ** 0.5)


def test_a_request_that_is_asked_again_fails_with_the_square_of_its_chance():
    """1 - 0.8 x 0.8 = 0.36 a try, 0.13 of two tries."""
    found = run_model(checked(lossy("20 %", load=REQUESTS)), 1, 0, "compiled").whole.outcomes["workloads.load"]
    tried = found.answers + found.failures
    assert found.failures / tried == pytest.approx(0.36**2, abs=4 * (0.113 / tried) ** 0.5)


@pytest.mark.parametrize("offload", [False, True])
def test_tcp_has_the_window_of_its_losses(offload: bool):
    """Mathis et al. 1997: 1.22 segments over the root of the loss in a round trip of 10 ms, 44.7 Mbit/s at 0.1 %.

    Segments that are handled together are lost one by one, too; the sender hears less often how its window may grow.
    """
    upload = {"kind": "bulk_tcp", "to": "guest.sink", "duration": "40 s", "reaction": "0 ns"}
    upload |= {"segmentation_offload": offload, "window": "1 MB"}
    record = run_model(checked(lossy("0.1 %", load=upload)), 1, 0, "compiled")
    (throughput,) = set(record.whole.outcomes["workloads.load"].throughput.values())
    assert throughput == pytest.approx(1.22 / 0.001**0.5 * 1448 * 8 / 0.01e6, rel=0.15 if offload else 0.1)


@pytest.mark.parametrize(("frames", "at_its_end"), [(1, 1), (2, 2), (10, 3)])
def test_an_answer_is_asked_for_again_if_one_of_its_last_three_frames_is_lost(frames: int, at_its_end: int):
    """1 - 0.9^3 of ten frames; of the others, 1 - 0.9^7 have lost one of those before, and come 10 ms later."""
    data = lossy("10 %", load={**REQUESTS, "retries": 0})
    data["domains"]["guest"]["applications"]["server"]["answer_size"] = 1538 * frames
    record = run_model(checked(data), 1, 0, "compiled")
    found = record.whole.outcomes["workloads.load"]
    tried = found.answers + found.failures
    chance = 1 - 0.9 * 0.9**at_its_end
    assert found.failures / tried == pytest.approx(chance, abs=4 * (0.25 / tried) ** 0.5)
    late = found.latency.mean / 1e6 - 10.0
    assert late == pytest.approx(10 * (1 - 0.9 ** (frames - at_its_end)), abs=0.6)


def test_a_datagram_is_lost_with_any_of_its_fragments():
    """Four frames: 1 - 0.9^4 = 34 % on each way."""
    data = lossy("10 %", load={**STREAMS, "frame_bytes": 4 * 1538})
    there, back = lost(run_model(checked(data), 1, 0, "compiled"))
    sent, chance = 200 * 11 * 50, 1 - 0.9**4
    assert there == pytest.approx(chance * sent, abs=4 * (0.25 * sent) ** 0.5)
    assert back == pytest.approx(chance * (sent - there), abs=4 * (0.25 * sent) ** 0.5)


def test_losses_in_bursts_take_rows_of_a_stream():
    """Each way is Gilbert's chain seen every 20 ms: bursts of 200 ms and 5 % of the time; a packet crosses two."""
    data = lossy("5 %", load=STREAMS)
    data["networks"]["lan"]["loss_burst"] = "200 ms"
    data["measure"]["duration"] = "200 s"
    found = run_model(checked(data), 1, 0, "compiled").whole.outcomes["workloads.load"]
    gap_s, burst_s = 0.2 * 0.95 / 0.05, 0.2
    stays = 1 - 0.05 * (1 - math.exp(-0.02 * (1 / gap_s + 1 / burst_s)))
    whole = 0.95**2
    row = (1 - whole) / (whole * (1 - stays**2))
    # About 100 bursts a run, all streams alike in them: a tenth of the share lost, and of the length of a row.
    assert found.loss_ratio == pytest.approx(1 - whole, rel=0.3)
    assert found.loss_ratio * 200 * 200 * 50 / found.loss_bursts == pytest.approx(row, rel=0.3)
    assert row > 9.0


def test_a_burst_goes_on_while_nobody_sends():
    """Of requests a second apart each finds the state of its own instant, however many bursts have come and gone."""
    data = lossy("30 %", load={**REQUESTS, "rate": "1 /s", "retries": 0})
    data["networks"]["lan"]["loss_burst"] = "100 us"
    data["measure"]["duration"] = "500 s"
    found = run_model(checked(data), 1, 0, "compiled").whole.outcomes["workloads.load"]
    tried = found.answers + found.failures
    assert found.failures / tried == pytest.approx(1 - 0.7**2, abs=4 * (0.25 / tried) ** 0.5)


def test_what_makes_no_burst_is_said():
    data = lossy("1 %", load=STREAMS)
    data["networks"]["lan"]["loss_burst"] = "10 us"
    with pytest.raises(ValidationError, match="loss_burst: 10 us is shorter than a few packets take"):
        checked(data)
    data["networks"]["lan"] |= {"loss": 0.0, "loss_burst": "10 ms"}
    data["domains"]["guest"]["interfaces"]["eth0"]["path"]["kind"] = "moderated"
    assert "networks.lan.loss_burst: loss is 0" in without_effect(checked(data))


@pytest.mark.parametrize("burst", ["0 s", "2 ms"])
@pytest.mark.parametrize("load", [REQUESTS, {"kind": "bulk_tcp", "to": "guest.sink", "segmentation_offload": True}])
def test_both_engines_lose_the_same(load: dict[str, Any], burst: str):
    data = lossy("5 %", load=load)
    data["networks"]["lan"]["loss_burst"] = burst
    data["measure"]["duration"] = "1 s"
    compiled, plain = (run_model(checked(data), 1, 0, engine) for engine in ("compiled", "simpy"))
    assert compiled.to_dict() == plain.to_dict()
    assert min(lost(compiled)) > 0


def test_frames_up_to_the_next_loss_are_geometric():
    """At 20 % one in five is the first, one in five of the others the second; a loss of 1e-9 is far away."""
    counts = frames_to_loss(np.random.default_rng(1).random(100_000), 0.2)
    assert counts.min() == 1
    assert np.mean(counts) == pytest.approx(5.0, abs=0.06)
    assert np.mean(counts == 2) == pytest.approx(0.16, abs=0.005)
    assert frames_to_loss(np.array([0.5]), 1e-9)[0] == pytest.approx(6.93e8, rel=0.01)


def test_a_channel_on_a_network_that_loses_is_refused():
    data = lossy("1 %")
    data["domains"]["guest"]["protection"] = {"kind": "checkpoint", "channel": {"network": "lan"}}
    with pytest.raises(ValidationError, match="what a channel loses on 'lan'"):
        checked(data)
