"""Calibration and validation by runs: any environment and phase is a run of the model by itself."""

import json

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from tests.calibrate.two_guests import CPU, DATASET, FIT, SPIN, VALIDATION
from vftsim._version import __version__
from vftsim.calibrate.accuracy import Row, read_held_out
from vftsim.calibrate.by_runs import verdict_beside as verdict
from vftsim.calibrate.definition import CalibrationSpec, matches
from vftsim.calibrate.figures import as_run, is_ratio, observe, unit_of_figure
from vftsim.calibrate.intervals import CHANCE_RUNS
from vftsim.calibrate.validation import RunTarget, RunValidationSpec
from vftsim.cli.main import main
from vftsim.composition.model import ModelSpec


@pytest.fixture
def lab(tmp_path):
    for name, text in (
        ("two-guests.yaml", SPIN),
        ("dataset.yaml", DATASET),
        ("cpu.csv", CPU),
        ("fit.yaml", FIT),
        ("validation.yaml", VALIDATION),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.thorough
def test_a_model_without_sip_is_fitted_to_a_metric_of_its_own(lab, capsys):
    """Shares go by weight: w / (w + 300) = 51 % (mean of the repeats) and w / (w + 1200) = 20 %, so w = 300 or so."""
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1", "-o", str(lab / "fitted.json")]) == 0
    assert "domains.small.weight" in capsys.readouterr().out
    found = json.loads((lab / "fitted.json").read_text())
    assert found["parameters"]["domains.small.weight"]["value"] == pytest.approx(306, rel=0.08)
    assert {each["phase"] for each in found["residuals"]} == {"bare/even", "bare/odd"}


@pytest.mark.parametrize(
    ("setting", "parameter", "unit"),
    [
        ("domains.small.weight=100", "domains.small.weight, low: 60, high: 900, start: 100", ""),
        ("domains.small.cap=20 %", "domains.small.cap, low: 10 %, high: 20 %, start: 15 %", "%"),
        (
            "domains.third={applications: {job: {kind: cpu_bound, duty: 100 %}}}",
            "domains.third.applications.job.cycle, low: 5 ms, high: 20 ms, start: 10 ms",
            "ns",
        ),
    ],
)
def test_bounds_are_written_as_in_a_model_file_and_a_fit_says_the_unit(lab, setting, parameter, unit):
    """Of a domain that its own environment alone has too."""
    text = FIT.replace("capped: [domains.small.cap=30 %]", f'capped: ["{setting}"]').replace("most_evaluations: 8", "")
    text = text.replace("domains.small.weight, low: 60, high: 900, start: 100", f"{parameter}, environments: [capped]")
    (lab / "fit.yaml").write_text(text.replace("in_sample: [bare/even, bare/odd]", "in_sample: [capped/even]"))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1", "-o", str(lab / "fitted.json")]) == 0
    (found,) = json.loads((lab / "fitted.json").read_text())["parameters"].values()
    assert found["unit"] == unit


def test_runs_that_were_not_fitted_are_predicted(lab, capsys):
    words = ["validate", str(lab / "validation.yaml"), "-q", "-j", "1", "--held-out", str(lab / "rows.json")]
    assert main([*words, "-n", "2", "--report", str(lab / "page.md")]) == 0
    assert json.loads((lab / "rows.json").read_text())["rows"][0]["phase"] == "odd"
    assert read_held_out(str(lab / "rows.json")).count("cpu.of_any_domain") == 4, "two domains in two runs"
    page = (lab / "page.md").read_text()
    assert f"(vftsim {__version__}, seed" in page
    assert "`vftsim validate" in page
    assert "validation.yaml -n 2`" in page
    assert "| cpu.small within 3 points beyond the range of repeats | met | 2 of 2" in page
    predicted = page.partition("| bare/even | fitted | cpu.small | 51 | ")[2].partition(" ")[0]
    assert float(predicted) == pytest.approx(50, abs=0.5), "equal weights"
    (lab / "cpu.csv").write_text(CPU.replace("odd,1,20,80", "odd,1,27,73"))
    assert main(["validate", str(lab / "validation.yaml"), "-q", "-j", "1"]) == 1
    assert "1 of 2; worst" in " ".join(capsys.readouterr().out.split())


MISTAKES = {
    "environment of a run": ("bare/even, bare/odd", "bear/even", "must be environment/phase; did you mean 'bare'"),
    "environment of the dataset": (
        "  capped: [domains.small.cap=30 %]",
        "  kaped: []",
        "fit.yaml:4: environments: the dataset has no environment 'kaped'; did you mean 'capped'? it has bare, capped",
    ),
    "key of a parameter": (
        "domains.small.weight, low",
        "domains.small.wieght, low",
        "fit.yaml:11: path: the model has no key 'domains.small.wieght'; did you mean 'weight'?",
    ),
    "key of a scale": (
        "domains.small.weight, low: 60,",
        "domains.small.weight, scales: [domains.lage.weight], low: 60,",
        "fit.yaml:11: scales: the model has no key 'domains.lage.weight'; did you mean 'large'?",
    ),
    "phase of a run": ("bare/even, bare/odd", "bare/oven", "the phase 'oven' of 'bare'; it has even, odd"),
    "quantity": ("[cpu.small]", "[bare/even/cpu.smal]", "called 'bare/even/cpu.smal' was measured"),
    "not of the model": (
        "domains.small.cap=30 %",
        "domains.small.kap=30 %",
        "fit.yaml:6: environments.capped: domains.small.kap=30 %",
    ),
    "unit of a setting": ("weight=1200", "weight=many", "fit.yaml:9: phases.odd: domains.large.weight=many"),
    "both forms": ("environments:\n  bare", "environment: bare\nenvironments:\n  bare", "needs either environment"),
    "settings": ("[domains.large.weight=1200]", "[domains.huge.weight=1]", "huge"),
    "bounds": ("low: 60, high: 900", "low: 900, high: 60", "need low < high"),
    "held out and fitted": (
        "quantities:",
        "held_out: [bare/odd]\nquantities:",
        "has 'bare/odd' both in sample and held out",
    ),
    "held out nowhere": (
        "quantities:",
        "held_out: [bare/o]\nquantities:",
        "fit.yaml:13: held_out: nothing was measured in 'bare/o'",
    ),
    "nothing in sample": (
        "[cpu.small]",
        "[bare/odd/cpu.small]",
        "the dataset has no observations of bare/odd/cpu.small for 'bare/even'; its phases are bare/even, bare/odd",
    ),
    "no number": ("small.weight, low", "small.applications.job.kind, low", "'cpu_bound' in the model, and no number"),
    "no weight": ("low: 60", "low: -60", "fit.yaml:11: low: the model cannot have -60.0: domains.small.weight"),
    "unit of a weight": ("high: 900", "high: 900 ns", "domains.small.weight is a plain number, not '900 ns'"),
    "bare time": (
        "domains.small.weight, low: 60",
        "measure.duration, low: 60",
        "measure.duration is a duration such as '25 ms', not 60.0",
    ),
    "nothing to scale by": (
        "domains.small.weight, low: 60,",
        "hosts.host.switch_cost, scales: [domains.large.weight], low: 60,",
        "hosts.host.switch_cost is 0 in the model, of which there are no multiples",
    ),
    "nothing to scale": (
        "domains.small.weight, low: 60,",
        "domains.small.weight, scales: [hosts.host.switch_cost], low: 60,",
        "hosts.host.switch_cost is 0 in the model, of which there are no multiples",
    ),
    "beyond by scale": (
        "domains.small.weight, low: 60, high: 900, start: 100,",
        "domains.small.weight, scales: [domains.large.weight], low: 60, high: 65535, start: 100,",
        "fit.yaml:11: high: the model cannot have 65535.0: domains.large.weight",
    ),
    "scaled beside itself": (
        "meaning: weight of the small guest}",
        "scales: [domains.large.weight], meaning: weight}\n"
        "  - {path: domains.large.weight, low: 60, high: 900, start: 100, meaning: weight}",
        "moves domains.large.weight twice, in scales and by itself or in other scales",
    ),
    "in no run": ("start: 100,", "start: 100, environments: [capped],", "no run in sample has domains.small.weight"),
}


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_gets_one_message_and_exit_code_2(lab, capsys, old, new, message):
    text = FIT.replace("in_sample: [bare/even", "in_sample: [capped/even, bare/even") if ".kap" in new else FIT
    text = FIT.replace("in_sample: [bare/even", "in_sample: [kaped/even, bare/even") if "kaped" in new else text
    assert old in text
    (lab / "fit.yaml").write_text(text.replace(old, new))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("vftsim:") == 1
    assert "Traceback" not in told


def test_a_quantity_that_the_model_does_not_give_is_refused_with_the_nearest(lab, capsys):
    (lab / "dataset.yaml").write_text(DATASET.replace("metric: cpu.small", "metric: cpu.smal"))
    (lab / "fit.yaml").write_text(FIT.replace("[cpu.small]", "[cpu.smal]"))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1"]) == 2
    assert (
        "fit.yaml:12: in_sample: the fit is to 'cpu.smal', which the model does not have in 'bare/even'; did you mean "
        "'cpu.small'" in capsys.readouterr().err
    )


def test_a_measured_0_has_no_ratio_and_is_not_fitted(lab, capsys):
    """Delays that a tool has in whole ms are 0 at low load; a share of 0 % is compared in points."""
    (lab / "dataset.yaml").write_text(DATASET.replace('metric: cpu.large, unit: "%"', "metric: SES1, unit: ms"))
    (lab / "cpu.csv").write_text(CPU.replace("odd,1,20,80", "odd,1,0,0"))
    (lab / "fit.yaml").write_text(FIT.replace("[cpu.small]", "[cpu.small, SES1]"))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1"]) == 2
    assert "fit.yaml:13: quantities: SES1 is 0 in 'bare/odd', and is compared by its ratio" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["calibrate", "fit.yaml"], ["validate", "validation.yaml"]])
@pytest.mark.parametrize(("cell", "use"), [("-3", "-3 %"), ("500", "500 %"), ("101", "")])
def test_a_use_of_cpu_that_there_cannot_be_is_refused(lab, capsys, command, cell, use):
    """The model's host has one pCPU; counted by ticks it may have done 1 % more."""
    (lab / "cpu.csv").write_text(CPU.replace("odd,1,20,80", f"odd,1,{cell},80"))
    (lab / "fit.yaml").write_text(FIT.replace("most_evaluations: 8", "most_evaluations: 1"))
    done = main([command[0], str(lab / command[1]), "-q", "-j", "1"])
    told = " ".join(capsys.readouterr().err.split())
    assert (done == 2) is bool(use)
    if use:
        assert f"cpu.csv:4: small: cpu.small is {use} of a CPU in 'bare', 'odd': it is from 0 to 100 %" in told


@pytest.mark.parametrize("command", [["calibrate", "fit.yaml"], ["validate", "validation.yaml"]])
def test_a_run_without_settings_of_its_phase_is_refused_where_others_have_them(lab, capsys, command):
    """It was played as the model is, here 300 where 1200 was measured, and compared."""
    text = (lab / command[1]).read_text().replace("  odd: [domains.large.weight=1200]\n", "")
    (lab / command[1]).write_text(text)
    assert main([command[0], str(lab / command[1]), "-q", "-j", "1"]) == 2
    told = capsys.readouterr().err
    assert "phases: there are none for 'odd', which is played; write them, or 'odd: []' if it has none" in told


def test_a_target_of_what_was_not_measured_is_refused_and_not_missed(lab, capsys):
    text = VALIDATION.replace("quantities: [cpu.small], points", "quantities: [cpu.smal], points")
    (lab / "validation.yaml").write_text(text)
    assert main(["validate", str(lab / "validation.yaml"), "-q", "-j", "1"]) == 2
    assert "quantities: nothing called 'cpu.smal' was measured; did you mean 'cpu.small'?" in capsys.readouterr().err


@pytest.mark.parametrize(("cell", "is_told"), [("20,80", False), ("90,10", True)])
def test_what_the_fitted_model_is_far_from_is_told(lab, capsys, cell, is_told):
    """A guest's share does not grow with the other's weight: 51 beside 300 and 90 beside 1200 no weight gives."""
    (lab / "cpu.csv").write_text(CPU.replace("20,80", cell))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1"]) == 0
    told = " ".join("".join(capsys.readouterr()).split())
    assert ("warning: scales from the fit: cpu.small in 'bare/" in told) is is_told


@pytest.mark.parametrize(("most", "is_cut"), [(1, True), (20, False)])
def test_a_search_that_its_limit_ended_is_told(lab, capsys, most, is_cut):
    """Of one evaluation the value is that of the start, whatever was measured."""
    (lab / "fit.yaml").write_text(FIT.replace("most_evaluations: 8", f"most_evaluations: {most}"))
    assert main(["calibrate", str(lab / "fit.yaml"), "-o", str(lab / "fit.json"), "-q", "-j", "1"]) == 0
    told = "the search ended after its 1 evaluation, perhaps before the least squares: raise most_evaluations"
    assert (told in " ".join("".join(capsys.readouterr()).split())) is is_cut
    assert json.loads((lab / "fit.json").read_text())["is_cut"] is is_cut


def test_the_cpu_of_a_machine_that_the_model_has_not_is_not_bounded_by_its_host(lab):
    """A client's machine may have eight processors, and a growth of 500 % is no use of one."""
    for metric in ("cpu/client", "cpu_growth"):
        (lab / "dataset.yaml").write_text(DATASET.replace("metric: cpu.large", f"metric: {metric}"))
        (lab / "cpu.csv").write_text(CPU.replace("odd,1,20,80", "odd,1,20,500"))
        (lab / "fit.yaml").write_text(FIT.replace("most_evaluations: 8", "most_evaluations: 1"))
        assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1"]) == 0


def test_null_models_that_say_nothing_are_told_and_none_are_spoken_of_that_were_not_asked_for(lab, capsys):
    """A line over load needs a load: these guests have none."""
    for nulls in ("", "nulls: {base: bare}\n"):
        (lab / "validation.yaml").write_text(VALIDATION + nulls)
        page = lab / f"page{len(nulls)}.md"
        main(["validate", str(lab / "validation.yaml"), "--report", str(page), "-q", "-j", "1"])
        told = " ".join("".join(capsys.readouterr()).split())
        assert "## Summary of errors" in page.read_text()
        assert "of 0 predicted" not in told + page.read_text()
        assert ("warning: no null model says anything: each needs load and cpu of 'bare'" in told) is bool(nulls)
        assert "Beside null models" not in told + page.read_text()


def test_units_of_figures_are_told_by_their_names(lab, capsys):
    assert [unit_of_figure(name) for name in ("cpu.dom0", "web.reply_rate", "delay_p50_ms", "SES1/p90", "x")] == [
        "%",
        "/s",
        "ms",
        "ms",
        None,
    ]
    assert (is_ratio("cpu.dom0"), is_ratio("cpu"), is_ratio("delay_p50_ms"), is_ratio("x")) == (
        False,
        False,
        True,
        True,
    )
    (lab / "dataset.yaml").write_text(DATASET.replace('cpu.small, unit: "%"', "cpu.small, unit: ms"))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1"]) == 2
    assert "cpu.csv:1: small: cpu.small is in % in the model, not in ms" in capsys.readouterr().err


def test_patterns_do_not_cross_slashes():
    assert matches("base/r50/SES2/p90", "base/*/SES2/p[59]0")
    assert not matches("base/r50/sipp/SES2/p90", "base/*/SES2/p[59]0")
    assert not matches("SES2", "SES2/p50")


def test_the_median_and_the_range_of_repeats_decide():
    """Repeats 40 and 50: 54 is 4 beyond. A run made once takes the relative range of the nearest load: 80 to 100."""
    spec = RunValidationSpec(
        name="x",
        model="m",
        dataset="d",
        environments={"a": (), "b": ()},
        predicted=("a/r1", "b/r1"),
        quantities=("cpu",),
        repeats_of="a",
    )
    data = {("a/r1", "cpu"): 45.0, ("a/r1", "load"): 10.0, ("b/r1", "cpu"): 90.0, ("b/r1", "load"): 11.0}
    repeats = {("a/r1", "cpu"): [40.0, 50.0], ("a/r1", "load"): [10.0, 10.0], ("b/r1", "cpu"): [90.0]}
    rows = [Row(e, "r1", "cpu", "out", m, p, p, p, 2, {}) for e, m, p in (("a", 45.0, 54.0), ("b", 90.0, 101.0))]
    for points, passed in ((3.9, False), (4.0, True)):
        assert verdict(spec, RunTarget(quantities=("cpu",), points=points), rows, data, repeats).passed is passed
    found = verdict(spec, RunTarget(quantities=("cpu",), median=16.2), rows, data, repeats)
    assert (found.passed, found.found) == (True, "16.1 % over 2")
    for predicted, text in ((1.0, "inf % over 1"), (0.0, "0.0 % over 1")):
        of_none = [Row("a", "r1", "cpu", "out", 0.0, predicted, predicted, predicted, 2, {})]
        assert verdict(spec, RunTarget(quantities=("cpu",), median=10.0), of_none, data, repeats).found == text
    with pytest.raises(ValidationError, match="either median"):
        RunTarget(quantities=("cpu",))


def test_held_out_rows_are_not_written_where_there_are_none(lab, capsys):
    (lab / "dataset.yaml").write_text(DATASET.replace("cpu.small", "cpu.s").replace("cpu.large", "cpu.l"))
    (lab / "validation.yaml").write_text(VALIDATION.replace("[cpu.small]", "[cpu.s]"))
    words = ["validate", str(lab / "validation.yaml"), "-q", "-j", "1", "--held-out", str(lab / "rows.json")]
    assert main(words) == 1
    assert "warning: no row is held out and of a kind that errors are learned of" in capsys.readouterr().err
    assert not (lab / "rows.json").exists()


def test_what_was_measured_and_the_model_does_not_have_is_said(lab, capsys):
    (lab / "dataset.yaml").write_text(DATASET.replace("metric: cpu.large", "metric: cpu.larger"))
    words = ["validate", str(lab / "validation.yaml"), "-q", "-j", "1", "--report", str(lab / "page.md")]
    assert main(words) == 0
    assert "**Warning**: 'cpu.larger' was measured in bare/even" in (lab / "page.md").read_text()
    assert (
        "warning: 'cpu.larger' was measured in bare/even, bare/odd, capped/even, but the model does not have it there; "
        "nothing is compared; did you mean 'cpu.large'?" in capsys.readouterr().err
    )


ALONE = """\
networks: {lan: {rate: 10 Gbit/s, latency: 50 us}}
domains:
  server:
    interfaces: {eth0: {path: {kind: moderated, moderation: 0 us}}}
    applications: {pages: {kind: service, demand: 2 ms}}
workloads: {pages: {kind: open_requests, to: server, rate: 20 /s, gap_cv: 0}}
measure: {warm_up: 100 ms, duration: 1 s}
"""
OF_IMPORT = """\
name: alone
model: alone.yaml
dataset: lab
environments: {bare: []}
fitted: []
predicted: [bare/r20]
quantities: ["*/p50"]
targets: [{quantities: ["*/p50"], median: 6 %}]
replications: 2
"""


def test_statistics_of_an_import_meet_the_figures_of_a_model_without_sip(tmp_path, capsys):
    """A request finds nobody before it: 2 ms of work and 50 us there and back, in each of SIPp's 20 calls 2.2 ms."""
    (tmp_path / "alone.yaml").write_text(ALONE)
    (tmp_path / "validation.yaml").write_text(OF_IMPORT)
    calls = "".join(f"{50 * number};2.2;1\n" for number in range(1, 21))
    (tmp_path / "calls_rtt.csv").write_text(f"Date_ms;response_time_ms;rtd_no\n{calls}")
    for more, text in (
        ([], "it has pages.latency/p50, server.pages.response/p50, server.pages.wait/p50 (rename"),
        (["--rename", "rtd1=pages.latency"], "median error of */p50 at most 6 % met 4.5 % over 1"),
    ):
        imported = ["import", str(tmp_path / "calls_rtt.csv"), "-o", str(tmp_path / "lab"), "-e", "bare"]
        assert main([*imported, "--phase", "r20", *more]) == 0
        main(["validate", str(tmp_path / "validation.yaml"), "-q", "-j", "1"])
        printed = capsys.readouterr()
        assert text in " ".join((printed.out + printed.err).split())
    seen = observe(ModelSpec.model_validate(YAML(typ="safe").load(ALONE)), 1, 0)
    assert seen["measured", "pages.latency/p50"] == seen["measured", "pages.latency_p50_ms"]
    assert (
        seen["measured", "pages.latency"] == seen["measured", "pages.latency_mean_ms"] == pytest.approx(2.1, abs=0.01)
    )
    assert (unit_of_figure("pages.latency/p50"), unit_of_figure("bulk.throughput")) == ("ms", None)


def test_a_run_is_fitted_or_predicted_and_not_both(lab, capsys):
    (lab / "validation.yaml").write_text(VALIDATION.replace("fitted: [bare/even]", "fitted: [bare/even, bare/odd]"))
    assert main(["validate", str(lab / "validation.yaml"), "-q", "-j", "1"]) == 2
    assert "'bare/odd' is both fitted and predicted" in capsys.readouterr().err


@pytest.mark.parametrize(
    "without", [{("a/r", "cpu"): [40.0, 50.0]}, {("a/r", "cpu"): [0.0, 0.0], ("a/r", "load"): [9.0]}], ids=["load", "0"]
)
def test_repeats_that_tell_no_range_do_not_stand_in(without):
    """Of a run measured once: 92 is 2 beyond 90, where the other environment's repeats have no load or are all 0."""
    shape = {"name": "x", "model": "m", "dataset": "d", "environments": {"a": (), "b": ()}, "quantities": ("cpu",)}
    spec = RunValidationSpec(**shape, predicted=("b/r",), repeats_of="a")
    row = Row("b", "r", "cpu", "out", 90.0, 92.0, 92.0, 92.0, 2, {})
    repeats = {("b/r", "cpu"): [90.0], ("b/r", "load"): [9.0], **without}
    found = verdict(spec, RunTarget(quantities=("cpu",), points=3.0), [row], {("b/r", "load"): 9.0}, repeats)
    assert found.found == "1 of 1; worst 2.0 (b/r)"
    with pytest.raises(ValidationError, match="repeats_of: no environment 'c'; there are a, b"):
        RunValidationSpec(**shape, predicted=("b/r",), repeats_of="c")


def test_every_quantity_of_a_run_is_held_against_a_target_in_points():
    """10 points off in one of two quantities of a run that were measured once: one of two is met."""
    spec = RunValidationSpec(
        name="x", model="m", dataset="d", environments={"a": ()}, predicted=("a/r",), quantities=("cpu.*",)
    )
    rows = [Row("a", "r", f"cpu.{name}", "out", m, p, p, p, 2, {}) for name, m, p in (("b", 10, 20), ("c", 80, 80))]
    repeats = {(row.run, row.quantity): [row.measured] for row in rows}
    found = verdict(spec, RunTarget(quantities=("cpu.*",), points=3.0), rows, {}, repeats)
    assert (found.passed, found.found) == (False, "1 of 2; worst 10.0 (a/r, cpu.b)")


def test_a_run_says_the_cpu_of_every_domain():
    seen = observe(
        ModelSpec.model_validate({"domains": {"a": {"applications": {"j": {"kind": "cpu_bound", "duty": 40.0}}}}}), 1, 0
    )
    assert seen["measured", "cpu.a"] == pytest.approx(40.0, abs=3.0)


def test_a_definition_is_of_one_form():
    base = {
        "name": "x",
        "model": "m",
        "dataset": "d",
        "in_sample": ["s"],
        "parameters": [{"path": "a", "low": 0, "high": 1, "start": 0.5, "meaning": "abc"}],
    }
    with pytest.raises(ValidationError, match="needs either environment"):
        CalibrationSpec(**base)
    with pytest.raises(ValidationError, match="settings of phases, which need environments"):
        CalibrationSpec(**base, environment="e", phases={"s": ["a=1"]})
    assert CalibrationSpec(**base, environment="e").runs == []


def test_runs_with_equal_settings_are_made_once_and_one_may_have_a_parameter_of_its_own(lab, monkeypatch):
    """Two phases of one environment are one model here: one run of it stands for both."""
    played = []

    def counted(spec, seed, replication):
        played.append(spec.domains["small"].weight)
        return {("measured", "cpu.small"): float(spec.domains["small"].weight)}

    monkeypatch.setattr("vftsim.calibrate.fit.observe", counted)
    text = FIT.replace("start: 100,", "start: 200, environments: [capped],")
    for old, new in (("large.weight=1200]", "large.weight=300]"), ("bare/odd]", "bare/odd, capped/even]")):
        text = text.replace(old, new)
    (lab / "fit.yaml").write_text(text.replace("most_evaluations: 8", "most_evaluations: 1"))
    assert main(["calibrate", str(lab / "fit.yaml"), "-q", "-j", "1", "-o", str(lab / "fitted.json")]) == 0
    assert played[:2] == [100, 200]  # the model's own in both runs of `bare`, the search's in `capped`
    # The start, one step beside it for the slope, and the other replications that tell the chance of runs.
    assert len(played) == 2 * 2 + 2 * (CHANCE_RUNS - 1)


def test_a_run_takes_the_phase_of_its_name_and_else_the_last():
    seen = {("step_1", "cpu"): 1.0, ("step_2", "cpu"): 2.0}
    assert as_run(seen, "bare/step_1") == {("bare/step_1", "cpu"): 1.0}
    assert as_run(seen, "bare/r50") == {("bare/r50", "cpu"): 2.0}


@pytest.mark.parametrize(
    ("change", "told"),
    [({"environments": ["b"]}, "a is for 'b', no environment here"), ({"path": "b"}, "two parameters with the path b")],
)
def test_parameters_of_environments_are_told_apart(change, told):
    one = {"path": "a", "low": 0, "high": 1, "start": 0.5, "meaning": "abc"}
    with pytest.raises(ValidationError, match=told):
        CalibrationSpec(
            name="x",
            model="m",
            dataset="d",
            in_sample=["e/s"],
            environments={"e": []},
            parameters=[one | change, one | {"path": "b"}],
        )
