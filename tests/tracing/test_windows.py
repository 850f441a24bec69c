"""Which window is shown when nobody says one: one in which something happens; and slices that do not overlap."""

import random

from vftsim.study.model import load_model
from vftsim.tracing.chrome import slice_event
from vftsim.tracing.trace import usual_window_ns

S = 1_000_000_000


def model(name, *overrides):
    return load_model(name, overrides).spec


def test_window_of_a_ramp_is_in_its_first_step():
    spec = model("lab-virtual")
    bench = next(iter(spec.workloads.values()))
    start_ns, length_ns = usual_window_ns(spec, None, None)
    first_ns = bench.time_of("step 1", 0)
    assert first_ns < start_ns < start_ns + length_ns < first_ns + bench.steps.duration


def test_window_of_a_steady_state_follows_its_warm_up():
    assert usual_window_ns(model("xen-media"), None, None) == (S // 2, S // 10)


def test_window_holds_a_fault_and_what_follows():
    spec = model("sip-farm-lockstep")
    (fault,) = spec.faults
    start_ns, length_ns = usual_window_ns(spec, None, None)
    assert start_ns < spec.time_of(fault.at) < start_ns + length_ns - 5 * S
    assert usual_window_ns(spec, 0, None) == (0, S // 10), "a chosen begin stays"


def test_a_slice_ends_where_the_next_begins_in_double_precision():
    """Whatever the instants: readers add begin and length in double precision."""
    draw = random.Random(1)
    for _ in range(20_000):
        start_ns = draw.randrange(10 ** draw.randrange(4, 15))
        end_ns = start_ns + draw.randrange(1, 10 ** draw.randrange(1, 10))
        first, following = slice_event(1, 1, "a", start_ns, end_ns), slice_event(1, 1, "b", end_ns, end_ns + 1)
        assert first["ts"] + first["dur"] == following["ts"]
        assert first["ts"] < following["ts"]
        assert abs(first["ts"] - start_ns / 1000) < 0.0005, "and the time is the true one, to half a ns"
