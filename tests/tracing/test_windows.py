"""Which window is shown when nobody says one: one in which something happens; and slices that do not overlap."""

import random

import pytest

import vftsim
from tests.tracing.slices import slices
from vftsim.study.runs.model import load_model
from vftsim.tracing.chrome import Slice, begins_and_ends
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


@pytest.mark.parametrize(
    ("protection", "rate", "kinds"),
    [
        ("checkpoint", "50 /s", ("service", "open_requests")),
        ("none", "0.7 /s", ("service", "open_requests")),
        ("none", "0.7 /s", ("prefork_web_server", "httperf")),
    ],
)
def test_window_holds_what_protection_lets_go_and_some_requests(tmp_path, protection, rate, kinds):
    """States each 200 ms, requests each 1.4 s: a tenth of a second may have neither."""
    path, (program, load) = tmp_path / "model.yaml", kinds
    path.write_text(
        "domains:\n  server:\n    interfaces: {eth0: {path: {kind: moderated}}}\n"
        f"    applications: {{s: {{kind: {program}}}}}\n    protection: {{kind: {protection}}}\n"
        f"workloads: {{u: {{kind: {load}, rate: {rate}, gap_cv: 0}}}}\nmeasure: {{duration: 5 s}}\n"
    )
    found = vftsim.explain(path, of="exchange")
    assert sum(part.length_ns for part in found.parts) == found.delay_ns


def cut(us):
    """Return a time as Perfetto takes it from a file: cut to whole ns."""
    return int(us * 1000)


def test_slices_are_nested_in_every_reader_whatever_their_instants():
    """Neighbours of one name and of two, inside others, some of one ns: whole in doubles and when cut to ns."""
    draw = random.Random(1)
    drawn = []
    for track in range(2_000):
        start_ns = now_ns = draw.randrange(10 ** draw.randrange(4, 15))
        for number in range(4):
            end_ns = now_ns + draw.randrange(1, 10 ** draw.randrange(1, 10))
            drawn.append(Slice(1, track, "ab"[number // 2], now_ns, end_ns, told(now_ns, end_ns)))
            now_ns = end_ns
        drawn.append(Slice(1, track, "around", start_ns, now_ns, told(start_ns, now_ns)))
    events = list(begins_and_ends(drawn))
    for begin_us, end_us, one in (each for track in slices(events).values() for each in track):
        begin_ns, length_ns = one["args"]["from_ns"], one["args"]["length_ns"]
        assert (round(begin_us * 1000), round(end_us * 1000)) == (begin_ns, begin_ns + length_ns)
    assert len(events) == 2 * len(drawn)
    assert sum(map(len, slices({**each, "ts": cut(each["ts"]) / 1000} for each in events).values())) == len(drawn)


def told(start_ns, end_ns):
    return {"from_ns": start_ns, "length_ns": end_ns - start_ns}
