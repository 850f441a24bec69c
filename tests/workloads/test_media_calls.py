"""Media streams that come and go: the law of their number, what each sends, what a relay of so many erlang loses."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.errors import RunFailure
from vftsim.sampling import Streams
from vftsim.spec.units import MS, S
from vftsim.workloads.calls import CallSource, CallsSpec
from vftsim.workloads.rtp import RtpSource, RtpSpec, calls, senders

ERLANG, HOLD_NS = 40, 2 * S


def under_way(begins_ns, ends_ns, time_ns):
    return int(np.count_nonzero((begins_ns <= time_ns) & (ends_ns > time_ns)))


def sent_by(source):
    block = source.more()
    while block[0].size:
        yield block
        block = source.more()


@pytest.mark.parametrize("time_ns", [0, HOLD_NS // 2, 5 * HOLD_NS])
def test_their_number_has_a_poisson_distribution_from_the_beginning_on(time_ns):
    """M/M/inf: mean and variance are the erlang, at any time; within four standard errors of 2,000 runs."""
    spec = RtpSpec(streams=ERLANG, hold=HOLD_NS)
    found = [under_way(*calls(spec, Streams(seed, 0), 5 * HOLD_NS), time_ns) for seed in range(2000)]
    assert np.mean(found) == pytest.approx(ERLANG, abs=4 * math.sqrt(ERLANG / 2000))
    assert np.var(found) == pytest.approx(ERLANG, abs=4 * math.sqrt((ERLANG + 2 * ERLANG**2) / 2000))


def test_a_call_lasts_its_holding_time_and_sends_as_long_as_it_lasts():
    """Little: as many come in a holding time as are under way; each sends every 20 ms by its clock, then no more."""
    spec = RtpSpec(streams=ERLANG, hold=HOLD_NS, clock_error_ppm=1000.0, streams_per_client=1)
    end_ns = 200 * S
    begins_ns, ends_ns = calls(spec, Streams(1, 0), end_ns)
    come = int(np.count_nonzero(begins_ns))
    expected = ERLANG * end_ns / HOLD_NS
    assert come == pytest.approx(expected, abs=4 * math.sqrt(expected))
    assert (ends_ns - begins_ns).mean() == pytest.approx(HOLD_NS, rel=4 / math.sqrt(come))
    source = RtpSource(spec, Streams(1, 0), 1, end_ns, None)
    times_ns, numbers = (np.concatenate(column) for column in zip(*sent_by(source), strict=True))
    assert (np.diff(times_ns) >= 0).all()
    phases_ns, errors = senders(spec, Streams(1, 0), count=begins_ns.size)
    assert len(set(errors.tolist())) == ERLANG, "machines are as many as for the mean number"
    period_ns = spec.interval * (1 + errors)
    first, last = (np.ceil((limit - phases_ns) / period_ns) for limit in (begins_ns, np.minimum(ends_ns, end_ns + 1)))
    sent = np.bincount(numbers, minlength=begins_ns.size)
    assert np.abs(sent - (last - np.maximum(first, 0))).max() <= 1
    assert abs(sent.sum() - (last - np.maximum(first, 0)).sum()) <= 2


def test_a_relay_of_as_many_erlang_loses_what_comes_above_it():
    """40 streams are what it carries: of as many for good nothing is lost, of calls what their number has above 40."""
    load = {"kind": "rtp", "to": "guest.relay", "streams": ERLANG, "hold": HOLD_NS}
    path = {"kind": "native", "event_cost": 0, "driver_receive_cost": 0, "driver_transmit_cost": 0}
    relay = {"kind": "media_relay", "packet_cost": 500_000, "receive_buffer_bytes": 10_000}
    data = {
        "domains": {"guest": {"interfaces": {"eth0": {"path": path}}, "applications": {"relay": relay}}},
        "workloads": {"load": load},
        "measure": {"warm_up": "0 s", "duration": "100 s"},
    }
    spec = checked(data)
    found = run_model(spec, 1, 0).whole.outcomes["workloads.load"]
    begins_ns, ends_ns = calls(spec.workloads["load"], Streams(1, 0), 100 * S)
    numbers = [under_way(begins_ns, ends_ns, time_ns) for time_ns in range(0, 100 * S, 20 * MS)]
    # Less what the socket takes each time that the number passes 40.
    assert found.dropped == pytest.approx(0.975 * sum(max(0, number - ERLANG) for number in numbers), rel=0.025)
    load["hold"] = 0
    assert run_model(checked(data), 1, 0).whole.outcomes["workloads.load"].dropped == 0


DAY = [{"duration": "2 s", "rate": "50 %"}, {"duration": "1 s", "rate": "300 %"}, {"duration": "1 s", "rate": "0 %"}]


def share(time_s):
    """Of the usual rate, by :data:`DAY`."""
    return 0.5 if time_s % 4 < 2 else 3.0 if time_s % 4 < 3 else 0.0


@pytest.mark.parametrize("time_s", [0, 1.5, 3, 5])
def test_their_number_follows_a_rate_that_rises_and_falls(time_s):
    """Those of each instant before that last until now, each 1 ms for 15 holding times (Eick, Massey, Whitt 1993)."""
    spec = RtpSpec(streams=ERLANG, hold=HOLD_NS, load_profile=DAY)
    ages_s = (0.001 * (step + 0.5) for step in range(30_000))
    mean = sum(ERLANG * share(time_s - age) * math.exp(-age / 2) * 0.001 / 2 for age in ages_s)
    found = [under_way(*calls(spec, Streams(seed, 0), 6 * S), int(time_s * S)) for seed in range(500)]
    assert np.mean(found) == pytest.approx(mean, abs=4 * math.sqrt(mean / 500))
    assert np.var(found) == pytest.approx(mean, abs=4 * math.sqrt((mean + 2 * mean**2) / 500))


def test_set_ups_follow_the_rate_and_tear_downs_as_it_was_a_hold_before():
    """100 a second: three packets of each set-up, and two of each tear-down 1.5 s later, 1 us apart."""
    spec = CallsSpec(calls_per_s=100, hold="1500 ms", packet_gap="1 us", load_profile=DAY)
    counts = np.zeros(12)
    for seed in range(20):
        times_ns = np.concatenate([times_ns for times_ns, _ in sent_by(CallSource(spec, Streams(seed, 0), 1, 6 * S))])
        counts += np.histogram(times_ns, bins=12, range=(0, 6 * S))[0] / 20
    middles_s = [0.25 + half for half in np.arange(0, 6, 0.5)]
    expected = [50 * (3 * share(time_s) + 2 * share(time_s - 1.5)) for time_s in middles_s]
    # Calls are Poisson, and their packets come together.
    assert counts == pytest.approx(expected, abs=4 * math.sqrt(3 * max(expected) / 20))


def test_a_peak_that_is_more_than_the_line_carries_is_lost_there():
    """100 erlang on average, 9.52 Mbit/s, on a line of 12 Mbit/s: none is lost; twice as many, and nobody, by turns."""
    load = {"kind": "rtp", "to": "guest.relay", "streams": 100, "hold": "100 ms"}
    relay = {"kind": "media_relay", "packet_cost": "1 us"}
    data = {
        "networks": {"lan": {"rate": "12 Mbit/s", "queue": "2 kB"}},
        "domains": {"guest": {"interfaces": {"eth0": {"path": {"kind": "native"}}}, "applications": {"relay": relay}}},
        "workloads": {"load": load},
        "measure": {"warm_up": "0 s", "duration": "20 s"},
    }
    assert run_model(checked(data), 1, 0).whole.outcomes["workloads.load"].dropped == 0
    load["load_profile"] = [{"duration": "1 s", "rate": "200 %"}, {"duration": "1 s", "rate": "0 %"}]
    spec = checked(data)
    found = run_model(spec, 1, 0).whole.outcomes["workloads.load"]
    begins_ns, ends_ns = calls(spec.workloads["load"], Streams(1, 0), 20 * S)
    numbers = [under_way(begins_ns, ends_ns, time_ns) for time_ns in range(0, 20 * S, 20 * MS)]
    line = 12e6 * 0.02 / (238 * 8)
    assert found.dropped == pytest.approx(sum(max(0, number - line) for number in numbers), rel=0.05)


def test_streams_for_good_come_at_no_rate():
    with pytest.raises(ValidationError, match="load_profile: streams that last as long as the run come at no rate"):
        RtpSpec(streams=1, load_profile=DAY)


def test_no_calls_send_nothing_and_too_many_are_refused():
    source = RtpSource(RtpSpec(streams=0, hold=HOLD_NS), Streams(1, 0), 1, S, None)
    assert source.more()[0].size == 0
    with pytest.raises(RunFailure, match="about 1000100 calls"):
        calls(RtpSpec(streams=100, hold=MS), Streams(1, 0), 10 * S)
