"""Figures of media streams against what receivers make of the same packets, of the trace of random hosts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.composition.composed import checked
from tests.reference_clock import MS
from tests.workloads.reference_voice import Receiver, Sent, mos
from vftsim.tracing.packets import CLIENT
from vftsim.tracing.trace import Trace, run_traced

CODECS = ({}, {}, {"impairment": 11, "robustness": 19, "look_ahead": 5 * MS}, {"robustness": 4.3})


def model(draw: random.Random) -> dict[str, Any]:
    """A relay that has too much to do at times, behind a line that may lose."""
    path = draw.choice(["native", "moderated", "direct", "paravirtual"])
    relay = {"kind": "media_relay", "packet_cost": draw.choice([10, 300, 900]) * 1000, "receive_buffer_bytes": 4096}
    guest = {"interfaces": {"eth0": {"path": {"kind": path}}}, "applications": {"relay": relay}}
    streams = {
        "kind": "rtp", "to": "guest", "streams": draw.randint(1, 25), "interval": draw.choice([5, 20, 30]) * MS,
        "playout": draw.choice([1, 8, 60, 440]) * MS, "codec": draw.choice(CODECS),
        "hold": draw.choice([0, 0, 200 * MS]), "sending_grid": draw.choice([0, 10 * MS]),
    }  # fmt: skip
    network = {"latency": draw.choice([10_000, 3 * MS]), "loss": draw.choice([0, 0, 1, 10])}
    network["loss_burst"] = draw.choice([0, 60 * MS]) if network["loss"] else 0
    hog = {"applications": {"job": {"kind": "cpu_bound"}}}
    driver = {"dom0": {"driver": {}}} if path == "paravirtual" else {}
    kind = draw.choice(["credit", "credit2", "cfs", "round_robin"])
    return {
        "hosts": {"host": {"pcpus": 1, "scheduler": {"kind": kind}, "nics": {"eth0": {}}}},
        "networks": {"lan": network},
        "domains": driver | {"guest": guest} | draw.choice([{}, {"hog": hog}]),
        "workloads": {"media": streams},
    }


def receiver(trace: Trace, media: dict[str, Any]) -> Receiver:
    """Return what was sent in the window and came back, or was lost, in it."""
    packets = [
        Sent(packet.begin_ns, packet.stream, packet.end_ns, packet.end == "dropped", packet.wire_ns)
        for packet in trace.seen
        if packet.begun == CLIENT and packet.begin_ns >= trace.start_ns
        if packet.end in ("delivered", "dropped") and packet.end_ns < trace.end_ns
    ]
    return Receiver(packets, media["interval"], media["playout"])


def check(number: int) -> int:
    """Compare one host; return how many packets were sent."""
    data = model(random.Random(f"voice-{number}"))
    media = data["workloads"]["media"]
    record, trace = run_traced(checked(data), number, 0, 50 * MS, 500 * MS, "simpy")
    assert record is not None
    found, heard = record.whole.outcomes["workloads.media"], receiver(trace, media)
    counted = (found.delivered, found.dropped, found.late, found.loss_events, found.loss_bursts)
    assert counted == (len(heard.come), len(heard.lost), heard.late, heard.events, heard.bursts), f"host {number}"
    assert found.jitter_ns == pytest.approx(heard.jitter_ns)
    codec = {"impairment": 0, "robustness": 25.1, "look_ahead": 0} | media["codec"]
    rating = heard.rating(*codec.values())
    assert [found.r_factor, found.mos] == pytest.approx([rating, mos(rating)], nan_ok=True)
    return len(heard.packets)


@pytest.mark.parametrize("numbers", [range(4), pytest.param(range(4, 104), marks=pytest.mark.slow)])
def test_figures_are_those_of_the_packets_of_the_trace(numbers: range):
    assert sum(map(check, numbers)) > 100 * len(numbers)
