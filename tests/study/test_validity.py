"""Figures outside of what a model was fitted to are marked, and what the fit did not have is named."""

import json

import pytest
from tiny import TINY

from tests.study.grids import make_grid, run_sweep
from tests.study.searches import search_study
from vftsim.cli.main import main
from vftsim.errors import ModelFileError
from vftsim.report.blocks import Cards
from vftsim.report.terminal import as_text
from vftsim.study.designs.availability import HostFailures, availability_study
from vftsim.study.designs.capacity import knob_capacity, ramp_study
from vftsim.study.designs.capacity_search import CapacityRequest, SearchSettings
from vftsim.study.designs.compare import compare_study
from vftsim.study.designs.decision import decide
from vftsim.study.designs.decision_crossovers import DecisionRequest
from vftsim.study.designs.experiment import ExperimentResult
from vftsim.study.designs.failover import Crashes, failover_study
from vftsim.study.designs.run import _led, run_study
from vftsim.study.execution import Execution
from vftsim.study.figures.validity import MARK, as_fitted, is_outside, not_covered_line, outside, with_changes
from vftsim.study.runs.model import in_yaml, load_model

FITTED = TINY + 'hosts: {host: {pcpus: 2}}\ncalibrated: {by: "bench, steps 1 and 2", loads: [10 /s, 20 /s]}\n'
BELOW = "* outside what was calibrated: 10 to 20 attempts/s (bench, steps 1 and 2)"
SHORT = SearchSettings(resolution_percent=50.0, runs_per_level=60, budget=16, probability=0.5)
BRIEF = ["workloads.calls.steps.duration=3 s", "workloads.calls.steps.transient=1 s", "workloads.calls.steps.most=1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "fitted.yaml"
    made.write_text(FITTED)
    return made


@pytest.fixture(scope="module")
def fitted(path):
    return load_model(path)


@pytest.fixture(scope="module")
def run(path):
    """A run whose pre-registration is at a rate above every step: it is no load step, and never marked."""
    return run_study(load_model(path, ["workloads.calls.pre_registration.rate=40 /s"]), 1, Execution(3, 1))


def row_of(text, first):
    """Return the cells of the table row that begins with a word."""
    return next(line for line in text.splitlines() if line.strip().startswith(first)).split()


@pytest.mark.parametrize(("saps", "out"), [(9.99, True), (10.0, False), (15.0, False), (20.0, False), (20.01, True)])
def test_the_ends_of_the_domain_are_inside(fitted, tiny, saps, out):
    assert is_outside(fitted.spec, saps) == out
    assert outside(fitted.spec, [saps, 15.0]) == ([saps] if out else [])
    assert not is_outside(tiny.spec, saps)
    assert outside(tiny.spec, [saps]) is None


def test_a_run_marks_its_steps_outside_and_the_preregistration_never(run):
    found, text = run, str(run)
    assert text.count(BELOW) == 1
    assert row_of(text, "pre_registration")[1:2] == ["40"]
    assert row_of(text, "step_2")[1:2] == ["20"]
    assert row_of(text, "step_3")[1:3] == ["*", "30"]
    inside = ("pre_registration", "step_1", "step_2")
    steps = [phase for phase in found.to_pandas("steps")["phase"] if phase not in inside]
    assert found.for_machines()["outside_calibration"] == steps


def test_the_last_load_that_passed_is_marked_wherever_a_run_says_it(run):
    """The model is fitted to 10 to 20 a second, and its steps pass at 30."""
    (address, load), *_ = ((each, e) for each, e in _led(run) if each.entry.figure.is_load)
    assert load.mean > 20.0, address
    assert str(run).count(f"{load.shown()[0]} *") == 2, "the answer and the table"
    cards = next(block for block in run.blocks() if isinstance(block, Cards)).cards
    assert [card.cell.mark for card in cards if "last load" in card.label] == [" *"]


def test_all_tables_of_a_run_mark_their_phases(run):
    lines = as_text(run.blocks(everything=True), 200).splitlines()
    marked = [line for line in lines if line.strip().startswith("step_3")]
    assert len(marked) > 5
    assert all(line.strip().startswith("step_3 *") for line in marked)


def test_a_model_that_says_nothing_has_nothing_marked(tiny):
    found = run_study(tiny, 1, Execution(3, 1))
    assert "*" not in str(found)
    assert "calibrat" not in str(found)
    assert "no domain of validity is known: nothing says what tiny was fitted to\n" in str(found)
    assert found.for_machines()["outside_calibration"] is None


def test_a_ramp_marks_loads_outside(fitted):
    found = ramp_study(fitted, CapacityRequest(replications=2), Execution(1, 1))
    text, beyond = str(found), [load for load in found.ramp.loads if load > 20]
    assert beyond == found.for_machines()["outside_calibration"]
    assert f"{found.ramp.fails.saps:g}{MARK}" in text
    assert row_of(text, "2 ")[1:3] == ["20", "2"]
    assert row_of(text, "3 ")[1:3] == ["30", "*"]
    assert text.count(BELOW) == 1


def test_a_comparison_names_the_domain_of_each_model(fitted, tiny, path):
    other = path.with_name("other.yaml")
    other.write_text(FITTED.replace("[10 /s, 20 /s]", "[10 /s, 25 /s]"))
    found = compare_study([fitted, load_model(other), tiny], 1, Execution(1, 1))
    text = " ".join(str(found).split())
    both = f"{fitted.label} 10 to 20 attempts/s (bench, steps 1 and 2); {other} 10 to 25 attempts/s"
    assert f"* outside what was calibrated: {both}" in text
    outside = found.for_machines()["outside_calibration"]
    assert outside[str(other)][0] == 30.0
    assert outside[tiny.label] is None


@pytest.mark.thorough
def test_a_search_marks_its_answer_and_its_curve(path):
    found = search_study(load_model(path, BRIEF), seed=1, jobs=1, settings=SHORT)
    text, tried = str(found), found.searches["steady"].loads
    assert found.for_machines()["outside_calibration"] == sorted(load for load in tried if not 10 <= load <= 20)
    for load in tried:
        assert (row_of(text, f"{load:g} ")[1] == "*") == (not 10 <= load <= 20)
    assert text.count(BELOW) == 1


@pytest.mark.thorough
def test_a_search_of_the_load_by_its_key_marks_it_and_of_another_key_names_it(path):
    model = load_model(path, BRIEF)
    asked = {"probability": 0.5, "budget": 16, "objectives": ("calls.step_1.ihs <= 10",)}
    load = knob_capacity(model, CapacityRequest(vary="workloads.calls.steps.initial", **asked), Execution(1, 1))
    (searched,) = load.searches.values()
    assert load.for_machines()["outside_calibration"] == sorted(x for x in searched.loads if not 10 <= x <= 20)
    assert str(load).count(BELOW) == 1
    cost = knob_capacity(
        model, CapacityRequest(vary="domains.sut.applications.proxy.touch_cost", **asked), Execution(1, 1)
    )
    assert cost.for_machines()["outside_calibration"] == []
    assert BELOW not in str(cost)
    assert "not covered by the calibration: domains.sut.applications.proxy.touch_cost" in str(cost)


def test_a_sweep_marks_figures_of_loads_outside_and_names_its_axes(path, tmp_path):
    grid = make_grid(
        str(path),
        None,
        ["workloads.calls.steps.initial=10/s,25/s", "domains.sut.cpu_inflation=1,1.1"],
        ["workloads.calls.steps.most=1"],
    )
    found = run_sweep(grid, tmp_path, 1, Execution(1, 1))
    text, outside = str(found), found.for_machines()["outside_calibration"]
    assert "not covered by the calibration: domains.sut.cpu_inflation\n" in text
    assert text.count(BELOW) == 1
    assert {point for point, figure in outside if figure == "workloads.calls.step_1.cpu"} == {2, 3}
    lines = [line for line in text.splitlines() if "10/s" in line or "25/s" in line]
    assert all(("*" in line) == ("25/s" in line) for line in lines), "of every part of the table"
    assert len(lines) >= 4


def test_a_sweep_of_mechanisms_does_not_name_the_mechanism_again(path):
    grid = make_grid(str(path), None, ["domains.sut.weight=1,2"], [], "none,checkpoint")
    named = {key for point in grid.points for key in point.model.spec.calibrated.not_covered}
    assert "domains.sut.protection" in named
    result = ExperimentResult(grid, grid.points.bases, [], {}, [])
    assert result.not_covered == ["domains.sut.weight"]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("domains.sut.cap=50 %", ("domains.sut.cap",)),
        ("domains.sut.cap=0 %", ()),
        ("domains.sut.applications.proxy.touch_cost=4000 us", ()),
        ("domains.sut.protection={kind: checkpoint}", ("domains.sut.protection",)),
        ("domains.more={}", ("domains.more",)),
        ("networks.lan.latency=1 ms", ("networks.lan.latency",)),
        ("workloads.calls.steps.initial=20 /s", ()),
        ("measured.capacity=20 /s", ()),
    ],
)
def test_what_a_setting_changes_of_the_system_is_named(path, setting, named):
    assert load_model(path, [setting]).spec.calibrated.not_covered == named


def test_the_line_names_a_few(path):
    assert not_covered_line(()) == ""
    assert not_covered_line(list("abcd")) == "not covered by the calibration: a, b, c, d"
    assert not_covered_line(list("abcdef")) == "not covered by the calibration: a, b, c, d and 2 more"


def test_an_extending_file_is_compared_with_the_one_that_was_fitted(path):
    child = path.with_name("child.yaml")
    child.write_text("extends: fitted\ndomains: {sut: {vcpus: 2}}\n")
    changed = load_model(child, ["domains.sut.weight=3"]).spec.calibrated.not_covered
    assert set(changed) == {"domains.sut.weight", "domains.sut.vcpus"}
    child.write_text("extends: fitted\ncalibrated: {by: mine, loads: [1 /s, 2 /s]}\ndomains: {sut: {vcpus: 2}}\n")
    assert load_model(child).spec.calibrated.not_covered == ()
    child.write_text("extends: fitted\ncalibrated: null\ndomains: {sut: {vcpus: 2}}\n")
    assert load_model(child).spec.calibrated is None


def test_the_resolved_file_still_says_what_was_changed(path, tmp_path):
    changed = load_model(path, ["domains.sut.weight=3"])
    kept = tmp_path / "model.yaml"
    kept.write_text(in_yaml(changed.resolved()))
    assert load_model(kept).spec == changed.spec


def test_a_fragment_cannot_say_what_was_fitted(path):
    base, child = path.with_name("fragment.yaml"), path.with_name("whole.yaml")
    base.write_text("calibrated: {by: x, loads: [1 /s, 2 /s]}\n")
    child.write_text(TINY + "extends: fragment\n")
    with pytest.raises(ModelFileError, match="must stand in a file that is a whole model") as caught:
        load_model(child)
    assert (caught.value.file, caught.value.line, caught.value.key) == (str(base), 1, "calibrated")


def test_nothing_is_told_of_a_model_without_a_fit(tiny, fitted):
    assert with_changes(tiny.spec, {}) is tiny.spec
    assert with_changes(fitted.spec, None) is fitted.spec


@pytest.mark.parametrize(
    ("loads", "why"),
    [
        ("[20 /s, 10 /s]", r"the lowest load comes first: \[10 /s, 20 /s\]"),
        ("[20 /s]", "2"),
        ("[10 /s, 20 /s, 30 /s]", "2"),
        ("[10, 20]", "calibrated.loads"),
    ],
)
def test_wrong_loads_are_refused_with_file_and_line(path, loads, why):
    wrong = path.with_name("wrong.yaml")
    wrong.write_text(FITTED.replace("[10 /s, 20 /s]", loads))
    with pytest.raises(ModelFileError, match=why) as caught:
        load_model(wrong)
    assert caught.value.file == str(wrong)
    assert caught.value.line == len(FITTED.splitlines())


def test_loads_need_a_workload_with_steps(path):
    with pytest.raises(ModelFileError, match="its loads are those of steps, and no workload has any"):
        load_model(path, ["workloads.calls=null"])


def test_the_command_prints_both_lines(path, capsys):
    words = ["run", str(path), "-n", "1", "-j", "1", "-q", "--set", "domains.sut.weight=300"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "not covered by the calibration: domains.sut.weight\n" in out
    assert "no domain of validity" not in out
    assert out.count(BELOW) == 1
    assert main([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["outside_calibration"][0] == "step_3"
    assert printed["manifest"]["models"][0]["not_covered"] == ["domains.sut.weight"]


def test_as_fitted_is_the_file_without_settings(path):
    from vftsim.composition.model import ModelSpec
    from vftsim.spec import read_document

    document = read_document(path)
    assert as_fitted(document) == as_fitted(document.override(ModelSpec, ["measured.capacity=3 /s"]))
    assert as_fitted(document.override(ModelSpec, ["calibrated={by: me, loads: [1 /s, 2 /s]}"])) is None


LOW = "workloads.calls.steps.initial=5 /s"
"""A first step below all that were fitted."""


@pytest.mark.parametrize("settings", [(), (LOW,)])
def test_the_load_of_failovers_is_marked(path, capsys, settings):
    study = failover_study(load_model(path, (*BRIEF, *settings)), Crashes(1, after_ns=10**9), Execution(1, 1))
    print(as_text(study.blocks(), 1000))
    out = capsys.readouterr().out
    assert ("load: 5 attempts a second *;" in out) == (BELOW in out) == bool(settings)
    assert study.for_machines()["outside_calibration"] == ([5.0] if settings else [])


def test_a_load_of_failovers_that_is_asked_for_is_marked(path):
    study = failover_study(load_model(path, BRIEF), Crashes(1, load=25.0, after_ns=10**9), Execution(1, 1))
    assert study.outside == [25.0]


@pytest.mark.parametrize("settings", [(), (LOW,)])
def test_a_year_of_failovers_outside_is_marked(path, capsys, settings):
    study = availability_study(
        load_model(path, (*BRIEF, *settings)), ["none"], HostFailures(1e6), Crashes(1, after_ns=10**9), Execution(1, 1)
    )
    print(as_text(study.blocks(), 1000))
    out = capsys.readouterr().out
    assert ("A year *" in out) == (BELOW in out) == bool(settings)
    assert study.for_machines()["outside_calibration"] == ([5.0] if settings else [])


@pytest.mark.parametrize("settings", [(), (LOW,)])
def test_figures_of_mechanisms_outside_are_marked(path, capsys, settings):
    """The ramp ends above 20 attempts a second; other figures are those of the first step."""
    longer = ("workloads.calls.steps.duration=3 s", "workloads.calls.steps.transient=1 s")
    found = decide(load_model(path, (*longer, *settings)), ["none"], 1, DecisionRequest(), Execution(1, 1))
    outside = {name for _, name in found.for_machines()["outside_calibration"]}
    assert outside == ({one.name for one in found.quantities} if settings else {"capacity"})
    print(as_text(found.blocks(), 1000))
    out = capsys.readouterr().out
    assert BELOW in out
    assert ("call set-up p50, ms *" in out) == bool(settings)
    assert "capacity (DOC), /s *" in out


MEASURED = FITTED + "measured: {capacity: 100 /s}\n"


@pytest.mark.parametrize(
    ("setting", "capacity"),
    [
        ("domains.sut.applications.proxy.touch_cost=3 ms", None),
        ("workloads.calls.hold_time=2 s", None),
        ("workloads.calls.steps.initial=12 /s", 100.0),
        ("workloads.calls.steps.most=2", 100.0),
        ("measured.capacity=7 /s", 7.0),
    ],
)
def test_what_was_measured_on_another_system_is_left_out(path, setting, capacity):
    """How long and in which steps a system is measured does not make it another one; a value of the user's stays."""
    path.write_text(MEASURED)
    assert load_model(path).spec.measured.capacity == 100.0
    assert load_model(path, [setting]).spec.measured.capacity == capacity


def test_another_mechanism_makes_another_system(path):
    from vftsim.study.designs.protections import under

    path.write_text(MEASURED)
    model = load_model(path)
    assert under(model, "lockstep").spec.measured.capacity is None
    assert under(model, "none").spec.measured.capacity == 100.0
