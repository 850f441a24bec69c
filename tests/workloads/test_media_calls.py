"""Media streams that come and go: the law of their number, what each sends, what a relay of so many erlang loses."""

import math

import numpy as np
import pytest

from tests.composition.composed import checked
from vftsim.composition.run import run_model
from vftsim.errors import RunFailure
from vftsim.sampling import Streams
from vftsim.spec.units import MS, S
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


def test_no_calls_send_nothing_and_too_many_are_refused():
    source = RtpSource(RtpSpec(streams=0, hold=HOLD_NS), Streams(1, 0), 1, S, None)
    assert source.more()[0].size == 0
    with pytest.raises(RunFailure, match="about 1000100 calls"):
        calls(RtpSpec(streams=100, hold=MS), Streams(1, 0), 10 * S)
