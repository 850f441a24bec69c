"""A crash on the timeline: its protocol, what was held, when the guest stood still, and that nothing overlaps."""

from itertools import pairwise

import pytest

from tests.composition.media_systems import MS, S, host
from tests.tracing.slices import slices
from vftsim.composition.run import run_model
from vftsim.tracing.chrome import chrome_events
from vftsim.tracing.explain import explain, explain_hold, total_ns
from vftsim.tracing.trace import run_traced

CRASH_NS, END_NS = 1400 * MS, 3 * S
PROTOCOL = ["primary crash", "failure declared", "state restored", "secondary live", "reachable", "first packet"]


def protected(**changes):
    """A relay whose state goes to another host every 25 ms; its host crashes after 1.4 s."""
    spec = host(
        {"kind": "moderated"},
        streams=5,
        media={"protection": {"kind": "checkpoint", "interval": "25 ms"}},
        faults=[{"kind": "primary_crash", "at": "1.4 s"}],
        measure={"warm_up": 0, "duration": END_NS},
        **changes,
    )
    return spec.model_copy(update={"workloads": {"media": spec.workloads["media"]}})


@pytest.fixture(scope="module")
def traced():
    return run_traced(protected(), 1, 0, 0, END_NS, "simpy")


def test_protocol_is_in_order_and_ends_with_a_packet(traced):
    moments = [moment for moment in traced[1].moments if moment.time_ns >= CRASH_NS]
    assert [moment.event for moment in moments] == PROTOCOL
    assert moments[0].time_ns == CRASH_NS
    came = [one.end_ns for one in traced[1].seen if one.end == "delivered" and one.end_ns >= CRASH_NS]
    assert min(came) == moments[-1].time_ns, "nothing reaches a client between crash and first packet"


def test_protocol_fills_its_track(traced):
    events = list(chrome_events(traced[1]))
    (pid,) = [e["pid"] for e in events if e.get("args") == {"name": "protection"}]
    protocol = [each for each in slices(events)[pid, 0] if each[2]["args"]["from_ns"] >= CRASH_NS]
    assert [begun["args"]["since"] for _, _, begun in protocol] == PROTOCOL
    assert all(one[1] == following[0] for one, following in pairwise(protocol))


def test_nothing_overlaps_on_any_track(traced):
    assert len(slices(chrome_events(traced[1]))) > 5


def test_stops_and_holds_are_those_of_the_record(traced):
    record, trace = traced
    protection = record.whole.outcomes["domains.guest.protection"]
    stopped_ns = sum(stop.end_ns - stop.start_ns for stop in trace.stops)
    assert stopped_ns == pytest.approx(protection.stopped_ns, abs=1 * MS)
    assert len(trace.stops) > 50, "one for each checkpoint"
    held = [one for one in trace.seen if one.held_ns]
    assert sum(one.held_ns for one in held) == protection.held_ns
    assert max(one.held_ns for one in held) == protection.longest_held_ns
    for one in held[::20]:
        assert total_ns(explain_hold(one, trace)) == one.held_ns
        assert total_ns(explain(one, trace)) == one.delay_ns


def test_a_guest_that_stands_still_at_the_end_of_a_window_does_so_until_then(traced):
    """0.14 s after the crash nobody has taken over yet; a window within the outage has one stop, as long."""
    begun_ns = max(stop.start_ns for stop in traced[1].stops if stop.start_ns <= CRASH_NS < stop.end_ns)
    for start_ns in (CRASH_NS - 100 * MS, CRASH_NS + 50 * MS):
        end_ns = CRASH_NS + 140 * MS
        last = run_traced(protected(), 1, 0, start_ns, end_ns - start_ns)[1].stops[-1]
        assert (last.start_ns, last.end_ns) == (max(begun_ns, start_ns), end_ns)


def test_tracing_a_crash_changes_nothing(traced):
    plain = run_model(protected(), 1, 0, "simpy")
    assert plain.to_dict()["phases"] == traced[0].to_dict()["phases"]
    assert plain.timelines == traced[0].timelines
