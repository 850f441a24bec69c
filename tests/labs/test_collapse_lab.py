"""The collapse lab: its design is balanced, captures become calls and steps, a killed run goes on, shares are right."""

import importlib
import itertools
import json
import math
import sys
from pathlib import Path

import pytest

from vftsim.labs.ramps import LoadStep

FOLDER = Path(__file__).parents[2] / "experiments" / "collapse-lab"
SAMPLE = Path(__file__).parents[1] / "data" / "collapse-lab" / "calls.pcap"


def parts(*names):
    """Load scripts that load one another by plain names, and forget the names: other experiments have some of them."""
    sys.path.insert(0, str(FOLDER))
    before = set(sys.modules)
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(FOLDER))
        for name in {*names, "place"} - before:
            sys.modules.pop(name, None)


design, capture, lab, collapse, record, predict, results = parts(
    "design", "capture", "lab", "collapse", "record", "predict", "results"
)


# The design


def test_half_the_design_keeps_every_main_effect_apart():
    """Each level meets each level of every other knob equally often, and so does the product of two with a third."""
    half = design.cells("half")
    assert len(half) == 24
    for one, other in itertools.combinations(design.KNOBS, 2):
        pairs = [(getattr(cell, one), getattr(cell, other)) for cell in half]
        assert {pairs.count(pair) for pair in itertools.product(design.KNOBS[one], design.KNOBS[other])} == {
            24 // len(design.KNOBS[one]) // len(design.KNOBS[other])
        }
    level = {
        (cell, knob): 1 if getattr(cell, knob) == design.KNOBS[knob][1] else -1
        for cell in half
        for knob in design.TWO_LEVELS
    }
    for one, two, three in itertools.combinations(design.TWO_LEVELS, 3):
        assert sum(level[cell, one] * level[cell, two] * level[cell, three] for cell in half) == 0


def test_every_block_has_every_cell_once_in_an_order_of_its_own():
    runs = list(design.schedule("half", 3, 26))
    blocks = [runs[start : start + 24] for start in (0, 24, 48)]
    assert all({cell for _, cell in block} == set(design.cells("half")) for block in blocks)
    assert len({name for name, _ in runs}) == 72
    assert len({tuple(cell for _, cell in block) for block in blocks}) == 3
    assert runs == list(design.schedule("half", 3, 26)) != list(design.schedule("half", 3, 27))
    assert len(design.cells("full")) == 48


# The capture


def test_a_capture_becomes_calls():
    """Of the recorded ones the second was frozen: asked again after half a second, answered after 709 ms."""
    calls, end = capture.calls_of(capture.packets(SAMPLE))
    first, second, *others = calls.values()
    assert first.answered - first.invite == pytest.approx(0.003912, abs=1e-6)
    assert first.released - first.bye == pytest.approx(0.001183, abs=1e-6)
    assert second.answered - second.invite == pytest.approx(0.708648, abs=1e-6)
    assert (first.repeats, second.repeats) == (0, 1)
    assert first.verdict(end) is True
    assert others
    assert others[-1].verdict(end) is None, "under way when the capture ended"


def test_a_capture_that_was_cut_off_is_read_to_its_last_whole_datagram(tmp_path):
    (tmp_path / "cut.pcap").write_bytes(SAMPLE.read_bytes()[:-5])
    assert len(list(capture.packets(tmp_path / "cut.pcap"))) == len(list(capture.packets(SAMPLE))) - 1


@pytest.mark.parametrize(
    ("call", "end", "verdict"),
    [
        (capture.Call(0.0, 0.1, 0.3, 0.4), 9.0, True),
        (capture.Call(0.0, 2.1, 2.3, 2.4), 9.0, False),
        (capture.Call(0.0, 0.1, 0.3, 2.4), 9.0, False),
        (capture.Call(0.0), 1.9, None),
        (capture.Call(0.0), 2.0, False),
        (capture.Call(0.0, 0.1, 0.3), 2.2, None),
        (capture.Call(0.0, 0.1, 0.3), 2.4, False),
        (capture.Call(0.0, 0.1), 0.2, None),
    ],
)
def test_a_call_is_handled_in_two_seconds_each_way_or_not(call, end, verdict):
    assert call.verdict(end) is verdict


def test_a_call_counts_in_the_step_it_began_in():
    calls = [capture.Call(10.0, 10.1, 10.3, 10.4), capture.Call(13.9, 17.0, 17.2, 17.3), capture.Call(14.0)]
    rows = capture.step_rows(calls, 30.0, 4.0, 2)
    assert [(row["attempts"], row["inadequate"], row["completed"]) for row in rows] == [(2, 1, 2), (1, 1, 0)]
    assert rows[0]["setup_max_ms"] == pytest.approx(3100.0)
    assert rows[1]["setup_max_ms"] is None


# What is used


def test_usage_is_told_by_step_from_where_the_first_call_began():
    """Half a core for the proxy, a tenth for the load, the rest for others; the second step drops four datagrams."""
    samples = [[t, 0.5 * t, 0.1 * t, 0.9 * t, 0.0, max(0.0, t - 5.0), 0.0] for t in (0.0, 1.0, 5.0, 9.0, 12.0)]
    rows = lab.usage_rows(samples, 1.0, lab.Rates(10, 10, 2, 4.0))
    assert [(row["cpu_percent"], row["load_percent"], row["dropped"]) for row in rows] == [(50, 10, 0), (50, 10, 4)]
    assert rows[0]["other_percent"] == pytest.approx(30.0)


def test_what_the_capture_lost_is_read():
    text = "Packets captured: 9\nPackets received/dropped on interface 'Loopback: lo': 9/4 (pcap:4/dumpcap:0) (69.2%)\n"
    assert lab._lost(text) == 4
    assert lab._lost("Capturing on 'Loopback: lo'\n") == 0


# The command


ROW = {
    "attempts": 40,
    "inadequate": 0,
    "cpu_percent": 25.0,
    "load_percent": 9.0,
    "other_percent": 1.0,
    "stolen_percent": 0.0,
}


@pytest.fixture
def played(monkeypatch):
    """Play nothing; remember what would have been."""
    names = []

    def play(cell, rates, rounds):
        names.append((cell, rates))
        if len(names) == 3:
            raise KeyboardInterrupt
        return {"steps": [{**ROW, "step": step + 1, "rate": rates.of(step)} for step in range(rates.steps)]}

    monkeypatch.setattr(collapse, "play", play)
    return names


def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path, played):
    runs = list(collapse.price_runs())
    with pytest.raises(KeyboardInterrupt):
        collapse.play_all(tmp_path, runs, float("inf"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{run.name}.json" for run in runs[:2])
    assert collapse.play_all(tmp_path, runs, float("inf"))
    assert [cell for cell, _ in played] == [run.cell for run in (*runs[:3], *runs[2:])]
    assert collapse.full_load(tmp_path) == pytest.approx(100.0 / 2.5), "25 % of a core for 10 calls a second"


def test_no_ramp_begins_that_would_not_end_in_time(tmp_path, played, capsys):
    runs = list(collapse.price_runs())
    assert not collapse.play_all(tmp_path, runs, collapse.time.monotonic() + runs[0].needed_s - 1.0)
    assert played == []
    assert f"{len(runs)} ramps left" in capsys.readouterr().out


def test_a_disturbed_ramp_is_named(tmp_path, played, monkeypatch):
    monkeypatch.setitem(ROW, "other_percent", 7.0)
    run = next(collapse.price_runs())
    collapse.play_all(tmp_path, [run], float("inf"))
    found = json.loads((tmp_path / f"{run.name}.json").read_text())
    assert found["disturbed"] == ["others: 7.0 % of a core"]
    assert found["cell"]["buffer_kib"] == 256


def test_ramps_are_shares_of_what_fills_the_cells_share_of_the_core():
    whole, half = design.Cell(64, 500, 0, 4, 100), design.Cell(64, 500, 0, 4, 50)
    assert collapse.ramp_rates(400.0, whole).of(0) == 288
    assert collapse.ramp_rates(400.0, half).of(0) == 144
    assert collapse.ramp_rates(400.0, whole).of(7) == 288 + 7 * 32


# What is made of it


def ramp(*shares):
    cell = design.Cell(256, 500, 0, 4, 100)
    return record.Ramp(cell, tuple(LoadStep(100.0 + 10.0 * n, share, 50.0 + n) for n, share in enumerate(shares)))


def test_an_onset_lies_on_the_line_between_two_steps():
    assert ramp(0.0, 0.0, 40.0).onset(10.0) == pytest.approx(112.5)
    assert ramp(0.0, 5.0, 5.0, 15.0).onset(10.0) == pytest.approx(125.0)
    assert ramp(20.0, 0.0, 0.0).onset(10.0) == 100.0, "beyond it from the start"
    assert ramp(0.0, 0.0, 10.0).onset(10.0) == 120.0, "never beyond it"


def test_a_half_core_is_filled_by_half_the_cpu():
    whole, half = design.Cell(256, 500, 0, 4, 100), design.Cell(256, 500, 0, 4, 50)
    full = [
        record.Ramp(cell, tuple(record.load_step(cell, load, 0.0, load / 5.0) for load in (100.0, 150.0, 200.0))).full
        for cell in (whole, half)
    ]
    assert full == pytest.approx([500.0, 250.0])


def test_what_was_played_again_takes_the_place_of_what_was_disturbed(tmp_path):
    steps = [{**ROW, "step": 1, "rate": 10, "undecided": 0, "inadequate": 4}]
    run = {
        "begun_utc": "2026-01-01T00:00:00",
        "step_s": 4.0,
        "disturbed": [],
        "kernel_buffer_bytes": 1,
        "freezes_ms": [],
    }
    name = "r1-b64-t500-f0-w4-c50"
    collapse.write(
        tmp_path / "r1.json", {**run, "name": name, "disturbed": ["others"], "steps": [{**steps[0], "inadequate": 40}]}
    )
    collapse.write(tmp_path / "r1-again.json", {**run, "name": f"{name}-again", "steps": steps})
    collapse.write(tmp_path / "price1.json", {**run, "name": "price1-base", "steps": steps})
    record.write_record(tmp_path, tmp_path / "out")
    (found,) = record.read_ramps(tmp_path / "out")
    assert found.cell == design.Cell(64, 500, 0, 4, 50)
    assert found.steps == (LoadStep(10.0, 10.0, 50.0),)
    record.write_record(tmp_path, tmp_path / "low", of_prices=True)
    assert (tmp_path / "low" / "steps.csv").read_text().splitlines()[1].startswith("price-base,r10,1,10,10.0,40,")
    assert (tmp_path / "out" / "runs.csv").read_text().count("\n") == 3


def test_main_effects_are_found_apart():
    """Onsets made of known factors, of which an interaction is none; the core's is that beyond twice the load."""

    def onset(cell):
        factor = {64: 0.9, 256: 1.0, 1024: 1.05}[cell.buffer_kib]
        factor *= 0.8 if cell.freeze_ms else 1.0
        factor *= 1.1 if cell.core_percent == 100 else 1.0
        return cell.core_percent * factor

    made = {cell: [onset(cell) * math.exp(noise) for noise in (-0.01, 0.01)] for cell in design.cells("half")}
    found = results.effects(made)
    assert [effect.percent for effect in found] == pytest.approx([-10.0, 5.0, 0.0, -20.0, 0.0, 10.0], abs=1e-6)
    assert [effect.is_seen for effect in found] == [True, True, False, True, False, True]
    assert results.is_held(found[0], results.Effect(-12.9, 0.0, 0.0))
    assert not results.is_held(found[0], results.Effect(-13.1, 0.0, 0.0))


def test_the_model_is_told_of_every_knob():
    prices = {
        f"domains.sut.applications.proxy.{name}": value
        for name, value in (("touch_cost", 50000.0), ("script.cost", 2000.0))
    }
    assert predict.full_of(prices) == pytest.approx(1e9 / (13 * 50000 + 720 * 2000))
    cell = design.Cell(1024, 1000, 300, 8, 50)
    spec = predict.model(cell, 400.0, prices)
    domain, calls = spec.domains["sut"], spec.workloads["calls"]
    proxy = domain.applications["proxy"]
    assert (proxy.socket_buffer, proxy.t1, proxy.processes, proxy.touch_cost) == (2**20, 10**9, 8, 50000)
    assert (calls.t1, calls.steps.initial, calls.steps.increment, calls.steps.count) == (10**9, 144.0, 16.0, 8)
    assert (domain.quota, domain.period, domain.interfaces["lo"].path.ring) == (5_000_000, 10_000_000, 819)
    assert (spec.faults[0].kind, spec.faults[0].duration, spec.faults[0].repeat.most) == ("pause", 300_000_000, 8)
