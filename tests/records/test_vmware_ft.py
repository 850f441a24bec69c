"""The white paper on fault tolerance: bytes and bounds by hand, what the runs must show, the command."""

import json

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.records.forms import vmware_ft as forms
from vftsim.records.judge import Judgement
from vftsim.records.runner import read
from vftsim.spec import load, shipped_dir

FIRST = "10 Gbit/s"
RECORD = read("vmware-ft")
SHORT = RECORD.with_budget({"seed": 7, "replications": 1, "seconds": 0.1})


def name(direction, link=FIRST, policy="every second"):
    return f"{direction}, {policy}, {link}"


def pair(*settings):
    return load(shipped_dir("calibration") / "vmware-ft" / "netperf.yaml", ModelSpec, settings)


def test_the_figures_are_the_datasets():
    stated = Judgement(RECORD, shipped()["results"]).names
    assert (stated["jbb"], stated["rx"], stated["tx"]) == (1.4, 500.0, 36.0)


def test_bytes_of_a_segment_by_hand():
    """A frame of 1514 bytes and an entry of 64, an output of 32, an acknowledgement of 66, all times 1.062."""
    spec = pair()
    assert forms.log_bytes(spec, "receive", 0.5) == pytest.approx(1.062 * (1514 + 64 + 16))
    assert forms.log_bytes(spec, "transmit", 0.5) == pytest.approx(1.062 * (32 + 0.5 * (66 + 64)))
    assert forms.log_bytes(spec, "transmit", 1.0, True) == pytest.approx(1.062 * (1514 + 32 + 66 + 64))
    assert forms.timer_mbit_per_s(spec) == pytest.approx(0.96 * 1.062)


def test_netperf_lies_between_the_acknowledgement_policies():
    """Rx/Tx of the latency case, and Tx from Rx."""
    spec = pair()
    ratios = [forms.log_bytes(spec, "receive", k) / forms.log_bytes(spec, "transmit", k) for k in (1.0, 0.5)]
    assert ratios[0] < 500 / 36 < ratios[1]
    assert forms.other_rate(spec, 500.0, 0.5) < 36.0 < forms.other_rate(spec, 500.0, 1.0)


def test_bounds_by_hand():
    """Log of 100 Mbit/s; a window of 8 segments over a round trip of 1 ms; a price of 100 us a packet."""
    spec = pair("networks.logging.rate=100 Mbit/s", "networks.logging.latency=74.5 us")
    found = forms.bounds(spec, "receive", 0.5)
    assert found["line"] == pytest.approx(1000 * 1448 / 1538)
    assert found["log bytes"] == pytest.approx(100 * 1448 / (1.062 * 1594))
    assert forms.binding(spec, "receive", 0.5)[0] == "log bytes"
    slow = pair(
        "networks.logging.rate=1000 Gbit/s", "networks.logging.latency=500 us", f"workloads.tx.window={8 * 1448} B"
    )
    name, bound = forms.binding(slow, "transmit", 0.5)
    assert (name, bound) == ("acknowledgement of outputs", pytest.approx(8 * 1448 * 8 / 1000, rel=1e-3))
    cost = "domains.guest.protection.cost"
    free = [f"domains.guest.applications.source.{key}=0 s" for key in ("segment_cost", "copy_cost", "ack_cost")]
    way = [f"domains.guest.interfaces.eth0.path.{key}=0 s" for key in ("packet_cost", "interrupt_cost")]
    dear = pair(f"{cost}.output=100 us", f"{cost}.entry=0 s", f"{cost}.kibibyte=0 s", *free, *way)
    assert forms.bounds(dear, "transmit", 0.5)["CPU"] == pytest.approx(0.999 * 1448 * 8 / 100)
    assert forms.binding(pair("domains.guest.protection.secondary.factor=20"), "receive", 0.5)[0] == "replay"


@pytest.fixture(scope="module")
def short():
    """Receiving and transmitting for a moment, in the engine for reading."""
    wanted = [name("receive"), name("transmit"), name("receive", "100 Mbit/s")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VFTSIM_ENGINE", "simpy")
        return {each: SHORT.play(*SHORT.tasks()[each]) for each in wanted}


def test_simulated_netperf_is_bound_by_what_the_closed_form_says(short):
    for direction in ("receive", "transmit"):
        which, bound = forms.binding(SHORT.model(name(direction)), direction, 0.5)
        assert which == "CPU"
        (payload,), (cpu,) = short[name(direction)]["payload"], short[name(direction)]["cpu"]
        assert 0.8 * bound < payload < bound
        assert cpu > 95.0


def test_a_log_that_is_full_holds_the_receiver_back(short):
    """What comes in 100 ms over 100 Mbit/s, and the 512 KiB of the primary's buffer."""
    full = name("receive", "100 Mbit/s")
    (payload,), bound = short[full]["payload"], forms.bounds(SHORT.model(full), "receive", 0.5)["log bytes"]
    buffered = 512 * 1024 * 8 * 1e-6 / 0.1 * 1448 / (1.2 * 1618)
    assert bound * 0.95 < payload < (bound + buffered) * 1.05
    assert short[full]["cpu"][0] < short[name("receive")]["cpu"][0]


def test_simulated_log_is_the_bytes_of_its_segments(short):
    spec = pair()
    for direction in ("receive", "transmit"):
        (payload,), (log,) = short[name(direction)]["payload"], short[name(direction)]["log"]
        formed = payload / 1448 * forms.log_bytes(spec, direction, 0.5) + forms.timer_mbit_per_s(spec)
        # Segments under way at the end are logged and not yet taken in.
        assert formed * 0.97 < log < formed * 1.1


def shipped():
    return json.loads((shipped_dir("calibration") / "vmware-ft" / "record.json").read_text(encoding="utf-8"))
