"""Predictions with their whole uncertainty: draws of fits, parts of the variance, the range of runs."""

import json
import math
import re

import numpy as np
import pytest

import vftsim
from tests.calibrate.test_fit import definition, lab
from tests.study.tiny import tiny
from vftsim.calibrate.figures import observe
from vftsim.calibrate.fit import search_for
from vftsim.calibrate.fitted import DrawableFit, read_fit, shipped_fits
from vftsim.calibrate.prediction import RANGE_PERCENT, _points, figure_of, named, parts, predict
from vftsim.cli.main import main
from vftsim.composition.keys import read
from vftsim.errors import UsageError
from vftsim.stats import central_range, range_content
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.study.store.store import resumable_store

COST = "domains.sut.applications.proxy.touch_cost"
REGISTER = "domains.sut.applications.proxy.register_touch_cost"
FIT = {
    "format": 1,
    "calibration": {
        "name": "tiny",
        "model": "tiny.yaml",
        "dataset": ".",
        "environment": "bare",
        "in_sample": ["step_1"],
        "parameters": [{"path": COST, "low": "1 ms", "high": "8 ms", "start": "4 ms", "meaning": "cost of a message"}],
    },
    "parameters": {COST: {"value": 4e6, "low_95": 3.2e6, "high_95": 5.6e6}},
    "correlations": {},
}


def fit(correlation: float = 0.0, **changes) -> DrawableFit:
    """Two parameters of 100 with an interval of 80 to 140, and of 1 with one of 0.9 to 1.1."""
    fields = {
        "name": "two",
        "values": {"a": 100.0, "b": 1.0},
        "low": {"a": 80.0, "b": 0.9},
        "high": {"a": 140.0, "b": 1.1},
        "bounds": {"a": (0.0, 1000.0), "b": (0.0, 2.0)},
        "correlations": {"a ~ b": correlation},
        "settings": (),
    }
    return DrawableFit(**{**fields, **changes})


@pytest.fixture
def here(tmp_path):
    (tmp_path / "tiny.yaml").write_text(
        tiny(steps="{initial: 10 /s, increment: 10 /s, duration: 4 s, transient: 1 s, most: 2}")
    )
    (tmp_path / "fit.json").write_text(json.dumps(FIT))
    return tmp_path


def test_draws_do_not_depend_on_where_the_file_lies(here):
    elsewhere = here / "elsewhere.json"
    elsewhere.write_text(json.dumps(FIT))
    one, other = read_fit(str(here / "fit.json")), read_fit(str(elsewhere))
    assert one.name != other.name
    assert one.draw(1, 2) == other.draw(1, 2) != one.draw(1, 3)


@pytest.mark.parametrize("correlation", [-0.9, 0.6])
def test_draws_have_the_intervals_and_correlations_of_the_fit(correlation):
    """2,000 points: shares within 3.5 standard errors, the correlation within 0.05 (3.5 of them at 0.6)."""
    drawable = fit(correlation)
    points = [drawable.draw(1, n) for n in range(2000)]
    a, b = (np.array([point[name] for point in points]) for name in "ab")
    error = 3.5 * math.sqrt(0.025 * 0.975 / 2000)
    for share in ((a > 140).mean(), (a < 80).mean(), (b > 1.1).mean(), (b < 0.9).mean()):
        assert share == pytest.approx(0.025, abs=error)
    assert np.median(a) == pytest.approx(100.0, abs=2.0)
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(correlation, abs=0.05)


def test_a_draw_stays_within_the_bounds_and_is_the_same_again():
    narrow = fit(bounds={"a": (95.0, 110.0), "b": (0.0, 2.0)})
    points = [narrow.draw(1, n) for n in range(300)]
    assert {min(p["a"] for p in points), max(p["a"] for p in points)} == {95.0, 110.0}
    assert points[7] == narrow.draw(1, 7) != narrow.draw(2, 7)


def test_correlations_that_cannot_be_keep_the_widths():
    """Three parameters that each go against the other two by -0.9: no distribution has that."""
    impossible = fit(
        values=dict.fromkeys("abc", 0.0),
        low=dict.fromkeys("abc", -1.96),
        high=dict.fromkeys("abc", 1.96),
        bounds=dict.fromkeys("abc", (-99.0, 99.0)),
        correlations={"a ~ b": -0.9, "a ~ c": -0.9, "b ~ c": -0.9},
    )
    points = np.array([list(impossible.draw(1, n).values()) for n in range(2000)])
    assert points.std(axis=0) == pytest.approx(1.0, abs=3.5 / math.sqrt(2 * 2000))


def test_every_shipped_fit_is_readable():
    assert {"sip-lab/virtual", "sip-lab/growth", "linux-lab/base"} <= set(shipped_fits())
    for name in shipped_fits():
        assert read_fit(name).draw(1, 0)


def test_a_model_that_divides_fitted_costs_keeps_its_division():
    native, virtual = load_model("lab-virtual").spec, read_fit("sip-lab/virtual")
    drawn = virtual.draw(1, 0)
    key = "domains.sut.applications.proxy.touch_cost"
    ratio = read(virtual.scaled(native, drawn), key) / read(native, key)
    assert ratio == pytest.approx(drawn[key] / virtual.values[key], rel=1e-5)
    assert read(virtual.scaled(native, virtual.values), key) == read(native, key)


def test_what_a_fit_gave_the_virtual_machine_alone_is_not_given_to_bare_metal():
    growth, native, virtual = read_fit("sip-lab/growth"), load_model("lab-native").spec, load_model("lab-virtual").spec
    for spec, inflation in ((native, 1.0), (virtual, growth.values["domains.sut.cpu_inflation"])):
        assert read(growth.applied(spec), "domains.sut.cpu_inflation") == inflation


AFTER_SEND = "domains.sut.applications.proxy.work_after_send"


def share_fit(**changes) -> DrawableFit:
    """A share of the work that the data do not tell; the fit ended at 0.2 of 0 to 0.8."""
    fields = {
        "name": "share",
        "values": {AFTER_SEND: 0.2},
        "low": {AFTER_SEND: 0.0},
        "high": {AFTER_SEND: 0.8},
        "bounds": {AFTER_SEND: (0.0, 0.8)},
        "correlations": {},
        "settings": (),
        "undetermined": frozenset({AFTER_SEND}),
    }
    return DrawableFit(**{**fields, **changes})


def test_what_the_data_do_not_tell_is_drawn_evenly_from_what_was_possible(here):
    """2,000 points over 0 to 0.8; each fifth of it within 3.5 standard errors, whatever the model's value."""
    found, model = share_fit(), load_model(here / "tiny.yaml", [f"{AFTER_SEND}=0.9"]).spec
    drawn = np.array([found.draw(1, n)[AFTER_SEND] for n in range(2000)])
    shares = np.histogram(drawn, bins=5, range=(0.0, 0.8))[0] / 2000
    assert shares == pytest.approx(0.2, abs=3.5 * math.sqrt(0.2 * 0.8 / 2000))
    assert read(found.scaled(model, found.draw(1, 3)), AFTER_SEND) == drawn[3], "no multiple of 0.9 by drawn over 0.2"


def test_what_was_fitted_as_zero_is_drawn_too(here):
    """A ratio to 0 is none."""
    found = share_fit(values={AFTER_SEND: 0.0}, undetermined=frozenset())
    model = load_model(here / "tiny.yaml", [f"{AFTER_SEND}=0"]).spec
    drawn = {found.draw(1, n)[AFTER_SEND] for n in range(10)}
    assert {read(found.scaled(model, found.draw(1, n)), AFTER_SEND) for n in range(10)} == drawn
    assert max(drawn) > 0.05


def test_what_the_fit_does_not_tell_from_the_zero_of_the_model_is_drawn_too(here):
    """The shipped linux-lab has 0.0 where linux-lab/base has 0.0002, between 0 and 0.17."""
    spec, base = load_model("linux-lab").spec, read_fit("linux-lab/base")
    drawn = [read(base.scaled(spec, base.draw(1, n)), AFTER_SEND) for n in range(50)]
    assert drawn == [base.draw(1, n)[AFTER_SEND] for n in range(50)]
    assert max(drawn) > 0.05
    off = load_model(here / "tiny.yaml", [f"{AFTER_SEND}=0"]).spec
    surely = share_fit(undetermined=frozenset(), low={AFTER_SEND: 0.1}, high={AFTER_SEND: 0.3})
    assert read(surely.scaled(off, surely.draw(1, 0)), AFTER_SEND) == 0.0, "the model has it not at all"


def test_only_points_that_the_model_accepts_are_played(here):
    """The model has 0.6 where the fit says 0.2 (0.1 to 0.6): a third of the factors would give a share above 1."""
    model = load_model(here / "tiny.yaml", [f"{AFTER_SEND}=0.6"])
    wide = share_fit(undetermined=frozenset(), low={AFTER_SEND: 0.1}, high={AFTER_SEND: 0.6})
    plain = [read(wide.scaled(model.spec, wide.draw(1, n)), AFTER_SEND) for n in range(60)]
    specs, refused = _points(model.spec, [wide], 60, 1)
    played = [read(spec, AFTER_SEND) for spec in specs]
    assert max(plain) >= 1.0 > max(played)
    assert refused >= sum(x >= 1.0 for x in plain) > 5
    assert [x for x, y in zip(plain, played, strict=True) if x < 1.0] == [
        y for x, y in zip(plain, played, strict=True) if x < 1.0
    ], "an accepted point stays the first that was drawn"
    beyond = load_model(here / "tiny.yaml", [f"{AFTER_SEND}=0.99"]).spec
    far = share_fit(
        values={AFTER_SEND: 0.01}, low={AFTER_SEND: 0.01}, bounds={AFTER_SEND: (0.02, 0.8)}, undetermined=frozenset()
    )
    with pytest.raises(UsageError, match=r"refuses each of 100 points .*work_after_send"):
        _points(beyond, [far], 1, 1)


def test_the_table_says_what_it_rests_on(here, capsys):
    """Eight points: between the outermost of them lie 47 to 97 % (beta of 7 and 2), and few points are said."""
    (here / "fit.json").write_text(
        json.dumps(
            {
                **FIT,
                "parameters": {COST: {"value": 4e6, "low_95": 1e6, "high_95": 8e6, "identified": False}},
            }
        )
    )
    words = ["predict", str(here / "tiny.yaml"), "--fit", str(here / "fit.json"), "-j", "1", "-q", "--draws"]
    assert main([*words, "8"]) == 0
    few = " ".join(capsys.readouterr().out.split())
    assert "the outermost of 16 runs at 8 points: a range holds 47 to 97 % of further runs" in few
    assert "few points: with --draws 100" in few
    assert f"drawn evenly from what the fit took as possible beforehand: {COST}" in few


def test_the_share_that_a_range_holds_is_as_stated():
    """2,000 samples of 20 of an even distribution, of which a range from a to b holds b - a."""
    rng = np.random.default_rng(4)
    held = np.array([high - low for low, high in map(central_range, rng.random((2000, 20)).tolist())])
    low, high = range_content(20)
    error = 3.5 * math.sqrt(0.05 * 0.95 / 2000)
    assert ((held < low) | (held > high)).mean() == pytest.approx(0.05, abs=error)


def test_parts_of_the_variance_are_found():
    """2,000 points of 2 runs: points differ by 3, runs by 6; within 3.5 standard errors of each."""
    rng = np.random.default_rng(1)
    values = (rng.normal(0.0, 3.0, (2000, 1)) + rng.normal(0.0, 6.0, (2000, 2))).ravel().tolist()
    between, within = parts(values, 2)
    assert within == pytest.approx(6.0, abs=3.5 * 6.0 / math.sqrt(2 * 2000))
    assert between == pytest.approx(3.0, abs=3.5 * (9.0 + 18.0) / (3.0 * math.sqrt(2 * 2000)))
    assert parts([1.0, 3.0, 3.0, 1.0], 2)[0] == 0.0


@pytest.mark.parametrize("lognormal", [False, True])
def test_nine_of_ten_further_runs_lie_in_the_range(lognormal):
    """20 points of 2 runs, as the command has; a further run has parameters of its own.  1,500 studies.

    Runs of a point are alike, so 40 of them tell a little less than 40 that are not: 89.5 % (20,000 studies) for 90.
    """
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(1500):
        values = (rng.normal(0.0, 1.0, (21, 1)) + rng.normal(0.0, 1.0, (21, 2))).ravel()
        values = np.exp(values) if lognormal else values
        found = figure_of("x", [[{"x": float(v)} for v in values[:40]]], 2)
        held += found.low <= values[40] <= found.high
    error = 3.5 * math.sqrt(0.9 * 0.1 / 1500)
    assert RANGE_PERCENT / 100.0 - 0.005 - error <= held / 1500 <= RANGE_PERCENT / 100.0 + error


def test_a_figure_that_some_runs_lack_has_no_parts():
    found = figure_of("x", [[{"x": 1.0}, {}, {"x": 1.0}, {}], [{"x": x} for x in (3.0, 5.0, 3.0, 5.0)]], 2)
    assert math.isnan(found.parameters_sd)
    assert (found.mean, found.least, found.most, found.runs, found.of) == (2.5, 1.0, 4.0, 6, 8)
    assert (found.low, found.high) == (1.0, 5.0)


def test_figures_are_named_by_quantity_or_whole():
    runs = [[{"step_1/cpu": 1.0, "step_1/SES1/p50": 1.0, "step_2/cpu": 2.0}]]
    assert named(["cpu"], runs) == ["step_1/cpu", "step_2/cpu"]
    assert named(["SES1/*", "step_2/*"], runs) == ["step_1/SES1/p50", "step_2/cpu"]
    with pytest.raises(UsageError, match=r"no run gives 'SES1/p5'.* did you mean 'SES1/p50'"):
        named(["SES1/p5"], runs)


def test_a_prediction_does_not_depend_on_workers_and_goes_on_where_it_was(here):
    model, drawable = load_model(here / "tiny.yaml"), read_fit(str(here / "fit.json"))
    with resumable_store(here / "out", "predict") as store:
        first = predict(model, [drawable], draws=3, execution=Execution(jobs=2, store=store))
    with resumable_store(here / "out", "predict") as store:
        assert store is not None
        again = predict(model, [drawable], draws=4, execution=Execution(jobs=1, store=store))
        assert [count for _, count in store.studies()] == [8], "six of them from before"
    undisturbed = predict(model, [drawable], draws=3, execution=Execution(jobs=1))
    assert repr(first.figures) == repr(undisturbed.figures), "whose nan is not even itself from Python 3.13 on"
    cpu = {f.name: f for f in again.figures}["step_1/cpu"]
    assert cpu.runs == cpu.of == 8
    assert cpu.parameters_sd > 0 < cpu.replications_sd


@pytest.mark.thorough
def test_a_fit_does_not_depend_on_workers_either():
    """Here, where the test above has started them: that takes seconds."""
    truth = observe(lab(700_000), 99, 0)
    alone = search_for(definition(most_evaluations=3), lab(), truth, jobs=1).fit
    shared = search_for(definition(most_evaluations=3), lab(), truth, jobs=2).fit
    assert alone.values == shared.values
    assert alone.residuals == shared.residuals


def test_another_structure_stands_beside(here):
    other = {**FIT, "parameters": {COST: {"value": 6e6, "low_95": 5.9e6, "high_95": 6.1e6}}}
    other["calibration"] = {**FIT["calibration"], "overrides": [f"{REGISTER}=9 ms", "workloads.calls.subscribers=3"]}
    (here / "other.json").write_text(json.dumps(other))
    model = load_model(here / "tiny.yaml")
    drawable, dear = read_fit(str(here / "fit.json")), read_fit(str(here / "other.json"))
    assert dear.settings == (f"{REGISTER}=9 ms",), "its load is not its structure"
    found = predict(model, [drawable], [dear], draws=2, figures=["cpu"])
    step = {f.name: f for f in found.figures}["step_1/cpu"]
    assert step.most > 1.2 * step.least
    assert step.low <= step.least < step.most <= step.high
    assert found.structures == ("as it is", str(here / "other.json"))


def test_the_command_prints_a_table_and_json(here, capsys):
    words = ["predict", str(here / "tiny.yaml"), "--fit", str(here / "fit.json"), "--draws", "2", "-j", "1", "-q"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "ramp/passes" in out
    assert "2 points of 2 runs" in out
    assert main([*words, "--figure", "cpu", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in printed["figures"]} == {"pre_registration/cpu", "step_1/cpu", "step_2/cpu"}


@pytest.mark.parametrize(("cost", "is_told"), [("2 ms", True), ("5 ms", False)])
def test_a_value_of_the_model_that_the_fit_did_not_give_is_told(here, capsys, cost, is_told):
    """Fitted were 4 ms [3.2, 5.6]: a model that still has 2 ms is played around 2 ms, with half of the CPU."""
    words = ["predict", str(here / "tiny.yaml"), "--fit", str(here / "fit.json"), "--draws", "2", "-q", "-j", "1"]
    assert main([*words, "--set", f"{COST}={cost}"]) == 0
    told = f"warning: predicted is the model with its values, not the fitted ones: {COST} ({cost}, fitted 4 ms); write"
    assert (told in " ".join(capsys.readouterr().out.split())) is is_told


def test_the_function_gives_the_figures_that_the_command_prints(here, capsys):
    """The usual ones; all, hundreds, where they are asked for."""
    words = ["predict", str(here / "tiny.yaml"), "--fit", str(here / "fit.json"), "--draws", "2", "-j", "1", "-q"]
    assert main(words) == 0
    found = vftsim.predict(here / "tiny.yaml", [str(here / "fit.json")], draws=2)
    assert str(found) == capsys.readouterr().out
    every = vftsim.predict(here / "tiny.yaml", [str(here / "fit.json")], draws=2, figures=["*"])
    assert len(every.figures) > 10 * len(found.figures)
    assert [each.name for each in every.listed] == [each.name for each in found.figures]
    text = " ".join(str(every).split())
    assert f"{len(found.figures)} of {len(every.figures)} figures, those usually asked for" in text
    assert len(every.to_pandas()) == len(every.figures)
    units = every.to_pandas().set_index("name")["unit"]
    of_some = {
        "ramp/passes": "/s",
        "step_1/cpu": "%",
        "step_1/SES1/p90": "ms",
        "step_1/load": "/s",
    }
    assert {name: units[name] for name in of_some} == of_some
    text = " ".join(str(found).split())
    assert re.search(r"What will ramp/passes be\? nine of ten runs have [0-9.]+ to [0-9.]+ /s mean", text)
    assert re.search(r"step_1/cpu % [0-9]", text)


def test_steps_outside_of_what_was_calibrated_are_marked(here, capsys):
    (here / "tiny.yaml").write_text((here / "tiny.yaml").read_text() + "calibrated: {by: tiny, loads: [5 /s, 15 /s]}\n")
    words = ["predict", str(here / "tiny.yaml"), "--fit", str(here / "fit.json"), "--draws", "2", "-j", "1", "-q"]
    assert main([*words, "--figure", "cpu"]) == 0
    lines = [line.split("  ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert {"step_1/cpu", "step_2/cpu *"} <= set(lines)
    assert "* outside what was calibrated: 5 to 15 attempts/s (tiny)" in lines
    assert main([*words, "--figure", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outside_calibration"] == ["step_2/cpu"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "--fit: the fit that the model's values come from"),
        (["--fit", "no"], "no file 'no' and no shipped fit of that name"),
        (["--fit", "TINY"], "is no fit that 'vftsim calibrate -o' wrote"),
        (["--fit", "FIT", "--draws", "1"], "--draws: from 2"),
        (["--fit", "FIT", "-n", "1"], "-n: from 2"),
        (["--fit", "FIT", "--figure", "cqu"], "did you mean 'cpu'"),
        (["--fit", "linux-lab/base"], "the model has no key"),
    ],
)
def test_mistakes_are_refused(here, words, part, capsys):
    real = {"TINY": str(here / "tiny.yaml"), "FIT": str(here / "fit.json")}
    line = ["predict", str(here / "tiny.yaml"), "-q", "-j", "1", "--draws", "2"]
    assert main([*line, *(real.get(word, word) for word in words)]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"format": 2}, "format"),
        ({"parameters": {COST: {"value": 4e6}}}, "low_95"),
        ({"parameters": {"a.b": {"value": 1, "low_95": 0, "high_95": 2}}}, "a.b, which its calibration does not fit"),
        ({"parameters": {COST: {"value": math.inf, "low_95": 0, "high_95": 2}}}, "finite"),
    ],
)
def test_a_file_that_is_no_fit_is_refused(here, change, part):
    (here / "fit.json").write_text(json.dumps({**FIT, **change}))
    with pytest.raises(UsageError, match=part):
        read_fit(str(here / "fit.json"))


def test_a_figure_is_looked_for_after_one_run(here, monkeypatch, capsys):
    from vftsim.calibrate import prediction

    begun = []
    simulate = prediction.simulate_point

    def counted(task):
        begun.append(task.replication)
        return simulate(task)

    monkeypatch.setattr(prediction, "simulate_point", counted)
    words = ["predict", str(here / "tiny.yaml"), "--fit", str(here / "fit.json"), "--draws", "2", "-j", "1", "-q"]
    assert main([*words, "--figure", "nosuch"]) == 2
    assert "no run gives 'nosuch'" in capsys.readouterr().err
    assert begun == [0]
